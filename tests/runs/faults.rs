//! Faults one by one: that each does what it says, and no more.

use crate::support::play;
use dposlab::{
    actors::{Event, InvalidBlock, NodeId, SimTime},
    check,
    protocol::Height,
    scenario::{Scenario, StageKind, Verdict},
    sim::{NetworkEvent, Observer, SeedTree, world::DownCause},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

fn scenario(text: &str) -> Scenario {
    let head = "version = 1\nrounds = 4\n[network]\ndelegates = 11\n";
    Scenario::parse(&format!("{head}{text}"), Path::new("fault")).expect("the test writes a scenario")
}

/// Plays it on both stages, which must agree, and answers what the judge says.
fn verdicts(text: &str) -> Vec<Verdict> {
    let scenario = scenario(text);
    let seeds = SeedTree::new(7);
    let digest = |stage| {
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let judge = check::judge(&scenario, &plan).expect("no invariant is misspelt");
        let rounds = dposlab::report::Rounds::new(&plan);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(judge.clone()), Box::new(rounds.clone())];
        let outcome = scenario.play(&plan, stage, observers, |_: Height| {}).expect("no actor dies");
        (outcome.digest, judge.verdicts(outcome.end, outcome.ended))
    };
    let (inline, verdicts) = digest(StageKind::Inline);
    let (ractor, _) = digest(StageKind::Ractor);
    assert_eq!(inline, ractor, "both stages: {text}");
    verdicts
}

fn holds(text: &str) {
    for verdict in verdicts(text) {
        assert!(verdict.holds(), "{verdict}\n{text}");
    }
}

#[test]
fn isolated_nodes_fall_behind_and_come_back() {
    holds(
        "[[fault]]\nkind = \"isolate\"\nnodes = [3]\nfrom = { round = 2 }\nuntil = { round = 3 }\n\
         [[assert]]\nsometimes = \"agreement < 0.95\"\n[[assert]]\neventually = \"converged\"\nafter_fault = 0\n",
    );
}

#[test]
fn a_heal_ends_partitions() {
    holds(
        "[[fault]]\nkind = \"partition\"\ngroups = [[0, 1, 2]]\nfrom = { round = 2 }\n\
         [[fault]]\nkind = \"heal\"\nfrom = { event = { kind = \"block-refused\", count = 1 } }\n\
         [[fault]]\nkind = \"heal\"\nfrom = { round = 3 }\n\
         [[assert]]\nsometimes = \"agreement < 0.8\"\n[[assert]]\neventually = \"converged\"\nafter_fault = 2\n",
    );
}

#[test]
fn dropped_blocks_are_missed_and_delayed_ones_are_late() {
    holds(
        "[[fault]]\nkind = \"drop\"\nmessages = [\"block\"]\nreceivers = [4]\nfrom = { round = 2 }\nuntil = { round = 3 }\n\
         [[assert]]\nsometimes = \"agreement < 1\"\n[[assert]]\nfinally = \"missed <= 4\"\n",
    );
    holds(
        "[[fault]]\nkind = \"delay\"\nby_ms = 1500\njitter_ms = 200\nmessages = [\"status\"]\nfrom = { round = 2 }\n\
         until = { round = 3 }\n[[assert]]\nsometimes = \"suspended > 0\"\n",
    );
    holds(
        "[[fault]]\nkind = \"duplicate\"\nmessages = [\"block\"]\nwithin_ms = 900\n[[assert]]\nfinally = \"missed == 0\"\n\
         [[assert]]\nalways = \"rollbacks == 0\"\n",
    );
}

#[test]
fn a_crashed_node_is_silent_and_a_restarted_one_goes_on() {
    holds(
        "[[fault]]\nkind = \"crash\"\nnodes = [\"genesis_3\"]\nkeep_pool = false\nfrom = { round = 2 }\n\
         until = { after = 120 }\n[[assert]]\nsometimes = \"missed >= 1\"\n\
         [[assert]]\neventually = \"converged\"\nafter_fault = 0\n",
    );
    holds(
        "[[fault]]\nkind = \"restart\"\nnodes = [5, 6]\nfrom = { height = 15 }\n\
         [[assert]]\neventually = \"converged\"\nwithin_rounds = 2\nafter_fault = 0\n",
    );
}

