//! One step of an actor: its input, and all deeds that followed from it.

use crate::{
    actors::{ActorId, Event, Input, Message, NodeId, Role, SimTime, Submission, Wake, message::Transactions},
    protocol::PublicKey,
    sim::Heard,
};
use smallvec::{SmallVec, smallvec};

/// The input of an actor.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    Start,
    /// Its node came back.
    Begins,
    Deviates(bool),
    /// It learns what the other members of its coalition know.
    Learns,
    /// It begins or ceases to forge with a further key, by the rules.
    Spare(bool, PublicKey),
    Wake(Wake),
    Message(ActorId, Message),
    Submit(Transactions),
}

/// Something an actor did.
#[derive(Clone, Debug)]
pub(super) enum ActorOutput {
    Sent(ActorId, Message),
    Event(Event),
    Answered(Submission),
}

impl ActorOutput {
    fn message(&self) -> Option<(ActorId, &Message)> {
        match self {
            Self::Sent(to, message) => Some((*to, message)),
            Self::Event(_) | Self::Answered(_) => None,
        }
    }

    fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::Sent(..) | Self::Answered(_) => None,
        }
    }
}

/// An input of an actor, and the deeds that followed from it, in order.
#[derive(Clone, Debug)]
pub(super) struct ActorStep {
    pub actor: ActorId,
    pub now: SimTime,
    /// By its node's clock.
    pub local: SimTime,
    pub cause: Cause,
    pub did: Vec<ActorOutput>,
}

impl ActorStep {
    /// Begins a step. `did` is an empty vector whose memory is reused.
    pub(super) fn new(actor: ActorId, now: SimTime, local: SimTime, heard: &Heard<'_>, did: Vec<ActorOutput>) -> Self {
        let cause = match heard {
            Heard::Begins => Cause::Begins,
            Heard::Deviates { on, spare: Some(key) } => Cause::Spare(*on, **key),
            Heard::Deviates { on, spare: None } => Cause::Deviates(*on),
            Heard::Learns => Cause::Learns,
            Heard::Wake(wake) => Cause::Wake(*wake),
            Heard::Message { from, message } => Cause::Message(*from, (*message).clone()),
            Heard::Input(input) => match input {
                Input::Start => Cause::Start,
                Input::Wake(wake) => Cause::Wake(*wake),
                Input::Message { from, message } => Cause::Message(*from, message.clone()),
                Input::Submit { transactions, .. } => Cause::Submit(transactions.clone()),
                // A reorganisation that the operator orders follows no rule of the node.
                Input::Reorganise(_) => Cause::Deviates(true),
            },
        };
        Self { actor, now, local, cause, did }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.did.iter().filter_map(ActorOutput::event)
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = (ActorId, &Message)> {
        self.did.iter().filter_map(ActorOutput::message)
    }

    pub(super) fn answer(&self) -> Option<&Submission> {
        self.did.iter().find_map(|did| match did {
            ActorOutput::Answered(submission) => Some(submission),
            _ => None,
        })
    }
}

/// The deeds of a step that the model has not accounted for yet.
pub(super) struct OpenOutputs<'a> {
    node: NodeId,
    did: &'a [ActorOutput],
    /// True for each deed that is accounted for.
    taken: SmallVec<[bool; 32]>,
}

impl<'a> OpenOutputs<'a> {
    pub(super) fn of(step: &'a ActorStep) -> Self {
        Self { node: step.actor.node, did: &step.did, taken: smallvec![false; step.did.len()] }
    }

    fn rest(&self) -> impl Iterator<Item = &'a ActorOutput> {
        self.did.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(did, _)| did)
    }

    /// Takes the first deed for which `wanted` returns a value.
    fn take<T>(&mut self, mut wanted: impl FnMut(&'a ActorOutput) -> Option<T>) -> Option<T> {
        self.did.iter().zip(&mut self.taken).filter(|(_, taken)| !**taken).find_map(|(did, taken)| {
            let found = wanted(did)?;
            *taken = true;
            Some(found)
        })
    }

    /// Takes the first message to another node's peer that is wanted.
    pub(super) fn take_to<T>(&mut self, wanted: impl Fn(NodeId, &'a Message) -> Option<T>) -> Option<T> {
        let own = self.node;
        self.take(|did| {
            did.message().filter(|(to, _)| to.node != own).and_then(|(to, message)| wanted(to.node, message))
        })
    }

    /// Takes all messages to other nodes' peers that are wanted.
    pub(super) fn take_all_to<T>(&mut self, wanted: impl Fn(NodeId, &'a Message) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        for (did, taken) in self.did.iter().zip(&mut self.taken).filter(|(_, taken)| !**taken) {
            let message = did.message().filter(|(to, _)| to.node != self.node);
            if let Some(found) = message.and_then(|(to, message)| wanted(to.node, message)) {
                *taken = true;
                all.push(found);
            }
        }
        all
    }

    /// Takes the first message to an actor of the own node that is wanted.
    pub(super) fn take_own<T>(&mut self, role: Role, wanted: impl Fn(&'a Message) -> Option<T>) -> Option<T> {
        let own = ActorId { node: self.node, role };
        self.take(|did| did.message().filter(|(to, _)| *to == own).and_then(|(_, message)| wanted(message)))
    }

    /// Takes the first event that is wanted.
    pub(super) fn take_event<T>(&mut self, wanted: impl Fn(&'a Event) -> Option<T>) -> Option<T> {
        self.take(|did| did.event().and_then(&wanted))
    }

    /// Returns true if such an event is left.
    pub(super) fn has_event(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events().any(wanted)
    }

    /// Returns true if such a message to the own node is left.
    pub(super) fn has_own_message(&self, wanted: impl Fn(&Message) -> bool) -> bool {
        self.sent().any(|(to, message)| to.node == self.node && wanted(message))
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = (ActorId, &'a Message)> {
        self.rest().filter_map(ActorOutput::message)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &'a Event> {
        self.rest().filter_map(ActorOutput::event)
    }
}
