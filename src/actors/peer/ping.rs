//! Pings of all peers: before forging, in a health check, and after a rollback. A peer that fails is dropped. Source: consensus.md 2.2,
//! 3.5, 6.
//!
//! Before forging, the delegate receives the state of the network as soon as no peer is awaited, and after 1.5 seconds at the latest. If
//! the time is over first, the silent peers are dropped only after that: a dead peer counts once in each node's quorum. Peers that are
//! being verified then go on, and pass or fail later.
//!
//! A health check waits 5 seconds for an answer and a minute for a verification. Where the fork choice reads the peers' chains it waits a
//! slot for both, so that it decides by their present chains. An older report of a peer does not count, even if it is verified only now.

use super::{Peer, endpoint::Endpoint, neighbours::VerificationResult, observe};
use crate::{
    actors::{Effect, Event, Message, NodeId, SimTime, Wake},
    ledger::codec::saved,
    protocol::Block,
};
use std::{sync::Arc, time::Duration};

/// The largest number of pings of one peer in a second. Source: consensus.md 6.
const PINGS_PER_SECOND: u64 = 2;

/// The reason for pinging all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PingFor {
    /// The own delegate wants to forge.
    Forging,
    /// Is the node on another chain than its peers?
    Health,
    /// The node has left its chain.
    Recovery,
}

/// The pings that run.
#[derive(Clone, Debug, Default)]
pub(super) struct Pings {
    /// Number of the last one.
    last: u32,
    pub(super) running: Vec<Ping>,
    /// The instants at which all were last pinged, the latest last.
    sent: [Option<SimTime>; PINGS_PER_SECOND as usize],
}

#[derive(Clone, Debug)]
pub(super) struct Ping {
    pub(super) number: u32,
    pub(super) purpose: PingFor,
    /// Peers that have neither passed nor failed.
    pub(super) awaited: usize,
    /// The end of the time for a verification that this ping begins.
    until: SimTime,
    /// Peers that have not been asked yet because of the limits.
    pub(super) unasked: Vec<NodeId>,
}

impl Pings {
    /// Number of the last ping of all peers.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    pub(super) fn runs_for(&self, purpose: PingFor) -> bool {
        self.running.iter().any(|ping| ping.purpose == purpose)
    }
}

impl Peer {
    /// Asks all peers where they stand.
    pub(super) fn ping_all(&mut self, now: SimTime, purpose: PingFor, effects: &mut Vec<Effect>) {
        let awaited = self.neighbours.len();
        if awaited == 0 {
            return self.pinged(now, purpose, effects);
        }
        self.pings.last += 1;
        let number = self.pings.last;
        let unasked = Vec::new();
        let race = Duration::from_millis(self.node_rules().forging_ping_ms.into());
        let slot = self.fresh_time();
        let (time, verify_time) = match purpose {
            PingFor::Forging => (race, race),
            // A chain on which a peer stood a slot ago may be left by now.
            PingFor::Health if self.decides_in_time(purpose) => (self.answer_timeout().min(slot), slot),
            PingFor::Health | PingFor::Recovery => (self.answer_timeout(), self.verification_timeout()),
        };
        self.pings.running.push(Ping { number, purpose, awaited, until: now + verify_time, unasked });
        effects.push(Effect::WakeAt { at: now + time, wake: Wake::PingOver { ping: number } });
        if self.decides_in_time(purpose) && verify_time > time {
            effects.push(Effect::WakeAt { at: now + verify_time, wake: Wake::PingOver { ping: number } });
        }
        let sent = self.pings.sent;
        let lately = sent.iter().flatten().filter(|time| now < **time + Duration::from_secs(1)).count() as u64;
        let allowed = PINGS_PER_SECOND - lately;
        self.pings.sent = [sent[1], Some(now)];
        let limited = self.node_rules().rate_limits;
        let may_ask = |node| !limited || self.sent.count(now, node, Endpoint::Status) < allowed;
        let all = self.neighbours.numbers().iter().copied();
        let (to, unasked): (Vec<NodeId>, Vec<NodeId>) = all.partition(|node| may_ask(*node));
        if !to.is_empty() {
            effects.push(Effect::SendToPeers { to, message: Message::StatusRequest });
        }
        self.hold_pings_back(now, number, unasked, effects);
    }

    /// The age up to which a peer's report of its tip is used to choose a chain: a slot, or the time for pings before forging if longer.
    pub(super) fn fresh_time(&self) -> Duration {
        let race = Duration::from_millis(self.node_rules().forging_ping_ms.into());
        Duration::from_secs(self.tree.slots().blocktime().into()).max(race)
    }

    fn hold_pings_back(&mut self, now: SimTime, number: u32, unasked: Vec<NodeId>, effects: &mut Vec<Effect>) {
        if !unasked.is_empty()
            && let Some(ping) = self.pings.running.iter_mut().find(|ping| ping.number == number)
        {
            ping.unasked = unasked;
            let at = now + Duration::from_secs(1);
            effects.push(Effect::WakeAt { at, wake: Wake::PingAgain { ping: number } });
        }
    }

