//! The tips of a run's nodes: the block that most live nodes stand on, the number of nodes that agree, and the distance between their
//! chains. The reports, the assertions, the checker and the end of a run read these figures here and nowhere else.
//!
//! A node is *down* while it is crashed or paused, otherwise *live*; [`NetworkEvent::NodeDown`] and [`NetworkEvent::NodeUp`] report the
//! change. A node that is down keeps its tip, the chain it has stored, and counts in no figure.

use super::NetworkEvent;
use crate::{
    actors::{
        Event, NodeId,
        prefetch::{self, Prefetch},
    },
    ledger::{
        Link,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::{BlockId, Height},
};
use slab::Slab;
use std::{cmp::Reverse, mem, sync::Arc};

/// The tip of every node, and whether the node is live.
#[derive(Clone)]
pub struct Tips {
    blocks: Slab<Standing>,
    /// The index of each node's block in `blocks`. It is set millions of times, and an index needs no reference count.
    at: Vec<u32>,
    down: Vec<bool>,
    live: u32,
    /// The winning tip when the last live node went down.
    last: Arc<Link>,
}

/// A block that nodes stand on.
#[derive(Clone)]
struct Standing {
    link: Arc<Link>,
    /// Nodes on it, live or down.
    nodes: u32,
    live: u32,
}

/// The distance of the live nodes from one chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// Tips of live nodes that no other live node's chain goes through; 1 where all are on one chain, 0 while no node is
    /// live.
    pub branches: u32,
    /// For branches that do not go through the winning tip, the largest number of blocks above the common height with that tip. 0 without
    /// such a branch.
    pub depth: u32,
}

impl Prefetch<NodeId> for Tips {
    /// The place of the block of a node.
    fn fetch(&self, node: NodeId) {
        prefetch::line(&self.at, node.0 as usize);
    }
}

impl Tips {
    /// Starts with `nodes` live nodes, all on one block.
    pub fn new(nodes: usize, tip: &Arc<Link>) -> Self {
        let count = u32::try_from(nodes).expect("a network has no more nodes");
        let mut tips =
            Self { blocks: Slab::new(), at: Vec::new(), down: vec![false; nodes], live: count, last: tip.clone() };
        if count > 0 {
            let place = tips.blocks.insert(Standing { link: tip.clone(), nodes: count, live: count });
            tips.at = vec![place as u32; nodes];
        }
        tips
    }

    /// Follows an event of a node. Returns whether its tip has moved.
    pub fn follow(&mut self, node: NodeId, event: &Event) -> bool {
        match event {
            Event::BlockApplied(link) => self.stand(node, link),
            Event::RolledBack { to, .. } => self.stand(node, to),
            Event::BlockReverted(link) => match link.parent() {
                Some(parent) => self.stand(node, &parent),
                None => false,
            },
            _ => false,
        }
    }

    /// Follows what happens between nodes. Returns whether a node has gone down or come back.
    pub fn follow_network(&mut self, event: &NetworkEvent<'_>) -> bool {
        match event {
            NetworkEvent::NodeDown { node, .. } => self.set_down(*node, true),
            NetworkEvent::NodeUp { node } => self.set_down(*node, false),
            NetworkEvent::Moved { node, to, .. } => {
                self.stand(*node, to);
                false
            }
            _ => false,
        }
    }

    fn stand(&mut self, node: NodeId, link: &Arc<Link>) -> bool {
        let index = node.0 as usize;
        let Some(left) = self.at.get(index).copied() else { return false };
        if self.blocks[left as usize].link.is(link) {
            return false;
        }
        let live = u32::from(!self.down[index]);
        self.at[index] = self.place(link);
        let standing = &mut self.blocks[self.at[index] as usize];
        (standing.nodes, standing.live) = (standing.nodes + 1, standing.live + live);
        let standing = &mut self.blocks[left as usize];
        (standing.nodes, standing.live) = (standing.nodes - 1, standing.live - live);
        if standing.nodes == 0 {
            self.blocks.remove(left as usize);
        }
        true
    }

    /// The index of a block, which is added if no node stands on it yet.
    fn place(&mut self, link: &Arc<Link>) -> u32 {
        let known = self.blocks.iter().find(|(_, standing)| standing.link.is(link)).map(|(place, _)| place);
        let place = known.unwrap_or_else(|| self.blocks.insert(Standing { link: link.clone(), nodes: 0, live: 0 }));
        u32::try_from(place).expect("there are no more blocks than nodes")
    }

    fn set_down(&mut self, node: NodeId, down: bool) -> bool {
        let index = node.0 as usize;
        if self.down.get(index).is_none_or(|is| *is == down) {
            return false;
        }
        self.down[index] = down;
        let standing = &mut self.blocks[self.at[index] as usize];
        if down {
            if self.live == 1 {
                self.last = standing.link.clone();
            }
            self.live -= 1;
            standing.live -= 1;
        } else {
            self.live += 1;
            standing.live += 1;
        }
        true
    }

    /// Each block that a live node stands on, with their number.
    fn counts(&self) -> impl Iterator<Item = (&Arc<Link>, u32)> {
        let live = self.blocks.iter().filter(|(_, standing)| standing.live > 0);
        live.map(|(_, standing)| (&standing.link, standing.live))
    }

    /// Number of nodes, live or down.
    pub fn nodes(&self) -> usize {
        self.at.len()
    }

    /// Number of live nodes.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Number of nodes that are down.
    pub fn down(&self) -> u32 {
        self.at.len() as u32 - self.live
    }

    /// Returns true if a node is live.
    pub fn is_live(&self, node: NodeId) -> bool {
        self.down.get(node.0 as usize).is_some_and(|down| !down)
    }

