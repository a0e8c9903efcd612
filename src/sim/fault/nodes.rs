//! The nodes that a fault concerns.

use super::table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A node: by its number, or by the username of its delegate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the number of a node or the username of its delegate")]
pub enum NodeRef {
    /// The number of the node, from 0.
    Number(u32),
    /// The username of the delegate.
    Delegate(String),
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Delegate(name) => write!(f, "'{name}'"),
        }
    }
}

/// Some nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a list of nodes (numbers or delegates), { from = …, to = … } or { share = … }")]
pub enum Nodes {
    /// These.
    List(Vec<NodeRef>),
    /// A span of numbers, both included.
    #[serde(deserialize_with = "table::only")]
    Span(NodeSpan),
    /// A share of all.
    #[serde(deserialize_with = "table::only")]
    Share(Share),
}

/// From one node to another, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeSpan {
    /// The first node of the span.
    pub from: NodeRef,
    /// The last node of the span, not before the first.
    pub to: NodeRef,
}

/// A share of the network, from 0 to 1: the first nodes in ascending order, as many as come nearest to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The part of the whole, from 0 to 1.
    pub share: f64,
    /// The whole: the number of nodes, if absent.
    #[serde(default)]
    pub of: ShareOf,
}

/// The whole that a share is a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// Their number.
    #[default]
    Nodes,
    /// The vote weight of their delegates, at the moment the fault begins.
    VoteWeight,
}
