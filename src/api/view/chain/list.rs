//! A chain's lists: the rows of settled blocks and those in memory as one.

use super::{Chain, VisitedTransaction};
use crate::{
    api::view::{
        Entry, Spot,
        older::{List, Row, readable},
    },
    protocol::Height,
};
use imbl::Vector;
use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

/// One of a chain's lists, oldest first.
pub struct ChainList<'c> {
    chain: &'c Chain,
    list: List,
    /// The number of rows that are not in memory.
    older: u64,
    recent: Recent<'c>,
}

/// The rows of a list that are in memory.
enum Recent<'c> {
    Nothing,
    Spots(&'c Vector<Spot>),
    WithFees(&'c Vector<(Spot, u64)>),
    Heights(&'c Vector<Height>),
}

impl Chain {
    /// One of its lists.
    pub fn listed(&self, list: List) -> ChainList<'_> {
        let history = |address| self.wallets.get(address);
        let recent = match &list {
            List::Sent(address) => history(address).map(|history| Recent::Spots(&history.sent)),
            List::Received(address) => history(address).map(|history| Recent::Spots(&history.received)),
            List::Any(address) => history(address).map(|history| Recent::Spots(&history.any)),
            List::Of(kind) => Some(Recent::WithFees(&self.kinds[*kind as usize])),
            List::Forged(generator) => self.forged.get(generator).map(Recent::Heights),
        };
        ChainList { chain: self, older: self.settled(&list), list, recent: recent.unwrap_or(Recent::Nothing) }
    }
}

impl ChainList<'_> {
    /// The number of its rows.
    pub fn len(&self) -> u64 {
        let recent = match self.recent {
            Recent::Nothing => 0,
            Recent::Spots(spots) => spots.len(),
            Recent::WithFees(spots) => spots.len(),
            Recent::Heights(heights) => heights.len(),
        };
        self.older + recent as u64
    }

    /// The spots at a range of positions, the last first.
    pub fn spots_down(&self, positions: Range<u64>) -> Vec<Spot> {
        let mut spots = Vec::with_capacity((positions.end - positions.start) as usize);
        let first_recent = self.older.max(positions.start);
        for position in (first_recent..positions.end).rev() {
            let index = (position - self.older) as usize;
            spots.extend(match self.recent {
                Recent::Nothing => None,
                Recent::Spots(spots) => spots.get(index).copied(),
                Recent::WithFees(spots) => spots.get(index).map(|(spot, _)| *spot),
                Recent::Heights(heights) => heights.get(index).map(|height| Spot { height: *height, index: 0 }),
            });
        }
        let mut wanted = self.older.min(positions.end).saturating_sub(positions.start);
        self.older_down(self.older.min(positions.end), &mut |row| {
            if wanted == 0 {
                return ControlFlow::Break(());
            }
            wanted -= 1;
            spots.push(row.spot);
            ControlFlow::Continue(())
        });
        spots
    }

    /// Visits the heights of blocks, newest first.
    pub fn heights_down(&self, mut visit: impl FnMut(Height) -> ControlFlow<()>) {
        if let Recent::Heights(heights) = self.recent
            && heights.iter().rev().try_for_each(|height| visit(*height)).is_break()
        {
            return;
        }
        self.older_down(self.older, &mut |row| visit(row.spot.height));
    }

    /// Visits the paid fees with their spots, newest first.
    pub fn fees_down(&self, mut visit: impl FnMut(Spot, u64) -> ControlFlow<()>) {
        if let Recent::WithFees(spots) = self.recent
            && spots.iter().rev().try_for_each(|(spot, fee)| visit(*spot, *fee)).is_break()
        {
            return;
        }
        self.older_down(self.older, &mut |row| visit(row.spot, row.facts.map_or(0, |facts| facts.fee)));
    }

    /// Visits the transactions, newest first.
    pub fn down(&self, mut visit: impl FnMut(&VisitedTransaction<'_>) -> ControlFlow<()>) {
        // Consecutive rows are often from one block.
        let mut last: Option<&Arc<Entry>> = None;
        let mut recent = |spot: Spot| {
            if last.is_none_or(|entry| entry.height() != spot.height) {
                last = self.chain.recent(spot.height);
            }
            let Some(entry) = last else { return ControlFlow::Continue(()) };
            visit(&VisitedTransaction { spot, facts: &entry.contents.facts[spot.index as usize], entry: Some(entry) })
        };
        let flow = match self.recent {
            Recent::Nothing | Recent::Heights(_) => ControlFlow::Continue(()),
            Recent::Spots(spots) => spots.iter().rev().try_for_each(|spot| recent(*spot)),
            Recent::WithFees(spots) => spots.iter().rev().try_for_each(|(spot, _)| recent(*spot)),
        };
        if flow.is_continue() {
            self.older_down(self.older, &mut |row| match &row.facts {
                Some(facts) => visit(&VisitedTransaction { spot: row.spot, facts, entry: None }),
                None => ControlFlow::Continue(()),
            });
        }
    }

    fn older_down(&self, position: u64, visit: &mut dyn FnMut(&Row) -> ControlFlow<()>) {
        if let Some(older) = self.chain.older().filter(|_| position > 0) {
            readable(older.rows_before(&self.list, position, visit));
        }
    }
}
