//! The event queue: ordered by time, and for equal times by the order of scheduling.
//!
//! ```text
//!   front   due by `until`, the next last                      ◄── pop
//!   levels  l, d: times that agree with `last` above digit l and have there the digit d, in the order scheduled
//! ```
//!
//! Time never goes back, so a radix heap is enough. Each move takes an event to a lower level, so it moves at most once for each digit of
//! the time until it is due. Events of equal times stay together, in the same order. A digit has six bits, so that one word marks the
//! filled buckets of a level. Small buckets that are soon due are sorted instead and become the front.

use crate::actors::SimTime;
use std::mem;

/// The nearness of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soon {
    /// Far ahead: the processor fetches the pointer to the actor's record.
    Far,
    /// Far enough ahead for the processor to fetch the actor's record in time.
    Near,
    /// The next one: the processor fetches the data to which the record points.
    Next,
}

/// The future events. The queue moves them about, so they should be small, such as an index into a store.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    /// The time at which the last event taken was due; nothing earlier can come.
    last: u64,
    /// Events due by `until`, in descending order, so that the next one is the last.
    front: Vec<(u64, T)>,
    until: u64,
    levels: Box<[Level<T>; LEVELS]>,
    /// Bit l is set if level l holds an event.
    filled: u64,
    /// Kept for its allocated memory.
    keys: Vec<u32>,
    /// The memory of empty vectors, the last emptied one last: it is most likely still in the processor's cache.
    spare: Vec<Vec<(u64, T)>>,
    /// The number of the next events that had been announced at the last announcement.
    told: [usize; TOLD.len()],
    /// The number of events taken since the last announcement.
    since: usize,
}

/// The times that first differ from `last` in one digit.
#[derive(Debug)]
struct Level<T> {
    buckets: [Bucket<T>; 1 << DIGIT],
    /// Bit d is set if the bucket of digit d holds an event.
    filled: u64,
}

/// Events in the order scheduled. They lie in rooms of one size, so that another bucket can reuse each room.
#[derive(Debug)]
struct Bucket<T> {
    /// Rooms of `FEW` events, which come before those of `last`.
    full: Vec<Vec<(u64, T)>>,
    last: Vec<(u64, T)>,
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<T> Bucket<T> {
    fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.full.iter().flatten().chain(&self.last)
    }

    fn earliest(&self) -> Option<u64> {
        self.iter().map(|(time, _)| *time).min()
    }

    /// Begins another room if the last is full or lacks memory.
    #[cold]
    fn make_room(&mut self, spare: &mut Vec<Vec<(u64, T)>>) {
        if self.last.len() == FEW {
            self.full.push(mem::take(&mut self.last));
        }
        if self.last.capacity() == 0
            && let Some(room) = spare.pop()
        {
            self.last = room;
        }
    }
}

/// Bits of a digit.
const DIGIT: u32 = 6;
/// Digits of a time.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// The largest number of events that are inserted in order one by one.
const VERY_FEW: usize = 8;
/// The largest number of events that are sorted, in a bucket no higher than `SORTED`. It is also the size of a room.
const FEW: usize = 512;
/// The largest height of a sorted bucket: four milliseconds.
const SORTED: usize = 2;
/// Buckets with fewer events are sorted together with the next ones, which is faster than one by one.
const ENOUGH: usize = 21;
/// Bits of a place among all that are sorted at once.
const PLACE: u32 = (ENOUGH + FEW).ilog2() + 1;
/// The number of events that are announced at once.
const AT_ONCE: usize = 8;
/// The distance behind the next event at which each announcement is made, or a few events more.
const TOLD: [(usize, Soon); 3] = [(60, Soon::Far), (28, Soon::Near), (12, Soon::Next)];

