//! The times that nodes wait are rules: each other value is kept as the reference's is.

use super::cluster::{Cluster, Lone, Setup, message, nobody, rules};
use dposlab::{
    actors::{ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake},
    ledger::{
        Rules,
        rules::{Gossip, NodeRules},
    },
    protocol::Slot,
    scenario::{Scenario, StageKind},
    sim::{Observer, SeedTree},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

fn quiet(change: impl FnOnce(&mut Rules)) -> Cluster {
    let mut rules = rules(Rules::reference());
    change(&mut rules);
    Setup { rules, offline: nobody, ..Setup::default() }.build()
}

fn lone(cluster: &Cluster, given: &[u32]) -> Lone {
    Lone::new(&cluster.tree, cluster.tree.genesis(), 0, given, Cluster::at(800))
}

/// The times until the wake-ups of a kind.
fn waits(lone: &Lone, effects: &[Effect], is_it: fn(&Wake) -> bool) -> Vec<Duration> {
    let times = effects.iter().filter_map(|effect| match effect {
        Effect::WakeAt { at, wake } if is_it(wake) => Some(at.since(lone.now)),
        _ => None,
    });
    times.collect()
}

#[test]
fn a_connection_has_its_time() {
    for ms in [700, 2_000, 9_000] {
        let cluster = quiet(|rules| (rules.node.connecting_timeout_ms, rules.node.rate_limits) = (ms, false));
        let mut lone = lone(&cluster, &[]);
        let effects = lone.hear(5, Message::StatusRequest);
        let time = Duration::from_millis(ms.into());
        assert_eq!(waits(&lone, &effects, |wake| *wake == Wake::Unanswered), [time], "{ms}");
        let begun = lone.now;
        for (at, is_new) in [(time - Duration::from_micros(1), false), (time, true)] {
            lone.now = begun + at;
            lone.step(Input::Wake(Wake::Unanswered));
            let effects = lone.hear(5, Message::StatusRequest);
            let connects = message(&effects, |message| matches!(message, Message::Connect { trip: 1 }).then_some(()));
            assert_eq!(connects.is_some(), is_new, "{ms}: {at:?} later");
        }
    }
}

#[test]
fn a_caller_that_floods_is_blocked_for_its_time() {
    for ms in [2_500, 60_000, 90_000] {
        let cluster = quiet(|rules| rules.node.blocking_ms = ms);
        let mut lone = lone(&cluster, &[1, 2, 3]);
        (0..101).for_each(|_| drop(lone.hear(1, Message::Transactions(Vec::new().into()))));
        let (begun, time) = (lone.now, Duration::from_millis(ms.into()));
        for (at, answers) in [(time - Duration::from_micros(1), false), (time, true)] {
            lone.now = begun + at;
            assert_eq!(!lone.hear(1, Message::StatusRequest).is_empty(), answers, "{ms}: {at:?} later");
        }
    }
}

#[test]
fn discoveries_follow_each_other_after_their_time() {
    for (ms, below_reach_ms) in [(600_000, 60_000), (30_000, 90_000), (7_001, 3)] {
        let is_below = [true, false].map(|is_below| {
            let cluster = quiet(|rules| {
                rules.minimum_network_reach = Some(if is_below { 20 } else { 1 });
                rules.node.discovery_ms = ms;
                rules.node.discovery_below_reach_ms = below_reach_ms;
            });
            let mut lone = lone(&cluster, &[1, 2]);
            let effects = lone.step(Input::Wake(Wake::Discover));
            waits(&lone, &effects, |wake| *wake == Wake::Discover)
        });
        let wanted = [below_reach_ms, ms].map(|ms: u32| vec![Duration::from_millis(ms.into())]);
        assert_eq!(is_below, wanted);
    }
}

#[test]
fn a_block_is_passed_on_after_its_time() {
    for ms in [0, 120, 500, 1_500] {
        let cluster = quiet(|rules| (rules.gossip, rules.node.gossip_wait_ms) = (Gossip::Reference, ms));
        let block = cluster.block(cluster.tree.genesis(), Slot(2), Vec::new());
        let mut lone = Lone::new(&cluster.tree, cluster.tree.genesis(), 0, &[1, 2, 3], Cluster::at(8 * 2));
        let effects = lone.hear(1, Message::Block(block));
        let time = Duration::from_millis(ms.into());
        assert_eq!(waits(&lone, &effects, |wake| matches!(wake, Wake::Gossip(_))), [time], "{ms}");
    }
}

#[test]
fn transactions_are_collected_for_their_time() {
    for ms in [0, 100, 2_000] {
        let cluster = quiet(|rules| {
            rules.node.transactions_in_order = true;
            rules.node.bundle_ms = ms;
        });
        let mut lone = lone(&cluster, &[1, 2, 3]);
        let transfers: Vec<_> = cluster.transfer(0, 1).into_iter().map(Arc::new).collect();
        let from = ActorId { node: NodeId(0), role: Role::Pool };
        let message = Message::Broadcast(transfers.into());
        let effects = lone.step(Input::Message { from, message });
        let time = Duration::from_millis(ms.into());
        assert_eq!(waits(&lone, &effects, |wake| *wake == Wake::Bundle), [time], "{ms}");
    }
}

/// The reference's times, one of them changed, are no times of the reference: the model of a node refuses them.
#[test]
fn the_model_of_a_node_is_of_the_references_times() {
    let changes: [fn(&mut NodeRules) -> &mut u32; 11] = [
        |node| &mut node.answer_timeout_ms,
        |node| &mut node.connecting_timeout_ms,
        |node| &mut node.verification_timeout_ms,
        |node| &mut node.post_timeout_ms,
        |node| &mut node.blocking_ms,
        |node| &mut node.discovery_ms,
        |node| &mut node.discovery_below_reach_ms,
        |node| &mut node.gossip_wait_ms,
        |node| &mut node.bundle_ms,
        |node| &mut node.relay_timeout_ms,
        |node| &mut node.forging_retry_ms,
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let mut rules = Rules::reference();
        assert!(rules.is_of_the_reference());
        *change(&mut rules.node) += 1;
        assert!(!rules.is_of_the_reference(), "change {place}");
    }
}

/// Blocks forged and peers removed, each with its time and its node.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    forged: Vec<(SimTime, NodeId)>,
    removed: Vec<(SimTime, NodeId)>,
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut told = self.0.lock().expect("nobody panics with it");
        match event {
            Event::BlockForged(_) => told.forged.push((now, node)),
            Event::PeerRemoved(peer) if *peer == NodeId(RELAY) => told.removed.push((now, node)),
            _ => {}
        }
    }
}

