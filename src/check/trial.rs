//! One run, watched, with a verdict: first safety, whatever goes wrong; then, when all of it is over, liveness.

use super::{
    Behaviour, Finding, Sometimes, Watch,
    assertions::judge,
    conduct,
    finding::{ASSERTED, interned},
    swarm,
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::{Height, Slot},
    scenario::{Judge, Scenario, StageKind, Stall, Testnet, Verdict, run::Outcome as Played},
    sim::{
        Fault, FaultKind, Observer, Plan, SeedTree, Trigger,
        fault::{NodeRef, Nodes},
        stage::inline::InlineStage,
    },
};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// When liveness is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Liveness {
    /// Seconds from the start of the run, when all faults are over.
    pub from_seconds: f64,
    /// Rounds' worth of slots in which all nodes come to one chain, and the chain grows.
    pub within_rounds: u32,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The first finding of each invariant and cause, in the order found.
    pub findings: Vec<Finding>,
    pub sometimes: Sometimes,
    /// Height of the highest chain.
    pub height: Height,
    /// Slots played.
    pub slots: u32,
    /// Inputs delivered to actors.
    pub delivered: u64,
}

/// Plays a scenario on the inline stage, on a network that may be shared with other runs, and watches it. Ends with
/// the slot in which liveness is decided, where it is asked for, an invariant of the name `until` is broken, if one is
/// given, or `stop` is set. With `behaviour`, each node is held against the model of an honest one.
pub fn play(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    behaviour: bool,
    stop: &AtomicBool,
) -> Outcome {
    scenario.crypto.during(|| play_out(scenario, testnet, seeds, liveness, until, behaviour, stop))
}

fn play_out(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    behaviour: bool,
    stop: &AtomicBool,
) -> Outcome {
    if !scenario.assertions.is_empty() {
        return play_asserted(scenario, testnet, seeds, liveness, until, behaviour, stop);
    }
    let plan = scenario.plan(testnet, seeds);
    let watch = Watch::of(scenario, &plan, liveness);
    let behaviour = behaviour.then(|| Behaviour::new(&plan, &untimely(scenario)));
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(watch.clone())];
    observers.extend(behaviour.iter().map(|behaviour| Box::new(behaviour.clone()) as Box<dyn Observer>));
    let mut stage = InlineStage::new(&plan, observers);
    let slots = plan.tree.slots();
    let first = slots.slot(plan.start.seconds()).0;
    let mut stall = Stall::new(scenario, &plan);
    let (mut best, mut played) = (Height(0), 0);
    for slot in first + 1.. {
        let end = SimTime::from_seconds(slots.start(Slot(slot)));
        stage.run_until(end);
        played += 1;
        let mut seen = watch.seen();
        behaviour.iter().for_each(|behaviour| behaviour.tell(&mut seen));
        seen.look_until(end);
        best = seen.best().height();
        let over = match seen.alive() {
            Some(alive) => alive.is_decided(),
            None => best >= scenario.last_height() || stall.look(end, best).is_some(),
        };
        let found = until.is_some_and(|name| seen.findings().iter().any(|finding| finding.invariant == name));
        if over || found || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let mut seen = watch.seen();
    seen.close(scenario, &stage.world().tally());
    let mut sometimes = seen.sometimes().clone();
    behaviour.iter().for_each(|behaviour| sometimes.add(&behaviour.judged()));
    Outcome {
        findings: seen.findings().to_vec(),
        sometimes,
        height: best,
        slots: played,
        delivered: stage.world().delivered(),
    }
}

/// A run whose scenario asserts something is played as `dposlab run` plays it, to the end: what must hold by then may
/// still come.
fn play_asserted(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    behaviour: bool,
    stop: &AtomicBool,
) -> Outcome {
    let plan = scenario.plan(testnet, seeds);
    let watch = Watch::of(scenario, &plan, liveness);
    let mut asserted = Asserted::new(scenario, &plan, &watch).expect("it was looked at when the search began");
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(watch.clone())];
    let behaviour = behaviour.then(|| Behaviour::new(&plan, &untimely(scenario)));
    observers.extend(behaviour.iter().map(|behaviour| Box::new(behaviour.clone()) as Box<dyn Observer>));
    observers.extend(asserted.judge.observer());
    let mut slots = 0;
    let go_on = |_| {
        slots += 1;
        behaviour.iter().for_each(|behaviour| behaviour.tell(&mut watch.seen()));
        asserted.slot_over();
        let found = until.is_some_and(|name| watch.seen().findings().iter().any(|found| found.invariant == name));
        !found && !stop.load(Ordering::Relaxed)
    };
    let played = scenario.play_while(&plan, StageKind::Inline, observers, go_on);
    let played = played.expect("no actor dies on the inline stage");
    watch.seen().look_until(played.end);
    if !stop.load(Ordering::Relaxed) {
        asserted.run_over(&played);
    }
    let seen = watch.seen();
    let mut sometimes = seen.sometimes().clone();
    behaviour.iter().for_each(|behaviour| sometimes.add(&behaviour.judged()));
    Outcome {
        findings: seen.findings().to_vec(),
        sometimes,
        height: seen.best().height(),
        slots,
        delivered: played.delivered,
    }
}

