//! `dposlab check`: searches for runs that break an invariant or an assertion, and minimises them.

mod exhaustive;
mod report;

use super::{
    Failure,
    interrupt::stop_on_interrupt,
    output,
    parent::WithParent,
    progress::Progress,
    shard::Part,
    span::{self, SearchTime, Seldom},
};
use crate::{
    check::{
        Finding, Minimal, Minimiser, Signature,
        database::{Database, DatabaseError, Place, ScenarioFile, Size},
        judge,
        known_causes::{KnownCauses, Rate},
        minimal::{self, file_name},
        search::{Found, Networks, RUN_SEED, Search, Summary},
        seeds::SeedSet,
        swarm::{Frame, ModelledRuns},
    },
    files::{self, TEXT_LIMIT},
    ledger::{Rules, rules},
    protocol::crypto::CryptoMode,
    report::sheet::write_whole,
    scenario::{Scenario, overrides::Override},
    sim::SeedTree,
    statistics::rates::Count,
};
use clap::{Args, builder::PossibleValuesParser};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// The default rules of drawn networks. A failure under these rules is no quirk of the reference.
const DRAWN_RULES: &str = "corrected";
/// The number of runs if neither `--runs` nor `--for` is given.
const RUNS: u64 = 200;

/// Search for runs that break an invariant: each run draws a network, a workload and faults from a seed of its own.
///
/// While faults last, only safety must hold. When the last fault is over, all nodes must come to one chain within half an
/// hour of virtual time, and the chain must grow. The assertions of a given scenario must hold in the runs drawn around it,
/// too. The search distinguishes findings by their causes, minimises them and writes each to a scenario file that `dposlab
/// run` plays. Exit code 0: nothing was found; 1: something was; 2: it could not be searched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// A scenario to search around: its network, rules and assertions stay, faults and clients are drawn beside its own.
    scenario: Option<PathBuf>,
    /// Replace a value of the scenario, or add an entry to a list: 'assert[+]={ always = "rollback-depth <= 2" }'. May be given again.
    #[arg(long, value_name = "PATH=VALUE", requires = "scenario")]
    set: Vec<Override>,
    /// Runs to play; 200, if neither this nor --for is given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Play until this time is over, such as 90s, 10m or 2h, or forever; with --runs, until whichever comes first.
    ///
    /// The folder of --out is then a database of findings, which any number of searches share, and which `dposlab merge` joins with
    /// others. First it plays the file of each known finding, and names one that shows no more. Then the search plays the seeds
    /// that it has not played yet. Ctrl-C, or the end of the process, loses the runs of the last second. Minimising findings takes
    /// time beyond it.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<SearchTime>,
    /// Let up to seven runs of ten begin as an earlier run did, up to a rare state of a node, and go on with other faults and clients.
    ///
    /// It finds faults sooner that need several conditions in order (docs/checking.md says how much). Its runs are not independent, so
    /// a share of them is no rate. It holds no node against the model of an honest one.
    #[arg(long, conflicts_with_all = ["time", "draw", "known", "record_known", "behaviour"])]
    guided: bool,
    /// Play only one part of the seeds: I of N, such as 1/8, or 'auto' in an array of Slurm or Kubernetes.
    #[arg(long, value_name = "I/N", requires = "time", conflicts_with_all = ["draw", "record_known"])]
    shard: Option<Part>,
    /// The first run is drawn from this seed, the second from the next one, and so on.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The rules of all nodes, whatever the scenario says; if not given, those of the scenario, and 'corrected' without a scenario.
    #[arg(long, value_parser = PossibleValuesParser::new(rules::all().map(|named| named.name)))]
    rules: Option<String>,
    /// The treatment of signatures; modelled, if not given, or as the scenario says.
    #[arg(long, value_enum, value_name = "MODE")]
    crypto: Option<CryptoMode>,
    /// Delegates of every network; drawn, if not given. Not beside a scenario.
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
    #[arg(long, conflicts_with_all = ["jobs", "budget", "json", "time"])]
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
    behaviour: ModelledRuns,
    #[command(flatten)]
    exhaustive: exhaustive::ExhaustiveBounds,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    parent: WithParent,
    #[command(flatten)]
    progress: Progress,
}

