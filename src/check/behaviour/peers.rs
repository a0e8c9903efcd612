//! Whom a peer is connected to: pings, what they count, who is dropped and added, looking for more.
//! Source: consensus.md 2.2, 3.5, 6.

use super::{
    Known, Report,
    limits::Endpoint,
    node::{GRACE, PeerModel, looks_for_peers},
    step::{Left, Step},
    sync::Phase,
};
use crate::{
    actors::{
        Event, Message, NodeId, Role, RollbackCause, SimTime,
        message::{NetworkState, NetworkStatus},
    },
    check::conduct,
    ledger::{Link, rules::RollbackTarget},
    protocol::Height,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// What all peers are pinged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PingFor {
    Forging,
    Health,
    Recovery,
}

/// A ping of all peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    pub number: u32,
    pub purpose: PingFor,
    pub until: SimTime,
}

/// What verifying a peer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub mine: Height,
    pub his: Height,
    pub common: Height,
}

impl Verified {
    pub(super) fn one_chain(mine: Height, his: Height) -> Self {
        Self { mine, his, common: mine.min(his) }
    }

    /// Each has blocks that the other has not.
    fn is_forked(self) -> bool {
        self.common != self.mine && self.common != self.his
    }
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    height: Height,
    verified: Verified,
    /// Number of the last ping it has passed.
    answered: u32,
}

/// The peers of a node.
#[derive(Default)]
pub(super) struct Peers {
    all: BTreeMap<NodeId, Peer>,
    /// Somebody may have come or gone unseen.
    pub unsure: bool,
    /// From then on somebody may.
    unsure_from: Option<SimTime>,
}

impl Peers {
    pub(super) fn connected(given: &BTreeSet<NodeId>, height: Height) -> Self {
        let peer = Peer { height, verified: Verified::one_chain(height, height), answered: 0 };
        Self { all: given.iter().map(|node| (*node, peer)).collect(), unsure: false, unsure_from: None }
    }

    /// From then on it will not be known who is there.
    pub(super) fn unsure_from(&mut self, at: SimTime) {
        // A little sooner: it may have waited for its turn.
        let at = SimTime::from_micros(at.micros().saturating_sub(10_000_000));
        self.unsure_from = Some(self.unsure_from.map_or(at, |known| known.min(at)));
    }

    pub(super) fn doubt(&mut self, now: SimTime) {
        self.unsure |= self.unsure_from.is_some_and(|at| now >= at);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.all.contains_key(&node)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = NodeId> {
        self.all.keys().copied()
    }

    /// Those on the own chain.
    pub(super) fn friendly(&self) -> BTreeSet<NodeId> {
        self.all.iter().filter(|(_, peer)| !peer.verified.is_forked()).map(|(node, _)| *node).collect()
    }

    pub(super) fn stands_at(&mut self, node: NodeId, height: Height) {
        if let Some(peer) = self.all.get_mut(&node) {
            peer.height = height;
        }
    }

    /// Whether a ping of this peer is not settled.
    pub(super) fn is_awaited(&self, node: NodeId, last: u32) -> bool {
        self.all.get(&node).is_some_and(|peer| peer.answered < last)
    }

    pub(super) fn add(&mut self, node: NodeId, height: Height, answered: u32) {
        let verified = Verified::one_chain(height, height);
        self.all.insert(node, Peer { height, verified, answered });
    }

    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.all.remove(&node).is_some()
    }

    /// The median of their heights, the upper of two.
    pub(super) fn network_height(&self) -> Height {
        let mut heights: Vec<Height> = self.all.values().map(|peer| peer.height).collect();
        heights.sort_unstable();
        heights.get(heights.len() / 2).copied().unwrap_or_default()
    }

    fn forked(&self) -> usize {
        self.all.values().filter(|peer| peer.verified.is_forked()).count()
    }

    fn in_subnet_of(&self, node: NodeId) -> u32 {
        let net = |node: NodeId| [node.address()[0], node.address()[1], node.address()[2]];
        self.numbers().filter(|peer| net(*peer) == net(node)).count() as u32
    }
}

