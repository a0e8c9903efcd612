//! The future events: the queue, and a store of the events' data beside it, so that the queue moves only small entries. Most future events
//! are messages from peer to peer. Most of these are copies of one message, which share one record. Most of the other events are wake-ups.

use super::{Item, places::Places};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus, Wake, prefetch},
    ledger::codec::{LoadError, Loader, Save, Saver},
    protocol::{TransactionId, hashing::IdHash},
    sim::{
        plan::ROLES,
        queue::{EventQueue, Soon},
    },
};
use indexmap::{
    IndexMap,
    map::Entry::{Occupied, Vacant},
};
use slab::Slab;
use std::mem::{self, ManuallyDrop};

/// Everything that will happen, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct PendingEvents {
    queue: EventQueue<Due>,
    items: Slab<Item>,
    wakes: Places<Wake>,
    messages: Places<SharedMessage>,
    /// The message that was last sent from peer to peer, while it is under way.
    latest: Option<u32>,
}

/// An entry of the queue. It refers to the stored data, and for most events it holds sender and receiver itself. The queue moves it about,
/// so it has two words, which a processor moves at once.
#[derive(Clone, Copy)]
struct Due {
    /// The place of the data, and in the upper half the receiving node of a copy or a wake-up, or [`Due::ITEM`] for all else.
    what: u64,
    /// The generation of that node, and in the upper half the sender of a copy, or [`Due::WAKES`] plus the role for a wake-up.
    rest: u64,
}

impl Due {
    const ITEM: u32 = u32::MAX;
    /// No node has so high a number.
    const WAKES: u32 = u32::MAX - ROLES.len() as u32;

    fn item(place: u32) -> Self {
        Self { what: pair(place, Self::ITEM), rest: 0 }
    }

    fn wake(place: u32, to: ActorId, generation: u32) -> Self {
        Self { what: pair(place, to.node.0), rest: pair(generation, Self::WAKES + to.role as u32) }
    }

    fn copy(place: u32, from: NodeId, arrival: &Arrival) -> Self {
        Self { what: pair(place, arrival.to.0), rest: pair(arrival.generation, from.0) }
    }

    #[inline]
    fn event(self) -> Event {
        let (place, to) = halves(self.what);
        let (generation, from) = halves(self.rest);
        let node = NodeId(to);
        match (to, from.checked_sub(Self::WAKES)) {
            (Self::ITEM, _) => Event::Item { place },
            (_, None) => Event::Copy { place, from: NodeId(from), to: node, generation },
            (_, Some(role)) => Event::Wake { place, to: ActorId { node, role: ROLES[role as usize] }, generation },
        }
    }
}

/// A [`Due`] taken apart.
#[derive(Clone, Copy)]
enum Event {
    Item { place: u32 },
    Wake { place: u32, to: ActorId, generation: u32 },
    Copy { place: u32, from: NodeId, to: NodeId, generation: u32 },
}

/// The entry that left the queue last. The referenced data stays in its place until it is handed over or taken, so this value must not be
/// lost. It is still passed by value, so that it stays in registers, which makes a fifth of the work of most events.
#[must_use]
pub(crate) struct PoppedEntry(Due);

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(pair: u64) -> (u32, u32) {
    (pair as u32, (pair >> 32) as u32)
}

/// The next event, where it lies.
#[derive(Clone, Copy)]
pub(crate) enum Next<'c> {
    Item(&'c Item),
    /// A wake-up of an actor of a node in its state of this generation.
    Wake {
        wake: Wake,
        to: ActorId,
        generation: u32,
    },
    /// A copy of a message between peers.
    Copy {
        from: ActorId,
        message: &'c Message,
    },
}

/// The receiver of the next event.
#[derive(Clone, Copy)]
pub(crate) enum Bound<'c> {
    /// An actor of a node in its state of this generation.
    For { to: ActorId, generation: u32 },
    /// The receiver, if any, is in the item.
    Item(&'c Item),
}

/// The next event, handed to an actor, which reads it in place or takes it. It is removed even if it is dropped unread.
pub struct HandedEvent<'c> {
    coming: &'c mut PendingEvents,
    due: Due,
}

