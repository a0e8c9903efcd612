//! The way from the queue to an actor: the due event, whether it reaches its node now, and the input that the actor takes or reads.

use super::{
    Item, World,
    nodes::{FreedInput, NotNow, Reach},
    pending_events::{Bound, HandedEvent, PoppedEntry},
};
use crate::{
    actors::{ActorId, Input, Message, NodeId, Role, SimTime, Stimulus, prefetch::Prefetch},
    sim::{plan, queue::Soon},
};

/// The next input that a stage hands to an actor.
pub struct Delivery<'w> {
    /// Index of the actor in [`crate::sim::Plan::actors`].
    pub index: usize,
    pub to: ActorId,
    /// The time that the node's clock shows.
    pub now: SimTime,
    pub what: HandedEvent<'w>,
}

/// A due event that reaches its actor, with the time that its node's clock shows.
struct ReachedEvent {
    to: ActorId,
    now: SimTime,
    due: PoppedEntry,
}

impl World {
    /// The next event for an actor due at `through` or before; the clock moves onto it.
    #[inline]
    pub(in crate::sim) fn next(&mut self, through: SimTime) -> Option<Delivery<'_>> {
        self.next_foreseeing(through, None::<fn(usize, Option<NodeId>, Soon)>)
    }

    /// [`World::next`] that calls `soon` with the index of each actor that will soon receive an input, and with the sending node unless it
    /// is a wake-up.
    #[inline]
    pub(in crate::sim) fn next_foreseeing(
        &mut self,
        through: SimTime,
        mut soon: Option<impl FnMut(usize, Option<NodeId>, Soon)>,
    ) -> Option<Delivery<'_>> {
        let ReachedEvent { to, now, due } = loop {
            let (links, nodes) = (self.network.links(), &self.nodes);
            let soon = soon.as_mut().map(|soon| {
                |to: ActorId, from: Option<NodeId>, how| {
                    soon(plan::index(to), from, how);
                    if how == Soon::Far {
                        nodes.fetch(to.node);
                        nodes.tips().fetch(to.node);
                    }
                    // A node that wakes up sends.
                    if from.is_none() && how == Soon::Next {
                        links.fetch(to.node);
                    }
                }
            });
            let (at, due) = self.queue.pop(through, soon)?;
            self.now = at;
            if let Some(reached) = self.reached(due) {
                break reached;
            }
        };
        self.delivered += 1;
        if self.tells_acts {
            self.tell_heard(to, now, &due);
        }
        Some(Delivery { index: plan::index(to), to, now, what: self.queue.hand_over(due) })
    }

    /// Returns the actor that receives the due event, and the time of its node's clock. Consumes an event without an actor, or one that
    /// does not reach it now.
    #[inline]
    fn reached(&mut self, due: PoppedEntry) -> Option<ReachedEvent> {
        let (to, reach) = match self.queue.bound(&due) {
            Bound::For { to, generation } | Bound::Item(&Item::Input { to, generation, .. }) => {
                (to, self.nodes.reach(to.node, generation, self.now))
            }
            // The pool of a node that is down may be kept, so it hears stimuli meanwhile.
            Bound::Item(&Item::Stimulus { to, .. }) if self.nodes.is_up(to.node) || to.role == Role::Pool => {
                (to, Reach::Now(self.nodes.clock(to.node).local(self.now)))
            }
            Bound::Item(_) => return self.done(due),
        };
        match reach {
            Reach::Now(now) => Some(ReachedEvent { to, now, due }),
            Reach::Not(why) => {
                self.out_of_reach(why, to, due);
                None
            }
        }
    }

    #[inline(never)]
    fn out_of_reach(&mut self, why: NotNow, to: ActorId, due: PoppedEntry) {
        if let Some(Stimulus::Input(input)) = self.queue.stimulus(due) {
            self.not_now(why, to, input);
        }
    }

    /// Carries out an item that is not for an actor.
    #[inline(never)]
    fn done(&mut self, due: PoppedEntry) -> Option<ReachedEvent> {
        match self.queue.item(due)? {
            // A node that is down receives nothing. Its new actors learn their deviations when they begin.
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
            Item::Turn { fault, node, stays } => self.turn(fault, node, stays),
            Item::Free { node, generation } => return self.free(node, generation),
            Item::Intake(intake) => {
                let heard = self.take_in(intake)?;
                let due = self.queue.push_first(heard);
                return self.reached(due);
            }
            Item::Departures => self.finish_flows(),
            Item::Answer(answer) => self.send_answer(*answer),
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

    /// Schedules a check for the answer to a post that has reached a node that stands still.
    fn wait_for_answer(&mut self, from: ActorId, to: ActorId, message: &Message) {
        if matches!(message, Message::Block(_) | Message::Transactions(_)) {
            self.queue.push(self.post_fails_at(), Item::Answerless { from, to });
        }
    }

    /// Makes the input that has waited longest on a node due.
    fn free(&mut self, node: NodeId, generation: u32) -> Option<ReachedEvent> {
        let FreedInput { to, input, local, again } = self.nodes.free(node, generation, self.now)?;
        self.call(node, again);
        Some(ReachedEvent { to, now: local, due: self.queue.push_first(Item::Input { to, generation, input }) })
    }

    pub(super) fn call(&mut self, node: NodeId, at: Option<SimTime>) {
        if let Some(at) = at {
            let generation = self.nodes.generation(node);
            self.queue.push(at.max(self.now), Item::Free { node, generation });
        }
    }
}