/// Makes findings of a scenario's assertions that do not hold.
pub(super) struct Asserted {
    pub(super) judge: Judge,
    watch: Watch,
    /// The end of the slot that is running.
    slot_ends: SimTime,
    blocktime: Duration,
}

impl Asserted {
    /// Of a run that begins.
    ///
    /// # Errors
    /// As [`judge`].
    pub(super) fn new(scenario: &Scenario, plan: &Plan, watch: &Watch) -> Result<Self, String> {
        let slots = plan.tree.slots();
        let blocktime = Duration::from_secs(slots.blocktime().into());
        let slot_ends = SimTime::from_seconds(slots.start(slots.slot(plan.start.seconds()))) + blocktime;
        Ok(Self { judge: judge(scenario, plan)?, watch: watch.clone(), slot_ends, blocktime })
    }

    /// At the end of each slot: what does not hold, whatever comes.
    pub(super) fn slot_over(&mut self) {
        self.note(self.slot_ends, self.judge.broken(self.slot_ends));
        self.slot_ends = self.slot_ends + self.blocktime;
    }

    /// At the end of the run: what does not hold.
    pub(super) fn run_over(&self, run: &Played) {
        let verdicts = self.judge.verdicts(run.end, run.ended).into_iter();
        self.note(run.end, verdicts.filter(Verdict::is_broken).collect());
    }

    fn note(&self, at: SimTime, broken: Vec<Verdict>) {
        for verdict in broken {
            let mut seen = self.watch.seen();
            let height = Some(seen.best().height());
            seen.found(Finding {
                invariant: interned(&verdict.assertion),
                origin: ASSERTED,
                cause: String::new(),
                node: None,
                block: None,
                height,
                at,
                after_seconds: 0.0,
                what: verdict.found,
                story: Vec::new(),
            });
        }
    }
}

/// Waits for one chain, and for it to grow; looks at the end of each slot.
#[derive(Clone)]
pub struct Alive {
    from: SimTime,
    until: SimTime,
    asked: Liveness,
    /// Where the nodes stood when it began, and the height of the highest chain.
    began: Option<(Vec<Arc<Link>>, Height)>,
    decided: bool,
}

impl Alive {
    /// Asks for liveness in a run that begins at `start`; a round's worth of slots takes so many seconds.
    pub(super) fn new(asked: Liveness, start: SimTime, round_seconds: u32) -> Self {
        let from = start + Duration::try_from_secs_f64(asked.from_seconds).unwrap_or_default();
        let until = from + Duration::from_secs(u64::from(asked.within_rounds) * u64::from(round_seconds));
        Self { from, until, asked, began: None, decided: false }
    }

    /// Whether the network came to one chain that grows, or had all the time it is given.
    pub fn is_decided(&self) -> bool {
        self.decided
    }

    /// At the end of a slot.
    pub(super) fn look(&mut self, now: SimTime, seen: &mut super::Seen) {
        if self.decided || now < self.from {
            return;
        }
        let height = seen.best().height();
        let (tips, began) = self.began.get_or_insert_with(|| (seen.tips().all().to_vec(), height));
        let (converged, grown) = (seen.tips().is_converged(), height.0 > began.0 + 1);
        self.decided = (converged && grown) || now >= self.until;
        if !self.decided {
            return;
        }
        let (best, rounds) = (seen.best().clone(), self.asked.within_rounds);
        if !converged {
            let (cause, tips) = (parted(seen, tips, grown), seen.tips());
            let what = format!(
                "{rounds} rounds after the last fault the live nodes stand on {} tips, with height {} in common",
                tips.distinct().len(),
                tips.common_height().unwrap_or_default()
            );
            seen.find_for(&conduct::CONVERGED, cause, now, None, Some(&best), what);
        }
        let is_known = seen.findings().iter().any(|finding| finding.invariant == conduct::ENOUGH.name);
        if !grown && !is_known {
            let what = format!("{rounds} rounds after the last fault the chain stands at height {}", best.height());
            let cause = if converged { "on one chain" } else { "on several chains" };
            seen.find_for(&conduct::PROGRESS, cause, now, None, Some(&best), what);
        }
    }
}

