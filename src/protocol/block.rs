//! Blocks: header, full form, ids, verification. Source: protocol.md 4.

use super::{Arktoshi, Height, PublicKey, SignedTransaction, Timestamp};
use std::sync::Arc;

/// Numeric before the `idFullSha256` milestone, 32 bytes from it on. `Display` as in JSON: decimal or hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockId {
    Numeric(u64),
    Full([u8; 32]),
}

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
    /// DER.
    pub signature: Vec<u8>,
}

/// A block with its id and transactions. That it decodes is proved; see `verify` for the rest.
#[derive(Clone, Debug)]
pub struct Block {
    pub id: BlockId,
    pub header: BlockHeader,
    pub transactions: Vec<Arc<SignedTransaction>>,
}
