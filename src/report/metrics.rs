//! Figures of a run, by round and by time, computed while it goes on by one observer.
//!
//! ```text
//!   events ──► Metrics ──┬─ Tips           where nodes stand, agreement, branches
//!                        ├─ RoundBook      slots owned, forged, missed
//!                        ├─ Propagation    from forging to each node's chain
//!                        ├─ Traffic        transactions: latency, throughput, pools
//!                        ├─ Rollbacks      how many, how deep, why
//!                        └─ Heals          from a fault's end to one chain
//! ```
//!
//! What is kept is what is reported: a row a round, at most [`time::BUCKETS`] rows over time, and histograms of a fixed
//! size; a longer run needs no more. Source of what is measured: consensus.md 7.

pub mod heals;
pub mod propagation;
pub mod rollbacks;
pub mod time;
pub mod traffic;

use super::rounds::{RoundBook, RoundReport};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, RoundInfo},
    protocol::{Block, BlockId, Height, PublicKey, Slot, slots::Slots},
    sim::{NetworkEvent, Observer, Plan, Tips},
};
use heals::{Heal, Heals};
use propagation::{Percentiles, Propagation};
use rollbacks::Rollbacks;
use serde::Serialize;
use std::{
    collections::BTreeMap,
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

/// What is sampled at the end of every slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SlotFigures {
    /// Slots sampled.
    pub slots: u32,
    /// Slots that ended with the nodes on more than one branch.
    pub slots_forked: u32,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    /// Sum over slots of the share of nodes on the winning tip; see [`SlotFigures::agreement_mean`].
    #[serde(skip)]
    agreement_sum: f64,
    /// Least share of nodes on the winning tip at a slot's end.
    pub agreement_min: f64,
    #[serde(skip)]
    weight_sum: f64,
    /// The same by the vote weight of the delegates that forge on the nodes.
    pub weight_agreement_min: f64,
    #[serde(skip)]
    pool_sum: f64,
    /// Transactions in the fullest pool.
    pub pool_max: u32,
}

/// What one slot's end looks like.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub slot: Slot,
    pub agreement: f64,
    pub weight_agreement: f64,
    pub branches: u32,
    pub depth: u32,
    pub pool_mean: f64,
    pub pool_max: u32,
    pub height_least: Height,
    pub height_greatest: Height,
}

/// Everything a run's report is made of.
pub struct Figures {
    /// Of the winning chain.
    pub chain: Vec<RoundReport>,
    pub rounds: Vec<RoundFigures>,
    pub time: Vec<Bucket>,
    pub total: Totals,
    pub heals: Vec<Heal>,
    pub orphans: Vec<Orphan>,
    /// Cumulated shares of propagation delays: (milliseconds, share of deliveries that took no longer).
    pub propagation_curve: Vec<(f64, f64)>,
    pub tip: Arc<Link>,
}

/// Figures of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    pub height: u32,
    pub rounds: u32,
    /// Blocks on the winning chain that the run has forged.
    pub blocks: u32,
    pub missed_slots: u32,
    /// Slots without a block on the winning chain, in a row, at most.
    pub longest_gap_slots: u32,
    /// Blocks forged, on any fork.
    pub forged: u32,
    /// Of them, those not on the winning chain.
    pub orphaned: u32,
    pub forks: u32,
    pub slots: u32,
    pub slots_forked: u32,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    pub rollbacks: u32,
    pub rollback_depth_max: u32,
    pub rollback_depth_mean: f64,
    pub rollbacks_by_cause: BTreeMap<String, u32>,
    pub blocks_refused: u32,
    pub blocks_disregarded: u32,
    pub forging_suspended: u32,
    pub propagation_ms: Percentiles,
    /// From forging until half of the nodes have the block.
    pub propagation_half_ms: Percentiles,
    /// From forging until every node has the block; blocks that do not get everywhere are left out.
    pub propagation_all_ms: Percentiles,
    pub transactions: u64,
    pub transactions_per_second: f64,
    pub transaction_latency_ms: Percentiles,
    pub transactions_rejected: u64,
    pub transactions_expired: u64,
    pub pool_mean: f64,
    pub pool_max: u32,
    pub agreement_mean: f64,
    pub agreement_min: f64,
    pub weight_agreement_mean: f64,
    pub weight_agreement_min: f64,
    /// Share of nodes on the winning tip when the run ended.
    pub agreement_end: f64,
    /// From a fault's end until all nodes stood on one block, the longest; empty where none did or nothing was healed.
    pub converged_seconds_max: Option<f64>,
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

