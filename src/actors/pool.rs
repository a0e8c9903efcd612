//! A transaction pool: accepts, retains, orders and drops pending transactions of one node. Source: consensus.md 5.
//!
//! A pending transaction is applied to its sender only, in a wallet of the pool's own, so unconfirmed income cannot be
//! spent and pending nonces are contiguous. The pool has no chain of its own: its peer sends the tip along, and the
//! pool first follows the chain to that tip (`pool/follow.rs`), so empty blocks cost it nothing.

mod admission;
mod follow;
mod held_transactions;
mod order;
mod store;
mod verdict;

use self::{
    held_transactions::HeldTransactions,
    store::{RecentIds, Store},
};
use super::{ActorId, Effect, Input, Message, NodeId, RequestId, Role, SimTime, message::Transactions};
use crate::{
    ledger::{BlockTree, Link, Scratch, codec::saved},
    protocol::{SignedTransaction, transaction::Version},
};
use std::{collections::BTreeSet, sync::Arc};

pub use order::in_forging_order;
pub use verdict::{PoolError, PoolRejection, Submission};

/// The number of bytes of the largest payload that the forger's block leaves unused. Source: consensus.md 2.3.
const PAYLOAD_MARGIN: usize = 10_240;

/// The pool of one node.
#[derive(Clone)]
pub struct TransactionPool {
    node: NodeId,
    tree: Arc<BlockTree>,
    /// The tip on whose state the pool's wallets are based.
    tip: Arc<Link>,
    store: Store,
    /// The ids submitted since the last block, those of rejected transactions included.
    recent: RecentIds,
    /// Transactions of peers, to be accepted later.
    held: HeldTransactions,
    /// The instant of the step in hand.
    now: SimTime,
}

impl TransactionPool {
    /// An empty pool on `tip`.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, tip: Arc<Link>) -> Self {
        let (store, recent, held) = (Store::default(), RecentIds::default(), HeldTransactions::default());
        Self { node, tree, tip, store, recent, held, now: SimTime::default() }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The pending transactions, in forging order. Source: consensus.md 5.5.
    pub fn pending(&self) -> impl Iterator<Item = &Arc<SignedTransaction>> {
        self.store.in_forging_order()
    }

    /// The pending transactions, in the order of arrival.
    pub fn by_arrival(&self) -> Vec<Arc<SignedTransaction>> {
        self.store.by_arrival()
    }

    /// An estimate of the bytes it takes beside its own size, without data that it shares with others.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// The tip the pool has followed its node's chain to.
    pub fn tip(&self) -> &Arc<Link> {
        &self.tip
    }

