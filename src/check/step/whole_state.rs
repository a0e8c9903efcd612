//! The whole state at the end of a round, with touched and untouched wallets, and the lists by which wallets are found.
//! Source: consensus.md 4.1, 4.2.

use super::{BlockStep, account::Account, equal};
use crate::{
    ledger::{State, Wallet},
    protocol::{Address, TransactionId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
};

/// Checks, at the end of each round, that the wallets that the block did not touch are unchanged. The ledger says which those
/// are; their members are compared one by one.
pub(super) fn untouched(step: &BlockStep<'_>) -> Result<(), String> {
    if !step.ends_round() {
        return Ok(());
    }
    let touched: BTreeSet<Address> = step.changed.iter().map(|(wallet, _)| wallet.address).collect();
    let mut left: BTreeMap<Address, Account> =
        step.before.wallets().map(|wallet| (wallet.address, Account::of(wallet))).collect();
    for wallet in step.after.wallets() {
        let before = left.remove(&wallet.address);
        if touched.contains(&wallet.address) {
            continue;
        }
        let (found, before) = (Account::of(wallet), before.unwrap_or_default());
        found.held_against(&before, &wallet.address)?;
        if found != before {
            let (found, expected) = (&found.delegate, &before.delegate);
            return Err(format!("delegate of {}: found {found:?}, expected {expected:?}", wallet.address));
        }
    }
    match left.keys().next() {
        Some(gone) => Err(format!("{gone} had a wallet before the block and has none after it")),
        None => Ok(()),
    }
}

/// Checks that the lists of usernames, locks, hashes and businesses match the wallets, and that a wallet is found by its
/// address.
pub(super) fn indexes(step: &BlockStep<'_>) -> Result<(), String> {
    if !step.ends_round() {
        return Ok(());
    }
    let state = step.after;
    let mut held = WalletKeys::default();
    for (place, wallet) in state.wallets().enumerate() {
        equal(format_args!("place of {}", wallet.address), wallet.first_seen as usize, place)?;
        if state.wallet(&wallet.address).is_none_or(|found| found != wallet) {
            return Err(format!("{} is not found by its address", wallet.address));
        }
        held.add(&Account::of(wallet), wallet.address);
    }
    held.held_against(state)
}

/// The keys under which wallets are found.
#[derive(Default)]
struct WalletKeys {
    usernames: Vec<(Arc<str>, Address)>,
    live: usize,
    locks: Vec<(TransactionId, Address)>,
    hashes: Vec<(String, Address)>,
    businesses: Vec<Address>,
}

impl WalletKeys {
    fn add(&mut self, account: &Account, address: Address) {
        self.usernames.extend(account.delegate.iter().map(|delegate| (Arc::clone(&delegate.username), address)));
        self.live += usize::from(account.delegate.as_ref().is_some_and(|delegate| !delegate.resigned));
        let locks = account.htlc.iter().flat_map(|htlc| htlc.open.keys());
        self.locks.extend(locks.map(|id| (*id, address)));
        let hashes = account.hashes.iter().flatten();
        self.hashes.extend(hashes.map(|hash| (format!("{hash:?}"), address)));
        self.businesses.extend(account.business.iter().map(|_| address));
    }

    fn held_against(self, state: &State) -> Result<(), String> {
        let named = |wallet: &Arc<Wallet>| (wallet.username().unwrap_or_default().into(), wallet.address);
        same("usernames", state.delegates().map(named).collect(), self.usernames)?;
        equal("delegates that have not resigned", state.live_delegates(), self.live)?;
        same("open locks", state.locks().map(|(id, owner)| (*id, *owner)).collect(), self.locks)?;
        let hashes = state.ipfs_hashes().map(|(hash, owner)| (hex::encode(hash), *owner)).collect();
        same("hashes", hashes, self.hashes)?;
        same("businesses", state.businesses().map(|wallet| wallet.address).collect(), self.businesses)
    }
}

/// Compares two lists without regard to order.
fn same<T: Ord + Debug>(what: &str, mut listed: Vec<T>, mut held: Vec<T>) -> Result<(), String> {
    listed.sort();
    held.sort();
    if listed == held {
        return Ok(());
    }
    let alone = |these: &[T], those: &[T]| {
        these.iter().find(|one| those.binary_search(one).is_err()).map(|one| format!("{one:?}"))
    };
    let (extra, lacking) = (alone(&listed, &held), alone(&held, &listed));
    Err(match (extra, lacking) {
        (Some(extra), _) => format!("the list of {what} names {extra}, which no wallet has"),
        (None, Some(lacking)) => format!("the list of {what} leaves out {lacking}"),
        (None, None) => format!("the list of {what} names one of them twice"),
    })
}
