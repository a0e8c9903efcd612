//! Faults of blocks, forgers and forks.
use super::{
    story::{Next, Seen, Story},
    words::*,
};
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    ledger::BlockRejected,
    protocol::{BlockId, Height, TransactionId},
};
use std::collections::BTreeSet;

/// A node that rolled back because of a double forger takes the next block of the same forger as proved, even if it refused one of his
/// for its slot.
///
/// 1. The node rolls back because of two blocks of one slot.
/// 2. It refuses a block out of turn.
/// 3. It rolls back again, to below where it stood then.
#[derive(Default)]
pub struct DoubleForgerForgiven {
    to: Height,
}

impl Story for DoubleForgerForgiven {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let cause = rolled(seen).map(|(_, _, cause)| cause);
        match at {
            0 => {
                self.to = rolled(seen).map_or(self.to, |(_, to, _)| to.height());
                Next::on(cause == Some(RollbackCause::DoubleForging))
            }
            2 => Next::on(rolled(seen).is_some_and(|(_, to, _)| to.height() < self.to)),
            1 => Next::on(matches!(refused(seen), Some(BlockRejected::WrongForger { .. }))),
            _ => Next::Stay,
        }
    }
}

/// A delegate that forged a block which its relay undid remembers its transactions as forged: if it forges them a second time and loses
/// that block too, it leaves them out from then on, and its payload is that of the block before.
///
/// 1. The node undoes a block of its own that holds transactions.
/// 2. It forges one of these again.
/// 3. It undoes that block as well.
/// 4. A peer of it is dropped and it suspends forging.
/// 5. It forges one of the transactions again.
#[derive(Default)]
pub struct OwnBlockOutlived {
    own: BTreeSet<BlockId>,
    undone: BTreeSet<TransactionId>,
    second: BTreeSet<BlockId>,
    dropped: bool,
}

impl Story for OwnBlockOutlived {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(block) = forged(seen) {
            self.own.insert(block.id);
        }
        match at {
            0 => {
                let Some(link) = reverted(seen).filter(|link| self.own.contains(&link.id())) else { return Next::Stay };
                self.undone.extend(link.block().transactions.iter().map(|one| one.id()));
                Next::on(!self.undone.is_empty())
            }
            1 => {
                let Some(block) = forged(seen) else { return Next::Stay };
                if block.transactions.iter().any(|one| self.undone.contains(&one.id())) {
                    self.second.insert(block.id);
                }
                Next::on(!self.second.is_empty())
            }
            2 => Next::on(reverted(seen).is_some_and(|link| self.second.contains(&link.id()))),
            3 => {
                self.dropped |= matches!(seen, Seen::Did(Event::PeerRemoved(_)));
                Next::on(self.dropped && suspended(seen))
            }
            4 => Next::on(
                forged(seen).is_some_and(|block| block.transactions.iter().any(|one| self.undone.contains(&one.id()))),
            ),
            _ => Next::Stay,
        }
    }
}

/// A block that came too early is kept as refused: if it is applied later all the same and undone, the node refuses what chains to it.
///
/// 1. The node refuses a block as of the future, or disregards it.
/// 2. It applies that block.
/// 3. It undoes it.
/// 4. It applies it again and undoes it again.
/// 5. It does so a third time.
/// 6. It refuses a block out of turn.
#[derive(Default)]
pub struct TooEarlyThenUndone {
    early: BTreeSet<BlockId>,
}

impl Story for TooEarlyThenUndone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let early = match seen {
            Seen::Did(Event::BlockDisregarded(block)) => Some(block.id),
            _ => match refused(seen) {
                Some(BlockRejected::FromFuture { id, .. }) => Some(*id),
                _ => None,
            },
        };
        if at <= 1 {
            self.early.extend(early);
        }
        match at {
            0 => Next::on(early.is_some()),
            1 => match applied(seen).filter(|link| self.early.contains(&link.id())) {
                Some(link) => {
                    self.early = BTreeSet::from([link.id()]);
                    Next::On
                }
                None => Next::Stay,
            },
            2 => Next::on(reverted(seen).is_some_and(|link| self.early.contains(&link.id()))),
            3 | 4 => Next::on(reverted(seen).is_some_and(|link| self.early.contains(&link.id()))),
            5 => Next::on(matches!(refused(seen), Some(BlockRejected::WrongForger { .. }))),
            _ => Next::Stay,
        }
    }
}
