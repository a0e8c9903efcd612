//! A node's behaviour: forks and how it leaves them, sync, pushed blocks, peers, and the delegate's dealings with its relay.
//! Source: consensus.md 2, 3, 6, 7.2, 8.

mod branches;
mod cluster;
mod deadlines;
mod delegate;
mod forks;
mod laws;
mod peers;
mod pushed;
mod sync;
mod timeouts;