#[test]
fn delegates_deviate_and_the_others_go_on() {
    for (fault, claim) in [
        ("kind = \"late-forging\"\nby_ms = 7000\n", "sometimes = \"missed >= 1\""),
        ("kind = \"late-forging\"\nby_ms = 1000\n", "finally = \"missed == 0\""),
        ("kind = \"withhold\"\n", "sometimes = \"missed >= 1\""),
        ("kind = \"forge-out-of-turn\"\nevery = 2\n", "sometimes = \"blocks-refused >= 40\""),
        ("kind = \"offline\"\n", "sometimes = \"missed >= 1\""),
    ] {
        holds(&format!(
            "[[fault]]\n{fault}delegates = [\"genesis_4\"]\nfrom = {{ round = 2 }}\nuntil = {{ round = 3 }}\n\
             [[assert]]\n{claim}\n[[assert]]\neventually = \"converged\"\nafter_fault = 0\n"
        ));
    }
}

#[test]
fn nodes_that_take_no_transactions_and_forgers_that_censor() {
    holds(
        "[[fault]]\nkind = \"refuse-transactions\"\nnodes = { share = 1 }\n\
         [[workload]]\nkind = \"generate\"\nper_second = 1\n[[assert]]\nfinally = \"transactions == 0\"\n",
    );
    holds(
        "[[fault]]\nkind = \"censor\"\ndelegates = { share = 1 }\nsender = \"account_1\"\n\
         [[fault]]\nkind = \"low-fee-flood\"\nper_second = 1\nfrom = { height = 5 }\n\
         [[assert]]\nsometimes = \"transactions > 50\"\n[[assert]]\nsometimes = \"pool > 2\"\n",
    );
}

/// A false height or slot costs the liar its peers, and a network that has enough others goes on. A false id costs nothing:
/// the header holds, and what the peer has in common is asked for block by block.
#[test]
fn a_peer_that_lies_about_its_tip_is_dropped() {
    for lie in [
        "by = 3\n",
        "by = -2\n",
        "by = 100000\n",
        "by = 3\nsigned = true\n",
        "claim = \"slot\"\nby = 1\n",
        "claim = \"slot\"\nby = -1\n",
    ] {
        holds(&format!(
            "[rules]\nminimum_network_reach = 5\n\
             [[fault]]\nkind = \"lie-about-tip\"\nnodes = [\"genesis_4\"]\n{lie}from = {{ round = 2 }}\n\
             until = {{ round = 3 }}\n[[assert]]\nsometimes = \"peers-removed >= 5\"\n\
             [[assert]]\nfinally = \"missed <= 2\"\n[[assert]]\neventually = \"converged\"\nafter_fault = 0\n"
        ));
    }
}

#[test]
fn a_false_id_beside_a_true_header_is_no_lie_that_counts() {
    for lie in ["", "signed = true\n"] {
        holds(&format!(
            "[[fault]]\nkind = \"lie-about-tip\"\nnodes = [\"genesis_4\"]\nclaim = \"id\"\n{lie}\
             from = {{ round = 2 }}\nuntil = {{ round = 3 }}\n[[assert]]\nalways = \"peers-removed == 0\"\n\
             [[assert]]\nfinally = \"missed == 0\"\n"
        ));
    }
}

/// The names of the rules that blocks were refused by.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Vec<String>>>);

impl Observer for Refusals {
    fn observe(&mut self, _: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockRefused(why) = event {
            self.0.lock().expect("no one panics while holding it").push(why.to_string());
        }
    }
}

