//! No wait without a waker: whatever phase an actor is in that only an event ends, such an event is ahead.
//!
//! ```text
//!   actors  ─► the phases they are in, and what ends each (`actors::wait`) ─┐
//!                                                                           ├─► a phase that nothing ends
//!   queue, and inputs that wait at slow or paused nodes (`sim::Outlook`) ───┘
//! ```
//!
//! 1. Actors say which phases they are in. They are not asked whether something will come: the queue is.
//! 2. A phase that ends by a later one has that one, which is looked at by itself. So of a chain of phases only the last is told.
//! 3. A wake-up has to be due in time where clocks run true and no node is slow.
//! 4. A node that is down waits for nothing. One that stands still keeps what comes, and so keeps what wakes it.
//! 5. A slow node with inputs that wait has to be called.
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
        world::{Sort, ToCome},
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
    /// What is to come for the actor.
    to_come: Vec<ToCome>,
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
                Role::Delegate => outlook.delegate(node).iter().for_each(|delegate| delegate.waits(now, &mut waits)),
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
        for wait in &*waits {
            if !wait.ends.iter().any(|end| self.comes(end, wait.phase, waits)) {
                let to_come = self.to_come().collect();
                stuck.push(Stuck { node: self.node, wait: wait.clone(), now: self.now, to_come });
            }
        }
    }

    fn to_come(&self) -> impl Iterator<Item = ToCome> + Clone {
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
        let told = |to_come: &ToCome| match to_come.at {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::{Event, Wake},
        check::swarm::{Frame, draw, set},
        sim::{Observer, SeedTree, stage::inline::InlineStage},
    };
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex},
        time::Duration,
    };

    /// At each look takes away one event after the other, and counts by kind of wake-up: how often, and how often that was noticed.
    #[derive(Clone, Default)]
    struct Taker(Arc<Mutex<BTreeMap<&'static str, (u32, u32)>>>);

    impl Observer for Taker {
        fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

        fn look(&mut self, outlook: &Outlook<'_>) {
            let mut counts = self.0.lock().expect("nobody panics");
            assert_eq!(stuck(outlook), [], "with all that is to come");
            for (lost, rest) in (0..).map_while(|place| outlook.without(place)) {
                if let Sort::Wake(wake) = lost {
                    let (taken, noticed) = counts.entry(name(wake)).or_default();
                    *taken += 1;
                    *noticed += u32::from(!stuck(&rest).is_empty());
                }
            }
        }

        fn looks(&self) -> bool {
            true
        }
    }

    fn name(wake: Wake) -> &'static str {
        match wake {
            Wake::Forge { .. } => "forge",
            Wake::Gossip(_) => "gossip",
            Wake::PingOver { .. } => "ping over",
            Wake::PingAgain { .. } => "ping again",
            Wake::WakeUp => "wake up",
            Wake::Unanswered => "unanswered",
            Wake::Throttled => "throttled",
            Wake::Discover => "discover",
            Wake::DiscoveryOver { .. } => "discovery over",
            Wake::Bundle => "bundle",
        }
    }

    /// Of every kind of wake-up, one that somebody needs is missed when it is gone; and of those that a peer always needs, each.
    #[test]
    fn each_kind_of_wake_up_is_missed_when_it_is_gone() {
        let taker = Taker::default();
        for seed in 1..=24 {
            let rules = toml::Table::from_iter([("base".to_owned(), ["reference", "corrected"][seed % 2].into())]);
            let mut drawn = draw(&Frame { rules, delegates: Some(5), ..Frame::default() }, seed as u64);
            set(&mut drawn.rules, "node.transactions_in_order", seed % 3 == 0);
            set(&mut drawn.rules, "node.rate_limits", true);
            drawn.network.gossip = Some(crate::ledger::rules::Gossip::Reference);
            let seeds = SeedTree::new(1);
            drawn.crypto.during(|| {
                let plan = drawn.plan(&drawn.testnet(seeds), seeds);
                let mut stage = InlineStage::new(&plan, vec![Box::new(taker.clone())]);
                for step in 1..=1_200 {
                    stage.run_until(plan.start + Duration::from_millis(310 * step));
                }
            });
        }
        let counts = taker.0.lock().expect("nobody panics");
        let unnoticed: Vec<_> = counts.iter().filter(|(_, (_, noticed))| *noticed == 0).collect();
        assert!(counts.len() == 10 && unnoticed.is_empty(), "{counts:?}");
        for needed in ["discover", "throttled", "bundle"] {
            let (taken, noticed) = counts[needed];
            assert_eq!(taken, noticed, "{needed}");
        }
    }
}
