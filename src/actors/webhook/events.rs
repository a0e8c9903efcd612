//! The events to which a webhook subscribes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest number of events that one webhook subscribes to.
pub const EVENTS_MAX: usize = 64;

/// The names of one event, as in the reference, or of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventNames {
    One(String),
    /// Different names, at least one.
    Several(Vec<String>),
}

impl EventNames {
    /// Returns true if an event is one of them.
    pub fn hold(&self, event: &str) -> bool {
        self.as_slice().iter().any(|name| name == event)
    }

    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl From<&str> for EventNames {
    fn from(name: &str) -> Self {
        Self::One(name.to_owned())
    }
}

impl fmt::Display for EventNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_slice().join(", "))
    }
}
