//! Regions: classes of nodes. They decide latencies and bandwidths of links, and may decide uplinks, downlinks and processors.

use super::{
    ListOrFile,
    latency::{LATENCY_LIMIT_MS, PARETO_LEAST_MS},
};
use crate::sim::SeedTree;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The greatest share, so that all shares of a list have a finite sum.
pub const SHARE_LIMIT: f64 = 1e6;

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
    /// Each message draws a latency of its own, around that of the table: [`Distribution::Pareto`](super::Distribution::Pareto). Instead of
    /// `spread`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pareto: bool,
}

/// Regions that a network cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionsError {
    /// The key, below `network.regions`.
    pub part: &'static str,
    pub found: String,
    pub allowed: String,
}

fn lengths<T>(matrix: &[Vec<T>]) -> Vec<usize> {
    matrix.iter().map(Vec::len).collect()
}

fn is_false(flag: &bool) -> bool {
    !flag
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
    pub fn check(&self, nodes: u32) -> Result<(), RegionsError> {
        let wrong = |part, found: String, allowed: String| Err(RegionsError { part, found, allowed });
        let count = self.count();
        match (self.shares.is_empty(), self.nodes.is_empty()) {
            (false, false) => return wrong("nodes", "it beside 'shares'".to_owned(), "one or the other".to_owned()),
            (true, true) => return wrong("shares", "no list".to_owned(), "it, or 'nodes' in its place".to_owned()),
            (true, false) if self.drawn => {
                return wrong("drawn", "it beside 'nodes'".to_owned(), "it beside 'shares'".to_owned());
            }
            _ => {}
        }
        if let Some(share) = self.shares.iter().find(|share| !(**share > 0.0 && **share <= SHARE_LIMIT)) {
            return wrong("shares", share.to_string(), format!("numbers above 0, up to {SHARE_LIMIT}"));
        }
        if !self.nodes.is_empty() && self.nodes.len() != nodes as usize {
            return wrong("nodes", format!("a list of {}", self.nodes.len()), format!("one of {nodes}, the nodes"));
        }
        // A matrix gives the number of regions; the shares do, where they are there.
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
        if !self.nodes.is_empty() {
            return self.nodes.clone();
        }
        let choices = seeds.choices("network/regions");
        let place = |node: u32| match self.drawn {
            true => choices.at(&[node.into()]).random::<f64>(),
            false => (f64::from(node) + 0.5) / f64::from(nodes),
        };
        (0..nodes).map(|node| self.at(place(node))).collect()
    }

    /// The region at a place from 0 to 1 among the shares.
    fn at(&self, place: f64) -> u16 {
        let (place, mut sum) = (place * self.shares.iter().sum::<f64>(), 0.0);
        let found = self.shares.iter().position(|share| {
            sum += share;
            place < sum
        });
        found.unwrap_or(self.shares.len().saturating_sub(1)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(text: &str) -> Regions {
        toml::from_str(&format!("latency_ms = [[1, 2, 3], [1, 2, 3], [1, 2, 3]]\n{text}")).expect("they are regions")
    }

    /// Every seventh node is looked at: the first ones are no more in the first region than others.
    #[test]
    fn drawn_regions_have_the_shares_in_every_part_of_the_nodes() {
        let all = regions("shares = [5, 3, 2]\ndrawn = true").of_nodes(70_000, SeedTree::new(1));
        for part in [&all[..10_000], &all[60_000..], &all.iter().copied().step_by(7).collect::<Vec<_>>()] {
            for (region, share) in [(0, 0.5), (1, 0.3), (2, 0.2)] {
                let found = part.iter().filter(|one| **one == region).count() as f64 / part.len() as f64;
                assert!((found - share).abs() < 0.02, "region {region}: {found}, four standard errors are 0.02");
            }
        }
        let other = regions("shares = [5, 3, 2]\ndrawn = true").of_nodes(70_000, SeedTree::new(2));
        assert_ne!(all, other, "another seed");
        let dealt = regions("shares = [5, 3, 2]").of_nodes(10, SeedTree::new(1));
        assert_eq!(dealt, [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_node_is_in_the_region_that_the_list_names() {
        assert_eq!(regions("nodes = [2, 0, 1]").of_nodes(3, SeedTree::new(1)), [2, 0, 1]);
    }
}
