//! Explanations of recorded live runs: one of the lines is explained under the plan that the run began with.

use super::{
    Course, Explanation, Line, LineDeparture, Lines, Options, Phase, TargetKind, explained,
    play::Playing,
    removal::{AlteredInputs, RemovalSearch},
    target::{Target, asks_for_conduct},
    text,
    trials::Trials,
};
use crate::{
    scenario::Scenario,
    sim::{Plan, SeedTree},
};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest number of lines that are searched for a failure: the last ones.
const LINES: usize = 20;

/// A recorded session.
pub(crate) struct Session<'a> {
    pub scenario: &'a Scenario,
    /// Returns the plan that the session began with, at each call.
    pub plan: &'a (dyn Fn() -> Plan + Sync),
    pub lines: &'a Lines,
    /// The explained line, from 1 on. `None`: the last line that fails, or else the last line.
    pub line: Option<usize>,
    /// Usernames of the delegates.
    pub delegates: Vec<String>,
    /// Changes of the rules between nodes and their clients.
    pub rules: u64,
}

/// The recording that an explanation is of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Recording {
    /// The number of the explained line. Each line ends where the run went back to a snapshot, and the last with the run.
    pub line: usize,
    pub lines: usize,
    /// The places at which lines were left, in order.
    pub left: Vec<LineDeparture>,
    /// The number of inputs on the line.
    pub inputs: usize,
    /// The end of the line, in seconds from the start.
    pub end_seconds: f64,
    /// Changes of the rules between nodes and their clients in the whole recording, which the run did not know of.
    pub rules: u64,
}

/// Explains a recorded live run.
///
/// # Errors
/// There is no line of this number, or an assertion names an unknown invariant.
pub(crate) fn explain_recorded(
    session: Session<'_>,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(Phase, u64, u64) + Sync),
) -> Result<Explanation, String> {
    let Session { scenario, plan, lines, line, delegates, rules } = session;
    let number = match line {
        Some(line) if (1..=lines.count()).contains(&line) => line,
        Some(line) => return Err(format!("--line: found {line}, allowed is 1 to {}", lines.count())),
        None => last_that_fails(scenario, plan, lines, stop)?,
    };
    let line = lines.line(number - 1);
    let course = course(scenario, &line);
    let mut explanation = explained(&course, &plan, options, stop, progress)?;
    explanation.delegates = delegates;
    let start = crate::actors::SimTime::from_micros(explanation.start_us);
    explanation.recording = Some(Recording {
        line: number,
        lines: lines.count(),
        left: lines.left(),
        inputs: line.inputs.len(),
        end_seconds: line.end.seconds_since(start),
        rules,
    });
    let told = explanation.target.kind != TargetKind::Nothing;
    let wanted = options.budget > 0 && told && !stop.load(Ordering::Relaxed);
    explanation.nearest = wanted.then(|| {
        let playing = |altered: &AlteredInputs| altered.playing(&course, &plan());
        let trials = Trials {
            target: &explanation.target,
            seeds: SeedTree::new(options.seed),
            jobs: options.jobs,
            budget: options.budget,
            stop,
            playing: &playing,
        };
        let without = RemovalSearch { lines, line: &line, number, plan };
        without.run(&trials, &|done, of| progress(Phase::Nearest, done, of))
    });
    explanation.interrupted = stop.load(Ordering::Relaxed);
    explanation.why = text::why(&explanation);
    Ok(explanation)
}

fn course<'a>(scenario: &'a Scenario, line: &Line) -> Course<'a> {
    Course { scenario, inputs: line.inputs.clone(), exact: line.inputs.len(), end: Some(line.end) }
}

/// Returns the number of the last line that fails, or of the last line if none does.
fn last_that_fails(
    scenario: &Scenario,
    plan: &dyn Fn() -> Plan,
    lines: &Lines,
    stop: &AtomicBool,
) -> Result<usize, String> {
    let last = lines.count();
    for number in (1..=last).rev().take(LINES).filter(|_| last > 1) {
        let plan = plan();
        let course = course(scenario, &lines.line(number - 1));
        let mut run = Playing::new(&course, &plan, asks_for_conduct(scenario), Vec::new())?;
        run.play_to_end(stop);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if Target::of(scenario, &run, plan.start).kind.is_failure() {
            return Ok(number);
        }
    }
    Ok(last)
}
