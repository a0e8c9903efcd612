//! `dposlab sweep`: many runs of one scenario and their summary.

use super::{
    Failure, interrupt::stop_on_interrupt, origin, output, parent::WithParent, progress::Progress as ProgressArguments,
    shard::Part, span::RunLimits,
};
use crate::{
    check,
    report::{
        provenance::SweepStudy,
        sweep::{
            Seeds, Sweep as Plan, SweepError, SweepValues,
            engine::{ContinueCheck, PlayOptions, Progress, hand_over, play},
            handover,
            points::Points,
            results,
            rows::Rows,
            stopping_rule::{Looks, StoppingRule, UntilReport},
            summary::{CellSummary, Summary},
        },
    },
    scenario::{Override, Scenario, workload::WorkloadKind},
    statistics::Interval,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

/// Run a scenario with many seeds and every combination of values, on all cores.
///
/// Leaves in --out a row a run (runs.parquet, runs.csv), the runs that failed (failures.csv), distributions with their
/// confidence intervals (summary.json), and report.html. An interrupted sweep, even a killed one, goes on where it was when
/// the same command is given again; no run is counted twice. The same command with a later end of --seeds plays the further seeds. A run that is ended before its last round by the stall rule or
/// the time limit is censored: it has neither succeeded nor failed. One whose program or process ended before it did has died:
/// it fails, and says nothing of its network. Exit code 0: no run failed; 1: some did, and the first ones are named, each with
/// the command that repeats it. With --shard it is 0 when all runs of the part are written down, whatever came of them: a batch
/// system must not repeat what ended as it should, and `dposlab merge` tells what failed.
///
/// With a folder that --out has left it plays all of its runs again, from what the folder holds alone, and compares every file. Exit
/// code 0: all of it came out the same; 1: something did not, and the first difference is named.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sweep {
    /// The scenario, a TOML file (see scenarios/); or a folder that --out has left, to repeat its sweep.
    #[arg(value_name = "SCENARIO|DIR")]
    pub(super) scenario: PathBuf,
    /// The seeds, the last one not included; 0..100 where none are given.
    #[arg(long, value_name = "FIRST..END")]
    pub(super) seeds: Option<Seeds>,
    /// Vary a value of the scenario; every combination is run with every seed. May be given again.
    #[arg(long, value_name = "PATH=VALUE,VALUE")]
    pub(super) vary: Vec<String>,
    /// Play the points of a table: paths in its first line, values of all of them in each other one, as `dposlab points` draws them.
    /// Every combination of --vary is run with each point.
    #[arg(long, value_name = "FILE.csv")]
    pub(super) points: Option<PathBuf>,
    /// Replace a value of the scenario in all runs, or add an entry to a list: 'assert[+]={ finally = "missed == 0" }'. May be
    /// given again.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<Override>,
    /// Runs at a time; by default one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder for what comes of it, and for what repeats the sweep.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Run one of several parts of the sweep, for instance on another machine; `dposlab merge` joins them.
    ///
    /// `auto` takes the part from the batch system, never unless it is asked: in an array of Slurm from SLURM_ARRAY_TASK_ID,
    /// _COUNT, _MIN, _MAX and _STEP, in an Indexed Job of Kubernetes from JOB_COMPLETION_INDEX and JOB_COMPLETIONS. `auto/N`
    /// takes N parts and indices from 0 to N-1, also where only some tasks of an array are given again.
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Part>,
    /// Print as one JSON object what would be run: the number of runs, and what those of each combination of values cost, and play
    /// none.
    #[arg(long, conflicts_with_all = ["shard", "out"])]
    pub(super) plan: bool,
    /// Play the runs of these numbers alone, the last one not included, print a row a line as each ends, and write nothing. For
    /// programs that deal a sweep out to machines; exit code 0 when all have ended.
    #[arg(long, value_name = "FIRST..END", conflicts_with_all = ["shard", "out", "plan", "json"])]
    pub(super) only: Option<Seeds>,
    /// Take the rows of such files in place of playing runs. A run that no file has is an error.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["shard", "only", "plan"])]
    pub(super) gather: Vec<PathBuf>,
    /// Compare each combination of values with the first one, seed by seed: the mean difference of each figure with its interval, the
    /// correlation of both, and how many times smaller the variance of the difference is than that of independent runs.
    #[arg(long, conflicts_with_all = ["shard", "only", "plan"])]
    pub(super) compare: bool,
    /// End with the first seed after which the mean of a figure is known so well in every combination of values: its 95 % interval is
    /// narrower than WIDTH. --seeds says how many there are at most. The interval holds although what was seen decides when the sweep
    /// ends. The same command with a smaller width or more seeds goes on from there.
    #[arg(long, value_name = "FIGURE<WIDTH", conflicts_with_all = ["shard", "only", "plan", "gather"])]
    pub(super) until_ci: Option<StoppingRule>,
    /// Print the summary as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    #[command(flatten)]
    parent: WithParent,
    #[command(flatten)]
    pub(super) progress: ProgressArguments,
}

