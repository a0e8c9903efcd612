//! The handlers: plain functions from a checked request and one head to an answer, and the table of routes that names them.

pub mod blocks;
pub mod businesses;
pub mod chains;
pub mod chaos;
pub mod delegates;
pub mod docs;
pub mod faults;
pub mod fees;
pub mod forks;
pub mod home;
pub mod lab;
pub mod locks;
pub mod metrics;
pub mod node;
pub mod peers;
pub mod recording;
pub mod reorg;
pub mod routes;
pub mod snapshots;
pub mod submit;
pub mod transactions;
pub mod types;
pub mod votes;
pub mod wallets;
pub mod watch;
pub mod webhooks;
