//! Transactions: from the first pool to the chain of half of the nodes, and how full the pools are.

use super::propagation::{Percentiles, Times};
use crate::{
    actors::{NodeId, SimTime},
    protocol::{Block, SignedTransaction, TransactionId},
    sim::Tips,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    sync::Arc,
};

/// Transactions followed at a time; the oldest is given up for the next.
const FOLLOWED: usize = 100_000;

/// Transactions on their way, and the pools they are in.
pub struct Traffic {
    /// The time at which each was first in a pool.
    first_seen: BTreeMap<TransactionId, SimTime>,
    order: VecDeque<TransactionId>,
    /// The last ones that were confirmed: another block of another fork may hold them, too.
    confirmed: BTreeSet<TransactionId>,
    confirmed_order: VecDeque<TransactionId>,
    /// Transactions in each node's pool, as its events tell.
    /// Below 0 between the moment at which a full pool tells what gives way and that at which it tells of the batch that
    /// holds it.
    pools: Vec<i64>,
    latency: Times,
    this_round: Times,
    round_total: u64,
    pub(super) total: u64,
    pub(super) rejected: u64,
    pub(super) expired: u64,
}

impl Traffic {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            first_seen: BTreeMap::new(),
            order: VecDeque::new(),
            confirmed: BTreeSet::new(),
            confirmed_order: VecDeque::new(),
            pools: vec![0; nodes],
            latency: Times::default(),
            this_round: Times::default(),
            round_total: 0,
            total: 0,
            rejected: 0,
            expired: 0,
        }
    }

    pub(super) fn added(&mut self, now: SimTime, node: NodeId, added: &[Arc<SignedTransaction>]) {
        self.pools[node.0 as usize] += added.len() as i64;
        for transaction in added {
            let id = transaction.id();
            if let Entry::Vacant(first) = self.first_seen.entry(id) {
                first.insert(now);
                self.order.push_back(id);
            }
        }
        while self.order.len() > FOLLOWED {
            if let Some(oldest) = self.order.pop_front() {
                self.first_seen.remove(&oldest);
            }
        }
    }

    pub(super) fn removed(&mut self, node: NodeId) {
        self.pools[node.0 as usize] -= 1;
    }

    /// Counted once, however many pools drop it.
    pub(super) fn expired(&mut self, node: NodeId, id: &TransactionId) {
        self.removed(node);
        if self.first_seen.remove(id).is_some() {
            self.expired += 1;
        }
    }

    /// Handles a rollback, a rebuild or a crash, after which the pool holds `pending` transactions.
    pub(super) fn replaced(&mut self, node: NodeId, pending: usize) {
        self.pools[node.0 as usize] = pending as i64;
    }

    /// Half of the nodes that were live when it was forged have the block; answers the number of its transactions that
    /// were in no such block before.
    pub(super) fn confirmed(&mut self, now: SimTime, block: &Block) -> u64 {
        let mut count = 0;
        for transaction in &block.transactions {
            let id = transaction.id();
            if !self.confirmed.insert(id) {
                continue;
            }
            count += 1;
            self.confirmed_order.push_back(id);
            if let Some(seen) = self.first_seen.remove(&id) {
                self.latency.add(seen, now);
                self.this_round.add(seen, now);
            }
        }
        while self.confirmed_order.len() > FOLLOWED {
            if let Some(oldest) = self.confirmed_order.pop_front() {
                self.confirmed.remove(&oldest);
            }
        }
        self.round_total += count;
        self.total += count;
        count
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
