//! The state that observers, the actor and the lanes of one node share.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The shared state: a flag that an enabled webhook exists, the number of events on their way, and counts.
#[derive(Default)]
pub(crate) struct Inbox {
    pub is_wanted: AtomicBool,
    pub waiting: AtomicU64,
    /// The number of dropped events: too many were on their way.
    pub overlooked: AtomicU64,
    /// The numbers of posts of all webhooks, including deleted ones: accepted by the receiver, not accepted, and never
    /// sent.
    pub delivered: AtomicU64,
    pub failed: AtomicU64,
    pub dropped: AtomicU64,
}
