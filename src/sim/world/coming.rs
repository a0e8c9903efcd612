//! What is to come: the queue, with what is due kept beside it, so that the queue itself moves small things only. Most of
//! what is under way are messages from peer to peer, and of those most say the same: such copies share one record. Most
//! of the rest are wake-ups.

use super::Item;
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus, Wake},
    ledger::saved::{LoadError, Loader, Saved, Saver},
    protocol::hashing::IdHash,
    sim::{
        plan::ROLES,
        queue::{EventQueue, Soon},
    },
};
use indexmap::{
    IndexMap,
    map::Entry::{Occupied, Vacant},
};
use prefetch_index::prefetch_index;
use slab::Slab;
use std::mem;

/// Everything that will happen, as far as it is known.
#[derive(Clone, Default)]
pub struct Coming {
    queue: EventQueue<Due>,
    items: Slab<Item>,
    wakes: Wakes,
    messages: Slab<Shared>,
    /// The message that was last sent from peer to peer, while it is under way.
    latest: Option<u32>,
}

/// Wake-ups: plain values, so that it is known where each lies without looking there.
#[derive(Clone, Default)]
struct Wakes {
    all: Vec<Wake>,
    /// Places of those that are over.
    free: Vec<u32>,
}

impl Wakes {
    fn insert(&mut self, wake: Wake) -> u32 {
        let Some(free) = self.free.pop() else {
            self.all.push(wake);
            return place(self.all.len() - 1);
        };
        self.all[free as usize] = wake;
        free
    }

    fn remove(&mut self, place: u32) -> Wake {
        self.free.push(place);
        self.all[place as usize]
    }
}

/// One copy of a message from peer to peer, by the place of the record that the copies share. Neither to be forgotten nor
/// to be given back twice: the record goes with the last of them.
#[derive(Debug)]
#[must_use]
pub struct Copied {
    place: u32,
    from: NodeId,
}

/// What waits in the queue: what of what is kept, and of what most events are for whom and from whom. It is moved about,
/// so it is two words, which a processor moves at once.
#[derive(Clone, Copy)]
struct Due {
    /// The place, and above it the node a copy or a wake-up is for; [`Due::ITEM`] of anything else.
    what: u64,
    /// The generation of that node, and above it the node a copy is from; of a wake-up [`Due::WAKES`] and the role.
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
    fn next(self) -> Next {
        let (place, to) = halves(self.what);
        let (generation, from) = halves(self.rest);
        let node = NodeId(to);
        match (to, from.checked_sub(Self::WAKES)) {
            (Self::ITEM, _) => Next::Item(Kept(place)),
            (_, None) => Next::Copy { copy: Copied { place, from: NodeId(from) }, to: node, generation },
            (_, Some(role)) => {
                Next::Wake { wake: Waking(place), to: ActorId { node, role: ROLES[role as usize] }, generation }
            }
        }
    }
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(pair: u64) -> (u32, u32) {
    (pair as u32, (pair >> 32) as u32)
}

/// What is due.
pub enum Next {
    /// To be looked at with [`Coming::look`], and taken with [`Coming::item`] or [`Coming::stimulus`].
    Item(Kept),
    /// A wake-up of an actor of a node in its state of this generation.
    Wake { wake: Waking, to: ActorId, generation: u32 },
    /// A copy of a message between peers, for that of a node in its state of this generation.
    Copy { copy: Copied, to: NodeId, generation: u32 },
}

/// The place of an item. Not to be forgotten.
#[derive(Debug)]
#[must_use]
pub struct Kept(u32);

/// The place of a wake-up. Not to be forgotten.
#[derive(Debug)]
#[must_use]
pub struct Waking(u32);

/// A message from peer to peer, or what several say alike.
#[derive(Clone)]
struct Shared {
    message: Message,
    /// Copies still under way.
    left: u32,
}

/// When a copy of a message reaches which peer, if that is still in its state of this generation.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub at: SimTime,
    pub to: NodeId,
    pub generation: u32,
}

/// What an event is that is written down.
const ITEM: u8 = 0;
const WAKE: u8 = 1;
const COPY: u8 = 2;

impl Coming {
    /// Bytes of a copy of a message in the queue, whatever the message says.
    pub const COPY_BYTES: u64 = size_of::<(u64, Due)>() as u64;

    pub fn push(&mut self, at: SimTime, item: Item) {
        let Kept(place) = self.keep(item);
        self.queue.push(at, Due::item(place));
    }

    /// Wakes an actor, if its node is still in its state of this generation.
    pub fn push_wake(&mut self, at: SimTime, to: ActorId, generation: u32, wake: Wake) {
        let place = self.wakes.insert(wake);
        self.queue.push(at, Due::wake(place, to, generation));
    }

