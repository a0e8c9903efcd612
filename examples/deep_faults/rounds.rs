//! Faults around the ends of rounds.
use super::{
    story::{Next, Seen, Story},
    words::*,
};
use dposlab::{
    actors::{NodeId, SimTime},
    ledger::ApplyError,
    protocol::{BlockError, BlockId, Height, PublicKey},
    sim::DownCause,
};
use std::collections::BTreeSet;

/// The relay stores the order of a round that a rollback restored only when the round after ends: after a crash before that it reads
/// the order of a later round, and notices when its pool has to sort a full pool anew.
///
/// 1. The node rolls back over the end of a round.
/// 2. It crashes before two rounds end on its chain again.
/// 3. It comes back.
/// 4. Its pool gives up a transaction for a dearer one.
#[derive(Default)]
pub struct StaleOrder {
    over: bool,
    ends: u32,
}

impl Story for StaleOrder {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        if let Some(link) = reverted(seen) {
            self.over |= ends_round(link);
        }
        match at {
            0 if rolled(seen).is_some() => {
                self.ends = 0;
                Next::on(std::mem::take(&mut self.over))
            }
            1 if rolled(seen).is_some() => {
                self.ends = if std::mem::take(&mut self.over) { 0 } else { self.ends };
                Next::Stay
            }
            1 if applied(seen).is_some_and(|link| ends_round(link)) => {
                self.ends += 1;
                if self.ends == 2 { Next::Back(0) } else { Next::Stay }
            }
            1 => Next::on(matches!(seen, Seen::Down(DownCause::Crash))),
            2 => Next::on(matches!(seen, Seen::Up)),
            3 => Next::on(evicted(seen).is_some()),
            _ => Next::Stay,
        }
    }
}

/// The election adds up the votes of a round twice if the same round's end was undone twice and its end came a third time with other
/// members: an unvote that does not match the vote then takes away what was added twice.
///
/// 1. The node undoes the end of a round.
/// 2. A block ends the same round again.
/// 3. That end is undone as well.
/// 4. The round that is created when it ends next has another set of members than the one created first.
/// 5. Its pool refuses an unvote of another delegate than the wallet's.
#[derive(Default)]
pub struct RoundUnwoundTwice {
    height: Height,
    members: Vec<PublicKey>,
}

fn members(link: &dposlab::ledger::Link) -> Vec<PublicKey> {
    let mut all: Vec<_> =
        link.round_end().into_iter().flat_map(|end| &end.created.members).map(|one| one.public_key).collect();
    all.sort();
    all
}

impl Story for RoundUnwoundTwice {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let (applied, reverted) = (applied(seen).filter(|x| ends_round(x)), reverted(seen).filter(|x| ends_round(x)));
        match at {
            0 => {
                let Some(link) = reverted else { return Next::Stay };
                (self.height, self.members) = (link.height(), members(link));
                Next::On
            }
            1 => Next::on(applied.is_some_and(|link| link.height() == self.height)),
            2 => Next::on(reverted.is_some_and(|link| link.height() == self.height)),
            3 => match applied.filter(|link| link.height() == self.height) {
                Some(link) if members(link) != self.members => Next::On,
                Some(_) => Next::Back(2),
                None => Next::Stay,
            },
            4 => Next::on(rejected(seen).iter().any(|(_, error)| matches!(error, ApplyError::UnvoteMismatch))),
            _ => Next::Stay,
        }
    }
}

/// The cursor into the milestones goes on at each change of seats and back by one at each rollback over several of them: after a change
/// that was made, undone, made and undone again it is off by one, and who may resign is counted by the wrong number of seats.
///
/// 1. A round of another size than the one before is created.
/// 2. The node undoes that block.
/// 3. A round of another size is created again.
/// 4. The node undoes that as well.
/// 5. Its pool refuses a resignation of one that is no delegate, or no longer.
#[derive(Default)]
pub struct SeatsOfAnUndoneMilestone {
    seats: usize,
    id: Option<BlockId>,
}

