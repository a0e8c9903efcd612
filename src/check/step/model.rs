//! A small second ledger: the wallets that a block touches, transaction by transaction, straight from the contract's
//! tables. It has no order of preconditions, no messages and no indexes. It reads wallets before the block from the
//! first ledger, and computes the changes by itself.

use super::{
    BlockStep,
    account::{Account, Delegate, Hex, Locks, OpenLock, Owners},
    authority, business, equal,
};
use crate::{
    ledger::{State, Wallet, rules::VoteShare},
    protocol::{
        Address, Asset, Milestone, PublicKey, SignedTransaction, TransactionId, Vote,
        crypto::sha256,
        keys::multisignature_key,
        transaction::{Expiration, Version},
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// The state of the second ledger in the middle of a block.
struct Model<'a> {
    step: &'a BlockStep<'a>,
    accounts: BTreeMap<Address, Account>,
    /// The sender of each lock that the block opened; `None` for a lock that it closed.
    locks: BTreeMap<TransactionId, Option<Address>>,
    /// Registered in the block.
    usernames: Vec<&'a str>,
    hashes: Vec<&'a [u8]>,
    /// Delegates that resigned in the block.
    resigned: usize,
}

/// Checks the preconditions of each transaction against the state before it.
pub(super) fn allowed(step: &BlockStep<'_>) -> Result<(), String> {
    Model::new(step).play().map(drop)
}

/// Compares the wallets after the block with those of the second ledger.
pub(super) fn effects(step: &BlockStep<'_>) -> Result<(), String> {
    let Ok(mut model) = Model::new(step).play() else { return Ok(()) };
    let header = &step.block.header;
    let generator = model.by_key(&header.generator);
    generator.balance += i128::from(header.reward.value()) + i128::from(header.total_fee.value());
    generator.key = Some(header.generator);
    for (wallet, old) in &step.changed {
        let expected = match model.accounts.remove(&wallet.address) {
            Some(expected) => expected,
            None => old.map(Account::of).unwrap_or_default(),
        };
        Account::of(wallet).held_against(&expected, &wallet.address)?;
    }
    // Wallets that only the second ledger touched.
    for (address, expected) in model.accounts {
        match step.after.wallet(&address) {
            Some(wallet) => Account::of(wallet).held_against(&expected, &address)?,
            None if expected == Account::default() => {}
            None => return Err(format!("{address} should have a wallet")),
        }
    }
    Ok(())
}

impl<'a> Model<'a> {
    fn new(step: &'a BlockStep<'a>) -> Self {
        let (accounts, locks) = (BTreeMap::new(), BTreeMap::new());
        Self { step, accounts, locks, usernames: Vec::new(), hashes: Vec::new(), resigned: 0 }
    }

    fn play(mut self) -> Result<Self, String> {
        for transaction in &self.step.block.transactions {
            self.transaction(transaction)
                .map_err(|why| format!("transaction {} ({}): {why}", transaction.id(), transaction.kind().name()))?;
        }
        Ok(self)
    }

    fn before(&self) -> &'a State {
        self.step.before
    }

    fn account(&mut self, address: Address) -> &mut Account {
        let state = self.step.before;
        self.accounts
            .entry(address)
            .or_insert_with(|| state.wallet(&address).map(|wallet| Account::of(wallet)).unwrap_or_default())
    }

    fn by_key(&mut self, key: &PublicKey) -> &mut Account {
        self.account(key.address(self.step.before.network_byte()))
    }

    /// The milestone that transactions of the block are bound by. Source: consensus.md 4.4, 8 Q24.
    fn milestone(&self) -> &'a Milestone {
        let (tip, rules) = (self.before().height(), &self.step.tree.rules().ledger);
        self.step.tree.config().milestones.at(if rules.transaction_rules_lag { tip } else { tip.next() })
    }

    /// An open lock and its owner.
    fn lock(&mut self, id: &TransactionId) -> Option<(Address, OpenLock)> {
        let owner = match self.locks.get(id) {
            Some(known) => (*known)?,
            None => {
                let has_it =
                    |wallet: &&Arc<Wallet>| wallet.htlc.as_ref().is_some_and(|htlc| htlc.locks.contains_key(id));
                self.before().wallets().find(has_it)?.address
            }
        };
        let lock = self.account(owner).htlc.as_ref()?.open.get(id)?.clone();
        Some((owner, lock))
    }

    fn transaction(&mut self, transaction: &'a SignedTransaction) -> Result<(), String> {
        let content = transaction.transaction();
        let address = transaction.sender_address();
        let before = self.account(address).clone();
        let fee = i128::from(transaction.fee().value());
        let payments: i128 = match &content.asset {
            Asset::MultiPayment { payments } => payments.iter().map(|one| i128::from(one.amount.value())).sum(),
            _ => 0,
        };
        let cost = fee + payments + i128::from(transaction.amount().value());
        if let Version::Two(nonce) = content.version {
            equal("nonce", nonce.0, before.nonce + 1)?;
        }
        if before.balance < cost {
            return Err(format!("it costs {cost}, its sender has {}", before.balance));
        }
        self.in_force(transaction)?;
        authority::authorised(self.step, transaction, &before)?;
        self.allowed(transaction, &before)?;
        let sender = self.account(address);
        sender.balance -= cost;
        sender.nonce += 1;
        sender.key = Some(content.sender);
        self.take_effect(transaction, address);
        Ok(())
    }

    /// Checks that version and type are in force. Source: consensus.md 4.4.
    fn in_force(&self, transaction: &SignedTransaction) -> Result<(), String> {
        let milestone = self.milestone();
        let version = if milestone.aip11 { 2 } else { 1 };
        let found = if matches!(transaction.transaction().version, Version::One(_)) { 1 } else { 2 };
        equal("version", found, version)?;
        let in_force = match transaction.asset() {
            Asset::Transfer { .. }
            | Asset::SecondSignature { .. }
            | Asset::DelegateRegistration { .. }
            | Asset::Vote(_) => true,
            Asset::MultiSignatureLegacy { .. } => false,
            Asset::HtlcLock { .. } | Asset::HtlcClaim { .. } | Asset::HtlcRefund { .. } => {
                milestone.aip11 && milestone.htlc_enabled
            }
            _ => milestone.aip11,
        };
        if in_force { Ok(()) } else { Err("its type is not in force".to_owned()) }
    }

    /// The preconditions of its type. Source: consensus.md 4.5.
    fn allowed(&mut self, transaction: &SignedTransaction, sender: &Account) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        let state = self.before();
        match transaction.asset() {
            Asset::SecondSignature { .. } | Asset::DelegateRegistration { .. } if sender.owners.is_some() => {
                refuse("its sender is a multisignature wallet")
            }
            Asset::SecondSignature { .. } if sender.second.is_some() => refuse("its sender has a second key"),
            Asset::DelegateRegistration { .. } if sender.delegate.is_some() => refuse("its sender is a delegate"),
            Asset::DelegateRegistration { username }
                if self.usernames.contains(&username.as_str()) || taken(state, username) =>
            {
                refuse("the username is taken")
            }
            Asset::Vote(Vote::For(key)) if self.is_one_too_many(key, sender) => refuse("its sender has voted"),
            Asset::Vote(Vote::For(key)) if self.by_key(key).has_resigned() => {
                refuse("it votes for a resigned delegate")
            }
            Asset::Vote(Vote::Against(key)) if !sender.votes.contains(key) => refuse("its sender has no such vote"),
            Asset::Vote(vote) if self.by_key(vote.delegate()).delegate.is_none() => refuse("it votes for no delegate"),
            Asset::MultiSignature { min, public_keys } => {
                authority::registration(self.step, transaction)?;
                let key = multisignature_key(*min, public_keys).map_err(|error| error.to_string())?;
                match self.by_key(&key).owners {
                    Some(_) => refuse("the wallet is a multisignature wallet already"),
                    None => Ok(()),
                }
            }
            Asset::Ipfs { multihash } if self.hashes.contains(&multihash.as_slice()) || has_hash(state, multihash) => {
                refuse("the hash is registered")
            }
            Asset::DelegateResignation => match &sender.delegate {
                None => refuse("its sender is no delegate"),
                Some(delegate) if delegate.resigned => refuse("its sender has resigned"),
                Some(_) if self.live() <= self.milestone().active_delegates as usize => {
                    refuse("too few delegates would be left")
                }
                Some(_) => Ok(()),
            },
            Asset::HtlcLock { expiration, .. } => self.outlasts_a_round(*expiration),
            Asset::HtlcClaim { lock, unlock_secret } => match self.lock(lock) {
                None => refuse("there is no such lock"),
                Some((_, lock)) if self.has_expired(&lock) => refuse("the lock has expired"),
                Some((_, lock)) if sha256(unlock_secret) != lock.secret_hash.0 => refuse("it is not the lock's secret"),
                Some(_) => Ok(()),
            },
            Asset::HtlcRefund { lock } => match self.lock(lock) {
                None => refuse("there is no such lock"),
                Some((_, lock)) if !self.has_expired(&lock) => refuse("the lock has not expired"),
                Some(_) => Ok(()),
            },
            asset => business::allowed(asset, sender),
        }
    }

    /// Returns true if the sender has as many votes as a wallet may have, or has votes of full weight with one for
    /// this delegate.
    fn is_one_too_many(&self, key: &PublicKey, sender: &Account) -> bool {
        let rule = self.step.tree.rules().ledger.votes;
        let is_second = rule.weight == VoteShare::Full && sender.votes.contains(key);
        is_second || sender.votes.len() as u64 >= u64::from(rule.most)
    }

    /// Delegates that have not resigned.
    fn live(&self) -> usize {
        let before = self.before().wallets().filter_map(|wallet| wallet.delegate.as_ref());
        before.filter(|delegate| !delegate.resigned).count() + self.usernames.len() - self.resigned
    }

    fn has_expired(&self, lock: &OpenLock) -> bool {
        match lock.expires {
            (1, seconds) => seconds <= self.before().timestamp().0,
            (_, height) => height <= self.before().height().0,
        }
    }

    fn outlasts_a_round(&self, expiration: Expiration) -> Result<(), String> {
        let (tree, state) = (self.step.tree, self.before());
        let seats = self.milestone().active_delegates;
        let least = if tree.rules().ledger.minimum_lock_expiration { seats } else { 0 };
        let outlasts = match expiration {
            Expiration::EpochTime(seconds) => seconds > state.timestamp().0 + tree.slots().blocktime() * least,
            Expiration::BlockHeight(height) => height > state.height().0 + least,
        };
        if outlasts { Ok(()) } else { Err("the lock expires too soon".to_owned()) }
    }

    fn take_effect(&mut self, transaction: &'a SignedTransaction, address: Address) {
        match transaction.asset() {
            Asset::Transfer { amount, recipient, .. } => {
                self.account(*recipient).balance += i128::from(amount.value());
            }
            Asset::MultiPayment { payments } => {
                for payment in payments {
                    self.account(payment.recipient).balance += i128::from(payment.amount.value());
                }
            }
            Asset::SecondSignature { public_key } => self.account(address).second = Some(*public_key),
            Asset::DelegateRegistration { username } => {
                let registered = delegates(self.before()) + self.usernames.len();
                self.usernames.push(username);
                self.account(address).delegate = Some(Delegate {
                    username: username.as_str().into(),
                    registered: registered as u32,
                    ..Delegate::default()
                });
            }
            Asset::DelegateResignation => {
                self.resigned += 1;
                if let Some(delegate) = &mut self.account(address).delegate {
                    delegate.resigned = true;
                }
            }
            Asset::Vote(Vote::For(key)) => self.account(address).votes.push(*key),
            Asset::Vote(Vote::Against(key)) => {
                // Its last one for the delegate.
                let votes = &mut self.account(address).votes;
                if let Some(last) = (0..votes.len()).rev().find(|place| votes[*place] == *key) {
                    votes.remove(last);
                }
            }
            Asset::MultiSignature { min, public_keys } => {
                if let Ok(key) = multisignature_key(*min, public_keys) {
                    let shared = self.by_key(&key);
                    shared.key = Some(key);
                    shared.owners = Some(Owners { min: *min, keys: public_keys.clone() });
                }
            }
            Asset::Ipfs { multihash } => {
                self.hashes.push(multihash);
                self.account(address).hashes.get_or_insert_default().push(Hex(multihash.clone()));
            }
            Asset::HtlcLock { amount, secret_hash, expiration, recipient } => {
                let lock = OpenLock {
                    amount: amount.value(),
                    recipient: *recipient,
                    time: self.step.block.header.timestamp.0,
                    vendor_field: transaction.transaction().vendor_field.clone(),
                    secret_hash: Hex(*secret_hash),
                    expires: expiration.numbers(),
                };
                let locks = self.account(address).htlc.get_or_insert_default();
                locks.sum += i128::from(lock.amount);
                locks.open.insert(transaction.id(), lock);
                self.locks.insert(transaction.id(), Some(address));
            }
            Asset::HtlcClaim { lock: id, .. } => {
                if let Some((owner, lock)) = self.lock(id) {
                    self.close(id, owner);
                    self.account(lock.recipient).balance += i128::from(lock.amount);
                }
            }
            Asset::HtlcRefund { lock: id } => {
                if let Some((owner, lock)) = self.lock(id) {
                    self.close(id, owner);
                    self.account(owner).balance += i128::from(lock.amount);
                }
            }
            asset => business::take_effect(asset, self.account(address)),
        }
    }

    fn close(&mut self, id: &TransactionId, owner: Address) {
        let locks: &mut Locks = self.account(owner).htlc.get_or_insert_default();
        if let Some(closed) = locks.open.remove(id) {
            locks.sum -= i128::from(closed.amount);
        }
        self.locks.insert(*id, None);
    }
}

/// Returns true if a delegate of this name is registered: by the wallets and not by the index.
fn taken(state: &State, username: &str) -> bool {
    state.wallets().any(|wallet| wallet.username() == Some(username))
}

/// Returns true if a hash is registered: by the wallets and not by the index.
fn has_hash(state: &State, multihash: &[u8]) -> bool {
    let mut hashes = state.wallets().filter_map(|wallet| wallet.ipfs.as_ref()).flat_map(|hashes| hashes.iter());
    hashes.any(|known| known == multihash)
}

/// Delegates ever registered.
fn delegates(state: &State) -> usize {
    state.wallets().filter(|wallet| wallet.delegate.is_some()).count()
}
