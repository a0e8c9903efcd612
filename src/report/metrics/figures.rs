//! The figures of a run's report: of the whole run, of its rounds, and of the ends of its slots.

use super::{
    heals::{Heal, InForce},
    orphans::Orphan,
    propagation::Percentiles,
    sample::{Sample, lesser},
    time::Bucket,
};
use crate::{ledger::Link, protocol::Height, report::rounds::RoundReport};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// Figures of one round that do not follow from the chain itself. A round begins with the first slot at the beginning of which the height
/// after the winning tip belongs to the round. It counts all events up to the next round.
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
    /// The largest number of nodes down, crashed or paused, at a slot's end.
    pub down_max: u32,
    #[serde(skip)]
    agreement: Mean,
    /// Least share of live nodes on the winning tip at a slot's end.
    pub agreement_min: Option<f64>,
    #[serde(skip)]
    weight_agreement: Mean,
    /// Least share of live vote weight on the winning tip at a slot's end. A node has the vote weight of the delegates that forge on it.
    pub weight_agreement_min: Option<f64>,
    #[serde(skip)]
    pool: Mean,
    /// Transactions in the fullest pool of a live node.
    pub pool_max: Option<u32>,
}

/// A mean of the defined values.
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

impl SlotFigures {
    pub(super) fn add(&mut self, sample: &Sample) {
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
    /// The last final block of the chain; `None` where no rule makes blocks final.
    pub last_final: Option<Height>,
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
    /// The longest row of slots without a block on the winning chain. The slots after its last block count, too.
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
    pub rollbacks_by_depth: BTreeMap<u32, u32>,
    pub blocks_refused: u32,
    pub blocks_disregarded: u32,
    pub forging_suspended: u32,
    /// From forging to a node's chain, pushed or downloaded.
    pub propagation_ms: Percentiles,
    /// From forging until half of the nodes that were live then have the block.
    pub propagation_half_ms: Percentiles,
    /// From forging until all nodes that were live then have the block; blocks that do not get there are left out.
    pub propagation_all_ms: Percentiles,
    /// From forging to a node's chain, of blocks that were pushed there: no node that catches up by a download is among these.
    pub gossip_ms: Percentiles,
    /// From forging until all nodes that were live then have the block, of blocks that were pushed to each of them.
    pub gossip_all_ms: Percentiles,
    /// Members of a round that were not members of the round before, summed over all rounds but the first.
    pub turnover: u32,
    /// The Gini coefficient of the vote weights of the last round's members.
    pub gini_end: f64,
    /// The least number of the last round's members that have more than half of their vote weight.
    pub nakamoto_end: u32,
    /// The most of the last round's members that are delegates of one group of agents.
    pub captured_end: u32,
    pub transactions: u64,
    pub transactions_per_second: f64,
    pub transaction_latency_ms: Percentiles,
    pub transactions_rejected: u64,
    pub transactions_expired: u64,
    /// Transactions that a pool accepted and that are at the end neither on the winning chain nor in a pool nor expired, among the
    /// last 100,000.
    pub transactions_lost: u64,
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
    /// The longest time from a fault's end until all live nodes stood on one block. Empty if no fault ended, or if the run ended
    /// before they did so after one of the faults.
    pub converged_seconds_max: Option<f64>,
    /// The longest time from a fault's end until the nodes converged or the run ended. Without `converged_seconds_max` the time to
    /// converge is longer than this (right-censored). Empty if no fault ended.
    pub observed_seconds_max: Option<f64>,
    /// Virtual seconds played.
    pub seconds: f64,
}

impl Totals {
    /// The number of rollbacks of this depth or more.
    pub fn rollbacks_from(&self, depth: u32) -> f64 {
        self.rollbacks_by_depth.range(depth..).map(|(_, count)| f64::from(*count)).sum()
    }
}
