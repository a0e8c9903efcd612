//! `dposlab check`: searches for runs in which something does not hold, and makes them small.

use super::{Failure, interrupt::stop_on_interrupt, output};
use crate::{
    check::{
        INTERESTING, Minimal,
        interval::wilson,
        minimise,
        search::{Found, Networks, Search, Summary},
        swarm::Frame,
    },
    ledger::Rules,
    protocol::crypto::CryptoMode,
    scenario::Scenario,
};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Search for runs that break an invariant: each run draws a network, a workload and faults from a seed of its own.
///
/// While things go wrong only safety is asked for; when the last fault is over, all nodes must come to one chain within
/// half an hour of virtual time, and the chain must grow. What breaks is made as small as it goes and written to a
/// scenario file that `dposlab run` plays. Exit code 0: nothing was found; 1: something was; 2: it could not be searched.
#[derive(Debug, Args)]
pub struct Check {
    /// A scenario to search around: its network and rules stay, faults and clients are drawn beside its own.
    scenario: Option<PathBuf>,
    /// Runs to play.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// The first run is drawn from this seed, the second from the next one, and so on.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The rules of all nodes.
    #[arg(long, default_value = "corrected", value_parser = ["reference", "corrected"])]
    rules: String,
    /// How signatures are treated; modelled, if not given, or as the scenario says.
    #[arg(long, value_enum, value_name = "MODE")]
    crypto: Option<CryptoMode>,
    /// Delegates of every network; drawn, if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1000))]
    delegates: Option<u32>,
    /// Rounds in which things go wrong; about 120 slots, if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Runs at a time; one for each core, if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Runs spent on making each finding small; 0 leaves it as it was found.
    #[arg(long, default_value_t = 400)]
    budget: usize,
    /// Where the scenario files of findings go.
    #[arg(long, default_value = "findings")]
    out: PathBuf,
    /// Write the scenarios that would be played to --out, a file a seed, and play none.
    #[arg(long, conflicts_with_all = ["jobs", "budget", "json"])]
    draw: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Plant a fault by name, or all of them one after the other, and measure how soon it is found.
    #[cfg(feature = "planted")]
    #[arg(long)]
    planted: Option<String>,
}

impl Check {
    /// Searches.
    ///
    /// # Errors
    /// The scenario cannot be read, something was found, or the search was interrupted.
    pub fn run(self) -> Result<(), Failure> {
        let search = self.search()?;
        if self.draw {
            return self.write_drawn(&search);
        }
        #[cfg(feature = "planted")]
        if let Some(which) = &self.planted {
            return super::planted::run(which, &search, self.budget, self.json);
        }
        let stop = stop_on_interrupt()?;
        let networks = Networks::default();
        let bar = bar(self.runs, "{bar:40} run {pos}/{len}, {msg}, {eta} left");
        let summary = search.run(&networks, &stop, |summary| {
            bar.set_position(summary.runs);
            bar.set_message(format!("{} found", summary.found.len()));
        });
        bar.finish_and_clear();
        let mut found: Vec<&Found> = summary.found.values().collect();
        found.sort_by_key(|found| (found.index, found.finding.invariant));
        let mut files = Vec::new();
        for minimal in self.minimals(&found, &search, &networks, &stop) {
            let file = minimal.as_ref().map(|minimal| self.write(minimal)).transpose()?;
            files.push((minimal, file));
        }
        if self.json {
            output::line(&self.as_json(&summary, &found, &files).to_string());
        } else {
            output::line(&self.as_text(&summary, &found, &files));
        }
        let played = match summary.runs {
            runs if runs < self.runs => format!("interrupted: {runs} of {} runs were played, and", self.runs),
            runs => format!("{runs} runs were played, and"),
        };
        match found.len() {
            0 if summary.runs < self.runs => Err(Failure::broken(format!("{played} nothing was found in those"))),
            0 => Ok(()),
            count => Err(Failure::broken(format!("{played} {count} things do not hold"))),
        }
    }

    fn search(&self) -> Result<Search, Failure> {
        let base = self.scenario.as_deref().map(Scenario::load).transpose().map_err(Failure::usage)?;
        let mut rules = toml::Table::new();
        rules.insert("base".to_owned(), self.rules.clone().into());
        Rules::from_toml(&rules).map_err(Failure::usage)?;
        // Rules are looked for and not curves: the model of a signature is refused where the signature would be.
        let crypto = self.crypto.or_else(|| base.is_none().then_some(CryptoMode::Modelled));
        let frame = Frame { base, rules, crypto, delegates: self.delegates, rounds: self.rounds };
        let jobs = self.jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
        Ok(Search { frame, runs: self.runs, seed: self.seed, jobs })
    }

