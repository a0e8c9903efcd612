//! Retained blocks of other branches, for rules by which a node keeps them. EOS has a fork database for them, Tron a khaos database.
//!
//! 1. A pushed block that does not follow the tip is retained if it is signed and its parent is on the own chain or retained.
//! 2. The block's branch is verified once it may be stronger than the own chain. If it is stronger, and splits off at the last final
//!    block or above, the node moves to it at once. It downloads nothing, because it has all blocks. If the branch breaks a rule, its
//!    blocks are dropped.
//! 3. The node relays a retained block to all peers at once, and goes on passing around the one of its own chain.
//! 4. Blocks more than [`KEPT_BELOW`] below the tip are dropped.

use super::Peer;
use crate::{
    actors::{Effect, Event, RollbackCause, SimTime, fork_choice::Strength},
    ledger::Link,
    protocol::{Block, BlockId, Height},
};
use std::{iter, sync::Arc};

/// The number of heights below the tip for which blocks are retained.
const KEPT_BELOW: u32 = 1_000;

/// A block by its height and id.
pub(super) type Place = (Height, BlockId);

impl Peer {
    /// Retains a pushed block that does not follow the tip, and moves to its chain if that is stronger. Returns true if the block is
    /// retained, or was known already.
    pub(super) fn keep(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) -> bool {
        if !self.node_rules().keeps_branches || !self.has_started() {
            return false;
        }
        let place = (block.header.height, block.id);
        if self.has(&place) {
            return true;
        }
        let follows = parent(block).is_some_and(|parent| self.has(&parent));
        if !follows || self.tree.check_time(block, self.slot(now)).is_err() || !self.is_signed(block) {
            return false;
        }
        let lowest = Height(self.tip.height().0.saturating_sub(KEPT_BELOW));
        self.watch.branches.retain(|(height, _), _| *height >= lowest);
        self.watch.branches.insert(place, block.clone());
        Effect::put(effects, || Effect::Observe(Event::BlockReceived(block.clone())));
        self.gossip(now, block, effects);
        let is_higher = block.header.height > self.tip.height();
        if is_higher || self.rules().ledger.finality.asks_forgers() {
            self.go_to_stronger(now, place, effects);
        }
        true
    }

    /// Returns true if a block is one of the own chain, or kept.
    fn has(&self, place: &Place) -> bool {
        self.own(place).is_some() || self.watch.branches.contains_key(place)
    }

    fn own(&self, (height, id): &Place) -> Option<Arc<Link>> {
        self.tip.ancestor(*height).filter(|own| own.id() == *id)
    }

    fn go_to_stronger(&mut self, now: SimTime, highest: Place, effects: &mut Vec<Effect>) {
        // Blocks of a chain that the node left and came back to are kept, and the branch begins above them.
        let kept = |place: &Place| self.watch.branches.get(place).filter(|_| self.own(place).is_none()).cloned();
        let branch = iter::successors(kept(&highest), |block| parent(block).as_ref().and_then(kept));
        let branch: Vec<Arc<Block>> = branch.collect();
        let Some(common) = branch.last().and_then(parent).and_then(|place| self.own(&place)) else {
            return;
        };
        if common.height() < self.tree.applied(&self.tip).state.finality().height() {
            return;
        }
        let Ok(tip) = branch.iter().rev().try_fold(common.clone(), |tip, block| self.tree.extend(&tip, block)) else {
            branch.iter().for_each(|block| drop(self.watch.branches.remove(&(block.header.height, block.id))));
            return;
        };
        let strength = |link: &Arc<Link>| Strength::of(link, &self.tree.applied(link).state);
        if strength(&tip) > strength(&self.tip) {
            let left = iter::successors(Some(self.tip.clone()), |link| link.parent());
            let left = left.take_while(|link| !link.is(&common));
            self.watch.branches.extend(left.map(|link| ((link.height(), link.id()), link.block().clone())));
            self.move_over(now, common, &tip, (RollbackCause::Stronger, Arc::default()), effects);
        }
    }
}

/// The place of a block's parent; `None` for genesis.
fn parent(block: &Arc<Block>) -> Option<Place> {
    let below = block.header.height.0.checked_sub(1)?;
    Some((Height(below), block.header.previous?))
}
