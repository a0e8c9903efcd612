//! How much memory a run will need, said before it is played.
//!
//! The sum is over what grows: nodes, the neighbours each of them knows, the blocks of the chain with all that is kept of
//! them, and transactions. What each of these costs was measured; `tests/protocol/memory.rs` holds the sum to within a factor
//! of two of what runs of several shapes really ask for, and docs/limits.md shows the numbers.

use super::{Scenario, workload::WorkloadKind};
use crate::{files::in_words, sim::FaultKind};
use std::fmt;

/// What a run is made of, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub nodes: u64,
    /// Neighbours of all nodes together: two for each link.
    pub neighbours: u64,
    /// Active delegates.
    pub delegates: u64,
    /// Blocks of the chain up to the last round.
    pub blocks: u64,
    /// Transactions that are handed in at most.
    pub transactions: u64,
}

/// What a process has before it plays anything.
const BASE: u64 = 32 << 20;
/// A node with its pool and its clock.
const NODE: u64 = 20 * 1_024;
/// A neighbour of a node: what the node knows of it, and messages on their way between the two.
const NEIGHBOUR: u64 = 50;
/// A block without transactions: itself, what it changed, and what the tables of a run say of it.
const BLOCK: u64 = 1_300;
/// What each of the first blocks takes more for a delegate: of the newest, states and what nodes have heard are kept.
const NEW_BLOCK_OF_DELEGATE: u64 = 70;
/// So many blocks are new at most, and so many delegates make a difference.
const NEW: (u64, u64) = (8_000, 64);
/// A transaction in pools and blocks.
const TRANSACTION: u64 = 2_048;

impl Need {
    /// Bytes that it takes, within a factor of two.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().fold(BASE, |sum, (_, _, bytes)| sum.saturating_add(*bytes))
    }

    fn parts(&self) -> [(u64, &'static str, u64); 4] {
        let part = |count: u64, what, each: u64| (count, what, count.saturating_mul(each));
        let new = self.blocks.min(NEW.0) * self.delegates.min(NEW.1) * NEW_BLOCK_OF_DELEGATE;
        let (blocks, what, bytes) = part(self.blocks, "blocks", BLOCK);
        [
            part(self.nodes, "nodes", NODE),
            part(self.neighbours, "neighbours of nodes", NEIGHBOUR),
            (blocks, what, bytes.saturating_add(new)),
            part(self.transactions, "transactions", TRANSACTION),
        ]
    }
}

/// `4.9 GiB (10051 nodes 196.3 MiB, ...)`, the parts of a megabyte and more.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let large = self.parts().into_iter().filter(|(_, _, bytes)| *bytes >= 1 << 20);
        let parts: Vec<String> =
            large.map(|(count, what, bytes)| format!("{count} {what} {}", in_words(bytes))).collect();
        write!(f, "{}", in_words(self.bytes()))?;
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join(", ")) }
    }
}

impl Scenario {
    /// What its runs will need. The seed changes nothing in it.
    pub fn memory(&self) -> Need {
        let nodes = self.network.nodes();
        let blocks = u64::from(self.last_height().0);
        let per_second = self.workloads.iter().map(|workload| match &workload.kind {
            WorkloadKind::Generate(generate) => generate.per_second,
            WorkloadKind::List(_) | WorkloadKind::Chain(_) => 0.0,
        });
        let of_faults = self.faults.iter().map(|fault| match &fault.kind {
            FaultKind::SpamPool(spam) => spam.per_second,
            FaultKind::LowFeeFlood(flood) => flood.per_second,
            _ => 0.0,
        });
        let rate: f64 = per_second.chain(of_faults).sum();
        let listed = self.workloads.iter().map(|workload| match &workload.kind {
            WorkloadKind::List(list) => list.transactions.len() as u64,
            WorkloadKind::Generate(_) | WorkloadKind::Chain(_) => 0,
        });
        Need {
            nodes: nodes.into(),
            delegates: self.network.delegates.into(),
            neighbours: self.network.model.topology.neighbours(nodes),
            blocks,
            // A cast of more than there are ends at the largest number.
            transactions: listed.sum::<u64>().saturating_add((rate * blocks as f64 * SLOT_SECONDS) as u64),
        }
    }
}

/// Seconds of a slot of a generated network.
const SLOT_SECONDS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_a_run_needs_follows_from_its_file() {
        let need = |text: &str| {
            let text = format!("version = 1\nrounds = 2\n[network]\ndelegates = 51\n{text}");
            Scenario::parse(&text, Path::new("s.toml")).expect("it is a scenario").memory()
        };
        let of = |nodes, neighbours| Need { nodes, neighbours, delegates: 51, blocks: 102, transactions: 0 };
        assert_eq!(need(""), of(51, 51 * 50));
        assert_eq!(need("relays = 10000"), of(10_051, 10_051 * 10_050));
        assert_eq!(need("relays = 9\ntopology = { regular = 8 }"), of(60, 480));
        assert_eq!(need("relays = 9\ntopology = { ring = 3 }"), of(60, 360));
        assert_eq!(need("relays = 9\ntopology = \"star\""), of(60, 118));
        assert_eq!(need("topology = { edges = [[0, 1], [1, 2]] }"), of(51, 4));
        let told = need("relays = 10000").to_string();
        assert!(told.starts_with("4.9 GiB (10051 nodes 196.3 MiB, 101012550 neighbours of nodes 4.7 GiB"), "{told}");
        let busy = need("[[workload]]\nkind = \"generate\"\nper_second = 10\n");
        assert_eq!(busy.transactions, 8_160);
    }
}
