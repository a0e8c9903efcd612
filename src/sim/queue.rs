//! The event queue: ordered by time, then by the order of scheduling, so ties have an answer.
//!
//! ```text
//!   front   due by `until`, the next last                      ◄── pop
//!   levels  l, d: times that agree with `last` above digit l and have there the digit d, in the order scheduled
//! ```
//!
//! Time never goes back, so a radix heap does: an event moves to a lower level each time, at most once for each digit of
//! the time until it is due, and equal times never part, nor change their order. A digit has six bits, so that one word
//! says which buckets of a level hold something. A bucket that holds little and is soon due is sorted instead and becomes
//! the front.

use crate::actors::SimTime;
use std::mem;

/// How soon an event comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soon {
    /// Within 4 milliseconds.
    Far,
    /// Among the next ones.
    Near,
}

/// Events to come. They are moved about, so they should be small: where others are kept, for one.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// When the last event that was taken was due; nothing earlier can come.
    last: u64,
    /// Events due by `until`, in descending order, so that the next one is the last.
    front: Vec<(u64, T)>,
    until: u64,
    levels: Box<[Level<T>; LEVELS]>,
    /// Bit l: level l holds something.
    filled: u64,
    /// The room of buckets that hold nothing, the last emptied last: it is still at hand for the processor.
    rooms: Vec<Vec<(u64, T)>>,
}

/// The times that first differ from `last` in one digit.
#[derive(Debug)]
struct Level<T> {
    buckets: [Vec<(u64, T)>; 1 << DIGIT],
    /// Bit d: the bucket of digit d holds something.
    filled: u64,
}

/// Bits of a digit.
const DIGIT: u32 = 6;
/// Digits of a time.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// So many events are put in order one by one.
const VERY_FEW: usize = 8;
/// So many events are sorted …
const FEW: usize = 96;
/// Bits of a place among them.
const PLACE: u32 = FEW.ilog2() + 1;
/// … of a bucket no higher than this: four milliseconds.
const SORTED: usize = 2;

impl<T: Copy> EventQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        let level = |_| Level { buckets: std::array::from_fn(|_| Vec::new()), filled: 0 };
        let levels = Box::new(std::array::from_fn(level));
        Self { last: 0, front: Vec::new(), until: 0, levels, filled: 0, rooms: Vec::new() }
    }

    /// Schedules an event. One that would be due before the last event that was taken is due with that one.
    #[inline]
    pub fn push(&mut self, time: SimTime, event: T) {
        let time = time.micros().max(self.last);
        if time > self.until {
            return self.put(time, event);
        }
        insert(&mut self.front, time, event);
    }

    /// To the level and bucket of a time behind the front.
    fn put(&mut self, time: u64, event: T) {
        let level = (time ^ self.last).ilog2() / DIGIT;
        let digit = (time >> (level * DIGIT)) % (1 << DIGIT);
        let Level { buckets, filled } = &mut self.levels[level as usize];
        let bucket = &mut buckets[digit as usize];
        if bucket.capacity() == 0
            && let Some(room) = self.rooms.pop()
        {
            *bucket = room;
        }
        bucket.push((time, event));
        *filled |= 1 << digit;
        self.filled |= 1 << level;
    }

    /// The bucket that holds the earliest events, as level and digit; `None` if there is none behind the front.
    fn lowest(&self) -> Option<(usize, usize)> {
        self.filled.checked_ilog2()?;
        let level = self.filled.trailing_zeros() as usize;
        Some((level, self.levels[level].filled.trailing_zeros() as usize))
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Option<SimTime> {
        let earliest = match self.front.last() {
            Some((time, _)) => Some(*time),
            None => {
                let (level, digit) = self.lowest()?;
                self.levels[level].buckets[digit].iter().map(|(time, _)| *time).min()
            }
        };
        earliest.map(SimTime::from_micros)
    }

    /// The next event, if it is due at `through` or before.
    pub fn pop(&mut self, through: SimTime) -> Option<(SimTime, T)> {
        self.pop_foreseeing(through, None::<fn(&T, Soon)>)
    }

    /// [`EventQueue::pop`] that tells of most events before they come up, first that they are far, then that they are
    /// near.
    #[inline]
    pub fn pop_foreseeing(&mut self, through: SimTime, soon: Option<impl FnMut(&T, Soon)>) -> Option<(SimTime, T)> {
        if self.front.is_empty() {
            self.advance(through, soon)?;
        }
        self.front.last().filter(|(time, _)| *time <= through.micros())?;
        let (time, event) = self.front.pop()?;
        self.last = time;
        Some((SimTime::from_micros(time), event))
    }

    /// Spreads the lowest bucket over the levels below, so that its earliest events come to the front, if they are due;
    /// or makes all of it the front.
    #[inline(never)]
    fn advance(&mut self, through: SimTime, mut soon: Option<impl FnMut(&T, Soon)>) -> Option<()> {
        let (level, digit) = self.lowest()?;
        let Level { buckets, filled } = &mut self.levels[level];
        let bucket = &mut buckets[digit];
        // Of equal times, or of one, no order is to be found.
        let ordered = level == 0 || bucket.len() == 1;
        let few = level <= SORTED && bucket.len() <= FEW;
        let earliest = bucket.iter().map(|(time, _)| *time).min();
        let earliest = earliest.filter(|earliest| *earliest <= through.micros())?;
        *filled &= !(1 << digit);
        if *filled == 0 {
            self.filled &= !(1 << level);
        }
        self.last = earliest;
        let how = match level {
            1 => Some(Soon::Near),
            2 => Some(Soon::Far),
            _ => None,
        };
        if let (Some(soon), Some(how)) = (&mut soon, how) {
            bucket.iter().for_each(|(_, event)| soon(event, how));
        }
        if ordered || few {
            match ordered {
                true => self.front.extend(bucket.drain(..).rev()),
                false if bucket.len() <= VERY_FEW => {
                    bucket.drain(..).for_each(|(time, event)| insert(&mut self.front, time, event));
                }
                false => sort_latest_first(bucket, &mut self.front),
            }
            self.rooms.push(mem::take(bucket));
            // Where but one event is in a high bucket, the levels below are empty.
            self.until = earliest | ((1 << (level.min(SORTED) as u32 * DIGIT)) - 1);
            return Some(());
        }
        self.until = earliest;
        let mut spread = mem::take(bucket);
        for (time, event) in spread.drain(..) {
            match time == earliest {
                true => self.front.push((time, event)),
                false => self.put(time, event),
            }
        }
        self.front.reverse();
        self.rooms.push(spread);
        Some(())
    }
}