#[test]
fn each_invalid_block_is_refused_by_the_rule_it_breaks() {
    for rule in InvalidBlock::ALL {
        let name = serde_json::to_value(rule).expect("a name");
        let scenario = scenario(&format!(
            "[[fault]]\nkind = \"forge-invalid\"\ndelegates = [\"genesis_4\"]\nerror = {name}\nfrom = {{ round = 2 }}\n\
             until = {{ round = 3 }}\n"
        ));
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let (refusals, rounds) = (Refusals::default(), dposlab::report::Rounds::new(&plan));
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(refusals.clone()), Box::new(rounds.clone())];
        scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
        let refused = refusals.0.lock().expect("no one panics while holding it").clone();
        let expected = match rule {
            InvalidBlock::PreviousBlock => "does not chain",
            InvalidBlock::Reward => "Invalid block reward",
            InvalidBlock::Signature => "Failed to verify block signature",
            InvalidBlock::Version => "Invalid block version",
            InvalidBlock::Timestamp => "lies in slot",
            InvalidBlock::PayloadSize => "Payload is too large",
            InvalidBlock::TransactionSignature => "transactions are not verified",
            InvalidBlock::NumberOfTransactions => "Invalid number of transactions",
            InvalidBlock::TooManyTransactions => "too many transactions",
            InvalidBlock::DuplicateTransaction => "duplicate transaction",
            InvalidBlock::ExpiredTransaction => "expired transaction",
            InvalidBlock::FutureTransaction => "future transaction",
            InvalidBlock::TotalAmount => "Invalid total amount",
            InvalidBlock::TotalFee => "Invalid total fee",
            InvalidBlock::PayloadHash => "Invalid payload hash",
            InvalidBlock::Id => "its id should be",
            InvalidBlock::Nonce => "nonce",
            InvalidBlock::Overspent => "Insufficient balance",
            InvalidBlock::MixedVersions => "different versions",
        };
        // One that says too much in its header may be told by the schema, which comes first.
        let named = refused.iter().filter(|text| text.contains(expected)).count();
        assert!(named >= 5, "{name}: expected '{expected}', found {refused:?}");
        assert_eq!(rounds.height(), scenario.last_height(), "{name}: the chain goes on");
    }
}

/// Counts what happens to messages and faults.
#[derive(Clone, Default)]
struct Traffic(Arc<Mutex<Counts>>);

/// Messages sent, messages lost, and faults by index as they began (true) and ended.
type Counts = (u64, u64, Vec<(usize, bool)>);

