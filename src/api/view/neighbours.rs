//! The other nodes of the network, as the observed one knows them.

use crate::{actors::NodeId, protocol::Height, sim::network::Network};
use dashmap::DashMap;

/// The other nodes.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// As high as they were last seen.
    heights: DashMap<NodeId, Height>,
    /// How long a message takes to each of them and back [ms], where that is known.
    latencies: DashMap<NodeId, u32>,
}

impl Neighbours {
    /// A node was seen at a height.
    pub(super) fn saw(&self, node: NodeId, height: Height) {
        self.heights.insert(node, height);
    }

    /// Learns how far the known nodes are from this one.
    pub(super) fn measure(&self, own: NodeId, network: &Network) {
        for node in self.heights.iter().map(|neighbour| *neighbour.key()) {
            let there_and_back = network.delay(own, node) + network.delay(node, own);
            self.latencies.insert(node, u32::try_from(there_and_back.as_millis()).unwrap_or(u32::MAX));
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heights.is_empty()
    }

    /// Who, how high, and how far there and back in milliseconds, 0 if unknown; ascending.
    pub fn all(&self) -> Vec<(NodeId, Height, u32)> {
        let latency = |node: &NodeId| self.latencies.get(node).map_or(0, |latency| *latency);
        let mut nodes: Vec<_> =
            self.heights.iter().map(|node| (*node.key(), *node.value(), latency(node.key()))).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Their median height, 0 without any. Source: api.md 7.
    pub fn median_height(&self) -> Height {
        let mut heights: Vec<Height> = self.heights.iter().map(|height| *height).collect();
        heights.sort_unstable();
        heights.get(heights.len() / 2).copied().unwrap_or_default()
    }
}
