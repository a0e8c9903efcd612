//! Blocks and transactions with the values that lists read.

use crate::{
    ledger::Link,
    protocol::{
        Address, Arktoshi, BlockHeader, BlockId, Height, SignedTransaction, Timestamp,
        transaction::{Kind, Version},
    },
};
use memchr::memmem::Finder;
use std::sync::Arc;

/// A block with the values that lists read.
#[derive(Debug)]
pub struct Entry {
    link: Arc<Link>,
    /// The address of its generator.
    pub generator: Address,
    pub contents: Contents,
}

/// The part of a block's transactions that lists read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The facts, in the order of the transactions.
    pub facts: Box<[Facts]>,
    /// Their vendor fields, one after another with a zero byte behind each.
    pub vendor_fields: Box<str>,
    /// The byte at which each vendor field begins, and the index of its transaction.
    pub vendor_starts: Box<[(u32, u32)]>,
}

/// The numbers of a transaction. They are contiguous for all transactions of a block, so a scan of a million is fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub amount: u64,
    pub fee: u64,
    /// The nonce in version 2, the number among the sender's transactions in version 1.
    pub nonce: u64,
    /// Its own in version 1, its block's in version 2.
    pub timestamp: Timestamp,
    pub kind: Kind,
    pub version: u8,
}

/// The numbers of a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub version: u32,
    pub timestamp: Timestamp,
    pub height: Height,
    pub transactions: u32,
    pub amount: Arktoshi,
    pub fee: Arktoshi,
    pub reward: Arktoshi,
    pub payload_length: u32,
}

/// The place of a transaction: its block's height and its index there. Spots sort in the order of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub height: Height,
    pub index: u32,
}

/// A transaction on a chain.
#[derive(Clone, Debug)]
pub struct ConfirmedTransaction {
    transaction: Arc<SignedTransaction>,
    block: BlockId,
    spot: Spot,
    facts: Facts,
}

/// A block on a chain, without its transactions.
#[derive(Clone, Debug)]
pub struct ConfirmedBlock {
    id: BlockId,
    header: BlockHeader,
    generator: Address,
}

impl Entry {
    /// A block of a network.
    pub fn new(link: Arc<Link>, contents: Contents, network: u8) -> Self {
        Self { generator: link.block().header.generator.address(network), link, contents }
    }

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
}

impl Contents {
    /// The contents of a block. For a transaction without a nonce `running` gives, by index, its number among its sender's
    /// transactions, from 1.
    pub fn of(link: &Link, mut running: impl FnMut(usize) -> u64) -> Self {
        let block = link.block();
        let mut facts = Vec::with_capacity(block.transactions.len());
        let (mut vendor_fields, mut vendor_starts) = (String::new(), Vec::new());
        for (index, transaction) in block.transactions.iter().enumerate() {
            facts.push(Facts::of(transaction, block.header.timestamp, || running(index)));
            if let Some(text) = &transaction.transaction().vendor_field {
                vendor_starts.push((vendor_fields.len() as u32, index as u32));
                vendor_fields.push_str(text);
                vendor_fields.push('\0');
            }
        }
        Self { facts: facts.into(), vendor_fields: vendor_fields.into(), vendor_starts: vendor_starts.into() }
    }

    /// The indexes of the transactions whose vendor field contains `text`, each once, ascending. `text` must have no zero
    /// byte.
    pub fn with_vendor_field(&self, text: &Finder<'_>) -> Vec<usize> {
        let found = text.find_iter(self.vendor_fields.as_bytes()).filter_map(|at| {
            let after = self.vendor_starts.partition_point(|(start, _)| *start as usize <= at);
            Some(self.vendor_starts.get(after.checked_sub(1)?)?.1 as usize)
        });
        let mut found: Vec<usize> = found.collect();
        found.dedup();
        found
    }
}

impl Totals {
    /// The facts of a header.
    pub fn of(header: &BlockHeader) -> Self {
        Self {
            version: header.version,
            timestamp: header.timestamp,
            height: header.height,
            transactions: header.number_of_transactions,
            amount: header.total_amount,
            fee: header.total_fee,
            reward: header.reward,
            payload_length: header.payload_length,
        }
    }
}

impl Facts {
    /// The facts of a transaction in a block of this time. For a transaction without a nonce `running` gives its number
    /// among its sender's transactions, from 1.
    pub fn of(transaction: &SignedTransaction, block: Timestamp, running: impl FnOnce() -> u64) -> Self {
        let (version, nonce, timestamp) = match transaction.transaction().version {
            Version::One(timestamp) => (1, running(), timestamp),
            Version::Two(nonce) => (2, nonce.0, block),
        };
        let (amount, fee) = (transaction.amount().value(), transaction.fee().value());
        Self { amount, fee, nonce, timestamp, kind: transaction.kind(), version }
    }
}

impl ConfirmedTransaction {
    /// The transaction with an index in a block.
    pub fn of(entry: &Entry, index: usize) -> Option<Self> {
        Some(Self {
            transaction: entry.link.block().transactions.get(index)?.clone(),
            block: entry.link.id(),
            spot: Spot { height: entry.height(), index: index as u32 },
            facts: *entry.contents.facts.get(index)?,
        })
    }

    /// A transaction that was read from a block on disk.
    pub fn read(transaction: Arc<SignedTransaction>, block: BlockId, spot: Spot, facts: Facts) -> Self {
        Self { transaction, block, spot, facts }
    }

    /// The transaction itself.
    pub fn transaction(&self) -> &Arc<SignedTransaction> {
        &self.transaction
    }

    /// Its numbers.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The id of the block that it lies in.
    pub fn block_id(&self) -> BlockId {
        self.block
    }

    /// Its place on the chain.
    pub fn spot(&self) -> Spot {
        self.spot
    }
}

impl ConfirmedBlock {
    /// A block in memory.
    pub fn of(entry: &Entry) -> Self {
        Self { id: entry.link.id(), header: entry.header().clone(), generator: entry.generator }
    }

    /// A block whose header was read from disk.
    pub fn read(id: BlockId, header: BlockHeader, network: u8) -> Self {
        Self { id, generator: header.generator.address(network), header }
    }

    /// Its id.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// Its header.
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// The address of its generator.
    pub fn generator(&self) -> Address {
        self.generator
    }

    /// Its height.
    pub fn height(&self) -> Height {
        self.header.height
    }
}
