//! `dposlab run`: plays a scenario and prints its result.

use super::{
    Failure, interrupt::stop_on_interrupt, memory, origin, parent::WithParent, progress::Progress, span::RunLimits,
};
use crate::{
    check,
    protocol::{Height, crypto::CryptoMode},
    report::{
        Metrics,
        bundle::{About, Bundle, Output, command, shown},
        metrics::{Figures, Totals},
        provenance::{KeptStudy, Provenance, RunStudy, parquet_metadata},
        rounds::totals,
        table,
        trace::{self, TraceFormat, TraceWriter, line::Header},
    },
    scenario::{
        Ended, Judge, Outcome, Override, Scenario, ScenarioFiles, StageKind, Verdict,
        repetition::{RepetitionResult, play_twice},
    },
    sim::{Observer, Plan, SeedTree},
};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

/// Play a scenario file and print who owned, forged and missed which slot.
///
/// The run is a function of the file and the seed: the same two give the same chain and the same digest, always. Ctrl-C ends
/// it after the running slot, and the slots until then are printed and written. If no block comes for the time of the
/// scenario's `stall`, or a limit of time or events is reached, the run ends there: it is censored, and assertions about its
/// end are undecided. Exit code 0: the last round was reached, and all assertions hold; 1: one does not, or the run ended
/// before its last round, and the summary says whether it halted, was censored or interrupted; 2: it could not be played.
///
/// With a folder that --out has left it plays that run again, from what the folder holds alone, and compares every file. Exit code
/// 0: all of it came out the same; 1: something did not, and the first difference is named.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The scenario, a TOML file (see scenarios/); or a folder that --out has left, to repeat its run.
    #[arg(value_name = "SCENARIO|DIR")]
    pub(super) scenario: PathBuf,
    /// The seed all keys, latencies and choices are drawn from; 1 where none is given.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Replace a value of the scenario; a list's entry by its index: 'fault[0].rounds=3', a new one by [+]:
    /// 'assert[+]={ finally = "missed == 0" }'. May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<Override>,
    /// The host of the actors. It changes the speed and not the outcome.
    #[arg(long, value_enum, default_value_t)]
    stage: StageKind,
    /// The treatment of signatures: modelled ones cost a hash, and change nothing but themselves and ids.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) crypto: Option<CryptoMode>,
    /// Run it twice, and stop at the first event in which the second run differs from the first. Nothing is written.
    #[arg(long, conflicts_with_all = ["out", "trace", "trace_network"])]
    pub(super) check_determinism: bool,
    /// Leave summary.json, events.jsonl, tables as CSV and Parquet, report.html, and what repeats the run, in this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Leave these outputs out of the folder, such as events,blocks. A month of 51 delegates has some 9 GB of events.
    #[arg(long, value_enum, value_name = "OUTPUT,OUTPUT", value_delimiter = ',', requires = "out")]
    pub(super) without: Vec<Output>,
    /// Write every event to this file as it happens: .jsonl for JSON lines (docs/trace.md), .json for a trace viewer.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// The form of the trace, whatever the file is called; 'perfetto' is for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_enum, requires = "trace", value_name = "FORM")]
    trace_format: Option<TraceFormat>,
    /// Put messages between actors into traces as well: sent, when they arrive, and lost.
    #[arg(long)]
    pub(super) trace_network: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    #[command(flatten)]
    parent: WithParent,
    #[command(flatten)]
    progress: Progress,
}

const EXAMPLES: &str = "\
Examples:
  dposlab run scenarios/missed-slots.toml --seed 7
  dposlab run scenarios/missed-slots.toml --set network.latency.max_ms=400 --out out/slow
  dposlab run out/slow                      plays it again, and says whether it came out the same
  dposlab run scenarios/healthy.toml --set rounds=20 --out out/long --without events,blocks
  dposlab run scenarios/healthy.toml --trace run.json --trace-network     then open it in ui.perfetto.dev";