    /// Keeps an item that is due already.
    pub fn keep(&mut self, item: Item) -> Kept {
        Kept(place(self.items.insert(item)))
    }

    /// Copies of one message from peer to peer, in the order sent. The message is taken, unless one like it is kept.
    pub fn push_copies(&mut self, from: NodeId, message: &mut Message, arrivals: &[Arrival]) {
        let Some(copies) = u32::try_from(arrivals.len()).ok().filter(|copies| *copies > 0) else { return };
        let place = self.share(message, copies);
        for arrival in arrivals {
            self.queue.push(arrival.at, Due::copy(place, from, arrival));
        }
    }

    /// Keeps a message for so many copies, if it is not kept already.
    fn share(&mut self, message: &mut Message, copies: u32) -> u32 {
        if let Some(latest) = self.latest
            && let Some(shared) = self.messages.get_mut(latest as usize)
            && shared.message.is_same(message)
        {
            shared.left += copies;
            return latest;
        }
        let place = place(self.messages.insert(Shared { message: message.take(), left: copies }));
        self.latest = Some(place);
        place
    }

    /// The next of all, if it is due at `through` or before. Tells who soon hears something from whose peer, or is woken,
    /// if that is wanted.
    pub fn pop(
        &mut self,
        through: SimTime,
        soon: Option<impl FnMut(ActorId, Option<NodeId>, Soon)>,
    ) -> Option<(SimTime, Next)> {
        let (items, wakes) = (&self.items, &self.wakes.all);
        let soon = soon.map(|mut soon| {
            move |due: &Due, how| match due.next() {
                Next::Copy { copy, to, .. } => soon(peer(to), Some(copy.from), how),
                Next::Wake { wake, to, .. } => {
                    if how == Soon::Near {
                        prefetch_index(wakes, wake.0 as usize);
                    }
                    soon(to, None, how);
                }
                Next::Item(Kept(place)) => {
                    if let Item::Input { to, input: Input::Message { from, .. }, .. } = &items[place as usize] {
                        soon(*to, Some(from.node), how);
                    }
                }
            }
        });
        let (at, due) = self.queue.pop_foreseeing(through, soon)?;
        Some((at, due.next()))
    }

    pub fn look(&self, kept: &Kept) -> &Item {
        &self.items[kept.0 as usize]
    }

    pub fn item(&mut self, kept: Kept) -> Item {
        self.items.remove(kept.0 as usize)
    }

    /// What an actor will be woken for.
    pub fn wake(&self, wake: &Waking) -> Wake {
        self.wakes.all[wake.0 as usize]
    }

    /// What an actor is woken for.
    pub fn woken(&mut self, wake: Waking) -> Wake {
        self.wakes.remove(wake.0)
    }

    /// What an actor hears of an item that is for one: moved once, straight from where it lies, for this is done
    /// millions of times.
    pub fn stimulus(&mut self, kept: Kept) -> Stimulus {
        let place = kept.0 as usize;
        let stimulus = match &mut self.items[place] {
            Item::Input { input, .. } => Stimulus::Input(mem::replace(input, Input::Start)),
            Item::Stimulus { stimulus, .. } => mem::replace(stimulus, Stimulus::Input(Input::Start)),
            other => panic!("{other:?} is not for an actor"),
        };
        self.items.remove(place);
        stimulus
    }

    /// Who sent a copy, and what it says.
    pub fn copied(&self, copy: &Copied) -> (ActorId, &Message) {
        (peer(copy.from), &self.messages[copy.place as usize].message)
    }

    /// Gives a copy back.
    pub fn heard(&mut self, copy: Copied) {
        let shared = &mut self.messages[copy.place as usize];
        shared.left -= 1;
        if shared.left == 0 {
            self.forget(copy.place);
        }
    }

    /// Makes a copy a message of its own.
    pub fn taken(&mut self, copy: Copied) -> (ActorId, Message) {
        let shared = &mut self.messages[copy.place as usize];
        shared.left -= 1;
        let message = match shared.left {
            0 => self.forget(copy.place),
            _ => shared.message.clone(),
        };
        (peer(copy.from), message)
    }

    fn forget(&mut self, place: u32) -> Message {
        self.latest = self.latest.filter(|latest| *latest != place);
        self.messages.remove(place as usize).message
    }

    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// Bytes that it takes: an estimate.
    pub fn bytes(&self) -> usize {
        self.queue.bytes()
            + self.items.len() * size_of::<Item>()
            + self.wakes.all.len() * size_of::<Wake>()
            + self.messages.len() * size_of::<Shared>()
    }

