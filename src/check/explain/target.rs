//! The target of an explanation: an assertion or an invariant that breaks, a run that stands still, or, where nothing failed,
//! the nearest thing to a failure.

use super::play::Playing;
use crate::{
    actors::{NodeId, SimTime},
    check::{
        Finding,
        conduct::is_modelled,
        liveness::{Alive, is_liveness},
    },
    protocol::Height,
    scenario::{Ended, Scenario, assertion::Condition},
};
use serde::Serialize;

/// The property of a run that is explained.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub kind: TargetKind,
    /// The assertion or invariant, or a name for another failure.
    pub name: String,
    /// The section that states it; empty if nothing failed.
    pub source: String,
    /// The feature that tells it apart from other failures of the same name; may be empty.
    pub cause: String,
    pub node: Option<NodeId>,
    pub block: Option<String>,
    pub height: Option<Height>,
    /// The time at which it showed, in microseconds since the epoch.
    #[serde(rename = "at_us")]
    pub at: SimTime,
    /// The same, in seconds from the start of the run.
    pub after_seconds: f64,
    /// A sentence: the finding.
    pub what: String,
    /// The condition under which a repeated run has failed as well, in words.
    pub fails_if: String,
    /// The figure that a fork or the missed slots have to reach.
    #[serde(skip)]
    least: u32,
    /// The invariants that it is about.
    #[serde(skip)]
    invariants: Vec<String>,
}

/// The kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TargetKind {
    /// The scenario asserts it.
    Assertion,
    /// An invariant that is checked in every run, without an assertion.
    Invariant,
    /// It is proved that no block can ever be made again.
    Halt,
    /// No block came for as long as the stall rule says, or the time limit came first.
    Stall,
    /// Nothing failed: the deepest fork.
    Fork,
    /// Nothing failed and nothing forked: slots without a block.
    MissedSlots,
    /// Nothing failed, nothing forked, nothing was missed.
    Nothing,
}

impl TargetKind {
    /// Returns true if something failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Assertion | Self::Invariant | Self::Halt | Self::Stall)
    }
}

impl Target {
    /// Chooses the target in a run that is over: first an assertion that does not hold, then a run that stands still, then an invariant
    /// without an assertion.
    pub(super) fn of(scenario: &Scenario, run: &Playing, start: SimTime) -> Self {
        let findings = run.findings();
        let ended = run.ended().unwrap_or(Ended::Interrupted);
        if let Some(asserted) = findings.iter().find(|finding| finding.is_assertion()) {
            return Self::asserted(scenario, asserted, &findings);
        }
        if let Ended::Halted(_) | Ended::Stalled | Ended::Time = ended {
            return Self::standstill(scenario, run, ended, start);
        }
        match findings.first() {
            Some(finding) => Self::found(TargetKind::Invariant, finding.invariant, finding),
            None => Self::nearest(run, start),
        }
    }

