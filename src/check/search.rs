//! Many runs, each drawn from a seed of its own, on all cores: what does not hold, and in which run it showed first.

use super::{
    Finding, Signature, Sometimes,
    liveness::liveness,
    swarm::{self, Frame},
    trial,
    watchers::Outcome,
};
use crate::{
    protocol::crypto::CryptoMode,
    scenario::{Scenario, Testnet, section::Change},
    sim::SeedTree,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// The seed of every run of a search: what a scenario file shows is what `dposlab run` plays without being told a seed.
pub const RUN_SEED: u64 = 1;

/// Generated networks, made once for each number of delegates.
#[derive(Default)]
pub struct Networks(Mutex<BTreeMap<Sort, Arc<Testnet>>>);

/// The key of a network: delegates, delegates standing by, reward, milestones, and the treatment of signatures.
type Sort = (u32, u32, Option<u64>, Vec<Change>, CryptoMode);

/// Networks kept at most: drawn milestones make new ones without end.
const NETWORKS_MAX: usize = 64;

impl Networks {
    /// The network of a scenario.
    pub fn of(&self, scenario: &Scenario) -> Arc<Testnet> {
        let network = &scenario.network;
        let changes = network.milestones.clone();
        let key = (network.delegates, network.standby, network.reward, changes, scenario.crypto);
        let mut known = self.0.lock().expect("no one panics while holding it");
        if known.len() >= NETWORKS_MAX && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_insert_with(|| Arc::new(scenario.testnet(SeedTree::new(RUN_SEED)))).clone()
    }
}

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Search {
    pub frame: Frame,
    /// Runs to play; `u64::MAX` where something else ends the search.
    pub runs: u64,
    /// The run of index i is drawn from this seed plus i.
    pub seed: u64,
    /// Threads, at least 1.
    pub jobs: usize,
}

/// One thing that does not hold, over a whole search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The finding as it showed in the run of the lowest index.
    pub finding: Finding,
    /// The index of that run.
    pub index: u64,
    /// Runs that showed it.
    pub runs: u64,
}

/// The runs that have been played: all below one, and some beyond, if several were played at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    below: u64,
    beyond: BTreeSet<u64>,
}

impl Done {
    fn add(&mut self, index: u64) {
        self.beyond.insert(index);
        while self.beyond.remove(&self.below) {
            self.below += 1;
        }
    }

    fn has(&self, index: u64) -> bool {
        index < self.below || self.beyond.contains(&index)
    }

    /// The indices of the runs, ascending.
    pub fn indices(&self) -> impl Iterator<Item = u64> {
        (0..self.below).chain(self.beyond.iter().copied())
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Runs played.
    pub runs: u64,
    /// The runs played.
    pub done: Done,
    /// Runs that broke each invariant, from whatever cause.
    pub broken: BTreeMap<&'static str, u64>,
    /// By invariant and cause.
    pub found: BTreeMap<Signature, Found>,
    pub sometimes: Sometimes,
    pub slots: u64,
    pub delivered: u64,
}

impl Summary {
    fn add(&mut self, index: u64, outcome: Outcome) {
        self.runs += 1;
        self.done.add(index);
        self.slots += u64::from(outcome.slots);
        self.delivered += outcome.delivered;
        self.sometimes.add(&outcome.sometimes);
        for invariant in outcome.findings.iter().map(|finding| finding.invariant).collect::<BTreeSet<_>>() {
            *self.broken.entry(invariant).or_default() += 1;
        }
        for finding in outcome.findings {
            let new = Found { finding: finding.clone(), index, runs: 0 };
            let found = self.found.entry(finding.signature()).or_insert(new);
            found.runs += 1;
            if index < found.index {
                (found.index, found.finding) = (index, finding);
            }
        }
    }
}

impl Search {
    /// Plays all runs, or those that were over before `stop` was set. `progress` hears of each that is over. What comes
    /// of it does not depend on the number of threads.
    pub fn run(&self, networks: &Networks, stop: &AtomicBool, progress: impl Fn(&Summary) + Sync) -> Summary {
        self.go_on(Summary::default(), networks, stop, progress)
    }

    /// [`Search::run`] of those runs that have not been played yet; what came of those that have is counted in.
    pub fn go_on(
        &self,
        so_far: Summary,
        networks: &Networks,
        stop: &AtomicBool,
        progress: impl Fn(&Summary) + Sync,
    ) -> Summary {
        let (next, done, summary) = (AtomicU64::new(so_far.done.below), so_far.done.clone(), Mutex::new(so_far));
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.runs {
                            break;
                        }
                        if done.has(index) {
                            continue;
                        }
                        let outcome = self.play(index, networks, stop);
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let mut summary = summary.lock().expect("no one panics while holding it");
                        summary.add(index, outcome);
                        progress(&summary);
                    }
                });
            }
        });
        summary.into_inner().expect("all threads have ended well")
    }

    /// Plays the run of an index.
    pub fn play(&self, index: u64, networks: &Networks, stop: &AtomicBool) -> Outcome {
        play(&self.scenario(index), networks, None, self.is_modelled(index), stop)
    }

    /// Returns true if the run of an index compares each node with the model of an honest one.
    pub fn is_modelled(&self, index: u64) -> bool {
        self.frame.is_modelled(self.seed.wrapping_add(index))
    }

    /// The scenario of the run of an index.
    pub fn scenario(&self, index: u64) -> Scenario {
        swarm::draw(&self.frame, self.seed.wrapping_add(index))
    }
}

/// Plays a drawn scenario, and asks for liveness when its last fault is over. Ends as soon as an invariant of this name
/// is broken, if one is given, or `stop` is set. With `behaviour`, each node is held against the model of an honest one.
pub fn play(
    scenario: &Scenario,
    networks: &Networks,
    until: Option<&str>,
    behaviour: bool,
    stop: &AtomicBool,
) -> Outcome {
    let asked = liveness(scenario);
    trial::play(scenario, &networks.of(scenario), SeedTree::new(RUN_SEED), asked, until, behaviour, stop)
}
