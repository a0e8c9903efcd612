//! The chain of one head, indexed: blocks by height, transactions by number, wallet and type.
//!
//! All of it is persistent: a head shares what it has in common with the one before, and a reader that holds a head
//! holds its index, whatever is applied or rolled back meanwhile. What is found needs no check against the chain.

use crate::{
    ledger::{Link, apply::recipients},
    protocol::{
        Address, Asset, BlockHeader, Height, PublicKey, SignedTransaction, Timestamp, TransactionId,
        transaction::{Kind, Version},
    },
};
use imbl::{HashMap, Vector};
use memchr::memmem::Finder;
use std::sync::Arc;

/// A block with what lists look at.
#[derive(Debug)]
pub struct Entry {
    link: Arc<Link>,
    /// The address of its generator.
    pub generator: Address,
    /// Of its transactions, in their order.
    pub facts: Box<[Facts]>,
    /// The vendor fields of its transactions, one after another with a zero byte between.
    vendor_fields: Box<str>,
    /// Where each of them begins, and whose it is.
    vendor_starts: Box<[(u32, u32)]>,
}

/// The numbers of a transaction, beside each other for all of a block, so that a million are looked at in no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub amount: u64,
    pub fee: u64,
    /// Said in version 2, the sender's running number in version 1.
    pub nonce: u64,
    /// Its own in version 1, its block's in version 2.
    pub timestamp: Timestamp,
    pub kind: Kind,
    pub version: u8,
}

/// The place of a transaction: its block's height and its index there. Ordered as the chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub height: Height,
    pub index: u32,
}

/// A transaction on a chain: its block and its index in it, from 0.
#[derive(Clone, Debug)]
pub struct Place {
    pub entry: Arc<Entry>,
    pub index: usize,
}

/// The places of the transactions of a wallet, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub sent: Vector<Spot>,
    /// The transactions that a filter by recipient alone finds. Source: api.md 4.2.
    pub received: Vector<Spot>,
    /// In any role.
    pub any: Vector<Spot>,
}

/// A chain from genesis to a tip.
#[derive(Clone)]
pub struct Chain {
    /// From genesis on.
    blocks: Vector<Arc<Entry>>,
    wallets: HashMap<Address, History>,
    /// Of each type, in the order of [`Kind::ALL`], with the fee paid.
    kinds: [Vector<(Spot, u64)>; Kind::ALL.len()],
    /// The heights of each generator's blocks.
    forged: HashMap<PublicKey, Vector<Height>>,
    /// The claim or refund of each lock.
    unlocks: HashMap<TransactionId, Spot>,
    /// How many transactions above genesis have a timestamp of their own, so that time and place may order differently.
    own_timestamps: u64,
}

impl Entry {
    /// The block in the tree.
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Its header.
    pub fn header(&self) -> &BlockHeader {
        &self.link.block().header
    }

    /// Its height.
    pub fn height(&self) -> Height {
        self.link.height()
    }

    /// The transactions whose vendor field has a text without zero bytes in it, each once, ascending.
    pub fn with_vendor_field(&self, text: &Finder<'_>) -> Vec<usize> {
        let found = text.find_iter(self.vendor_fields.as_bytes()).filter_map(|at| {
            let after = self.vendor_starts.partition_point(|(start, _)| *start as usize <= at);
            Some(self.vendor_starts.get(after.checked_sub(1)?)?.1 as usize)
        });
        let mut found: Vec<usize> = found.collect();
        found.dedup();
        found
    }

    /// Transactions of the chain below it.
    pub fn first(&self) -> u64 {
        self.link.transactions() - self.facts.len() as u64
    }
}

impl Place {
    /// The transaction there.
    pub fn transaction(&self) -> &Arc<SignedTransaction> {
        &self.entry.link.block().transactions[self.index]
    }

    /// Its numbers.
    pub fn facts(&self) -> &Facts {
        &self.entry.facts[self.index]
    }

    /// The block it lies in.
    pub fn link(&self) -> &Arc<Link> {
        &self.entry.link
    }
}

/// The recipient as it is stored: one that the transaction names. A vote of version 1 names its sender.
pub fn stored_recipient(transaction: &SignedTransaction) -> Option<Address> {
    let is_old_vote =
        matches!((transaction.transaction().version, transaction.asset()), (Version::One(_), Asset::Vote(_)));
    transaction.asset().recipient().or(is_old_vote.then(|| transaction.sender_address()))
}

impl Chain {
    /// The chain that ends in a block.
    pub fn new(tip: &Arc<Link>, network: u8) -> Self {
        let mut chain = Self {
            blocks: Vector::new(),
            wallets: HashMap::new(),
            kinds: Default::default(),
            forged: HashMap::new(),
            unlocks: HashMap::new(),
            own_timestamps: 0,
        };
        chain.move_to(tip, network);
        chain
    }

    /// Makes it the chain that ends in `tip`: takes off the blocks that this one has not, and puts on those it has.
    pub fn move_to(&mut self, tip: &Arc<Link>, network: u8) {
        let (mut missing, mut at) = (Vec::new(), Some(tip.clone()));
        while let Some(link) = at.take_if(|link| !self.holds(link)) {
            at = link.parent();
            missing.push(link);
        }
        let common = at.map_or(0, |link| link.height().0 as usize);
        while self.blocks.len() > common {
            self.pop();
        }
        missing.into_iter().rev().for_each(|link| self.push(&link, network));
    }

    /// The block at a height.
    pub fn at(&self, height: Height) -> Option<&Arc<Entry>> {
        self.blocks.get((height.0 as usize).checked_sub(1)?)
    }

    /// True if a block is on this chain.
    pub fn holds(&self, link: &Link) -> bool {
        self.at(link.height()).is_some_and(|entry| entry.link.id() == link.id())
    }

