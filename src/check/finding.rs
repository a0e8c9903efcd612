//! What a run showed.

use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Something that should hold and does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// Where it is stated.
    pub origin: &'static str,
    /// The node concerned, where it is one.
    pub node: Option<NodeId>,
    /// The id of the block concerned, where it is one.
    pub block: Option<String>,
    pub height: Option<Height>,
    /// When it showed, in microseconds since the epoch.
    #[serde(serialize_with = "micros")]
    pub at: SimTime,
    /// What was found, and what was expected.
    pub what: String,
    /// The events before, in words, the last one last.
    pub story: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn micros<S: serde::Serializer>(at: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(at.micros())
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.invariant, self.origin)?;
        if let Some(node) = self.node {
            write!(f, ", {node}")?;
        }
        if let Some(height) = self.height {
            write!(f, ", height {height}")?;
        }
        if let Some(block) = &self.block {
            write!(f, ", block {block}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// How often interesting things happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Sometimes(BTreeMap<&'static str, u64>);

impl Sometimes {
    /// It happened once more.
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// It happened so many times more.
    pub fn count_more(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    /// How often it happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Everything that happened, by name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, count)| (*what, *count))
    }

    /// These and those.
    pub fn add(&mut self, others: &Self) {
        for (what, count) in others.all() {
            *self.0.entry(what).or_default() += count;
        }
    }
}
