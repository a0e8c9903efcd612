//! Parameters that change with height. Source: protocol.md 5.2.

use super::{Arktoshi, Height};
use serde_json::Value;

/// The parameters in force from a height on, merged over all milestones before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Milestone {
    pub height: Height,
    /// Reward of a block.
    pub reward: Arktoshi,
    pub active_delegates: u32,
    /// Slot length [s]; slot arithmetic uses only that of height 1.
    pub blocktime: u32,
    pub block: BlockRules,
    /// Limit of a vendor field [bytes].
    pub vendor_field_length: usize,
    pub multi_payment_limit: usize,
    pub aip11: bool,
    pub htlc_enabled: bool,
    pub ignore_invalid_second_signature_field: bool,
    pub ignore_expired_transactions: bool,
    pub fees: StaticFees,
    /// The merged milestone as JSON, members in the order of the files, as the API shows it.
    pub json: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRules {
    pub version: u32,
    pub max_transactions: usize,
    /// [bytes]
    pub max_payload: usize,
    pub id_full_sha256: bool,
    pub accept_expired_transaction_timestamps: bool,
}

/// Static fees; the members are in `transaction::fees`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFees {/* to be filled: one fee for every kind of transaction, milestone over constant */}

/// All milestones of a network, by height.
#[derive(Clone, Debug, PartialEq)]
pub struct Milestones {
    merged: Vec<Milestone>,
}

impl Milestones {
    /// From the JSON array of a `milestones.json`.
    pub fn from_json(list: &Value) -> Result<Self, MilestoneError> {
        todo!("{list}")
    }
    /// The milestone in force at a height.
    pub fn at(&self, height: Height) -> &Milestone {
        todo!("{height}")
    }
    /// All of them, each merged over its predecessors, ascending by height.
    pub fn all(&self) -> &[Milestone] {
        &self.merged
    }
    pub fn is_milestone(&self, height: Height) -> bool {
        self.merged.iter().any(|milestone| milestone.height == height)
    }
}

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MilestoneError {/* which milestone, which key, what was found, what is allowed */}
