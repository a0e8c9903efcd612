//! Open locks. Source: api.md 3, 4.1, 4.7.

use super::timestamp;
use crate::{
    api::table::{
        field::{Cell, Field},
        frame::Frame,
        parameter::{ADDRESS, FROM_ZERO, PUBLIC_KEY, Parameter, RANGE, TRANSACTION_ID, both, documented},
        row::{self, Member, write_members},
        rule::{Check, Rule},
        shape::{self, Shape},
    },
    ledger::{Wallet, wallet::Lock},
    protocol::TransactionId,
};
use std::sync::Arc;

/// The fields that `orderBy` takes.
#[rustfmt::skip]
pub const ORDERS: &[&str] = &[
    "amount", "expirationType", "expirationValue", "isExpired", "lockId", "recipientId", "secretHash",
    "senderPublicKey", "timestamp", "vendorField",
];

const ORDER: Parameter = both("orderBy", Rule::Order(ORDERS));
const RECIPIENT: Parameter = both("recipientId", ADDRESS);
const SENDER_KEY: Parameter = both("senderPublicKey", PUBLIC_KEY);
const LOCK_ID: Parameter = both("lockId", TRANSACTION_ID);
const SECRET_HASH: Parameter = both("secretHash", TRANSACTION_ID);
const EXPIRATION_TYPE: Parameter = both("expirationType", Rule::Named(&[("EpochTimestamp", 1), ("BlockHeight", 2)]));
const IS_EXPIRED: Parameter = both("isExpired", Rule::Boolean);

/// The parameters that the list of locks takes.
#[rustfmt::skip]
pub const FILTERS: &[Parameter] = &[
    ORDER, RECIPIENT, SENDER_KEY, LOCK_ID, SECRET_HASH, both("amount", FROM_ZERO), both("expirationValue", FROM_ZERO),
    EXPIRATION_TYPE, IS_EXPIRED,
];

/// The parameters that the list of a wallet's locks takes.
pub const OF_WALLET: &[Parameter] = &[ORDER, IS_EXPIRED];

/// The parameters that searches take in their query.
pub const ORDERED: &[Parameter] = &[ORDER];

/// The parameters that searches take in their body.
#[rustfmt::skip]
pub const SEARCH: &[Parameter] = &[
    documented("orderBy", Rule::Order(ORDERS)), RECIPIENT, SENDER_KEY, LOCK_ID, SECRET_HASH, both("amount", RANGE),
    both("expirationValue", RANGE), EXPIRATION_TYPE, both("timestamp", RANGE),
    both("vendorField", Rule::Text(&[Check::AtMost(255)])), IS_EXPIRED,
];

/// The parameters that the search for claims and refunds takes in its body.
pub const UNLOCKED: &[Parameter] = &[both("ids", Rule::Several(&TRANSACTION_ID, 1, 25)).required()];

/// A lock as a path has it.
pub const PATH_ID: &[Parameter] = &[both("id", TRANSACTION_ID)];

/// An open lock and whose it is.
#[derive(Clone, Debug)]
pub struct LockRow {
    pub id: TransactionId,
    owner: Arc<Wallet>,
    lock: Lock,
}

impl LockRow {
    /// All of a wallet, ascending by id.
    pub fn all_of(owner: &Arc<Wallet>) -> impl Iterator<Item = Self> {
        let locks = owner.htlc.iter().flat_map(|htlc| &htlc.locks);
        locks.map(|(id, lock)| Self { id: *id, owner: owner.clone(), lock: lock.clone() })
    }

    /// One of a wallet.
    pub fn of(owner: &Arc<Wallet>, id: &TransactionId) -> Option<Self> {
        let lock = owner.htlc.as_ref()?.locks.get(id)?.clone();
        Some(Self { id: *id, owner: owner.clone(), lock })
    }

    fn is_expired(&self, frame: &Frame<'_>) -> bool {
        self.lock.is_expired(frame.head.height(), frame.state().timestamp())
    }
}

/// The fields by which locks are filtered and ordered.
pub const FIELDS: &[Field<LockRow>] = &[
    Field::hex("lockId", |row, _| Cell::shown(row.id)),
    Field::new("amount", |row, _| Cell::number(row.lock.amount.value())),
    Field::hex("secretHash", |row, _| Cell::shown(hex::encode(row.lock.secret_hash))),
    Field::hex("senderPublicKey", |row, _| Cell::shown_some(row.owner.public_key)),
    Field::new("recipientId", |row, _| Cell::shown(row.lock.recipient)),
    Field::new("timestamp", |row, _| Cell::number(row.lock.timestamp.0)),
    Field::new("expirationType", |row, _| Cell::number(row.lock.expiration.numbers().0)),
    Field::new("expirationValue", |row, _| Cell::number(row.lock.expiration.numbers().1)),
    Field::new("isExpired", |row, frame| Cell::Flag(row.is_expired(frame))),
    Field::new("vendorField", |row, _| Cell::text(row.lock.vendor_field.as_deref())),
];

const MEMBERS: &[Member<LockRow>] = &[
    Member::new("lockId", shape::HASH, |row, _, slot| slot.text(row.id)),
    Member::new("amount", shape::AMOUNT, |row, _, slot| slot.put(&row.lock.amount)),
    Member::new("secretHash", shape::HASH, |row, _, slot| slot.text(hex::encode(row.lock.secret_hash))),
    Member::some("senderPublicKey", shape::KEY, |row, _, slot| slot.text_some(row.owner.public_key)),
    Member::new("recipientId", shape::ADDRESS, |row, _, slot| slot.text(row.lock.recipient)),
    Member::new("timestamp", timestamp::SHAPE, |row, frame, slot| {
        timestamp::write(slot, &frame.view.tree().slots(), row.lock.timestamp);
    }),
    Member::new("expirationType", Shape::Integer, |row, _, slot| slot.put(&row.lock.expiration.numbers().0)),
    Member::new("expirationValue", Shape::Integer, |row, _, slot| slot.put(&row.lock.expiration.numbers().1)),
    Member::new("isExpired", Shape::Boolean, |row, frame, slot| slot.put(&row.is_expired(frame))),
    Member::some("vendorField", Shape::Text, |row, _, slot| slot.put_some(row.lock.vendor_field.as_ref())),
];

/// The shape of a lock.
pub const SHAPE: Shape = Shape::Resource("Lock", |dialect, named| row::of_table(MEMBERS, dialect, named));

/// Writes a lock.
pub fn write(out: &mut Vec<u8>, row: &LockRow, frame: &Frame<'_>) {
    write_members(out, MEMBERS, row, frame);
}
