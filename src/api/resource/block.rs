//! Blocks. Source: api.md 3, 4.1, 4.5.

use super::timestamp;
use crate::{
    api::{
        table::{
            Bound, Dialect, Member, Parameter, Shape, both,
            field::Cell,
            parameter::{BLOCK_ID, FROM_ZERO, HEX, PUBLIC_KEY},
            row, shape,
        },
        view::{ConfirmedBlock, Totals},
    },
    ledger::Balance,
    protocol::{Address, Block, BlockHeader, BlockId},
};
use std::sync::Arc;

/// The order of a list.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(RAW, &[
    "height", "numberOfTransactions", "reward", "timestamp", "totalAmount", "totalFee", "version",
]);

/// The parameters that lists of blocks take.
#[rustfmt::skip]
pub(crate) const FILTERS: &[Parameter] = &row::filters(RAW, [
    "id", "version", "timestamp", "previousBlock", "height", "numberOfTransactions", "totalAmount", "totalFee", "reward",
    "payloadLength", "payloadHash", "generatorPublicKey", "blockSignature",
]);

/// The parameters that the search takes in its body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(RAW, [
    "id", "version", "previousBlock", "payloadHash", "generatorPublicKey", "blockSignature", "timestamp", "height",
    "numberOfTransactions", "totalAmount", "totalFee", "reward", "payloadLength",
]);

/// The parameters that the list of a delegate's blocks takes. Here the reference checks all filters, so both dialects
/// have them.
pub(crate) const OF_DELEGATE: &[Parameter] = &{
    let (mut filters, mut at) = ([FILTERS[0]; FILTERS.len()], 0);
    while at < FILTERS.len() {
        filters[at] = both(FILTERS[at].name, FILTERS[at].rule);
        at += 1;
    }
    filters
};

/// A block by id or height, as a path has it.
pub(crate) const PATH_ID: &[Parameter] = &[both("id", BLOCK_ID)];

/// A block from which its members are computed.
pub(crate) enum BlockRow {
    /// A block in memory.
    Whole(Arc<Block>),
    /// A block on a chain.
    Confirmed(ConfirmedBlock),
    /// The numbers of the header alone. Other members are [`Cell::Elsewhere`].
    Totals(Totals),
}

impl BlockRow {
    /// The numbers of the header.
    pub fn totals(&self) -> Totals {
        match self {
            Self::Whole(block) => Totals::of(&block.header),
            Self::Confirmed(block) => Totals::of(block.header()),
            Self::Totals(totals) => *totals,
        }
    }

    /// The address of its generator, where that is at hand.
    fn generator(&self) -> Option<Address> {
        match self {
            Self::Confirmed(block) => Some(block.generator()),
            Self::Whole(_) | Self::Totals(_) => None,
        }
    }

    fn tell<'r>(&'r self, of: impl FnOnce(BlockId, &'r BlockHeader) -> Cell<'r>) -> Cell<'r> {
        match self {
            Self::Whole(block) => of(block.id, &block.header),
            Self::Confirmed(block) => of(block.id(), block.header()),
            Self::Totals(_) => Cell::Elsewhere,
        }
    }
}

type Row = Member<BlockRow>;

pub(crate) const ID: Row = Row::new("id", shape::BLOCK_ID, |raw, _| raw.tell(|id, _| id.into())).asked(BLOCK_ID);
pub(crate) const HEIGHT: Row =
    Row::new("height", Shape::Integer, |raw, _| raw.totals().height.into()).within(Bound::Positive);
const VERSION: Row = Row::new("version", Shape::Integer, |raw, _| raw.totals().version.into()).asked(FROM_ZERO);
const TIMESTAMP: Row = Row::new("timestamp", Shape::Integer, |raw, _| raw.totals().timestamp.into()).ranged();
const PREVIOUS: Row =
    Row::new("previousBlock", shape::BLOCK_ID, |raw, _| raw.tell(|_, header| previous(header).into())).asked(BLOCK_ID);
const TRANSACTIONS: Row =
    Row::new("numberOfTransactions", Shape::Integer, |raw, _| raw.totals().transactions.into()).ranged();
/// The published specification filters by the sum of amounts, fees and reward. Source: api.md 4.10 row 21.
const AMOUNT: Row = Row::new("totalAmount", shape::AMOUNT, |raw, frame| {
    let totals = raw.totals();
    match frame.dialect {
        Dialect::Documented => (Balance::from(totals.amount) + totals.fee + totals.reward).into(),
        Dialect::Core26 => totals.amount.into(),
    }
})
.written(|raw, _, slot| slot.put(&raw.totals().amount))
.ranged();
const FEE: Row = Row::new("totalFee", shape::AMOUNT, |raw, _| raw.totals().fee.into()).ranged();
const REWARD: Row = Row::new("reward", shape::AMOUNT, |raw, _| raw.totals().reward.into()).ranged();
const LENGTH: Row =
    Row::new("payloadLength", Shape::Integer, |raw, _| raw.totals().payload_length.into()).ranged().if_documented();