impl<T: Copy> EventQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        let level = |_| Level { buckets: std::array::from_fn(|_| Bucket::default()), filled: 0 };
        let levels = Box::new(std::array::from_fn(level));
        Self {
            last: 0,
            front: Vec::new(),
            until: 0,
            levels,
            filled: 0,
            keys: Vec::new(),
            spare: Vec::new(),
            told: [0; TOLD.len()],
            since: AT_ONCE,
        }
    }

    /// Schedules an event. A time before that of the last event taken becomes that time.
    #[inline]
    pub fn push(&mut self, time: SimTime, event: T) {
        let time = time.micros().max(self.last);
        if time > self.until {
            return self.put(time, event);
        }
        insert(&mut self.front, time, event);
    }

    /// Adds an event behind the front, to the level and bucket of its time.
    fn put(&mut self, time: u64, event: T) {
        let level = (time ^ self.last).ilog2() / DIGIT;
        let digit = (time >> (level * DIGIT)) % (1 << DIGIT);
        let Level { buckets, filled } = &mut self.levels[level as usize];
        let bucket = &mut buckets[digit as usize];
        if bucket.last.len() == bucket.last.capacity().min(FEW) {
            bucket.make_room(&mut self.spare);
        }
        bucket.last.push((time, event));
        *filled |= 1 << digit;
        self.filled |= 1 << level;
    }

    /// The bucket that holds the earliest events, as level and digit; `None` if there is none behind the front.
    fn lowest(&self) -> Option<(usize, usize)> {
        self.filled.checked_ilog2()?;
        let level = self.filled.trailing_zeros() as usize;
        Some((level, self.levels[level].filled.trailing_zeros() as usize))
    }

    /// All events, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.timed().map(|(_, event)| event)
    }

    /// All events with the instants at which they are due, in no particular order.
    pub fn timed(&self) -> impl Iterator<Item = (SimTime, &T)> {
        let filled = self.levels.iter().filter(|level| level.filled > 0);
        let behind = filled.flat_map(|level| &level.buckets).flat_map(Bucket::iter);
        self.front.iter().chain(behind).map(|(time, event)| (SimTime::from_micros(*time), event))
    }

    /// All events with the instants they are due at, in the order in which they come.
    pub fn in_order(&self) -> Vec<(SimTime, T)> {
        let behind = self.levels.iter().flat_map(|level| &level.buckets).flat_map(Bucket::iter);
        let mut events: Vec<(u64, T)> = self.front.iter().rev().chain(behind).copied().collect();
        // Equal times stay in the order of scheduling, because the sort is stable and buckets keep this order.
        events.sort_by_key(|(time, _)| *time);
        events.into_iter().map(|(time, event)| (SimTime::from_micros(time), event)).collect()
    }

    /// A queue with these future events, whose last event taken was due at `last`.
    pub fn of(last: SimTime, events: impl IntoIterator<Item = (SimTime, T)>) -> Self {
        let mut queue = Self { last: last.micros(), until: last.micros(), ..Self::new() };
        events.into_iter().for_each(|(time, event)| queue.push(time, event));
        queue
    }

    /// The bytes that the queue takes, without spare memory.
    pub fn bytes(&self) -> usize {
        size_of::<[Level<T>; LEVELS]>() + self.iter().count() * size_of::<(u64, T)>()
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Option<SimTime> {
        let earliest = match self.front.last() {
            Some((time, _)) => Some(*time),
            None => {
                let (level, digit) = self.lowest()?;
                self.levels[level].buckets[digit].earliest()
            }
        };
        earliest.map(SimTime::from_micros)
    }

    /// The next event, if it is due at `through` or before.
    #[cfg(test)]
    pub fn pop(&mut self, through: SimTime) -> Option<(SimTime, T)> {
        self.pop_foreseeing(through, None::<fn(&T, Soon)>)
    }

    /// [`EventQueue::pop`] that announces most events in advance: first as far, then as near, then as next.
    #[inline]
    pub fn pop_foreseeing(&mut self, through: SimTime, soon: Option<impl FnMut(&T, Soon)>) -> Option<(SimTime, T)> {
        if self.front.is_empty() {
            self.advance(through)?;
            // All announced events have been taken.
            self.since = self.since.max(AT_ONCE);
        }
        if let Some(soon) = soon
            && self.since >= AT_ONCE
        {
            self.foresee(soon);
        }
        self.front.last().filter(|(time, _)| *time <= through.micros())?;
        let (time, event) = self.front.pop()?;
        self.last = time;
        self.since += 1;
        Some((SimTime::from_micros(time), event))
    }

    /// Announces the events that have come close enough.
    fn foresee(&mut self, mut soon: impl FnMut(&T, Soon)) {
        if self.front.len() <= TOLD[0].0 + AT_ONCE {
            self.lengthen();
        }
        let all = self.front.len();
        for (told, (ahead, how)) in self.told.iter_mut().zip(TOLD) {
            let close = all.saturating_sub(ahead + AT_ONCE);
            let untold = all.saturating_sub(told.saturating_sub(self.since));
            if close < untold {
                self.front[close..untold].iter().rev().for_each(|(_, event)| soon(event, how));
            }
            *told = all - close.min(untold);
        }
        self.since = 0;
    }

    /// Adds the lowest bucket to the front, if that can be done at once.
    fn lengthen(&mut self) {
        let Some((level, digit)) = self.lowest() else { return };
        if self.is_sorted(level, digit) {
            let mut events = self.take(level, digit).last;
            let room = self.spare.pop().unwrap_or_default();
            let mut front = mem::replace(&mut self.front, room);
            self.sort_to_front(&mut events, level);
            self.front.append(&mut front);
            self.keep(front);
            self.keep(events);
        }
    }

    /// Keeps the memory of an empty vector, unless it is much larger than a room.
    fn keep(&mut self, room: Vec<(u64, T)>) {
        if room.capacity() <= 2 * FEW {
            self.spare.push(room);
        }
    }

    /// Empties a bucket.
    fn take(&mut self, level: usize, digit: usize) -> Bucket<T> {
        let Level { buckets, filled } = &mut self.levels[level];
        *filled &= !(1 << digit);
        if *filled == 0 {
            self.filled &= !(1 << level);
        }
        mem::take(&mut buckets[digit])
    }

    /// Makes the events of a bucket that is soon due the front, which is empty.
    fn sort_to_front(&mut self, bucket: &mut Vec<(u64, T)>, level: usize) {
        if let Some((time, _)) = bucket.last() {
            self.until = time | ((1 << (level as u32 * DIGIT)) - 1);
        }
        // Times of level 0 are in order.
        if level == 0 {
            self.front.extend(bucket.drain(..).rev());
        } else if bucket.len() <= VERY_FEW {
            bucket.drain(..).for_each(|(time, event)| insert(&mut self.front, time, event));
        } else {
            sort_latest_first(bucket, &mut self.keys, &mut self.front);
        }
    }

    /// Makes the lowest bucket the front, with the next buckets if they are small. A bucket that is large or not due soon is spread over
    /// the levels below, if its earliest events are due by `through`: these become the front.
    #[inline(never)]
    fn advance(&mut self, through: SimTime) -> Option<()> {
        let (level, digit) = self.lowest()?;
        if level == 0 || self.is_sorted(level, digit) {
            let Bucket { full, last: mut events } = self.take(level, digit);
            if !full.is_empty() {
                // All events are of one instant, so they need no order and can be more than are sorted.
                events = full.into_iter().flatten().chain(events).collect();
            }
            self.gather(&mut events, level);
            self.sort_to_front(&mut events, level);
            self.keep(events);
        } else {
            let earliest = self.levels[level].buckets[digit].earliest()?;
            if earliest > through.micros() {
                return None;
            }
            (self.last, self.until) = (earliest, earliest);
            let Bucket { full, last } = self.take(level, digit);
            for mut events in full.into_iter().chain([last]) {
                for (time, event) in events.drain(..) {
                    match time == earliest {
                        true => self.front.push((time, event)),
                        false => self.put(time, event),
                    }
                }
                self.keep(events);
            }
            self.front.reverse();
        }
        Some(())
    }

    /// Returns true if all of a bucket is put in order at once.
    fn is_sorted(&self, level: usize, digit: usize) -> bool {
        level <= SORTED && self.levels[level].buckets[digit].full.is_empty()
    }

    /// Adds the next buckets of the level until there are enough events.
    fn gather(&mut self, events: &mut Vec<(u64, T)>, level: usize) {
        while events.len() < ENOUGH
            && let digit = self.levels[level].filled.trailing_zeros() as usize
            && digit < 1 << DIGIT
            && self.is_sorted(level, digit)
        {
            let mut next = self.take(level, digit).last;
            events.append(&mut next);
            self.keep(next);
        }
    }
}

