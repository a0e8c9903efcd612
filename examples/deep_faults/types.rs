//! Faults of types of transactions.
use super::{
    story::{Next, Seen, Story},
    words::*,
};
use dposlab::{
    actors::{NodeId, SimTime},
    ledger::ApplyError,
    protocol::{Address, Asset, Kind, PublicKey, TransactionId},
};
use std::collections::{BTreeMap, BTreeSet};

/// The ledger gives the place of an undone claim's lock in its index of open locks to the next lock that is taken back, and finds the
/// wrong one when the claim comes again.
///
/// 1. A claim of a lock is undone.
/// 2. A refund of another lock is applied before the claim is there again.
/// 3. The claim is applied again.
/// 4. A claim or refund is undone.
#[derive(Default)]
pub struct ClaimUndoneRefunded {
    claims: BTreeSet<TransactionId>,
}

impl Story for ClaimUndoneRefunded {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        let again = applied(seen).is_some_and(|link| self.claims.iter().any(|id| holds(link, id)));
        match at {
            0 => {
                let Some(link) = reverted(seen) else { return Next::Stay };
                let claims = link.block().transactions.iter().filter(|one| one.kind() == Kind::HtlcClaim);
                self.claims.extend(claims.map(|one| one.id()));
                Next::on(!self.claims.is_empty())
            }
            1 if again => {
                self.claims.clear();
                Next::Back(0)
            }
            1 => Next::on(applied(seen).is_some_and(|link| of_kind(link, Kind::HtlcRefund).is_some())),
            2 => Next::on(again),
            3 => Next::on(
                reverted(seen).is_some_and(|link| link.block().transactions.iter().any(|one| lock_of(one).is_some())),
            ),
            _ => Next::Stay,
        }
    }
}

/// The index of delegates loses a voter who votes for a delegate whose resignation was undone, if the resignation comes back after the
/// vote.
///
/// 1. A resignation is applied.
/// 2. It is undone.
/// 3. A vote for that delegate is applied before the resignation is there again.
/// 4. The resignation is applied again.
/// 5. It is undone again.
/// 6. The pool refuses a vote because its delegate has resigned.
#[derive(Default)]
pub struct VoteForUndoneResignation {
    resigned: BTreeMap<PublicKey, TransactionId>,
}

impl Story for VoteForUndoneResignation {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => Next::on(applied(seen).is_some_and(|link| of_kind(link, Kind::DelegateResignation).is_some())),
            1 => {
                let Some(link) = reverted(seen) else { return Next::Stay };
                let all = link.block().transactions.iter().filter(|one| one.kind() == Kind::DelegateResignation);
                self.resigned.extend(all.map(|one| (*one.sender(), one.id())));
                Next::on(!self.resigned.is_empty())
            }
            2 => {
                let Some(link) = applied(seen) else { return Next::Stay };
                if self.resigned.values().any(|id| holds(link, id)) {
                    self.resigned.clear();
                    return Next::Back(0);
                }
                let votes: Vec<_> = link.block().transactions.iter().filter_map(|one| votes_for(one)).collect();
                if votes.iter().any(|to| self.resigned.contains_key(to)) {
                    self.resigned.retain(|delegate, _| votes.contains(delegate));
                    return Next::On;
                }
                Next::Stay
            }
            3 => Next::on(applied(seen).is_some_and(|link| self.resigned.values().any(|id| holds(link, id)))),
            4 => Next::on(reverted(seen).is_some_and(|link| self.resigned.values().any(|id| holds(link, id)))),
            5 => {
                Next::on(rejected(seen).iter().any(|(_, error)| matches!(error, ApplyError::VotedForResignedDelegate)))
            }
            _ => Next::Stay,
        }
    }
}

/// The pool's wallet keeps a second key that a rollback took from the sender: it refuses what the sender signs with one key, and when
/// the registration is on the chain again the sender has two second keys.
///
/// 1. A registration of a second key is undone.
/// 2. The pool refuses a transaction of the same sender.
/// 3. The registration is applied again.
/// 4. It is undone once more, and the pool then holds another one of the same sender as well.
#[derive(Default)]
pub struct SecondKeyUndone {
    again: bool,
    senders: BTreeMap<Address, TransactionId>,
}

impl Story for SecondKeyUndone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => {
                let Some(one) = reverted(seen).and_then(|link| of_kind(link, Kind::SecondSignature)) else {
                    return Next::Stay;
                };
                self.senders.insert(one.sender_address(), one.id());
                Next::On
            }
            1 => {
                let of = rejected(seen).iter().any(|(one, _)| self.senders.contains_key(&one.sender_address()));
                Next::on(of)
            }
            2 => Next::on(applied(seen).is_some_and(|link| self.senders.values().any(|id| holds(link, id)))),
            3 => {
                if let Some(link) = reverted(seen) {
                    self.again |= self.senders.values().any(|id| holds(link, id));
                }
                Next::on(
                    self.again
                        && replaced(seen).is_some_and(|all| {
                            all.iter()
                                .any(|one| self.senders.get(&one.sender_address()).is_some_and(|id| *id != one.id()))
                        }),
                )
            }
            _ => Next::Stay,
        }
    }
}

