//! The same seed gives the same run, event for event: twice, on both stages, in two processes.

use crate::support::{play, run, scenarios};
use dposlab::scenario::{Scenario, StageKind};
use serde_json::Value;

#[test]
fn every_shipped_scenario_gives_one_digest_twice_and_on_both_stages() {
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        let (_, first) = play(&scenario, 7, StageKind::Inline);
        let (_, second) = play(&scenario, 7, StageKind::Inline);
        let (_, ractor) = play(&scenario, 7, StageKind::Ractor);
        let (_, other_seed) = play(&scenario, 8, StageKind::Inline);
        assert_eq!(first, second, "{} twice on the inline stage", file.display());
        assert_eq!(first, ractor, "{} on the inline and on the ractor stage", file.display());
        assert_ne!(first.digest, other_seed.digest, "{} with another seed", file.display());
        assert!(first.events > 0 && first.delivered > first.events, "or the test compared nothing");
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
