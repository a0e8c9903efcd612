//! Blocks in: pushed by peers, made by the own delegate, or downloaded. Source: consensus.md 3.1 to 3.3 and 3.6.
//!
//! 1. A pushed block is refused with too many transactions, counted if it is the one being passed around, and refused unless
//!    it follows the tip. It is dropped if its slot has not begun, and disregarded while the node catches up.
//! 2. An own block is dropped out of its slot, or with less than two seconds of it left.
//! 3. A download is cut into batches: after 150 transactions, 101 blocks, or a block at a milestone's height.
//! 4. A batch whose first block does not follow the tip is dropped as a whole. Otherwise its blocks are decided in order, up
//!    to the first that is not accepted.
//! 5. A block that the tree can put on the tip is accepted: it is the tip, and the pool, the delegate and the count of missed
//!    slots follow.
//! 6. One that does not follow the tip is discarded if it is too high, below the tip, or the tip. One that is too high for the
//!    sixth time in a row, or a rival of the tip by its slot's owner, makes the node leave its chain (`fork.rs`).
//! 7. One with a transaction that is on the chain is discarded. Any other failure rejects the block.
//! 8. The last block decided is passed on if it is accepted or discarded, and of the running slot, once the node has started.
//!
//! Processing a block takes no time, so the reference's queue never holds more than the blocks of one message, and its
//! `lastDownloadedBlock` is the tip.

use super::{Peer, observe};
use crate::{
    actors::{Effect, Event, Message, Role, RollbackCause, SimTime, delegate::in_time},
    ledger::{ApplyError, BlockRejected, Link},
    protocol::{Block, Height},
};
use std::sync::Arc;

/// The number of transactions that completes a batch of downloaded blocks.
const BATCH_TRANSACTIONS: usize = 150;
/// The number of blocks that completes a batch.
const BATCH_BLOCKS: usize = 101;

/// The outcome of working on a block. Source: consensus.md 3.3.
#[derive(Debug)]
enum BlockOutcome {
    /// It is the tip now.
    Accepted,
    /// The node does not need it, but may still relay it.
    Discarded,
    /// It breaks a rule, or competes with a block of the chain.
    Rejected(Box<BlockRejected>),
    /// It shows that this node should leave its chain.
    Rollback(RollbackCause),
}

impl BlockOutcome {
    fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted)
    }
}

/// The outcome of a pushed block before it is worked on. Source: consensus.md 3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// The block that is being passed around already; counted.
    SeenBefore,
    /// Too many transactions, or it does not follow the tip: the caller gets an error.
    Refused(BlockRejected),
    /// From a slot that has not begun: dropped silently.
    FromFuture(BlockRejected),
    /// The node has not caught up yet.
    Disregarded,
    Queued,
}

impl Peer {
    /// Handles a block that a peer pushes (`postBlock`), or that a client of this node submits. `seen` is 1 for a peer, which has seen
    /// the block, and 0 for a client.
    pub(super) fn block_pushed(&mut self, now: SimTime, block: &Arc<Block>, seen: u32, effects: &mut Vec<Effect>) {
        match self.enter(now, block, seen) {
            Entry::SeenBefore => {}
            Entry::Refused(BlockRejected::NotChained { .. }) if self.keep(now, block, effects) => {}
            Entry::Refused(why) => {
                let is_apart = matches!(why, BlockRejected::NotChained { .. });
                observe(Event::BlockRefused(why.into()), effects);
                if is_apart {
                    self.doubt_for(now, block, effects);
                }
            }
            Entry::FromFuture(why) => observe(Event::BlockRefused(why.into()), effects),
            Entry::Disregarded => observe(Event::BlockDisregarded(block.clone()), effects),
            Entry::Queued => self.take_in(now, block, effects),
        }
    }

