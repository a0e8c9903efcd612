//! No wait without a waker: for each phase of an actor that only an event ends, such an event is pending.
//!
//! ```text
//!   actors  ─► the phases they are in, and what ends each (`actors::wait`) ─┐
//!                                                                           ├─► a phase that nothing ends
//!   queue, and inputs that wait at slow or paused nodes (`sim::Outlook`) ───┘
//! ```
//!
//! 1. Actors report their phases. The queue, and not the actor, shows whether an event is pending.
//! 2. A phase that ends by a later one has that one, which is judged by itself. So only the last of a chain of phases is reported.
//! 3. A wake-up has to be due in time where clocks run true and no node is slow.
//! 4. A node that is down waits for nothing. A paused node retains its inputs, and so retains the input that wakes it.
//! 5. A slow node with waiting inputs must have a pending call.
//! 6. A deviant node is judged like the others. Deviations change what an actor sends, and four of them keep something from it:
//!    a delegate that is switched off in all rounds hears nothing, and waits for nothing; one that forges out of turn, or
//!    late, may miss an answer of its relay, for which it has a timer; a peer that withholds its delegate's blocks or refuses
//!    transactions takes none, and has not asked for any.
//!
//! Source: consensus.md 2.1, 3.5, 6.

use crate::{
    actors::{
        ActorId, NodeId, Role, SimTime, Wait,
        wait::{End, Phase},
    },
    sim::{
        Outlook,
        world::{ExpectedInput, Sort},
    },
};
use std::fmt;

/// A phase of an actor that nothing to come will end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    pub node: NodeId,
    pub wait: Wait,
    /// The instant on the node's clock.
    now: SimTime,
    /// The pending events of the actor.
    to_come: Vec<ExpectedInput>,
}

/// Returns the phases of all actors that nothing to come will end.
pub fn stuck(outlook: &Outlook<'_>) -> Vec<Stuck> {
    let (mut stuck, mut waits) = (Vec::new(), Vec::new());
    for node in outlook.up() {
        let now = outlook.local(node);
        if outlook.is_forgotten(node) {
            stuck.push(Stuck { node, wait: Wait::new(Phase::Behind, []), now, to_come: Vec::new() });
        }
        for role in [Role::Peer, Role::Delegate] {
            waits.clear();
            match role {
                Role::Peer => outlook.peer(node).iter().for_each(|peer| peer.waits(now, &mut waits)),
                Role::Delegate => {
                    outlook.delegate(node).iter().for_each(|delegate| delegate.waits(now, &mut waits));
                    if let Some(release) = outlook.release(node) {
                        waits.iter_mut().for_each(|wait| wait.ends = [End::Wake(release, None)].into_iter().collect());
                    }
                }
                Role::Pool => {}
            }
            let actor = Actor { outlook, node, now, id: ActorId { node, role } };
            actor.judge(&mut waits, &mut stuck);
        }
    }
    stuck
}

/// An actor whose waits are judged.
struct Actor<'o> {
    outlook: &'o Outlook<'o>,
    node: NodeId,
    now: SimTime,
    id: ActorId,
}

impl Actor<'_> {
    fn judge(&self, waits: &mut [Wait], stuck: &mut Vec<Stuck>) {
        // Until it has heard that it starts, it is in no phase.
        if waits.is_empty() || self.to_come().any(|to_come| to_come.what == Sort::Start) {
            return;
        }
        waits.sort_unstable_by_key(|wait| wait.phase);
        // Where clocks may be wrong, it is unknown whether the half second before the relay of a block is over.
        let is_known = |wait: &&Wait| self.outlook.is_timely() || wait.phase != Phase::PassingOn;
        for wait in waits.iter().filter(is_known) {
            if !wait.ends.iter().any(|end| self.comes(end, wait.phase, waits)) {
                let to_come = self.to_come().collect();
                stuck.push(Stuck { node: self.node, wait: wait.clone(), now: self.now, to_come });
            }
        }
    }

    fn to_come(&self) -> impl Iterator<Item = ExpectedInput> + Clone {
        self.outlook.to_come(self.id)
    }

    /// Returns true if an end of a phase comes; `waits` are all of the actor, in order.
    fn comes(&self, end: &End, of: Phase, waits: &[Wait]) -> bool {
        match end {
            End::Wake(wake, by) => {
                let wakes = self.to_come().filter(|to_come| to_come.what == Sort::Wake(*wake));
                let by = by.filter(|_| self.outlook.is_timely()).map(|by| self.outlook.true_time(self.node, by));
                wakes.clone().any(|wake| by.is_none_or(|by| wake.at.is_none_or(|at| at <= by)))
            }
            End::Phase(phase) => *phase > of && waits.binary_search_by_key(phase, |wait| wait.phase).is_ok(),
            End::Told => self.to_come().any(|to_come| to_come.what == Sort::Told),
            End::NextRound => {
                let (delegate, relay) = (self.outlook.delegate(self.node), self.outlook.peer(self.node));
                delegate.zip(relay).is_some_and(|(delegate, relay)| !delegate.has_turn(self.now, relay))
            }
        }
    }
}

impl Stuck {
    /// The name of the phase, which tells findings apart.
    pub fn cause(&self) -> &'static str {
        self.wait.phase.name()
    }

    /// Returns true if both are the same phase of one actor, at whatever instants.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.node, self.wait.phase) == (other.node, other.wait.phase)
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its phase '{}' does not end: ", self.wait.phase)?;
        match self.wait.ends.as_slice() {
            [] => f.write_str("nothing ends it")?,
            ends => {
                let ends: Vec<String> = ends.iter().map(End::to_string).collect();
                write!(f, "it ends by {}", ends.join(" or "))?;
            }
        }
        let told = |to_come: &ExpectedInput| match to_come.at {
            Some(at) => format!("{:?} at {at}", to_come.what),
            None => format!("{:?}, which waits", to_come.what),
        };
        let to_come: Vec<String> = self.to_come.iter().map(told).collect();
        match to_come.as_slice() {
            [] => write!(f, ", and nothing is to come at {}", self.now),
            _ => write!(f, ", and to come at {} is only {}", self.now, to_come.join(", ")),
        }
    }
}
