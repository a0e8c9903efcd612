//! The stored progress of a search, from which the same command resumes it. The file contains schedules, and their states are
//! replayed.

use super::{Bounds, Exhaustive, Exploration, FindingSchedules, State};
use crate::{
    check::{Signature, finding::interned},
    sim::network::script::Deviation,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The results so far, and the states from which the search resumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchCheckpoint {
    schedules: Vec<u64>,
    ends: u64,
    messages: u64,
    depth: u32,
    slots: u64,
    played: u64,
    states: Vec<u64>,
    found: Vec<Row>,
    /// The states at the beginning of the next slot.
    layer: Vec<LayerState>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    invariant: String,
    cause: String,
    certified: bool,
    schedule: Vec<Deviation>,
    schedules: u64,
}

/// A state: the schedule that represents it, and the numbers of schedules that lead to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerState {
    schedule: Vec<Deviation>,
    schedules: Vec<u64>,
}

/// The identity of a search: what a file holds must not be added to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guard {
    /// The version of dposlab.
    version: String,
    /// The text of the scenario, with the digests of the files that it names.
    scenario: String,
    seed: u64,
    bounds: Bounds,
    /// The mark of the run without deviations, one slot after the last one in which messages may deviate. It differs if another program
    /// plays these slots differently.
    comes_to: String,
}

impl SearchCheckpoint {
    /// Returns the part of a search to store at the end of a slot.
    pub(super) fn of<'a>(
        explored: &Exploration,
        layer: impl Iterator<Item = (&'a Vec<Deviation>, &'a Vec<u64>)>,
    ) -> Self {
        let Exploration { schedules, ends, messages, depth, slots, played, states, found, interrupted: _ } = explored;
        let found = found.iter().map(|(signature, shown)| Row {
            invariant: signature.invariant.to_owned(),
            cause: signature.cause.clone(),
            certified: signature.is_certified,
            schedule: shown.schedule.clone(),
            schedules: shown.schedules,
        });
        let layer =
            layer.map(|(schedule, schedules)| LayerState { schedule: schedule.clone(), schedules: schedules.clone() });
        Self {
            schedules: schedules.clone(),
            ends: *ends,
            messages: *messages,
            depth: *depth,
            slots: *slots,
            played: *played,
            states: states.clone(),
            found: found.collect(),
            layer: layer.collect(),
        }
    }

    /// Returns the number of finished slots.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

impl Guard {
    /// Returns the identity of a search.
    pub fn of(search: &Exhaustive<'_>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: search.scenario.identity(),
            seed: search.plan.seeds.seed(),
            bounds: search.bounds.clone(),
            comes_to: format!(
                "{:032x}",
                search.next(&search.state(search.bounds.slots, &[], vec![1]), search.bounds.slots + 1, &[]).mark()
            ),
        }
    }
}

impl Exhaustive<'_> {
    /// Replays the stored schedules. Returns the search at its former position.
    pub(super) fn resume(&self, kept: SearchCheckpoint) -> (Exploration, Vec<State>) {
        let SearchCheckpoint { schedules, ends, messages, depth, slots, played, states, found, layer } = kept;
        let found = found.into_iter().map(|Row { invariant, cause, certified, schedule, schedules }| {
            let signature = Signature { invariant: interned(&invariant), cause, is_certified: certified };
            (signature, FindingSchedules { schedule, schedules })
        });
        let found = found.collect();
        let explored =
            Exploration { schedules, ends, messages, depth, slots, played, states, found, interrupted: false };
        let again = |LayerState { schedule, schedules }: LayerState| self.state(depth, &schedule, schedules);
        (explored, layer.into_par_iter().map(again).collect())
    }
}
