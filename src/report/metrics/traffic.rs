//! Transactions: from the first pool to the chain of half of the nodes, and how full the pools are.

use super::propagation::{Percentiles, Times};
use crate::{
    actors::{NodeId, SimTime},
    protocol::{Block, SignedTransaction, TransactionId},
};
use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    sync::Arc,
};

/// Transactions followed at a time; the oldest is given up for the next.
const FOLLOWED: usize = 100_000;

/// Transactions on their way, and the pools they are in.
pub struct Traffic {
    /// When each was first in a pool.
    first_seen: BTreeMap<TransactionId, SimTime>,
    order: VecDeque<TransactionId>,
    /// Transactions in each node's pool, as its events tell.
    pools: Vec<u32>,
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
        self.pools[node.0 as usize] += added.len() as u32;
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
        let pool = &mut self.pools[node.0 as usize];
        *pool = pool.saturating_sub(1);
    }

    /// Counted once, however many pools drop it.
    pub(super) fn expired(&mut self, node: NodeId, id: &TransactionId) {
        self.removed(node);
        if self.first_seen.remove(id).is_some() {
            self.expired += 1;
        }
    }

    /// A rollback or a rebuild has emptied the pool, which holds so many now.
    pub(super) fn replaced(&mut self, node: NodeId, pending: usize) {
        let kept = if planted!(ReplacedPoolAddsUp) { self.pools[node.0 as usize] } else { 0 };
        self.pools[node.0 as usize] = kept + pending as u32;
    }

    /// Half of the nodes have the block; answers the number of its transactions.
    pub(super) fn confirmed(&mut self, now: SimTime, block: &Block) -> u64 {
        for transaction in &block.transactions {
            if let Some(seen) = self.first_seen.remove(&transaction.id()) {
                self.latency.add(seen, now);
                self.this_round.add(seen, now);
            }
        }
        let count = block.transactions.len() as u64;
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

    pub(super) fn pool_mean(&self) -> f64 {
        let sum: u64 = self.pools.iter().map(|pool| u64::from(*pool)).sum();
        sum as f64 / self.pools.len().max(1) as f64
    }

    pub(super) fn pool_max(&self) -> u32 {
        self.pools.iter().copied().max().unwrap_or(0)
    }
}
