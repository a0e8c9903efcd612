//! Errors of bytes and JSON that are no block.

use crate::protocol::transaction::TransactionError;

/// The reason why bytes or JSON are no block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockDecodeError {
    #[error("block: `{field}` at byte {at} needs {needed} bytes, {available} are there")]
    Truncated { field: &'static str, at: usize, needed: usize, available: usize },
    #[error("block: `{field}` is {found}, allowed are 0 to 9223372036854775807")]
    Amount { field: &'static str, found: u64 },
    #[error("block: {left} bytes follow the last transaction, allowed are none")]
    Trailing { left: usize },
    #[error("block: transaction {index}: {source}")]
    Transaction { index: usize, source: TransactionError },
    #[error("Height ({height}): Invalid data at {path}: found {found}, allowed is {allowed}")]
    Schema { height: String, path: String, found: String, allowed: String },
}