/// Addresses of peers below which a node is not connected well enough.
fn minimum(known: &Known) -> u32 {
    match known.rules().minimum_network_reach {
        None => 0,
        Some(0) => 20,
        Some(least) => least,
    }
}

impl PeerModel {
    // Pings.

    pub(super) fn pings_before_forging(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
    ) {
        if self.pings.iter().all(|ping| ping.purpose != PingFor::Forging) {
            self.pings_all(known, report, step, left, PingFor::Forging);
        }
    }

    pub(super) fn pings_all(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        purpose: PingFor,
    ) {
        if self.peers.len() == 0 {
            return self.pinged(known, report, step, left, purpose);
        }
        self.pinged += 1;
        self.pinged_at.retain(|at| step.local < *at + Duration::from_secs(2));
        let time = Duration::from_millis(if purpose == PingFor::Forging { 1_500 } else { 5_000 });
        self.pings.push(Ping { number: self.pinged, purpose, until: step.local + time });
        let asked = left
            .take_all_to(|to, message| (self.peers.has(to) && matches!(message, Message::StatusRequest)).then_some(to));
        let set: BTreeSet<NodeId> = asked.iter().copied().collect();
        let missing =
            self.peers.numbers().find(|peer| !set.contains(peer) && !self.may_be_pinged_enough(step.local, *peer));
        let holds = missing.is_none() && set.len() == asked.len();
        report.judge(&conduct::PINGED, holds || self.peers.unsure, || {
            format!("for {purpose:?}, it pinged {asked:?} of {} peers, and not {missing:?}", self.peers.len())
        });
        asked.iter().for_each(|node| self.calls.note(step.local, *node, Endpoint::Status));
        self.pinged_at.push(step.local);
    }

    /// Whether a ping may be held back. Each ping of all may be counted for a peer that came since.
    fn may_be_pinged_enough(&self, now: SimTime, node: NodeId) -> bool {
        let lately = self.pinged_at.iter().filter(|at| now < **at + Duration::from_secs(1) + GRACE).count();
        self.calls.may_be_full(now, node, Endpoint::Status)
            || self.calls.count(now, node, Endpoint::Status) + lately >= 2
    }

    /// What the limits had kept from being asked.
    pub(super) fn pings_again(&mut self, step: &Step, left: &mut Left<'_>, number: u32) {
        if self.pings.iter().all(|ping| ping.number != number) {
            // None was asked at once, and the model did not see it begin.
            self.pinged = self.pinged.max(number);
            self.peers.unsure = true;
        }
        self.takes_pings(step, left);
    }

    fn takes_pings(&mut self, step: &Step, left: &mut Left<'_>) {
        let asked = left.take_all_to(|to, message| matches!(message, Message::StatusRequest).then_some(to));
        for node in asked {
            self.calls.note(step.local, node, Endpoint::Status);
            if !self.peers.has(node) {
                self.newcomers.insert(node, (step.local, true));
            }
        }
    }

    /// Time is up: who has not passed is dropped; but before forging alone, who is being verified may go on.
    pub(super) fn ping_over(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        number: u32,
    ) {
        // A ping that the model took for another one, or did not see.
        let other =
            |ping: &Ping| ping.number != number && ping.until <= step.local + GRACE && step.local <= ping.until + GRACE;
        if number > self.pinged || (self.pings.iter().any(other) && self.pings.iter().all(|ping| ping.number != number))
        {
            self.peers.unsure = true;
            self.pings.retain(|ping| !other(ping));
            return;
        }
        let Some(ping) = self.pings.iter().find(|ping| ping.number == number).copied() else { return };
        let patient = ping.purpose != PingFor::Forging;
        let late: Vec<NodeId> = self
            .peers
            .all
            .iter()
            .filter(|(node, peer)| peer.answered < number && !(patient && self.probes.contains_key(node)))
            .map(|(node, _)| *node)
            .collect();
        for node in late {
            self.fails(known, report, step, left, node);
        }
    }

