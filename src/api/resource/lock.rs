//! Open locks. Source: api.md 3, 4.1, 4.7.

use super::timestamp;
use crate::{
    api::table::{
        Check, Frame, Member, Parameter, Rule, Shape, both,
        parameter::{ADDRESS, PUBLIC_KEY, TRANSACTION_ID},
        row, shape,
    },
    ledger::{Wallet, wallet::Lock},
    protocol::TransactionId,
};
use std::sync::Arc;

/// The order of a list.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &[
    "amount", "expirationType", "expirationValue", "isExpired", "lockId", "recipientId", "secretHash",
    "senderPublicKey", "timestamp", "vendorField",
]);

/// The parameters that the list of locks takes.
#[rustfmt::skip]
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, [
    "recipientId", "senderPublicKey", "lockId", "secretHash", "amount", "expirationValue", "expirationType", "isExpired",
]);

/// The parameters that the list of a wallet's locks takes.
pub(crate) const OF_WALLET: &[Parameter] = &row::filters(MEMBERS, ["isExpired"]);

/// The parameters that searches take in their body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(MEMBERS, [
    "recipientId", "senderPublicKey", "lockId", "secretHash", "amount", "expirationValue", "expirationType",
    "timestamp", "vendorField", "isExpired",
]);

/// The parameters that the search for claims and refunds takes in its body.
pub(crate) const UNLOCKED: &[Parameter] = &[both("ids", Rule::Several(&TRANSACTION_ID, 1, 25)).required()];

/// An open lock with its owner.
#[derive(Clone, Debug)]
pub(crate) struct LockRow {
    pub id: TransactionId,
    owner: Arc<Wallet>,
    lock: Lock,
}

impl LockRow {
    /// All locks of a wallet, ascending by id.
    pub fn all_of(owner: &Arc<Wallet>) -> impl Iterator<Item = Self> {
        let locks = owner.htlc.iter().flat_map(|htlc| &htlc.locks);
        locks.map(|(id, lock)| Self { id: *id, owner: owner.clone(), lock: lock.clone() })
    }

    /// The lock of a wallet with an id.
    pub fn of(owner: &Arc<Wallet>, id: &TransactionId) -> Option<Self> {
        let lock = owner.htlc.as_ref()?.locks.get(id)?.clone();
        Some(Self { id: *id, owner: owner.clone(), lock })
    }

    fn is_expired(&self, frame: &Frame<'_>) -> bool {
        self.lock.is_expired(frame.head.height(), frame.state().timestamp())
    }
}

type Row = Member<LockRow>;

/// The members of a lock.
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("lockId", shape::HASH, |row, _| row.id.into()).asked(TRANSACTION_ID),
    Row::new("amount", shape::AMOUNT, |row, _| row.lock.amount.into()).ranged(),
    Row::new("secretHash", shape::HASH, |row, _| (&row.lock.secret_hash).into()).asked(TRANSACTION_ID),
    Row::some("senderPublicKey", shape::KEY, |row, _| row.owner.public_key.into()).asked(PUBLIC_KEY),
    Row::new("recipientId", shape::ADDRESS, |row, _| row.lock.recipient.into()).asked(ADDRESS),
    Row::new("timestamp", timestamp::SHAPE, |row, _| row.lock.timestamp.into())
        .written(|row, frame, slot| timestamp::write(slot, frame, row.lock.timestamp))
        .ranged(),
    Row::new("expirationType", Shape::Integer, |row, _| row.lock.expiration.numbers().0.into())
        .asked(Rule::Named(&[("EpochTimestamp", 1), ("BlockHeight", 2)])),
    Row::new("expirationValue", Shape::Integer, |row, _| row.lock.expiration.numbers().1.into()).ranged(),
    Row::new("isExpired", Shape::Boolean, |row, frame| row.is_expired(frame).into()).asked(Rule::Boolean),
    Row::some("vendorField", Shape::Text, |row, _| row.lock.vendor_field.as_deref().into())
        .asked(Rule::Text(&[Check::AtMost(255)])),
];

/// The shape of a lock.
pub(crate) const SHAPE: Shape = Shape::Resource("Lock", &MEMBERS);
