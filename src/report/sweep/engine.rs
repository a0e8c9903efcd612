//! Plays the runs of a sweep on all cores.

use super::{
    Cell, Sweep, SweepError, SweepRun,
    columns::{self, Status},
    rows::{Row, Rows, RowsError},
    stopping_rule::Looks,
};
use crate::{
    report::Metrics,
    scenario::{Ended, Judge, Ruling, Scenario, StageKind},
    sim::{Observer, Plan, SeedTree},
};
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub total: u64,
    pub done: u64,
    /// The number of runs that were done when this process began.
    pub found: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were ended before their last round: neither successes nor failures.
    pub censored: u64,
}

impl Progress {
    fn count(&mut self, status: Status) {
        self.failed += u64::from(status.is_failed());
        self.censored += u64::from(status == Status::Censored);
    }
}

/// A function that makes the judge of a run. Its error names something in the scenario's assertions that does not exist.
pub(crate) type MakeJudge = fn(&Scenario, &Plan) -> Result<Judge, String>;

/// A function that returns, after each slot of a run, whether the run may go on.
pub(crate) type ContinueCheck = Box<dyn Fn() -> bool>;

/// The options with which a sweep plays its runs.
pub(crate) struct PlayOptions<'a> {
    /// The number of runs at a time.
    pub jobs: usize,
    /// Set when no further run shall begin.
    pub stop: &'a AtomicBool,
    pub judge: MakeJudge,
    /// Called at the beginning of each run. The row of a run that may not go on has the end [`Ended::RealTime`].
    pub limit: Box<dyn Fn() -> ContinueCheck + Sync>,
}

/// Plays the missing runs until all are done, `looks` has seen enough, or `stop` is set. Runs that have begun are played to their end.
/// Calls `progress` after every batch of rows that is safe on the disk. Returns the rows, which stay locked.
///
/// # Errors
/// An assertion cannot be judged, the folder holds another sweep, another process works there, or a row cannot be written.
pub(crate) fn play(
    sweep: &Sweep,
    folder: &Path,
    playing: &PlayOptions<'_>,
    mut looks: Option<&mut Looks>,
    mut progress: impl FnMut(Progress),
) -> Result<(Progress, Rows), SweepError> {
    check_assertions(sweep, playing.judge)?;
    let rows = sweep.claim(folder)?;
    let mut state = found(sweep, &rows)?;
    let by_seed = looks.is_some();
    progress(state);
    let is_enough = AtomicBool::new(false);
    let mut look = || -> Result<(), RowsError> {
        if let Some(looks) = &mut looks {
            looks.look(sweep, &rows)?;
            is_enough.store(looks.is_enough, Ordering::Relaxed);
        }
        Ok(())
    };
    look()?;
    let places: Box<dyn Iterator<Item = SweepRun> + Send> = match by_seed {
        true => sweep.places_by_row(sweep.runs()),
        false => Box::new(sweep.places()),
    };
    let next = Mutex::new(places);
    let next = || match is_enough.load(Ordering::Relaxed) {
        true => Ok(None),
        false => next_undone(sweep, &next, &rows),
    };
    let played = on_threads(sweep, playing, &next, |finished| {
        // All rows that arrived while the last batch was written to the disk are the next batch.
        while let Ok(first) = finished.recv() {
            let mut batch = Some(first);
            while let Some(result) = batch.take().or_else(|| finished.try_recv().ok()) {
                let (place, row) = result?;
                rows.write(sweep.row_of(place), &row)?;
                state.done += 1;
                state.count(row.status);
            }
            rows.sync()?;
            look()?;
            progress(state);
        }
        Ok(state)
    })?;
    Ok((played, rows))
}

/// Plays the runs of these numbers and stores nothing: `take` receives each row as soon as its run is over, in any order.
/// Returns the number of played runs.
///
/// # Errors
/// An assertion cannot be judged.
pub(crate) fn hand_over(
    sweep: &Sweep,
    runs: Range<u64>,
    playing: &PlayOptions<'_>,
    mut take: impl FnMut(SweepRun, &Row),
) -> Result<u64, SweepError> {
    check_assertions(sweep, playing.judge)?;
    let next = Mutex::new(sweep.places_of(runs));
    let next = || Ok(next.lock().expect("no thread panics while holding it").next());
    on_threads(sweep, playing, &next, |finished| {
        let mut played = 0;
        for result in finished {
            let (place, row) = result?;
            take(place, &row);
            played += 1;
        }
        Ok(played)
    })
}

