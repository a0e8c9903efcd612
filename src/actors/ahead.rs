//! Memory that is fetched before it is needed.
//!
//! With thousands of nodes, waiting for memory takes longer than the work itself. The queue announces an event three times before it
//! is due: while it is far, what says where the receiver lies is fetched; when it is near, what holds the receiver; when it is next,
//! what the receiver leads to. Fetching
//! changes nothing of a run: without [`line()`] every implementation here does nothing, and the digests are the same.
//! `docs/benchmarks.md` says what it gains.

use super::NodeId;
use prefetch_index::prefetch_index;

/// Has the processor fetch the memory that something to come will need.
pub trait Ahead<What> {
    /// Fetches what `what` will need.
    fn fetch(&self, what: What);
}

/// An input that its receiver will soon hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// First: a message, or a wake-up.
    Near { is_wake: bool },
    /// Then: a message from this node.
    Next { from: NodeId },
}

/// Fetches the cache line in which an element of a slice begins; nothing where there is no such element.
#[inline]
pub fn line<T>(all: &[T], index: usize) {
    prefetch_index(all, index);
}

/// Fetches the cache lines in which an element of a slice begins and ends.
#[inline]
pub fn element<T>(all: &[T], index: usize) {
    line(all, index);
    // The next one begins where it ends.
    line(all, index + 1);
}

/// Fetches the cache line in which a value begins.
#[inline]
pub fn value<T>(value: &T) {
    line(std::slice::from_ref(value), 0);
}

/// Fetches the cache lines in which a value begins and ends.
#[inline]
pub fn ends<T>(value: &T) {
    element(std::slice::from_ref(value), 0);
}
