//! One run, watched, with a verdict: first safety, whatever goes wrong; then, when all of it is over, liveness.

use super::{Behaviour, Finding, Sometimes, Watch, conduct, watch::common};
use crate::{
    actors::{NodeId, SimTime},
    protocol::{Height, Slot},
    scenario::{Scenario, Stall, Testnet},
    sim::{
        Fault, FaultKind, Observer, SeedTree, Trigger,
        fault::{NodeRef, Nodes},
        stage::inline::InlineStage,
    },
};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
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
    /// The first finding of each invariant, in the order found.
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
/// the slot in which an invariant of the name `until` is broken, if one is given, or `stop` is set.
pub fn play(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    stop: &AtomicBool,
) -> Outcome {
    scenario.crypto.during(|| play_out(scenario, testnet, seeds, liveness, until, stop))
}

fn play_out(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    stop: &AtomicBool,
) -> Outcome {
    let plan = scenario.plan(testnet, seeds);
    let watch = Watch::new(plan.tree.clone(), &plan.tip, plan.nodes.len(), &deviants(scenario));
    let behaviour = Behaviour::new(&plan, &untimely(scenario));
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(watch.clone()), Box::new(behaviour.clone())];
    let mut stage = InlineStage::new(&plan, observers);
    let slots = plan.tree.slots();
    let (first, seats) = (slots.slot(plan.start.seconds()).0, scenario.network.delegates);
    let mut alive = liveness.map(|asked| Alive::new(asked, plan.start, seats * slots.blocktime()));
    let mut stall = Stall::new(scenario, &plan);
    let (mut best, mut played) = (Height(0), 0);
    for slot in first + 1.. {
        let end = SimTime::from_seconds(slots.start(Slot(slot)));
        stage.run_until(end);
        played += 1;
        let mut seen = watch.seen();
        behaviour.tell(&mut seen);
        best = seen.best().height();
        let over = match &mut alive {
            Some(alive) => alive.look(end, &mut seen),
            None => stall.has_stalled(end, best),
        };
        let found = until.is_some_and(|name| seen.findings().iter().any(|finding| finding.invariant == name));
        if found || stop.load(Ordering::Relaxed) {
            break;
        }
        if over || best >= scenario.last_height() {
            if let Some(alive) = &alive {
                alive.close(end, &mut seen);
            }
            break;
        }
    }
    let seen = watch.seen();
    let mut sometimes = seen.sometimes().clone();
    sometimes.add(&behaviour.judged());
    Outcome {
        findings: seen.findings().to_vec(),
        sometimes,
        height: best,
        slots: played,
        delivered: stage.world().delivered(),
    }
}

/// Waits for one chain, and for it to grow.
struct Alive {
    from: SimTime,
    until: SimTime,
    asked: Liveness,
    /// Height when it began.
    began: Option<Height>,
    converged: bool,
}

impl Alive {
    fn new(asked: Liveness, start: SimTime, round_seconds: u32) -> Self {
        let from = start + Duration::try_from_secs_f64(asked.from_seconds).unwrap_or_default();
        let until = from + Duration::from_secs(u64::from(asked.within_rounds) * u64::from(round_seconds));
        Self { from, until, asked, began: None, converged: false }
    }

    /// At the end of a slot; says whether everything has been decided.
    fn look(&mut self, now: SimTime, seen: &mut super::Seen) -> bool {
        if now < self.from {
            return false;
        }
        let height = seen.best().height();
        let began = *self.began.get_or_insert(height);
        self.converged = is_converged(seen);
        let grown = height.0 > began.0 + 1;
        (self.converged && grown) || now >= self.until
    }

    fn close(&self, now: SimTime, seen: &mut super::Seen) {
        let Some(began) = self.began else { return };
        let best = seen.best().clone();
        let rounds = self.asked.within_rounds;
        if !self.converged {
            let mut tips: Vec<_> = seen.tips().cloned().collect();
            tips.sort_by_key(|tip| tip.id());
            tips.dedup_by_key(|tip| tip.id());
            let lowest = tips.iter().map(|tip| common(tip, &best)).min().unwrap_or(best.height());
            let what = format!(
                "{rounds} rounds after the last fault the nodes stand on {} tips, with height {lowest} in common",
                tips.len()
            );
            seen.find(&conduct::CONVERGED, now, None, Some(&best), what);
        }
        if best.height().0 <= began.0 + 1 {
            let what = format!("{rounds} rounds after the last fault the chain stands at height {}", best.height());
            seen.find(&conduct::PROGRESS, now, None, Some(&best), what);
        }
    }
}

/// All nodes stand on the tip of one chain, or on the block before.
fn is_converged(seen: &super::Seen) -> bool {
    // The highest block ever seen may have been left by everybody.
    let Some(tip) = seen.tips().max_by_key(|tip| tip.height()) else { return true };
    seen.tips().all(|other| other.is(tip) || tip.parent().is_some_and(|parent| parent.is(other)))
}

/// The nodes that a scenario's faults make break the rules.
pub fn deviants(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |kind| match kind {
        FaultKind::ClockSkew(skew) => Some(&skew.nodes),
        FaultKind::Slow(slow) => Some(&slow.nodes),
        FaultKind::Pause(some) => Some(&some.nodes),
        FaultKind::DoubleForge(some) => Some(&some.delegates),
        FaultKind::ForgeOutOfTurn(turn) => Some(&turn.delegates),
        FaultKind::ForgeInvalid(invalid) => Some(&invalid.delegates),
        FaultKind::LateForging(late) => Some(&late.delegates),
        FaultKind::Withhold(withhold) => Some(&withhold.delegates),
        FaultKind::Crash(crash) => Some(&crash.nodes),
        FaultKind::Restart(restart) => Some(&restart.nodes),
        _ => None,
    })
}

/// The nodes whose clocks a scenario sets, or that it makes slow: what is due by a time is not asked of them.
pub fn untimely(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |kind| match kind {
        FaultKind::ClockSkew(skew) => Some(&skew.nodes),
        FaultKind::Slow(slow) => Some(&slow.nodes),
        FaultKind::Pause(some) => Some(&some.nodes),
        _ => None,
    })
}

/// The nodes that faults of some kinds name, all where clocks are wrong; whom a fault names by share may be anyone.
fn touched(scenario: &Scenario, which: impl Fn(&FaultKind) -> Option<&Nodes>) -> BTreeSet<NodeId> {
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
    let of = |fault: &Fault| which(&fault.kind).map(named).unwrap_or_default();
    let mut touched: BTreeSet<NodeId> = scenario.faults.iter().flat_map(of).collect();
    if scenario.network.model.clocks.is_some() {
        touched.extend(all());
    }
    touched
}

/// The instant, in seconds from the start, at which the last fault of a plan is over; `None` if one never is, or if that
/// cannot be said beforehand.
pub fn faults_over(scenario: &Scenario) -> Option<f64> {
    let end = |fault: &Fault| match (&fault.kind, &fault.until, &fault.from) {
        (FaultKind::Heal(_) | FaultKind::Restart(_), _, Trigger::Seconds(from)) => Some(*from),
        (_, Some(Trigger::Seconds(until)), _) => Some(*until),
        _ => None,
    };
    scenario.faults.iter().map(end).try_fold(0.0, |last: f64, end| Some(last.max(end?)))
}
