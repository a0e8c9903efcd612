//! The vocabulary of a script: an action, its deed, and its flaw if it has one.

use crate::sim::fault::is_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One transaction of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its turn comes when the highest chain of the network is so high.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub height: u32,
    /// The number of the node it is handed in at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub node: u32,
    /// The sender: an account, a delegate, or `shared_NAME`, the multisignature wallet that was made by this name. Any K of N
    /// keys dispose of one whose name ends in `-K-of-N`, and any two of three of another.
    pub by: String,
    /// The deed.
    pub does: Deed,
    /// Whom it is for: an account, a delegate, or `shared_NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The amount, in arktoshi; a coin, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// The fee, in arktoshi; the static fee, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<u64>,
    /// The name of its object: a lock, a username, a hash, a multisignature wallet, a bridgechain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For so many blocks beyond the shortest time a lock must last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocks: u32,
    /// The owners of a shared wallet that sign, in this order, counted from 0; as many as must, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<u8>,
    /// A lock ends at a time and not at a height.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_time: bool,
    /// Payments of a multipayment, to `to` and back in turn; two, if absent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub payments: u32,
    /// Members that a business or bridgechain says or changes, beside those it must.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// A text for a transfer, a multipayment or a lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_field: Option<String>,
    /// The flaw, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Wrong>,
}

/// A member of a business or a bridgechain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Member {
    Name,
    Website,
    Vat,
    Repository,
    AssetRepository,
    SeedNodes,
    Ports,
}

impl Member {
    /// The members of a business.
    pub const OF_BUSINESS: [Self; 4] = [Self::Name, Self::Website, Self::Vat, Self::Repository];
    /// The members of a bridgechain.
    pub const OF_BRIDGECHAIN: [Self; 4] = [Self::Repository, Self::AssetRepository, Self::SeedNodes, Self::Ports];
}

/// The deed of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Sends `amount` to `to`.
    #[default]
    Transfer,
    /// Sends half of `amount` to `to`, and the rest back to the sender; or in more `payments`.
    MultiPayment,
    /// Registers a second key, with which the sender signs from then on.
    SecondSignature,
    /// Registers as a delegate under `name`.
    Register,
    /// Votes for `to`.
    Vote,
    /// Takes the vote for `to` back.
    Unvote,
    /// Resigns as a delegate.
    Resign,
    /// Makes the wallet `shared_NAME`, of which any two of three keys dispose, or as many as the name says.
    Share,
    /// Registers the hash of `name`.
    Ipfs,
    /// Locks `amount` for `to` as the lock `name`.
    Lock,
    /// Claims the lock `name`.
    Claim,
    /// Takes the lock `name` back.
    Refund,
    /// Registers as a business.
    Business,
    /// Changes the business's website to one of `name`, or the `members` that are listed.
    UpdateBusiness,
    /// Resigns as a business.
    ResignBusiness,
    /// Registers the bridgechain `name`.
    Bridgechain,
    /// Changes the repository of the bridgechain `name`, or the `members` that are listed.
    UpdateBridgechain,
    /// Resigns the bridgechain `name`.
    ResignBridgechain,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Transfer,
        Self::MultiPayment,
        Self::SecondSignature,
        Self::Register,
        Self::Vote,
        Self::Unvote,
        Self::Resign,
        Self::Share,
        Self::Ipfs,
        Self::Lock,
        Self::Claim,
        Self::Refund,
        Self::Business,
        Self::UpdateBusiness,
        Self::ResignBusiness,
        Self::Bridgechain,
        Self::UpdateBridgechain,
        Self::ResignBridgechain,
    ];
}

/// The flaw of an action's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wrong {
    /// Its nonce leaves one out.
    NonceAhead,
    /// Its nonce has been used.
    NonceUsed,
    /// It sends more than its sender has.
    Overspent,
    /// It is signed by somebody else.
    Forged,
    /// The second signature is missing.
    NoSecondSignature,
    /// One signature fewer than agreed on.
    OneSignatureLess,
    /// Another secret than the lock's.
    WrongSecret,
    /// It expires before it can be forged.
    Expired,
}

impl Wrong {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NonceAhead,
        Self::NonceUsed,
        Self::Overspent,
        Self::Forged,
        Self::NoSecondSignature,
        Self::OneSignatureLess,
        Self::WrongSecret,
        Self::Expired,
    ];
}
