//! A scenario that runs live is the same run: `up SCENARIO.toml` and `run SCENARIO.toml` give one digest while nothing comes
//! in from outside, and what `up` runs without a file is a scenario too.

use crate::{
    support::{dposlab, recordings, root, run, scenario, scenarios},
    testnet::Up,
};
use dposlab::{
    protocol::Height,
    scenario::{Scenario, StageKind, run::on_current_thread},
    sim::{Digest, Live, Observer, Pace, SeedTree, Stage, TraceDigest},
};
use serde_json::{Value, json};
use std::fs;

/// The digest of a run to its end, and of the same run live, told to advance by as many slots.
fn both(scenario: &Scenario, stage: StageKind) -> (Digest, Digest) {
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let outcome = scenario.play(&plan, StageKind::Inline, Vec::new(), |_: Height| {}).expect("no actor dies");
    let slots = plan.tree.slots();
    let played = slots.slot(outcome.end.seconds()).0 - slots.slot(plan.start.seconds()).0;
    let digest = TraceDigest::default();
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(digest.clone())];
    let live = async {
        let stage = match stage {
            StageKind::Inline => Stage::inline(&plan, observers),
            StageKind::Ractor => Stage::ractor(&plan, observers).await.expect("names of its own"),
        };
        let (live, handle) = Live::new(stage, slots, Pace::Manual);
        let told = tokio::spawn(async move {
            let advanced = handle.advance(played).await;
            handle.stop();
            advanced
        });
        live.run().await.expect("no actor dies");
        let advanced = told.await.expect("it does not panic").expect("it runs");
        assert_eq!((advanced.slots, advanced.now), (played, outcome.end));
    };
    on_current_thread(live);
    assert!(digest.events() > 0, "or nothing was compared");
    (outcome.digest, digest.digest())
}

#[test]
#[ignore = "long: CI runs it"]
fn every_shipped_scenario_is_the_same_run_live() {
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        let (run, live) = both(&scenario, StageKind::Inline);
        assert_eq!(run, live, "{}", file.display());
    }
}

#[test]
fn so_it_is_with_actors_of_ractor() {
    for name in ["missed-slots", "crash-and-restart", "double-forging", "vote-swing-last"] {
        let (run, live) = both(&scenario(name), StageKind::Ractor);
        assert_eq!(run, live, "{name}");
    }
}

