//! Resources: each with its members, its filters and its orders, as tables.

pub mod attributes;
pub mod block;
pub mod business;
pub mod delegate;
pub mod fault;
pub mod fee;
pub mod lock;
pub mod peer;
pub mod schema;
pub mod timestamp;
pub mod transaction;
pub mod wallet;
pub mod webhook;
