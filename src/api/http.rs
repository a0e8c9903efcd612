//! HTTP without routes: what a request and an answer are, who may ask, and how much clients may hold of the server.

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
