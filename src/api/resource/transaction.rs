//! Transactions, confirmed and pending. Source: api.md 3, 4.1, 4.6.

use super::timestamp;
use crate::{
    api::{
        table::{
            Check, DialectSet, Frame, Member, Parameter, Rule, Shape,
            field::{Cell, Missing, Test},
            json::write_value,
            parameter::{ADDRESS, ADDRESSES, BLOCK_ID, FROM_ONE, FROM_ZERO, HEX, PUBLIC_KEY, TRANSACTION_ID},
            row::{self, write_members},
            shape,
        },
        view::{ConfirmedTransaction, Spot, stored_recipient},
    },
    protocol::{Address, Height, SignedTransaction, Timestamp},
};
use std::sync::Arc;

/// The order of a list.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &[
    "amount", "fee", "nonce", "timestamp", "type", "typeGroup", "vendorField", "version",
]);

/// The parameters that the list of all transactions takes.
#[rustfmt::skip]
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, [
    "id", "blockId", "type", "typeGroup", "version", "senderPublicKey", "senderId", "recipientId", "timestamp", "nonce",
    "amount", "fee", "vendorField",
]);

/// The parameters that the search takes in its body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(MEMBERS, [
    "id", "blockId", "type", "typeGroup", "version", "senderPublicKey", "senderId", "recipientId", "ownerId",
    "addresses", "vendorFieldHex", "timestamp", "nonce", "amount", "fee", "vendorField", "asset",
]);

/// The parameters that the list of a block's transactions takes.
#[rustfmt::skip]
pub(crate) const OF_BLOCK: &[Parameter] = &row::filters(IN_BLOCK, [
    "id", "blockId", "type", "version", "senderPublicKey", "senderId", "recipientId", "timestamp", "amount", "fee",
    "vendorField",
]);

/// The parameters that the list of a wallet's transactions takes.
#[rustfmt::skip]
pub(crate) const OF_WALLET: &[Parameter] = &row::filters(MEMBERS, [
    "id", "blockId", "type", "typeGroup", "version", "timestamp", "nonce", "amount", "fee", "vendorField",
]);

/// The parameters that the list of a wallet's sent transactions takes beside [`OF_WALLET`].
pub(crate) const SENT: &[Parameter] = &row::filters(MEMBERS, ["recipientId"]);

/// The parameters that the list of a wallet's received transactions takes beside [`OF_WALLET`].
pub(crate) const RECEIVED: &[Parameter] = &row::filters(MEMBERS, ["senderPublicKey", "senderId"]);

/// The parameters that the list of votes takes.
#[rustfmt::skip]
pub(crate) const VOTES: &[Parameter] = &row::filters(MEMBERS, [
    "id", "blockId", "version", "senderPublicKey", "senderId", "recipientId", "timestamp", "amount", "fee",
    "vendorField",
]);

/// A transaction as a path has it.
pub(crate) const PATH_ID: &[Parameter] = &row::filters(MEMBERS, ["id"]);

/// A transaction, and where on the chain it is, if it is confirmed.
#[derive(Clone, Debug)]
pub(crate) struct TransactionRow {
    pub transaction: Arc<SignedTransaction>,
    pub place: Option<ConfirmedTransaction>,
}

impl TransactionRow {
    /// The row of a confirmed transaction.
    pub fn confirmed(place: ConfirmedTransaction) -> Self {
        Self { transaction: place.transaction().clone(), place: Some(place) }
    }

    /// The row of a pending transaction.
    pub fn pending(transaction: Arc<SignedTransaction>) -> Self {
        Self { transaction, place: None }
    }

    /// Its index in its block and the block's height, which order rows that are equal otherwise.
    pub fn sequence(&self) -> (usize, Height) {
        let spot = self.spot();
        (spot.index as usize, spot.height)
    }

    /// Its place on the chain; before all blocks if it is pending.
    pub fn spot(&self) -> Spot {
        self.place.as_ref().map_or(Spot { height: Height(0), index: 0 }, ConfirmedTransaction::spot)
    }

    /// The transaction's own timestamp in version 1, that of its block in version 2.
    fn timestamp(&self) -> Option<Timestamp> {
        self.place.as_ref().map(|place| place.facts().timestamp).or_else(|| self.transaction.transaction().timestamp())
    }

