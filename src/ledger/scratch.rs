//! The state that a forger sees while it chooses transactions: the chain's state and, in a few small maps on top of it,
//! the changes by the transactions chosen so far. It has no vote weights and no indexes, and copies only the wallets that
//! change. Source: consensus.md 2.3, 8 Q2, 8 Q3, 8 Q23.

use super::{
    ApplyError, Balance, State, Wallet,
    apply::{self, Look, Terms},
    rules::PoolRules,
    wallet::{Lock, MultiSignature},
};
use crate::protocol::{Address, Asset, Height, SignedTransaction, Timestamp, TransactionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A forger's view: a state, and what the transactions chosen for the next block do to it.
pub struct Scratch<'a> {
    base: &'a State,
    rules: &'a PoolRules,
    wallets: BTreeMap<Address, Wallet>,
    usernames: BTreeSet<String>,
    ipfs: BTreeSet<Vec<u8>>,
    /// Locks made in the block, and `None` for those of the base that it has claimed or refunded.
    locks: BTreeMap<TransactionId, Option<(Address, Lock)>>,
    /// Delegates registered in the block, less those that resign in it.
    delegates: isize,
}

impl<'a> Scratch<'a> {
    /// A view without a chosen transaction. `rules` determine which changes the forger overlooks.
    pub fn new(base: &'a State, rules: &'a PoolRules) -> Self {
        Self {
            base,
            rules,
            wallets: BTreeMap::new(),
            usernames: BTreeSet::new(),
            ipfs: BTreeSet::new(),
            locks: BTreeMap::new(),
            delegates: 0,
        }
    }

    /// Applies a transaction on top of those before, as part of a block of this time; one that does not fit changes
    /// nothing.
    ///
    /// # Errors
    /// The first precondition that does not hold.
    pub fn try_apply(
        &mut self,
        transaction: &SignedTransaction,
        block: Timestamp,
        terms: &Terms<'_>,
    ) -> Result<(), ApplyError> {
        let address = transaction.sender_address();
        let mut sender = self.sender(address);
        apply::check(transaction, &sender, self, terms)?;
        apply::apply_to_sender(transaction, &mut sender, terms.rules.ledger.votes);
        self.wallets.insert(address, sender);
        self.apply_to_others(transaction, address, block);
        Ok(())
    }

    /// Checks a transaction on top of those before.
    ///
    /// # Errors
    /// The first precondition that does not hold.
    pub fn check(&self, transaction: &SignedTransaction, terms: &Terms<'_>) -> Result<(), ApplyError> {
        apply::check(transaction, &self.sender(transaction.sender_address()), self, terms)
    }

    fn sender(&self, address: Address) -> Wallet {
        match self.wallet(&address) {
            Some(wallet) => wallet.clone(),
            None => Wallet::cold(address, 0),
        }
    }

    fn apply_to_others(&mut self, transaction: &SignedTransaction, sender: Address, block: Timestamp) {
        match transaction.asset() {
            Asset::Transfer { amount, recipient, .. } => self.credit(*recipient, (*amount).into()),
            Asset::MultiPayment { payments } => {
                for payment in payments {
                    self.credit(payment.recipient, payment.amount.into());
                }
            }
            Asset::DelegateRegistration { username } => {
                self.usernames.insert(username.clone());
                self.delegates += 1;
            }
            Asset::DelegateResignation => self.delegates -= 1,
            Asset::MultiSignature { min, public_keys } => {
                if let Some(key) = transaction.registers() {
                    let wallet = self.wallet_mut(key.address(self.base.network_byte()));
                    wallet.public_key = Some(key);
                    wallet.multi_signature =
                        Some(Arc::new(MultiSignature { min: *min, public_keys: public_keys.clone() }));
                }
            }
            Asset::Ipfs { multihash } => {
                self.ipfs.insert(multihash.clone());
            }
            Asset::HtlcLock { .. } => {
                if let Some(lock) = Lock::of(transaction, block) {
                    self.locks.insert(transaction.id(), Some((sender, lock)));
                }
            }
            Asset::HtlcClaim { lock, .. } => {
                if let Some((_, lock)) = self.close(lock) {
                    self.credit(lock.recipient, lock.amount.into());
                }
            }
            Asset::HtlcRefund { lock } => {
                if let Some((owner, lock)) = self.close(lock)
                    && !self.rules.refunded_coin_hidden_from_forger
                {
                    self.credit(owner, lock.amount.into());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, id: &TransactionId) -> Option<(Address, Lock)> {
        let of_base = || Some((*self.base.lock_owner(id)?, self.base.lock(id)?.clone()));
        match self.locks.insert(*id, None) {
            Some(in_block) => in_block,
            None => of_base(),
        }
    }

    fn wallet_mut(&mut self, address: Address) -> &mut Wallet {
        let base = self.base;
        self.wallets.entry(address).or_insert_with(|| match base.wallet(&address) {
            Some(wallet) => Wallet::clone(wallet),
            None => Wallet::cold(address, 0),
        })
    }

    fn credit(&mut self, recipient: Address, amount: Balance) {
        self.wallet_mut(recipient).balance += amount;
    }

    fn belongs_to_delegate(&self, owner: &Address) -> bool {
        self.base.wallet(owner).is_some_and(|wallet| wallet.delegate.is_some())
    }
}

impl Look for Scratch<'_> {
    fn height(&self) -> Height {
        self.base.height()
    }

    fn timestamp(&self) -> Timestamp {
        self.base.timestamp()
    }

    fn network_byte(&self) -> u8 {
        self.base.network_byte()
    }

    fn wallet(&self, address: &Address) -> Option<&Wallet> {
        self.wallets.get(address).or_else(|| self.base.wallet(address).map(|wallet| &**wallet))
    }

    fn has_username(&self, username: &str) -> bool {
        self.usernames.contains(username) || self.base.address_of(username).is_some()
    }

    fn has_ipfs(&self, multihash: &[u8]) -> bool {
        self.ipfs.contains(multihash)
            || self
                .base
                .ipfs_owner(multihash)
                .is_some_and(|owner| !self.rules.ipfs_hashes_seen_of_delegates || self.belongs_to_delegate(owner))
    }

    fn lock(&self, id: &TransactionId) -> Option<&Lock> {
        match self.locks.get(id) {
            Some(changed) => changed.as_ref().map(|(_, lock)| lock),
            None => self.base.lock(id),
        }
    }

    fn live_delegates(&self) -> usize {
        let chosen = if self.rules.resignations_counted_on_chain { 0 } else { self.delegates };
        self.base.live_delegates().saturating_add_signed(chosen)
    }
}
