//! Watches a run and says which of its scenario's assertions hold.

use super::{
    Scenario,
    assertion::{Claim, Condition, Metric},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{BlockId, PublicKey, Slot},
    sim::{
        Fault, NetworkEvent, Observer, Plan, Trigger,
        fault::{EventKind, NodeRef},
    },
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// Who watches a run beside the judge and knows its invariants.
pub trait Expert: Observer {
    /// Holds the invariants of a chain, or the one of a name, against what was seen so far and the block that ends the
    /// winning chain: what is wrong, if anything.
    /// `now` is the end of the slot that is over.
    fn check(&mut self, now: SimTime, tree: &BlockTree, tip: &Arc<Link>, name: Option<&str>) -> Result<(), String>;
}

/// Watches a run. Clones share what they saw: one goes to the stage, one stays to be asked.
#[derive(Clone)]
pub struct Judge(Arc<Mutex<Case>>);

/// Whether an assertion holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The assertion in words.
    pub assertion: String,
    pub holds: bool,
    /// What was found: when it broke, or the value at the end.
    pub found: String,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.assertion, if self.holds { "holds" } else { "does not hold" }, self.found)
    }
}

struct Case {
    tree: Arc<BlockTree>,
    first: Arc<Link>,
    keys: Vec<Option<PublicKey>>,
    /// Slots of `eventually within` a round.
    slots_per_round: u32,
    tips: Vec<Arc<Link>>,
    pools: Vec<i64>,
    counts: Counts,
    expert: Option<Box<dyn Expert>>,
    /// The slot at whose end the network is looked at next.
    slot: Slot,
    assertions: Vec<Watched>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    forged: u64,
    refused: u64,
    reverted: u64,
    rollbacks: u64,
    rollback_depth: u32,
    suspended: u64,
    health_checks: u64,
    rejected: u64,
    expired: u64,
    evicted: u64,
    peers_removed: u64,
    longest_gap: u32,
}

/// An assertion and what is known of it.
struct Watched {
    text: String,
    claim: Claim,
    from: From,
    within_rounds: Option<u32>,
    /// The first slot from which it counts, once that has come.
    since: Option<Slot>,
    /// When it was decided, and what was found then.
    decided: Option<(bool, String)>,
    last: String,
}

/// From when an assertion counts.
enum From {
    /// The end of a fault, or its beginning where it never ends.
    Fault {
        index: usize,
        ends: bool,
    },
    Trigger {
        trigger: Trigger,
        seen: u32,
        node: Option<NodeId>,
    },
}

impl Judge {
    /// A judge of a scenario's run under a plan. Without an expert, invariants are taken to hold.
    pub fn new(scenario: &Scenario, plan: &Plan, expert: Option<Box<dyn Expert>>) -> Self {
        let slots = plan.tree.slots();
        let usernames = scenario.usernames();
        let node = |node: &NodeRef| match node {
            NodeRef::Number(number) => Some(NodeId(*number)),
            NodeRef::Delegate(name) => {
                usernames.iter().position(|known| known == name).map(|index| NodeId(index as u32))
            }
        };
        let watched = scenario.assertions.iter().filter_map(|assertion| {
            let from = match assertion.after_fault {
                Some(index) => {
                    let index = index as usize;
                    From::Fault { index, ends: scenario.faults.get(index).is_some_and(Fault::ends) }
                }
                None => {
                    let trigger = assertion.after.clone().unwrap_or_default();
                    let node = match &trigger {
                        Trigger::Event(event) => event.node.as_ref().and_then(node),
                        _ => None,
                    };
                    From::Trigger { trigger, seen: 0, node }
                }
            };
            Some(Watched {
                text: assertion.to_string(),
                claim: assertion.claim().ok()?,
                from,
                within_rounds: assertion.within_rounds,
                since: None,
                decided: None,
                last: "nothing was seen".to_owned(),
            })
        });
        let case = Case {
            first: plan.tip.clone(),
            keys: plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public())).collect(),
            slots_per_round: scenario.network.delegates,
            tips: vec![plan.tip.clone(); plan.nodes.len()],
            pools: vec![0; plan.nodes.len()],
            counts: Counts::default(),
            expert,
            slot: slots.slot(plan.start.seconds()),
            assertions: watched.collect(),
            tree: plan.tree.clone(),
        };
        let judge = Self(Arc::new(Mutex::new(case)));
        judge.lock().moment_passed(plan.start);
        judge
    }

    /// What has to watch the run for it: nothing, where nothing is asserted.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        let asserts = !self.lock().assertions.is_empty();
        asserts.then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }

    /// What became of each assertion in a run that ended at this instant.
    pub fn verdicts(&self, end: SimTime) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        case.look(true);
        case.assertions.iter().map(Watched::verdict).collect()
    }

    /// Those that do not hold at the end of a slot that is over, whatever comes after it.
    pub fn broken(&self, end: SimTime) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        let broken = case.assertions.iter().filter(|one| one.decided.as_ref().is_some_and(|(holds, _)| !holds));
        broken.map(Watched::verdict).collect()
    }

    /// Any of the metrics, as things stand.
    pub fn metric(&self, metric: Metric) -> f64 {
        self.lock().metric(metric)
    }

    fn lock(&self) -> MutexGuard<'_, Case> {
        self.0.lock().expect("no one panics while holding it")
    }
}

