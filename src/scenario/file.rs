//! The scenario file as values: TOML in, a checked [`Scenario`] out, or one line that says what is wrong and what is
//! allowed. How a file is read stands in `load.rs`, what is checked in `limits.rs`.

use super::{
    Override,
    assertion::{Assertion, Condition},
    load,
    overrides::OverrideError,
    script::Action,
    workload::Workload,
};
use crate::{
    ledger::rules::Gossip,
    protocol::crypto::CryptoMode,
    sim::{Fault, NetworkModel},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// A run, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format: 1.
    pub version: u32,
    /// One line on what the run shows.
    #[serde(default)]
    pub description: String,
    /// Other files, relative to this one, whose keys hold where this one says nothing; their faults, workloads and
    /// assertions come before this one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Rounds to play, the one of the genesis block included.
    pub rounds: u32,
    /// When a run in which no block comes is ended; it is censored then. By default after four rounds' worth of slots, but
    /// "off" in a scenario that asserts `converged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallRule>,
    /// Virtual seconds after which a run is ended, censored. By default only where `stall` is "off": four times as long as
    /// the rounds take when no slot is missed, and 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u32>,
    /// How signatures are treated: "real" (the default), "every-node" or "modelled".
    #[serde(default)]
    pub crypto: CryptoMode,
    #[serde(default)]
    pub network: NetworkSection,
    /// The rules of the nodes: `base` is "reference" (the default) or "corrected", and any rule can be set by name.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub rules: toml::Table,
    /// What goes wrong.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// A client that acts by a script.
    #[serde(default, rename = "action", skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Who hands in transactions.
    #[serde(default, rename = "workload", skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// What must hold; a run in which one does not has failed.
    #[serde(default, rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Assertion>,
}

/// How long a chain may not grow before the run is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StallRule {
    /// However long: only the time limit ends it.
    Off,
    /// So many rounds' worth of slots.
    Rounds(u32),
    /// So many virtual seconds.
    Seconds(u32),
}

/// The network the run plays on: one node for each delegate, numbered as the delegates, and further ones after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// Number of active delegates, named `genesis_1`, `genesis_2`, …
    pub delegates: u32,
    /// Registered delegates beyond those: they follow in the numbering, and forge when they are voted in.
    #[serde(skip_serializing_if = "is_zero")]
    pub standby: u32,
    /// What each forged block pays, in arktoshi; nothing for the first 75,599 heights, as in the preset, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<u64>,
    /// What changes at some heights, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<Change>,
    /// Nodes without a delegate.
    #[serde(skip_serializing_if = "is_zero")]
    pub relays: u32,
    /// How blocks travel; `rules.gossip` is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gossip: Option<Gossip>,
    #[serde(flatten)]
    pub model: NetworkModel,
}

/// A milestone of the network: what is in force from a height on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From the block of this height on; 2 or more.
    pub height: u32,
    /// What each forged block pays, in arktoshi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<u64>,
    /// Number of active delegates, at most those that are registered; only where a round begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegates: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for NetworkSection {
    fn default() -> Self {
        Self {
            delegates: 51,
            standby: 0,
            reward: None,
            milestones: Vec::new(),
            relays: 0,
            gossip: None,
            model: NetworkModel::default(),
        }
    }
}

impl NetworkSection {
    /// All nodes.
    pub fn nodes(&self) -> u32 {
        self.delegates + self.standby + self.relays
    }

    /// The first height of a round, and the number of active delegates in it. Round 1 begins with height 1.
    pub fn round(&self, round: u32) -> (u32, u32) {
        let (mut first, mut seats, mut before) = (1, self.delegates, 1);
        for change in &self.milestones {
            let Some(delegates) = change.delegates.filter(|delegates| *delegates != seats) else { continue };
            let rounds = change.height.saturating_sub(first) / seats;
            if round < before + rounds {
                break;
            }
            (first, seats, before) = (change.height, delegates, before + rounds);
        }
        (first + round.saturating_sub(before).saturating_mul(seats), seats)
    }
}

/// Where a mistake stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a line of a file, counted from 1.
    Line { file: PathBuf, line: usize },
    /// In a file, nowhere in particular.
    File(PathBuf),
    /// In a value that replaced one of the file's.
    Override { file: PathBuf, set: String },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Override { file, set } => write!(f, "{} with '{set}'", file.display()),
        }
    }
}

/// A scenario file that cannot be run: where, which key, what was found, what is allowed.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ScenarioError {
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{place}: {}{message}", key.as_ref().map(|key| format!("key '{key}': ")).unwrap_or_default())]
    Malformed { place: Place, key: Option<String>, message: String },
    #[error("{place}: key '{key}': found {found}, allowed is {allowed}")]
    NotAllowed { place: Place, key: String, found: String, allowed: String },
    #[error("{}: {source}", file.display())]
    Unfitting { file: PathBuf, source: OverrideError },
    #[error("{place}: key 'include': {} includes itself", file.display())]
    Circle { place: Place, file: PathBuf },
}

impl Scenario {
    /// Reads and checks a file and what it includes.
    ///
    /// # Errors
    /// A file cannot be read, is not TOML of this format, or names what does not exist.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        load::load(file, None, &[])
    }

    /// Reads a file, replaces values in it, and checks what comes of that.
    ///
    /// # Errors
    /// As [`Scenario::load`]; where a replaced value is at fault, the error names it instead of a line.
    pub fn load_with(file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load::load(file, None, overrides)
    }

    /// The files that a scenario is made of: its own first, then those that it includes.
    ///
    /// # Errors
    /// A file cannot be read or is not TOML.
    pub fn files_of(file: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
        load::files_of(file)
    }

    /// [`Scenario::load_with`] on the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load_with`].
    pub fn parse_with(text: &str, file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load::load(file, Some(text), overrides)
    }

    /// Checks the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        load::load(file, Some(text), &[])
    }

    /// The delegates' usernames, in the order of their nodes.
    pub fn usernames(&self) -> Vec<String> {
        (1..=self.network.delegates + self.network.standby).map(|number| format!("genesis_{number}")).collect()
    }

    /// The stall rule in force.
    pub fn stall_rule(&self) -> StallRule {
        let converged =
            |assertion: &Assertion| assertion.claim().is_ok_and(|claim| *claim.condition() == Condition::Converged);
        let default = if self.assertions.iter().any(converged) { StallRule::Off } else { StallRule::Rounds(4) };
        self.stall.unwrap_or(default)
    }

    /// The scenario as the text of a file, everything included ones said in it.
    pub fn to_toml(&self) -> String {
        let alone = Self { include: Vec::new(), ..self.clone() };
        toml::to_string(&alone).expect("a scenario is made of what TOML can hold")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_begin_where_milestones_let_them() {
        let change = |height, delegates| Change { height, delegates, ..Change::default() };
        let milestones = vec![change(9, Some(5)), change(11, None), change(19, Some(2))];
        let network = NetworkSection { delegates: 4, standby: 2, milestones, ..NetworkSection::default() };
        let rounds: Vec<(u32, u32)> = (1..=7).map(|round| network.round(round)).collect();
        assert_eq!(rounds, [(1, 4), (5, 4), (9, 5), (14, 5), (19, 2), (21, 2), (23, 2)]);
        let plain = NetworkSection { delegates: 51, ..NetworkSection::default() };
        assert_eq!((plain.round(1), plain.round(100)), ((1, 51), (5_050, 51)));
    }
}
