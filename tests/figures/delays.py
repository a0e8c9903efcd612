"""How long blocks and transactions take to get to the nodes."""


class Spread:
    """One block on its way to the nodes that were live when it was forged."""

    def __init__(self, at, forger, cohort):
        self.at, self.forger = at, forger
        self.cohort = frozenset(cohort)
        self.reached = {}
        # The nodes that got it by a push, not by a download.
        self.pushed = set()

    def arrive(self, now, node, pushed):
        """The block is on a node's chain. Answers whether it is new to a node of the cohort."""
        if node not in self.cohort or node in self.reached:
            return False
        self.reached[node] = now
        if pushed:
            self.pushed.add(node)
        return True

    def is_at_half(self):
        return len(self.reached) == (len(self.cohort) + 1) // 2

    def has_left_its_forger(self):
        """Another node has it; or there is no other."""
        return len(self.cohort) == 1 or any(node != self.forger for node in self.reached)


class Delays:
    """Delays in microseconds."""

    def __init__(self):
        self.latency = []
        self.spreads = {}
        self.first_in_pool = {}
        self.confirmed = set()

    def forged(self, now, block_id, forger, cohort):
        self.spreads.setdefault(block_id, Spread(now, forger, cohort))

    def pooled(self, now, transaction):
        self.first_in_pool.setdefault(transaction, now)

    def applied(self, now, node, block, pushed):
        """Answers (the delays that count from now on, the latencies, the number of transactions confirmed by this)."""
        spread = self.spreads.get(block.id)
        before = spread is not None and spread.has_left_its_forger()
        if spread is None or not spread.arrive(now, node, pushed):
            return [], [], 0
        delays = [now - spread.at]
        if not spread.has_left_its_forger():
            delays = []
        elif not before and len(spread.reached) > 1:
            # With its second node the block counts, and so does the forger's own delay.
            delays = [at - spread.at for at in spread.reached.values()]
        latencies, confirmed = self._confirm(now, block) if spread.is_at_half() else ([], 0)
        return delays, latencies, confirmed

    # What is made of all spreads when the run is over.

    def _sent(self):
        return [spread for spread in self.spreads.values() if spread.has_left_its_forger()]

    @property
    def each(self):
        return [at - spread.at for spread in self._sent() for at in spread.reached.values()]

    @property
    def half(self):
        """The delay of the node with which half of a cohort had the block."""
        ordered = [(spread, sorted(spread.reached.values())) for spread in self._sent()]
        needed = lambda spread: (len(spread.cohort) + 1) // 2
        return [times[needed(spread) - 1] - spread.at for spread, times in ordered if len(times) >= needed(spread)]

    @property
    def all(self):
        whole = [spread for spread in self._sent() if len(spread.reached) == len(spread.cohort)]
        return [max(spread.reached.values()) - spread.at for spread in whole]

    @property
    def gossip(self):
        return [spread.reached[node] - spread.at for spread in self._sent() for node in spread.pushed]

    @property
    def gossip_all(self):
        whole = [spread for spread in self._sent() if len(spread.pushed) == len(spread.cohort)]
        return [max(spread.reached.values()) - spread.at for spread in whole]

    def _confirm(self, now, block):
        new = [transaction for transaction in block.holds if transaction not in self.confirmed]
        self.confirmed.update(new)
        latencies = [now - self.first_in_pool[transaction] for transaction in new if transaction in self.first_in_pool]
        self.latency += latencies
        return latencies, len(new)


def quantiles(delays):
    """Percentiles in milliseconds, exact: the smallest delay that so many are not above."""
    ordered = sorted(delays)
    if not ordered:
        return {"count": 0, "p50": None, "p90": None, "p99": None, "max": None}
    at = lambda percent: ordered[max(-(-len(ordered) * percent // 100), 1) - 1] / 1000
    return {"count": len(ordered), "p50": at(50), "p90": at(90), "p99": at(99), "max": ordered[-1] / 1000}
