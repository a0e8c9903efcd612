//! Networks that lose their reach because peers are slow are as many as a binomial model says, and the time to wait is a rule.
//!
//! The model: before a delegate forges, its relay asks its N-1 peers, each of which answers in time with the chance
//! p = P(L₁ + L₂ <= T), where L₁ and L₂ are latencies drawn apart and T is `rules.node.forging_ping_ms`. Those that do not
//! count once more, so the delegate forges, and are dropped after that. Fewer than the network reach R are left with the
//! chance q = P(Bin(N-1, p) < R). Who was dropped may come back, so the model holds for the first slot of a run, and the runs
//! are independent.

use super::{samples::is_binomial, scenario};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    protocol::Height,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use statrs::distribution::{Binomial, Continuous, ContinuousCDF, DiscreteCDF, LogNormal};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

const NODES: u32 = 9;
const REACH: u32 = 7;
const RUNS: usize = 2_500;
const MEDIAN_MS: f64 = 400.0;
const SIGMA: f64 = 0.6;

/// The chance that two log-normal latencies add up to a time at most: the integral of the density of one by the
/// distribution of the other, by Simpson's rule.
fn in_time(sigma: f64, time_ms: f64) -> f64 {
    let latency = LogNormal::new(MEDIAN_MS.ln(), sigma).expect("it is one");
    let steps = 4_000;
    let width = time_ms / f64::from(steps);
    let value = |step: i32| {
        let x = width * f64::from(step);
        if step == 0 { 0.0 } else { latency.pdf(x) * latency.cdf(time_ms - x) }
    };
    let weight = |step: i32| {
        if step == 0 || step == steps {
            1.0
        } else if step % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=steps).map(|step| weight(step) * value(step)).sum::<f64>() * width / 3.0
}

/// The chance that fewer than the reach answer.
fn missed(sigma: f64, time_ms: f64) -> f64 {
    let answers = Binomial::new(in_time(sigma, time_ms), u64::from(NODES - 1)).expect("it is one");
    answers.cdf(u64::from(REACH - 1))
}

/// Counts blocks forged, and peers dropped at the ping before the first of them.
#[derive(Clone, Default)]
struct FirstSlot(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    forged: BTreeMap<NodeId, u32>,
    first: Option<SimTime>,
    dropped: u32,
}

impl Observer for FirstSlot {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut told = self.0.lock().expect("nobody panics with it");
        match event {
            Event::BlockForged(_) => {
                *told.forged.entry(node).or_default() += 1;
                told.first.get_or_insert(now);
            }
            Event::PeerRemoved(_) if told.first.is_none_or(|first| first == now) => told.dropped += 1,
            _ => {}
        }
    }
}

/// Of so many runs of one slot, those in which fewer peers than the reach were left.
fn count(per: &str, ping_ms: u32) -> usize {
    let text = format!(
        "rounds = 1\n[network]\ndelegates = {NODES}\nlatency = {{ distribution = \"log-normal\", median_ms = {MEDIAN_MS}, \
         sigma = {SIGMA}, per = \"{per}\" }}\n[rules]\nminimum_network_reach = {REACH}\nnode.forging_ping_ms = {ping_ms}\n"
    );
    let scenario = scenario(&text);
    let testnet = scenario.testnet(SeedTree::new(1));
    let missed = (0..RUNS as u64).filter(|seed| {
        let (plan, first) = (scenario.plan(&testnet, SeedTree::new(*seed)), FirstSlot::default());
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(first.clone())];
        scenario.play_while(&plan, StageKind::Inline, observers, |_: Height| false).expect("no actor dies");
        let told = first.0.lock().expect("nobody panics with it");
        assert_eq!(told.forged.values().sum::<u32>(), 1, "seed {seed}: one delegate had the slot, and used it");
        NODES - 1 - told.dropped < REACH
    });
    missed.count()
}

#[test]
fn peers_lost_for_being_slow_are_binomial() {
    // Of the integral itself: two latencies of which each is 400 ms or less with a chance of one half.
    assert!((in_time(1e-3, 800.0) - 0.5).abs() < 0.01 && in_time(SIGMA, 1e5) > 0.999);
    for (per, ping_ms) in [("message", 1_500), ("link", 1_500), ("message", 1_300)] {
        let chance = missed(SIGMA, f64::from(ping_ms));
        assert!((0.1..0.9).contains(&chance), "a chance of {chance} shows little");
        let wrong = [missed(SIGMA * 1.1, f64::from(ping_ms)), missed(SIGMA, f64::from(ping_ms) * 1.1)];
        is_binomial(count(per, ping_ms), RUNS, chance, &wrong);
    }
}

fn played(latency_ms: u32, rules: &str) -> (u32, Vec<String>) {
    let text = format!(
        "rounds = 2\n[network]\ndelegates = 7\nlatency = {{ distribution = \"constant\", ms = {latency_ms} }}\n{rules}\n"
    );
    let scenario: Scenario = scenario(&text);
    let (rounds, _) = crate::support::play(&scenario, 1, StageKind::Inline);
    (rounds.height().0, scenario.notes(Some(SeedTree::new(1))))
}

