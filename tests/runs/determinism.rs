//! The same seed gives the same run, event for event: twice, on both stages, in two processes, and in any build: the
//! digests stand in `tests/data/digests.txt`, which debug and release builds are held against alike.

use crate::support::{dposlab, play, root, run, scenarios};
use dposlab::{
    check::swarm::{Frame, draw},
    protocol::crypto::sha256,
    scenario::{
        Scenario, StageKind,
        repetition::{RepetitionResult, play_twice},
    },
    sim::{Digest, SeedTree},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Set to write the file of digests anew.
const REWRITE: &str = "REWRITE_DIGESTS";

/// Holds digests against the file: each line's name, and the digest of the run or runs it is for.
fn hold_against_file(digests: &BTreeMap<String, String>) {
    let mut known = recorded();
    if env::var_os(REWRITE).is_some() {
        known.extend(digests.clone());
        let lines: Vec<String> = known.iter().map(|(name, digest)| format!("{name} {digest}\n")).collect();
        fs::write(file(), lines.concat()).expect("it can be written");
    }
    let differ: Vec<_> = digests.iter().filter(|(name, digest)| known.get(*name) != Some(*digest)).collect();
    assert!(differ.is_empty(), "other digests than in {}: {differ:?}; {REWRITE}=1 writes them anew", file().display());
}

fn file() -> PathBuf {
    root().join("tests/data/digests.txt")
}

/// The digests of the file, by name.
fn recorded() -> BTreeMap<String, String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect()
}

#[test]
#[ignore = "long: CI runs it"]
fn every_shipped_scenario_gives_one_digest_on_both_stages_and_others_with_other_seeds() {
    let mut digests = BTreeMap::new();
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        let (inline, ractor) = (StageKind::Inline, StageKind::Ractor);
        // The inline stage is held against the same file by another test. Where this one differs, both are played to say in what.
        let digest = play(&scenario, 7, ractor).1.digest;
        let name = file.file_stem().and_then(|name| name.to_str()).expect("scenarios have names");
        if env::var_os(REWRITE).is_some() || recorded().get(name) != Some(&digest.to_string()) {
            same(&scenario, 7, inline, ractor);
        }
        let short = Scenario { rounds: 1, ..scenario };
        let [one, other] = [7, 8].map(|seed| play(&short, seed, inline).1);
        assert_ne!(one.digest, other.digest, "{} with another seed", file.display());
        assert!(one.events > 0 && one.delivered > 0, "or the test compared nothing");
        digests.insert(name.to_owned(), digest.to_string());
    }
    hold_against_file(&digests);
}

/// Scenarios in which something goes wrong, drawn from seeds.
fn generated() -> impl Iterator<Item = Scenario> {
    (0..100).map(|seed| {
        let drawn = draw(&Frame { delegates: Some(7), rounds: Some(3), ..Frame::default() }, seed);
        Scenario { rounds: drawn.rounds.min(12), ..drawn }
    })
}

#[test]
fn a_hundred_generated_scenarios_give_one_digest_on_both_stages() {
    let mut all = Vec::new();
    for scenario in generated() {
        all.extend(same(&scenario, 1, StageKind::Inline, StageKind::Ractor).0);
    }
    hold_against_file(&BTreeMap::from([("100-generated".to_owned(), hex::encode(sha256(&all)))]));
}

/// With so many nodes the inline stage has memory fetched ahead, and the ractor stage does not.
#[test]
fn a_network_of_thousands_gives_one_digest_on_both_stages() {
    let text = "version = 1\nrounds = 2\ncrypto = \"modelled\"\n\
                [network]\ndelegates = 5\nrelays = 2000\ngossip = \"reference\"\ntopology = { regular = 8 }\n\
                [[fault]]\nkind = \"crash\"\nnodes = { from = 5, to = 304 }\n\
                from = { height = 3 }\nuntil = { height = 6 }\n";
    let scenario = Scenario::parse(text, Path::new("thousands.toml")).expect("it is valid");
    let digest = same(&scenario, 7, StageKind::Inline, StageKind::Ractor);
    hold_against_file(&BTreeMap::from([("thousands".to_owned(), digest.to_string())]));
}

