//! The network of a run, in the form of a scenario file.

use super::{AccessRate, ByClass, Classes, Compact, Latency, ListOrFile, Per, PerClass, Regions, Sharing, Topology};
use crate::sim::{fault::is_zero, processor::ProcessorPlan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network of a run, faults apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkModel {
    /// The links between nodes.
    pub topology: Topology,
    /// The latency of links that no other key gives one.
    pub latency: Latency,
    /// Regions with latencies of their own between them, instead of `latency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
    /// Classes of nodes beside the regions, for uplinks, downlinks, processors and clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// Links with latencies of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "ListOrFile<LinkLatency>")]
    pub links: Vec<LinkLatency>,
    /// The part of all messages that is lost for good, from 0 to 1. Packets that TCP loses it sends again: their loss is latency, and
    /// the latency `profile = "tcp-loss-20"` is that of a network that loses a fifth of them.
    pub loss: f64,
    /// The part of all messages that arrives twice, from 0 to 1; the second takes a latency of its own.
    pub duplication: f64,
    /// Messages that others overtake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Bytes a second that each link carries in each direction, one message after the other; without limit, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// Bytes per second that each node sends over all its links together. No limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<AccessRate>,
    /// Bytes per second that each node receives over all its links together. No limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downlink: Option<AccessRate>,
    /// The way in which messages share `uplink` and `downlink`.
    #[serde(skip_serializing_if = "is_usual")]
    pub sharing: Sharing,
    /// Times beside latencies and rates. None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Compact blocks, where blocks are announced. None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact: Option<Compact>,
    /// The smallest size of a block on the wire and in a processor, in bytes. It stands for transactions that a run does not make.
    #[serde(skip_serializing_if = "is_zero")]
    pub block_bytes: u32,
    /// The time that nodes take to validate, forge and serve blocks. No time if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorPlan>,
    /// The errors of clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ByClass<Clocks>>,
}

fn is_usual(sharing: &Sharing) -> bool {
    *sharing == Sharing::default()
}

impl NetworkModel {
    pub(super) fn is_plain(&self) -> bool {
        self.loss == 0.0
            && self.duplication == 0.0
            && self.reordering.is_none()
            && self.is_unlimited()
            && self.overhead.is_none()
            && self.compact.is_none()
            && self.links.is_empty()
    }

    /// Returns true if no message waits for others and no block takes a node's time.
    pub fn is_unlimited(&self) -> bool {
        !self.limits_links() && self.uplink.is_none() && self.downlink.is_none() && !self.takes_time()
    }

    /// Returns true if links carry a limited number of bytes per second.
    pub(super) fn limits_links(&self) -> bool {
        self.bandwidth.is_some() || self.regions.as_ref().is_some_and(|regions| !regions.bandwidth.is_empty())
    }

    /// Returns true if blocks take a node's time.
    pub(super) fn takes_time(&self) -> bool {
        self.processor.as_ref().is_some_and(|processor| !processor.is_idle())
    }

    /// Returns true if random numbers are drawn for each message.
    pub(super) fn draws_for_messages(&self) -> bool {
        let special = self.links.iter().map(|link| link.latency);
        let per_message = special.chain([self.latency]).any(|latency| latency.per == Per::Message);
        let per_message = per_message || self.regions.as_ref().is_some_and(|regions| regions.pareto);
        per_message || self.loss > 0.0 || self.duplication > 0.0 || self.reordering.is_some()
    }
}

/// Fixed times of messages beside latencies and rates, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Overhead {
    /// The time before a message with blocks leaves. With `sharing = "one-at-a-time"` its sender is busy meanwhile.
    pub block_ms: u32,
    /// The time before any other message leaves.
    pub other_ms: u32,
}

/// The latency of a link: in both directions (`between`) or in one (`from` and `to`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkLatency {
    /// The numbers of its nodes: messages take this time in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(u32, u32)>,
    /// The number of the node that sends: messages from it to `to` take this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The number of the node that receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// The latency of the link.
    pub latency: Latency,
}

/// The key and the directions, or the key, what was found and what is allowed.
type Directions = Result<(&'static str, Vec<(u32, u32)>), (&'static str, String, &'static str)>;

impl LinkLatency {
    /// The latency of a link in both directions.
    pub fn between(a: u32, b: u32, latency: Latency) -> Self {
        Self { between: Some((a, b)), from: None, to: None, latency }
    }

    /// The latency of a link in one direction.
    pub fn one_way(from: u32, to: u32, latency: Latency) -> Self {
        Self { between: None, from: Some(from), to: Some(to), latency }
    }

    /// The directions that have this latency, each from a node to a node, and the key that names them.
    ///
    /// # Errors
    /// The link has neither `between` nor `from` and `to`, or both.
    pub fn directions(&self) -> Directions {
        match (self.between, self.from, self.to) {
            (Some((a, b)), None, None) => Ok(("between", vec![(a, b), (b, a)])),
            (None, Some(from), Some(to)) => Ok(("from", vec![(from, to)])),
            (Some(_), ..) => Err(("between", "it beside 'from' or 'to'".to_owned(), "one or the other")),
            (None, from, to) => {
                let found = [("from", from), ("to", to)].into_iter().find(|(_, node)| node.is_some());
                let found = found.map_or_else(|| "no nodes".to_owned(), |(key, _)| format!("'{key}' alone"));
                Err(("", found, "'between', or 'from' and 'to'"))
            }
        }
    }
}

/// Messages that others overtake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// The part of all messages, from 0 to 1.
    pub chance: f64,
    /// The greatest delay of their arrival, in milliseconds.
    pub by_ms: u32,
}

impl PerClass for Clocks {
    const FORMS: &'static str = "the errors of clocks, or a list with those of each class";
}

/// The errors of clocks: each node draws evenly between minus and plus the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of errors of clocks")]
pub struct Clocks {
    /// In milliseconds.
    pub offset_ms: u32,
    /// Microseconds gained or lost in a second.
    pub drift_ppm: u32,
}
