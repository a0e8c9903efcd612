//! Blocks: header, full form, ids, verification. Source: protocol.md 4.
//!
//! A [`Block`] exists only if it decodes. [`Block::check_content`] checks the rest: it is
//! a pure function of block and network that is computed once. [`Block::check_timestamp`] also needs
//! the time. The ledger checks whether the block fits on a chain.

mod bytes;
mod check;
mod context;
mod error;
mod forge;
mod id;
mod json;

pub use check::BlockError;
pub use context::BlockContext;
pub(crate) use error::BlockDecodeError;
pub use forge::BlockDraft;
pub use id::BlockId;

use super::{Arktoshi, Height, PublicKey, SignedTransaction, Timestamp, transaction::Version};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub version: u32,
    pub timestamp: Timestamp,
    pub height: Height,
    /// `None` for genesis only.
    pub previous: Option<BlockId>,
    pub number_of_transactions: u32,
    pub total_amount: Arktoshi,
    pub total_fee: Arktoshi,
    pub reward: Arktoshi,
    pub payload_length: u32,
    pub payload_hash: [u8; 32],
    pub generator: PublicKey,
    /// The greatest height at which its generator forged before, on any chain, as the generator claims. 0 if it never did, or no rule of
    /// finality asks for it. It is signed and part of the id, but not of the wire bytes: the reference has no such member.
    pub forged_before: Height,
    /// DER.
    pub signature: Vec<u8>,
}

/// A block with its id and transactions. It has been decoded; see [`Block::verify`] for the other checks.
#[derive(Debug)]
pub struct Block {
    pub id: BlockId,
    pub header: BlockHeader,
    pub transactions: Vec<Arc<SignedTransaction>>,
    /// The cached result of [`Block::check_content`]. A clone has none, so changing a clone is safe.
    content: OnceLock<Arc<[BlockError]>>,
}

/// A part of a block: its id, its header and some of its transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockExcerpt {
    pub id: BlockId,
    pub header: BlockHeader,
    pub transactions: Vec<Arc<SignedTransaction>>,
}

impl Block {
    /// Makes a block from parts without checking them; see [`Block::forge`] for a valid one.
    pub fn new(id: BlockId, header: BlockHeader, transactions: Vec<Arc<SignedTransaction>>) -> Self {
        Self { id, header, transactions, content: OnceLock::new() }
    }

    /// The header and the transactions at `indexes`. An index without a transaction is skipped.
    pub fn excerpt(&self, indexes: &[u32]) -> BlockExcerpt {
        let transactions = indexes.iter().filter_map(|index| self.transactions.get(*index as usize).cloned()).collect();
        BlockExcerpt { id: self.id, header: self.header.clone(), transactions }
    }

    /// The id as hex digits: 16 or 64. The next block's header holds these bytes.
    pub fn id_hex(&self) -> String {
        self.id.to_hex()
    }

    pub fn height(&self) -> Height {
        self.header.height
    }

    /// Returns true if some of its transactions are of version 1 and others of version 2.
    pub fn mixes_versions(&self) -> bool {
        let is_two = |one: &Arc<SignedTransaction>| matches!(one.transaction().version, Version::Two(_));
        let count = self.transactions.iter().filter(|one| is_two(one)).count();
        count > 0 && count < self.transactions.len()
    }
}

impl Clone for Block {
    fn clone(&self) -> Self {
        Self::new(self.id, self.header.clone(), self.transactions.clone())
    }
}

/// Compares the content of the blocks, and not the cached results of checks.
impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.header == other.header && self.transactions == other.transactions
    }
}

impl Eq for Block {}
