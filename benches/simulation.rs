//! A run on one core, as studies use it: how many slots and messages a second, by crypto mode, gossip, load and size of the
//! network, on the inline stage and then on ractor's. Set-up (keys, genesis, links) is not timed, nor is its end; that
//! actors are made is, and on ractor's stage that they are started and stopped. Each line prints slots, messages and the
//! digest of the run it times, so nobody makes it fast by making it wrong.
//!
//! Limits: one signature and one verification of a block, which real crypto pays a slot; and an event queue of the
//! standard library's heap with as many events to come, which each message passes through. The allocator is the
//! program's.

use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use dposlab::{
    protocol::{
        Height, KeyPair,
        crypto::{CryptoMode, ecdsa},
    },
    scenario::{Outcome, Scenario, StageKind},
    sim::{Plan, SeedTree},
};
use std::{cmp::Reverse, collections::BinaryHeap, hint::black_box, path::Path, time::Duration};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Name, what is counted, crypto, and the scenario.
const RUNS: [(&str, Count, CryptoMode, &str); 10] = [
    ("empty blocks once/real", Count::Slots, CryptoMode::Real, "rounds = 10\n[network]\ngossip = \"once\""),
    ("empty blocks once/modelled", Count::Slots, CryptoMode::Modelled, "rounds = 40\n[network]\ngossip = \"once\""),
    ("reference gossip/real", Count::Slots, CryptoMode::Real, "rounds = 6\n[network]\ngossip = \"reference\""),
    (
        "reference gossip/messages",
        Count::Messages,
        CryptoMode::Modelled,
        "rounds = 6\n[network]\ngossip = \"reference\"",
    ),
    ("full blocks/real", Count::Slots, CryptoMode::Real, FULL),
    ("full blocks/modelled", Count::Slots, CryptoMode::Modelled, FULL),
    (
        "1000 peers 8-regular/real",
        Count::Slots,
        CryptoMode::Real,
        "rounds = 2\n[network]\nrelays = 949\ngossip = \"reference\"\ntopology = { regular = 8 }",
    ),
    (
        "messages/51 peers",
        Count::Messages,
        CryptoMode::Modelled,
        "rounds = 10\n[network]\ngossip = \"reference\"\ntopology = { regular = 8 }",
    ),
    (
        "messages/500 peers",
        Count::Messages,
        CryptoMode::Modelled,
        "rounds = 2\n[network]\nrelays = 449\ngossip = \"reference\"\ntopology = { regular = 8 }",
    ),
    (
        "messages/5000 peers",
        Count::Messages,
        CryptoMode::Modelled,
        "rounds = 1\n[network]\nrelays = 4949\ngossip = \"reference\"\ntopology = { regular = 8 }",
    ),
];

/// Blocks of 150 transfers: each is handed in at one node, whose delegate forges it; pools tell each other nothing, for
/// otherwise the sending of transactions, each alone, is all that is measured. What is sent arrives after the end: a sender
/// whose messages were lost would lose its connections.
const FULL: &str = "rounds = 4\n[network]\ngossip = \"once\"\n\
                    [[workload]]\nkind = \"generate\"\nper_second = 20\nwallets = 510\n\
                    [[fault]]\nkind = \"delay\"\nmessages = [\"transactions\"]\nby_ms = 10000000";

#[derive(Clone, Copy)]
enum Count {
    Slots,
    Messages,
}

fn simulation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulation");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).warm_up_time(Duration::from_secs(1));
    for (prefix, stage) in [("", StageKind::Inline), ("ractor, ", StageKind::Ractor)] {
        for (name, count, crypto, text) in RUNS {
            let name = format!("{prefix}{name}");
            let mut scenario = Scenario::parse(&format!("version = 1\n{text}"), Path::new(&name)).expect("a scenario");
            scenario.crypto = crypto;
            time(&mut group, &name, count, &scenario, stage);
        }
    }
    limits(&mut group);
    group.finish();
}

fn time(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, count: Count, scenario: &Scenario, stage: StageKind) {
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = || scenario.plan(&testnet, seeds);
    let (outcome, slots) = play(scenario, stage, &plan());
    println!("simulation/{name}: {slots} slots, {} messages, digest {}", outcome.delivered, outcome.digest);
    group.throughput(Throughput::Elements(match count {
        Count::Slots => slots,
        Count::Messages => outcome.delivered,
    }));
    group.bench_function(name, |bencher| {
        let timed = |plan| (play(scenario, stage, &plan), plan);
        bencher.iter_batched(plan, timed, BatchSize::PerIteration);
    });
}

fn play(scenario: &Scenario, stage: StageKind, plan: &Plan) -> (Outcome, u64) {
    let mut reached = Height(0);
    let outcome = scenario.play(plan, stage, Vec::new(), |height| reached = height).expect("no actor dies");
    assert_eq!(reached, scenario.last_height(), "every slot has its block");
    (outcome, u64::from(reached.0 - 1))
}

fn limits(group: &mut BenchmarkGroup<'_, WallTime>) {
    let keys = KeyPair::from_passphrase("a delegate", CryptoMode::Real);
    let mut hash = [7_u8; 32];
    group.throughput(Throughput::Elements(1));
    group.bench_function("limit/a signature and its verification", |bencher| {
        bencher.iter(|| {
            hash[0] = hash[0].wrapping_add(1);
            let signature = ecdsa::sign(&hash, &keys);
            assert!(ecdsa::verify(&hash, &signature, keys.public(), CryptoMode::Real));
        });
    });
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..2_500).map(|number| Reverse((number * 37 % 1_000, number))).collect();
    let mut number = 2_500;
    group.bench_function("limit/the standard library's heap", |bencher| {
        bencher.iter(|| {
            let Reverse((time, _)) = heap.pop().expect("it is never empty");
            number += 1;
            heap.push(Reverse((time + 50 + number * 37 % 50_000, number)));
            black_box(time)
        });
    });
}

criterion_group!(benches, simulation);
criterion_main!(benches);