/// Inserts an event into the front, whose last entry is the next event. Most places are near the end.
fn insert<T: Copy>(front: &mut Vec<(u64, T)>, time: u64, event: T) {
    let mut place = front.len();
    front.push((time, event));
    while place > 0 && front[place - 1].0 <= time {
        front[place] = front[place - 1];
        place -= 1;
    }
    front[place] = (time, event);
}

/// Moves the events of a bucket that is soon due to the front. It sorts times and places in one word each, which is quicker than
/// sorting the events themselves.
fn sort_latest_first<T: Copy>(bucket: &mut Vec<(u64, T)>, keys: &mut Vec<u32>, front: &mut Vec<(u64, T)>) {
    keys.clear();
    keys.extend((0..).zip(&*bucket).map(|(place, (time, _)): (u32, _)| (*time as u32) << PLACE | place));
    keys.sort_unstable();
    front.extend(keys.iter().rev().map(|key| bucket[(key % (1 << PLACE)) as usize]));
    bucket.clear();
}

impl<T: Copy> Clone for EventQueue<T> {
    /// The same events in the same order, without spare memory.
    fn clone(&self) -> Self {
        Self::of(SimTime::from_micros(self.last), self.in_order())
    }
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

    /// More than a room holds, of which each bucket on the way down to the front has a part.
    #[test]
    fn a_crowd_comes_in_the_order_scheduled() {
        let mut queue = EventQueue::new();
        let mut wanted: Vec<(SimTime, u32)> =
            (0..5_000).map(|event| (SimTime::from_micros(10_000_000 + u64::from(event % 3)), event)).collect();
        wanted.iter().for_each(|(time, event)| queue.push(*time, *event));
        wanted.sort_by_key(|(time, _)| *time);
        assert_eq!(queue.in_order(), wanted);
        let taken = |mut queue: EventQueue<u32>| -> Vec<_> {
            std::iter::from_fn(|| queue.pop(SimTime::from_micros(u64::MAX))).collect()
        };
        assert_eq!(taken(queue.clone()), wanted);
        assert_eq!(taken(queue), wanted);
    }

