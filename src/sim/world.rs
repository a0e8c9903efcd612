//! The world a stage plays in: the clock and queue, the network, and those who watch.

use super::{
    Plan,
    network::{Network, Route},
    plan,
    queue::EventQueue,
};
use crate::actors::{ActorId, Effect, Event, Input, Message, NodeId, RequestId, Role, SimTime, Submission};

/// Someone who watches a run; may not change it.
pub trait Observer: Send {
    /// Something happened at a node.
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event);

    /// Something happened between nodes, or to one of them from outside. The trace digest leaves it out: it is the
    /// cause of events and not one of a node's own.
    fn observe_network(&mut self, _now: SimTime, _event: &NetworkEvent<'_>) {}
}

/// What happens between nodes, or to a node from outside.
#[derive(Debug)]
pub enum NetworkEvent<'a> {
    /// A message left its sender and will arrive at the given instant.
    Sent { from: ActorId, to: ActorId, message: &'a Message, arrives: SimTime },
    /// A message left its sender and will never arrive.
    Lost { from: ActorId, to: ActorId, message: &'a Message },
    /// The fault of this index in the plan begins.
    FaultBegan { index: usize, kind: &'static str },
    /// The fault of this index in the plan ends.
    FaultEnded { index: usize, kind: &'static str },
}

/// What a stage hands to an actor next.
#[derive(Debug)]
pub struct Delivery {
    /// Index of the actor in [`Plan::actors`].
    pub index: usize,
    pub now: SimTime,
    pub input: Input,
}

/// Clock, queue and network of one run.
pub struct World {
    now: SimTime,
    queue: EventQueue<(ActorId, Input)>,
    network: Network,
    observers: Vec<Box<dyn Observer>>,
    answers: Vec<(RequestId, Submission)>,
    requests: u64,
    delivered: u64,
}

impl World {
    /// The world of a plan at its first instant: every actor is about to start.
    pub fn new(plan: &Plan, actors: impl Iterator<Item = ActorId>, observers: Vec<Box<dyn Observer>>) -> Self {
        let mut queue = EventQueue::new();
        for actor in actors {
            queue.push(plan.start, (actor, Input::Start));
        }
        let (now, network) = (plan.start, plan.network());
        Self { now, queue, network, observers, answers: Vec::new(), requests: 0, delivered: 0 }
    }

    /// The virtual instant.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Inputs delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// The next event due at `through` or before; the clock moves onto it.
    pub(super) fn next(&mut self, through: SimTime) -> Option<Delivery> {
        let (now, (to, input)) = self.queue.pop(through)?;
        self.now = now;
        self.delivered += 1;
        Some(Delivery { index: plan::index(to), now, input })
    }

    /// Moves the clock on where nothing is left to do before.
    pub(super) fn rest_until(&mut self, until: SimTime) {
        self.now = self.now.max(until);
    }

    /// Carries out what the actor at `index` wants, in order.
    pub(super) fn absorb(&mut self, from: ActorId, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => self.send(from, to, message),
                Effect::WakeAt { at, wake } => self.queue.push(at.max(self.now), (from, Input::Wake(wake))),
                Effect::Observe(event) => {
                    for observer in &mut self.observers {
                        observer.observe(self.now, from.node, &event);
                    }
                }
                Effect::Answer { request, submission } => self.answers.push((request, submission)),
            }
        }
    }

    /// Hands transactions in at a node's API, now. The answer comes with [`World::take_answer`].
    pub(super) fn submit(&mut self, node: NodeId, transactions: crate::actors::message::Transactions) -> RequestId {
        let request = RequestId(self.requests);
        self.requests += 1;
        let to = ActorId { node, role: Role::Peer };
        self.queue.push(self.now, (to, Input::Submit { request, transactions }));
        request
    }

    /// The answer to a request, once it is there.
    pub(super) fn take_answer(&mut self, request: RequestId) -> Option<Submission> {
        let index = self.answers.iter().position(|(answered, _)| *answered == request)?;
        Some(self.answers.swap_remove(index).1)
    }

    fn send(&mut self, from: ActorId, to: ActorId, message: Message) {
        match self.network.route(self.now, from.node, to.node, &message) {
            Route::Lost => {}
            Route::Arrives(at) => self.queue.push(at, (to, Input::Message { from, message })),
            Route::ArrivesAt(all) => {
                for at in all {
                    self.queue.push(at, (to, Input::Message { from, message: message.clone() }));
                }
            }
        }
    }
}
