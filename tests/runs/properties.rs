//! Property tests as docs/property-tests.md writes them: what they draw can be played, and a counterexample shrinks to a file that
//! `dposlab run` and `dposlab explain` take.

use crate::support::dposlab;
use dposlab::{
    check::{
        Simulation,
        simulation::{BrokenProperty, Builder},
        strategies::{behaviours, faults, simulations},
    },
    scenario::{
        Assertion, Scenario,
        section::Change,
        workload::{Generate, Workload, WorkloadKind},
    },
    sim::{
        Fault, FaultKind, Trigger,
        fault::{NodeRef, Nodes, Offline},
        network::{AccessRate, Clocks, Reordering, Sharing},
        processor::{Processor, WorkTime},
        strategy::Withhold,
    },
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestCaseError, TestError, TestRunner},
};
use std::{collections::BTreeSet, fs};

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(
        config,
        prop::test_runner::TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha),
    )
}

#[test]
fn every_drawn_simulation_can_be_played() {
    let (mut refused, mut missed) = (0, 0);
    let played = runner(150).run(&simulations(4..=7, 4), |builder| {
        let run = builder.build().map_err(|why| TestCaseError::fail(format!("it cannot be built: {why}")))?;
        let nodes = run.scenario().network.nodes();
        prop_assert!((4..=9).contains(&nodes));
        run.play()?;
        Ok(())
    });
    assert!(played.is_ok(), "{played:?}");
    let mut runner = runner(1);
    for _ in 0..40 {
        let builder = simulations(4..=7, 4).new_tree(&mut runner).expect("nothing is rejected").current();
        let run = builder.build().expect("what is drawn can be played").play().expect("all invariants hold");
        refused += u32::from(run.sometimes.of("a refused block") > 0);
        missed += u32::from(u64::from(run.slots) + 1 > run.height.0.into());
    }
    assert!(refused >= 5 && missed >= 10, "or the draws do nothing: {refused}, {missed}");
}

#[test]
fn every_kind_of_misfortune_and_behaviour_is_drawn() {
    let mut runner = runner(1);
    let drawn = (faults(5, 80, 5), behaviours(5, 80, 5));
    let mut kinds = BTreeSet::new();
    for _ in 0..200 {
        let (faults, behaviours) = drawn.new_tree(&mut runner).expect("nothing is rejected").current();
        assert!(faults.iter().all(|fault| !matches!(fault.kind, FaultKind::Strategy(_))));
        assert!(behaviours.iter().all(|fault| matches!(fault.kind, FaultKind::Strategy(_))));
        kinds.extend(faults.iter().chain(&behaviours).map(|fault| fault.kind.name()));
    }
    let all = "partition isolate pause crash restart offline drop delay duplicate slow clock-skew late-forging withhold double-forge \
               forge-out-of-turn forge-invalid lie-about-tip refuse-transactions";
    assert_eq!(kinds, all.split_whitespace().collect());
}

#[test]
fn a_drawn_counterexample_shrinks_to_a_file_that_run_and_explain_take() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("no-slot-is-missed.toml");
    let found = runner(100).run(&simulations(4..=7, 4), |builder| {
        builder.assertion(Assertion::always("missed < 1")).counterexample(&file).build()?.play()?;
        Ok(())
    });
    let Err(TestError::Fail(why, smallest)) = found else { panic!("found {found:?}") };
    let told = why.message();
    let run = smallest.build().expect("it was built before");
    let small = run.scenario();
    let (delegates, relays, faults) = (small.network.delegates, small.network.relays, small.faults.len());
    assert!(delegates <= 5 && relays == 0 && faults == 1, "{}", small.to_toml());
    let seed = told.rsplit_once("--seed ").map(|(_, seed)| seed.to_owned()).unwrap_or_else(|| panic!("{told}"));
    assert!(told.contains("always missed < 1: does not hold") && told.contains("dposlab run "), "{told}");

    let written = Scenario::load(&file).expect("a scenario file");
    assert_eq!((&written.network, &written.faults), (&small.network, &small.faults));
    assert!(written.description.starts_with("breaks with seed "), "{}", written.description);
    let explain = ["explain", "--budget", "0", "--repeats", "0"];
    for (command, says) in [(&["run"][..], "always missed < 1"), (&explain, "does not hold: always missed < 1")] {
        let output = dposlab().args(command).arg(&file).args(["--seed", &seed]).output();
        let output = output.expect("the binary was built for this test");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_claim_in_rust_leaves_a_file_that_plays_the_same_run() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("low.toml");
    let mut run =
        Simulation::builder().delegates(4).rounds(2).seed(9).counterexample(&file).build().expect("it is whole");
    run.always("the chain is no higher than 3", |network| network.height().0 <= 3);
    let found = run.play().expect_err("it grows to 8");
    assert!(matches!(&found.broken, BrokenProperty::Always { height, .. } if height.0 == 4), "{found}");
    assert_eq!(
        found.to_string().rsplit_once("; ").map(|(_, last)| last.to_owned()),
        Some(format!("dposlab run {} --seed 9", file.display()))
    );
    let written = fs::read_to_string(&file).expect("it was written");
    assert!(written.contains("'the chain is no higher than 3' does not hold in slot 3 at height 4"), "{written}");

    let nowhere = folder.path().join("none").join("low.toml");
    let mut run = Simulation::builder().delegates(4).rounds(2).counterexample(&nowhere).build().expect("it is whole");
    run.eventually("the chain is higher than 100", 1, |network| network.height().0 > 100);
    let found = run.play().expect_err("it does not").to_string();
    assert!(found.contains("did not come to hold within 1 rounds; seed 1; its file cannot be written: "), "{found}");
}

