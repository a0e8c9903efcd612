//! Every schedule with at most so many deviations: all runs of a scenario in which so many messages, at most, are lost, late or
//! doubled.
//!
//! ```text
//!   slot 1        slot 2                    the last slot       until one chain grows
//!   ┌ state ──┬── nothing befalls ──► state ─┬─►   …   ──► state ─────► what was found
//!   │         ├── one message lost ──► state ┤              ▲
//!   │         └── two of them ───────► state ┘  equal states are one: each schedule that leads there is counted
//! ```
//!
//! A *schedule* says which messages are befallen by what. All schedules are played slot by slot, those that are alike so far
//! together. Two states at the beginning of a slot are one if their [`Mark`]s are equal: all that decides what is ahead of them, and
//! all that those who watch remember. So a schedule is played until it comes to the state of another, and counted to the end.

mod kept;
#[cfg(test)]
mod tests;

pub use kept::{Guard, Kept};

use super::{
    Finding, Signature,
    liveness::{Alive, Liveness},
    swarm::rounds_to_converge,
    watchers::Watchers,
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::saved::Saver,
    protocol::Slot,
    scenario::{Scenario, Testnet},
    sim::{
        Fault, FaultKind, Plan, SeedTree, Trigger,
        fault::{DelayMessages, DropMessages, DuplicateMessages, MessageKind, Messages, NodeRef, Nodes, Timing},
        network::script::{Deviation, Mishap, Script, Sent},
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
pub struct Bounds {
    /// Deviations of a schedule at most.
    pub deviations: u32,
    /// Slots in which messages may be befallen, from the start of the run on.
    pub slots: u32,
    /// Messages of these kinds; of questions and answers, the answers.
    pub kinds: Vec<MessageKind>,
    /// What may befall them, each once.
    pub mishaps: Vec<Mishap>,
    /// By how much late messages and second copies are late.
    pub by: Duration,
    /// Equal states are one. Otherwise each schedule is played by itself from its last deviation on.
    pub merge: bool,
}

/// A search for all that can come of so many deviations.
pub struct Exhaustive<'a> {
    /// The run without deviations. Its assertions are not judged.
    pub scenario: &'a Scenario,
    pub bounds: Bounds,
    plan: Plan,
}

/// A finding, and how many schedules show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub finding: Finding,
    /// The schedule with the fewest deviations that shows it, the first of equals.
    pub schedule: Vec<Deviation>,
    pub schedules: u64,
}

/// What came of a search, or of the part that has been played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explored {
    /// Schedules that were played to their ends, or came to the states of such: index k counts those with k deviations.
    pub schedules: Vec<u64>,
    /// Messages that can be befallen in the schedule without deviations.
    pub messages: u64,
    /// Slots that are over in all schedules that are not at their ends.
    pub depth: u32,
    /// Slots of all schedules together.
    pub slots: u64,
    /// Slots that were played for them.
    pub played: u64,
    /// By slot, the states at its beginning, counted once for each number of deviations with which they are reached.
    pub states: Vec<u64>,
    pub found: BTreeMap<Signature, Shown>,
    /// The search was stopped before its end.
    pub interrupted: bool,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The slot that is played, from 1 on.
    pub slot: u32,
    /// States at its beginning, and those of them from which it was played.
    pub states: usize,
    pub played: usize,
    pub found: usize,
}

/// A name of all that decides what is ahead of a run, and what will be found.
type Mark = u128;

/// A state at the beginning of a slot, and the schedules that lead to it.
struct State {
    moment: Moment,
    watchers: Watchers,
    /// The schedule with the fewest deviations that leads here, the first of equals.
    schedule: Vec<Deviation>,
    /// By their deviations, the number of schedules that lead here.
    schedules: Vec<u64>,
}

/// All that comes of a state in a slot.
#[derive(Default)]
struct After {
    states: IndexMap<Mark, State>,
    played: u64,
    /// Messages that could be befallen where nothing was.
    messages: u64,
}

/// A state at the end of a slot, and the messages that left in it.
struct Next {
    state: State,
    sent: Vec<Sent>,
}

/// States that are played before what comes of them is put together: so many are in memory twice.
const PART: usize = 64;

impl<'a> Exhaustive<'a> {
    /// A search over the runs of a scenario with a seed, on its network.
    pub fn new(scenario: &'a Scenario, testnet: &Testnet, seeds: SeedTree, bounds: Bounds) -> Self {
        Self { scenario, bounds, plan: scenario.plan(testnet, seeds) }
    }
}