    /// All blocks, from genesis on.
    pub fn blocks(&self) -> &Vector<Arc<Entry>> {
        &self.blocks
    }

    /// The number of transactions that it holds.
    pub fn transactions(&self) -> u64 {
        self.blocks.last().map_or(0, |entry| entry.link.transactions())
    }

    /// The transaction with so many older ones (0 is the first of the genesis block).
    pub fn transaction(&self, number: u64) -> Option<Place> {
        let above = partition(&self.blocks, |entry| entry.link.transactions() <= number);
        let entry = self.blocks.get(above)?.clone();
        Some(Place { index: (number - entry.first()) as usize, entry })
    }

    /// The transaction at a spot of this chain.
    pub fn place(&self, spot: Spot) -> Option<Place> {
        Some(Place { entry: self.at(spot.height)?.clone(), index: spot.index as usize })
    }

    /// What a wallet did, if it did anything.
    pub fn history(&self, address: &Address) -> Option<&History> {
        self.wallets.get(address)
    }

    /// The places of the transactions of a type, oldest first, with their fees.
    pub fn of_kind(&self, kind: Kind) -> &Vector<(Spot, u64)> {
        &self.kinds[kind as usize]
    }

    /// The heights of a generator's blocks, ascending.
    pub fn forged_by(&self, generator: &PublicKey) -> Option<&Vector<Height>> {
        self.forged.get(generator)
    }

    /// The claim or refund of a lock.
    pub fn unlock(&self, lock: &TransactionId) -> Option<Place> {
        self.place(*self.unlocks.get(lock)?)
    }

    /// True if the order of the chain is the order of time for all transactions.
    pub fn is_in_time_order(&self) -> bool {
        self.own_timestamps == 0
    }

    /// The lowest height whose block is not older than an instant, in seconds since the epoch; one above the tip if
    /// all are older.
    pub fn height_since(&self, timestamp: i64) -> Height {
        let older = partition(&self.blocks, |entry| i64::from(entry.header().timestamp.0) < timestamp);
        Height(older as u32 + 1)
    }

    fn push(&mut self, link: &Arc<Link>, network: u8) {
        let block = link.block();
        let height = link.height();
        let mut facts = Vec::with_capacity(block.transactions.len());
        let (mut vendor_fields, mut vendor_starts) = (String::new(), Vec::new());
        for (index, transaction) in block.transactions.iter().enumerate() {
            let spot = Spot { height, index: index as u32 };
            let sender = transaction.sender_address();
            let (version, nonce, timestamp) = match transaction.transaction().version {
                Version::One(timestamp) => (1, None, timestamp),
                Version::Two(nonce) => (2, Some(nonce.0), block.header.timestamp),
            };
            let sent = &mut self.wallets.entry(sender).or_default().sent;
            sent.push_back(spot);
            let nonce = nonce.unwrap_or(sent.len() as u64);
            let (amount, fee) = (transaction.amount().value(), transaction.fee().value());
            facts.push(Facts { amount, fee, nonce, timestamp, kind: transaction.kind(), version });
            self.each_party(transaction, |history, is_recipient| {
                history.any.push_back(spot);
                if is_recipient {
                    history.received.push_back(spot);
                }
            });
            self.kinds[transaction.kind() as usize].push_back((spot, fee));
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.unlocks.insert(*lock, spot);
            }
            self.own_timestamps += u64::from(version == 1 && height > Height::GENESIS);
            if let Some(text) = &transaction.transaction().vendor_field {
                vendor_starts.push((vendor_fields.len() as u32, index as u32));
                vendor_fields.push_str(text);
                vendor_fields.push('\0');
            }
        }
        self.forged.entry(block.header.generator).or_default().push_back(height);
        self.blocks.push_back(Arc::new(Entry {
            link: link.clone(),
            generator: block.header.generator.address(network),
            facts: facts.into(),
            vendor_fields: vendor_fields.into(),
            vendor_starts: vendor_starts.into(),
        }));
    }

    /// Takes the newest block off: of every list its transactions are the last, the newest first.
    fn pop(&mut self) {
        let Some(entry) = self.blocks.pop_back() else { return };
        let block = entry.link.block();
        for transaction in block.transactions.iter().rev() {
            if let Some(history) = self.wallets.get_mut(&transaction.sender_address()) {
                history.sent.pop_back();
            }
            self.each_party(transaction, |history, is_recipient| {
                history.any.pop_back();
                if is_recipient {
                    history.received.pop_back();
                }
            });
            self.kinds[transaction.kind() as usize].pop_back();
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.unlocks.remove(lock);
            }
            let is_old = matches!(transaction.transaction().version, Version::One(_));
            self.own_timestamps -= u64::from(is_old && entry.height() > Height::GENESIS);
        }
        if let Some(heights) = self.forged.get_mut(&block.header.generator) {
            heights.pop_back();
        }
    }

    /// Every wallet that takes part in a transaction, once, and whether it is found as its recipient.
    fn each_party(&mut self, transaction: &SignedTransaction, mut act: impl FnMut(&mut History, bool)) {
        let sender = transaction.sender_address();
        let mut parties = recipients(transaction);
        // What has no stored recipient is found under its sender.
        let sender_is_recipient = stored_recipient(transaction).is_none_or(|recipient| recipient == sender);
        parties.sort_unstable();
        parties.dedup();
        for party in &parties {
            act(self.wallets.entry(*party).or_default(), true);
        }
        if !parties.contains(&sender) {
            act(self.wallets.entry(sender).or_default(), sender_is_recipient);
        }
    }
}

/// How many entries from the first on pass, if those that do come first.
fn partition<T: Clone>(items: &Vector<T>, passes: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if passes(&items[middle]) { low = middle + 1 } else { high = middle }
    }
    low
}