const EXAMPLES: &str = "\
Examples:
  dposlab check                                      200 runs under the corrected rules
  dposlab check --rules reference --for 10m          as many as ten minutes take; the same again goes on from there
  dposlab check --guided --runs 20000                runs that branch from rare states of earlier ones
  dposlab check scenarios/heal.toml --runs 1000      around a scenario, whose assertions must hold
  dposlab check --for 5m --known tests/data/known-causes.txt      only what is not known fails
  dposlab check --for forever --shard 1/2 --out out/one           until Ctrl-C; 'dposlab merge' joins the two folders
  dposlab check --exhaustive 2 --delegates 4         all that can come of two lost messages in eight slots";

/// A finding of the search, with its rate, its minimal scenario and its file.
struct ReportedFinding {
    signature: Signature,
    found: Found,
    is_known: bool,
    /// The comparison with the recorded rate. `AsRecorded` if the cause is not known.
    rate: Rate,
    minimal: Option<Minimal>,
    /// The scenario file of a finding that is not known.
    file: Option<PathBuf>,
}

/// A finding of the database whose file was played before the search.
struct ReplayedFinding {
    signature: Signature,
    file: PathBuf,
    outcome: FileOutcome,
}

/// The outcome of a finding's file.
enum FileOutcome {
    Shown(Box<Finding>),
    /// Its run reached the end without the finding.
    Gone,
    /// The reason why the file was not played.
    NotPlayed(String),
}

