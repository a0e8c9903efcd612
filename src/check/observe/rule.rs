//! The rules of a block, by name.

use crate::{ledger::BlockRejected, protocol::BlockError};
use serde::{Serialize, Serializer};

/// Declares the rules: the name of each, and the section that states it.
macro_rules! rules {
    ($($(#[doc = $doc:literal])* $rule:ident: $name:literal, $source:literal;)*) => {
        /// A rule that a block keeps or breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ChainRule {
            $($(#[doc = $doc])* $rule,)*
        }

        impl ChainRule {
            /// All rules, in the order in which they are judged.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// The name, as in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// The section of the contract that states it.
            pub fn source(self) -> &'static str {
                match self {
                    $(Self::$rule => $source,)*
                }
            }
        }
    };
}

rules! {
    /// All members are present, with values that a block can have.
    Form: "form", "protocol.md 3.5, 4.2";
    /// The first block is the network's.
    Genesis: "genesis", "protocol.md 5.4";
    /// The id is that of the header.
    Id: "id", "protocol.md 4.2";
    /// The generator has signed the header.
    Signature: "signature", "consensus.md 3.4, protocol.md 4.1";
    Version: "version", "protocol.md 4.3";
    /// The reward is the milestone's.
    Reward: "reward", "consensus.md 3.4";
    /// The block before is the one that it names.
    Previous: "previous", "consensus.md 3.1";
    /// The height is one more than that of the block before.
    Height: "height", "consensus.md 3.1";
    /// The slot is later than that of the block before.
    Slot: "slot", "consensus.md 3.1";
    /// The generator owns the slot.
    Turn: "turn", "consensus.md 1.4";
    /// The size of the block is within the limit.
    Size: "size", "protocol.md 4.3";
    /// The number of transactions is the header's, and within the limit.
    Count: "count", "protocol.md 4.3";
    /// The sum of amounts is what the header says.
    Amount: "amount", "protocol.md 4.3";
    /// The sum of fees is what the header says.
    Fee: "fee", "protocol.md 4.3";
    /// The payload hash of the header is that of the transactions' ids.
    PayloadHash: "payload-hash", "protocol.md 4.3";
    /// The id of each transaction is that of its members.
    TransactionId: "transaction-id", "protocol.md 3.5";
    /// Each transaction is signed.
    TransactionSignature: "transaction-signature", "protocol.md 4.3";
    /// No transaction stands in the block twice.
    TransactionTwice: "transaction-twice", "protocol.md 4.3";
    /// No transaction has expired, or is of a later time.
    TransactionTime: "transaction-time", "protocol.md 4.3";
    /// All transactions have one version.
    TransactionVersions: "transaction-versions", "consensus.md 3.3";
    /// No transaction is on the chain already.
    TransactionForged: "transaction-forged", "consensus.md 3.3";
    /// The wallets before the block allow each transaction: nonce, balance, second signature and what its type demands.
    TransactionState: "transaction-state", "consensus.md 4.4, 4.5";
    /// Enough delegates are left for the next round.
    Delegates: "delegates", "consensus.md 1.2";
    /// The invariants of a step, by the checker's own code.
    Checker: "checker", "consensus.md 7.1";
}

impl ChainRule {
    /// The rules that need the transactions of a block.
    pub(super) const OF_TRANSACTIONS: [Self; 10] = [
        Self::Size,
        Self::Count,
        Self::Amount,
        Self::Fee,
        Self::PayloadHash,
        Self::TransactionId,
        Self::TransactionSignature,
        Self::TransactionTwice,
        Self::TransactionTime,
        Self::TransactionVersions,
    ];
    /// The rules that need the state before a block.
    pub(super) const OF_STATE: [Self; 4] =
        [Self::TransactionForged, Self::TransactionState, Self::Delegates, Self::Checker];
    /// The rules that need the header of a block.
    pub(super) const OF_HEADER: [Self; 4] = [Self::Id, Self::Signature, Self::Version, Self::Reward];

    /// The rule that an error of a block's content is about. `None` for an error that only announces others.
    pub(super) fn of_content(error: &BlockError) -> Option<Self> {
        Some(match error {
            BlockError::PreviousBlock => Self::Previous,
            BlockError::Reward { .. } => Self::Reward,
            BlockError::Signature | BlockError::SignatureEncoding(_) => Self::Signature,
            BlockError::Version { .. } => Self::Version,
            BlockError::Timestamp { .. } => Self::Slot,
            BlockError::PayloadSize { .. } => Self::Size,
            BlockError::TransactionsNotVerified { .. } => return None,
            BlockError::NotVerified(_) => Self::TransactionSignature,
            BlockError::NumberOfTransactions { .. } | BlockError::TooManyTransactions { .. } => Self::Count,
            BlockError::Duplicate(_) => Self::TransactionTwice,
            BlockError::Expired(_) | BlockError::Future(_) => Self::TransactionTime,
            BlockError::TotalAmount { .. } => Self::Amount,
            BlockError::TotalFee { .. } => Self::Fee,
            BlockError::PayloadHash => Self::PayloadHash,
        })
    }
}

impl Serialize for ChainRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A rule that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleViolation {
    pub rule: ChainRule,
    /// The value found, and the value allowed.
    pub what: String,
}

impl RuleViolation {
    pub(super) fn new(rule: ChainRule, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }

    /// The violations that an error of a block's content stands for.
    pub(super) fn of_content(error: &BlockError) -> Option<Self> {
        let rule = ChainRule::of_content(error)?;
        let what = match error {
            BlockError::NotVerified(transaction) => {
                format!("transaction {}: its signature does not hold", transaction.id())
            }
            BlockError::PreviousBlock => "it names no block before it".to_owned(),
            BlockError::Version { found, expected } => format!("found {found}, allowed is {expected}"),
            BlockError::NumberOfTransactions { found, said } => {
                format!("found {found} transactions, the header says {said}")
            }
            BlockError::TooManyTransactions { found, limit } => {
                format!("found {found} transactions, allowed are {limit}")
            }
            BlockError::TotalAmount { found, said } => format!("the amounts sum up to {found}, the header says {said}"),
            BlockError::TotalFee { found, said } => format!("the fees sum up to {found}, the header says {said}"),
            other => other.to_string(),
        };
        Some(Self { rule, what })
    }

    /// The violations for which the ledger refuses a block.
    pub(super) fn of_refusal(refused: &BlockRejected) -> Vec<Self> {
        let rule = match refused {
            BlockRejected::NotVerified { errors, .. } => return errors.iter().filter_map(Self::of_content).collect(),
            BlockRejected::NotChained { .. } => ChainRule::Previous,
            BlockRejected::WrongId { .. } => ChainRule::Id,
            BlockRejected::Crowded { .. } => ChainRule::Count,
            BlockRejected::FromFuture { .. } => ChainRule::Slot,
            BlockRejected::MixedVersions { .. } => ChainRule::TransactionVersions,
            BlockRejected::WrongForger { .. } => ChainRule::Turn,
            BlockRejected::AlreadyForged { transaction, .. } => {
                return vec![Self::new(
                    ChainRule::TransactionForged,
                    format!("transaction {transaction} is on the chain already"),
                )];
            }
            BlockRejected::NotApplicable { transaction, source, .. } => {
                return vec![Self::new(ChainRule::TransactionState, format!("transaction {transaction}: {source}"))];
            }
            BlockRejected::TooFewDelegates { .. } => ChainRule::Delegates,
            // No observed chain has it: headers of the reference confirm nothing.
            BlockRejected::ConfirmsTwice { .. } => ChainRule::Form,
        };
        vec![Self::new(rule, refused.to_string())]
    }
}
