//! A guided search. Some of its runs repeat an earlier run up to a rare state of the protocol, and continue with other faults and
//! other clients. Random numbers are drawn by the content of their use, so the beginning is the same run again.
//!
//! 1. While a run is played, [`StateNotes`] notes the state of each node, and the time of each state's first occurrence.
//! 2. [`Guide`] draws a few of the states of all runs so far, and picks the rarest of them and an earlier run that came to it.
//! 3. Faults and actions that had begun in that run by then stay. Those that the swarm draws for a new seed begin later.
//!
//! Runs are drawn in batches. Each batch learns from the batches before it, so the number of threads does not change the result.
//! Source: the restarts at rare states of J. and M. Villén-Altamirano, RESTART (1991).

mod branch;
mod states;

use super::swarm::{self, Frame};
use crate::{scenario::Scenario, sim::SeedTree};
use branch::Branch;
use rand::Rng;
pub use states::StateNotes;
use states::{Notes, State};
use std::{collections::BTreeMap, sync::Arc};

/// Runs that are drawn from the same knowledge.
pub const BATCH: usize = 64;
/// The share of runs that branch, as soon as a state is known.
const BRANCHED: f64 = 0.7;
/// The number of states drawn, of which the rarest is picked.
const PICKED: usize = 64;
/// The number of branches retained for each state.
const KEPT: usize = 4;
/// The number of runs after which the branches of a state no longer change.
const SETTLED: u64 = 64;
/// The largest number of states, which bounds the memory of a long search. The search does not branch at later states.
const STATES: usize = 10_000;

/// Runs that came to a state.
#[derive(Default)]
struct StateRuns {
    runs: u64,
    branched: u64,
    branches: Vec<Branch>,
}

/// The knowledge of a guided search: the states of its runs so far.
pub struct Guide {
    frame: Frame,
    indices: BTreeMap<State, usize>,
    reached: Vec<StateRuns>,
}

/// A run that a guided search draws.
pub struct GuidedRun {
    pub scenario: Arc<Scenario>,
    /// The earlier run that it begins as, and the seconds for which it does.
    pub from: Option<(Arc<Scenario>, f64)>,
}

impl Guide {
    /// Creates a guide that knows no run. It draws all runs in `frame`.
    pub fn new(frame: &Frame) -> Self {
        Self { frame: frame.clone(), indices: BTreeMap::new(), reached: Vec::new() }
    }

    /// The number of different states so far.
    pub fn states(&self) -> usize {
        self.reached.len()
    }

    /// Draws the run of a seed: a branch, or one as a search without a guide draws it.
    pub fn draw(&mut self, seed: u64) -> GuidedRun {
        let mut random = SeedTree::new(seed).stream("guided");
        if !self.reached.is_empty() && random.random_bool(BRANCHED) {
            let some = (0..PICKED).map(|_| random.random_range(0..self.reached.len()));
            let rarest = some.min_by_key(|state| self.reached[*state].runs + self.reached[*state].branched);
            let state = &mut self.reached[rarest.unwrap_or_default()];
            state.branched += 1;
            let branch = &state.branches[random.random_range(0..state.branches.len())];
            // A branch without a fault of its own would be its run again.
            if let Some(scenario) = branch.draw(&self.frame, seed) {
                let from = Some((branch.scenario.clone(), branch.place.at));
                return GuidedRun { scenario: scenario.into(), from };
            }
        }
        GuidedRun { scenario: swarm::draw(&self.frame, seed).into(), from: None }
    }

    /// Learns from the run of a seed that has been played.
    pub fn learn(&mut self, seed: u64, scenario: &Arc<Scenario>, states: &StateNotes) {
        let mut random = SeedTree::new(seed).stream("guided/kept");
        let Notes { first, begun, .. } = states.take();
        let begun = Arc::new(begun);
        for (state, place) in first {
            let is_known = self.indices.contains_key(&state);
            let branch = Branch { scenario: scenario.clone(), place, begun: begun.clone() };
            if branch.is_too_late(&self.frame) || (!is_known && self.reached.len() >= STATES) {
                continue;
            }
            let index = *self.indices.entry(state).or_insert_with(|| {
                self.reached.push(StateRuns::default());
                self.reached.len() - 1
            });
            let reached = &mut self.reached[index];
            reached.runs += 1;
            match reached.branches.len() {
                0..KEPT => reached.branches.push(branch),
                _ if reached.runs < SETTLED => reached.branches[random.random_range(0..KEPT)] = branch,
                _ => {}
            }
        }
    }
}
