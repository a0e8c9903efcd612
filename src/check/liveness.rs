//! Liveness: once all faults are over, the nodes converge to one chain, and it grows. This module decides when that is required,
//! and of which nodes.

use super::{conduct, swarm};
#[cfg(feature = "cli")]
use crate::ledger::codec::{Save, Saver};
use crate::{
    actors::{NodeId, SimTime},
    ledger::Link,
    protocol::Height,
    scenario::Scenario,
    sim::{
        Fault, Trigger,
        fault::{Facts, Lasting, NodeRef, Nodes, Timing},
    },
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The time from which liveness is demanded, and how long the network has for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Liveness {
    /// Seconds from the start of the run, when all faults are over.
    pub from_seconds: f64,
    /// Rounds' worth of slots in which all nodes come to one chain, and the chain grows.
    pub within_rounds: u32,
}

impl Liveness {
    /// The time from the start of the run in which it is decided. A round's worth of slots takes `round_seconds` seconds.
    pub(super) fn latest(&self, round_seconds: u32) -> Duration {
        self.from() + Duration::from_secs(u64::from(self.within_rounds) * u64::from(round_seconds))
    }

    fn from(&self) -> Duration {
        Duration::try_from_secs_f64(self.from_seconds).unwrap_or_default()
    }
}

/// Returns the liveness that is required of a scenario's run after its last fault. `None` if the end of a fault is unknown, or if the
/// network is never whole.
pub fn liveness(scenario: &Scenario) -> Option<Liveness> {
    let within_rounds = swarm::rounds_to_converge(scenario);
    // Liveness is required after the clients' actions, and after one round at the earliest.
    let last = scenario.actions.iter().map(|action| action.height + 2).max().unwrap_or(0);
    let trouble = f64::from(last.max(scenario.round_slots())) * f64::from(scenario.network.block_time_s);
    let from_seconds = faults_over(scenario)?.max(trouble);
    Some(Liveness { from_seconds, within_rounds })
}

/// Waits for one chain, and for it to grow; looks at the end of each slot.
#[derive(Clone)]
pub struct Alive {
    from: SimTime,
    until: SimTime,
    asked: Liveness,
    /// The tips of the nodes when it began, and the height of the highest chain.
    began: Option<(Vec<Arc<Link>>, Height)>,
    decided: bool,
}

impl Alive {
    /// Asks for liveness in a run that begins at `start`; a round's worth of slots takes `round_seconds` seconds.
    pub(super) fn new(asked: Liveness, start: SimTime, round_seconds: u32) -> Self {
        let (from, until) = (start + asked.from(), start + asked.latest(round_seconds));
        Self { from, until, asked, began: None, decided: false }
    }

    /// Returns true if the network came to one chain that grows, or had all the time that it gets.
    pub fn is_decided(&self) -> bool {
        self.decided
    }

    /// Appends the state that decides its verdict.
    #[cfg(feature = "cli")]
    pub(super) fn mark(&self, out: &mut Saver) {
        let Self { from, until, asked: _, began, decided } = self;
        from.save(out);
        until.save(out);
        began.save(out);
        decided.save(out);
    }

    /// Checks convergence and growth at the end of a slot.
    pub(super) fn look(&mut self, now: SimTime, seen: &mut super::Observations) {
        if self.decided || now < self.from {
            return;
        }
        let height = seen.best().height();
        let (tips, began) = self.began.get_or_insert_with(|| (seen.tips().all().cloned().collect::<Vec<_>>(), height));
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
                tips.distinct().count(),
                tips.common_height().unwrap_or_default()
            );
            seen.find_for(&conduct::CONVERGED, cause, now, None, Some(&best), what);
        }
        let is_known = seen.findings().iter().any(|finding| finding.invariant == conduct::ENOUGH.name);
        // Clients can elect delegates that no node forges for. The chain ends there by any rule.
        let is_possible = !converged || seen.has_forgers(&best);
        if !grown && !is_known && is_possible {
            let what = format!("{rounds} rounds after the last fault the chain stands at height {}", best.height());
            let cause = if converged { "on one chain" } else { "on several chains" };
            seen.find_for(&conduct::PROGRESS, cause, now, None, Some(&best), what);
        }
    }
}

/// Describes why a network has not come to one chain. Its nodes stood on `before` when the time began.
fn parted(seen: &super::Observations, before: &[Arc<Link>], grown: bool) -> &'static str {
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
    touched(scenario, |facts| facts.deviant)
}

/// The nodes whose relays may refuse their own blocks by a fault, although they follow the rules ([`Facts::may_forge_in_vain`]).
pub fn may_forge_in_vain(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |facts| facts.may_forge_in_vain)
}

/// The nodes whose delegates break the rules of forging by a fault, and the nodes that forge for one delegate beside each other.
pub fn irregulars(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |facts| facts.irregular)
}

/// The nodes whose clocks a scenario sets, or that it makes slow. Deadlines do not apply to them.
pub fn untimely(scenario: &Scenario) -> BTreeSet<NodeId> {
    touched(scenario, |facts| facts.timing != Timing::True)
}

/// Returns the nodes that the faults selected by `which` name. These are all nodes if clocks are wrong or such a fault names a
/// share.
fn touched(scenario: &Scenario, which: impl Fn(Facts) -> bool) -> BTreeSet<NodeId> {
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
    let kinds = scenario.faults.iter().map(|fault| &fault.kind).filter(|kind| which(kind.facts()));
    let mut touched: BTreeSet<NodeId> = kinds.flat_map(|kind| kind.concerned()).flat_map(named).collect();
    if scenario.network.model.clocks.is_some() {
        touched.extend(all());
    }
    touched
}

/// Returns true if an invariant is demanded once all faults are over.
pub(super) fn is_liveness(invariant: &str) -> bool {
    [conduct::CONVERGED.name, conduct::PROGRESS.name].contains(&invariant)
}

/// The instant, in seconds from the start, at which the last fault of a plan is over; `None` if one never is, or if that is unknown
/// beforehand. A network that is never whole has no such instant either.
pub fn faults_over(scenario: &Scenario) -> Option<f64> {
    if !swarm::is_whole(&scenario.network.model) {
        return None;
    }
    let at = |trigger: Option<&Trigger>| {
        trigger.and_then(|trigger| match trigger {
            Trigger::Seconds(seconds) => Some(*seconds),
            Trigger::Start
            | Trigger::After(_)
            | Trigger::Slot(_)
            | Trigger::Height(_)
            | Trigger::Round(_)
            | Trigger::HeightAtAny(_)
            | Trigger::RoundAtAny(_)
            | Trigger::Event(_) => None,
        })
    };
    let end = |fault: &Fault| match fault.kind.facts().lasting {
        // The fault that it ends has an end of its own, or there is none.
        Lasting::Mending => Some(0.0),
        Lasting::AtOnce => at(Some(&fault.from)),
        Lasting::Spell => at(fault.until.as_ref()),
    };
    scenario.faults.iter().map(end).try_fold(0.0, |last: f64, end| Some(last.max(end?)))
}