    fn found(kind: TargetKind, name: &str, finding: &Finding) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            source: finding.origin.to_owned(),
            cause: finding.cause.clone(),
            node: finding.node,
            block: finding.block.clone(),
            height: finding.height,
            at: finding.at,
            after_seconds: finding.after_seconds,
            what: finding.what.clone(),
            fails_if: format!("'{name}' does not hold"),
            least: 0,
            invariants: vec![name.to_owned()],
        }
    }

    /// An assertion that breaks because an invariant is violated is described by the violation, the earliest one if there are several.
    fn asserted(scenario: &Scenario, asserted: &Finding, all: &[Finding]) -> Self {
        let claims = scenario.assertions.iter().filter(|one| one.to_string() == asserted.invariant);
        let conditions: Vec<Condition> = claims.filter_map(|one| Some(one.claim().ok()?.condition().clone())).collect();
        let names: Vec<&String> = conditions.iter().flat_map(required).collect();
        let violated =
            all.iter().filter(|found| found.at <= asserted.at && names.iter().any(|name| found.invariant == **name));
        let finding = violated.min_by_key(|found| found.at).unwrap_or(asserted);
        let parts = conditions.iter().flat_map(Condition::parts);
        let invariants = parts.filter_map(|part| match part {
            Condition::Invariants(name) => name.clone(),
            _ => None,
        });
        Self {
            name: asserted.invariant.to_owned(),
            invariants: invariants.collect(),
            fails_if: format!("'{}' does not hold", asserted.invariant),
            ..Self::found(TargetKind::Assertion, finding.invariant, finding)
        }
    }

    fn standstill(scenario: &Scenario, run: &Playing, ended: Ended, start: SimTime) -> Self {
        let seen = run.seen();
        let (best, at) = (seen.best().clone(), run.now());
        let words = ended.in_words(best.height(), scenario.last_height());
        let (kind, name, fails_if) = match ended {
            Ended::Halted(_) => {
                (TargetKind::Halt, "the chain halts for good", "the run halts, stalls or meets its time limit")
            }
            _ => (TargetKind::Stall, "the chain stands still", "the run halts, stalls or meets its time limit"),
        };
        Self {
            kind,
            name: name.to_owned(),
            source: "consensus.md 7.2".to_owned(),
            cause: ended.word().to_owned(),
            node: None,
            block: Some(best.id().to_string()),
            height: Some(best.height()),
            at,
            after_seconds: at.seconds_since(start),
            what: words,
            fails_if: fails_if.to_owned(),
            least: 0,
            invariants: Vec::new(),
        }
    }

    fn nearest(run: &Playing, start: SimTime) -> Self {
        let extremes = run.extremes();
        let (kind, name, at, least, what) = match (extremes.depth, extremes.first_missed) {
            (1.., _) => (
                TargetKind::Fork,
                "the deepest fork",
                extremes.deepest_at,
                extremes.depth,
                format!("a branch of {} blocks beside the winning chain", extremes.depth),
            ),
            (0, Some(at)) => (
                TargetKind::MissedSlots,
                "the slots without a block",
                at,
                extremes.missed(),
                format!("{} of {} slots have no block on the winning chain", extremes.missed(), extremes.slots),
            ),
            (0, None) => {
                let what = "all nodes were on one chain at the end of each slot, and each slot has its block";
                (TargetKind::Nothing, "nothing", run.now(), 0, what.to_owned())
            }
        };
        let fails_if = match kind {
            TargetKind::Fork => format!("a branch of {least} blocks or more stands beside the winning chain"),
            TargetKind::MissedSlots => format!("{least} slots or more have no block on the winning chain"),
            _ => "nothing can".to_owned(),
        };
        let after_seconds = at.seconds_since(start);
        Self {
            kind,
            name: name.to_owned(),
            source: String::new(),
            cause: String::new(),
            node: None,
            block: None,
            height: None,
            at,
            after_seconds,
            what,
            fails_if,
            least,
            invariants: Vec::new(),
        }
    }

    /// Returns true if a run has shown the failure by now.
    pub(super) fn has_failed(&self, run: &Playing) -> bool {
        match self.kind {
            TargetKind::Assertion | TargetKind::Invariant => {
                run.findings().iter().any(|finding| finding.invariant == self.name)
            }
            TargetKind::Halt | TargetKind::Stall => {
                matches!(run.ended(), Some(Ended::Halted(_) | Ended::Stalled | Ended::Time))
            }
            TargetKind::Fork => run.extremes().depth >= self.least,
            TargetKind::MissedSlots => run.extremes().missed() >= self.least,
            TargetKind::Nothing => false,
        }
    }

    /// Returns true if a run that is over certainly does not fail.
    pub(super) fn is_decided(&self, run: &Playing) -> bool {
        !self.is_liveness() || run.seen().alive().is_none_or(Alive::is_decided)
    }

    /// Returns true if the failure is one of liveness, and the run has had its time to recover.
    pub(super) fn is_answered(&self, run: &Playing) -> bool {
        self.is_liveness() && run.seen().alive().is_some_and(Alive::is_decided)
    }

    /// Returns true if it is about liveness, which is demanded once all faults are over.
    pub(super) fn is_liveness(&self) -> bool {
        self.invariants.iter().any(|name| is_liveness(name))
    }
}

/// Returns the invariants whose violation always breaks a condition.
fn required(condition: &Condition) -> Vec<&String> {
    match condition {
        Condition::Invariants(name) => name.iter().collect(),
        Condition::All(parts) => parts.iter().flat_map(required).collect(),
        Condition::Any(_)
        | Condition::Not(_)
        | Condition::Converged
        | Condition::Compare { .. }
        | Condition::Each { .. } => Vec::new(),
    }
}

/// Returns true if a scenario asserts a condition that only the model of an honest node can judge.
pub(super) fn asks_for_conduct(scenario: &Scenario) -> bool {
    let is_of_conduct = |part: &Condition| matches!(part, Condition::Invariants(Some(name)) if is_modelled(name));
    let mut claims = scenario.assertions.iter().filter_map(|assertion| assertion.claim().ok());
    claims.any(|claim| claim.condition().parts().into_iter().any(is_of_conduct))
}
