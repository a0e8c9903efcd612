//! The other nodes of the network, as the observed one knows them.

use crate::{actors::NodeId, ledger::Link, protocol::Height, sim::network::MessageNetwork};
use dashmap::DashMap;
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// The version of the reference node that all nodes stand in for.
pub(crate) const VERSION: &str = "2.6.57";

/// The other nodes.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// The last known tip of each node.
    tips: DashMap<NodeId, Arc<Link>>,
    /// The round-trip time to each node [ms], if it is known.
    latencies: DashMap<NodeId, u32>,
    /// The number of tips that were reported so far.
    seen: AtomicU32,
    /// The value of `seen` at the last computation of the median height, and that height. It is requested far more
    /// often than it changes.
    median: AtomicU64,
}

impl Clone for Neighbours {
    /// The same nodes as they are known now.
    fn clone(&self) -> Self {
        let counts = (self.seen.load(Ordering::Acquire), self.median.load(Ordering::Relaxed));
        let (tips, latencies) = (self.tips.clone(), self.latencies.clone());
        Self { tips, latencies, seen: AtomicU32::new(counts.0), median: AtomicU64::new(counts.1) }
    }
}

impl Neighbours {
    /// Notes the tip of a node.
    pub(super) fn saw(&self, node: NodeId, tip: &Arc<Link>) {
        self.tips.insert(node, tip.clone());
        // After the insertion: a median that was found in between is found again.
        self.seen.fetch_add(1, Ordering::Release);
    }

    /// The last known tip of a node and the round-trip time to it in milliseconds, 0 if unknown.
    pub fn known(&self, node: NodeId) -> (Option<Arc<Link>>, u32) {
        let latency = self.latencies.get(&node).map_or(0, |latency| *latency);
        (self.tips.get(&node).map(|tip| tip.clone()), latency)
    }

    /// Stores the round-trip times from this node to the known ones.
    pub(super) fn measure(&self, own: NodeId, network: &MessageNetwork) {
        for node in self.tips.iter().map(|neighbour| *neighbour.key()) {
            self.latencies.insert(node, latency_ms(network, own, node));
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.seen.load(Ordering::Relaxed) == 0
    }

    /// The nodes, ascending, with their heights and the round-trip times in milliseconds, 0 if unknown.
    pub fn all(&self) -> Vec<(NodeId, Height, u32)> {
        let latency = |node: &NodeId| self.latencies.get(node).map_or(0, |latency| *latency);
        let mut nodes: Vec<_> =
            self.tips.iter().map(|node| (*node.key(), node.height(), latency(node.key()))).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Their median height, 0 without any. Source: api.md 7.
    pub fn median_height(&self) -> Height {
        let seen = u64::from(self.seen.load(Ordering::Acquire));
        let found = self.median.load(Ordering::Relaxed);
        if found >> 32 == seen {
            return Height(found as u32);
        }
        let mut heights: Vec<Height> = self.tips.iter().map(|tip| tip.height()).collect();
        heights.sort_unstable();
        let median = heights.get(heights.len() / 2).copied().unwrap_or_default();
        self.median.store(seen << 32 | u64::from(median.0), Ordering::Relaxed);
        median
    }
}

/// The round-trip time from a node to another in milliseconds.
pub(crate) fn latency_ms(network: &MessageNetwork, own: NodeId, other: NodeId) -> u32 {
    let there_and_back = network.delay(own, other) + network.delay(other, own);
    u32::try_from(there_and_back.as_millis()).unwrap_or(u32::MAX)
}
