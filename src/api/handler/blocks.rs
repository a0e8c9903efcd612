//! Blocks. Source: api.md 4.5.

use crate::{
    api::{
        http::{ApiError, Reply},
        resource::block::{self, BlockRow},
        table::{Call, Estimate, Listing, Outcome, select, smallest_keys::SmallestKeys},
        view::{Block, ConfirmedBlock, List},
    },
    protocol::{Height, PublicKey},
};
use std::ops::ControlFlow;

const NOT_FOUND: ApiError = ApiError::NotFound("Block not found");

/// `GET /api/blocks`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let listing = match by_height(call) {
        Some(listing) => listing,
        None => search(call, None),
    };
    Ok(reply(call, listing))
}

/// `GET /api/blocks/first`.
pub(crate) fn first(call: &Call<'_>) -> Outcome {
    show_end(call, Height::GENESIS)
}

/// `GET /api/blocks/last`.
pub(crate) fn last(call: &Call<'_>) -> Outcome {
    show_end(call, call.head.height())
}

/// `GET /api/blocks/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let row = find(call, call.argument("id")).ok_or(NOT_FOUND)?;
    Ok(call.show_row(block::table(call.parameters.transform()), &BlockRow::Confirmed(row)))
}

/// The blocks of a generator, for the list of a delegate's blocks.
pub(crate) fn of_generator(call: &Call<'_>, generator: &PublicKey) -> Reply {
    reply(call, search(call, Some(generator)))
}

/// The block on the head's chain that `text` names. A height has precedence over an id.
pub(crate) fn find(call: &Call<'_>, text: &str) -> Option<ConfirmedBlock> {
    let height = text.parse().ok().map(Height).and_then(|height| call.head.chain().block(height));
    height.or_else(|| find_by_id(call, text))
}

/// The block on the head's chain with an id.
pub(crate) fn find_by_id(call: &Call<'_>, text: &str) -> Option<ConfirmedBlock> {
    call.context.view.block(&call.head, &text.parse().ok()?)
}

/// A list in the order of the chain, without filters: its rows are found by their heights.
fn by_height(call: &Call<'_>) -> Option<Listing<BlockRow>> {
    if select::filters(block::RAW, &call.parameters, call.frame().dialect) {
        return None;
    }
    let total = u64::from(call.head.height().0);
    let height_at = |index: u64, descending| if descending { total - index } else { index + 1 };
    match call.parameters.order().unwrap_or(("height", true)) {
        ("height" | "timestamp", descending) => Some(call.page().pick(total, |index| {
            let height = u32::try_from(height_at(index, descending)).ok()?;
            call.head.chain().block(Height(height)).map(BlockRow::Confirmed)
        })),
        _ => None,
    }
}

fn search(call: &Call<'_>, generator: Option<&PublicKey>) -> Listing<BlockRow> {
    let (page, chain, frame) = (call.page(), call.head.chain(), call.frame());
    let marks = Marks::of(call);
    let has_all = |raw| select::has_all(block::RAW, &call.parameters, &raw, &frame);
    // Conditions that need the whole block come last.
    let accepts = |block: &Block<'_>| {
        has_all(BlockRow::Totals(block.totals())).unwrap_or_else(|| {
            let row = marks.may_be_of(block).then(|| block.confirmed(chain)).flatten();
            row.is_some_and(|row| has_all(BlockRow::Confirmed(row)) == Some(true))
        })
    };
    let has_filters = select::filters(block::RAW, &call.parameters, frame.dialect);
    if let (Some(generator), None, false) = (generator, call.parameters.order(), has_filters) {
        let list = chain.listed(List::Forged(*generator));
        let total = list.len();
        let range = page.range(total);
        let spots = list.spots_down(total - range.end..total - range.start).into_iter();
        return listing(call, spots.map(|spot| spot.height).collect(), total);
    }
    let Some((name, descending)) = call.parameters.order() else {
        let (mut total, mut heights) = (0, Vec::new());
        each_candidate(call, generator, |block| {
            if accepts(block) {
                if total >= page.start && heights.len() < page.limit {
                    heights.push(block.height());
                }
                total += 1;
            }
        });
        return listing(call, heights, total);
    };
    // Equal rows are in the order of the chain, in the same direction. A reversed order descends.
    let mut least = SmallestKeys::new(page.end());
    each_candidate(call, generator, |block| {
        if accepts(block) {
            let number = select::number(block::RAW, name, &BlockRow::Totals(block.totals()), &frame).unwrap_or(0);
            let height = block.height().0;
            least.push(if descending { (!number, !height) } else { (number, height) });
        }
    });
    let total = least.pushed();
    let keys = least.range(page.range(total)).into_iter();
    listing(call, keys.map(|(_, height)| Height(if descending { !height } else { height })).collect(), total)
}

