//! Watches a run and says which of its scenario's assertions hold.

use super::{
    Ended, Scenario,
    assertion::{Claim, Condition, Metric},
};
use crate::{
    actors::{ActorId, Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::{Height, Slot},
    sim::{
        Act, Fault, NetworkEvent, Observer, Outlook, Plan, Tips, Trigger, Weights,
        fault::{EventKind, NodeRef},
    },
};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard};

/// An observer that watches a run beside the judge and knows its invariants.
pub trait Expert: Observer {
    /// Holds the invariants of a chain, or the one of a name, against what was seen so far and the block that ends the
    /// winning chain: what is wrong, if anything.
    /// `now` is the end of the slot that is over.
    fn check(&mut self, now: SimTime, tree: &BlockTree, tip: &Arc<Link>, name: Option<&str>) -> Result<(), String>;

    /// One who has seen the same so far, for a run that goes on from here beside this one.
    fn apart(&self) -> Box<dyn Expert>;
}

impl Clone for Box<dyn Expert> {
    fn clone(&self) -> Self {
        self.apart()
    }
}

/// Watches a run. Clones share what they saw: one goes to the stage, one stays to be asked.
#[derive(Clone)]
pub struct Judge(Arc<Mutex<Case>>);

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The assertion in words.
    pub assertion: String,
    /// As `holds`: true, false, or null where it is undecided.
    #[serde(rename = "holds")]
    pub ruling: Ruling,
    /// The value found when it broke, or at the end.
    pub found: String,
}

/// The ruling on an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Holds,
    Broken,
    /// The run was ended before the assertion was decided.
    Undecided,
}

impl Ruling {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "does not hold",
            Self::Undecided => "is undecided",
        }
    }
}

impl Serialize for Ruling {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Holds => serializer.serialize_bool(true),
            Self::Broken => serializer.serialize_bool(false),
            Self::Undecided => serializer.serialize_none(),
        }
    }
}

impl Verdict {
    /// Returns true if the assertion holds for certain.
    pub fn holds(&self) -> bool {
        self.ruling == Ruling::Holds
    }

    /// Returns true if it does not hold for certain.
    pub fn is_broken(&self) -> bool {
        self.ruling == Ruling::Broken
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.assertion, self.ruling.words(), self.found)
    }
}

