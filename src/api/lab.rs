//! The lab: routes about the whole network, beside the public API of one node.
//!
//! ```text
//!   simulation's thread                             API's threads
//!   BoardObserver ── counts, tips, faults ──► LabBoard ──────► GET /lab, GET /metrics
//!   FeedObserver ─── events, if wanted ─────► EventFeed ─────► GET /lab/events: a Reader for each
//! ```
//!
//! [`Chaos`] stands between a node and its clients. An observer writes and never waits for a reader.

pub(crate) mod board;
pub(crate) mod chains;
pub(crate) mod chaos;
pub(crate) mod cut;
pub(crate) mod faucet;
pub(crate) mod feed;
pub(crate) mod funds;
pub(crate) mod recent_events;
pub(crate) mod stream;
pub(crate) mod submissions;
pub(crate) mod views;

pub use board::LabBoard;
pub use chaos::Chaos;
pub use feed::EventFeed;
pub use submissions::Submissions;
