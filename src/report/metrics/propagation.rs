//! How long blocks take from the forger to everybody's chain.

use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Block, BlockId},
};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// Blocks followed at a time; a block that a node misses for that many others is given up.
const FOLLOWED: usize = 512;

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
    /// Of nothing yet. Times above a day count as a day.
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
        let points = (0..=100).map(|percent| f64::from(percent) / 100.0).chain([0.995, 0.999]);
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
    nodes: usize,
    followed: BTreeMap<BlockId, Travel>,
    order: std::collections::VecDeque<BlockId>,
    each: Times,
    this_round: Times,
    half: Times,
    all: Times,
}

struct Travel {
    forged: SimTime,
    /// One bit a node.
    arrived: Vec<u64>,
    count: usize,
}

impl Propagation {
    pub(super) fn new(nodes: usize) -> Self {
        let [each, this_round, half, all] = [(); 4].map(|()| Times::default());
        Self { nodes, followed: BTreeMap::new(), order: std::collections::VecDeque::new(), each, this_round, half, all }
    }

    pub(super) fn forged(&mut self, now: SimTime, block: &Block) {
        let travel = Travel { forged: now, arrived: vec![0; self.nodes.div_ceil(64)], count: 0 };
        if self.followed.insert(block.id, travel).is_none() {
            self.order.push_back(block.id);
        }
        if self.order.len() > FOLLOWED
            && let Some(oldest) = self.order.pop_front()
        {
            self.followed.remove(&oldest);
        }
    }

    /// A block is on a node's chain; says whether with this node half of them have it.
    pub(super) fn applied(&mut self, now: SimTime, node: NodeId, link: &Link) -> bool {
        let Some(travel) = self.followed.get_mut(&link.id()) else { return false };
        let (word, bit) = (node.0 as usize / 64, 1_u64 << (node.0 % 64));
        if travel.arrived[word] & bit != 0 {
            return false;
        }
        travel.arrived[word] |= bit;
        travel.count += 1;
        self.each.add(travel.forged, now);
        self.this_round.add(travel.forged, now);
        let half = travel.count == self.nodes.div_ceil(2);
        if half {
            self.half.add(travel.forged, now);
        }
        if travel.count == self.nodes {
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
