//! Blocks. Source: api.md 3, 4.1, 4.5.

use super::{Frame, timestamp};
use crate::{
    api::{
        context::Spoken,
        field::{Cell, Field},
        json::{Member, write_members},
        parameter::{ANY_TEXT, BLOCK_ID, FROM_ONE, FROM_ZERO, HEX, PUBLIC_KEY, Parameter, RANGE, both, documented},
        rule::{Bound, Rule},
    },
    ledger::{Balance, Link},
    protocol::{Block, BlockHeader, BlockId},
};
use std::sync::Arc;

/// What `orderBy` takes.
pub const ORDERS: &[&str] =
    &["height", "numberOfTransactions", "reward", "timestamp", "totalAmount", "totalFee", "version"];

/// What lists of blocks take.
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

/// What the search takes in its query beside paging and `transform`.
pub const ORDERED: &[Parameter] = &[documented("orderBy", Rule::Order(ORDERS))];

/// What the search takes in its body.
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

/// What the list of a delegate's blocks takes: the reference checks all filters here.
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
pub type BlockRow = Arc<Link>;

/// What blocks are filtered and ordered by.
pub const FIELDS: &[Field<BlockRow>] = &[
    Field::new("id", |link, _| Cell::shown(link.id())),
    Field::new("version", |link, _| Cell::number(header(link).version)),
    Field::new("timestamp", |link, _| Cell::number(header(link).timestamp.0)),
    Field::new("previousBlock", |link, _| Cell::shown(previous(header(link)))),
    Field::new("height", |link, _| Cell::number(header(link).height.0)),
    Field::new("numberOfTransactions", |link, _| Cell::number(header(link).number_of_transactions)),
    Field::only("totalAmount", Spoken::DOCUMENTED, |link, _| Cell::number(moved(header(link)).0)),
    Field::only("totalAmount", Spoken::CORE26, |link, _| Cell::number(header(link).total_amount.value())),
    Field::new("totalFee", |link, _| Cell::number(header(link).total_fee.value())),
    Field::new("reward", |link, _| Cell::number(header(link).reward.value())),
    Field::new("payloadLength", |link, _| Cell::number(header(link).payload_length)),
    Field::hex("payloadHash", |link, _| Cell::shown(hex::encode(header(link).payload_hash))),
    Field::hex("generatorPublicKey", |link, _| Cell::shown(header(link).generator)),
    Field::hex("blockSignature", |link, _| Cell::shown(hex::encode(&header(link).signature))),
];

/// The shape of the API.
const MEMBERS: &[Member<BlockRow>] = &[
    Member::new("id", |link, _, slot| slot.text(link.id())),
    Member::new("version", |link, _, slot| slot.put(&header(link).version)),
    Member::new("height", |link, _, slot| slot.put(&header(link).height)),
    Member::new("previous", |link, _, slot| slot.text(previous(header(link)))),
    Member::new("forged", |link, _, slot| {
        let header = header(link);
        slot.object(|forged| {
            forged.slot("reward").put(&header.reward);
            forged.slot("fee").put(&header.total_fee);
            forged.slot("total").text(Balance::from(header.reward) + header.total_fee);
            forged.slot("amount").put(&header.total_amount);
        });
    }),
    Member::new("payload", |link, _, slot| {
        slot.object(|payload| {
            payload.slot("hash").text(hex::encode(header(link).payload_hash));
            payload.slot("length").put(&header(link).payload_length);
        });
    }),
    Member::new("generator", |link, frame, slot| {
        let key = header(link).generator;
        let address = frame.address(&key);
        slot.object(|generator| {
            let wallet = frame.state().wallet(&address);
            generator.slot("username").put_some(wallet.and_then(|wallet| wallet.username()));
            generator.slot("address").text(address);
            generator.slot("publicKey").text(key);
        });
    }),
    Member::new("signature", |link, _, slot| slot.text(hex::encode(&header(link).signature))),
    Member::new("confirmations", |link, frame, slot| slot.put(&frame.blocks_above(link.height()))),
    Member::new("transactions", |link, _, slot| slot.put(&header(link).number_of_transactions)),
    Member::new("timestamp", |link, frame, slot| {
        timestamp::write(slot, &frame.view.tree().slots(), header(link).timestamp);
    }),
];

