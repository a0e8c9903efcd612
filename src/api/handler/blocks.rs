//! Blocks. Source: api.md 4.5.

use crate::{
    api::{
        http::{error::ApiError, reply::Reply},
        resource::block::{self, BlockRow},
        table::{
            field,
            page::{Estimate, Listing},
            route::Call,
        },
    },
    protocol::{BlockId, Height, PublicKey},
};

const NOT_FOUND: ApiError = ApiError::NotFound("Block not found");

type Outcome = Result<Reply, ApiError>;

/// `GET /api/blocks`.
pub fn list(call: &Call<'_>) -> Outcome {
    let listing = match by_height(call) {
        Some(listing) => listing,
        None => search(call, None),
    };
    Ok(reply(call, listing))
}

/// `GET /api/blocks/first`.
pub fn first(call: &Call<'_>) -> Outcome {
    show_end(call, Height::GENESIS)
}

/// `GET /api/blocks/last`.
pub fn last(call: &Call<'_>) -> Outcome {
    show_end(call, call.head.height())
}

/// `GET /api/blocks/{id}`.
pub fn show(call: &Call<'_>) -> Outcome {
    let row = find(call, call.argument("id")).ok_or(NOT_FOUND)?;
    Ok(call.show(|out, frame| block::write(out, row, frame, call.parameters.transform())))
}

/// The blocks of a generator, for the list of a delegate's blocks.
pub fn of_generator(call: &Call<'_>, generator: &PublicKey) -> Reply {
    reply(call, search(call, Some(generator)))
}

/// The block on the head's chain that a text names, by height before id.
pub fn find<'c>(call: &'c Call<'_>, text: &str) -> Option<&'c BlockRow> {
    let height = text.parse().ok().map(Height).and_then(|height| call.head.block_at(height));
    height.or_else(|| find_by_id(call, text))
}

/// The block on the head's chain with an id.
pub fn find_by_id<'c>(call: &'c Call<'_>, text: &str) -> Option<&'c BlockRow> {
    let id: BlockId = text.parse().ok()?;
    let link = call.context.view.tree().link(&id)?;
    call.head.block_at(link.height()).filter(|entry| entry.link().id() == id)
}

/// A list in the order of the chain, without filters: its rows are found by their heights.
fn by_height(call: &Call<'_>) -> Option<Listing<BlockRow>> {
    if field::filters(block::FIELDS, &call.parameters, call.frame().dialect) {
        return None;
    }
    let total = u64::from(call.head.height().0);
    let height_at = |index: u64, descending| if descending { total - index } else { index + 1 };
    match call.parameters.order().unwrap_or(("height", true)) {
        ("height" | "timestamp", descending) => Some(call.page().pick(total, |index| {
            let height = u32::try_from(height_at(index, descending)).ok()?;
            call.head.block_at(Height(height)).cloned()
        })),
        _ => None,
    }
}

fn search(call: &Call<'_>, generator: Option<&PublicKey>) -> Listing<BlockRow> {
    let frame = call.frame();
    let mut rows = candidates(call, generator);
    rows.retain(|link| field::matches(block::FIELDS, &call.parameters, link, &frame));
    if let Some((name, descending)) = call.parameters.order() {
        // Equal rows keep the order of the chain, in the same direction.
        if !descending {
            rows.reverse();
        }
        rows = field::sort(block::FIELDS, (name, descending), rows, &frame);
    }
    call.page().cut(rows)
}

/// The blocks among which all that match are, highest first.
fn candidates(call: &Call<'_>, generator: Option<&PublicKey>) -> Vec<BlockRow> {
    let parameters = &call.parameters;
    if let Some(generator) = generator {
        return forged_by(call, generator);
    }
    if let Some(id) = parameters.text("id") {
        return find_by_id(call, id).into_iter().cloned().collect();
    }
    if let Some(height) = parameters.integer("height") {
        let row = u32::try_from(height).ok().and_then(|height| call.head.block_at(Height(height)));
        return row.into_iter().cloned().collect();
    }
    if let Some(previous) = parameters.text("previousBlock") {
        let height = match find_by_id(call, previous) {
            Some(row) => row.height().next(),
            // What is before genesis has an id, but is no block; what is unknown comes before nothing.
            None => Height::GENESIS,
        };
        return call.head.block_at(height).into_iter().cloned().collect();
    }
    match parameters.text("generatorPublicKey").map(str::parse::<PublicKey>) {
        Some(Ok(key)) => forged_by(call, &key),
        Some(Err(_)) => Vec::new(),
        None => call.head.chain().blocks().iter().rev().cloned().collect(),
    }
}

/// A generator's blocks, highest first.
fn forged_by(call: &Call<'_>, generator: &PublicKey) -> Vec<BlockRow> {
    let heights = call.head.chain().forged_by(generator).into_iter().flatten().rev();
    heights.filter_map(|height| call.head.block_at(*height).cloned()).collect()
}

fn reply(call: &Call<'_>, listing: Listing<BlockRow>) -> Reply {
    let transform = call.parameters.transform();
    call.list(listing.with_estimate(Estimate::WhenFullOrEmpty), |out, link, frame| {
        block::write(out, link, frame, transform)
    })
}

fn show_end(call: &Call<'_>, height: Height) -> Outcome {
    let row = call.head.block_at(height).ok_or(NOT_FOUND)?;
    Ok(call.show(|out, frame| block::write_end(out, row, frame, call.parameters.transform())))
}
