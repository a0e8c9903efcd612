//! A transaction: a typed value, its wire bytes, its id. Source: protocol.md 3.
//!
//! ```text
//!   builder ──> Transaction ──encode──> SignedTransaction { value, bytes, id }
//!                    ^                      │        ^
//!   JSON ──read──────┤                      └─JSON───┼──> raw form
//!   bytes ──decode───┘        split, schema, id ─────┘
//! ```
//!
//! [`Transaction`] is the value (illegal states are not representable), [`SignedTransaction`] the value with its wire bytes and id,
//! made by a builder, from bytes or from JSON. A [`TransactionContext`] has the limits of a transaction at a height.
//! [`SignedTransaction::verified`] checks the signatures.

mod builder;
mod context;
mod decode;
mod encode;
mod error;
mod fees;
mod id;
mod json;
mod read;
mod schema;
mod signed;
mod split;
mod types;
mod verify;

pub use builder::{TransactionBuilder, UnsignedTransaction};
pub use context::{Dialect, TransactionContext};
pub use error::{BytesError, TransactionError};
pub use fees::StaticFees;
pub use id::TransactionId;
pub use schema::{Rule, SchemaError};
pub use signed::SignedTransaction;
pub use types::{Asset, BridgechainRegistration, BridgechainUpdate, Expiration, Kind, Payment, Pending, Vote};
pub use verify::MultiSignatureCheckError;

use super::{Arktoshi, Nonce, PublicKey, Timestamp};

/// The content of a transaction, including its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// First byte of the network's addresses.
    pub network: u8,
    /// The version and the member that it orders by: a timestamp in version 1, a nonce in version 2.
    pub version: Version,
    /// The public key of the sender, which is that of the wallet for a multisignature wallet.
    pub sender: PublicKey,
    /// The fee in arktoshi, at most 2^63-1.
    pub fee: Arktoshi,
    /// Only types 1/0, 1/6 and 1/8 can carry one.
    pub vendor_field: Option<String>,
    /// The effect, which also decides the type.
    pub asset: Asset,
    /// ECDSA DER or, in version 2, 64 bytes of Schnorr. Absent in a transaction of a multisignature wallet.
    pub signature: Option<Vec<u8>>,
    /// The signature of the sender's second key, in the same two forms as the first. Absent without a second key.
    pub second_signature: Option<Vec<u8>>,
    /// The signatures of a multisignature wallet's participants, on its spending and on its registration. Empty otherwise.
    pub signatures: Vec<IndexedSignature>,
}

/// The version, with the member that orders a sender's transactions in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1, with the time of signing.
    One(Timestamp),
    /// Version 2, with the number of the transaction among its sender's.
    Two(Nonce),
}

impl Version {
    /// 1 or 2.
    pub fn number(self) -> u8 {
        match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
        }
    }
}

/// One signature of a multisignature wallet: index of the key, and Schnorr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSignature {
    /// The position of the signing key among the wallet's keys, from 0.
    pub index: u8,
    /// The signature (Schnorr).
    pub signature: [u8; 64],
}

impl IndexedSignature {
    /// Index and signature as they stand on the wire.
    pub fn to_bytes(self) -> [u8; 65] {
        let mut bytes = [self.index; 65];
        bytes[1..].copy_from_slice(&self.signature);
        bytes
    }
}

impl Transaction {
    /// The type, which follows from the asset.
    pub fn kind(&self) -> Kind {
        self.asset.kind()
    }

    /// The nonce; nothing in version 1.
    pub fn nonce(&self) -> Option<Nonce> {
        match self.version {
            Version::One(_) => None,
            Version::Two(nonce) => Some(nonce),
        }
    }

    /// The timestamp; nothing in version 2, which takes its block's.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self.version {
            Version::One(timestamp) => Some(timestamp),
            Version::Two(_) => None,
        }
    }

    /// The height from which a transfer is expired, if it ever is.
    pub fn expiration(&self) -> Option<u32> {
        match self.asset {
            Asset::Transfer { expiration, .. } if expiration > 0 => Some(expiration),
            _ => None,
        }
    }
}
