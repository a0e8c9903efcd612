//! `dposlab explain`: why a run failed.

use super::{Failure, interrupt::stop_on_interrupt, memory::Memory, output};
use crate::{
    check::explain::{Explanation, Options, Phase, explain},
    report::{
        bundle::quoted,
        page,
    },
    scenario::{Override, Scenario},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::{fs, path::PathBuf, sync::Mutex, thread};

/// Rows of the diagram where not all are wanted: with what stands beside it, it fits a screen or two.
const ROWS: usize = 36;

/// Say why a run failed: what happened before, which numbers decided, which change would have helped, and when it was decided.
///
/// FILE is a scenario, or a finding that `check` has written. What is explained is, in this order: an assertion that does not
/// hold, a run that halts or stalls, an invariant that breaks though nobody asserts it; and where nothing failed, the deepest
/// fork or the slots that were missed.
///
/// 1. The steps and messages that led to it, as a diagram: a lane for each node, a letter for the branch it stands on. What
///    does not matter is folded; --full unfolds it.
/// 2. The numbers of the rules that decided, beside their thresholds.
/// 3. How probable it is when the run is repeated from an instant with other random numbers. Where that rises, it was decided.
/// 4. Single changes of the scenario with which it does not fail, the least first.
///
/// Ctrl-C ends it and tells what there is. Exit code 0: nothing failed; 1: a failure is explained; 2: FILE is no such thing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub struct Explain {
    /// The scenario or finding.
    file: PathBuf,
    /// The seed all keys, latencies and choices are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replace a value of the scenario; a list's entry by its index: 'fault[0].rounds=3'. May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Override>,
    /// Print one JSON object instead of text (docs/explain.md).
    #[arg(long)]
    json: bool,
    /// Write a page with all of it, which opens offline, beside what is printed.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Tell every step that happened before.
    #[arg(long)]
    full: bool,
    /// Copies of the run at each instant of the curve; 0 leaves it out. 40, or fewer for a long run, if not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    repeats: Option<u64>,
    /// Instants of the curve at most.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    instants: u16,
    /// Runs spent on changes of the scenario; 0 tries none.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    budget: u16,
    /// Runs at a time; one for each core, if not given. It changes nothing of what is told.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    memory: Memory,
}

const EXAMPLES: &str = "\
Examples:
  dposlab explain scenarios/findings/the-chain-grows-once-all-faults-are-over.toml
  dposlab explain findings/a-rollback-ends-at-the-common-block.toml --out why.html
  dposlab explain scenarios/partition-even.toml --seed 7 --repeats 100
  dposlab explain scenarios/healthy.toml --budget 0 --repeats 0      the run alone: no copies, no changes";

impl Explain {
    /// Explains.
    ///
    /// # Errors
    /// The file is no scenario, the page cannot be written, or a failure was explained.
    pub fn run(self) -> Result<(), Failure> {
        let scenario = Scenario::load_with(&self.file, &self.set).map_err(Failure::usage)?;
        let jobs = self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        self.memory.check(&self.file, &scenario.memory(), jobs as u64 + 1)?;
        let options = Options {
            seed: self.seed,
            repeats: self.repeats,
            instants: self.instants.into(),
            budget: self.budget.into(),
            rows: if self.full { usize::MAX } else { ROWS },
            jobs,
        };
        let (stop, bars) = (stop_on_interrupt()?, Bars::default());
        let explained = explain(&scenario, &options, &stop, &|phase, done, of| bars.tell(phase, done, of));
        bars.clear();
        let mut explanation = explained.map_err(|why| Failure::usage(format!("{}: {why}", self.file.display())))?;
        self.name(&mut explanation);
        if let Some(file) = &self.out {
            let page = page::explain::page(&serde_json::json!(explanation));
            fs::write(file, page).map_err(|why| Failure::usage(format!("--out {}: {why}", file.display())))?;
        }
        if self.json {
            output::line(&serde_json::json!(explanation).to_string());
        } else {
            output::line(explanation.to_string().trim_end());
        }
        if explanation.failed { Err(Failure::Told) } else { Ok(()) }
    }

    /// Says of what it is an explanation.
    fn name(&self, explanation: &mut Explanation) {
        explanation.file = self.file.display().to_string();
        explanation.set = self.set.iter().map(ToString::to_string).collect();
        let mut command = format!("dposlab explain {} --seed {}", quoted(&explanation.file), self.seed);
        for set in &explanation.set {
            command.push_str(&format!(" --set {}", quoted(set)));
        }
        if let Some(repeats) = self.repeats {
            command.push_str(&format!(" --repeats {repeats}"));
        }
        if self.instants != 20 {
            command.push_str(&format!(" --instants {}", self.instants));
        }
        if self.budget != 100 {
            command.push_str(&format!(" --budget {}", self.budget));
        }
        explanation.reproduce = command;
    }
}

/// A bar for each part, on a terminal only.
#[derive(Default)]
struct Bars(Mutex<Option<(Phase, ProgressBar)>>);

impl Bars {
    fn tell(&self, phase: Phase, done: u64, of: u64) {
        let mut shown = self.0.lock().expect("no one panics while holding it");
        if shown.as_ref().is_none_or(|(before, _)| *before != phase) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            let what = match phase {
                Phase::Curve => "copies of the run",
                Phase::Nearest => "changed runs",
            };
            let template = format!("{{bar:40}} {what} {{pos}}/{{len}}, {{eta}} left");
            let style = ProgressStyle::with_template(&template).expect("the template is fixed");
            *shown = Some((phase, ProgressBar::new(of).with_style(style)));
        }
        if let Some((_, bar)) = &*shown {
            bar.set_position(done);
        }
    }

    fn clear(&self) {
        if let Some((_, bar)) = self.0.lock().expect("no one panics while holding it").take() {
            bar.finish_and_clear();
        }
    }
}
