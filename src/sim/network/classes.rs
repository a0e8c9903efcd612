//! Classes of nodes: the class of each decides its uplink, downlink, processor and clock where these differ.

use super::ListOrFile;
use crate::sim::SeedTree;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The greatest share, so that all shares of a list have a finite sum.
pub const SHARE_LIMIT: f64 = 1e6;

/// The largest number of classes.
const CLASSES_LIMIT: usize = 1_000;

/// Nodes in classes, counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// The share of the nodes in each class, in any unit. Nodes are dealt out in ascending order, so the first ones are in the first class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// Each node draws its class with these shares as probabilities.
    #[serde(default, skip_serializing_if = "is_false")]
    pub drawn: bool,
    /// The class of each node, in place of `shares`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "ListOrFile<u16>")]
    pub nodes: Vec<u16>,
}

/// Classes or regions that a network cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassesError {
    /// The key, below `network.classes` or `network.regions`.
    pub part: &'static str,
    pub found: String,
    pub allowed: String,
}

impl ClassesError {
    pub(super) fn new(part: &'static str, found: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { part, found: found.into(), allowed: allowed.into() }
    }
}

pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

impl Classes {
    /// The number of classes.
    pub fn count(&self) -> usize {
        match self.shares.len() {
            0 => self.nodes.iter().max().map_or(0, |class| usize::from(*class) + 1),
            shares => shares,
        }
    }

    /// Checks the classes of a network of `nodes` nodes.
    ///
    /// # Errors
    /// The key, what was found and what is allowed.
    pub fn check(&self, nodes: u32) -> Result<(), ClassesError> {
        let wrong = |part, found: String, allowed: String| Err(ClassesError::new(part, found, allowed));
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
        if self.count() > CLASSES_LIMIT {
            let part = if self.shares.is_empty() { "nodes" } else { "shares" };
            return wrong(part, format!("{} of them", self.count()), format!("{CLASSES_LIMIT} at most"));
        }
        if !self.nodes.is_empty() && self.nodes.len() != nodes as usize {
            return wrong("nodes", format!("a list of {}", self.nodes.len()), format!("one of {nodes}, the nodes"));
        }
        Ok(())
    }

    /// The class of each node. `draws` is the name of the random numbers.
    pub(super) fn of_nodes(&self, nodes: u32, seeds: SeedTree, draws: &str) -> Vec<u16> {
        if !self.nodes.is_empty() {
            return self.nodes.clone();
        }
        let choices = seeds.choices(draws);
        let place = |node: u32| match self.drawn {
            true => choices.at(&[node.into()]).random::<f64>(),
            false => (f64::from(node) + 0.5) / f64::from(nodes),
        };
        (0..nodes).map(|node| self.at(place(node))).collect()
    }

    /// The class at a place from 0 to 1 among the shares.
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

    fn dealt(text: &str, nodes: u32, seed: u64) -> Vec<u16> {
        let classes: Classes = toml::from_str(text).expect("they are classes");
        classes.of_nodes(nodes, SeedTree::new(seed), "network/classes")
    }

    /// Every seventh node is looked at: the first ones are no more in the first class than others.
    #[test]
    fn drawn_classes_have_the_shares_in_every_part_of_the_nodes() {
        let text = "shares = [5, 3, 2]\ndrawn = true";
        let all = dealt(text, 70_000, 1);
        for part in [&all[..10_000], &all[60_000..], &all.iter().copied().step_by(7).collect::<Vec<_>>()] {
            for (class, share) in [(0, 0.5), (1, 0.3), (2, 0.2)] {
                let found = part.iter().filter(|one| **one == class).count() as f64 / part.len() as f64;
                assert!((found - share).abs() < 0.02, "class {class}: {found}, four standard errors are 0.02");
            }
        }
        assert_ne!(all, dealt(text, 70_000, 2), "another seed");
        assert_eq!(dealt("shares = [5, 3, 2]", 10, 1), [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_node_is_in_the_class_that_the_list_names() {
        assert_eq!(dealt("nodes = [2, 0, 1]", 3, 1), [2, 0, 1]);
    }
}
