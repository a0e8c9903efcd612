//! Transactions: from the first pool to the chain of half of the nodes, and how full the pools are.

use super::propagation::{Percentiles, Times};
use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Block, SignedTransaction, TransactionId},
    sim::Tips,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    iter,
    sync::Arc,
};

/// The number of transactions followed at a time. The oldest is evicted for the next.
const FOLLOWED: usize = 100_000;

/// Transactions on their way, and the pools they are in.
pub(crate) struct Traffic {
    /// The time at which each was first in a pool.
    first_seen: Latest<SimTime>,
    /// Transactions that were counted as confirmed. A block of another fork may contain them, too.
    confirmed: Latest<()>,
    expired: Latest<()>,
    /// The number of transactions in each node's pool, from its events. It may be below 0 for a moment, if a full pool reports an
    /// eviction before it reports the batch that contains the evicted transaction.
    pools: Vec<i64>,
    /// Transactions in a pool when the run ended.
    pending: BTreeSet<TransactionId>,
    latency: Times,
    this_round: Times,
    round_total: u64,
    pub(super) total: u64,
    pub(super) rejected: u64,
    pub(super) expirations: u64,
}

/// A value for each of the last [`FOLLOWED`] transactions.
struct Latest<T> {
    values: BTreeMap<TransactionId, T>,
    order: VecDeque<TransactionId>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T> Latest<T> {
    /// Returns false if the transaction already has a value, which stays.
    fn insert(&mut self, id: TransactionId, value: T) -> bool {
        let Entry::Vacant(place) = self.values.entry(id) else { return false };
        place.insert(value);
        self.order.push_back(id);
        while self.order.len() > FOLLOWED {
            if let Some(oldest) = self.order.pop_front() {
                self.values.remove(&oldest);
            }
        }
        true
    }

    fn ids(&self) -> impl Iterator<Item = TransactionId> {
        self.values.keys().copied()
    }
}

impl Traffic {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            first_seen: Latest::default(),
            confirmed: Latest::default(),
            expired: Latest::default(),
            pools: vec![0; nodes],
            pending: BTreeSet::new(),
            latency: Times::default(),
            this_round: Times::default(),
            round_total: 0,
            total: 0,
            rejected: 0,
            expirations: 0,
        }
    }

    pub(super) fn added(&mut self, now: SimTime, node: NodeId, added: &[Arc<SignedTransaction>]) {
        self.pools[node.0 as usize] += added.len() as i64;
        for transaction in added {
            self.first_seen.insert(transaction.id(), now);
        }
    }

    pub(super) fn removed(&mut self, node: NodeId) {
        self.pools[node.0 as usize] -= 1;
    }

    /// Counts an expired transaction once, even if several pools drop it.
    pub(super) fn expired(&mut self, node: NodeId, id: &TransactionId) {
        self.removed(node);
        if self.first_seen.values.remove(id).is_some() && self.expired.insert(*id, ()) {
            self.expirations += 1;
        }
    }

    /// Handles a rollback, a rebuild or a crash, after which the pool holds `pending` transactions.
    pub(super) fn replaced(&mut self, node: NodeId, pending: usize) {
        self.pools[node.0 as usize] = pending as i64;
    }

    /// Handles a block that half of the nodes that were live at its forging now have. Returns the number of its transactions that
    /// were in no such block before.
    pub(super) fn confirmed(&mut self, now: SimTime, block: &Block) -> u64 {
        let mut count = 0;
        for transaction in &block.transactions {
            let id = transaction.id();
            if !self.confirmed.insert(id, ()) {
                continue;
            }
            count += 1;
            if let Some(seen) = self.first_seen.values.remove(&id) {
                self.latency.add(seen, now);
                self.this_round.add(seen, now);
            }
        }
        self.round_total += count;
        self.total += count;
        count
    }

    /// Records the transactions that are in pools at the end of the run.
    pub(super) fn ended(&mut self, pending: &BTreeSet<TransactionId>) {
        self.pending.clone_from(pending);
    }

    /// The number of followed transactions that pools accepted and that are neither on the chain ending in `winning` nor in a pool nor
    /// expired.
    pub(super) fn lost(&self, winning: &Arc<Link>) -> u64 {
        let mut missing: BTreeSet<TransactionId> = self.first_seen.ids().chain(self.confirmed.ids()).collect();
        missing.retain(|id| !self.pending.contains(id) && !self.expired.values.contains_key(id));
        for link in iter::successors(Some(winning.clone()), |link| link.parent()) {
            if missing.is_empty() {
                break;
            }
            for transaction in &link.block().transactions {
                missing.remove(&transaction.id());
            }
        }
        missing.len() as u64
    }

    pub(super) fn close_round(&mut self) -> (u64, Percentiles) {
        let latency = std::mem::take(&mut self.this_round).percentiles();
        (std::mem::take(&mut self.round_total), latency)
    }

    pub(super) fn latency(&self) -> Percentiles {
        self.latency.percentiles()
    }

    /// Transactions in a pool, mean over live nodes; `None` while no node is live.
    pub(super) fn pool_mean(&self, tips: &Tips) -> Option<f64> {
        let sum: u64 = self.of_live(tips).map(u64::from).sum();
        (tips.live() > 0).then(|| sum as f64 / f64::from(tips.live()))
    }

    /// Transactions in the fullest pool of a live node; `None` while no node is live.
    pub(super) fn pool_max(&self, tips: &Tips) -> Option<u32> {
        self.of_live(tips).max()
    }

    fn of_live(&self, tips: &Tips) -> impl Iterator<Item = u32> {
        tips.of_live().map(|(node, _)| u32::try_from(self.pools[node.0 as usize]).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        scenario::Scenario,
        sim::{SeedTree, stage::inline::InlineStage},
    };
    use std::{path::Path, time::Duration};

    /// Half of the nodes had a block, and all have left it.
    #[test]
    fn a_transaction_whose_block_was_left_is_lost_if_no_pool_has_it() {
        let text = "version = 1\nrounds = 2\n[network]\ndelegates = 3\n\
            [[action]]\nheight = 3\nby = 'account_1'\ndoes = 'transfer'\nto = 'account_2'";
        let scenario = Scenario::parse(text, Path::new("transfer.toml")).expect("it is valid");
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let mut stage = InlineStage::new(&plan, Vec::new());
        stage.run_until(plan.start + Duration::from_secs(48));
        let chain = iter::successors(Some(stage.world().tips().winning().clone()), |link| link.parent());
        let with =
            chain.filter(|link| link.height() > plan.tip.height()).find(|link| !link.block().transactions.is_empty());
        let with = with.expect("the transfer was forged");
        let mut traffic = Traffic::new(3);
        assert_eq!(traffic.confirmed(stage.world().now(), with.block()), 1);
        assert_eq!(traffic.lost(&with), 0);
        let before = with.parent().expect("it is not the first block");
        assert_eq!(traffic.lost(&before), 1);
        traffic.ended(&with.block().transactions.iter().map(|transaction| transaction.id()).collect());
        assert_eq!(traffic.lost(&before), 0);
    }

    #[test]
    fn of_more_than_are_followed_the_oldest_go() {
        let mut latest = Latest::default();
        let id = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            TransactionId(bytes)
        };
        assert!(latest.insert(id(0), 7) && !latest.insert(id(0), 8), "the first value stays");
        assert_eq!(latest.values[&id(0)], 7);
        (1..FOLLOWED).for_each(|number| assert!(latest.insert(id(number), 0)));
        assert_eq!(latest.ids().next(), Some(id(0)));
        assert!(latest.insert(id(FOLLOWED), 0));
        assert_eq!((latest.ids().next(), latest.ids().count()), (Some(id(1)), FOLLOWED));
    }
}
