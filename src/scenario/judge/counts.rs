//! The counts of each node for assertions.

use super::members::gap;
use crate::{actors::Event, scenario::assertion::Metric};

/// The counts of a node.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Transactions pending in its pool.
    pub(super) pool: i64,
    forged: i64,
    refused: i64,
    reverted: i64,
    rollbacks: i64,
    rollback_depth: i64,
    suspended: i64,
    health_checks: i64,
    rejected: i64,
    expired: i64,
    evicted: i64,
    peers_removed: i64,
    longest_gap: i64,
}

impl Counts {
    /// Returns the count for this metric, or `None` if a node has no such metric.
    pub(super) fn of(&self, metric: Metric) -> Option<i64> {
        Some(match metric {
            Metric::Pool => self.pool,
            Metric::BlocksForged => self.forged,
            Metric::BlocksRefused => self.refused,
            Metric::BlocksReverted => self.reverted,
            Metric::Rollbacks => self.rollbacks,
            Metric::RollbackDepth => self.rollback_depth,
            Metric::Suspended => self.suspended,
            Metric::HealthChecks => self.health_checks,
            Metric::Rejected => self.rejected,
            Metric::Expired => self.expired,
            Metric::Evicted => self.evicted,
            Metric::PeersRemoved => self.peers_removed,
            Metric::LongestGap => self.longest_gap,
            _ => return None,
        })
    }

    /// Counts an event of the node.
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::BlockForged(_) => self.forged += 1,
            Event::BlockRefused(_) => self.refused += 1,
            Event::BlockApplied(link) => {
                self.longest_gap = self.longest_gap.max(gap(link).into());
            }
            Event::BlockReverted(_) => self.reverted += 1,
            Event::RolledBack { from, to, .. } => {
                self.rollbacks += 1;
                self.rollback_depth = self.rollback_depth.max(from.height().0.saturating_sub(to.height().0).into());
            }
            Event::ForgingSuspended { .. } => self.suspended += 1,
            Event::HealthChecked { .. } => self.health_checks += 1,
            Event::PoolAdded(added) => self.pool += added.len() as i64,
            Event::PoolRejected(rejected) => self.rejected += rejected.len() as i64,
            Event::PoolRemoved(_) | Event::PoolPurged(_) => self.pool -= 1,
            Event::PoolExpired(_) => {
                self.expired += 1;
                self.pool -= 1;
            }
            Event::PoolEvicted(_) => {
                self.evicted += 1;
                self.pool -= 1;
            }
            Event::PoolReplaced(held) => self.pool = held.len() as i64,
            Event::PeerRemoved(_) => self.peers_removed += 1,
            Event::BlockReceived(_)
            | Event::BlockDisregarded(_)
            | Event::PeerAdded(_)
            | Event::ForgerStarted { .. }
            | Event::ForgerFailed { .. } => {}
        }
    }
}
