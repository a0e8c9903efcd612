//! The power of the checker: faults planted on purpose, and the runs it takes to find each.
//!
//! The rules themselves have weaknesses, and a fault that only changes what is drawn meets them in other runs than before. So a fault
//! counts as found by a run if something is broken in it that is not broken in the same run without the fault, and its cause is none
//! of the known ones; and by all runs together if a known cause comes more often than its record says.

use super::{
    Finding, Minimiser,
    finding::Signature,
    known_causes::{KnownCauses, Rate},
    search::{Networks, Search},
};
use crate::{
    planted::{Planted, plant},
    scenario::Scenario,
    statistics::rates::Count,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// The number of runs after which a planted fault was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub name: String,
    /// The rule that it breaks, in words.
    pub words: &'static str,
    /// The invariant that was broken, `None` if none was in all the runs.
    pub found_by: Option<&'static str>,
    /// Runs with the fault, up to the one that found it.
    pub runs: u64,
    /// Processor time of those runs, in seconds, where the system tells.
    pub cpu_seconds: f64,
    /// The minimised form of the run that found it, `None` if none did.
    pub small: Option<Small>,
}

/// A failing run made small, the fault still planted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Small {
    pub nodes: u32,
    /// Runs it took.
    pub runs: usize,
    /// Processor time of those, in seconds, where the system tells.
    pub cpu_seconds: f64,
}

/// The names of all planted faults.
pub(crate) fn names() -> Vec<String> {
    Planted::ALL.iter().map(|fault| fault.name()).collect()
}

/// The fault of a name, or all.
pub(crate) fn named(which: &str) -> Option<Vec<Planted>> {
    if which == "all" {
        return Some(Planted::ALL.to_vec());
    }
    Planted::ALL.iter().find(|fault| fault.name() == which).map(|fault| vec![*fault])
}

/// Searches with each fault planted, up to the search's number of runs, and makes what finds it small in `budget` runs at
/// most. `told` hears of each, in their order.
pub(crate) fn measure(
    faults: &[Planted],
    search: &Search,
    known: &KnownCauses,
    budget: usize,
    mut told: impl FnMut(Measured),
) {
    let networks = Networks::default();
    let (next, sound) = (AtomicUsize::new(0), Sound::default());
    let (sender, measured) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..search.jobs.max(1) {
            let sender = sender.clone();
            let (next, sound, networks) = (&next, &sound, &networks);
            scope.spawn(move || {
                // What the environment plants is no part of the measurement.
                let _none = plant(None);
                while let Some((index, fault)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    faults.get(index).map(|fault| (index, *fault))
                } {
                    // The receiver waits for all senders.
                    let _received = sender.send((index, measure_one(fault, search, known, budget, networks, sound)));
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (index, one) in measured {
            waiting.insert(index, one);
            while let Some(one) = waiting.remove(&due) {
                told(one);
                due += 1;
            }
        }
    });
}

/// The findings in each run without any fault, as far as they were asked for.
#[derive(Default)]
struct Sound(Mutex<BTreeMap<u64, BTreeSet<Signature>>>);

impl Sound {
    fn of(&self, index: u64, search: &Search, networks: &Networks) -> BTreeSet<Signature> {
        if let Some(known) = self.0.lock().expect("no one panics while holding it").get(&index) {
            return known.clone();
        }
        let findings = search.play(index, networks, &AtomicBool::new(false)).findings;
        let found: BTreeSet<_> = findings.iter().map(Finding::signature).collect();
        self.0.lock().expect("no one panics while holding it").insert(index, found.clone());
        found
    }
}

fn measure_one(
    fault: Planted,
    search: &Search,
    known: &KnownCauses,
    budget: usize,
    networks: &Networks,
    sound: &Sound,
) -> Measured {
    let (mut cpu_seconds, mut counts) = (0.0, BTreeMap::<Signature, u64>::new());
    for index in 0..search.runs {
        let usual = sound.of(index, search, networks);
        let scenario = search.scenario(index);
        // Networks are made without the fault: a genesis block is given.
        networks.of(&scenario);
        let before = cpu_time();
        let outcome = {
            let _planted = plant(Some(fault));
            search.play(index, networks, &AtomicBool::new(false))
        };
        cpu_seconds += cpu_time() - before;
        let causes: BTreeSet<Signature> = outcome.findings.iter().map(Finding::signature).collect();
        causes.into_iter().for_each(|cause| *counts.entry(cause).or_default() += 1);
        let is_new = |one: &Signature| !usual.contains(one) && !known.has(one);
        if let Some(new) = outcome.findings.iter().find(|finding| is_new(&finding.signature())) {
            return Measured {
                name: fault.name(),
                words: fault.words(),
                found_by: Some(new.invariant),
                runs: index + 1,
                cpu_seconds,
                small: make_small(fault, &scenario, new, budget),
            };
        }
    }
    // One look, at the end: a look after each run would give more false alarms than one in 10,000.
    let comes_often =
        |cause: &Signature, so: u64| matches!(known.rate(cause, Count { so, of: search.runs }), Rate::More(_));
    let often = counts.iter().find(|(cause, so)| comes_often(cause, **so));
    let found_by = often.map(|(cause, _)| cause.invariant);
    Measured { name: fault.name(), words: fault.words(), found_by, runs: search.runs, cpu_seconds, small: None }
}

fn make_small(fault: Planted, scenario: &Scenario, finding: &Finding, budget: usize) -> Option<Small> {
    let before = cpu_time();
    let _planted = plant(Some(fault));
    // Of its own: what is made with the fault is for nobody else.
    let (networks, stop) = (Networks::default(), AtomicBool::new(false));
    let minimal =
        Minimiser { networks: &networks, budget, stop: &stop, base: None }.minimise(scenario, finding, |_, _| {});
    if !minimal.shown {
        return None;
    }
    let nodes = minimal.scenario.network.nodes();
    Some(Small { nodes, runs: minimal.runs, cpu_seconds: cpu_time() - before })
}

/// Processor time of this thread, in seconds; 0 where the system does not tell.
fn cpu_time() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    nanos.unwrap_or(0) as f64 / 1e9
}
