//! Finding peers: at the start, every ten minutes, before a health check, and from incoming calls. Source: consensus.md 6.
//!
//! ```text
//!   ask eight peers for theirs ─► connect to those that are new ─► ping them ─► add the verified ones ─► go on
//! ```
//!
//! A connection takes three round trips within two seconds: TCP, the upgrade to a WebSocket, and the greeting of the protocol. So none
//! succeeds where a message takes a third of a second or more one way.

use super::{
    About, Peer,
    inquiry::Purpose,
    neighbours::{Neighbour, VerificationResult},
    observe,
    ping::PingFor,
};
use crate::{
    actors::{Effect, Event, Message, NodeId, SimTime, Wake},
    ledger::{codec::saved, rules::NodeRules},
};
use rand::Rng;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The number of peers that are asked for their peers.
const ASKED: usize = 8;
/// The largest number of peers taken from one answer.
const TAKEN: usize = 50;

/// Round trips of a connection. Source: consensus.md 6.
const CONNECTING_TRIPS: u8 = 3;

/// Nodes that are being connected or verified, and are no peers yet.
pub(super) type Newcomers = BTreeMap<NodeId, Meeting>;

/// The state of getting to know a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// This round trip of the connection is under way, counted from 1.
    Connecting(u8),
    /// It was asked for its status.
    Asked,
    /// It has sent its status, and is being verified.
    Answered,
}

/// A discovery that runs.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    pub(super) step: u32,
    /// A health check waits for the found peers, to count them by chain.
    pub(super) for_health: bool,
    /// The first catching-up waits for the found peers.
    pub(super) for_start: Option<Start>,
    /// The peers whose answers are missing, or, once these have come, the newcomers that are not verified yet.
    awaited: BTreeSet<NodeId>,
    pub(super) asking: bool,
    found: BTreeSet<NodeId>,
}

/// A node that starts first connects to those it was given, then asks them for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Given,
    More,
}

impl Peer {
    /// A node of a running network was started some time ago, so its next discovery is at any time within the next ten
    /// minutes.
    pub(super) fn plan_first_discovery(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.node_rules().discovery || self.node_rules().retry_dropped_peers {
            let mut random = self.random.about(&self.tree, now, About::Discovery);
            let wait = Duration::from_millis(random.random_range(0..u64::from(self.node_rules().discovery_ms)));
            effects.push(Effect::WakeAt { at: now + wait, wake: Wake::Discover });
        }
    }

    fn plan_next_discovery(&self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.node_rules().discovery || self.node_rules().retry_dropped_peers {
            let NodeRules { discovery_ms, discovery_below_reach_ms, .. } = self.node_rules();
            let wait = if self.is_below_minimum() { discovery_below_reach_ms } else { discovery_ms };
            let at = now + Duration::from_millis((*wait).into());
            effects.push(Effect::WakeAt { at, wake: Wake::Discover });
        }
    }

    pub(super) fn discover_again(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.plan_next_discovery(now, effects);
        if self.discovery.is_none() {
            self.begin_discovery(now, false, None, effects);
        }
    }

    /// Looks for peers, and then asks all of them where they stand.
    pub(super) fn find_peers_for_health(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        match &mut self.discovery {
            Some(running) => running.for_health = true,
            None => self.begin_discovery(now, true, None, effects),
        }
    }

    /// Connects to those it was given, and then catches up.
    pub(super) fn find_peers_to_start_with(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.begin_discovery(now, false, Some(Start::Given), effects);
    }

    fn begin_discovery(&mut self, now: SimTime, for_health: bool, for_start: Option<Start>, effects: &mut Vec<Effect>) {
        let asked =
            if self.node_rules().discovery { self.some_peers(now, ASKED, About::Discovery) } else { Vec::new() };
        let (awaited, found) = (asked.iter().copied().collect(), BTreeSet::new());
        self.discovery = Some(Discovery { step: 0, for_health, for_start, awaited, asking: true, found });
        for node in asked {
            self.call(now, node, Message::PeersRequest, effects);
        }
        self.begin_step(now, effects);
        self.go_on(now, effects);
    }

    /// Sets the deadline for the answers that this step waits for.
    fn begin_step(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.discoveries += 1;
        let (answering, connecting) = (self.answer_timeout(), self.connecting_timeout());
        if let Some(discovery) = &mut self.discovery {
            discovery.step = self.discoveries;
            let time = if discovery.asking { answering } else { connecting + answering };
            if !discovery.awaited.is_empty() {
                let wake = Wake::DiscoveryOver { step: discovery.step };
                effects.push(Effect::WakeAt { at: now + time, wake });
            }
        }
    }

    /// Handles a peer's list of its peers. Takes new nodes from it if this node wants more.
    pub(super) fn peers_answered(&mut self, now: SimTime, from: NodeId, list: &[NodeId], effects: &mut Vec<Effect>) {
        let below = self.is_below_minimum();
        let Some(discovery) = self.discovery.as_mut().filter(|discovery| discovery.asking) else { return };
        if !discovery.awaited.remove(&from) {
            return;
        }
        let forced = discovery.for_health || discovery.for_start.is_some();
        let wanted = forced || below || 4 * self.neighbours.len() < 3 * list.len();
        if wanted {
            let count = list.len().min(TAKEN);
            let taken = self.random.sample(&self.tree, now, About::Discovery, list.len(), count);
            let new = taken.into_iter().map(|index| list[index]);
            let new = new.filter(|node| *node != self.node && !self.neighbours.has(*node));
            discovery.found.extend(new);
        }
        self.go_on(now, effects);
    }

