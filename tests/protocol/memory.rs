//! What a run is said to need beforehand is what it takes, within a factor of two. Beside the protocol, for here every byte is
//! counted.

use crate::allocations::most_bytes;
use dposlab::{
    report::Metrics,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use std::path::Path;

/// Bytes of a run of this scenario as `run` plays it, at most at a time, and those it is said to need beside what a process
/// has anyway.
fn needs(text: &str) -> (i64, i64) {
    let parse = |text: &str| Scenario::parse(&format!("version = 1\n{text}"), Path::new("s.toml")).expect("a scenario");
    let scenario = parse(text);
    let measured = scenario.crypto.during(|| {
        most_bytes(|| {
            let seeds = SeedTree::new(1);
            let plan = scenario.plan(&scenario.testnet(seeds), seeds);
            let metrics = Metrics::new(&plan);
            let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone())];
            let outcome = scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
            (plan, metrics.finish(outcome.end))
        })
    });
    (measured, scenario.memory().bytes() as i64 - dposlab::scenario::memory::Need::default().bytes() as i64)
}

#[test]
fn a_run_takes_what_it_is_said_to_need() {
    let network = |rounds: u32, delegates: u32, more: &str| {
        format!("rounds = {rounds}\ncrypto = \"modelled\"\n[network]\ndelegates = {delegates}\n{more}")
    };
    let cases = [
        ("many nodes on a full mesh", network(1, 11, "relays = 500")),
        ("many nodes with few neighbours", network(1, 11, "relays = 401\ntopology = { regular = 8 }")),
        ("many delegates", network(1, 150, "")),
        ("many blocks", network(400, 5, "")),
        ("many rounds of many delegates", network(10, 101, "topology = { regular = 8 }")),
        ("many transactions", network(15, 5, "[[workload]]\nkind = \"generate\"\nper_second = 3")),
    ];
    for (what, text) in cases {
        let (measured, said) = needs(&text);
        println!("{what}: said {said}, measured {measured}");
        assert!((measured / 2..=measured * 2).contains(&said), "{what}: said {said}, measured {measured}");
    }
}
