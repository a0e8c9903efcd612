//! How much memory a run will need, said before it is played.
//!
//! 1. A run is counted: nodes, whom each knows, whom it asks beside, messages that are under way at once, pending
//!    transactions, blocks and the states that are kept of them ([`Need`]).
//! 2. Each of these takes what its records take, by their own sizes ([`Need::parts`]). What lies in a table that grows has
//!    up to twice its room: `GROWN`.
//! 3. The process itself and the rows of a run's tables were measured.
//!
//! How much is under way at once, and who is asked, is decided by what goes wrong. The count takes the busiest instant that a
//! run of its kind has: on a full mesh on which nothing is to go wrong a block on its way to all, otherwise all nodes asking all
//! they know. `tests/protocol/memory.rs` holds the sum against what runs really take.

use super::{
    Scenario,
    workload::{PENDING_LIMIT, WorkloadKind},
};
use crate::{
    actors::{Actor, ActorId, Delegate, Peer, TransactionPool},
    files::in_words,
    ledger::{DelegateAttributes, Link, Wallet, round::Member, rules::Gossip, tree::STATES_KEPT_IN_ALL},
    protocol::{Milestones, SignedTransaction, TransactionId},
    sim::{FaultKind, NodePlan, World, network::Topology},
};
use std::{fmt, sync::Arc};

/// What a run is made of, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub nodes: u64,
    /// Neighbours of all nodes together: two for each link.
    pub neighbours: u64,
    /// Nodes that others hear of and ask though no link leads there, counted for each that asks.
    pub strangers: u64,
    /// Messages from node to node under way at once.
    pub under_way: u64,
    /// Nodes that come near limits, counted once where others send to them and once where they send.
    pub limited: u64,
    /// Active delegates.
    pub delegates: u64,
    /// Blocks of the chain up to the last round.
    pub blocks: u64,
    /// Transactions that are handed in at most.
    pub transactions: u64,
    /// Of those, pending at once, counted in each pool.
    pub pending: u64,
}

/// Bytes that a process has before it plays anything.
pub const PROCESS: u64 = 32 << 20;
/// Bytes of the tables that are as large in any run.
const TABLES: u64 = 3 << 19;
/// Bytes of rows of tables for a block: its slot, its part of a round's, and its spread among nodes.
const ROWS: u64 = 900;
/// Bytes of a transaction beside its records: what is signed, with the signature, and its part of a run's tables.
const CONTENT: usize = 600;
/// The places of a table that has grown by doubling, by the values in it: from one to two.
const GROWN: (u64, u64) = (3, 2);
/// Wallets that a block changes at least, of its forger and of whom that votes for, and levels of the trie above each.
const WALLETS: (u64, u64) = (2, 6);
/// Bytes of a level of the trie of wallets.
const LEVEL: u64 = 8 * 16;
/// The share of a network's nodes, in hundredths, to which one that has just heard of a block sends it on: the reference's
/// 75 %. Source: consensus.md 6.
const SENT_ON: u64 = 75;
/// Peers that a node asks for theirs, and how many it takes of each. Source: consensus.md 6.
const DISCOVERY: (u64, u64) = (8, 50);
/// Seconds of a slot of a generated network.
const SLOT_SECONDS: u64 = 8;

