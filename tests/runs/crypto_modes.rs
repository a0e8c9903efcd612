//! The treatment of signatures changes nothing but signatures and the ids made from them.

use crate::support::{run, scenario};
use dposlab::{
    actors::NodeId,
    check::Simulation,
    ledger::Link,
    protocol::{Block, Height, Transaction, crypto::CryptoMode},
    report::Rounds,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

/// The chain a scenario gives, genesis first.
fn chain(scenario: &Scenario, crypto: CryptoMode) -> Vec<Arc<Block>> {
    let scenario = Scenario { crypto, ..scenario.clone() };
    let seeds = SeedTree::new(3);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let rounds = Rounds::new(&plan);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(rounds.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    let mut links: Vec<Arc<Link>> = std::iter::successors(Some(rounds.tip()), |link| link.parent()).collect();
    links.reverse();
    links.iter().map(|link| link.block().clone()).collect()
}

/// A block without its signatures and what follows from them.
fn bare(block: &Block) -> String {
    let mut header = block.header.clone();
    header.signature.clear();
    (header.previous, header.payload_hash) = (None, [0; 32]);
    let transactions: Vec<Transaction> = block
        .transactions
        .iter()
        .map(|transaction| {
            let mut content = transaction.transaction().clone();
            (content.signature, content.second_signature) = (None, None);
            content.signatures.clear();
            content
        })
        .collect();
    format!("{header:?} {transactions:?}")
}

#[test]
fn modelled_signatures_change_themselves_and_ids_only() {
    // Transfers: types that name other transactions differ by those ids too.
    let text = "version = 1\nrounds = 4\n[network]\ndelegates = 7\n[[workload]]\nkind = \"generate\"\nper_second = 1\n\
                mix = { transfer = 5, vote = 1, second-signature = 1, multi-payment = 1, business-registration = 1 }\n";
    let scenario = Scenario::parse(text, Path::new("crypto")).expect("the test writes a scenario");
    let (real, modelled) = (chain(&scenario, CryptoMode::Real), chain(&scenario, CryptoMode::Modelled));
    assert_eq!(real.len(), 28);
    assert!(real.iter().map(|block| block.transactions.len()).sum::<usize>() > 60, "or little was compared");
    for (real, modelled) in real.iter().zip(&modelled) {
        assert_eq!(bare(real), bare(modelled));
        assert_ne!(real.header.signature, modelled.header.signature);
    }
    let every = chain(&scenario, CryptoMode::EveryNode);
    assert!(real.iter().zip(&every).all(|(real, every)| **real == **every), "verifying again changes nothing");
}

#[test]
fn forged_signatures_are_refused_in_every_mode() {
    let mut scenario = scenario("invalid-blocks");
    scenario.rounds = 2;
    for fault in &mut scenario.faults {
        fault.from = dposlab::sim::Trigger::Start;
    }
    for crypto in [CryptoMode::Real, CryptoMode::EveryNode, CryptoMode::Modelled] {
        let chain = chain(&scenario, crypto);
        let keys = scenario.testnet(SeedTree::new(3)).delegates[16].keys.public().to_owned();
        assert!(chain.iter().all(|block| block.header.generator != keys), "{crypto:?}");
    }
    let _node = NodeId(16);
}

#[test]
fn the_command_takes_a_mode() {
    let digest = |mode: &str| {
        let output = run(&["run", "scenarios/missed-slots.toml", "--stage", "inline", "--json", "--crypto", mode]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        (json["digest"].as_str().expect("a digest").to_owned(), json["missed_slots"].clone())
    };
    let (real, every, modelled) = (digest("real"), digest("every-node"), digest("modelled"));
    assert_eq!(real, every);
    assert_ne!(real.0, modelled.0);
    assert_eq!(real.1, modelled.1, "who forged and missed is the same");
}

#[test]
fn a_simulation_plays_a_file_with_the_signatures_that_the_file_says() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let tenth = |mode: &str| {
        let file = folder.path().join(format!("{mode}.toml"));
        let text = format!("version = 1\nrounds = 2\ncrypto = \"{mode}\"\n[network]\ndelegates = 5\n");
        std::fs::write(&file, text).expect("a folder of our own");
        let builder = Simulation::builder().scenario(&file).expect("the test writes a scenario").seed(3);
        let found = Arc::new(Mutex::new(None));
        let seen = found.clone();
        let mut simulation = builder.build().expect("it can be played");
        simulation.always("it goes on", move |network| {
            let link = network.tip(NodeId(0)).and_then(|tip| tip.ancestor(Height(10)));
            let mut seen = seen.lock().expect("nobody panics");
            *seen = link.map(|link| link.block().header.signature.clone()).or(seen.take());
            true
        });
        assert_eq!(simulation.play().expect("it holds").height, Height(10), "{mode}");
        found.lock().expect("nobody panics").take().expect("the chain is so high")
    };
    let text = "version = 1\nrounds = 2\n[network]\ndelegates = 5\n";
    let scenario = Scenario::parse(text, Path::new("crypto")).expect("the test writes a scenario");
    for (mode, crypto) in [("modelled", CryptoMode::Modelled), ("real", CryptoMode::Real)] {
        let expected = chain(&scenario, crypto).last().expect("a chain").header.signature.clone();
        assert_eq!(tenth(mode), expected, "{mode}");
    }
}
