//! A chain from a file, a node or a testnet, judged block by block from outside: by the ledger's own rules, and then by the checker's.
//!
//! ```text
//!   files, pages of an API, the log of a testnet
//!        │ claims: each block as it is shown, whole or in part
//!        ▼
//!   content   id, signature, sums, payload, transactions by themselves     ledger and protocol: no state is needed
//!   place     previous, height, slot                                       the block before is needed
//!   turn      the owner of the slot                                        the state before, or the delegates of the round
//!   state     BlockTree::extend, then check_step                           every block from genesis on is needed
//!        ▼
//!   report    each rule that a block breaks, each rule that could not be judged and why, empty slots, forks
//! ```
//!
//! The report names each rule that could not be judged. Such a rule does not count as kept. A block that breaks a rule is not applied. So
//! the state after it is unknown, and the rules that need this state are not judged above it.

mod claim;
mod incident;
mod judge;
mod rule;
mod seats;
mod story;

pub use claim::{BlockClaim, ClaimError, Claims, Extent};
pub use incident::{Incident, NoIncident};
pub use judge::observe;
pub use rule::{ChainRule, RuleViolation};
pub use seats::{Seats, SeatsError};
pub use story::{Branch, Double, Fork, MissedSlot, SlotGap};

use crate::protocol::Height;
use serde::Serialize;

/// The result of an observation.
#[derive(Clone, Debug, Serialize)]
pub struct ChainReport {
    /// Blocks that were judged.
    pub blocks: usize,
    /// The least and the greatest height among them; `None` without any.
    pub heights: Option<(Height, Height)>,
    /// The height of the highest block that was applied together with every block below it; `None` if only genesis was.
    pub applied_to: Option<Height>,
    /// The violations, by height.
    pub broken: Vec<BrokenBlock>,
    /// Each rule, with the number of blocks that it was held against.
    pub rules: Vec<RuleCount>,
    /// The height of the longest chain of blocks that break no rule. No empty slot above it counts.
    pub told_to: Option<Height>,
    /// The empty slots of the longest chain.
    pub gaps: Vec<SlotGap>,
    /// The forks: several blocks on one parent.
    pub forks: Vec<Fork>,
    /// Slots for which one delegate made several blocks.
    pub doubles: Vec<Double>,
    /// The slots for a scenario.
    #[serde(skip)]
    pub incident: Incident,
}

/// A block that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenBlock {
    /// The file and line, or the request, that showed the block.
    pub origin: String,
    /// As it was shown.
    pub id: Option<String>,
    pub height: Option<Height>,
    #[serde(flatten)]
    pub violation: RuleViolation,
}

/// How often a rule was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    pub rule: ChainRule,
    /// The section of the contract that states it.
    pub source: &'static str,
    /// Blocks that it was held against.
    pub judged: usize,
    /// Blocks that it could not be held against.
    pub not_judged: usize,
    /// The most frequent reason for that.
    pub why_not: Option<String>,
}

impl ChainReport {
    /// Returns true if no block breaks a rule.
    pub fn is_in_order(&self) -> bool {
        self.broken.is_empty()
    }
}