    /// A peer is dropped, and told of; a newcomer is forgotten.
    pub(super) fn fails(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, node: NodeId) {
        self.drop_probe(node);
        self.newcomers.remove(&node);
        if !self.peers.has(node) {
            return;
        }
        let told = left.take_event(|event| matches!(event, Event::PeerRemoved(gone) if *gone == node).then_some(()));
        report.judge(&conduct::DROPPED, told.is_some() || self.peers.unsure, || {
            format!("{node} has not passed in time and stays a peer")
        });
        self.forget_peer(known, report, step, left, node);
    }

    /// A peer goes, with all that it was asked.
    pub(super) fn forget_peer(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        node: NodeId,
    ) {
        self.peers.remove(node);
        self.drop_probe(node);
        self.newcomers.remove(&node);
        self.settle(known, report, step, left);
        self.chunks_fail(known, report, step, left, node);
    }

    /// A peer has passed.
    pub(super) fn passes(
        &mut self,
        report: &mut Report,
        left: &mut Left<'_>,
        local: SimTime,
        node: NodeId,
        verified: Verified,
    ) {
        self.drop_probe(node);
        if let Some(peer) = self.peers.all.get_mut(&node) {
            (peer.verified, peer.answered) = (verified, self.pinged);
            return;
        }
        let Some((asked, sure)) = self.newcomers.remove(&node) else { return };
        let told = left.take_event(|event| matches!(event, Event::PeerAdded(new) if *new == node).then_some(()));
        // Where the limits had held the question back, time may have been up.
        let held = self.held_headers.get(&node).is_some_and(|at| local < *at + Duration::from_secs(60));
        let in_time = sure && !held && local < asked + Duration::from_secs(3);
        report.judge(&conduct::ADDED, told.is_some() || !in_time || self.peers.unsure, || {
            format!("{node} has passed and is no peer")
        });
        if told.is_none() {
            return;
        }
        self.peers.all.insert(node, Peer { height: verified.his, verified, answered: self.pinged });
    }

    /// Pings that every peer has passed are over.
    pub(super) fn settle(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        loop {
            let passed = |ping: &Ping| self.peers.all.values().all(|peer| peer.answered >= ping.number);
            let Some(place) = self.pings.iter().position(passed) else { break };
            let ping = self.pings.remove(place);
            self.pinged(known, report, step, left, ping.purpose);
        }
    }

    fn pinged(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, purpose: PingFor) {
        match purpose {
            PingFor::Forging => self.tells_state(known, report, left),
            PingFor::Health => self.health_known(known, report, step, left),
            PingFor::Recovery => {
                if self.sync.phase == Phase::Recovering {
                    self.sync_step(known, report, step, left);
                }
            }
        }
    }

    fn tells_state(&mut self, known: &Known, report: &mut Report, left: &mut Left<'_>) {
        let said = left.take_own(Role::Delegate, |message| match message {
            Message::NetworkState(state) => Some(&**state),
            _ => None,
        });
        let Some(said) = said else {
            report.judge(&conduct::COUNTED, self.peers.unsure, || {
                "all peers have passed, and its delegate was not told".to_owned()
            });
            return;
        };
        let wanted = self.network_state(known);
        let cold = said.status == NetworkStatus::ColdStart && known.rules().node.network_start;
        let holds = *said == wanted || (cold && NetworkState { status: wanted.status, ..said.clone() } == wanted);
        report
            .judge(&conduct::COUNTED, holds || self.peers.unsure, || format!("it said {said:?}, expected {wanted:?}"));
    }

    fn network_state(&self, known: &Known) -> NetworkState {
        let (height, reached) = (self.tip.height(), self.peers.len() as u32);
        let over = self.peers.all.values().filter(|peer| peer.height > height).count() as u32;
        let forked =
            self.peers.all.values().filter(|peer| peer.height <= height && peer.verified.is_forked()).count() as u32;
        let status = match known.rules().minimum_network_reach {
            None => NetworkStatus::Test,
            Some(_) if reached < minimum(known) => NetworkStatus::BelowMinimumPeers,
            Some(_) => NetworkStatus::Default,
        };
        NetworkState {
            status,
            height,
            tip: self.tip.id(),
            reached,
            in_quorum: reached - over - forked,
            over_height: over,
            forked,
        }
    }

