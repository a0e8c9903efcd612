//! Pings of all peers: before forging, in a health check, and after a rollback. Who fails is dropped.
//! Source: consensus.md 2.2, 3.5, 6.

use super::{Peer, endpoint::Endpoint, inquiry::ANSWER_TIME, neighbours::Verified, observe};
use crate::{
    actors::{Effect, Event, Message, NodeId, SimTime, Wake},
    ledger::saved::saved,
    protocol::Block,
};
use std::{sync::Arc, time::Duration};

/// Pings of one peer in one second at most. Source: consensus.md 6.
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
    /// Peers that the limits have kept from being asked.
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
        self.pings.running.push(Ping { number, purpose, awaited, unasked });
        let time = match purpose {
            PingFor::Forging => Duration::from_millis(self.node_rules().forging_ping_ms.into()),
            PingFor::Health | PingFor::Recovery => ANSWER_TIME,
        };
        effects.push(Effect::WakeAt { at: now + time, wake: Wake::PingOver { ping: number } });
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

    fn hold_pings_back(&mut self, now: SimTime, number: u32, unasked: Vec<NodeId>, effects: &mut Vec<Effect>) {
        if !unasked.is_empty()
            && let Some(ping) = self.pings.running.iter_mut().find(|ping| ping.number == number)
        {
            ping.unasked = unasked;
            let at = now + Duration::from_secs(1);
            effects.push(Effect::WakeAt { at, wake: Wake::PingAgain { ping: number } });
        }
    }

    /// A second later, the limits allow what they did not.
    pub(super) fn send_pings(&mut self, now: SimTime, number: u32, effects: &mut Vec<Effect>) {
        let Some(ping) = self.pings.running.iter_mut().find(|ping| ping.number == number) else { return };
        for node in std::mem::take(&mut ping.unasked) {
            self.call(now, node, Message::StatusRequest, effects);
        }
    }

    /// A node says where it stands.
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
        verified: Verified,
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

    /// The node's claim does not hold, or the node did not answer for it.
    pub(super) fn verification_failed(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) {
        self.probes.remove(&node);
        if self.neighbours.has(node) {
            observe(Event::PeerRemoved(node), effects);
            self.drop_peer(now, node, effects);
        } else {
            self.newcomer_failed(now, node, effects);
        }
    }

    /// A peer that had answered up to this ping has passed the later ones, or is gone.
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

    /// Time is up. Before forging, peers still being verified have failed too.
    pub(super) fn ping_over(&mut self, now: SimTime, number: u32, effects: &mut Vec<Effect>) {
        let Some(ping) = self.pings.running.iter().find(|ping| ping.number == number) else { return };
        let patient = ping.purpose != PingFor::Forging;
        let late = self.neighbours.all().iter().filter(|neighbour| neighbour.answered < number);
        let failed: Vec<NodeId> =
            late.map(|late| late.node).filter(|node| !patient || !self.probes.contains_key(node)).collect();
        for node in failed {
            self.verification_failed(now, node, effects);
        }
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
saved!(struct Ping { number, purpose, awaited, unasked });
