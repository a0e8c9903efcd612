//! `dposlab check --exhaustive`: every schedule with a bounded number of deviations.

use super::{Check, DRAWN_RULES, bar, failure_of_file};
use crate::cli::span::Span;
use crate::{
    check::{
        Minimal, Minimiser, Signature,
        exhaustive::{Bounds, Exhaustive, Exploration, FindingSchedules, Guard, Progress, SearchCheckpoint},
        search::{Networks, RUN_SEED},
    },
    cli::{Failure, interrupt::stop_on_interrupt, output},
    files,
    ledger::Rules,
    protocol::crypto::CryptoMode,
    scenario::Scenario,
    sim::{
        SeedTree,
        fault::MessageKind,
        network::script::{Deviation, Mishap},
    },
};
use clap::Args;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The name of the file that keeps a search, in the folder of findings.
const FILE: &str = "exhaustive.json";
/// The largest size of that file in bytes. It has a row for each state of a slot.
const FILE_LIMIT: u64 = 1 << 30;
/// The default number of delegates.
const DELEGATES: u32 = 4;

/// The bounds of an exhaustive search.
#[derive(Debug, Args)]
pub(crate) struct ExhaustiveBounds {
    /// Instead of drawing runs, play every schedule with at most K deviations: messages to which something happens.
    ///
    /// It begins with the run of the scenario, or of a network of four delegates. In its first slots each message of the given
    /// kinds may be befallen by what --mishaps says; then all nodes must come to one chain that grows. Schedules that come to the
    /// same state are played on as one. The file exhaustive.json in --out keeps each slot that is over: the same command goes on
    /// from there.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=8), help_heading = "Exhaustive search",
          conflicts_with_all = ["runs", "time", "draw", "known", "record_known", "rounds", "behaviour", "seed", "guided"])]
    exhaustive: Option<u32>,
    /// Slots from the start of the run on in which messages may be befallen.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000),
          requires = "exhaustive", help_heading = "Exhaustive search")]
    slots: u32,
    /// The mishaps of a message: it is lost, it comes late, or it comes once more, late.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "lost", value_parser = word::<Mishap>,
          requires = "exhaustive", help_heading = "Exhaustive search")]
    mishaps: Vec<Mishap>,
    /// The kinds of messages that may be befallen, as faults name them; of questions and answers, the answers.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "block,status,blocks,common-blocks",
          value_parser = word::<MessageKind>, requires = "exhaustive", help_heading = "Exhaustive search")]
    messages: Vec<MessageKind>,
    /// By how much late messages are late, such as 8s or 1m; an hour at most.
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = lateness, requires = "exhaustive", help_heading = "Exhaustive search")]
    late_by: Span,
    /// Play every schedule by itself, also where it comes to the state of another: for comparison, and slow.
    #[arg(long, requires = "exhaustive", help_heading = "Exhaustive search")]
    apart: bool,
}

/// Parses a word in the spelling of scenario files.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

fn lateness(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    match span.seconds() {
        1..=3_600 => Ok(span),
        _ => Err(format!("found {span}, allowed is 1s to 1h")),
    }
}

/// Formats a value in the spelling of scenario files.
fn said(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("it has a JSON");
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed<T: Serialize + Copy>(all: &[T]) -> String {
    all.iter().map(|one| said(*one)).collect::<Vec<_>>().join(", ")
}

impl ExhaustiveBounds {
    /// The number of deviations, if an exhaustive search is asked for.
    pub(super) fn deviations(&self) -> Option<u32> {
        self.exhaustive
    }

    fn bounds(&self, deviations: u32) -> Bounds {
        let (mut kinds, mut mishaps) = (self.messages.clone(), self.mishaps.clone());
        kinds.sort_unstable();
        kinds.dedup();
        mishaps.sort_unstable();
        mishaps.dedup();
        let by = Duration::from_secs(self.late_by.seconds());
        Bounds { deviations, slots: self.slots, kinds, mishaps, by, merge: !self.apart }
    }
}

/// The content of the file that keeps a search.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    guard: Guard,
    kept: SearchCheckpoint,
}

/// A finding, and its file.
struct FindingReport {
    signature: Signature,
    shown: FindingSchedules,
    minimal: Minimal,
    file: PathBuf,
}

