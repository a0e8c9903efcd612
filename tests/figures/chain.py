"""Blocks, chains and rounds, as a trace tells of them."""

from dataclasses import dataclass, field


@dataclass
class Block:
    """One block. The block a run begins on has no slot, for nobody forged it in the run."""

    id: str
    height: int
    previous: str | None
    slot: int | None = None
    forger: str | None = None
    transactions: int = 0
    # What `block.forged` says; empty for a block that was never forged by a node of the run.
    at: int | None = None
    node: int | None = None
    fees: int = 0
    holds: list[str] = field(default_factory=list)


@dataclass
class Round:
    """A round: its number, the block it begins after, and its members in forging order as (key, weight)."""

    number: int
    after: str
    members: list[tuple[str, int]]

    def owner(self, slot):
        """The key that a slot belongs to."""
        return self.members[slot % len(self.members)][0]


def id_order(block_id):
    """What ids are ordered by: numeric ones as numbers."""
    return (0, int(block_id), "") if block_id.isdigit() else (1, 0, block_id)


class Tree:
    """All blocks that the trace names."""

    def __init__(self, root, first_round):
        self.blocks = {root.id: root}
        self.rounds = {root.id: first_round}
        self.root = root
        self._round_after = {root.id: first_round}

    def add(self, line):
        """A block as it stands in a line of the trace."""
        block = self.blocks.get(line["id"])
        if block is None:
            block = Block(
                line["id"], line["height"], line["previous"], line["slot"], line["forger"], line["transactions"]
            )
            self.blocks[block.id] = block
        return block

    def begin_round(self, line):
        members = [(member["key"], member["weight"]) for member in line["members"]]
        self.rounds.setdefault(line["after"], Round(line["round"], line["after"], members))

    def parent(self, block_id):
        return self.blocks[block_id].previous

    def height(self, block_id):
        return self.blocks[block_id].height

    def round_after(self, block_id):
        """The round of the block that follows this one."""
        walked = []
        while block_id not in self._round_after:
            begun = self.rounds.get(block_id)
            if begun is not None:
                self._round_after[block_id] = begun
                break
            walked.append(block_id)
            block_id = self.parent(block_id)
        found = self._round_after[block_id]
        for below in walked:
            self._round_after[below] = found
        return found

    def down_to(self, block_id, height):
        """The block of this chain at a height, which is not above it."""
        while self.height(block_id) > height:
            block_id = self.parent(block_id)
        return block_id

    def common_height(self, one, other):
        """Height of the last block that both chains contain."""
        height = min(self.height(one), self.height(other))
        one, other = self.down_to(one, height), self.down_to(other, height)
        while one != other:
            one, other = self.parent(one), self.parent(other)
        return self.height(one)

    def holds(self, chain, block_id):
        """Whether a chain goes through a block."""
        return self.height(block_id) <= self.height(chain) and self.down_to(chain, self.height(block_id)) == block_id

    def branches(self, tips):
        """The tips that are no proper ancestor of another one."""
        return [tip for tip in tips if not any(other != tip and self.holds(other, tip) for other in tips)]

    def chain(self, tip):
        """The blocks of a chain that the run has made, from the lowest."""
        blocks = []
        while tip != self.root.id:
            blocks.append(self.blocks[tip])
            tip = self.parent(tip)
        return blocks[::-1]