/// The result of a search, with its database.
#[derive(Default)]
struct SearchResult {
    summary: Summary,
    replayed: Vec<ReplayedFinding>,
    /// The findings of earlier searches of this frame; `None` if there was none.
    earlier: Option<BTreeSet<Signature>>,
    /// The database, and the place of this search in it.
    kept: Option<(Database, Place)>,
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
        // The lock of the folder holds until the last file is written.
        let _lock = self.time.map(|_| self.lock()).transpose()?;
        let searched = match self.time {
            None => SearchResult { summary: self.play(&search, &networks, &stop), ..SearchResult::default() },
            Some(time) => self.play_for(time, &search, &networks, &stop)?,
        };
        let interrupted = stop.load(Ordering::Relaxed) && !search.is_over(&searched.summary.done);
        let told = self.write_all(&searched, &known, &search, &networks, &stop)?;
        if self.json {
            output::line(&self.as_json(&search, &searched, &told, &known, interrupted).to_string());
        } else {
            output::line(&self.as_text(&search, &searched, &told, &known));
        }
        if !interrupted {
            self.record(&search, &searched.summary, &known)?;
        }
        self.outcome(&search, &searched.summary, &told, interrupted)
    }

    /// Loads the list of known causes, if one is given. Its counts must come from runs that are drawn like those of this search.
    fn load_known(&self, search: &Search) -> Result<KnownCauses, Failure> {
        let (option, file) = match (&self.known, &self.record_known) {
            (Some(file), _) => ("--known", file),
            (None, Some(file)) => ("--record-known", file),
            (None, None) => return Ok(KnownCauses::default()),
        };
        let wrong = |why: String| Failure::usage(format!("{option} {}: {why}", file.display()));
        let text = files::read_text(file, TEXT_LIMIT).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        if self.record_known.is_some() {
            return KnownCauses::read_to_record(&text).map_err(wrong);
        }
        let known = KnownCauses::read(&text).map_err(wrong)?;
        known.check_drawn(&self.drawn(search)).map_err(wrong)?;
        Ok(known)
    }

    /// Writes the counts of the search into the list.
    fn record(&self, search: &Search, summary: &Summary, known: &KnownCauses) -> Result<(), Failure> {
        let Some(file) = &self.record_known else { return Ok(()) };
        if summary.runs() == 0 {
            let file = file.display();
            return Err(Failure::usage(format!(
                "--record-known {file}: found 0 runs, allowed is at least 1; it is as it was"
            )));
        }
        let text = known.record(&self.drawn(search), |signature| counted(summary, signature));
        fs::write(file, text)
            .map_err(|error| Failure::broken(format!("--record-known {}: cannot be written: {error}", file.display())))
    }

    fn outcome(
        &self,
        search: &Search,
        summary: &Summary,
        told: &[ReportedFinding],
        interrupted: bool,
    ) -> Result<(), Failure> {
        let again = if self.time.is_some() { "; the same command goes on from there" } else { "" };
        let runs = summary.runs();
        let played = match self.asked_of_part(search, summary) {
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

    /// Refuses a number of delegates beside a scenario, whose network stays.
    fn check_delegates(&self) -> Result<(), Failure> {
        match (&self.scenario, self.delegates) {
            (Some(file), Some(found)) => Err(Failure::usage(format!(
                "--delegates: found {found} beside {}, allowed is none: the scenario says how many there are, \
                 and --set network.delegates changes it",
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    fn search(&self) -> Result<Search, Failure> {
        self.check_delegates()?;
        let load = |file| Scenario::load_with(file, &self.set);
        let mut base = self.scenario.as_deref().map(load).transpose().map_err(Failure::usage)?;
        if let (Some(base), Some(file)) = (&base, &self.scenario) {
            let seeds = SeedTree::new(RUN_SEED);
            let judged = judge(base, &base.plan(&base.testnet(seeds), seeds)).map(drop);
            judged.map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?;
        }
        let mut rules = toml::Table::new();
        match (&mut base, &self.rules) {
            // Without `--rules`, a scenario keeps its own rules.
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
        // The search tests rules and not cryptography: a modelled signature is refused in the same cases as a real one.
        let crypto = self.crypto.or_else(|| base.is_none().then_some(CryptoMode::Modelled));
        let behaviour = if self.guided { ModelledRuns::Never } else { self.behaviour };
        let frame = Frame { base, rules, crypto, delegates: self.delegates, rounds: self.rounds, behaviour };
        let jobs = super::jobs(self.jobs.map(usize::from));
        let runs = self.runs.unwrap_or(if self.time.is_some() { u64::MAX } else { RUNS });
        let part = self.shard.map(|Part(shard)| (shard.index, shard.of));
        let search = Search { frame, runs, seed: self.seed, part, jobs, guided: self.guided };
        if let (0, Some(Part(shard))) = (search.runs_of_part(), self.shard) {
            return Err(Failure::usage(format!(
                "--shard {}: found no seeds of {runs} for this part, allowed are more runs or fewer parts: each has 64 seeds in turn",
                String::from(shard)
            )));
        }
        Ok(search)
    }

    fn play(&self, search: &Search, networks: &Networks, stop: &AtomicBool) -> Summary {
        let bar = bar(search.runs, "{bar:40} run {pos}/{len}, {msg}, {eta} left");
        let summary = search.run(networks, stop, |summary| {
            bar.set_position(summary.runs());
            bar.set_message(format!("{} found", summary.found.len()));
            self.progress.tell(summary.runs(), search.runs, json!({ "found": summary.found.len() }));
        });
        bar.finish_and_clear();
        summary
    }

    /// Locks the database, so that no other process writes it.
    fn lock(&self) -> Result<fs::File, Failure> {
        let path = self.out.join("search.lock");
        let opened = fs::create_dir_all(&self.out)
            .and_then(|()| fs::File::options().create(true).truncate(false).write(true).open(&path));
        let file = opened.map_err(|error| failure_of_file(&path, "written", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(Failure::usage(format!(
                "--out {}: found a search that runs there, allowed is one at a time: give each its folder, and join them with \
                 'dposlab merge'",
                self.out.display()
            ))),
            Err(fs::TryLockError::Error(error)) => Err(failure_of_file(&path, "locked", &error)),
        }
    }

    /// Plays the files of known findings, and continues a search from its database, until the time is over or the user stops it.
    fn play_for(
        &self,
        time: SearchTime,
        search: &Search,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Result<SearchResult, Failure> {
        let place = Place::of(search, networks);
        let mut database = Database::load(&self.out).map_err(failure)?;
        let earlier = database.frames.get(&place.frame).map(|frame| frame.findings().cloned().collect());
        let replayed = self.replay(&database, &place, networks, stop);
        let summary = database.summary(&self.out, &place, search, networks).map_err(failure)?;
        let length = time.seconds().unwrap_or(u64::MAX);
        let bar = bar(length, if length == u64::MAX { "{elapsed}, {msg}" } else { "{bar:40} {elapsed} of {msg}" });
        let (unwritten, halt, seldom) = (Mutex::new(None), AtomicBool::new(false), Seldom::new());
        let kept = Mutex::new(&mut database);
        let save = |summary: &Summary| {
            let mut database = kept.lock().expect("no thread panics while holding it");
            database.take(&place, summary);
            if let Err(error) = database.save(&self.out) {
                unwritten.lock().expect("no thread panics while holding it").get_or_insert(error);
                halt.store(true, Ordering::Relaxed);
            }
        };
        save(&summary);
        let summary = span::until_over(time, stop, &halt, || {
            search.go_on(summary, networks, &halt, |summary| {
                seldom.run(|| save(summary));
                let seconds = bar.elapsed().as_secs();
                bar.set_position(seconds);
                let more = json!({ "unit": "s", "runs": summary.runs(), "found": summary.found.len() });
                self.progress.tell(seconds, time.seconds().unwrap_or(seconds), more);
                bar.set_message(format!("{time}, {} runs, {} found", summary.runs(), summary.found.len()));
            })
        });
        save(&summary);
        bar.finish_and_clear();
        match unwritten.into_inner().expect("all threads have ended well") {
            None => Ok(SearchResult { summary, replayed, earlier, kept: Some((database, place)) }),
            Some(error) => Err(failure(error)),
        }
    }

    /// Plays the file of each finding that the database has of this frame.
    fn replay(
        &self,
        database: &Database,
        place: &Place,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Vec<ReplayedFinding> {
        let files = database.frames.get(&place.frame).map(|frame| &frame.files).into_iter().flatten();
        let bar = bar(files.clone().count() as u64, "{bar:40} known finding {pos}/{len}");
        let mut replayed = Vec::new();
        for (signature, ScenarioFile { name, .. }) in files {
            let file = self.out.join(name);
            let is_stopped = || stop.load(Ordering::Relaxed);
            let outcome = match Scenario::load(&file) {
                _ if is_stopped() => FileOutcome::NotPlayed("the search was interrupted before".to_owned()),
                Err(why) => FileOutcome::NotPlayed(why.to_string()),
                Ok(scenario) => match minimal::replay(&scenario, signature, networks, stop) {
                    Some(finding) => FileOutcome::Shown(Box::new(finding)),
                    None if is_stopped() => {
                        FileOutcome::NotPlayed("the search was interrupted before its end".to_owned())
                    }
                    None => FileOutcome::Gone,
                },
            };
            replayed.push(ReplayedFinding { signature: signature.clone(), file, outcome });
            bar.inc(1);
        }
        bar.finish_and_clear();
        replayed
    }

    /// Writes a file for each finding that is not known, minimised within the budget.
    fn write_all(
        &self,
        searched: &SearchResult,
        known: &KnownCauses,
        search: &Search,
        networks: &Networks,
        stop: &AtomicBool,
    ) -> Result<Vec<ReportedFinding>, Failure> {
        let summary = &searched.summary;
        let mut found = summary.found.clone();
        for ReplayedFinding { signature, outcome, .. } in &searched.replayed {
            if let FileOutcome::Shown(finding) = outcome {
                let only_its_file =
                    || Found { finding: Finding::clone(finding), seeds: SeedSet::default(), scenario: None };
                found.entry(signature.clone()).or_insert_with(only_its_file);
            }
        }
        let mut told: Vec<ReportedFinding> = found
            .into_iter()
            .map(|(signature, found)| {
                let is_known = known.has(&signature);
                let before = searched.replayed.iter().find(|one| one.signature == signature);
                // A finding keeps a file that was not played, if the file still exists.
                let is_good = |one: &&ReplayedFinding| !matches!(one.outcome, FileOutcome::Gone) && one.file.exists();
                let file = before.filter(is_good).filter(|_| !is_known).map(|one| one.file.clone());
                let rate = match is_known && self.known.is_some() {
                    true => known.rate(&signature, counted(summary, &signature)),
                    false => Rate::AsRecorded,
                };
                ReportedFinding { signature, found, is_known, rate, minimal: None, file }
            })
            .collect();
        let place = |told: &ReportedFinding| (told.found.seeds.first().unwrap_or(u64::MAX), told.signature.clone());
        told.sort_by_key(place);
        let none = BTreeMap::new();
        let of_frame = searched.kept.as_ref().and_then(|(database, place)| database.frames.get(&place.frame));
        let before = of_frame.map_or(&none, |frame| &frame.files);
        let is_wanted = |told: &ReportedFinding| match (&told.file, before.get(&told.signature)) {
            _ if told.is_known => false,
            (None, _) => true,
            // The budget allows more runs than were tried before.
            (Some(_), Some(&ScenarioFile { tried: Some(tried), .. })) => {
                tried < self.budget as u64 && told.found.seeds.count() > 0
            }
            (Some(_), _) => false,
        };
        self.make_small(told.iter_mut().filter(|told| is_wanted(told)).collect(), search, networks, stop);
        let mut files = Vec::new();
        for told in &mut told {
            let Some(minimal) = &told.minimal else { continue };
            let is_cut = minimal.cut_short || self.budget == 0 || stop.load(Ordering::Relaxed);
            let tried = is_cut.then_some(minimal.runs as u64);
            let size = Size::of(minimal);
            let file = match (&told.file, before.get(&told.signature)) {
                (Some(_), Some(old)) if old.size <= size => {
                    let tried = tried.map(|tried| tried.max(old.tried.unwrap_or(0)));
                    files.push((told.signature.clone(), ScenarioFile { tried, ..old.clone() }));
                    told.minimal = None;
                    continue;
                }
                (Some(own), _) => self.write_file(own.clone(), &minimal.to_toml())?,
                (None, _) => self.write(minimal)?,
            };
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A file that does not show its finding is not recorded, so no later search plays it.
            if minimal.shown {
                files.push((told.signature.clone(), ScenarioFile { name, size, tried }));
            }
            told.file = Some(file);
        }
        if let Some((database, place)) = &searched.kept {
            let mut database = database.clone();
            database.frames.entry(place.frame.clone()).or_default().files.extend(files);
            database.save(&self.out).map_err(failure)?;
        }
        Ok(told)
    }

    /// Minimises findings on as many threads as the search has. After an interrupt, findings stay as they are.
    fn make_small(&self, wanted: Vec<&mut ReportedFinding>, search: &Search, networks: &Networks, stop: &AtomicBool) {
        let (bars, next) = (MultiProgress::new(), AtomicUsize::new(0));
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
        // A finding without a file was shown by a run.
        let seed = found.seeds.first().unwrap_or(search.seed);
        let minimiser = Minimiser { networks, budget: self.budget, stop, base: search.frame.base.as_ref() };
        let scenario = found.scenario.as_deref().cloned().unwrap_or_else(|| search.scenario(seed));
        let minimal = minimiser.minimise(&scenario, &found.finding, |tried, best| {
            bar.set_position(tried as u64);
            let (faults, actions) = (best.faults.len(), best.actions.len());
            bar.set_message(format!("{} nodes, {faults} faults, {actions} actions", best.network.nodes()));
        });
        bar.finish_and_clear();
        minimal
    }

    /// Writes a finding's file under a name that no other file has.
    fn write(&self, minimal: &Minimal) -> Result<PathBuf, Failure> {
        let text = minimal.to_toml();
        for number in 1_u32.. {
            let path = self.out.join(file_name(minimal.finding.invariant, number));
            match files::read_text(&path, TEXT_LIMIT) {
                Ok(other) if other == text => return Ok(path),
                Err(why) if why.kind() == io::ErrorKind::NotFound => return self.write_file(path, &text),
                // Another file has this name, and stays.
                Ok(_) => {}
                Err(_) if path.symlink_metadata().is_ok() => {}
                Err(error) => return Err(failure_of_file(&path, "written", &error)),
            }
        }
        unreachable!("there are more numbers than files")
    }

    fn write_drawn(&self, search: &Search) -> Result<(), Failure> {
        let mut drawn: u64 = 0;
        for seed in search.seeds() {
            self.write_file(self.out.join(format!("drawn-{seed}.toml")), &search.scenario(seed).to_toml())?;
            drawn += 1;
        }
        output::line(&format!("{drawn} scenarios drawn: {}", self.out.display()));
        Ok(())
    }

    fn write_file(&self, path: PathBuf, text: &str) -> Result<PathBuf, Failure> {
        fs::create_dir_all(&self.out).map_err(|error| failure_of_file(&self.out, "written", &error))?;
        // A full disk leaves the file that was there.
        write_whole(&path, text.as_bytes()).map_err(Failure::broken)?;
        Ok(path)
    }
}

impl ReportedFinding {
    /// Returns true if the cause is known and comes more often than recorded.
    fn comes_too_often(&self) -> bool {
        self.is_known && matches!(self.rate, Rate::More(_))
    }
}

/// The number of runs that showed a cause, out of all runs of the search.
fn counted(summary: &Summary, signature: &Signature) -> Count {
    Count { so: summary.found.get(signature).map_or(0, |found| found.seeds.count()), of: summary.runs() }
}

fn failure_of_file(path: &Path, doing: &str, error: &io::Error) -> Failure {
    Failure::broken(format!("{}: cannot be {doing}: {error}", path.display()))
}

fn failure(error: DatabaseError) -> Failure {
    match error.is_bad_input() {
        true => Failure::usage(error),
        false => Failure::broken(error),
    }
}

/// Returns a progress bar. Only a terminal shows it, until the caller clears it.
fn bar(length: u64, template: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is fixed");
    ProgressBar::new(length).with_style(style)
}