    /// Time is up for this step. A peer that did not name its peers is dropped, without an event.
    pub(super) fn discovery_over(&mut self, now: SimTime, step: u32, effects: &mut Vec<Effect>) {
        let Some(discovery) = self.discovery.as_mut().filter(|discovery| discovery.step == step) else { return };
        let silent = std::mem::take(&mut discovery.awaited);
        if discovery.asking {
            for peer in silent {
                self.drop_peer(now, peer, effects);
            }
        }
        self.go_on(now, effects);
    }

    /// Begins the next step once no answer is missing.
    fn go_on(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        // A health check asks only peers. The periodic discovery also goes back to the seeds.
        let (retries, below) = (self.node_rules().retry_dropped_peers, self.is_below_minimum());
        let Some(discovery) = self.discovery.as_mut().filter(|discovery| discovery.awaited.is_empty()) else { return };
        if !discovery.asking {
            return self.discovered(now, effects);
        }
        discovery.asking = false;
        let mut found = std::mem::take(&mut discovery.found);
        let seeds_too = retries || (below && !discovery.for_health);
        if discovery.for_start == Some(Start::Given) || (seeds_too && discovery.for_start.is_none()) {
            found.extend(self.neighbours.dropped());
        }
        discovery.awaited = found.clone();
        for node in found {
            if !self.newcomers.contains_key(&node) && !self.ask_newcomer(now, node, effects) {
                self.no_longer_awaited(node);
            }
        }
        self.begin_step(now, effects);
        self.go_on_if_over(now, effects);
    }

    fn go_on_if_over(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.discovery.as_ref().is_some_and(|discovery| !discovery.asking && discovery.awaited.is_empty()) {
            self.discovered(now, effects);
        }
    }

    fn no_longer_awaited(&mut self, node: NodeId) {
        if let Some(discovery) = self.discovery.as_mut().filter(|discovery| !discovery.asking) {
            discovery.awaited.remove(&node);
        }
    }

    fn discovered(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let Some(Discovery { for_health, for_start, .. }) = self.discovery.take() else { return };
        match for_start {
            Some(Start::Given) => return self.begin_discovery(now, for_health, Some(Start::More), effects),
            Some(Start::More) => {
                self.begin_sync(now, effects);
                self.plan_next_discovery(now, effects);
            }
            None => {}
        }
        if for_health {
            self.ping_all(now, PingFor::Health, effects);
        }
    }

    // Newcomers.

    /// Begins to connect to a node that has called and is no peer.
    pub(super) fn meet(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) {
        if !self.newcomers.contains_key(&node) {
            self.ask_newcomer(now, node, effects);
        }
    }

    /// Begins to connect to a node. Returns false if its /24 network has too many peers already and the node was not given.
    fn ask_newcomer(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) -> bool {
        let limit = self.node_rules().peers_per_subnet;
        if !self.neighbours.was_given(node) && self.neighbours.in_subnet_of(node) >= limit {
            return false;
        }
        self.newcomers.insert(node, Meeting::Connecting(1));
        self.inquire(
            now,
            node,
            Purpose::Newcomer,
            self.connecting_timeout(),
            |_| Message::Connect { trip: 1 },
            effects,
        );
        true
    }

    /// A round trip of a connection is over: the next one begins, or the node is asked where it stands.
    pub(super) fn connected_by(&mut self, now: SimTime, node: NodeId, trip: u8, effects: &mut Vec<Effect>) {
        let Some(meeting) = self.newcomers.get_mut(&node).filter(|meeting| **meeting == Meeting::Connecting(trip))
        else {
            return;
        };
        if trip < CONNECTING_TRIPS {
            *meeting = Meeting::Connecting(trip + 1);
            return self.call(now, node, Message::Connect { trip: trip + 1 }, effects);
        }
        *meeting = Meeting::Asked;
        self.inquiries.give_up(|to, purpose| to == node && purpose == Purpose::Newcomer);
        self.inquire(now, node, Purpose::Newcomer, self.answer_timeout(), |_| Message::StatusRequest, effects);
    }

    /// Records that a newcomer has sent its status. Returns false if no status of this node is awaited.
    pub(super) fn newcomer_answered(&mut self, node: NodeId) -> bool {
        match self.newcomers.get_mut(&node) {
            Some(meeting @ (Meeting::Asked | Meeting::Answered)) => {
                *meeting = Meeting::Answered;
                self.inquiries.give_up(|to, purpose| to == node && purpose == Purpose::Newcomer);
                true
            }
            Some(Meeting::Connecting(_)) | None => false,
        }
    }

    pub(super) fn newcomer_passed(
        &mut self,
        now: SimTime,
        node: NodeId,
        verified: VerificationResult,
        effects: &mut Vec<Effect>,
    ) {
        if self.newcomers.remove(&node).is_some() {
            self.neighbours.put(Neighbour::new(node, verified, self.pings.last()));
            observe(Event::PeerAdded(node), effects);
            self.no_longer_awaited(node);
            self.go_on_if_over(now, effects);
        }
    }

    pub(super) fn newcomer_failed(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) {
        if self.newcomers.remove(&node).is_some() {
            self.no_longer_awaited(node);
            self.go_on_if_over(now, effects);
        }
    }
}

saved!(struct Discovery { step, for_health, for_start, awaited, asking, found });
saved!(enum Start { 0 Given, 1 More });
saved!(enum Meeting { 0 Connecting(trip), 1 Asked, 2 Answered });
