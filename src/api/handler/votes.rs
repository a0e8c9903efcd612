//! Votes: transactions of their type. Source: api.md 4.6.

use super::transactions::{self, search::Scope};
use crate::{
    api::{
        http::ApiError,
        resource::transaction::TransactionRow,
        table::{Call, Outcome},
    },
    protocol::transaction::Kind,
};

/// `GET /api/votes`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    Ok(transactions::list_in(call, Scope { kind: Some(Kind::Vote), ..Scope::default() }))
}

/// `GET /api/votes/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let place = transactions::find(call).filter(|place| place.transaction().kind() == Kind::Vote);
    let place = place.ok_or(ApiError::NotFound("Vote not found"))?;
    Ok(transactions::show_row(call, &TransactionRow::confirmed(place)))
}
