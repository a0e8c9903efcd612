//! HTTP below the routes: requests, answers, access control, and limits on the resources that clients use.

pub(crate) mod access;
pub(crate) mod body;
pub(crate) mod error;
pub(crate) mod guard;
pub(crate) mod limits;
pub(crate) mod log;
pub mod proxy;
pub(crate) mod range;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod tally;

pub(crate) use error::ApiError;
pub(crate) use reply::Reply;