impl Check {
    pub(super) fn explore(&self, deviations: u32) -> Result<(), Failure> {
        let scenario = self.explored_scenario()?;
        let bounds = self.exhaustive.bounds(deviations);
        let seeds = SeedTree::new(RUN_SEED);
        let testnet = scenario.testnet(seeds);
        let search = Exhaustive::new(&scenario, &testnet, seeds, bounds);
        let stop = stop_on_interrupt()?;
        let jobs = self.jobs.map_or(0, usize::from);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let threads = threads.map_err(|error| Failure::broken(format!("--jobs: {error}")))?;
        let (explored, unwritten) = threads.install(|| self.explore_all(&search, &stop))?;
        let told = self.write_shown(&explored, &search, &stop);
        let told = match (unwritten, told) {
            (None, told) => told?,
            (Some(why), told) => {
                // The findings are printed nevertheless.
                output::line(&explored_as_text(&search, &explored, &told.unwrap_or_default()));
                return Err(why);
            }
        };
        if !explored.interrupted {
            self.forget_kept()?;
        }
        match self.json {
            true => output::line(&explored_as_json(&search, &explored, &told).to_string()),
            false => output::line(&explored_as_text(&search, &explored, &told)),
        }
        let schedules = explored.total();
        match (explored.interrupted, told.len()) {
            (true, _) => Err(Failure::broken(format!(
                "interrupted: {schedules} schedules are over, {} slots of all; the same command goes on from there",
                explored.depth
            ))),
            (false, 0) => Ok(()),
            (false, count) => {
                Err(Failure::broken(format!("{schedules} schedules were played, and {count} things do not hold")))
            }
        }
    }

    /// The given scenario, or that of a network without faults and clients.
    fn explored_scenario(&self) -> Result<Scenario, Failure> {
        self.check_delegates()?;
        let mut scenario = match &self.scenario {
            Some(file) => {
                let scenario = Scenario::load_with(file, &self.set).map_err(Failure::usage)?;
                let wrong = |why| Failure::usage(format!("{}: {why}", file.display()));
                Exhaustive::check(&scenario).map_err(wrong)?;
                scenario
            }
            None => {
                let text = format!(
                    "version = 1\nrounds = 1\n[network]\ndelegates = {}\n",
                    self.delegates.unwrap_or(DELEGATES)
                );
                let scenario = Scenario::parse(&text, Path::new("exhaustive.toml")).map_err(Failure::usage)?;
                Scenario { crypto: CryptoMode::Modelled, ..scenario }
            }
        };
        let rules = self.rules.clone().or_else(|| self.scenario.is_none().then(|| DRAWN_RULES.to_owned()));
        if let Some(rules) = rules {
            scenario.rules.insert("base".to_owned(), rules.into());
        }
        Rules::from_toml(&scenario.rules).map_err(Failure::usage)?;
        scenario.crypto = self.crypto.unwrap_or(scenario.crypto);
        // A finding has an assertion of its own.
        scenario.assertions.clear();
        Ok(scenario)
    }

