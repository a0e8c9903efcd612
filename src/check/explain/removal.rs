//! The nearest run to a recorded one that does not fail. It lacks one of the inputs from outside.
//!
//! One of these is removed: an added fault, one of its nodes, or its end; a fault of the scenario; a reorganisation; a
//! client's submission; a revert to a snapshot, in place of which the abandoned line is played. Values of the scenario stay,
//! since the inputs were meant for the network as it was.

use super::{
    Course, Nearest, TriedChange,
    lines::{Line, LineDeparture, Lines},
    play::Playing,
    target::asks_for_conduct,
    trials::Trials,
};
use crate::{
    actors::SimTime,
    sim::{
        Intervention, Plan,
        fault::{AddedFault, Nodes},
        snapshots::CameIn,
    },
};
use std::sync::Arc;

/// The largest number of submissions that are removed one by one: the last ones before the failure.
const SUBMITTED: usize = 16;
/// The largest number of abandoned lines that are played: the last ones.
const LINES: usize = 8;
/// The reason why no value of the scenario is changed.
const UNTRIED: &str = "values of the scenario: what came in was meant for the network as it was";

/// The inputs of a run with a change, and the time until which it is played.
#[derive(Clone)]
pub(super) struct AlteredInputs {
    inputs: Arc<[CameIn]>,
    end: SimTime,
    /// The number of leading inputs that are replayed exactly as recorded.
    exact: usize,
}

/// A proposed change of the inputs.
struct Proposal {
    tried: TriedChange,
    altered: AlteredInputs,
}

/// The search for an input whose removal lets a line of a recorded run pass.
pub(super) struct RemovalSearch<'a> {
    pub(super) lines: &'a Lines,
    /// The one that is explained, and its number, from 1 on.
    pub(super) line: &'a Line,
    pub(super) number: usize,
    /// The plan that the run began with.
    pub(super) plan: &'a (dyn Fn() -> Plan + Sync),
}

impl AlteredInputs {
    /// The run of a line with these inputs, at its first instant.
    pub(super) fn playing(&self, course: &Course<'_>, plan: &Plan) -> Option<Playing> {
        let Self { inputs, end, exact } = self.clone();
        let course = Course { inputs, end: Some(end), exact, ..course.clone() };
        Playing::new(&course, plan, asks_for_conduct(course.scenario), Vec::new()).ok()
    }
}

