//! Peers. The nodes of a simulated network have no addresses that a client could call, so none is listed yet.
//! Source: api.md 8.

use super::Call;
use crate::api::{ApiError, Reply, page::Listing};

/// `GET /api/peers`.
pub fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    Ok(call.list(Listing::<()>::empty(), |_, (), _| {}))
}

/// `GET /api/peers/{ip}`.
pub fn show(_: &Call<'_>) -> Result<Reply, ApiError> {
    Err(ApiError::NotFound("Peer not found"))
}
