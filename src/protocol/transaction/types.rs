//! The types of transactions: one list, and one module for each type. Source: protocol.md 3.4.
//!
//! ```text
//!   types! rows ──> Kind (numbers, name, key) ──> the type's module: bytes, JSON, ranges, fees, published schema
//!              └──> Asset (one variant a type)
//! ```
//!
//! A row states a type's group and number, its key in tables of fees, its module, and the members of its asset. A module implements
//! [`TransactionType`]. Code that handles every type alike (the wire, JSON, the schema route, fees, workloads) asks [`Kind`] and names
//! no type. [docs/extending.md](../../../docs/extending.md) adds one.

mod bridgechain_registration;
mod bridgechain_resignation;
mod bridgechain_update;
mod business_registration;
mod business_resignation;
mod business_update;
mod delegate_registration;
mod delegate_resignation;
mod htlc_claim;
mod htlc_lock;
mod htlc_refund;
mod ipfs;
mod members;
mod multi_payment;
mod multi_signature;
mod schema_parts;
mod second_signature;
mod transfer;
mod vote;

pub use bridgechain_registration::BridgechainRegistration;
pub use bridgechain_update::BridgechainUpdate;
pub use members::{Expiration, Payment, Vote};

use super::{
    BytesError, SchemaError, TransactionContext, TransactionId, decode::WireReader, read::JsonReader,
    schema::SchemaResult,
};
use crate::protocol::{Address, Arktoshi, PublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tenth of a coin.
const TENTH: Arktoshi = Arktoshi::new(10_000_000).expect("far below the largest amount");

/// Binds the members of the asset that a type's own module is given.
macro_rules! own {
    ($asset:ident is $pattern:pat_param) => {
        let $pattern = $asset else { unreachable!("the table gives each type its own assets") };
    };
}
use own;

/// Declares [`Kind`] and [`Asset`] from the rows, ascending by group and number.
macro_rules! types {
    ($(
        $(#[doc = $doc:literal])*
        $group:literal / $number:literal $key:literal in $module:ident:
        $name:ident $( { $($members:tt)* } )? $( ( $($value:tt)* ) )?;
    )*) => {
        /// The types as names, in the order (group, number). Tables are keyed by it, and workloads name types by it.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        #[schemars(rename = "KindName")]
        #[expect(missing_docs, reason = "the types' own names")]
        pub enum Kind {
            $($name,)*
        }

        /// The effect of a transaction: one variant for each type. A long and rare one is boxed, for each transaction takes the memory of
        /// the longest.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Asset {
            $(
                $(#[doc = $doc])*
                $name $( { $($members)* } )? $( ( $($value)* ) )?,
            )*
            /// The old form of [`Asset::MultiSignature`], only in listed exceptions.
            MultiSignatureLegacy { min: u8, lifetime: u8, keysgroup: Vec<PublicKey> },
        }

        impl Kind {
            /// All of them, ascending by group and number.
            pub const ALL: [Kind; [$($key),*].len()] = [$(Kind::$name),*];

            /// Type group (1 core, 2 magistrate) and type number.
            pub fn numbers(self) -> (u32, u16) {
                match self {
                    $(Kind::$name => ($group, $number),)*
                }
            }

            /// The kind of a type group and number, if it exists.
            pub fn from_numbers(group: u32, number: u16) -> Option<Self> {
                match (group, number) {
                    $(($group, $number) => Some(Kind::$name),)*
                    _ => None,
                }
            }

            /// `Transfer`, `SecondSignature`, …
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => stringify!($name),)*
                }
            }

            /// `transfer`, `secondSignature`, … as the fee tables have it.
            pub fn key(self) -> &'static str {
                match self {
                    $(Kind::$name => $key,)*
                }
            }

            /// The module of the type.
            pub(super) fn module(self) -> &'static dyn TransactionType {
                match self {
                    $(Kind::$name => &$module::Type,)*
                }
            }
        }

        impl Asset {
            /// The type whose effect it is.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$name { .. } => Kind::$name,)*
                    Self::MultiSignatureLegacy { .. } => Kind::MultiSignature,
                }
            }
        }
    };
}

types! {
    1/0 "transfer" in transfer:
    Transfer {
        amount: Arktoshi,
        /// The height from which the transaction is refused; 0 for never.
        expiration: u32,
        recipient: Address,
    };

    1/1 "secondSignature" in second_signature:
    SecondSignature { public_key: PublicKey };

    1/2 "delegateRegistration" in delegate_registration:
    DelegateRegistration { username: String };

    /// Exactly one vote.
    1/3 "vote" in vote:
    Vote(Vote);

    1/4 "multiSignature" in multi_signature:
    MultiSignature { min: u8, public_keys: Vec<PublicKey> };

    /// The base58-decoded multihash.
    1/5 "ipfs" in ipfs:
    Ipfs { multihash: Vec<u8> };

    1/6 "multiPayment" in multi_payment:
    MultiPayment { payments: Vec<Payment> };

    1/7 "delegateResignation" in delegate_resignation:
    DelegateResignation;

    1/8 "htlcLock" in htlc_lock:
    HtlcLock {
        amount: Arktoshi,
        /// SHA256 of the 32 bytes of the secret.
        secret_hash: [u8; 32],
        expiration: Expiration,
        recipient: Address,
    };

    1/9 "htlcClaim" in htlc_claim:
    HtlcClaim { lock: TransactionId, unlock_secret: [u8; 32] };

    1/10 "htlcRefund" in htlc_refund:
    HtlcRefund { lock: TransactionId };

    2/0 "businessRegistration" in business_registration:
    BusinessRegistration { name: String, website: String, vat: Option<String>, repository: Option<String> };

    2/1 "businessResignation" in business_resignation:
    BusinessResignation;

    2/2 "businessUpdate" in business_update:
    BusinessUpdate { name: Option<String>, website: Option<String>, vat: Option<String>, repository: Option<String> };

    2/3 "bridgechainRegistration" in bridgechain_registration:
    BridgechainRegistration(Box<BridgechainRegistration>);

    2/4 "bridgechainResignation" in bridgechain_resignation:
    BridgechainResignation { bridgechain: [u8; 32] };

    2/5 "bridgechainUpdate" in bridgechain_update:
    BridgechainUpdate(Box<BridgechainUpdate>);
}