impl RemovalSearch<'_> {
    /// Tries the removals. `progress` receives the number of runs played and the total.
    pub(super) fn run(&self, trials: &Trials<'_, AlteredInputs>, progress: &(dyn Fn(u64, u64) + Sync)) -> Nearest {
        let mut proposals = self.proposals(trials.target.at);
        let cut_short = proposals.len() > trials.budget;
        proposals.truncate(trials.budget);
        let verdicts = trials.all_pass(proposals.len(), |index| &proposals[index].altered, progress);
        let tried = proposals.into_iter().zip(verdicts);
        let tried: Vec<_> =
            tried.map(|(Proposal { tried, altered }, passes)| (TriedChange { passes, ..tried }, altered)).collect();
        let runs = tried.len();
        let told = trials.told(&self.unchanged(), tried, runs, progress);
        Nearest { cut_short: told.cut_short || cut_short, untried: Some(UNTRIED), ..told }
    }

    fn unchanged(&self) -> AlteredInputs {
        let Line { inputs, end } = self.line.clone();
        AlteredInputs { exact: inputs.len(), inputs, end }
    }

    fn proposals(&self, failed: SimTime) -> Vec<Proposal> {
        let plan = (self.plan)();
        let mut all = self.faults(&plan);
        all.extend(self.planned(&plan));
        all.extend(self.submitted(&plan, failed));
        all.extend(self.left());
        all
    }

    /// The same inputs up to a place, and from there on those that `edit` leaves.
    fn altered(
        &self,
        change: String,
        distance: f64,
        exact: usize,
        edit: impl Fn(usize, &CameIn) -> Option<CameIn>,
    ) -> Proposal {
        let inputs = self.line.inputs.iter().enumerate();
        let inputs: Arc<[CameIn]> = inputs.filter_map(|(place, input)| edit(place, input)).collect();
        let tried = TriedChange { change, set: None, distance, passes: None, other_draws: None };
        Proposal { tried, altered: AlteredInputs { inputs, end: self.line.end, exact } }
    }

    /// Proposes to leave out one of the inputs.
    fn less(&self, place: usize, change: String, distance: f64) -> Proposal {
        self.altered(change, distance, place, |other, input| (other != place).then(|| input.clone()))
    }

    /// Proposes changes to the faults among the inputs, to their nodes one by one, to their ends, and to reorganisations.
    fn faults(&self, plan: &Plan) -> Vec<Proposal> {
        let (mut all, mut id) = (Vec::new(), plan.faults.len());
        for (place, input) in self.line.inputs.iter().enumerate() {
            let at = format!("{:.3} s", input.at.seconds_since(plan.start));
            match &input.what {
                Intervention::AddFault(added) | Intervention::Restart(added) => {
                    let name = added.fault.kind.name();
                    let change = format!("without fault {id} '{name}', added at {at}");
                    all.push(self.altered(change, 1.0, place, |other, input| without_fault(id, other == place, input)));
                    all.extend(self.without_node(place, id, added));
                    id += 1;
                }
                Intervention::EndFault { id } => {
                    all.push(self.less(place, format!("fault {id} is not ended at {at}"), 1.0));
                }
                Intervention::Reorganise(asked) => {
                    let blocks = if asked.depth == 1 { "1 block".into() } else { format!("{} blocks", asked.depth) };
                    let change = format!("without the reorganisation of {blocks} of {} at {at}", asked.node);
                    all.push(self.less(place, change, 1.0));
                }
                _ => {}
            }
        }
        all
    }

    /// Proposes an added fault with one node less.
    fn without_node(&self, place: usize, id: usize, added: &AddedFault) -> Vec<Proposal> {
        let mut all = Vec::new();
        if added.clients.is_some() {
            return all;
        }
        for (key, nodes) in added.fault.kind.nodes() {
            let Nodes::List(list) = nodes else { continue };
            for (index, node) in list.iter().enumerate().filter(|_| list.len() > 1) {
                let mut fewer = added.clone();
                super::nearest::remove_node(&mut fewer.fault.kind, key, index);
                let change = format!("fault {id} '{}' without {node} among its {key}", added.fault.kind.name());
                all.push(self.altered(change, 1.0 / list.len() as f64, place, |other, input| {
                    let what = match &input.what {
                        Intervention::Restart(_) if other == place => Intervention::Restart(fewer.clone().into()),
                        _ if other == place => Intervention::AddFault(fewer.clone().into()),
                        what => what.clone(),
                    };
                    Some(CameIn { what, ..*input })
                }));
            }
        }
        all
    }

    /// Proposes to end each fault of the scenario as the run begins. A removal would renumber the other faults.
    fn planned(&self, plan: &Plan) -> Vec<Proposal> {
        let all = plan.faults.iter().enumerate().map(|(id, fault)| {
            let end = CameIn { at: plan.start, delivered: 0, what: Intervention::EndFault { id } };
            let rest = self.line.inputs.iter().cloned();
            let inputs: Arc<[CameIn]> = [end].into_iter().chain(rest).collect();
            let change = format!("fault {id} '{}' is ended as the run begins", fault.kind.name());
            let tried = TriedChange { change, set: None, distance: 1.0, passes: None, other_draws: None };
            Proposal { tried, altered: AlteredInputs { inputs, end: self.line.end, exact: 0 } }
        });
        all.collect()
    }

    /// Proposes to leave out submissions of clients before the failure, the last first.
    fn submitted(&self, plan: &Plan, failed: SimTime) -> Vec<Proposal> {
        let inputs = self.line.inputs.iter().enumerate().filter(|(_, input)| input.at <= failed);
        let submitted = inputs.filter_map(|(place, input)| match &input.what {
            Intervention::Submit { node, transactions } => Some((place, input.at, *node, transactions)),
            _ => None,
        });
        let submitted: Vec<_> = submitted.collect();
        let share = 1.0 / submitted.len().max(1) as f64;
        let told = submitted.into_iter().rev().take(SUBMITTED).map(|(place, at, node, transactions)| {
            let what = match &transactions[..] {
                [one] => format!("{} {}", one.kind().name(), &one.id().to_string()[..8]),
                some => format!("{} transactions", some.len()),
            };
            let at = at.seconds_since(plan.start);
            self.less(place, format!("without the {what} that {node} gets from a client at {at:.3} s"), share)
        });
        told.collect()
    }

    /// Proposes the abandoned lines: the run without its reverts.
    fn left(&self) -> Vec<Proposal> {
        let told = |LineDeparture { line, at_seconds, snapshot, .. }: LineDeparture| {
            let Line { inputs, end } = self.lines.line(line - 1);
            let change = format!(
                "without going back to snapshot {snapshot} at {at_seconds:.3} s: line {line}, as it was until then"
            );
            let tried = TriedChange { change, set: None, distance: 1.0, passes: None, other_draws: None };
            Proposal { tried, altered: AlteredInputs { exact: inputs.len(), inputs, end } }
        };
        let before = self.lines.left().into_iter().rev().filter(|left| left.line < self.number);
        before.take(LINES).map(told).collect()
    }
}

/// Adapts an input to the removal of a fault. Later faults move down by one number.
fn without_fault(id: usize, is_it: bool, input: &CameIn) -> Option<CameIn> {
    let what = match &input.what {
        _ if is_it => return None,
        Intervention::EndFault { id: ended } if *ended == id => return None,
        Intervention::EndFault { id: ended } if *ended > id => Intervention::EndFault { id: ended - 1 },
        what => what.clone(),
    };
    Some(CameIn { what, ..*input })
}
