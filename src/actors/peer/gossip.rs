//! Relaying blocks and transactions to other peers. Source: consensus.md 6.

use super::{About, Peer};
use crate::{
    actors::{Effect, Message, NodeId, Role, SimTime, Wake, message::Transactions},
    ledger::{
        codec::{LoadError, Loader, Save, Saver},
        rules::Gossip,
    },
    protocol::{Block, BlockId, TransactionId},
};
use std::{sync::Arc, time::Duration};

/// The greatest number of times that a block is repeated.
pub(super) const GOSSIP_HOPS: u32 = 4;
/// The number of peers to which a node relays transactions.
const TRANSACTION_FANOUT: usize = 20;

/// The reference's "ping block".
#[derive(Clone)]
pub(super) struct Passing {
    pub block: Arc<Block>,
    pub seen: u32,
    pub first: SimTime,
    pub last: SimTime,
}

impl Passing {
    pub(super) fn is_of(&self, block: &Arc<Block>) -> bool {
        Arc::ptr_eq(&self.block, block) || self.block.id == block.id
    }
}

impl Peer {
    /// Makes `block` the one that is being passed around.
    pub(super) fn pass_around(&mut self, now: SimTime, block: &Arc<Block>, seen: u32) {
        self.passing = Some(Passing { block: block.clone(), seen, first: now, last: now });
    }

    /// Relays a block of the running slot by the gossip rule. By the reference's, it goes to fewer peers the more often it was seen, or
    /// to all at once where another block is being passed around, or none.
    pub(super) fn gossip(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let passing = self.passing.as_ref().filter(|passing| passing.is_of(block));
        match (self.rules().gossip, passing) {
            (Gossip::Once, Some(passing)) if passing.seen == 0 => {
                self.push_to(now, self.neighbours.len(), block, effects);
            }
            (Gossip::Once, _) => {}
            (Gossip::Reference, None) => self.push_to(now, self.neighbours.len(), block, effects),
            (Gossip::Reference, Some(passing)) if passing.seen < GOSSIP_HOPS => {
                let waited = passing.last.since(passing.first);
                let at = now + self.gossip_wait().saturating_sub(waited);
                effects.push(Effect::WakeAt { at, wake: Wake::Gossip(block.id) });
            }
            (Gossip::Reference, Some(_)) => {}
            (Gossip::Announce, _) => self.announce(block, effects),
            (Gossip::Push(peers), _) => self.push_to(now, peers as usize, block, effects),
        }
    }

    /// Relays a block after the wait, to fewer peers the more often it has come back meanwhile.
    pub(super) fn gossip_again(&mut self, now: SimTime, id: &BlockId, effects: &mut Vec<Effect>) {
        let Some(passing) = self.passing.as_ref().filter(|passing| passing.block.id == *id) else { return };
        let hops_left = GOSSIP_HOPS.saturating_sub(passing.seen) as usize;
        let count = (hops_left * self.neighbours.len()).div_ceil(GOSSIP_HOPS as usize);
        let block = passing.block.clone();
        self.push_to(now, count, &block, effects);
    }

    fn push_to(&mut self, now: SimTime, count: usize, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let to = self.some_peers(now, count, About::Block);
        if !to.is_empty() {
            self.push_block(now, to, block, effects);
        }
    }

    pub(super) fn broadcast(&mut self, now: SimTime, transactions: &Transactions, effects: &mut Vec<Effect>) {
        if !self.node_rules().transactions_in_order {
            return self.send_transactions(now, transactions, effects);
        }
        if let Some(bundle) = &mut self.bundle {
            return bundle.extend(transactions.iter().cloned());
        }
        self.send_transactions(now, transactions, effects);
        self.collect_bundle(now, effects);
    }

    /// Sends the collected transactions, in messages no larger than a request may be.
    pub(super) fn bundle_over(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let bundle = self.bundle.take().unwrap_or_default();
        for transactions in bundle.chunks(self.rules().pool.max_transactions_per_request) {
            self.send_transactions(now, &transactions.into(), effects);
        }
        if !bundle.is_empty() {
            self.collect_bundle(now, effects);
        }
    }

    /// Removes transactions from the pool and from the messages that wait to be sent.
    pub(super) fn drop_pending(&mut self, dropped: &Arc<[TransactionId]>, effects: &mut Vec<Effect>) {
        if let Some(bundle) = &mut self.bundle {
            bundle.retain(|one| !dropped.contains(&one.id()));
        }
        for (_, message) in &mut self.held_back {
            for id in dropped.iter() {
                message.drop_transaction(id);
            }
        }
        self.tell(Role::Pool, Message::Reorganised { tip: self.tip.clone(), dropped: dropped.clone() }, effects);
    }

    fn collect_bundle(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.bundle = Some(Vec::new());
        effects.push(Effect::WakeAt { at: now + self.bundle_time(), wake: Wake::Bundle });
    }

    fn send_transactions(&mut self, now: SimTime, transactions: &Transactions, effects: &mut Vec<Effect>) {
        let to = match self.rules().gossip {
            Gossip::Once if self.node_rules().transactions_in_order => self.neighbours.numbers().to_vec(),
            _ => self.some_peers(now, TRANSACTION_FANOUT, About::Transactions),
        };
        if !to.is_empty() {
            self.push_transactions(now, to, transactions, effects);
        }
    }

    /// Draws `count` peers at random, or returns all in order if there are no more.
    pub(super) fn some_peers(&mut self, now: SimTime, count: usize, what: About) -> Vec<NodeId> {
        if count >= self.neighbours.len() {
            return self.neighbours.numbers().to_vec();
        }
        let all = self.neighbours.numbers();
        self.random.sample(&self.tree, now, what, all.len(), count).into_iter().map(|index| all[index]).collect()
    }
}

impl Save for Passing {
    fn save(&self, out: &mut Saver) {
        let Self { block, seen, first, last } = self;
        block.save(out);
        // The count of a block is not read once no wake-up can wait for it: peers relay only blocks of the running slot.
        let over = out.ahead_of().map(SimTime::from_micros).is_some_and(|now| {
            let (slots, wait) = (out.tree().slots(), out.tree().rules().node.gossip_wait_ms);
            let is_over = now > *last + Duration::from_millis(wait.into());
            is_over && slots.slot(block.header.timestamp).0 + 1 < slots.slot(now.seconds()).0
        });
        out.raw(&[u8::from(over)]);
        if over {
            return;
        }
        seen.save(out);
        first.save(out);
        last.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let block = Save::load(from)?;
        // A state that holds only what is ahead is never loaded.
        let [_] = from.array()?;
        Ok(Self { block, seen: Save::load(from)?, first: Save::load(from)?, last: Save::load(from)? })
    }
}