fn listing(call: &Call<'_>, heights: Vec<Height>, total: u64) -> Listing<BlockRow> {
    let rows = heights.into_iter().filter_map(|height| call.head.chain().block(height));
    Listing { rows: rows.map(BlockRow::Confirmed).collect(), total, estimate: Estimate::Unsaid }
}

/// The requested payload hash and block signature. The marks of a block on disk rule it out without a read if they
/// differ from these.
struct Marks {
    payload: Option<Vec<u8>>,
    signature: Option<Vec<u8>>,
}

impl Marks {
    fn of(call: &Call<'_>) -> Self {
        // A text that is not hex is the hash of nothing.
        let bytes = |name: &str| call.parameters.text(name).map(|text| hex::decode(text).unwrap_or_default());
        Self { payload: bytes("payloadHash"), signature: bytes("blockSignature") }
    }

    fn may_be_of(&self, block: &Block<'_>) -> bool {
        let Block::Older(summary) = block else { return true };
        self.payload.as_ref().is_none_or(|hash| hash.starts_with(&summary.payload_mark))
            && self.signature.as_ref().is_none_or(|signature| signature.ends_with(&summary.signature_mark))
    }
}

/// Visits a superset of the matching blocks, highest first.
fn each_candidate(call: &Call<'_>, generator: Option<&PublicKey>, mut visit: impl FnMut(&Block<'_>)) {
    let (parameters, chain) = (&call.parameters, call.head.chain());
    let mut at = |height: Height| chain.look_at(height, &mut visit);
    if let Some(generator) = generator {
        return each_forged_by(call, generator, at);
    }
    if let Some(id) = parameters.text("id") {
        find_by_id(call, id).and_then(|row| at(row.height()));
    } else if let Some(height) = parameters.number::<i64>("height") {
        u32::try_from(height).ok().and_then(|height| at(Height(height)));
    } else if let Some(previous) = parameters.text("previousBlock") {
        at(match find_by_id(call, previous) {
            Some(row) => row.height().next(),
            // The genesis block names a previous block that does not exist, so it is the only candidate for an unknown
            // id.
            None => Height::GENESIS,
        });
    } else if let Some(key) = parameters.text("generatorPublicKey") {
        if let Ok(key) = key.parse() {
            each_forged_by(call, &key, at);
        }
    } else {
        chain.blocks_down(|block| {
            visit(block);
            ControlFlow::Continue(())
        });
    }
}

/// Visits a generator's blocks, highest first.
fn each_forged_by(call: &Call<'_>, generator: &PublicKey, mut visit: impl FnMut(Height) -> Option<()>) {
    call.head.chain().listed(List::Forged(*generator)).heights_down(|height| {
        visit(height);
        ControlFlow::Continue(())
    });
}

fn reply(call: &Call<'_>, listing: Listing<BlockRow>) -> Reply {
    call.list_rows(listing.with_estimate(Estimate::WhenFullOrEmpty), block::table(call.parameters.transform()))
}

fn show_end(call: &Call<'_>, height: Height) -> Outcome {
    let entry = call.head.block_at(height).ok_or(NOT_FOUND)?;
    let row = BlockRow::Confirmed(ConfirmedBlock::of(&entry));
    Ok(call.show_row(block::end_table(call.parameters.transform()), &row))
}
