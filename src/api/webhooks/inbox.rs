//! The state that observers, the actor and the lanes of one node share.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state that observers and the actor share: whether anybody asks for events, and how many are on their way.
#[derive(Default)]
pub struct Inbox {
    pub is_wanted: AtomicBool,
    pub waiting: AtomicU64,
    /// The number of dropped events: too many were on their way.
    pub overlooked: AtomicU64,
    /// Posts of all webhooks, those that were deleted included: taken, not taken, and never sent.
    pub delivered: AtomicU64,
    pub failed: AtomicU64,
    pub dropped: AtomicU64,
}
