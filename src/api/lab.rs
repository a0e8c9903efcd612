//! The lab: routes about the whole network, beside the public API of one node.
//!
//! ```text
//!   simulation's thread                             API's threads
//!   BoardObserver ── counts, tips, faults ──► LabBoard ──────► GET /lab, GET /metrics
//!   FeedObserver ─── events, if wanted ─────► EventFeed ─────► GET /lab/events: a Reader for each
//! ```
//!
//! [`Chaos`] stands between a node and its clients. An observer writes and never waits for a reader.

pub mod board;
pub mod chains;
pub mod chaos;
pub mod cut;
pub mod faucet;
pub mod feed;
pub mod funds;
pub mod recent_events;
pub mod stream;
pub mod submissions;
pub mod views;

pub use board::{BoardState, Counts, FaultInForce, LabBoard};
pub use chaos::Chaos;
pub use feed::EventFeed;
pub use stream::Subscription;
pub use submissions::Submissions;
