//! Faults of peers, health checks and restarts.
use super::{
    story::{Next, Seen, Story},
    words::*,
};
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    sim::DownCause,
};

/// A node whose health check found no peers counts the first that comes back as all of them: after a rollback it believes that peer
/// alone.
///
/// 1. A health check finds no peers.
/// 2. A peer is added.
/// 3. The node forks and rolls back three blocks or more.
/// 4. Its pool evicts.
/// 5. It rolls back again.
#[derive(Default)]
pub struct LonelyNodeCatchesUp;

impl Story for LonelyNodeCatchesUp {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => Next::on(matches!(seen, Seen::Did(Event::HealthChecked { peers: 0, .. }))),
            1 => Next::on(matches!(seen, Seen::Did(Event::PeerAdded(_)))),
            2 => Next::on(rolled(seen).is_some_and(|(from, to, cause)| {
                cause == RollbackCause::Forked && from.height().0 >= to.height().0 + 3
            })),
            3 => Next::on(evicted(seen).is_some()),
            4 => Next::on(rolled(seen).is_some()),
            _ => Next::Stay,
        }
    }
}

/// A node that stood still keeps the answers of peers from before: if it drops a peer right after it wakes, its next health check
/// counts that peer's chain, and it rolls back and puts transactions into its pool that are on its chain.
///
/// 1. The node stands still.
/// 2. It wakes, and drops a peer within a round.
/// 3. It rolls back.
/// 4. Transactions of undone blocks are in its pool.
/// 5. The pool evicts one.
#[derive(Default)]
pub struct PausedAmongForks {
    woke: Option<SimTime>,
}

impl Story for PausedAmongForks {
    fn sees(&mut self, at: usize, now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if matches!(seen, Seen::Up) {
            self.woke = Some(now);
        }
        match at {
            0 => Next::on(matches!(seen, Seen::Down(DownCause::Pause))),
            1 => Next::on(
                matches!(seen, Seen::Did(Event::PeerRemoved(_)))
                    && self.woke.is_some_and(|woke| now.seconds_since(woke) <= 32.0),
            ),
            2 => Next::on(rolled(seen).is_some()),
            3 => Next::on(replaced(seen).is_some_and(|all| !all.is_empty())),
            4 => Next::on(evicted(seen).is_some()),
            _ => Next::Stay,
        }
    }
}
