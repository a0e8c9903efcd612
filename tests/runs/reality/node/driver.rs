//! A simulated peer in the place of a real node.

use super::{Compared, chain::Chain};
use crate::reality::facts::{Decision, Facts, HealthCheck, PeerEventKind, Ping};
use dposlab::{
    actors::{
        ActorId, Effect, Event, Input, Message, NodeId, Peer, Role, SimTime, Wake,
        message::{NetworkState, Reorganisation},
    },
    ledger::Link,
    protocol::{BlockId, Height},
    sim::SeedTree,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Pings that left within this time of each other are one round \[s\].
const ONE_ROUND: f64 = 0.3;
/// The time after which a status comes too late for forging \[ms\]. Source: consensus.md 2.2.
const IN_TIME_MS: f64 = 1_500.0;
/// A decision that took so long did not wait for all answers \[ms\].
const TIME_IS_UP_MS: f64 = 1_490.0;
/// When the status came of a peer whose verification took longer \[ms\].
const BEFORE_VERIFICATION_MS: f64 = 1_400.0;
/// A chain whose last block is older is not fresh \[s\]. Source: consensus.md 3.5.
const FRESH: u64 = 24;
/// Bounds of a random rollback. Source: consensus.md 8 Q17.
const RANDOM_ROLLBACK: (u32, u32) = (4, 102);

/// Compares one node's decisions and health checks.
pub fn compare(window: &str, facts: &Facts, chain: &Chain<'_>, node: u32, all: &mut Compared) {
    let stands = Stands::of(facts, chain);
    let others: Vec<u32> = (1..=facts.nodes).filter(|other| *other != node).collect();
    let mut health: BTreeMap<usize, Vec<Outcome>> = BTreeMap::new();
    for (variant, first) in others.iter().enumerate() {
        let mut driver = Driver::new(facts, chain, &stands, node, *first);
        let Some(found) = driver.drive() else { return };
        found.health.into_iter().for_each(|(index, outcome)| health.entry(index).or_default().push(outcome));
        if variant > 0 {
            continue;
        }
        for (index, state) in found.states {
            let decision = &facts.decisions[index];
            all.counts += 1;
            match is_same(decision, &state) {
                true => all.same_counts += 1,
                false => all.unlike.push(format!(
                    "{window}, node {node}, {:.3} s: the real relay counts {} on its chain, {} above and {} forked, the simulated \
                     one {}, {} and {}",
                    decision.t,
                    decision.in_quorum,
                    decision.over_height,
                    decision.forked,
                    state.in_quorum,
                    state.over_height,
                    state.forked
                )),
            }
        }
        // Whom the node stored first matters to a node that is forked only.
        if facts.health_checks.iter().all(|check| check.node != node || !check.forked) {
            break;
        }
    }
    for (index, outcomes) in health {
        let check = &facts.health_checks[index];
        all.health += 1;
        match outcomes.iter().any(|outcome| outcome.is_as(check)) {
            true => all.same_health += 1,
            false => all.unlike.push(format!(
                "{window}, node {node}, {:.3} s: the real health check {}, the simulated one {}",
                check.t,
                told(check.forked.then_some(check.blocks_to_rollback.unwrap_or(0))),
                outcomes
                    .iter()
                    .map(Outcome::told)
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect::<Vec<_>>()
                    .join(" or ")
            )),
        }
    }
}

fn is_same(decision: &Decision, state: &NetworkState) -> bool {
    let real = (decision.in_quorum, decision.over_height, decision.forked, decision.status.clone());
    real == (state.in_quorum, state.over_height, state.forked, format!("{:?}", state.status))
}

/// How a health check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    peers: u32,
    forked: u32,
    rolled_back: Option<u32>,
    /// The height it was at.
    height: u32,
}

/// What comes of a health check, in words.
fn told(blocks: Option<u32>) -> String {
    match blocks {
        None => "finds no fork".to_owned(),
        Some(0) => "goes back by chance".to_owned(),
        Some(blocks) => format!("goes back {blocks} blocks"),
    }
}

