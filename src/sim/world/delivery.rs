//! From the queue to an actor: what is due, whether it reaches its node now, and what the actor then takes or reads.

use super::{
    Item, World,
    coming::{Copied, Kept, Next, Waking},
    nodes::{Freed, NotNow, Reach},
};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus, ahead::Ahead},
    sim::{plan, queue::Soon},
};

/// What a stage hands to an actor next.
#[derive(Debug)]
pub struct Delivery {
    /// Index of the actor in [`crate::sim::Plan::actors`].
    pub index: usize,
    pub to: ActorId,
    /// What the node's clock shows.
    pub now: SimTime,
    pub what: What,
}

/// What an actor is handed.
#[derive(Debug)]
pub enum What {
    /// Something of its own, which the world keeps until it is fetched.
    Kept(Kept),
    /// What it asked to be woken for.
    Wake(Waking),
    /// A copy of a message from peer to peer, to be read where it lies and given back, or taken.
    Copy(Copied),
}

impl World {
    /// The next event for an actor due at `through` or before; the clock moves onto it.
    #[inline]
    pub(in crate::sim) fn next(&mut self, through: SimTime) -> Option<Delivery> {
        self.next_foreseeing(through, None::<fn(usize, Option<NodeId>, Soon)>)
    }

    /// [`World::next`] that tells the index of an actor that will hear something soon, and of which node's, or that will
    /// be woken, if that is wanted.
    #[inline]
    pub(in crate::sim) fn next_foreseeing(
        &mut self,
        through: SimTime,
        mut soon: Option<impl FnMut(usize, Option<NodeId>, Soon)>,
    ) -> Option<Delivery> {
        loop {
            let links = self.network.links();
            let soon = soon.as_mut().map(|soon| {
                |to: ActorId, from: Option<NodeId>, how| {
                    soon(plan::index(to), from, how);
                    // Who is woken sends.
                    if from.is_none() && how == Soon::Next {
                        links.fetch(to.node);
                    }
                }
            });
            let (now, next) = self.queue.pop(through, soon)?;
            self.now = now;
            match next {
                Next::Copy { copy, to, generation } => {
                    let to = ActorId { node: to, role: Role::Peer };
                    match self.nodes.reach(to.node, generation, now) {
                        Reach::Now(local) => return Some(self.delivery(to, local, What::Copy(copy))),
                        Reach::Not(why) => {
                            let input = self.taken(copy);
                            self.not_now(why, to, input);
                        }
                    }
                }
                Next::Wake { wake, to, generation } => match self.nodes.reach(to.node, generation, now) {
                    Reach::Now(local) => return Some(self.delivery(to, local, What::Wake(wake))),
                    Reach::Not(why) => {
                        let input = Input::Wake(self.queue.woken(wake));
                        self.not_now(why, to, input);
                    }
                },
                Next::Item(kept) => {
                    if let Some(delivery) = self.item(kept) {
                        return Some(delivery);
                    }
                }
            }
        }
    }

    /// What is for an actor that hears it now stays where it is until the actor is called.
    fn item(&mut self, kept: Kept) -> Option<Delivery> {
        match *self.queue.look(&kept) {
            Item::Input { to, generation, .. } => match self.nodes.reach(to.node, generation, self.now) {
                Reach::Now(local) => return Some(self.delivery(to, local, What::Kept(kept))),
                Reach::Not(why) => {
                    if let Stimulus::Input(input) = self.queue.stimulus(kept) {
                        self.not_now(why, to, input);
                    }
                    return None;
                }
            },
            Item::Stimulus { to, .. } if self.nodes.is_up(to.node) => {
                let local = self.nodes.clock(to.node).local(self.now);
                return Some(self.delivery(to, local, What::Kept(kept)));
            }
            _ => {}
        }
        match self.queue.item(kept) {
            // A node that is down hears nothing; when it comes back, it is told anew what makes it deviate.
            Item::Input { .. } | Item::Stimulus { .. } => {}
            Item::Post { from, to, message } => {
                if self.nodes.is_up(from.node) {
                    self.send(from, to, &mut { message });
                }
            }
            Item::Begin(entry) => self.begin(entry),
            Item::End(entry) => self.end(entry),
            Item::Poll(index) => self.poll(index),
            Item::Free { node, generation } => return self.free(node, generation),
        }
        None
    }

    fn delivery(&mut self, to: ActorId, now: SimTime, what: What) -> Delivery {
        self.delivered += 1;
        if self.tells_acts {
            self.tell_heard(to, now, &what);
        }
        Delivery { index: plan::index(to), to, now, what }
    }

    /// What happens to an input that does not reach its node now.
    fn not_now(&mut self, why: NotNow, to: ActorId, input: Input) {
        match why {
            NotNow::Waits => {
                let call = self.nodes.wait(to, input);
                self.call(to.node, call);
            }
            NotNow::Gone => self.lost_with_its_node(input),
        }
    }

    /// Hands on what has waited longest on a node.
    fn free(&mut self, node: NodeId, generation: u32) -> Option<Delivery> {
        let Freed { to, input, local, again } = self.nodes.free(node, generation, self.now)?;
        self.call(node, again);
        let kept = self.queue.keep(Item::Input { to, generation, input });
        Some(self.delivery(to, local, What::Kept(kept)))
    }

    pub(super) fn call(&mut self, node: NodeId, at: Option<SimTime>) {
        if let Some(at) = at {
            let generation = self.nodes.generation(node);
            self.queue.push(at.max(self.now), Item::Free { node, generation });
        }
    }

    /// What an actor hears, for it to take.
    pub(in crate::sim) fn stimulus(&mut self, what: What) -> Stimulus {
        match what {
            What::Kept(kept) => self.queue.stimulus(kept),
            What::Wake(wake) => Stimulus::Input(Input::Wake(self.queue.woken(wake))),
            What::Copy(copy) => Stimulus::Input(self.taken(copy)),
        }
    }

    /// Who sent what, for an actor that reads it where it lies; `None` of anything but a message.
    pub(in crate::sim) fn message(&self, what: &What) -> Option<(ActorId, &Message)> {
        match what {
            What::Kept(kept) => match self.queue.look(kept) {
                Item::Input { input: Input::Message { from, message }, .. } => Some((*from, message)),
                _ => None,
            },
            What::Copy(copy) => Some(self.queue.copied(copy)),
            What::Wake(_) => None,
        }
    }

    /// A message has been read.
    pub(in crate::sim) fn heard(&mut self, what: What) {
        match what {
            What::Kept(kept) => drop(self.queue.item(kept)),
            What::Copy(copy) => self.queue.heard(copy),
            What::Wake(wake) => {
                self.queue.woken(wake);
            }
        }
    }

    /// A copy as an input of its own.
    fn taken(&mut self, copy: Copied) -> Input {
        let (from, message) = self.queue.taken(copy);
        Input::Message { from, message }
    }
}
