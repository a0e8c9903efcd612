//! One simulated peer with a real node's inputs: it gets the blocks that the node applied, when it applied them, and to each of its
//! pings the answers that the node got, when it got them. What it counts before forging, what its delegate makes of the counts, and
//! how its health checks end are held against what the node recorded.
//!
//! Blocks of the recording are facts without bytes, so they are made anew: as high, in the same slots, by the same delegates, on
//! the same parents. What the recording does not hold steers nothing here: the peer is not woken to download or to discover.

mod chain;
mod driver;

use super::{
    compare::{Row, unlike},
    facts::Window,
};
use chain::Chain;
use rayon::prelude::*;
use std::{collections::BTreeMap, path::Path};

/// What the page says of it.
pub const MEANING: &str = "
## One peer with a real node's inputs

For each node of each window, one simulated peer hears what the real node heard: the blocks it applied, who came and went as its peer,
and the answers to its pings, at the recorded times. Three things are compared.

- *Counts*: of each decision before forging, the peers on its chain, above it and on other chains. They are known if all blocks
  that the peers stood on are recorded, the recorded peers are as many as the node counted, and the answers to its pings are recorded.
- *Verdicts*: a simulated delegate gets the counts that the real relay told, and forges or does not.
- *Health checks*: whether the node finds itself on the wrong chain, and how many blocks it goes back. To go back no block means a
  random number (Q17). A node looks at the peer it stored first, which is not recorded: an outcome is the same if one of the
  peers leads to it.

The recordings do not hold what peers answered to a download or in what order a node drew its peers, so downloads and discoveries are
not compared here. Below the table stands what is not the same.
";

/// How much is compared, and how much of it is the same.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    pub blocks: usize,
    pub counts: usize,
    pub same_counts: usize,
    pub verdicts: usize,
    pub same_verdicts: usize,
    pub health: usize,
    pub same_health: usize,
    /// What is not the same.
    pub unlike: Vec<String>,
}

impl Compared {
    pub fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.counts += other.counts;
        self.same_counts += other.same_counts;
        self.verdicts += other.verdicts;
        self.same_verdicts += other.same_verdicts;
        self.health += other.health;
        self.same_health += other.same_health;
        self.unlike.extend(other.unlike.iter().cloned());
    }

    /// What is not the same, as figures of a window.
    pub fn rows(&self) -> [Row; 3] {
        [
            unlike("unlike_counts", self.counts - self.same_counts),
            unlike("unlike_verdicts", self.verdicts - self.same_verdicts),
            unlike("unlike_health_checks", self.health - self.same_health),
        ]
    }

    /// The cells of a row of the page.
    pub fn cells(&self) -> String {
        let Self { blocks, counts, same_counts, verdicts, same_verdicts, health, same_health, .. } = self;
        format!("| {blocks} | {counts} | {same_counts} | {verdicts} | {same_verdicts} | {health} | {same_health} |")
    }
}

/// Compares each window whose network is described in its folder.
pub fn compare_all(folder: &Path, windows: &[Window]) -> BTreeMap<String, Compared> {
    // Another window of the same network comes without it.
    let own = folder.join("network.json");
    let file = if own.exists() { own } else { super::shipped().join("network.json") };
    let Some(network) = chain::Network::load(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display())) else {
        return BTreeMap::new();
    };
    let compare = |window: &Window| (window.name.clone(), compare(&network, window));
    windows.par_iter().map(compare).collect()
}

fn compare(network: &chain::Network, window: &Window) -> Compared {
    let mut all = Compared::default();
    let chain = Chain::new(network, &window.facts);
    all.blocks = chain.blocks();
    for (node, delegate) in &window.facts.delegate_of_node {
        for decision in window.facts.decisions.iter().filter(|decision| decision.node == *node) {
            let Some(forges) = chain.forges(delegate, decision) else { continue };
            all.verdicts += 1;
            match forges == decision.allowed {
                true => all.same_verdicts += 1,
                false => all.unlike.push(format!(
                    "{}, node {node}, {:.3} s: the real delegate {}, the simulated one does not agree",
                    window.name,
                    decision.t,
                    if decision.allowed { "forges" } else { "does not forge" }
                )),
            }
        }
        driver::compare(&window.name, &window.facts, &chain, *node, &mut all);
    }
    all
}

#[test]
fn empty_blocks_of_the_recording_have_the_bytes_that_we_make() {
    let (folder, is_own) = super::folder();
    let Some(network) = chain::Network::load(&folder.join("network.json")).unwrap_or_else(|why| panic!("{why}")) else {
        return;
    };
    let mut made = 0;
    for window in super::windows(&folder) {
        for (id, block) in window.facts.blocks.iter().filter(|(_, block)| block.transactions == 0) {
            let Some(ours) = network.made_again(block) else { continue };
            assert_eq!(ours, *id, "{}: block {id} at height {}", window.name, block.height);
            made += 1;
        }
    }
    assert!(!is_own || made > 500, "{made} blocks are made again");
}