/// The result of a thread: a run's row, or the error that ended the thread.
type ThreadResult = Result<(SweepRun, Row), RowsError>;

/// Plays the runs that `next` returns on several threads, until it returns none or `stop` is set. `receive` handles the rows.
fn on_threads<T>(
    sweep: &Sweep,
    playing: &PlayOptions<'_>,
    next: &(impl Fn() -> Result<Option<SweepRun>, RowsError> + Sync),
    receive: impl FnOnce(mpsc::Receiver<ThreadResult>) -> Result<T, SweepError>,
) -> Result<T, SweepError> {
    // The queue is short enough that few rows wait for the disk, and long enough that no thread does.
    let jobs = playing.jobs.max(1);
    let (sender, finished) = mpsc::sync_channel::<ThreadResult>(4 * jobs);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let sender = sender.clone();
            scope.spawn(move || {
                while !playing.stop.load(Ordering::Relaxed) {
                    let place = match next() {
                        Ok(Some(place)) => place,
                        Ok(None) => break,
                        Err(error) => {
                            // The other end is gone only if a write has failed, which is reported already.
                            let _told_already = sender.send(Err(error));
                            break;
                        }
                    };
                    let row = run(&sweep.cells[place.cell], place.seed, playing);
                    if sender.send(Ok((place, row))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // `receive` owns the receiver, so that threads that wait to send a row notice if an earlier one could not be written.
        receive(finished)
    })
}

/// Reports assertions that cannot be judged before the first run. Checks each distinct list of assertions once.
fn check_assertions(sweep: &Sweep, judge: MakeJudge) -> Result<(), SweepError> {
    let seeds = SeedTree::new(sweep.manifest.seeds.first);
    for (index, cell) in sweep.cells.iter().enumerate() {
        let scenario = &cell.scenario;
        if sweep.cells[..index].iter().all(|before| before.scenario.assertions != scenario.assertions) {
            let judged = judge(scenario, &scenario.plan(&scenario.testnet(seeds), seeds));
            judged.map_err(|why| SweepError::Assertion { file: sweep.manifest.scenario.clone(), why })?;
        }
    }
    Ok(())
}

/// Returns the progress of the runs that are done already.
fn found(sweep: &Sweep, rows: &Rows) -> Result<Progress, SweepError> {
    let mut state = Progress { total: sweep.len(), ..Progress::default() };
    let written = rows.places()?;
    for place in sweep.places_by_row(written) {
        if let Some(row) = rows.read(sweep.row_of(place))? {
            state.done += 1;
            state.found += 1;
            state.count(row.status);
        }
    }
    Ok(state)
}

fn next_undone(
    sweep: &Sweep,
    next: &Mutex<impl Iterator<Item = SweepRun>>,
    rows: &Rows,
) -> Result<Option<SweepRun>, RowsError> {
    let mut places = next.lock().expect("no thread panics while holding it");
    for place in places.by_ref() {
        if rows.read(sweep.row_of(place))?.is_none() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Plays one run. A panic is a result of that run, and the sweep goes on.
fn run(cell: &Cell, seed: u64, playing: &PlayOptions<'_>) -> Row {
    let died = || Row::died(None);
    let scenario = &cell.scenario;
    let play = || {
        let seeds = SeedTree::new(seed);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let metrics = Metrics::new(&plan);
        let Ok(judge) = (playing.judge)(scenario, &plan) else { return died() };
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
        observers.extend(judge.observer());
        let may_go_on = (playing.limit)();
        let played = scenario.play_while(&plan, StageKind::Inline, observers, |_| may_go_on());
        let Ok(mut outcome) = played else { return died() };
        if outcome.ended == Ended::Interrupted {
            outcome.ended = Ended::RealTime;
        }
        let figures = metrics.finish(outcome.end);
        let verdicts = judge.verdicts(outcome.end, outcome.ended);
        let bits = |wanted: Ruling| {
            let so = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.ruling == wanted);
            so.fold(0, |bits, (index, _)| bits | 1 << index)
        };
        let (broken, undecided) = (bits(Ruling::Broken), bits(Ruling::Undecided));
        Row {
            status: Status::new(outcome.ended, broken != 0),
            ended: columns::number_of_end(outcome.ended),
            broken,
            undecided,
            figures: columns::figures(&figures.total),
            digest: outcome.digest.0,
        }
    };
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|_| died())
}
