//! The settling of blocks of a testnet in a folder: settled blocks leave memory, and the index answers for them.
//!
//! ```text
//!   genesis ─────────── top │ seam ──────────── … margin … ────────── the lowest tip
//!   in the log, by the index│ in memory        └ moments that are kept stand no lower
//! ```
//!
//! No node rolls back deeper than `rollback` blocks below its tip. So a block that lies deeper below the tips of all nodes, also
//! of those that are down, and on the chain of each, stays on all chains. Only going back to a snapshot can change that.

use super::{FolderError, index::Index};
use crate::{
    files::segments::{LogError, Spot},
    ledger::{
        BlockTree, Link,
        base::Base,
        settled_chain::{SettledChain, SettledError},
    },
    protocol::{Block, BlockId, Height},
    sim::{Plan, tips::Tips},
};
use std::{collections::BTreeMap, iter, sync::Arc};

/// The number of blocks that stay in memory beside those that a node can roll back. A run can go back at least that far.
const MARGIN: u32 = 1_000;
/// The number of blocks that are written to the index in one step.
const AT_ONCE: usize = 1_000;

/// The depth at which blocks settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The largest number of blocks that a node rolls back.
    pub rollback: u32,
    /// The number of further blocks that stay in memory.
    pub margin: u32,
}

impl Depth {
    /// Returns the depth by a plan's rules.
    pub fn of(plan: &Plan) -> Self {
        Self { rollback: plan.tree.rules().node.rollback_max, margin: MARGIN }
    }
}

/// The log, as the code that settles its blocks needs it.
pub(super) trait BlockLog {
    /// Appends a block that has no record yet and returns its record. `None` if none can be made now.
    fn record(&mut self, block: &Block) -> Result<Option<Spot>, LogError>;

    /// Waits until the log is on the disk, because the index must not know more than the log.
    fn sync(&mut self) -> Result<(), LogError>;
}

/// The records of blocks by height and id.
pub(super) type Places = BTreeMap<(Height, BlockId), Spot>;

/// Settles blocks.
pub struct Settling {
    tree: Arc<BlockTree>,
    index: Arc<Index>,
    depth: Depth,
    /// The records of blocks that have not settled.
    places: Places,
    /// The height of the winning tip at which settling is due again.
    next: Height,
}

impl Settling {
    pub(super) fn new(tree: Arc<BlockTree>, index: Arc<Index>, depth: Depth) -> Self {
        Self { tree, index, depth, places: BTreeMap::new(), next: Height(0) }
    }

    /// The blocks that have settled.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The height up to which blocks have settled.
    pub(super) fn cut(&self) -> Height {
        self.tree.cut()
    }

    /// Records that a block is in the log.
    pub(super) fn is_logged(&mut self, height: Height, id: BlockId, spot: Spot) {
        self.places.entry((height, id)).or_insert(spot);
    }

    /// The records of blocks that have not settled.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Begins the run with the blocks that have settled up to a base. Returns false, and changes nothing, if the index lacks the base's
    /// block.
    pub(super) fn begin_at(&mut self, base: Base) -> Result<bool, LogError> {
        let link = self.index.link(base.height).map_err(log_error)?;
        let is_there = link.is_some_and(|link| base.is_of(&link));
        if is_there {
            self.tree.begin_at(base, &self.settled());
        }
        Ok(is_there)
    }

    /// Returns true if a block that has not settled is in the log.
    pub(super) fn knows(&self, height: Height, id: BlockId) -> bool {
        self.places.contains_key(&(height, id))
    }

    /// Returns true if settling is due.
    pub(super) fn is_due(&self, tips: &Tips) -> bool {
        tips.winning().height() >= self.next
    }

    /// Settles the blocks that are deep enough. Returns `None` if there were none. Otherwise returns the least height that a node may
    /// have in a moment to which the run can still go back.
    pub(super) fn settle(&mut self, tips: &Tips, log: &mut impl BlockLog) -> Result<Option<Height>, LogError> {
        self.next = Height(tips.winning().height().0.saturating_add((self.tree.span() / 4).max(1)));
        let Some(top) = self.tree.settles_at(tips.all(), self.depth.rollback.saturating_add(self.depth.margin)) else {
            return Ok(None);
        };
        if !self.index_holds(&top)? && !self.write(&top, log)? {
            return Ok(None);
        }
        self.tree.settle(&top, &self.settled());
        self.places = self.places.split_off(&(top.height().next(), BlockId::Numeric(0)));
        Ok(Some(Height(top.height().0.saturating_add(self.depth.rollback))))
    }

