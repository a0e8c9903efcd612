//! Figures of a run, by round and by time, computed while it goes on by one observer.
//!
//! ```text
//!   events ──► Metrics ──┬─ Tips, Weights  where live nodes stand, agreement, branches
//!                        ├─ RoundBook      slots owned, forged, missed
//!                        ├─ Propagation    from forging to each node's chain
//!                        ├─ Traffic        transactions: latency, throughput, pools
//!                        ├─ Rollbacks      how many, how deep, why
//!                        └─ Heals          from a fault's end to one chain
//! ```
//!
//! It keeps only what it reports: a row a round, at most [`time::BUCKETS`] rows over time, and histograms of a fixed
//! size. A longer run needs no more. Source of the figures: consensus.md 7.

pub mod heals;
pub mod propagation;
pub mod rollbacks;
pub mod time;
pub mod traffic;

use super::rounds::{RoundBook, RoundReport};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Block, BlockId, Height, Slot, slots::Slots},
    sim::{NetworkEvent, Observer, Plan, Tips, Weights},
};
use heals::{Heal, Heals, InForce};
use propagation::{Percentiles, Propagation};
use rollbacks::Rollbacks;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard},
};
use time::{Bucket, TimeRows};
use traffic::Traffic;

/// Watches a run and computes its figures. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Mutex<Account>>);

struct Account {
    tree: Arc<BlockTree>,
    slots: Slots,
    tips: Tips,
    book: RoundBook,
    weights: Weights,
    propagation: Propagation,
    traffic: Traffic,
    rollbacks: Rollbacks,
    heals: Heals,
    /// The slot that runs; what stands at its end is sampled.
    slot: Slot,
    round: RoundFigures,
    rounds: Vec<RoundFigures>,
    total: SlotFigures,
    time: TimeRows,
    orphans: Orphans,
}

/// Figures of one round, beside what the chain itself tells. A round runs from the slot at whose begin the block most
/// nodes stand on is to be followed by one of its heights; what happens then is the round's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoundFigures {
    pub round: u32,
    #[serde(flatten)]
    pub slots: SlotFigures,
    /// From forging to a node's chain, in milliseconds.
    pub propagation_ms: Percentiles,
    pub rollbacks: u32,
    pub rollback_depth_max: u32,
    /// Blocks forged beside another one on the same parent.
    pub forks: u32,
    /// Transactions that half of the nodes have on their chain since this round.
    pub transactions: u64,
    pub transactions_per_second: f64,
    /// From the first pool to half of the nodes' chains, in milliseconds.
    pub transaction_latency_ms: Percentiles,
}

/// Figures sampled at the end of every slot. Those that need a live node are empty if none was live at the end of any slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SlotFigures {
    /// Slots sampled.
    pub slots: u32,
    /// Slots that ended with the live nodes on more than one branch.
    pub slots_forked: u32,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    /// Most nodes down, crashed or paused, at a slot's end.
    pub down_max: u32,
    #[serde(skip)]
    agreement: Mean,
    /// Least share of live nodes on the winning tip at a slot's end.
    pub agreement_min: Option<f64>,
    #[serde(skip)]
    weight_agreement: Mean,
    /// The same by the vote weight of the delegates that forge on the nodes.
    pub weight_agreement_min: Option<f64>,
    #[serde(skip)]
    pool: Mean,
    /// Transactions in the fullest pool of a live node.
    pub pool_max: Option<u32>,
}

/// A mean of what was defined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// The sample at the end of one slot. The members that need a live node are empty while none is live.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub slot: Slot,
    pub down: u32,
    pub agreement: Option<f64>,
    pub weight_agreement: Option<f64>,
    pub branches: u32,
    pub depth: u32,
    pub pool_mean: Option<f64>,
    pub pool_max: Option<u32>,
    pub height_least: Option<Height>,
    pub height_greatest: Option<Height>,
}

/// The lesser of two numbers, as far as they are there.
fn lesser<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Everything a run's report is made of.
pub struct Figures {
    /// The rounds of the winning chain.
    pub chain: Vec<RoundReport>,
    pub rounds: Vec<RoundFigures>,
    pub time: Vec<Bucket>,
    pub total: Totals,
    pub heals: Vec<Heal>,
    /// The faults that began, in the order in which they did.
    pub faults: Vec<InForce>,
    pub orphans: Vec<Orphan>,
    /// Cumulated shares of propagation delays: (milliseconds, share of deliveries that took no longer).
    pub propagation_curve: Vec<(f64, f64)>,
    pub tip: Arc<Link>,
    /// Number of nodes.
    pub nodes: usize,
}

