//! The probability of the failure when the run is repeated from an instant with new random numbers.
//!
//! 1. The first instants are spread evenly from the start of the run to the failure.
//! 2. At each, the run is copied once for each repeat, before the events that are due at that instant. Each copy draws from the streams
//!    of a seed of its own, which the run's seed, the instant and the number of the copy give.
//! 3. A copy is played until it has failed in the same way or is over. The share that failed has an interval
//!    ([`crate::statistics::interval`]).
//! 4. Another instant is added between the two neighbours whose shares differ most, in the middle of the events between them. This
//!    repeats until no events are left between them or there are enough instants.
//! 5. Where the share rises most, the events between the two instants are the cause: before them the run could still have gone
//!    otherwise.
//!
//! The values that the run's seed has given once and for all stay: keys, topology, the latency of links that delay all
//! messages alike, clocks, and messages that are under way.

use super::{Target, chain::shortened, parallel, play::Playing, record::Record};
use crate::{
    actors::{Event, SimTime},
    check::story::{block_in_words, event_in_words},
    sim::SeedTree,
    statistics::interval::{Interval, of_share},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// The number of instants at which the curve begins, before it is refined.
const FIRST: usize = 6;
/// A rise of less than this between two instants is not looked into.
const LEAST_RISE: f64 = 0.2;
/// The budget of a curve: the number of inputs that all copies together deliver to actors.
const INPUTS_MAX: u64 = 40_000_000;
/// The smallest number of copies of an instant, for long runs whose repeats are cut.
const REPEATS_MIN: u64 = 8;
/// The number of events that a jump names.
const EVENTS: usize = 8;

/// The curve.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Curve {
    /// By time.
    pub points: Vec<Point>,
    /// Copies of an instant.
    pub repeats: u64,
    /// Copies played in all.
    pub runs: u64,
    /// The place at which the share rises most, if it rises.
    pub jump: Option<Jump>,
    /// From this instant on every copy fails, in seconds from the start.
    pub certain_from_seconds: Option<f64>,
    /// The last instant from which a copy did not fail, in seconds from the start.
    pub last_hope_seconds: Option<f64>,
    /// The reason for ending before all instants were looked at, if that happened.
    pub cut_short: Option<&'static str>,
}

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    #[serde(rename = "at_us")]
    pub at: SimTime,
    pub after_seconds: f64,
    pub failed: u64,
    pub runs: u64,
    pub share: f64,
    /// At a confidence of 95 %.
    pub interval: Interval,
}

/// The steepest rise.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Jump {
    pub from_seconds: f64,
    pub to_seconds: f64,
    pub from_share: f64,
    pub to_share: f64,
    /// True if the intervals of the two shares have nothing in common.
    pub is_clear: bool,
    /// The events between them, in words; only the first ones if there are many.
    pub events: Vec<String>,
    pub more_events: usize,
}

/// The inputs of a curve: the failure, the run, and the numbers of copies and instants.
pub(super) struct CurveInputs<'a> {
    pub(super) target: &'a Target,
    pub(super) seeds: SeedTree,
    pub(super) start: SimTime,
    /// Copies of an instant; fewer in long runs, where it is not given.
    pub(super) repeats: Option<u64>,
    pub(super) instants: usize,
    pub(super) jobs: usize,
    /// Inputs of the whole run.
    pub(super) delivered: u64,
}

/// The default number of copies of an instant.
const REPEATS: u64 = 40;

