//! Many runs, each drawn from a seed of its own, on all cores: the findings, and the first run that showed each of them.

use super::{
    Finding, Signature, Sometimes,
    guided::{self, Guide, GuidedRun, StateNotes},
    liveness::liveness,
    seeds::SeedSet,
    swarm::{self, Frame},
    trial,
    watchers::{OptionalWatchers, Outcome},
};
use crate::{
    scenario::{Scenario, Testnet},
    sim::SeedTree,
};
use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// The seed of every run of a search. It is the default seed of `dposlab run`, which therefore repeats the run of a scenario file.
pub const RUN_SEED: u64 = 1;

/// Generated networks, made once for each origin ([`Scenario::origin`]).
#[derive(Default)]
pub struct Networks(Mutex<BTreeMap<String, Arc<Testnet>>>);

/// The largest number of cached networks: drawn milestones make new ones without end.
const NETWORKS_MAX: usize = 64;

impl Networks {
    /// The network of a scenario.
    pub fn of(&self, scenario: &Scenario) -> Arc<Testnet> {
        let key = format!("{:?}", scenario.origin());
        let mut known = self.0.lock().expect("no thread panics while holding it");
        if known.len() >= NETWORKS_MAX && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_insert_with(|| Arc::new(scenario.testnet(SeedTree::new(RUN_SEED)))).clone()
    }
}

/// The number of consecutive seeds that go to the same part of a search, so that the seeds of a part form few ranges.
const BLOCK: u64 = 64;

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Search {
    pub frame: Frame,
    /// The seed of the first run. Each run is drawn from a seed of its own, ascending.
    pub seed: u64,
    /// Runs to play, of all parts together; `u64::MAX` where something else ends the search.
    pub runs: u64,
    /// The part of these runs that this process plays, from 1, and the number of parts; all of them where there is none.
    pub part: Option<(u64, u64)>,
    /// Threads, at least 1.
    pub jobs: usize,
    /// True if some runs branch from rare states of earlier ones.
    pub guided: bool,
}

/// One finding, with all runs of a search that showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The finding as it showed in the run of the lowest seed.
    pub finding: Finding,
    /// The seeds of the runs that showed it.
    pub seeds: SeedSet,
    /// The scenario of the lowest seed, if it is not drawn from the seed alone.
    pub scenario: Option<Arc<Scenario>>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The seeds of the runs played.
    pub done: SeedSet,
    /// By invariant and cause.
    pub found: BTreeMap<Signature, Found>,
    /// The counts of this process.
    pub session: SessionCounts,
}

/// Counts of the runs that one process played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCounts {
    pub runs: u64,
    pub slots: u64,
    pub delivered: u64,
    /// Runs that began as an earlier one.
    pub branched: u64,
    pub sometimes: Sometimes,
}

impl Summary {
    /// The number of runs that were played.
    pub const fn runs(&self) -> u64 {
        self.done.count()
    }

    /// The number of runs that broke each invariant, from any cause.
    pub fn broken(&self) -> BTreeMap<&'static str, u64> {
        let mut seeds: BTreeMap<&'static str, SeedSet> = BTreeMap::new();
        for (signature, found) in &self.found {
            seeds.entry(signature.invariant).or_default().extend(&found.seeds);
        }
        seeds.into_iter().map(|(invariant, seeds)| (invariant, seeds.count())).collect()
    }

    fn add(&mut self, seed: u64, outcome: Outcome, scenario: Option<&Arc<Scenario>>) {
        self.done.insert(seed);
        self.session.runs += 1;
        self.session.slots += u64::from(outcome.slots);
        self.session.delivered += outcome.delivered;
        self.session.sometimes.add(&outcome.sometimes);
        for finding in outcome.findings {
            let scenario = || scenario.cloned();
            let new = || Found { finding: finding.clone(), seeds: SeedSet::default(), scenario: scenario() };
            let found = self.found.entry(finding.signature()).or_insert_with(new);
            if found.seeds.first().is_some_and(|first| seed < first) {
                (found.finding, found.scenario) = (finding, scenario());
            }
            found.seeds.insert(seed);
        }
    }
}

impl Search {
    /// Plays all runs, or those that were over before `stop` was set. `progress` receives each finished run. The result does not depend
    /// on the number of threads.
    pub fn run(&self, networks: &Networks, stop: &AtomicBool, progress: impl Fn(&Summary) + Sync) -> Summary {
        match self.guided {
            true => self.run_guided(networks, stop, progress),
            false => self.go_on(Summary::default(), networks, stop, progress),
        }
    }

