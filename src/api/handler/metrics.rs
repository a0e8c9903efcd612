//! Figures for Prometheus.

use super::Call;
use crate::api::{Reply, metrics, route::Answer};

/// `GET /metrics`.
pub fn metrics(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move { Ok(Reply::metrics(metrics::text(call.context).await)) })
}
