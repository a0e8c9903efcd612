//! A page of an ordered list, found without sorting or retaining the keys behind it.

use std::ops::Range;

/// The least capacity of the buffer of keys.
const LEAST_ROOM: usize = 64;

/// The least of all pushed keys, up to a fixed number.
pub(crate) struct SmallestKeys<K> {
    keep: usize,
    /// The number of buffered keys at which the keys behind the least `keep` are dropped.
    room: usize,
    keys: Vec<K>,
    /// The least key that was dropped. Greater keys are ignored.
    bound: Option<K>,
    pushed: u64,
}

impl<K: Ord + Copy> SmallestKeys<K> {
    /// Keeps the `keep` least keys.
    pub fn new(keep: usize) -> Self {
        Self { keep, room: room(keep), keys: Vec::new(), bound: None, pushed: 0 }
    }

    /// Adds a key.
    pub fn push(&mut self, key: K) {
        self.pushed += 1;
        if self.bound.is_some_and(|bound| key > bound) {
            return;
        }
        self.keys.push(key);
        if self.keys.len() == self.room {
            let (_, behind, _) = self.keys.select_nth_unstable(self.keep);
            self.bound = Some(*behind);
            self.keys.truncate(self.keep);
        }
    }

    /// The number of keys that were pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The keys at these positions of the ascending order. The range is cut at the end of the retained keys.
    pub fn range(mut self, range: Range<u64>) -> Vec<K> {
        let length = self.keys.len();
        let end = usize::try_from(range.end).map_or(length, |end| end.min(length));
        let start = usize::try_from(range.start).map_or(end, |start| start.min(end));
        if end < length {
            self.keys.select_nth_unstable(end);
            self.keys.truncate(end);
        }
        if start > 0 && start < end {
            self.keys.select_nth_unstable(start);
        }
        let mut page = self.keys.split_off(start);
        page.sort_unstable();
        page
    }
}

/// The number of keys that a list of the `keep` least ones holds before it drops the others.
pub(crate) fn room(keep: usize) -> usize {
    keep.saturating_mul(4).max(LEAST_ROOM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_page_is_that_of_all_keys_in_order(
            mut keys in prop::collection::vec(0..40u32, 0..600),
            start in 0..90usize,
            limit in 1..30usize,
        ) {
            let mut least = SmallestKeys::new(start + limit);
            keys.iter().for_each(|key| least.push(*key));
            prop_assert_eq!(least.pushed(), keys.len() as u64);
            keys.sort_unstable();
            let wanted: Vec<u32> = keys.into_iter().skip(start).take(limit).collect();
            prop_assert_eq!(least.range(start as u64..(start + limit) as u64), wanted);
        }
    }
}