    /// Checks a pushed block, in the reference's order.
    fn enter(&mut self, now: SimTime, block: &Arc<Block>, seen: u32) -> Entry {
        if let Err(why) = self.check_size(block) {
            return Entry::Refused(why);
        }
        if let Some(passing) = self.passing.as_mut().filter(|passing| passing.is_of(block)) {
            passing.seen += 1;
            passing.last = now;
            return Entry::SeenBefore;
        }
        if !self.tree.chains(&self.tip, block) {
            return Entry::Refused(self.not_chained(block));
        }
        let early = self.tree.check_time(block, self.slot(now));
        // Q10: a block that comes too early counts as seen from now on, and is ignored when it comes again.
        if early.is_ok() || self.node_rules().ping_before_slot_check {
            self.pass_around(now, block, seen);
        }
        match early {
            Err(why) => Entry::FromFuture(why),
            Ok(()) if !self.has_started() => Entry::Disregarded,
            Ok(()) => Entry::Queued,
        }
    }

    fn check_size(&self, block: &Block) -> Result<(), BlockRejected> {
        let count = block.transactions.len();
        if count == 0 || count <= self.tree.config().milestones.at(self.tip.height()).block.max_transactions {
            return Ok(());
        }
        Err(BlockRejected::Crowded { id: block.id, height: block.header.height, count })
    }

    /// Handles a block of the own delegate. Drops it silently if its slot is not running, or too little of the slot is left.
    pub(super) fn block_forged(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let slots = self.tree.slots();
        let fits = in_time(&self.tree, slots.slot(block.header.timestamp), now);
        if fits || self.node_rules().ping_before_slot_check {
            self.pass_around(now, block, 0);
        }
        if !fits {
            return;
        }
        if !self.has_started() {
            return observe(Event::BlockDisregarded(block.clone()), effects);
        }
        // Q18 off: only a block that is accepted counts as forged.
        let told_late = !self.node_rules().forged_before_accepted;
        self.take_in(now, block, effects);
        if told_late && self.tip.id() == block.id {
            observe(Event::BlockForged(block.clone()), effects);
        }
    }

    fn take_in(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        Effect::put(effects, || Effect::Observe(Event::BlockReceived(block.clone())));
        self.work_on(now, std::slice::from_ref(block), effects);
    }

    /// Processes the blocks of a download. Returns true if all of them were accepted.
    pub(super) fn work_on_download(&mut self, now: SimTime, blocks: &[Arc<Block>], effects: &mut Vec<Effect>) -> bool {
        let milestones = &self.tree.config().clone().milestones;
        let mut batch = 0..0;
        let mut transactions = 0;
        for (index, block) in blocks.iter().enumerate() {
            batch.end = index + 1;
            transactions += block.transactions.len();
            let is_milestone = milestones.all().iter().any(|milestone| milestone.height == block.header.height);
            let full = transactions >= BATCH_TRANSACTIONS || batch.len() >= BATCH_BLOCKS || is_milestone;
            if full || batch.end == blocks.len() {
                if !self.work_on(now, &blocks[batch.clone()], effects) {
                    return false;
                }
                batch.start = batch.end;
                transactions = 0;
            }
        }
        true
    }

    /// Processes a batch, which is dropped as a whole if its first block does not follow the tip. Returns true if all of it was
    /// accepted. Source: consensus.md 3.2.
    fn work_on(&mut self, now: SimTime, batch: &[Arc<Block>], effects: &mut Vec<Effect>) -> bool {
        let Some(first) = batch.first() else { return true };
        if !self.tree.chains(&self.tip, first) {
            return false;
        }
        let (mut outcome, mut block) = (BlockOutcome::Accepted, first);
        for next in batch {
            (outcome, block) = (self.decide(now, next, effects), next);
            if !outcome.is_accepted() {
                break;
            }
        }
        let accepted = outcome.is_accepted();
        match outcome {
            BlockOutcome::Accepted | BlockOutcome::Discarded => {
                let of_running_slot = block.header.timestamp >= self.tree.slots().start(self.slot(now));
                if self.has_started() && of_running_slot {
                    self.gossip(now, block, effects);
                }
            }
            BlockOutcome::Rejected(why) => observe(Event::BlockRefused(why), effects),
            BlockOutcome::Rollback(cause) => {
                let blocks = (cause == RollbackCause::NeverReady).then_some(self.node_rules().rollback_max);
                self.fork(now, blocks, cause, effects);
            }
        }
        accepted
    }

