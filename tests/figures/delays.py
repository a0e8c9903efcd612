"""How long blocks and transactions take to get to the nodes."""


class Spread:
    """One block on its way to the nodes that were live when it was forged."""

    def __init__(self, at, cohort):
        self.at = at
        self.cohort = frozenset(cohort)
        self.reached = set()

    def arrive(self, node):
        """The block is on a node's chain. Answers whether it is new to a node of the cohort."""
        if node not in self.cohort or node in self.reached:
            return False
        self.reached.add(node)
        return True

    def is_at_half(self):
        return len(self.reached) == (len(self.cohort) + 1) // 2

    def is_everywhere(self):
        return len(self.reached) == len(self.cohort)


class Delays:
    """Delays in microseconds."""

    def __init__(self):
        self.each, self.half, self.all, self.latency = [], [], [], []
        self.spreads = {}
        self.first_in_pool = {}
        self.confirmed = set()

    def forged(self, now, block_id, cohort):
        self.spreads.setdefault(block_id, Spread(now, cohort))

    def pooled(self, now, transaction):
        self.first_in_pool.setdefault(transaction, now)

    def applied(self, now, node, block):
        """Answers (delay or None, the latencies, the number of transactions that are confirmed by this)."""
        spread = self.spreads.get(block.id)
        if spread is None or not spread.arrive(node):
            return None, [], 0
        delay = now - spread.at
        self.each.append(delay)
        latencies, confirmed = [], 0
        if spread.is_at_half():
            self.half.append(delay)
            latencies, confirmed = self._confirm(now, block)
        if spread.is_everywhere():
            self.all.append(delay)
        return delay, latencies, confirmed

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
