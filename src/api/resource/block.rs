//! Blocks. Source: api.md 3, 4.1, 4.5.

use super::timestamp;
use crate::{
    api::{
        table::{
            dialect::Spoken,
            field::{Cell, Field},
            frame::Frame,
            parameter::{ANY_TEXT, BLOCK_ID, FROM_ONE, FROM_ZERO, HEX, PUBLIC_KEY, Parameter, RANGE, both, documented},
            row::{self, Member, write_members},
            rule::{Bound, Rule},
            shape::{self, Shape},
        },
        view::{ConfirmedBlock, Entry, Totals},
    },
    ledger::Balance,
    protocol::{Block, BlockHeader, BlockId},
};
use std::sync::Arc;

/// The fields that `orderBy` takes.
pub const ORDERS: &[&str] =
    &["height", "numberOfTransactions", "reward", "timestamp", "totalAmount", "totalFee", "version"];

/// The parameters that lists of blocks take.
pub const FILTERS: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("id", BLOCK_ID),
    both("version", FROM_ZERO),
    both("timestamp", FROM_ZERO),
    both("previousBlock", BLOCK_ID),
    both("height", FROM_ONE),
    both("numberOfTransactions", FROM_ZERO),
    both("totalAmount", FROM_ZERO),
    both("totalFee", FROM_ZERO),
    both("reward", FROM_ZERO),
    documented("payloadLength", FROM_ZERO),
    documented("payloadHash", HEX),
    both("generatorPublicKey", PUBLIC_KEY),
    documented("blockSignature", HEX),
];

/// The parameters that the search takes in its query beside paging and `transform`.
pub const ORDERED: &[Parameter] = &[documented("orderBy", Rule::Order(ORDERS))];

/// The parameters that the search takes in its body.
pub const SEARCH: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("id", BLOCK_ID),
    both("version", FROM_ZERO),
    both("previousBlock", BLOCK_ID),
    documented("payloadHash", HEX),
    both("generatorPublicKey", PUBLIC_KEY),
    documented("blockSignature", HEX),
    both("timestamp", RANGE),
    both("height", Rule::Range(Bound::Positive)),
    both("numberOfTransactions", RANGE),
    both("totalAmount", RANGE),
    both("totalFee", RANGE),
    both("reward", RANGE),
    documented("payloadLength", RANGE),
];

/// The parameters that the list of a delegate's blocks takes: the reference checks all filters here.
pub const OF_DELEGATE: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("id", BLOCK_ID),
    both("version", FROM_ZERO),
    both("timestamp", FROM_ZERO),
    both("previousBlock", BLOCK_ID),
    both("height", FROM_ONE),
    both("numberOfTransactions", FROM_ZERO),
    both("totalAmount", FROM_ZERO),
    both("totalFee", FROM_ZERO),
    both("reward", FROM_ZERO),
    both("payloadLength", FROM_ZERO),
    both("payloadHash", HEX),
    both("generatorPublicKey", PUBLIC_KEY),
    both("blockSignature", HEX),
];

/// A block by id or height, as a path has it.
pub const PATH_ID: &[Parameter] = &[both("id", BLOCK_ID)];

/// The block whose transactions are wanted: any text.
pub const PATH_ANY_ID: &[Parameter] = &[both("id", ANY_TEXT)];

/// A block on a chain.
pub type BlockRow = ConfirmedBlock;

/// The fields by which blocks are filtered and ordered that are numbers.
pub const NUMBERS: &[Field<Totals>] = &[
    Field::new("version", |totals, _| Cell::number(totals.version)),
    Field::new("timestamp", |totals, _| Cell::number(totals.timestamp.0)),
    Field::new("height", |totals, _| Cell::number(totals.height.0)),
    Field::new("numberOfTransactions", |totals, _| Cell::number(totals.transactions)),
    Field::only("totalAmount", Spoken::DOCUMENTED, |totals, _| Cell::number(moved(totals).0)),
    Field::only("totalAmount", Spoken::CORE26, |totals, _| Cell::number(totals.amount.value())),
    Field::new("totalFee", |totals, _| Cell::number(totals.fee.value())),
    Field::new("reward", |totals, _| Cell::number(totals.reward.value())),
    Field::new("payloadLength", |totals, _| Cell::number(totals.payload_length)),
];

