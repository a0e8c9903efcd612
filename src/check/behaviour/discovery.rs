//! Peers that come and go: a node pings its callers back and looks for more peers. Source: consensus.md 3.5, 6.

use super::{
    Case,
    limits::Endpoint,
    state::{GRACE, PeerModel, PingFor, Timer, looks_for_peers},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime},
    check::conduct,
};
use std::{collections::BTreeSet, time::Duration};

/// Round trips of a connection, and the time for all of them.
const TRIPS: u8 = 3;
pub(super) const CONNECTING: Duration = Duration::from_secs(2);
/// The time that a peer has to answer a request for peers.
const NAMING: Duration = Duration::from_secs(5);

impl PeerModel {
    // Nodes that come and go.

    /// Handles a call of a node that is no peer.
    pub(super) fn meets(&mut self, case: &mut Case<'_>, from: NodeId, sure: bool) {
        if self.peers.has(from) || self.newcomers.contains_key(&from) || self.connecting.contains_key(&from) {
            return;
        }
        let begins = self.takes_connection(case, from, 1);
        let full =
            !self.given.contains(&from) && self.peers.in_subnet_of(from) >= case.known.rules().node.peers_per_subnet;
        let held = self.calls.may_be_full(case.step.local, from, Endpoint::Status);
        case.report.judge(&conduct::MET, begins || full || held || !sure || self.peers.unsure, || {
            format!("{from} called, which is no peer, and no connection to it began")
        });
        if begins || held {
            self.calls.note_connection(case.step.local, from);
            self.connecting.insert(from, (1, case.step.local));
        }
    }

    fn takes_connection(&self, case: &mut Case<'_>, node: NodeId, trip: u8) -> bool {
        let begins = |to: NodeId, message: &Message| {
            (to == node && matches!(message, Message::Connect { trip: of } if *of == trip)).then_some(())
        };
        case.left.take_to(begins).is_some()
    }

    /// Records the connections that begin in the step, whichever peers named the nodes.
    pub(super) fn begins_connections(&mut self, case: &mut Case<'_>) {
        let begun = case.left.take_all_to(|to, message| matches!(message, Message::Connect { trip: 1 }).then_some(to));
        for node in begun {
            self.calls.note_connection(case.step.local, node);
            self.connecting.insert(node, (1, case.step.local));
        }
    }

    /// Judges the reply to a round trip of a node that connects.
    pub(super) fn is_connected_to(&self, case: &mut Case<'_>, from: NodeId, trip: u8) {
        let back = case.left.take_to(|to, message| {
            (to == from && matches!(message, Message::Connected { trip: of } if *of == trip)).then_some(())
        });
        case.report.judge(&conduct::ANSWERED, back.is_some(), || format!("it did not let {from} connect, trip {trip}"));
    }

    /// Judges the step after a completed round trip: the next round trip, or after the third a status request.
    pub(super) fn goes_on_connecting(&mut self, case: &mut Case<'_>, from: NodeId, trip: u8) {
        let Some((under_way, begun)) = self.connecting.get(&from).copied() else { return };
        if under_way != trip {
            return;
        }
        let in_time = case.step.local < begun + CONNECTING;
        if trip < TRIPS {
            let goes_on = self.takes_connection(case, from, trip + 1);
            case.report.judge(&conduct::MET, goes_on || !in_time || self.peers.unsure, || {
                format!("its connection to {from} did not go on after trip {trip}")
            });
            if goes_on || !in_time {
                self.connecting.insert(from, (trip + 1, begun));
            }
            return;
        }
        let called =
            case.left.take_to(|to, message| (to == from && matches!(message, Message::StatusRequest)).then_some(()));
        let held = self.calls.may_be_full(case.step.local, from, Endpoint::Status);
        case.report.judge(&conduct::MET, called.is_some() || held || !in_time || self.peers.unsure, || {
            format!("it is connected to {from}, which is no peer, and did not ask where it stands")
        });
        self.connecting.remove(&from);
        if called.is_some() || held {
            self.calls.note(case.step.local, from, Endpoint::Status);
            self.newcomers.insert(from, (case.step.local, called.is_some() && !held));
        }
    }

    pub(super) fn looks_for_peers(&mut self, case: &mut Case<'_>) {
        let below = (self.peers.len() as u32) < case.known.rules().least_reach();
        let wait = Duration::from_secs(if below { 60 } else { 600 });
        self.discovers_by = looks_for_peers(case.known).then(|| case.step.local + wait);
        let lately = self.asked_for_peers.is_some_and(|at| case.step.local < at + Duration::from_secs(15));
        let newcomers = !self.newcomers.is_empty() || !self.connecting.is_empty();
        let asked = self.asks_for_peers(case);
        let due = case.known.rules().node.discovery && self.peers.len() > 0 && !lately && !newcomers;
        case.report.judge(&conduct::DISCOVERED, asked || !due || self.peers.unsure, || {
            format!("it asked none of its {} peers for peers", self.peers.len())
        });
        if lately || (!asked && self.peers.len() > 0) {
            return;
        }
        let dropped: BTreeSet<NodeId> = self.given.iter().copied().filter(|node| !self.peers.has(*node)).collect();
        if (case.known.rules().node.retry_dropped_peers || below) && !dropped.is_empty() {
            self.calls_given = Some((case.step.local + Duration::from_secs(12), dropped));
        }
    }

