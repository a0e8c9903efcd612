//! Pings of all peers, the consequences of answers and silence, and the relay's report to its delegate. Source: consensus.md 2.2, 3.5,
//! 6.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    peers::{Peer, VerifiedTip},
    state::{GRACE, PeerModel, Phase, Ping, PingFor},
};
use crate::{
    actors::{
        Event, Message, NodeId, Role, SimTime,
        message::{NetworkState, NetworkStatus},
    },
    check::conduct,
};
use std::{collections::BTreeSet, time::Duration};

impl PeerModel {
    // Pings.

    pub(super) fn pings_before_forging(&mut self, case: &mut Case<'_>) {
        if self.pings.iter().all(|ping| ping.purpose != PingFor::Forging) {
            self.pings_all(case, PingFor::Forging);
        }
    }

    pub(super) fn pings_all(&mut self, case: &mut Case<'_>, purpose: PingFor) {
        self.learns_who_is_there(case, purpose);
        if self.peers.len() == 0 {
            return self.pinged(case, purpose);
        }
        self.pinged += 1;
        self.pinged_at.retain(|at| case.step.local < *at + Duration::from_secs(2));
        let (time, whole) = match purpose {
            PingFor::Forging => {
                let race = Duration::from_millis(case.known.rules().node.forging_ping_ms.into());
                (race, race)
            }
            PingFor::Health | PingFor::Recovery => (Duration::from_secs(5), Duration::from_secs(60)),
        };
        let (until, verified_by) = (case.step.local + time, case.step.local + whole);
        self.pings.push(Ping { number: self.pinged, purpose, until, verified_by });
        let asked = case
            .left
            .take_all_to(|to, message| (self.peers.has(to) && matches!(message, Message::StatusRequest)).then_some(to));
        let set: BTreeSet<NodeId> = asked.iter().copied().collect();
        let missing =
            self.peers.numbers().find(|peer| !set.contains(peer) && !self.may_be_pinged_enough(case.step.local, *peer));
        let holds = missing.is_none() && set.len() == asked.len();
        case.report.judge(&conduct::PINGED, holds || self.peers.unsure, || {
            format!("for {purpose:?}, it pinged {asked:?} of {} peers, and not {missing:?}", self.peers.len())
        });
        asked.iter().for_each(|node| self.calls.note(case.step.local, *node, Endpoint::Status));
        self.pinged_at.push(case.step.local);
    }

    /// Learns from a ping before forging which peers there are, if that is unknown and the limits hold none of it back.
    fn learns_who_is_there(&mut self, case: &Case<'_>, purpose: PingFor) {
        if !self.peers.unsure || purpose != PingFor::Forging {
            return;
        }
        let pinged = case.left.sent().filter(|(_, message)| matches!(message, Message::StatusRequest));
        let pinged: BTreeSet<NodeId> = pinged.map(|(to, _)| to.node).collect();
        let lately = self.pinged_at.iter().any(|at| case.step.local < *at + Duration::from_secs(1) + GRACE);
        if lately || self.calls.any_lately(case.step.local, Endpoint::Status) {
            return;
        }
        for gone in self.peers.numbers().filter(|node| !pinged.contains(node)).collect::<Vec<_>>() {
            self.drop_probe(gone);
        }
        self.newcomers.retain(|node, _| !pinged.contains(node));
        self.connecting.retain(|node, _| !pinged.contains(node));
        self.peers.are(&pinged, self.tip.height(), self.pinged + 1, case.step.local);
    }

    /// Returns true if a ping may be held back. Each recent ping of all peers may count, also for a peer that came since.
    pub(super) fn may_be_pinged_enough(&self, now: SimTime, node: NodeId) -> bool {
        let lately = self.pinged_at.iter().filter(|at| now < **at + Duration::from_secs(1) + GRACE).count();
        self.calls.may_be_full(now, node, Endpoint::Status)
            || self.calls.count(now, node, Endpoint::Status) + lately >= 2
    }

    /// Judges a second ping, which asks the peers that the limits had left out.
    pub(super) fn pings_again(&mut self, case: &mut Case<'_>, number: u32) {
        if self.pings.iter().all(|ping| ping.number != number) {
            // The limits held back the whole ping, so the model did not see it begin.
            self.pinged = self.pinged.max(number);
            self.peers.lose_track();
        }
        self.takes_pings(case, false);
    }

    pub(super) fn takes_pings(&mut self, case: &mut Case<'_>, sure: bool) {
        let asked = case.left.take_all_to(|to, message| matches!(message, Message::StatusRequest).then_some(to));
        for node in asked {
            self.calls.note(case.step.local, node, Endpoint::Status);
            if !self.peers.has(node) {
                self.newcomers.insert(node, (case.step.local, sure));
            }
        }
    }

    /// Ends a ping: before forging, the delegate receives the network's state. Then silent peers are dropped. A peer under verification
    /// may go on.
    pub(super) fn ping_over(&mut self, case: &mut Case<'_>, number: u32) {
        // A ping that the model took for another one, or did not see.
        let is_due = |ping: &Ping| ping.until <= case.step.local + GRACE && case.step.local <= ping.until + GRACE;
        let other = |ping: &Ping| ping.number != number && is_due(ping);
        let this = |ping: &Ping| ping.number == number && is_due(ping);
        if number > self.pinged || (self.pings.iter().any(other) && !self.pings.iter().any(this)) {
            self.pings.retain(|ping| !other(ping));
            self.pinged = number;
            self.peers.recount(number);
            self.peers.lose_track();
            return;
        }
        let Some(ping) = self.pings.iter().find(|ping| ping.number == number).copied() else { return };
        if ping.purpose == PingFor::Forging {
            self.pings.retain(|ping| ping.number != number);
            self.peers.settled(number);
            self.tells_state(case);
        }
        let silent: Vec<NodeId> = self
            .peers
            .all
            .iter()
            .filter(|(node, peer)| peer.answered < number && !self.probes.contains_key(node))
            .map(|(node, _)| *node)
            .collect();
        for node in silent {
            self.fails(case, node);
        }
    }

