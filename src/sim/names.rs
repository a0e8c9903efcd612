//! The nodes that a fault means: by number, by delegate, by share.

use super::fault::{NodeRef, Nodes, Share, ShareOf};
use crate::{
    actors::NodeId,
    ledger::{Balance, BlockTree, Link},
    protocol::{Address, KeyPair, PublicKey},
};
use std::{collections::BTreeMap, sync::Arc};

/// The names of a run's nodes.
#[derive(Clone)]
pub struct Names {
    nodes: u32,
    delegates: BTreeMap<String, NodeId>,
    keys: Vec<Option<PublicKey>>,
    tree: Arc<BlockTree>,
}

impl Names {
    /// The names of nodes that forge with these keys, on a chain that gives their delegates names.
    pub(super) fn new<'a>(
        tree: &Arc<BlockTree>,
        tip: &Arc<Link>,
        forgers: impl Iterator<Item = Option<&'a KeyPair>>,
    ) -> Self {
        let applied = tree.applied(tip);
        let keys: Vec<Option<PublicKey>> = forgers.map(|keys| keys.map(|keys| *keys.public())).collect();
        let name = |key: &PublicKey| applied.state.delegate_of(key).map(|delegate| delegate.username.to_string());
        let delegates = (0..).map(NodeId).zip(&keys).filter_map(|(node, key)| Some((name(key.as_ref()?)?, node)));
        Self { nodes: keys.len() as u32, delegates: delegates.collect(), keys, tree: tree.clone() }
    }

    /// The usernames of the delegates that have a node, in the order of the nodes.
    pub fn delegates(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<(NodeId, &str)> = self.delegates.iter().map(|(name, node)| (*node, &**name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name)
    }

    /// The node of a reference.
    pub fn node(&self, node: &NodeRef) -> Option<NodeId> {
        match node {
            NodeRef::Number(number) => (*number < self.nodes).then_some(NodeId(*number)),
            NodeRef::Delegate(name) => self.delegates.get(name).copied(),
        }
    }

    /// The address of a name: an address itself, or that of a delegate.
    pub fn address(&self, name: &str) -> Option<Address> {
        let of_delegate = self.delegates.get(name).and_then(|node| self.keys[node.0 as usize]);
        let network = self.tree.config().network.pub_key_hash;
        of_delegate.map(|key| key.address(network)).or_else(|| name.parse().ok())
    }

    /// The nodes of a list, a span or a share, ascending. Vote weights are those after `best`. Unknown names resolve to
    /// no node.
    pub fn resolve(&self, nodes: &Nodes, best: &Arc<Link>) -> Vec<NodeId> {
        let mut resolved: Vec<NodeId> = match nodes {
            Nodes::List(list) => list.iter().filter_map(|node| self.node(node)).collect(),
            Nodes::Span(span) => match (self.node(&span.from), self.node(&span.to)) {
                (Some(from), Some(to)) => (from.0..=to.0).map(NodeId).collect(),
                _ => Vec::new(),
            },
            Nodes::Share(share) => self.share(*share, best),
        };
        resolved.sort_unstable();
        resolved.dedup();
        resolved
    }

    /// The first nodes that make up a share.
    pub fn share(&self, Share { share, of }: Share, best: &Arc<Link>) -> Vec<NodeId> {
        match of {
            ShareOf::Nodes => (0..(f64::from(self.nodes) * share).round() as u32).map(NodeId).collect(),
            ShareOf::VoteWeight => {
                let applied = self.tree.applied(best);
                let weight = |key: &Option<PublicKey>| {
                    let delegate = key.as_ref().and_then(|key| applied.state.delegate_of(key));
                    delegate.map_or(Balance::ZERO, |delegate| delegate.vote_balance)
                };
                let weights: Vec<f64> = self.keys.iter().map(|key| weight(key).0 as f64).collect();
                let wanted = weights.iter().sum::<f64>() * share;
                let mut sum = 0.0;
                let taken = weights.iter().take_while(|weight| {
                    let before = sum;
                    sum += **weight;
                    // Rounds to the nearest node: takes one if at least half of its weight is within the share.
                    before + **weight / 2.0 <= wanted
                });
                (0..taken.count() as u32).map(NodeId).collect()
            }
        }
    }
}