#[derive(Clone)]
struct Case {
    tree: Arc<BlockTree>,
    first: Arc<Link>,
    /// The first slot of the run.
    start: Slot,
    /// Slots of `eventually within` a round.
    slots_per_round: u32,
    tips: Tips,
    /// The greatest height that any node has applied.
    best: Height,
    weights: Weights,
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
#[derive(Clone)]
struct Watched {
    text: String,
    claim: Claim,
    from: From,
    within_rounds: Option<u32>,
    /// The first slot from which it counts, once that has come.
    since: Option<Slot>,
    /// The verdict, once it is decided, and the value found then.
    decided: Option<(bool, String)>,
    last: String,
}

/// From when an assertion counts.
#[derive(Clone)]
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
            start: slots.slot(plan.start.seconds()),
            slots_per_round: scenario.round_slots(),
            tips: Tips::new(plan.nodes.len(), &plan.tip),
            best: plan.tip.height(),
            weights: Weights::new(plan),
            pools: vec![0; plan.nodes.len()],
            counts: Counts::default(),
            expert,
            slot: slots.slot(plan.start.seconds()),
            assertions: watched.collect(),
            tree: plan.tree.clone(),
        };
        let judge = Self(Arc::new(Mutex::new(case)));
        judge.lock().moment_passed(plan.start);
        judge.lock().chains_passed();
        judge
    }

    /// A judge of a run that goes on from here beside this one: what was seen so far is known to both.
    pub fn apart(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Returns the observer that the assertions need; none if nothing is asserted.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        let asserts = !self.lock().assertions.is_empty();
        asserts.then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }

    /// Returns the verdict on each assertion in a run that ended at this instant and in this way. A run that was ended before
    /// its end leaves undecided what its end would have decided.
    pub fn verdicts(&self, end: SimTime, ended: Ended) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        case.look(true);
        case.assertions.iter().map(|watched| watched.verdict(ended.is_decided())).collect()
    }

    /// Returns the assertions that do not hold at the end of a slot that is over, whatever comes after it.
    pub fn broken(&self, end: SimTime) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        let broken = case.assertions.iter().filter(|one| one.decided.as_ref().is_some_and(|(holds, _)| !holds));
        broken.map(|watched| watched.verdict(true)).collect()
    }

    /// Any of the metrics, as things stand when a run has ended; `None` of one that needs a live node, while none is live.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let mut case = self.lock();
        let end = case.slot;
        case.metric(metric, end)
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
        case.tips.follow(node, event);
        case.count(node, event);
        case.event_passed(node, event);
        if let Event::BlockApplied(link) = event {
            case.best = case.best.max(link.height());
            case.chains_passed();
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut case = self.lock();
        case.look_until(now);
        if let Some(expert) = &mut case.expert {
            expert.observe_network(now, event);
        }
        if case.tips.follow_network(event) {
            case.chains_passed();
        }
        match event {
            NetworkEvent::FaultBegan { index, .. } => case.fault_passed(*index, false),
            NetworkEvent::FaultEnded { index, .. } => case.fault_passed(*index, true),
            NetworkEvent::PoolLost { node } => case.pools[node.0 as usize] = 0,
            _ => {}
        }
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        if let Some(expert) = &mut self.lock().expert {
            expert.observe_act(now, actor, act);
        }
    }

    fn rest(&mut self) {
        if let Some(expert) = &mut self.lock().expert {
            expert.rest();
        }
    }

    fn wants_acts(&self) -> bool {
        self.lock().expert.as_ref().is_some_and(|expert| expert.wants_acts())
    }

    fn look(&mut self, outlook: &Outlook<'_>) {
        if let Some(expert) = &mut self.lock().expert {
            expert.look(outlook);
        }
    }

    fn looks(&self) -> bool {
        self.lock().expert.as_ref().is_some_and(|expert| expert.looks())
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
        // A slot that is over ends where the next begins.
        let end = if at_end { self.slot } else { Slot(self.slot.0 + 1) };
        let mut assertions = std::mem::take(&mut self.assertions);
        for watched in assertions.iter_mut().filter(|watched| watched.decided.is_none()) {
            let Some(since) = watched.since else { continue };
            let condition = match &watched.claim {
                Claim::Finally(_) if !at_end => continue,
                claim => claim.condition(),
            };
            let (holds, found) = self.judge(condition, end);
            let deadline = watched.within_rounds.map(|rounds| since.0.saturating_add(rounds * self.slots_per_round));
            let when = || format!("{found} in slot {} at height {}", self.slot, self.tips.winning().height());
            watched.decided = match (&watched.claim, holds) {
                (Claim::Always(_), Some(false)) => Some((false, when())),
                (Claim::Sometimes(_) | Claim::Eventually(_), Some(true)) => Some((true, when())),
                (Claim::Eventually(_), _) if deadline.is_some_and(|deadline| self.slot.0 >= deadline) => {
                    Some((false, when()))
                }
                (Claim::Finally(_), holds) => Some((holds == Some(true), when())),
                _ => None,
            };
            watched.last = when();
        }
        self.assertions = assertions;
    }

    /// Judges a condition now, where slot `end` begins, and says what was found. `None` where it is about a figure
    /// that is not defined, for no node is live.
    fn judge(&mut self, condition: &Condition, end: Slot) -> (Option<bool>, String) {
        match condition {
            Condition::Converged => {
                let holds = self.tips.is_converged();
                (Some(holds), if holds { "converged" } else { "not converged" }.to_owned())
            }
            Condition::Invariants(name) => {
                let (tip, tree, name) = (self.tips.winning().clone(), self.tree.clone(), name.as_deref());
                let now = SimTime::from_seconds(tree.slots().start(end));
                let result = self.expert.as_mut().map_or(Ok(()), |expert| expert.check(now, &tree, &tip, name));
                (Some(result.is_ok()), result.err().unwrap_or_else(|| "all hold".to_owned()))
            }
            Condition::Compare { metric, comparison, value } => match self.metric(*metric, end) {
                Some(found) => {
                    (Some(comparison.holds(found, *value)), format!("{} is {}", metric.name(), short(found)))
                }
                None => (None, format!("{} is not defined, no node is live", metric.name())),
            },
        }
    }

    fn metric(&mut self, metric: Metric, end: Slot) -> Option<f64> {
        let (counts, winning) = (&self.counts, self.tips.winning());
        let count = |count: u64| Some(count as f64);
        match metric {
            Metric::Height => Some(winning.height().0.into()),
            Metric::LowestHeight => self.tips.heights().map(|(least, _)| least.0.into()),
            Metric::Round => Some(self.tree.schedule().at(winning.height().next()).round.0.into()),
            Metric::Agreement => self.tips.agreement(),
            Metric::VoteAgreement => self.weights.agreement(&self.tips),
            Metric::Chains => Some(self.tips.branches().branches.into()),
            Metric::Down => Some(self.tips.down().into()),
            Metric::Missed => {
                let (slots, blocks) = (end.0 - self.start.0, winning.height().0.saturating_sub(self.first.height().0));
                Some(slots.saturating_sub(blocks).into())
            }
            Metric::LongestGap => Some(counts.longest_gap.into()),
            Metric::BlocksForged => count(counts.forged),
            Metric::BlocksRefused => count(counts.refused),
            Metric::BlocksReverted => count(counts.reverted),
            Metric::Rollbacks => count(counts.rollbacks),
            Metric::RollbackDepth => Some(counts.rollback_depth.into()),
            Metric::Suspended => count(counts.suspended),
            Metric::HealthChecks => count(counts.health_checks),
            Metric::Transactions => Some(winning.transactions() as f64 - self.first.transactions() as f64),
            Metric::Pool => {
                self.tips.of_live().map(|(node, _)| self.pools[node.0 as usize]).max().map(|pool| pool as f64)
            }
            Metric::Rejected => count(counts.rejected),
            Metric::Expired => count(counts.expired),
            Metric::Evicted => count(counts.evicted),
            Metric::PeersRemoved => count(counts.peers_removed),
        }
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
            }
            Event::BlockReverted(_) => counts.reverted += 1,
            Event::RolledBack { from, to, .. } => {
                counts.rollbacks += 1;
                counts.rollback_depth = counts.rollback_depth.max(from.height().0.saturating_sub(to.height().0));
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
                    now.seconds_since(start) >= *seconds
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
        for watched in self.assertions.iter_mut().filter(|watched| watched.since.is_none()) {
            let From::Trigger { trigger: Trigger::Event(event), seen, node: wanted } = &mut watched.from else {
                continue;
            };
            if event.kind == kind && wanted.is_none_or(|wanted| wanted == node) {
                *seen += 1;
                if *seen >= event.count {
                    watched.since = Some(slot);
                }
            }
        }
    }

    /// Begins the assertions whose height or round has come.
    fn chains_passed(&mut self) {
        let Self { tips, best, tree, slot, .. } = self;
        for watched in self.assertions.iter_mut().filter(|watched| watched.since.is_none()) {
            let From::Trigger { trigger, .. } = &watched.from else { continue };
            if trigger.has_come(tips, *best, tree) {
                watched.since = Some(*slot);
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
    /// In a run that was ended before its end, `finally` is open, whatever was found, and so is what had not come to hold or
    /// whose moment had not come.
    fn verdict(&self, is_decided: bool) -> Verdict {
        let open = if is_decided { Ruling::Broken } else { Ruling::Undecided };
        let (ruling, found) = match (&self.decided, &self.claim) {
            (Some((_, found)), Claim::Finally(_)) if !is_decided => (Ruling::Undecided, found),
            (Some((true, found)), _) => (Ruling::Holds, found),
            (Some((false, found)), _) => (Ruling::Broken, found),
            (None, Claim::Always(_)) if self.since.is_some() => (Ruling::Holds, &self.last),
            (None, _) => (open, &self.last),
        };
        Verdict { assertion: self.text.clone(), ruling, found: found.clone() }
    }
}

/// A number without digits that say nothing.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
