//! Errors of rejected transactions.

use super::{Kind, SchemaError};
use crate::protocol::{crypto::ecdsa::DerError, keys::KeyError};

/// The reason why bytes or JSON are no transaction. The texts begin as the reference's do, so that clients recognise them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Type group and number that no type has; `type` may be missing.
    #[error("Unknown transaction type: {group}/{number}")]
    UnknownType { group: String, number: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("Version {version} not supported.")]
    Version { version: u8 },
    #[error("Invalid multi signature, because duplicate participant found.")]
    DuplicateParticipant,
    #[error("Failed to deserialize transaction, encountered invalid bytes: {0}")]
    Bytes(#[from] BytesError),
    /// A text that has the form of an address and is not valid.
    #[error(transparent)]
    Address(KeyError),
}

impl TransactionError {
    /// The reference's name of the error.
    pub fn reference_name(&self) -> &'static str {
        match self {
            Self::UnknownType { .. } => "UnkownTransactionError",
            Self::Schema(_) => "TransactionSchemaError",
            Self::Version { .. } => "TransactionVersionError",
            Self::DuplicateParticipant => "DuplicateParticipantInMultiSignatureError",
            Self::Bytes(_) => "InvalidTransactionBytesError",
            Self::Address(_) => "Error",
        }
    }

    /// The reference's message, where a client might compare it. Our message says more.
    pub fn reference_text(&self) -> String {
        match self {
            Self::Schema(error) => error.reference_text(),
            Self::Address(KeyError::Checksum { .. }) => "Invalid checksum".to_owned(),
            Self::Bytes(BytesError::Truncated { at, needed, available, .. }) => format!(
                "Failed to deserialize transaction, encountered invalid bytes: Illegal offset: 0 <= {at} (+{needed}) \
                 <= {}",
                at + available
            ),
            other => other.to_string(),
        }
    }
}

/// An error in wire bytes, or in JSON that cannot become wire bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    #[error("`{field}` at byte {at} needs {needed} bytes, {available} are there")]
    Truncated { field: &'static str, at: usize, needed: usize, available: usize },
    #[error("byte {at} is {found:#04x}, allowed is {allowed}")]
    Byte { at: usize, found: u8, allowed: &'static str },
    #[error("Unknown transaction type: {group}/{number}")]
    UnknownType { group: String, number: u16 },
    #[error("`{field}` is {found}, allowed are 0 to 9223372036854775807")]
    Amount { field: &'static str, found: u64 },
    #[error("Expected address network byte {allowed}, but got {found}.")]
    RecipientNetwork { allowed: u8, found: u8 },
    #[error("a {kind:?} carries a vendor field of {length} bytes, allowed is none")]
    VendorField { kind: Kind, length: usize },
    #[error("`{field}` is not {allowed}")]
    Text { field: &'static str, allowed: &'static str },
    #[error("`{field}` is {found:?}, allowed is an even number of hex digits")]
    Hex { field: &'static str, found: String },
    #[error("port {name:?} comes twice or not in the order of the object's members")]
    Ports { name: String },
    #[error("{votes} votes, allowed is one")]
    Votes { votes: u8 },
    #[error("the multihash says {said} bytes and has {found}")]
    Multihash { said: usize, found: usize },
    #[error("signature buffer not exhausted, {left} bytes are left")]
    SignatureLeft { left: usize },
    #[error("{0}")]
    Der(#[from] DerError),
    #[error("a {0:?} has no version 1 form")]
    NoVersionOne(Kind),
    #[error("a legacy multisignature that is not listed among the exceptions")]
    LegacyMultiSignature,
    #[error("{left} bytes follow the transaction")]
    Trailing { left: usize },
}
