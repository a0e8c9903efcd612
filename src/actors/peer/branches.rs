//! Blocks of other branches that a node keeps, where a rule has it so. EOS has a fork database for them, Tron a khaos database.
//!
//! 1. A pushed block that does not follow the tip is kept if it follows a block of the own chain, or one that is kept.
//! 2. If its chain is stronger than the own one, and parts from it at the last final block or above, the node goes there at once. It
//!    has all of its blocks, so it downloads none.
//! 3. It passes a kept block on, to all peers at once, and goes on passing around the one of its own chain.
//! 4. Blocks more than [`KEPT_BELOW`] below the tip are forgotten.

use super::Peer;
use crate::{
    actors::{Effect, Event, RollbackCause, SimTime, fork_choice::Strength},
    ledger::Link,
    protocol::{Block, BlockId, Height},
};
use std::{iter, sync::Arc};

/// The number of heights below the tip of which blocks are kept.
const KEPT_BELOW: u32 = 1_000;

impl Peer {
    /// Keeps a pushed block that does not follow the tip, and goes to its chain if that is stronger. Returns true if it is kept, or was
    /// already.
    pub(super) fn keep(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) -> bool {
        if !self.node_rules().keeps_branches || !self.has_started() {
            return false;
        }
        if self.has_block(block.header.height, &block.id).is_some() {
            return true;
        }
        let parent = block.header.previous.as_ref().zip(block.header.height.0.checked_sub(1));
        let Some(parent) = parent.and_then(|(id, height)| self.has_block(Height(height), id)) else { return false };
        if self.tree.check_time(block, self.slot(now)).is_err() {
            return false;
        }
        let Ok(link) = self.tree.extend(&parent, block) else { return false };
        let lowest = Height(self.tip.height().0.saturating_sub(KEPT_BELOW));
        self.watch.branches.retain(|(height, _)| *height >= lowest);
        self.watch.branches.insert((link.height(), link.id()));
        Effect::put(effects, || Effect::Observe(Event::BlockReceived(block.clone())));
        self.gossip(now, block, effects);
        self.go_to_stronger(now, &link, effects);
        true
    }

    /// The block of this id and height, if it is one of the own chain, or kept.
    fn has_block(&self, height: Height, id: &BlockId) -> Option<Arc<Link>> {
        let own = self.tip.ancestor(height).filter(|own| own.id() == *id);
        own.or_else(|| self.watch.branches.contains(&(height, *id)).then(|| self.tree.link(id)).flatten())
    }

    fn go_to_stronger(&mut self, now: SimTime, tip: &Arc<Link>, effects: &mut Vec<Effect>) {
        let strength = |link: &Arc<Link>| Strength::of(link, &self.tree.applied(link).state);
        if !strength(tip).beats(&strength(&self.tip)) {
            return;
        }
        let last_final = self.tree.applied(&self.tip).state.finality().height();
        let Some(common) =
            iter::successors(Some(tip.clone()), |link| link.parent()).find(|link| self.tip.descends_from(link))
        else {
            return;
        };
        if common.height() >= last_final {
            let left = iter::successors(Some(self.tip.clone()), |link| link.parent());
            let left = left.take_while(|link| !link.is(&common)).map(|link| (link.height(), link.id()));
            self.watch.branches.extend(left);
            self.void_downloads();
            self.move_over(now, common, tip, (RollbackCause::Stronger, Arc::default()), effects);
        }
    }
}
