//! Every schedule with a bounded number of deviations: all runs of a scenario in which at most this number of messages is lost, late or
//! doubled.
//!
//! ```text
//!   slot 1        slot 2                    the last slot       until one chain grows
//!   ┌ state ──┬── nothing befalls ──► state ─┬─►   …   ──► state ─────► what was found
//!   │         ├── one message lost ──► state ┤              ▲
//!   │         └── two of them ───────► state ┘  equal states are one: each schedule that leads there is counted
//! ```
//!
//! A *schedule* lists the messages that are lost, late or doubled. All schedules are played slot by slot, and schedules that are equal
//! so far are played together. Two states at the beginning of a slot are merged if their marks are equal. A mark covers everything that
//! decides the future of the run, and the memory of its watchers. So a schedule is played until it reaches the state of another one,
//! and is counted to its end.

mod checkpoint;
mod ends;
#[cfg(test)]
mod tests;

pub(crate) use checkpoint::{Guard, SearchCheckpoint};

use ends::End;

use super::{
    Finding, Signature,
    liveness::{Liveness, liveness},
    swarm::rounds_to_converge,
    watchers::Watchers,
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::codec::Saver,
    protocol::Slot,
    scenario::{Scenario, Testnet},
    sim::{
        Fault, FaultKind, Plan, SeedTree, Trigger,
        fault::{DelayMessages, DropMessages, DuplicateMessages, MessageKind, Messages, NodeRef, Nodes, Timing},
        network::script::{Deviation, Mishap, Script, SentMessage},
        stage::inline::InlineStage,
        world::Moment,
    },
};
use indexmap::{IndexMap, map::Entry};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    mem,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use xxhash_rust::xxh3::xxh3_128;

/// The bounds of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// The largest number of deviations of a schedule.
    pub deviations: u32,
    /// The number of slots, from the start of the run on, in which messages may deviate.
    pub slots: u32,
    /// The kinds of messages that may deviate. For a kind with requests and answers, only the answers do.
    pub kinds: Vec<MessageKind>,
    /// The possible fates of a message, each once.
    pub mishaps: Vec<Mishap>,
    /// The delay of late messages and of second copies.
    pub by: Duration,
    /// True if equal states are merged. Otherwise each schedule is played by itself from its last deviation on.
    pub merge: bool,
}

/// A search through all schedules with a bounded number of deviations.
pub(crate) struct Exhaustive<'a> {
    /// The run without deviations. Its assertions are not judged.
    pub scenario: &'a Scenario,
    pub bounds: Bounds,
    plan: Plan,
}

/// How many schedules show a finding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FindingSchedules {
    /// The schedule with the fewest deviations that shows it, the first of equals.
    pub schedule: Vec<Deviation>,
    pub schedules: u64,
}

/// The result of a search, or of the part that has been played.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exploration {
    /// The number of finished schedules: played to their ends, or merged into one that was. Index k counts the schedules with k
    /// deviations. Counts of schedules saturate at `u64::MAX`.
    pub schedules: Vec<u64>,
    /// The number of schedules that were played to their own ends. All others reached a state of one of these.
    pub ends: u64,
    /// The number of messages that can deviate in the schedule without deviations.
    pub messages: u64,
    /// The number of slots that every unfinished schedule has behind it.
    pub depth: u32,
    /// The total number of slots of all schedules.
    pub slots: u64,
    /// The number of slots that were played for these schedules.
    pub played: u64,
    /// The number of states at the beginning of each slot, with and without possible deviations.
    pub states: Vec<u64>,
    pub found: BTreeMap<Signature, FindingSchedules>,
    /// The search was stopped before its end.
    pub interrupted: bool,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The slot that is played, from 1 on.
    pub slot: u32,
    /// States at its beginning, and those of them from which it was played.
    pub states: usize,
    pub played: usize,
    pub found: usize,
}

/// A hash of everything that decides the future of a run and its findings.
type Mark = u128;

/// A state at the beginning of a slot from which deviations are possible, and the schedules that lead to it.
struct State {
    moment: Moment,
    watchers: Watchers,
    /// The schedule with the fewest deviations that leads here, the first of equals.
    schedule: Vec<Deviation>,
    /// The number of schedules that lead here, by their number of deviations.
    schedules: Vec<u64>,
}

/// A run at the end of a slot.
struct Run {
    stage: InlineStage,
    watchers: Watchers,
    schedule: Vec<Deviation>,
    schedules: Vec<u64>,
}

