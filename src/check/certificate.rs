//! Certificates: the proof that a finding has the cause that it is named for.
//!
//! A cause is a name, and a name proves nothing: a fault may break an invariant in a way that looks like a known one. So a
//! finding counts as known only with a certificate, which the checker computes anew from the run that shows the finding:
//!
//! - for a cause in a node's conduct, from the node's events and the blocks (`watch/proofs.rs`, `watch/losses.rs`);
//! - for a network that stays split, from the world at the end of the run: each node's records, the real tips of the
//!   others, and the messages under way (`certificate/network.rs`).
//!
//! A finding whose cause has no certificate is never known.

pub(crate) mod network;
mod numbers;
#[cfg(test)]
mod tests;

use serde::Serialize;

/// The proof of a finding's cause, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// No proof was tried, since none exists for this cause.
    #[default]
    None,
    /// The facts of the run that prove the cause, in words.
    Shown(String),
    /// The missing fact, and the node that it concerns, in words.
    Missing(String),
}

impl Certificate {
    /// Returns true if the cause is proved.
    pub fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(_))
    }

    /// Returns the missing part, if any.
    pub fn missing(&self) -> Option<&str> {
        match self {
            Self::Missing(words) => Some(words),
            Self::None | Self::Shown(_) => None,
        }
    }
}

impl From<Result<String, String>> for Certificate {
    fn from(proof: Result<String, String>) -> Self {
        match proof {
            Ok(shown) => Self::Shown(shown),
            Err(missing) => Self::Missing(missing),
        }
    }
}
