//! Figures of a running testnet for Prometheus, as OpenMetrics text. docs/metrics.md describes each figure, and a test
//! compares that page with the served text.
//!
//! Only requests are counted when they are answered. All other figures are read when a client asks for them.

mod collect;
mod process;

use crate::api::{
    http::Reply,
    table::{Call, Outcome},
};

/// `GET /metrics`.
pub(crate) async fn metrics(call: Call<'_>) -> Outcome {
    Ok(Reply::metrics(collect::text(call.context).await))
}