/// The relay beside five delegates.
const RELAY: u32 = 5;

/// With latencies of half a second, each delegate forges a second into its slot.
fn played(rest: &str) -> Told {
    let text = format!(
        "version = 1\nrounds = 6\ncrypto = \"modelled\"\n[network]\ndelegates = {RELAY}\nrelays = 1\ngossip = \"once\"\n\
         latency = {{ distribution = \"constant\", ms = 500 }}\n[rules]\nnode.discovery = false\nnode.forging_poll_ms = 0\n{rest}"
    );
    let scenario = Scenario::parse(&text, "timeouts".as_ref()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (seeds, log) = (SeedTree::new(1), Log::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(log.clone())], |_| {}).expect("no actor dies");
    std::mem::take(&mut log.0.lock().expect("nobody panics with it"))
}

/// A block reaches a relay that stands still. Its sender gives up the connection after the time for an answer, and reports nothing. Or
/// the ping of its next turn ends before, and the sender reports the silent relay.
#[test]
fn a_block_without_an_answer_has_its_time() {
    let forged = played("").forged;
    let (at, forger) = forged[7];
    let next = forged[8..].iter().find(|(_, node)| *node == forger).expect("it forges again").0;
    // The ping begins a second before the block and takes 1.5 seconds. The block is under way for half a second.
    let gap_ms = next.since(at).as_millis() as u64 - 1_000 + 1_500 - 500;
    // Seconds of a scenario count from its first slot. The relay stands still after its answer to the ping.
    let still = (at.micros() as f64 / 1e6) - 8.0 - 0.2;
    for (timeout_ms, finds) in [(10_000, false), (gap_ms - 1, false), (gap_ms + 1, true), (3_600_000, true)] {
        let told = played(&format!(
            "node.post_timeout_ms = {timeout_ms}\n[[fault]]\nkind = \"pause\"\nnodes = [{RELAY}]\n\
             from = {{ seconds = {still} }}\nuntil = {{ seconds = {} }}\n",
            still + 200.0
        ));
        assert_eq!(told.forged[7], (at, forger), "nothing changes before");
        let found = told.removed.iter().any(|(_, node)| *node == forger);
        assert_eq!(found, finds, "{timeout_ms} of {gap_ms} ms: {:?}", told.removed);
        assert!(told.removed.iter().any(|(_, node)| *node != forger), "the others ping it: {:?}", told.removed);
    }
}

/// Latencies of two seconds need four for a ping, and the delegate has to wait as long for its relay.
#[test]
fn a_relay_may_have_more_than_four_seconds() {
    let text = |rules: &str| format!("version = 1\nrounds = 2\n[network]\ndelegates = 7\n{SLOW}[rules]\n{rules}\n");
    const SLOW: &str = "latency = { distribution = \"constant\", ms = 2000 }\n";
    let parse = |rules: &str| Scenario::parse(&text(rules), "slow".as_ref());
    let refused = parse("node.forging_ping_ms = 4001").expect_err("the relay has four seconds").to_string();
    assert!(refused.contains("found 4001, allowed is 0 to 3999"), "{refused}");
    let scenario = parse("node.forging_ping_ms = 4001\nnode.relay_timeout_ms = 4400").expect("it is one");
    let (rounds, _) = crate::support::play(&scenario, 1, StageKind::Inline);
    assert_eq!(rounds.height().0, 14, "two rounds");
}

/// A wait of no time ends and begins at the same instant, for ever.
#[test]
fn a_wait_of_no_time_is_refused() {
    for key in ["answer", "connecting", "verification", "post", "relay"] {
        let rules = toml::from_str(&format!("node.{key}_timeout_ms = 0")).expect("it is TOML");
        let refused = Rules::from_toml(&rules).expect_err("it is refused").to_string();
        assert_eq!(refused, format!("key 'node.{key}_timeout_ms': found 0, allowed is 1 or more"));
    }
}
