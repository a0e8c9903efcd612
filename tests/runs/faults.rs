//! Faults one by one: that each does what it says, and no more.

use crate::support::play;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check,
    protocol::{BlockId, Height},
    scenario::{Scenario, StageKind, Verdict},
    sim::{NetworkEvent, Observer, Plan, SeedTree, Tips, strategy::InvalidBlock, world::DownCause},
};
use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
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
        "[[fault]]\nkind = \"isolate\"\nnodes = [3]\nfrom = { seconds = 100 }\nuntil = { seconds = 116 }\n\
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

/// The delegate wakes within the slot that it means, however short the slots are.
#[test]
fn a_delegate_forges_out_of_turn_in_short_slots_too() {
    holds(
        "block_time_s = 2\n[rules]\nnode.settling_s = 0\nnode.least_seconds_left = 1\n\
         [[fault]]\nkind = \"forge-out-of-turn\"\nevery = 2\ndelegates = [\"genesis_4\"]\n\
         [[assert]]\nsometimes = \"blocks-refused >= 40\"\n",
    );
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
        "loss = 0.1\n[[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { seconds = 90 }\n\
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

/// The number of live nodes at each height when the first fault begins, and the forgers of all blocks.
#[derive(Clone)]
struct AtBeginning(Arc<Mutex<Seen>>);

struct Seen {
    tips: Tips,
    began: Option<(SimTime, Vec<u32>)>,
    forged: Vec<(u32, NodeId, BlockId)>,
}

impl AtBeginning {
    fn new(plan: &Plan) -> Self {
        let tips = Tips::new(plan.nodes.len(), &plan.tip);
        Self(Arc::new(Mutex::new(Seen { tips, began: None, forged: Vec::new() })))
    }
}

impl Observer for AtBeginning {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut seen = self.0.lock().expect("nobody panics");
        seen.tips.follow(node, event);
        if let Event::BlockForged(block) = event {
            seen.forged.push((block.header.height.0, node, block.id));
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut seen = self.0.lock().expect("nobody panics");
        seen.tips.follow_network(event);
        if let NetworkEvent::FaultBegan { .. } = event
            && seen.began.is_none()
        {
            seen.began = Some((now, seen.tips.of_live().map(|(_, tip)| tip.height().0).collect()));
        }
    }
}

/// Plays a scenario; answers what was seen, and the ids of the chain on which most nodes end.
fn seen_of(scenario: &Scenario) -> (Seen, Vec<BlockId>) {
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let seen = AtBeginning::new(&plan);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(seen.clone())], |_| {}).expect("no actor dies");
    let seen = Arc::into_inner(seen.0).expect("the run is over").into_inner().expect("nobody panics");
    let mut chain = vec![seen.tips.winning().clone()];
    while let Some(parent) = chain.last().and_then(|link| link.parent()) {
        chain.push(parent);
    }
    (seen, chain.iter().map(|link| link.id()).collect())
}

/// The forger of the block before a round's first has that block alone for half a second. A fault that began then and took this
/// node away measured a private fork of it, which the network never saw.
#[test]
fn a_round_begins_when_most_nodes_are_in_it_and_a_forger_that_crashes_then_has_sent_its_block() {
    // The reference's relay waits before it pushes a block.
    let gossip = "gossip = \"reference\"\n";
    let (plain, _) = seen_of(&scenario(gossip));
    let (_, forger, id) = *plain.forged.iter().find(|(height, ..)| *height == 11).expect("the first round is full");
    let crash = |from: &str| {
        let when = format!("from = {{ {from} }}\nuntil = {{ after = 60 }}\n");
        seen_of(&scenario(&format!("{gossip}[[fault]]\nkind = \"crash\"\nnodes = [{}]\n{when}", forger.0)))
    };
    for from in ["round = 2", "height = 11"] {
        let (seen, chain) = crash(from);
        let (_, heights) = seen.began.expect("it begins");
        let there = heights.iter().filter(|height| **height >= 11).count();
        assert_eq!((there, heights.len()), (6, 11), "{from}: the first instant at which most are there");
        assert!(chain.contains(&id), "{from}: the block was sent, and the others built on it");
    }
    for from in ["round-at-any = 2", "height-at-any = 11"] {
        let (seen, chain) = crash(from);
        let (_, heights) = seen.began.expect("it begins");
        assert_eq!(heights.iter().filter(|height| **height >= 11).count(), 1, "{from}: the forger alone");
        assert!(!chain.contains(&id), "{from}: a private fork");
    }
}