impl Observer for Judge {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut case = self.lock();
        case.look_until(now);
        if let Some(expert) = &mut case.expert {
            expert.observe(now, node, event);
        }
        case.count(node, event);
        case.event_passed(node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut case = self.lock();
        case.look_until(now);
        if let Some(expert) = &mut case.expert {
            expert.observe_network(now, event);
        }
        match event {
            NetworkEvent::FaultBegan { index, .. } => case.fault_passed(*index, false),
            NetworkEvent::FaultEnded { index, .. } => case.fault_passed(*index, true),
            NetworkEvent::Sent { .. } | NetworkEvent::Lost { .. } => {}
        }
    }
}

impl Case {
    /// Looks at the network at the end of each slot that is over.
    fn look_until(&mut self, now: SimTime) {
        let running = self.tree.slots().slot(now.seconds());
        while self.slot < running {
            self.look(false);
            self.slot = Slot(self.slot.0 + 1);
            self.moment_passed(SimTime::from_seconds(self.tree.slots().start(self.slot)));
        }
    }

    fn look(&mut self, at_end: bool) {
        let mut assertions = std::mem::take(&mut self.assertions);
        for watched in assertions.iter_mut().filter(|watched| watched.decided.is_none()) {
            let Some(since) = watched.since else { continue };
            let condition = match &watched.claim {
                Claim::Finally(_) if !at_end => continue,
                Claim::Always(condition)
                | Claim::Sometimes(condition)
                | Claim::Eventually(condition)
                | Claim::Finally(condition) => condition,
            };
            let (holds, found) = self.judge(condition);
            let deadline = watched.within_rounds.map(|rounds| since.0.saturating_add(rounds * self.slots_per_round));
            let when = || format!("{found} in slot {} at height {}", self.slot, self.winner().height());
            watched.decided = match (&watched.claim, holds) {
                (Claim::Always(_), false) => Some((false, when())),
                (Claim::Sometimes(_) | Claim::Eventually(_), true) => Some((true, when())),
                (Claim::Eventually(_), false) if deadline.is_some_and(|deadline| self.slot.0 >= deadline) => {
                    Some((false, when()))
                }
                (Claim::Finally(_), holds) => Some((holds, when())),
                _ => None,
            };
            watched.last = when();
        }
        self.assertions = assertions;
    }

    /// Whether a condition holds now, and what was found.
    fn judge(&mut self, condition: &Condition) -> (bool, String) {
        match condition {
            Condition::Converged => {
                let holds = self.is_converged();
                (holds, if holds { "converged" } else { "not converged" }.to_owned())
            }
            Condition::Invariants(name) => {
                let tip = self.winner();
                let (tree, name) = (self.tree.clone(), name.as_deref());
                let end = SimTime::from_seconds(tree.slots().start(Slot(self.slot.0 + 1)));
                let result = self.expert.as_mut().map_or(Ok(()), |expert| expert.check(end, &tree, &tip, name));
                (result.is_ok(), result.err().unwrap_or_else(|| "all hold".to_owned()))
            }
            Condition::Compare { metric, comparison, value } => {
                let found = self.metric(*metric);
                (comparison.holds(found, *value), format!("{} is {}", metric.name(), short(found)))
            }
        }
    }

