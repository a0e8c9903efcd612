"""The figures of a run, in the shape of the files that `run --out` writes, computed from its replay."""

from collections import defaultdict

from chain import id_order
from delays import quantiles

ROWS_OVER_TIME = 2_000
ORPHANS_LISTED = 10_000


def known(values):
    return [value for value in values if value is not None]


def mean(values):
    values = known(values)
    return sum(values) / len(values) if values else None


def most(values):
    return max(known(values), default=None)


def least(values):
    return min(known(values), default=None)


class Figures:
    """All tables of a run, as lists of rows, and the totals of its summary."""

    def __init__(self, replay, groups=()):
        self.replay, self.tree, self.groups = replay, replay.tree, groups
        self.tip = replay.network.winning()
        self.chain = self.tree.chain(self.tip)
        self.forged = sorted(
            (block for block in self.tree.blocks.values() if block.at is not None), key=lambda block: block.at
        )
        self.end_slot = replay.ended_at // replay.slot_us
        self.by_round = self._walk()

    def _walk(self):
        """Slot by slot along the winning chain: (slot, key of its owner, block or None), by the round in force."""
        slots = defaultdict(list)
        next_slot, before = self.replay.first_slot, self.tree.root.id
        ends = [(block.slot, block) for block in self.chain] + [(self.end_slot, None)]
        for slot, block in ends:
            in_force = self.tree.round_after(before)
            empty = range(next_slot, slot)
            slots[in_force.number] += [(missed, in_force.owner(missed), None) for missed in empty]
            if block is not None:
                owner = in_force.owner(slot)
                assert owner == block.forger, f"slot {slot} is {owner}'s, and {block.id} is {block.forger}'s"
                slots[in_force.number].append((slot, owner, block))
                next_slot, before = slot + 1, block.id
        self.members = {}
        for block in [self.tree.root, *self.chain]:
            in_force = self.tree.round_after(block.id)
            self.members[in_force.number] = in_force
        return {number: of for number, of in slots.items() if of}

    def username(self, key):
        """Generated delegates are named by the node that they forge on; others have no name in the trace."""
        forgers = self.replay.header["forgers"]
        return f"genesis_{forgers.index(key) + 1}" if key in forgers else None

    def gaps(self):
        """Runs of slots without a block, by the round of the first block after; the last one to the end of the run."""
        found, before = [], self.replay.first_slot
        for slot, block in [(block.slot, block) for block in self.chain] + [(self.end_slot, None)]:
            below = block.previous if block is not None else self.tip
            found.append((self.tree.round_after(below).number, slot - before))
            before = slot + 1
        return found

    # The tables.

    def delegates(self):
        rows = []
        for number, slots in self.by_round.items():
            for key, _ in self.members[number].members:
                own = [block for _, owner, block in slots if owner == key]
                forged = sum(block is not None for block in own)
                rows.append(
                    {
                        "round": number,
                        "username": self.username(key),
                        "public_key": key,
                        "owned": len(own),
                        "forged": forged,
                        "missed": len(own) - forged,
                    }
                )
        return rows

    def delegate_sums(self):
        sums = {}
        for row in self.delegates():
            key = row["public_key"]
            zero = {"username": row["username"], "publicKey": key, "owned": 0, "forged": 0, "missed": 0}
            total = sums.setdefault(key, zero)
            for name in ("owned", "forged", "missed"):
                total[name] += row[name]
        return list(sums.values())

    def blocks(self):
        rows = []
        for block in self.chain:
            rows.append(
                {
                    "height": block.height,
                    "id": block.id,
                    "slot": block.slot,
                    "round": self.tree.round_after(block.previous).number,
                    "forger": block.forger,
                    "transactions": block.transactions,
                    "fees": block.fees,
                }
            )
        return rows

    def orphaned(self):
        on_chain = {block.id for block in self.chain}
        return [block for block in self.forged if block.id not in on_chain]

    def orphans(self):
        rows = [
            {
                "height": block.height,
                "id": block.id,
                "slot": block.slot,
                "at_us": block.at,
                "node": block.node,
                "transactions": block.transactions,
            }
            for block in sorted(self.orphaned(), key=lambda block: (block.height, id_order(block.id)))
        ]
        return rows[:ORPHANS_LISTED]

    def sampled(self, samples):
        """What is sampled at the ends of these slots."""
        of = lambda name: [getattr(sample, name) for sample in samples]
        return {
            "slots": len(samples),
            "slots_forked": sum(sample.branches > 1 for sample in samples),
            "branches_max": most(of("branches")) or 0,
            "fork_depth_max": most(of("depth")) or 0,
            "agreement_mean": mean(of("agreement")),
            "agreement_min": least(of("agreement")),
            "weight_agreement_mean": mean(of("weight_agreement")),
            "weight_agreement_min": least(of("weight_agreement")),
            "pool_mean": mean(of("pool_mean")),
            "pool_max": most(of("pool_max")),
            "down_max": most(of("down")),
        }

    def rounds(self):
        replay, rows = self.replay, []
        chain_gaps = self.gaps()
        for number in dict.fromkeys(sample.round for sample in replay.samples):
            samples = [sample for sample in replay.samples if sample.round == number]
            happened = replay.rounds[number]
            row = {"round": number, **self.sampled(samples)}
            slots = self.by_round.get(number)
            if slots is not None:
                blocks = [block for _, _, block in slots if block is not None]
                after = self.tree.height(self.members[number].after)
                row |= {
                    "first_height": 1 if number == 1 else after + 1,
                    "last_height": blocks[-1].height if blocks else None,
                    "blocks": len(blocks),
                    "missed_slots": len(slots) - len(blocks),
                    "gap_slots_max": max((length for of, length in chain_gaps if of == number), default=0),
                }
            row |= {
                "forks": happened.forks,
                "rollbacks": len(happened.depths),
                "rollback_depth_max": max(happened.depths, default=0),
                "transactions": happened.transactions,
                "transactions_per_second": happened.transactions / (len(samples) * self.replay.slot_us / 1e6),
            }
            for name, delays in (("propagation", happened.delays), ("transaction_latency", happened.latencies)):
                found = quantiles(delays)
                row[f"{name}_count"] = found.pop("count")
                row |= {f"{name}_{quantile}_ms": value for quantile, value in found.items()}
            rows.append(row)
        return rows

    def captured(self, members):
        """The most members that are delegates of one group of agents."""
        names = {self.username(key) for key, _ in members}
        return max((len(names & group) for group in self.groups), default=0)

    def elections(self):
        """Members and weights as the lines of rounds tell them, each round against the one before it on the chain."""
        rows = []
        for number in self.by_round:
            begun = self.members[number]
            weights = sorted((weight for _, weight in begun.members), reverse=True)
            before = None
            if number > 1 and begun.after != self.tree.root.id:
                before = {key for key, _ in self.tree.round_after(self.tree.parent(begun.after)).members}
            total, held, nakamoto = sum(weights), 0, 0
            while total and 2 * held <= total:
                held += weights[nakamoto]
                nakamoto += 1
            differences = sum(abs(one - other) for one in weights for other in weights)
            rows.append(
                {
                    "round": number,
                    "members": len(weights),
                    "weight": total,
                    "weight_least": weights[-1],
                    "weight_greatest": weights[0],
                    "turnover": None if before is None else len({key for key, _ in begun.members} - before),
                    "gini": differences / (2 * len(weights) * total) if total else 0,
                    "nakamoto": nakamoto,
                    "captured": self.captured(begun.members),
                }
            )
        return rows

    def time(self):
        samples, width = self.replay.samples, 1
        while -(-len(samples) // width) > ROWS_OVER_TIME:
            width *= 2
        rows = []
        for first in range(0, len(samples), width):
            some = samples[first : first + width]
            row = self.sampled(some)
            row |= {
                "at_us": some[0].slot * self.replay.slot_us,
                "first_slot": some[0].slot,
                "height_least": least(sample.height_least for sample in some),
                "height_greatest": most(sample.height_greatest for sample in some),
                "transactions": sum(sample.transactions for sample in some),
            }
            rows.append(row)
        return rows

    def heals(self):
        replay = self.replay
        seconds = lambda micros: None if micros is None else micros / 1e6
        rows = []
        for heal in replay.heals:
            until = replay.ended_at if heal.converged is None else heal.converged
            rows.append(
                {
                    "fault": heal.fault,
                    "kind": heal.kind,
                    "at_us": heal.at,
                    "converged_seconds": None if heal.converged is None else seconds(heal.converged - heal.at),
                    "observed_seconds": seconds(until - heal.at),
                }
            )
        return rows

    def longest_to_converge(self):
        """The longest time; unknown where the run ended before one of the faults was healed."""
        heals = self.heals()
        healed = all(row["converged_seconds"] is not None for row in heals)
        return {
            "converged_seconds_max": most(row["converged_seconds"] for row in heals) if healed else None,
            "observed_seconds_max": most(row["observed_seconds"] for row in heals),
        }

    def grew_last(self):
        """The end of the last slot in which the winning tip rose; the beginning of the run without one."""
        height, grown = self.tree.height(self.tree.root.id), self.replay.first_slot
        for sample in self.replay.samples:
            if sample.height > height:
                grown = sample.slot + 1
            height = sample.height
        return grown

    def lost(self):
        """Transactions that were in a pool, and at the end are neither on the chain nor in a pool nor expired."""
        on_chain = {held for block in self.chain for held in block.holds}
        in_a_pool = set().union(*(pool.held for pool in self.replay.network.pools))
        return set(self.replay.delays.first_in_pool) - on_chain - in_a_pool - self.replay.expired

    def totals(self):
        replay, delays = self.replay, self.replay.delays
        seconds = (replay.ended_at - replay.start) / 1e6
        depths = replay.rollbacks
        sampled = self.sampled(replay.samples)
        orphaned, elections = self.orphaned(), self.elections()
        totals = {
            "height": self.tree.height(self.tip),
            "rounds": len(self.by_round),
            "blocks": len(self.chain),
            "missed_slots": self.end_slot - replay.first_slot - len(self.chain),
            "longest_gap_slots": max((length for _, length in self.gaps()), default=0),
            "forged": len(self.forged),
            "orphaned": len(orphaned),
            "forks": replay.forks,
            **sampled,
            "rollbacks": len(depths),
            "rollback_depth_max": max(depths, default=0),
            "rollback_depth_mean": mean(depths) or 0,
            "rollbacks_by_cause": dict(replay.causes),
            "rollbacks_by_depth": {str(depth): depths.count(depth) for depth in set(depths)},
            "blocks_refused": replay.kinds["block.refused"],
            "blocks_disregarded": replay.kinds["block.disregarded"],
            "forging_suspended": replay.kinds["forger.suspended"],
            "propagation_ms": quantiles(delays.each),
            "propagation_half_ms": quantiles(delays.half),
            "propagation_all_ms": quantiles(delays.all),
            "gossip_ms": quantiles(delays.gossip),
            "gossip_all_ms": quantiles(delays.gossip_all),
            "turnover": sum(row["turnover"] or 0 for row in elections),
            "gini_end": elections[-1]["gini"],
            "nakamoto_end": elections[-1]["nakamoto"],
            "captured_end": elections[-1]["captured"],
            "transactions": len(delays.confirmed),
            "transactions_per_second": len(delays.confirmed) / seconds if seconds else 0,
            "transaction_latency_ms": quantiles(delays.latency),
            "transactions_rejected": replay.rejected,
            "transactions_expired": len(replay.expired),
            "transactions_lost": len(self.lost()),
            "agreement_end": replay.network.agreement(),
            "down_end": replay.network.live.count(False),
            **self.longest_to_converge(),
            "seconds": seconds,
        }
        return totals

    def summary(self):
        header = self.replay.header
        return {
            "scenario": header["scenario"],
            "seed": header["seed"],
            "set": header["set"],
            "version": header["version"],
            "events": self.replay.events,
            "totals": self.totals(),
            "delegates": self.delegate_sums(),
            "heals": self.heals(),
        }