/// All that a scenario file can say of a run, said in Rust.
fn whole() -> Builder {
    let forgers = Nodes::List(vec![NodeRef::Number(1)]);
    Simulation::builder()
        .delegates(5)
        .standby(1)
        .relays(2)
        .rounds(4)
        .block_time(10)
        .reward(200_000_000)
        .milestone(Change { height: 11, reward: Some(100_000_000), delegates: None })
        .loss(0.001)
        .duplication(0.001)
        .reordering(Reordering { chance: 0.01, by_ms: 50 })
        .bandwidth(100_000)
        .uplink(AccessRate::All(1_000_000))
        .downlink(AccessRate::All(2_000_000))
        .sharing(Sharing::Fair)
        .block_bytes(20_000)
        .processor(Processor {
            cores: 2,
            validate: WorkTime { block_us: 900, ..WorkTime::default() },
            forge: WorkTime { byte_ns: 10, ..WorkTime::default() },
            serve: WorkTime { transaction_us: 3, ..WorkTime::default() },
        })
        .clocks(Clocks { offset_ms: 20, drift_ppm: 5 })
        .crypto(dposlab::protocol::crypto::CryptoMode::Modelled)
        .rule("quorum_percent", 60)
        .workload(Workload { kind: WorkloadKind::Generate(generate()), from: Trigger::Start, until: None })
        .fault(Fault {
            until: Some(Trigger::Round(3)),
            ..Fault::new(Withhold { delegates: forgers.clone(), release_ms: Some(900) })
        })
        .fault(Fault {
            from: Trigger::Round(2),
            ..Fault::new(FaultKind::Offline(Offline { delegates: forgers, rounds: None }))
        })
        .assertion(Assertion::finally("transactions > 0"))
        .time_limit(4_000)
        .seed(5)
}

fn generate() -> Generate {
    toml::from_str("per_second = 1.0").expect("the rest has defaults")
}

#[test]
fn a_simulation_in_rust_is_the_run_of_its_file() {
    let run = whole().build().expect("it is whole");
    let text = run.scenario().to_toml();
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("whole.toml");
    fs::write(&file, &text).expect("a file of our own");
    let played = run.play().expect("it holds");
    let output = dposlab().arg("run").arg(&file).args(["--seed", "5", "--json"]).output().expect("it was built");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(said["digest"].as_str(), Some(played.digest.to_string().as_str()), "{text}");
}

#[test]
fn what_cannot_be_built_says_why() {
    let why = |builder: Builder| builder.build().err().map(|error| error.to_string()).unwrap_or_default();
    let claim = Assertion::always("heigth < 3");
    let told = why(Simulation::builder().delegates(4).assertion(claim));
    assert!(told.contains("heigth < 3") && told.contains("allowed is"), "{told}");
    let unknown = Assertion::always("invariant of nothing");
    assert!(why(Simulation::builder().delegates(4).assertion(unknown)).contains("found invariant 'of nothing'"));
    assert!(why(Simulation::builder().loss(1.5)).contains("loss"), "a part is at most 1");
}
