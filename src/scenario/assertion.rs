//! Assertions of a scenario: conditions over the whole network, and the times at which they must hold.
//!
//! ```toml
//! [[assert]]
//! always = "rollback-depth <= 2"
//!
//! [[assert]]
//! eventually = "converged"        # within so many rounds' worth of slots after the end of the scenario's first fault
//! within_rounds = 3
//! after_fault = 0
//! ```

mod condition;

pub use condition::{Comparison, Condition, MemberKind, Operand, Quantifier};

use crate::sim::Trigger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that must hold of a run: one of four claims about a condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Assertion {
    /// A condition that holds at the end of every slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// A condition that holds at the end of at least one slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sometimes: Option<String>,
    /// A condition that holds at the end of a slot after the moment of `after` or `after_fault`, and not later than
    /// `within_rounds` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eventually: Option<String>,
    /// A condition that holds when the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finally: Option<String>,
    /// The number of rounds' worth of slots, for `eventually`; to the end of the run, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_rounds: Option<u32>,
    /// The moment from which `always` and `eventually` count; the start, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Trigger>,
    /// Instead of `after`: the end of the fault of this index (its beginning, if it is over at once or never ends).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_fault: Option<u32>,
}

/// A parsed [`Assertion`].
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    Always(Condition),
    Sometimes(Condition),
    Eventually(Condition),
    Finally(Condition),
}

/// Declares the metrics with their names and descriptions.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:literal => $variant:ident,)*) => {
        /// A number that describes the whole network. The winning tip is the block that most live nodes stand on. Among equals
        /// it is the higher one, then the one with the lower id. The winning chain ends in it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Metric {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Metric {
            /// All metrics.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in a condition.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Describes it in one sentence.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)*
                }
            }
        }
    };
}

metrics! {
    /// Height of the winning chain.
    "height" => Height,
    /// Blocks of the winning chain that were forged in the run.
    "blocks" => Blocks,
    /// Time between the block below the winning tip and the winning tip, in seconds.
    "gap" => Gap,
    /// Height of the lowest live node's chain.
    "lowest-height" => LowestHeight,
    /// Round of the winning chain's next block.
    "round" => Round,
    /// Share of the live nodes that stand exactly on the winning tip.
    "agreement" => Agreement,
    /// Share of the live nodes' vote weight that stands there.
    "vote-agreement" => VoteAgreement,
    /// Number of chains: tips of live nodes that are not below another live node's tip.
    "chains" => Chains,
    /// Nodes that are down: crashed or paused.
    "down" => Down,
    /// Slots without a block on the winning chain, from the first slot of the run on. Under a lottery, those that a delegate owns.
    "missed" => Missed,
    /// Longest time between two blocks of any chain, in seconds.
    "longest-gap" => LongestGap,
    /// Blocks forged, whatever became of them.
    "blocks-forged" => BlocksForged,
    /// Blocks refused, counted at each node.
    "blocks-refused" => BlocksRefused,
    /// Blocks taken back, counted at each node.
    "blocks-reverted" => BlocksReverted,
    /// Times a node left its chain.
    "rollbacks" => Rollbacks,
    /// Blocks of the deepest rollback.
    "rollback-depth" => RollbackDepth,
    /// Times a delegate did not forge for lack of peers or quorum.
    "suspended" => Suspended,
    /// Times a node asked its peers whether they are on its chain.
    "health-checks" => HealthChecks,
    /// Active delegates of the winning chain's next block that were not active in the round before.
    "turnover" => Turnover,
    /// Gini coefficient of these active delegates' vote weights when their round began, from 0 to 1.
    "gini" => Gini,
    /// Least number of these active delegates that have more than half of their vote weight.
    "nakamoto" => Nakamoto,
    /// The most of these active delegates that belong to one group of agents.
    "captured" => Captured,
    /// Forged transactions of the winning chain, those of its first block left out.
    "transactions" => Transactions,
    /// Pending transactions in the fullest pool of a live node.
    "pool" => Pool,
    /// Transactions pools refused, counted at each node.
    "rejected" => Rejected,
    /// Transactions that expired in a pool, counted at each node.
    "expired" => Expired,
    /// Transactions that gave way to dearer ones in a full pool, counted at each node.
    "evicted" => Evicted,
    /// Peers dropped, counted at each node.
    "peers-removed" => PeersRemoved,
}

