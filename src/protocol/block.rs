//! Blocks: header, full form, ids, verification. Source: protocol.md 4.
//!
//! That a [`Block`] decodes is proved by its being there; whether it holds is asked with [`Block::check_content`],
//! a pure function of block and network that is computed once, and [`Block::check_timestamp`], which needs to know
//! the time. Whether it fits on a chain is the ledger's business.

mod bytes;
mod check;
mod context;
mod error;
mod forge;
mod id;
mod json;

pub use check::BlockError;
pub use context::BlockContext;
pub use error::BlockDecodeError;
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
    /// The greatest height at which its generator forged before, on any chain, as it says; 0 where it never did, or no rule of
    /// finality asks. It is signed, and part of the id, and not of the wire bytes: the reference has no such member.
    pub forged_before: Height,
    /// DER.
    pub signature: Vec<u8>,
}

/// A block with its id and transactions. That it decodes is proved; see [`Block::verify`] for the rest.
#[derive(Debug)]
pub struct Block {
    pub id: BlockId,
    pub header: BlockHeader,
    pub transactions: Vec<Arc<SignedTransaction>>,
    /// The result of [`Block::check_content`]. A clone starts anew, so changing a clone is safe.
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
    /// From parts that are taken as they are; see [`Block::forge`] for one that holds.
    pub fn new(id: BlockId, header: BlockHeader, transactions: Vec<Arc<SignedTransaction>>) -> Self {
        Self { id, header, transactions, content: OnceLock::new() }
    }

    /// The header and those of the transactions that `indexes` name. An index at which there is none is passed over.
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

/// By what the blocks say; what has been found out about them does not count.
impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.header == other.header && self.transactions == other.transactions
    }
}

impl Eq for Block {}