impl Outcome {
    fn told(&self) -> String {
        format!("with {} of {} peers forked {}", self.forked, self.peers, told(self.rolled_back))
    }

    fn is_as(&self, check: &HealthCheck) -> bool {
        match (check.forked, self.rolled_back) {
            (false, None) => true,
            (true, Some(depth)) => match check.blocks_to_rollback {
                Some(0) | None => {
                    let (least, most) = RANDOM_ROLLBACK;
                    (least.min(self.height - 1)..=most).contains(&depth)
                }
                Some(blocks) => depth == blocks,
            },
            _ => false,
        }
    }
}

/// Where each node stood when.
struct Stands(BTreeMap<u32, Vec<(f64, Stand)>>);

/// A block that is known, or none.
type Stand = Option<Arc<Link>>;

impl Stands {
    fn of(facts: &Facts, chain: &Chain<'_>) -> Self {
        // Of blocks that came or went at one time, the last one counts.
        let mut all: BTreeMap<u32, Vec<(f64, u32, Stand)>> = BTreeMap::new();
        let mut put = |t: f64, order: u32, node: u32, id: &str| {
            all.entry(node).or_default().push((t - facts.skew(node, t), order, chain.link(id).cloned()));
        };
        let height = |id: &String| facts.blocks.get(id).map_or(0, |block| block.height);
        for (id, at) in &facts.applied {
            at.iter().for_each(|(node, t)| put(*t, height(id), *node, id));
        }
        for (t, node, id) in &facts.reverted {
            put(*t, u32::MAX / 2 - height(id), *node, facts.blocks.get(id).map_or("", |block| &block.previous));
        }
        facts.tips.iter().for_each(|(node, tips)| tips.iter().for_each(|tip| put(tip.t, u32::MAX, *node, &tip.id)));
        let in_order = |mut steps: Vec<(f64, u32, Option<Arc<Link>>)>| {
            steps.sort_by(|(a, first, _), (b, second, _)| a.total_cmp(b).then(first.cmp(second)));
            let before = steps.first().and_then(|(_, order, link)| match *order {
                u32::MAX => link.clone(),
                // It stood below the first block that it is known to have applied.
                _ => link.as_ref().filter(|link| link.height().0 == *order)?.parent(),
            });
            let known = steps.into_iter().map(|(t, _, link)| (t, link));
            [(f64::NEG_INFINITY, before)].into_iter().chain(known).collect()
        };
        Self(all.into_iter().map(|(node, steps)| (node, in_order(steps))).collect())
    }

    fn at(&self, node: u32, t: f64) -> Option<Arc<Link>> {
        let steps = self.0.get(&node)?;
        let after = steps.partition_point(|(at, _)| *at <= t);
        steps.get(after.checked_sub(1)?)?.1.clone()
    }
}

/// When the last of these pings left; `start` without one.
fn last_sent<'a>(pings: impl Iterator<Item = &'a Ping>, start: f64) -> f64 {
    pings.map(|ping| ping.t - ping.ms / 1e3).fold(start, f64::max)
}

/// Something of a node that is done over again.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Decision(usize),
    Health(usize),
    /// Pings for another reason.
    Ping,
}

/// What the simulated peer made of its inputs.
#[derive(Default)]
struct Found {
    states: Vec<(usize, NetworkState)>,
    health: Vec<(usize, Outcome)>,
}

struct Driver<'a> {
    facts: &'a Facts,
    chain: &'a Chain<'a>,
    stands: &'a Stands,
    node: u32,
    /// The nodes by the numbers they have for the simulated peer, itself first.
    numbers: Vec<u32>,
    peer: Option<Peer>,
    queue: BTreeMap<(SimTime, u64), Input>,
    queued: u64,
    /// Time by which the peer's clock is ahead of the recording's, so that its chain is not fresh \[s\].
    ahead: f64,
    /// Recorded pings that answer the peer's; `None` while it is told the truth at once.
    answers: Option<Vec<Ping>>,
    /// When the verification of a peer ended.
    verified_at: BTreeMap<NodeId, SimTime>,
    state: Option<NetworkState>,
    outcome: Option<Outcome>,
    effects: Vec<Effect>,
}

