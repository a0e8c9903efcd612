//! The pending transactions of a pool, and their orders. Every look-up of admission, choice, expiry or eviction has an index here, so
//! none of them scans all pending transactions.

use super::nonce;
use crate::{
    ledger::{Wallet, codec::saved},
    protocol::{
        Address, Arktoshi, Asset, Kind, SignedTransaction, TransactionId, hashing::IdHash, transaction::Version,
    },
};
use indexmap::{IndexMap, IndexSet};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// The number of the cheapest transactions, and then of the oldest senders, among which the transaction to evict is searched.
/// Source: consensus.md 5.4.
const EVICTION_DEPTH: usize = 100;

/// An estimate of the bytes that a pending transaction takes in all indices.
const EACH: usize = 300;

/// Place in the order of arrival.
pub(super) type Arrival = u64;

/// All pending transactions.
#[derive(Clone, Default)]
pub(super) struct Store {
    pending: IndexMap<TransactionId, (Arrival, Arc<SignedTransaction>), IdHash>,
    /// Highest fee first, then first come.
    by_fee: BTreeMap<(Reverse<Arktoshi>, Arrival), Arc<SignedTransaction>>,
    senders: IndexMap<Address, Sender, IdHash>,
    /// Senders by when their first pending transaction came.
    by_age: BTreeMap<Arrival, Address>,
    /// Transfers of version 2 that expire, by height.
    by_expiration: BTreeSet<(u32, Arrival, TransactionId)>,
    /// Version 1, by timestamp.
    by_timestamp: BTreeSet<(u32, Arrival, TransactionId)>,
    usernames: BTreeSet<(String, Arrival)>,
    /// By lock; one request can hold two of one lock.
    claims: BTreeSet<(TransactionId, Arrival)>,
    refunds: BTreeSet<(TransactionId, Arrival)>,
    arrivals: Arrival,
}

/// A sender with pending transactions.
#[derive(Clone)]
pub(super) struct Sender {
    entered: Arrival,
    /// In the order of arrival, which is that of nonces.
    own: Vec<(Arrival, Arc<SignedTransaction>)>,
    /// The chain's wallet from which `wallet` was computed. It is out of date as soon as the chain has another.
    base: Option<Arc<Wallet>>,
    /// That wallet with all of `own` applied.
    wallet: Wallet,
    /// True if one of the sender's transactions has left since `wallet` was computed.
    stale: bool,
}

impl Sender {
    /// The pending ones, by arrival.
    pub(super) fn own(&self) -> impl DoubleEndedIterator<Item = &Arc<SignedTransaction>> {
        self.own.iter().map(|(_, transaction)| transaction)
    }

    /// The wallet with all of them applied, if it was computed from this wallet of the chain's and is current.
    pub(super) fn wallet_on(&self, chain: Option<&Arc<Wallet>>) -> Option<&Wallet> {
        let same = match (&self.base, chain) {
            (Some(base), Some(chain)) => Arc::ptr_eq(base, chain),
            (None, None) => true,
            _ => false,
        };
        (same && !self.stale).then_some(&self.wallet)
    }
}

