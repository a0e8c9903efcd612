//! Forging as a testnet and a simulation do it: delegates on a full mesh, every block signed, sent to every peer,
//! verified and applied. Empty blocks, latency on, gossip once.
//!
//! Each group first prints the digest of the run it times, so that nobody makes it fast by making it wrong.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dposlab::{
    scenario::{Scenario, StageKind},
    sim::SeedTree,
};
use std::{path::Path, time::Duration};

/// Rounds a run plays.
const ROUNDS: u32 = 2;

fn forging(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("forging");
    group.sample_size(10).measurement_time(Duration::from_secs(8));
    for (stage, name) in [(StageKind::Inline, "inline"), (StageKind::Ractor, "ractor")] {
        for gossip in ["once", "reference"] {
            let text = format!("version = 1\nrounds = {ROUNDS}\n[network]\ngossip = \"{gossip}\"\n");
            let scenario = Scenario::parse(&text, Path::new("bench")).expect("the text above is a scenario");
            let blocks = u64::from(scenario.last_height().0 - 1);
            println!("forging/{name}/{gossip}: {}", digest(&scenario, stage));
            group.throughput(Throughput::Elements(blocks));
            group.bench_function(BenchmarkId::new(name, gossip), |bencher| {
                bencher.iter(|| digest(&scenario, stage));
            });
        }
    }
    group.finish();
}

fn digest(scenario: &Scenario, stage: StageKind) -> String {
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let rounds = dposlab::report::Rounds::new(&plan);
    let outcome = scenario.play(&plan, stage, vec![Box::new(rounds.clone())], |_| {}).expect("no actor dies");
    assert_eq!(rounds.height(), scenario.last_height(), "every slot has its block");
    outcome.digest.to_string()
}

criterion_group!(benches, forging);
criterion_main!(benches);
