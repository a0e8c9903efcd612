//! The parties of a network: peers, transaction pools and delegates as state machines without IO.
//!
//! ```text
//!   Delegate ⇄ Peer ⇄ TransactionPool      one of each on a node, messages among them take no time
//!                ⇅
//!           other nodes' peers             through the simulated network
//! ```
//!
//! An actor is a plain value: `step(now, input, effects)`. It awaits nothing, reads no clock, and draws only the random numbers it was
//! given. `sim` decides which inputs it delivers, in which order and when. Source: consensus.md 2, 3, 5, 6.

pub mod behaviour;
pub(crate) mod delegate;
pub mod fork_choice;
mod hosted_actor;
pub mod message;
pub(crate) mod observation;
pub mod peer;
pub mod pool;
pub(crate) mod prefetch;
pub(crate) mod random;
pub(crate) mod time;
pub(crate) mod wait;
pub mod webhook;

pub use behaviour::Behaviour;
pub use delegate::Delegate;
pub use hosted_actor::{HostedActor, Spells, Stimulus};
pub use message::{ActorId, BodyPart, Effect, Input, Message, NodeId, RequestId, Role, Wake};
pub use observation::{Event, RollbackCause};
pub use peer::Peer;
pub use pool::{PoolError, Submission, TransactionPool};
pub use random::Choices;
pub use time::SimTime;
pub use wait::Wait;
pub use webhook::{Webhook, WebhookDispatcher};

use crate::ledger::codec::saved;

/// Any of the actors, so that a stage can hold them in one list.
#[derive(Clone)]
pub enum Actor {
    /// Holds the chain, speaks with other nodes and relays for the delegate.
    Peer(Box<Peer>),
    /// Admits transactions and chooses those of the next block.
    Pool(Box<TransactionPool>),
    /// Forges in its slots, through the peer of its node.
    Delegate(Box<Delegate>),
}

impl Actor {
    /// Handles one input. Appends the effects that the actor wants, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        match self {
            Self::Peer(peer) => peer.step(now, input, effects),
            Self::Pool(pool) => pool.step(now, input, effects),
            Self::Delegate(delegate) => delegate.step(now, input, effects),
        }
    }

    /// The actor's node and its role on that node.
    pub fn id(&self) -> ActorId {
        match self {
            Self::Peer(peer) => ActorId { node: peer.node(), role: Role::Peer },
            Self::Pool(pool) => ActorId { node: pool.node(), role: Role::Pool },
            Self::Delegate(delegate) => ActorId { node: delegate.node(), role: Role::Delegate },
        }
    }

    /// The peer, if it is one.
    pub fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Peer(peer) => Some(peer),
            Self::Pool(_) | Self::Delegate(_) => None,
        }
    }

    /// The pool, if it is one.
    pub fn pool(&self) -> Option<&TransactionPool> {
        match self {
            Self::Pool(pool) => Some(pool),
            Self::Peer(_) | Self::Delegate(_) => None,
        }
    }

    /// The delegate, if it is one.
    pub fn delegate(&self) -> Option<&Delegate> {
        match self {
            Self::Delegate(delegate) => Some(delegate),
            Self::Peer(_) | Self::Pool(_) => None,
        }
    }

    /// Returns true if it is a delegate that is switched off in all rounds.
    pub fn is_off(&self) -> bool {
        self.delegate().is_some_and(Delegate::is_off)
    }
}

saved!(enum Actor { 0 Peer(peer), 1 Pool(pool), 2 Delegate(delegate) });
