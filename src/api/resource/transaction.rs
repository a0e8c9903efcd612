//! Transactions, confirmed and pending. Source: api.md 3, 4.1, 4.6.

use super::timestamp;
use crate::{
    api::{
        table::{
            dialect::Spoken,
            field::{Cell, Field, Missing, Test},
            frame::Frame,
            json::write_value,
            parameter::{
                ADDRESS, ADDRESSES, BLOCK_ID, FROM_ONE, FROM_ZERO, HEX, PUBLIC_KEY, Parameter, RANGE, TRANSACTION_ID,
                both, documented,
            },
            row::{self, Member, write_members},
            rule::{Check, Rule},
            shape::{self, Shape},
        },
        view::{ConfirmedTransaction, Spot, stored_recipient},
    },
    protocol::{Address, Height, SignedTransaction, Timestamp},
};
use std::sync::Arc;

/// The fields that `orderBy` takes.
pub const ORDERS: &[&str] = &["amount", "fee", "nonce", "timestamp", "type", "typeGroup", "vendorField", "version"];

const ORDER: Parameter = both("orderBy", Rule::Order(ORDERS));
const ID: Parameter = both("id", TRANSACTION_ID);
const BLOCK: Parameter = both("blockId", BLOCK_ID);
const TYPE: Parameter = both("type", FROM_ZERO);
const TYPE_GROUP: Parameter = both("typeGroup", FROM_ZERO);
const VERSION: Parameter = both("version", FROM_ONE);
const SENDER_KEY: Parameter = both("senderPublicKey", PUBLIC_KEY);
const SENDER: Parameter = both("senderId", ADDRESS);
const RECIPIENT: Parameter = both("recipientId", ADDRESS);
const TIMESTAMP: Parameter = both("timestamp", FROM_ZERO);
const NONCE: Parameter = both("nonce", FROM_ZERO);
const AMOUNT: Parameter = both("amount", FROM_ZERO);
const FEE: Parameter = both("fee", FROM_ZERO);
const VENDOR_FIELD: Parameter = both("vendorField", Rule::Text(&[Check::BytesAtMost(255)]));

/// The parameters that the list of all transactions takes.
#[rustfmt::skip]
pub const FILTERS: &[Parameter] = &[
    ORDER, ID, BLOCK, TYPE, TYPE_GROUP, VERSION, SENDER_KEY, SENDER, RECIPIENT, TIMESTAMP, NONCE, AMOUNT, FEE,
    VENDOR_FIELD,
];

/// The parameters that the search takes in its query beside paging and `transform`.
pub const ORDERED: &[Parameter] = &[documented("orderBy", Rule::Order(ORDERS))];

/// The parameters that the search takes in its body.
#[rustfmt::skip]
pub const SEARCH: &[Parameter] = &[
    ORDER, ID, BLOCK, TYPE, TYPE_GROUP, VERSION, SENDER_KEY, SENDER, RECIPIENT, documented("ownerId", ADDRESS),
    both("addresses", ADDRESSES), documented("vendorFieldHex", HEX), both("timestamp", RANGE), NONCE,
    both("amount", RANGE), both("fee", RANGE), VENDOR_FIELD, both("asset", Rule::Object),
];

/// The parameters that the list of a block's transactions takes.
#[rustfmt::skip]
pub const OF_BLOCK: &[Parameter] = &[
    ORDER, ID, BLOCK, TYPE, both("version", FROM_ZERO), SENDER_KEY, SENDER, RECIPIENT, TIMESTAMP, AMOUNT, FEE,
    VENDOR_FIELD,
];

/// The parameters that the list of a wallet's transactions takes.
#[rustfmt::skip]
pub const OF_WALLET: &[Parameter] = &[
    ORDER, ID, BLOCK, TYPE, TYPE_GROUP, VERSION, TIMESTAMP, NONCE, AMOUNT, FEE, VENDOR_FIELD,
];

/// The parameters that the list of a wallet's sent transactions takes beside [`OF_WALLET`].
pub const SENT: &[Parameter] = &[RECIPIENT];

/// The parameters that the list of a wallet's received transactions takes beside [`OF_WALLET`].
pub const RECEIVED: &[Parameter] = &[SENDER_KEY, SENDER];

