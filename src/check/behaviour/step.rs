//! One step of an actor: what it heard, and all it did because of that.

use crate::{
    actors::{ActorId, Event, Input, Message, NodeId, Role, SimTime, Submission, Wake, message::Transactions},
    sim::Heard,
};

/// What an actor heard.
#[derive(Debug)]
pub(super) enum Cause {
    Start,
    /// Its node came back.
    Begins,
    Deviates(bool),
    Wake(Wake),
    Message(ActorId, Message),
    Submit(Transactions),
}

/// Something an actor did.
#[derive(Debug)]
pub(super) enum Did {
    Sent(ActorId, Message),
    Event(Event),
    Answered(Submission),
}

/// What an actor heard, and what it did because of that, in order.
#[derive(Debug)]
pub(super) struct Step {
    pub actor: ActorId,
    pub now: SimTime,
    /// By its node's clock.
    pub local: SimTime,
    pub cause: Cause,
    pub did: Vec<Did>,
}

impl Step {
    pub(super) fn new(actor: ActorId, now: SimTime, local: SimTime, heard: &Heard<'_>) -> Self {
        let cause = match heard {
            Heard::Begins => Cause::Begins,
            Heard::Deviates { on } => Cause::Deviates(*on),
            Heard::Wake(wake) => Cause::Wake(*wake),
            Heard::Message { from, message } => Cause::Message(*from, (*message).clone()),
            Heard::Input(input) => match input {
                Input::Start => Cause::Start,
                Input::Wake(wake) => Cause::Wake(*wake),
                Input::Message { from, message } => Cause::Message(*from, message.clone()),
                Input::Submit { transactions, .. } => Cause::Submit(transactions.clone()),
            },
        };
        Self { actor, now, local, cause, did: Vec::new() }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.did.iter().filter_map(|did| match did {
            Did::Event(event) => Some(event),
            _ => None,
        })
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = (ActorId, &Message)> {
        self.did.iter().filter_map(|did| match did {
            Did::Sent(to, message) => Some((*to, message)),
            _ => None,
        })
    }

    pub(super) fn answer(&self) -> Option<&Submission> {
        self.did.iter().find_map(|did| match did {
            Did::Answered(submission) => Some(submission),
            _ => None,
        })
    }
}

/// What of a step the model has not accounted for yet.
pub(super) struct Left<'a> {
    node: NodeId,
    sent: Vec<Option<(ActorId, &'a Message)>>,
    events: Vec<Option<&'a Event>>,
}

impl<'a> Left<'a> {
    pub(super) fn of(step: &'a Step) -> Self {
        Self { node: step.actor.node, sent: step.sent().map(Some).collect(), events: step.events().map(Some).collect() }
    }

    /// Takes the first message to another node's peer that is wanted.
    pub(super) fn take_to<T>(&mut self, wanted: impl Fn(NodeId, &'a Message) -> Option<T>) -> Option<T> {
        let own = self.node;
        self.sent.iter_mut().find_map(|sent| {
            let (to, message) = (*sent)?;
            let found = wanted(to.node, message).filter(|_| to.node != own)?;
            *sent = None;
            Some(found)
        })
    }

    /// Takes all messages to other nodes' peers that are wanted.
    pub(super) fn take_all_to<T>(&mut self, wanted: impl Fn(NodeId, &'a Message) -> Option<T>) -> Vec<T> {
        let own = self.node;
        let take = |sent: &mut Option<(ActorId, &'a Message)>| {
            let (to, message) = (*sent)?;
            let found = wanted(to.node, message).filter(|_| to.node != own)?;
            *sent = None;
            Some(found)
        };
        self.sent.iter_mut().filter_map(take).collect()
    }

    /// Takes the first message to an actor of the own node that is wanted.
    pub(super) fn take_own<T>(&mut self, role: Role, wanted: impl Fn(&'a Message) -> Option<T>) -> Option<T> {
        let own = self.node;
        self.sent.iter_mut().find_map(|sent| {
            let (to, message) = (*sent)?;
            let found = wanted(message).filter(|_| to.node == own && to.role == role)?;
            *sent = None;
            Some(found)
        })
    }

    /// Takes the first event that is wanted.
    pub(super) fn take_event<T>(&mut self, wanted: impl Fn(&'a Event) -> Option<T>) -> Option<T> {
        self.events.iter_mut().find_map(|event| {
            let found = wanted((*event)?)?;
            *event = None;
            Some(found)
        })
    }

    /// Whether such an event is left.
    pub(super) fn has_event(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().flatten().any(|event| wanted(event))
    }

    /// Whether such a message to the own node is left.
    pub(super) fn has_own_message(&self, wanted: impl Fn(&Message) -> bool) -> bool {
        self.sent().any(|(to, message)| to.node == self.node && wanted(message))
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = (ActorId, &'a Message)> {
        self.sent.iter().flatten().copied()
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &'a Event> {
        self.events.iter().flatten().copied()
    }
}
