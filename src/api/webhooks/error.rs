//! The errors of webhooks.

use super::store::StoreError;
use crate::{actors::webhook::TooManyWebhooks, api::http::error::ApiError};
use ractor::SpawnErr;
use std::io;

/// The errors of webhooks.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    TooMany(#[from] TooManyWebhooks),
    #[error("the webhooks cannot be kept: {0}")]
    NotKept(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the webhooks' thread cannot be started: {0}")]
    NoThread(#[from] io::Error),
    #[error("the webhook dispatcher cannot be started: {0}")]
    NotSpawned(#[from] SpawnErr),
}

impl From<WebhookError> for ApiError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::TooMany(why) => Self::Unprocessable(why.to_string()),
            other => Self::Internal(other.to_string()),
        }
    }
}
