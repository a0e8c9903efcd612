//! The scenario file: TOML in, a checked [`Scenario`] out, or one line that says what is wrong and what is allowed.

use super::{Override, overrides::OverrideError, testnet::DELEGATES_LIMIT};
use crate::{
    ledger::rules::Gossip,
    sim::{
        Fault, FaultKind, Latency,
        fault::{NodeRef, Nodes},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

/// The version of the file format this build reads.
const VERSION: u32 = 1;
/// Rounds a scenario can run.
const ROUNDS_LIMIT: u32 = 100_000;

/// A run, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format: 1.
    pub version: u32,
    /// One line on what the run shows.
    #[serde(default)]
    pub description: String,
    /// Rounds to play, the one of the genesis block included.
    pub rounds: u32,
    #[serde(default)]
    pub network: NetworkSection,
    /// What goes wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// The network the run plays on: a full mesh of one node for each delegate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// Number of delegates, named `genesis_1`, `genesis_2`, …
    pub delegates: u32,
    pub latency: Latency,
    pub gossip: Gossip,
}

impl Default for NetworkSection {
    fn default() -> Self {
        Self { delegates: 51, latency: Latency::default(), gossip: Gossip::Once }
    }
}

/// A scenario file that cannot be run: which file, where in it, what was found, what is allowed.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ScenarioError {
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: {}{message}", file.display(), key.as_ref().map(|key| format!("key '{key}': ")).unwrap_or_default())]
    Malformed { file: PathBuf, line: usize, key: Option<String>, message: String },
    #[error("{}: key '{key}': found {found}, allowed is {allowed}", file.display())]
    NotAllowed { file: PathBuf, key: String, found: String, allowed: String },
    #[error("{}: {source}", file.display())]
    Unfitting { file: PathBuf, source: OverrideError },
    #[error("{} with {sets}: {message}", file.display())]
    Overridden { file: PathBuf, sets: String, message: String },
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML of this format, or names what does not exist.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(file)
            .map_err(|source| ScenarioError::Unreadable { file: file.to_path_buf(), source })?;
        Self::parse(&text, file)
    }

    /// Reads a file, replaces values in it, and checks what comes of that.
    ///
    /// # Errors
    /// As [`Scenario::load`]; where the file alone is fine, the error names the replaced values instead of a line.
    pub fn load_with(file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(file)
            .map_err(|source| ScenarioError::Unreadable { file: file.to_path_buf(), source })?;
        Self::parse_with(&text, file, overrides)
    }

    /// [`Scenario::load_with`] on the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load_with`].
    pub fn parse_with(text: &str, file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        if overrides.is_empty() {
            return Self::parse(text, file);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(|error| malformed(text, file, &error))?;
        for set in overrides {
            set.apply(&mut table).map_err(|source| ScenarioError::Unfitting { file: file.to_path_buf(), source })?;
        }
        let scenario: Self = match table.try_into() {
            Ok(scenario) => scenario,
            Err(error) => {
                // The file's own mistakes come first: they have a line to point at.
                Self::parse(text, file)?;
                let sets: Vec<String> = overrides.iter().map(|set| format!("'{set}'")).collect();
                let message = error.to_string().trim().replace('\n', " ");
                return Err(ScenarioError::Overridden { file: file.to_path_buf(), sets: sets.join(", "), message });
            }
        };
        scenario.checked(file)
    }

    /// Checks the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| malformed(text, file, &error))?;
        scenario.checked(file)
    }

    fn checked(self, file: &Path) -> Result<Self, ScenarioError> {
        self.check().map_err(|(key, found, allowed)| ScenarioError::NotAllowed {
            file: file.to_path_buf(),
            key,
            found,
            allowed,
        })?;
        Ok(self)
    }

    /// The delegates' usernames, in the order of their nodes.
    pub fn usernames(&self) -> Vec<String> {
        (1..=self.network.delegates).map(|number| format!("genesis_{number}")).collect()
    }

    /// Key, what was found, what is allowed.
    fn check(&self) -> Result<(), (String, String, String)> {
        within("version", self.version, VERSION..=VERSION)?;
        within("rounds", self.rounds, 1..=ROUNDS_LIMIT)?;
        within("network.delegates", self.network.delegates, 1..=DELEGATES_LIMIT)?;
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_fault(index, fault)?;
        }
        Ok(())
    }

    fn check_fault(&self, index: usize, fault: &Fault) -> Result<(), (String, String, String)> {
        let FaultKind::Offline(offline) = &fault.kind else { return Ok(()) };
        let known = self.usernames();
        let Nodes::List(delegates) = &offline.delegates else { return Ok(()) };
        let Some(rounds) = &offline.rounds else { return Ok(()) };
        for (key, empty) in [("delegates", delegates.is_empty()), ("rounds", rounds.spans().is_empty())] {
            if empty {
                return Err((format!("fault[{index}].{key}"), "an empty list".into(), "at least one".into()));
            }
        }
        let unknown = delegates.iter().find_map(|node| match node {
            NodeRef::Delegate(name) if !known.contains(name) => Some(name),
            _ => None,
        });
        if let Some(unknown) = unknown {
            let allowed = match known.as_slice() {
                [only] => format!("'{only}'"),
                [first, .., last] => format!("'{first}' to '{last}'"),
                [] => unreachable!("a network has at least one delegate"),
            };
            return Err((format!("fault[{index}].delegates"), format!("'{unknown}'"), allowed));
        }
        for span in rounds.spans() {
            let key = format!("fault[{index}].rounds");
            within(&key, span.start().0, 1..=self.rounds)?;
            within(&key, span.end().0, span.start().0..=self.rounds)?;
        }
        Ok(())
    }
}

