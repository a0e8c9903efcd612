//! Tests of an instant whose events do not end: two peers echo each other where messages take no time.

use super::{assertions, conduct, liveness::Liveness, watchers::Watchers};
use crate::{
    actors::{
        Actor, Behaviour, Input, Message, NodeId,
        behaviour::{Layer, Step},
    },
    ledger::codec::saved,
    scenario::{Closing, Ended, Scenario, Verdict},
    sim::{
        Observer, Plan, SeedTree, Stage,
        live::{Live, Pace},
        snapshots::Snapshots,
        stage::inline::InlineStage,
    },
};
use std::{path::Path, time::Duration};

/// The number of inputs after which these worlds look whether their clock moves.
const LIMIT: u64 = 20_000;

/// A peer that returns each message to its sender.
#[derive(Clone, Debug)]
struct Echo(bool);

saved!(struct Echo(is_on));

impl Behaviour for Echo {
    fn hears(&mut self, _: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        match input {
            Input::Message { from, message } if from.node != step.me.node => step.send(from, message),
            other => return Some(other),
        }
        None
    }
}

/// A network whose first two peers echo each other from the end of the first slot on, where a message takes `latency_ms`.
fn echoing(
    latency_ms: u32,
    asserted: &str,
    watched_by: impl FnOnce(&Scenario, &Plan) -> Vec<Box<dyn Observer>>,
) -> (Scenario, Plan, InlineStage) {
    let text = format!(
        "version = 1\nrounds = 2\n[network]\ndelegates = 4\nlatency = {{ min_ms = {latency_ms}, max_ms = {latency_ms} }}\n{asserted}"
    );
    let scenario = Scenario::parse(&text, Path::new("echo")).expect("a scenario");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, watched_by(&scenario, &plan));
    stage.look_every(LIMIT);
    stage.run_until(plan.start + Duration::from_secs(7));
    for node in [0, 1].map(NodeId) {
        let layer = Layer { id: 0, kind: "echo", behaviour: Box::new(Echo(true)), seed: 1, name: 1, memory: None };
        stage.bend(node, layer, [NodeId(1 - node.0)].into());
    }
    stage.say(NodeId(0), NodeId(1), Message::StatusRequest);
    (scenario, plan, stage)
}

#[test]
fn an_instant_whose_messages_never_end_ends_the_run() {
    let (scenario, plan, mut stage) = echoing(0, "", |_, _| Vec::new());
    let mut closing = Closing::new(&scenario, &plan);
    let end = plan.start + Duration::from_secs(8);
    stage.run_until(end);
    let ended = closing.look(end, stage.world(), true).expect("nothing else would end it");
    assert!(matches!(ended, Ended::Restless(at) if at.just_before() < end && at >= plan.start));
    assert!(stage.world().delivered() >= LIMIT);
    assert_eq!(stage.world().next_time(), None);
}

#[test]
fn messages_that_take_a_millisecond_leave_the_clock_running() {
    let (_, plan, mut stage) = echoing(1, "", |_, _| Vec::new());
    stage.run_until(plan.start + Duration::from_secs(60));
    assert!(stage.world().delivered() > 2 * LIMIT);
    assert_eq!(stage.world().restless(), None);
}

/// Liveness was due in the slot of the instant. A phase that waits has no waker left.
#[test]
fn an_instant_that_does_not_end_is_the_only_finding() {
    let mut made = None;
    let (_, plan, mut stage) = echoing(0, "", |scenario, plan| {
        let due = Liveness { from_seconds: 0.0, within_rounds: 1 };
        let watchers = Watchers::new(scenario, plan, Some(due), false, false).expect("nothing is asserted");
        let observers = watchers.observers();
        made = Some(watchers);
        observers
    });
    let watchers = made.expect("the stage was made");
    for slots in 1..=60 {
        stage.run_until(plan.start + Duration::from_secs(8 * slots));
        watchers.prove(&stage);
    }
    let seen = watchers.seen();
    let names: Vec<&str> = seen.findings().iter().map(|finding| finding.invariant).collect();
    assert_eq!(names, [conduct::RESTS.name]);
}

/// The file that a search writes for this finding asserts it by name.
#[test]
fn an_assertion_that_instants_end_breaks() {
    for (latency_ms, breaks) in [(0, true), (1, false)] {
        let text = format!("[[assert]]\nalways = \"invariant {}\"\n", conduct::RESTS.name);
        let mut judge = None;
        let (_, plan, mut stage) = echoing(latency_ms, &text, |scenario, plan| {
            let made = assertions::judge(scenario, plan).expect("the invariant is known");
            let observers = made.observer().into_iter().collect();
            judge = Some(made);
            observers
        });
        let end = plan.start + Duration::from_secs(8);
        stage.run_until(end);
        let ended = stage.world().restless().map_or(Ended::Time, Ended::Restless);
        let verdicts = judge.expect("the stage was made").verdicts(end, ended);
        assert_eq!(verdicts.iter().map(Verdict::is_broken).collect::<Vec<_>>(), [breaks], "{latency_ms} ms");
    }
}

/// On either stage, and whether it is stepped at its pace or asked for something.
#[tokio::test]
async fn a_testnet_ends_at_an_instant_that_does_not_end() {
    let (_, plan, stage) = echoing(0, "", |_, _| Vec::new());
    let moment = stage.moment();
    let inline = Stage::at(&moment, Snapshots::new(&plan), Vec::new());
    let mut actors = Stage::ractor(&plan, Vec::new()).await.expect("each run has names of its own");
    actors.begin_at(&moment, Snapshots::new(&plan)).await.expect("no actor dies");
    for stage in [inline, actors] {
        let (live, _handle) = Live::new(stage, plan.tree.slots(), Pace::Max);
        let why = live.run().await.expect_err("it would look alive").to_string();
        assert!(why.contains("do not end"), "{why}");
    }
}