    /// Plays the runs of a guided search. None is compared with the model of a node.
    fn run_guided(&self, networks: &Networks, stop: &AtomicBool, progress: impl Fn(&Summary) + Sync) -> Summary {
        let (mut guide, summary) = (Guide::new(&self.frame), Mutex::new(Summary::default()));
        for first in (0..self.runs).step_by(guided::BATCH) {
            let batch = (first..self.runs).take(guided::BATCH).map_while(|index| self.seed_of(index));
            let drawn: Vec<(u64, GuidedRun)> = batch.map(|seed| (seed, guide.draw(seed))).collect();
            if drawn.is_empty() || stop.load(Ordering::Relaxed) {
                break;
            }
            let states: Vec<StateNotes> = drawn.iter().map(|_| StateNotes::default()).collect();
            let next = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..self.jobs.clamp(1, guided::BATCH) {
                    scope.spawn(|| {
                        while let index = next.fetch_add(1, Ordering::Relaxed)
                            && let Some((seed, run)) = drawn.get(index)
                        {
                            let beside = OptionalWatchers { behaviour: false, states: Some(states[index].clone()) };
                            let outcome = play_beside(&run.scenario, networks, None, &beside, stop);
                            if stop.load(Ordering::Relaxed) {
                                break;
                            }
                            let mut summary = summary.lock().expect("no thread panics while holding it");
                            summary.session.branched += u64::from(run.from.is_some());
                            summary.add(*seed, outcome, Some(&run.scenario));
                            progress(&summary);
                        }
                    });
                }
            });
            for ((seed, run), states) in drawn.iter().zip(&states) {
                guide.learn(*seed, &run.scenario, states);
            }
        }
        summary.into_inner().expect("all threads have ended well")
    }

    /// Plays the runs that `so_far` does not contain, like [`Search::run`]. The result includes `so_far`.
    pub fn go_on(
        &self,
        so_far: Summary,
        networks: &Networks,
        stop: &AtomicBool,
        progress: impl Fn(&Summary) + Sync,
    ) -> Summary {
        let (next, done, summary) = (AtomicU64::new(0), so_far.done.clone(), Mutex::new(so_far));
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(seed) = self.seed_of(index) else { break };
                        if !self.has_part(index) || done.has(seed) {
                            continue;
                        }
                        let outcome = self.play(seed, networks, stop);
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let mut summary = summary.lock().expect("no thread panics while holding it");
                        summary.add(seed, outcome, None);
                        progress(&summary);
                    }
                });
            }
        });
        summary.into_inner().expect("all threads have ended well")
    }

    /// The seeds of all runs of all parts. They end with the greatest seed.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        (0..self.runs).map_while(|index| self.seed_of(index))
    }

    /// The seed of the run of an index; `None` behind the last.
    fn seed_of(&self, index: u64) -> Option<u64> {
        self.seed.checked_add(index).filter(|_| index < self.runs)
    }

    /// Returns true if this process plays the run of an index.
    fn has_part(&self, index: u64) -> bool {
        self.part.is_none_or(|(part, of)| index / BLOCK % of == part - 1)
    }

    /// The number of runs that this process is to play, of those asked for.
    pub fn runs_of_part(&self) -> u64 {
        let Some((part, of)) = self.part else { return self.runs };
        let (blocks, rest) = (self.runs / BLOCK, self.runs % BLOCK);
        let whole = blocks / of + u64::from(part - 1 < blocks % of);
        whole.saturating_mul(BLOCK) + if blocks % of == part - 1 { rest } else { 0 }
    }

    /// Returns true if all runs were played that this process was to play.
    pub fn is_over(&self, done: &SeedSet) -> bool {
        let Some(last) = self.runs.checked_sub(1).filter(|_| self.runs != u64::MAX) else { return self.runs == 0 };
        let is_played_here = |gap: RangeInclusive<u64>| {
            // A gap as long as a block of each part has one of this part.
            let length = gap.end() - gap.start();
            let blocks = self.part.map_or(0, |(_, of)| of.saturating_mul(BLOCK));
            length >= blocks || gap.into_iter().any(|seed| self.has_part(seed - self.seed))
        };
        !done.missing(self.seed..=self.seed.saturating_add(last)).any(is_played_here)
    }

    /// Returns true if all seeds of `done` belong to this search.
    pub fn asks_for(&self, done: &SeedSet) -> bool {
        let is_within = |seed: u64| seed.checked_sub(self.seed).is_some_and(|index| index < self.runs);
        done.first().is_none_or(is_within) && done.last().is_none_or(is_within)
    }

    /// Plays the run of a seed.
    pub fn play(&self, seed: u64, networks: &Networks, stop: &AtomicBool) -> Outcome {
        play(&self.scenario(seed), networks, None, self.frame.is_modelled(seed), stop)
    }

    /// The scenario of the run of a seed.
    pub fn scenario(&self, seed: u64) -> Scenario {
        swarm::draw(&self.frame, seed)
    }
}