/// Blocks forged, until it is settled whether they are on the chain.
#[derive(Default)]
struct Orphans {
    /// By height, then id.
    recent: BTreeMap<(u32, BlockId), Forged>,
    /// The first ones, up to [`ORPHANS_LISTED`].
    settled: Vec<Orphan>,
    forged: u32,
    forks: u32,
    round_forks: u32,
}

struct Forged {
    block: Arc<Block>,
    slot: Slot,
    at: SimTime,
    node: NodeId,
}

/// Heights below the winning tip at which it is settled which block is on the chain; no fork that the reference rolls
/// back is longer.
const SETTLED_BELOW: u32 = 256;

impl Orphans {
    fn forged(&mut self, forged: Forged, winning: &Arc<Link>) {
        let (id, header) = (forged.block.id, &forged.block.header);
        let height = header.height.0;
        let all_of_height = self.recent.range((height, BlockId::Numeric(0))..).take_while(|((at, _), _)| *at == height);
        let mut same_parent = all_of_height.filter(|(_, other)| other.block.header.previous == header.previous);
        let is_fork = same_parent.any(|((_, other), _)| *other != id);
        if self.recent.insert((height, id), forged).is_some() {
            return;
        }
        self.forged += 1;
        self.forks += u32::from(is_fork);
        self.round_forks += u32::from(is_fork);
        while let Some(oldest) = self.recent.first_entry()
            && oldest.key().0 + SETTLED_BELOW < winning.height().0
        {
            let oldest = oldest.remove();
            if self.settled.len() < ORPHANS_LISTED {
                self.settled.extend(oldest.orphaned_by(winning));
            }
        }
    }

    /// Those known, if the chain ends with `winning`.
    fn list(&self, winning: &Arc<Link>) -> Vec<Orphan> {
        let recent = self.recent.values().filter_map(|forged| forged.orphaned_by(winning));
        self.settled.iter().cloned().chain(recent).take(ORPHANS_LISTED).collect()
    }
}

impl Forged {
    /// The block as an orphan, if it is not on the chain ending in `winning`.
    fn orphaned_by(&self, winning: &Arc<Link>) -> Option<Orphan> {
        let header = &self.block.header;
        if winning.ancestor(header.height).is_some_and(|link| link.id() == self.block.id) {
            return None;
        }
        Some(Orphan {
            height: header.height.0,
            id: self.block.id.to_string(),
            slot: self.slot.0,
            at_us: self.at.micros(),
            node: self.node.0,
            transactions: self.block.transactions.len() as u32,
        })
    }
}

/// The vote weight behind each node: that of the delegate which forges there.
struct Weights {
    keys: Vec<Option<PublicKey>>,
    weights: Vec<f64>,
    total: f64,
}

impl Weights {
    fn new(plan: &Plan, round: &RoundInfo) -> Self {
        let keys = plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public())).collect();
        let mut weights = Self { keys, weights: vec![0.0; plan.nodes.len()], total: 0.0 };
        weights.weigh(round);
        weights
    }

    fn weigh(&mut self, round: &RoundInfo) {
        let by_key: BTreeMap<PublicKey, f64> =
            round.members.iter().map(|member| (member.public_key, member.vote_balance.0 as f64)).collect();
        for (weight, key) in self.weights.iter_mut().zip(&self.keys) {
            *weight = key.and_then(|key| by_key.get(&key)).copied().unwrap_or(0.0);
        }
        self.total = self.weights.iter().sum();
    }

    fn share_on(&self, tips: &Tips) -> f64 {
        if tips.agree() || self.total <= 0.0 {
            return if tips.agree() { 1.0 } else { f64::from(tips.agreeing()) / tips.nodes() as f64 };
        }
        let winning = tips.winning().id();
        let on = self.weights.iter().enumerate().filter(|(node, _)| tips.of(*node).id() == winning);
        on.map(|(_, weight)| weight).sum::<f64>() / self.total
    }
}