/// The protocol's rules for one type. A type without an asset states its fees and how it is read.
pub(super) trait TransactionType {
    /// The static fee, unless a milestone says otherwise. Source: protocol.md 3.9.
    fn static_fee(&self) -> Arktoshi;

    /// Bytes added to a transaction's size before a dynamic fee is charged. Source: consensus.md 5.3.
    fn addon_bytes(&self) -> u64;

    /// Returns true if the type can carry a vendor field.
    fn has_vendor_field(&self) -> bool {
        false
    }

    /// Returns the number of the type that a sender may have pending.
    fn pending(&self) -> Pending {
        Pending::Any
    }

    /// The asset's wire bytes.
    fn write(&self, _asset: &Asset, _out: &mut Vec<u8>) {}

    /// The asset's part of the bytes that version 1 signs.
    fn write_signed_in_version_one(&self, _asset: &Asset, _out: &mut Vec<u8>) {}

    /// Reads the asset from wire bytes.
    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError>;

    /// The `asset` member; `None` for types that have none.
    fn to_json(&self, _asset: &Asset) -> Option<Value> {
        None
    }

    /// Reads the asset from JSON, for a transaction of this version whose `amount` has been read.
    fn read_json(&self, json: &mut JsonReader<'_>, version: u8, amount: Arktoshi) -> Result<Asset, SchemaError>;

    /// The ranges of the asset's members that a value can break.
    fn check(&self, _asset: &Asset, _context: &TransactionContext<'_>) -> SchemaResult {
        Ok(())
    }

    /// Names that the `asset` member can have a member of.
    fn asset_members(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the members that the type adds to those that all types publish, in the reference's order and dialect of JSON Schema.
    fn published(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// The number of transactions of a type that a sender may have pending. Source: consensus.md 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// As many as the pool takes.
    Any,
    /// One. The refusal gives the type's name.
    One,
    /// One; the refusal speaks of this act of a business.
    OneOfBusiness(&'static str),
}

impl Kind {
    /// Returns true if the type is of group 1.
    pub fn is_core(self) -> bool {
        self.numbers().0 == 1
    }

    /// Returns true if the type can carry a vendor field.
    pub fn has_vendor_field(self) -> bool {
        self.module().has_vendor_field()
    }

    /// Returns true if the type is one of the three around hash time locks.
    pub fn is_htlc(self) -> bool {
        matches!(self, Self::HtlcLock | Self::HtlcClaim | Self::HtlcRefund)
    }

    /// Bytes added to a transaction's size before a dynamic fee is charged. Source: consensus.md 5.3.
    pub fn addon_bytes(self) -> u64 {
        self.module().addon_bytes()
    }

    /// Returns the number of the type that a sender may have pending.
    pub fn pending(self) -> Pending {
        self.module().pending()
    }

    /// Names that the `asset` member of the type can have a member of.
    pub fn asset_members(self) -> &'static [&'static str] {
        self.module().asset_members()
    }

    /// Returns the members that the type adds to those that all types publish, in the reference's order and dialect of JSON Schema.
    /// Source: api.md 4.6.
    pub fn published_members(self) -> Vec<(&'static str, Value)> {
        self.module().published()
    }
}

impl Asset {
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

    /// The `asset` member; `None` for types that have none.
    pub fn to_json(&self) -> Option<Value> {
        self.kind().module().to_json(self)
    }

    /// The multihash of an IPFS registration as JSON has it.
    pub fn ipfs_text(multihash: &[u8]) -> String {
        bs58::encode(multihash).into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways_and_ascend() {
        for kind in Kind::ALL {
            let (group, number) = kind.numbers();
            assert_eq!(Kind::from_numbers(group, number), Some(kind));
        }
        assert!(Kind::ALL.is_sorted_by_key(|kind| kind.numbers()), "the order of kinds is that of their numbers");
        assert_eq!(Kind::HtlcRefund.numbers(), (1, 10));
        assert_eq!(Kind::BusinessRegistration.numbers(), (2, 0));
        assert_eq!(Kind::BridgechainUpdate.key(), "bridgechainUpdate");
        assert_eq!(Kind::from_numbers(1, 11), None);
        assert_eq!(Kind::from_numbers(2, 6), None);
        assert_eq!(Kind::from_numbers(0, 0), None);
    }

    #[test]
    fn a_key_is_the_name_with_a_small_letter_in_front() {
        for kind in Kind::ALL {
            let (first, rest) = kind.name().split_at(1);
            assert_eq!(kind.key(), first.to_lowercase() + rest);
        }
    }

    #[test]
    fn a_type_publishes_an_asset_exactly_if_one_of_its_members_can_be_searched() {
        for kind in Kind::ALL {
            let published = kind.published_members().into_iter().find(|(name, _)| *name == "asset");
            let required = published.and_then(|(_, schema)| schema["required"][0].as_str().map(str::to_owned));
            assert_eq!(required.as_deref(), kind.asset_members().first().copied(), "{}", kind.name());
        }
    }
}