/// Plays a scenario on two stages, event for event the same, and answers the digest.
fn same(scenario: &Scenario, seed: u64, first: StageKind, second: StageKind) -> Digest {
    match play_twice(scenario, SeedTree::new(seed), [first, second], |_, _| true).expect("no actor dies") {
        RepetitionResult::Same { digest, .. } => digest,
        RepetitionResult::Differ(difference) => {
            panic!("{}: {difference}\n{}", scenario.description, scenario.to_toml())
        }
        RepetitionResult::Interrupted { same } => {
            panic!("{}: nobody interrupted it, and {same} events", scenario.description)
        }
    }
}

/// Every shipped scenario and the hundred generated ones, each in a process of its own: of the binary under test, or of
/// another build that `DPOSLAB_OTHER_BUILD` names, an optimised one above all.
#[test]
fn the_command_gives_the_digests_of_the_file() {
    let command = || env::var_os("DPOSLAB_OTHER_BUILD").map_or_else(dposlab, |file| Command::new(root().join(file)));
    let name = |file: &Path| file.file_stem().and_then(|name| name.to_str()).expect("scenarios have names").to_owned();
    let mut digests: BTreeMap<String, String> =
        scenarios().iter().map(|file| (name(file), digest_by(command(), file, 7))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("generated.toml");
    let mut all = Vec::new();
    for scenario in generated() {
        fs::write(&file, scenario.to_toml()).expect("it can be written");
        all.extend(hex::decode(digest_by(command(), &file, 1)).expect("a digest in hexadecimal"));
    }
    digests.insert("100-generated".to_owned(), hex::encode(sha256(&all)));
    hold_against_file(&digests);
}

/// The digest of a run in another process.
fn digest_by(mut binary: Command, scenario: &Path, seed: u64) -> String {
    let output = binary
        .current_dir(root())
        .arg("run")
        .arg(scenario)
        .args(["--seed", &seed.to_string(), "--json", "--stage", "inline"])
        .output()
        .expect("the binary is there");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{}: {why}\n{}", scenario.display(), String::from_utf8_lossy(&output.stderr)));
    report["digest"].as_str().expect("a digest").to_owned()
}

#[test]
fn the_command_repeats_a_run_and_says_that_it_is_the_same() {
    let output = run(&["run", "scenarios/lossy.toml", "--check-determinism", "--stage", "inline"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("twice the same") && text.contains("digest:"), "{text}");
    let output = run(&["run", "scenarios/lossy.toml", "--check-determinism", "--stage", "inline", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("--json prints one JSON object");
    assert_eq!((&found["same"], &found["interrupted"]), (&true.into(), &false.into()));
    let (events, digest) = (found["same_events"].to_string(), found["digest"].as_str().expect("a digest"));
    assert!(text.starts_with(&events) && text.contains(digest), "{text}");
}

/// A file that would not be written is refused, not left out without a word.
#[test]
fn a_run_that_is_repeated_writes_nothing() {
    for output in [&["--out", "x"][..], &["--trace", "x.jsonl"], &["--trace-network"]] {
        let refused = run(&[&["run", "scenarios/lossy.toml", "--check-determinism"], output].concat());
        let why = String::from_utf8(refused.stderr).expect("text");
        assert_eq!(refused.status.code(), Some(2), "{why}");
        assert!(why.contains("--check-determinism") && why.contains(output[0]), "{why}");
    }
}

#[test]
fn two_processes_print_the_same() {
    let arguments = ["run", "scenarios/missed-slots.toml", "--seed", "7", "--json"];
    let (first, second) = (run(&arguments), run(&arguments));
    assert!(first.status.success());
    assert_eq!(first.stdout, second.stdout);
    let report: Value = serde_json::from_slice(&first.stdout).expect("--json prints one JSON object");
    let (_, outcome) = play(&crate::support::scenario("missed-slots"), 7, StageKind::Inline);
    assert_eq!(report["digest"], outcome.digest.to_string());
}
