//! The time that blocks take from the forger to the chains of its cohort: the nodes that were live at the instant it was forged.
//! Nodes that were down then catch up later, which is no propagation.

use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Block, BlockId},
    sim::Tips,
};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::{collections::BTreeMap, ops::RangeInclusive};

/// The number of blocks followed at a time. A block that a node still lacks after so many others is given up. With many nodes
/// it is smaller, so that the table of missing blocks fits 32 MiB.
const FOLLOWED: RangeInclusive<usize> = 512..=65_536;
/// The size of the greatest table of nodes and the blocks that they lack, in bits.
const FOLLOWED_BITS: usize = 1 << 28;

/// Some times in milliseconds, by how many took no longer. All 0 where there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: u64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// Times in microseconds with three significant digits: a fixed size, however many there are.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    /// Starts with no time. Times above a day count as a day.
    fn default() -> Self {
        let day = 86_400_000_000;
        Self(Histogram::new_with_bounds(1, day, 3).expect("bounds and digits are what the crate allows"))
    }
}

impl Times {
    /// One more.
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

/// Blocks on their way.
pub struct Propagation {
    followed_at_most: usize,
    followed: BTreeMap<BlockId, Travel>,
    order: std::collections::VecDeque<BlockId>,
    each: Times,
    this_round: Times,
    half: Times,
    all: Times,
}

struct Travel {
    forged: SimTime,
    /// One bit a node: those of the cohort that have not had it yet.
    lacking: Vec<u64>,
    cohort: u32,
    had: u32,
}

impl Propagation {
    pub(super) fn new(nodes: usize) -> Self {
        let [each, this_round, half, all] = [(); 4].map(|()| Times::default());
        let followed_at_most = (FOLLOWED_BITS / nodes.max(1)).clamp(*FOLLOWED.start(), *FOLLOWED.end());
        let order = std::collections::VecDeque::new();
        Self { followed_at_most, followed: BTreeMap::new(), order, each, this_round, half, all }
    }

    pub(super) fn forged(&mut self, now: SimTime, block: &Block, tips: &Tips) {
        let mut lacking = vec![0; tips.nodes().div_ceil(64)];
        for (node, _) in tips.of_live() {
            let (word, bit) = place(node);
            lacking[word] |= bit;
        }
        let travel = Travel { forged: now, lacking, cohort: tips.live(), had: 0 };
        if self.followed.insert(block.id, travel).is_none() {
            self.order.push_back(block.id);
        }
        if self.order.len() > self.followed_at_most
            && let Some(oldest) = self.order.pop_front()
        {
            self.followed.remove(&oldest);
        }
    }

    /// A block is on a node's chain. Returns whether with this node half of its cohort, rounded up, have had it.
    pub(super) fn applied(&mut self, now: SimTime, node: NodeId, link: &Link) -> bool {
        let Some(travel) = self.followed.get_mut(&link.id()) else { return false };
        let (word, bit) = place(node);
        if travel.lacking[word] & bit == 0 {
            return false;
        }
        travel.lacking[word] ^= bit;
        travel.had += 1;
        self.each.add(travel.forged, now);
        self.this_round.add(travel.forged, now);
        let half = travel.had == travel.cohort.div_ceil(2);
        if half {
            self.half.add(travel.forged, now);
        }
        if travel.had == travel.cohort {
            self.all.add(travel.forged, now);
        }
        half
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
