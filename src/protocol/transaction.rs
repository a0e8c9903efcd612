//! A transaction: a typed value, its wire bytes, its id. Source: protocol.md 3.
//!
//! [`Transaction`] is the value (illegal states are not representable), [`SignedTransaction`] the value with its wire
//! bytes and id, made by a builder, from bytes or from JSON, and checked by [`SignedTransaction::verify`].

use super::{Address, Arktoshi, Nonce, PublicKey, Timestamp};
use indexmap::IndexMap;
use std::fmt;

/// SHA256 over the transaction with all its signatures; shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub [u8; 32]);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        { let _ = f; todo!() }
    }
}
impl fmt::Debug for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a transaction says, signatures included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// First byte of the network's addresses.
    pub network: u8,
    pub version: Version,
    pub sender: PublicKey,
    pub fee: Arktoshi,
    /// Only types 1/0, 1/6 and 1/8 can carry one.
    pub vendor_field: Option<String>,
    pub asset: Asset,
    /// ECDSA DER or, in version 2, 64 bytes of Schnorr. Absent in a transaction of a multisignature wallet.
    pub signature: Option<Vec<u8>>,
    pub second_signature: Option<Vec<u8>>,
    pub signatures: Vec<IndexedSignature>,
}

/// The version and what orders a sender's transactions in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One(Timestamp),
    Two(Nonce),
}

/// One signature of a multisignature wallet: index of the key, and Schnorr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSignature {
    pub index: u8,
    pub signature: [u8; 64],
}

/// What the transaction does: one variant for each of the 11 core and six group-2 types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asset {
    Transfer { amount: Arktoshi, expiration: u32, recipient: Address },
    SecondSignature { public_key: PublicKey },
    DelegateRegistration { username: String },
    /// Exactly one vote.
    Vote(Vote),
    MultiSignature { min: u8, public_keys: Vec<PublicKey> },
    /// The old form, only in listed exceptions.
    MultiSignatureLegacy { min: u8, lifetime: u8, keysgroup: Vec<PublicKey> },
    /// The base58-decoded multihash.
    Ipfs { multihash: Vec<u8> },
    MultiPayment { payments: Vec<Payment> },
    DelegateResignation,
    HtlcLock { amount: Arktoshi, secret_hash: [u8; 32], expiration: Expiration, recipient: Address },
    HtlcClaim { lock: TransactionId, unlock_secret: [u8; 32] },
    HtlcRefund { lock: TransactionId },
    BusinessRegistration { name: String, website: String, vat: Option<String>, repository: Option<String> },
    BusinessResignation,
    BusinessUpdate { name: Option<String>, website: Option<String>, vat: Option<String>, repository: Option<String> },
    BridgechainRegistration {
        name: String,
        seed_nodes: Vec<String>,
        genesis_hash: [u8; 32],
        repository: String,
        asset_repository: Option<String>,
        ports: IndexMap<String, u16>,
    },
    BridgechainResignation { bridgechain: [u8; 32] },
    BridgechainUpdate {
        bridgechain: [u8; 32],
        seed_nodes: Option<Vec<String>>,
        ports: Option<IndexMap<String, u16>>,
        repository: Option<String>,
        asset_repository: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    For(PublicKey),
    Against(PublicKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    pub amount: Arktoshi,
    pub recipient: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// Type 1: seconds since the epoch.
    EpochTime(u32),
    /// Type 2.
    BlockHeight(u32),
}

/// The 17 types as names, in the order (group, number); what tables are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Transfer,
    SecondSignature,
    DelegateRegistration,
    Vote,
    MultiSignature,
    Ipfs,
    MultiPayment,
    DelegateResignation,
    HtlcLock,
    HtlcClaim,
    HtlcRefund,
    BusinessRegistration,
    BusinessResignation,
    BusinessUpdate,
    BridgechainRegistration,
    BridgechainResignation,
    BridgechainUpdate,
}

impl Kind {
    /// All of them, ascending by group and number.
    pub const ALL: [Kind; 17] = [
        Kind::Transfer,
        Kind::SecondSignature,
        Kind::DelegateRegistration,
        Kind::Vote,
        Kind::MultiSignature,
        Kind::Ipfs,
        Kind::MultiPayment,
        Kind::DelegateResignation,
        Kind::HtlcLock,
        Kind::HtlcClaim,
        Kind::HtlcRefund,
        Kind::BusinessRegistration,
        Kind::BusinessResignation,
        Kind::BusinessUpdate,
        Kind::BridgechainRegistration,
        Kind::BridgechainResignation,
        Kind::BridgechainUpdate,
    ];
    /// Type group (1 core, 2 magistrate) and type number.
    pub fn numbers(self) -> (u32, u16) {
        todo!()
    }
    /// `Transfer`, `SecondSignature`, …
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// `transfer`, `secondSignature`, … as the fee tables have it.
    pub fn key(self) -> &'static str {
        todo!()
    }
}

impl Asset {
    pub fn kind(&self) -> Kind {
        todo!()
    }
}

/// A transaction with its wire bytes and id. That it is well-formed is proved; that its signatures hold is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    transaction: Transaction,
    id: TransactionId,
    bytes: Box<[u8]>,
    sender_address: Address,
}

impl SignedTransaction {
    pub fn id(&self) -> TransactionId {
        self.id
    }
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }
    /// The wire bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    pub fn sender_address(&self) -> Address {
        self.sender_address
    }
    /// What the transaction itself moves: 0 for types without an amount and for multipayments.
    pub fn amount(&self) -> Arktoshi {
        todo!()
    }
}
