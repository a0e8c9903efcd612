//! How a pool follows its node's chain. Source: consensus.md 5.6, 5.7.

use super::{TransactionPool, chain_wallet};
use crate::{
    actors::{Effect, Event},
    ledger::{
        Link, State, Wallet,
        apply::{self, Terms},
    },
    protocol::{Address, Asset, SignedTransaction, TransactionId, transaction::Version},
};
use std::{collections::BTreeSet, sync::Arc};

impl TransactionPool {
    /// Moves the pool from its tip to `tip`: forward over the blocks between, or, where the chain was rolled back, by
    /// emptying itself and taking the reverted transactions up again.
    pub(super) fn follow(&mut self, tip: &Arc<Link>, effects: &mut Vec<Effect>) {
        if tip.id() == self.tip.id() {
            return;
        }
        self.recent.clear();
        self.recent_by_age.clear();
        let mut forward = Vec::new();
        let mut at = tip.clone();
        while !self.tip.descends_from(&at) {
            forward.push(at.clone());
            at = at.parent().expect("all chains share genesis").clone();
        }
        if at.id() == self.tip.id() {
            self.tip = tip.clone();
            for link in forward.iter().rev() {
                self.block_applied(link, effects);
            }
        } else {
            self.replay(&at, tip, effects);
        }
        self.expire(effects);
    }

    /// A block has confirmed transactions: they leave, and what their parties have pending is held against the chain.
    fn block_applied(&mut self, link: &Link, effects: &mut Vec<Effect>) {
        let mut parties = BTreeSet::new();
        for transaction in &link.block().transactions {
            if self.pending.contains_key(&transaction.id()) && !planted!(PoolKeepsForged) {
                self.forget(&transaction.id());
                effects.push(Effect::Observe(Event::PoolRemoved(transaction.id())));
            }
            parties.insert(transaction.sender_address());
            parties.extend(apply::recipients(transaction));
        }
        self.wallets.clear();
        for party in parties {
            if self.by_sender.contains_key(&party) {
                self.pool_wallet(&party, effects);
            }
        }
    }

    /// The sender's wallet with its pending transactions applied, made from the chain's if need be. If one of them no
    /// longer fits, all of the sender's leave the pool.
    pub(super) fn pool_wallet(&mut self, sender: &Address, effects: &mut Vec<Effect>) -> &mut Wallet {
        if !self.wallets.contains_key(sender) {
            let tree = self.tree.clone();
            let (terms, applied) = (tree.terms(self.tip.height()), tree.applied(&self.tip));
            let wallet = self.replayed_wallet(sender, &applied.state, &terms).unwrap_or_else(|| {
                for id in self.of_sender(sender) {
                    self.forget(&id);
                    effects.push(Effect::Observe(Event::PoolRemoved(id)));
                }
                chain_wallet(&applied.state, sender)
            });
            self.wallets.insert(*sender, wallet);
        }
        self.wallets.get_mut(sender).expect("it was made just now if it was not there")
    }

    fn replayed_wallet(&self, sender: &Address, state: &State, terms: &Terms<'_>) -> Option<Wallet> {
        let mut wallet = chain_wallet(state, sender);
        for id in self.by_sender.get(sender).into_iter().flat_map(|own| own.values()) {
            let transaction = &self.pending[id].transaction;
            apply::check(transaction, &wallet, state, terms).ok()?;
            apply::apply_to_sender(transaction, &mut wallet);
        }
        Some(wallet)
    }

    /// Rolled back below `common` and on to `tip`: only the reverted blocks' transactions come back, oldest first, and
    /// without a word.
    fn replay(&mut self, common: &Arc<Link>, tip: &Arc<Link>, effects: &mut Vec<Effect>) {
        let mut reverted = Vec::new();
        let mut at = self.tip.clone();
        while at.id() != common.id() {
            reverted.push(at.clone());
            at = at.parent().expect("the common block is below").clone();
        }
        self.pending.clear();
        self.by_fee.clear();
        self.by_sender.clear();
        self.wallets.clear();
        self.tip = tip.clone();
        for link in reverted.iter().rev() {
            for transaction in &link.block().transactions {
                if self.tree.block_of(tip, &transaction.id()).is_none() && !planted!(PoolLosesReverted) {
                    let _applied_or_dropped = self.admit(transaction, effects);
                }
            }
        }
    }

    /// Drops what is too old, each with its sender's later transactions. Source: consensus.md 5.6.
    fn expire(&mut self, effects: &mut Vec<Effect>) {
        let height = self.tip.height().0;
        let expired: Vec<TransactionId> = self
            .pending
            .values()
            .filter(|pending| self.expires_at(&pending.transaction).is_some_and(|at| at <= i64::from(height)))
            .map(|pending| pending.transaction.id())
            .collect();
        for id in expired {
            let Some(first) = self.pending.get(&id) else { continue };
            let (sender, arrival) = (first.transaction.sender_address(), first.arrival);
            let later = self.by_sender[&sender].range(arrival..).map(|(_, id)| *id).collect::<Vec<_>>();
            for id in later.into_iter().rev() {
                let transaction = self.pending[&id].transaction.clone();
                self.forget(&id);
                effects.push(Effect::Observe(Event::PoolExpired(transaction)));
            }
        }
    }

    /// The height at which a transaction is too old. Version 1 carries its time, version 2, in transfers only, the
    /// height itself. Source: consensus.md 5.1.
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
