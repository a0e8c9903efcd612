//! Rounds, slots and gaps of the shipped scenarios, as consensus.md 1.4 wants them.

use crate::support::{play, run, scenario};
use dposlab::{
    report::RoundReport,
    scenario::{Scenario, StageKind},
};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

const OFFLINE: [&str; 3] = ["genesis_7", "genesis_21", "genesis_40"];

fn slots<'a>(round: &'a RoundReport, username: &str) -> &'a dposlab::report::DelegateSlots {
    round.delegates.iter().find(|delegate| delegate.username == username).expect("all 51 are active throughout")
}

#[test]
fn offline_delegates_miss_their_slots_and_rounds_still_close() {
    let (rounds, _) = play(&scenario("missed-slots"), 7, StageKind::Inline);
    let rounds = rounds.rounds();
    assert_eq!(rounds.len(), 5);
    for (round, missing) in rounds.iter().zip([&[] as &[&str], &OFFLINE, &OFFLINE, &OFFLINE[1..2], &[]]) {
        assert_eq!(round.blocks, if round.round == 1 { 50 } else { 51 }, "genesis is the first block of round 1");
        for delegate in &round.delegates {
            assert_eq!(delegate.owned, delegate.forged + delegate.missed);
            if missing.contains(&delegate.username.as_str()) {
                assert_eq!((delegate.forged, delegate.missed > 0), (0, true), "{delegate:?} in round {}", round.round);
            } else {
                assert_eq!(delegate.missed, 0, "{delegate:?} in round {}", round.round);
            }
        }
        let missed: u32 = round.delegates.iter().map(|delegate| delegate.missed).sum();
        assert_eq!(missed, round.missed_slots);
        assert_eq!(missed, round.gaps.iter().map(|gap| gap.missed_slots).sum::<u32>());
        for gap in &round.gaps {
            assert_eq!(gap.seconds, 8 * (gap.missed_slots + 1), "16 s where one slot was missed");
        }
    }
    assert!(rounds[1].gaps.iter().any(|gap| gap.seconds == 16), "or the scenario shows nothing");
    let twice = rounds[1].delegates.iter().filter(|delegate| delegate.forged == 2).count() as u32;
    assert_eq!(twice, rounds[1].missed_slots, "with k missed slots the order wraps, and k delegates forge twice");
}

#[test]
fn a_healthy_network_fills_every_slot() {
    let (rounds, outcome) = play(&scenario("healthy"), 3, StageKind::Inline);
    let rounds = rounds.rounds();
    assert_eq!(rounds.len(), 10);
    for round in &rounds {
        assert_eq!((round.missed_slots, round.gaps.len()), (0, 0));
        assert!(round.delegates.iter().all(|slots| slots.owned == 1 || (round.round == 1 && slots.owned == 0)));
    }
    assert_eq!(slots(&rounds[9], "genesis_1").forged, 1);
    assert_eq!(outcome.end.seconds().0, 8 * 510, "510 blocks, genesis at 0, one every 8 seconds");
}

#[test]
fn the_command_prints_a_table_for_people_and_an_object_for_scripts() {
    let text = run(&["run", "scenarios/missed-slots.toml", "--seed", "7"]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("genesis_21") && text.contains("16 s before height") && text.contains("digest:"), "{text}");
    let json = run(&["run", "scenarios/missed-slots.toml", "--seed", "7", "--json", "--stage", "inline"]);
    let report: Value = serde_json::from_slice(&json.stdout).expect("one JSON object");
    assert_eq!(report["seed"], 7);
    assert_eq!(report["height"], 255);
    assert_eq!(report["rounds"], 5);
    assert_eq!(report["blocks"], 254);
    assert_eq!(report["delegates"].as_array().map(Vec::len), Some(51));
    assert!(report["missed_slots"].as_u64() > Some(6));
    assert!(text.contains(report["digest"].as_str().expect("a digest")), "both name one digest");
}