/// The results of playing a slot from one state.
#[derive(Default)]
struct After {
    states: IndexMap<Mark, State>,
    /// The runs in which no further deviation is possible.
    last: Vec<Run>,
    played: u64,
    /// The number of messages that could deviate in the schedule without deviations.
    messages: u64,
}

/// The number of states that are played before their results are merged. This number is in memory twice.
const PART: usize = 16;

impl<'a> Exhaustive<'a> {
    /// A search over the runs of a scenario with a seed, on its network.
    pub fn new(scenario: &'a Scenario, testnet: &Testnet, seeds: SeedTree, bounds: Bounds) -> Self {
        Self { scenario, bounds, plan: scenario.plan(testnet, seeds) }
    }
}

impl Exhaustive<'_> {
    /// Checks that a scenario can be searched. The error names the key, the value found and the value allowed.
    ///
    /// # Errors
    /// Its clocks are not right all the time: states are compared at the beginning of a slot, which begins for all nodes at once. Or it
    /// never ends, so convergence cannot be required.
    pub fn check(scenario: &Scenario) -> Result<(), String> {
        if scenario.network.model.clocks.is_some() {
            return Err(
                "key 'network.clocks': found errors of clocks, allowed is none in an exhaustive search".to_owned()
            );
        }
        let skewed = scenario.faults.iter().position(|fault| fault.kind.facts().timing != Timing::True);
        match skewed {
            Some(index) => {
                let kind = scenario.faults[index].kind.name();
                Err(format!(
                    "key 'fault[{index}].kind': found {kind:?}, allowed is what leaves all nodes in time in an exhaustive search"
                ))
            }
            None if liveness(scenario).is_none() => Err(
                "found a fault that never ends, a fault whose end is not known beforehand, or a network that loses messages throughout, \
                 allowed is a scenario whose faults are over at a known instant"
                    .to_owned(),
            ),
            None => Ok(()),
        }
    }

    /// Plays all schedules, or those that `kept` leaves open. Calls `keep` after each slot with the state to store, and `progress`
    /// after each part. Returns the findings of the finished schedules.
    pub fn run(
        &self,
        kept: Option<SearchCheckpoint>,
        stop: &AtomicBool,
        mut keep: impl FnMut(SearchCheckpoint),
        mut progress: impl FnMut(Progress),
    ) -> Exploration {
        let (mut explored, mut layer) = match kept {
            Some(kept) => self.resume(kept),
            None => self.begin(),
        };
        let mut ends = BTreeMap::new();
        while !layer.is_empty() {
            let slot = explored.depth + 1;
            *explored.states_of(slot) += layer.len() as u64;
            let counts = layer.iter().flat_map(|state| &state.schedules);
            explored.slots = counts.fold(explored.slots, |sum, count| sum.saturating_add(*count));
            let Some(next) = self.play(slot, layer, &mut explored, &mut ends, stop, &mut progress) else {
                explored.interrupted = true;
                return explored;
            };
            explored.depth = slot;
            layer = next;
            keep(SearchCheckpoint::of(&explored, layer.iter().map(|state| (&state.schedule, &state.schedules))));
        }
        explored
    }

    fn begin(&self) -> (Exploration, Vec<State>) {
        let mut schedules = vec![0; self.bounds.deviations as usize + 1];
        let explored = Exploration { schedules: schedules.clone(), ..Exploration::default() };
        schedules[0] = 1;
        (explored, vec![self.state(0, &[], schedules)])
    }

    /// Plays `slots` slots of a schedule. Returns the state after them.
    fn state(&self, slots: u32, schedule: &[Deviation], schedules: Vec<u64>) -> State {
        let watchers = Watchers::new(self.scenario, &self.plan, Some(self.liveness()), false, false);
        let mut watchers = watchers.expect("no assertion is judged");
        let mut stage = InlineStage::new(&self.plan.apart(), watchers.observers());
        let mut script = Script::new(self.bounds.kinds.clone(), self.bounds.by);
        script.say(schedule);
        stage.follow(script);
        for slot in 1..=slots {
            self.play_slot(&mut stage, &mut watchers, slot);
        }
        State { moment: stage.moment(), watchers, schedule: schedule.to_vec(), schedules }
    }

    /// Returns the findings of a schedule, played alone to its end, in as many slots as it takes.
    pub fn replay(&self, schedule: &[Deviation]) -> Vec<Finding> {
        let state = self.state(0, schedule, Vec::new());
        let mut run = self.next(&state, 1, schedule);
        for slot in 2.. {
            if run.is_over() {
                break;
            }
            self.play_slot(&mut run.stage, &mut run.watchers, slot);
        }
        run.watchers.seen().findings().to_vec()
    }

    /// Plays the slot of this number, from 1 on.
    fn play_slot(&self, stage: &mut InlineStage, watchers: &mut Watchers, slot: u32) {
        let slots = stage.world().tree().slots();
        let first = slots.slot(self.plan.start.seconds()).0;
        stage.run_until(SimTime::from_seconds(slots.start(Slot(first + slot))));
        watchers.slot_over();
        watchers.prove(stage);
    }

    /// Returns the states of the next slot; `None` if the search was stopped.
    fn play(
        &self,
        slot: u32,
        layer: Vec<State>,
        explored: &mut Exploration,
        ends: &mut BTreeMap<Mark, End>,
        stop: &AtomicBool,
        progress: &mut impl FnMut(Progress),
    ) -> Option<Vec<State>> {
        let (states, mut played) = (layer.len(), 0);
        let mut layer = layer.into_iter();
        let (mut next, mut alone) = (IndexMap::new(), Vec::new());
        loop {
            let part: Vec<State> = layer.by_ref().take(PART).collect();
            if part.is_empty() {
                return Some(next.into_values().chain(alone).collect());
            }
            played += part.len();
            let after: Vec<After> = part.into_par_iter().map(|state| self.after(&state, slot, stop)).collect();
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let mut last = Vec::new();
            for After { states, last: mut of_state, played, messages } in after {
                explored.played += played;
                explored.messages += messages;
                for (mark, state) in states {
                    match self.bounds.merge {
                        true => join(&mut next, mark, state),
                        false => alone.push(state),
                    }
                }
                last.append(&mut of_state);
            }
            self.play_out(slot + 1, last, explored, ends);
            progress(Progress { slot, states, played, found: explored.found.len() });
        }
    }

    /// Plays a slot from a state with all possible deviations, unless the search is stopped.
    fn after(&self, state: &State, slot: u32, stop: &AtomicBool) -> After {
        let mut after = After::default();
        self.branch(state, slot, self.left(&state.schedules, slot), (&mut Vec::new(), 0), &mut after, stop);
        after
    }

    /// Returns the number of further deviations that are possible in a slot.
    fn left(&self, schedules: &[u64], slot: u32) -> usize {
        let fewest = schedules.iter().position(|count| *count > 0).unwrap_or(schedules.len() - 1);
        if slot <= self.bounds.slots { self.bounds.deviations as usize - fewest } else { 0 }
    }

    /// Plays a slot with the given deviations, and then with every further deviation of its messages from this place on.
    fn branch(
        &self,
        state: &State,
        slot: u32,
        left: usize,
        (said, place): (&mut Vec<Deviation>, usize),
        after: &mut After,
        stop: &AtomicBool,
    ) {
        let mut next = self.next(state, slot, said);
        let sent = next.stage.script().expect("the first state has one").sent().to_vec();
        after.played += 1;
        if next.schedule.is_empty() && slot <= self.bounds.slots {
            after.messages = sent.len() as u64;
        }
        if self.left(&next.schedules, slot + 1) == 0 {
            after.last.push(next);
        } else {
            let mark = if self.bounds.merge { next.mark() } else { after.states.len() as Mark };
            join(&mut after.states, mark, next.into());
        }
        if said.len() == left || stop.load(Ordering::Relaxed) {
            return;
        }
        for (place, sent) in sent.into_iter().enumerate().skip(place) {
            for mishap in &self.bounds.mishaps {
                said.push(Deviation { sent, mishap: *mishap });
                self.branch(state, slot, left, (said, place + 1), after, stop);
                said.pop();
            }
        }
    }

    /// Plays a slot with the deviations `said`.
    fn next(&self, state: &State, slot: u32, said: &[Deviation]) -> Run {
        let mut stage = InlineStage::at(&state.moment);
        let mut watchers = state.watchers.apart();
        watchers.observers().into_iter().for_each(|observer| stage.watch(observer));
        stage.script().expect("the first state has one").say(said);
        self.play_slot(&mut stage, &mut watchers, slot);
        let schedule = state.schedule.iter().chain(said).copied().collect();
        let kept = state.schedules.len().saturating_sub(said.len());
        let schedules = [&vec![0; state.schedules.len() - kept], &state.schedules[..kept]].concat();
        Run { stage, watchers, schedule, schedules }
    }

    /// Returns the required liveness. It begins once no message deviates any more and the faults of the scenario are over.
    fn liveness(&self) -> Liveness {
        let of_scenario = liveness(self.scenario).map_or(0.0, |asked| asked.from_seconds);
        Liveness {
            from_seconds: self.until_seconds().max(of_scenario),
            within_rounds: rounds_to_converge(self.scenario),
        }
    }

    /// Returns the seconds from the start of the run after which no message deviates and all late ones have arrived: at least one
    /// round.
    fn until_seconds(&self) -> f64 {
        let blocktime = self.plan.tree.slots().blocktime();
        let late = self.bounds.mishaps.iter().any(|mishap| *mishap != Mishap::Lost);
        let by = if late { self.bounds.by } else { Duration::ZERO };
        let slots = f64::from(self.bounds.slots * blocktime) + by.as_secs_f64();
        slots.max(f64::from(self.scenario.round_slots() * blocktime))
    }

    /// The scenario of a schedule: a fault for each deviation.
    pub fn scenario_of(&self, schedule: &[Deviation]) -> Scenario {
        let faults = schedule.iter().map(|deviation| self.fault_of(deviation));
        let faults = self.scenario.faults.iter().cloned().chain(faults).collect();
        Scenario { faults, ..self.scenario.clone() }
    }

    fn fault_of(&self, deviation: &Deviation) -> Fault {
        let Deviation { sent: SentMessage { from, to, kind, number }, mishap } = *deviation;
        let node = |node: NodeId| Some(Nodes::List(vec![NodeRef::Number(node.0)]));
        let (senders, receivers) = (node(from), node(to));
        let which = Messages { messages: vec![kind], senders, receivers, chance: None, only: Some(number) };
        let by_ms = u32::try_from(self.bounds.by.as_millis()).unwrap_or(u32::MAX);
        let kind = match mishap {
            Mishap::Lost => FaultKind::Drop(DropMessages { which }),
            Mishap::Late => FaultKind::Delay(DelayMessages { by_ms, jitter_ms: 0, which }),
            Mishap::Doubled => FaultKind::Duplicate(DuplicateMessages { copies: 1, within_ms: by_ms, which }),
        };
        Fault { kind, from: Trigger::Start, until: Some(Trigger::Seconds(self.until_seconds())) }
    }
}