/// The block's own shape, as lists and single blocks have it.
const RAW: &[Member<BlockRow>] = &[
    Member::new("id", |link, _, slot| slot.text(link.id())),
    Member::new("version", |link, _, slot| slot.put(&header(link).version)),
    Member::new("timestamp", |link, _, slot| slot.put(&header(link).timestamp)),
    Member::new("previousBlock", |link, _, slot| slot.text(previous(header(link)))),
    Member::new("height", |link, _, slot| slot.put(&header(link).height)),
    Member::new("numberOfTransactions", |link, _, slot| slot.put(&header(link).number_of_transactions)),
    Member::new("totalAmount", |link, _, slot| slot.put(&header(link).total_amount)),
    Member::new("totalFee", |link, _, slot| slot.put(&header(link).total_fee)),
    Member::new("reward", |link, _, slot| slot.put(&header(link).reward)),
    Member::new("payloadLength", |link, _, slot| slot.put(&header(link).payload_length)),
    Member::new("payloadHash", |link, _, slot| slot.text(hex::encode(header(link).payload_hash))),
    Member::new("generatorPublicKey", |link, _, slot| slot.text(header(link).generator)),
    Member::new("blockSignature", |link, _, slot| slot.text(hex::encode(&header(link).signature))),
];

/// The block's header with both forms of its ids, as the first and last block and a delegate's last one have it.
pub const HEADER: &[Member<Arc<Block>>] = &[
    Member::new("version", |block, _, slot| slot.put(&block.header.version)),
    Member::new("timestamp", |block, _, slot| slot.put(&block.header.timestamp)),
    Member::new("height", |block, _, slot| slot.put(&block.header.height)),
    Member::new("previousBlockHex", |block, _, slot| {
        slot.text(block.header.previous.map_or_else(|| "0".repeat(16), BlockId::to_hex));
    }),
    Member::new("previousBlock", |block, _, slot| slot.text(previous(&block.header))),
    Member::new("numberOfTransactions", |block, _, slot| slot.put(&block.header.number_of_transactions)),
    Member::new("totalAmount", |block, _, slot| slot.put(&block.header.total_amount)),
    Member::new("totalFee", |block, _, slot| slot.put(&block.header.total_fee)),
    Member::new("reward", |block, _, slot| slot.put(&block.header.reward)),
    Member::new("payloadLength", |block, _, slot| slot.put(&block.header.payload_length)),
    Member::new("payloadHash", |block, _, slot| slot.text(hex::encode(block.header.payload_hash))),
    Member::new("generatorPublicKey", |block, _, slot| slot.text(block.header.generator)),
    Member::new("blockSignature", |block, _, slot| slot.text(hex::encode(&block.header.signature))),
    Member::new("idHex", |block, _, slot| slot.text(block.id_hex())),
    Member::new("id", |block, _, slot| slot.text(block.id)),
];

/// Writes a block in the shape asked for.
pub fn write(out: &mut Vec<u8>, link: &BlockRow, frame: &Frame<'_>, transform: bool) {
    write_members(out, if transform { MEMBERS } else { RAW }, link, frame);
}

/// Writes the first or last block in the shape asked for.
pub fn write_end(out: &mut Vec<u8>, link: &BlockRow, frame: &Frame<'_>, transform: bool) {
    if transform {
        write_members(out, MEMBERS, link, frame);
    } else {
        write_members(out, HEADER, link.block(), frame);
    }
}

fn header(link: &BlockRow) -> &BlockHeader {
    &link.block().header
}

/// The id of the block before; `0` for genesis.
fn previous(header: &BlockHeader) -> BlockId {
    header.previous.unwrap_or(BlockId::Numeric(0))
}

/// All that a block moves: amounts, fees and reward. Source: api.md 4.10, 21.
fn moved(header: &BlockHeader) -> Balance {
    Balance::from(header.total_amount) + header.total_fee + header.reward
}
