//! The event queue: ordered by time, then by the order of scheduling, so ties have an answer.
//!
//! ```text
//!   front    due at `last`, in the order scheduled            ◄── pop
//!   buckets  b: times whose highest bit that differs from `last` is bit b, in the order scheduled
//!   events   the events themselves, which stay where they are while their places move from bucket to bucket
//! ```
//!
//! Time never goes back, so a radix heap does: a place moves to a lower bucket each time, at most once for each bit of
//! the time until it is due, and equal times never part, nor change their order.

use crate::actors::SimTime;
use std::collections::VecDeque;

/// Events to come.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// The earliest time of all, when `front` was filled; nothing earlier can come.
    last: u64,
    front: VecDeque<Place>,
    buckets: [Vec<(u64, Place)>; BITS],
    /// Bit b: bucket b holds something.
    filled: u64,
    events: Vec<Option<T>>,
    free: Vec<Place>,
}

/// Bits of a time.
const BITS: usize = u64::BITS as usize;

/// Index of an event in [`EventQueue::events`].
type Place = u32;

impl<T> EventQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            last: 0,
            front: VecDeque::new(),
            buckets: std::array::from_fn(|_| Vec::new()),
            filled: 0,
            events: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Schedules an event. One that would be due before the last event that was taken is due with that one.
    ///
    /// # Panics
    /// With more than 2³² events to come.
    pub fn push(&mut self, time: SimTime, event: T) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.events.push(None);
                Place::try_from(self.events.len() - 1).expect("so many events do not fit into memory")
            }
        };
        self.events[place as usize] = Some(event);
        self.put(time.micros().max(self.last), place);
    }

    fn put(&mut self, time: u64, place: Place) {
        match (time ^ self.last).checked_ilog2() {
            None => self.front.push_back(place),
            Some(bucket) => {
                self.buckets[bucket as usize].push((time, place));
                self.filled |= 1 << bucket;
            }
        }
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Option<SimTime> {
        if !self.front.is_empty() {
            return Some(SimTime::from_micros(self.last));
        }
        let lowest = self.filled.checked_ilog2().map(|_| self.filled.trailing_zeros() as usize)?;
        self.buckets[lowest].iter().map(|(time, _)| SimTime::from_micros(*time)).min()
    }

    /// The next event, if it is due at `through` or before.
    pub fn pop(&mut self, through: SimTime) -> Option<(SimTime, T)> {
        if self.front.is_empty() {
            self.advance(through)?;
        }
        let time = SimTime::from_micros(self.last);
        if time > through {
            return None;
        }
        let place = self.front.pop_front()?;
        self.free.push(place);
        self.events[place as usize].take().map(|event| (time, event))
    }

    /// Spreads the lowest bucket over those below, so that its earliest events come to the front, if they are due.
    fn advance(&mut self, through: SimTime) -> Option<()> {
        if self.filled == 0 {
            return None;
        }
        let lowest = self.filled.trailing_zeros() as usize;
        let earliest = self.buckets[lowest].iter().map(|(time, _)| *time).min()?;
        if earliest > through.micros() {
            return None;
        }
        self.last = earliest;
        self.filled &= !(1 << lowest);
        let mut spread = std::mem::take(&mut self.buckets[lowest]);
        for (time, place) in spread.drain(..) {
            self.put(time, place);
        }
        self.buckets[lowest] = spread;
        Some(())
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{cmp::Reverse, collections::BinaryHeap};

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

    proptest! {
        /// Against a heap of times and numbers, with events that are scheduled while others are taken.
        #[test]
        fn it_is_a_heap_of_times_and_numbers(steps in prop::collection::vec((0..3u64, 0..4_000u64), 1..300)) {
            let (mut queue, mut heap, mut now) = (EventQueue::new(), BinaryHeap::new(), 0);
            for (number, (takes, later)) in steps.into_iter().enumerate() {
                let time = now + later * later;
                queue.push(SimTime::from_micros(time), number);
                heap.push(Reverse((time, number)));
                for _ in 0..takes {
                    let through = now + 2_000_000;
                    let wanted = heap.peek().filter(|Reverse((time, _))| *time <= through).map(|Reverse(next)| *next);
                    prop_assert_eq!(queue.next_time().map(SimTime::micros), heap.peek().map(|Reverse((time, _))| *time));
                    let taken = queue.pop(SimTime::from_micros(through)).map(|(time, event)| (time.micros(), event));
                    prop_assert_eq!(taken, wanted);
                    if let Some((time, _)) = taken {
                        heap.pop();
                        now = time;
                    }
                }
            }
        }
    }
}
