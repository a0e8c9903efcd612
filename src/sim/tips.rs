//! Where the nodes of a run stand, and which block most of them stand on.

use crate::{
    actors::{Event, NodeId},
    ledger::Link,
    protocol::{BlockId, Height},
};
use std::{cmp::Reverse, sync::Arc};

/// The tip of every node.
#[derive(Clone)]
pub struct Tips {
    tips: Vec<Arc<Link>>,
    /// Each tip that a node stands on, with their number.
    counts: Vec<(Arc<Link>, u32)>,
}

/// How far the nodes are from one chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// Tips that no other node's chain goes through; 1 where all are on one chain.
    pub branches: u32,
    /// Blocks that the longest of them has beyond what it shares with the winning one; 0 without a fork.
    pub depth: u32,
}

impl Tips {
    /// So many nodes, all on one block.
    pub fn new(nodes: usize, tip: &Arc<Link>) -> Self {
        let counts = vec![(tip.clone(), u32::try_from(nodes).unwrap_or(u32::MAX))];
        Self { tips: vec![tip.clone(); nodes], counts }
    }

    /// Follows an event of a node; says whether its tip has moved.
    pub fn follow(&mut self, node: NodeId, event: &Event) -> bool {
        match event {
            Event::BlockApplied(link) => self.stand(node, link),
            Event::RolledBack { to, .. } => self.stand(node, to),
            Event::BlockReverted(link) => match link.parent() {
                Some(parent) => self.stand(node, parent),
                None => false,
            },
            _ => false,
        }
    }

    fn stand(&mut self, node: NodeId, link: &Arc<Link>) -> bool {
        let Some(tip) = self.tips.get_mut(node.0 as usize) else { return false };
        let left = std::mem::replace(tip, link.clone());
        if left.is(link) {
            return false;
        }
        if let Some(at) = self.counts.iter().position(|(tip, _)| tip.is(&left)) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.swap_remove(at);
            }
        }
        match self.counts.iter_mut().find(|(tip, _)| tip.is(link)) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((link.clone(), 1)),
        }
        true
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.tips.len()
    }

    /// The block a node stands on.
    pub fn of(&self, node: usize) -> &Arc<Link> {
        &self.tips[node]
    }

    /// The block most nodes stand on; among equals the higher one, then the one of the lower id.
    pub fn winning(&self) -> &Arc<Link> {
        &self.most().0
    }

    /// Number of nodes on [`Tips::winning`].
    pub fn agreeing(&self) -> u32 {
        self.most().1
    }

    /// Whether all nodes stand on one block.
    pub fn agree(&self) -> bool {
        self.counts.len() == 1
    }

    /// The least and the greatest height a node stands at.
    pub fn heights(&self) -> (Height, Height) {
        let heights = || self.counts.iter().map(|(tip, _)| tip.height());
        (heights().min().unwrap_or_default(), heights().max().unwrap_or_default())
    }

    /// Chains that have parted; a node that is only behind is on the chain of those before it.
    pub fn branches(&self) -> Branches {
        if self.agree() {
            return Branches { branches: 1, depth: 0 };
        }
        let mut tips: Vec<&Arc<Link>> = self.counts.iter().map(|(tip, _)| tip).collect();
        tips.sort_by_key(|tip| (Reverse(tip.height()), tip.id()));
        let mut leaves: Vec<&Arc<Link>> = Vec::new();
        for tip in tips {
            if !leaves.iter().any(|leaf| leaf.descends_from(tip)) {
                leaves.push(tip);
            }
        }
        let winning = self.winning();
        let parted = |leaf: &&Arc<Link>| leaf.height().0 - common_height(leaf, winning).0;
        let beyond = leaves.iter().copied().filter(|leaf| !leaf.descends_from(winning));
        let depth = beyond.map(|leaf| parted(&leaf)).max().unwrap_or(0);
        Branches { branches: leaves.len() as u32, depth }
    }

    fn most(&self) -> &(Arc<Link>, u32) {
        self.counts.iter().max_by_key(|(tip, count)| rank(tip, *count)).expect("a run has at least one node")
    }
}

/// [`Tips::winning`] of nodes that stand on these blocks; `None` of none.
pub fn winning(tips: &[Arc<Link>]) -> Option<&Arc<Link>> {
    let mut counts: Vec<(&Arc<Link>, u32)> = Vec::new();
    for tip in tips {
        match counts.iter_mut().find(|(other, _)| other.is(tip)) {
            Some((_, count)) => *count += 1,
            None => counts.push((tip, 1)),
        }
    }
    counts.into_iter().max_by_key(|(tip, count)| rank(tip, *count)).map(|(tip, _)| tip)
}

fn rank(tip: &Link, count: u32) -> (u32, Height, Reverse<BlockId>) {
    let height = if planted!(WinningTipIgnoresHeight) { Height::default() } else { tip.height() };
    (count, height, Reverse(tip.id()))
}

/// The height of the last block that two chains share.
pub fn common_height(one: &Arc<Link>, other: &Arc<Link>) -> Height {
    let shares = |height: u32| match (one.ancestor(Height(height)), other.ancestor(Height(height))) {
        (Some(one), Some(other)) => one.id() == other.id(),
        _ => false,
    };
    // Chains that share a height share all below it.
    let (mut low, mut high) = (0, one.height().0.min(other.height().0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match shares(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Height(low)
}
