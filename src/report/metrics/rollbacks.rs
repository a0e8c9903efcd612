//! Rollbacks, and blocks that nodes refused or disregarded.

use crate::actors::RollbackCause;
use std::collections::BTreeMap;

/// Sums over all nodes.
#[derive(Default)]
pub(crate) struct Rollbacks {
    pub(super) count: u32,
    pub(super) by_cause: BTreeMap<String, u32>,
    pub(super) by_depth: BTreeMap<u32, u32>,
    pub(super) refused: u32,
    pub(super) disregarded: u32,
    pub(super) suspended: u32,
    round_count: u32,
    round_depth_max: u32,
}

impl Rollbacks {
    pub(super) fn rolled_back(&mut self, depth: u32, cause: RollbackCause) {
        self.count += 1;
        self.round_count += 1;
        self.round_depth_max = self.round_depth_max.max(depth);
        *self.by_cause.entry(cause.to_string()).or_default() += 1;
        *self.by_depth.entry(depth).or_default() += 1;
    }

    pub(super) fn depth_max(&self) -> u32 {
        self.by_depth.last_key_value().map_or(0, |(depth, _)| *depth)
    }

    pub(super) fn depth_mean(&self) -> f64 {
        let sum: u64 = self.by_depth.iter().map(|(depth, count)| u64::from(*depth) * u64::from(*count)).sum();
        sum as f64 / f64::from(self.count.max(1))
    }

    /// Number and greatest depth since the last call.
    pub(super) fn close_round(&mut self) -> (u32, u32) {
        (std::mem::take(&mut self.round_count), std::mem::take(&mut self.round_depth_max))
    }
}