impl<'a> Driver<'a> {
    /// `first` is the peer that the node stored first.
    fn new(facts: &'a Facts, chain: &'a Chain<'a>, stands: &'a Stands, node: u32, first: u32) -> Self {
        let others = (1..=facts.nodes).filter(|other| ![node, first].contains(other));
        Self {
            facts,
            chain,
            stands,
            node,
            numbers: [node, first].into_iter().chain(others).collect(),
            peer: None,
            queue: BTreeMap::new(),
            queued: 0,
            ahead: 0.0,
            answers: None,
            verified_at: BTreeMap::new(),
            state: None,
            outcome: None,
            effects: Vec::new(),
        }
    }

    fn number(&self, node: u32) -> NodeId {
        let place = self.numbers.iter().position(|other| *other == node);
        NodeId(place.expect("all nodes have a number") as u32)
    }

    /// Does all over again; `None` if it is not known where the node began.
    fn drive(&mut self) -> Option<Found> {
        let tip = self.stands.at(self.node, 0.0)?;
        let given: Vec<NodeId> = self.peers_at(0.0).iter().map(|node| self.number(*node)).collect();
        let choices = SeedTree::new(1).choices("reality/peer");
        self.peer = Some(Peer::new(NodeId(0), self.chain.tree.clone(), tip, given, choices));
        let mut found = Found::default();
        for (start, deed) in self.deeds() {
            self.play_until(self.time(start));
            self.queue.clear();
            self.ahead = 0.0;
            let wanted = match deed {
                Deed::Decision(index) => self.tip_of_decision(start, &self.facts.decisions[index]),
                // All are pinged at its end, after the node has looked for peers.
                Deed::Health(index) => self.stands.at(self.node, self.end_of(&self.facts.health_checks[index])),
                Deed::Ping => self.stands.at(self.node, start),
            };
            let Some(wanted) = wanted else { continue };
            let ready = match deed {
                Deed::Health(index) => self.end_of(&self.facts.health_checks[index]),
                Deed::Decision(_) | Deed::Ping => start,
            };
            if !self.prepare(ready, &wanted) {
                continue;
            }
            match deed {
                Deed::Decision(index) => {
                    let decision = &self.facts.decisions[index];
                    let peers = self.peers_at(start).len() as u32;
                    let is_known = decision.in_quorum + decision.over_height + decision.forked == peers;
                    self.answer_from(start);
                    // A relay that does not wait until the time is up has all answers.
                    let answers = self.answers.iter().flatten().filter(|ping| ping.answered);
                    let heard: BTreeSet<u32> = answers.map(|ping| ping.to).collect();
                    let is_known = is_known && (decision.ms >= TIME_IS_UP_MS || heard.len() as u32 >= peers);
                    self.ping(start);
                    let end = decision.t - self.facts.skew(self.node, decision.t);
                    if let Some(state) = self.state.take().filter(|_| is_known && self.all_known(start, end)) {
                        found.states.push((index, state));
                    }
                }
                Deed::Ping => {
                    self.answer_from(start);
                    self.ping(start);
                }
                Deed::Health(index) => {
                    let end = self.end_of(&self.facts.health_checks[index]);
                    self.check_health(start, end);
                    if let Some(outcome) = self.outcome.take().filter(|_| self.all_known(start, end)) {
                        found.health.push((index, outcome));
                    }
                }
            }
        }
        Some(found)
    }