/// The parameters that the list of votes takes.
#[rustfmt::skip]
pub const VOTES: &[Parameter] = &[
    ORDER, ID, BLOCK, VERSION, SENDER_KEY, SENDER, RECIPIENT, TIMESTAMP, AMOUNT, FEE, VENDOR_FIELD,
];

/// A transaction as a path has it.
pub const PATH_ID: &[Parameter] = &[ID];

/// A transaction, and where on the chain it is, if it is confirmed.
#[derive(Clone, Debug)]
pub struct TransactionRow {
    pub transaction: Arc<SignedTransaction>,
    pub place: Option<ConfirmedTransaction>,
}

impl TransactionRow {
    /// A confirmed one.
    pub fn confirmed(place: ConfirmedTransaction) -> Self {
        Self { transaction: place.transaction().clone(), place: Some(place) }
    }

    /// A pending one.
    pub fn pending(transaction: Arc<SignedTransaction>) -> Self {
        Self { transaction, place: None }
    }

    /// Index in its block and height of that, for ties.
    pub fn sequence(&self) -> (usize, Height) {
        let spot = self.spot();
        (spot.index as usize, spot.height)
    }

    /// Where it lies; before all blocks if it is pending.
    pub fn spot(&self) -> Spot {
        self.place.as_ref().map_or(Spot { height: Height(0), index: 0 }, ConfirmedTransaction::spot)
    }

    /// Its own in version 1, its block's in version 2.
    fn timestamp(&self) -> Option<Timestamp> {
        self.place.as_ref().map(|place| place.facts().timestamp).or_else(|| self.transaction.transaction().timestamp())
    }

    /// The sender's running number: said in version 2, counted in version 1.
    fn nonce(&self) -> Option<u64> {
        let said = self.transaction.transaction().nonce().map(|nonce| nonce.0);
        self.place.as_ref().map(|place| place.facts().nonce).or(said)
    }

    /// The recipient as it is stored: one that the transaction names.
    pub fn stored_recipient(&self) -> Option<Address> {
        stored_recipient(&self.transaction)
    }

    fn vendor_field(&self) -> Option<&str> {
        self.transaction.transaction().vendor_field.as_deref()
    }
}

/// The fields by which transactions are filtered and ordered. Who sent and received is looked up, see [`handler`](crate::api).
pub const FIELDS: &[Field<TransactionRow>] = &[
    Field::hex("id", |row, _| Cell::shown(row.transaction.id())),
    Field::new("blockId", |row, _| Cell::shown_some(row.place.as_ref().map(|place| place.block_id()))),
    Field::new("version", |row, _| Cell::number(row.transaction.transaction().version.number())),
    Field::new("type", |row, _| Cell::number(row.transaction.kind().numbers().1)),
    Field::new("typeGroup", |row, _| Cell::number(row.transaction.kind().numbers().0)),
    Field::hex("senderPublicKey", |row, _| Cell::shown(row.transaction.sender())),
    Field::new("timestamp", |row, _| row.timestamp().map_or(Cell::Missing, |timestamp| Cell::number(timestamp.0))),
    Field::new("nonce", |row, _| row.nonce().map_or(Cell::Missing, Cell::number)),
    Field::new("amount", |row, _| Cell::number(row.transaction.amount().value())),
    Field::new("fee", |row, _| Cell::number(row.transaction.fee().value())),
    Field::new("asset", |row, _| row.transaction.asset().to_json().map_or(Cell::Missing, Cell::Json)),
    Field {
        test: Test::ContainsHex,
        ..Field::new("vendorFieldHex", |row, _| Cell::text(row.vendor_field().map(hex::encode)))
    },
    Field { spoken: Spoken::DOCUMENTED, ..VENDOR_FIELDS },
    Field { spoken: Spoken::CORE26, missing: Missing::Greatest, test: Test::Like, ..VENDOR_FIELDS },
];

const VENDOR_FIELDS: Field<TransactionRow> = Field::containing("vendorField", |row, _| Cell::text(row.vendor_field()));

