//! Explanations why a run failed: what happened before, which numbers decided, which change would have helped, and when it was
//! decided.
//!
//! ```text
//!   scenario ─► run, recorded ─► target ─► record ─► chain      the slice of what happened before, folded; the numbers
//!      │                           └─────► copies ─► curve      how probable the failure is from each instant on
//!      └─────► changed scenarios ────────► runs ───► nearest    the least change with which it does not fail
//! ```
//!
//! All of it is a function of the scenario, the seed and the options; the number of threads changes nothing.

mod beside;
mod chain;
mod curve;
mod lines;
mod nearest;
mod numbers;
mod play;
mod record;
mod recording;
mod removal;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod trials;

pub(crate) use beside::{RunBeside, SideBySide};
pub(crate) use chain::{Chain, Row};
pub(crate) use curve::Curve;
pub(crate) use lines::{Line, LineDeparture, Lines};
pub(crate) use nearest::{Nearest, RepeatCounts, TriedChange};
pub(crate) use numbers::Number;
pub(crate) use recording::{Recording, Session, explain_recorded};
pub(crate) use target::{Target, TargetKind};

use crate::{
    actors::SimTime,
    scenario::{Ended, Scenario, Testnet},
    sim::{Fault, Intervention, Plan, SeedTree, Trigger, snapshots::CameIn},
    threads::on_threads,
};
use curve::CurveInputs;
use nearest::Changes;
use play::Playing;
use record::{Happening, Recorder, STEPS_MAX};
use serde::Serialize;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use target::asks_for_conduct;
use trials::Trials;

/// The options of an explanation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub seed: u64,
    /// The number of copies of the run at each instant. `None`: as many as the budget allows, at most 40. 0: no curve.
    pub repeats: Option<u64>,
    /// The largest number of instants of the curve.
    pub instants: usize,
    /// The largest number of runs spent on changes. 0: no change is tried.
    pub budget: usize,
    /// The largest number of lines of the printed diagram.
    pub lines: usize,
    /// Threads, at least 1.
    pub jobs: usize,
}

/// The thing that is played: a scenario, or the recording of a live run of one.
#[derive(Clone)]
pub(crate) struct Course<'a> {
    pub scenario: &'a Scenario,
    /// The inputs from outside, in order; none for a scenario.
    pub inputs: Arc<[CameIn]>,
    /// The number of leading inputs that are replayed after the same number of actor inputs as in the recording. The others are
    /// replayed at their instants.
    pub exact: usize,
    /// The end, where its scenario does not state one.
    pub end: Option<SimTime>,
}

impl<'a> Course<'a> {
    /// A scenario as `dposlab run` plays it.
    pub fn of(scenario: &'a Scenario) -> Self {
        Self { scenario, inputs: Arc::from([]), exact: 0, end: None }
    }
}

/// The part that is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Copies of the run from each instant on.
    Curve,
    /// Changed scenarios.
    Nearest,
}

/// An explanation why a run failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explanation {
    pub version: &'static str,
    /// The file, as it was named.
    pub file: String,
    pub seed: u64,
    /// Values that were replaced.
    pub set: Vec<String>,
    /// The command that gives the same.
    pub reproduce: String,
    /// The thing explained.
    pub target: Target,
    /// True if something failed.
    pub failed: bool,
    /// The way the run ended.
    pub ended: Ended,
    /// The shares of peers, in per cent, that a node needs on its chain to forge, and on others to leave its own.
    pub quorum_percent: u32,
    pub forked_percent: u32,
    pub nodes: u32,
    /// Usernames of the delegates on the first nodes; the other nodes are relays.
    pub delegates: Vec<String>,
    /// The instant the run began at, in microseconds since the epoch, and the length of a slot in seconds.
    pub start_us: u64,
    pub blocktime: u32,
    pub faults: Vec<FaultReport>,
    pub chain: Chain,
    pub curve: Option<Curve>,
    pub nearest: Option<Nearest>,
    /// The same run under other rules.
    pub beside: Option<SideBySide>,
    /// The explained line of a recorded session.
    pub recording: Option<Recording>,
    /// The explanation in a few sentences.
    pub why: Vec<String>,
    /// True if the work was stopped before all was done.
    pub interrupted: bool,
}

impl Explanation {
    /// Plays the explained scenario under other rules as well, by their names.
    ///
    /// # Errors
    /// The scenario's changes of rules do not fit them.
    pub fn play_beside(&mut self, scenario: &Scenario, others: &[String], stop: &AtomicBool) -> Result<(), String> {
        let seeds = SeedTree::new(self.seed);
        let testnet = Arc::new(scenario.testnet(seeds));
        let beside = SideBySide::of(scenario, &testnet, seeds, others, stop)?;
        self.interrupted = stop.load(Ordering::Relaxed);
        // A run that was cut off says nothing beside others.
        self.beside = Some(beside).filter(|_| !self.interrupted);
        Ok(())
    }
}

/// A fault of the scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FaultReport {
    pub fault: usize,
    pub kind: &'static str,
    /// Its parameters, as in the file.
    pub what: serde_json::Value,
    /// In seconds from the start, where it is known beforehand; `null` for an end that never comes.
    pub from_seconds: Option<f64>,
    pub until_seconds: Option<f64>,
}