#[test]
fn an_end_waits_for_most_nodes_too_and_those_that_are_down_do_not_count() {
    // Six of eleven crash: the five that are left are all.
    let text =
        "[[fault]]\nkind = \"crash\"\nnodes = { from = 0, to = 5 }\nfrom = { seconds = 20 }\nuntil = { height = 9 }\n";
    let scenario = Scenario { rounds: 2, ..scenario(&format!("{text}[rules]\nminimum_network_reach = 2\n")) };
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let rounds = dposlab::report::Rounds::new(&plan);
    let seen = AtEnd { tips: Tips::new(11, &plan.tip), at_end: None };
    let seen = Arc::new(Mutex::new(seen));
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(EndSeen(seen.clone())), Box::new(rounds)];
    scenario.play(&plan, StageKind::Inline, observers, |_| {}).expect("no actor dies");
    let at_end = seen.lock().expect("nobody panics").at_end.clone().expect("it ends");
    let there = at_end.iter().filter(|height| **height >= 9).count();
    assert_eq!((there, at_end.len()), (3, 5), "three of the five live nodes");
}

struct AtEnd {
    tips: Tips,
    at_end: Option<Vec<u32>>,
}

struct EndSeen(Arc<Mutex<AtEnd>>);

impl Observer for EndSeen {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        self.0.lock().expect("nobody panics").tips.follow(node, event);
    }

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        let mut seen = self.0.lock().expect("nobody panics");
        let heights = |seen: &AtEnd| seen.tips.of_live().map(|(_, tip)| tip.height().0).collect();
        // The first node that comes back tells that the fault is about to end.
        if let NetworkEvent::NodeUp { .. } = event
            && seen.at_end.is_none()
        {
            seen.at_end = Some(heights(&seen));
        }
        seen.tips.follow_network(event);
    }
}

/// A network of seven delegates and a relay, node 7, that forges with the key of node 2 in the rounds 2 to 7.
fn with_a_spare(crypto: &str, more: &str) -> Scenario {
    let text = format!(
        "version = 1\nrounds = 10\ncrypto = \"{crypto}\"\n[network]\ndelegates = 7\nrelays = 1\n\
         latency = {{ distribution = \"constant\", ms = 50 }}\n[rules]\nbase = \"corrected\"\nnode.forging_poll_ms = 0\n\
         [[fault]]\nkind = \"spare-forger\"\ndelegates = [\"genesis_3\"]\nnodes = [7]\nfrom = {{ round = 2 }}\n\
         until = {{ round = 8 }}\n{more}"
    );
    Scenario::parse(&text, Path::new("spare")).expect("the test writes a scenario")
}

/// Transactions that are handed in at the delegate's own node alone, and reach the spare node a little later.
const AT_ONE_NODE: &str = "[[workload]]\nkind = \"generate\"\nper_second = 10\nwallets = 8\nnodes = [2]\n\
                           from = { round = 2 }\nuntil = { round = 8 }\n";

/// The blocks of the two nodes at each height at which both made one.
fn pairs(seen: &Seen) -> Vec<(BlockId, BlockId)> {
    let of = |wanted: u32| seen.forged.iter().filter(move |(_, node, _)| node.0 == wanted);
    let beside = |height: u32| of(7).find(|(other, ..)| *other == height).map(|(.., id)| *id);
    of(2).filter_map(|(height, _, id)| Some((*id, beside(*height)?))).collect()
}

#[test]
fn two_nodes_with_one_key_and_equal_pools_make_one_block() {
    let (seen, _) = seen_of(&with_a_spare("real", ""));
    let both = pairs(&seen);
    assert!(both.len() >= 5, "both forge in the slots of genesis_3: {both:?}");
    assert!(both.iter().all(|(one, other)| one == other), "signatures are deterministic: {both:?}");
    assert!(seen.tips.is_converged() && seen.tips.winning().height() == Height(70));
}