/// How a network has not come to one chain, whose nodes stood on `before` when it was asked to.
fn parted(seen: &super::Seen, before: &[Arc<Link>], grown: bool) -> &'static str {
    if !grown {
        return "no chain grows";
    }
    let tips: Vec<&Arc<Link>> = seen.tips().distinct().collect();
    let is_leaf = |tip: &Arc<Link>| !tips.iter().any(|other| !other.is(tip) && other.descends_from(tip));
    let leaves: Vec<&Arc<Link>> = tips.iter().copied().filter(|tip| is_leaf(tip)).collect();
    let highest = before.iter().map(|tip| tip.height()).max().unwrap_or_default();
    match (leaves.len(), leaves.iter().filter(|leaf| leaf.height() > highest).count()) {
        (1, _) => "nodes stay behind on the chain",
        (_, 0 | 1) => "one chain grows, another stands",
        _ => "several chains grow",
    }
}

/// The nodes that a scenario's faults make break the rules.
pub fn deviants(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |kind| {
        if kind.makes_deviant() { kind.nodes().into_iter().map(|(_, nodes)| nodes).collect() } else { Vec::new() }
    })
}

/// The nodes whose clocks a scenario sets, or that it makes slow: what is due by a time is not asked of them.
pub fn untimely(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |kind| match kind {
        FaultKind::ClockSkew(skew) => vec![&skew.nodes],
        FaultKind::Slow(slow) => vec![&slow.nodes],
        FaultKind::Pause(some) => vec![&some.nodes],
        _ => Vec::new(),
    })
}

/// The nodes that faults of some kinds name, all where clocks are wrong; whom a fault names by share may be anyone.
fn touched(scenario: &Scenario, which: impl Fn(&FaultKind) -> Vec<&Nodes>) -> BTreeSet<NodeId> {
    let all = || (0..scenario.network.nodes()).map(NodeId);
    let usernames = scenario.usernames();
    let number = |node: &NodeRef| match node {
        NodeRef::Number(number) => *number,
        NodeRef::Delegate(name) => usernames.iter().position(|known| known == name).unwrap_or(0) as u32,
    };
    let named = |nodes: &Nodes| -> BTreeSet<NodeId> {
        match nodes {
            Nodes::List(list) => list.iter().map(|node| NodeId(number(node))).collect(),
            Nodes::Span(span) => (number(&span.from)..=number(&span.to)).map(NodeId).collect(),
            Nodes::Share(_) => all().collect(),
        }
    };
    let of = |fault: &Fault| -> BTreeSet<NodeId> { which(&fault.kind).into_iter().flat_map(named).collect() };
    let mut touched: BTreeSet<NodeId> = scenario.faults.iter().flat_map(of).collect();
    if scenario.network.model.clocks.is_some() {
        touched.extend(all());
    }
    touched
}

/// Whether an invariant is one that is asked for once all faults are over.
pub(super) fn is_liveness(invariant: &str) -> bool {
    [conduct::CONVERGED.name, conduct::PROGRESS.name].contains(&invariant)
}

/// The instant, in seconds from the start, at which the last fault of a plan is over; `None` if one never is, or if that
/// cannot be said beforehand. A network that is never whole has no such instant either.
pub fn faults_over(scenario: &Scenario) -> Option<f64> {
    if !swarm::is_whole(&scenario.network.model) {
        return None;
    }
    let end = |fault: &Fault| match (&fault.kind, &fault.until, &fault.from) {
        // What it heals has an end of its own, or there is none.
        (FaultKind::Heal(_), ..) => Some(0.0),
        (FaultKind::Restart(_), _, Trigger::Seconds(from)) => Some(*from),
        (_, Some(Trigger::Seconds(until)), _) => Some(*until),
        _ => None,
    };
    scenario.faults.iter().map(end).try_fold(0.0, |last: f64, end| Some(last.max(end?)))
}
