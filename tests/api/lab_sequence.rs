//! A thousand requests to the lab, drawn by chance: after each the network is what it should be, bad ones change nothing,
//! every snapshot is where the network was, and the recording repeats all of it on the other stage.

mod lab;
mod requests;
mod shorter;

use crate::lab_faults::end_of;
use dposlab::{
    report::session::{SessionFile, replay_on, state::StateFile},
    scenario::{StageKind, run::on_current_thread},
};
use lab::Lab;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use requests::Step;
use shorter::Sequences;
use std::path::Path;

/// Sequences of `count` requests. Always the same ones, unless `PROPTEST_RNG_SEED` says which.
fn hold(cases: u32, count: usize, kind: StageKind) {
    let seed = match Config::default().rng_seed {
        RngSeed::Random => RngSeed::Fixed(27),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    let config = Config {
        cases,
        rng_seed: seed,
        failure_persistence: None,
        max_shrink_iters: 300,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let sequences = Sequences { step: requests::step(), count };
    let outcome = TestRunner::new(config).run(&sequences, |steps| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        play(&steps, kind, &folder.path().join("session.jsonl"))
    });
    if let Err(failed) = outcome {
        panic!("with seed {seed:?} on {kind:?}: {failed}");
    }
}

fn play(steps: &[Step], kind: StageKind, file: &Path) -> Result<(), TestCaseError> {
    let mut lab = Lab::start(kind, file);
    for step in steps {
        lab.take(step).map_err(|why| lab.failed(&why))?;
    }
    hold_files(&lab).map_err(|why| lab.failed(&why))?;
    let (asked, plan, desk) = lab.end();
    let other = match kind {
        StageKind::Inline => StageKind::Ractor,
        StageKind::Ractor => StageKind::Inline,
    };
    let session = SessionFile::open(file).expect("it is a session");
    let replayed = on_current_thread(replay_on(other, session, &plan, &desk, None));
    let replayed = replayed.map_err(|why| TestCaseError::fail(format!("{why}\n{asked}")))?;
    let end = end_of(file);
    let same = replayed.ended && end["digest"] == replayed.digest && end["at"] == replayed.end_us;
    if !same {
        return Err(TestCaseError::fail(format!("recorded {end}, replayed {replayed:?}\n{asked}")));
    }
    Ok(())
}

/// The files of some snapshots lead to where the network was when they were taken.
fn hold_files(lab: &Lab) -> Result<(), String> {
    let all: Vec<u64> = lab.snapshots();
    for id in all.iter().step_by(all.len().div_ceil(2).max(1)) {
        let (path, bytes) = (format!("/lab/snapshots/{id}/file"), lab.file(*id)?);
        let state = StateFile::read(Path::new(&path), &bytes).map_err(|why| why.to_string())?;
        let (plan, desk) = (&lab.network.plan, &lab.network.desk);
        let arrived = on_current_thread(state.arrive(plan, desk, Vec::new())).map_err(|why| why.to_string())?;
        let tips: Vec<_> = arrived.moment.tips().all().map(|tip| tip.id()).collect();
        lab.hold_moment(*id, (arrived.moment.now(), arrived.moment.delivered(), tips))?;
    }
    Ok(())
}

#[test]
fn a_thousand_requests_keep_the_invariants_and_the_recording_repeats_them() {
    hold(3, 1_000, StageKind::Inline);
}

#[test]
fn three_hundred_requests_do_so_on_the_stage_of_actors() {
    hold(1, 300, StageKind::Ractor);
}
