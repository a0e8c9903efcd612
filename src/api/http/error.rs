//! The errors of requests, and their answers. Source: api.md 1.2.

use serde::Serialize;
use warp::http::StatusCode;

/// The errors of requests. `Display` is the `message` of the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("Forbidden")]
    Forbidden,
    /// The request is not valid HTTP/1.1.
    #[error("{0}")]
    BadRequest(String),
    /// A token is missing or wrong.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The client may not ask, or not in this way. The message names what is allowed.
    #[error("{0}")]
    Refused(String),
    /// The route does not accept the body's content type.
    #[error("{0}")]
    MediaType(String),
    /// The body did not arrive in time.
    #[error("the body has not arrived within {0} s")]
    Slow(u64),
    /// Too much is being read for all clients together.
    #[error("too much is on its way at once; try again")]
    Busy,
    /// No such path, or no such thing: `Not Found`, `Wallet not found`, …
    #[error("{0}")]
    NotFound(&'static str),
    /// The request breaks a rule; the message says which.
    #[error("{0}")]
    Unprocessable(String),
    /// The current state does not allow the request. The message describes the state.
    #[error("{0}")]
    Conflict(String),
    #[error("Rate limit exceeded")]
    TooMany,
    /// The run has ended.
    #[error("the testnet, or this chain of it, has ended")]
    Stopped,
    /// An internal failure. The cause goes to the log, never to the client.
    #[error("An internal server error occurred")]
    Internal(String),
}

/// The body of every error.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "statusCode")]
    status_code: u16,
    error: &'a str,
    message: &'a str,
}

impl ApiError {
    /// The error for a path without a route.
    pub const NO_ROUTE: Self = Self::NotFound("Not Found");

    /// An error for a request that breaks a rule.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::Unprocessable(message.into())
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden | Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The JSON body.
    pub fn body(&self) -> Vec<u8> {
        let error = self.status().canonical_reason().unwrap_or_default();
        let message = self.to_string();
        let body = Body { status_code: self.status().as_u16(), error, message: &message };
        serde_json::to_vec(&body).expect("texts and numbers become JSON")
    }
}

impl From<crate::sim::live::StoppedError> for ApiError {
    fn from(_: crate::sim::live::StoppedError) -> Self {
        Self::Stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_three_members() {
        let body = String::from_utf8(ApiError::NotFound("Wallet not found").body()).unwrap();
        assert_eq!(body, r#"{"statusCode":404,"error":"Not Found","message":"Wallet not found"}"#);
        let body = String::from_utf8(ApiError::unprocessable("no").body()).unwrap();
        assert_eq!(body, r#"{"statusCode":422,"error":"Unprocessable Entity","message":"no"}"#);
        assert_eq!(ApiError::Internal("a secret".to_owned()).to_string(), "An internal server error occurred");
    }
}
