//! The scenario file as values: TOML in, and a checked [`Scenario`] out, or one line that names the mistake and the allowed
//! values. `load.rs` reads files, and `limits.rs` checks them.

use super::{
    agents::Agents, assertion::Assertion, overrides::OverrideError, script::Action, section::NetworkSection,
    workload::Workload,
};
use crate::{protocol::crypto::CryptoMode, sim::Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, io, path::PathBuf};

/// A run, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format: 1.
    pub version: u32,
    /// One line on what the run shows.
    #[serde(default)]
    pub description: String,
    /// Other files, relative to this one, whose keys hold where this one says nothing; their faults, workloads, agents
    /// and assertions come before this one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Rounds to play, the one of the genesis block included.
    pub rounds: u32,
    /// The rule that ends a run in which no block comes; the run is censored then. By default it ends after four rounds' worth of
    /// slots. The default is "off" in a scenario that asserts `converged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallRule>,
    /// Virtual seconds after which a run is ended, censored. By default only where `stall` is "off": four times as long as
    /// the rounds take when no slot is missed, and 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u32>,
    /// The number of events after which a run is ended, censored: with the slot in which it is reached. By default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// The treatment of signatures: "real" (the default), "every-node" or "modelled".
    #[serde(default)]
    pub crypto: CryptoMode,
    /// The network: its delegates, its milestones, and its links.
    #[serde(default)]
    pub network: NetworkSection,
    /// The rules of the nodes: `base` names a set of rules ("reference" if not given; docs/protocols.md has all), and any rule can be set by name.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub rules: toml::Table,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// A client that acts by a script.
    #[serde(default, rename = "action", skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// The sources of transactions.
    #[serde(default, rename = "workload", skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// Groups of voters and delegates that decide at round ends, each by a policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agents>,
    /// The assertions. A run in which one does not hold has failed.
    #[serde(default, rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Assertion>,
}

/// The time for which a chain may not grow before the run is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StallRule {
    /// However long: only the time limit ends it.
    Off,
    /// A number of rounds' worth of slots.
    Rounds(u32),
    /// A number of virtual seconds.
    Seconds(u32),
}

/// The position of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePosition {
    /// In a line of a file, counted from 1.
    Line { file: PathBuf, line: usize },
    /// In a file, nowhere in particular.
    File(PathBuf),
    /// In a value that replaced a value of the file.
    Override { file: PathBuf, set: String },
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Override { file, set } => write!(f, "{} with '{set}'", file.display()),
        }
    }
}

/// The error of a scenario file: the position, the key, the value found and the allowed values.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ScenarioError {
    /// A file that cannot be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The scenario file, or a file that it includes.
        file: PathBuf,
        /// The reason: an error of the operating system, or a file that is no regular one, too large or no text.
        source: io::Error,
    },
    /// A text that is no TOML, or a value of another form than the format has.
    #[error("{place}: {}{message}", key.as_ref().map(|key| format!("key '{key}': ")).unwrap_or_default())]
    Malformed {
        /// The position of the mistake.
        place: SourcePosition,
        /// The path of the key, or the key on that line if the text is no TOML. `None` if there is none.
        key: Option<String>,
        /// The reason, mostly with the expected form.
        message: String,
    },
    /// A value of the right form that this scenario does not allow.
    #[error("{place}: key '{key}': found {found}, allowed is {allowed}")]
    NotAllowed {
        /// The position of the value.
        place: SourcePosition,
        /// The path of the key, such as `fault[0].rounds`.
        key: String,
        /// The value found, or a description of it, such as `an empty list`. It comes from a file or an override.
        found: String,
        /// The allowed values.
        allowed: String,
    },
    /// An override (`--set`, `--vary`) that does not fit the file.
    #[error("{}: {source}", file.display())]
    Unfitting {
        /// The scenario file.
        file: PathBuf,
        /// The reason, which names the path of the override.
        source: OverrideError,
    },
    /// A file that includes itself, directly or through other files.
    #[error("{place}: key 'include': {} includes itself", file.display())]
    Circle {
        /// The position of the `include`.
        place: SourcePosition,
        /// The file that is included again.
        file: PathBuf,
    },
}

impl Scenario {
    /// The delegates' usernames, in the order of their nodes.
    pub fn usernames(&self) -> Vec<String> {
        (1..=self.network.delegates + self.network.standby).map(|number| format!("genesis_{number}")).collect()
    }

    /// The stall rule in force.
    pub fn stall_rule(&self) -> StallRule {
        let converged =
            |assertion: &Assertion| assertion.claim().is_ok_and(|claim| claim.condition().is_about_convergence());
        let default = if self.assertions.iter().any(converged) { StallRule::Off } else { StallRule::Rounds(4) };
        self.stall.unwrap_or(default)
    }

    /// The scenario as the text of one file, with the content of all included files.
    pub fn to_toml(&self) -> String {
        let alone = Self { include: Vec::new(), ..self.clone() };
        toml::to_string(&alone).expect("a scenario is made of what TOML can hold")
    }
}