    /// The highest tip; of several the one of most nodes, then that of the least id.
    fn winner(&self) -> Arc<Link> {
        let mut nodes: BTreeMap<BlockId, (usize, &Arc<Link>)> = BTreeMap::new();
        for tip in &self.tips {
            nodes.entry(tip.id()).or_insert((0, tip)).0 += 1;
        }
        let best = nodes.values().max_by_key(|(count, tip)| (tip.height(), *count, std::cmp::Reverse(tip.id())));
        best.map_or_else(|| self.first.clone(), |(_, tip)| (*tip).clone())
    }

    /// Whether a tip is the winner or the block before it.
    fn agrees(tip: &Arc<Link>, winner: &Arc<Link>) -> bool {
        tip.id() == winner.id() || winner.parent().is_some_and(|parent| parent.id() == tip.id())
    }

    fn is_converged(&self) -> bool {
        let winner = self.winner();
        self.tips.iter().all(|tip| Self::agrees(tip, &winner))
    }

    fn chains(&self) -> usize {
        let mut tips: BTreeMap<BlockId, &Arc<Link>> = BTreeMap::new();
        tips.extend(self.tips.iter().map(|tip| (tip.id(), tip)));
        let is_below = |tip: &Arc<Link>| tips.values().any(|other| other.id() != tip.id() && other.descends_from(tip));
        tips.values().filter(|tip| !is_below(tip)).count()
    }

    fn metric(&self, metric: Metric) -> f64 {
        let counts = &self.counts;
        match metric {
            Metric::Height => self.winner().height().0.into(),
            Metric::LowestHeight => self.tips.iter().map(|tip| tip.height().0).min().unwrap_or(0).into(),
            Metric::Round => self.tree.schedule().at(self.winner().height().next()).round.0.into(),
            Metric::Agreement => {
                let winner = self.winner();
                let agreeing = self.tips.iter().filter(|tip| Self::agrees(tip, &winner)).count();
                agreeing as f64 / self.tips.len() as f64
            }
            Metric::VoteAgreement => self.vote_agreement(),
            Metric::Chains => self.chains() as f64,
            Metric::Missed => {
                let (winner, slots) = (self.winner(), self.tree.slots());
                let slot = |link: &Link| slots.slot(link.block().header.timestamp).0;
                let (slots, blocks) = (slot(&winner) - slot(&self.first), winner.height().0 - self.first.height().0);
                slots.saturating_sub(blocks).into()
            }
            Metric::LongestGap => counts.longest_gap.into(),
            Metric::BlocksForged => counts.forged as f64,
            Metric::BlocksRefused => counts.refused as f64,
            Metric::BlocksReverted => counts.reverted as f64,
            Metric::Rollbacks => counts.rollbacks as f64,
            Metric::RollbackDepth => counts.rollback_depth.into(),
            Metric::Suspended => counts.suspended as f64,
            Metric::HealthChecks => counts.health_checks as f64,
            Metric::Transactions => (self.winner().transactions() - self.first.transactions()) as f64,
            Metric::Pool => self.pools.iter().max().copied().unwrap_or(0) as f64,
            Metric::Rejected => counts.rejected as f64,
            Metric::Expired => counts.expired as f64,
            Metric::Evicted => counts.evicted as f64,
            Metric::PeersRemoved => counts.peers_removed as f64,
        }
    }

    fn vote_agreement(&self) -> f64 {
        let winner = self.winner();
        let applied = self.tree.applied(&winner);
        let (mut all, mut agreeing) = (0.0, 0.0);
        for (tip, key) in self.tips.iter().zip(&self.keys) {
            let delegate = key.as_ref().and_then(|key| applied.state.delegate_of(key));
            let weight = delegate.map_or(0.0, |delegate| delegate.vote_balance.0 as f64);
            all += weight;
            agreeing += if Self::agrees(tip, &winner) { weight } else { 0.0 };
        }
        if all > 0.0 { agreeing / all } else { 1.0 }
    }

