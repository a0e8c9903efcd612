//! Following the chain of the pool's node. Source: consensus.md 5.6, 5.7.
//!
//! A pool has a tip of its own. Each request carries the node's tip, and the pool moves there before it does anything else:
//!
//! 1. It walks from the node's tip down to the first block that is on its own chain.
//! 2. If that is its own tip, the blocks between are applied, the oldest first.
//! 3. A block's transactions leave the pool. One that is not in the pool is applied to its sender's wallet there. If it
//!    does not fit, all pending transactions of this sender leave, or only those that no longer fit (`rival_empties_sender`).
//! 4. A block at a milestone's height makes the pool drop transactions that violate the new schema, with their senders' later ones.
//! 5. If the common block is below its own tip, the chain was rolled back. The pool empties itself and re-adds the transactions of
//!    the reverted blocks, the oldest first, unless they are on the new chain. All other pending transactions are lost, or only those
//!    for which there is no room (`rollback_empties_pool`).
//! 6. At the end it drops expired transactions, each with its sender's later ones.
//!
//! The transactions of a block that could not be applied leave the pool all the same (Q4), and the remaining ones are added anew.

use super::{TransactionPool, admission::Additions};
use crate::{
    actors::{Effect, Event},
    ledger::{Link, Wallet, apply},
    protocol::{Address, Asset, Block, SignedTransaction, TransactionId, transaction::Version},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The differences of a rollback from the reference's.
#[derive(Default)]
struct Change {
    /// Reverted transactions that do not return to the pool.
    dropped: BTreeSet<TransactionId>,
    /// The transactions that stay pending.
    pending: Vec<Arc<SignedTransaction>>,
}

impl TransactionPool {
    /// Moves the pool from its tip to `tip`: forward over the blocks between, or, where the chain was rolled back, by
    /// emptying itself and re-adding the reverted transactions. Then drops expired transactions.
    pub(super) fn follow(&mut self, tip: &Arc<Link>, effects: &mut Vec<Effect>) {
        self.follow_without(tip, &Change::default(), effects);
    }

    /// Follows the node to another branch at the request of a client that controls the run. The transactions `dropped` leave the pool,
    /// with their senders' later ones. All other pending transactions stay, as far as they fit.
    pub(super) fn reorganise(&mut self, tip: &Arc<Link>, dropped: &[TransactionId], effects: &mut Vec<Effect>) {
        let dropped: BTreeSet<TransactionId> = dropped.iter().copied().collect();
        self.held.forget(&dropped);
        // The dropped ones may be submitted again.
        self.recent.clear();
        let change = Change { dropped, pending: self.store.in_forging_order().cloned().collect() };
        self.follow_without(tip, &change, effects);
        // At a node that had not seen the reverted block yet, the dropped transactions are still pending.
        for id in change.dropped.iter().filter(|id| self.store.contains(id)).copied().collect::<Vec<_>>() {
            for gone in self.store.with_later(&id) {
                self.remove(&gone, effects);
            }
        }
    }

    /// As [`TransactionPool::follow`], but without the reverted transactions that `change` drops.
    fn follow_without(&mut self, tip: &Arc<Link>, change: &Change, effects: &mut Vec<Effect>) {
        let moves = tip.id() != self.tip.id();
        self.move_to(tip, change, effects);
        if moves {
            self.take_held(effects);
        }
    }

    fn move_to(&mut self, tip: &Arc<Link>, change: &Change, effects: &mut Vec<Effect>) {
        if tip.id() != self.tip.id() {
            self.recent.clear();
            // To an empty pool the blocks between say nothing.
            if self.store.len() == 0 && tip.descends_from(&self.tip) {
                self.tip = tip.clone();
                return;
            }
            let mut forward = Vec::new();
            let mut at = tip.clone();
            while !self.tip.descends_from(&at) {
                forward.push(at.clone());
                at = at.parent().expect("all chains share genesis").clone();
            }
            if at.id() == self.tip.id() {
                for link in forward.iter().rev() {
                    self.block_applied(link, effects);
                }
            } else {
                self.replay(&at, tip, change, effects);
            }
        }
        self.expire(effects);
    }

    fn block_applied(&mut self, link: &Arc<Link>, effects: &mut Vec<Effect>) {
        let mut rivalled = Vec::new();
        if !link.block().transactions.is_empty() && self.store.has_one_of(&self.tree.applied(link).senders) {
            rivalled = self.hold_against(link.block(), effects);
        }
        self.tip = link.clone();
        if !rivalled.is_empty() {
            self.fit_anew(&rivalled, effects);
        }
        if self.tree.config().milestones.is_milestone(link.height()) {
            self.purge(effects);
        }
    }

    /// Checks the pool against a block on top of its tip. The block's transactions leave the pool. If another transaction of a block does
    /// not fit a sender's pending ones, all of these leave. With `rival_empties_sender` off, returns these senders instead.
    fn hold_against(&mut self, block: &Block, effects: &mut Vec<Effect>) -> Vec<Address> {
        let mut rivalled = Vec::new();
        if block.transactions.is_empty() || self.store.len() == 0 {
            return rivalled;
        }
        let tree = self.tree.clone();
        let (terms, applied) = (tree.terms(self.tip.height()), tree.applied(&self.tip));
        // The senders' wallets in the pool, as the block changes them; `None` once a sender was dropped.
        let mut wallets: BTreeMap<Address, Option<Wallet>> = BTreeMap::new();
        for transaction in &block.transactions {
            let sender = transaction.sender_address();
            if self.store.count_of(&sender) == 0 {
                continue;
            }
            let wallet =
                wallets.entry(sender).or_insert_with(|| Some(self.pool_wallet(&sender, applied.state.wallet(&sender))));
            if self.store.contains(&transaction.id()) {
                self.remove(&transaction.id(), effects);
            } else if let Some(held) = wallet {
                if apply::check(transaction, held, &applied.state, &terms).is_ok() {
                    apply::apply_to_sender(transaction, held, terms.rules.ledger.votes);
                } else {
                    *wallet = None;
                    match tree.rules().pool.rival_empties_sender {
                        true => self.remove_all_of(&sender, effects),
                        false => rivalled.push(sender),
                    }
                }
            }
        }
        rivalled
    }

    /// Keeps the pending transactions of these senders that fit on the pool's tip, and drops the others.
    fn fit_anew(&mut self, senders: &[Address], effects: &mut Vec<Effect>) {
        let (tree, applied) = (self.tree.clone(), self.tree.applied(&self.tip));
        let terms = tree.terms(self.tip.height());
        for sender in senders {
            let own: Vec<_> = self.store.sender(sender).into_iter().flat_map(|sender| sender.own()).cloned().collect();
            let chain = applied.state.wallet(sender);
            let mut wallet = chain.map_or_else(|| Wallet::cold(*sender, 0), |wallet| Wallet::clone(wallet));
            for one in own {
                match apply::check(&one, &wallet, &applied.state, &terms) {
                    Ok(()) => apply::apply_to_sender(&one, &mut wallet, terms.rules.ledger.votes),
                    Err(_) => self.remove(&one.id(), effects),
                }
            }
        }
    }

    /// The sender's wallet with its pending transactions applied. It is computed again if the chain's wallet has changed.
    pub(super) fn pool_wallet(&self, sender: &Address, chain: Option<&Arc<Wallet>>) -> Wallet {
        let pending = self.store.sender(sender);
        if let Some(wallet) = pending.and_then(|pending| pending.wallet_on(chain)) {
            return wallet.clone();
        }
        let mut wallet = chain.map_or_else(|| Wallet::cold(*sender, 0), |wallet| Wallet::clone(wallet));
        for transaction in pending.into_iter().flat_map(|pending| pending.own()) {
            apply::apply_to_sender(transaction, &mut wallet, self.tree.rules().ledger.votes);
        }
        wallet
    }

    /// Follows a rollback to `common` and on to `tip`. Only the transactions of reverted blocks return, oldest first, and the reference
    /// emits no event. With `rollback_empties_pool` off, pending transactions stay as far as they fit.
    fn replay(&mut self, common: &Arc<Link>, tip: &Arc<Link>, change: &Change, effects: &mut Vec<Effect>) {
        let mut reverted = Vec::new();
        let mut at = self.tip.clone();
        while at.id() != common.id() {
            reverted.push(at.clone());
            at = at.parent().expect("the common block is below").clone();
        }
        let kept = match self.tree.rules().pool.rollback_empties_pool {
            true => change.pending.clone(),
            false => self.store.in_forging_order().cloned().collect(),
        };
        self.store.clear();
        self.tip = tip.clone();
        let applied = self.tree.applied(tip);
        let reverted = reverted.iter().rev().flat_map(|link| &link.block().transactions);
        let tree = self.tree.clone();
        let rules = &tree.rules().pool;
        let most = if rules.rollback_empties_pool { rules.max_transactions } else { usize::MAX };
        let reverted = reverted.map(|transaction| (transaction, usize::MAX));
        for (transaction, most) in reverted.chain(kept.iter().map(|transaction| (transaction, most))) {
            if change.dropped.contains(&transaction.id()) || self.store.len() >= most {
                continue;
            }
            if self.tree.block_of(tip, &transaction.id()).is_none() {
                let _applied_or_dropped = self.admit(transaction, &applied);
            }
        }
        while !rules.rollback_empties_pool && self.store.len() > rules.max_transactions {
            let lowest = self.store.to_give_way(rules.eviction_compares_fee_with_nonce).map(|one| one.id());
            self.store.forget(&lowest.expect("the pool is not empty"));
        }
        effects.push(Effect::Observe(Event::PoolReplaced(self.store.by_arrival())));
    }

    /// Handles a block that the node began to accept and could not apply. The block's transactions leave the pool all the
    /// same, and the remaining ones are added anew. Source: consensus.md 3.3 row 8, 8 Q4.
    pub(super) fn block_not_applied(&mut self, block: &Block, effects: &mut Vec<Effect>) {
        if self.tree.rules().pool.refused_block_takes_transactions {
            self.hold_against(block, effects);
        }
        self.recent.clear();
        let pending: Vec<_> = self.store.in_forging_order().cloned().collect();
        self.store.clear();
        let (applied, mut additions) = (self.tree.applied(&self.tip), Additions::default());
        for transaction in pending {
            // The additions hold the outcome.
            let _added_or_rejected = self.make_room_and_admit(&transaction, &applied, &mut additions, effects);
        }
        additions.announce(effects);
        effects.push(Effect::Observe(Event::PoolReplaced(self.store.by_arrival())));
    }

    /// Drops expired transactions, each with its sender's later ones. Source: consensus.md 5.6.
    fn expire(&mut self, effects: &mut Vec<Effect>) {
        let age = u64::from(self.tree.rules().pool.max_transaction_age) * u64::from(self.tree.slots().blocktime());
        let last = u64::from(self.now.seconds().0).checked_sub(age).and_then(|last| u32::try_from(last).ok());
        while let Some(id) = self.store.first_expired(self.tip.height().0, last) {
            for transaction in self.store.with_later(&id).iter().filter_map(|id| self.store.forget(id)) {
                effects.push(Effect::Observe(Event::PoolExpired(transaction)));
            }
        }
    }

    /// Drops transactions that violate the new milestone's schema, each with its sender's later ones.
    /// Source: consensus.md 5.6.
    fn purge(&mut self, effects: &mut Vec<Effect>) {
        let tree = self.tree.clone();
        let context = tree.config().transaction_context(self.tip.height());
        for transaction in self.store.by_arrival() {
            if transaction.check(&context).is_ok() {
                continue;
            }
            let gone = self.store.with_later(&transaction.id());
            for purged in gone.iter().filter_map(|id| self.store.forget(id)) {
                let event = match tree.rules().pool.uneven_removal_events {
                    true => Event::PoolPurged(purged),
                    false => Event::PoolRemoved(purged.id()),
                };
                effects.push(Effect::Observe(event));
            }
        }
    }

    /// Drops a transaction, and reports it by an event.
    pub(super) fn remove(&mut self, id: &TransactionId, effects: &mut Vec<Effect>) {
        if self.store.forget(id).is_some() {
            effects.push(Effect::Observe(Event::PoolRemoved(*id)));
        }
    }

    fn remove_all_of(&mut self, sender: &Address, effects: &mut Vec<Effect>) {
        let own = self.store.sender(sender).into_iter().flat_map(|sender| sender.own());
        for id in own.map(|transaction| transaction.id()).collect::<Vec<_>>() {
            self.remove(&id, effects);
        }
    }

    /// The height at which a transaction expires. Version 1 carries its time. Version 2 carries the height itself, in transfers only.
    /// Source: consensus.md 5.1.
    pub(super) fn expires_at(&self, transaction: &SignedTransaction) -> Option<i64> {
        let content = transaction.transaction();
        match (content.version, &content.asset) {
            (Version::One(timestamp), _) => {
                let age = i64::from(self.now.seconds().0) - i64::from(timestamp.0);
                let blocks = age.div_euclid(i64::from(self.tree.slots().blocktime()));
                Some(i64::from(self.tip.height().0) - blocks + i64::from(self.tree.rules().pool.max_transaction_age))
            }
            (Version::Two(_), Asset::Transfer { expiration, .. }) if *expiration > 0 => Some(i64::from(*expiration)),
            (Version::Two(_), _) => None,
        }
    }
}
