//! `dposlab check`: searches for runs in which something does not hold, and makes them small.

mod exhaustive;
mod span;
mod told;

use super::{Failure, interrupt::stop_on_interrupt, memory::Memory, output, parent::WithParent, progress::Progress};
use crate::{
    check::{
        Minimal, Minimiser, Signature, judge,
        kept::{Guard, Kept, KeptError},
        known::{Known, Rate},
        search::{Found, Networks, RUN_SEED, Search, Summary},
        swarm::{Frame, Modelled},
    },
    files::{self, TEXT_LIMIT},
    ledger::{Rules, rules::NAMED},
    protocol::crypto::CryptoMode,
    scenario::{Scenario, memory::Need},
    sim::SeedTree,
    statistics::rates::Count,
};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::json;
use span::Span;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Runs of which it is looked how much memory they need: by then most kinds of networks have been drawn.
const DRAWN: u64 = 16;
/// The rules of networks that are drawn, if no others are asked for: what breaks under these is no quirk of the reference.
const DRAWN_RULES: &str = "corrected";
/// Runs that are played if neither their number nor a time is given.
const RUNS: u64 = 200;

/// Search for runs that break an invariant: each run draws a network, a workload and faults from a seed of its own.
///
/// While things go wrong only safety is asked for; when the last fault is over, all nodes must come to one chain within
/// half an hour of virtual time, and the chain must grow. What a given scenario asserts must hold in the runs drawn around
/// it, too. What breaks is told apart by its cause, made as small as it goes and written to a scenario file that `dposlab
/// run` plays. Exit code 0: nothing was found; 1: something was; 2: it could not be searched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// A scenario to search around: its network, rules and assertions stay, faults and clients are drawn beside its own.
    scenario: Option<PathBuf>,
    /// Runs to play; 200, if neither this nor --for is given.
    #[arg(long)]
    runs: Option<u64>,
    /// Play until this time is over, such as 90s, 10m or 2h; with --runs, until whichever comes first.
    ///
    /// The file search.json in --out keeps the progress, and the same command continues from there: Ctrl-C, or the end of
    /// the process, loses only the runs that are being played. Minimising findings takes time beyond it.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Span>,
    /// The first run is drawn from this seed, the second from the next one, and so on.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The rules of all nodes, whatever the scenario says; if not given, those of the scenario, and 'corrected' without a scenario.
    #[arg(long, value_parser = NAMED.map(|named| named.name))]
    rules: Option<String>,
    /// The treatment of signatures; modelled, if not given, or as the scenario says.
    #[arg(long, value_enum, value_name = "MODE")]
    crypto: Option<CryptoMode>,
    /// Delegates of every network; drawn, if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1000))]
    delegates: Option<u32>,
    /// Rounds in which things go wrong; about 120 slots, if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Runs at a time; one for each core, if not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Runs spent on making each finding small; 0 leaves it as it was found.
    #[arg(long, default_value_t = 400)]
    budget: usize,
    /// The folder for the scenario files of findings. No file of another finding is written over.
    #[arg(long, default_value = "findings")]
    out: PathBuf,
    /// Write the scenarios that would be played to --out, a file a seed, and play none.
    #[arg(long, conflicts_with_all = ["jobs", "budget", "json"])]
    draw: bool,
    /// A list of known causes, each with the count of runs that it was recorded with: what has such a cause, and comes no more
    /// often, is counted and no more, and the exit code is that of all else.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Write the counts of this search into such a list, in place of those it has or where it has none.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["known", "draw"])]
    record_known: Option<PathBuf>,
    /// Hold each node against the model of an honest one as well, message by message: in all runs, in those whose seed can be
    /// divided by four, whose networks are drawn quick and without flaws, or in none. Such a run takes twice as long. Around a
    /// scenario with a flaw, 'drawn' means none.
    #[arg(long, value_enum, value_name = "RUNS", default_value = "drawn")]
    behaviour: Modelled,
    #[command(flatten)]
    exhaustive: exhaustive::Asked,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    parent: WithParent,
    #[command(flatten)]
    progress: Progress,
}

const EXAMPLES: &str = "\
Examples:
  dposlab check                                      200 runs under the corrected rules
  dposlab check --rules reference --for 10m          as many as ten minutes take; the same again goes on from there
  dposlab check scenarios/heal.toml --runs 1000      around a scenario, whose assertions must hold
  dposlab check --for 5m --known tests/data/known-causes.txt      only what is not known fails
  dposlab check --exhaustive 2 --delegates 4         all that can come of two lost messages in eight slots";