const EXAMPLES: &str = "\
Examples:
  dposlab sweep scenarios/missed-slots.toml --seeds 0..1000 --out out/missed
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --vary network.latency.max_ms=100,1000,4000 --out out/latency
  dposlab sweep scenarios/slow-answers.toml --seeds 0..60 --vary rules.base=reference,corrected \
      --compare --out out/compared
  dposlab sweep scenarios/missed-slots.toml --seeds 0..100000 --until-ci 'missed.rate<0.01' --out out/known
  dposlab sweep out/missed                  plays all of it again, and says whether it came out the same
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 1/2 --out out/part-1      on one machine
  dposlab sweep scenarios/healthy.toml --seeds 0..200 --shard 2/2 --out out/part-2      on another one
  dposlab merge out/part-1 out/part-2 --out out/whole";

/// The largest number of failed runs that are printed.
const FAILURES_SHOWN: usize = 10;

impl Sweep {
    /// Plays the sweep, or its remaining runs.
    ///
    /// # Errors
    /// The scenario is invalid, the folder holds another sweep, the sweep was interrupted, or a run failed.
    pub fn run(mut self) -> Result<(), Failure> {
        self.parent.watch()?;
        if self.scenario.is_dir() {
            return self.repeat();
        }
        self.set.extend(self.limits.max_events());
        let shard = self.shard.map(|Part(shard)| shard);
        let points = self.points.as_deref().map(Points::read).transpose().map_err(|why| failure(why.into()))?;
        let varied = SweepValues { vary: &self.vary, points: points.as_ref() };
        let seeds = self.seeds.unwrap_or(Seeds { first: 0, end: 100 });
        let mut plan = Plan::new(&self.scenario, seeds, &self.set, varied, shard).map_err(failure)?;
        plan.command = origin::command();
        plan.study = SweepStudy {
            compare: self.compare,
            until_ci: self.until_ci.map(|until| until.to_string()),
            max_time: self.limits.has_time(),
            ..plan.study
        };
        if self.compare {
            plan.check_compared().map_err(failure)?;
        }
        match (&self.only, &self.out) {
            _ if self.plan => self.print_plan(&plan),
            (Some(only), _) => self.play_only(&plan, only.first..only.end),
            (None, Some(out)) if !self.gather.is_empty() => {
                let rows = handover::gather(&plan, &self.gather, out).map_err(failure)?;
                let summary = results::write(&plan, &rows, out, None).map_err(failure)?;
                origin::describe_sweep(&plan, out)?;
                tell(&summary, out, self.json)
            }
            (None, Some(out)) => self.play(plan, out),
            (None, None) => Err(Failure::usage("found no --out, allowed are --out DIR, --plan and --only FIRST..END")),
        }
    }

    /// Plays the remaining runs and writes the results.
    fn play(&self, mut plan: Plan, out: &Path) -> Result<(), Failure> {
        let (progress, rows, until) = self.play_into(&mut plan, out, self.until_ci)?;
        if progress.done < progress.total && until.is_none() {
            return Err(Failure::broken(format!(
                "interrupted: {} of {} runs are done and kept in {}; the same command goes on from there",
                progress.done,
                progress.total,
                out.display()
            )));
        }
        let summary = results::write(&plan, &rows, out, until).map_err(failure)?;
        origin::describe_sweep(&plan, out)?;
        match tell(&summary, out, self.json) {
            // A part succeeds when all its runs are written down, including failed ones.
            Err(Failure::Told) if self.shard.is_some() => Ok(()),
            told => told,
        }
    }

