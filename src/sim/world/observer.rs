//! Observers of a run, and the events that they receive.

use super::{
    Item, Outlook, World,
    pending_events::{Next, PoppedEntry},
};
use crate::{
    actors::{ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Stimulus, Submission, Wake},
    ledger::Link,
    protocol::{PublicKey, SignedTransaction, TransactionId},
    sim::network::{Approach, Route},
};
use std::{collections::BTreeSet, sync::Arc};

/// An observer of a run. It cannot change the run.
pub trait Observer: Send {
    /// Something happened at a node.
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event);

    /// Something happened between nodes, or to one of them from outside. The trace digest leaves it out: it is the cause of events and
    /// not one of a node's own. Only observers that want messages receive them ([`Observer::wants_messages`]); all receive faults.
    fn observe_network(&mut self, _now: SimTime, _event: &NetworkEvent<'_>) {}

    /// The events of this instant do not end. Nothing happens after it.
    fn restless(&mut self, _now: SimTime) {}

    /// All events up to now have been delivered, and a reader may ask: observers publish their data here. The inline stage rests at the
    /// end of each `run_until`, the ractor stage after each event.
    fn rest(&mut self) {}

    /// A scenario's run has ended, after its last event. `pending` are the transactions in the pool of at least one node, live or down.
    fn run_ended(&mut self, _pending: &BTreeSet<TransactionId>) {}

    /// The clock has moved over a time in which nothing happened, and stands here.
    fn clock_at(&mut self, _now: SimTime) {}

    /// Returns true if it wants `NetworkEvent::Sent` and `NetworkEvent::Lost`. There are millions of them. Asked once.
    fn wants_messages(&self) -> bool {
        false
    }

    /// An actor hears something, or does something because of what it heard last. Only observers that want acts receive it
    /// ([`Observer::wants_acts`]).
    fn observe_act(&mut self, _now: SimTime, _actor: ActorId, _act: &Act<'_>) {}

    /// Returns true if it wants [`Observer::observe_act`]. There are more acts than messages. Asked once.
    fn wants_acts(&self) -> bool {
        false
    }

    /// The run is between two instants, and its actors and future events can be read. Only observers that want to look receive it
    /// ([`Observer::looks`]), at the end of each `run_until` in which a look is due.
    fn look(&mut self, _outlook: &Outlook<'_>) {}

    /// Returns true if it wants [`Observer::look`], which takes a copy of every actor on the ractor stage. Asked once.
    fn looks(&self) -> bool {
        false
    }
}

/// An act: an actor hears something or does something. Each [`Act::Hears`] comes before all that the actor does because of it,
/// events ([`Observer::observe`]) among them, and no other actor acts between.
#[derive(Debug)]
pub enum Act<'a> {
    /// It hears something; its node's clock shows `local`.
    Hears { local: SimTime, what: Heard<'a> },
    /// It sends a message, which may be lost.
    Sends { to: ActorId, message: &'a Message },
    /// It answers a client.
    Answers(&'a Submission),
}

/// The thing that an actor hears.
#[derive(Debug)]
pub enum Heard<'a> {
    Input(&'a Input),
    /// [`Input::Message`], where that is shared.
    Message {
        from: ActorId,
        message: &'a Message,
    },
    /// [`Input::Wake`].
    Wake(Wake),
    /// Its node comes back, and this is a new actor.
    Begins,
    /// A fault makes it deviate from the protocol from now on, or no longer; or it makes a delegate forge with the key of another one,
    /// which is no deviation.
    Deviates {
        on: bool,
        spare: Option<&'a PublicKey>,
    },
    /// A member of its coalition has written the shared memory.
    Learns,
}

/// An event between nodes, or one that happens to a node from outside.
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
    /// A node that was live is down from now on: it crashed, or stands still.
    NodeDown { node: NodeId, cause: DownCause },
    /// A node that was down is live again: nothing keeps it down any more.
    NodeUp { node: NodeId },
    /// A node has come back without the transactions that waited in its pool.
    PoolLost { node: NodeId },
    /// The run went back, or over, to another moment: a node that stood on `from` stands on `to` now. `pending` are the transactions in its
    /// pool, in the order of arrival, or `None` if block and pool are the same as before. Reported for every node.
    Moved {
        node: NodeId,
        from: &'a Arc<Link>,
        to: &'a Arc<Link>,
        pending: Option<&'a [Arc<SignedTransaction>]>,
        /// The run begins there, so the blocks between the two have not happened in it.
        begins: bool,
    },
}

/// Why a node that was live is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownCause {
    Crash,
    Pause,
}

impl DownCause {
    /// The word in traces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Pause => "pause",
        }
    }
}