    /// Plays all schedules. Also returns the failure that ended the search early, if its file could not be written.
    fn explore_all(
        &self,
        search: &Exhaustive<'_>,
        stop: &AtomicBool,
    ) -> Result<(Exploration, Option<Failure>), Failure> {
        let guard = Guard::of(search);
        let kept = self.load_kept(&guard)?;
        if let Some(kept) = &kept {
            let (slots, file) = (kept.depth(), self.out.join(FILE));
            eprintln!("dposlab: goes on after slot {slots}, where {} says that the search was", file.display());
        }
        let bar = bar(0, "{bar:40} {msg}");
        let mut failed = None;
        let keep = |kept: SearchCheckpoint| {
            let written = write_kept(&self.out, &Form { guard: guard.clone(), kept });
            if let Err(why) = written {
                failed.get_or_insert(why);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let explored = search.run(kept, stop, keep, |Progress { slot, states, played, found }| {
            bar.set_length(states as u64);
            bar.set_position(played as u64);
            bar.set_message(format!("slot {slot}: {played} of {states} states, {found} found"));
            self.progress.tell(played as u64, states as u64, json!({ "unit": "states", "slot": slot, "found": found }));
        });
        bar.finish_and_clear();
        Ok((explored, failed))
    }

    /// Deletes the file of a finished search, which has nothing to resume.
    fn forget_kept(&self) -> Result<(), Failure> {
        let path = self.out.join(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failure_of_file(&path, "removed", &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn load_kept(&self, guard: &Guard) -> Result<Option<SearchCheckpoint>, Failure> {
        let path = self.out.join(FILE);
        let text = match files::read_text(&path, FILE_LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failure_of_file(&path, "read", &error)),
        };
        let form: Form = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!("{}: is no exhaustive search of this version of dposlab: {error}", path.display()))
        })?;
        match form.guard == *guard {
            true => Ok(Some(form.kept)),
            false => Err(Failure::usage(format!(
                "{}: holds another search, of another scenario, seed, version or other bounds; choose another folder with --out, or \
                 delete the file",
                path.display()
            ))),
        }
    }

    /// Writes a scenario for each finding, minimised within the budget.
    fn write_shown(
        &self,
        explored: &Exploration,
        search: &Exhaustive<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<FindingReport>, Failure> {
        let networks = Networks::default();
        let waits = AtomicBool::new(false);
        let mut told = Vec::new();
        for (signature, shown) in &explored.found {
            let bar = bar(self.budget as u64, "{bar:40} shrinking, {pos}/{len} runs");
            let scenario = search.scenario_of(&shown.schedule);
            let finding = search.replay(&shown.schedule).into_iter().find(|finding| finding.signature() == *signature);
            let finding = finding.expect("a schedule shows again what it has shown");
            // After an interrupt, the file is still played once.
            let (stop, budget) = if stop.load(Ordering::Relaxed) { (&waits, 0) } else { (stop, self.budget) };
            let minimiser = Minimiser { networks: &networks, budget, stop, base: Some(search.scenario) };
            let minimal = minimiser.minimise(&scenario, &finding, |tried, _| bar.set_position(tried as u64));
            bar.finish_and_clear();
            let file = self.write(&minimal)?;
            told.push(FindingReport { signature: signature.clone(), shown: shown.clone(), minimal, file });
        }
        Ok(told)
    }
}

/// Writes the file under another name first, so that a process that ends leaves either the earlier file or this one.
fn write_kept(folder: &Path, form: &Form) -> Result<(), Failure> {
    let (path, fresh) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
    let text = serde_json::to_vec(form).expect("it has a JSON");
    let written =
        fs::create_dir_all(folder).and_then(|()| fs::write(&fresh, text)).and_then(|()| fs::rename(&fresh, &path));
    written.map_err(|error| failure_of_file(&path, "written", &error))
}

fn in_words(deviation: &Deviation) -> String {
    let Deviation { sent, mishap } = deviation;
    let kind = said(sent.kind);
    format!("{kind} number {} from {} to {} {}", sent.number, sent.from.0, sent.to.0, said(*mishap))
}

fn schedule_in_words(schedule: &[Deviation]) -> String {
    match schedule {
        [] => "none is befallen".to_owned(),
        _ => schedule.iter().map(in_words).collect::<Vec<_>>().join(", "),
    }
}

fn explored_as_text(search: &Exhaustive<'_>, explored: &Exploration, told: &[FindingReport]) -> String {
    let Bounds { deviations, slots, kinds, mishaps, by, merge: _ } = &search.bounds;
    let total = explored.total();
    let mut text = String::new();
    for FindingReport { signature, shown, minimal, file } in told {
        text += &format!("broken: {} ({})\n", signature.invariant, minimal.finding.origin);
        if !signature.cause.is_empty() {
            text += &format!("  cause: {}\n", signature.cause);
        }
        text +=
            &format!("  in {} of {total} schedules, first: {}\n", shown.schedules, schedule_in_words(&shown.schedule));
        text += &format!("  {}\n  dposlab run {}\n", minimal.finding.what, file.display());
        if !minimal.shown {
            text += "  this file was played and does not show it\n";
        }
    }
    let by_number: Vec<String> =
        explored.schedules.iter().enumerate().map(|(number, count)| format!("{count} with {number}")).collect();
    let rules = search.scenario.rules_in_words();
    text += &format!(
        "schedules: {total}; by their deviations {}; in the first, {} messages may be befallen\n",
        by_number.join(", "),
        explored.messages
    );
    text += &format!(
        "played: {} schedules to their ends, {} came to a state of one of these; {} slots, for the {} of all; {} distinct states\n",
        explored.ends,
        total.saturating_sub(explored.ends),
        explored.played,
        explored.slots,
        explored.states.iter().sum::<u64>()
    );
    let late = match mishaps.iter().any(|mishap| *mishap != Mishap::Lost) {
        true => format!(" by {} s", by.as_secs()),
        false => String::new(),
    };
    let holds = match told.len() {
        0 => "nothing was found".to_owned(),
        count => format!("{count} things do not hold"),
    };
    let part = if explored.interrupted { "not yet played to the end: " } else { "" };
    text + &format!(
        "summary: {part}{} delegates, {rules}, every schedule in which at most {deviations} messages ({}) of the first {slots} slots are \
         {}{late}: {holds}; of more, later and other messages, lost questions, other mishaps, wrong clocks and other seeds this says nothing",
        search.scenario.network.delegates,
        listed(kinds),
        mishaps.iter().map(|mishap| said(*mishap)).collect::<Vec<_>>().join(" or "),
    )
}

fn explored_as_json(search: &Exhaustive<'_>, explored: &Exploration, told: &[FindingReport]) -> Value {
    let found: Vec<Value> = told
        .iter()
        .map(|FindingReport { signature, shown, minimal, file }| {
            json!({
                "invariant": signature.invariant,
                "cause": signature.cause,
                "certified": signature.is_certified,
                "schedules": shown.schedules,
                "schedule": shown.schedule,
                "finding": minimal.finding,
                "shown": minimal.shown,
                "file": file,
            })
        })
        .collect();
    let Exploration { schedules, ends, messages, slots, played, states, depth, interrupted, found: _ } = explored;
    json!({
        "bounds": {
            "deviations": search.bounds.deviations,
            "slots": search.bounds.slots,
            "messages": search.bounds.kinds,
            "mishaps": search.bounds.mishaps,
            "late_by_s": search.bounds.by.as_secs(),
            "apart": !search.bounds.merge,
        },
        "delegates": search.scenario.network.delegates,
        "rules": search.scenario.rules_in_words(),
        "schedules": schedules,
        "ends": ends,
        "messages": messages,
        "slots": slots,
        "played": played,
        "states": states,
        "depth": depth,
        "interrupted": interrupted,
        "found": found,
    })
}