    /// Plays the remaining runs of a folder. With `until`, it ends when the mean is known well enough, and reduces the plan to the seeds
    /// that were played. If there is no report and runs remain, the sweep was interrupted.
    pub(super) fn play_into(
        &self,
        plan: &mut Plan,
        out: &Path,
        until: Option<StoppingRule>,
    ) -> Result<(Progress, Rows, Option<UntilReport>), Failure> {
        let stop = stop_on_interrupt()?;
        let bar = progress_bar(plan.len());
        let mut found = None;
        let mut looks = until.map(|until| Looks::new(until, plan));
        let progress = play(plan, out, &self.playing(&stop), looks.as_mut(), |progress| {
            show(&bar, &mut found, progress);
            let more = json!({ "failed": progress.failed, "censored": progress.censored, "found": progress.found });
            self.progress.tell(progress.done, progress.total, more);
        });
        bar.finish_and_clear();
        let (progress, rows) = progress.map_err(failure)?;
        let is_over = |looks: &Looks| looks.is_enough || progress.done == progress.total;
        let report = looks.filter(is_over).map(|looks| {
            plan.end_after(looks.seeds);
            looks.report(plan)
        });
        Ok((progress, rows, report))
    }

    /// Plays some runs and prints their rows.
    fn play_only(&self, plan: &Plan, runs: Range<u64>) -> Result<(), Failure> {
        let total = plan.runs();
        if runs.end > total {
            return Err(Failure::usage(format!("--only: found run {}, allowed are those below {total}", runs.end - 1)));
        }
        let asked = runs.end - runs.start;
        let stop = stop_on_interrupt()?;
        output::line(&handover::head(&plan.manifest));
        let played = hand_over(plan, runs, &self.playing(&stop), |place, row| {
            output::line(&handover::line(place, row));
            if output::is_unread() {
                stop.store(true, Ordering::Relaxed);
            }
        });
        match played.map_err(failure)? {
            played if played == asked => Ok(()),
            played => Err(Failure::broken(format!("interrupted: {played} of {asked} runs were played"))),
        }
    }

    /// Prints the plan of the sweep. The cost of a combination is that of one of its runs, as returned by [`cost`].
    fn print_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let mut files: BTreeSet<String> =
            plan.cells.iter().flat_map(|cell| cell.scenario.files()).map(str::to_owned).collect();
        let own = plan.files.texts().map(|(file, _)| file).chain(self.points.as_deref());
        files.extend(own.map(|file| file.display().to_string()));
        let cells = plan.cells.iter().map(|cell| json!({ "sets": cell.sets, "cost": cost(&cell.scenario) }));
        let cells: Vec<_> = cells.collect();
        let rows_of = plan.manifest.of_rows();
        output::line(&json!({ "rows_of": rows_of, "runs": plan.runs(), "cells": cells, "files": files }).to_string());
        Ok(())
    }

    fn playing<'a>(&self, stop: &'a AtomicBool) -> PlayOptions<'a> {
        let limits = self.limits;
        let limit = Box::new(move || -> ContinueCheck {
            let timer = limits.timer();
            Box::new(move || !timer.is_over())
        });
        PlayOptions { jobs: super::jobs(self.jobs.map(usize::from)), stop, judge: check::judge, limit }
    }
}

/// The cost of a run in an arbitrary unit: blocks times the sum of nodes and links, plus transactions times nodes.
fn cost(scenario: &Scenario) -> u64 {
    let nodes = scenario.network.nodes();
    let blocks = u64::from(scenario.last_height().0);
    let seconds = blocks * u64::from(scenario.network.block_time_s);
    let transactions = scenario.workloads.iter().map(|workload| match &workload.kind {
        WorkloadKind::Generate(generate) => (generate.per_second * seconds as f64) as u64,
        WorkloadKind::List(list) => list.transactions.len() as u64,
        WorkloadKind::Chain(_) | WorkloadKind::Trace(_) => 0,
    });
    let links = scenario.network.model.topology.neighbours(nodes);
    let nodes = u64::from(nodes);
    blocks * (nodes + links) + transactions.sum::<u64>().saturating_mul(nodes)
}

