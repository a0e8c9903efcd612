//! Transactions drawn from a seed: real ones, of every type, in blocks.

use crate::support::{root, run};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    protocol::{Height, Kind},
    report::Rounds,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

/// Counts the transactions of node 0's chain by type.
#[derive(Clone, Default)]
struct Kinds(Arc<Mutex<BTreeMap<Kind, u64>>>);

impl Observer for Kinds {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event
            && node == NodeId(0)
        {
            let mut kinds = self.0.lock().expect("no one panics while holding it");
            for transaction in &link.block().transactions {
                *kinds.entry(transaction.kind()).or_default() += 1;
            }
        }
    }
}

fn play(text: &str) -> (BTreeMap<Kind, u64>, dposlab::sim::source::Counts) {
    let scenario = Scenario::parse(text, Path::new("workload")).expect("the test writes a scenario");
    let seeds = SeedTree::new(5);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let (kinds, rounds) = (Kinds::default(), Rounds::new(&plan));
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(kinds.clone()), Box::new(rounds.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    assert_eq!(rounds.height(), scenario.last_height());
    let kinds = kinds.0.lock().expect("no one panics while holding it").clone();
    (kinds, plan.sources[0].tally.counts())
}

/// More wallets than ten accounts fund with a transaction each: 64 by one, so 1,500 take 24. Unless all are funded, none sends.
#[test]
fn more_wallets_than_the_accounts_fund_at_once_are_all_funded() {
    let (kinds, counts) = play(
        "version = 1\nrounds = 6\ncrypto = \"modelled\"\n[network]\ndelegates = 9\n[[workload]]\nkind = \"generate\"\n\
         per_second = 1\nwallets = 1500\n",
    );
    assert_eq!(kinds[&Kind::MultiPayment], 1_500_u64.div_ceil(64), "{kinds:?}");
    assert!(kinds[&Kind::Transfer] > 100 && counts.accepted == counts.submitted, "{kinds:?} {counts:?}");
}

#[test]
fn every_type_gets_into_blocks() {
    let names: Vec<String> = Kind::ALL.iter().map(|kind| kebab(kind.name())).collect();
    let mix: Vec<String> = names.iter().map(|name| format!("{name} = 1")).collect();
    let (kinds, counts) = play(&format!(
        "version = 1\nrounds = 16\n[network]\ndelegates = 9\nstandby = 2\n[[workload]]\nkind = \"generate\"\n\
         per_second = 3\nwallets = 24\nfunding = 20000\nmix = {{ {} }}\n",
        mix.join(", ")
    ));
    for kind in Kind::ALL {
        assert!(kinds.get(&kind).is_some_and(|count| *count > 0), "{kind:?} is not among {kinds:?}");
    }
    assert!(counts.accepted * 100 >= counts.submitted * 95, "nearly all are taken: {counts:?}");
}

#[test]
fn rates_are_kept_and_even_arrivals_are_even() {
    for arrivals in ["even", "poisson"] {
        let (kinds, counts) = play(&format!(
            "version = 1\nrounds = 6\n[network]\ndelegates = 9\n[[workload]]\nkind = \"generate\"\nper_second = 2\n\
             wallets = 8\narrivals = \"{arrivals}\"\nfee = {{ min = 1, max = 5 }}\namount = 0.5\n"
        ));
        let seconds = 8 * 54;
        let sent = counts.submitted;
        assert!((seconds * 2 * 6 / 10..seconds * 2 * 11 / 10).contains(&sent), "{arrivals}: {sent} in {seconds} s");
        let transfers = kinds.get(&Kind::Transfer).copied().unwrap_or(0);
        assert!(transfers * 10 >= sent * 8, "{arrivals}: {transfers} of {sent} are in blocks");
    }
}

/// A transaction waits for the next block as many slots as with slots of eight seconds.
#[test]
fn no_nonce_is_used_again_before_a_long_slot_ends() {
    let (kinds, counts) = play(
        "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 5\nblock_time_s = 3600\n[[workload]]\n\
         kind = \"generate\"\nper_second = 0.005\nwallets = 4\n",
    );
    assert!(kinds[&Kind::Transfer] > 50 && counts.accepted == counts.submitted, "{kinds:?} {counts:?}");
}

fn list(transaction: &str) -> String {
    format!(
        "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n[[workload]]\nkind = \"list\"\nper_second = 1\n\
         transactions = [\"{transaction}\"]\n"
    )
}

/// The first block of the testnet allows only version 1, so a transaction of version 2 is too early before it.
#[test]
fn transactions_that_do_not_decode_are_refused_by_the_check_or_counted_by_the_run() {
    let vectors = std::fs::read(root().join("tests/data/vectors/transactions.json")).expect("it is in the repository");
    let vectors: Vec<serde_json::Value> = serde_json::from_slice(&vectors).expect("JSON");
    let of = |network: &str| {
        let is_it = |vector: &&serde_json::Value| vector["network"] == network;
        vectors.iter().find(is_it).expect("there is one")["serialized"].as_str().expect("a text").to_owned()
    };
    let early = list(&of("testnet"));
    let (_, counts) = play(&early);
    assert_eq!((counts.submitted, counts.refused.get("ERR_TRANSACTION_SCHEMA")), (1, Some(&1)), "{counts:?}");
    let scenario = Scenario::parse(&early, Path::new("workload")).expect("a later block allows it");
    let plan = scenario.plan(&scenario.testnet(SeedTree::new(5)), SeedTree::new(5));
    assert!(scenario.notes_of_run(&plan).is_empty());
    scenario.play(&plan, StageKind::Inline, Vec::new(), |_: Height| {}).expect("no actor dies");
    let note = "workload[0]: 1 of 1 transactions do not decode at the height of the chain (ERR_TRANSACTION_SCHEMA)";
    assert_eq!(scenario.notes_of_run(&plan), [note]);
    let foreign = of("devnet");
    let why = Scenario::parse(&list(&foreign), Path::new("workload")).expect_err("another network").to_string();
    assert!(why.contains("workload[0].transactions[0]"), "{why}");
    let folder = tempfile::tempdir().expect("a folder of our own");
    let chain = folder.path().join("chain.jsonl");
    std::fs::write(&chain, format!("{{\"height\":2,\"timestamp\":8,\"transactions\":[\"{foreign}\"]}}\n"))
        .expect("it can be written");
    let text = format!("version = 1\nrounds = 1\n[[workload]]\nkind = \"chain\"\nfile = '{}'\n", chain.display());
    let why = Scenario::parse(&text, Path::new("workload")).expect_err("another network").to_string();
    assert!(why.contains("workload[0].file") && why.contains("line 1: transactions[0]: "), "{why}");
    // A transaction of this network, of a version that the first block does not take yet.
    let own = of("testnet");
    std::fs::write(&chain, format!("{{\"height\":2,\"timestamp\":8,\"transactions\":[\"{own}\"]}}\n"))
        .expect("it can be written");
    let (_, counts) = play(&text);
    assert_eq!((counts.submitted, counts.refused.get("ERR_TRANSACTION_SCHEMA")), (1, Some(&1)), "{counts:?}");
    let file = folder.path().join("chain.toml");
    std::fs::write(&file, text).expect("it can be written");
    let output = run(&["run", "--json", &file.display().to_string()]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(said["notes"].as_array().is_some_and(|notes| notes.iter().any(|told| told == note)), "{said}");
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
