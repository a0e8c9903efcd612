//! How a node behaves towards others.

use serde::{Deserialize, Serialize};

/// How a node behaves towards others. Source: consensus.md 2, 3 and 6.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeRules {}

impl NodeRules {
    /// As the reference node 2.6.57 does.
    pub fn reference() -> Self {
        Self {}
    }

    /// With the reference's bugs mended.
    pub fn corrected() -> Self {
        Self::reference()
    }
}

impl Default for NodeRules {
    /// [`NodeRules::reference`].
    fn default() -> Self {
        Self::reference()
    }
}
