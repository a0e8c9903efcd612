//! All inputs of the run so far, as a file that a replay reads.

use crate::api::{
    http::{ApiError, Reply},
    table::{Call, Outcome},
};

/// `GET /lab/recording`: the file that `dposlab replay` reads.
pub(crate) async fn recording(call: Call<'_>) -> Outcome {
    let Some(write) = call.context.recording.clone() else { return Err(ApiError::NO_ROUTE) };
    // `look` runs between two events, so that the digest covers all delivered inputs.
    let look = move |stage: &crate::sim::Stage| write(stage.world().now(), stage.world().delivered());
    let write = call.context.live.look(look).await??;
    let file = tokio::task::spawn_blocking(write).await;
    Ok(Reply::file("recording", file.map_err(|why| ApiError::Internal(why.to_string()))??))
}