/// The blocks that each of seven delegates forges in five rounds' worth of slots.
fn forged(latency_ms: u32, rules: &str) -> Vec<u32> {
    let text = format!(
        "rounds = 5\nstall = {{ seconds = 280 }}\n[network]\ndelegates = 7\nlatency = {{ distribution = \"constant\", \
         ms = {latency_ms} }}\n{rules}\n"
    );
    let scenario = scenario(&text);
    let (seeds, told) = (SeedTree::new(1), FirstSlot::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(told.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_: Height| ()).expect("no actor dies");
    let told = told.0.lock().expect("nobody panics with it");
    (0..7).map(|node| told.forged.get(&NodeId(node)).copied().unwrap_or_default()).collect()
}

/// Nobody forges twice, and hardly anybody finds the others ahead before its turn comes.
fn once(forged: &[u32]) {
    assert!(forged.iter().all(|blocks| *blocks <= 1) && forged.iter().sum::<u32>() >= 5, "{forged:?}");
}

/// One way and back within 1.5 seconds: at a latency of 750 ms each delegate forges once, counting peers that did not answer,
/// and never again, as seven real nodes did; all forging goes on where the rule gives more time. Source: consensus.md 2.2.
#[test]
fn at_a_round_trip_above_the_ping_before_forging_each_delegate_forges_once() {
    assert_eq!(played(749, "").0, 14, "two rounds");
    once(&forged(751, ""));
    assert_eq!(played(751, "[rules]\nnode.forging_ping_ms = 1503").0, 14, "it waits long enough");
    once(&forged(400, "[rules]\nnode.forging_ping_ms = 799"));
    assert_eq!(played(1_500, "[rules]\nnode.forging_ping_ms = 3999").0, 14, "up to four seconds");
}

#[test]
fn a_network_reach_that_the_topology_cannot_give_is_said() {
    let ring = |rules: &str| {
        let text =
            format!("rounds = 1\n[network]\ndelegates = 7\ngossip = \"reference\"\ntopology = {{ ring = 1 }}\n{rules}");
        let scenario = scenario(&text);
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        (plan.tree.rules().minimum_network_reach, scenario.notes(Some(seeds)))
    };
    let (reach, notes) = ring("");
    assert_eq!(reach, Some(2));
    let said =
        "minimum_network_reach is 2 in place of 5, for some node has 2 neighbours; rules.minimum_network_reach sets it";
    assert_eq!(notes, [said]);
    let (reach, notes) = ring("[rules]\nminimum_network_reach = 3\n");
    assert_eq!(reach, Some(3), "what the file names holds");
    assert_eq!(notes, ["rules.minimum_network_reach is 3, and some node has 2 neighbours: such a node never forges"]);
    assert_eq!(ring("[rules]\nminimum_network_reach = 2\n"), (Some(2), Vec::new()));
    assert_eq!(ring("[rules]\nminimum_network_reach = false\n"), (None, Vec::new()));
    assert_eq!(played(50, "").1, Vec::<String>::new(), "seven nodes have six neighbours each");
    let (reach, _) = ring("[rules]\nbase = \"corrected\"\n");
    assert_eq!(reach, Some(2));
}

#[test]
fn the_reach_in_the_note_is_that_of_the_seed() {
    let scenario =
        scenario("rounds = 2\n[network]\ndelegates = 13\ngossip = \"reference\"\ntopology = { geometric = 0.75 }\n");
    let mut lowered = 0;
    for seed in 0..40 {
        let seeds = SeedTree::new(seed);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let reach = plan.tree.rules().minimum_network_reach.expect("the graph is connected");
        let notes = scenario.notes(Some(seeds));
        assert_eq!(notes.is_empty(), reach == 5, "seed {seed}: {reach}, {notes:?}");
        assert!(notes.iter().all(|note| note.starts_with(&format!("minimum_network_reach is {reach} in place of 5"))));
        lowered += u32::from(reach < 5);
    }
    assert!((1..40).contains(&lowered), "lowered in {lowered} of 40");
    let small_world = self::scenario(
        "rounds = 2\n[network]\ndelegates = 13\ntopology = { small-world = { reach = 3, rewired = 0.5 } }\n[rules]\nbase = \"reference\"\n",
    );
    let of_all = small_world.notes(None);
    assert!(of_all.len() == 1 && of_all[0].starts_with("the seed decides"), "{of_all:?}");
    // Rules that ask for no reach leave nothing to say.
    let tron = self::scenario(
        "rounds = 2\n[network]\ndelegates = 13\ntopology = { geometric = 0.3 }\n[rules]\nbase = \"tron\"\n",
    );
    assert!(tron.notes(None).is_empty());
    let of_all = scenario.notes(None);
    assert!(of_all.len() == 1 && of_all[0].starts_with("the seed decides"), "{of_all:?}");
}
