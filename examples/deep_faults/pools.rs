//! Faults of pools.
use super::{
    story::{Next, Seen, Story},
    words::*,
};
use dposlab::{
    actors::{NodeId, SimTime},
    protocol::{Address, Block, BlockId, Height, TransactionId},
};
use std::collections::BTreeSet;

/// The pool keeps the place of an evicted transaction in its order of fees: if a replay brings the same transaction back, it is there
/// twice, and it is taken away once only.
///
/// 1. The pool evicts a transaction.
/// 2. It is applied in a block.
/// 3. That block is undone.
/// 4. The node forges the transaction.
/// 5. The pool evicts a transaction again.
#[derive(Default)]
pub struct EvictedComesBack {
    gone: BTreeSet<TransactionId>,
}

impl EvictedComesBack {
    fn is_in(&self, block: &Block) -> bool {
        block.transactions.iter().any(|one| self.gone.contains(&one.id()))
    }
}

impl Story for EvictedComesBack {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(one) = evicted(seen).filter(|_| at <= 1) {
            self.gone.insert(one.id());
        }
        match at {
            0 => Next::on(evicted(seen).is_some()),
            1 => Next::on(applied(seen).is_some_and(|link| self.is_in(link.block()))),
            2 => Next::on(reverted(seen).is_some_and(|link| self.is_in(link.block()))),
            3 => Next::on(forged(seen).is_some_and(|block| self.is_in(block))),
            4 => Next::on(evicted(seen).is_some()),
            _ => Next::Stay,
        }
    }
}

/// The pool remembers up to which height it has let transactions expire and does not go back with the chain: what expires or
/// gives way from then on stays in its sender's wallet.
///
/// 1. A transaction expires in the pool.
/// 2. The node rolls back to three blocks below that or farther.
/// 3. A transaction expires or gives way in the pool.
#[derive(Default)]
pub struct ExpiryBeforeRollback {
    tip: Height,
    height: Height,
}

impl Story for ExpiryBeforeRollback {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(link) = applied(seen) {
            self.tip = link.height();
        }
        if let Some((_, to, _)) = rolled(seen) {
            self.tip = to.height();
        }
        match at {
            0 => {
                self.height = self.tip;
                Next::on(expired(seen).is_some())
            }
            1 => Next::on(rolled(seen).is_some_and(|(_, to, _)| to.height().0 + 3 <= self.height.0)),
            2 => Next::on(expired(seen).or(evicted(seen)).is_some()),
            _ => Next::Stay,
        }
    }
}

/// The pool keeps the nonce of a sender whose transactions were lost in a restart, if the last rollback before had put some of his
/// there; the next one of that sender which the pool takes gets the nonce after.
///
/// 1. A rollback puts transactions into the pool.
/// 2. The node comes back from a crash without its pool.
/// 3. The pool takes another transaction of the same sender.
/// 4. One gives way or expires.
#[derive(Default)]
pub struct LostPoolNonce {
    senders: BTreeSet<Address>,
}

impl Story for LostPoolNonce {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(all) = replaced(seen).filter(|_| at <= 1) {
            self.senders = all.iter().map(|one| one.sender_address()).collect();
        }
        match at {
            0 => Next::on(!self.senders.is_empty()),
            1 if self.senders.is_empty() => Next::Back(0),
            1 => Next::on(matches!(seen, Seen::PoolLost)),
            2 => Next::on(added(seen).iter().any(|one| self.senders.contains(&one.sender_address()))),
            3 => Next::on(evicted(seen).or(expired(seen)).is_some()),
            _ => Next::Stay,
        }
    }
}

/// A pool that is filled by a replay counts as full by the number before: the first newcomer it refuses for its fee and the first it
/// takes in exchange afterwards leave one place that is counted but empty.
///
/// 1. A rollback leaves at least three transactions in the pool.
/// 2. The pool refuses one because it is full.
/// 3. It evicts one that the rollback put there.
/// 4. The evicted one is applied all the same.
/// 5. The node rolls back again.
#[derive(Default)]
pub struct FullAfterReplay {
    there: BTreeSet<TransactionId>,
    gone: Option<TransactionId>,
    undone: BTreeSet<BlockId>,
}

impl Story for FullAfterReplay {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(link) = reverted(seen) {
            self.undone.insert(link.id());
        }
        match at {
            0 => {
                let Some(all) = replaced(seen).filter(|all| all.len() >= 3 && !self.undone.is_empty()) else {
                    return Next::Stay;
                };
                self.there = all.iter().map(|one| one.id()).collect();
                Next::On
            }
            1 => Next::on(rejected_as_full(seen)),
            2 => {
                self.gone = evicted(seen).map(|one| one.id()).filter(|id| self.there.contains(id));
                Next::on(self.gone.is_some())
            }
            3 => Next::on(applied(seen).is_some_and(|link| self.gone.is_some_and(|id| holds(link, &id)))),
            4 => Next::on(rolled(seen).is_some()),
            _ => Next::Stay,
        }
    }
}