impl World {
    /// Reports that an actor hears the due event.
    pub(super) fn tell_heard(&mut self, to: ActorId, local: SimTime, due: &PoppedEntry) {
        let what = match self.queue.next(due) {
            Next::Wake { wake, .. } => Heard::Wake(wake),
            Next::Copy { from, message, .. } => Heard::Message { from, message },
            Next::Item(Item::Input { input, .. } | Item::Stimulus { stimulus: Stimulus::Input(input), .. }) => {
                Heard::Input(input)
            }
            Next::Item(Item::Stimulus { stimulus: Stimulus::Begin(_), .. }) => Heard::Begins,
            Next::Item(Item::Stimulus { stimulus: Stimulus::Behave { layer, .. }, .. }) => {
                Heard::Deviates { on: true, spare: layer.behaviour.spare_key() }
            }
            Next::Item(Item::Stimulus { stimulus: Stimulus::Cease { spare, .. }, .. }) => {
                Heard::Deviates { on: false, spare: spare.as_ref() }
            }
            Next::Item(Item::Stimulus { stimulus: Stimulus::Switch { off, .. }, .. }) => {
                Heard::Deviates { on: *off, spare: None }
            }
            Next::Item(Item::Stimulus { stimulus: Stimulus::Share { .. }, .. }) => Heard::Learns,
            // No observer receives these.
            Next::Item(
                Item::Post { .. }
                | Item::Answerless { .. }
                | Item::Begin(_)
                | Item::End(_)
                | Item::Poll(_)
                | Item::Turn { .. }
                | Item::Free { .. }
                | Item::Intake(_)
                | Item::Departures
                | Item::Answer(_),
            ) => return,
        };
        let act = Act::Hears { local, what };
        for observer in &mut self.observers {
            observer.observe_act(self.now, to, &act);
        }
    }

    pub(super) fn tell_sent(&mut self, from: ActorId, to: ActorId, message: &Message) {
        for observer in &mut self.observers {
            observer.observe_act(self.now, from, &Act::Sends { to, message });
        }
    }

    pub(super) fn tell_effect(&mut self, from: ActorId, effect: &Effect) {
        match effect {
            Effect::Send { to, message } => self.tell_sent(from, *to, message),
            Effect::SendToPeers { to, message } => {
                to.iter().for_each(|node| self.tell_sent(from, ActorId { node: *node, role: Role::Peer }, message));
            }
            Effect::Answer { submission, .. } => {
                for observer in &mut self.observers {
                    observer.observe_act(self.now, from, &Act::Answers(submission));
                }
            }
            // Observers receive events anyway; only a deviant sends later.
            Effect::SendAt { .. } | Effect::WakeAt { .. } | Effect::Observe(_) | Effect::Share { .. } => {}
        }
    }

    pub(super) fn tell_route(&mut self, from: ActorId, to: ActorId, message: &Message, route: &Route) {
        match route {
            Route::Lost => self.tell(&NetworkEvent::Lost { from, to, message }),
            Route::Arrives(arrives) => self.tell(&NetworkEvent::Sent { from, to, message, arrives: *arrives }),
            Route::ArrivesAt(all) => {
                for arrives in all {
                    self.tell(&NetworkEvent::Sent { from, to, message, arrives: *arrives });
                }
            }
            Route::Comes(all) => {
                for Approach { last, .. } in all {
                    self.tell(&NetworkEvent::Sent { from, to, message, arrives: *last });
                }
            }
            Route::Leaves(after) => {
                for time in after {
                    self.tell(&NetworkEvent::Sent { from, to, message, arrives: self.now + *time });
                }
            }
        }
    }

    pub(super) fn tell(&mut self, event: &NetworkEvent<'_>) {
        for observer in &mut self.observers {
            observer.observe_network(self.now, event);
        }
    }
}