/// The other fields by which blocks are filtered.
pub const TEXTS: &[Field<BlockRow>] = &[
    Field::new("id", |link, _| Cell::shown(link.id())),
    Field::new("previousBlock", |link, _| Cell::shown(previous(header(link)))),
    Field::hex("payloadHash", |link, _| Cell::shown(hex::encode(header(link).payload_hash))),
    Field::hex("generatorPublicKey", |link, _| Cell::shown(header(link).generator)),
    Field::hex("blockSignature", |link, _| Cell::shown(hex::encode(&header(link).signature))),
];

/// The shape of the API.
const MEMBERS: &[Member<BlockRow>] = &[
    Member::new("id", shape::BLOCK_ID, |link, _, slot| slot.text(link.id())),
    Member::new("version", Shape::Integer, |link, _, slot| slot.put(&header(link).version)),
    Member::new("height", Shape::Integer, |link, _, slot| slot.put(&header(link).height)),
    Member::new("previous", shape::BLOCK_ID, |link, _, slot| slot.text(previous(header(link)))),
    Member::new(
        "forged",
        Shape::Members(&[
            ("reward", shape::AMOUNT, true),
            ("fee", shape::AMOUNT, true),
            ("total", shape::AMOUNT, true),
            ("amount", shape::AMOUNT, true),
        ]),
        |link, _, slot| {
            let header = header(link);
            slot.object(|forged| {
                forged.member("reward").put(&header.reward);
                forged.member("fee").put(&header.total_fee);
                forged.member("total").text(Balance::from(header.reward) + header.total_fee);
                forged.member("amount").put(&header.total_amount);
            });
        },
    ),
    Member::new(
        "payload",
        Shape::Members(&[("hash", shape::HASH, true), ("length", Shape::Integer, true)]),
        |link, _, slot| {
            slot.object(|payload| {
                payload.member("hash").text(hex::encode(header(link).payload_hash));
                payload.member("length").put(&header(link).payload_length);
            });
        },
    ),
    Member::new(
        "generator",
        Shape::Members(&[
            ("username", Shape::Text, false),
            ("address", shape::ADDRESS, true),
            ("publicKey", shape::KEY, true),
        ]),
        |link, frame, slot| {
            let key = header(link).generator;
            let address = link.generator();
            slot.object(|generator| {
                let wallet = frame.state().wallet(&address);
                generator.member("username").put_some(wallet.and_then(|wallet| wallet.username()));
                generator.member("address").text(address);
                generator.member("publicKey").text(key);
            });
        },
    ),
    Member::new("signature", shape::HEX, |link, _, slot| slot.text(hex::encode(&header(link).signature))),
    Member::new("confirmations", Shape::Integer, |link, frame, slot| slot.put(&frame.blocks_above(link.height()))),
    Member::new("transactions", Shape::Integer, |link, _, slot| slot.put(&header(link).number_of_transactions)),
    Member::new("timestamp", timestamp::SHAPE, |link, frame, slot| {
        timestamp::write(slot, &frame.view.tree().slots(), header(link).timestamp);
    }),
];

/// The block's own shape, as lists and single blocks have it.
const RAW: &[Member<BlockRow>] = &[
    Member::new("id", shape::BLOCK_ID, |link, _, slot| slot.text(link.id())),
    Member::new("version", Shape::Integer, |link, _, slot| slot.put(&header(link).version)),
    Member::new("timestamp", Shape::Integer, |link, _, slot| slot.put(&header(link).timestamp)),
    Member::new("previousBlock", shape::BLOCK_ID, |link, _, slot| slot.text(previous(header(link)))),
    Member::new("height", Shape::Integer, |link, _, slot| slot.put(&header(link).height)),
    Member::new("numberOfTransactions", Shape::Integer, |link, _, slot| slot.put(&header(link).number_of_transactions)),
    Member::new("totalAmount", shape::AMOUNT, |link, _, slot| slot.put(&header(link).total_amount)),
    Member::new("totalFee", shape::AMOUNT, |link, _, slot| slot.put(&header(link).total_fee)),
    Member::new("reward", shape::AMOUNT, |link, _, slot| slot.put(&header(link).reward)),
    Member::new("payloadLength", Shape::Integer, |link, _, slot| slot.put(&header(link).payload_length)),
    Member::new("payloadHash", shape::HASH, |link, _, slot| slot.text(hex::encode(header(link).payload_hash))),
    Member::new("generatorPublicKey", shape::KEY, |link, _, slot| slot.text(header(link).generator)),
    Member::new("blockSignature", shape::HEX, |link, _, slot| slot.text(hex::encode(&header(link).signature))),
];

