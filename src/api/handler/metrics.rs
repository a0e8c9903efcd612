//! Figures for Prometheus.

mod collect;
mod process;

use super::{Call, routes::Answer};
use crate::api::Reply;

/// `GET /metrics`.
pub fn metrics(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move { Ok(Reply::metrics(collect::text(call.context).await)) })
}