    /// All findings made small, on as many threads as the search, or as small as they are when it is not waited for any
    /// more; nothing for those not begun.
    fn minimals(
        &self,
        found: &[&Found],
        search: &Search,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Vec<Option<Minimal>> {
        let (bars, next) = (MultiProgress::new(), AtomicUsize::new(0));
        let minimals: Vec<OnceLock<Minimal>> = found.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            while self.budget > 0
                && !stop.load(Ordering::Relaxed)
                && let index = next.fetch_add(1, Ordering::Relaxed)
                && index < found.len()
            {
                if let Some(minimal) = self.minimal(found[index], search, networks, &bars, stop) {
                    minimals[index].get_or_init(|| minimal);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..search.jobs.clamp(1, found.len().max(1)) {
                scope.spawn(work);
            }
        });
        minimals.into_iter().map(OnceLock::into_inner).collect()
    }

    fn minimal(
        &self,
        found: &Found,
        search: &Search,
        networks: &Networks,
        bars: &MultiProgress,
        stop: &AtomicBool,
    ) -> Option<Minimal> {
        let bar = bars.add(bar(self.budget as u64, "{bar:40} shrinking, {pos}/{len} runs: {msg}"));
        let scenario = search.scenario(found.index);
        let minimal = minimise(&scenario, found.finding.invariant, networks, self.budget, stop, |tried, best| {
            bar.set_position(tried as u64);
            let (faults, actions) = (best.faults.len(), best.actions.len());
            bar.set_message(format!("{} nodes, {faults} faults, {actions} actions", best.network.nodes()));
        });
        bar.finish_and_clear();
        minimal
    }

    fn write(&self, minimal: &Minimal) -> Result<PathBuf, Failure> {
        self.write_file(&minimal.file_name(), &minimal.to_toml())
    }

    fn write_drawn(&self, search: &Search) -> Result<(), Failure> {
        for index in 0..self.runs {
            let name = format!("drawn-{}.toml", self.seed.wrapping_add(index));
            self.write_file(&name, &search.scenario(index).to_toml())?;
        }
        output::line(&format!("{} scenarios drawn: {}", self.runs, self.out.display()));
        Ok(())
    }

    fn write_file(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            Failure::broken(format!("{}: cannot be written: {error}", path.display()))
        };
        fs::create_dir_all(&self.out).map_err(|error| failed(&self.out, &error))?;
        let path = self.out.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        Ok(path)
    }

    fn as_text(&self, summary: &Summary, found: &[&Found], files: &[(Option<Minimal>, Option<PathBuf>)]) -> String {
        let mut text = String::new();
        for (found, (minimal, file)) in found.iter().zip(files) {
            let (low, high) = wilson(found.runs, summary.runs);
            text += &format!(
                "broken: {} ({})\n  in {} of {} runs ({:.1} % to {:.1} %), first in that of seed {}\n",
                found.finding.invariant,
                found.finding.origin,
                found.runs,
                summary.runs,
                100.0 * low,
                100.0 * high,
                self.seed.wrapping_add(found.index),
            );
            let finding = minimal.as_ref().map_or(&found.finding, |minimal| &minimal.finding);
            let node = finding.node.map(|node| format!("{node}")).unwrap_or_else(|| "the network".to_owned());
            let height = finding.height.map(|height| format!(", height {height}")).unwrap_or_default();
            text += &format!("  {node}{height}: {}\n", finding.what);
            if let (Some(minimal), Some(file)) = (minimal, file) {
                let (faults, actions) = (minimal.scenario.faults.len(), minimal.scenario.actions.len());
                text += &format!(
                    "  made small in {} runs{}: {} nodes, {faults} faults, {actions} actions, {} rounds\n  dposlab run {}\n",
                    minimal.runs,
                    if minimal.cut_short { " (all that were allowed)" } else { "" },
                    minimal.scenario.network.nodes(),
                    minimal.scenario.rounds,
                    file.display(),
                );
            }
        }
        let sometimes: Vec<String> =
            INTERESTING.iter().map(|what| format!("{what} {}", summary.sometimes.of(what))).collect();
        let never: Vec<&str> = INTERESTING.into_iter().filter(|what| summary.sometimes.of(what) == 0).collect();
        text += &format!("sometimes: {}\n", sometimes.join(", "));
        if !never.is_empty() {
            text += &format!("never: {}\n", never.join(", "));
        }
        text += &format!(
            "summary: {} of {} runs from seed {}, rules '{}', {} slots, {} things do not hold",
            summary.runs,
            self.runs,
            self.seed,
            self.rules,
            summary.slots,
            found.len(),
        );
        text
    }

    fn as_json(&self, summary: &Summary, found: &[&Found], files: &[(Option<Minimal>, Option<PathBuf>)]) -> Value {
        let found: Vec<Value> = found
            .iter()
            .zip(files)
            .map(|(found, (minimal, file))| {
                let (low, high) = wilson(found.runs, summary.runs);
                json!({
                    "invariant": found.finding.invariant,
                    "source": found.finding.origin,
                    "runs": found.runs,
                    "share": [low, high],
                    "seed": self.seed.wrapping_add(found.index),
                    "finding": found.finding,
                    "file": file.as_ref().map(|file| file.display().to_string()),
                    "minimal": minimal.as_ref().map(|minimal| json!({
                        "runs": minimal.runs,
                        "cut_short": minimal.cut_short,
                        "nodes": minimal.scenario.network.nodes(),
                        "faults": minimal.scenario.faults.len(),
                        "actions": minimal.scenario.actions.len(),
                        "rounds": minimal.scenario.rounds,
                        "finding": minimal.finding,
                    })),
                })
            })
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "rules": self.rules,
            "seed": self.seed,
            "runs": summary.runs,
            "runs_asked": self.runs,
            "slots": summary.slots,
            "delivered": summary.delivered,
            "sometimes": summary.sometimes,
            "found": found,
        })
    }
}

/// Shown on a terminal only, and gone when it is over.
fn bar(length: u64, template: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is fixed");
    ProgressBar::new(length).with_style(style)
}
