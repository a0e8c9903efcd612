//! A pool's answers: the outcome of a request, and the reasons for refusals. Source: consensus.md 5.1, 5.2.

use crate::{
    ledger::ApplyError,
    protocol::{Arktoshi, SignedTransaction, Timestamp, TransactionId},
};
use std::sync::Arc;

/// The reason why a pool rejects a transaction. [`PoolError::code`] is the `type` that a client sees, `Display` the `message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum PoolError {
    #[error("Already in cache.")]
    InCache,
    #[error("Duplicate transaction {0}")]
    Duplicate(TransactionId),
    #[error("Transaction {id} is {seconds} seconds in the future")]
    FromFuture { id: TransactionId, seconds: u32 },
    #[error("Transaction {id} is expired since {blocks} blocks.")]
    Expired { id: TransactionId, blocks: i64 },
    #[error("Transaction network '{0}' does not match 'undefined'")]
    WrongNetwork(u8),
    #[error("Transaction type {0} is deactivated.")]
    Deactivated(String),
    #[error("Version {0} not supported.")]
    UnsupportedVersion(u8),
    #[error("Recipient {address} is not on the same network: {network}")]
    InvalidRecipient { address: String, network: u8 },
    #[error("Sender {sender} already has a transaction of type '{name}' in the pool")]
    PendingType { sender: String, name: &'static str },
    #[error("Multiple delegate registrations for \"{0}\" in transaction payload")]
    UsernameTwice(String),
    #[error("Delegate registration for \"{0}\" already in the pool")]
    UsernamePending(String),
    #[error("The associated lock transaction id \"{0}\" was not found.")]
    LockNotFound(TransactionId),
    #[error("{name} for \"{lock}\" already in the pool")]
    LockPending { name: &'static str, lock: TransactionId },
    #[error("Business {what} for \"{subject}\" already in the pool")]
    BusinessPending { what: &'static str, subject: &'static str },
    #[error("Bridgechain {what} for bridgechainId \"{id}\" already in the pool")]
    BridgechainPending { what: &'static str, id: String },
    #[error("{0}")]
    Schema(String),
    #[error("Transaction {id} is larger than {limit} bytes.")]
    TooLarge { id: TransactionId, limit: usize },
    #[error("Transaction didn't pass the verification process.")]
    NotVerified,
    #[error("The fee is too low to broadcast and accept the transaction")]
    LowFee,
    #[error("Already forged.")]
    AlreadyForged,
    #[error("Already in pool")]
    AlreadyInPool,
    #[error("Pool is full (has {count} transactions) and this transaction's fee {fee} is not higher than the lowest fee already in pool {lowest}")]
    PoolFull { count: usize, fee: Arktoshi, lowest: Arktoshi },
    #[error("{0}")]
    Apply(ApplyError),
    /// A fault keeps the node from accepting any transaction. The reference has no such error.
    #[error("{0}")]
    Unavailable(&'static str),
    /// Q12: the reference reads a member that a refund does not have.
    #[error("Cannot read property 'lockTransactionId' of undefined")]
    RefundPending,
}

/// The longest time that a timestamp may be ahead of the clock, in seconds.
const AHEAD_SECONDS: u32 = 3_600;

impl PoolError {
    /// Refuses a transaction by its timestamp. Source: consensus.md 5.1 row 4.
    ///
    /// # Errors
    /// The timestamp is more than an hour ahead of the clock.
    pub fn check_timestamp(id: TransactionId, timestamp: Timestamp, now: Timestamp) -> Result<(), Self> {
        match timestamp.0.checked_sub(now.0) {
            Some(seconds) if seconds > AHEAD_SECONDS => Err(Self::FromFuture { id, seconds }),
            _ => Ok(()),
        }
    }

    /// Returns true if the transaction may be accepted later: the error depends on the present chain and pool. A node that knows the
    /// next block may have accepted it already.
    pub fn may_pass_later(&self) -> bool {
        match self {
            Self::InCache
            | Self::Duplicate(_)
            | Self::AlreadyForged
            | Self::AlreadyInPool
            | Self::FromFuture { .. }
            | Self::Expired { .. }
            | Self::WrongNetwork(_)
            | Self::InvalidRecipient { .. }
            | Self::UsernameTwice(_)
            | Self::TooLarge { .. }
            | Self::LowFee
            | Self::Unavailable(_) => false,
            Self::Apply(ApplyError::UnexpectedNonce { found, nonce, .. }) => found > nonce,
            Self::Deactivated(_)
            | Self::UnsupportedVersion(_)
            | Self::PendingType { .. }
            | Self::UsernamePending(_)
            | Self::LockNotFound(_)
            | Self::LockPending { .. }
            | Self::BusinessPending { .. }
            | Self::BridgechainPending { .. }
            | Self::Schema(_)
            | Self::NotVerified
            | Self::PoolFull { .. }
            | Self::Apply(_)
            | Self::RefundPending => true,
        }
    }

    /// The code of a transaction that breaks the schema.
    pub const SCHEMA: &'static str = "ERR_TRANSACTION_SCHEMA";

    /// All codes that [`PoolError::code`] returns.
    pub const CODES: [&'static str; 17] = [
        "ERR_DUPLICATE",
        "ERR_FROM_FUTURE",
        "ERR_EXPIRED",
        "ERR_WRONG_NETWORK",
        "ERR_UNKNOWN",
        "ERR_INVALID_RECIPIENT",
        "ERR_PENDING",
        "ERR_HTLCLOCKNOTFOUND",
        "ERR_CONFLICT",
        Self::SCHEMA,
        "ERR_TOO_LARGE",
        "ERR_BAD_DATA",
        "ERR_LOW_FEE",
        "ERR_FORGED",
        "ERR_ALREADY_IN_POOL",
        "ERR_POOL_FULL",
        "ERR_APPLY",
    ];

    /// The `type` of the error as the API shows it. Source: consensus.md 5.1.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InCache | Self::Duplicate(_) => "ERR_DUPLICATE",
            Self::FromFuture { .. } => "ERR_FROM_FUTURE",
            Self::Expired { .. } => "ERR_EXPIRED",
            Self::WrongNetwork(_) => "ERR_WRONG_NETWORK",
            Self::Deactivated(_) | Self::UnsupportedVersion(_) | Self::Unavailable(_) | Self::RefundPending => {
                "ERR_UNKNOWN"
            }
            Self::InvalidRecipient { .. } => "ERR_INVALID_RECIPIENT",
            Self::PendingType { .. }
            | Self::UsernamePending(_)
            | Self::LockPending { .. }
            | Self::BusinessPending { .. }
            | Self::BridgechainPending { .. } => "ERR_PENDING",
            Self::LockNotFound(_) => "ERR_HTLCLOCKNOTFOUND",
            Self::UsernameTwice(_) => "ERR_CONFLICT",
            Self::Schema(_) => Self::SCHEMA,
            Self::TooLarge { .. } => "ERR_TOO_LARGE",
            Self::NotVerified => "ERR_BAD_DATA",
            Self::LowFee => "ERR_LOW_FEE",
            Self::AlreadyForged => "ERR_FORGED",
            Self::AlreadyInPool => "ERR_ALREADY_IN_POOL",
            Self::PoolFull { .. } => "ERR_POOL_FULL",
            Self::Apply(_) => "ERR_APPLY",
        }
    }
}

/// The outcome of a request's transactions. Source: consensus.md 5.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// In the pool now, in the order given.
    pub accept: Vec<TransactionId>,
    /// To be relayed.
    pub broadcast: Vec<TransactionId>,
    /// Over their sender's quota: neither accepted nor rejected.
    pub excess: Vec<TransactionId>,
    /// The rejected ones, each with its reason, in the order found.
    pub errors: Vec<(TransactionId, PoolError)>,
}

/// A transaction the pool would not add, for `transaction.pool.rejected`.
#[derive(Clone, Debug)]
pub struct PoolRejection {
    pub transaction: Arc<SignedTransaction>,
    pub error: PoolError,
}