impl Need {
    /// Bytes that it takes, within a factor of two.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().fold(PROCESS + TABLES, |sum, (_, _, bytes)| sum.saturating_add(*bytes))
    }

    /// What it is made of: how many, of what, and the bytes of all of them.
    pub fn parts(&self) -> [(u64, &'static str, u64); 8] {
        let part = |count: u64, what, each: u64| (count, what, count.saturating_mul(each));
        let of = |bytes: usize| bytes as u64;
        let actors = of(size_of::<TransactionPool>() + size_of::<Delegate>() + 3 * size_of::<(ActorId, Actor)>());
        let plan = of(size_of::<NodePlan>());
        let node = Peer::BYTES + actors + plan + World::NODE_BYTES;
        let wallet = of(size_of::<Wallet>() + size_of::<DelegateAttributes>());
        let state = WALLETS.0 * (wallet + WALLETS.1 * LEVEL);
        // A round renews what all of its delegates' wallets say.
        let states = self.blocks.min(STATES_KEPT_IN_ALL as u64);
        let renewed = (states + self.delegates).saturating_mul(wallet + LEVEL + of(size_of::<Member>()));
        let transaction = CONTENT + size_of::<SignedTransaction>() + 2 * size_of::<(TransactionId, Vec<Arc<Link>>)>();
        [
            part(self.nodes, "nodes", node),
            part(self.neighbours, "neighbours of nodes", Peer::NEIGHBOUR_BYTES),
            part(self.strangers, "others that they ask", grown(Peer::STRANGER_BYTES)),
            part(self.under_way, "messages under way", 2 * World::COPY_BYTES),
            part(self.limited, "tables of limits", Peer::limits_bytes(self.nodes)),
            {
                let (blocks, what, bytes) = part(self.blocks, "blocks", Link::BYTES + ROWS);
                (blocks, what, bytes.saturating_add(states * state).saturating_add(renewed))
            },
            part(self.transactions, "transactions", of(transaction)),
            part(self.pending, "pending transactions in pools", grown(TransactionPool::PENDING_BYTES)),
        ]
    }
}

fn grown(bytes: u64) -> u64 {
    bytes * GROWN.0 / GROWN.1
}

/// `3.4 GiB (10051 nodes 156.8 MiB, ...)`, the parts of a megabyte and more.
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
        let nodes = u64::from(self.network.nodes());
        let topology = &self.network.model.topology;
        let neighbours = topology.neighbours(self.network.nodes());
        let blocks = u64::from(self.last_height().0);
        let rules = self.rules(u32::MAX);
        let is_mesh = neighbours == nodes * nodes.saturating_sub(1);
        let once = rules.gossip == Gossip::Once;
        // A block that nobody repeats does not get far where not all are connected.
        let calm = is_mesh && self.faults.is_empty();
        let under_way = match (calm, once) {
            (true, true) => nodes,
            (true, false) => neighbours * SENT_ON / 100,
            (false, _) => neighbours,
        };
        let seconds = blocks * SLOT_SECONDS;
        let made = self.generated().map(|(rate, most)| {
            let (made, left) = ((rate * seconds as f64) as u64, pending(rate, seconds).min(most));
            // Who may leave no more pending makes no more than blocks take.
            (made.min(left.saturating_add(blocks * of_block())), left)
        });
        let (made, left) =
            made.fold((0, 0), |sum: (u64, u64), one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
        let listed = self.workloads.iter().map(|workload| match &workload.kind {
            WorkloadKind::List(list) => list.transactions.len() as u64,
            WorkloadKind::Generate(_) | WorkloadKind::Chain(_) => 0,
        });
        let listed = listed.sum::<u64>();
        Need {
            nodes,
            neighbours,
            under_way,
            strangers: if is_mesh || !rules.node.discovery { 0 } else { self.strangers(once) },
            limited: match (calm, once) {
                (true, true) => 0,
                (false, true) => 2 * nodes,
                (_, false) => nodes,
            },
            delegates: self.network.delegates.into(),
            blocks,
            // A cast of more than there are ends at the largest number.
            transactions: listed.saturating_add(made),
            pending: nodes.saturating_mul(listed.saturating_add(left).min(rules.pool.max_transactions as u64)),
        }
    }

    /// What each workload and fault hands in in a second, and how much of that it leaves pending at most.
    fn generated(&self) -> impl Iterator<Item = (f64, u64)> {
        let of_workloads = self.workloads.iter().filter_map(|workload| match &workload.kind {
            WorkloadKind::Generate(generate) => {
                Some((generate.per_second, u64::from(generate.wallets) * PENDING_LIMIT))
            }
            WorkloadKind::List(_) | WorkloadKind::Chain(_) => None,
        });
        let of_faults = self.faults.iter().filter_map(|fault| match &fault.kind {
            FaultKind::SpamPool(spam) => Some((spam.per_second, u64::MAX)),
            FaultKind::LowFeeFlood(flood) => Some((flood.per_second, u64::MAX)),
            _ => None,
        });
        of_workloads.chain(of_faults)
    }

    /// Whom nodes hear of from their neighbours and ask, all together: where blocks do not get through or something goes
    /// wrong all of them look for peers; otherwise only who has far fewer than others.
    fn strangers(&self, once: bool) -> u64 {
        let nodes = u64::from(self.network.nodes());
        let topology = &self.network.model.topology;
        let each = topology.neighbours(self.network.nodes()) / nodes.max(1);
        let even = matches!(topology, Topology::Regular(_) | Topology::Ring(_));
        if even && !once && self.faults.is_empty() {
            return 0;
        }
        let (asked, taken) = DISCOVERY;
        let told = match topology {
            Topology::Star => taken,
            _ => each.min(asked) * each.min(taken),
        };
        nodes * told.min(nodes.saturating_sub(1 + each))
    }
}