#[test]
fn a_lone_delegate_forges_one_round_a_block() {
    let text = "version = 1\nrounds = 5\n[network]\ndelegates = 1\n[[fault]]\nkind = \"offline\"\n\
                delegates = [\"genesis_1\"]\nrounds = 9\n";
    let error = Scenario::parse(text, Path::new("lone")).expect_err("round 9 is beyond the last one").to_string();
    assert!(error.contains("fault[0].rounds") && error.contains("1 to 5"), "{error}");
    let lone = Scenario::parse("version = 1\nrounds = 5\n[network]\ndelegates = 1\n", Path::new("lone"));
    let (rounds, _) = play(&lone.expect("one delegate is allowed"), 1, StageKind::Inline);
    let numbers: Vec<u32> = rounds.rounds().iter().map(|round| round.round).collect();
    assert_eq!(numbers, [2, 3, 4, 5], "genesis is all of round 1");
}

#[test]
fn a_chain_with_few_forgers_goes_on_and_one_without_stalls() {
    let offline = |from: usize| {
        let names: Vec<String> = (from..=5).map(|number| format!("\"genesis_{number}\"")).collect();
        let text = format!(
            "version = 1\nrounds = 6\n[network]\ndelegates = 5\n[[fault]]\nkind = \"offline\"\n\
             delegates = [{}]\nrounds = {{ from = 2, to = 6 }}\n",
            names.join(", ")
        );
        Scenario::parse(&text, Path::new("offline")).expect("the text above is a scenario")
    };
    let (rounds, _) = play(&offline(2), 1, StageKind::Inline);
    assert_eq!(rounds.height().0, 30, "one of five forges, four slots of five are missed, and the rounds close");
    let (rounds, outcome) = play(&offline(1), 1, StageKind::Inline);
    assert_eq!(rounds.height().0, 5, "nobody forges in round 2");
    rounds.close(dposlab::protocol::Slot(outcome.end.seconds().0 / 8));
    let rounds = rounds.rounds();
    assert_eq!((rounds[1].blocks, rounds[1].missed_slots), (0, 20), "four rounds' worth of slots, then it is over");
}

/// The most empty slots on end, of those that a round's turns show.
fn longest_run(round: &RoundReport) -> u32 {
    let (mut longest, mut run) = (0, 0);
    for turn in &round.turns {
        run = if turn.height.is_none() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// In the middle of a round, at its begin, and after the last block of a chain that has come to its end.
#[test]
fn the_longest_gap_is_the_longest_run_of_empty_slots() {
    for (seed, from) in (1..=4).flat_map(|seed| [(seed, 1), (seed, 2), (seed, 4)]) {
        let names: Vec<String> = (from..=5).map(|number| format!("\"genesis_{number}\"")).collect();
        let text = format!(
            "version = 1\nrounds = 6\n[network]\ndelegates = 5\n[[fault]]\nkind = \"offline\"\n\
             delegates = [{}]\nrounds = {{ from = 3, to = 6 }}\n",
            names.join(", ")
        );
        let scenario = Scenario::parse(&text, Path::new("gaps")).expect("the text above is a scenario");
        let (rounds, outcome) = play(&scenario, seed, StageKind::Inline);
        rounds.close(dposlab::protocol::Slot(outcome.end.seconds().0 / 8));
        let rounds = rounds.rounds();
        for round in &rounds {
            assert_eq!(round.longest_gap_slots(), longest_run(round), "round {} from {from}", round.round);
        }
        assert!(rounds.iter().any(|round| round.longest_gap_slots() > 0), "or nothing was seen");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// A delegate forges nothing in any round of any of its spells, and misses nothing in all other rounds.
    #[test]
    fn each_spell_of_a_delegate_counts(
        spells in prop::collection::vec((1..=3u32, 2..=8u32, 0..3u32), 1..8),
    ) {
        let mut text = "version = 1\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 7\n".to_owned();
        for (delegate, from, more) in &spells {
            let to = (from + more).min(9);
            text += &format!(
                "[[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_{delegate}\"]\n\
                 rounds = {{ from = {from}, to = {to} }}\n"
            );
        }
        let scenario = Scenario::parse(&text, Path::new("spells")).expect("the test writes a scenario");
        let (rounds, _) = play(&scenario, 1, StageKind::Inline);
        for round in rounds.rounds() {
            for found in &round.delegates {
                let is_off = spells.iter().any(|(delegate, from, more)| {
                    found.username == format!("genesis_{delegate}") && (*from..=from + more).contains(&round.round)
                });
                let (forged, missed) = (found.forged, found.missed);
                prop_assert!(if is_off { forged == 0 } else { missed == 0 }, "{found:?} in round {}", round.round);
            }
        }
    }
}
