//! The summary of a sweep, as `summary.json` and the report hold it.

use super::{Manifest, paired::Compared, until::UntilReport};
use crate::report::{
    statistics::{Bounds, DistributionReport, ShareReport},
    survival::{Estimate, SurvivalReport},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub manifest: Manifest,
    /// The rules of the nodes, in words.
    pub rules: String,
    pub runs: u64,
    pub failed: u64,
    /// Runs that were ended before their end: neither successes nor failures.
    pub censored: u64,
    /// Runs whose program or process ended before they did: they count as failed, and say nothing of their network.
    pub died: u64,
    /// Runs by what came of them.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The first ones.
    pub failures: Vec<Failed>,
    pub cells: Vec<CellSummary>,
    /// Each combination of values but the first, compared with the first one; empty without a request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// The mean by which it ended; empty without a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ci: Option<UntilReport>,
}

/// A run that failed.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    pub run: u64,
    pub seed: u64,
    pub status: &'static str,
    /// The end of the run, or the error it died by; empty where that was a panic.
    pub ended: Option<String>,
    /// The assertions that did not hold.
    pub broken: Vec<String>,
    /// The command that repeats it.
    pub reproduce: String,
}

/// The runs of one combination of values.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// By path; empty where nothing was varied.
    pub varied: BTreeMap<String, String>,
    /// Notes on what a reader of the scenario would not expect of these runs.
    pub notes: Vec<String>,
    pub runs: u64,
    /// The number of them that were ended before their end.
    pub censored: u64,
    /// The number of them whose program or process ended before they did.
    pub died: u64,
    /// The length of a slot, in seconds.
    #[serde(skip)]
    pub slot_s: u32,
    /// Runs that ended well, of those that are neither censored nor died; empty where all are.
    pub ok: Option<ShareReport>,
    /// Runs in which each assertion held.
    pub assertions: Vec<AssertionSummary>,
    /// The longest time from the end of a fault until all live nodes stood on one block, in seconds; a run that ended before
    /// is right-censored. Empty where no fault ended.
    pub converged_seconds: Option<SurvivalReport>,
    /// The steps of the estimate that these quantiles are of; none where no run converged.
    pub converged_curve: Vec<Estimate>,
    /// The distribution of each figure over the runs that have it, censored ones up to their end. Times to converge are in
    /// `converged_seconds`.
    pub figures: BTreeMap<&'static str, DistributionReport>,
}

/// The number of runs in which an assertion held.
#[derive(Clone, Debug, Serialize)]
pub struct AssertionSummary {
    pub assertion: String,
    /// The share of the runs in which it was decided; empty if it was in none. Where others leave it undecided, this says nothing of
    /// them: runs that take long are ended before it is decided.
    pub holds: Option<ShareReport>,
    /// The lowest and the highest share that is possible of all runs that did not die; empty without any.
    pub bounds: Option<Bounds>,
    /// Runs that were ended before it was decided.
    pub undecided: u64,
}