#[test]
fn two_nodes_with_one_key_and_other_pools_make_two_blocks_and_the_network_splits_and_recovers() {
    let more = format!(
        "{AT_ONE_NODE}[[assert]]\nsometimes = \"chains > 1\"\n[[assert]]\neventually = \"converged\"\nafter_fault = 0\n\
         [[assert]]\nalways = \"invariants\"\n"
    );
    let scenario = with_a_spare("modelled", &more);
    let (seen, _) = seen_of(&scenario);
    let both = pairs(&seen);
    assert!(both.iter().any(|(one, other)| one != other), "one pool has what the other lacks: {both:?}");
    let seeds = SeedTree::new(7);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let judge = check::judge(&scenario, &plan).expect("no invariant is misspelt");
    let outcome = scenario.play(&plan, StageKind::Inline, judge.observer().into_iter().collect(), |_| {});
    let outcome = outcome.expect("no actor dies");
    for verdict in judge.verdicts(outcome.end, outcome.ended) {
        assert!(verdict.holds(), "{verdict}");
    }
}

/// Each of the two follows the rules, so nothing of what they do is exempt from judgement.
#[test]
fn two_nodes_with_one_key_are_honest_each() {
    use dposlab::check::{
        conduct::{MADE, ONE_A_SLOT, RELAY, TURN},
        search::{Networks, play},
    };
    for more in ["", AT_ONE_NODE] {
        let scenario = with_a_spare("modelled", more);
        let tried = play(&scenario, &Networks::default(), None, true, &AtomicBool::new(false));
        let judged = |name: &str| tried.findings.iter().filter(|finding| finding.invariant == name).count();
        for conduct in [&MADE, &ONE_A_SLOT, &RELAY, &TURN] {
            assert_eq!(judged(conduct.name), 0, "{}: {:#?}", conduct.name, tried.findings);
        }
        assert!(check::liveness::deviants(&scenario).is_empty(), "nobody is exempt");
    }
}

/// A block may be made while two whole seconds of its slot are left: the last millisecond is the one before the seventh second.
/// The relay has answered long before, so the four seconds that it has are nothing to a late delegate. Source: consensus.md 2.1, 2.4.
#[test]
fn a_late_delegate_forges_up_to_the_cliff_of_the_slot_and_not_past_it() {
    let late = |by: Option<u32>| {
        let fault = by
            .map_or(String::new(), |by| format!("[[fault]]\nkind = \"late-forging\"\ndelegates = [1]\nby_ms = {by}\n"));
        let text = format!(
            "version = 1\nrounds = 4\n[rules]\nnode.forging_poll_ms = 0\n[network]\ndelegates = 5\nlatency = {{ distribution = \"constant\", ms = 40 }}\n{fault}"
        );
        let scenario = Scenario::parse(&text, Path::new("late")).expect("the test writes a scenario");
        let seeds = SeedTree::new(7);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let seen = Into8Seconds(Arc::new(Mutex::new(Vec::new())));
        scenario.play(&plan, StageKind::Inline, vec![Box::new(seen.clone())], |_| {}).expect("no actor dies");
        seen.0.lock().expect("nobody panics").clone()
    };
    let plain = late(None);
    let made = *plain.first().expect("it forges");
    assert!(plain.len() >= 3 && plain.iter().all(|at| *at == made), "the same instant in each slot: {plain:?}");
    // Two seconds and two round trips of a ping and its answer at most.
    assert!((2_000_000..2_200_000).contains(&made), "{made}");
    let cliff = (7_000_000 - made) / 1_000;
    assert!((4_800..5_000).contains(&cliff), "{cliff}");
    let cliff = cliff as u32;
    for by in [2_000, 3_999, 4_000, 4_001, cliff - 1] {
        let late = late(Some(by));
        assert!(late.iter().all(|at| *at == made + u64::from(by) * 1_000), "{by}: {late:?}");
        assert!(late.len() >= 3, "{by}: {late:?}");
    }
    for by in [cliff, cliff + 1, 6_000, 20_000] {
        let late = late(Some(by));
        assert!(late.is_empty(), "{by}: too late, and thrown away: {late:?}");
    }
}

/// The microseconds into its slot at which node 1 forges.
#[derive(Clone)]
struct Into8Seconds(Arc<Mutex<Vec<u64>>>);

impl Observer for Into8Seconds {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if let (Event::BlockForged(_), NodeId(1)) = (event, node) {
            self.0.lock().expect("nobody panics").push(now.micros() % 8_000_000);
        }
    }
}
