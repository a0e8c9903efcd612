//! The event queue: ordered by time, then by the order of scheduling, so ties have an answer.

use crate::actors::SimTime;
use std::{cmp::Ordering, collections::BinaryHeap};

/// Events to come.
#[derive(Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    time: SimTime,
    sequence: u64,
    event: T,
}

impl<T> EventQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// Schedules an event.
    pub fn push(&mut self, time: SimTime, event: T) {
        self.heap.push(Entry { time, sequence: self.sequence, event });
        self.sequence += 1;
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Option<SimTime> {
        self.heap.peek().map(|entry| entry.time)
    }

    /// The next event, if it is due at `through` or before.
    pub fn pop(&mut self, through: SimTime) -> Option<(SimTime, T)> {
        if self.next_time()? > through {
            return None;
        }
        self.heap.pop().map(|entry| (entry.time, entry.event))
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reversed, for the heap keeps the greatest on top.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_one_instant_come_in_the_order_scheduled() {
        let mut queue = EventQueue::new();
        for (time, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(SimTime::from_micros(time), event);
        }
        let order: Vec<char> =
            std::iter::from_fn(|| queue.pop(SimTime::from_micros(4)).map(|(_, event)| event)).collect();
        assert_eq!(order, ['b', 'd', 'e']);
        assert_eq!(queue.next_time(), Some(SimTime::from_micros(5)));
    }
}
