//! Delegates whose blocks break a rule.

use super::{Setting, Strategy, forgery};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Event, Message, Role, behaviour::Step},
    ledger::codec::saved,
    sim::fault::{Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Delegates whose blocks break one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeInvalid {
    /// The delegates that forge the invalid blocks.
    pub delegates: Nodes,
    /// The rule that their blocks break.
    pub error: InvalidBlock,
}

impl Strategy for ForgeInvalid {
    const NAME: &'static str = "forge-invalid";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [0]\nerror = 'reward'";
    type Behaviour = Breaking;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Breaking)> {
        let rule = self.error;
        setting.each(&self.delegates, Role::Delegate, |_| Breaking { rule, oversize: forgery::Oversize::default() })
    }
}

/// The rule that a block made on purpose breaks. Source: consensus.md 3.3 and 3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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

/// The delegate's blocks break one rule and go straight to all peers; its relay does not get to see them.
#[derive(Clone, Debug)]
pub struct Breaking {
    rule: InvalidBlock,
    oversize: forgery::Oversize,
}

impl Behaviour for Breaking {
    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        match (effect, actor.delegate()) {
            (Effect::Observe(Event::BlockForged(_)), _) => None,
            (Effect::Send { message: Message::Forged(block), .. }, Some(delegate)) => {
                let broken = Arc::new(forgery::broken(&block, self.rule, delegate, &mut self.oversize));
                step.put(Effect::Observe(Event::BlockForged(broken.clone())));
                step.push(step.peers.iter().copied(), &broken);
                None
            }
            (effect, _) => Some(effect),
        }
    }
}

saved!(struct Breaking { rule, oversize });
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
