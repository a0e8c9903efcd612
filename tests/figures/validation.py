"""Computes the figures of `dposlab validate` again: schedules and rules of finality written a second time, from their documents."""

import functools
import hashlib
import math
import random
import statistics

import simblock
from compare import Comparison


def order(number, delegates, digest_places):
    """The members of a round in forging order: each digest gives four swaps, for so many places."""
    members, seed = list(range(delegates)), hashlib.sha256(str(number).encode()).digest()
    for start in range(0, delegates, digest_places):
        for place, byte in zip(range(start, delegates), seed[:4]):
            other = byte % delegates
            members[place], members[other] = members[other], members[place]
        seed = hashlib.sha256(seed).digest()
    return members


def forgers(delegates, slots, digest_places):
    """The forger of each slot from 1 on, where none is missed; genesis stands in slot 0."""
    rounds = {}
    for slot in range(1, slots + 1):
        number = slot // delegates + 1
        if number not in rounds:
            rounds[number] = order(number, delegates, digest_places)
        yield rounds[number][slot % delegates]


def gaps(digest_places, parts=12, rounds=20, delegates=51):
    """Means over parts of: the gaps' mean, deviation, and share of those up to 10."""
    last, of_parts = {}, [[] for _ in range(parts)]
    for slot, forger in enumerate(forgers(delegates, (parts * rounds + 1) * delegates, digest_places), 1):
        part = (slot - 1 - delegates) // (rounds * delegates)
        if forger in last and 0 <= part < parts:
            of_parts[part].append(slot - last[forger])
        last[forger] = slot
    return [
        statistics.fmean(map(statistics.fmean, of_parts)),
        statistics.fmean(map(statistics.stdev, of_parts)),
        statistics.fmean(sum(gap <= 10 for gap in part) / len(part) for part in of_parts),
    ]


class LiskBft:
    """LIP-0014 on a chain without forks or missed slots: each block votes for those since its forger's last one."""

    def __init__(self, active):
        self.active, self.threshold = set(active), 2 * len(set(active)) // 3 + 1
        self.prevotes, self.precommits, self.last, self.precommitted, self.final = {}, {}, {}, {}, 0

    def take(self, height, forger):
        before = self.last.get(forger, 0)
        self.last[forger] = height
        self.prevotes[height] = self.precommits[height] = 0
        if forger not in self.active:
            return
        # Its own blocks are all on this chain, so there is none that it has not prevoted.
        ready = [at for at in range(self.precommitted.get(forger, 0) + 1, height) if self.prevotes.get(at, 0) >= self.threshold]
        for at in ready:
            self.precommits[at] += 1
            if self.precommits[at] >= self.threshold:
                self.final = max(self.final, at)
        if ready:
            self.precommitted[forger] = ready[-1]
        for at in range(before + 1, height + 1):
            if at in self.prevotes:
                self.prevotes[at] += 1


def delays(chain, active, first):
    """(height, blocks until it was final), of those above `first`."""
    rule, told = LiskBft(active), 0
    for height, forger in enumerate(chain, 2):
        rule.take(height, forger)
        for at in range(told + 1, rule.final + 1):
            if at > first:
                yield at, height - at
        told = max(told, rule.final)


