//! Transactions, confirmed and pending. Source: api.md 4.2, 4.6.

pub(crate) mod search;

use super::blocks;
use crate::{
    api::{
        Dialect,
        http::{ApiError, Reply},
        resource::transaction::{self, TransactionRow},
        table::{Call, Estimate, Listing, Outcome},
        view::ConfirmedTransaction,
    },
    ledger::Scratch,
    protocol::{SignedTransaction, TransactionId},
    sim::Intervention,
};
use search::{Scope, Search};
use std::sync::Arc;

const NOT_FOUND: ApiError = ApiError::NotFound("Transaction not found");

/// `GET /api/transactions`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    Ok(list_in(call, Scope::default()))
}

/// `GET /api/blocks/{id}/transactions`.
pub(crate) fn of_block(call: &Call<'_>) -> Outcome {
    let block = blocks::find(call, call.argument("id")).and_then(|block| call.head.block_at(block.height()));
    let block = Some(block.ok_or(ApiError::NotFound("Block not found"))?);
    Ok(list_in(call, Scope { block, ..Scope::default() }))
}

/// `GET /api/transactions/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let place = find(call).ok_or(NOT_FOUND)?;
    Ok(show_row(call, &TransactionRow::confirmed(place)))
}

/// `GET /api/transactions/unconfirmed`. In the dialect `core-2.6` it first drops the pending transactions that cannot be applied
/// any more, as a real node does.
pub(crate) async fn unconfirmed(mut call: Call<'_>) -> Outcome {
    let context = call.context;
    if context.settings.dialect == Dialect::Core26 {
        let ids = not_applicable(&call);
        if !ids.is_empty() {
            let drop = Intervention::DropPending { ids: ids.into(), node: Some(context.view.node()) };
            // The pools of a run that has ended and of a view of the past do not change.
            let _ended = context.live.intervene(drop).await;
            call.head = context.view.head();
        }
    }
    let pending = call.head.pending().ordered();
    let row = |index: u64| pending.get(usize::try_from(index).ok()?).cloned();
    let listing = call.page().pick(pending.len() as u64, row);
    let transform = call.parameters.transform();
    Ok(call.list(listing, |out, pending: &Arc<SignedTransaction>, frame| {
        transaction::write(out, &TransactionRow::pending(pending.clone()), frame, transform);
    }))
}

/// The pending transactions that cannot be applied on top of the chain and of those before them.
fn not_applicable(call: &Call<'_>) -> Vec<TransactionId> {
    let (tree, head) = (call.context.view.tree(), &call.head);
    let (terms, now) = (tree.terms(head.height()), call.context.view.now().seconds());
    let mut scratch = Scratch::new(head.state(), &tree.rules().pool);
    let pending = head.pending().ordered();
    pending.iter().filter(|one| scratch.try_apply(one, now, &terms).is_err()).map(|one| one.id()).collect()
}

/// `GET /api/transactions/unconfirmed/{id}`.
pub(crate) fn show_unconfirmed(call: &Call<'_>) -> Outcome {
    let id = call.argument("id").parse().map_err(|_| NOT_FOUND)?;
    let pending = call.head.pending().get(&id).ok_or(NOT_FOUND)?;
    Ok(show_row(call, &TransactionRow::pending(pending.clone())))
}

/// The confirmed transaction that the path names.
pub(crate) fn find(call: &Call<'_>) -> Option<ConfirmedTransaction> {
    let id: TransactionId = call.argument("id").parse().ok()?;
    call.context.view.place(&call.head, &id)
}

/// One transaction in the shape asked for.
pub(crate) fn show_row(call: &Call<'_>, row: &TransactionRow) -> Reply {
    call.show(|out, frame| transaction::write(out, row, frame, call.parameters.transform()))
}

/// The confirmed transactions of a scope that pass the query's filters.
pub(crate) fn list_in(call: &Call<'_>, scope: Scope) -> Reply {
    let listing = match Search::new(call, scope) {
        Some(search) => search.run().with_estimate(Estimate::WhenFullOrEmpty),
        None => Listing::empty(),
    };
    let transform = call.parameters.transform();
    call.list(listing, |out, row, frame| transaction::write(out, row, frame, transform))
}
