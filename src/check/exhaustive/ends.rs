//! Runs in which no further deviation is possible. Each has one end. A run that reaches a state with a known end has that end.

use super::{Exhaustive, Exploration, Mark, Run};
use crate::{
    check::{Finding, Signature, liveness::Alive},
    sim::network::script::Deviation,
};
use indexmap::IndexMap;
use rayon::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// The outcome of the run from a state on.
#[derive(Clone)]
pub(super) struct End {
    /// Slots until its liveness is decided.
    slots: u64,
    /// All findings after it.
    found: Arc<[Signature]>,
}

/// The states at the beginning of a slot, each once.
struct Step {
    marks: Vec<Mark>,
    /// By run that arrived, the place of its state.
    places: Vec<usize>,
    /// By place; those whose end is not known are played, and arrive at the next step in this order.
    known: Vec<Option<End>>,
}

impl Exhaustive<'_> {
    /// Plays runs to their ends, or until they come to a state whose end is known, and counts their schedules. Their next slot is
    /// `slot`.
    pub(super) fn play_out(
        &self,
        mut slot: u32,
        runs: Vec<Run>,
        explored: &mut Exploration,
        ends: &mut BTreeMap<Mark, End>,
    ) {
        let counted: Vec<_> = runs.iter().map(|run| (run.schedule.clone(), run.schedules.clone())).collect();
        let mut steps: Vec<Step> = Vec::new();
        let mut arrived = runs;
        loop {
            let mut here: IndexMap<Mark, Run> = IndexMap::new();
            let mut places = Vec::new();
            for (place, run) in arrived.into_iter().enumerate() {
                let mark = if self.bounds.merge { run.mark() } else { place as Mark };
                let entry = here.entry(mark);
                places.push(entry.index());
                entry.or_insert(run);
            }
            let mut known = Vec::new();
            let mut go_on = Vec::new();
            let marks = here.keys().copied().collect();
            for (mark, run) in here {
                let mut end = ends.get(&mark).filter(|_| self.bounds.merge).cloned();
                if end.is_none() && run.is_over() {
                    explored.ends += 1;
                    end = Some(run.end());
                }
                if end.is_none() {
                    go_on.push(run);
                }
                known.push(end);
            }
            steps.push(Step { marks, places, known });
            if go_on.is_empty() {
                break;
            }
            *explored.states_of(slot) += go_on.len() as u64;
            explored.played += go_on.len() as u64;
            let play = |mut run: Run| {
                self.play_slot(&mut run.stage, &mut run.watchers, slot);
                run
            };
            arrived = go_on.into_par_iter().map(play).collect();
            slot += 1;
        }
        for ((schedule, schedules), end) in counted.into_iter().zip(all_ends(steps, ends)) {
            explored.count(&schedule, &schedules, &end);
        }
    }
}

/// The ends of the runs that arrived at the first of these steps. From now on `ends` has those of all states.
fn all_ends(steps: Vec<Step>, ends: &mut BTreeMap<Mark, End>) -> Vec<End> {
    // The ends of the runs that arrive at the step below.
    let mut arrive: Vec<End> = Vec::new();
    for Step { marks, places, known } in steps.into_iter().rev() {
        let mut played = arrive.into_iter();
        let found: Vec<End> = known
            .into_iter()
            .map(|end| end.unwrap_or_else(|| played.next().expect("each that goes on arrives").a_slot_before()))
            .collect();
        ends.extend(marks.into_iter().zip(found.iter().cloned()));
        arrive = places.into_iter().map(|place| found[place].clone()).collect();
    }
    arrive
}

impl End {
    fn a_slot_before(self) -> Self {
        Self { slots: self.slots + 1, ..self }
    }
}

impl Run {
    pub(super) fn is_over(&self) -> bool {
        self.stage.world().restless().is_some() || self.watchers.seen().alive().is_none_or(Alive::is_decided)
    }

    /// Returns its end once it is over.
    fn end(&self) -> End {
        let found = self.watchers.seen().findings().iter().map(Finding::signature).collect();
        End { slots: 0, found }
    }
}

impl Exploration {
    /// Counts the schedules that reach a state as finished. `schedule` is one of them.
    fn count(&mut self, schedule: &[Deviation], schedules: &[u64], end: &End) {
        self.schedules.iter_mut().zip(schedules).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        let count = schedules.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        self.slots = self.slots.saturating_add(count.saturating_mul(end.slots));
        for signature in &*end.found {
            self.show(signature, schedule, count);
        }
    }
}
