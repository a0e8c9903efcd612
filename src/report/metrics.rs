//! Figures of a run, by round and by time. One observer computes them during the run.
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
//! It keeps only what it reports: a row a round, at most `time::BUCKETS` rows over time, and histograms of a fixed
//! size. A longer run needs no more. Source of the figures: consensus.md 7.

mod figures;
pub(crate) mod heals;
mod orphans;
pub(crate) mod propagation;
pub(crate) mod rollbacks;
mod sample;
pub(crate) mod time;
pub(crate) mod traffic;

pub use figures::{Figures, RoundFigures, SlotFigures, Totals};
pub use sample::Sample;

use super::rounds::{RoundBook, RoundReport};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link, rules::FinalityRule},
    protocol::{Slot, TransactionId, slots::Slots},
    sim::{NetworkEvent, Observer, Plan, Tips, Weights},
};
use heals::Heals;
use orphans::Orphans;
use propagation::Propagation;
use rollbacks::Rollbacks;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};
use time::TimeRows;
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
    /// The current slot, whose end is sampled next.
    slot: Slot,
    round: RoundFigures,
    rounds: Vec<RoundFigures>,
    total: SlotFigures,
    time: TimeRows,
    orphans: Orphans,
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

    /// Computes the figures of a run that has ended at this instant, with a slot about to begin. Nothing may be observed
    /// after that.
    pub fn finish(&self, end: SimTime) -> Figures {
        self.lock().finish(end)
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Observer for Metrics {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.lock().observe(now, node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.lock().observe_network(now, event);
    }

    fn run_ended(&mut self, pending: &BTreeSet<TransactionId>) {
        self.lock().traffic.ended(pending);
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
                self.propagation.forged(now, node, block, &self.tips);
                self.orphans.forged(now, node, block, self.slots.slot(block.header.timestamp));
            }
            Event::BlockReceived(block) => self.propagation.pushed(now, node, block),
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

    /// Closes the round if the winning chain has entered a later one when a slot begins. A later round is never left for an earlier one,
    /// even if that chain is rolled back.
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
        let has_finality = self.tree.rules().ledger.finality != FinalityRule::None;
        let last_final = has_finality.then(|| self.tree.applied(&tip).state.finality().height());
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
            last_final,
            nodes: self.tips.nodes(),
        }
    }

    fn totals(&self, chain: &[RoundReport], tip: &Arc<Link>, orphaned: u32, end: SimTime) -> Totals {
        let blocks = (tip.height().0 + 1).saturating_sub(self.book.first_height.0);
        let seconds = end.seconds_since(SimTime::from_seconds(self.slots.start(self.book.start)));
        let slots = &self.total;
        let last = chain.last().map(|round| round.active_set).unwrap_or_default();
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
            rollback_depth_max: self.rollbacks.depth_max(),
            rollback_depth_mean: self.rollbacks.depth_mean(),
            rollbacks_by_cause: self.rollbacks.by_cause.clone(),
            rollbacks_by_depth: self.rollbacks.by_depth.clone(),
            blocks_refused: self.rollbacks.refused,
            blocks_disregarded: self.rollbacks.disregarded,
            forging_suspended: self.rollbacks.suspended,
            propagation_ms: self.propagation.each(),
            propagation_half_ms: self.propagation.half(),
            propagation_all_ms: self.propagation.all(),
            gossip_ms: self.propagation.gossip(),
            gossip_all_ms: self.propagation.gossip_all(),
            turnover: chain.iter().filter_map(|round| round.active_set.turnover).sum(),
            gini_end: last.gini,
            nakamoto_end: last.nakamoto,
            captured_end: last.captured,
            transactions: self.traffic.total,
            transactions_per_second: if seconds > 0.0 { self.traffic.total as f64 / seconds } else { 0.0 },
            transaction_latency_ms: self.traffic.latency(),
            transactions_rejected: self.traffic.rejected,
            transactions_expired: self.traffic.expirations,
            transactions_lost: self.traffic.lost(tip),
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
