//! Peers that come and go: a node pings its callers back and looks for more peers. Source: consensus.md 3.5, 6.

use super::{
    Case,
    limits::Endpoint,
    peers::minimum,
    state::{GRACE, PeerModel, PingFor, looks_for_peers},
};
use crate::{
    actors::{Event, Message, NodeId, SimTime},
    check::conduct,
};
use std::{collections::BTreeSet, time::Duration};

impl PeerModel {
    // Nodes that come and go.

    /// Somebody called who is no peer.
    pub(super) fn meets(&mut self, case: &mut Case<'_>, from: NodeId, sure: bool) {
        if self.peers.has(from) || self.newcomers.contains_key(&from) {
            return;
        }
        let called =
            case.left.take_to(|to, message| (to == from && matches!(message, Message::StatusRequest)).then_some(()));
        let full =
            !self.given.contains(&from) && self.peers.in_subnet_of(from) >= case.known.rules().node.peers_per_subnet;
        let held = self.calls.may_be_full(case.step.local, from, Endpoint::Status);
        case.report.judge(&conduct::MET, called.is_some() || full || held || !sure || self.peers.unsure, || {
            format!("{from} called, which is no peer, and was not asked where it stands")
        });
        if called.is_some() || held {
            self.calls.note(case.step.local, from, Endpoint::Status);
            self.newcomers.insert(from, (case.step.local, called.is_some() && !held));
        }
    }

    pub(super) fn looks_for_peers(&mut self, case: &mut Case<'_>) {
        let below = (self.peers.len() as u32) < minimum(case.known);
        let wait = Duration::from_secs(if below { 60 } else { 600 });
        self.discovers_by = looks_for_peers(case.known).then(|| case.step.local + wait);
        let lately = self.asked_for_peers.is_some_and(|at| case.step.local < at + Duration::from_secs(15));
        let newcomers = !self.newcomers.is_empty();
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

    /// Up to eight peers are asked for theirs.
    pub(super) fn asks_for_peers(&mut self, case: &mut Case<'_>) -> bool {
        let asked = case.left.take_all_to(|to, message| matches!(message, Message::PeersRequest).then_some(to));
        if asked.is_empty() {
            return false;
        }
        self.asked_for_peers = Some(case.step.local);
        let held =
            self.peers.numbers().filter(|peer| self.calls.may_be_full(case.step.local, *peer, Endpoint::Peers)).count();
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

    pub(super) fn calls_all_it_knows(&mut self, case: &mut Case<'_>) {
        let called = case.left.take_all_to(|to, message| matches!(message, Message::StatusRequest).then_some(to));
        let set: BTreeSet<NodeId> = called.iter().copied().collect();
        case.report.judge(&conduct::RESTARTED, set == self.given, || {
            format!("it called {called:?} and was given {:?}", self.given)
        });
        for node in called {
            self.calls.note(case.step.local, node, Endpoint::Status);
            self.newcomers.insert(node, (case.step.local, true));
        }
    }

    /// Checks that the node has done what was due by now.
    pub(super) fn judge_deadlines(&mut self, case: &mut Case<'_>) {
        let now = case.step.local;
        if let Some(by) = self.looks_at.filter(|by| now > *by + GRACE) {
            case.report.breach(&conduct::WOKEN, || format!("no block came, and it did not look for one at {by}"));
            self.looks_at = None;
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
                !self.newcomers.contains_key(node) && !self.peers.has(**node) && !self.calls.pinged_since(**node, since)
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