/// As a process: played to where `run` ends, on either stage, and repeated from the record when the file is gone.
#[test]
fn the_commands_give_one_digest_and_the_record_needs_no_file() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::copy(root().join("scenarios/spam.toml"), path("base.toml")).expect("it is shipped");
    fs::write(path("lived.toml"), "include = [\"base.toml\"]\n").expect("it can be written");
    let set = ["--seed", "4", "--set", "fault[0].per_second=5"];
    let output = run(&[&["run", "--json", &path("lived.toml")], &set[..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    let slots = report["end_seconds"].as_u64().expect("a number") / 8 - 1;
    for stage in ["inline", "ractor"] {
        let record = path(stage);
        let live = ["--stage", stage, "--pace", "manual", "--record", &record, &path("lived.toml")];
        let up = Up::start(&[&live, &set[..]].concat());
        assert_eq!(up.ready["scenario"], path("lived.toml"));
        up.advance(u32::try_from(slots).expect("a few"));
        let printed = up.interrupt();
        assert_eq!(printed.iter().filter(|line| line["event"] == "last_round_over").count(), 1);
        let text = fs::read_to_string(&record).expect("it was recorded");
        let end: Value = serde_json::from_str(text.lines().last().expect("an end")).expect("JSON");
        assert_eq!((&end["came"], &end["digest"]), (&json!("end"), &report["digest"]), "{stage}");
    }
    fs::remove_file(path("base.toml")).expect("it is there");
    let output = run(&["replay", &path("inline"), "--json"]);
    let replayed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!(replayed["digest"], report["digest"]);
}

/// The chain that a real node was recorded on: it has a lock that expires sooner than the reference allows by default.
#[test]
fn a_rule_that_is_set_lets_the_recorded_chain_begin() {
    let (network, chain) = (recordings().join("network"), recordings().join("chain/blocks.jsonl"));
    let (dir, secrets) = (network.display().to_string(), network.join("delegates.json").display().to_string());
    let chain = chain.display().to_string();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let record = folder.path().join("session.jsonl").display().to_string();
    let load = ["--pace", "manual", "--network-dir", &dir, "--secrets", &secrets, "--chain", &chain];
    let refused = dposlab().args(["up", "--port", "0"]).args(load).output().expect("it was built");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && why.contains("lock transaction expired"), "{why}");
    let rule = ["--set", "rules.ledger.minimum_lock_expiration=false", "--record", &record];
    let up = Up::start(&[&load[..], &rule].concat());
    assert_eq!(up.height(), 111);
    up.advance(3);
    assert_eq!(up.height(), 114, "its delegates forge on");
    up.interrupt();
    let output = run(&["replay", &record]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A public chain is read without anybody's passphrase: nobody forges, and what is handed in waits.
#[test]
fn a_chain_that_nobody_forges_on_is_read_and_stays_as_it_is() {
    let (network, chain) = (recordings().join("network"), recordings().join("chain/blocks.jsonl"));
    let (dir, chain) = (network.display().to_string(), chain.display().to_string());
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (secrets, record, data) = (path("secrets.json"), path("session.jsonl"), path("data"));
    fs::write(&secrets, r#"{"secrets": []}"#).expect("it can be written");
    let rule = "rules.ledger.minimum_lock_expiration=false";
    let load = ["--network-dir", &dir, "--secrets", &secrets, "--chain", &chain, "--set", rule];
    for (pace, written) in [("manual", ["--record", &record]), ("on-demand", ["--data-dir", &data])] {
        let up = Up::start(&[&load[..], &["--pace", pace], &written].concat());
        assert_eq!((up.height(), up.get("/node/status")["data"]["synced"].as_bool()), (111, Some(true)));
        up.advance(60);
        assert_eq!(up.height(), 111);
        let last = up.get("/blocks/111")["data"].clone();
        assert_eq!(up.get("/blockchain")["data"]["block"]["id"], last["id"]);
        assert_eq!(up.get("/delegates")["meta"]["totalCount"], 53, "those of two clients among them");
        assert_eq!(up.get("/peers")["meta"]["totalCount"], 0);
        up.interrupt();
    }
    let output = run(&["replay", &record]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(Up::start(&[&load[..], &["--pace", "manual", "--data-dir", &data]].concat()).height(), 111);
    // The same keys say of generated networks what they said.
    let refused = dposlab().args(["up", "--port", "0", "--delegates", "0"]).output().expect("it was built");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_contradicts_a_scenario_is_named() {
    let network = recordings().join("network");
    let (dir, secrets) = (network.display().to_string(), network.join("delegates.json").display().to_string());
    let loaded = ["--network-dir", &dir, "--secrets", &secrets];
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = dposlab().args(["up", "--port", "0"]).args(arguments).output().expect("it was built");
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {why}");
        assert!(parts.iter().all(|part| why.contains(part)), "{arguments:?}: {why}");
    };
    let file = "scenarios/healthy.toml";
    refused(&[file, "--delegates", "5"], &["--delegates", "[SCENARIO]"]);
    refused(&[file, "--gossip", "reference"], &["--gossip", "[SCENARIO]"]);
    refused(&[&[file], &loaded[..]].concat(), &["--network-dir", "[SCENARIO]"]);
    refused(&["--set", "network.loss=2"], &["'network.loss=2'", "found 2, allowed is"]);
    refused(&["--set", "loss=2"], &["'loss=2'", "unknown field `loss`"]);
    for (set, key) in [
        ("network.delegates=50", "key 'network.delegates': not allowed with --network-dir"),
        ("network.vote_weights.zipf=1", "key 'network.vote_weights': not allowed with --network-dir"),
        ("network.standby=1", "key 'network.standby'"),
        ("network.reward=1", "key 'network.reward'"),
        ("workload=[{ kind = \"generate\", per_second = 1 }]", "key 'workload'"),
    ] {
        refused(&[&loaded[..], &["--set", set]].concat(), &[key]);
    }
}

/// Clients sign really, so all do: the run is that of `run --crypto real`.
#[test]
fn modelled_signatures_are_real_ones_live() {
    let up = Up::start(&["scenarios/healthy.toml", "--set", "crypto=modelled", "--pace", "manual", "--seed", "7"]);
    assert_eq!(up.ready["notes"], json!(["crypto is \"real\" in place of \"modelled\", for clients sign really"]));
    up.advance(3);
    let id = up.get("/blocks/last")["data"]["id"].clone();
    let real = Up::start(&["scenarios/healthy.toml", "--pace", "manual", "--seed", "7"]);
    real.advance(3);
    assert_eq!(real.get("/blocks/last")["data"]["id"], id);
}
