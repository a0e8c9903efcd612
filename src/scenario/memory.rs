//! The memory that a run will need, computed before it is played.
//!
//! 1. Count the parts of the run: nodes, the peers that each knows, the others that it asks, messages under way at once, pending
//!    transactions, blocks and the kept states ([`Need`]).
//! 2. Multiply each count by the size of its records ([`Need::parts`]). A table that grows takes up to twice that: `GROWN`.
//! 3. Add the process itself and the rows of a run's tables, which were measured.
//!
//! Faults decide how many messages are under way at once and which peers are asked. The count takes the busiest instant of such
//! a run: on a full mesh without faults one block on its way to all, otherwise all nodes asking all they know. Submitted
//! transactions wait while faults may hold blocks up. `tests/protocol/memory.rs` compares the sum with the memory that runs
//! take.

use super::{
    Scenario,
    testnet::ACCOUNTS_LIMIT,
    workload::{PENDING_LIMIT, WorkloadKind},
};
use crate::{
    actors::{Actor, ActorId, Delegate, Peer, TransactionPool},
    files::in_words,
    ledger::{Attributes, DelegateAttributes, Link, Wallet, round::Member, rules::Gossip, tree::STATES_KEPT_IN_ALL},
    protocol::{Milestones, SignedTransaction, TransactionId},
    sim::{NodePlan, Trigger, World, fault::ByClients, network::Topology},
};
use std::{fmt, sync::Arc};

/// The parts of a run, in numbers.
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
    /// The number of them that are pending at once, counted in each pool.
    pub pending: u64,
    /// Ids that pools have been handed since the last block, counted in each pool; those of a slot are too few to count.
    pub recent: u64,
}

/// Bytes that a process has before it plays anything.
pub const PROCESS: u64 = 32 << 20;
/// Bytes of the tables that are as large in any run.
const TABLES: u64 = 3 << 19;
/// Bytes of rows of tables for a block: its slot, its part of a round's, and its spread among nodes.
const ROWS: u64 = 900;
/// Bytes of a transaction beside its records: its signature, and its part of a run's tables.
const CONTENT: usize = 440;
/// The places of a table that has grown by doubling, by the values in it: from one to two.
const GROWN: (u64, u64) = (3, 2);
/// The least number of wallets that a block changes, those of its forger and of the delegate that the forger votes for, and the
/// levels of the trie above each.
const WALLETS: (u64, u64) = (2, 6);
/// Bytes of a level of the trie of wallets.
const LEVEL: u64 = 8 * 16;
/// The share of a network's nodes, in hundredths, to which one that has just heard of a block sends it on: the reference's
/// 75 %. Source: consensus.md 6.
const SENT_ON: u64 = 75;
/// Peers that a node asks for theirs, and how many it takes of each. Source: consensus.md 6.
const DISCOVERY: (u64, u64) = (8, 50);