impl HandedEvent<'_> {
    /// The message and its sender; `None` of anything else.
    #[inline]
    pub fn message(&self) -> Option<(ActorId, &Message)> {
        match self.due.event() {
            Event::Copy { place, from, .. } => Some((peer(from), &self.coming.messages.of(place).message)),
            Event::Item { place } => match &self.coming.items[place as usize] {
                Item::Input { input: Input::Message { from, message }, .. } => Some((*from, message)),
                _ => None,
            },
            Event::Wake { .. } => None,
        }
    }

    /// The stimulus, for the actor to keep.
    #[inline]
    pub fn stimulus(self) -> Stimulus {
        let mut handed = ManuallyDrop::new(self);
        let due = PoppedEntry(handed.due);
        handed.coming.stimulus(due).expect("an actor is handed what is for one")
    }
}

/// The record of a message goes with its last copy.
impl Drop for HandedEvent<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.due.event() {
            Event::Copy { place, .. } => self.coming.heard(place),
            Event::Wake { place, .. } => {
                self.coming.wakes.release(place);
            }
            Event::Item { place } => self.coming.drop_item(place),
        }
    }
}

/// A message from peer to peer, which several equal messages share.
#[derive(Clone)]
struct SharedMessage {
    message: Message,
    /// Copies still under way.
    left: u32,
}

/// The arrival of a copy of a message at a peer, if that is still in its state of this generation.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub at: SimTime,
    pub to: NodeId,
    pub generation: u32,
}

/// The kinds of events in saved bytes.
const ITEM: u8 = 0;
const WAKE: u8 = 1;
const COPY: u8 = 2;

impl PendingEvents {
    pub fn push(&mut self, at: SimTime, item: Item) {
        let place = self.keep(item);
        self.queue.push(at, Due::item(place));
    }

    /// Wakes an actor, if its node is still in its state of this generation.
    pub fn push_wake(&mut self, at: SimTime, to: ActorId, generation: u32, wake: Wake) {
        let place = self.wakes.insert(wake);
        self.queue.push(at, Due::wake(place, to, generation));
    }

    /// Adds an item that is due now, before all queued events.
    pub fn push_first(&mut self, item: Item) -> PoppedEntry {
        PoppedEntry(Due::item(self.keep(item)))
    }

    fn keep(&mut self, item: Item) -> u32 {
        place(self.items.insert(item))
    }

    /// Adds copies of one message from peer to peer, in the order sent. Takes the message, unless an equal one is stored.
    pub fn push_copies(&mut self, from: NodeId, message: &mut Message, arrivals: &[Arrival]) {
        let Some(copies) = u32::try_from(arrivals.len()).ok().filter(|copies| *copies > 0) else { return };
        let place = self.share(message, copies);
        for arrival in arrivals {
            self.queue.push(arrival.at, Due::copy(place, from, arrival));
        }
    }

    /// Stores a message for `copies` copies, if it is not stored already.
    fn share(&mut self, message: &mut Message, copies: u32) -> u32 {
        if let Some(latest) = self.latest
            && self.messages.of(latest).message.is_same(message)
        {
            self.messages.all[latest as usize].left += copies;
            return latest;
        }
        let place = self.messages.insert(SharedMessage { message: message.take(), left: copies });
        self.latest = Some(place);
        place
    }

    /// Removes the next event, if it is due at `through` or before, and returns it with its time. Calls `soon` with the receivers of near
    /// events, and with the sending node unless it is a wake-up.
    #[inline]
    pub fn pop(
        &mut self,
        through: SimTime,
        soon: Option<impl FnMut(ActorId, Option<NodeId>, Soon)>,
    ) -> Option<(SimTime, PoppedEntry)> {
        let (items, wakes, messages) = (&self.items, &self.wakes.all, &self.messages.all);
        let soon = soon.map(|mut soon| {
            move |due: &Due, how| match due.event() {
                Event::Copy { place, from, to, .. } => {
                    if how == Soon::Near {
                        prefetch::element(messages, place as usize);
                    }
                    soon(peer(to), Some(from), how);
                }
                Event::Wake { place, to, .. } => {
                    if how == Soon::Near {
                        prefetch::element(wakes, place as usize);
                    }
                    soon(to, None, how);
                }
                // The receiver of an item is in its record, which is not fetched for a far event.
                Event::Item { .. } if how == Soon::Far => {}
                Event::Item { place } => {
                    if let Item::Input { to, input: Input::Message { from, .. }, .. } = &items[place as usize] {
                        soon(*to, Some(from.node), how);
                    }
                }
            }
        });
        let (at, due) = self.queue.pop_foreseeing(through, soon)?;
        Some((at, PoppedEntry(due)))
    }