    fn health_known(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let told = left.take_event(|event| match event {
            Event::HealthChecked { peers, forked } => Some((*peers as usize, *forked as usize)),
            _ => None,
        });
        let cause = self.may_doubt(step.local);
        report.judge(&conduct::DOUBTED, cause || self.peers.unsure, || {
            "it checks its health without four wake-ups in vain or a third of a round missed".to_owned()
        });
        self.doubts_by = None;
        let (peers, forked) = (self.peers.len(), self.peers.forked());
        let rules = &known.rules().node;
        report.judge(&conduct::HEALED, told == Some((peers, forked)) || self.peers.unsure, || {
            format!("it counted {told:?} and should count {:?}", (peers, forked))
        });
        let (peers, forked) = told.unwrap_or((peers, forked));
        let is_forked = peers > 0 && 100 * forked >= rules.forked_percent as usize * peers;
        let went = left.take_event(|event| match event {
            Event::RolledBack { from, to, cause: RollbackCause::Forked } => Some((from, to)),
            _ => None,
        });
        if !is_forked || self.sync.phase == Phase::Recovering {
            report.judge(&conduct::HEALED, went.is_none(), || {
                format!("{forked} of {peers} peers are on other chains, and it left its own")
            });
            if self.sync.phase == Phase::Halted {
                self.rests();
            }
            if let Some((_, to)) = went {
                self.rolled_back(known, report, left, to);
            }
            return;
        }
        let right = self.right_depth(known, went.map(|(_, to)| to));
        report.judge(&conduct::HEALED, right || self.peers.unsure, || {
            let to = went.map_or(self.tip.height(), |(_, to)| to.height());
            format!(
                "{forked} of {peers} peers are on other chains, and it went from height {} to {to}",
                self.tip.height()
            )
        });
        if let Some((_, to)) = went {
            self.rolled_back(known, report, left, to);
        }
        self.recovers(known, report, step, left);
    }

    /// Whether a health check's rollback ends where it should.
    fn right_depth(&self, known: &Known, to: Option<&Arc<Link>>) -> bool {
        let rules = &known.rules().node;
        let (from, to) = (self.tip.height().0, to.map_or(self.tip.height().0, |to| to.height().0));
        let targets: Vec<u32> = match rules.rollback_target {
            // Which is first is not said.
            RollbackTarget::FirstPeer => self.peers.all.values().map(|peer| peer.verified.common.0).collect(),
            RollbackTarget::LargestGroup => {
                let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
                for peer in self.peers.all.values().filter(|peer| peer.verified.is_forked()) {
                    *groups.entry(peer.verified.common.0).or_default() += 1;
                }
                let most = groups.values().max().copied().unwrap_or_default();
                groups.into_iter().find(|(_, size)| *size == most).map(|(height, _)| height).into_iter().collect()
            }
        };
        targets.into_iter().any(|target| match from.saturating_sub(target) {
            0 if rules.zero_rollback_is_random => self.is_random_depth(known, from, to),
            blocks => from - to == blocks.min(rules.rollback_max).min(from - 1),
        })
    }

    pub(super) fn is_random_depth(&self, known: &Known, from: u32, to: u32) -> bool {
        let rules = &known.rules().node;
        let (least, most) = (rules.random_rollback_min, rules.random_rollback_max.max(rules.random_rollback_min));
        let depth = from.saturating_sub(to);
        depth <= most.min(rules.rollback_max) && (depth >= least.min(rules.rollback_max) || to == 1)
    }