    /// Who sends what is under way, and to whom. Looks at everything that is to come.
    pub fn under_way(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.queue.iter().filter_map(|due| match due.next() {
            Next::Copy { copy, to, .. } => Some((copy.from, to)),
            Next::Item(kept) => match self.look(&kept) {
                Item::Input { to, input: Input::Message { from, .. }, .. } | Item::Post { from, to, .. } => {
                    Some((from.node, to.node))
                }
                _ => None,
            },
            Next::Wake { .. } => None,
        })
    }
}

fn peer(node: NodeId) -> ActorId {
    ActorId { node, role: Role::Peer }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("so many events do not fit into memory")
}

/// In the order in which all of it comes, whatever places it lies in: those are given anew.
impl Saved for Coming {
    fn save(&self, out: &mut Saver) {
        let Self { queue, items, wakes, messages, latest: _ } = self;
        let events = queue.in_order();
        out.number(events.len() as u64);
        let mut written: IndexMap<u64, u64, IdHash> = IndexMap::default();
        for (at, due) in events {
            at.save(out);
            match due.next() {
                Next::Item(Kept(place)) => {
                    out.raw(&[ITEM]);
                    items[place as usize].save(out);
                }
                Next::Wake { wake: Waking(place), to, generation } => {
                    out.raw(&[WAKE]);
                    wakes.all[place as usize].save(out);
                    to.save(out);
                    generation.save(out);
                }
                Next::Copy { copy: Copied { place, from }, to, generation } => {
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
                            messages[place as usize].message.save(out);
                        }
                    }
                }
            }
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (mut coming, mut read) = (Self::default(), Vec::new());
        let mut events = Vec::new();
        for _ in 0..from.number()? {
            let at = SimTime::load(from)?;
            let due = match from.array()? {
                [ITEM] => Due::item(coming.keep(Item::load(from)?).0),
                [WAKE] => {
                    let (wake, to, generation) = Saved::load(from)?;
                    Due::wake(coming.wakes.insert(wake), to, generation)
                }
                [COPY] => {
                    let (sender, to, generation, number) = <(_, _, _, u64)>::load(from)?;
                    let message = match number.checked_sub(1) {
                        None => {
                            let message = Message::load(from)?;
                            read.push(place(coming.messages.insert(Shared { message, left: 0 })));
                            read.last()
                        }
                        Some(index) => usize::try_from(index).ok().and_then(|index| read.get(index)),
                    };
                    let message = *message.ok_or_else(|| from.wrong("message that was read before", number))?;
                    coming.messages[message as usize].left += 1;
                    Due::copy(message, sender, &Arrival { at, to, generation })
                }
                [found] => return Err(from.wrong("kind of event", found)),
            };
            events.push((at, due));
        }
        // Nothing comes before what has come, so it does not matter when that was.
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
        /// Whoever else says the same: each copy says what was sent, is from who sent it, and for whom it was sent; and
        /// nothing is kept that is not under way.
        #[test]
        fn what_is_shared_arrives_as_if_it_were_not(
            sent in prop::collection::vec((0..4u8, 0..3u32, 0..4usize, 0..3usize, any::<bool>()), 1..60),
        ) {
            let lists: [Arc<[NodeId]>; 2] = [Arc::new([NodeId(1)]), Arc::new([NodeId(1)])];
            let (mut coming, mut expected, mut now) = (Coming::default(), std::collections::VecDeque::new(), 0);
            for (which, from, copies, heard, taken) in sent {
                let from = NodeId(from);
                let at = SimTime::from_micros(now + 1_000);
                let arrivals: Vec<Arrival> =
                    (0..copies as u32).map(|to| Arrival { at, to: NodeId(to), generation: to + 7 }).collect();
                coming.push_copies(from, &mut message(which, &lists), &arrivals);
                expected.extend((0..copies as u32).map(|to| (which, from, NodeId(to))));
                for _ in 0..heard {
                    let through = SimTime::from_micros(u64::MAX);
                    let next = coming.pop(through, None::<fn(ActorId, Option<NodeId>, Soon)>);
                    let Some(wanted) = expected.pop_front() else {
                        prop_assert!(next.is_none());
                        continue;
                    };
                    let Some((at, Next::Copy { copy, to, generation })) = next else {
                        return Err(TestCaseError::fail("a copy is under way"));
                    };
                    now = at.micros();
                    prop_assert_eq!(generation, to.0 + 7);
                    let found = match taken {
                        true => coming.taken(copy),
                        false => {
                            let (from, message) = coming.copied(&copy);
                            let found = (from, message.clone());
                            coming.heard(copy);
                            found
                        }
                    };
                    let (which, from, node) = wanted;
                    prop_assert_eq!((says(&found.1, &lists), found.0.node, to), (Some(which), from, node));
                }
                prop_assert!(coming.messages.len() <= expected.len());
            }
        }
    }
}
