//! The vocabulary of a script: an action, its deed, and its flaw if it has one.

use super::parties::threshold;
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
    /// The recipient: an account, a delegate, or `shared_NAME`; the sender, if absent.
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
    /// The blocks that a lock lasts beyond the shortest time, and after the next one those that can hold a transfer: without the member
    /// a transfer never expires.
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

/// The error of an action: the key within it, the value found, and the allowed values.
type Idle = (&'static str, String, &'static str);

impl Action {
    /// The number of owners of the shared wallet that signs; 0 where none does.
    pub(in crate::scenario) fn owners(&self) -> u8 {
        match (self.by.strip_prefix("shared_"), self.does, &self.name) {
            // The owners of the new wallet sign its registration.
            (_, Deed::Share, name) => threshold(name.as_deref().unwrap_or_default()).1,
            (Some(name), ..) => threshold(name).1,
            (None, ..) => 0,
        }
    }

    /// The first member that has no meaning for the deed, or that the deed lacks.
    pub(in crate::scenario) fn idle(&self) -> Option<Idle> {
        let (does, uses) = (self.does, self.does.uses());
        let said = [
            (Part::To, "to", self.to.is_some()),
            (Part::Amount, "amount", self.amount.is_some()),
            (Part::Name, "name", self.name.is_some()),
            (Part::Blocks, "blocks", self.blocks > 0),
            (Part::Clock, "by_time", self.by_time),
            (Part::Payments, "payments", self.payments > 0),
            (Part::Members, "members", !self.members.is_empty()),
            (Part::Text, "vendor_field", self.vendor_field.is_some()),
        ];
        if let Some((_, key, _)) = said.into_iter().find(|(part, _, said)| *said && !uses.contains(part)) {
            return Some((key, format!("it beside a '{}'", does.name()), "none: it would mean nothing"));
        }
        if uses.contains(&Part::Name) && self.name.is_none() && does != Deed::UpdateBusiness {
            return Some(("name", format!("none beside a '{}'", does.name()), "the name of its object"));
        }
        if let Some(member) = self.members.iter().find(|member| !does.members().contains(member)) {
            let found = serde_json::to_string(member).unwrap_or_default();
            return Some(("members", found, "members of what the deed is about"));
        }
        self.idle_flaw()
    }

    /// The flaw, if the deed cannot have it.
    fn idle_flaw(&self) -> Option<Idle> {
        let is_shared = self.owners() > 0;
        let allowed = match self.wrong? {
            Wrong::NonceAhead | Wrong::NonceUsed | Wrong::Forged | Wrong::NoSecondSignature => return None,
            Wrong::Overspent if self.does.uses().contains(&Part::Amount) => return None,
            Wrong::OneSignatureLess if is_shared => return None,
            Wrong::WrongSecret if self.does == Deed::Claim => return None,
            Wrong::Expired if self.does == Deed::Transfer => return None,
            Wrong::Overspent => "it where an amount is sent",
            Wrong::OneSignatureLess => "it where the owners of a shared wallet sign",
            Wrong::WrongSecret => "it beside a 'claim'",
            Wrong::Expired => "it beside a 'transfer'",
        };
        Some(("wrong", format!("it beside a '{}'", self.does.name()), allowed))
    }

    /// The action without members that have no meaning for its deed.
    #[must_use]
    pub fn without_idle(mut self) -> Self {
        while let Some((key, ..)) = self.idle() {
            match key {
                "to" => self.to = None,
                "amount" => self.amount = None,
                "name" if self.name.is_some() => self.name = None,
                "name" => self.name = Some("it".to_owned()),
                "blocks" => self.blocks = 0,
                "by_time" => self.by_time = false,
                "payments" => self.payments = 0,
                "members" => self.members = Vec::new(),
                "vendor_field" => self.vendor_field = None,
                _ => self.wrong = None,
            }
        }
        if self.owners() == 0 {
            self.signers = Vec::new();
        }
        self
    }
}

/// A part of a deed that an action can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    To,
    Amount,
    Name,
    /// The time for which a lock lasts, or a transfer can wait.
    Blocks,
    /// A lock that ends at a time.
    Clock,
    Payments,
    Members,
    Text,
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

impl Deed {
    /// The parts that an action with this deed can set.
    fn uses(self) -> &'static [Part] {
        match self {
            Self::Transfer => &[Part::To, Part::Amount, Part::Blocks, Part::Text],
            Self::MultiPayment => &[Part::To, Part::Amount, Part::Payments, Part::Text],
            Self::Vote | Self::Unvote => &[Part::To],
            Self::Lock => &[Part::To, Part::Amount, Part::Name, Part::Blocks, Part::Clock, Part::Text],
            Self::Register | Self::Share | Self::Ipfs | Self::Claim | Self::Refund | Self::ResignBridgechain => {
                &[Part::Name]
            }
            Self::Business | Self::UpdateBusiness | Self::Bridgechain | Self::UpdateBridgechain => {
                &[Part::Name, Part::Members]
            }
            Self::SecondSignature | Self::Resign | Self::ResignBusiness => &[],
        }
    }

    /// The members that its object has.
    fn members(self) -> &'static [Member] {
        match self {
            Self::Business | Self::UpdateBusiness => &Member::OF_BUSINESS,
            Self::Bridgechain | Self::UpdateBridgechain => &Member::OF_BRIDGECHAIN,
            _ => &[],
        }
    }

    /// The word in a file.
    fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }
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
    /// Another key than the sender's signs it.
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