    /// Sends the pings that the limits did not allow a second before.
    pub(super) fn send_pings(&mut self, now: SimTime, number: u32, effects: &mut Vec<Effect>) {
        let Some(ping) = self.pings.running.iter_mut().find(|ping| ping.number == number) else { return };
        for node in std::mem::take(&mut ping.unasked) {
            self.call(now, node, Message::StatusRequest, effects);
        }
    }

    /// Handles the status of a node.
    pub(super) fn status_known(&mut self, now: SimTime, node: NodeId, tip: &Arc<Block>, effects: &mut Vec<Effect>) {
        let awaited = match self.neighbours.get_mut(node) {
            Some(neighbour) => {
                neighbour.height = tip.header.height;
                neighbour.answered < self.pings.last
            }
            None => self.newcomer_answered(node),
        };
        if awaited {
            self.verify(now, node, tip, effects);
        }
    }

    pub(super) fn verification_passed(
        &mut self,
        now: SimTime,
        node: NodeId,
        verified: VerificationResult,
        effects: &mut Vec<Effect>,
    ) {
        let last = self.pings.last;
        let Some(neighbour) = self.neighbours.get_mut(node) else {
            return self.newcomer_passed(now, node, verified, effects);
        };
        let before = std::mem::replace(&mut neighbour.answered, last);
        neighbour.verified = verified;
        self.settle(now, before, effects);
    }

    /// Drops a node whose claimed tip is not valid, or that did not answer the questions about it.
    pub(super) fn verification_failed(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) {
        self.probes.remove(&node);
        if self.neighbours.has(node) {
            observe(Event::PeerRemoved(node), effects);
            self.drop_peer(now, node, effects);
        } else {
            self.newcomer_failed(now, node, effects);
        }
    }

    /// Counts a peer as done in the pings after `answered`: it has passed them, or is gone.
    pub(super) fn settle(&mut self, now: SimTime, answered: u32, effects: &mut Vec<Effect>) {
        let mut over = Vec::new();
        self.pings.running.retain_mut(|ping| {
            if ping.number > answered {
                ping.awaited -= 1;
            }
            if ping.awaited == 0 {
                over.push(ping.purpose);
            }
            ping.awaited > 0
        });
        for purpose in over {
            self.pinged(now, purpose, effects);
        }
    }

    /// Ends the waiting for silent peers. A ping before forging is over then, and its result is reported first.
    pub(super) fn ping_over(&mut self, now: SimTime, number: u32, effects: &mut Vec<Effect>) {
        let Some(place) = self.pings.running.iter().position(|ping| ping.number == number) else { return };
        if self.pings.running[place].purpose == PingFor::Forging {
            self.pings.running.remove(place);
            self.network_known(effects);
        }
        // Another ping may wait longer for the chain of a peer, and its older chain may be left by now.
        let is_health = |ping: &Ping| ping.number == number && self.decides_in_time(ping.purpose) && now >= ping.until;
        let decides = self.pings.running.get(place).is_some_and(is_health);
        if decides {
            self.pings.running.remove(place);
            let verified: Vec<NodeId> = self.probes.keys().copied().collect();
            verified.into_iter().for_each(|node| self.forget_tip(node));
        }
        let late = self.neighbours.all().iter().filter(|neighbour| neighbour.answered < number);
        let silent: Vec<NodeId> = late.map(|late| late.node).filter(|node| !self.probes.contains_key(node)).collect();
        for node in silent {
            self.verification_failed(now, node, effects);
        }
        if decides {
            self.health_known(now, effects);
        }
    }

    /// Returns true if the ping decides at the end of its time, whatever is still under way.
    fn decides_in_time(&self, purpose: PingFor) -> bool {
        purpose == PingFor::Health && self.choice().reads_chains()
    }

    /// The deadline for verifying a node: the latest one of the pings that wait for it.
    pub(super) fn verification_ends(&self, now: SimTime, node: NodeId) -> SimTime {
        let answered = self.neighbours.get(node).map(|neighbour| neighbour.answered);
        let waiting = self.pings.running.iter().filter(|ping| answered.is_some_and(|answered| answered < ping.number));
        waiting.map(|ping| ping.until).max().unwrap_or(now + self.verification_timeout())
    }

    fn pinged(&mut self, now: SimTime, purpose: PingFor, effects: &mut Vec<Effect>) {
        match purpose {
            PingFor::Forging => self.network_known(effects),
            PingFor::Health => self.health_known(now, effects),
            PingFor::Recovery => self.recovered(now, effects),
        }
    }
}

saved!(enum PingFor { 0 Forging, 1 Health, 2 Recovery });
saved!(struct Pings { last, running, sent });
saved!(struct Ping { number, purpose, awaited, until, unasked });