fn show(bar: &ProgressBar, found: &mut Option<u64>, progress: Progress) {
    if found.is_none() {
        // Runs that an earlier process played took no time now, so they must not shorten the estimate for the others.
        *found = Some(progress.found);
        bar.set_position(progress.found);
        bar.reset_eta();
    }
    bar.set_position(progress.done);
    let counts = [(progress.failed, "failed"), (progress.censored, "censored")];
    let told = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    bar.set_message(told.collect::<String>());
}

/// Returns a progress bar. Only a terminal shows it, until the caller clears it.
fn progress_bar(runs: u64) -> ProgressBar {
    let template = "{bar:40} {pos}/{len} runs, {per_sec}, {eta} left{msg}";
    let style = ProgressStyle::with_template(template).expect("the template is fixed");
    ProgressBar::new(runs).with_style(style)
}

/// Converts the error of a sweep. Bad input is the caller's mistake.
pub(super) fn failure(error: SweepError) -> Failure {
    match error.is_bad_input() {
        true => Failure::usage(error),
        false => Failure::broken(error),
    }
}

/// Prints the summary of a sweep.
///
/// # Errors
/// Some runs failed, or the mean that was asked for is not known well enough.
pub(super) fn tell(summary: &Summary, folder: &Path, as_json: bool) -> Result<(), Failure> {
    super::output::line(&match as_json {
        true => json!(summary).to_string(),
        false => text(summary, folder),
    });
    let is_known = summary.until_ci.as_ref().is_none_or(|until| until.reached);
    match summary.failed {
        0 if is_known => Ok(()),
        _ => Err(Failure::Told),
    }
}

/// Describes each assertion that did not hold in all runs: the numbers of runs in which it held, failed and stayed undecided.
fn held(cell: &CellSummary) -> Vec<String> {
    let varied: Vec<String> = cell.varied.iter().map(|(path, value)| format!("{path}={value}, ")).collect();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let assertions = cell.assertions.iter().filter_map(|held| {
        let (holds, bounds) = (held.holds.map_or((0, 0), |holds| (holds.so, holds.of)), held.bounds?);
        let ((so, of), open) = (holds, held.undecided);
        if open == 0 && so == of {
            return None;
        }
        let share = match open {
            0 => percent(bounds.low),
            _ => format!("{} to {} of all, by what those are", percent(bounds.low), percent(bounds.high)),
        };
        let text = &held.assertion;
        Some(format!("{}{text}: held in {so} runs, not in {}, undecided in {open}: {share}", varied.concat(), of - so))
    });
    assertions.collect()
}

