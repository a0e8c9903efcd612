"""SimBlock's network written a second time: how long blocks take that nodes announce, ask for and send one at a time."""

import heapq
import math
import random
import statistics

NODES, BLOCK, COMPACT = 300, 535_000, 18_000
# By region: latencies in milliseconds, megabits a second down and up, and shares of the nodes.
INTERNET = {
    2019: (
        [
            [32, 124, 184, 198, 151, 189],
            [124, 11, 227, 237, 252, 294],
            [184, 227, 88, 325, 301, 322],
            [198, 237, 325, 85, 58, 198],
            [151, 252, 301, 58, 12, 126],
            [189, 294, 322, 198, 126, 16],
        ],
        [52, 40, 18, 22.8, 22.8, 29.9],
        [19.2, 20.7, 5.8, 15.7, 10.2, 11.3],
        [0.3316, 0.4998, 0.0090, 0.1177, 0.0224, 0.0195],
    ),
    2015: (
        [
            [36, 119, 255, 310, 154, 208],
            [119, 12, 221, 242, 266, 350],
            [255, 221, 137, 347, 256, 269],
            [310, 242, 347, 99, 172, 278],
            [154, 266, 256, 172, 9, 163],
            [208, 350, 269, 278, 163, 22],
        ],
        [25, 24, 6.5, 10, 17.5, 14],
        [4.7, 8.1, 1.8, 5.3, 3.4, 5.2],
        [0.3869, 0.5159, 0.0113, 0.0574, 0.0119, 0.0166],
    ),
}
# The cumulative distribution of the numbers of links that a node opens, from one on.
LINKS = [0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.97, 0.98, 0.99, 0.995, 1]
# How often each share of a block, in percent from one on, is among those that a node lacks which comes and goes.
LACKED = [546, 66, 39, 27, 21, 17, 14, 12, 11, 10, 9, 8, 7, 7, 6, 6, 5, 5, 5, *[4] * 5, *[3] * 8, *[2] * 16, *[1] * 48]


def dealt(cumulative, draw):
    """For each node the place in a distribution: as many of each as it says, in random order."""
    places = [next((i for i, part in enumerate(cumulative) if node <= NODES * part), len(cumulative) - 1) for node in range(NODES)]
    draw.shuffle(places)
    return places


class Network:
    def __init__(self, year, compact, seed):
        self.draw = random.Random(seed)
        self.latencies, self.down, self.up, shares = INTERNET[year]
        self.region = dealt([sum(shares[: i + 1]) for i in range(len(shares))], self.draw)
        self.compact = [place == 0 for place in dealt([0.964, 1], self.draw)] if compact else [False] * NODES
        self.goes = [place == 0 for place in dealt([0.976, 1], self.draw)]
        self.peers = [[] for _ in range(NODES)]
        for node, links in enumerate(dealt(LINKS, self.draw)):
            others = [other for other in range(NODES) if other != node and other not in self.peers[node]]
            for other in self.draw.sample(others, min(links + 1, len(others))):
                self.peers[node].append(other)
                self.peers[other].append(node)

    def latency(self, a, b):
        mean = self.latencies[self.region[a]][self.region[b]]
        return (mean - 5) / (1 - self.draw.random()) ** (1 / (0.2 * mean))

    def size(self, a, b, is_rest):
        if is_rest:
            return BLOCK * (self.draw.choices(range(1, 97), LACKED)[0] if self.goes[a] else 1) / 100
        return COMPACT if self.compact[a] and self.compact[b] else BLOCK

    def block(self):
        """The milliseconds until each node has a block that one of them makes, ascending."""
        has, heard, waiting, events = {}, set(), [[] for _ in range(NODES)], []

        def after(time, *what):
            heapq.heappush(events, (time, len(has), self.draw.random(), what))

        def takes(now, node):
            has[node] = now
            heard.add(node)
            for peer in self.peers[node]:
                after(now + self.latency(node, peer) + 10, "announced", node, peer)

        def sends(now, node):
            """The first that waits gets the block, and stays in the queue until it has it."""
            to, is_rest = waiting[node][0]
            rate = min(self.up[self.region[node]], self.down[self.region[to]]) * 1_000
            time = self.size(node, to, is_rest) * 8 / rate + 2 + self.latency(node, to)
            after(now + time, "sent", node, to, is_rest)

        takes(0, self.draw.randrange(NODES))
        while events:
            now, _, _, (what, a, b, *rest) = heapq.heappop(events)
            if what == "announced" and b not in heard:
                heard.add(b)
                after(now + self.latency(b, a) + 10, "asked", b, a, False)
            elif what == "asked":
                waiting[b].append((a, rest[0]))
                if len(waiting[b]) == 1:
                    sends(now, b)
            elif what == "sent":
                waiting[a].pop(0)
                if waiting[a]:
                    sends(now, a)
                is_compact = self.compact[a] and self.compact[b] and not rest[0]
                if is_compact and self.draw.random() < (0.27 if self.goes[b] else 0.13):
                    after(now + self.latency(b, a) + 10, "asked", b, a, True)
                else:
                    takes(now, b)
        return sorted(has.values())

    def quantiles(self, blocks):
        """Until half, nine in ten and 99 in 100 of the nodes have a block: means of blocks."""
        all_times = [self.block() for _ in range(blocks)]
        return [statistics.fmean(times[math.ceil(share * NODES) - 1] for times in all_times) for share in (0.5, 0.9, 0.99)]


def means(networks=24, blocks=60):
    """The figures of both studies of `dposlab validate`."""
    compact = [Network(2019, True, seed).quantiles(blocks) for seed in range(networks)]
    whole = []
    for seed in range(networks):
        of_2015, of_2019 = (Network(year, False, seed).quantiles(blocks) for year in (2015, 2019))
        whole.append([*of_2015, *of_2019, 100 * (1 - of_2019[1] / of_2015[1])])
    return [[statistics.fmean(column) for column in zip(*runs)] for runs in (compact, whole)]