impl Curve {
    /// Computes the curve of a run that `anew` gives at its first instant. `progress` gets the number of copies played, and of all.
    pub(super) fn of(
        asked: &CurveInputs<'_>,
        record: &Record,
        anew: &dyn Fn() -> Option<Playing>,
        stop: &AtomicBool,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Self {
        let repeats = asked.repeats.unwrap_or_else(|| {
            let affordable = 2 * INPUTS_MAX / (asked.delivered.max(1) * asked.instants.max(1) as u64);
            affordable.clamp(REPEATS_MIN, REPEATS)
        });
        let mut drawing = Drawing {
            asked,
            repeats,
            times: times(record, asked),
            anew,
            points: BTreeMap::new(),
            inputs: 0,
            stop,
            progress,
        };
        let cut_short = drawing.draw().err();
        drawing.finish(record, cut_short)
    }
}

/// Returns the instants of the recorded steps, ascending, and the one after the failure.
fn times(record: &Record, asked: &CurveInputs<'_>) -> Vec<SimTime> {
    let steps = record.steps.iter().map(|step| step.at).filter(|at| *at <= asked.target.at && *at > asked.start);
    let mut times: Vec<SimTime> = [asked.start].into_iter().chain(steps).collect();
    times.dedup();
    times.push(SimTime::from_micros(asked.target.at.micros() + 1));
    times
}

struct Drawing<'a> {
    asked: &'a CurveInputs<'a>,
    repeats: u64,
    times: Vec<SimTime>,
    /// Returns the run at its first instant. Each instant of the curve has a run of its own: copies share its blocks, and the blocks of
    /// all instants would be too many.
    anew: &'a dyn Fn() -> Option<Playing>,
    /// By the index of the instant in `times`.
    points: BTreeMap<usize, Point>,
    inputs: u64,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Drawing<'_> {
    /// Measures one instant after the other. `Err` gives the reason for an early end.
    fn draw(&mut self) -> Result<(), &'static str> {
        let last = self.times.len() - 1;
        let (from, to) = (self.times[0].micros(), self.times[last].micros());
        let spread = |part: usize| {
            let at = from + (to - from) / (FIRST as u64 - 1) * part as u64;
            self.times.partition_point(|time| time.micros() < at).min(last)
        };
        let mut first: Vec<usize> = (0..FIRST - 1).map(spread).collect();
        first.push(last);
        first.sort_unstable();
        first.dedup();
        for place in first {
            self.look(place)?;
        }
        while self.points.len() < self.asked.instants {
            let Some(place) = self.next() else { break };
            self.look(place)?;
        }
        Ok(())
    }

    /// Returns the index halfway between the two neighbours whose shares differ most.
    fn next(&self) -> Option<usize> {
        let neighbours = self.points.iter().zip(self.points.iter().skip(1));
        let open = neighbours.filter(|((from, _), (to, _))| *to - *from > 1);
        let rises = open.map(|((from, one), (to, other))| ((other.share - one.share).abs(), *from, *to));
        let steepest = rises.filter(|(rise, ..)| *rise >= LEAST_RISE).max_by(|one, other| one.0.total_cmp(&other.0));
        steepest.map(|(_, from, to)| usize::midpoint(from, to))
    }

    fn look(&mut self, place: usize) -> Result<(), &'static str> {
        let CurveInputs { target, seeds, start, jobs, instants, .. } = *self.asked;
        let at = self.times[place];
        let Some(mut run) = (self.anew)() else { return Err("the run cannot be played again") };
        run.play_until(at, self.stop);
        let moment = Mutex::new(run);
        let next = |copy: usize| {
            let name = format!("explain/{}/{copy}", at.micros());
            let seed = u64::from_le_bytes(seeds.bytes(&name)[..8].try_into().expect("8 of 32 bytes"));
            let mut run = moment.lock().expect("no thread panics while holding it").apart(Some(SeedTree::new(seed)));
            let before = run.delivered();
            let failed = run.play_out(target, self.stop);
            (failed, run.delivered() - before)
        };
        let played_before = self.points.values().map(|point| point.runs).sum::<u64>();
        let all = instants as u64 * self.repeats;
        let progress = |done: usize| (self.progress)(played_before + done as u64, all);
        let copies = parallel(jobs, self.repeats as usize, next, progress);
        self.inputs += copies.iter().map(|(_, inputs)| inputs).sum::<u64>();
        let known: Vec<bool> = copies.iter().filter_map(|(failed, _)| *failed).collect();
        if known.len() < copies.len() {
            return Err("it was interrupted");
        }
        let (failed, runs) = (known.iter().filter(|failed| **failed).count() as u64, known.len() as u64);
        let point = Point {
            at,
            after_seconds: at.seconds_since(start),
            failed,
            runs,
            share: failed as f64 / runs as f64,
            interval: of_share(failed, runs),
        };
        self.points.insert(place, point);
        if self.stop.load(Ordering::Relaxed) {
            return Err("it was interrupted");
        }
        if self.inputs > INPUTS_MAX {
            return Err("the copies have delivered as many inputs as they may");
        }
        Ok(())
    }

    fn finish(self, record: &Record, cut_short: Option<&'static str>) -> Curve {
        let points: Vec<Point> = self.points.values().copied().collect();
        let runs = points.iter().map(|point| point.runs).sum();
        let safe = points.iter().rposition(|point| point.failed < point.runs);
        let certain = match safe {
            Some(safe) => points.get(safe + 1),
            None => points.first(),
        };
        let steepest =
            self.points.iter().zip(self.points.iter().skip(1)).filter(|((_, one), (_, other))| other.share > one.share);
        let steepest =
            steepest.max_by(|((_, a), (_, b)), ((_, c), (_, d))| (b.share - a.share).total_cmp(&(d.share - c.share)));
        let jump = steepest.map(|((_, one), (_, other))| jump(record, one, other));
        Curve {
            repeats: self.repeats,
            runs,
            jump,
            certain_from_seconds: certain.map(|point| point.after_seconds),
            last_hope_seconds: safe.map(|safe| points[safe].after_seconds),
            cut_short,
            points,
        }
    }
}

/// Describes the change from one instant to another.
fn jump(record: &Record, one: &Point, other: &Point) -> Jump {
    let between = |at: SimTime| one.at <= at && at < other.at;
    let steps = record.steps.iter().filter(|step| between(step.at));
    let events = steps.flat_map(|step| step.events.iter().map(move |event| (step.actor.node, event)));
    let mut all: Vec<String> = Vec::new();
    // A rollback is reported as a whole.
    for (node, event) in events.filter(|(_, event)| !matches!(event, Event::BlockReverted(_))) {
        let words = shortened(&format!("{node} {}", words(event, record)));
        if !all.contains(&words) {
            all.push(words);
        }
    }
    Jump {
        from_seconds: one.after_seconds,
        to_seconds: other.after_seconds,
        from_share: one.share,
        to_share: other.share,
        is_clear: other.interval.low > one.interval.high,
        more_events: all.len().saturating_sub(EVENTS),
        events: all.into_iter().take(EVENTS).collect(),
    }
}

fn words(event: &Event, record: &Record) -> String {
    match event {
        Event::BlockApplied(link) => format!("takes {}", block_in_words(link.block())),
        Event::PoolAdded(added) => {
            let kinds: Vec<&str> = added.iter().map(|one| one.kind().name()).collect();
            format!("takes {} into its pool", kinds.join(", "))
        }
        Event::PoolRemoved(id) => format!("gives up {} in its pool", &id.to_string()[..8]),
        event => event_in_words(event, &record.tree),
    }
}
