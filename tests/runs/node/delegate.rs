//! A delegate and its relay: what has to be there before a block is made, and what goes wrong. Source: consensus.md 2.

use super::cluster::{Cluster, Lone, Seen, Setup, message, rules};
use dposlab::{
    actors::{
        ActorId, Delegate, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake,
        message::{NetworkState, NetworkStatus, RoundView},
    },
    ledger::{Link, Rules, rules::NodeRules},
    protocol::Slot,
    sim::{SeedTree, fault::Span},
};
use rand::Rng;
use std::{sync::Arc, time::Duration};

/// A delegate whose relay is the test.
struct Alone {
    cluster: Cluster,
    delegate: Delegate,
    now: SimTime,
    /// Its next wake-up.
    next: Option<(SimTime, Wake)>,
}

impl Alone {
    /// The delegate that owns the slot that is running, on a chain of genesis alone.
    fn new() -> Self {
        let cluster = Setup { rules: rules(Rules::reference()), ..Setup::default() }.build();
        let genesis = cluster.tree.genesis().clone();
        Self::owner(cluster, &genesis, Slot(50), Duration::ZERO)
    }

    /// The delegate that owns a slot after a block, so long after the slot has begun.
    fn owner(cluster: Cluster, parent: &Arc<Link>, slot: Slot, later: Duration) -> Self {
        let keys = cluster.owner(parent, slot);
        let delegate = Delegate::new(NodeId(0), Some(keys), cluster.tree.clone(), 1);
        Self { cluster, delegate, now: Cluster::at(8 * slot.0) + later, next: None }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.delegate.step(self.now, input, &mut effects);
        for effect in &effects {
            if let Effect::WakeAt { at, wake } = effect {
                self.next = Some((*at, *wake));
            }
        }
        effects
    }

    fn hear(&mut self, message: Message) -> Vec<Effect> {
        self.step(Input::Message { from: ActorId { node: NodeId(0), role: Role::Peer }, message })
    }

    /// Nothing happens until it wakes up.
    fn sleep(&mut self) -> (Duration, Vec<Effect>) {
        let (at, wake) = self.next.take().expect("it never sleeps for ever");
        let slept = at.since(self.now);
        self.now = at;
        (slept, self.step(Input::Wake(wake)))
    }

    fn round(&self) -> RoundView {
        self.round_after(self.cluster.tree.genesis())
    }

    fn round_after(&self, tip: &Arc<Link>) -> RoundView {
        let tree = &self.cluster.tree;
        let tip_slot = tree.slots().slot(tip.block().header.timestamp);
        let round = tree.applied(tip).state.round().clone();
        RoundView { round, tip: tip.id(), tip_height: tip.height(), tip_slot }
    }

    /// Until it works on a slot, with a relay that says this round whenever it is asked. Says the slot.
    fn next_slot_in_work(&mut self, round: &RoundView) -> Slot {
        for _ in 0..20 {
            let (_, effects) = self.sleep();
            if asks(&effects, for_round) && asks(&self.hear(Message::Round(round.clone().into())), for_network) {
                return self.cluster.tree.slots().slot(self.now.seconds());
            }
        }
        panic!("it works on no slot");
    }

    fn network(&self, status: NetworkStatus, in_quorum: u32, forked: u32) -> NetworkState {
        let tip = self.cluster.tree.genesis();
        let (height, tip, reached) = (tip.height(), tip.id(), in_quorum + forked);
        NetworkState { status, height, tip, reached, in_quorum, level: in_quorum, over_height: 0, forked }
    }
}

fn asks(effects: &[Effect], wanted: fn(&Message) -> bool) -> bool {
    message(effects, |message| wanted(message).then_some(())).is_some()
}

fn for_round(message: &Message) -> bool {
    matches!(message, Message::RoundRequest)
}

fn for_network(message: &Message) -> bool {
    matches!(message, Message::NetworkStateRequest)
}

fn for_transactions(message: &Message) -> bool {
    matches!(message, Message::ForgingTransactionsRequest)
}

