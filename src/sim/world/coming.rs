//! What is to come: the queue, with what is due kept beside it, so that the queue itself moves small things only. Most of
//! what is under way are copies of a block that went to many peers at once: these share one record.

use super::Item;
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus},
    sim::queue::{EventQueue, Soon},
};
use slab::Slab;
use std::mem;

/// Everything that will happen, as far as it is known.
#[derive(Default)]
pub struct Coming {
    queue: EventQueue<Due>,
    items: Slab<Item>,
    casts: Slab<Cast>,
}

/// One copy of a message to many, by the place of the record that they share. Neither to be forgotten nor to be given
/// back twice: the record goes with the last of them.
#[derive(Debug)]
#[must_use]
pub struct Copied(u32);

/// What waits in the queue: where it is kept. Three plain numbers, for it is moved about.
#[derive(Clone, Copy)]
struct Due {
    place: u32,
    /// For the peer of which node a copy is; [`Due::ITEM`] of anything else.
    to: u32,
    generation: u32,
}

impl Due {
    const ITEM: u32 = u32::MAX;
}

/// What is due.
pub enum Next {
    /// To be looked at with [`Coming::look`], and taken with [`Coming::item`] or [`Coming::stimulus`].
    Item(Kept),
    /// A copy of a message to many, for the peer of a node in its state of this generation.
    Copy { copy: Copied, to: NodeId, generation: u32 },
}

/// The place of an item. Not to be forgotten.
#[derive(Debug)]
#[must_use]
pub struct Kept(u32);

/// A message to many.
struct Cast {
    from: ActorId,
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

impl Coming {
    pub fn push(&mut self, at: SimTime, item: Item) {
        let Kept(place) = self.keep(item);
        self.queue.push(at, Due { place, to: Due::ITEM, generation: 0 });
    }

    /// Keeps an item that is due already.
    pub fn keep(&mut self, item: Item) -> Kept {
        Kept(place(self.items.insert(item)))
    }

    /// Copies of one message, in the order sent.
    pub fn push_all(&mut self, from: ActorId, message: Message, arrivals: &[Arrival]) {
        if arrivals.is_empty() {
            return;
        }
        let place = place(self.casts.insert(Cast { from, message, left: arrivals.len() as u32 }));
        for Arrival { at, to, generation } in arrivals {
            self.queue.push(*at, Due { place, to: to.0, generation: *generation });
        }
    }

    /// The next of all, if it is due at `through` or before. Tells who hears something from whose peer soon, if that is
    /// wanted.
    pub fn pop(
        &mut self,
        through: SimTime,
        soon: Option<impl FnMut(ActorId, NodeId, Soon)>,
    ) -> Option<(SimTime, Next)> {
        let (items, casts) = (&self.items, &self.casts);
        let soon = soon.map(|mut soon| {
            move |due: &Due, how| match due.to {
                Due::ITEM => {
                    if let Item::Input { to, input: Input::Message { from, .. }, .. } = &items[due.place as usize] {
                        soon(*to, from.node, how);
                    }
                }
                to => soon(ActorId { node: NodeId(to), role: Role::Peer }, casts[due.place as usize].from.node, how),
            }
        });
        let (at, Due { place, to, generation }) = self.queue.pop_foreseeing(through, soon)?;
        let next = match to {
            Due::ITEM => Next::Item(Kept(place)),
            to => Next::Copy { copy: Copied(place), to: NodeId(to), generation },
        };
        Some((at, next))
    }

    pub fn look(&self, kept: &Kept) -> &Item {
        &self.items[kept.0 as usize]
    }

    pub fn item(&mut self, kept: Kept) -> Item {
        self.items.remove(kept.0 as usize)
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

    /// Who sent a message to many, and what.
    pub fn copied(&self, copy: &Copied) -> (ActorId, &Message) {
        let cast = &self.casts[copy.0 as usize];
        (cast.from, &cast.message)
    }

    /// Gives a copy back.
    pub fn heard(&mut self, copy: Copied) {
        let cast = &mut self.casts[copy.0 as usize];
        cast.left -= 1;
        if cast.left == 0 {
            self.casts.remove(copy.0 as usize);
        }
    }

    /// Makes a copy a message of its own.
    pub fn taken(&mut self, copy: Copied) -> (ActorId, Message) {
        let (from, message) = self.copied(&copy);
        let message = message.clone();
        self.heard(copy);
        (from, message)
    }

    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("so many events do not fit into memory")
}
