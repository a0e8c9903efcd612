//! All that came into the run so far, as a file that repeats it.

use crate::api::{
    http::{ApiError, Reply},
    table::{Call, Outcome},
};

/// `GET /lab/recording`: what `dposlab replay` reads.
pub async fn recording(call: Call<'_>) -> Outcome {
    let Some(write) = call.context.recording.clone() else { return Err(ApiError::NO_ROUTE) };
    // Between two events, so that the digest is of all that was delivered.
    let look = move |stage: &crate::sim::Stage| write(stage.world().now(), stage.world().delivered());
    let write = call.context.live.look(look).await??;
    let file = tokio::task::spawn_blocking(write).await;
    Ok(Reply::file("recording", file.map_err(|why| ApiError::Internal(why.to_string()))??))
}