    /// Extends the chain by a block that can follow the tip. Otherwise returns how to treat the block. Source: consensus.md 3.3.
    fn decide(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) -> BlockOutcome {
        if let Err(early) = self.tree.check_time(block, self.slot(now)) {
            return BlockOutcome::Rejected(early.into());
        }
        match self.tree.extend(&self.tip, block) {
            Ok(link) => {
                self.accept(now, link, effects);
                BlockOutcome::Accepted
            }
            Err(BlockRejected::NotChained { .. }) => self.unchained(block),
            Err(BlockRejected::AlreadyForged { .. }) => {
                let on_chain = block.transactions.iter().filter(|transaction| self.tree.holds(&self.tip, transaction));
                let ids = on_chain.map(|transaction| transaction.id()).collect();
                self.tell(Role::Pool, Message::AlreadyForged { tip: self.tip.clone(), ids }, effects);
                BlockOutcome::Discarded
            }
            Err(why) => {
                if is_found_out_late(&why) && !block.transactions.is_empty() {
                    let message = Message::BlockNotApplied { tip: self.tip.clone(), block: block.clone() };
                    self.tell(Role::Pool, message, effects);
                }
                BlockOutcome::Rejected(why.into())
            }
        }
    }

    pub(super) fn accept(&mut self, now: SimTime, link: Arc<Link>, effects: &mut Vec<Effect>) {
        self.tip = link.clone();
        self.reset_timer(now, effects);
        self.makes_headway();
        Effect::put(effects, || Effect::Observe(Event::BlockApplied(link)));
        if !self.tip.block().transactions.is_empty() {
            self.tell(Role::Pool, Message::TipMoved { tip: self.tip.clone() }, effects);
        }
        if let Some(notable) = self.tip.notable().cloned() {
            if notable.round_end.is_some() {
                self.tell_round(effects);
            }
            self.count_missed(now, &notable, effects);
        }
    }

    /// A block that does not follow the tip: the second of a batch or a later one. Source: consensus.md 3.6.
    fn unchained(&mut self, block: &Block) -> BlockOutcome {
        let (header, tip) = (&block.header, &self.tip.block().header);
        if header.height > Height(tip.height.0 + 1) {
            return match self.sync.is_never_ready(block.id) {
                true => BlockOutcome::Rollback(RollbackCause::NeverReady),
                false => BlockOutcome::Discarded,
            };
        }
        if header.height < tip.height || block.id == self.tip.id() {
            return BlockOutcome::Discarded;
        }
        let applied = self.tree.applied(&self.tip);
        let slot = self.tree.slots().slot(header.timestamp);
        let owns_slot = applied.state.round().owns(slot, &header.generator);
        match header.timestamp >= tip.timestamp && owns_slot && self.node_rules().second_block_rolls_back {
            true => BlockOutcome::Rollback(RollbackCause::DoubleForging),
            false => BlockOutcome::Rejected(self.not_chained(block).into()),
        }
    }

    fn not_chained(&self, block: &Block) -> BlockRejected {
        let (id, height) = (block.id, block.header.height);
        BlockRejected::NotChained { id, height, tip: self.tip.id(), tip_height: self.tip.height() }
    }
}

/// Returns true if a block failed only when it was applied, after the pool had dropped its transactions (Q4). Nonces are checked
/// before that.
fn is_found_out_late(why: &BlockRejected) -> bool {
    match why {
        BlockRejected::NotApplicable { source, .. } => !matches!(source, ApplyError::UnexpectedNonce { .. }),
        BlockRejected::TooFewDelegates { .. } => true,
        _ => false,
    }
}
