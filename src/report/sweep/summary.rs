//! The summary of a sweep, as `summary.json` and the report hold it.

use super::{Manifest, pairs::PairedComparison, stopping_rule::UntilReport};
use crate::report::{
    statistics::{Bounds, DistributionReport, ShareReport},
    survival::{Estimate, SurvivalReport},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    #[serde(flatten)]
    pub manifest: Manifest,
    /// The rules of the nodes, in words.
    pub rules: String,
    pub runs: u64,
    pub failed: u64,
    /// Runs that were ended before their last round: neither successes nor failures.
    pub censored: u64,
    /// Runs whose program or process ended before they did. They count as failed, and show nothing about their network.
    pub died: u64,
    /// The number of runs by status.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The first failed runs.
    pub failures: Vec<FailedRun>,
    pub cells: Vec<CellSummary>,
    /// The comparisons of all other combinations of values with the first one. Empty if no comparison was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<PairedComparison>,
    /// The mean that decided when the sweep ended. Empty if this was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ci: Option<UntilReport>,
}

/// A run that failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FailedRun {
    pub run: u64,
    pub seed: u64,
    pub status: &'static str,
    /// The end of the run, or the cause of its death. Empty if that was a panic.
    pub ended: Option<String>,
    /// The assertions that did not hold.
    pub broken: Vec<String>,
    /// The command that repeats it.
    pub reproduce: String,
}

/// The runs of one combination of values.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CellSummary {
    /// The varied values by path. Empty if nothing was varied.
    pub varied: BTreeMap<String, String>,
    /// Notes on behaviour of these runs that a reader of the scenario would not expect.
    pub notes: Vec<String>,
    pub runs: u64,
    /// The number of runs that were ended before their last round.
    pub censored: u64,
    /// The number of runs that ended before their last round, whatever their status, without those that died.
    pub cut_short: u64,
    /// The number of runs whose program or process ended before they did.
    pub died: u64,
    /// The length of a slot, in seconds.
    #[serde(skip)]
    pub slot_s: u32,
    /// The share of runs that ended well, among the runs that were neither censored nor died. Empty if there are none.
    pub ok: Option<ShareReport>,
    /// The shares of runs in which each assertion held.
    pub assertions: Vec<AssertionSummary>,
    /// The longest time from the end of a fault until all live nodes stood on one block, in seconds. A run that ended before
    /// that is right-censored. Empty if no fault ended.
    pub converged_seconds: Option<SurvivalReport>,
    /// The steps of the estimate from which these quantiles come. Empty if no run converged.
    pub converged_curve: Vec<Estimate>,
    /// The distribution of each figure over the runs that have it, censored ones up to their end. Times to converge are in
    /// `converged_seconds`.
    pub figures: BTreeMap<&'static str, DistributionReport>,
}

/// The number of runs in which an assertion held.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AssertionSummary {
    pub assertion: String,
    /// The share among the runs in which the assertion was decided. Empty if there are none. It shows nothing about the undecided runs,
    /// because long runs are the ones that are ended before a decision.
    pub holds: Option<ShareReport>,
    /// The lowest and the highest possible share among all runs that did not die. Empty if there are none.
    pub bounds: Option<Bounds>,
    /// The number of runs that were ended before the assertion was decided.
    pub undecided: u64,
}
