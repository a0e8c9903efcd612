//! Findings of a run.

use super::Certificate;
use crate::{
    actors::{NodeId, SimTime},
    protocol::Height,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

/// A violation of an invariant or of an assertion in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// The section that states it.
    pub origin: &'static str,
    /// The feature that tells it from other findings of the same invariant, such as the rule by which a block was refused;
    /// empty if there is none.
    pub cause: String,
    /// The node concerned, where it is one.
    pub node: Option<NodeId>,
    /// The id of the block concerned, where it is one.
    pub block: Option<String>,
    /// The height of the block, or of the highest chain if an assertion failed. `None` for any other finding without a block.
    pub height: Option<Height>,
    /// The time at which it showed, in microseconds since the epoch.
    #[serde(serialize_with = "micros")]
    pub at: SimTime,
    /// The same, in seconds from the start of the run.
    pub after_seconds: f64,
    /// A sentence: the finding, and the expected value.
    pub what: String,
    /// The proof of the cause, or what is missing for one.
    pub certificate: Certificate,
    /// The events before, in words, the last one last.
    pub story: Vec<String>,
}

/// Returns a text that lives as long as the process. A search has a limited number of assertions and names.
pub(super) fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().expect("no thread panics while holding it");
    if let Some(name) = known.get(text) {
        return name;
    }
    let name: &'static str = String::leak(text.to_owned());
    known.insert(name);
    name
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn micros<S: serde::Serializer>(at: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(at.micros())
}

/// The origin of a finding about a failed assertion of the scenario.
pub(crate) const ASSERTED: &str = "asserted by the scenario";

impl Finding {
    /// Returns true if it is an assertion of the scenario that does not hold. The assertion then takes the place of the invariant.
    pub fn is_assertion(&self) -> bool {
        self.origin == ASSERTED
    }

    /// Returns the invariant, the cause, and whether the cause is proved. Findings with equal signatures count as one.
    pub fn signature(&self) -> Signature {
        Signature { invariant: self.invariant, cause: self.cause.clone(), is_certified: self.certificate.is_shown() }
    }
}

/// The key that tells findings apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Signature {
    pub invariant: &'static str,
    /// Empty where the invariant says it all.
    pub cause: String,
    /// The run shows a certificate of the cause.
    pub is_certified: bool,
}

/// One line: the invariant, and the cause behind a colon.
impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.cause.as_str() {
            "" => f.write_str(self.invariant),
            cause => write!(f, "{}: {cause}", self.invariant),
        }
    }
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

/// The counts of interesting events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Sometimes(BTreeMap<&'static str, u64>);

impl FromIterator<(&'static str, u64)> for Sometimes {
    fn from_iter<T: IntoIterator<Item = (&'static str, u64)>>(counts: T) -> Self {
        Self(counts.into_iter().collect())
    }
}

impl Sometimes {
    /// Counts one more occurrence of an event.
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds `times` to the count of an event.
    pub fn count_more(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    /// Returns the number of times that it happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Returns the counts of all events, by name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, count)| (*what, *count))
    }

    /// Adds the counts of `others`.
    pub fn add(&mut self, others: &Self) {
        for (what, count) in others.all() {
            *self.0.entry(what).or_default() += count;
        }
    }
}