/// Adds a state of the next slot, or merges it with an equal one.
fn join(next: &mut IndexMap<Mark, State>, mark: Mark, state: State) {
    match next.entry(mark) {
        Entry::Occupied(mut known) => add(known.get_mut(), state),
        Entry::Vacant(place) => {
            place.insert(state);
        }
    }
}

/// Adds the schedules of an equal state. The one with the fewest deviations represents them all.
fn add(known: &mut State, mut other: State) {
    if (other.schedule.len(), &other.schedule) < (known.schedule.len(), &known.schedule) {
        mem::swap(known, &mut other);
    }
    known.schedules.iter_mut().zip(&other.schedules).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
}

impl Run {
    /// The mark of the state that it has come to, at the beginning of a slot.
    fn mark(&self) -> Mark {
        let world = self.stage.world();
        let mut out = Saver::of_what_is_ahead(world.tree(), world.now().micros());
        self.stage.save_what_is_ahead(&mut out);
        self.watchers.mark(world.now(), &mut out);
        xxh3_128(&out.finish().0)
    }
}

impl From<Run> for State {
    fn from(Run { stage, watchers, schedule, schedules }: Run) -> Self {
        Self { moment: stage.into_moment(), watchers, schedule, schedules }
    }
}

impl Exploration {
    /// Returns the number of finished schedules.
    pub fn total(&self) -> u64 {
        self.schedules.iter().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    fn states_of(&mut self, slot: u32) -> &mut u64 {
        let index = slot as usize - 1;
        if self.states.len() <= index {
            self.states.resize(index + 1, 0);
        }
        &mut self.states[index]
    }

    /// Adds `schedules` schedules that show a finding.
    fn show(&mut self, signature: &Signature, schedule: &[Deviation], schedules: u64) {
        let fresh = || FindingSchedules { schedule: schedule.to_vec(), schedules: 0 };
        let shown = self.found.entry(signature.clone()).or_insert_with(fresh);
        shown.schedules = shown.schedules.saturating_add(schedules);
        if (schedule.len(), schedule) < (shown.schedule.len(), &shown.schedule) {
            shown.schedule = schedule.to_vec();
        }
    }
}