    /// All that this node asked its peers for, in order.
    fn deeds(&self) -> Vec<(f64, Deed)> {
        let own = |node: u32| node == self.node;
        let skew = |t| self.facts.skew(self.node, t);
        let mut deeds: Vec<(f64, Deed)> = Vec::new();
        for (index, decision) in self.facts.decisions.iter().enumerate().filter(|(_, one)| own(one.node)) {
            deeds.push((decision.t - decision.ms / 1e3 - skew(decision.t), Deed::Decision(index)));
        }
        for (index, check) in self.facts.health_checks.iter().enumerate().filter(|(_, one)| own(one.node)) {
            deeds.push((check.t - check.ms / 1e3 - skew(check.t), Deed::Health(index)));
        }
        let mut sent: Vec<f64> = self.pings().map(|ping| ping.t - ping.ms / 1e3).collect();
        sent.sort_by(f64::total_cmp);
        let mut last = f64::NEG_INFINITY;
        for at in sent {
            let is_of_other = |(start, deed): &(f64, Deed)| match deed {
                Deed::Decision(_) => (at - start).abs() < ONE_ROUND,
                // First the node looks for peers, and then it pings all.
                Deed::Health(index) => (*start - ONE_ROUND..self.facts.health_checks[*index].t).contains(&at),
                Deed::Ping => false,
            };
            if at - last > ONE_ROUND && !deeds.iter().any(is_of_other) {
                deeds.push((at, Deed::Ping));
            }
            last = at;
        }
        deeds.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        deeds
    }

    /// The node's pings, in true time.
    fn pings(&self) -> impl Iterator<Item = Ping> {
        let own = self.facts.pings.iter().filter(|ping| ping.node == self.node);
        own.map(|ping| Ping { t: ping.t - self.facts.skew(self.node, ping.t), ..ping.clone() })
    }

    /// The peers that the node had just before an instant.
    fn peers_at(&self, t: f64) -> BTreeSet<u32> {
        let others: BTreeSet<u32> = (1..=self.facts.nodes).filter(|other| *other != self.node).collect();
        let first = self.facts.tips.get(&self.node).and_then(|tips| tips.first()).map_or(0, |tip| tip.peers as usize);
        let own = || self.facts.peers.iter().filter(|event| event.node == self.node);
        let mut peers = match first == others.len() {
            true => others,
            // Those that it spoke with before it added any.
            false => {
                let added =
                    own().find(|event| event.kind == PeerEventKind::Added).map_or(f64::INFINITY, |event| event.t);
                let pinged = self.facts.pings.iter().filter(|ping| ping.node == self.node && ping.t < added);
                let pushed = self.facts.pushes.iter().filter(|push| push.node == self.node && push.t < added);
                pinged.map(|ping| ping.to).chain(pushed.map(|push| push.to)).collect()
            }
        };
        for event in own().filter(|event| event.t - self.facts.skew(self.node, event.t) < t) {
            match event.kind {
                PeerEventKind::Added => peers.insert(event.peer),
                PeerEventKind::Removed | PeerEventKind::Disconnect => peers.remove(&event.peer),
            };
        }
        peers
    }

    /// All peers stand on blocks that are known, and what the node knew of them before is known, too.
    fn all_known(&self, start: f64, end: f64) -> bool {
        let first: BTreeSet<Option<BlockId>> =
            self.numbers.iter().map(|node| self.stands.at(*node, 0.0).map(|link| link.id())).collect();
        let began_alike = first.len() == 1;
        let has_answered = |peer: u32| self.pings().any(|ping| ping.to == peer && ping.answered && ping.t <= end);
        let is_known = |peer: &u32| self.stands.at(*peer, start).is_some() && (began_alike || has_answered(*peer));
        self.peers_at(start).iter().all(is_known)
    }

    /// The end of a health check, before what follows from it.
    fn end_of(&self, check: &HealthCheck) -> f64 {
        check.t - self.facts.skew(self.node, check.t) - 0.002
    }

    fn tip_of_decision(&self, start: f64, decision: &Decision) -> Option<Arc<Link>> {
        let end = decision.t - self.facts.skew(self.node, decision.t);
        let at = [start, end].map(|t| self.stands.at(self.node, t));
        at.into_iter().flatten().find(|link| link.height() == Height(decision.height))
    }

    fn time(&self, t: f64) -> SimTime {
        SimTime::from_micros(((self.facts.begins + t + self.ahead) * 1e6) as u64)
    }