impl Story for SeatsOfAnUndoneMilestone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let mut changes = false;
        if let Some((link, end)) = applied(seen).and_then(|link| Some((link, link.round_end()?))) {
            changes = self.seats != 0 && self.seats != end.created.members.len();
            self.seats = end.created.members.len();
            if changes && matches!(at, 0 | 2) {
                self.id = Some(link.id());
            }
        }
        match at {
            0 | 2 => Next::on(changes),
            1 | 3 => Next::on(reverted(seen).is_some_and(|link| Some(link.id()) == self.id)),
            4 => {
                Next::on(rejected(seen).iter().any(|(_, error)| {
                    matches!(error, ApplyError::WalletNotADelegate | ApplyError::WalletAlreadyResigned)
                }))
            }
            _ => Next::Stay,
        }
    }
}

/// A relay counts the empty slots of a whole round only once for each height: if a block after an empty round was undone and the one
/// that takes its place comes after an empty round as well, its count of missed slots stays for its delegate's next permission.
///
/// 1. A block comes after a whole round of empty slots.
/// 2. It is undone.
/// 3. Another block at its height comes after a whole round of empty slots.
/// 4. The forger is refused permission before the next end of a round.
/// 5. The node refuses a block for its transactions: one has expired, comes from the future, is there twice or is not signed.
#[derive(Default)]
pub struct EmptyRoundUndone {
    block: Option<(BlockId, Height)>,
}

impl Story for EmptyRoundUndone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let empty = applied(seen).filter(|link| link.missing().len() >= 4);
        match at {
            0 => {
                let Some(link) = empty else { return Next::Stay };
                self.block = Some((link.id(), link.height()));
                Next::On
            }
            1 => match empty {
                Some(link) => {
                    self.block = Some((link.id(), link.height()));
                    Next::Stay
                }
                None => Next::on(reverted(seen).is_some_and(|link| self.block == Some((link.id(), link.height())))),
            },
            2 => {
                Next::on(empty.is_some_and(|link| {
                    self.block.is_some_and(|(id, height)| height == link.height() && id != link.id())
                }))
            }
            3 if applied(seen).is_some_and(|link| ends_round(link)) => Next::Back(2),
            3 => Next::on(suspended(seen)),
            4 => Next::on(matches!(
                refused(seen).and_then(first_error),
                Some(
                    BlockError::Expired(_)
                        | BlockError::Future(_)
                        | BlockError::Duplicate(_)
                        | BlockError::TransactionsNotVerified { .. }
                )
            )),
            _ => Next::Stay,
        }
    }
}

/// Two relays that undo the end of one round at about the same time send each other the rows of the next round, which they delete:
/// a third one, which comes back from a crash while they do, takes these for its own.
///
/// 1. A node undoes the end of a round.
/// 2. Another one undoes the end of the same round within a round's time.
/// 3. A third node comes back before that round ends anew.
/// 4. The third node undoes the end of that round, too.
/// 5. That leaves transactions in its pool.
#[derive(Default)]
pub struct TwoUnwindOneRound {
    first: Option<NodeId>,
    height: Height,
    since: SimTime,
    others: BTreeSet<NodeId>,
    third: Option<NodeId>,
}

impl Story for TwoUnwindOneRound {
    fn sees(&mut self, at: usize, now: SimTime, node: NodeId, seen: &Seen<'_>) -> Next {
        let undone = reverted(seen).filter(|link| ends_round(link));
        if matches!(at, 1 | 2)
            && applied(seen).is_some_and(|link| ends_round(link) && link.height() == self.height)
            && self.others.contains(&node)
        {
            return Next::Back(0);
        }
        match at {
            0 => {
                let Some(link) = undone else { return Next::Stay };
                (self.first, self.height, self.since) = (Some(node), link.height(), now);
                self.others = BTreeSet::from([node]);
                Next::On
            }
            1 if now.seconds_since(self.since) > 32.0 => Next::Back(0),
            1 => {
                let second = undone.is_some_and(|link| link.height() == self.height) && Some(node) != self.first;
                if second {
                    self.others.insert(node);
                }
                Next::on(second)
            }
            2 => {
                let third = matches!(seen, Seen::Up) && !self.others.contains(&node);
                self.third = Some(node);
                Next::on(third)
            }
            3 => Next::on(Some(node) == self.third && undone.is_some_and(|link| link.height() == self.height)),
            4 => Next::on(Some(node) == self.third && replaced(seen).is_some_and(|all| !all.is_empty())),
            _ => Next::Stay,
        }
    }
}
