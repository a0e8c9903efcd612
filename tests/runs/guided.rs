//! The guided search: a branch begins as its run did, threads decide nothing, and what it finds is shown by its scenario.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::{
        guided::{Guide, StateNotes},
        search::{self, Networks, RUN_SEED, Search},
        swarm::{Frame, ModelledRuns},
    },
    protocol::crypto::CryptoMode,
    scenario::Scenario,
    sim::{FaultKind, Observer, SeedTree, Trigger},
};
use std::{
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// What happened on nodes, up to a time.
#[derive(Clone, Default)]
struct Beginning(Arc<Mutex<Vec<String>>>, SimTime);

impl Observer for Beginning {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if now <= self.1 {
            self.0.lock().expect("no one panics with it").push(format!("{now:?} {node} {event:?}"));
        }
    }
}

/// The events of a scenario's run in its first seconds.
fn first_seconds(scenario: &Scenario, networks: &Networks, seconds: f64) -> Vec<String> {
    let plan = scenario.plan(&networks.of(scenario), SeedTree::new(RUN_SEED));
    let until = plan.start + Duration::from_secs_f64(seconds);
    let seen = Beginning(Arc::default(), until);
    scenario.play_inline(&plan, vec![Box::new(seen.clone())], |stage| stage.world().now() <= until);
    mem::take(&mut seen.0.lock().expect("no one panics with it"))
}

/// Up to the state at which it branches, a branch is the run that came to that state.
#[test]
fn a_branch_begins_as_the_run_that_it_comes_from() {
    let networks = Networks::default();
    let frame = Frame { crypto: Some(CryptoMode::Modelled), delegates: Some(4), ..Frame::default() };
    let (mut guide, mut branches, mut more) = (Guide::new(&frame), 0, 0);
    for seed in 1..=150 {
        let run = guide.draw(seed);
        if let Some((parent, at)) = &run.from {
            let (found, wanted) = (first_seconds(&run.scenario, &networks, *at), first_seconds(parent, &networks, *at));
            assert_eq!(found.len(), wanted.len(), "seed {seed}, {at} s");
            assert!(found == wanted, "seed {seed}, {at} s: {:?}", found.iter().zip(&wanted).find(|(a, b)| a != b));
            branches += 1;
            more += u32::from(run.scenario.faults.len() > parent.faults.len());
        }
        let states = StateNotes::default();
        let plan = run.scenario.plan(&networks.of(&run.scenario), SeedTree::new(RUN_SEED));
        states.begin(plan.start);
        run.scenario.play_inline(&plan, vec![Box::new(states.clone())], |_| true);
        guide.learn(seed, &run.scenario, &states);
    }
    assert!(branches > 60 && more > 10 && guide.states() > 200, "{branches}, {more}, {}", guide.states());
}

/// Each batch learns from those before it, so threads decide nothing. A finding has the scenario that shows it.
#[test]
fn a_guided_search_is_the_same_on_one_thread_and_on_three() {
    let frame = Frame {
        rules: "base = \"reference\"".parse().expect("they are rules"),
        crypto: Some(CryptoMode::Modelled),
        delegates: Some(4),
        behaviour: ModelledRuns::Never,
        ..Frame::default()
    };
    let [one, three] = [1, 3].map(|jobs| {
        let search = Search { frame: frame.clone(), runs: 200, seed: 1, part: None, jobs, guided: true };
        search.run(&Networks::default(), &AtomicBool::new(false), |_| {})
    });
    assert_eq!(one, three);
    assert!(one.session.branched > 50 && one.runs() == 200, "{} of {}", one.session.branched, one.runs());
    assert!(!one.found.is_empty());
    for (signature, found) in &one.found {
        let scenario = found.scenario.as_ref().expect("a guided search keeps it");
        let again = search::play(scenario, &Networks::default(), None, false, &AtomicBool::new(false));
        assert!(again.findings.iter().any(|finding| finding.signature() == *signature), "{signature}");
    }
}

/// New faults and actions of a branch lie behind its state. All faults are over within twice the time of a drawn run, whatever the length of
/// a slot, and the run has room to come to one chain after them.
#[test]
fn what_a_branch_adds_comes_behind_its_state() {
    for (slot_s, delegates) in [(8_u32, 4_u32), (4, 5), (600, 4)] {
        let text = format!("version = 1\nrounds = 1\n[network]\ndelegates = {delegates}\nblock_time_s = {slot_s}\n");
        let base = Scenario::parse(&text, "base.toml".as_ref()).expect("it is a scenario");
        let frame =
            Frame { base: Some(base), crypto: Some(CryptoMode::Modelled), rounds: Some(10), ..Frame::default() };
        let networks = Networks::default();
        let (mut guide, mut faults, mut swings) = (Guide::new(&frame), 0, 0);
        for seed in 1..=60 {
            let run = guide.draw(seed);
            if let Some((parent, at)) = &run.from {
                let new = run.scenario.faults.iter().filter(|fault| !parent.faults.contains(fault));
                for fault in new {
                    faults += 1;
                    let (latest, until) = (f64::from(2 * 10 * delegates * slot_s), fault.until.clone());
                    if let Trigger::Seconds(from) = fault.from {
                        assert!(from > *at && from < latest, "seed {seed}: {fault:?} behind {at} s, before {latest} s");
                    }
                    if let Some(Trigger::Seconds(until)) = until {
                        assert!(until > *at && until <= latest + f64::from(slot_s), "seed {seed}: {fault:?} {latest}");
                        let room = f64::from(run.scenario.last_height().0 * slot_s);
                        assert!(room >= until + 1_800.0_f64.min(until), "seed {seed}: {fault:?}, {room} s");
                    }
                    swings += u32::from(matches!(fault.kind, FaultKind::VoteSwing(_)));
                }
            }
            let states = StateNotes::default();
            let plan = run.scenario.plan(&networks.of(&run.scenario), SeedTree::new(RUN_SEED));
            states.begin(plan.start);
            run.scenario.play_inline(&plan, vec![Box::new(states.clone())], |_| true);
            guide.learn(seed, &run.scenario, &states);
        }
        assert!(faults > 20 && swings < faults, "slots of {slot_s} s: {faults} new faults");
    }
}

/// A search that is interrupted has the runs that were over, with what they found.
#[test]
fn an_interrupted_guided_search_keeps_the_runs_that_were_over() {
    let frame = Frame {
        rules: "base = \"reference\"".parse().expect("they are rules"),
        crypto: Some(CryptoMode::Modelled),
        delegates: Some(4),
        behaviour: ModelledRuns::Never,
        ..Frame::default()
    };
    let search = Search { frame, runs: 1_000, seed: 1, part: None, jobs: 1, guided: true };
    let stop = AtomicBool::new(false);
    let summary =
        search.run(&Networks::default(), &stop, |summary| stop.store(summary.runs() == 50, Ordering::Relaxed));
    assert_eq!(summary.runs(), 50);
    assert!(!summary.found.is_empty() && summary.session.runs == 50);
}