/// Explains a scenario's run. `progress` receives the part, the amount done and the total.
///
/// # Errors
/// An assertion names an unknown invariant.
pub(crate) fn explain(
    scenario: &Scenario,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(Phase, u64, u64) + Sync),
) -> Result<Explanation, String> {
    let seeds = SeedTree::new(options.seed);
    let testnet = Arc::new(scenario.testnet(seeds));
    let plan = || scenario.plan(&testnet, seeds);
    let mut explanation = explained(&Course::of(scenario), &plan, options, stop, progress)?;
    explanation.delegates = names(&testnet);
    let wanted = options.budget > 0 && explanation.failed && !stop.load(Ordering::Relaxed);
    explanation.nearest = wanted.then(|| {
        let playing = |changed: &Scenario| nearest::playing(changed, scenario, &testnet, seeds);
        let trials = Trials {
            target: &explanation.target,
            seeds,
            jobs: options.jobs,
            budget: options.budget,
            stop,
            playing: &playing,
        };
        Changes { scenario, trials }.run(&|done, of| progress(Phase::Nearest, done, of))
    });
    explanation.interrupted = stop.load(Ordering::Relaxed);
    explanation.why = text::why(&explanation);
    Ok(explanation)
}

/// The run, its chain of causes and its curve.
fn explained(
    course: &Course<'_>,
    plan_anew: &dyn Fn() -> Plan,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(Phase, u64, u64) + Sync),
) -> Result<Explanation, String> {
    explained_by(STEPS_MAX, course, plan_anew, options, stop, progress)
}

/// [`explained`] by records of at most `steps_max` steps.
fn explained_by(
    steps_max: usize,
    course: &Course<'_>,
    plan_anew: &dyn Fn() -> Plan,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(Phase, u64, u64) + Sync),
) -> Result<Explanation, String> {
    let (scenario, plan) = (course.scenario, plan_anew());
    let recorder = Recorder::of_last(steps_max, &plan);
    let modelled = asks_for_conduct(scenario);
    let run = Playing::new(course, &plan, modelled, vec![Box::new(recorder.clone())])?;
    let mut run = run.recorded_by(recorder.clone());
    let ended = run.play_to_end(stop);
    let target = Target::of(scenario, &run, plan.start);
    let delivered = run.delivered();
    drop(run);
    let (told, is_forgotten) = {
        let record = recorder.record();
        (record.network.clone(), record.has_forgotten(target.at))
    };
    let recorder = match is_forgotten {
        false => recorder,
        // The run goes on long after the failure: another record ends there.
        true => {
            let plan = plan_anew();
            let recorder = Recorder::of_last(steps_max, &plan);
            let run = Playing::new(course, &plan, modelled, vec![Box::new(recorder.clone())])?;
            run.recorded_by(recorder.clone()).play_until(SimTime::from_micros(target.at.micros() + 1), stop);
            recorder
        }
    };
    let record = recorder.record();
    let mut chain = Chain::of(&record, &plan, &target);
    chain.rows = text::fitted(&chain, &target, plan.nodes.len(), options.lines);
    let curve = (options.repeats != Some(0) && target.kind != TargetKind::Nothing).then(|| {
        let asked = CurveInputs {
            target: &target,
            seeds: plan.seeds,
            start: plan.start,
            repeats: options.repeats,
            instants: options.instants,
            jobs: options.jobs,
            delivered,
        };
        let anew = || Playing::new(course, &plan_anew(), modelled, Vec::new()).ok();
        Curve::of(&asked, &record, &anew, stop, &|done, of| progress(Phase::Curve, done, of))
    });
    drop(record);
    Ok(Explanation {
        version: env!("CARGO_PKG_VERSION"),
        file: String::new(),
        seed: options.seed,
        set: Vec::new(),
        reproduce: String::new(),
        failed: target.kind.is_failure(),
        target,
        ended,
        quorum_percent: plan.tree.rules().quorum_percent,
        forked_percent: plan.tree.rules().node.forked_percent,
        nodes: plan.nodes.len() as u32,
        delegates: Vec::new(),
        start_us: plan.start.micros(),
        blocktime: plan.tree.slots().blocktime(),
        faults: faults(&plan, course, &told),
        chain,
        curve,
        nearest: None,
        beside: None,
        recording: None,
        why: Vec::new(),
        interrupted: false,
    })
}

fn names(testnet: &Testnet) -> Vec<String> {
    testnet.delegates.iter().map(|delegate| delegate.username.clone()).collect()
}

/// Returns the faults of the plan, then the faults that were added during the run, with their times from `network`.
fn faults(plan: &Plan, course: &Course<'_>, network: &[Happening]) -> Vec<FaultReport> {
    let seconds = |at: SimTime| at.seconds_since(plan.start);
    let of = |index: usize, fault: &Fault, from_seconds: Option<f64>, until_seconds: Option<f64>| FaultReport {
        fault: index,
        kind: fault.kind.name(),
        what: serde_json::to_value(&fault.kind).unwrap_or_default(),
        from_seconds,
        until_seconds,
    };
    let planned = plan.faults.iter().enumerate().map(|(index, fault)| {
        let begun = fault.from.instant(plan, None);
        let end = fault.until.as_ref().and_then(|until: &Trigger| until.instant(plan, begun));
        of(index, fault, begun.map(seconds), end.map(seconds))
    });
    let added = course.inputs.iter().filter_map(|input| match &input.what {
        Intervention::AddFault(added) | Intervention::Restart(added) => Some(&added.fault),
        _ => None,
    });
    let first = plan.faults.len();
    let added = added.enumerate().map(|(place, fault)| {
        let when = |of_beginning: bool| {
            network.iter().find_map(|one| match one {
                Happening::Fault { at, index, began, .. } if *index == first + place && *began == of_beginning => {
                    Some(seconds(*at))
                }
                _ => None,
            })
        };
        of(first + place, fault, when(true), when(false))
    });
    planned.chain(added).collect()
}

/// Does `count` pieces of work on `jobs` threads. The results are in their order. `progress` receives the number of finished ones.
fn parallel<T: Send>(
    jobs: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    progress: impl Fn(usize) + Sync,
) -> Vec<T> {
    on_threads(count, jobs, None, progress, work).expect("nothing stops it")
}