/// The shape of the API.
const MEMBERS: &[Member<TransactionRow>] = &[
    Member::new("id", shape::HASH, |row, _, slot| slot.text(row.transaction.id())),
    Member::some("blockId", shape::BLOCK_ID, |row, _, slot| {
        slot.text_some(row.place.as_ref().map(|place| place.block_id()))
    }),
    Member::new("version", Shape::Integer, |row, _, slot| slot.put(&row.transaction.transaction().version.number())),
    Member::new("type", Shape::Integer, |row, _, slot| slot.put(&row.transaction.kind().numbers().1)),
    Member::new("typeGroup", Shape::Integer, |row, _, slot| slot.put(&row.transaction.kind().numbers().0)),
    Member::new("amount", shape::AMOUNT, |row, _, slot| slot.put(&row.transaction.amount())),
    Member::new("fee", shape::AMOUNT, |row, _, slot| slot.put(&row.transaction.fee())),
    Member::new("sender", shape::ADDRESS, |row, _, slot| slot.text(row.transaction.sender_address())),
    Member::new("senderPublicKey", shape::KEY, |row, _, slot| slot.text(row.transaction.sender())),
    Member::new("recipient", shape::ADDRESS, |row, _, slot| {
        slot.text(row.stored_recipient().unwrap_or_else(|| row.transaction.sender_address()));
    }),
    Member::some("signature", shape::HEX, |row, _, slot| {
        slot.text_some(row.transaction.transaction().signature.as_ref().map(hex::encode));
    }),
    Member::some("signSignature", shape::HEX, |row, _, slot| {
        slot.text_some(row.transaction.transaction().second_signature.as_ref().map(hex::encode));
    }),
    Member::some("signatures", Shape::List(&shape::HEX), |row, _, slot| {
        let signatures = &row.transaction.transaction().signatures;
        if !signatures.is_empty() {
            slot.list(signatures, |out, signature| write_value(out, &hex::encode(signature.to_bytes())));
        }
    }),
    Member::some("vendorField", Shape::Text, |row, _, slot| slot.put_some(row.vendor_field())),
    Member::some("asset", Shape::Map(&Shape::Any), |row, _, slot| slot.put_some(row.transaction.asset().to_json())),
    Member::new("confirmations", Shape::Integer, |row, frame, slot| {
        let height = row.place.as_ref().map(|place| place.spot().height);
        slot.put(&height.map_or(0, |height| frame.blocks_above(height) + 1));
    }),
    Member::some("timestamp", timestamp::SHAPE, |row, frame, slot| {
        if let Some(timestamp) = row.timestamp() {
            timestamp::write(slot, &frame.view.tree().slots(), timestamp);
        }
    }),
    Member::some("nonce", shape::AMOUNT, |row, _, slot| slot.text_some(row.nonce())),
];

/// The shape of a transaction: the API's shape, or its own.
pub const SHAPE: Shape = Shape::Either(&[SHOWN, RAW]);

const SHOWN: Shape = Shape::Resource("Transaction", |dialect, named| row::of_table(MEMBERS, dialect, named));

/// The shape of a transaction itself, as it is posted and signed.
const RAW: Shape = Shape::Resource("RawTransaction", |dialect, named| {
    let members = Shape::Members(&[
        ("version", Shape::Integer, true),
        ("network", Shape::Integer, true),
        ("typeGroup", Shape::Integer, false),
        ("type", Shape::Integer, true),
        ("timestamp", Shape::Integer, false),
        ("nonce", shape::AMOUNT, false),
        ("senderPublicKey", shape::KEY, true),
        ("fee", shape::AMOUNT, true),
        ("amount", shape::AMOUNT, true),
        ("vendorField", Shape::Text, false),
        ("expiration", Shape::Integer, false),
        ("recipientId", shape::ADDRESS, false),
        ("asset", Shape::Map(&Shape::Any), false),
        ("signature", shape::HEX, false),
        ("secondSignature", shape::HEX, false),
        ("signatures", Shape::List(&shape::HEX), false),
        ("id", shape::HASH, true),
    ]);
    members.schema(dialect, named)
});

/// The shape of a claim or refund, which has the API's shape only.
pub const UNLOCKED_SHAPE: Shape = SHOWN;

/// Writes a transaction in the shape asked for.
pub fn write(out: &mut Vec<u8>, row: &TransactionRow, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, row, frame);
    } else {
        write_value(out, &row.transaction.to_json());
    }
}
