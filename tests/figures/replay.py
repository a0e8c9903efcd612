"""Follows a trace event by event and keeps what the figures are made of. docs/figures.md says what each one counts."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from chain import Block, Round, Tree
from delays import Delays
from network import Network

# What is told of the network and not by a node, so no event of the digest.
NOT_EVENTS = {"network.sent", "network.lost", "fault.began", "fault.ended", "node.down", "node.up", "round.began",
              "run.ended"}


@dataclass
class Sample:
    """What stands at the end of a slot."""

    slot: int
    round: int
    height: int
    height_least: int | None
    height_greatest: int | None
    branches: int
    depth: int
    agreement: float | None
    weight_agreement: float | None
    pool_mean: float | None
    pool_max: int | None
    down: int
    transactions: int


@dataclass
class InRound:
    """What happened while a round was in force."""

    delays: list[int] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    forks: int = 0
    transactions: int = 0


@dataclass
class Heal:
    fault: int
    kind: str
    at: int
    converged: int | None = None


class Replay:
    """A whole run."""

    def __init__(self, lines):
        lines = iter(lines)
        self.header = json.loads(next(lines))
        begin = self.header["tip"]
        root = Block(begin["id"], begin["height"], None)
        self.start = self.header["start"]
        first = json.loads(next(lines))
        assert first["kind"] == "round.began" and first["after"] == root.id, "a trace begins with its first round"
        members = [(member["key"], member["weight"]) for member in first["members"]]
        self.tree = Tree(root, Round(first["round"], root.id, members))
        self.network = Network(self.tree, self.header["nodes"], self.header["forgers"])
        self.delays = Delays()
        self.samples, self.rounds, self.heals = [], defaultdict(InRound), []
        self.round = None
        self.slot_us = self.header["block_time_s"] * 1_000_000
        self.slot = self.first_slot = self.start // self.slot_us
        self.events = 0
        self.rollbacks, self.causes = [], Counter()
        self.kinds = Counter()
        self.forks = self.rejected = 0
        self.expired = set()
        # Blocks whose empty slots before them belong to others than the line says.
        self.wrong_owners = 0
        self.parents = set()
        # By node: when a block was last pushed to it, and which.
        self.received = {}
        self.confirmed_in_slot = 0
        self.ended_at = None
        self._enter_round()
        for line in lines:
            self._line(json.loads(line))
        assert self.ended_at is not None, "the trace breaks off"

    # The clock: slots end, and rounds begin.

    def _line(self, line):
        now = line["at"]
        while (self.slot + 1) * self.slot_us <= now:
            self._end_slot()
        kind = line["kind"]
        # Of a node that is down it is the network that tells: its pool is lost.
        if kind not in NOT_EVENTS and self.network.live[line["node"]]:
            self.events += 1
        self.kinds[kind] += 1
        handle = self.HANDLERS.get(kind)
        if handle is not None:
            handle(self, now, line)

    def _end_slot(self):
        network, tree = self.network, self.tree
        live = network.live_nodes()
        heights = [tree.height(network.tips[node]) for node in live]
        pools = [len(network.pools[node]) for node in live]
        branches = tree.branches(list(network.standing))
        self.samples.append(
            Sample(
                slot=self.slot,
                round=self.round,
                height=tree.height(network.winning()),
                height_least=min(heights, default=None),
                height_greatest=max(heights, default=None),
                branches=len(branches),
                depth=network.fork_depth(branches),
                agreement=network.agreement(),
                weight_agreement=network.weight_agreement(),
                pool_mean=sum(pools) / len(pools) if pools else None,
                pool_max=max(pools, default=None),
                down=len(network.live) - len(live),
                transactions=self.confirmed_in_slot,
            )
        )
        self.confirmed_in_slot = 0
        self.slot += 1
        self._enter_round()

    def _enter_round(self):
        """A round is in force from the slot at whose begin the winning tip is to be followed by one of its blocks; it
        is not left for an earlier one."""
        self.round = max(self.round or 0, self.tree.round_after(self.network.winning()).number)

    def _look(self, now):
        """Something moved: faults may be healed."""
        if self.network.is_converged():
            for heal in self.heals:
                if heal.converged is None:
                    heal.converged = now

    # What the lines say.

    def _forged(self, now, line):
        block = self.tree.add(line["block"])
        if block.at is not None:
            return
        block.at, block.node, block.fees, block.holds = now, line["node"], line["fees"], line["holds"]
        self.delays.forged(now, block.id, line["node"], self.network.live_nodes())
        # An invalid block may have no parent: that is no fork.
        if block.previous is not None and block.previous in self.parents:
            self.forks += 1
            self.rounds[self.round].forks += 1
        self.parents.add(block.previous)

    def _received(self, now, line):
        self.received[line["node"]] = (now, line["block"]["id"])

    def _applied(self, now, line):
        block = self.tree.add(line["block"])
        node = line["node"]
        assert self.network.tips[node] == block.previous, f"{line}: the node stood on {self.network.tips[node]}"
        self._check_missed(block, line["missed"])
        self.network.move(node, block.id)
        # A block that was pushed is taken in at that instant; one that is downloaded comes unannounced.
        pushed = self.received.get(node) == (now, block.id)
        delays, latencies, confirmed = self.delays.applied(now, node, block, pushed)
        now_round = self.rounds[self.round]
        now_round.delays += delays
        now_round.latencies += latencies
        now_round.transactions += confirmed
        self.confirmed_in_slot += confirmed
        self._look(now)

    def _check_missed(self, block, missed):
        """Slots and owners by arithmetic are those that the ledger names: a round's worth at most, none after genesis."""
        parent = self.tree.blocks[block.previous]
        before = parent.slot if parent.slot is not None else block.slot
        in_force = self.tree.round_after(block.previous)
        owners = [in_force.owner(slot) for slot in range(before + 1, block.slot)]
        if owners[: len(in_force.members)] != missed:
            self.wrong_owners += 1

    def _reverted(self, now, line):
        block = self.tree.add(line["block"])
        self.network.move(line["node"], block.previous)
        self._look(now)

    def _rolled_back(self, now, line):
        self.network.move(line["node"], line["to"]["id"])
        depth = line["from"]["height"] - line["to"]["height"]
        self.rollbacks.append(depth)
        self.causes[line["cause"]] += 1
        self.rounds[self.round].depths.append(depth)
        self._look(now)

    def _round_began(self, _, line):
        self.tree.begin_round(line)

    def _down(self, now, line):
        self.network.down(line["node"])
        self._look(now)

    def _up(self, now, line):
        self.network.up(line["node"])
        self._look(now)

    def _fault_ended(self, now, line):
        heal = Heal(line["fault"], line["fault_kind"], now)
        self.heals.append(heal)
        self._look(now)

    def _pool_added(self, now, line):
        for transaction in line["transactions"]:
            self.network.pools[line["node"]].add(transaction["id"])
            self.delays.pooled(now, transaction["id"])

    def _pool_rejected(self, _, line):
        self.rejected += len(line["rejected"])

    def _pool_removed(self, _, line):
        self.network.pools[line["node"]].remove(line["transaction"])

    def _pool_dropped(self, _, line):
        self.network.pools[line["node"]].remove(line["transaction"]["id"])

    def _pool_expired(self, _, line):
        if line["transaction"]["id"] not in self.delays.confirmed:
            self.expired.add(line["transaction"]["id"])
        self._pool_dropped(_, line)

    def _pool_replaced(self, _, line):
        self.network.pools[line["node"]].replace(transaction["id"] for transaction in line["transactions"])

    def _run_ended(self, now, _):
        self.ended_at = now

    HANDLERS = {
        "block.forged": _forged,
        "block.received": _received,
        "block.applied": _applied,
        "block.reverted": _reverted,
        "chain.rolled-back": _rolled_back,
        "round.began": _round_began,
        "node.down": _down,
        "node.up": _up,
        "fault.ended": _fault_ended,
        "pool.added": _pool_added,
        "pool.rejected": _pool_rejected,
        "pool.removed": _pool_removed,
        "pool.evicted": _pool_dropped,
        "pool.purged": _pool_dropped,
        "pool.expired": _pool_expired,
        "pool.replaced": _pool_replaced,
        "run.ended": _run_ended,
    }
