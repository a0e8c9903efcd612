//! Memory that is fetched before it is needed.
//!
//! With thousands of nodes, waiting for memory takes longer than the work itself. The queue announces an event three times before it
//! is due. While the event is far, the stage's entry for its receiver is fetched. When it is near, the receiver itself is fetched, and
//! when it is next, the memory that the receiver points to. Fetching
//! changes nothing of a run: without [`line()`] every implementation here does nothing, and the digests are the same.
//! `docs/benchmarks.md` reports the gain.

use super::NodeId;
use prefetch_index::prefetch_index;

/// Prefetches the memory that a coming event will need into the processor's cache.
pub(crate) trait Prefetch<What> {
    /// Fetches what `what` will need.
    fn fetch(&self, what: What);
}

/// An input that its receiver will soon hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpcomingInput {
    /// The announcement when the event is near: whether the input is a wake-up or a message.
    Near { is_wake: bool },
    /// The announcement when the event is next, for messages only: the sender's node.
    Next { from: NodeId },
}

/// Fetches the cache line in which an element of a slice begins; nothing where there is no such element.
#[inline]
pub(crate) fn line<T>(all: &[T], index: usize) {
    prefetch_index(all, index);
}

/// Fetches the cache lines in which an element of a slice begins and ends.
#[inline]
pub(crate) fn element<T>(all: &[T], index: usize) {
    line(all, index);
    // The next one begins where it ends.
    line(all, index + 1);
}

/// Fetches the cache line in which a value begins.
#[inline]
pub(crate) fn value<T>(value: &T) {
    line(std::slice::from_ref(value), 0);
}

/// Fetches the cache lines in which a value begins and ends.
#[inline]
pub(crate) fn ends<T>(value: &T) {
    element(std::slice::from_ref(value), 0);
}
