//! A small ledger of the judge's own: the wallets a block touches, transaction by transaction, straight from the
//! contract's tables. It knows neither the order of preconditions nor their messages, nor vote weights, nor indexes.

use super::{Step, equal};
use crate::{
    ledger::{Balance, State, Wallet, wallet::Lock},
    protocol::{
        Address, Arktoshi, Asset, PublicKey, SignedTransaction, TransactionId, Vote,
        crypto::sha256,
        keys::multisignature_key,
        transaction::{Expiration, Version},
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// All that the judge follows of a wallet.
#[derive(Clone, Default, PartialEq, Eq)]
struct Account {
    balance: i128,
    locked: i128,
    nonce: u64,
    key: Option<PublicKey>,
    vote: Option<PublicKey>,
    second: Option<PublicKey>,
    owners: Option<(u8, Vec<PublicKey>)>,
    username: Option<String>,
    resigned: bool,
    hashes: usize,
    /// Resigned or not.
    business: Option<bool>,
    /// By genesis hash, resigned or not.
    bridgechains: BTreeMap<[u8; 32], bool>,
}

/// The judge's view of a block, halfway through.
struct Model<'a> {
    step: &'a Step<'a>,
    accounts: BTreeMap<Address, Account>,
    /// Locks opened in the block, and `None` for those closed in it.
    locks: BTreeMap<TransactionId, Option<(Address, Lock)>>,
    usernames: BTreeSet<&'a str>,
    hashes: BTreeSet<&'a [u8]>,
    /// Delegates registered in the block and not resigned, less those that resigned.
    newly_live: i64,
}

/// Each transaction, held against what was before it.
pub(super) fn allowed(step: &Step<'_>) -> Result<(), String> {
    Model::new(step).play().map(drop)
}

/// The wallets after the block, held against the judge's.
pub(super) fn effects(step: &Step<'_>) -> Result<(), String> {
    let Ok(mut model) = Model::new(step).play() else { return Ok(()) };
    let header = &step.block.header;
    let generator = model.account(header.generator.address(step.before.network_byte()));
    generator.balance += i128::from(header.reward.value()) + i128::from(header.total_fee.value());
    for (wallet, old) in &step.changed {
        let expected = match model.accounts.remove(&wallet.address) {
            Some(expected) => expected,
            None => old.map(Account::of).unwrap_or_default(),
        };
        Account::of(wallet).held_against(&expected, wallet)?;
    }
    // What the judge touched and the block did not.
    for (address, expected) in model.accounts {
        match step.after.wallet(&address) {
            Some(wallet) => Account::of(wallet).held_against(&expected, wallet)?,
            None if expected == Account::default() => {}
            None => return Err(format!("{address} should have a wallet")),
        }
    }
    Ok(())
}

/// One block more, its reward and fees, for its forger and for nobody else.
pub(super) fn statistics(step: &Step<'_>) -> Result<(), String> {
    let header = &step.block.header;
    for (wallet, old) in &step.changed {
        let Some(new) = wallet.delegate.as_deref() else { continue };
        let old = old.and_then(|old| old.delegate.as_deref());
        let (blocks, rewards, fees) = old.map_or((0, Balance::ZERO, Balance::ZERO), |old| {
            (old.produced_blocks, old.forged_rewards, old.forged_fees)
        });
        let forged = wallet.public_key == Some(header.generator);
        let gain = |amount: Arktoshi| if forged { Balance::from(amount) } else { Balance::ZERO };
        equal(format_args!("blocks of {}", new.username), new.produced_blocks, blocks + u32::from(forged))?;
        equal(format_args!("rewards of {}", new.username), new.forged_rewards, rewards + gain(header.reward))?;
        equal(format_args!("fees of {}", new.username), new.forged_fees, fees + gain(header.total_fee))?;
    }
    Ok(())
}

impl Account {
    fn of(wallet: &Wallet) -> Self {
        let bridgechains = wallet.business.iter().flat_map(|business| &business.bridgechains);
        Self {
            balance: wallet.balance.0,
            locked: wallet.locked_balance().0,
            nonce: wallet.nonce.0,
            key: wallet.public_key,
            vote: wallet.vote,
            second: wallet.second_public_key,
            owners: wallet.multi_signature.as_ref().map(|owners| (owners.min, owners.public_keys.clone())),
            username: wallet.username().map(str::to_owned),
            resigned: wallet.delegate.as_ref().is_some_and(|delegate| delegate.resigned),
            hashes: wallet.ipfs.as_ref().map_or(0, |hashes| hashes.len()),
            business: wallet.business.as_ref().map(|business| business.resigned),
            bridgechains: bridgechains.map(|(hash, bridgechain)| (*hash, bridgechain.resigned)).collect(),
        }
    }

    fn held_against(&self, expected: &Self, wallet: &Wallet) -> Result<(), String> {
        equal(format_args!("balance of {}", wallet.address), self.balance, expected.balance)?;
        equal(format_args!("locked balance of {}", wallet.address), self.locked, expected.locked)?;
        let open: i128 =
            wallet.htlc.iter().flat_map(|htlc| htlc.locks.values()).map(|lock| i128::from(lock.amount.value())).sum();
        equal(format_args!("coin in open locks of {}", wallet.address), open, expected.locked)?;
        equal(format_args!("nonce of {}", wallet.address), self.nonce, expected.nonce)?;
        // A key is known as soon as anybody names it; that it is known is no part of what is judged.
        let same = Self { key: None, ..self.clone() } == Self { key: None, ..expected.clone() };
        let unknown = expected.key.is_some_and(|key| self.key != Some(key));
        if same && !unknown {
            Ok(())
        } else {
            Err(format!("attributes of {}: not what its transactions make of it", wallet.address))
        }
    }
}

impl<'a> Model<'a> {
    fn new(step: &'a Step<'a>) -> Self {
        Self {
            step,
            accounts: BTreeMap::new(),
            locks: BTreeMap::new(),
            usernames: BTreeSet::new(),
            hashes: BTreeSet::new(),
            newly_live: 0,
        }
    }

    /// Delegates that have not resigned.
    fn live(&self) -> i64 {
        let before = self.step.before.delegates().filter_map(|wallet| wallet.delegate.as_ref());
        before.filter(|delegate| !delegate.resigned).count() as i64 + self.newly_live
    }

    fn play(mut self) -> Result<Self, String> {
        for transaction in &self.step.block.transactions {
            self.transaction(transaction)
                .map_err(|why| format!("transaction {} ({}): {why}", transaction.id(), transaction.kind().name()))?;
        }
        Ok(self)
    }

    fn state(&self) -> &'a State {
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

    /// An open lock and its owner.
    fn lock(&self, id: &TransactionId) -> Option<(Address, Lock)> {
        match self.locks.get(id) {
            Some(known) => known.clone(),
            None => {
                let owner = self
                    .state()
                    .wallets()
                    .find(|wallet| wallet.htlc.as_ref().is_some_and(|htlc| htlc.locks.contains_key(id)))?;
                Some((owner.address, owner.htlc.as_ref()?.locks[id].clone()))
            }
        }
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
        authorised(transaction, &before)?;
        self.allowed(transaction, &before)?;
        let sender = self.account(address);
        sender.balance -= cost;
        sender.nonce += 1;
        sender.key = Some(content.sender);
        self.take_effect(transaction, address);
        Ok(())
    }

    /// The preconditions of its type. Source: consensus.md 4.5.
    fn allowed(&mut self, transaction: &SignedTransaction, sender: &Account) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        let state = self.state();
        match transaction.asset() {
            Asset::SecondSignature { .. } if sender.second.is_some() => refuse("its sender has a second key"),
            Asset::DelegateRegistration { .. } if sender.username.is_some() => refuse("its sender is a delegate"),
            Asset::DelegateRegistration { username }
                if self.usernames.contains(username.as_str()) || taken(state, username) =>
            {
                refuse("the username is taken")
            }
            Asset::Vote(Vote::For(_)) if sender.vote.is_some() => refuse("its sender has voted"),
            Asset::Vote(Vote::For(key)) if self.by_key(key).resigned => refuse("it votes for a resigned delegate"),
            Asset::Vote(Vote::Against(key)) if sender.vote != Some(*key) => refuse("its sender has no such vote"),
            Asset::Vote(vote) if self.by_key(vote.delegate()).username.is_none() => refuse("it votes for no delegate"),
            Asset::MultiSignature { min, public_keys } => {
                let key = multisignature_key(*min, public_keys).map_err(|error| error.to_string())?;
                match self.by_key(&key).owners {
                    Some(_) => refuse("the wallet is a multisignature wallet already"),
                    None => Ok(()),
                }
            }
            Asset::Ipfs { multihash } if self.hashes.contains(multihash.as_slice()) || state.has_ipfs(multihash) => {
                refuse("the hash is registered")
            }
            Asset::DelegateResignation => {
                let seats = self.step.tree.config().milestones.at(state.height()).active_delegates;
                match (&sender.username, sender.resigned) {
                    (None, _) => refuse("its sender is no delegate"),
                    (_, true) => refuse("its sender has resigned"),
                    _ if self.live() <= i64::from(seats) => refuse("too few delegates would be left"),
                    _ => Ok(()),
                }
            }
            Asset::HtlcLock { expiration, .. } => self.outlasts_a_round(*expiration),
            Asset::HtlcClaim { lock, unlock_secret } => match self.lock(lock) {
                None => refuse("there is no such lock"),
                Some((_, lock)) if self.has_expired(&lock) => refuse("the lock has expired"),
                Some((_, lock)) if sha256(unlock_secret) != lock.secret_hash => refuse("it is not the lock's secret"),
                Some(_) => Ok(()),
            },
            Asset::HtlcRefund { lock } => match self.lock(lock) {
                None => refuse("there is no such lock"),
                Some((_, lock)) if !self.has_expired(&lock) => refuse("the lock has not expired"),
                Some(_) => Ok(()),
            },
            asset => allowed_to_business(asset, sender),
        }
    }

    fn has_expired(&self, lock: &Lock) -> bool {
        match lock.expiration {
            Expiration::EpochTime(seconds) => seconds <= self.state().timestamp().0,
            Expiration::BlockHeight(height) => height <= self.state().height().0,
        }
    }

    fn outlasts_a_round(&self, expiration: Expiration) -> Result<(), String> {
        let (tree, state) = (self.step.tree, self.state());
        let seats = tree.config().milestones.at(state.height()).active_delegates;
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
                self.usernames.insert(username);
                self.newly_live += 1;
                self.account(address).username = Some(username.clone());
            }
            Asset::DelegateResignation => {
                self.newly_live -= 1;
                self.account(address).resigned = true;
            }
            Asset::Vote(Vote::For(key)) => self.account(address).vote = Some(*key),
            Asset::Vote(Vote::Against(_)) => self.account(address).vote = None,
            Asset::MultiSignature { min, public_keys } => {
                if let Ok(key) = multisignature_key(*min, public_keys) {
                    self.by_key(&key).owners = Some((*min, public_keys.clone()));
                }
            }
            Asset::Ipfs { multihash } => {
                self.hashes.insert(multihash);
                self.account(address).hashes += 1;
            }
            Asset::HtlcLock { amount, secret_hash, expiration, recipient } => {
                let lock = Lock {
                    amount: *amount,
                    recipient: *recipient,
                    timestamp: self.step.block.header.timestamp,
                    vendor_field: transaction.transaction().vendor_field.clone(),
                    secret_hash: *secret_hash,
                    expiration: *expiration,
                };
                self.account(address).locked += i128::from(amount.value());
                self.locks.insert(transaction.id(), Some((address, lock)));
            }
            Asset::HtlcClaim { lock: id, .. } => {
                if let Some((owner, lock)) = self.lock(id) {
                    self.close(id, owner, &lock);
                    self.account(lock.recipient).balance += i128::from(lock.amount.value());
                }
            }
            Asset::HtlcRefund { lock: id } => {
                if let Some((owner, lock)) = self.lock(id) {
                    self.close(id, owner, &lock);
                    self.account(owner).balance += i128::from(lock.amount.value());
                }
            }
            asset => change_business(asset, self.account(address)),
        }
    }

    fn close(&mut self, id: &TransactionId, owner: Address, lock: &Lock) {
        self.account(owner).locked -= i128::from(lock.amount.value());
        self.locks.insert(*id, None);
    }
}

