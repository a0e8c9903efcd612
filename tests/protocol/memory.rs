//! What a run is said to need beforehand is what it takes, within a factor. Beside the protocol, for here every byte is counted.

use crate::allocations::most_bytes;
use dposlab::{
    report::Metrics,
    scenario::{
        Scenario, StageKind,
        memory::{Need, PROCESS},
    },
    sim::{Observer, SeedTree},
};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

/// The sum of what a run needs is so many times what it takes at most, and what it takes is so many times the sum at most.
const FACTOR: u64 = 2;
/// Bytes that make no difference beside what a process has anyway.
const SLACK: u64 = 4 << 20;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\ncrypto = \"modelled\"\n{text}"), Path::new("s.toml")).expect("a scenario")
}

/// Bytes of a run of this scenario as `run` plays it, at most at a time.
fn taken(scenario: &Scenario) -> u64 {
    let most = scenario.crypto.during(|| {
        most_bytes(|| {
            let seeds = SeedTree::new(1);
            let plan = scenario.plan(&scenario.testnet(seeds), seeds);
            let metrics = Metrics::new(&plan);
            let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
            let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
            (plan, metrics.finish(outcome.end))
        })
    });
    u64::try_from(most).expect("a run takes memory")
}

#[track_caller]
fn holds(text: &str) {
    let scenario = scenario(text);
    let need = scenario.memory();
    let (said, taken) = (need.bytes() - PROCESS, taken(&scenario));
    println!("{said:>10} {taken:>10} {:>5.2}  {}", said as f64 / taken as f64, text.replace('\n', "; "));
    assert!(said <= FACTOR * taken + SLACK, "said {need}, took {taken} bytes beside the process:\n{text}");
    assert!(taken <= FACTOR * said + SLACK, "said {need}, took {taken} bytes beside the process:\n{text}");
}

/// A network and what goes wrong on it: most sizes at which a second or two is enough.
fn drawn(draw: &mut ChaCha8Rng) -> String {
    let delegates = draw.random_range(4..=40);
    let gossip = *["once", "reference"].choose(draw).expect("two");
    let (topology, relays) = match draw.random_range(0..6) {
        0..=2 => (String::new(), draw.random_range(0..=400)),
        3 => (format!("topology = {{ regular = {} }}\n", 2 * draw.random_range(2..=20)), draw.random_range(60..=120)),
        4 => (format!("topology = {{ ring = {} }}\n", draw.random_range(2..=20)), draw.random_range(60..=120)),
        _ => ("topology = \"star\"\n".to_owned(), draw.random_range(60..=120)),
    };
    let rounds = draw.random_range(1..=1 + 40 / delegates);
    let mut text = format!(
        "rounds = {rounds}\n[network]\ndelegates = {delegates}\nrelays = {relays}\ngossip = \"{gossip}\"\n{topology}"
    );
    if draw.random_bool(0.3) {
        let share = f64::from(draw.random_range(2..=5)) / 10.0;
        text += &format!(
            "[[fault]]\nkind = \"partition\"\nshare = {{ share = {share} }}\nfrom = {{ seconds = 30 }}\nuntil = {{ after = 120 }}\n"
        );
    }
    text
}

/// Shapes that are drawn, without clients.
#[test]
fn a_run_takes_what_it_is_said_to_need() {
    let mut draw = SeedTree::new(25).stream("shapes");
    (0..4).for_each(|_| holds(&drawn(&mut draw)));
}

/// Each part where it is nearly all.
#[test]
fn each_part_of_the_sum_is_what_such_a_part_takes() {
    holds("rounds = 1\n[network]\ndelegates = 5\nrelays = 1800\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 500\ngossip = \"reference\"\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 201\ntopology = { regular = 16 }\n");
    holds("rounds = 1\n[network]\ndelegates = 11\nrelays = 3000\ngossip = \"reference\"\ntopology = { regular = 4 }\n");
    holds("rounds = 800\n[network]\ndelegates = 5\n");
    holds("rounds = 20\n[network]\ndelegates = 5\nrelays = 5\n[[workload]]\nkind = \"generate\"\nper_second = 6\n");
    holds(
        "rounds = 10\n[network]\ndelegates = 5\nrelays = 40\n[[workload]]\nkind = \"generate\"\nper_second = 30\nwallets = 100\n",
    );
    assert_eq!(Need::default().parts().iter().map(|(_, _, bytes)| bytes).sum::<u64>(), 0, "nothing takes nothing");
}