/// Transactions that a block of a generated network may hold.
fn of_block() -> u64 {
    Milestones::testnet().all()[0].block.max_transactions as u64
}

/// Transactions that wait at once: those of two slots, and all that no block has room for.
fn pending(rate: f64, seconds: u64) -> u64 {
    let over = (rate - of_block() as f64 / SLOT_SECONDS as f64).max(0.0);
    (2.0 * rate * SLOT_SECONDS as f64 + over * seconds as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_a_run_is_made_of_follows_from_its_file() {
        let need = |text: &str| {
            let text = format!("version = 1\nrounds = 2\n[network]\ndelegates = 51\n{text}");
            Scenario::parse(&text, Path::new("s.toml")).expect("it is a scenario").memory()
        };
        let network = |text: &str| {
            let Need { nodes, neighbours, strangers, under_way, limited, delegates, blocks, transactions, pending } =
                need(text);
            assert_eq!((delegates, blocks, transactions, pending), (51, 102, 0, 0), "{text}");
            (nodes, neighbours, strangers, under_way, limited)
        };
        assert_eq!(network(""), (51, 51 * 50, 0, 51, 0));
        assert_eq!(network("gossip = \"reference\""), (51, 51 * 50, 0, 51 * 50 * 3 / 4, 51));
        assert_eq!(network("relays = 10000"), (10_051, 10_051 * 10_050, 0, 10_051, 0));
        assert_eq!(network("relays = 9\ntopology = { regular = 8 }"), (60, 480, 60 * 51, 480, 120));
        assert_eq!(network("relays = 9\ntopology = { ring = 3 }"), (60, 360, 60 * 36, 360, 120));
        assert_eq!(network("relays = 9\ngossip = \"reference\"\ntopology = { ring = 3 }"), (60, 360, 0, 360, 60));
        assert_eq!(network("relays = 9\ntopology = \"star\""), (60, 118, 60 * 50, 118, 120));
        assert_eq!(network("topology = { edges = [[0, 1], [1, 2]] }"), (51, 4, 0, 4, 102));
        let split =
            "[[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { seconds = 8 }\nuntil = { after = 8 }\n";
        assert_eq!(network(split), (51, 51 * 50, 0, 51 * 50, 102));
        let made = |text: &str| {
            let Need { transactions, pending, .. } = need(&format!("[[workload]]\nkind = \"generate\"\n{text}"));
            (transactions, pending)
        };
        assert_eq!(made("per_second = 10"), (8_160, 51 * 160));
        // More than blocks can hold: what is left over waits, as far as so many wallets may leave it, or pools hold it.
        assert_eq!(made("per_second = 100\nwallets = 20"), (800 + 102 * 150, 51 * 800));
        assert_eq!(made("per_second = 100\nwallets = 1000"), (40_000 + 102 * 150, 51 * 15_000));
    }
}