/// A finding of the search, and what became of it.
struct Told {
    signature: Signature,
    found: Found,
    is_known: bool,
    /// How often it comes, if it is known.
    rate: Rate,
    minimal: Option<Minimal>,
    /// The scenario file, if it is not known.
    file: Option<PathBuf>,
}

impl Check {
    /// Searches.
    ///
    /// # Errors
    /// The scenario cannot be read, something was found, or the search was interrupted.
    pub fn run(self) -> Result<(), Failure> {
        self.parent.watch()?;
        if let Some(deviations) = self.exhaustive.deviations() {
            return self.explore(deviations);
        }
        let search = self.search()?;
        if self.draw {
            return self.write_drawn(&search);
        }
        let known = self.load_known(&search)?;
        let stop = stop_on_interrupt()?;
        let networks = Networks::default();
        let (summary, files) = match self.time {
            None => (self.play(&search, &networks, &stop), BTreeMap::new()),
            Some(time) => self.play_for(time, &search, &networks, &stop)?,
        };
        let interrupted = stop.load(Ordering::Relaxed) && summary.runs < search.runs;
        let told = self.write_all(&summary, files, &known, &search, &networks, &stop)?;
        if self.json {
            output::line(&self.as_json(&search, &summary, &told, &known, interrupted).to_string());
        } else {
            output::line(&self.as_text(&search, &summary, &told, &known));
        }
        if !interrupted {
            self.record(&search, &summary, &known)?;
        }
        self.outcome(&summary, &told, interrupted)
    }

    /// The list of known causes, if one is given; its records are of runs drawn as this search draws.
    fn load_known(&self, search: &Search) -> Result<Known, Failure> {
        let (option, file) = match (&self.known, &self.record_known) {
            (Some(file), _) => ("--known", file),
            (None, Some(file)) => ("--record-known", file),
            (None, None) => return Ok(Known::default()),
        };
        let wrong = |why: String| Failure::usage(format!("{option} {}: {why}", file.display()));
        let text = files::read_text(file, TEXT_LIMIT).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        if self.record_known.is_some() {
            return Known::read_to_record(&text).map_err(wrong);
        }
        let known = Known::read(&text).map_err(wrong)?;
        known.check_drawn(&self.drawn(search)).map_err(wrong)?;
        Ok(known)
    }

    /// Writes the counts of the search into the list.
    fn record(&self, search: &Search, summary: &Summary, known: &Known) -> Result<(), Failure> {
        let Some(file) = &self.record_known else { return Ok(()) };
        if summary.runs == 0 {
            let file = file.display();
            return Err(Failure::usage(format!(
                "--record-known {file}: found 0 runs, allowed is at least 1; it is as it was"
            )));
        }
        let text = known.record(&self.drawn(search), |signature| counted(summary, signature));
        fs::write(file, text)
            .map_err(|error| Failure::broken(format!("--record-known {}: cannot be written: {error}", file.display())))
    }

    fn outcome(&self, summary: &Summary, told: &[Told], interrupted: bool) -> Result<(), Failure> {
        let again = if self.time.is_some() { "; the same command goes on from there" } else { "" };
        let runs = summary.runs;
        let played = match self.runs_asked() {
            Some(asked) if interrupted => format!("interrupted: {runs} of {asked} runs were played, and"),
            None if interrupted => format!("interrupted: {runs} runs were played, and"),
            _ => format!("{runs} runs were played, and"),
        };
        let (mut wrong, again) = (Vec::new(), if interrupted { again } else { "" });
        match told.iter().filter(|told| !told.is_known).count() {
            0 => {}
            count => wrong.push(format!("{count} things do not hold")),
        }
        match told.iter().filter(|told| told.comes_too_often()).count() {
            0 => {}
            1 => wrong.push("1 known cause comes more often than recorded".to_owned()),
            count => wrong.push(format!("{count} known causes come more often than recorded")),
        }
        match wrong.is_empty() {
            true if interrupted => Err(Failure::broken(format!("{played} nothing was found in those{again}"))),
            true => Ok(()),
            false => Err(Failure::broken(format!("{played} {}{again}", wrong.join(", and ")))),
        }
    }

