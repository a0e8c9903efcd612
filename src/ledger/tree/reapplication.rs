//! Applying blocks again that were applied before: at a start, and for a state that has left memory.
//!
//! A state that only the next block needs is not copied but changed in place. Copying costs far more than applying where there are
//! many wallets: each wallet that a block changes has a path of nodes above it.

use super::{BlockTree, Link, STATES_KEPT};
use crate::{
    ledger::{
        base::StateAbove,
        state::{Applied, BlockRejected, State},
    },
    protocol::{Block, BlockId, Height},
};
use std::{collections::BTreeMap, mem, sync::Arc};

/// The reason why a block cannot be put into the tree again, so it cannot have been there.
#[derive(Debug, thiserror::Error)]
pub enum ReapplyError {
    #[error("the block before {0} is missing")]
    NoParent(BlockId),
    #[error(transparent)]
    Rejected(#[from] BlockRejected),
}

impl BlockTree {
    /// Puts a block into the tree that was in it before. Applies it without further checks.
    ///
    /// # Errors
    /// It cannot be applied, or its parent is missing.
    pub fn extend_again(&self, block: &Arc<Block>) -> Result<Arc<Link>, ReapplyError> {
        let parent = self.parent_of(block)?;
        match self.known(&parent, block) {
            Some(known) => Ok(known),
            None => Ok(self.put_applied(&parent, block, self.applied(&parent).state.clone())?),
        }
    }

    /// Puts blocks into the tree that were in it before, parents before children. Blocks up to the state `ahead` are not applied. The
    /// others are, as by [`BlockTree::extend_again`].
    ///
    /// # Errors
    /// The index of the first that cannot be put there, and the reason.
    pub fn extend_all_again(
        &self,
        blocks: &[Arc<Block>],
        ahead: Option<&StateAbove>,
    ) -> Result<Vec<Arc<Link>>, (usize, ReapplyError)> {
        let ahead = ahead.filter(|ahead| blocks.iter().any(|block| block.id == ahead.id));
        let mut children: BTreeMap<Option<BlockId>, u32> = BTreeMap::new();
        blocks.iter().for_each(|block| *children.entry(block.header.previous).or_default() += 1);
        let highest = blocks.iter().map(|block| block.header.height.0).max().unwrap_or_default();
        let mut put = |block: &Arc<Block>| {
            let parent = self.parent_of(block)?;
            let left = children.get_mut(&block.header.previous).expect("all are counted");
            *left -= 1;
            if let Some(known) = self.known(&parent, block) {
                return Ok(known);
            }
            if let Some((ahead, notable)) = ahead.and_then(|ahead| Some((ahead, ahead.notable.get(&block.id)?))) {
                let applied = (ahead.id == block.id).then(|| ahead.applied.clone());
                return Ok(self.put(&parent, block, applied, notable.clone()));
            }
            let applied = self.applied(&parent);
            // The parent's state would leave memory anyway before the last block is there.
            let is_old = parent.height().0.saturating_add(STATES_KEPT) < highest;
            if *left == 0 && is_old && !self.keeps_state(parent.height()) {
                parent.applied.store(None);
            }
            Ok(self.put_applied(&parent, block, into_state(applied))?)
        };
        blocks.iter().enumerate().map(|(index, block)| put(block).map_err(|why| (index, why))).collect()
    }

    fn parent_of(&self, block: &Block) -> Result<Arc<Link>, ReapplyError> {
        let parent = block.header.previous.and_then(|id| self.link(&id));
        parent.ok_or(ReapplyError::NoParent(block.id))
    }

    /// The state after a block, from the nearest state in memory below it.
    pub(super) fn recomputed(&self, link: &Arc<Link>) -> Arc<Applied> {
        let (base, mut missing) = (self.base(), Vec::new());
        let mut at = link.clone();
        let mut applied = loop {
            if let Some(applied) = at.applied.load_full() {
                break applied;
            }
            if at.height() == Height::GENESIS {
                // A genesis link that was read from the store has no state of its own.
                break self.genesis_applied();
            }
            if let Some(base) = base.as_ref().filter(|base| base.is_of(&at)) {
                break base.applied.clone();
            }
            if let Some(settled) = at.below.settled() {
                break self.settled_state(&at.block, &*settled);
            }
            let parent = at.parent().expect("it is above genesis");
            missing.push(mem::replace(&mut at, parent));
        };
        while let Some(next) = missing.pop() {
            applied = self.applied_again(applied, &next.block);
        }
        applied
    }

    pub(super) fn applied_again(&self, before: Arc<Applied>, block: &Arc<Block>) -> Arc<Applied> {
        let again = self.apply(into_state(before), block);
        Arc::new(again.expect("it was applied before, and state is a function of the block").0)
    }
}

/// Returns the state itself if it is not shared, else a copy.
fn into_state(applied: Arc<Applied>) -> State {
    Arc::try_unwrap(applied).map_or_else(|shared| shared.state.clone(), |own| own.state)
}
