//! Ways in which an actor deviates from the protocol. Only a fault of a scenario makes an actor deviate.
//!
//! An honest actor knows nothing of this. While a deviation is on, its [`Hosted`] keeps inputs from it and changes,
//! delays or adds to what it wants done. Source: consensus.md 7.2.

mod forgery;
mod hosted;

pub use hosted::{Hosted, Stimulus};

use crate::{
    ledger::saved::{saved, shared},
    protocol::{Address, KeyPair, PublicKey, Round},
};
use serde::{Deserialize, Serialize};
use std::{ops::RangeInclusive, time::Duration};

/// Every round of every chain.
pub(super) const ALL_ROUNDS: RangeInclusive<Round> = Round(0)..=Round(u32::MAX);

/// One way to break the rules. Several can be on at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// Delegate: forges nothing in these rounds of its relay's chain. In all rounds, it hears nothing either.
    Offline(Vec<RangeInclusive<Round>>),
    /// Delegate: makes its block so much later than it could. Several at once add up.
    LateForging(Duration),
    /// Delegate: makes two blocks for each of its slots. The second goes straight to every other one of the peers, so it
    /// is there before the first.
    DoubleForge,
    /// Delegate: takes every slot whose number is a multiple of this for its own.
    OutOfTurn { every: u32 },
    /// Delegate: its blocks break one rule and go straight to all peers; its relay does not get to see them.
    ForgeInvalid(InvalidBlock),
    /// Peer: keeps the blocks of its own delegate back for so long; without an end, it throws them away.
    Withhold { release: Option<Duration> },
    /// Peer: takes no transactions, neither from clients nor from peers.
    RefuseTransactions,
    /// Pool: offers its delegate no transaction of this sender.
    Censor(Address),
    /// Peer: says that it stands on another block than it does.
    LieAboutTip(Lie),
    /// Delegate: forges with this key, too, by the rules.
    Spare(KeyPair),
}

impl Deviation {
    /// Delegate: forges nothing.
    pub fn offline() -> Self {
        Self::Offline(vec![ALL_ROUNDS])
    }

    /// A delegate that so deviates does not forge in a round.
    pub fn is_off_in(&self, round: Round) -> bool {
        matches!(self, Self::Offline(rounds) if rounds.iter().any(|rounds| rounds.contains(&round)))
    }

    /// A delegate that so deviates never forges.
    pub fn is_always_off(&self) -> bool {
        matches!(self, Self::Offline(rounds) if rounds.contains(&ALL_ROUNDS))
    }

    /// The key of a spare forger, which breaks no rule.
    pub fn spare(&self) -> Option<&PublicKey> {
        match self {
            Self::Spare(keys) => Some(keys.public()),
            _ => None,
        }
    }

    /// Each actor sees on its own chain when it is over: nobody has to tell it.
    pub fn ends_by_rounds(&self) -> bool {
        matches!(self, Self::Offline(_)) && !self.is_always_off()
    }
}

/// A tip that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lie {
    pub claim: FalseClaim,
    /// So many blocks or slots more.
    pub by: i32,
    /// The key that signs it; without one the true block's signature stays.
    pub keys: Option<KeyPair>,
}

/// The part of a claimed tip that is false. Source: consensus.md 6, verification of a claimed tip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FalseClaim {
    /// The height, that said beside blocks and answers included.
    #[default]
    Height,
    /// The id, which is not that of the header.
    Id,
    /// The slot.
    Slot,
}

/// The rule that a block made on purpose breaks. Source: consensus.md 3.3 and 3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidBlock {
    /// Names no previous block.
    PreviousBlock,
    /// Pays one arktoshi too much.
    Reward,
    /// The signature is another block's.
    Signature,
    /// The version is one too high.
    Version,
    /// Lies in a slot that has not begun.
    Timestamp,
    /// Larger than the payload limit.
    PayloadSize,
    /// Holds a transaction whose signature does not hold.
    TransactionSignature,
    /// Says that it holds one transaction more than it does.
    NumberOfTransactions,
    /// Holds more transactions than a block may.
    TooManyTransactions,
    /// Holds one transaction twice.
    DuplicateTransaction,
    /// Holds a transaction that has expired.
    ExpiredTransaction,
    /// Holds a transaction of the old version from too far in the future.
    FutureTransaction,
    /// Says that more coin moves than does.
    TotalAmount,
    /// Says that higher fees are paid than are.
    TotalFee,
    /// The payload hash is another block's.
    PayloadHash,
    /// The id is not that of its header.
    Id,
    /// Holds a transaction whose nonce is not its sender's next.
    Nonce,
    /// Holds a transaction that spends what its sender does not have.
    Overspent,
    /// Holds a transaction of the other version beside one of the right version.
    MixedVersions,
}

impl InvalidBlock {
    /// Every one, in the order of the contract.
    pub const ALL: [Self; 19] = [
        Self::PreviousBlock,
        Self::Reward,
        Self::Signature,
        Self::Version,
        Self::Timestamp,
        Self::PayloadSize,
        Self::TransactionSignature,
        Self::NumberOfTransactions,
        Self::TooManyTransactions,
        Self::DuplicateTransaction,
        Self::ExpiredTransaction,
        Self::FutureTransaction,
        Self::TotalAmount,
        Self::TotalFee,
        Self::PayloadHash,
        Self::Id,
        Self::Nonce,
        Self::Overspent,
        Self::MixedVersions,
    ];
}

saved!(enum Deviation {
    0 Offline(rounds),
    1 LateForging(by),
    2 DoubleForge,
    3 OutOfTurn { every },
    4 ForgeInvalid(error),
    5 Withhold { release },
    6 RefuseTransactions,
    7 Censor(sender),
    8 LieAboutTip(lie),
    9 Spare(keys),
});
shared!(Deviation);
saved!(struct Lie { claim, by, keys });
saved!(enum FalseClaim { 0 Height, 1 Id, 2 Slot });
saved!(enum InvalidBlock {
    0 PreviousBlock,
    1 Reward,
    2 Signature,
    3 Version,
    4 Timestamp,
    5 PayloadSize,
    6 TransactionSignature,
    7 NumberOfTransactions,
    8 TooManyTransactions,
    9 DuplicateTransaction,
    10 ExpiredTransaction,
    11 FutureTransaction,
    12 TotalAmount,
    13 TotalFee,
    14 PayloadHash,
    15 Id,
    16 Nonce,
    17 Overspent,
    18 MixedVersions,
});