    fn peer(&mut self) -> &mut Peer {
        self.peer.as_mut().expect("it was made first")
    }

    /// Brings the peer where the node was: its tip, and whom it had as peers.
    fn prepare(&mut self, start: f64, wanted: &Arc<Link>) -> bool {
        self.answers = None;
        let now = self.time(start);
        let tip = self.peer().tip().clone();
        if wanted.descends_from(&tip) {
            let above = std::iter::successors(Some(wanted.clone()), |link| link.parent());
            let mut blocks: Vec<_> = above.take_while(|link| link.height() > tip.height()).collect();
            blocks.reverse();
            let from = ActorId { node: NodeId(1), role: Role::Peer };
            for link in blocks {
                self.step(now, Input::Message { from, message: Message::Block(link.block().clone()) });
            }
        } else {
            let mut common = tip;
            while !wanted.descends_from(&common) {
                let Some(parent) = common.parent() else { return false };
                common = parent;
            }
            // While its chain is fresh, a node does not download after that.
            let fresh = SimTime::from_seconds(wanted.block().header.timestamp) + Duration::from_secs(FRESH / 2);
            let to = Reorganisation { common, tip: wanted.clone(), dropped: Arc::new([]) };
            self.step(fresh, Input::Reorganise(Arc::new(to)));
            self.play_until(fresh + Duration::from_micros(1));
        }
        let peers: BTreeSet<NodeId> = self.peers_at(start).iter().map(|node| self.number(*node)).collect();
        let has: BTreeSet<NodeId> = self.peer().connected().collect();
        for gone in has.difference(&peers) {
            self.say(now, *gone, Message::HungUp);
        }
        for new in peers.difference(&has) {
            self.say(now, *new, Message::StatusRequest);
        }
        self.play_until(now + Duration::from_micros(1));
        self.queue.clear();
        self.peer().tip().is(wanted) && self.peer().connected().collect::<BTreeSet<_>>() == peers
    }

    fn answer_from(&mut self, start: f64) {
        let near = self.pings().filter(|ping| (ping.t - ping.ms / 1e3 - start).abs() < ONE_ROUND);
        self.answers = Some(near.collect());
        self.verified_at.clear();
    }

    /// The delegate asks for the state of the network.
    fn ping(&mut self, start: f64) {
        self.state = None;
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        let now = self.time(start);
        self.step(now, Input::Message { from, message: Message::NetworkStateRequest });
        self.play_until(now + Duration::from_millis(2_100));
    }

    /// The node has woken up in vain often enough. A peer that it pinged several times meanwhile counts as it answered last.
    fn check_health(&mut self, start: f64, end: f64) {
        self.outcome = None;
        let height = self.peer().tip().height().0;
        self.ahead = 2.0 * FRESH as f64;
        let sent = |ping: &Ping| ping.t - ping.ms / 1e3;
        let during = self.pings().filter(|ping| sent(ping) > start - ONE_ROUND && sent(ping) <= end);
        let last: BTreeMap<u32, Ping> = during.map(|ping| (ping.to, ping)).collect();
        self.answers = Some(last.into_values().collect());
        self.verified_at.clear();
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        let now = self.time(last_sent(self.answers.iter().flatten(), start));
        self.step(now, Input::Message { from, message: Message::WakeUp });
        self.play_until(now + Duration::from_secs(40));
        if let Some(outcome) = &mut self.outcome {
            outcome.height = height;
        }
        self.ahead = 0.0;
    }

    fn say(&mut self, now: SimTime, from: NodeId, message: Message) {
        self.step(now, Input::Message { from: ActorId { node: from, role: Role::Peer }, message });
    }

    fn later(&mut self, at: SimTime, input: Input) {
        self.queued += 1;
        self.queue.insert((at, self.queued), input);
    }

    fn play_until(&mut self, until: SimTime) {
        while let Some(((at, number), _)) = self.queue.first_key_value().filter(|((at, _), _)| *at < until) {
            let key = (*at, *number);
            if let Some(input) = self.queue.remove(&key) {
                self.step(key.0, input);
            }
        }
    }

