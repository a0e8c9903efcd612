"""Where nodes stand and which of them are live, after each event of a trace."""

from collections import Counter

from chain import id_order


class Pool:
    """What a pool holds. One that is full tells what gives way at once, and what a batch has added after the batch, so a
    transaction may go before it is told to have come."""

    def __init__(self):
        self.held, self.gone = set(), set()

    def __len__(self):
        return len(self.held)

    def add(self, transaction):
        if transaction in self.gone:
            self.gone.remove(transaction)
        else:
            self.held.add(transaction)

    def remove(self, transaction):
        if transaction in self.held:
            self.held.remove(transaction)
        else:
            self.gone.add(transaction)

    def replace(self, transactions):
        self.held, self.gone = set(transactions), set()


class Network:
    """Nodes, their tips and pools. A node that is down keeps its tip and its pool."""

    def __init__(self, tree, nodes, forgers):
        self.tree = tree
        self.tips = [tree.root.id] * nodes
        self.live = [True] * nodes
        self.pools = [Pool() for _ in range(nodes)]
        self.forgers = forgers
        self.standing = Counter({tree.root.id: nodes})
        self.last_winning = tree.root.id

    def move(self, node, tip):
        if self.live[node]:
            self._leave(self.tips[node])
            self.standing[tip] += 1
        self.tips[node] = tip

    def down(self, node):
        assert self.live[node], f"node {node} is down already"
        self.last_winning = self.winning()
        self.live[node] = False
        self._leave(self.tips[node])

    def up(self, node):
        assert not self.live[node], f"node {node} is live already"
        self.live[node] = True
        self.standing[self.tips[node]] += 1

    def _leave(self, tip):
        self.standing[tip] -= 1
        if not self.standing[tip]:
            del self.standing[tip]

    def live_nodes(self):
        return [node for node, live in enumerate(self.live) if live]

    def winning(self):
        """The block most live nodes stand on; of equals the higher, then the smaller id. Without any, the last one."""
        if not self.standing:
            return self.last_winning
        smallest = sorted(self.standing, key=id_order)
        return max(smallest, key=lambda tip: (self.standing[tip], self.tree.height(tip)))

    def is_converged(self):
        return len(self.standing) == 1

    def agreement(self):
        """Share of the live nodes on the winning tip; None where none is live."""
        live = sum(self.standing.values())
        return self.standing[self.winning()] / live if live else None

    def weight_agreement(self):
        """The same by the weight that the round in force gives the delegates on live nodes."""
        if not self.standing:
            return None
        winning = self.winning()
        weights = dict(self.tree.round_after(winning).members)
        on_winning = total = 0
        for node in self.live_nodes():
            weight = weights.get(self.forgers[node], 0)
            total += weight
            on_winning += weight if self.tips[node] == winning else 0
        return on_winning / total if total else self.agreement()

    def fork_depth(self, branches):
        """The most blocks of a branch beside the winning tip above what both share."""
        winning = self.winning()
        beside = [branch for branch in branches if not self.tree.holds(branch, winning)]
        return max((self.tree.height(tip) - self.tree.common_height(tip, winning) for tip in beside), default=0)