    /// The nonce of the transaction in version 2, its number among the sender's transactions in version 1.
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

type Row = Member<TransactionRow>;

/// The members of the API's shape. The handler looks up sender and recipient, see [`handler`](crate::api).
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("id", shape::HASH, |row, _| row.transaction.id().into()).asked(TRANSACTION_ID),
    Row::some("blockId", shape::BLOCK_ID, |row, _| row.place.as_ref().map(|place| place.block_id()).into())
        .asked(BLOCK_ID),
    VERSION,
    Row::new("type", Shape::Integer, |row, _| row.transaction.kind().numbers().1.into()).asked(FROM_ZERO),
    Row::new("typeGroup", Shape::Integer, |row, _| row.transaction.kind().numbers().0.into()).asked(FROM_ZERO),
    Row::new("amount", shape::AMOUNT, |row, _| row.transaction.amount().into()).ranged(),
    Row::new("fee", shape::AMOUNT, |row, _| row.transaction.fee().into()).ranged(),
    Row::new("sender", shape::ADDRESS, |row, _| row.transaction.sender_address().into()),
    Row::hidden("senderId", |_, _| Cell::Elsewhere).asked(ADDRESS),
    Row::new("senderPublicKey", shape::KEY, |row, _| (*row.transaction.sender()).into()).asked(PUBLIC_KEY),
    Row::new("recipient", shape::ADDRESS, |row, _| {
        row.stored_recipient().unwrap_or_else(|| row.transaction.sender_address()).into()
    }),
    Row::hidden("recipientId", |_, _| Cell::Elsewhere).asked(ADDRESS),
    Row::hidden("ownerId", |_, _| Cell::Elsewhere).asked(ADDRESS).if_documented(),
    Row::hidden("addresses", |_, _| Cell::Elsewhere).asked(ADDRESSES),
    Row::some("signature", shape::HEX, |row, _| row.transaction.transaction().signature.as_deref().into()),
    Row::some("signSignature", shape::HEX, |row, _| row.transaction.transaction().second_signature.as_deref().into()),
    Row::some_by("signatures", Shape::List(&shape::HEX), |row, _, slot| {
        let signatures = &row.transaction.transaction().signatures;
        if !signatures.is_empty() {
            slot.list(signatures, |out, signature| write_value(out, &hex::encode(signature.to_bytes())));
        }
    }),
    VENDOR_FIELD.tested(Test::Contains).only(DialectSet::DOCUMENTED),
    VENDOR_FIELD.tested(Test::Like).missing(Missing::Greatest).only(DialectSet::CORE26),
    Row::hidden("vendorFieldHex", |row, _| row.vendor_field().map(hex::encode).into())
        .asked(HEX)
        .if_documented()
        .tested(Test::ContainsHex),
    Row::some("asset", Shape::Map(&Shape::Any), |row, _| row.transaction.asset().to_json().into()).asked(Rule::Object),
    Row::new("confirmations", Shape::Integer, |row, frame| {
        let height = row.place.as_ref().map(|place| place.spot().height);
        height.map_or(0, |height| frame.blocks_above(height) + 1).into()
    }),
    Row::some("timestamp", timestamp::SHAPE, |row, _| row.timestamp().into())
        .written(|row, frame, slot| {
            if let Some(timestamp) = row.timestamp() {
                timestamp::write(slot, frame, timestamp);
            }
        })
        .ranged(),
    Row::some("nonce", shape::AMOUNT, |row, _| row.nonce().into()).asked(FROM_ZERO),
];

const VERSION: Row =
    Row::new("version", Shape::Integer, |row, _| row.transaction.transaction().version.number().into()).asked(FROM_ONE);
const VENDOR_FIELD: Row = Row::some("vendorField", Shape::Text, |row, _| row.vendor_field().into())
    .asked(Rule::Text(&[Check::BytesAtMost(255)]));

/// The members of a block's transactions, whose list also accepts version 0 as a filter.
const IN_BLOCK: &[Row] = &row::with::<_, { MEMBERS.len() }, _>(MEMBERS, [VERSION.asked(FROM_ZERO)]);

/// The shape of a transaction: the API's shape, or its own.
pub(crate) const SHAPE: Shape = Shape::Either(&[SHOWN, RAW]);

const SHOWN: Shape = Shape::Resource("Transaction", &MEMBERS);

/// The shape of a transaction itself, as it is posted and signed.
const RAW: Shape = Shape::Resource(
    "RawTransaction",
    &Shape::Members(&[
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
    ]),
);

/// The shape of a claim or refund, which has the API's shape only.
pub(crate) const UNLOCKED_SHAPE: Shape = SHOWN;

/// Writes a transaction in the shape asked for.
pub(crate) fn write(out: &mut Vec<u8>, row: &TransactionRow, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, row, frame);
    } else {
        write_value(out, &row.transaction.to_json());
    }
}
