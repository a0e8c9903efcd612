//! Transactions from peers that the pool cannot accept yet. Used only where the rules have transactions travel in order.
//!
//! A peer relays the transactions that its own pool accepted. If this pool cannot accept one yet, it lacks something that the other
//! has: earlier transactions of the same sender that are still on their way, or a block. So the pool holds it, by sender and nonce, and
//! retries it when it accepts another transaction of that sender and whenever the chain has moved.

use super::{
    PoolError, TransactionPool,
    admission::{Additions, CheckOutcome, FeeVerdict},
    nonce,
};
use crate::{
    actors::{Effect, message::Transactions},
    ledger::{codec::saved, rules::Gossip, state::Applied},
    protocol::{Address, Height, SignedTransaction, TransactionId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The number of blocks for which the pool retains a held transaction.
const HELD_BLOCKS: u32 = 150;

/// Transactions to be accepted later: never more than a pool may have pending.
#[derive(Clone, Default)]
pub(super) struct HeldTransactions {
    /// By nonce, with the height at which they came. No list is empty.
    by_sender: BTreeMap<Address, BTreeMap<HeldKey, (Height, Arc<SignedTransaction>)>>,
    count: usize,
}

/// Nonce, or 0 in version 1, and id.
type HeldKey = (u64, TransactionId);

fn place(transaction: &SignedTransaction) -> HeldKey {
    (nonce(transaction).unwrap_or(0), transaction.id())
}

impl HeldTransactions {
    fn keep(&mut self, transaction: &Arc<SignedTransaction>, came: Height) {
        let own = self.by_sender.entry(transaction.sender_address()).or_default();
        self.count += usize::from(own.insert(place(transaction), (came, transaction.clone())).is_none());
    }

    /// Drops the transactions with these ids.
    pub(super) fn forget(&mut self, ids: &BTreeSet<TransactionId>) {
        for own in self.by_sender.values_mut() {
            own.retain(|(_, id), _| !ids.contains(id));
        }
        self.by_sender.retain(|_, own| !own.is_empty());
        self.count = self.by_sender.values().map(BTreeMap::len).sum();
    }

    /// Removes and returns the sender's transaction with the lowest nonce.
    fn take_first(&mut self, sender: &Address) -> Option<(Height, Arc<SignedTransaction>)> {
        let own = self.by_sender.get_mut(sender)?;
        let (_, first) = own.pop_first()?;
        self.count -= 1;
        if own.is_empty() {
            self.by_sender.remove(sender);
        }
        Some(first)
    }
}

/// The outcome of an attempt to add a transaction.
enum Fate {
    Taken(FeeVerdict),
    Held,
    Gone,
}

impl TransactionPool {
    /// Adds transactions from peers, or holds them for later.
    pub(super) fn take_from_peer(&mut self, transactions: &Transactions, effects: &mut Vec<Effect>) {
        let came = self.tip.height();
        for transaction in transactions.iter() {
            if self.held.count < self.tree.rules().pool.max_transactions {
                self.held.keep(transaction, came);
            }
        }
        self.take_held_of(transactions, effects);
    }

    /// Retries the held transactions of the senders of `transactions`.
    pub(super) fn take_held_of(&mut self, transactions: &Transactions, effects: &mut Vec<Effect>) {
        if self.held.count > 0 {
            let mut senders: Vec<Address> = transactions.iter().map(|one| one.sender_address()).collect();
            let mut seen = BTreeSet::new();
            senders.retain(|sender| seen.insert(*sender));
            self.take_held_in_order(senders, effects);
        }
    }

    /// Retries all held transactions, because the chain has moved.
    pub(super) fn take_held(&mut self, effects: &mut Vec<Effect>) {
        if self.held.count > 0 {
            self.take_held_in_order(self.held.by_sender.keys().copied().collect(), effects);
        }
    }

    fn take_held_in_order(&mut self, senders: Vec<Address>, effects: &mut Vec<Effect>) {
        let (applied, mut additions) = (self.tree.applied(&self.tip), Additions::default());
        let mut worth_sending_on = Vec::new();
        for sender in senders {
            while let Some((came, transaction)) = self.held.take_first(&sender) {
                match self.take_or_hold(&transaction, &applied, &mut additions, effects) {
                    Fate::Taken(verdict) if verdict.broadcast => worth_sending_on.push(transaction),
                    Fate::Taken(_) | Fate::Gone => {}
                    Fate::Held => {
                        // The sender's other held transactions have higher nonces.
                        if self.tip.height().0 <= came.0.saturating_add(HELD_BLOCKS) {
                            self.held.keep(&transaction, came);
                            break;
                        }
                    }
                }
            }
        }
        additions.announce(effects);
        let is_repeated = self.tree.rules().gossip != Gossip::Once;
        if is_repeated && !worth_sending_on.is_empty() {
            self.send_on(worth_sending_on.into(), effects);
        }
    }

    fn take_or_hold(
        &mut self,
        transaction: &Arc<SignedTransaction>,
        applied: &Applied,
        additions: &mut Additions,
        effects: &mut Vec<Effect>,
    ) -> Fate {
        let tree = self.tree.clone();
        let verdict = match self.check_unseen(transaction, &BTreeSet::new(), &tree, applied) {
            Ok(CheckOutcome::Passed(verdict)) => verdict,
            Ok(CheckOutcome::Excess) => return Fate::Held,
            Err(error) => return fate_of(&error),
        };
        if tree.holds(&self.tip, transaction) {
            return Fate::Gone;
        }
        // A full pool evicts nothing for a transaction that it cannot accept yet.
        if self.leaves_gap(transaction, applied) {
            return Fate::Held;
        }
        if !verdict.enter {
            return Fate::Taken(verdict);
        }
        match self.make_room_and_admit(transaction, applied, additions, effects) {
            Ok(()) => Fate::Taken(verdict),
            Err(error) if error.may_pass_later() => {
                additions.rejected.pop();
                Fate::Held
            }
            Err(_) => Fate::Gone,
        }
    }

    /// Returns true if transactions of the sender with lower nonces are missing.
    fn leaves_gap(&self, transaction: &SignedTransaction, applied: &Applied) -> bool {
        let sender = transaction.sender_address();
        let wallet = self.pool_wallet(&sender, applied.state.wallet(&sender));
        nonce(transaction).is_some_and(|nonce| nonce > wallet.nonce.0 + 1)
    }
}

fn fate_of(error: &PoolError) -> Fate {
    if error.may_pass_later() { Fate::Held } else { Fate::Gone }
}

saved!(struct HeldTransactions { by_sender, count });