    /// The node stands on `to`, lower down on its chain.
    pub(super) fn rolled_back(&mut self, known: &Known, report: &mut Report, left: &mut Left<'_>, to: &Arc<Link>) {
        self.tip = to.clone();
        let told = left.take_own(Role::Pool, |message| match message {
            Message::TipMoved { tip } => Some(tip),
            _ => None,
        });
        report.judge(&conduct::TO_POOL, told.is_some_and(|tip| tip.is(to)), || {
            format!("it rolled back to {to:?} and its pool heard {told:?}")
        });
        self.tells_round(known, report, left, to);
    }

    /// After a rollback, or where none was to be done: all downloads are void, and the peers are asked where they stand.
    pub(super) fn recovers(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        self.sync.void();
        self.pings_all(known, report, step, left, PingFor::Recovery);
    }

    /// A ping that nothing in the step asked for is the last part of a health check.
    pub(super) fn rest_of_pings(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let pings_peer =
            left.sent().any(|(to, message)| matches!(message, Message::StatusRequest) && self.peers.has(to.node));
        let doubts = self.may_doubt(step.local);
        let all_pinged = pings_peer && {
            let asked = |node: NodeId| {
                left.sent().any(|(to, message)| to.node == node && matches!(message, Message::StatusRequest))
            };
            let full = |node| self.may_be_pinged_enough(step.local, node);
            self.peers.numbers().all(|node| asked(node) || full(node))
        };
        let finds = self.asked_for_peers.is_some_and(|at| step.local < at + Duration::from_secs(15));
        if pings_peer && doubts && (all_pinged || !finds) {
            self.pings_all(known, report, step, left, PingFor::Health);
        } else if pings_peer && finds {
            // Whoever was named before it became a peer is called all the same.
            self.takes_pings(step, left);
        } else if self.peers.len() == 0 && left.has_event(|event| matches!(event, Event::HealthChecked { .. })) {
            self.health_known(known, report, step, left);
        }
        // Others are called whenever somebody names them.
        let called = left.take_all_to(|to, message| {
            (matches!(message, Message::StatusRequest) && !self.peers.has(to)).then_some(to)
        });
        for node in called {
            self.calls.note(step.local, node, Endpoint::Status);
            self.newcomers.insert(node, (step.local, true));
        }
        self.settle(known, report, step, left);
        // A check of health and a first look begin with questions for peers.
        if doubts || self.sync.phase == Phase::Starting {
            self.asks_for_peers(report, step, left);
        }
    }

    /// Whether it may be checking its health.
    fn may_doubt(&self, now: SimTime) -> bool {
        now <= self.doubts_until || self.doubts_by.is_some() || !self.sync.counted || self.sync.phase == Phase::Unknown
    }

    // Who comes and goes.

    /// Somebody called who is no peer.
    pub(super) fn meets(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        sure: bool,
    ) {
        if self.peers.has(from) || self.newcomers.contains_key(&from) {
            return;
        }
        let called =
            left.take_to(|to, message| (to == from && matches!(message, Message::StatusRequest)).then_some(()));
        let full = !self.given.contains(&from) && self.peers.in_subnet_of(from) >= known.rules().node.peers_per_subnet;
        let held = self.calls.may_be_full(step.local, from, Endpoint::Status);
        report.judge(&conduct::MET, called.is_some() || full || held || !sure || self.peers.unsure, || {
            format!("{from} called, which is no peer, and was not asked where it stands")
        });
        if called.is_some() || held {
            self.calls.note(step.local, from, Endpoint::Status);
            self.newcomers.insert(from, (step.local, called.is_some() && !held));
        }
    }

    pub(super) fn looks_for_peers(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let below = (self.peers.len() as u32) < minimum(known);
        let wait = Duration::from_secs(if below { 60 } else { 600 });
        self.discovers_by = looks_for_peers(known).then(|| step.local + wait);
        let lately = self.asked_for_peers.is_some_and(|at| step.local < at + Duration::from_secs(15));
        let newcomers = !self.newcomers.is_empty();
        let asked = self.asks_for_peers(report, step, left);
        let due = known.rules().node.discovery && self.peers.len() > 0 && !lately && !newcomers;
        report.judge(&conduct::DISCOVERED, asked || !due || self.peers.unsure, || {
            format!("it asked none of its {} peers for peers", self.peers.len())
        });
        if lately || (!asked && self.peers.len() > 0) {
            return;
        }
        let dropped: BTreeSet<NodeId> = self.given.iter().copied().filter(|node| !self.peers.has(*node)).collect();
        if (known.rules().node.retry_dropped_peers || below) && !dropped.is_empty() {
            self.calls_given = Some((step.local + Duration::from_secs(12), dropped));
        }
    }

