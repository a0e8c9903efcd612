//! The time that blocks take from the forger to the chains of its cohort: the nodes that were live at the instant it was forged.
//! Nodes that were down then catch up later, which is no propagation.
//!
//! A block arrives on a chain by gossip, if a node applies it at the instant at which it is pushed there, or by a download, perhaps
//! a minute later. `each` and `all` count both, `gossip` and `gossip_all` pushed blocks only. A block that only its forger's chain
//! had, although other nodes were live, does not count: the forger went down before it sent the block, or is cut off.

use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Block, BlockId},
    sim::Tips,
};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::{collections::BTreeMap, ops::RangeInclusive};

/// The number of blocks followed at a time. A block that a node still lacks after this number of others is no longer followed. With
/// many nodes it is smaller, so that the table of missing blocks fits 32 MiB.
const FOLLOWED: RangeInclusive<usize> = 512..=65_536;
/// The size of the greatest table of nodes and the blocks that they lack, in bits.
const FOLLOWED_BITS: usize = 1 << 28;

/// Percentiles of times in milliseconds. All are 0 if there were no times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: u64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// A histogram of times in microseconds with three significant digits. Its size is fixed.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Default for Times {
    /// Starts with no time. Times above a day count as a day.
    fn default() -> Self {
        let day = 86_400_000_000;
        Self(Histogram::new_with_bounds(1, day, 3).expect("bounds and digits are what the crate allows"))
    }
}

impl Times {
    /// Adds the time between two instants.
    pub fn add(&mut self, from: SimTime, to: SimTime) {
        self.0.saturating_record(u64::try_from(to.since(from).as_micros()).unwrap_or(u64::MAX));
    }

    /// The percentiles so far.
    pub fn percentiles(&self) -> Percentiles {
        let at = |quantile: f64| milliseconds(self.0.value_at_quantile(quantile));
        match self.0.len() {
            0 => Percentiles::default(),
            count => Percentiles { count, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) },
        }
    }

    fn take(&mut self) -> Percentiles {
        let percentiles = self.percentiles();
        self.0.reset();
        percentiles
    }

    /// Points of the cumulated distribution: (milliseconds, share that took no longer).
    fn curve(&self) -> Vec<(f64, f64)> {
        let points = (0..=99).map(|percent| f64::from(percent) / 100.0).chain([0.995, 0.999, 1.0]);
        match self.0.len() {
            0 => Vec::new(),
            _ => points.map(|share| (milliseconds(self.0.value_at_quantile(share)), share)).collect(),
        }
    }
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// The followed blocks and their propagation times.
pub(crate) struct Propagation {
    followed_at_most: usize,
    followed: BTreeMap<BlockId, Travel>,
    order: std::collections::VecDeque<BlockId>,
    each: Times,
    this_round: Times,
    half: Times,
    all: Times,
    gossip: Times,
    gossip_all: Times,
    /// The block that was last pushed to each node, and when.
    pushed: Vec<Option<(SimTime, BlockId)>>,
}

struct Travel {
    forged: SimTime,
    forger: NodeId,
    /// The block is on the forger's chain, and on no other so far.
    own: Option<Arrival>,
    /// Nodes of the cohort that it was pushed to.
    by_gossip: u32,
    /// One bit per node, set for nodes of the cohort that have not had the block yet.
    lacking: Vec<u64>,
    cohort: u32,
    had: u32,
}

/// The arrival of a block on a node's chain.
#[derive(Clone, Copy)]
struct Arrival {
    at: SimTime,
    by_gossip: bool,
    /// True if the arrival completes half of the cohort, rounded up. `all` is true if it completes the cohort.
    half: bool,
    all: bool,
}

impl Propagation {
    pub(super) fn new(nodes: usize) -> Self {
        let [each, this_round, half, all, gossip, gossip_all] = [(); 6].map(|()| Times::default());
        let followed_at_most = (FOLLOWED_BITS / nodes.max(1)).clamp(*FOLLOWED.start(), *FOLLOWED.end());
        let order = std::collections::VecDeque::new();
        let (followed, pushed) = (BTreeMap::new(), vec![None; nodes]);
        Self { followed_at_most, followed, order, each, this_round, half, all, gossip, gossip_all, pushed }
    }

