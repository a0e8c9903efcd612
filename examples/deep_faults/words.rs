//! Questions of stories about an event.
use super::story::Seen;
use dposlab::{
    actors::{Event, PoolError, RollbackCause},
    ledger::{ApplyError, BlockRejected, Link},
    protocol::{Asset, Block, BlockError, Kind, PublicKey, SignedTransaction, TransactionId, Vote},
};
use std::sync::Arc;

pub fn applied<'a>(seen: &Seen<'a>) -> Option<&'a Arc<Link>> {
    if let Seen::Did(Event::BlockApplied(link)) = seen { Some(link) } else { None }
}
pub fn reverted<'a>(seen: &Seen<'a>) -> Option<&'a Arc<Link>> {
    if let Seen::Did(Event::BlockReverted(link)) = seen { Some(link) } else { None }
}
pub fn forged<'a>(seen: &Seen<'a>) -> Option<&'a Arc<Block>> {
    if let Seen::Did(Event::BlockForged(block)) = seen { Some(block) } else { None }
}
/// The block that it left, the one that it stands on, and why.
pub fn rolled<'a>(seen: &Seen<'a>) -> Option<(&'a Arc<Link>, &'a Arc<Link>, RollbackCause)> {
    if let Seen::Did(Event::RolledBack { from, to, cause }) = seen { Some((from, to, *cause)) } else { None }
}
pub fn refused<'a>(seen: &Seen<'a>) -> Option<&'a BlockRejected> {
    if let Seen::Did(Event::BlockRefused(error)) = seen { Some(error) } else { None }
}
pub fn evicted<'a>(seen: &Seen<'a>) -> Option<&'a Arc<SignedTransaction>> {
    if let Seen::Did(Event::PoolEvicted(one)) = seen { Some(one) } else { None }
}
pub fn expired<'a>(seen: &Seen<'a>) -> Option<&'a Arc<SignedTransaction>> {
    if let Seen::Did(Event::PoolExpired(one)) = seen { Some(one) } else { None }
}
pub fn replaced<'a>(seen: &Seen<'a>) -> Option<&'a [Arc<SignedTransaction>]> {
    if let Seen::Did(Event::PoolReplaced(all)) = seen { Some(all) } else { None }
}
pub fn added<'a>(seen: &Seen<'a>) -> &'a [Arc<SignedTransaction>] {
    if let Seen::Did(Event::PoolAdded(all)) = seen { all } else { &[] }
}
/// Transactions that the pool would not apply, and why.
pub fn rejected<'a>(seen: &Seen<'a>) -> Vec<(&'a Arc<SignedTransaction>, &'a ApplyError)> {
    let Seen::Did(Event::PoolRejected(all)) = seen else { return Vec::new() };
    let why = |error: &'a PoolError| if let PoolError::Apply(error) = error { Some(error) } else { None };
    all.iter().filter_map(|one| Some((&one.transaction, why(&one.error)?))).collect()
}
pub fn rejected_as_full(seen: &Seen<'_>) -> bool {
    let Seen::Did(Event::PoolRejected(all)) = seen else { return false };
    all.iter().any(|one| matches!(one.error, PoolError::PoolFull { .. }))
}
pub fn suspended(seen: &Seen<'_>) -> bool {
    matches!(seen, Seen::Did(Event::ForgingSuspended { .. }))
}
pub fn ends_round(link: &Link) -> bool {
    link.round_end().is_some()
}
pub fn of_kind(link: &Link, kind: Kind) -> Option<&Arc<SignedTransaction>> {
    link.block().transactions.iter().find(|one| one.kind() == kind)
}
pub fn holds(link: &Link, id: &TransactionId) -> bool {
    link.block().transactions.iter().any(|one| one.id() == *id)
}
/// The lock that a claim or a refund is about.
pub fn lock_of(one: &SignedTransaction) -> Option<TransactionId> {
    match one.asset() {
        Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } => Some(*lock),
        _ => None,
    }
}
pub fn votes_for(one: &SignedTransaction) -> Option<PublicKey> {
    if let Asset::Vote(Vote::For(delegate)) = one.asset() { Some(*delegate) } else { None }
}
pub fn first_error(error: &BlockRejected) -> Option<&BlockError> {
    if let BlockRejected::NotVerified { errors, .. } = error { errors.first() } else { None }
}
pub fn not_applicable(error: &BlockRejected) -> Option<&ApplyError> {
    if let BlockRejected::NotApplicable { source, .. } = error { Some(source) } else { None }
}