    fn step(&mut self, now: SimTime, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        self.peer().step(now, input, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } if to.node != NodeId(0) => self.asked(now, to.node, &message),
                Effect::SendToPeers { to, message } => to.iter().for_each(|to| self.asked(now, *to, &message)),
                Effect::Send { message: Message::NetworkState(state), .. } => self.state = Some(*state),
                // Nothing else wakes it: that is recorded, or does not happen.
                Effect::WakeAt {
                    at,
                    wake: wake @ (Wake::PingOver { .. } | Wake::PingAgain { .. } | Wake::Unanswered),
                } => {
                    self.later(at, Input::Wake(wake));
                }
                Effect::Observe(event) => self.happened(&event),
                _ => {}
            }
        }
        self.effects = effects;
    }

    fn happened(&mut self, event: &Event) {
        match event {
            Event::HealthChecked { peers, forked } => {
                let (peers, forked) = (*peers, *forked);
                self.outcome.get_or_insert(Outcome { peers, forked, rolled_back: None, height: 0 });
            }
            Event::RolledBack { from, to, .. } => {
                if let Some(outcome) = self.outcome.as_mut().filter(|outcome| outcome.rolled_back.is_none()) {
                    outcome.rolled_back = Some(from.height().0 - to.height().0);
                }
            }
            _ => {}
        }
    }

    /// Another node is asked something: it answers as it did, or, where that is not recorded, by where it stood.
    fn asked(&mut self, now: SimTime, to: NodeId, message: &Message) {
        let other = self.numbers[to.0 as usize];
        let t = now.micros() as f64 / 1e6 - self.facts.begins - self.ahead;
        let Some(link) = self.stands.at(other, t) else { return };
        let when = self.verified_at.get(&to).copied().unwrap_or(now).max(now);
        let (at, answer) = match message {
            Message::StatusRequest => {
                let Some(answers) = &mut self.answers else {
                    return self.answers_at(now, to, Message::Status { tip: link.block().clone() });
                };
                let Some(place) = answers.iter().position(|ping| ping.to == other) else { return };
                let ping = answers.remove(place);
                // The other node looks halfway, and may have moved since the question left.
                let halfway = t + ping.ms.min(BEFORE_VERIFICATION_MS) / 2e3;
                let Some(link) = self.stands.at(other, halfway).filter(|_| ping.answered) else { return };
                let status = Message::Status { tip: link.block().clone() };
                let end = now + Duration::from_secs_f64(ping.ms / 1e3);
                self.verified_at.insert(to, end);
                match ping.ms > IN_TIME_MS {
                    true => (now + Duration::from_secs_f64(BEFORE_VERIFICATION_MS / 1e3), status),
                    false => (end, status),
                }
            }
            Message::CommonBlocksRequest { inquiry, ids } => {
                let is_own = |id: &&BlockId| self.chain.tree.link(id).is_some_and(|own| link.descends_from(&own));
                let common = ids.iter().rev().find(is_own).copied().map(Box::new);
                (when, Message::CommonBlocks { inquiry: *inquiry, height: link.height(), common })
            }
            Message::BlocksRequest { inquiry, above, limit, headers_only } => {
                let last = if *headers_only { link.height().0.min(above.0 + limit) } else { above.0 };
                let blocks = (above.0 + 1..=last).filter_map(|height| link.ancestor(Height(height)));
                let blocks = blocks.map(|link| link.block().clone()).collect();
                (when, Message::Blocks { inquiry: *inquiry, height: link.height(), blocks })
            }
            Message::PeersRequest => (now, Message::Peers(Arc::new([]))),
            _ => return,
        };
        self.answers_at(at, to, answer);
    }

    fn answers_at(&mut self, at: SimTime, from: NodeId, message: Message) {
        self.later(at, Input::Message { from: ActorId { node: from, role: Role::Peer }, message });
    }
}