#[test]
fn a_relay_that_says_nothing_does_not_stop_the_forger() {
    let mut alone = Alone::new();
    let effects = alone.step(Input::Start);
    assert!(asks(&effects, for_round));
    // No answer for four seconds, then two more before it asks again: every time.
    for _ in 0..3 {
        let (waited, effects) = alone.sleep();
        assert!(waited == Duration::from_secs(4) && !asks(&effects, for_round));
        let (waited, effects) = alone.sleep();
        assert!(waited == Duration::from_secs(2) && asks(&effects, for_round));
    }
    // In its next slot the relay is there again, but not for the state of the network: no block, and on it goes.
    alone.now = Cluster::at(8 * 55);
    let effects = alone.hear(Message::Round(alone.round().into()));
    assert!(asks(&effects, for_network));
    let started = |effect: &Effect| matches!(effect, Effect::Observe(Event::ForgerStarted { .. }));
    assert_eq!(effects.iter().filter(|effect| started(effect)).count(), 1);
    let (waited, effects) = alone.sleep();
    assert_eq!(waited, Duration::from_secs(4));
    let suspended = Effect::Observe(Event::ForgingSuspended { reached: 0, in_quorum: 0 });
    assert!(effects.iter().any(|effect| format!("{effect:?}") == format!("{suspended:?}")));
    assert!(asks(&effects, for_round));
    let effects = alone.hear(Message::Round(alone.round().into()));
    assert!(!asks(&effects, for_network) && !effects.iter().any(started), "the slot is lost, and it started only once");
    let (slept, effects) = alone.sleep();
    assert!(slept > Duration::from_secs(8) && asks(&effects, |message| matches!(message, Message::WakeUp)));
}

#[test]
fn a_pool_that_says_nothing_costs_four_seconds_and_two() {
    let mut alone = Alone::new();
    alone.step(Input::Start);
    alone.hear(Message::Round(alone.round().into()));
    let effects = alone.hear(Message::NetworkState(alone.network(NetworkStatus::Default, 3, 0).into()));
    assert!(asks(&effects, for_transactions));
    assert_eq!(alone.sleep().0, Duration::from_secs(4));
    let (waited, effects) = alone.sleep();
    assert!(waited == Duration::from_secs(2) && asks(&effects, for_round));
}

#[test]
fn a_relay_has_its_time_and_a_delegate_its_wait() {
    for times in [[1_000, 1], [4_000, 2_000], [6_500, 3_000]] {
        let mut rules = rules(Rules::reference());
        [rules.node.relay_timeout_ms, rules.node.forging_retry_ms] = times;
        let cluster = Setup { rules, ..Setup::default() }.build();
        let genesis = cluster.tree.genesis().clone();
        let mut alone = Alone::owner(cluster, &genesis, Slot(50), Duration::ZERO);
        alone.step(Input::Start);
        let slept = [alone.sleep().0, alone.sleep().0];
        assert_eq!(slept, times.map(|ms| Duration::from_millis(ms.into())));
    }
}

#[test]
fn any_other_failure_is_told_and_tried_again_after_two_seconds() {
    let mut alone = Alone::new();
    alone.step(Input::Start);
    let effects = alone.hear(Message::RelayFailed { error: Arc::from("no such round") });
    let told =
        |effect: &Effect| matches!(effect, Effect::Observe(Event::ForgerFailed { error }) if error == "no such round");
    assert!(effects.iter().any(told));
    let (waited, effects) = alone.sleep();
    assert!(waited == Duration::from_secs(2) && asks(&effects, for_round));
}

#[test]
fn who_may_forge() {
    use NetworkStatus::{BelowMinimumPeers, ColdStart, Default, Test};
    let cases = [
        (ColdStart, 50, 0, false),
        (Test, 0, 0, true),
        (BelowMinimumPeers, 4, 0, false),
        (Default, 0, 0, false),
        (Default, 66, 34, true),
        (Default, 65, 35, false),
    ];
    for (status, in_quorum, forked, allowed) in cases {
        let mut alone = Alone::new();
        alone.step(Input::Start);
        alone.hear(Message::Round(alone.round().into()));
        let effects = alone.hear(Message::NetworkState(alone.network(status, in_quorum, forked).into()));
        assert_eq!(asks(&effects, for_transactions), allowed, "{status:?} with {in_quorum} of {}", in_quorum + forked);
    }
}