/// Figures of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    pub height: u32,
    pub rounds: u32,
    /// Blocks on the winning chain that the run has forged.
    pub blocks: u32,
    pub missed_slots: u32,
    /// Slots without a block on the winning chain, in a row, at most; those after its last block count, too.
    pub longest_gap_slots: u32,
    /// Blocks forged, on any fork.
    pub forged: u32,
    /// The number of them that are not on the winning chain.
    pub orphaned: u32,
    pub forks: u32,
    pub slots: u32,
    pub slots_forked: u32,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    /// Most nodes down at a slot's end.
    pub down_max: u32,
    pub rollbacks: u32,
    pub rollback_depth_max: u32,
    pub rollback_depth_mean: f64,
    pub rollbacks_by_cause: BTreeMap<String, u32>,
    pub blocks_refused: u32,
    pub blocks_disregarded: u32,
    pub forging_suspended: u32,
    pub propagation_ms: Percentiles,
    /// From forging until half of the nodes that were live then have the block.
    pub propagation_half_ms: Percentiles,
    /// From forging until all nodes that were live then have the block; blocks that do not get there are left out.
    pub propagation_all_ms: Percentiles,
    pub transactions: u64,
    pub transactions_per_second: f64,
    pub transaction_latency_ms: Percentiles,
    pub transactions_rejected: u64,
    pub transactions_expired: u64,
    pub pool_mean: Option<f64>,
    pub pool_max: Option<u32>,
    pub agreement_mean: Option<f64>,
    pub agreement_min: Option<f64>,
    pub weight_agreement_mean: Option<f64>,
    pub weight_agreement_min: Option<f64>,
    /// Share of live nodes on the winning tip when the run ended.
    pub agreement_end: Option<f64>,
    /// Nodes down when the run ended.
    pub down_end: u32,
    /// The longest time from a fault's end until all live nodes stood on one block; empty where no fault ended, and where
    /// the run ended before they did after one of them.
    pub converged_seconds_max: Option<f64>,
    /// The longest time for which that was watched: until they did, or until the run ended. Without
    /// `converged_seconds_max` the time to converge is longer than this (right-censored). Empty where no fault ended.
    pub observed_seconds_max: Option<f64>,
    /// Virtual seconds played.
    pub seconds: f64,
}

/// Blocks that may be listed, not counted, beside the chain.
const ORPHANS_LISTED: usize = 10_000;

/// A block that was forged and is not on the winning chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orphan {
    pub height: u32,
    pub id: String,
    pub slot: u32,
    pub at_us: u64,
    pub node: u32,
    pub transactions: u32,
}

/// Blocks forged. All are kept to the end of the run: a rollback may be as deep as 5,000 blocks (consensus.md 3.5), and the
/// winning tip may move to a chain that has parted from it at any depth.
#[derive(Default)]
struct Orphans {
    /// By height, then id.
    all: BTreeMap<(u32, BlockId), Forged>,
    /// Blocks that another one was forged on.
    parents: BTreeSet<BlockId>,
    forks: u32,
    round_forks: u32,
}

struct Forged {
    slot: Slot,
    at: SimTime,
    node: NodeId,
    transactions: u32,
}

impl Orphans {
    fn forged(&mut self, now: SimTime, node: NodeId, block: &Block, slot: Slot) {
        let forged = Forged { slot, at: now, node, transactions: block.transactions.len() as u32 };
        match self.all.entry((block.header.height.0, block.id)) {
            Entry::Occupied(_) => return,
            Entry::Vacant(place) => place.insert(forged),
        };
        // An invalid block may name no parent, or a height that is not the one after its parent's.
        let is_fork = block.header.previous.is_some_and(|parent| !self.parents.insert(parent));
        self.forks += u32::from(is_fork);
        self.round_forks += u32::from(is_fork);
    }

    /// Lists the blocks that are not on the chain ending in `winning`, ascending: how many, and the first [`ORPHANS_LISTED`].
    fn list(&self, winning: &Arc<Link>) -> (u32, Vec<Orphan>) {
        let mut listed = Vec::new();
        let mut count = 0;
        for ((height, id), forged) in &self.all {
            if winning.ancestor(Height(*height)).is_some_and(|link| link.id() == *id) {
                continue;
            }
            count += 1;
            if listed.len() < ORPHANS_LISTED {
                listed.push(forged.orphan(*height, *id));
            }
        }
        (count, listed)
    }
}

impl Forged {
    fn orphan(&self, height: u32, id: BlockId) -> Orphan {
        Orphan {
            height,
            id: id.to_string(),
            slot: self.slot.0,
            at_us: self.at.micros(),
            node: self.node.0,
            transactions: self.transactions,
        }
    }
}