    /// Expects the event of a dropped peer. A newcomer is dropped without one.
    pub(super) fn fails(&mut self, case: &mut Case<'_>, node: NodeId) {
        self.drop_probe(node);
        self.newcomers.remove(&node);
        self.connecting.remove(&node);
        if !self.peers.has(node) {
            return;
        }
        let told =
            case.left.take_event(|event| matches!(event, Event::PeerRemoved(gone) if *gone == node).then_some(()));
        if told.is_none() && !case.known.timely[self.id.0 as usize] {
            // The clock has changed since the deadline was set.
            self.peers.lose_track();
        }
        case.report.judge(&conduct::DROPPED, told.is_some() || self.peers.unsure, || {
            format!("{node} has not passed in time and stays a peer")
        });
        self.forget_peer(case, node);
    }

    /// Removes a peer and all open requests to it.
    pub(super) fn forget_peer(&mut self, case: &mut Case<'_>, node: NodeId) {
        self.peers.remove(node);
        self.drop_probe(node);
        self.newcomers.remove(&node);
        self.connecting.remove(&node);
        self.sync.open.retain(|_, (asked, _)| *asked != node);
        self.settle(case);
        self.chunks_fail(case, node);
    }

    /// Handles a node that has passed. A newcomer becomes a peer.
    pub(super) fn passes(&mut self, case: &mut Case<'_>, node: NodeId, verified: VerifiedTip) {
        self.probes.remove(&node);
        if let Some(peer) = self.peers.all.get_mut(&node) {
            (peer.verified, peer.answered) = (verified, self.pinged);
            return;
        }
        let Some((asked, sure)) = self.newcomers.remove(&node) else { return };
        let told = case.left.take_event(|event| matches!(event, Event::PeerAdded(new) if *new == node).then_some(()));
        // If the limits had held the request back, its time may have been up.
        let held = self.held_headers.get(&node).is_some_and(|at| case.step.local < *at + Duration::from_secs(60));
        let in_time = sure && !held && case.step.local < asked + Duration::from_secs(3);
        case.report.judge(&conduct::ADDED, told.is_some() || !in_time || self.peers.unsure, || {
            format!("{node} has passed and is no peer")
        });
        if told.is_none() {
            return;
        }
        let (height, answered, since) = (verified.his, self.pinged, case.step.local);
        self.peers.all.insert(node, Peer { height, verified, answered, since });
    }

    /// Ends the pings that every peer has passed.
    pub(super) fn settle(&mut self, case: &mut Case<'_>) {
        loop {
            let passed = |ping: &Ping| self.peers.all.values().all(|peer| peer.answered >= ping.number);
            let Some(place) = self.pings.iter().position(passed) else { break };
            let ping = self.pings.remove(place);
            self.peers.settled(ping.number);
            self.pinged(case, ping.purpose);
        }
    }

    pub(super) fn pinged(&mut self, case: &mut Case<'_>, purpose: PingFor) {
        match purpose {
            PingFor::Forging => self.tells_state(case),
            PingFor::Health => self.health_known(case),
            PingFor::Recovery => {
                if self.sync.phase == Phase::Recovering {
                    self.sync_step(case);
                }
            }
        }
    }

    pub(super) fn tells_state(&mut self, case: &mut Case<'_>) {
        let said = case.left.take_own(Role::Delegate, |message| match message {
            Message::NetworkState(state) => Some(&**state),
            _ => None,
        });
        let Some(said) = said else {
            case.report.judge(&conduct::COUNTED, self.peers.unsure, || {
                "all peers have passed, and its delegate was not told".to_owned()
            });
            return;
        };
        let wanted = self.network_state(case.known);
        let cold = said.status == NetworkStatus::ColdStart && case.known.rules().node.network_start;
        let holds = *said == wanted || (cold && NetworkState { status: wanted.status, ..said.clone() } == wanted);
        case.report
            .judge(&conduct::COUNTED, holds || self.peers.unsure, || format!("it said {said:?}, expected {wanted:?}"));
    }

    pub(super) fn network_state(&self, known: &ModelContext) -> NetworkState {
        let (height, reached) = (self.tip.height(), self.peers.len() as u32);
        let over = self.peers.all.values().filter(|peer| peer.height > height).count() as u32;
        let forked =
            self.peers.all.values().filter(|peer| peer.height <= height && peer.verified.is_forked()).count() as u32;
        let level = self.peers.all.values().filter(|peer| peer.height == height && !peer.verified.is_forked()).count();
        let status = match known.rules().minimum_network_reach {
            None => NetworkStatus::Test,
            Some(_) if reached < known.rules().least_reach() => NetworkStatus::BelowMinimumPeers,
            Some(_) => NetworkStatus::Default,
        };
        NetworkState {
            status,
            height,
            tip: self.tip.id(),
            reached,
            in_quorum: reached - over - forked,
            level: level as u32,
            over_height: over,
            forked,
        }
    }
}
