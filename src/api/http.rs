//! HTTP below the routes: requests, answers, access control, and limits on the resources that clients use.

pub mod access;
pub mod body;
pub mod error;
pub mod guard;
pub mod limits;
pub mod log;
pub mod proxy;
pub mod range;
pub mod reply;
pub mod request;
pub mod tally;

pub use error::ApiError;
pub use reply::Reply;