impl SlotFigures {
    fn add(&mut self, sample: &Sample) {
        self.slots += 1;
        self.slots_forked += u32::from(sample.branches > 1);
        self.branches_max = self.branches_max.max(sample.branches);
        self.fork_depth_max = self.fork_depth_max.max(sample.depth);
        self.down_max = self.down_max.max(sample.down);
        self.agreement.add(sample.agreement);
        self.weight_agreement.add(sample.weight_agreement);
        self.pool.add(sample.pool_mean);
        self.pool_max = self.pool_max.max(sample.pool_max);
        self.agreement_min = lesser(self.agreement_min, sample.agreement);
        self.weight_agreement_min = lesser(self.weight_agreement_min, sample.weight_agreement);
    }

    /// Mean share of live nodes on the winning tip at a slot's end.
    pub fn agreement_mean(&self) -> Option<f64> {
        self.agreement.value()
    }

    /// Mean share of live vote weight on the winning tip at a slot's end.
    pub fn weight_agreement_mean(&self) -> Option<f64> {
        self.weight_agreement.value()
    }

    /// Mean number of transactions in a live node's pool at a slot's end.
    pub fn pool_mean(&self) -> Option<f64> {
        self.pool.value()
    }
}

impl Metrics {
    /// The figures of a run that is about to begin.
    pub fn new(plan: &Plan) -> Self {
        let (nodes, slots) = (plan.nodes.len(), plan.tree.slots());
        let book = RoundBook::new(plan);
        let slot = book.start;
        let weights = Weights::new(plan);
        let round = plan.tree.schedule().at(plan.tip.height().next()).round.0;
        Self(Arc::new(Mutex::new(Account {
            tree: plan.tree.clone(),
            slots,
            tips: Tips::new(nodes, &plan.tip),
            book,
            weights,
            propagation: Propagation::new(nodes),
            traffic: Traffic::new(nodes),
            rollbacks: Rollbacks::default(),
            heals: Heals::default(),
            slot,
            round: RoundFigures { round, ..RoundFigures::default() },
            rounds: Vec::new(),
            total: SlotFigures::default(),
            time: TimeRows::new(slot),
            orphans: Orphans::default(),
        })))
    }

    /// The run has ended at this instant, with a slot about to begin: everything is summed up. Nothing may be observed
    /// after that.
    pub fn finish(&self, end: SimTime) -> Figures {
        self.lock().finish(end)
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().expect("no one panics while holding it")
    }
}

impl Observer for Metrics {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.lock().observe(now, node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.lock().observe_network(now, event);
    }
}

impl Account {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.sample_until(now);
        self.book.follow(event);
        if self.tips.follow(node, event) {
            self.look_whether_converged(now);
        }
        match event {
            Event::BlockForged(block) => {
                self.propagation.forged(now, block, &self.tips);
                self.orphans.forged(now, node, block, self.slots.slot(block.header.timestamp));
            }
            Event::BlockApplied(link) if self.propagation.applied(now, node, link) => {
                let confirmed = self.traffic.confirmed(now, link.block());
                self.time.transactions(confirmed);
            }
            Event::RolledBack { from, to, cause } => {
                self.rollbacks.rolled_back(from.height().0 - to.height().0, *cause);
            }
            Event::PoolAdded(added) => self.traffic.added(now, node, added),
            Event::PoolRejected(rejected) => self.traffic.rejected += rejected.len() as u64,
            Event::PoolRemoved(_) | Event::PoolEvicted(_) | Event::PoolPurged(_) => self.traffic.removed(node),
            Event::PoolReplaced(pending) => self.traffic.replaced(node, pending.len()),
            Event::PoolExpired(transaction) => self.traffic.expired(node, &transaction.id()),
            Event::BlockRefused(_) => self.rollbacks.refused += 1,
            Event::BlockDisregarded(_) => self.rollbacks.disregarded += 1,
            Event::ForgingSuspended { .. } => self.rollbacks.suspended += 1,
            _ => {}
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.sample_until(now);
        if self.tips.follow_network(event) {
            self.look_whether_converged(now);
        }
        match event {
            NetworkEvent::FaultBegan { index, kind } => self.heals.began(now, *index, kind),
            NetworkEvent::FaultEnded { index, kind } => {
                self.heals.ended(now, *index, kind, self.tips.is_converged());
            }
            NetworkEvent::PoolLost { node } => self.traffic.replaced(*node, 0),
            _ => {}
        }
    }

    fn look_whether_converged(&mut self, now: SimTime) {
        if self.tips.is_converged() {
            self.heals.converged(now);
        }
    }

    /// Samples the end of every slot that is over.
    fn sample_until(&mut self, now: SimTime) {
        while SimTime::from_seconds(self.slots.start(Slot(self.slot.0 + 1))) <= now {
            let sample = self.sample();
            self.round.slots.add(&sample);
            self.total.add(&sample);
            self.time.add(&sample);
            self.slot = Slot(self.slot.0 + 1);
            self.enter_round();
        }
    }