    /// Records that a peer or the node's own forger pushes a block to a node.
    pub(super) fn pushed(&mut self, now: SimTime, node: NodeId, block: &Block) {
        if let Some(pushed) = self.pushed.get_mut(node.0 as usize) {
            *pushed = Some((now, block.id));
        }
    }

    /// Begins to follow a block that a node has forged. If two nodes forge the same block, the first one counts.
    pub(super) fn forged(&mut self, now: SimTime, node: NodeId, block: &Block, tips: &Tips) {
        if self.followed.contains_key(&block.id) {
            return;
        }
        let mut lacking = vec![0; tips.nodes().div_ceil(64)];
        for (node, _) in tips.of_live() {
            let (word, bit) = place(node);
            lacking[word] |= bit;
        }
        let cohort = tips.live();
        let travel = Travel { forged: now, forger: node, own: None, by_gossip: 0, lacking, cohort, had: 0 };
        self.followed.insert(block.id, travel);
        self.order.push_back(block.id);
        if self.order.len() > self.followed_at_most
            && let Some(oldest) = self.order.pop_front()
        {
            self.followed.remove(&oldest);
        }
    }

    /// Records a block on a node's chain. Returns true if this node completes half of the block's cohort, rounded up.
    pub(super) fn applied(&mut self, now: SimTime, node: NodeId, link: &Link) -> bool {
        let Some(travel) = self.followed.get_mut(&link.id()) else { return false };
        let (word, bit) = place(node);
        if travel.lacking[word] & bit == 0 {
            return false;
        }
        travel.lacking[word] ^= bit;
        travel.had += 1;
        let by_gossip = self.pushed.get(node.0 as usize).is_some_and(|pushed| *pushed == Some((now, link.id())));
        travel.by_gossip += u32::from(by_gossip);
        let half = travel.had == travel.cohort.div_ceil(2);
        let arrival = Arrival { at: now, by_gossip, half, all: travel.had == travel.cohort };
        if node == travel.forger && travel.had == 1 && travel.cohort > 1 {
            travel.own = Some(arrival);
            return half;
        }
        let (forged, own) = (travel.forged, travel.own.take());
        let all_by_gossip = arrival.all && travel.by_gossip == travel.cohort;
        for arrival in own.into_iter().chain([arrival]) {
            self.arrived(forged, arrival);
        }
        if all_by_gossip {
            self.gossip_all.add(forged, now);
        }
        half
    }

    fn arrived(&mut self, forged: SimTime, Arrival { at, by_gossip, half, all }: Arrival) {
        let of = [(true, &mut self.each), (true, &mut self.this_round), (by_gossip, &mut self.gossip)];
        let reached = [(half, &mut self.half), (all, &mut self.all)];
        for (_, times) in of.into_iter().chain(reached).filter(|(counts, _)| *counts) {
            times.add(forged, at);
        }
    }

    pub(super) fn close_round(&mut self) -> Percentiles {
        self.this_round.take()
    }

    pub(super) fn each(&self) -> Percentiles {
        self.each.percentiles()
    }

    pub(super) fn half(&self) -> Percentiles {
        self.half.percentiles()
    }

    pub(super) fn all(&self) -> Percentiles {
        self.all.percentiles()
    }

    pub(super) fn gossip(&self) -> Percentiles {
        self.gossip.percentiles()
    }

    pub(super) fn gossip_all(&self) -> Percentiles {
        self.gossip_all.percentiles()
    }

    pub(super) fn curve(&self) -> Vec<(f64, f64)> {
        self.each.curve()
    }
}

/// The word and the bit of a node.
fn place(node: NodeId) -> (usize, u64) {
    (node.0 as usize / 64, 1 << (node.0 % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_from_the_first_point_to_the_last() {
        let mut times = Times::default();
        assert_eq!(times.curve(), []);
        (1..=2_000).for_each(|millis| times.add(SimTime::default(), SimTime::from_micros(millis * 1_000)));
        let curve = times.curve();
        assert!(curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1), "{curve:?}");
        assert_eq!(curve.last().map(|(_, share)| *share), Some(1.0));
    }
}
