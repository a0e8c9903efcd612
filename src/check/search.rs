//! Many runs, each drawn from a seed of its own, on all cores: what does not hold, and in which run it showed first.

use super::{
    Finding, Sometimes, conduct,
    swarm::{self, Frame},
    trial::{self, Liveness, Outcome},
};
use crate::{
    protocol::crypto::CryptoMode,
    scenario::{Scenario, Testnet, file::Change},
    sim::SeedTree,
};
use std::{
    collections::BTreeMap,
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

/// What makes two networks the same: delegates, delegates standing by, reward, milestones, and how it is signed.
type Sort = (u32, u32, Option<u64>, Vec<Change>, CryptoMode);

impl Networks {
    /// The network of a scenario.
    pub fn of(&self, scenario: &Scenario) -> Arc<Testnet> {
        let network = &scenario.network;
        let changes = network.milestones.clone();
        let key = (network.delegates, network.standby, network.reward, changes, scenario.crypto);
        let mut known = self.0.lock().expect("no one panics while holding it");
        known.entry(key).or_insert_with(|| Arc::new(scenario.testnet(SeedTree::new(RUN_SEED)))).clone()
    }
}

/// What to search.
#[derive(Clone, Debug)]
pub struct Search {
    pub frame: Frame,
    pub runs: u64,
    /// The run of index i is drawn from this seed plus i.
    pub seed: u64,
    /// Threads, at least 1.
    pub jobs: usize,
}

/// One thing that does not hold, over a whole search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As it showed in the run of the lowest index.
    pub finding: Finding,
    /// That run's index.
    pub index: u64,
    /// Runs that showed it.
    pub runs: u64,
}

/// What a search came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Runs played.
    pub runs: u64,
    /// By invariant.
    pub found: BTreeMap<&'static str, Found>,
    pub sometimes: Sometimes,
    pub slots: u64,
    pub delivered: u64,
}

impl Summary {
    fn add(&mut self, index: u64, outcome: Outcome) {
        self.runs += 1;
        self.slots += u64::from(outcome.slots);
        self.delivered += outcome.delivered;
        self.sometimes.add(&outcome.sometimes);
        for finding in outcome.findings {
            let new = Found { finding: finding.clone(), index, runs: 0 };
            let found = self.found.entry(finding.invariant).or_insert(new);
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
        let (next, summary) = (AtomicU64::new(0), Mutex::new(Summary::default()));
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.runs {
                            break;
                        }
                        let outcome = play(&self.scenario(index), networks, None, stop);
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

    /// The scenario of the run of an index.
    pub fn scenario(&self, index: u64) -> Scenario {
        swarm::draw(&self.frame, self.seed.wrapping_add(index))
    }
}

/// Plays a drawn scenario, and asks for liveness when its last fault is over. Ends as soon as an invariant of this name
/// is broken, if one is given, or `stop` is set.
pub fn play(scenario: &Scenario, networks: &Networks, until: Option<&str>, stop: &AtomicBool) -> Outcome {
    let asked = match until {
        // Safety alone is looked at, and to the end.
        Some(name) if ![conduct::CONVERGED.name, conduct::PROGRESS.name].contains(&name) => None,
        _ => liveness(scenario),
    };
    trial::play(scenario, &networks.of(scenario), SeedTree::new(RUN_SEED), asked, until, stop)
}

/// What is asked of a scenario's run when its last fault is over, if that can be told.
pub fn liveness(scenario: &Scenario) -> Option<Liveness> {
    let within_rounds = swarm::rounds_to_converge(scenario.network.delegates);
    // What clients do belongs to the trouble: it takes so long at least.
    let last = scenario.actions.iter().map(|action| action.height + 2).max().unwrap_or(0);
    let trouble = f64::from(last.max(scenario.network.delegates) * 8);
    let from_seconds = trial::faults_over(scenario)?.max(trouble);
    Some(Liveness { from_seconds, within_rounds })
}