impl Exhaustive<'_> {
    /// Why a scenario cannot be searched: the key, what was found and what is allowed.
    ///
    /// # Errors
    /// Its clocks are not right all the time. States are compared at the beginning of a slot, which begins for all nodes at once.
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
            None => Ok(()),
        }
    }

    /// Plays all schedules, or those that `kept` has not come to. Hands over what there is to keep after each slot; `progress` hears
    /// of each part. Returns what was found, by schedules that are over.
    pub fn run(
        &self,
        kept: Option<Kept>,
        stop: &AtomicBool,
        mut keep: impl FnMut(Kept),
        mut progress: impl FnMut(Progress),
    ) -> Explored {
        let (mut explored, mut layer) = match kept {
            Some(kept) => self.resume(kept),
            None => self.begin(),
        };
        while !layer.is_empty() {
            let slot = explored.depth + 1;
            explored
                .states
                .push(layer.iter().flat_map(|state| &state.schedules).filter(|count| **count > 0).count() as u64);
            explored.slots += layer.iter().flat_map(|state| &state.schedules).sum::<u64>();
            let Some(next) = self.play(slot, layer, &mut explored, stop, &mut progress) else {
                explored.interrupted = true;
                return explored;
            };
            explored.depth = slot;
            layer = next.into_iter().filter(|state| !is_over(state, &mut explored)).collect();
            keep(Kept::of(&explored, layer.iter().map(|state| (&state.schedule, &state.schedules))));
        }
        explored
    }

    fn begin(&self) -> (Explored, Vec<State>) {
        let mut schedules = vec![0; self.bounds.deviations as usize + 1];
        let explored = Explored { schedules: schedules.clone(), ..Explored::default() };
        schedules[0] = 1;
        (explored, vec![self.state(0, &[], schedules)])
    }

    /// The state at the end of so many slots of a schedule, by playing them.
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

    /// What a schedule shows, played alone to its end: in as many slots as it takes.
    pub fn replay(&self, schedule: &[Deviation]) -> Vec<Finding> {
        let State { moment, mut watchers, .. } = self.state(0, schedule, Vec::new());
        let mut stage = InlineStage::at(&moment);
        watchers.observers().into_iter().for_each(|observer| stage.watch(observer));
        for slot in 1.. {
            self.play_slot(&mut stage, &mut watchers, slot);
            if watchers.seen().alive().is_none_or(Alive::is_decided) {
                break;
            }
        }
        watchers.seen().findings().to_vec()
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
        explored: &mut Explored,
        stop: &AtomicBool,
        progress: &mut impl FnMut(Progress),
    ) -> Option<Vec<State>> {
        let states = layer.len();
        let mut layer = layer.into_iter();
        let (mut next, mut alone) = (IndexMap::new(), Vec::new());
        let mut played = 0;
        loop {
            let part: Vec<State> = layer.by_ref().take(PART).collect();
            if part.is_empty() {
                return Some(next.into_values().chain(alone).collect());
            }
            played += part.len();
            let after: Vec<After> = part.into_par_iter().map(|state| self.after(&state, slot)).collect();
            for After { states, played, messages } in after {
                explored.played += played;
                explored.messages += messages;
                for (mark, state) in states {
                    match self.bounds.merge {
                        true => join(&mut next, mark, state),
                        false => alone.push(state),
                    }
                }
            }
            progress(Progress { slot, states, played, found: explored.found.len() });
            if stop.load(Ordering::Relaxed) {
                return None;
            }
        }
    }

    /// All that may come of a state in a slot.
    fn after(&self, state: &State, slot: u32) -> After {
        let fewest = state.schedules.iter().position(|count| *count > 0).unwrap_or(0);
        let left = match slot <= self.bounds.slots {
            true => self.bounds.deviations as usize - fewest,
            false => 0,
        };
        let mut after = After::default();
        self.branch(state, slot, left, &mut Vec::new(), 0, &mut after);
        after
    }

    /// Plays a slot with what is said, and then with all that may be said as well of its messages from this place on.
    fn branch(
        &self,
        state: &State,
        slot: u32,
        left: usize,
        said: &mut Vec<Deviation>,
        place: usize,
        after: &mut After,
    ) {
        let Next { state: next, sent } = self.next(state, slot, said);
        after.played += 1;
        if next.schedule.is_empty() && slot <= self.bounds.slots {
            after.messages = sent.len() as u64;
        }
        let mark = match self.bounds.merge {
            true => next.mark(),
            false => after.states.len() as Mark,
        };
        join(&mut after.states, mark, next);
        if said.len() == left {
            return;
        }
        for (place, sent) in sent.into_iter().enumerate().skip(place) {
            for mishap in &self.bounds.mishaps {
                said.push(Deviation { sent, mishap: *mishap });
                self.branch(state, slot, left, said, place + 1, after);
                said.pop();
            }
        }
    }

    /// Plays a slot in which this befalls.
    fn next(&self, state: &State, slot: u32, said: &[Deviation]) -> Next {
        let mut stage = InlineStage::at(&state.moment);
        let mut watchers = state.watchers.apart();
        watchers.observers().into_iter().for_each(|observer| stage.watch(observer));
        stage.script().expect("the first state has one").say(said);
        self.play_slot(&mut stage, &mut watchers, slot);
        let sent = stage.script().expect("the first state has one").sent().to_vec();
        let schedule = state.schedule.iter().chain(said).copied().collect();
        let schedules = [&vec![0; said.len()], &state.schedules[..state.schedules.len() - said.len()]].concat();
        Next { state: State { moment: stage.moment(), watchers, schedule, schedules }, sent }
    }

    /// One chain, and one that grows, is asked for when messages are befallen no more.
    fn liveness(&self) -> Liveness {
        Liveness {
            from_seconds: self.until_seconds(),
            within_rounds: rounds_to_converge(self.scenario.network.delegates),
        }
    }

    /// The time from the start of the run at which no message is befallen any more: that of a round at least.
    fn until_seconds(&self) -> f64 {
        f64::from(self.bounds.slots.max(self.scenario.network.delegates) * 8)
    }

    /// The scenario of a schedule: a fault for each deviation.
    pub fn scenario_of(&self, schedule: &[Deviation]) -> Scenario {
        let faults = schedule.iter().map(|deviation| self.fault_of(deviation));
        let faults = self.scenario.faults.iter().cloned().chain(faults).collect();
        Scenario { faults, ..self.scenario.clone() }
    }

    fn fault_of(&self, deviation: &Deviation) -> Fault {
        let Deviation { sent: Sent { from, to, kind, number }, mishap } = *deviation;
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

/// A state is one of the next slot's, or leads to one that is there.
fn join(next: &mut IndexMap<Mark, State>, mark: Mark, state: State) {
    match next.entry(mark) {
        Entry::Occupied(mut known) => add(known.get_mut(), state),
        Entry::Vacant(place) => {
            place.insert(state);
        }
    }
}

/// Adds the schedules of an equal state. The one with the fewest deviations speaks for all.
fn add(known: &mut State, mut other: State) {
    if (other.schedule.len(), &other.schedule) < (known.schedule.len(), &known.schedule) {
        mem::swap(known, &mut other);
    }
    known.schedules.iter_mut().zip(&other.schedules).for_each(|(sum, count)| *sum += count);
}

/// A state whose liveness is decided has no more to show: its schedules and findings are counted.
fn is_over(state: &State, explored: &mut Explored) -> bool {
    if !state.is_over() {
        return false;
    }
    explored.schedules.iter_mut().zip(&state.schedules).for_each(|(sum, count)| *sum += count);
    let schedules = state.schedules.iter().sum();
    for finding in state.watchers.seen().findings() {
        explored.show(finding, &state.schedule, schedules);
    }
    true
}

impl State {
    fn is_over(&self) -> bool {
        self.watchers.seen().alive().is_none_or(Alive::is_decided)
    }

    /// Its mark, at the beginning of a slot.
    fn mark(&self) -> Mark {
        let now = self.moment.now();
        let mut out = Saver::of_what_is_ahead(self.moment.tree(), now.micros());
        self.moment.save(&mut out);
        self.watchers.mark(now, &mut out);
        xxh3_128(&out.finish().0)
    }
}

impl Explored {
    /// So many more schedules show a finding.
    fn show(&mut self, finding: &Finding, schedule: &[Deviation], schedules: u64) {
        let shown = self.found.entry(finding.signature()).or_insert_with(|| Shown {
            finding: finding.clone(),
            schedule: schedule.to_vec(),
            schedules: 0,
        });
        shown.schedules += schedules;
        if (schedule.len(), schedule) < (shown.schedule.len(), &shown.schedule) {
            (shown.finding, shown.schedule) = (finding.clone(), schedule.to_vec());
        }
    }
}