impl Need {
    /// Bytes that it takes in the worst case. A run takes no more than twice as many.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().fold(PROCESS + TABLES, |sum, (_, _, bytes)| sum.saturating_add(*bytes))
    }

    /// Returns its parts: how many, of which kind, and the bytes of all of them.
    pub fn parts(&self) -> [(u64, &'static str, u64); 9] {
        let part = |count: u64, what, each: u64| (count, what, count.saturating_mul(each));
        let of = |bytes: usize| bytes as u64;
        let actors = of(size_of::<TransactionPool>() + size_of::<Delegate>() + 3 * size_of::<(ActorId, Actor)>());
        let plan = of(size_of::<NodePlan>());
        let node = Peer::BYTES + actors + plan + World::NODE_BYTES;
        let wallet = of(size_of::<Wallet>() + size_of::<Attributes>() + size_of::<DelegateAttributes>());
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
            part(self.recent, "ids that pools remember", grown(TransactionPool::RECENT_BYTES)),
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
    /// Returns the memory that its runs will need. The seed changes nothing in it.
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
        let of_clients = self.clients().map(|clients| clients.handed_in(blocks, self.held_up(blocks)));
        let (made, left) =
            of_clients.fold((0, 0), |sum: (u64, u64), one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
        let listed = self.workloads.iter().map(|workload| match &workload.kind {
            WorkloadKind::List(list) => list.transactions.len() as u64,
            WorkloadKind::Generate(_) | WorkloadKind::Chain(_) => 0,
        });
        let listed = listed.sum::<u64>();
        let waiting = listed.saturating_add(left).min(rules.pool.max_transactions as u64);
        // Messages that nobody repeats get no further than to neighbours.
        let pools = if once { nodes.min(1 + neighbours / nodes.max(1)) } else { nodes };
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
            pending: pools.saturating_mul(waiting),
            recent: match calm {
                true => 0,
                false => pools.saturating_mul(waiting.min(rules.pool.recent_ids as u64)),
            },
        }
    }

    /// Returns the clients that hand in transactions.
    fn clients(&self) -> impl Iterator<Item = Clients> {
        let last = self.last_second();
        let each = self.rules(u32::MAX).pool.max_transactions_per_sender as u64;
        let of_workloads = self.workloads.iter().filter_map(move |workload| match &workload.kind {
            WorkloadKind::Generate(generate) => Some(Clients {
                slot: self.network.block_time_s.into(),
                per_second: generate.per_second,
                seconds: self.window(&workload.from, workload.until.as_ref(), last).min(last),
                pending_most: u64::from(generate.wallets) * PENDING_LIMIT.min(each),
            }),
            WorkloadKind::List(_) | WorkloadKind::Chain(_) => None,
        });
        let of_faults = self.faults.iter().filter_map(move |fault| {
            // A spammer's transactions stay nowhere.
            let flood = match fault.kind.by_clients()? {
                ByClients::Flooders(flood) => flood,
                ByClients::Spammers(_) | ByClients::Voters(_) | ByClients::Delegates(_) => return None,
            };
            let seconds = self.window(&fault.from, fault.until.as_ref(), last).min(last);
            Some(Clients {
                slot: self.network.block_time_s.into(),
                per_second: flood.per_second,
                seconds,
                pending_most: u64::from(ACCOUNTS_LIMIT) * each,
            })
        });
        of_workloads.chain(of_faults)
    }

    /// The second of the last round's end, where all that holds blocks up does so by itself.
    fn last_second(&self) -> f64 {
        let blocks = u64::from(self.last_height().0);
        (blocks * u64::from(self.network.block_time_s)) as f64 + self.held_up(blocks)
    }

    /// Seconds in which no block may be made or get through. How much a fault does is not known before it is played: each
    /// may hold up all, as long as it lasts, and one without an end as long as the run would take without it.
    fn held_up(&self, blocks: u64) -> f64 {
        let last = (blocks * u64::from(self.network.block_time_s)) as f64;
        let faults = self.faults.iter().filter(|fault| fault.kind.facts().holds_up);
        let seconds: f64 = faults.map(|fault| self.window(&fault.from, fault.until.as_ref(), last)).sum();
        self.time_limit_seconds.map_or(seconds, |limit| seconds.min((limit as f64 - last).max(0.0)))
    }

    /// Seconds from a beginning to an end. What waits for an event may begin at once, and end with the run.
    fn window(&self, from: &Trigger, until: Option<&Trigger>, last: f64) -> f64 {
        let at = |trigger: &Trigger, begun: f64, of_event: f64| match trigger {
            Trigger::Start => 0.0,
            Trigger::Seconds(seconds) => *seconds,
            Trigger::After(seconds) => begun + seconds,
            Trigger::Slot(number) | Trigger::Height(number) | Trigger::HeightAtAny(number) => {
                f64::from(*number) * f64::from(self.network.block_time_s)
            }
            Trigger::Round(number) | Trigger::RoundAtAny(number) => {
                f64::from(number.saturating_sub(1))
                    * f64::from(self.network.delegates)
                    * f64::from(self.network.block_time_s)
            }
            Trigger::Event(_) => of_event,
        };
        let begun = at(from, 0.0, 0.0);
        let end = until.map_or(last.max(begun), |until| at(until, begun, last));
        (end - begun).max(0.0)
    }

    /// The nodes that others hear of from their neighbours and ask, all together. Where blocks do not get through or something
    /// goes wrong, all nodes look for peers; otherwise only those that have far fewer than others.
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

/// Clients that hand in transactions at a rate.
struct Clients {
    /// Seconds of a slot.
    slot: f64,
    per_second: f64,
    /// The time for which they do.
    seconds: f64,
    /// The greatest number of transactions that they leave pending.
    pending_most: u64,
}

impl Clients {
    /// Transactions that they hand in, and how many of those wait at once: those of two slots, all that come while blocks are
    /// held up, and all that no block has room for.
    fn handed_in(&self, blocks: u64, held_up: f64) -> (u64, u64) {
        let per_block = Milestones::testnet().all()[0].block.max_transactions as u64;
        let slot = self.slot;
        let all = self.per_second * self.seconds;
        let over = (self.per_second - per_block as f64 / slot).max(0.0);
        let waiting = self.per_second * (2.0 * slot + held_up) + over * self.seconds;
        let pending = (waiting.min(all) as u64).min(self.pending_most);
        // Clients that may leave no more pending make no more than blocks take.
        let taken = blocks.saturating_mul(per_block.min(self.pending_most));
        ((all as u64).min(pending.saturating_add(taken)), pending)
    }
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
            let Need {
                nodes,
                neighbours,
                strangers,
                under_way,
                limited,
                delegates,
                blocks,
                transactions,
                pending,
                recent,
            } = need(text);
            assert_eq!((delegates, blocks, transactions, pending, recent), (51, 102, 0, 0, 0), "{text}");
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
        // For as long as they do, by what pools take of one sender.
        assert_eq!(made("per_second = 10\nfrom = { height = 2 }\nuntil = { after = 8 }"), (80, 51 * 80));
    }
}