impl Store {
    /// Bytes it takes beside its own and beside the transactions, which others share.
    pub(super) fn bytes(&self) -> usize {
        self.pending.len() * EACH + self.senders.len() * size_of::<(Address, Sender)>()
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn contains(&self, id: &TransactionId) -> bool {
        self.pending.contains_key(id)
    }

    pub(super) fn sender(&self, address: &Address) -> Option<&Sender> {
        self.senders.get(address)
    }

    /// The number of pending transactions of a sender.
    pub(super) fn count_of(&self, address: &Address) -> usize {
        self.senders.get(address).map_or(0, |sender| sender.own.len())
    }

    /// Returns true if one of these senders has something pending.
    pub(super) fn has_one_of(&self, senders: &IndexSet<Address, IdHash>) -> bool {
        match self.senders.len() < senders.len() {
            true => self.senders.keys().any(|sender| senders.contains(sender)),
            false => senders.iter().any(|sender| self.senders.contains_key(sender)),
        }
    }

    pub(super) fn has_username(&self, username: &str) -> bool {
        let from = (username.to_owned(), 0);
        self.usernames.range(from..).next().is_some_and(|(pending, _)| pending == username)
    }

    /// Returns true if a claim or refund of a lock is pending. `kind` says which.
    pub(super) fn has_release(&self, kind: Kind, lock: &TransactionId) -> bool {
        let pending = if kind == Kind::HtlcClaim { &self.claims } else { &self.refunds };
        pending.range((*lock, 0)..=(*lock, Arrival::MAX)).next().is_some()
    }

    pub(super) fn has_refunds(&self) -> bool {
        !self.refunds.is_empty()
    }

    /// Adds a transaction. `wallet` is its sender's wallet with the transaction applied, computed from the chain's `base`.
    pub(super) fn keep(&mut self, transaction: &Arc<SignedTransaction>, base: Option<Arc<Wallet>>, wallet: Wallet) {
        let (id, arrival, address) = (transaction.id(), self.arrivals, transaction.sender_address());
        self.arrivals += 1;
        self.pending.insert(id, (arrival, transaction.clone()));
        self.by_fee.insert((Reverse(transaction.fee()), arrival), transaction.clone());
        match self.senders.get_mut(&address) {
            Some(sender) => {
                sender.own.push((arrival, transaction.clone()));
                (sender.base, sender.wallet, sender.stale) = (base, wallet, false);
            }
            None => {
                let own = vec![(arrival, transaction.clone())];
                self.senders.insert(address, Sender { entered: arrival, own, base, wallet, stale: false });
                self.by_age.insert(arrival, address);
            }
        }
        self.index(transaction, arrival, true);
    }

    /// Drops a transaction. Its sender's wallet has to be computed again from the chain's.
    pub(super) fn forget(&mut self, id: &TransactionId) -> Option<Arc<SignedTransaction>> {
        let (arrival, transaction) = self.pending.swap_remove(id)?;
        self.by_fee.remove(&(Reverse(transaction.fee()), arrival));
        self.index(&transaction, arrival, false);
        let address = transaction.sender_address();
        if let Some(sender) = self.senders.get_mut(&address) {
            sender.own.retain(|(own, _)| *own != arrival);
            sender.stale = true;
            if sender.own.is_empty() {
                self.by_age.remove(&sender.entered);
                self.senders.swap_remove(&address);
            }
        }
        Some(transaction)
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        *self = Self { arrivals: self.arrivals, ..Self::default() };
    }

    /// A transaction and all later ones of its sender, the last first.
    pub(super) fn with_later(&self, id: &TransactionId) -> Vec<TransactionId> {
        let Some((arrival, transaction)) = self.pending.get(id) else { return Vec::new() };
        let Some(sender) = self.senders.get(&transaction.sender_address()) else { return Vec::new() };
        let later = sender.own.iter().rev().take_while(|(own, _)| own >= arrival);
        later.map(|(_, transaction)| transaction.id()).collect()
    }

    /// An expired transaction: a transfer at this height, or version 1 of this time or before.
    pub(super) fn first_expired(&self, height: u32, timestamp: Option<u32>) -> Option<TransactionId> {
        let by_height = self.by_expiration.first().filter(|(expiration, ..)| *expiration <= height);
        let by_time = || self.by_timestamp.first().filter(|(given, ..)| timestamp.is_some_and(|last| *given <= last));
        by_height.or_else(by_time).map(|(_, _, id)| *id)
    }

    /// All pending ones, by arrival.
    pub(super) fn by_arrival(&self) -> Vec<Arc<SignedTransaction>> {
        let mut all: Vec<_> = self.pending.values().collect();
        all.sort_unstable_by_key(|(arrival, _)| *arrival);
        all.into_iter().map(|(_, transaction)| transaction.clone()).collect()
    }

    /// All pending ones in forging order: highest fee first, then first come, and before each of version 2 its sender's
    /// lower nonces. The iterator computes only as many as the caller takes. Source: consensus.md 5.5.
    pub(super) fn in_forging_order(&self) -> impl Iterator<Item = &Arc<SignedTransaction>> {
        // By sender, the arrival of the last transaction that was returned already.
        let mut come: IndexMap<Address, Arrival, IdHash> = IndexMap::default();
        self.by_fee.iter().flat_map(move |((_, arrival), transaction)| {
            let address = transaction.sender_address();
            let own = &self.senders[&address].own[..];
            let at = own.partition_point(|(other, _)| other < arrival);
            let due = if nonce(transaction).is_none() {
                &own[at..=at]
            } else {
                let last = come.get(&address).copied();
                let from = own.partition_point(|(other, _)| last.is_some_and(|last| *other <= last));
                if last.is_none_or(|last| last < *arrival) {
                    come.insert(address, *arrival);
                    &own[from..=at]
                } else {
                    &[]
                }
            };
            let arrival = *arrival;
            // Transactions of version 1 have no nonce: each comes in its own turn.
            due.iter().filter(move |(own, one)| *own == arrival || nonce(one).is_some()).map(|(_, one)| one)
        })
    }

    /// The transaction that a full pool evicts. It is the first of the cheapest hundred that is its sender's last one; equal fees are
    /// searched newest first. If there is none, it is the cheapest of the last ones of the first hundred senders. By a quirk of the
    /// reference that second search compares fees with nonces. Source: consensus.md 5.4, 8 Q13.
    pub(super) fn to_give_way(&self, compare_with_nonce: bool) -> Option<&Arc<SignedTransaction>> {
        let cheapest = self.by_fee.iter().rev().take(EVICTION_DEPTH);
        let is_last = |arrival: &Arrival, transaction: &SignedTransaction| {
            let last = self.senders[&transaction.sender_address()].own.last();
            last.is_some_and(|(last, _)| last == arrival)
        };
        for ((_, arrival), transaction) in cheapest {
            if is_last(arrival, transaction) {
                return Some(transaction);
            }
        }
        let senders = self.by_age.values().take(EVICTION_DEPTH);
        let lasts = senders.filter_map(|address| self.senders[address].own.last()).map(|(_, last)| last);
        lasts.reduce(|lowest, last| {
            let bar = if compare_with_nonce { nonce(lowest).unwrap_or(0) } else { lowest.fee().value() };
            if last.fee().value() < bar { last } else { lowest }
        })
    }

    fn index(&mut self, transaction: &SignedTransaction, arrival: Arrival, enters: bool) {
        fn set<T: Ord>(index: &mut BTreeSet<T>, entry: T, enters: bool) {
            if enters {
                index.insert(entry);
            } else {
                index.remove(&entry);
            }
        }
        let (id, content) = (transaction.id(), transaction.transaction());
        if let Version::One(timestamp) = content.version {
            set(&mut self.by_timestamp, (timestamp.0, arrival, id), enters);
        }
        match transaction.asset() {
            Asset::Transfer { expiration, .. } if *expiration > 0 && nonce(transaction).is_some() => {
                set(&mut self.by_expiration, (*expiration, arrival, id), enters);
            }
            Asset::DelegateRegistration { username } => set(&mut self.usernames, (username.clone(), arrival), enters),
            Asset::HtlcClaim { lock, .. } => set(&mut self.claims, (*lock, arrival), enters),
            Asset::HtlcRefund { lock } => set(&mut self.refunds, (*lock, arrival), enters),
            _ => {}
        }
    }
}

/// The ids submitted since the last block. The oldest are evicted first. Source: consensus.md 5.1 row 1.
#[derive(Clone, Default)]
pub(super) struct RecentIds {
    ids: IndexSet<TransactionId, IdHash>,
    by_age: VecDeque<TransactionId>,
}

impl RecentIds {
    /// Returns true if an id has been submitted before. Records it.
    pub(super) fn seen(&mut self, id: TransactionId, limit: usize) -> bool {
        if !self.ids.insert(id) {
            return true;
        }
        self.by_age.push_back(id);
        while self.by_age.len() > limit
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.ids.swap_remove(&oldest);
        }
        false
    }

    /// Removes all ids, because the tip has moved.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.by_age.clear();
    }
}

saved!(struct RecentIds { ids, by_age });

saved!(struct Store {
    pending, by_fee, senders, by_age, by_expiration, by_timestamp, usernames, claims, refunds, arrivals,
});
// The wallet is computed again from the chain's when it is needed.
saved!(struct Sender {
    entered, own; base = None, wallet = Wallet::cold(Address::from_bytes([0; 21]), 0), stale = true,
});
