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

/// The header of a block: the members that its generator signs, and the signature. Source: protocol.md 4.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The version, which has to be that of the milestone in force: 0 on all known networks.
    pub version: u32,
    /// The time of the block, 0 for genesis. The ledger requires a slot of the generator; the time need not be that slot's beginning.
    pub timestamp: Timestamp,
    /// 1 for genesis, and 1 more than the previous block's for any other.
    pub height: Height,
    /// `None` for genesis only.
    pub previous: Option<BlockId>,
    /// The number of transactions, as the generator claims. [`Block::check_content`] compares it with the transactions.
    pub number_of_transactions: u32,
    /// The sum of the transactions' amounts, where a multipayment counts 0.
    pub total_amount: Arktoshi,
    /// The sum of the transactions' fees.
    pub total_fee: Arktoshi,
    /// The new coin that the generator gets, which has to be that of the milestone in force.
    pub reward: Arktoshi,
    /// 32 bytes for each transaction, as forged. It is never checked.
    pub payload_length: u32,
    /// The SHA256 of the transactions' ids, 32 bytes each, in the order of the block. Official genesis blocks have another hash.
    pub payload_hash: [u8; 32],
    /// The public key of the delegate that forged the block. For genesis it is that of the account that signed it.
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
    /// The hash of the signed header, or its first eight bytes. Genesis has the id that its network's configuration states.
    pub id: BlockId,
    /// The signed part of the block.
    pub header: BlockHeader,
    /// The transactions, in the order of the payload hash.
    pub transactions: Vec<Arc<SignedTransaction>>,
    /// The cached result of [`Block::check_content`]. A clone has none, so changing a clone is safe.
    content: OnceLock<Arc<[BlockError]>>,
}

/// A part of a block: its id, its header and some of its transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockExcerpt {
    /// The id of the block.
    pub id: BlockId,
    /// The whole header.
    pub header: BlockHeader,
    /// The chosen transactions.
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

    /// The height, 1 for genesis.
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
