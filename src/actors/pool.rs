//! A transaction pool: takes, keeps, orders and drops pending transactions of one node. Source: consensus.md 5.
//!
//! A pending transaction is applied to its sender only, in a wallet of the pool's own, so unconfirmed income cannot be
//! spent and pending nonces are contiguous. The pool has no chain of its own: its peer sends the tip along, and the
//! pool first follows the chain to that tip (`pool/follow.rs`), so empty blocks cost it nothing.

mod admission;
mod follow;
mod order;

use super::{ActorId, Effect, Event, Input, Message, NodeId, RequestId, Role, SimTime, message::Transactions};
use crate::{
    ledger::{BlockTree, Link, State, Wallet},
    protocol::{Address, Arktoshi, SignedTransaction, TransactionId, transaction::Version},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub use admission::{PoolError, PoolRejection, Submission};
pub use order::in_forging_order;

/// The forger's block leaves so many bytes of the largest payload unused. Source: consensus.md 2.3.
const PAYLOAD_MARGIN: usize = 10_240;
/// Ids remembered since the last block. Source: consensus.md 5.1 (1).
const RECENT_IDS: usize = 10_000;

/// The pool of one node.
pub struct TransactionPool {
    node: NodeId,
    tree: Arc<BlockTree>,
    /// The tip the pool's wallets stand on.
    tip: Arc<Link>,
    pending: BTreeMap<TransactionId, Pending>,
    /// Highest fee first, then first come.
    by_fee: BTreeSet<(Reverse<Arktoshi>, u64, TransactionId)>,
    /// Each sender's pending transactions, by arrival, which is by nonce.
    by_sender: BTreeMap<Address, BTreeMap<u64, TransactionId>>,
    /// Senders' wallets with their pending transactions applied.
    wallets: BTreeMap<Address, Wallet>,
    /// Ids handed in since the last block, refused ones too; the oldest first in the queue beside.
    recent: BTreeSet<TransactionId>,
    recent_by_age: VecDeque<TransactionId>,
    arrivals: u64,
    /// The instant of the step in hand.
    now: SimTime,
}

/// A pending transaction and its place in the order of arrival.
struct Pending {
    transaction: Arc<SignedTransaction>,
    arrival: u64,
}

impl TransactionPool {
    /// An empty pool on `tip`.
    pub fn new(node: NodeId, tree: Arc<BlockTree>, tip: Arc<Link>) -> Self {
        Self {
            node,
            tree,
            tip,
            pending: BTreeMap::new(),
            by_fee: BTreeSet::new(),
            by_sender: BTreeMap::new(),
            wallets: BTreeMap::new(),
            recent: BTreeSet::new(),
            recent_by_age: VecDeque::new(),
            arrivals: 0,
            now: SimTime::default(),
        }
    }

    /// One event in, the wanted effects out, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        self.now = now;
        let Input::Message { message, .. } = input else { return };
        match message {
            Message::TipMoved { tip } => self.follow(&tip, effects),
            Message::AddTransactions { tip, transactions, request } => {
                self.follow(&tip, effects);
                self.add_all(&transactions, request, effects);
            }
            Message::ChooseTransactions { tip } => {
                self.follow(&tip, effects);
                let message = Message::ForgingTransactions(self.choose(effects));
                effects.push(Effect::Send { to: ActorId { node: self.node, role: Role::Delegate }, message });
            }
            Message::BlockNotApplied { tip, block } => {
                self.follow(&tip, effects);
                if self.tree.rules().pool.refused_block_takes_transactions {
                    self.lose(block.transactions.iter().map(|transaction| transaction.id()), effects);
                }
            }
            Message::AlreadyForged { tip, ids } => {
                self.follow(&tip, effects);
                self.lose(ids.iter().copied(), effects);
            }
            // Nothing else is said to a pool.
            _ => {}
        }
    }

    fn add_all(&mut self, transactions: &Transactions, request: Option<RequestId>, effects: &mut Vec<Effect>) {
        let submission = self.submit(transactions, effects);
        let broadcast: Transactions = transactions
            .iter()
            .filter(|transaction| submission.broadcast.contains(&transaction.id()))
            .cloned()
            .collect();
        // A message with one refused transaction is not sent on, though its others are kept. Source: consensus.md 8, Q26.
        if !broadcast.is_empty() && (request.is_some() || submission.errors.is_empty()) {
            let to = ActorId { node: self.node, role: Role::Peer };
            effects.push(Effect::Send { to, message: Message::Broadcast(broadcast) });
        }
        if let Some(request) = request {
            effects.push(Effect::Answer { request, submission });
        }
    }

    /// Drops what is pending of these transactions: they stood in a block that was refused (Q4), or are on the chain.
    fn lose(&mut self, ids: impl Iterator<Item = TransactionId>, effects: &mut Vec<Effect>) {
        for id in ids {
            if self.pending.contains_key(&id) {
                self.forget(&id);
                effects.push(Effect::Observe(Event::PoolRemoved(id)));
            }
        }
    }

    /// Transactions for the next block: in pool order, each applied to a scratch state; one that fails leaves the pool.
    /// Source: consensus.md 2.3.
    fn choose(&mut self, effects: &mut Vec<Effect>) -> Transactions {
        if self.pending.is_empty() {
            return Transactions::default();
        }
        let tree = self.tree.clone();
        let milestone = tree.config().milestones.at(self.tip.height());
        let limit = milestone.block.max_transactions;
        let (now, terms) = (self.now.seconds(), tree.terms(self.tip.height()));
        let mut scratch = tree.applied(&self.tip).state.clone();
        let (mut chosen, mut bytes) = (Vec::new(), 0);
        for transaction in self.ordered().take(10 * limit).collect::<Vec<_>>() {
            if chosen.len() == limit {
                break;
            }
            if scratch.try_apply(&transaction, now, &terms).is_ok() {
                bytes += transaction.bytes().len();
                if bytes > milestone.block.max_payload.saturating_sub(PAYLOAD_MARGIN) {
                    break;
                }
                chosen.push(transaction);
            } else {
                self.forget(&transaction.id());
                effects.push(Effect::Observe(Event::PoolRemoved(transaction.id())));
            }
        }
        chosen.into()
    }

    /// All pending ones, in forging order.
    fn ordered(&self) -> impl Iterator<Item = Arc<SignedTransaction>> {
        in_forging_order(self.by_fee.iter().map(|(_, _, id)| self.pending[id].transaction.clone()))
    }

    fn keep(&mut self, transaction: &Arc<SignedTransaction>) {
        let (id, arrival, address) = (transaction.id(), self.arrivals, transaction.sender_address());
        self.arrivals += 1;
        self.by_fee.insert((Reverse(transaction.transaction().fee), arrival, id));
        self.by_sender.entry(address).or_default().insert(arrival, id);
        self.pending.insert(id, Pending { transaction: transaction.clone(), arrival });
    }

    /// Drops a transaction from the lists. Its sender's wallet is rebuilt when next needed.
    fn forget(&mut self, id: &TransactionId) {
        let Some(Pending { transaction, arrival }) = self.pending.remove(id) else { return };
        let address = transaction.sender_address();
        self.by_fee.remove(&(Reverse(transaction.transaction().fee), arrival, *id));
        if let Some(own) = self.by_sender.get_mut(&address) {
            own.remove(&arrival);
            if own.is_empty() {
                self.by_sender.remove(&address);
            }
        }
        self.wallets.remove(&address);
    }

    /// Whether an id has been handed in since the last block; from now on it has.
    fn seen(&mut self, id: TransactionId) -> bool {
        if !self.recent.insert(id) {
            return true;
        }
        self.recent_by_age.push_back(id);
        if self.recent_by_age.len() > RECENT_IDS
            && let Some(oldest) = self.recent_by_age.pop_front()
        {
            self.recent.remove(&oldest);
        }
        false
    }

    fn of_sender(&self, address: &Address) -> Vec<TransactionId> {
        self.by_sender.get(address).into_iter().flat_map(BTreeMap::values).copied().collect()
    }
}

/// The sender's wallet on the chain, or a cold one.
fn chain_wallet(state: &State, address: &Address) -> Wallet {
    state.wallet(address).map_or_else(|| Wallet::cold(*address, 0), |wallet| Wallet::clone(wallet))
}

/// What orders a sender's transactions: nothing in version 1, the nonce in version 2.
fn nonce(transaction: &SignedTransaction) -> Option<u64> {
    match transaction.transaction().version {
        Version::One(_) => None,
        Version::Two(nonce) => Some(nonce.0),
    }
}