/// Puts an event in its place at the front, where the next one is the last; most places are near that.
fn insert<T: Copy>(front: &mut Vec<(u64, T)>, time: u64, event: T) {
    let mut place = front.len();
    front.push((time, event));
    while place > 0 && front[place - 1].0 <= time {
        front[place] = front[place - 1];
        place -= 1;
    }
    front[place] = (time, event);
}

/// Moves the events of a bucket that is soon due to the front. What is sorted are times and places in one word each,
/// which is quicker than sorting the events themselves.
fn sort_latest_first<T: Copy>(bucket: &mut Vec<(u64, T)>, front: &mut Vec<(u64, T)>) {
    let mut keys = [0; FEW];
    let keys = &mut keys[..bucket.len()];
    for (place, (key, (time, _))) in keys.iter_mut().zip(&*bucket).enumerate() {
        *key = (*time as u32) << PLACE | place as u32;
    }
    keys.sort_unstable();
    front.extend(keys.iter().rev().map(|key| bucket[(key % (1 << PLACE)) as usize]));
    bucket.clear();
}

impl<T: Copy> Default for EventQueue<T> {
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

    #[test]
    fn most_events_are_foreseen_first_as_far_and_then_as_near() {
        let mut queue = EventQueue::new();
        let count = 10_000_usize;
        for event in 0..count {
            queue.push(SimTime::from_micros(event as u64 * 7_919 % 100_000), event);
        }
        let mut told = vec![Vec::new(); count];
        while let Some((_, event)) = queue.pop_foreseeing(
            SimTime::from_micros(u64::MAX),
            Some(|event: &usize, how| {
                told[*event].push(how);
            }),
        ) {
            assert!([&[][..], &[Soon::Far], &[Soon::Near], &[Soon::Far, Soon::Near]].contains(&&told[event][..]));
        }
        let both = told.iter().filter(|told| told.len() == 2).count();
        assert!(both > count / 4, "{both}");
        let any = told.iter().filter(|told| !told.is_empty()).count();
        assert!(any > count * 9 / 10, "{any}");
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