    fn settled(&self) -> Arc<dyn SettledChain> {
        self.index.clone()
    }

    /// Returns true if the index has this very block, and so all below it.
    fn index_holds(&self, link: &Arc<Link>) -> Result<bool, LogError> {
        let kept = self.index.link(link.height()).map_err(log_error)?;
        Ok(kept.is_some_and(|kept| kept.is(link)))
    }

    /// Writes the blocks up to `top` that the index lacks. Returns false where the log lacks one of them.
    fn write(&mut self, top: &Arc<Link>, log: &mut impl BlockLog) -> Result<bool, LogError> {
        let known = self.index.top();
        let agrees = known.0 == 0
            || known < top.height() && {
                let at = top.ancestor(known).expect("it is below the top");
                self.index_holds(&at)?
            };
        if !agrees {
            // The index is of a chain that the run has left, or that it has not reached yet.
            self.index = self.index.cut(self.tree.cut()).map_err(log_error)?;
        }
        let above = self.index.top().max(Height::GENESIS);
        let mut links = Vec::new();
        let mut at = top.clone();
        while at.height() > above {
            let parent = at.parent().expect("it is above genesis");
            links.push(std::mem::replace(&mut at, parent));
        }
        let mut rows = Vec::with_capacity(links.len());
        while let Some(link) = links.pop() {
            let spot = match self.places.get(&(link.height(), link.id())) {
                Some(spot) => *spot,
                None => match log.record(link.block())? {
                    Some(spot) => spot,
                    None => return Ok(false),
                },
            };
            rows.push((link, spot));
        }
        log.sync()?;
        rows.chunks(AT_ONCE).try_for_each(|rows| self.index.add(rows)).map_err(log_error)?;
        Ok(true)
    }

    /// Handles a run that went back to a snapshot.
    pub(super) fn went_back(&mut self, tips: &Tips) -> Result<(), LogError> {
        self.next = Height(0);
        let in_memory = tips.all().map(|tip| tip.lowest_in_memory()).max().unwrap_or(Height::GENESIS);
        let below = Height(in_memory.0 - 1);
        if below == self.tree.cut() && below == self.index.top() {
            return Ok(());
        }
        // The moment was made again from far below: its chains are in memory, whole or down to `below`.
        let Some(lowest) = tips.all().min_by_key(|tip| tip.height()) else { return Ok(()) };
        let highest = tips.all().map(|tip| tip.height()).max().unwrap_or_default();
        let depth = self.depth.rollback.saturating_add(self.depth.margin);
        let span = self.tree.span();
        let deep = lowest.height().0.saturating_sub(depth).min(self.index.top().0) / span * span;
        let shared = lowest.ancestor(Height(deep)).filter(|link| tips.all().all(|tip| tip.descends_from(link)));
        let shared = match shared.filter(|link| link.height() > below) {
            Some(link) if self.index_holds(&link)? => Some(link),
            _ => None,
        };
        let cut = shared.as_ref().map_or(below, |link| link.height());
        for height in (cut.0 + 1..=highest.min(self.index.top()).0).map(Height) {
            let link = self.index.link(height).map_err(log_error)?;
            let spot = self.index.spot(height).map_err(log_error)?;
            if let (Some(link), Some(spot)) = (link, spot) {
                self.is_logged(height, link.id(), spot);
            }
        }
        self.index = self.index.cut(cut).map_err(log_error)?;
        self.tree.unsettle(below, &self.settled(), tips.all());
        if let Some(own) = shared.and_then(|link| self.tree.link(&link.id())) {
            self.tree.settle(&own, &self.settled());
        }
        Ok(())
    }

    /// Handles the end of a replay of the log. Later rows of the index were never announced, or are of a chain that was left.
    pub(super) fn is_played(&mut self) -> Result<(), FolderError> {
        let cut = self.tree.cut();
        if self.index.top() > cut {
            self.index = self.index.cut(cut).map_err(log_error)?;
            if cut.0 > 0 {
                self.tree.unsettle(cut, &self.settled(), iter::empty());
            }
        }
        Ok(())
    }
}

/// An error of the store as one of the log.
pub(super) fn log_error(why: SettledError) -> LogError {
    LogError::Io { file: why.file, source: why.source }
}