const PAYLOAD: Row = Row::new("payloadHash", shape::HASH, |raw, _| raw.tell(|_, header| (&header.payload_hash).into()))
    .asked(HEX)
    .if_documented();
const GENERATOR: Row =
    Row::new("generatorPublicKey", shape::KEY, |raw, _| raw.tell(|_, header| header.generator.into()))
        .asked(PUBLIC_KEY);
const SIGNATURE: Row =
    Row::new("blockSignature", shape::HEX, |raw, _| raw.tell(|_, header| (&*header.signature).into()))
        .asked(HEX)
        .if_documented();
const PREVIOUS_HEX: Row = Row::new("previousBlockHex", shape::HEX, |raw, _| {
    raw.tell(|_, header| header.previous.map_or_else(|| "0".repeat(16), BlockId::to_hex).into())
});
const ID_HEX: Row = Row::new("idHex", shape::HEX, |raw, _| raw.tell(|id, _| id.to_hex().into()));

/// The members of a block's own shape, as lists and single blocks have it.
#[rustfmt::skip]
pub(crate) const RAW: &[Row] = &[
    ID, VERSION, TIMESTAMP, PREVIOUS, HEIGHT, TRANSACTIONS, AMOUNT, FEE, REWARD, LENGTH, PAYLOAD, GENERATOR, SIGNATURE,
];

/// The members of a block's header with both forms of its ids, as the first and last block and a delegate's last one have
/// them.
#[rustfmt::skip]
pub(crate) const HEADER: &[Row] = &[
    VERSION, TIMESTAMP, HEIGHT, PREVIOUS_HEX, PREVIOUS, TRANSACTIONS, AMOUNT, FEE, REWARD, LENGTH, PAYLOAD, GENERATOR,
    SIGNATURE, ID_HEX, ID,
];

/// The members of the API's shape.
const MEMBERS: &[Row] = &[
    ID,
    VERSION,
    HEIGHT,
    PREVIOUS.named("previous"),
    Row::nested("forged", &[REWARD, FEE.named("fee"), TOTAL, AMOUNT.named("amount")]),
    Row::nested("payload", &[PAYLOAD.named("hash"), LENGTH.named("length")]),
    Row::nested("generator", &[USERNAME, ADDRESS, GENERATOR.named("publicKey")]),
    SIGNATURE.named("signature"),
    Row::new("confirmations", Shape::Integer, |raw, frame| frame.blocks_above(raw.totals().height).into()),
    TRANSACTIONS.named("transactions"),
    INSTANT,
];
/// The timestamp in the API's shape.
pub(crate) const INSTANT: Row = Row::by("timestamp", timestamp::SHAPE, |raw, frame, slot| {
    timestamp::write(slot, frame, raw.totals().timestamp);
});
const TOTAL: Row = Row::new("total", shape::AMOUNT, |raw, _| {
    let totals = raw.totals();
    (Balance::from(totals.reward) + totals.fee).into()
});
const USERNAME: Row = Row::some("username", Shape::Text, |raw, frame| {
    let wallet = raw.generator().and_then(|address| frame.state().wallet(&address));
    wallet.and_then(|wallet| wallet.username()).into()
});
const ADDRESS: Row = Row::new("address", shape::ADDRESS, |raw, _| raw.generator().into());

/// The shape of a block: the API's shape, or its own.
pub(crate) const SHAPE: Shape = Shape::Either(&[Shape::Resource("Block", &MEMBERS), Shape::Resource("RawBlock", &RAW)]);

/// The shape of the first and the last block.
pub(crate) const END_SHAPE: Shape = Shape::Either(&[Shape::Resource("Block", &MEMBERS), HEADER_SHAPE]);

/// The shape of a block's header.
pub(crate) const HEADER_SHAPE: Shape = Shape::Resource("BlockHeader", &HEADER);

/// The table of the shape asked for.
pub(crate) fn table(transform: bool) -> &'static [Row] {
    if transform { MEMBERS } else { RAW }
}

/// The table of the shape asked for of the first or last block.
pub(crate) fn end_table(transform: bool) -> &'static [Row] {
    if transform { MEMBERS } else { HEADER }
}

/// The id of the block before; `0` for genesis.
fn previous(header: &BlockHeader) -> BlockId {
    header.previous.unwrap_or(BlockId::Numeric(0))
}
