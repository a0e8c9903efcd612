//! Open locks, and the claims and refunds that closed the others. Source: api.md 4.7.

use super::wallets;
use crate::{
    api::{
        http::ApiError,
        resource::{
            lock::{self, LockRow},
            transaction::{self, TransactionRow},
        },
        table::{Call, Dialect, Estimate, Listing, Outcome},
    },
    ledger::Wallet,
    protocol::{PublicKey, TransactionId},
};
use std::sync::Arc;

/// `GET /api/locks`, and searches.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    Ok(call.list_rows(search(call, candidates(call).into_iter()), lock::MEMBERS))
}

/// `GET /api/locks/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let row = by_id(call, call.argument("id")).ok_or(ApiError::NotFound("Lock not found"))?;
    Ok(call.show_row(lock::MEMBERS, &row))
}

/// `GET /api/wallets/{id}/locks`.
pub(crate) fn of_wallet(call: &Call<'_>) -> Outcome {
    let owner = wallets::find(call)?;
    let listing = search(call, LockRow::all_of(owner));
    let estimate = match call.frame().dialect {
        Dialect::Documented => Estimate::No,
        Dialect::Core26 => Estimate::Unsaid,
    };
    Ok(call.list_rows(listing.with_estimate(estimate), lock::MEMBERS))
}

/// Claims and refunds of locks, in the order of the chain.
pub(crate) fn unlocked(call: &Call<'_>) -> Outcome {
    let mut rows: Vec<TransactionRow> = Vec::new();
    for id in call.parameters.texts("ids").unwrap_or_default() {
        let id: Option<TransactionId> = id.parse().ok();
        let place = id.and_then(|id| call.head.chain().unlock(&id));
        rows.extend(place.map(TransactionRow::confirmed));
    }
    rows.sort_by_key(|row| {
        let (index, height) = row.sequence();
        (height, index)
    });
    Ok(call.list(call.page().cut(rows), |out, row, frame| transaction::write(out, row, frame, true)))
}

fn search(call: &Call<'_>, rows: impl Iterator<Item = LockRow>) -> Listing<LockRow> {
    call.ordered(lock::MEMBERS, call.matching(lock::MEMBERS, rows), None)
}

/// A superset of the matching locks, ascending by id.
fn candidates(call: &Call<'_>) -> Vec<LockRow> {
    let state = call.head.state();
    if let Some(id) = call.parameters.text("lockId") {
        return by_id(call, id).into_iter().collect();
    }
    if let Some(key) = call.parameters.text("senderPublicKey") {
        let owner = key.parse().ok().and_then(|key: PublicKey| state.wallet(&call.frame().address(&key)));
        return owner.map(|owner| LockRow::all_of(owner).collect()).unwrap_or_default();
    }
    let owners = state.locks().filter_map(|(id, owner)| Some((id, state.wallet(owner)?)));
    owners.filter_map(|(id, owner): (_, &Arc<Wallet>)| LockRow::of(owner, id)).collect()
}

fn by_id(call: &Call<'_>, text: &str) -> Option<LockRow> {
    let id: TransactionId = text.parse().ok()?;
    // The owner is the sender of the transaction that made the lock.
    let place = call.context.view.place(&call.head, &id)?;
    LockRow::of(call.head.state().wallet(&place.transaction().sender_address())?, &id)
}