impl Run {
    /// Plays the scenario.
    ///
    /// # Errors
    /// The file is no scenario, the output cannot be written, the run broke off or was interrupted, or a repetition differs.
    pub fn run(mut self) -> Result<(), Failure> {
        self.parent.watch()?;
        if self.scenario.is_dir() {
            return self.repeat();
        }
        // The output of the run names the mode like any other replaced value.
        let mode = self.crypto.and_then(|mode| mode.to_possible_value());
        self.set.extend(
            mode.map(|mode| format!("crypto={}", mode.get_name()).parse()).transpose().map_err(Failure::usage)?,
        );
        self.set.extend(self.limits.max_events());
        let files = ScenarioFiles::read(&self.scenario).map_err(Failure::usage)?;
        let scenario = Scenario::load_from(&files, &self.set).map_err(Failure::usage)?;
        if self.check_determinism { self.run_twice(&scenario) } else { self.run_once(&scenario, &files) }
    }

    pub(super) fn seeds(&self) -> SeedTree {
        SeedTree::new(self.seed())
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn run_twice(&self, scenario: &Scenario) -> Result<(), Failure> {
        let stop = stop_on_interrupt()?;
        let heights = u64::from(scenario.last_height().0);
        let bar = progress_bar(2 * heights);
        let go_on = |run, height: Height| {
            let done = run * heights + u64::from(height.0);
            bar.set_position(done);
            self.progress.tell(done, 2 * heights, json!({}));
            !stop.load(Ordering::Relaxed)
        };
        let found = play_twice(scenario, self.seeds(), [self.stage; 2], go_on).map_err(|why| self.broken(why))?;
        bar.finish_and_clear();
        if self.json {
            super::output::line(&self.twice_as_json(&found).to_string());
        }
        match found {
            RepetitionResult::Same { digest, events } => {
                if !self.json {
                    super::output::line(&format!("{events} events, twice the same\ndigest:  {digest}"));
                }
                Ok(())
            }
            RepetitionResult::Differ(difference) => Err(self.broken(difference)),
            RepetitionResult::Interrupted { same } => {
                Err(Failure::broken(format!("interrupted: {same} events of the second run were those of the first")))
            }
        }
    }

    fn twice_as_json(&self, found: &RepetitionResult) -> Value {
        let (events, digest, difference) = match found {
            RepetitionResult::Same { digest, events } => (*events, Some(digest.to_string()), None),
            RepetitionResult::Differ(difference) => (difference.event as u64 - 1, None, Some(difference.to_string())),
            RepetitionResult::Interrupted { same } => (*same, None, None),
        };
        json!({
            "scenario": self.scenario.display().to_string(),
            "seed": self.seed(),
            "reproduce": self.reproduce(&self.scenario),
            "same": digest.is_some(),
            "same_events": events,
            "difference": difference,
            "interrupted": matches!(found, RepetitionResult::Interrupted { .. }),
            "digest": digest,
        })
    }

    fn run_once(&self, scenario: &Scenario, files: &ScenarioFiles) -> Result<(), Failure> {
        let planned = PlannedRun::new(scenario, self.seeds());
        let judge = planned.judge(&self.scenario)?;
        self.refuse_other_trace()?;
        self.refuse_stale()?;
        // This comes first: a run that is killed from here on leaves no summary of an earlier run.
        let provenance = self.out.as_deref().map(|folder| self.keep(scenario, files, folder)).transpose()?;
        let traces = self.traces(&planned.plan)?;
        let played = self.play(&planned, judge, &traces)?;
        let RunResult { outcome, figures, verdicts } = &played;
        let (reached, wanted) = (figures.tip.height(), scenario.last_height());
        let interrupted = outcome.ended == Ended::Interrupted;
        let about = self.about(&planned, outcome);
        if let (Some(folder), Some(provenance)) = (&self.out, &provenance) {
            self.leave(&planned, &played, files, folder)?;
            origin::describe_run(&self.named(&about), provenance, folder)?;
        }
        if self.json {
            super::output::line(&as_json(&about, figures, outcome, verdicts).to_string());
        } else {
            super::output::line(&self.as_text(scenario, &about.notes, &played));
        }
        if interrupted {
            return Err(Failure::broken(format!(
                "interrupted at height {reached} of {wanted}: the report covers the blocks until then, and no assertion is judged"
            )));
        }
        let mut wrong: Vec<String> = verdicts.iter().filter(|one| one.is_broken()).map(ToString::to_string).collect();
        if outcome.ended != Ended::Complete {
            wrong.push(format!("the run is {}", outcome.ended.in_words(reached, wanted)));
        }
        if wrong.is_empty() { Ok(()) } else { Err(self.broken(wrong.join("; "))) }
    }

    /// Plays a run to its end, or until it is interrupted.
    pub(super) fn play(
        &self,
        planned: &PlannedRun<'_>,
        judge: Judge,
        traces: &[TraceWriter],
    ) -> Result<RunResult, Failure> {
        let PlannedRun { scenario, plan } = planned;
        let metrics = Metrics::new(plan);
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
        observers.extend(judge.observer());
        observers.extend(traces.iter().map(|trace| Box::new(trace.clone()) as Box<dyn Observer>));
        let stop = stop_on_interrupt()?;
        let bar = progress_bar(scenario.last_height().0.into());
        let timer = self.limits.timer();
        let go_on = |height: Height| {
            bar.set_position(height.0.into());
            self.progress.tell(height.0.into(), scenario.last_height().0.into(), json!({}));
            !stop.load(Ordering::Relaxed) && !timer.is_over()
        };
        let mut outcome = scenario.play_while(plan, self.stage, observers, go_on).map_err(|why| self.broken(why))?;
        if outcome.ended == Ended::Interrupted && !stop.load(Ordering::Relaxed) {
            outcome.ended = Ended::RealTime;
        } else if outcome.ended == Ended::Interrupted && memory::is_exceeded() {
            outcome.ended = Ended::Memory;
        }
        bar.finish_and_clear();
        for trace in traces {
            trace.ended(outcome.end);
            trace.finish().map_err(Failure::broken)?;
        }
        let figures = metrics.finish(outcome.end);
        // An interrupted run might still have met an assertion by its end.
        let verdicts = match outcome.ended {
            Ended::Interrupted => Vec::new(),
            ended => judge.verdicts(outcome.end, ended),
        };
        Ok(RunResult { outcome, figures, verdicts })
    }

    /// Writes everything that repeats the run into the folder.
    ///
    /// # Errors
    /// The folder holds files that no run has left, or cannot be written to.
    fn keep(&self, scenario: &Scenario, files: &ScenarioFiles, folder: &Path) -> Result<Provenance, Failure> {
        let study = RunStudy {
            scenario: shown(&self.scenario),
            seed: self.seed(),
            set: self.set.iter().map(ToString::to_string).collect(),
            trace_network: self.trace_network,
            without: self.without.iter().map(|output| name_of(*output)).collect(),
        };
        let names = scenario.files().collect();
        let outputs: Vec<&str> = Output::value_variants().iter().flat_map(|output| output.files()).copied().collect();
        Provenance::refuse_foreign(folder, &outputs)
            .and_then(|()| {
                Provenance::keep(folder, KeptStudy::Run(study), files, &names, Vec::new(), origin::command())
            })
            .map_err(|why| match why.is_bad_input() {
                true => Failure::usage(format!("--out {}: {why}", folder.display())),
                false => Failure::broken(format!("--out {}: {why}", folder.display())),
            })
    }

    /// Leaves summary, tables and page in a folder.
    pub(super) fn leave(
        &self,
        planned: &PlannedRun<'_>,
        played: &RunResult,
        files: &ScenarioFiles,
        folder: &Path,
    ) -> Result<(), Failure> {
        let about = self.named(&self.about(planned, &played.outcome));
        let study =
            json!({ "version": about.version, "scenario": about.scenario, "seed": about.seed, "set": about.set });
        let bundle = Bundle {
            about: &about,
            figures: &played.figures,
            verdicts: &played.verdicts,
            tree: &planned.plan.tree,
            network: &planned.plan.network(),
            metadata: &parquet_metadata(&study, files),
            without: &self.without,
        };
        bundle.write(folder).map_err(|why| Failure::broken(format!("--out {}: {why}", folder.display())))
    }

    /// Returns `about` with the scenario's file named as in reports.
    fn named(&self, about: &About) -> About {
        let (scenario, reproduce) = (shown(&self.scenario), self.reproduce(Path::new(&shown(&self.scenario))));
        About { scenario, reproduce, ..about.clone() }
    }

    /// Refuses a file for the trace that holds something else, such as the scenario.
    fn refuse_other_trace(&self) -> Result<(), Failure> {
        match &self.trace {
            Some(file) if !crate::files::is_missing_or(file, trace::begins) => {
                let why = "holds something that is no trace; choose another file, or delete it";
                Err(Failure::usage(format!("--trace {}: {why}", file.display())))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a folder with a file of an earlier run that this one leaves out: a reader would take it for one of this run.
    fn refuse_stale(&self) -> Result<(), Failure> {
        let Some(folder) = &self.out else { return Ok(()) };
        fs::create_dir_all(folder)
            .map_err(|why| Failure::usage(format!("--out {}: cannot be made: {why}", folder.display())))?;
        let mut left_out = self.without.iter().flat_map(|output| output.files()).map(|name| folder.join(name));
        match left_out.find(|file| fs::symlink_metadata(file).is_ok()) {
            None => Ok(()),
            Some(stale) => Err(Failure::usage(format!(
                "--without: found {} of an earlier run, allowed is a folder that has none: take it away, or give another --out",
                stale.display()
            ))),
        }
    }

    /// Opens the traces, so that a file that cannot be written is reported before the run begins.
    fn traces(&self, plan: &Plan) -> Result<Vec<TraceWriter>, Failure> {
        let header = self.header(plan);
        let mut files: Vec<(PathBuf, TraceFormat)> = Vec::new();
        if let Some(file) = &self.trace {
            files.push((file.clone(), self.trace_format.unwrap_or_else(|| TraceFormat::of(file))));
        }
        if let Some(folder) = &self.out
            && !self.without.contains(&Output::Events)
        {
            files.push((folder.join("events.jsonl"), TraceFormat::Jsonl));
        }
        let create = |(file, format): (PathBuf, TraceFormat)| TraceWriter::create(&file, format, &header, plan);
        files.into_iter().map(create).collect::<Result<_, _>>().map_err(Failure::usage)
    }

    /// The first line of its traces.
    pub(super) fn header(&self, plan: &Plan) -> Header {
        let set = self.set.iter().map(ToString::to_string).collect();
        Header::new(shown(&self.scenario), self.seed(), set, self.trace_network, plan)
    }

    pub(super) fn about(&self, planned: &PlannedRun<'_>, outcome: &Outcome) -> About {
        let PlannedRun { scenario, plan } = planned;
        let mut notes = scenario.notes(Some(SeedTree::new(self.seed())));
        notes.extend(scenario.notes_of_run(plan));
        About {
            scenario: self.scenario.display().to_string(),
            description: scenario.description.clone(),
            version: env!("CARGO_PKG_VERSION"),
            seed: self.seed(),
            set: self.set.iter().map(ToString::to_string).collect(),
            rules: scenario.rules_in_words(),
            digest: outcome.digest.to_string(),
            events: outcome.events,
            delivered: outcome.delivered,
            ended: outcome.ended,
            censored: outcome.ended.is_censored(),
            interrupted: outcome.ended == Ended::Interrupted,
            halt: outcome.ended.halt(),
            notes,
            reproduce: self.reproduce(&self.scenario),
        }
    }

    fn reproduce(&self, scenario: &Path) -> String {
        let set: Vec<String> = self.set.iter().map(ToString::to_string).collect();
        command(&scenario.display().to_string(), self.seed(), &set)
    }

    /// The failure of a run, with the command that repeats it.
    fn broken(&self, why: impl std::fmt::Display) -> Failure {
        Failure::broken(format!("{why}; to repeat: {}", self.reproduce(&self.scenario)))
    }

    fn as_text(&self, scenario: &Scenario, notes: &[String], played: &RunResult) -> String {
        let RunResult { outcome, figures, verdicts } = played;
        let notes: String = notes.iter().map(|note| format!("note:    {note}\n")).collect();
        let asserted: String = verdicts.iter().map(|verdict| format!("asserted: {verdict}\n")).collect();
        let total = &figures.total;
        let down = match total.down_max {
            0 => String::new(),
            most => format!("down:    {most} of {} nodes at most, {} at the end\n", figures.nodes, total.down_end),
        };
        let ended = match outcome.ended {
            Ended::Complete => String::new(),
            ended => format!("ended:   {}\n", ended.in_words(figures.tip.height(), scenario.last_height())),
        };
        // Within a slot the nodes are never all on one block for long.
        let slow = figures.heals.iter().filter(|heal| {
            heal.observed_seconds > f64::from(scenario.network.block_time_s) || heal.converged_seconds.is_none()
        });
        let healed: String = slow.map(|heal| format!("healed:  {}\n", heal.in_words())).collect();
        let last_final = figures.last_final.map_or_else(String::new, |height| {
            format!("final:   up to height {height}, {} blocks below the tip\n", figures.tip.height().0 - height.0)
        });
        let title = if scenario.description.is_empty() { String::new() } else { format!(": {}", scenario.description) };
        let page = self.out.as_ref().filter(|_| !self.without.contains(&Output::Report));
        let written = page.map(|folder| format!("\nreport:  {}", folder.join("report.html").display()));
        format!(
            "{}{title}; {}\n\n{}\nsummary: seed {}, height {}, {} rounds, {} blocks forged, {} slots missed, \
             {} events\n{}{last_final}{notes}{down}{ended}{healed}{asserted}digest:  {}{}",
            self.scenario.display(),
            scenario.rules_in_words(),
            table::render(&figures.chain),
            self.seed(),
            total.height,
            total.rounds,
            total.blocks,
            total.missed_slots,
            outcome.events,
            forks(total),
            outcome.digest,
            written.unwrap_or_default(),
        )
    }
}

/// The name of an output on the command line.
pub(super) fn name_of(output: Output) -> String {
    output.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A run that is about to begin.
pub(super) struct PlannedRun<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) plan: Plan,
}

/// A run that has ended.
pub(super) struct RunResult {
    pub(super) outcome: Outcome,
    figures: Figures,
    verdicts: Vec<Verdict>,
}

impl<'a> PlannedRun<'a> {
    pub(super) fn new(scenario: &'a Scenario, seeds: SeedTree) -> Self {
        let testnet = scenario.testnet(seeds);
        Self { scenario, plan: scenario.plan(&testnet, seeds) }
    }

    /// The judge of the scenario's assertions.
    ///
    /// # Errors
    /// An assertion names something that does not exist.
    pub(super) fn judge(&self, file: &Path) -> Result<Judge, Failure> {
        check::judge(self.scenario, &self.plan).map_err(|why| Failure::usage(format!("{}: {why}", file.display())))
    }
}

/// Describes the forks and rollbacks with their numbers. Empty if there were none.
fn forks(total: &Totals) -> String {
    if total.forks == 0 && total.rollbacks == 0 && total.fork_depth_max == 0 {
        return String::new();
    }
    format!(
        "forks:   {} blocks forged on a parent that had another block, {} blocks on the longest branch beside the winning \
         chain; nodes left their chain {} times, and took back {} blocks at most\n",
        total.forks, total.fork_depth_max, total.rollbacks, total.rollback_depth_max,
    )
}

fn as_json(about: &About, figures: &Figures, outcome: &Outcome, verdicts: &[Verdict]) -> Value {
    let total = &figures.total;
    let mut told = json!({
        "scenario": about.scenario,
        "description": about.description,
        "version": about.version,
        "seed": about.seed,
        "set": about.set,
        "rules": about.rules,
        "digest": about.digest,
        "reproduce": about.reproduce,
        "ended": about.ended,
        "censored": about.censored,
        "interrupted": about.interrupted,
        "notes": about.notes,
        "halt": about.halt,
        "height": total.height,
        "rounds": total.rounds,
        "blocks": total.blocks,
        "missed_slots": total.missed_slots,
        "events": about.events,
        "end_seconds": outcome.end.seconds(),
        "assertions": verdicts,
        "totals": total,
        "heals": figures.heals,
        "delegates": totals(&figures.chain),
        "per_round": figures.chain,
    });
    if let Some(height) = figures.last_final {
        told["final_height"] = height.0.into();
    }
    told
}

/// Returns a progress bar. Only a terminal shows it, until the caller clears it.
fn progress_bar(heights: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} height {pos}/{len}, {eta} left").expect("the template is fixed");
    ProgressBar::new(heights).with_style(style)
}