/// The signers of a shared wallet are written to the database once: where the registration was undone and came again, a node that comes
/// back from a crash reads none, and forges what any one of them has signed.
///
/// 1. A registration of a shared wallet is undone.
/// 2. It is applied again.
/// 3. The node goes down and comes back.
/// 4. It forges a transaction with several signatures.
#[derive(Default)]
pub struct SharedWalletUndone {
    undone: BTreeSet<TransactionId>,
    down: bool,
}

impl Story for SharedWalletUndone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => {
                let Some(link) = reverted(seen) else { return Next::Stay };
                self.undone.extend(of_kind(link, Kind::MultiSignature).map(|one| one.id()));
                Next::on(!self.undone.is_empty())
            }
            1 => Next::on(applied(seen).is_some_and(|link| self.undone.iter().any(|id| holds(link, id)))),
            2 => {
                self.down |= matches!(seen, Seen::Down(_));
                Next::on(self.down && matches!(seen, Seen::Up))
            }
            3 => {
                let shared = |one: &dposlab::protocol::SignedTransaction| !one.transaction().signatures.is_empty();
                Next::on(forged(seen).is_some_and(|block| block.transactions.iter().any(|one| shared(one))))
            }
            _ => Next::Stay,
        }
    }
}

/// A hash that one fork holds and the other one refuses a block for is registered for both wallets when the forks meet.
///
/// 1. A node undoes a registration of a hash.
/// 2. Another node refuses a block because the hash is there already.
/// 3. The first node applies the registration again.
/// 4. The other one rolls back.
#[derive(Default)]
pub struct HashHeldByTwoForks {
    undone: Option<(NodeId, TransactionId)>,
    other: Option<NodeId>,
}

impl Story for HashHeldByTwoForks {
    fn sees(&mut self, at: usize, _now: SimTime, node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => {
                let Some(one) = reverted(seen).and_then(|link| of_kind(link, Kind::Ipfs)) else { return Next::Stay };
                self.undone = Some((node, one.id()));
                Next::On
            }
            1 => {
                let error = refused(seen).and_then(not_applicable);
                let other = self.undone.is_some_and(|(first, _)| first != node);
                self.other = Some(node);
                Next::on(other && matches!(error, Some(ApplyError::IpfsHashAlreadyExists)))
            }
            2 => Next::on(
                applied(seen)
                    .is_some_and(|link| self.undone.is_some_and(|(first, id)| first == node && holds(link, &id))),
            ),
            3 => Next::on(Some(node) == self.other && rolled(seen).is_some()),
            _ => Next::Stay,
        }
    }
}

/// A business whose registration is undone keeps its chains: the pool takes an update of one of them, and the ledger applies it to the
/// business that is registered next.
///
/// 1. A registration of a chain is undone.
/// 2. So is the registration of its business.
/// 3. The pool refuses a transaction of the sender because there is no such business.
/// 4. The registration of a chain by the same sender is applied.
/// 5. It is undone.
#[derive(Default)]
pub struct BusinessUndone {
    senders: BTreeSet<Address>,
}

impl Story for BusinessUndone {
    fn sees(&mut self, at: usize, _now: SimTime, _node: NodeId, seen: &Seen<'_>) -> Next {
        match at {
            0 => {
                let Some(link) = reverted(seen) else { return Next::Stay };
                self.senders.extend(of_kind(link, Kind::BridgechainRegistration).map(|one| one.sender_address()));
                Next::on(!self.senders.is_empty())
            }
            1 => Next::on(
                reverted(seen)
                    .and_then(|link| of_kind(link, Kind::BusinessRegistration))
                    .is_some_and(|one| self.senders.contains(&one.sender_address())),
            ),
            2 => {
                let all = rejected(seen);
                Next::on(all.iter().any(|(one, error)| {
                    matches!(error, ApplyError::BusinessIsNotRegistered) && self.senders.contains(&one.sender_address())
                }))
            }
            3 => Next::on(applied(seen).and_then(|link| of_kind(link, Kind::BridgechainRegistration)).is_some_and(
                |one| {
                    self.senders.contains(&one.sender_address())
                        && matches!(one.asset(), Asset::BridgechainRegistration(_))
                },
            )),
            4 => Next::on(
                reverted(seen)
                    .and_then(|link| of_kind(link, Kind::BridgechainRegistration))
                    .is_some_and(|one| self.senders.contains(&one.sender_address())),
            ),
            _ => Next::Stay,
        }
    }
}