impl SlotFigures {
    fn add(&mut self, sample: &Sample) {
        let first = self.slots == 0;
        self.slots += 1;
        self.slots_forked += u32::from(sample.branches > 1);
        self.branches_max = self.branches_max.max(sample.branches);
        self.fork_depth_max = self.fork_depth_max.max(sample.depth);
        self.agreement_sum += sample.agreement;
        self.weight_sum += sample.weight_agreement;
        self.pool_sum += sample.pool_mean;
        self.pool_max = self.pool_max.max(sample.pool_max);
        let least = |so_far: f64, now: f64| if first { now } else { so_far.min(now) };
        self.agreement_min = least(self.agreement_min, sample.agreement);
        self.weight_agreement_min = least(self.weight_agreement_min, sample.weight_agreement);
    }

    /// Mean share of nodes on the winning tip at a slot's end.
    pub fn agreement_mean(&self) -> f64 {
        self.mean(self.agreement_sum)
    }

    /// Mean share of vote weight on the winning tip at a slot's end.
    pub fn weight_agreement_mean(&self) -> f64 {
        self.mean(self.weight_sum)
    }

    /// Mean number of transactions in a pool at a slot's end.
    pub fn pool_mean(&self) -> f64 {
        self.mean(self.pool_sum)
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / f64::from(self.slots.max(1))
    }
}

impl Metrics {
    /// The figures of a run that is about to begin.
    pub fn new(plan: &Plan) -> Self {
        let (nodes, slots) = (plan.nodes.len(), plan.tree.slots());
        let book = RoundBook::new(plan);
        let slot = book.start;
        let weights = Weights::new(plan, plan.tree.applied(&plan.tip).state.round());
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
        if let NetworkEvent::FaultEnded { index, kind } = event {
            let mut account = self.lock();
            let agree = account.tips.agree();
            account.heals.ended(now, *index, kind, agree);
        }
    }
}

impl Account {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.sample_until(now);
        self.book.follow(event);
        if self.tips.follow(node, event) && self.tips.agree() {
            self.heals.agreed(now);
        }
        match event {
            Event::BlockForged(block) => {
                self.propagation.forged(now, block);
                let slot = self.slots.slot(block.header.timestamp);
                let forged = Forged { block: block.clone(), slot, at: now, node };
                self.orphans.forged(forged, self.tips.winning());
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

    fn sample(&self) -> Sample {
        let branches = self.tips.branches();
        let (height_least, height_greatest) = self.tips.heights();
        Sample {
            slot: self.slot,
            agreement: f64::from(self.tips.agreeing()) / self.tips.nodes() as f64,
            weight_agreement: self.weights.share_on(&self.tips),
            branches: branches.branches,
            depth: branches.depth,
            pool_mean: self.traffic.pool_mean(),
            pool_max: self.traffic.pool_max(),
            height_least,
            height_greatest,
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
            let applied = self.tree.applied(tip);
            self.weights.weigh(applied.state.round());
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
        let orphans = self.orphans.list(&tip);
        let total = self.totals(&chain, &tip, end);
        Figures {
            rounds: std::mem::take(&mut self.rounds),
            time: self.time.finish(),
            total,
            heals: self.heals.all().to_vec(),
            orphans,
            propagation_curve: self.propagation.curve(),
            chain,
            tip,
        }
    }

    fn totals(&self, chain: &[RoundReport], tip: &Arc<Link>, end: SimTime) -> Totals {
        let blocks = tip.height().0 + 1 - self.book.first_height.0;
        let seconds = end.since(SimTime::from_seconds(self.slots.start(self.book.start))).as_secs_f64();
        let gaps = chain.iter().flat_map(|round| &round.gaps);
        let slots = &self.total;
        Totals {
            height: tip.height().0,
            rounds: chain.len() as u32,
            blocks,
            missed_slots: chain.iter().map(|round| round.missed_slots).sum(),
            longest_gap_slots: gaps.map(|gap| gap.missed_slots).max().unwrap_or(0),
            forged: self.orphans.forged,
            orphaned: self.orphans.forged.saturating_sub(blocks),
            forks: self.orphans.forks,
            slots: slots.slots,
            slots_forked: slots.slots_forked,
            branches_max: slots.branches_max,
            fork_depth_max: slots.fork_depth_max,
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
            agreement_end: f64::from(self.tips.agreeing()) / self.tips.nodes() as f64,
            converged_seconds_max: self.heals.longest(),
            seconds,
        }
    }
}