    /// Judges the requests for peers, which go to up to eight peers. Returns true if any was sent.
    pub(super) fn asks_for_peers(&mut self, case: &mut Case<'_>) -> bool {
        let asked = case.left.take_all_to(|to, message| matches!(message, Message::PeersRequest).then_some(to));
        if asked.is_empty() {
            return false;
        }
        self.asked_for_peers = Some(case.step.local);
        self.asked_to_name = asked.iter().copied().collect();
        let held =
            self.peers.numbers().filter(|peer| self.calls.may_be_full(case.step.local, *peer, Endpoint::Peers)).count();
        self.held_some = held > 0;
        let distinct: BTreeSet<NodeId> = asked.iter().copied().collect();
        let wanted = self.peers.len().min(8);
        let holds = distinct.len() == asked.len() && asked.len() <= wanted && asked.len() + held >= wanted;
        // While peers are dropped one by one, some are asked that will go next.
        let drops = case.step.events().any(|event| matches!(event, Event::PeerRemoved(_)));
        case.report.judge(&conduct::DISCOVERED, holds || drops || self.peers.unsure, || {
            format!("it asked {asked:?} for peers, {wanted} of its {} should be asked", self.peers.len())
        });
        asked.iter().for_each(|node| self.calls.note(case.step.local, *node, Endpoint::Peers));
        true
    }

    /// Ends a step of discovery. Peers that were asked for peers and named none are dropped, without an event.
    pub(super) fn naming_over(&mut self, case: &mut Case<'_>) {
        if self.asked_for_peers.is_none_or(|at| case.step.local < at + NAMING) {
            return;
        }
        // On a node that is slow, the time of an earlier step may be over only now.
        if std::mem::take(&mut self.held_some) || !case.known.timely[self.id.0 as usize] {
            self.asked_to_name.clear();
            self.peers.lose_track();
        }
        for silent in std::mem::take(&mut self.asked_to_name) {
            self.forget_peer(case, silent);
        }
    }

    pub(super) fn calls_all_it_knows(&mut self, case: &mut Case<'_>) {
        self.begins_connections(case);
        let called: BTreeSet<NodeId> = self.connecting.keys().copied().collect();
        case.report.judge(&conduct::RESTARTED, called == self.given, || {
            format!("it connects to {called:?} and was given {:?}", self.given)
        });
    }

    /// Checks that the node has done what was due by now.
    pub(super) fn judge_deadlines(&mut self, case: &mut Case<'_>) {
        let now = case.step.local;
        if let Timer::Runs(by) = self.timer
            && now > by + GRACE
        {
            case.report.breach(&conduct::WOKEN, || format!("no block came, and it did not look for one at {by}"));
            self.timer = Timer::Unknown;
        }
        if let Some(by) = self.discovers_by.filter(|by| now > *by + GRACE) {
            case.report.breach(&conduct::DISCOVERED, || format!("it did not look for peers by {by}"));
            self.discovers_by = None;
        }
        if let Some(by) = self.doubts_by.filter(|by| now > *by + GRACE) {
            case.report.breach(&conduct::DOUBTED, || format!("four wake-ups in vain, and no health check by {by}"));
            self.doubts_by = None;
        }
        if let Some((by, nodes)) = self.calls_given.take_if(|(by, _)| now > *by) {
            let since = SimTime::from_micros(by.micros().saturating_sub(90_000_000));
            let missing = nodes.iter().find(|node| {
                !self.connecting.contains_key(node)
                    && !self.newcomers.contains_key(node)
                    && !self.peers.has(**node)
                    && !self.calls.pinged_since(**node, since)
            });
            case.report.judge(&conduct::DISCOVERED, missing.is_none() || self.peers.unsure, || {
                format!("it looked for peers and did not try {missing:?} again, which it was given")
            });
        }
        if let Some(ping) = self.pings.iter().find(|ping| now > ping.until + GRACE && ping.purpose == PingFor::Forging)
        {
            case.report
                .breach(&conduct::COUNTED, || format!("its ping before forging should be over at {}", ping.until));
            let number = ping.number;
            self.pings.retain(|ping| ping.number != number);
        }
        self.judge_waves(case);
    }
}