/// Describes the time that the network took to converge after a fault, if it took more than a slot; censored runs are counted apart.
fn time_to_converge(cell: &CellSummary) -> Option<String> {
    let times = cell.converged_seconds.filter(|times| times.watched_max > f64::from(cell.slot_s))?;
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

/// The printed figures of a comparison. `summary.json` has all.
const COMPARED_SHOWN: [&str; 5] = ["missed_slots", "orphaned", "rollbacks", "agreement_mean", "propagation_p50_ms"];

/// Formats a probability with two digits.
fn chance(p: f64) -> String {
    if p < 0.01 { format!("{p:.1e}") } else { format!("{p:.2}") }
}

/// Describes how combinations of values differ from the first one, seed by seed.
fn compared(summary: &Summary) -> Vec<String> {
    let words = |varied: &BTreeMap<String, String>| {
        varied.iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>().join(" ")
    };
    let mut lines = Vec::new();
    for compared in &summary.compared {
        let left_out = match compared.left_out {
            0 => String::new(),
            some => format!(" ({some} seeds are left out: a run was censored or died)"),
        };
        lines.push(format!("{} minus {}, seed by seed{left_out}:", words(&compared.varied), words(&compared.with)));
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_header(["", "pairs", "difference", "correlation", "variance saved"]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
        let shown = COMPARED_SHOWN.iter().filter_map(|name| Some((*name, compared.figures.get(name)?)));
        for (name, paired) in shown {
            let difference = match paired.confidence {
                Some(confidence) => format!("{:.3} ± {:.3}", paired.difference, confidence.high - paired.difference),
                None if paired.pairs > 1 => format!("{:.3} (all)", paired.difference),
                None => format!("{:.3}", paired.difference),
            };
            let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
            table.add_row([
                name.to_owned(),
                paired.pairs.to_string(),
                difference,
                or_dash(paired.correlation.map(|correlation| format!("{correlation:.2}"))),
                or_dash(paired.variance_saved.map(|saved| format!("{saved:.1} times"))),
            ]);
        }
        lines.push(table.to_string());
        if let Some(times) = compared.converged {
            lines.push(format!(
                "converged: sooner in {} pairs, later in {} (sign test by seed: p = {})",
                times.second_sooner,
                times.first_sooner,
                chance(times.p)
            ));
        }
        lines.push(String::new());
    }
    lines
}

/// Describes the mean that decided when the sweep ended.
fn until(report: &UntilReport) -> String {
    let head = match report.reached {
        true => format!("{} is known to less than {}:", report.figure, report.width),
        false => format!(
            "{} is not known to less than {}, the same command with more --seeds goes on:",
            report.figure, report.width
        ),
    };
    let mut lines = vec![head];
    for cell in &report.cells {
        let varied: Vec<String> = cell.varied.iter().map(|(path, value)| format!("{path}={value}, ")).collect();
        let (Interval { low, high }, runs) = (cell.confidence, cell.runs);
        let mean = cell.mean.map_or("-".to_owned(), |mean| format!("{mean:.6}"));
        lines.push(format!("  {}{mean} ({low:.6} to {high:.6}), {runs} runs", varied.concat()));
    }
    lines.join("\n")
}

fn text(summary: &Summary, folder: &Path) -> String {
    let manifest = &summary.manifest;
    let censored = match summary.censored {
        0 => String::new(),
        some => format!(", {some} censored: ended before their last round, neither successes nor failures"),
    };
    let died = match summary.died {
        0 => String::new(),
        some => format!(" ({some} of them died, which says nothing of their networks)"),
    };
    let (runs, failed, rules) = (summary.runs, summary.failed, &summary.rules);
    let head = format!("{}: {runs} runs, {failed} failed{died}{censored}; {rules}", manifest.scenario);
    let mut lines = vec![head, String::new()];
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header([
        "",
        "runs",
        "cut short",
        "ended well",
        "slots missed",
        "orphaned",
        "rollbacks",
        "agreement",
        "propagation",
    ]);
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
            let of = ok.of;
            format!("{:.1} % of {of} ({low:.1}-{high:.1})", percent(ok.share))
        });
        table.add_row([
            if varied.is_empty() { "all".to_owned() } else { varied.join(" ") },
            cell.runs.to_string(),
            cell.cut_short.to_string(),
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
        lines.extend(held(cell));
        lines.extend(time_to_converge(cell));
    }
    lines.extend(compared(summary));
    lines.extend(summary.until_ci.as_ref().map(until));
    lines.push(
        "means with 95 % confidence (Student), '(all)' where every run has the same value; shares with Wilson's interval, of \
         none and of all with the exact one; propagation is the median, in milliseconds"
            .to_owned(),
    );
    if summary.cells.iter().any(|cell| cell.cut_short > 0) {
        lines.push(
            "runs that are cut short ended before their last round: their figures cover less time, and those with status \
             'censored' are neither successes nor failures"
                .to_owned(),
        );
    }
    for failed in summary.failures.iter().take(FAILURES_SHOWN) {
        let why = if failed.broken.is_empty() { String::new() } else { format!(" ({})", failed.broken.join("; ")) };
        let by = failed.ended.as_deref().filter(|_| failed.status == "died").map(|by| format!(": {by}"));
        let by = by.unwrap_or_default();
        lines.push(format!("{}{by}: seed {}{why}: {}", failed.status, failed.seed, failed.reproduce));
    }
    if summary.failed > FAILURES_SHOWN as u64 {
        let more = summary.failed - FAILURES_SHOWN as u64;
        lines.push(format!("and {more} more: {}", folder.join("failures.csv").display()));
    }
    lines.push(format!("report:  {}", folder.join("report.html").display()));
    lines.join("\n")
}
