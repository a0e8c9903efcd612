//! Delegates, their blocks, their voters, and the delegates of a round. Source: api.md 4.4, 4.9.

use super::{blocks, wallets};
use crate::{
    api::{
        http::ApiError,
        resource::delegate::{self, DelegateRow},
        table::{Call, Member, Outcome, Shape, shape},
    },
    ledger::{Round, round::Member as RoundMember},
    protocol::{Height, PublicKey},
};
use std::sync::Arc;

const NOT_FOUND: ApiError = ApiError::NotFound("Delegate not found");

pub(crate) const ROUND_SHAPE: Shape = Shape::List(&Shape::Table(&ROUND));

const ROUND: &[Member<RoundMember>] = &[
    Member::new("publicKey", shape::KEY, |member, _| member.public_key.into()),
    Member::new("votes", shape::AMOUNT, |member, _| member.vote_balance.into()),
];

/// `GET /api/delegates`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let kind = call.parameters.text("type");
    let ranked = call.head.lists().delegates(call.head.state());
    let of_type = |row: &DelegateRow| kind.is_none_or(|kind| row.is_of_type(kind));
    let mut rows = call.matching(delegate::MEMBERS, ranked.iter().filter_map(DelegateRow::of).filter(of_type));
    if call.parameters.order().is_some() {
        rows.sort_by_key(DelegateRow::registered);
    }
    Ok(call.list_rows(call.ordered(delegate::MEMBERS, rows, None), delegate::MEMBERS))
}

/// `GET /api/delegates/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let row = find(call)?;
    Ok(call.show_row(delegate::MEMBERS, &row))
}

/// `GET /api/delegates/{id}/blocks`.
pub(crate) fn blocks(call: &Call<'_>) -> Outcome {
    Ok(blocks::of_generator(call, &key(&find(call)?)?))
}

/// `GET /api/delegates/{id}/voters`.
pub(crate) fn voters(call: &Call<'_>) -> Outcome {
    Ok(wallets::voting_for(call, &key(&find(call)?)?))
}

/// `GET /api/rounds/{id}/delegates`.
pub(crate) fn of_round(call: &Call<'_>) -> Outcome {
    let round = call.arguments.number("id").and_then(|number| find_round(call, number));
    let round = round.ok_or(ApiError::NotFound("Round not found"))?;
    Ok(call.show_rows(ROUND, &round.members))
}

fn find(call: &Call<'_>) -> Result<DelegateRow, ApiError> {
    call.frame().find_wallet(call.argument("id")).and_then(DelegateRow::of).ok_or(NOT_FOUND)
}

/// The delegate's key. It is known because the delegate has sent its registration.
fn key(row: &DelegateRow) -> Result<PublicKey, ApiError> {
    row.wallet().public_key.ok_or(NOT_FOUND)
}

/// A round up to the running one. The state before a past round's first block determines it.
fn find_round(call: &Call<'_>, number: u32) -> Option<Arc<Round>> {
    let running = call.head.state().round();
    if running.number().0 == number {
        return Some(running.clone());
    }
    let tree = call.context.view.tree();
    // The lowest height whose round is not below the wanted one.
    let (mut low, mut high) = (Height::GENESIS.0, call.head.height().0);
    while low < high {
        let middle = low + (high - low) / 2;
        if tree.schedule().at(Height(middle)).round.0 < number { low = middle + 1 } else { high = middle }
    }
    let before = call.head.block_at(Height(low.saturating_sub(1).max(1)))?;
    let round = tree.round_after(before.link());
    (round.number().0 == number).then_some(round)
}