    /// Returns the due event for inspection.
    pub fn next(&self, due: &PoppedEntry) -> Next<'_> {
        match due.0.event() {
            Event::Item { place } => Next::Item(&self.items[place as usize]),
            Event::Wake { place, to, generation } => Next::Wake { wake: *self.wakes.of(place), to, generation },
            Event::Copy { place, from, .. } => {
                Next::Copy { from: peer(from), message: &self.messages.of(place).message }
            }
        }
    }

    /// The receiver of the due event. Most entries of the queue name it, so neither message nor wake-up is read.
    #[inline]
    pub fn bound(&self, due: &PoppedEntry) -> Bound<'_> {
        match due.0.event() {
            Event::Item { place } => Bound::Item(&self.items[place as usize]),
            Event::Wake { to, generation, .. } => Bound::For { to, generation },
            Event::Copy { to, generation, .. } => Bound::For { to: peer(to), generation },
        }
    }

    /// Hands over what is due.
    #[inline]
    pub fn hand_over(&mut self, due: PoppedEntry) -> HandedEvent<'_> {
        HandedEvent { coming: self, due: due.0 }
    }

    /// Takes the item that is due; nothing if it is none.
    pub fn item(&mut self, due: PoppedEntry) -> Option<Item> {
        let Event::Item { place } = due.0.event() else { return None };
        Some(self.items.remove(place as usize))
    }

    /// Takes the due event as a stimulus for an actor, or `None` if it is for no actor. This is done millions of times, so the data moves
    /// only once, directly from its place.
    #[inline]
    pub fn stimulus(&mut self, due: PoppedEntry) -> Option<Stimulus> {
        Some(match due.0.event() {
            Event::Item { place } => {
                let stimulus = match &mut self.items[place as usize] {
                    Item::Input { input, .. } => Stimulus::Input(mem::replace(input, Input::Start)),
                    Item::Stimulus { stimulus, .. } => mem::replace(stimulus, Stimulus::Input(Input::Start)),
                    Item::Post { .. }
                    | Item::Answerless { .. }
                    | Item::Begin(_)
                    | Item::End(_)
                    | Item::Poll(_)
                    | Item::Turn { .. }
                    | Item::Free { .. }
                    | Item::Intake(_)
                    | Item::Departures
                    | Item::Answer(_) => {
                        return None;
                    }
                };
                self.items.remove(place as usize);
                stimulus
            }
            Event::Wake { place, .. } => Stimulus::Input(Input::Wake(*self.wakes.release(place))),
            Event::Copy { place, from, .. } => {
                let shared = &mut self.messages.all[place as usize];
                shared.left -= 1;
                let message = match shared.left {
                    0 => self.forget(place),
                    _ => shared.message.clone(),
                };
                Stimulus::Input(Input::Message { from: peer(from), message })
            }
        })
    }

    /// A copy of a message has been read.
    #[inline]
    fn heard(&mut self, place: u32) {
        let shared = &mut self.messages.all[place as usize];
        shared.left -= 1;
        if shared.left == 0 {
            self.forget(place);
        }
    }

    #[inline(never)]
    fn drop_item(&mut self, place: u32) {
        self.items.remove(place as usize);
    }

    #[inline(never)]
    fn forget(&mut self, place: u32) -> Message {
        self.latest = self.latest.filter(|latest| *latest != place);
        self.messages.release(place).message.take()
    }

    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// Bytes that it takes: an estimate.
    pub fn bytes(&self) -> usize {
        self.queue.bytes()
            + self.items.len() * size_of::<Item>()
            + self.wakes.len() * size_of::<Wake>()
            + self.messages.len() * size_of::<SharedMessage>()
    }

    /// All future events except messages from peer to peer, in no particular order.
    pub fn of_nodes(&self) -> impl Iterator<Item = (SimTime, Next<'_>)> {
        self.queue.timed().filter_map(|(at, due)| {
            let next = match due.event() {
                Event::Item { place } => Next::Item(&self.items[place as usize]),
                Event::Wake { place, to, generation } => Next::Wake { wake: *self.wakes.of(place), to, generation },
                Event::Copy { .. } => return None,
            };
            Some((at, next))
        })
    }

    /// Removes a transaction from all messages under way. Returns the number of copies that held it.
    pub fn drop_transaction(&mut self, id: &TransactionId) -> usize {
        let mut copies = 0;
        for shared in &mut self.messages.all {
            copies += if shared.message.drop_transaction(id) { shared.left as usize } else { 0 };
        }
        for (_, item) in &mut self.items {
            copies += usize::from(match item {
                Item::Input { input, .. } => input.drop_transaction(id),
                Item::Post { message, .. } => message.drop_transaction(id),
                Item::Intake(intake) => intake.message.drop_transaction(id),
                Item::Answer(answer) => answer.message.drop_transaction(id),
                _ => false,
            });
        }
        copies
    }

    /// All messages under way, with their senders and receivers. Reads all future events.
    pub fn messages(&self) -> impl Iterator<Item = (ActorId, ActorId, &Message)> {
        self.queue.iter().filter_map(|due| match due.event() {
            Event::Copy { place, from, to, .. } => Some((peer(from), peer(to), &self.messages.of(place).message)),
            Event::Item { place } => match &self.items[place as usize] {
                Item::Input { to, input: Input::Message { from, message }, .. } | Item::Post { from, to, message } => {
                    Some((*from, *to, message))
                }
                Item::Intake(intake) => Some((intake.from, intake.to, &intake.message)),
                Item::Answer(answer) => Some((answer.from, answer.to, &answer.message)),
                _ => None,
            },
            Event::Wake { .. } => None,
        })
    }
}