fn within(key: &str, found: u32, allowed: RangeInclusive<u32>) -> Result<(), (String, String, String)> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (low, high) = allowed.into_inner();
    let allowed = if low == high { low.to_string() } else { format!("{low} to {high}") };
    Err((key.to_owned(), found.to_string(), allowed))
}

/// One line out of the parser's error: where it is, the key on that line, and what the parser says.
fn malformed(text: &str, file: &Path, error: &toml::de::Error) -> ScenarioError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned());
    let message = error.message().replace('\n', " ");
    ScenarioError::Malformed { file: file.to_path_buf(), line, key, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Scenario::parse(text, Path::new("s.toml")).unwrap_err().to_string()
    }

    #[test]
    fn a_replaced_value_is_checked_like_one_in_the_file() {
        let file = "version = 1\nrounds = 3\n";
        let set = |sets: &[&str]| {
            let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("well formed")).collect();
            Scenario::parse_with(file, Path::new("s.toml"), &sets).map_err(|error| error.to_string())
        };
        let changed = set(&["network.latency.max_ms=300", "network.gossip=reference"]).unwrap_err();
        assert!(changed.contains("min_ms"), "{changed}");
        let changed = set(&["network.latency={ min_ms = 1, max_ms = 300 }", "rounds=4"]).expect("allowed");
        assert_eq!((changed.network.latency, changed.rounds), (Latency::uniform(20, 300), 4));
        assert_eq!(set(&["rounds=0"]).unwrap_err(), "s.toml: key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = set(&["network.lots=0.1"]).unwrap_err();
        assert!(unknown.starts_with("s.toml with 'network.lots=0.1': unknown field `lots`"), "{unknown}");
        assert!(!unknown.contains('\n'));
    }

    #[test]
    fn an_error_names_the_file_the_key_and_what_is_allowed() {
        assert_eq!(error("version = 2\nrounds = 3"), "s.toml: key 'version': found 2, allowed is 1");
        assert_eq!(error("version = 1\nrounds = 0"), "s.toml: key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = error("version = 1\nrounds = 3\nround = 4");
        assert!(unknown.starts_with("s.toml:3: key 'round': unknown field `round`, expected one of"), "{unknown}");
        let kind = error("version = 1\nrounds = 3\n[[fault]]\nkind = \"offlin\"\n");
        assert!(kind.contains("s.toml:") && kind.contains("`offlin`") && kind.contains("`offline`"), "{kind}");
        let wrong = error("version = 1\nrounds = \"three\"");
        assert!(wrong.starts_with("s.toml:2: key 'rounds': invalid type: string \"three\""), "{wrong}");
        let name = "version = 1\nrounds = 3\n[[fault]]\nkind = \"offline\"\ndelegates = [\"bob\"]\nrounds = 2\n";
        assert_eq!(
            error(name),
            "s.toml: key 'fault[0].delegates': found 'bob', allowed is 'genesis_1' to 'genesis_51'"
        );
        assert!(!error("version = 1\nrounds = [").contains('\n'));
    }
}
