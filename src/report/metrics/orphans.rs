//! Blocks that were forged and are not on the winning chain.

use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Block, BlockId, Height, Slot},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

/// The largest number of orphans that are listed. All of them are counted.
const ORPHANS_LISTED: usize = 10_000;

/// A block that was forged and is not on the winning chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orphan {
    pub height: u32,
    pub id: String,
    pub slot: u32,
    pub at_us: u64,
    pub node: u32,
    pub transactions: u32,
}

/// The forged blocks. All are retained to the end of the run: a rollback may be as deep as 5,000 blocks (consensus.md 3.5), and the
/// winning tip may move to a chain that forked off at any depth.
#[derive(Default)]
pub(super) struct Orphans {
    /// By height, then id.
    pub(super) all: BTreeMap<(u32, BlockId), ForgedBlock>,
    /// The parents of forged blocks.
    parents: BTreeSet<BlockId>,
    pub(super) forks: u32,
    pub(super) round_forks: u32,
}

pub(super) struct ForgedBlock {
    slot: Slot,
    at: SimTime,
    node: NodeId,
    transactions: u32,
}

impl Orphans {
    pub(super) fn forged(&mut self, now: SimTime, node: NodeId, block: &Block, slot: Slot) {
        let forged = ForgedBlock { slot, at: now, node, transactions: block.transactions.len() as u32 };
        match self.all.entry((block.header.height.0, block.id)) {
            Entry::Occupied(_) => return,
            Entry::Vacant(place) => place.insert(forged),
        };
        // An invalid block may name no parent, or a height that is not the one after its parent's.
        let is_fork = block.header.previous.is_some_and(|parent| !self.parents.insert(parent));
        self.forks += u32::from(is_fork);
        self.round_forks += u32::from(is_fork);
    }

    /// Returns the number of blocks that are not on the chain ending in `winning`, and the first [`ORPHANS_LISTED`] of them, ascending.
    pub(super) fn list(&self, winning: &Arc<Link>) -> (u32, Vec<Orphan>) {
        let mut listed = Vec::new();
        let mut count = 0;
        for ((height, id), forged) in &self.all {
            if winning.ancestor(Height(*height)).is_some_and(|link| link.id() == *id) {
                continue;
            }
            count += 1;
            if listed.len() < ORPHANS_LISTED {
                listed.push(forged.orphan(*height, *id));
            }
        }
        (count, listed)
    }
}

impl ForgedBlock {
    fn orphan(&self, height: u32, id: BlockId) -> Orphan {
        Orphan {
            height,
            id: id.to_string(),
            slot: self.slot.0,
            at_us: self.at.micros(),
            node: self.node.0,
            transactions: self.transactions,
        }
    }
}