fn peer(node: NodeId) -> ActorId {
    ActorId { node, role: Role::Peer }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("2^32 events do not fit into memory")
}

/// Saves the events in the order in which they are due. Their places do not matter, because loading assigns new ones.
impl Save for PendingEvents {
    fn save(&self, out: &mut Saver) {
        let Self { queue, items, wakes, messages, latest } = self;
        let events = queue.in_order();
        out.number(events.len() as u64);
        let mut written: IndexMap<u64, u64, IdHash> = IndexMap::default();
        for (at, due) in events {
            at.save(out);
            match due.event() {
                Event::Item { place } => {
                    out.raw(&[ITEM]);
                    items[place as usize].save(out);
                }
                Event::Wake { place, to, generation } => {
                    out.raw(&[WAKE]);
                    wakes.of(place).save(out);
                    to.save(out);
                    generation.save(out);
                }
                Event::Copy { place, from, to, generation } => {
                    out.raw(&[COPY]);
                    from.save(out);
                    to.save(out);
                    generation.save(out);
                    let next = written.len() as u64 + 1;
                    match written.entry(place.into()) {
                        Occupied(known) => out.number(*known.get()),
                        Vacant(new) => {
                            new.insert(next);
                            out.number(0);
                            messages.of(place).message.save(out);
                        }
                    }
                }
            }
        }
        // A message that is sent next may share the record of the latest one. No decision depends on it, but the saved bytes do.
        if out.ahead_of().is_none() {
            let latest = latest.and_then(|place| written.get(&u64::from(place)).copied());
            out.number(latest.unwrap_or(0));
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (mut coming, mut read) = (Self::default(), Vec::new());
        let mut events = Vec::new();
        for _ in 0..from.number()? {
            let at = SimTime::load(from)?;
            let due = match from.array()? {
                [ITEM] => Due::item(coming.keep(Item::load(from)?)),
                [WAKE] => {
                    let (wake, to, generation) = Save::load(from)?;
                    Due::wake(coming.wakes.insert(wake), to, generation)
                }
                [COPY] => {
                    let (sender, to, generation, number) = <(_, _, _, u64)>::load(from)?;
                    let message = match number.checked_sub(1) {
                        None => {
                            let message = Message::load(from)?;
                            read.push(coming.messages.insert(SharedMessage { message, left: 0 }));
                            read.last()
                        }
                        Some(index) => usize::try_from(index).ok().and_then(|index| read.get(index)),
                    };
                    let message = *message.ok_or_else(|| from.wrong("message that was read before", number))?;
                    coming.messages.all[message as usize].left += 1;
                    Due::copy(message, sender, &Arrival { at, to, generation })
                }
                [found] => return Err(from.wrong("kind of event", found)),
            };
            events.push((at, due));
        }
        if let Some(index) = from.number()?.checked_sub(1) {
            let latest = usize::try_from(index).ok().and_then(|index| read.get(index)).copied();
            coming.latest = Some(latest.ok_or_else(|| from.wrong("message that was read before", index + 1))?);
        }
        // No event is due before the last one that was taken, so the time of that one does not matter.
        coming.queue = EventQueue::of(SimTime::default(), events);
        Ok(coming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Messages of which some say the same: 0 and 1 two lists, 2 a question, 3 something of its own each time.
    fn message(which: u8, lists: &[Arc<[NodeId]>; 2]) -> Message {
        match which {
            0 | 1 => Message::Peers(lists[usize::from(which)].clone()),
            2 => Message::StatusRequest,
            _ => Message::HungUp,
        }
    }

    fn says(message: &Message, lists: &[Arc<[NodeId]>; 2]) -> Option<u8> {
        match message {
            Message::Peers(list) => Some(u8::from(!Arc::ptr_eq(list, &lists[0]))),
            Message::StatusRequest => Some(2),
            Message::HungUp => Some(3),
            _ => None,
        }
    }

    proptest! {
        /// If several send the same, each copy has the content that was sent, its sender and its receiver, and only messages under way
        /// are stored.
        #[test]
        fn what_is_shared_arrives_as_if_it_were_not(
            sent in prop::collection::vec((0..4u8, 0..3u32, 0..4usize, 0..3usize, any::<bool>()), 1..60),
        ) {
            let lists: [Arc<[NodeId]>; 2] = [Arc::new([NodeId(1)]), Arc::new([NodeId(1)])];
            let (mut coming, mut expected, mut now) = (PendingEvents::default(), std::collections::VecDeque::new(), 0);
            for (which, from, copies, heard, taken) in sent {
                let from = NodeId(from);
                let at = SimTime::from_micros(now + 1_000);
                let arrivals: Vec<Arrival> =
                    (0..copies as u32).map(|to| Arrival { at, to: NodeId(to), generation: to + 7 }).collect();
                coming.push_copies(from, &mut message(which, &lists), &arrivals);
                expected.extend((0..copies as u32).map(|to| (which, from, NodeId(to))));
                for _ in 0..heard {
                    let through = SimTime::from_micros(u64::MAX);
                    let popped = coming.pop(through, None::<fn(ActorId, Option<NodeId>, Soon)>);
                    let Some(wanted) = expected.pop_front() else {
                        prop_assert!(popped.is_none());
                        continue;
                    };
                    let (at, due) = popped.ok_or_else(|| TestCaseError::fail("a copy is under way"))?;
                    let Bound::For { to, generation } = coming.bound(&due) else {
                        return Err(TestCaseError::fail("it is for a peer"));
                    };
                    now = at.micros();
                    prop_assert_eq!(generation, to.node.0 + 7);
                    let found = {
                        let handed = coming.hand_over(due);
                        match taken {
                            true => match handed.stimulus() {
                                Stimulus::Input(Input::Message { from, message }) => Some((from, message)),
                                _ => None,
                            },
                            false => handed.message().map(|(from, message)| (from, message.clone())),
                        }
                    };
                    let found = found.ok_or_else(|| TestCaseError::fail("it is a message"))?;
                    let (which, from, node) = wanted;
                    prop_assert_eq!((says(&found.1, &lists), found.0.node, to.node), (Some(which), from, node));
                }
                prop_assert!(coming.messages.len() <= expected.len());
            }
        }
    }
}