    /// The block a node stands on; of one that is down, the block it had stored.
    pub fn of(&self, node: NodeId) -> &Arc<Link> {
        &self.blocks[self.at[node.0 as usize] as usize].link
    }

    /// The block each node stands on, in their order; of one that is down, the block it had stored.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Link>> + DoubleEndedIterator {
        self.at.iter().map(|place| &self.blocks[*place as usize].link)
    }

    /// Live nodes with the block each stands on, in their order.
    pub fn of_live(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Arc<Link>)> {
        let live = self.all().enumerate().zip(&self.down).filter(|(_, down)| !**down);
        live.map(|((node, tip), _)| (NodeId(node as u32), tip))
    }

    /// The distinct blocks that live nodes stand on, in no particular order.
    pub fn distinct(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.counts().map(|(tip, _)| tip)
    }

    /// The block most live nodes stand on; among equals the higher one, then the one of the lower id. While no node is
    /// live, the last one there was.
    pub fn winning(&self) -> &Arc<Link> {
        self.most().map_or(&self.last, |(tip, _)| tip)
    }

    /// The end of the chain that most live nodes stand on: [`Tips::winning`], or the highest block on top of it that a live node
    /// stands on. That block is on its way to the others, and no branch. Among equals it is the one of more nodes, then the
    /// one of the lower id.
    pub fn leading(&self) -> &Arc<Link> {
        let winning = self.winning();
        let going_on = self.counts().filter(|(tip, _)| tip.descends_from(winning));
        let leading = going_on.max_by_key(|(tip, count)| (tip.height(), *count, Reverse(tip.id())));
        leading.map_or(winning, |(tip, _)| tip)
    }

    /// Number of live nodes exactly on [`Tips::winning`].
    pub fn agreeing(&self) -> u32 {
        self.most().map_or(0, |(_, count)| count)
    }

    /// Share of the live nodes that stand exactly on [`Tips::winning`], above 0 and at most 1; `None` while no node is
    /// live.
    pub fn agreement(&self) -> Option<f64> {
        (self.live > 0).then(|| f64::from(self.agreeing()) / f64::from(self.live))
    }

    /// Returns true if more than half of the live nodes stand on blocks of which this is true; never while no node is live.
    pub fn most_are(&self, mut such: impl FnMut(&Arc<Link>) -> bool) -> bool {
        let count: u32 = self.counts().filter(|(tip, _)| such(tip)).map(|(_, count)| count).sum();
        u64::from(count) * 2 > u64::from(self.live)
    }

    /// Returns true if at least one node is live and all live nodes stand on one block. A node one block behind is not there yet.
    pub fn is_converged(&self) -> bool {
        self.counts().count() == 1
    }

    /// The least and the greatest height a live node stands at; `None` while no node is live.
    pub fn heights(&self) -> Option<(Height, Height)> {
        let heights = || self.distinct().map(|tip| tip.height());
        heights().min().zip(heights().max())
    }

    /// The branches of the live nodes. A node that is only behind is on the chain of the nodes ahead of it.
    pub fn branches(&self) -> Branches {
        let mut tips: Vec<&Arc<Link>> = self.distinct().collect();
        if tips.len() <= 1 {
            return Branches { branches: tips.len() as u32, depth: 0 };
        }
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

    /// The height up to which the chains of all live nodes are one; `None` while no node is live.
    pub fn common_height(&self) -> Option<Height> {
        let winning = self.winning();
        self.distinct().map(|tip| common_height(tip, winning)).min()
    }

    fn most(&self) -> Option<(&Arc<Link>, u32)> {
        self.counts().max_by_key(|(tip, count)| rank(tip, *count))
    }
}

fn rank(tip: &Link, count: u32) -> (u32, Height, Reverse<BlockId>) {
    (count, tip.height(), Reverse(tip.id()))
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

/// The blocks that a node reverts on the way from one tip to another, the newest first, and the blocks that it applies, the oldest first.
pub fn path(from: &Arc<Link>, to: &Arc<Link>) -> (Vec<Arc<Link>>, Vec<Arc<Link>>) {
    let common = common_height(from, to);
    let above = |tip: &Arc<Link>| {
        let (mut at, mut links) = (tip.clone(), Vec::new());
        while at.height() > common
            && let Some(parent) = at.parent()
        {
            links.push(mem::replace(&mut at, parent));
        }
        links
    };
    let mut taken = above(to);
    taken.reverse();
    (above(from), taken)
}

/// Saves the block of each node and the counts, in an order that does not depend on the history of the run.
impl Save for Tips {
    fn save(&self, out: &mut Saver) {
        let Self { blocks: _, at: _, down, live, last } = self;
        let mut counts: Vec<(Arc<Link>, u32)> = self.counts().map(|(tip, count)| (tip.clone(), count)).collect();
        counts.sort_by_key(|(tip, _)| (tip.height(), tip.id()));
        self.all().cloned().collect::<Vec<_>>().save(out);
        down.save(out);
        counts.save(out);
        live.save(out);
        last.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        type Counts = Vec<(Arc<Link>, u32)>;
        let (all, down, _) = <(Vec<Arc<Link>>, Vec<bool>, Counts)>::load(from)?;
        let (live, last) = <(u32, Arc<Link>)>::load(from)?;
        let mut tips = Self { blocks: Slab::new(), at: Vec::new(), down, live, last };
        for (link, down) in all.iter().zip(&tips.down.clone()) {
            let place = tips.place(link);
            let standing = &mut tips.blocks[place as usize];
            (standing.nodes, standing.live) = (standing.nodes + 1, standing.live + u32::from(!down));
            tips.at.push(place);
        }
        Ok(tips)
    }
}