#[test]
fn the_block_stands_on_what_the_state_of_the_network_says() {
    let mut alone = Alone::new();
    alone.step(Input::Start);
    alone.hear(Message::Round(alone.round().into()));
    // Meanwhile the relay has gone on by one block.
    let genesis = alone.cluster.tree.genesis().clone();
    let next = alone.cluster.chain(&genesis, Slot(49), 1).remove(0);
    let mut state = alone.network(NetworkStatus::Default, 3, 0);
    (state.height, state.tip) = (next.height(), next.id());
    alone.hear(Message::NetworkState(state.into()));
    let effects = alone.hear(Message::ForgingTransactions(Vec::new().into()));
    let forged = message(&effects, |message| match message {
        Message::Forged(block) => Some(block.clone()),
        _ => None,
    });
    let block = forged.expect("warned only").1;
    assert_eq!((block.header.previous, block.header.height.0), (Some(next.id()), 3));
}

/// A block is made in a slot if it is later than all slots in which blocks were made, whatever the clock shows next: one that
/// was fast is set right, one that was slow leaps.
#[test]
fn slots_that_are_used_follow_one_another() {
    let mut random = SeedTree::new(24).stream("clocks");
    for _ in 0..20 {
        let mut alone = Alone::new();
        alone.step(Input::Start);
        let mut last = None;
        for _ in 0..30 {
            // Its own slots are every fifth.
            let slot = 50 + 5 * random.random_range(0..30_u32);
            alone.now = Cluster::at(8 * slot + 3);
            let effects = alone.hear(Message::Round(alone.round().into()));
            let may = last < Some(slot);
            assert_eq!(asks(&effects, for_network), may, "slot {slot} after {last:?}");
            if may {
                alone.hear(Message::NetworkState(alone.network(NetworkStatus::Default, 3, 0).into()));
                let effects = alone.hear(Message::ForgingTransactions(Vec::new().into()));
                assert!(asks(&effects, |message| matches!(message, Message::Forged(_))), "slot {slot}");
                last = Some(slot);
            }
        }
    }
}

/// The end of the work on a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Forged,
    NoQuorum,
    RelaySilent,
    PoolSilent,
}

/// A late block ends the round while the delegate works on a slot by the old one. Whatever comes of that slot, the next one is
/// the first of its own by the new order. Source: consensus.md 1.4, 2.1.
#[test]
fn a_round_that_changes_while_a_slot_is_in_work_decides_the_next_one() {
    // Rounds in which the delegate's turn comes sooner than it would by the old order, which is a whole round later.
    let mut sooner = 0;
    for round in 1..=12 {
        for work in [Work::Forged, Work::NoQuorum, Work::RelaySilent, Work::PoolSilent] {
            for told_at in 0..2 {
                let cluster = Setup { rules: rules(Rules::reference()), ..Setup::default() }.build();
                let genesis = cluster.tree.genesis().clone();
                // Blocks 2, 3, … in the slots 1, 2, …: the last one of the round is that of the slot before.
                let chain = cluster.chain(&genesis, Slot(1), 5 * round - 1);
                let [.., parent, last] = &chain[..] else { panic!("a round has five blocks") };
                let slot = Slot(5 * round);
                let mut alone = Alone::owner(cluster, parent, slot, Duration::from_secs(3));
                let (old, new) = (alone.round_after(parent), alone.round_after(last));
                let key = *alone.delegate.keys().expect("it forges").public();
                let next =
                    |round: &RoundView| round.round.next_slot_of(&key, Slot(slot.0 + 1)).expect("all are active");
                alone.step(Input::Start);
                assert!(asks(&alone.hear(Message::Round(old.clone().into())), for_network));
                let changes = Message::RoundChanged(new.clone().into());
                if told_at == 0 {
                    alone.hear(changes.clone());
                }
                let in_quorum = if work == Work::NoQuorum { 0 } else { 4 };
                if work != Work::RelaySilent {
                    let state = alone.network(NetworkStatus::Default, in_quorum, 4 - in_quorum);
                    let effects = alone.hear(Message::NetworkState(state.into()));
                    if told_at == 1 && work != Work::NoQuorum {
                        assert!(asks(&effects, for_transactions));
                        alone.hear(changes);
                    }
                }
                if work == Work::Forged {
                    alone.hear(Message::ForgingTransactions(Vec::new().into()));
                }
                let wanted = next(&new);
                sooner += u32::from(wanted < next(&old));
                assert_eq!(alone.next_slot_in_work(&new), wanted, "round {round}, {work:?}, told at {told_at}");
            }
        }
    }
    assert!(sooner > 40, "or little is proved: {sooner}");
}

