//! Resources: each with its members, its filters and its orders, as tables.

pub(crate) mod attributes;
pub(crate) mod block;
pub(crate) mod business;
pub(crate) mod delegate;
pub(crate) mod fault;
pub(crate) mod fee;
pub(crate) mod lock;
pub(crate) mod peer;
pub(crate) mod schema;
pub(crate) mod timestamp;
pub(crate) mod transaction;
pub(crate) mod wallet;
pub(crate) mod webhook;