    /// Up to eight peers are asked for theirs.
    fn asks_for_peers(&mut self, report: &mut Report, step: &Step, left: &mut Left<'_>) -> bool {
        let asked = left.take_all_to(|to, message| matches!(message, Message::PeersRequest).then_some(to));
        if asked.is_empty() {
            return false;
        }
        self.asked_for_peers = Some(step.local);
        let held =
            self.peers.numbers().filter(|peer| self.calls.may_be_full(step.local, *peer, Endpoint::Peers)).count();
        let distinct: BTreeSet<NodeId> = asked.iter().copied().collect();
        let wanted = self.peers.len().min(8);
        let holds = distinct.len() == asked.len() && asked.len() <= wanted && asked.len() + held >= wanted;
        // While peers are dropped one by one, some are asked that will go next.
        let drops = step.events().any(|event| matches!(event, Event::PeerRemoved(_)));
        report.judge(&conduct::DISCOVERED, holds || drops || self.peers.unsure, || {
            format!("it asked {asked:?} for peers, {wanted} of its {} should be asked", self.peers.len())
        });
        asked.iter().for_each(|node| self.calls.note(step.local, *node, Endpoint::Peers));
        true
    }

    pub(super) fn calls_all_it_knows(&mut self, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        let called = left.take_all_to(|to, message| matches!(message, Message::StatusRequest).then_some(to));
        let set: BTreeSet<NodeId> = called.iter().copied().collect();
        report.judge(&conduct::RESTARTED, set == self.given, || {
            format!("it called {called:?} and was given {:?}", self.given)
        });
        for node in called {
            self.calls.note(step.local, node, Endpoint::Status);
            self.newcomers.insert(node, (step.local, true));
        }
    }

    /// What a node must have done by now.
    pub(super) fn judge_deadlines(&mut self, report: &mut Report, step: &Step) {
        let now = step.local;
        if let Some(by) = self.looks_at.filter(|by| now > *by + GRACE) {
            report.breach(&conduct::WOKEN, || format!("no block came, and it did not look for one at {by}"));
            self.looks_at = None;
        }
        if let Some(by) = self.discovers_by.filter(|by| now > *by + GRACE) {
            report.breach(&conduct::DISCOVERED, || format!("it did not look for peers by {by}"));
            self.discovers_by = None;
        }
        if let Some(by) = self.doubts_by.filter(|by| now > *by + GRACE) {
            report.breach(&conduct::DOUBTED, || format!("four wake-ups in vain, and no health check by {by}"));
            self.doubts_by = None;
        }
        if let Some((by, nodes)) = self.calls_given.clone().filter(|(by, _)| now > *by) {
            let since = SimTime::from_micros(by.micros().saturating_sub(90_000_000));
            let missing = nodes.iter().find(|node| {
                !self.newcomers.contains_key(node) && !self.peers.has(**node) && !self.calls.pinged_since(**node, since)
            });
            report.judge(&conduct::DISCOVERED, missing.is_none() || self.peers.unsure, || {
                format!("it looked for peers and did not try {missing:?} again, which it was given")
            });
            self.calls_given = None;
        }
        if let Some(ping) = self.pings.iter().find(|ping| now > ping.until + GRACE && ping.purpose == PingFor::Forging)
        {
            report.breach(&conduct::COUNTED, || format!("its ping before forging should be over at {}", ping.until));
            let number = ping.number;
            self.pings.retain(|ping| ping.number != number);
        }
        self.judge_waves(report, now);
    }
}