fn forged_in(seconds: u64, change: impl FnOnce(&mut Rules)) -> Cluster {
    let mut rules = rules(Rules::reference());
    change(&mut rules);
    let mut cluster = Setup { rules, ..Setup::default() }.build();
    cluster.run_for(seconds);
    cluster
}

#[test]
fn a_network_that_starts_cold_leaves_each_delegate_s_first_slot_out() {
    let warm = forged_in(8 * 20, |_| {});
    let cold = forged_in(8 * 20, |rules| rules.node = NodeRules { network_start: true, ..NodeRules::reference() });
    assert_eq!(warm.height(0) - cold.height(0), 5, "once for each of five relays");
}

#[test]
fn a_relay_that_reaches_too_few_forbids_to_forge_and_zero_stands_for_twenty() {
    assert_eq!(forged_in(160, |rules| rules.minimum_network_reach = Some(4)).height(0), 21);
    assert_eq!(forged_in(160, |rules| rules.minimum_network_reach = Some(5)).height(0), 1);
    assert_eq!(forged_in(160, |rules| rules.minimum_network_reach = Some(0)).height(0), 1);
    assert_eq!(forged_in(160, |rules| rules.minimum_network_reach = None).height(0), 21);
}

#[test]
fn a_delegate_wakes_its_relay_before_its_slot() {
    // Alone for a while, a node falls behind; it asks for blocks sooner than a minute later, for it forges next. One that had a
    // slot meanwhile has forged a block of its own (consensus.md 2.2), and is on another chain.
    let alone = |seed| {
        let mut cluster = Setup { delegates: 5, seed, ..Setup::default() }.build();
        cluster.run_for(100);
        let cut = cluster.now;
        cluster.cut(|node| u32::from(node == 2));
        cluster.run_for(36);
        cluster.heal();
        let forged = |seen: &Seen| seen.node == 2 && seen.at >= cut && matches!(seen.event, Event::BlockForged(_));
        (!cluster.seen.iter().any(forged)).then_some(cluster)
    };
    let mut cluster = (0..40).find_map(alone).expect("some node has no slot meanwhile");
    let begun = cluster.now;
    let behind = cluster.height(2);
    cluster.run_for(45);
    assert!(cluster.height(2) > behind + 4, "{} after {behind}", cluster.height(2));
    let asked = cluster.sent.iter().any(|sent| {
        sent.from == 2 && sent.at >= begun && matches!(sent.message, Message::BlocksRequest { headers_only: false, .. })
    });
    assert!(asked);
}

/// Rounds 2 and 3 without a delegate, whose node crashes in round 2 and comes back in it.
fn without_one(mut cluster: Cluster) -> (Cluster, Vec<u32>) {
    while cluster.height(0) < 7 {
        cluster.run_for(8);
    }
    cluster.crash(1);
    cluster.run_for(4);
    cluster.restart(1);
    cluster.run_for(8 * 30);
    let key = *cluster.testnet.delegates[1].keys.public();
    let chain = std::iter::successors(Some(cluster.tip(0).clone()), |link| link.parent());
    let own = chain.filter(|link| link.block().header.generator == key).map(|link| link.height().0);
    let own = own.collect();
    (cluster, own)
}