/// The block's header with both forms of its ids, as the first and last block and a delegate's last one have it.
pub const HEADER: &[Member<Arc<Block>>] = &[
    Member::new("version", Shape::Integer, |block, _, slot| slot.put(&block.header.version)),
    Member::new("timestamp", Shape::Integer, |block, _, slot| slot.put(&block.header.timestamp)),
    Member::new("height", Shape::Integer, |block, _, slot| slot.put(&block.header.height)),
    Member::new("previousBlockHex", shape::HEX, |block, _, slot| {
        slot.text(block.header.previous.map_or_else(|| "0".repeat(16), BlockId::to_hex));
    }),
    Member::new("previousBlock", shape::BLOCK_ID, |block, _, slot| slot.text(previous(&block.header))),
    Member::new("numberOfTransactions", Shape::Integer, |block, _, slot| {
        slot.put(&block.header.number_of_transactions)
    }),
    Member::new("totalAmount", shape::AMOUNT, |block, _, slot| slot.put(&block.header.total_amount)),
    Member::new("totalFee", shape::AMOUNT, |block, _, slot| slot.put(&block.header.total_fee)),
    Member::new("reward", shape::AMOUNT, |block, _, slot| slot.put(&block.header.reward)),
    Member::new("payloadLength", Shape::Integer, |block, _, slot| slot.put(&block.header.payload_length)),
    Member::new("payloadHash", shape::HASH, |block, _, slot| slot.text(hex::encode(block.header.payload_hash))),
    Member::new("generatorPublicKey", shape::KEY, |block, _, slot| slot.text(block.header.generator)),
    Member::new("blockSignature", shape::HEX, |block, _, slot| slot.text(hex::encode(&block.header.signature))),
    Member::new("idHex", shape::HEX, |block, _, slot| slot.text(block.id_hex())),
    Member::new("id", shape::BLOCK_ID, |block, _, slot| slot.text(block.id)),
];

/// The shape of a block: the API's shape, or its own.
pub const SHAPE: Shape = Shape::Either(&[
    Shape::Resource("Block", |dialect, named| row::of_table(MEMBERS, dialect, named)),
    Shape::Resource("RawBlock", |dialect, named| row::of_table(RAW, dialect, named)),
]);

/// The shape of the first and the last block.
pub const END_SHAPE: Shape =
    Shape::Either(&[Shape::Resource("Block", |dialect, named| row::of_table(MEMBERS, dialect, named)), HEADER_SHAPE]);

/// The shape of a block's header.
pub const HEADER_SHAPE: Shape = Shape::Resource("BlockHeader", |dialect, named| row::of_table(HEADER, dialect, named));

/// Writes a block in the shape asked for.
pub fn write(out: &mut Vec<u8>, link: &BlockRow, frame: &Frame<'_>, transform: bool) {
    write_members(out, if transform { MEMBERS } else { RAW }, link, frame);
}

/// Writes the first or last block in the shape asked for.
pub fn write_end(out: &mut Vec<u8>, entry: &Entry, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, &ConfirmedBlock::of(entry), frame);
    } else {
        write_members(out, HEADER, entry.link().block(), frame);
    }
}

fn header(link: &BlockRow) -> &BlockHeader {
    link.header()
}

/// The id of the block before; `0` for genesis.
fn previous(header: &BlockHeader) -> BlockId {
    header.previous.unwrap_or(BlockId::Numeric(0))
}

/// All that a block moves: amounts, fees and reward. Source: api.md 4.10 row 21.
fn moved(totals: &Totals) -> Balance {
    Balance::from(totals.amount) + totals.fee + totals.reward
}