def lisk_network(delegates, parts, rounds):
    """The mean of parts of the same rounds that the network plays."""
    first, part = 4 * delegates, rounds * delegates
    chain = forgers(delegates, first + (parts * rounds + 4) * delegates, 4)
    of_parts = [[] for _ in range(parts)]
    for height, delay in delays(chain, range(delegates), first):
        if (height - first - 1) // part < parts:
            of_parts[(height - first - 1) // part].append(delay)
    return statistics.fmean(map(statistics.fmean, of_parts))


def lisk_closed_form():
    """The first block of a round, 101 active and 2 standing by."""
    terms = (
        (k + 35) * math.comb(68, 34) * math.comb(35, k) / math.comb(103, 34 + k) * 34 / (69 - k) for k in range(36)
    )
    return 102 + sum(terms)


def lisk_drawn(rounds):
    """The mean of all blocks of rounds that are drawn here, 101 active and 2 standing by."""
    draw, chain = random.Random(7), []
    for _ in range(rounds):
        members = list(range(103))
        draw.shuffle(members)
        chain += members
    return statistics.fmean(delay for _, delay in delays(chain, range(101), 309))


def eos(delegates, turn):
    """Blocks to the last irreversible one: least, greatest, mean. A block confirms those since its forger's last one."""
    wanted, last, implied, proposed = {}, {}, dict.fromkeys(range(delegates), 0), 0
    need, seen = 2 * delegates // 3 + 1, []
    for height in range(1, 14 * delegates * turn):
        forger = height // turn % delegates
        implied[forger] = proposed
        wanted[height] = need
        for at in range(height, last.get(forger, 0), -1):
            if at <= proposed:
                break
            wanted[at] -= 1
            if wanted[at] == 0:
                proposed = at
        last[forger] = height
        if height >= 8 * delegates * turn:
            seen.append(height - sorted(implied.values())[(delegates - 1) // 3])
    whole = seen[: 5 * delegates * turn]
    return [statistics.fmean(whole), min(whole), max(whole)]


def tron(delegates=27):
    """Blocks to the solidified one: three tenths of the witnesses' latest blocks, which lie one below the other, are lower."""
    return delegates - 1 - delegates * 3 // 10


def tron_missed(chance, slots=400_000, delegates=27):
    """Slots to the solidified block, each slot missed with a chance."""
    draw, latest, lag = random.Random(7), [0] * delegates, []
    height, slot_of = 0, {0: 0}
    for slot in range(1, slots):
        if draw.random() < chance:
            continue
        height += 1
        slot_of[height] = slot
        latest[slot % delegates] = height
        if slot > 8 * delegates:
            lag.append(slot - slot_of[sorted(latest)[delegates * 3 // 10]])
    return statistics.fmean(lag)


def lisk_seats(seats=101, supply=125_000_000, rest=27_400_000):
    """Seats of an owner of more coins than all others, of fewer coins, and of wallets of one vote, by Droop's quota."""
    of_full_votes = [seats if owner > rest else 0 for owner in (27_600_000, 27_300_000)]
    owner = 27_600_000
    assert round(100 * (owner + rest) / supply) == 44
    return [*of_full_votes, owner * (seats + 1) // (owner + rest)]


def lottery(slots=300_000, delegates=51, active=0.05):
    """The owners of each slot, drawn one by one: each delegate wins with 1 - (1 - f)^(1 / n)."""
    draw, chance = random.Random(7), 1 - (1 - active) ** (1 / delegates)
    return [[one for one in range(delegates) if draw.random() < chance] for _ in range(slots)]


def leaders():
    """Mean and median of the slots between two with an owner, the share above 60, and slots with one or two owners."""
    slots = lottery()
    filled = [slot for slot, owners in enumerate(slots) if owners]
    between = [second - first for first, second in zip(filled, filled[1:])]
    long, double = sum(gap > 60 for gap in between), sum(len(owners) > 1 for owners in slots)
    return [
        statistics.fmean(between),
        statistics.median(between),
        long / len(between),
        43_200 * len(filled) / len(slots),
        432_000 * double / len(slots),
    ]


def forked_heights(late):
    """Heights with two blocks or more, each block `late` whole slots unknown to all but its owner: by playing the race of all delegates."""
    best, coming, of_height = [0] * 51, [], {}
    for slot, owners in enumerate(lottery()):
        for height in [height for at, height in coming if at <= slot]:
            best = [max(one, height) for one in best]
        coming = [(at, height) for at, height in coming if at > slot]
        # The owners of a slot forge at the same time.
        heights = [(owner, best[owner] + 1) for owner in owners]
        for owner, height in heights:
            best[owner] = height
            of_height[height] = of_height.get(height, 0) + 1
            coming.append((slot + late + 1, height))
    return sum(blocks > 1 for blocks in of_height.values()) / len(of_height)


def law_of_forks(late, delegates=51, active=0.05):
    """No other owner of the slot, and no other delegate's slot while the block is on its way."""
    alone = delegates * ((1 - active) ** (-1 / delegates) - 1) * (1 - active) / active
    return 1 - alone * (1 - active) ** (late * (delegates - 1) / delegates)


def pushes(peers, nodes=500, times=400):
    """The share of nodes that have a message which each sends to so many others once."""
    draw, reached = random.Random(7), []
    for _ in range(times):
        have, waiting = {0}, [0]
        while waiting:
            node = waiting.pop()
            for other in draw.sample(range(nodes - 1), peers):
                other += other >= node
                if other not in have:
                    have.add(other)
                    waiting.append(other)
        reached.append(len(have) / nodes)
    return statistics.fmean(reached)


@functools.cache
def exact():
    """By study, the figures that nothing draws."""
    return {
        "EOS, 21 delegates, turns of 12": eos(21, 12),
        "EOS, 21 delegates, turns of 1": eos(21, 1),
        "EOS, 5 delegates, turns of 12": eos(5, 12),
        "EOS, 51 delegates, turns of 1": eos(51, 1),
        "EOS, 4 delegates, turns of 1": eos(4, 1),
        "Tron, 27 delegates": [tron()] * 3,
        "Lisk-BFT, 4 delegates": [lisk_network(4, 24, 100)],
        "Lisk-BFT, 21 delegates": [lisk_network(21, 24, 40)],
        "Lisk-BFT, 51 delegates": [lisk_network(51, 24, 10)],
        "Lisk's 101 seats where 44 % of the coins vote": lisk_seats(),
        "51 delegates, each place of a round shuffled": gaps(4),
        "ARK, 51 delegates, its rounds, of which each fifth place is not shuffled": gaps(5),
        "EOS, 21 delegates, turns of 12, blocks that come 0.6, 1.2 and 2.2 slots later": [0, 1, 2],
        "Tron, 21 delegates, slots of 3 seconds, blocks that end a round take 2.7 and 3.3 seconds to validate": [
            (100 + validate) // 3_000 for validate in (2_700, 3_300)
        ],
    }


@functools.cache
def drawn():
    """By study, the figures that are drawn there, and drawn anew here."""
    compact, whole = simblock.means()
    return {
        "SimBlock's defaults": compact,
        "SimBlock without compact blocks, Internet of 2015 and of 2019": whole,
        "Tron, 27 delegates, 5 % of slots missed": [tron_missed(0.05)],
        "Lisk-BFT, 101 delegates and 2 standing by; the rule on drawn rounds": [lisk_closed_form(), lisk_drawn(400)],
        "Praos, 51 delegates, a slot of 20 with an owner": leaders(),
        "Praos, blocks that come 1.2 slots later": [forked_heights(1)],
        "Praos, blocks that come 2.2 slots later": [forked_heights(2)],
        "500 nodes in a full mesh, each of which pushes a block to 2, 3 or 16 peers": [pushes(2), pushes(3), 1],
        # Who is off in so many rounds misses as many slots.
        "ARK, 51 delegates, each off in 1.28 % of rounds": [0.0128],
    }


# What a closed form says, by study and place.
CLOSED = {
    ("EOS, 21 delegates, turns of 12", 0): (325 + 336) / 2,
    ("Lisk-BFT, 101 delegates and 2 standing by; the rule on drawn rounds", 0): round(lisk_closed_form(), 2),
    ("Lisk's 101 seats where 44 % of the coins vote", 0): 101,
    ("Praos, blocks that come 1.2 slots later", 0): round(law_of_forks(1), 5),
    ("Praos, blocks that come 2.2 slots later", 0): round(law_of_forks(2), 5),
    ("51 delegates, each place of a round shuffled", 1): math.sqrt((51**2 - 1) / 6),
    ("51 delegates, each place of a round shuffled", 2): sum(range(1, 11)) / 51**2,
}


def compare(figures):
    """A figure that nothing draws must be met to rounding; of the others the interval must hold what comes out here."""
    comparison, by_study = Comparison(), {}
    for figure in figures:
        by_study.setdefault(figure["study"], []).append(figure)
    comparison.value("validate.studies", "validate", sorted(by_study), sorted([*exact(), *drawn()]))
    for study, of_study in by_study.items():
        for figure, expected in zip(of_study, exact().get(study) or drawn().get(study, [])):
            comparison.compared["validate.found"] += 1
            if study in exact():
                same = abs(figure["found"] - expected) < 1e-9
            else:
                ends = figure["confidence"] or {"low": figure["found"] - 1e-6, "high": figure["found"] + 1e-6}
                # Both were drawn: the interval may miss by a third of its width.
                slack = (ends["high"] - ends["low"]) / 3
                same = ends["low"] - slack < expected < ends["high"] + slack
            if not same:
                comparison.differ("validate.found", f"validate: {study}: {figure['figure']}", figure["found"], expected)
    for (study, place), expected in CLOSED.items():
        comparison.value("validate.expected_mean", f"validate: {study}", by_study[study][place]["expected"], expected)
    return comparison
