//! `dposlab explain`: why a run failed.

use super::{Failure, interrupt::stop_on_interrupt, output, parent::WithParent, replay::planned};
use crate::{
    actors::SimTime,
    check::explain::{Explanation, Lines, Options, Phase, Session, explain, explain_recorded},
    files,
    ledger::{Rules, rules::NAMED},
    report::{
        bundle::{quoted, shown},
        page,
        session::{SessionError, SessionFile, replay_and_keep},
    },
    scenario::{Override, Scenario, StageKind, run::among_actors},
    sim::Plan,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, atomic::AtomicBool},
};

/// The largest number of other rule sets under which a run is played.
const BESIDE_MOST: usize = 5;
/// The number of lines of the diagram without `--full`.
const LINES: usize = 60;

/// Say why a run failed: what happened before, which numbers decided, which change would have helped, and when it was decided.
///
/// FILE is a scenario, a finding that `check` has written, or a session that `up --record` has.
/// It explains the first of these that it finds: an assertion that does not hold, a run that halts or stalls, an
/// invariant that breaks without being asserted. If nothing failed, it explains the deepest fork or the missed slots.
///
/// 1. The steps and messages that led to it, as a diagram: a lane for each node, a letter for the branch it stands on. Steps
///    that do not matter are folded; --full unfolds them.
/// 2. The numbers of the rules that decided, beside their thresholds.
/// 3. The probability of the failure when the run is repeated from an instant with other random numbers. A rise marks the decision.
/// 4. Single changes of the scenario that prevent the failure, the least first.
///
/// Ctrl-C ends it and prints the results so far. Exit code 0: nothing failed; 1: a failure is explained; 2: FILE is none of these.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub(crate) struct Explain {
    /// The scenario, finding or recorded session.
    file: PathBuf,
    /// The seed all keys, latencies and choices are drawn from; 1, if not given. A session has its own.
    #[arg(long)]
    seed: Option<u64>,
    /// Replace a value of the scenario; a list's entry by its index: 'fault[0].rounds=3', a new one by [+].
    /// May be given again.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Override>,
    /// Print one JSON object instead of text (docs/explain.md).
    #[arg(long)]
    json: bool,
    /// Write a page with all of it, which opens offline, beside what is printed: to a file whose name ends in .html, or as
    /// report.html into a folder, which is made.
    #[arg(long, value_name = "FILE.html|DIR")]
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
    /// Runs spent on changes of the scenario, repeats not counted; 0 tries none.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    budget: u16,
    /// Play the same run under other rules as well, and show the slots in which they differ side by side.
    #[arg(long, value_delimiter = ',', num_args = 1, value_parser = NAMED.map(|named| named.name), value_name = "RULES,...")]
    beside: Vec<String>,
    /// Runs at a time; one for each core, if not given. The explanation does not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The line of a recorded session to explain, from 1 on. A session that went back to snapshots has several: each line ends
    /// where the session went back, the last one with the session. If not given, the last that fails, or the last.
    #[arg(long, value_name = "N")]
    line: Option<usize>,
    #[command(flatten)]
    parent: WithParent,
}

const EXAMPLES: &str = "\
Examples:
  dposlab explain scenarios/findings/the-chain-grows-once-all-faults-are-over.toml
  dposlab explain findings/a-rollback-ends-at-the-common-block.toml --out why.html
  dposlab explain scenarios/partition-even.toml --seed 7 --repeats 100
  dposlab explain scenarios/partition-even.toml --budget 0 --repeats 0 --beside solar,lisk
  dposlab explain scenarios/healthy.toml --budget 0 --repeats 0      the run alone: no copies, no changes";

impl Explain {
    /// Explains the run and prints the explanation.
    ///
    /// # Errors
    /// The file is no scenario, the page cannot be written, or a failure was explained.
    pub fn run(self) -> Result<(), Failure> {
        self.parent.watch()?;
        let (stop, bars) = (stop_on_interrupt()?, Bars::default());
        let explained = match self.is_recorded()? {
            true => self.session(&stop, &bars)?,
            false => self.scenario(&stop, &bars)?,
        };
        bars.clear();
        let mut explanation = explained.map_err(|why| Failure::usage(format!("{}: {why}", self.file.display())))?;
        self.name(&mut explanation, self.file.display().to_string());
        if let Some(out) = &self.out {
            self.write(&explanation, out).map_err(|why| Failure::usage(format!("--out {}: {why}", out.display())))?;
        }
        if self.json {
            output::line(&serde_json::json!(explanation).to_string());
        } else {
            output::line(explanation.to_string().trim_end());
        }
        if explanation.failed { Err(Failure::Told) } else { Ok(()) }
    }

    /// Writes the page to the file `out`, or as `report.html` into the folder `out`.
    fn write(&self, explanation: &Explanation, out: &Path) -> io::Result<()> {
        let mut explanation = explanation.clone();
        self.name(&mut explanation, shown(&self.file));
        let page = page::explain::page(&serde_json::json!(explanation));
        let is_file = out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html")) && !out.is_dir();
        if is_file {
            return fs::write(out, page);
        }
        fs::create_dir_all(out)?;
        fs::write(out.join("report.html"), page)
    }

