//! What is to come: the queue, with what is due kept beside it, so that the queue itself moves small things only. Most of
//! what is under way are copies of a block that went to many peers at once: these share one record.

use super::Item;
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime},
    sim::queue::EventQueue,
};
use slab::Slab;

/// Everything that will happen, as far as it is known.
#[derive(Default)]
pub struct Coming {
    queue: EventQueue<Due>,
    items: Slab<Item>,
    casts: Slab<Cast>,
}

/// What waits in the queue: where it is kept.
#[derive(Clone, Copy)]
enum Due {
    Item(u32),
    Copy { cast: u32, to: NodeId, generation: u32 },
}

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
        let place = place(self.items.insert(item));
        self.queue.push(at, Due::Item(place));
    }

    /// Copies of one message, in the order sent.
    pub fn push_all(&mut self, from: ActorId, message: Message, arrivals: &[Arrival]) {
        if arrivals.is_empty() {
            return;
        }
        let cast = place(self.casts.insert(Cast { from, message, left: arrivals.len() as u32 }));
        for Arrival { at, to, generation } in arrivals {
            self.queue.push(*at, Due::Copy { cast, to: *to, generation: *generation });
        }
    }

    /// The next of all, if it is due at `through` or before.
    pub fn pop(&mut self, through: SimTime) -> Option<(SimTime, Item)> {
        let (at, due) = self.queue.pop(through)?;
        let item = match due {
            Due::Item(place) => self.items.remove(place as usize),
            Due::Copy { cast, to, generation } => {
                let (from, message) = self.take_copy(cast as usize);
                let to = ActorId { node: to, role: Role::Peer };
                Item::Input { to, generation, input: Input::Message { from, message } }
            }
        };
        Some((at, item))
    }

    fn take_copy(&mut self, place: usize) -> (ActorId, Message) {
        let cast = &mut self.casts[place];
        cast.left -= 1;
        if cast.left > 0 {
            // Most of all are blocks: they are spared the match on all other messages.
            let copy = match &cast.message {
                Message::Block(block) => Message::Block(block.clone()),
                other => other.clone(),
            };
            return (cast.from, copy);
        }
        let Cast { from, message, .. } = self.casts.remove(place);
        (from, message)
    }

    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("so many events do not fit into memory")
}
