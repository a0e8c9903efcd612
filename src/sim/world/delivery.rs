//! From the queue to an actor: what is due, whether it reaches its node now, and what the actor then takes or reads.

use super::{
    Item, World,
    coming::{Handed, Next},
    nodes::{Freed, NotNow, Reach},
    sending::ANSWER_TIME,
};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus, ahead::Ahead},
    sim::{plan, queue::Soon},
};

/// The next input that a stage hands to an actor.
pub struct Delivery<'w> {
    /// Index of the actor in [`crate::sim::Plan::actors`].
    pub index: usize,
    pub to: ActorId,
    /// The time that the node's clock shows.
    pub now: SimTime,
    pub what: Handed<'w>,
}

impl World {
    /// The next event for an actor due at `through` or before; the clock moves onto it.
    #[inline]
    pub(in crate::sim) fn next(&mut self, through: SimTime) -> Option<Delivery<'_>> {
        self.next_foreseeing(through, None::<fn(usize, Option<NodeId>, Soon)>)
    }

    /// [`World::next`] that tells the index of an actor that will hear something soon, and of which node's, or that will
    /// be woken, if that is wanted.
    #[inline]
    pub(in crate::sim) fn next_foreseeing(
        &mut self,
        through: SimTime,
        mut soon: Option<impl FnMut(usize, Option<NodeId>, Soon)>,
    ) -> Option<Delivery<'_>> {
        let (to, now) = loop {
            let links = self.network.links();
            let soon = soon.as_mut().map(|soon| {
                |to: ActorId, from: Option<NodeId>, how| {
                    soon(plan::index(to), from, how);
                    // A node that wakes up sends.
                    if from.is_none() && how == Soon::Next {
                        links.fetch(to.node);
                    }
                }
            });
            self.now = self.queue.pop(through, soon)?;
            if let Some(reached) = self.reached() {
                break reached;
            }
        };
        self.delivered += 1;
        if self.tells_acts {
            self.tell_heard(to, now);
        }
        Some(Delivery { index: plan::index(to), to, now, what: self.queue.hand_over() })
    }

    /// The actor that hears now what is due, and what its node's clock shows. What is for no actor, or does not reach it now,
    /// is done with.
    #[inline]
    fn reached(&mut self) -> Option<(ActorId, SimTime)> {
        let (to, reach) = match self.queue.next()? {
            Next::Copy { to, generation, .. }
            | Next::Wake { to, generation, .. }
            | Next::Item(&Item::Input { to, generation, .. }) => (to, self.nodes.reach(to.node, generation, self.now)),
            // A pool may be kept while its node is down: it is the same one afterwards.
            Next::Item(&Item::Stimulus { to, .. }) if self.nodes.is_up(to.node) || to.role == Role::Pool => {
                (to, Reach::Now(self.nodes.clock(to.node).local(self.now)))
            }
            Next::Item(_) => return self.done(),
        };
        match reach {
            Reach::Now(local) => Some((to, local)),
            Reach::Not(why) => {
                if let Some(Stimulus::Input(input)) = self.queue.stimulus() {
                    self.not_now(why, to, input);
                }
                None
            }
        }
    }

    /// Does what an item that no actor hears says.
    fn done(&mut self) -> Option<(ActorId, SimTime)> {
        match self.queue.item()? {
            // A node that is down hears nothing; its new actors are told when they begin what makes them deviate.
            Item::Input { .. } | Item::Stimulus { .. } => {}
            Item::Post { from, to, message } => {
                if self.nodes.is_up(from.node) {
                    self.send(from, to, &mut { message });
                }
            }
            Item::Answerless { from, to } => self.look_for_answer(from, to),
            Item::Begin(entry) => self.begin(entry),
            Item::End(entry) => self.end(entry),
            Item::Poll(index) => self.poll(index),
            Item::Free { node, generation } => return self.free(node, generation),
        }
        None
    }

    /// Deals with an input that does not reach its node now.
    fn not_now(&mut self, why: NotNow, to: ActorId, input: Input) {
        match why {
            NotNow::Waits => {
                if let Input::Message { from, message } = &input
                    && !self.nodes.is_live(to.node)
                {
                    self.wait_for_answer(*from, to, message);
                }
                let call = self.nodes.wait(to, input);
                self.call(to.node, call);
            }
            NotNow::Gone => self.lost_with_its_node(to, input),
        }
    }

    /// A post has reached a node that stands still. Its sender looks for the answer when its time is up.
    fn wait_for_answer(&mut self, from: ActorId, to: ActorId, message: &Message) {
        if matches!(message, Message::Block(_) | Message::Transactions(_)) {
            self.queue.push(self.now + ANSWER_TIME, Item::Answerless { from, to });
        }
    }

    /// Makes due what has waited longest on a node.
    fn free(&mut self, node: NodeId, generation: u32) -> Option<(ActorId, SimTime)> {
        let Freed { to, input, local, again } = self.nodes.free(node, generation, self.now)?;
        self.call(node, again);
        self.queue.push_first(Item::Input { to, generation, input });
        Some((to, local))
    }

    pub(super) fn call(&mut self, node: NodeId, at: Option<SimTime>) {
        if let Some(at) = at {
            let generation = self.nodes.generation(node);
            self.queue.push(at.max(self.now), Item::Free { node, generation });
        }
    }
}