/// Plays a drawn scenario, and requires liveness once its last fault is over. The run ends as soon as the invariant `until` is broken,
/// if it is given, or `stop` is set. With `behaviour`, each node is compared with the model of an honest one.
pub fn play(
    scenario: &Scenario,
    networks: &Networks,
    until: Option<&str>,
    behaviour: bool,
    stop: &AtomicBool,
) -> Outcome {
    play_beside(scenario, networks, until, &OptionalWatchers::model(behaviour), stop)
}

fn play_beside(
    scenario: &Scenario,
    networks: &Networks,
    until: Option<&str>,
    beside: &OptionalWatchers,
    stop: &AtomicBool,
) -> Outcome {
    let asked = liveness(scenario);
    trial::play(scenario, &networks.of(scenario), SeedTree::new(RUN_SEED), asked, until, beside, stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::SimTime,
        check::{
            Certificate,
            sights::{DOUBLED, LOSS},
        },
        protocol::Height,
        scenario::vote_weights::VoteWeights,
    };

    #[test]
    fn a_run_with_an_assertion_counts_what_its_messages_do() {
        let text =
            "version = 1\nrounds = 4\ncrypto = 'modelled'\n[network]\ndelegates = 4\nloss = 0.2\nduplication = 0.2\n";
        let assertion = "[[assert]]\nalways = 'height >= 1'\n";
        let [plain, asserted] = [text.to_owned(), format!("{text}{assertion}")].map(|text| {
            let scenario = Scenario::parse(&text, "s.toml".as_ref()).expect("it is a scenario");
            let played = play(&scenario, &Networks::default(), None, false, &AtomicBool::new(false));
            [LOSS, DOUBLED].map(|what| played.sometimes.of(what))
        });
        assert!(plain.iter().chain(&asserted).all(|times| *times > 0), "{plain:?}, {asserted:?}");
    }

    #[test]
    fn the_seeds_of_a_search_end_with_the_greatest() {
        let search = |seed, runs| Search { frame: Frame::default(), seed, runs, part: None, jobs: 1, guided: false };
        assert_eq!(search(5, 3).seeds().collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(
            search(u64::MAX - 5, 200).seeds().map(|seed| u64::MAX - seed).collect::<Vec<_>>(),
            [5, 4, 3, 2, 1, 0]
        );
    }

    /// A network that was made for one scenario is none for another with other weights, agents or length of slots.
    #[test]
    fn networks_are_kept_by_all_that_makes_them() {
        let networks = Networks::default();
        let text = "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n";
        let mut scenario = Scenario::parse(text, "s.toml".as_ref()).expect("it is a scenario");
        let genesis = |scenario: &Scenario| networks.of(scenario).config.genesis.block.id;
        let equal = genesis(&scenario);
        scenario.network.vote_weights = VoteWeights::Zipf(1.0);
        let zipf = genesis(&scenario);
        scenario.network.vote_weights = VoteWeights::Zipf(2.0);
        assert!(zipf != equal && ![equal, zipf].contains(&genesis(&scenario)));
        scenario.network.vote_weights = VoteWeights::Equal;
        assert_eq!(genesis(&scenario), equal);
        scenario.network.vendor_field_bytes = Some(9);
        let vendor_field = networks.of(&scenario).config.milestones.at(Height(1)).vendor_field_length;
        assert_eq!(vendor_field, Some(9));
    }

    #[test]
    fn a_summary_keeps_the_finding_of_the_lowest_seed() {
        let outcome = |words: &str| Outcome {
            findings: vec![Finding {
                invariant: "liveness",
                origin: "",
                cause: String::new(),
                node: None,
                block: None,
                height: None,
                at: SimTime::from_micros(0),
                after_seconds: 0.0,
                what: words.to_owned(),
                certificate: Certificate::None,
                story: Vec::new(),
            }],
            sometimes: Sometimes::default(),
            height: Height(1),
            slots: 5,
            delivered: 2,
        };
        let mut summary = Summary::default();
        for seed in [9, 3, 5] {
            summary.add(seed, outcome(&format!("seed {seed}")), None);
        }
        let found = summary.found.values().next().expect("there is one");
        assert_eq!((summary.found.len(), found.finding.what.as_str()), (1, "seed 3"));
        assert_eq!((found.seeds.count(), summary.runs()), (3, 3));
        assert_eq!((summary.session.runs, summary.session.slots, summary.session.delivered), (3, 15, 6));
    }
}
