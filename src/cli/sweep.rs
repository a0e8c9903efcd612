//! `dposlab sweep`: many runs of one scenario, and what they say together.

use super::{Failure, interrupt::stop_on_interrupt, memory::Memory};
use crate::{
    check,
    report::sweep::{
        Seeds, Shard, Sweep as Plan, SweepError,
        engine::{Progress, play},
        results::{self, CellSummary, Summary},
    },
    scenario::{Override, Variation, memory::Need},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    thread,
};

/// Run a scenario with many seeds and every combination of values, on all cores.
///
/// Leaves in --out a row a run (runs.parquet, runs.csv), the runs that failed (failures.csv), distributions with their
/// confidence intervals (summary.json), and report.html. An interrupted sweep, even a killed one, goes on where it was when
/// the same command is given again; no run is counted twice. A run that is ended before its last round by the stall rule or
/// the time limit is censored: it has neither succeeded nor failed. Exit code 0: no run failed; 1: some did, and the first
/// ones are named, each with the command that repeats it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Sweep {
    /// The scenario, a TOML file (see scenarios/).
    scenario: PathBuf,
    /// The seeds, the last one not included.
    #[arg(long, value_name = "FIRST..END", default_value = "0..100")]
    seeds: Seeds,
    /// Vary a value of the scenario; every combination is run with every seed. May be given again.
    #[arg(long, value_name = "PATH=VALUE,VALUE")]
    vary: Vec<String>,
    /// Replace a value of the scenario in all runs. May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Override>,
    /// Runs at a time; by default one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder for what comes of it.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Run one of several parts of the sweep, for instance on another machine; `dposlab merge` joins them.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Print the summary as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: Memory,
}

const EXAMPLES: &str = "\
Examples:
  dposlab sweep scenarios/missed-slots.toml --seeds 0..1000 --out out/missed
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --vary network.latency.max_ms=100,1000,4000 --out out/latency
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 1/2 --out out/part-1      on one machine
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 2/2 --out out/part-2      on another one
  dposlab merge out/part-1 out/part-2 --out out/whole";

/// Times to converge that are no longer than this are not told.
const SLOT_SECONDS: f64 = 8.0;

/// Failed runs that are printed.
const FAILURES_SHOWN: usize = 10;

impl Sweep {
    /// Runs the sweep, or what is left of it.
    ///
    /// # Errors
    /// The scenario is none, the folder holds another sweep, it was interrupted, or a run failed.
    pub fn run(self) -> Result<(), Failure> {
        let vary = self.vary.iter().map(|vary| vary.parse()).collect::<Result<Vec<Variation>, _>>();
        let vary = vary.map_err(|why| Failure::usage(format!("--vary {why}")))?;
        let plan = Plan::new(&self.scenario, self.seeds, &self.set, &vary, &self.vary, self.shard).map_err(failure)?;
        let jobs = self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        let most = plan.cells.iter().map(|cell| cell.scenario.memory()).max_by_key(Need::bytes).unwrap_or_default();
        self.memory.check(&self.scenario, &most, plan.len().min(jobs as u64))?;
        let stop = stop_on_interrupt()?;
        let bar = progress_bar(plan.len());
        let mut found = None;
        let progress = play(&plan, &self.out, jobs, &stop, check::judge, |progress| show(&bar, &mut found, progress));
        bar.finish_and_clear();
        let (progress, rows) = progress.map_err(failure)?;
        if progress.done < progress.total {
            return Err(Failure::broken(format!(
                "interrupted: {} of {} runs are done and kept in {}; the same command goes on from there",
                progress.done,
                progress.total,
                self.out.display()
            )));
        }
        let summary = results::write(&plan, &rows, &self.out).map_err(failure)?;
        tell(&summary, &self.out, self.json)
    }
}

fn show(bar: &ProgressBar, found: &mut Option<u64>, progress: Progress) {
    if found.is_none() {
        // What was found done took no time now, so it must not make the rest look quick.
        *found = Some(progress.found);
        bar.set_position(progress.found);
        bar.reset_eta();
    }
    bar.set_position(progress.done);
    let counts = [(progress.failed, "failed"), (progress.censored, "censored")];
    let told = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    bar.set_message(told.collect::<String>());
}

/// Shown on a terminal only, and gone when the sweep is over.
fn progress_bar(runs: u64) -> ProgressBar {
    let template = "{bar:40} {pos}/{len} runs, {per_sec}, {eta} left{msg}";
    let style = ProgressStyle::with_template(template).expect("the template is fixed");
    ProgressBar::new(runs).with_style(style)
}

