//! The judge of a run, which decides the scenario's assertions.

mod counts;
mod members;

use super::{
    Ended, Scenario,
    assertion::{Claim, Condition, Metric, Operand},
};
use crate::{
    actors::{ActorId, Event, NodeId, SimTime},
    ledger::{BlockTree, Link, Round, rules::Shuffle},
    protocol::{Height, PublicKey, Slot},
    sim::{
        Act, ActiveSet, Fault, NetworkEvent, Observer, Outlook, Plan, Tips, Trigger, Weights,
        fault::{EventKind, NodeRef},
    },
};
use counts::Counts;
use members::{ConditionResult, Figures, Member, MissedSlots, Shares};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

/// An observer that watches a run beside the judge and knows its invariants.
pub trait Expert: Observer {
    /// Checks the invariants, or the one with this name, against all observations so far and the winning tip. `now` is the
    /// end of the slot that is over. The error describes what is wrong.
    fn check(&mut self, now: SimTime, tree: &BlockTree, tip: &Arc<Link>, name: Option<&str>) -> Result<(), String>;

    /// An expert with the same observations so far, for a run that continues from here beside this one.
    fn apart(&self) -> Box<dyn Expert>;
}

impl Clone for Box<dyn Expert> {
    fn clone(&self) -> Self {
        self.apart()
    }
}

/// Watches a run. Clones share their observations: one observes on the stage, and the other returns the verdicts.
#[derive(Clone)]
pub struct Judge(Arc<Mutex<Case>>);

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The assertion in words.
    pub assertion: String,
    /// The ruling, serialised as `holds`: true, false, or null if it is undecided.
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
    /// The ruling in words.
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
    /// Returns true if the assertion certainly holds.
    pub fn holds(&self) -> bool {
        self.ruling == Ruling::Holds
    }

    /// Returns true if the assertion certainly does not hold.
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
    /// The number of slots that `within_rounds` counts as a round.
    slots_per_round: u32,
    tips: Tips,
    /// The greatest height that any node has applied.
    best: Height,
    weights: Weights,
    /// The delegates of each group of agents.
    groups: Vec<BTreeSet<PublicKey>>,
    /// The counts of each node.
    counts: Vec<Counts>,
    expert: Option<Box<dyn Expert>>,
    /// The slot at whose end the network is judged next.
    slot: Slot,
    assertions: Vec<AssertionState>,
    /// The active set that was computed last, with its round.
    active_set: Option<(Arc<Round>, ActiveSet)>,
    /// The figures whose changes are asserted, at the end of the slot before, and of the one before that.
    before: [Figures; 2],
    /// The nodes of each delegate.
    nodes_of: BTreeMap<PublicKey, Vec<NodeId>>,
    /// The shares of the delegates in the winning chain.
    shares: Option<Shares>,
    /// The missed slots of a lottery, once they are asked for.
    missed: Option<MissedSlots>,
    /// The conditions on blocks that were asked.
    asked: Vec<ConditionResult>,
}

/// An assertion and its state.
#[derive(Clone)]
struct AssertionState {
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

/// The moment from which an assertion counts.
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
            Some(AssertionState {
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
            groups: plan.delegates_of_groups.clone(),
            counts: vec![Counts::default(); plan.nodes.len()],
            expert,
            slot: slots.slot(plan.start.seconds()),
            assertions: watched.collect(),
            active_set: None,
            before: <[Figures; 2]>::default(),
            nodes_of: members::nodes_of(plan),
            shares: None,
            missed: None,
            asked: Vec::new(),
            tree: plan.tree.clone(),
        };
        let judge = Self(Arc::new(Mutex::new(case)));
        judge.lock().moment_passed(plan.start);
        judge.lock().chains_passed();
        judge
    }

    /// A judge with the same observations so far, for a run that continues from here beside this one.
    pub fn apart(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Returns the observer that the assertions need; none if nothing is asserted.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        let asserts = !self.lock().assertions.is_empty();
        asserts.then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }

    /// Returns the verdict on each assertion in a run that ended at this instant and in this way. A run that was ended early
    /// leaves undecided the assertions that its end would have decided.
    pub fn verdicts(&self, end: SimTime, ended: Ended) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        // If the run ends with a slot, a change is the change over its last slot. Without the swap it would be over no time.
        let is_with_slot = end == SimTime::from_seconds(case.tree.slots().start(case.slot));
        if is_with_slot {
            case.before.swap(0, 1);
        }
        case.look(true);
        if is_with_slot {
            case.before.swap(0, 1);
        }
        case.assertions.iter().map(|watched| watched.verdict(ended.is_decided())).collect()
    }

    /// Returns the assertions that are broken at the end of a slot that is over, regardless of later events.
    pub fn broken(&self, end: SimTime) -> Vec<Verdict> {
        let mut case = self.lock();
        case.look_until(end);
        let broken = case.assertions.iter().filter(|one| one.decided.as_ref().is_some_and(|(holds, _)| !holds));
        broken.map(|watched| watched.verdict(true)).collect()
    }

    /// Returns a metric at the end of a run. `None` for a metric that needs a live node, if none is live.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let mut case = self.lock();
        let end = case.slot;
        case.metric(metric, end)
    }

    fn lock(&self) -> MutexGuard<'_, Case> {
        self.0.lock().expect("no thread panics while holding it")
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
        case.counts[node.0 as usize].follow(event);
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
            NetworkEvent::PoolLost { node } => case.counts[node.0 as usize].pool = 0,
            _ => {}
        }
    }

    fn restless(&mut self, now: SimTime) {
        if let Some(expert) = &mut self.lock().expert {
            expert.restless(now);
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
    /// Judges the network at the end of each slot that is over.
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
            let (holds, found) = self.judge(condition, end, None);
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
        let open = assertions.iter().filter(|watched| watched.decided.is_none() && !at_end);
        let changes: BTreeSet<_> = open.flat_map(|watched| watched.claim.condition().changes()).collect();
        if !at_end {
            let now = self.figures(changes, end);
            let before = std::mem::replace(&mut self.before[0], now);
            self.before[1] = before;
        }
        self.assertions = assertions;
    }

    /// Judges a condition on a member or on the network now, as slot `end` begins. Also returns what was found. The result is `None` if a
    /// figure is not defined: while no node is live, or, for a change, in the first slot.
    fn judge(&mut self, condition: &Condition, end: Slot, of: Option<&Member>) -> (Option<bool>, String) {
        match condition {
            Condition::Converged => {
                let holds = of.map_or_else(|| self.tips.is_converged(), |member| self.has_converged(member));
                (Some(holds), if holds { "converged" } else { "not converged" }.to_owned())
            }
            Condition::Invariants(name) => {
                let (tip, tree, name) = (self.tips.winning().clone(), self.tree.clone(), name.as_deref());
                let now = SimTime::from_seconds(tree.slots().start(end));
                let result = self.expert.as_mut().map_or(Ok(()), |expert| expert.check(now, &tree, &tip, name));
                (Some(result.is_ok()), result.err().unwrap_or_else(|| "all that judge a chain hold".to_owned()))
            }
            Condition::Compare { figure, comparison, value } => {
                let name = figure.to_string();
                match self.figure(*figure, end, of) {
                    Ok(found) => (Some(comparison.holds(found, *value)), format!("{name} is {}", short(found))),
                    Err(why) => (None, format!("{name} is not defined, {why}")),
                }
            }
            Condition::Each { quantifier, group, part } => self.judge_each(condition, *quantifier, *group, part),
            Condition::All(parts) => self.judge_all(parts, end, of, false),
            Condition::Any(parts) => self.judge_all(parts, end, of, true),
            Condition::Not(part) => {
                let (holds, found) = self.judge(part, end, of);
                (holds.map(|holds| !holds), found)
            }
        }
    }

    /// Judges the parts of a joined condition. A part with the result `decides` decides. Returns the findings of the parts that decide,
    /// or of all parts.
    fn judge_all(
        &mut self,
        parts: &[Condition],
        end: Slot,
        of: Option<&Member>,
        decides: bool,
    ) -> (Option<bool>, String) {
        let judged: Vec<_> = parts.iter().map(|part| self.judge(part, end, of)).collect();
        let is_decided = judged.iter().any(|(holds, _)| *holds == Some(decides));
        let told = judged.iter().filter(|(holds, _)| !is_decided || *holds == Some(decides));
        let found: Vec<&str> = told.map(|(_, found)| found.as_str()).collect();
        let open = judged.iter().any(|(holds, _)| holds.is_none());
        let holds = if is_decided { Some(decides) } else { (!open).then_some(!decides) };
        (holds, found.join(", "))
    }

    /// The active set of the winning chain. It is made once a round.
    fn active_set(&mut self) -> ActiveSet {
        let applied = self.tree.applied(self.tips.winning());
        let round = applied.state.round();
        match &self.active_set {
            Some((of, found)) if Arc::ptr_eq(of, round) => *found,
            _ => {
                let found = ActiveSet::after(&self.tree, self.tips.winning(), &self.groups);
                self.active_set = Some((round.clone(), found));
                found
            }
        }
    }

    /// A figure of a member or of the network, or the reason why it is not defined.
    fn figure(&mut self, figure: Operand, end: Slot, of: Option<&Member>) -> Result<f64, &'static str> {
        match (figure, of) {
            (Operand::Now(metric), Some(member)) => Ok(self.metric_of(member, metric)),
            (Operand::Now(metric), None) => self.metric(metric, end).ok_or("no node is live"),
            (Operand::Change(metric), Some(member)) => {
                let before = self.before[0].of(member, metric).ok_or("no slot is before")?;
                Ok(self.metric_of(member, metric) - before)
            }
            (Operand::Change(metric), None) => {
                let before = *self.before[0].network.get(&metric).ok_or("no slot is before")?;
                let now = self.metric(metric, end);
                let change = now.ok_or("no node is live")? - before.ok_or("no node was live")?;
                // Shares may differ by a rounding error.
                Ok((change * 1e9).round() / 1e9)
            }
        }
    }

    /// A metric of the network.
    fn metric(&mut self, metric: Metric, end: Slot) -> Option<f64> {
        if metric == Metric::Missed && matches!(self.tree.rules().ledger.shuffle, Shuffle::Lottery(_)) {
            return Some(self.missed_in_lottery(end) as f64);
        }
        let winning = self.tips.winning();
        match metric {
            Metric::Height => Some(winning.height().0.into()),
            Metric::LowestHeight => self.tips.heights().map(|(least, _)| least.0.into()),
            Metric::Round => Some(self.tree.schedule().at(winning.height().next()).round.0.into()),
            Metric::Agreement => self.tips.agreement(),
            Metric::VoteAgreement => self.weights.agreement(&self.tips),
            Metric::Chains => Some(self.tips.branches().branches.into()),
            Metric::Down => Some(self.tips.down().into()),
            Metric::Blocks => Some(self.blocks().into()),
            Metric::Gap => Some(members::gap(winning).into()),
            Metric::Missed => Some((end.0 - self.start.0).saturating_sub(self.blocks()).into()),
            Metric::Turnover => Some(self.active_set().turnover.unwrap_or(0).into()),
            Metric::Gini => Some(self.active_set().gini),
            Metric::Nakamoto => Some(self.active_set().nakamoto.into()),
            Metric::Captured => Some(self.active_set().captured.into()),
            Metric::Transactions => Some(winning.transactions() as f64 - self.first.transactions() as f64),
            Metric::Pool => {
                self.tips.of_live().map(|(node, _)| self.counts[node.0 as usize].pool).max().map(|pool| pool as f64)
            }
            Metric::RollbackDepth | Metric::LongestGap => {
                self.counts.iter().filter_map(|counts| counts.of(metric)).max().map(|most| most as f64)
            }
            Metric::BlocksForged
            | Metric::BlocksRefused
            | Metric::BlocksReverted
            | Metric::Rollbacks
            | Metric::Suspended
            | Metric::HealthChecks
            | Metric::Rejected
            | Metric::Expired
            | Metric::Evicted
            | Metric::PeersRemoved => {
                Some(self.counts.iter().filter_map(|counts| counts.of(metric)).sum::<i64>() as f64)
            }
        }
    }

    /// The blocks of the winning chain that were forged in the run.
    fn blocks(&self) -> u32 {
        self.tips.winning().height().0.saturating_sub(self.first.height().0)
    }

    // Begins the assertions whose time or slot has come.

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
        let concerned = |watched: &&mut AssertionState| matches!(watched.from, From::Fault { index: of, ends } if of == index && ends == ended);
        for watched in self.assertions.iter_mut().filter(concerned) {
            watched.since.get_or_insert(slot);
        }
    }
}

impl AssertionState {
    /// The verdict at the end of the run. In a run that was ended early, `finally` is undecided in any case, and so are claims that
    /// have not held yet and claims whose moment has not come.
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

/// Formats a number with at most four decimals and without trailing zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