    /// Handles one input. Appends the effects that the pool wants, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        self.now = now;
        let Input::Message { message, .. } = input else { return };
        match message {
            Message::TipMoved { tip } => self.follow(&tip, effects),
            Message::AddTransactions(add) => {
                self.follow(&add.tip, effects);
                self.add_all(&add.transactions, add.request, effects);
            }
            Message::ChooseTransactions { tip } => {
                self.follow(&tip, effects);
                let message = Message::ForgingTransactions(self.choose(effects));
                effects.push(Effect::Send { to: ActorId { node: self.node, role: Role::Delegate }, message });
            }
            Message::BlockNotApplied { tip, block } => {
                self.follow(&tip, effects);
                self.block_not_applied(&block, effects);
            }
            Message::Reorganised { tip, dropped } => self.reorganise(&tip, &dropped, effects),
            Message::AlreadyForged { tip, ids } => {
                self.follow(&tip, effects);
                for id in ids.iter() {
                    self.remove(id, effects);
                }
            }
            // A pool receives no other message.
            _ => {}
        }
    }

    fn add_all(&mut self, transactions: &Transactions, request: Option<RequestId>, effects: &mut Vec<Effect>) {
        if request.is_none() && self.tree.rules().node.transactions_in_order {
            return self.take_from_peer(transactions, effects);
        }
        let submission = self.submit(transactions, effects);
        // A message with one refused transaction is not sent on, though its others are kept. Source: consensus.md 8 Q26.
        if !submission.broadcast.is_empty()
            && (request.is_some() || submission.errors.is_empty() || !self.tree.rules().pool.refusal_stops_relay)
        {
            let worth_it = |transaction: &&Arc<SignedTransaction>| submission.broadcast.contains(&transaction.id());
            self.send_on(transactions.iter().filter(worth_it).cloned().collect(), effects);
        }
        if let Some(request) = request {
            effects.push(Effect::Answer { request, submission: submission.into() });
            self.take_held_of(transactions, effects);
        }
    }

    fn send_on(&self, transactions: Transactions, effects: &mut Vec<Effect>) {
        let to = ActorId { node: self.node, role: Role::Peer };
        effects.push(Effect::Send { to, message: Message::Broadcast(transactions) });
    }

    /// Transactions for the next block: in pool order, each applied to a scratch state; one that fails leaves the pool, or waits
    /// for a later block by `forging_drops_misfits`.
    /// Source: consensus.md 2.3.
    fn choose(&mut self, effects: &mut Vec<Effect>) -> Transactions {
        if self.store.len() == 0 {
            return Transactions::default();
        }
        let tree = self.tree.clone();
        let milestone = tree.config().milestones.at(self.tip.height());
        let limit = milestone.block.max_transactions;
        let (now, terms, applied) = (self.now.seconds(), tree.terms(self.tip.height()), tree.applied(&self.tip));
        let expires_next = (!tree.rules().pool.chooses_what_expires_next).then(|| self.tip.height().next().0);
        let drops_misfits = tree.rules().pool.forging_drops_misfits;
        let mut scratch = Scratch::new(&applied.state, &tree.rules().pool);
        let (mut chosen, mut misfits, mut bytes) = (Vec::with_capacity(limit), Vec::new(), 0);
        let (mut failed, mut gone) = (Vec::new(), Vec::new());
        for transaction in self.store.in_forging_order().take(10 * limit) {
            if chosen.len() == limit {
                break;
            }
            let expires = |height| self.expires_at(transaction).is_some_and(|expiry| expiry <= i64::from(height));
            let is_late = expires_next.is_some_and(expires);
            if is_late && drops_misfits || tree.holds(&self.tip, transaction) {
                failed.push(transaction.id());
            } else if is_late {
                gone.push(transaction.id());
            } else if scratch.try_apply(transaction, now, &terms).is_ok() {
                bytes += transaction.size();
                if bytes > milestone.block.max_payload.saturating_sub(PAYLOAD_MARGIN) {
                    break;
                }
                chosen.push(transaction.clone());
            } else if drops_misfits {
                failed.push(transaction.id());
            } else {
                misfits.push(transaction.clone());
            }
        }
        let (chain, mut waiting) = (Scratch::new(&applied.state, &tree.rules().pool), BTreeSet::new());
        for transaction in misfits {
            let sender = transaction.sender_address();
            let fits = |scratch: &Scratch<'_>| scratch.check(&transaction, &terms).is_ok();
            if waiting.contains(&sender) || fits(&chain) || fits(&scratch) {
                waiting.insert(sender);
            } else {
                gone.push(transaction.id());
            }
        }
        // If a transaction leaves, no later one of its sender fits. So those that the loop did not reach leave, too.
        failed.extend(gone.iter().flat_map(|id| self.store.with_later(id)));
        for id in failed {
            self.remove(&id, effects);
        }
        chosen.into()
    }
}

/// Returns the number that orders a sender's transactions: none in version 1, the nonce in version 2.
fn nonce(transaction: &SignedTransaction) -> Option<u64> {
    match transaction.transaction().version {
        Version::One(_) => None,
        Version::Two(nonce) => Some(nonce.0),
    }
}

saved!(struct TransactionPool { node, tree, tip, store, recent, held, now });