impl Observer for Traffic {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        let mut counts = self.0.lock().expect("no one panics while holding it");
        match event {
            NetworkEvent::Sent { .. } => counts.0 += 1,
            NetworkEvent::Lost { .. } => counts.1 += 1,
            NetworkEvent::FaultBegan { index, .. } => counts.2.push((*index, true)),
            NetworkEvent::FaultEnded { index, .. } => counts.2.push((*index, false)),
            NetworkEvent::NodeDown { .. }
            | NetworkEvent::NodeUp { .. }
            | NetworkEvent::PoolLost { .. }
            | NetworkEvent::Moved { .. } => {}
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

#[test]
fn losses_beginnings_and_ends_are_told() {
    let scenario = scenario(
        "loss = 0.1\n[[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { height = 12 }\n\
         [[fault]]\nkind = \"heal\"\nfrom = { seconds = 200 }\n",
    );
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let (traffic, rounds) = (Traffic::default(), dposlab::report::Rounds::new(&plan));
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(traffic.clone()), Box::new(rounds.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    let (sent, lost, faults) = traffic.0.lock().expect("no one panics while holding it").clone();
    assert_eq!(faults, [(0, true), (1, true), (0, false), (1, false)]);
    assert!(lost > 100 && sent > lost * 3, "{sent} sent, {lost} lost");
}

#[test]
fn other_seeds_lose_other_messages() {
    let lossy = scenario("loss = 0.2\n");
    let (_, one) = play(&lossy, 1, StageKind::Inline);
    let (_, again) = play(&lossy, 1, StageKind::Inline);
    let (_, other) = play(&lossy, 2, StageKind::Inline);
    assert_eq!(one, again);
    assert_ne!(one.digest, other.digest);
}

/// Writes down when nodes go down and come back.
#[derive(Clone, Default)]
struct Downs(Arc<Mutex<Vec<Down>>>);

/// Seconds since the start, node, and why it is down, or none where it is up again.
type Down = (u64, u32, Option<DownCause>);

impl Observer for Downs {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let (node, cause) = match event {
            NetworkEvent::NodeDown { node, cause } => (node.0, Some(*cause)),
            NetworkEvent::NodeUp { node } => (node.0, None),
            _ => return,
        };
        // The first slot begins eight seconds after genesis.
        self.0.lock().expect("no one panics while holding it").push((now.micros() / 1_000_000 - 8, node, cause));
    }
}

#[test]
fn a_node_is_down_from_its_first_cause_to_the_end_of_its_last_and_that_is_told_once() {
    let fault = |kind: &str, node: u32, from: u32, until: &str| {
        format!("[[fault]]\nkind = \"{kind}\"\nnodes = [{node}]\nfrom = {{ seconds = {from} }}\n{until}\n")
    };
    let until = |at: u32| format!("until = {{ seconds = {at} }}");
    let faults = [
        // Crashed and paused at once, whichever begins first.
        fault("crash", 1, 10, &until(30)),
        fault("pause", 1, 20, &until(40)),
        fault("pause", 2, 11, &until(41)),
        fault("crash", 2, 21, &until(31)),
        // Paused twice.
        fault("pause", 3, 12, &until(32)),
        fault("pause", 3, 22, &until(42)),
        // Restarted: while it runs, and while it stands still.
        fault("restart", 0, 50, ""),
        fault("pause", 0, 60, &until(62)),
        fault("restart", 0, 61, ""),
        // Crashed twice, one within the other and one after the other's begin; a restart brings it back all the same.
        fault("crash", 1, 70, &until(74)),
        fault("crash", 1, 71, &until(73)),
        fault("crash", 2, 75, &until(77)),
        fault("crash", 2, 76, &until(78)),
        fault("crash", 3, 80, &until(84)),
        fault("restart", 3, 82, ""),
    ];
    let scenario = scenario(&faults.concat());
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let downs = Downs::default();
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(downs.clone())];
    scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    let (crash, pause) = (Some(DownCause::Crash), Some(DownCause::Pause));
    assert_eq!(
        *downs.0.lock().expect("no one panics while holding it"),
        [
            (10, 1, crash),
            (11, 2, pause),
            (12, 3, pause),
            (40, 1, None),
            (41, 2, None),
            (42, 3, None),
            (50, 0, crash),
            (50, 0, None),
            (60, 0, pause),
            (62, 0, None),
            (70, 1, crash),
            (74, 1, None),
            (75, 2, crash),
            (78, 2, None),
            (80, 3, crash),
            (82, 3, None),
        ]
    );
}

/// A crash takes the pool with it, be it the first or the last of two that overlap.
#[test]
fn of_two_crashes_at_once_one_is_enough_to_lose_the_pool() {
    let lost = |first: bool, second: bool| {
        let crash = |from: u32, until: u32, keep_pool: bool| {
            format!(
                "[[fault]]\nkind = \"crash\"\nnodes = [1]\nkeep_pool = {keep_pool}\nfrom = {{ seconds = {from} }}\nuntil = {{ \
                 seconds = {until} }}\n"
            )
        };
        let scenario = scenario(&[crash(10, 30, first), crash(20, 40, second)].concat());
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let lost = PoolsLost::default();
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(lost.clone())];
        scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
        *lost.0.lock().expect("no one panics while holding it")
    };
    assert_eq!([lost(true, true), lost(true, false), lost(false, true), lost(false, false)], [0, 1, 1, 1]);
}

/// Counts pools that crashes took.
#[derive(Clone, Default)]
struct PoolsLost(Arc<Mutex<u32>>);

impl Observer for PoolsLost {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        if matches!(event, NetworkEvent::PoolLost { .. }) {
            *self.0.lock().expect("no one panics while holding it") += 1;
        }
    }
}