    /// The names of other rules, each once.
    fn others(&self, scenario: &Scenario) -> Result<Vec<String>, Failure> {
        let own = scenario.rules.get("base").and_then(toml::Value::as_str).unwrap_or(Rules::DEFAULT_BASE);
        let mut others: Vec<String> = Vec::new();
        for name in &self.beside {
            if name == own || others.contains(name) {
                return Err(Failure::usage(format!(
                    "--beside {name}: is there already, allowed is each set of rules once"
                )));
            }
            others.push(name.clone());
        }
        match others.len() {
            ..=BESIDE_MOST => Ok(others),
            count => {
                Err(Failure::usage(format!("--beside: found {count} sets of rules, allowed are {BESIDE_MOST} at most")))
            }
        }
    }

    fn options(&self, seed: u64) -> Options {
        Options {
            seed,
            repeats: self.repeats,
            instants: self.instants.into(),
            budget: self.budget.into(),
            lines: if self.full { usize::MAX } else { LINES },
            jobs: self.jobs(),
        }
    }

    fn jobs(&self) -> usize {
        super::jobs(self.jobs.map(usize::from))
    }

    fn scenario(&self, stop: &AtomicBool, bars: &Bars) -> Result<Result<Explanation, String>, Failure> {
        if self.line.is_some() {
            return Err(Failure::usage(format!("--line: {} is no recorded session", self.file.display())));
        }
        let scenario = Scenario::load_with(&self.file, &self.set).map_err(Failure::usage)?;
        let options = self.options(self.seed.unwrap_or(1));
        let mut explained = explain(&scenario, &options, stop, &|phase, done, of| bars.tell(phase, done, of));
        if let (Ok(explanation), false) = (&mut explained, self.beside.is_empty()) {
            explanation.play_beside(&scenario, &self.others(&scenario)?, stop).map_err(Failure::usage)?;
        }
        Ok(explained)
    }

    /// Returns true if the file is a session: a scenario does not begin with a brace.
    fn is_recorded(&self) -> Result<bool, Failure> {
        let unreadable = |why: std::io::Error| Failure::usage(format!("{}: {why}", self.file.display()));
        let mut first = [0];
        let count = files::open(&self.file).map_err(unreadable)?.read(&mut first).map_err(unreadable)?;
        Ok(count == 1 && first == *b"{")
    }

    fn session(&self, stop: &AtomicBool, bars: &Bars) -> Result<Result<Explanation, String>, Failure> {
        let file = self.file.display();
        for (option, is_given) in
            [("--seed", self.seed.is_some()), ("--set", !self.set.is_empty()), ("--beside", !self.beside.is_empty())]
        {
            if is_given {
                return Err(Failure::usage(format!("{option}: {file} is a recorded session and has its own")));
            }
        }
        let wrong = |error: SessionError| match error.is_bad_input() {
            true => Failure::usage(error),
            false => Failure::broken(error),
        };
        let recorded = SessionFile::open(&self.file).map_err(wrong)?;
        let session = recorded.session.clone();
        let (network, plan) = planned(&self.file, &session)?;
        let desk = network.desk(&plan);
        let replayed = replay_and_keep(StageKind::Inline, recorded, &plan, &desk, None);
        let (replayed, inputs) = among_actors(replayed).map_err(wrong)?;
        let lines = Lines::of(inputs, plan.start, SimTime::from_micros(replayed.end_us));
        let anew = || -> Plan { planned(&self.file, &session).expect("it was planned a moment ago").1 };
        let recorded = Session {
            scenario: &network.scenario,
            plan: &anew,
            lines: &lines,
            line: self.line,
            delegates: network.testnet.delegates.iter().map(|delegate| delegate.username.clone()).collect(),
            rules: replayed.rules,
        };
        let progress = |phase, done, of| bars.tell(phase, done, of);
        Ok(explain_recorded(recorded, &self.options(session.seed), stop, &progress))
    }

    /// Records the explained file, the replaced values and the command that reproduces the explanation.
    fn name(&self, explanation: &mut Explanation, file: String) {
        explanation.file = file;
        explanation.set = self.set.iter().map(ToString::to_string).collect();
        let mut command = format!("dposlab explain {}", quoted(&explanation.file));
        if let Some(seed) = self.seed {
            command.push_str(&format!(" --seed {seed}"));
        }
        for set in &explanation.set {
            command.push_str(&format!(" --set {}", quoted(set)));
        }
        if let Some(line) = self.line {
            command.push_str(&format!(" --line {line}"));
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
        if !self.beside.is_empty() {
            command.push_str(&format!(" --beside {}", self.beside.join(",")));
        }
        explanation.reproduce = command;
    }
}

/// A progress bar for each phase, on a terminal only.
#[derive(Default)]
struct Bars(Mutex<Option<(Phase, ProgressBar)>>);

impl Bars {
    fn tell(&self, phase: Phase, done: u64, of: u64) {
        let mut shown = self.0.lock().expect("no thread panics while holding it");
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
        if let Some((_, bar)) = self.0.lock().expect("no thread panics while holding it").take() {
            bar.finish_and_clear();
        }
    }
}
