//! The network between nodes: how long a message takes from one to another.

use super::SeedTree;
use crate::actors::NodeId;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Latency of links: each directed link has one latency, drawn evenly from this range once per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// In milliseconds.
    pub min_ms: u32,
    /// In milliseconds; at least `min_ms`.
    pub max_ms: u32,
}

impl Default for Latency {
    /// 20 to 100 ms, a network of nodes on one or two continents.
    fn default() -> Self {
        Self { min_ms: 20, max_ms: 100 }
    }
}

/// The full mesh of a run.
#[derive(Debug)]
pub struct Network {
    nodes: usize,
    /// Latency of the link from a to b [µs] at `a * nodes + b`.
    latency: Vec<u32>,
}

impl Network {
    /// A full mesh of so many nodes.
    pub fn new(nodes: usize, latency: Latency, seeds: SeedTree) -> Self {
        let mut random = seeds.stream("network/latency");
        let range = latency.min_ms * 1_000..=latency.max_ms.max(latency.min_ms) * 1_000;
        let latency = (0..nodes * nodes).map(|_| random.random_range(range.clone())).collect();
        Self { nodes, latency }
    }

    /// The time a message takes; nothing within a node.
    pub fn delay(&self, from: NodeId, to: NodeId) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        Duration::from_micros(self.latency[from.0 as usize * self.nodes + to.0 as usize].into())
    }
}