    fn sample(&mut self) -> Sample {
        let branches = self.tips.branches();
        let heights = self.tips.heights();
        Sample {
            slot: self.slot,
            down: self.tips.down(),
            agreement: self.tips.agreement(),
            weight_agreement: self.weights.agreement(&self.tips),
            branches: branches.branches,
            depth: branches.depth,
            pool_mean: self.traffic.pool_mean(&self.tips),
            pool_max: self.traffic.pool_max(&self.tips),
            height_least: heights.map(|(least, _)| least),
            height_greatest: heights.map(|(_, greatest)| greatest),
        }
    }

    /// A slot has begun, and the winning chain may have entered a round. It is never left again, even if that chain is
    /// rolled back.
    fn enter_round(&mut self) {
        let tip = self.tips.winning();
        if tip.height().0 < self.book.first_height.0 {
            return;
        }
        let round = self.tree.schedule().at(tip.height().next()).round.0;
        if round > self.round.round {
            self.close_round();
            self.round.round = round;
        }
    }

    fn close_round(&mut self) {
        let mut closed = std::mem::take(&mut self.round);
        closed.propagation_ms = self.propagation.close_round();
        (closed.rollbacks, closed.rollback_depth_max) = self.rollbacks.close_round();
        closed.forks = std::mem::take(&mut self.orphans.round_forks);
        (closed.transactions, closed.transaction_latency_ms) = self.traffic.close_round();
        let seconds = f64::from(closed.slots.slots * self.slots.blocktime());
        closed.transactions_per_second = if seconds > 0.0 { closed.transactions as f64 / seconds } else { 0.0 };
        self.rounds.push(closed);
    }

    fn finish(&mut self, end: SimTime) -> Figures {
        self.sample_until(end);
        if self.round.slots.slots > 0 {
            self.close_round();
        }
        let tip = self.tips.winning().clone();
        let chain = self.book.rounds(&tip, self.slots.slot(end.seconds()));
        self.heals.finish(end);
        let (orphaned, orphans) = self.orphans.list(&tip);
        let total = self.totals(&chain, &tip, orphaned, end);
        Figures {
            rounds: std::mem::take(&mut self.rounds),
            time: self.time.finish(),
            total,
            heals: self.heals.all().to_vec(),
            faults: self.heals.faults().to_vec(),
            orphans,
            propagation_curve: self.propagation.curve(),
            chain,
            tip,
            nodes: self.tips.nodes(),
        }
    }

    fn totals(&self, chain: &[RoundReport], tip: &Arc<Link>, orphaned: u32, end: SimTime) -> Totals {
        let blocks = (tip.height().0 + 1).saturating_sub(self.book.first_height.0);
        let seconds = end.since(SimTime::from_seconds(self.slots.start(self.book.start))).as_secs_f64();
        let slots = &self.total;
        Totals {
            height: tip.height().0,
            rounds: chain.len() as u32,
            blocks,
            missed_slots: chain.iter().map(|round| round.missed_slots).sum(),
            longest_gap_slots: chain.iter().map(RoundReport::longest_gap_slots).max().unwrap_or(0),
            forged: self.orphans.all.len() as u32,
            orphaned,
            forks: self.orphans.forks,
            slots: slots.slots,
            slots_forked: slots.slots_forked,
            branches_max: slots.branches_max,
            fork_depth_max: slots.fork_depth_max,
            down_max: slots.down_max,
            rollbacks: self.rollbacks.count,
            rollback_depth_max: self.rollbacks.depth_max,
            rollback_depth_mean: self.rollbacks.depth_mean(),
            rollbacks_by_cause: self.rollbacks.by_cause.clone(),
            blocks_refused: self.rollbacks.refused,
            blocks_disregarded: self.rollbacks.disregarded,
            forging_suspended: self.rollbacks.suspended,
            propagation_ms: self.propagation.each(),
            propagation_half_ms: self.propagation.half(),
            propagation_all_ms: self.propagation.all(),
            transactions: self.traffic.total,
            transactions_per_second: if seconds > 0.0 { self.traffic.total as f64 / seconds } else { 0.0 },
            transaction_latency_ms: self.traffic.latency(),
            transactions_rejected: self.traffic.rejected,
            transactions_expired: self.traffic.expired,
            pool_mean: slots.pool_mean(),
            pool_max: slots.pool_max,
            agreement_mean: slots.agreement_mean(),
            agreement_min: slots.agreement_min,
            weight_agreement_mean: slots.weight_agreement_mean(),
            weight_agreement_min: slots.weight_agreement_min,
            agreement_end: self.tips.agreement(),
            down_end: self.tips.down(),
            converged_seconds_max: self.heals.longest(),
            observed_seconds_max: self.heals.longest_watched(),
            seconds,
        }
    }
}
