//! The limits of a run: events, real time, memory.

use crate::support::{dposlab, run, scenario, scenarios};
use dposlab::{
    scenario::{Ended, StageKind},
    sim::{SeedTree, stage::inline::InlineStage},
};
use serde_json::Value;
use std::{fs, path::Path, time::Duration};

fn file(folder: &Path, text: &str) -> String {
    let path = folder.join("s.toml");
    fs::write(&path, format!("version = 1\ncrypto = \"modelled\"\n{text}")).expect("it can be written");
    path.display().to_string()
}

/// Half a million blocks: no test waits for their end.
fn endless(folder: &Path) -> String {
    file(folder, "rounds = 100000\n[network]\ndelegates = 5\n")
}

#[test]
fn a_run_ends_with_the_slot_in_which_it_has_had_its_events() {
    let whole = scenario("missed-slots");
    let plan = whole.plan(&whole.testnet(SeedTree::new(7)), SeedTree::new(7));
    let played = |most: Option<u64>, stage| {
        let limited = dposlab::scenario::Scenario { max_events: most, ..whole.clone() };
        let mut counted = Vec::new();
        let outcome = limited.play(&plan, stage, Vec::new(), |height| counted.push(height)).expect("no actor dies");
        (outcome, counted.len())
    };
    let (full, slots) = played(None, StageKind::Inline);
    assert_eq!(full.ended, Ended::Complete);
    let half = full.events / 2;
    let (limited, earlier) = played(Some(half), StageKind::Inline);
    assert_eq!(limited.ended, Ended::Events);
    assert!(limited.events >= half && earlier < slots, "{} of {half} events in {earlier} of {slots}", limited.events);
    // One event fewer than the slot had is as many as the slot; one more takes the next slot.
    assert_eq!(played(Some(limited.events), StageKind::Inline), (limited, earlier));
    assert_eq!(played(Some(limited.events + 1), StageKind::Inline).1, earlier + 1);
    assert_eq!(played(Some(half), StageKind::Ractor).0, limited);
    assert_eq!(played(Some(full.events), StageKind::Inline).0, full, "a run that is complete is not censored");
}

/// `explain` plays on from copies of a run, which end where the run does.
#[test]
fn a_copy_of_a_run_has_had_its_events() {
    let scenario = scenario("missed-slots");
    let plan = scenario.plan(&scenario.testnet(SeedTree::new(7)), SeedTree::new(7));
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(plan.start + Duration::from_secs(800));
    let copy = InlineStage::at(&stage.moment());
    assert_eq!(copy.world().events(), stage.world().events());
    assert!(stage.world().events() > 100, "or nothing was counted");
}

#[test]
fn what_ends_by_a_limit_says_so() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let endless = endless(folder.path());
    let out = folder.path().join("out").display().to_string();
    for (option, most, word, told) in [
        ("--max-events", "500", "max-events", "the limit of events ended it at height "),
        ("--max-time", "1s", "max-time", "the limit of real time ended it at height "),
    ] {
        let output = run(&["run", &endless, option, most, "--json"]);
        assert_eq!(output.status.code(), Some(1));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&summary["ended"], &summary["interrupted"]), (&word.into(), &false.into()));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(told) && error.contains(" of 500000, so its further course is unknown"), "{error}");
        let out = format!("{out}-{word}");
        let output = run(&["sweep", &endless, option, most, "--seeds", "0..2", "--out", &out]);
        assert_eq!(output.status.code(), Some(0), "censored runs have not failed");
        let rows = fs::read_to_string(Path::new(&out).join("runs.csv")).expect("it is there");
        let ended = rows.lines().skip(1).filter(|row| row.contains(&format!(",censored,{word},"))).count();
        assert_eq!(ended, 2, "{rows}");
    }
    let error = String::from_utf8(run(&["run", &endless, "--max-events", "0"]).stderr).expect("text");
    assert!(error.contains("key 'max_events': found 0, allowed is 1 or more"), "{error}");
}

#[test]
fn each_run_of_a_sweep_has_the_real_time_for_itself() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (endless, out) = (endless(folder.path()), folder.path().join("out"));
    let options = ["--vary", "rounds=100000,2", "--seeds", "0..1", "--jobs", "1", "--max-time", "1s", "--out"];
    run(&[&["sweep", &endless], &options[..], &[&out.display().to_string()]].concat());
    let rows = fs::read_to_string(out.join("runs.csv")).expect("it is there");
    let ended: Vec<bool> = rows.lines().skip(1).map(|row| row.contains(",censored,max-time,")).collect();
    assert_eq!(ended, [true, false], "{rows}");
}

#[test]
fn a_run_that_takes_too_much_memory_stops_and_tells_what_it_has_played() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let output = run(&["run", &endless(folder.path()), "--max-memory", "96MiB", "--json"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(" of memory taken, 96 MiB are allowed (--max-memory): stopping"), "{error}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&summary["ended"], &summary["interrupted"]), (&"max-memory".into(), &false.into()));
}

/// A full mesh of 10,000 relays takes gigabytes before its first slot, and does not look whether it should stop.
#[test]
fn a_run_that_cannot_stop_in_time_is_ended() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let large = file(folder.path(), "rounds = 1\n[network]\nrelays = 10000\n");
    for command in [vec!["run", &large], vec!["check", &large, "--runs", "3", "--jobs", "1"]] {
        // The second check of the limit: it is the system that would refuse a gigabyte.
        let script = "ulimit -v 4000000; exec \"$0\" \"$@\" --max-memory 300MiB";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_dposlab")]).args(&command).current_dir(folder.path());
        let output = shell.output().expect("a shell");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("300 MiB are allowed (--max-memory): ended"), "{error}");
    }
}

#[test]
fn a_limit_that_is_no_number_of_bytes_is_refused() {
    let shipped = scenarios().first().expect("scenarios are shipped").display().to_string();
    let output = dposlab().args(["run", &shipped, "--max-memory", "many"]).output().expect("the binary was built");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("'many' is no number of bytes: give one such as 8GiB"), "{error}");
}