#[test]
fn rounds_are_off_alike_whether_the_plan_says_so_or_somebody_outside() {
    const OFF: Span = Span { from: 2, to: 3 };
    let build = |offline| Setup { offline, ..Setup::default() }.build();
    let (planned, own) = without_one(build(|node| (node == 1).then_some(OFF)));
    let mut added = build(|_| None);
    added.switch_off(1, OFF);
    let (added, of_added) = without_one(added);
    let (_, of_all) = without_one(build(|_| None));
    let is_off = |height: &u32| (6..=15).contains(height);
    assert_eq!(
        (own.iter().filter(|height| is_off(height)).count(), own.iter().max() > Some(&15)),
        (0, true),
        "{own:?}"
    );
    assert!(of_all.iter().any(is_off), "or nothing is shown: {of_all:?}");
    assert_eq!((own, planned.tip(0).id()), (of_added, added.tip(0).id()));
}

/// The window is `[2 s, bt-2 s]` in whole seconds, both ends included, and begins at once after an empty slot.
/// Source: consensus.md 2.1, 2.4.
#[test]
fn a_slot_can_be_used_from_its_second_second_to_its_last_but_one() {
    let micros = |micros: u64| Duration::from_micros(micros);
    let first = |tip_slot: u32, later: Duration| {
        let mut cluster = Setup { rules: rules(Rules::reference()), ..Setup::default() }.build();
        cluster.now = Cluster::at(8 * 50);
        let genesis = cluster.tree.genesis().clone();
        let tip = cluster.chain(&genesis, Slot(tip_slot), 1).pop().expect("one block");
        let mut alone = Alone::owner(cluster, &tip, Slot(50), later);
        let round = alone.round_after(&tip);
        alone.step(Input::Start);
        let asked = asks(&alone.hear(Message::Round(round.into())), for_network);
        (asked, alone.next.map(|(at, _)| at.since(Cluster::at(8 * 50))))
    };
    for (later, used) in
        [(0, false), (1_000_000, false), (1_999_999, false), (2_000_000, true), (2_000_001, true), (7_000_000, true)]
    {
        let (asked, next) = first(49, micros(later));
        assert_eq!(asked, used, "{later} µs after the slot has begun");
        assert!(used || next == Some(micros(2_000_000)), "it looks again as soon as it may: {next:?}");
        assert!(first(48, micros(later)).0, "{later} µs into a slot after an empty one");
    }
    for (later, forged) in
        [(5_000_000, true), (6_000_000, true), (6_999_999, true), (7_000_000, false), (7_999_999, false)]
    {
        let mut alone = Alone::new();
        alone.step(Input::Start);
        alone.hear(Message::Round(alone.round().into()));
        alone.hear(Message::NetworkState(alone.network(NetworkStatus::Default, 4, 0).into()));
        let began = alone.now;
        alone.now = began + micros(later);
        let effects = alone.hear(Message::ForgingTransactions(Vec::new().into()));
        let block = message(&effects, |message| match message {
            Message::Forged(block) => Some(block.clone()),
            _ => None,
        });
        assert_eq!(block.is_some(), forged, "{later} µs after the slot has begun");
        // The relay makes the same test again.
        let Some((_, block)) = block else { continue };
        let genesis = alone.cluster.tree.genesis().clone();
        for (later, taken) in [(6_999_999, true), (7_000_000, false)] {
            let mut lone = Lone::new(&alone.cluster.tree, &genesis, 0, &[1, 2], began + micros(later));
            let from = ActorId { node: NodeId(0), role: Role::Delegate };
            lone.step(Input::Message { from, message: Message::Forged(block.clone()) });
            assert_eq!(lone.peer.tip().id() == block.id, taken, "{later} µs after the slot has begun");
        }
    }
}