    fn count(&mut self, node: NodeId, event: &Event) {
        let counts = &mut self.counts;
        let pool = &mut self.pools[node.0 as usize];
        match event {
            Event::BlockForged(_) => counts.forged += 1,
            Event::BlockRefused(_) => counts.refused += 1,
            Event::BlockApplied(link) => {
                if let Some(parent) = link.parent() {
                    let (before, after) = (parent.block().header.timestamp.0, link.block().header.timestamp.0);
                    counts.longest_gap = counts.longest_gap.max(after.saturating_sub(before));
                }
                self.tips[node.0 as usize] = link.clone();
            }
            Event::BlockReverted(_) => counts.reverted += 1,
            Event::RolledBack { from, to, .. } => {
                counts.rollbacks += 1;
                counts.rollback_depth = counts.rollback_depth.max(from.height().0.saturating_sub(to.height().0));
                self.tips[node.0 as usize] = to.clone();
            }
            Event::ForgingSuspended { .. } => counts.suspended += 1,
            Event::HealthChecked { .. } => counts.health_checks += 1,
            Event::PoolAdded(added) => *pool += added.len() as i64,
            Event::PoolRejected(rejected) => counts.rejected += rejected.len() as u64,
            Event::PoolRemoved(_) | Event::PoolPurged(_) => *pool -= 1,
            Event::PoolExpired(_) => {
                counts.expired += 1;
                *pool -= 1;
            }
            Event::PoolEvicted(_) => {
                counts.evicted += 1;
                *pool -= 1;
            }
            Event::PoolReplaced(held) => *pool = held.len() as i64,
            Event::PeerRemoved(_) => counts.peers_removed += 1,
            Event::BlockReceived(_)
            | Event::BlockDisregarded(_)
            | Event::PeerAdded(_)
            | Event::ForgerStarted { .. }
            | Event::ForgerFailed { .. } => {}
        }
    }

    // From when assertions count.

    fn moment_passed(&mut self, now: SimTime) {
        let (slots, slot) = (self.tree.slots(), self.slot);
        let start = SimTime::from_seconds(slots.start(Slot(1)));
        for watched in self.assertions.iter_mut().filter(|watched| watched.since.is_none()) {
            let has_come = match &watched.from {
                From::Trigger { trigger: Trigger::Start, .. } => true,
                From::Trigger { trigger: Trigger::Seconds(seconds) | Trigger::After(seconds), .. } => {
                    now.since(start).as_secs_f64() >= *seconds
                }
                From::Trigger { trigger: Trigger::Slot(wanted), .. } => slot.0 >= *wanted,
                _ => false,
            };
            if has_come {
                watched.since = Some(slot);
            }
        }
    }

    fn event_passed(&mut self, node: NodeId, event: &Event) {
        let kind = EventKind::of(event);
        let slot = self.slot;
        let height = match event {
            Event::BlockApplied(link) => Some(link.height()),
            _ => None,
        };
        for watched in self.assertions.iter_mut().filter(|watched| watched.since.is_none()) {
            let From::Trigger { trigger, seen, node: wanted } = &mut watched.from else { continue };
            let has_come = match (&*trigger, height) {
                (Trigger::Height(wanted), Some(height)) => height.0 >= *wanted,
                (Trigger::Round(wanted), Some(height)) => self.tree.schedule().at(height.next()).round.0 >= *wanted,
                (Trigger::Event(event), _) if event.kind == kind && wanted.is_none_or(|wanted| wanted == node) => {
                    *seen += 1;
                    *seen >= event.count
                }
                _ => false,
            };
            if has_come {
                watched.since = Some(slot);
            }
        }
    }

    fn fault_passed(&mut self, index: usize, ended: bool) {
        let slot = self.slot;
        let concerned = |watched: &&mut Watched| matches!(watched.from, From::Fault { index: of, ends } if of == index && ends == ended);
        for watched in self.assertions.iter_mut().filter(concerned) {
            watched.since.get_or_insert(slot);
        }
    }
}

impl Watched {
    fn verdict(&self) -> Verdict {
        let (holds, found) = match (&self.decided, &self.claim) {
            (Some((holds, found)), _) => (*holds, found.clone()),
            (None, Claim::Always(_)) => (self.since.is_some(), self.last.clone()),
            (None, _) => (false, self.last.clone()),
        };
        Verdict { assertion: self.text.clone(), holds, found }
    }
}

/// A number without digits that say nothing.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