impl Claim {
    /// Returns the condition that it is about.
    pub fn condition(&self) -> &Condition {
        match self {
            Self::Always(condition)
            | Self::Sometimes(condition)
            | Self::Eventually(condition)
            | Self::Finally(condition) => condition,
        }
    }
}

/// The error of an assertion: the key within it, the value found, and the allowed values.
type AssertionMistake = (&'static str, String, String);

impl Assertion {
    /// Asserts that the condition holds at the end of every slot.
    pub fn always(condition: impl Into<String>) -> Self {
        Self { always: Some(condition.into()), ..Self::default() }
    }

    /// Asserts that the condition holds at the end of at least one slot.
    pub fn sometimes(condition: impl Into<String>) -> Self {
        Self { sometimes: Some(condition.into()), ..Self::default() }
    }

    /// Asserts that the condition holds at the end of a slot within this number of rounds' worth of slots from the start.
    pub fn eventually(condition: impl Into<String>, within_rounds: u32) -> Self {
        Self { eventually: Some(condition.into()), within_rounds: Some(within_rounds), ..Self::default() }
    }

    /// Asserts that the condition holds when the run ends.
    pub fn finally(condition: impl Into<String>) -> Self {
        Self { finally: Some(condition.into()), ..Self::default() }
    }

    /// Reads its claim.
    ///
    /// # Errors
    /// None or several claims are made, or a condition cannot be read: key, what was found, what is allowed.
    pub fn claim(&self) -> Result<Claim, AssertionMistake> {
        type Kind<'a> = (&'static str, &'a Option<String>, fn(Condition) -> Claim);
        let make: [Kind<'_>; 4] = [
            ("always", &self.always, Claim::Always),
            ("sometimes", &self.sometimes, Claim::Sometimes),
            ("eventually", &self.eventually, Claim::Eventually),
            ("finally", &self.finally, Claim::Finally),
        ];
        let mut given = make.iter().filter_map(|(key, text, make)| Some((key, text.as_ref()?, make)));
        let (Some((key, text, make)), None) = (given.next(), given.next()) else {
            let found = make.iter().filter(|(_, text, _)| text.is_some()).count();
            let allowed = "exactly one of always, sometimes, eventually and finally".to_owned();
            return Err(("", format!("{found} claims"), allowed));
        };
        let claim = make(text.parse().map_err(|allowed| (*key, format!("'{text}'"), allowed))?);
        let from_when = self.after.is_some() || self.after_fault.is_some();
        if self.within_rounds.is_some() && self.eventually.is_none() {
            return Err(("within_rounds", format!("it beside '{key}'"), "it beside 'eventually'".to_owned()));
        }
        if from_when && (self.sometimes.is_some() || self.finally.is_some()) {
            let part = if self.after.is_some() { "after" } else { "after_fault" };
            return Err((part, format!("it beside '{key}'"), "it beside 'always' and 'eventually'".to_owned()));
        }
        Ok(claim)
    }
}

/// The text of the assertion.
impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims = [
            ("always", &self.always),
            ("sometimes", &self.sometimes),
            ("eventually", &self.eventually),
            ("finally", &self.finally),
        ];
        for (name, condition) in claims.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            write!(f, "{name} {condition}")?;
        }
        if let Some(rounds) = self.within_rounds {
            write!(f, " within {rounds} rounds")?;
        }
        if let Some(fault) = self.after_fault {
            write!(f, " after fault {fault}")?;
        }
        match &self.after {
            Some(after) => write!(f, " after {}", serde_json::to_string(after).unwrap_or_default()),
            None => Ok(()),
        }
    }
}
