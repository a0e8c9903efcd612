//! The guided search: a branch begins as its run did, threads decide nothing, and what it finds is shown by its scenario.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::{
        guided::{Guide, StateNotes},
        search::{self, Networks, RUN_SEED, Search},
        swarm::{Frame, Modelled},
    },
    protocol::crypto::CryptoMode,
    scenario::Scenario,
    sim::{Observer, SeedTree},
};
use std::{
    mem,
    sync::{Arc, Mutex, atomic::AtomicBool},
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
        behaviour: Modelled::Never,
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