/// The signatures that its sender owes. Source: consensus.md 4.4.
fn authorised(transaction: &SignedTransaction, sender: &Account) -> Result<(), String> {
    let content = transaction.transaction();
    let holds = match &sender.owners {
        Some((min, keys)) => matches!(transaction.verify_multi(*min, keys), Ok(true)),
        None => transaction.verified(),
    };
    if !holds {
        return Err("its sender did not sign it".to_owned());
    }
    match &sender.second {
        Some(key) if !transaction.verify_second(key) => Err("the second signature is not there".to_owned()),
        None if content.second_signature.is_some() => {
            Err("it has a second signature and nobody to have made it".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether a delegate of this name is registered: asked of the wallets and not of the index.
fn taken(state: &State, username: &str) -> bool {
    state.wallets().any(|wallet| wallet.username() == Some(username))
}

fn allowed_to_business(asset: &Asset, sender: &Account) -> Result<(), String> {
    let refuse = |why: &str| Err(why.to_owned());
    let bridgechain = match asset {
        Asset::BridgechainRegistration { genesis_hash, .. } => Some(genesis_hash),
        Asset::BridgechainResignation { bridgechain } | Asset::BridgechainUpdate { bridgechain, .. } => {
            Some(bridgechain)
        }
        _ => None,
    };
    let known = bridgechain.and_then(|hash| sender.bridgechains.get(hash));
    match (asset, sender.business) {
        (Asset::BusinessRegistration { .. }, Some(_)) => refuse("its sender is a business"),
        (Asset::BusinessResignation | Asset::BusinessUpdate { .. }, None) => refuse("its sender is no business"),
        (Asset::BusinessResignation | Asset::BusinessUpdate { .. }, Some(true)) => refuse("the business has resigned"),
        (Asset::BusinessResignation, _) if sender.bridgechains.values().any(|resigned| !resigned) => {
            refuse("a bridgechain of the business has not resigned")
        }
        _ if bridgechain.is_none() => Ok(()),
        (_, None | Some(true)) => refuse("its sender is no business, or one that has resigned"),
        (Asset::BridgechainRegistration { .. }, _) if known.is_some() => refuse("the bridgechain is registered"),
        (Asset::BridgechainRegistration { .. }, _) => Ok(()),
        _ if known != Some(&false) => refuse("there is no such bridgechain, or it has resigned"),
        _ => Ok(()),
    }
}

fn change_business(asset: &Asset, sender: &mut Account) {
    match asset {
        Asset::BusinessRegistration { .. } => sender.business = Some(false),
        Asset::BusinessResignation => sender.business = Some(true),
        Asset::BridgechainRegistration { genesis_hash, .. } => {
            sender.bridgechains.insert(*genesis_hash, false);
        }
        Asset::BridgechainResignation { bridgechain } => {
            sender.bridgechains.insert(*bridgechain, true);
        }
        _ => {}
    }
}