    fn search(&self) -> Result<Search, Failure> {
        let mut base = self.scenario.as_deref().map(Scenario::load).transpose().map_err(Failure::usage)?;
        if let (Some(base), Some(file)) = (&base, &self.scenario) {
            let seeds = SeedTree::new(RUN_SEED);
            let judged = judge(base, &base.plan(&base.testnet(seeds), seeds)).map(drop);
            judged.map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?;
        }
        let mut rules = toml::Table::new();
        match (&mut base, &self.rules) {
            // A file is searched under the rules that it is played under.
            (Some(_), None) => {}
            (Some(base), Some(asked)) => {
                base.rules.insert("base".to_owned(), asked.clone().into());
            }
            (None, asked) => {
                let asked = asked.clone().unwrap_or_else(|| DRAWN_RULES.to_owned());
                rules.insert("base".to_owned(), asked.into());
            }
        }
        Rules::from_toml(&rules).map_err(Failure::usage)?;
        // Rules are looked for and not curves: the model of a signature is refused where the signature would be.
        let crypto = self.crypto.or_else(|| base.is_none().then_some(CryptoMode::Modelled));
        let frame =
            Frame { base, rules, crypto, delegates: self.delegates, rounds: self.rounds, behaviour: self.behaviour };
        let jobs = super::jobs(self.jobs.map(usize::from));
        let runs = self.runs.unwrap_or(if self.time.is_some() { u64::MAX } else { RUNS });
        let search = Search { frame, runs, seed: self.seed, jobs };
        if !self.draw {
            self.check_memory(&search)?;
        }
        Ok(search)
    }

    /// Checks the memory: the need of the largest of the first runs, for as many as are played at a time.
    fn check_memory(&self, search: &Search) -> Result<(), Failure> {
        let drawn = (0..search.runs.min(DRAWN)).map(|index| search.scenario(index).memory());
        let most = drawn.max_by_key(Need::bytes).unwrap_or_default();
        let what = self.scenario.as_deref().unwrap_or(Path::new("check"));
        self.memory.check(what, &most, search.runs.min(search.jobs as u64))
    }

    fn play(&self, search: &Search, networks: &Networks, stop: &AtomicBool) -> Summary {
        let bar = bar(search.runs, "{bar:40} run {pos}/{len}, {msg}, {eta} left");
        let summary = search.run(networks, stop, |summary| {
            bar.set_position(summary.runs);
            bar.set_message(format!("{} found", summary.found.len()));
            self.progress.tell(summary.runs, search.runs, json!({ "found": summary.found.len() }));
        });
        bar.finish_and_clear();
        summary
    }

