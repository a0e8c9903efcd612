//! Regions decide latencies and bandwidths of links. They are the classes of a network that has no others.

use super::{
    ListOrFile,
    classes::{Classes, ClassesError, is_false},
    latency::{LATENCY_LIMIT_MS, PARETO_LEAST_MS},
};
use crate::sim::SeedTree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes in regions. The latency of a link is that of its ends' regions, give or take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    /// The share of the nodes in each region, in any unit. Nodes are dealt out in ascending order, so the first ones are in the first region.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// Each node draws its region with these shares as probabilities.
    #[serde(default, skip_serializing_if = "is_false")]
    pub drawn: bool,
    /// The region of each node, counted from 0, in place of `shares`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "ListOrFile<u16>")]
    pub nodes: Vec<u16>,
    /// From a row's region to a column's, in milliseconds.
    #[schemars(with = "ListOrFile<Vec<f64>>")]
    pub latency_ms: Vec<Vec<f64>>,
    /// Bytes per second that a link carries from a row's region to a column's, in place of `network.bandwidth`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "ListOrFile<Vec<u64>>")]
    pub bandwidth: Vec<Vec<u64>>,
    /// A link differs from that by this part of it at most, drawn evenly.
    #[serde(default)]
    pub spread: f64,
    /// Each message draws a latency of its own, around that of the table, with a Pareto distribution. Instead of `spread`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pareto: bool,
}

fn lengths<T>(matrix: &[Vec<T>]) -> Vec<usize> {
    matrix.iter().map(Vec::len).collect()
}

impl Regions {
    /// The number of regions.
    pub fn count(&self) -> usize {
        self.latency_ms.len()
    }

    /// Checks the regions of a network of `nodes` nodes.
    ///
    /// # Errors
    /// The key, what was found and what is allowed.
    pub fn check(&self, nodes: u32) -> Result<(), ClassesError> {
        self.classes().check(nodes)?;
        let wrong = |part, found: String, allowed: String| Err(ClassesError::new(part, found, allowed));
        let count = self.count();
        // The shares give the number of regions, or the matrix if there are no shares.
        let count = if self.shares.is_empty() { count } else { self.shares.len() };
        if let Some(region) = self.nodes.iter().find(|region| usize::from(**region) >= count) {
            return wrong("nodes", region.to_string(), format!("regions below {count}, the rows of 'latency_ms'"));
        }
        for (part, rows) in [("latency_ms", lengths(&self.latency_ms)), ("bandwidth", lengths(&self.bandwidth))] {
            let is_absent = part == "bandwidth" && rows.is_empty();
            if !is_absent && (count == 0 || rows != vec![count; count]) {
                return wrong(part, format!("rows of {rows:?}"), format!("{count} rows of {count} numbers"));
            }
        }
        let least = if self.pareto { PARETO_LEAST_MS } else { 0.0 };
        let most = f64::from(LATENCY_LIMIT_MS);
        if let Some(ms) = self.latency_ms.iter().flatten().find(|ms| !(least..=most).contains(*ms)) {
            return wrong("latency_ms", ms.to_string(), format!("{least} to {most}"));
        }
        if self.bandwidth.iter().flatten().any(|rate| *rate == 0) {
            return wrong("bandwidth", "0".to_owned(), "at least 1 byte a second".to_owned());
        }
        if self.pareto && self.spread != 0.0 {
            return wrong("spread", "it beside 'pareto'".to_owned(), "one or the other".to_owned());
        }
        if !(0.0..=1.0).contains(&self.spread) {
            return wrong("spread", self.spread.to_string(), "0 to 1".to_owned());
        }
        Ok(())
    }

    /// The region of each node.
    pub(super) fn of_nodes(&self, nodes: u32, seeds: SeedTree) -> Vec<u16> {
        self.classes().of_nodes(nodes, seeds, "network/regions")
    }

    /// The keys that assign nodes to regions.
    fn classes(&self) -> Classes {
        Classes { shares: self.shares.clone(), drawn: self.drawn, nodes: self.nodes.clone() }
    }
}
