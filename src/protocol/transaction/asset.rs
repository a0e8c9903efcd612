//! The effect of a transaction: one variant for each type. Source: protocol.md 3.4.

use super::{Kind, TransactionId};
use crate::protocol::{Address, Arktoshi, PublicKey};
use indexmap::IndexMap;

/// The effect of a transaction: one variant for each of the 11 core and six group-2 types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asset {
    Transfer {
        amount: Arktoshi,
        /// The height from which the transaction is refused; 0 for never.
        expiration: u32,
        recipient: Address,
    },
    SecondSignature {
        public_key: PublicKey,
    },
    DelegateRegistration {
        username: String,
    },
    /// Exactly one vote.
    Vote(Vote),
    MultiSignature {
        min: u8,
        public_keys: Vec<PublicKey>,
    },
    /// The old form, only in listed exceptions.
    MultiSignatureLegacy {
        min: u8,
        lifetime: u8,
        keysgroup: Vec<PublicKey>,
    },
    /// The base58-decoded multihash.
    Ipfs {
        multihash: Vec<u8>,
    },
    MultiPayment {
        payments: Vec<Payment>,
    },
    DelegateResignation,
    HtlcLock {
        amount: Arktoshi,
        /// SHA256 of the 32 bytes of the secret.
        secret_hash: [u8; 32],
        expiration: Expiration,
        recipient: Address,
    },
    HtlcClaim {
        lock: TransactionId,
        unlock_secret: [u8; 32],
    },
    HtlcRefund {
        lock: TransactionId,
    },
    BusinessRegistration {
        name: String,
        website: String,
        vat: Option<String>,
        repository: Option<String>,
    },
    BusinessResignation,
    BusinessUpdate {
        name: Option<String>,
        website: Option<String>,
        vat: Option<String>,
        repository: Option<String>,
    },
    BridgechainRegistration {
        name: String,
        seed_nodes: Vec<String>,
        /// Also the id of the bridgechain from here on.
        genesis_hash: [u8; 32],
        repository: String,
        asset_repository: Option<String>,
        /// In the order they are signed in.
        ports: IndexMap<String, u16>,
    },
    BridgechainResignation {
        bridgechain: [u8; 32],
    },
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

impl Vote {
    /// The delegate the vote is about.
    pub fn delegate(&self) -> &PublicKey {
        match self {
            Self::For(key) | Self::Against(key) => key,
        }
    }

    pub fn is_for(&self) -> bool {
        matches!(self, Self::For(_))
    }
}

/// `+` or `-` and the key, as in JSON.
impl std::fmt::Display for Vote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_for() { '+' } else { '-' }, self.delegate())
    }
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

impl Expiration {
    /// Type number and value.
    pub fn numbers(self) -> (u8, u32) {
        match self {
            Self::EpochTime(value) => (1, value),
            Self::BlockHeight(value) => (2, value),
        }
    }

    /// From type number and value; nothing for another type than 1 and 2.
    pub fn from_numbers(kind: u8, value: u32) -> Option<Self> {
        match kind {
            1 => Some(Self::EpochTime(value)),
            2 => Some(Self::BlockHeight(value)),
            _ => None,
        }
    }
}

impl Asset {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Transfer { .. } => Kind::Transfer,
            Self::SecondSignature { .. } => Kind::SecondSignature,
            Self::DelegateRegistration { .. } => Kind::DelegateRegistration,
            Self::Vote(_) => Kind::Vote,
            Self::MultiSignature { .. } | Self::MultiSignatureLegacy { .. } => Kind::MultiSignature,
            Self::Ipfs { .. } => Kind::Ipfs,
            Self::MultiPayment { .. } => Kind::MultiPayment,
            Self::DelegateResignation => Kind::DelegateResignation,
            Self::HtlcLock { .. } => Kind::HtlcLock,
            Self::HtlcClaim { .. } => Kind::HtlcClaim,
            Self::HtlcRefund { .. } => Kind::HtlcRefund,
            Self::BusinessRegistration { .. } => Kind::BusinessRegistration,
            Self::BusinessResignation => Kind::BusinessResignation,
            Self::BusinessUpdate { .. } => Kind::BusinessUpdate,
            Self::BridgechainRegistration { .. } => Kind::BridgechainRegistration,
            Self::BridgechainResignation { .. } => Kind::BridgechainResignation,
            Self::BridgechainUpdate { .. } => Kind::BridgechainUpdate,
        }
    }

    /// The amount that the transaction itself moves: 0 for types without an amount and for multipayments.
    pub fn amount(&self) -> Arktoshi {
        match self {
            Self::Transfer { amount, .. } | Self::HtlcLock { amount, .. } => *amount,
            _ => Arktoshi::ZERO,
        }
    }

    /// The recipient of that amount.
    pub fn recipient(&self) -> Option<Address> {
        match self {
            Self::Transfer { recipient, .. } | Self::HtlcLock { recipient, .. } => Some(*recipient),
            _ => None,
        }
    }

    /// The multihash of an IPFS registration as JSON has it.
    pub fn ipfs_text(multihash: &[u8]) -> String {
        bs58::encode(multihash).into_string()
    }
}