/// A sweep's error, by whose mistake it was.
pub(super) fn failure(error: SweepError) -> Failure {
    match error.is_bad_input() {
        true => Failure::usage(error),
        false => Failure::broken(error),
    }
}

/// Prints what came of a sweep.
///
/// # Errors
/// Some runs failed.
pub(super) fn tell(summary: &Summary, folder: &Path, as_json: bool) -> Result<(), Failure> {
    super::output::line(&match as_json {
        true => json!(summary).to_string(),
        false => text(summary, folder),
    });
    match summary.failed {
        0 => Ok(()),
        _ => Err(Failure::Told),
    }
}

/// How long the network took to come together after a fault, where that took time; with what is censored told apart.
fn time_to_converge(cell: &CellSummary) -> Option<String> {
    let times = cell.converged_seconds.filter(|times| times.watched_max > SLOT_SECONDS)?;
    let known = |seconds: Option<f64>| seconds.map_or("not known".to_owned(), |seconds| format!("{seconds:.1} s"));
    let varied: Vec<String> = cell.varied.iter().map(|(path, value)| format!("{path}={value}, ")).collect();
    Some(format!(
        "{}time to converge: median {} (95 %: {} to {}), three quarters within {}; {} of {} runs converged, {} censored after \
         up to {:.1} s (Kaplan-Meier)",
        varied.concat(),
        known(times.p50),
        known(times.p50_low),
        known(times.p50_high),
        known(times.p75),
        times.seen,
        times.runs,
        times.censored,
        times.watched_max,
    ))
}

fn text(summary: &Summary, folder: &Path) -> String {
    let manifest = &summary.manifest;
    let censored = match summary.censored {
        0 => String::new(),
        some => format!(", {some} censored: ended before their last round, neither successes nor failures"),
    };
    let head = format!("{}: {} runs, {} failed{censored}", manifest.scenario, summary.runs, summary.failed);
    let mut lines = vec![head, String::new()];
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["", "runs", "ended well", "slots missed", "orphaned", "rollbacks", "agreement", "propagation"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    for cell in &summary.cells {
        let varied: Vec<String> = cell.varied.iter().map(|(path, value)| format!("{path}={value}")).collect();
        let mean = |figure: &str| match cell.figures.get(figure) {
            None => "-".to_owned(),
            Some(values) => match values.confidence {
                Some(confidence) => format!("{:.3} ± {:.3}", values.mean, confidence.high - values.mean),
                None if values.count > 1 => format!("{:.3} (all)", values.mean),
                None => format!("{:.3}", values.mean),
            },
        };
        let ok = cell.ok.map_or("-".to_owned(), |ok| {
            let percent = |share: f64| share * 100.0;
            let (low, high) = (percent(ok.confidence.low), percent(ok.confidence.high));
            format!("{:.1} % ({low:.1}-{high:.1})", percent(ok.share))
        });
        table.add_row([
            if varied.is_empty() { "all".to_owned() } else { varied.join(" ") },
            cell.runs.to_string(),
            ok,
            mean("missed_slots"),
            mean("orphaned"),
            mean("rollbacks"),
            mean("agreement_mean"),
            mean("propagation_p50_ms"),
        ]);
    }
    lines.push(table.to_string());
    lines.push(String::new());
    let notes: BTreeSet<&String> = summary.cells.iter().flat_map(|cell| &cell.notes).collect();
    lines.extend(notes.into_iter().map(|note| format!("note: {note}")));
    for cell in &summary.cells {
        lines.extend(time_to_converge(cell));
    }
    lines.push(
        "means with 95 % confidence (Student), '(all)' where every run has the same value; shares with Wilson's interval, of \
         none and of all with the exact one; propagation is the median, in milliseconds"
            .to_owned(),
    );
    for failed in summary.failures.iter().take(FAILURES_SHOWN) {
        let why = if failed.broken.is_empty() { String::new() } else { format!(" ({})", failed.broken.join("; ")) };
        lines.push(format!("{}: seed {}{why}: {}", failed.status, failed.seed, failed.reproduce));
    }
    if summary.failed > FAILURES_SHOWN as u64 {
        let more = summary.failed - FAILURES_SHOWN as u64;
        lines.push(format!("and {more} more: {}", folder.join("failures.csv").display()));
    }
    lines.push(format!("report:  {}", folder.join("report.html").display()));
    lines.join("\n")
}
