//! Each named stream of random numbers has one consumer, over all that a run can draw.

use crate::support::{self as support, scenarios};
use dposlab::{
    check::{self, swarm::Frame},
    scenario::{Scenario, StageKind},
    sim::{
        SeedTree,
        seeds::{StreamRequest, recorded},
    },
};
use std::collections::BTreeMap;

/// The streams a run asks for, from its keys to its end.
fn asked(scenario: &Scenario, seed: u64) -> Vec<StreamRequest> {
    let slots = std::cell::Cell::new(0);
    let run = || {
        let seeds = SeedTree::new(seed);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let wanted = |_| {
            slots.set(slots.get() + 1);
            slots.get() < 250
        };
        scenario.play_while(&plan, StageKind::Inline, Vec::new(), wanted).expect("no actor dies");
    };
    recorded(run).1
}

/// Streams that were asked for more than once, with who asked.
fn shared(asked: &[StreamRequest]) -> Vec<String> {
    let mut by_name = BTreeMap::<(u64, &str), Vec<String>>::new();
    for StreamRequest { seed, name, by } in asked {
        by_name.entry((*seed, name)).or_default().push(by.to_string());
    }
    let several = by_name.into_iter().filter(|(_, by)| by.len() > 1);
    several.map(|((seed, name), by)| format!("'{name}' of seed {seed}: {}", by.join(" and "))).collect()
}

/// The name of a stream without its numbers.
fn kind(name: &str) -> String {
    let part = |part: &str| if part.parse::<u64>().is_ok() { "N".to_owned() } else { part.to_owned() };
    name.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn each_stream_has_one_consumer() {
    let text = "rounds = 3\n[network]\ndelegates = 7\nrelays = 3\ntopology = { regular = 4 }\nloss = 0.01\n\
                duplication = 0.01\nreordering = { chance = 0.01, by_ms = 50 }\nclocks = { offset_ms = 20 }\n[[fault]]\n\
                kind = \"drop\"\nmessages = [\"block\"]\nchance = 0.2\nfrom = \"start\"\n[[fault]]\nkind = \"delay\"\n\
                by_ms = 10\njitter_ms = 20\nchance = 0.2\nfrom = \"start\"\n";
    let mut all = vec![("one with everything".to_owned(), super::scenario(text))];
    all.extend(scenarios().iter().map(|file| {
        let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
        (name.clone(), support::scenario(&name))
    }));
    all.extend((0..40).map(|seed| (format!("drawn from {seed}"), check::swarm::draw(&Frame::default(), seed))));
    let mut kinds = BTreeMap::<String, usize>::new();
    for (name, mut scenario) in all {
        scenario.crypto = dposlab::protocol::crypto::CryptoMode::Modelled;
        let told = asked(&scenario, 7);
        assert_eq!(shared(&told), Vec::<String>::new(), "{name}");
        told.iter().for_each(|asked| *kinds.entry(kind(&asked.name)).or_default() += 1);
    }
    // Or the recording misses them.
    for wanted in [
        "keys/delegate/N",
        "keys/account/N",
        "keys/premine",
        "network/topology",
        "network/latency",
        "network/messages",
        "network/clocks",
        "peer/N",
        "peer/N/start/N",
        "generate",
        "transactions",
        "spam",
    ] {
        assert!(kinds.contains_key(wanted), "nobody asked for {wanted}: {:?}", kinds.keys());
    }
}

#[test]
fn two_consumers_of_one_stream_are_found() {
    let seeds = SeedTree::new(7);
    let ((), asked) = recorded(|| {
        seeds.stream("one");
        seeds.bytes("two");
        seeds.stream("one");
        SeedTree::new(8).stream("two");
    });
    let found = shared(&asked);
    assert!(found.len() == 1 && found[0].starts_with("'one' of seed 7: tests/runs/"), "{found:?}");
}