    /// A room that was kept may have memory for more events than a room takes.
    #[test]
    fn a_crowd_in_a_large_room_comes_in_the_order_scheduled() {
        let through = SimTime::from_micros(u64::MAX);
        let mut queue = EventQueue::new();
        // Ten events and a full room are gathered into one vector, which is kept.
        for event in 0..522_u64 {
            queue.push(SimTime::from_micros(if event < 10 { 64 } else { 128 }), event);
        }
        while queue.pop(through).is_some() {}
        let mut wanted: Vec<(SimTime, u64)> =
            (0..2_500).map(|event| (SimTime::from_micros(4_096 + event * 7 % 1_000), event)).collect();
        wanted.iter().for_each(|(time, event)| queue.push(*time, *event));
        wanted.sort_by_key(|(time, _)| *time);
        let taken: Vec<_> = std::iter::from_fn(|| queue.pop(through)).take(2_501).collect();
        assert_eq!(taken, wanted);
    }

    #[test]
    fn events_are_foreseen_as_far_then_near_then_next() {
        let mut queue = EventQueue::new();
        let count = 10_000_usize;
        for event in 0..count {
            queue.push(SimTime::from_micros(event as u64 * 7_919 % 100_000), event);
        }
        let mut told = vec![Vec::new(); count];
        let through = SimTime::from_micros(u64::MAX);
        loop {
            let soon = |event: &usize, how| told[*event].push(how);
            let Some((_, event)) = queue.pop_foreseeing(through, Some(soon)) else { break };
            assert_eq!(told[event], [Soon::Far, Soon::Near, Soon::Next]);
        }
        assert!(told.iter().all(|told| told.len() == 3));
    }

    proptest! {
        /// Against a heap of times and numbers, with events that are scheduled while others are taken, near together or far apart, with
        /// and without announcements.
        #[test]
        fn it_is_a_heap_of_times_and_numbers(
            steps in prop::collection::vec((0..14u32, 0..4_000u64, 1..9u64), 1..250),
            near in 0..16u32,
            foreseen in any::<bool>(),
        ) {
            let (mut queue, mut heap, mut now) = (EventQueue::new(), BinaryHeap::new(), 0);
            let mut numbers = 0..;
            for (takes, later, count) in steps {
                for number in numbers.by_ref().take(count as usize) {
                    let time = now + ((later * later) >> near) * (number % 3);
                    queue.push(SimTime::from_micros(time), number);
                    heap.push(Reverse((time, number)));
                }
                for _ in 0..takes {
                    let through = now + (2_000_000 >> near);
                    let wanted = heap.peek().filter(|Reverse((time, _))| *time <= through).map(|Reverse(next)| *next);
                    prop_assert_eq!(queue.next_time().map(SimTime::micros), heap.peek().map(|Reverse((time, _))| *time));
                    let soon = foreseen.then_some(|_: &u64, _| ());
                    let taken = queue.pop_foreseeing(SimTime::from_micros(through), soon);
                    let taken = taken.map(|(time, event)| (time.micros(), event));
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