    /// Goes on where the folder says that the search was, until the time is over or somebody stops it.
    fn play_for(
        &self,
        time: Span,
        search: &Search,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Result<(Summary, BTreeMap<Signature, String>), Failure> {
        let guard = Guard::of(search, networks);
        let Kept { summary, files } = Kept::load(&self.out, &guard, search, networks).map_err(failure)?;
        let bar = bar(time.seconds(), "{bar:40} {elapsed} of {msg}");
        let unwritten = Mutex::new(None);
        let halt = AtomicBool::new(false);
        let save = |summary: &Summary| {
            if let Err(error) = Kept::save(&self.out, &guard, summary, &files) {
                unwritten.lock().expect("no one panics while holding it").get_or_insert(error);
                halt.store(true, Ordering::Relaxed);
            }
        };
        save(&summary);
        let summary = span::until_over(time, stop, &halt, || {
            search.go_on(summary, networks, &halt, |summary| {
                save(summary);
                bar.set_position(bar.elapsed().as_secs());
                let more = json!({ "unit": "s", "runs": summary.runs, "found": summary.found.len() });
                self.progress.tell(bar.elapsed().as_secs(), time.seconds(), more);
                bar.set_message(format!("{time}, {} runs, {} found", summary.runs, summary.found.len()));
            })
        });
        bar.finish_and_clear();
        match unwritten.into_inner().expect("all threads have ended well") {
            None => Ok((summary, files)),
            Some(error) => Err(failure(error)),
        }
    }

    /// Writes a file for each finding that is not known: small, as far as the budget goes.
    fn write_all(
        &self,
        summary: &Summary,
        mut files: BTreeMap<Signature, String>,
        known: &Known,
        search: &Search,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Result<Vec<Told>, Failure> {
        let mut told: Vec<Told> = summary
            .found
            .iter()
            .map(|(signature, found)| {
                let is_known = known.has(signature);
                let file = files.get(signature).filter(|_| !is_known).map(|name| self.out.join(name));
                let file = file.filter(|file| file.exists());
                let rate = match is_known && self.known.is_some() {
                    true => known.rate(signature, counted(summary, signature)),
                    false => Rate::AsRecorded,
                };
                Told { signature: signature.clone(), found: found.clone(), is_known, rate, minimal: None, file }
            })
            .collect();
        told.sort_by(|one, other| (one.found.index, &one.signature).cmp(&(other.found.index, &other.signature)));
        self.make_small(&mut told, search, networks, stop);
        for told in told.iter_mut() {
            let Some(minimal) = &told.minimal else { continue };
            let file = self.write(minimal)?;
            files.extend(file.file_name().map(|name| (told.signature.clone(), name.to_string_lossy().into_owned())));
            told.file = Some(file);
        }
        if self.time.is_some() {
            Kept::save(&self.out, &Guard::of(search, networks), summary, &files).map_err(failure)?;
        }
        Ok(told)
    }

    /// Makes findings without a file small, on as many threads as the search; when nobody waits any more, they stay as
    /// they are.
    fn make_small(&self, told: &mut [Told], search: &Search, networks: &Networks, stop: &AtomicBool) {
        let (bars, next) = (MultiProgress::new(), AtomicUsize::new(0));
        let wanted: Vec<&mut Told> = told.iter_mut().filter(|told| !told.is_known && told.file.is_none()).collect();
        let minimals: Vec<OnceLock<Minimal>> = wanted.iter().map(|_| OnceLock::new()).collect();
        thread::scope(|scope| {
            for _ in 0..search.jobs.clamp(1, wanted.len().max(1)) {
                scope.spawn(|| {
                    while let index = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(told) = wanted.get(index)
                    {
                        minimals[index].get_or_init(|| self.minimal(&told.found, search, networks, &bars, stop));
                    }
                });
            }
        });
        for (told, minimal) in wanted.into_iter().zip(minimals) {
            told.minimal = minimal.into_inner();
        }
    }

    fn minimal(
        &self,
        found: &Found,
        search: &Search,
        networks: &Networks,
        bars: &MultiProgress,
        stop: &AtomicBool,
    ) -> Minimal {
        let bar = bars.add(bar(self.budget as u64, "{bar:40} shrinking, {pos}/{len} runs: {msg}"));
        let minimiser = Minimiser { networks, budget: self.budget, stop, base: search.frame.base.as_ref() };
        let minimal = minimiser.minimise(&search.scenario(found.index), &found.finding, |tried, best| {
            bar.set_position(tried as u64);
            let (faults, actions) = (best.faults.len(), best.actions.len());
            bar.set_message(format!("{} nodes, {faults} faults, {actions} actions", best.network.nodes()));
        });
        bar.finish_and_clear();
        minimal
    }

    /// Writes a finding's file under a name that no other finding's has.
    fn write(&self, minimal: &Minimal) -> Result<PathBuf, Failure> {
        let text = minimal.to_toml();
        for number in 1_u32.. {
            let path = self.out.join(minimal.file_name(number));
            match files::read_text(&path, TEXT_LIMIT) {
                Ok(other) if other == text => return Ok(path),
                Err(why) if why.kind() == io::ErrorKind::NotFound => return self.write_file(path, &text),
                // Something else lies there, and stays.
                Ok(_) | Err(_) => {}
            }
        }
        unreachable!("there are more numbers than files")
    }

    fn write_drawn(&self, search: &Search) -> Result<(), Failure> {
        for index in 0..search.runs {
            let name = format!("drawn-{}.toml", self.seed.wrapping_add(index));
            self.write_file(self.out.join(name), &search.scenario(index).to_toml())?;
        }
        output::line(&format!("{} scenarios drawn: {}", search.runs, self.out.display()));
        Ok(())
    }

    fn write_file(&self, path: PathBuf, text: &str) -> Result<PathBuf, Failure> {
        fs::create_dir_all(&self.out).map_err(|error| failure_of_file(&self.out, "written", &error))?;
        fs::write(&path, text).map_err(|error| failure_of_file(&path, "written", &error))?;
        Ok(path)
    }
}

impl Told {
    /// Its cause is known, and comes more often than recorded.
    fn comes_too_often(&self) -> bool {
        self.is_known && matches!(self.rate, Rate::More(_))
    }
}

/// The runs of a search that showed a cause, of all.
fn counted(summary: &Summary, signature: &Signature) -> Count {
    Count { so: summary.found.get(signature).map_or(0, |found| found.runs), of: summary.runs }
}

fn failure_of_file(path: &Path, doing: &str, error: &io::Error) -> Failure {
    Failure::broken(format!("{}: cannot be {doing}: {error}", path.display()))
}

fn failure(error: KeptError) -> Failure {
    match error.is_bad_input() {
        true => Failure::usage(error),
        false => Failure::broken(error),
    }
}

/// Shown on a terminal only, and gone when it is over.
fn bar(length: u64, template: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is fixed");
    ProgressBar::new(length).with_style(style)
}
