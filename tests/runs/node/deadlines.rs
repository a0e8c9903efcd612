//! Questions with different deadlines, opened and answered in any order: each that stays unanswered is found at its own deadline,
//! neither later nor earlier, whatever alarm was set for another. Source: consensus.md 6.

use super::{
    cluster::{Cluster, Lone, message, one_by_one},
    peers::Claim,
};
use dposlab::{
    actors::{ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake, message::Inquiry},
    protocol::Height,
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Times of a node's rules, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Answers to anything but a request for blocks.
    answer: u64,
    /// All of a connection's round trips.
    connecting: u64,
    /// Headers, which are a verification's last question.
    headers: u64,
}

/// Those of node 2.6.57, and others.
const TIMES: [Times; 2] = [
    Times { answer: 5_000, connecting: 2_000, headers: 60_000 },
    Times { answer: 7_300, connecting: 900, headers: 31_000 },
];

/// So long a ping before forging lasts here: longer than every verification.
const PING: u64 = 400_000;

/// What a node does that is asked, in milliseconds from being asked each; it falls silent where there is nothing.
#[derive(Clone, Debug)]
struct Manners {
    /// Says where it stands, on a fork.
    status: u64,
    /// Names the block in common.
    common: Option<u64>,
    /// Shows its headers.
    headers: Option<u64>,
}

fn manners(times: Times) -> impl Strategy<Value = Manners> {
    let headers = prop_oneof![2 => Just(None), 1 => (1..times.headers - 10_000).prop_map(Some)];
    let common = prop_oneof![1 => Just(None), 2 => (1..times.answer).prop_map(Some)];
    (1..60_000_u64, common, headers).prop_map(|(status, common, headers)| Manners { status, common, headers })
}

impl Manners {
    /// When it is found to have left a question unanswered, in milliseconds from the ping on.
    fn found(&self, times: Times) -> Option<u64> {
        match (self.common, self.headers) {
            (None, _) => Some(self.status + times.answer),
            (Some(common), None) => Some(self.status + common + times.headers),
            (Some(_), Some(_)) => None,
        }
    }
}

/// Something that is due.
#[derive(Clone, Debug)]
enum Due {
    Wake(Wake),
    Status(u32),
    Common(u32, Inquiry),
    Headers(u32, Inquiry, u32),
    /// A stranger calls, and hears whether it is pinged back; it never answers.
    Calls(u32, bool),
}

struct Course {
    claim: Claim,
    lone: Lone,
    began: SimTime,
    manners: BTreeMap<u32, Manners>,
    /// By instant and order, alarms of one instant first.
    due: BTreeMap<(u64, bool, usize), Due>,
    count: usize,
    removed: BTreeMap<u32, u64>,
}

impl Course {
    fn new(times: Times, manners: &[Manners]) -> Self {
        let claim = Claim::new(
            1,
            4,
            |rules| {
                rules.forging_ping_ms = PING as u32;
                rules.relay_timeout_ms = PING as u32 + 1;
                rules.rate_limits = false;
                rules.answer_timeout_ms = times.answer as u32;
                rules.connecting_timeout_ms = times.connecting as u32;
                rules.verification_timeout_ms = times.headers as u32;
            },
            None,
        );
        let peers: Vec<u32> = (1..=manners.len() as u32).collect();
        let began = Cluster::at(8 * 1_000);
        let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &peers, began);
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        lone.step(Input::Message { from, message: Message::NetworkStateRequest });
        let manners: BTreeMap<u32, Manners> = peers.into_iter().zip(manners.iter().cloned()).collect();
        let (due, removed) = (BTreeMap::new(), BTreeMap::new());
        let mut course = Self { claim, lone, began, manners, due, count: 0, removed };
        let said: Vec<(u32, u64)> = course.manners.iter().map(|(node, manners)| (*node, manners.status)).collect();
        said.into_iter().for_each(|(node, at)| course.plan(at * 1_000, Due::Status(node)));
        course
    }

    fn plan(&mut self, at: u64, due: Due) {
        self.count += 1;
        self.due.insert((at, !matches!(due, Due::Wake(_)), self.count), due);
    }

    /// Microseconds since the ping.
    fn passed(&self) -> u64 {
        self.lone.now.since(self.began).as_micros() as u64
    }

    fn play(&mut self) {
        while let Some(((at, ..), due)) = self.due.pop_first() {
            self.lone.now = self.began + Duration::from_micros(at);
            let effects = match due {
                Due::Wake(wake) => self.lone.step(Input::Wake(wake)),
                Due::Status(node) => {
                    let tip = self.claim.his.last().expect("it has some").clone();
                    self.lone.hear(node, Message::Status { tip })
                }
                Due::Common(node, inquiry) => {
                    let common = self.claim.cluster.tree.genesis().id();
                    self.lone.hear(
                        node,
                        Message::CommonBlocks { inquiry, height: Height(5), common: Some(Box::new(common)) },
                    )
                }
                Due::Headers(node, inquiry, limit) => {
                    let blocks = self.claim.his.iter().take(limit as usize).cloned().collect();
                    self.lone.hear(node, Message::Blocks { inquiry, height: Height(5), blocks })
                }
                Due::Calls(stranger, is_new) => {
                    let effects = self.lone.hear(stranger, Message::StatusRequest);
                    let pinged = |message: &Message| matches!(message, Message::Connect { trip: 1 }).then_some(());
                    assert_eq!(message(&effects, pinged).is_some(), is_new, "{stranger} at {at} µs");
                    effects
                }
            };
            self.follow(effects);
        }
    }

    fn follow(&mut self, effects: Vec<Effect>) {
        let now = self.passed();
        for effect in effects.into_iter().flat_map(one_by_one) {
            match effect {
                // The others are of no question here, and come again for ever.
                Effect::WakeAt { at, wake: Wake::Unanswered } => {
                    let at = at.since(self.began).as_micros() as u64;
                    assert!(at >= now, "an alarm for the past");
                    self.plan(at, Due::Wake(Wake::Unanswered));
                }
                Effect::Send { to, message: Message::CommonBlocksRequest { inquiry, .. } } => {
                    let common = self.manners.get(&to.node.0).and_then(|manners| manners.common);
                    common.into_iter().for_each(|ms| self.plan(now + ms * 1_000, Due::Common(to.node.0, inquiry)));
                }
                Effect::Send { to, message: Message::BlocksRequest { inquiry, limit, .. } } => {
                    let headers = self.manners.get(&to.node.0).and_then(|manners| manners.headers);
                    headers
                        .into_iter()
                        .for_each(|ms| self.plan(now + ms * 1_000, Due::Headers(to.node.0, inquiry, limit)));
                }
                Effect::Observe(Event::PeerRemoved(node)) => {
                    assert!(self.removed.insert(node.0, now).is_none(), "{node} is told of twice");
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_unanswered_question_is_found_at_its_own_deadline(
        (times, manners) in prop::sample::select(&TIMES)
            .prop_flat_map(|times| (Just(times), prop::collection::vec(manners(times), 1..12))),
        strangers in prop::collection::btree_set(1..60_000_u64, 0..5),
    ) {
        let mut course = Course::new(times, &manners);
        for (number, at) in (0..).zip(&strangers) {
            // Nobody else is in their subnets.
            let (stranger, at) = (100 + number, at * 1_000);
            for (later, is_new) in [(0, true), (times.connecting * 1_000 - 1, false), (times.connecting * 1_000, true)] {
                course.plan(at + later, Due::Calls(stranger, is_new));
            }
        }
        course.play();
        let wanted: BTreeMap<u32, u64> = course
            .manners
            .iter()
            .filter_map(|(node, manners)| Some((*node, manners.found(times)? * 1_000)))
            .collect();
        prop_assert_eq!(&course.removed, &wanted);
        let left: BTreeSet<u32> = course.lone.peer.connected().map(|node| node.0).collect();
        prop_assert!(course.manners.keys().all(|node| left.contains(node) != wanted.contains_key(node)), "{:?}", left);
    }
}

/// A step of a discovery has its time from its own beginning, five seconds to name peers and seven to meet nodes; the end of the
/// step before it ends nothing.
#[test]
fn each_step_of_a_discovery_has_its_own_time() {
    let starts = |effects: &[Effect]| {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::WakeAt { at, wake: Wake::DiscoveryOver { step } } => Some((*at, *step)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let claim = Claim::new(1, 4, |rules| rules.rate_limits = false, None);
    let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[1, 2], Cluster::at(8 * 1_000));
    let began = lone.now;
    let first = starts(&lone.step(Input::Wake(Wake::Discover)));
    let [(over, asking)] = first[..] else { panic!("{first:?}") };
    assert_eq!(over, began + Duration::from_secs(5));
    // Both name newcomers, the second just in time; those have two seconds to connect and five to answer from then on.
    lone.now = began + Duration::from_secs(1);
    assert!(starts(&lone.hear(1, Message::Peers([40, 41, 42].map(NodeId).into()))).is_empty());
    lone.now = began + Duration::from_millis(4_999);
    let second = starts(&lone.hear(2, Message::Peers([300, 301, 302].map(NodeId).into())));
    let [(_, pinging)] = second[..] else { panic!("{second:?}") };
    assert_eq!(second, [(lone.now + Duration::from_secs(7), asking + 1)]);
    (1..=3).for_each(|trip| drop(lone.hear(40, Message::Connected { trip })));
    lone.now = over;
    assert!(lone.step(Input::Wake(Wake::DiscoveryOver { step: asking })).is_empty(), "that step is over");
    assert!(starts(&lone.step(Input::Wake(Wake::Discover))).is_empty(), "the discovery goes on");
    // One answers, late and in time; it is found.
    lone.now = began + Duration::from_millis(9_998);
    let tip = lone.peer.tip().block().clone();
    lone.hear(40, Message::Status { tip });
    assert!(lone.peer.connected().any(|node| node == NodeId(40)));
    lone.now = began + Duration::from_millis(11_999);
    lone.step(Input::Wake(Wake::DiscoveryOver { step: pinging }));
    assert_eq!(starts(&lone.step(Input::Wake(Wake::Discover))).len(), 1, "the next one can begin");
}

/// What the limits hold back waits for an alarm that is set, of a second at most, and all of it goes out once.
#[test]
fn what_is_held_back_always_has_an_alarm() {
    let cluster = super::cluster::Setup { offline: super::cluster::nobody, ..Default::default() }.build();
    let mut lone = Lone::new(&cluster.tree, cluster.tree.genesis(), 0, &[1, 2], Cluster::at(800));
    let transfers: Vec<_> = cluster.transfer(0, 400).into_iter().map(std::sync::Arc::new).collect();
    let (mut alarms, mut sent) = (BTreeSet::new(), BTreeMap::<u32, Vec<_>>::new());
    let pool = ActorId { node: NodeId(0), role: Role::Pool };
    let mut follow = |lone: &Lone, effects: Vec<Effect>, alarms: &mut BTreeSet<SimTime>| {
        for effect in effects {
            match effect {
                Effect::WakeAt { at, wake: Wake::Throttled } => {
                    assert!(at > lone.now && at <= lone.now + Duration::from_secs(1));
                    alarms.insert(at);
                }
                Effect::Send { to, message: Message::Transactions(transactions) } => {
                    sent.entry(to.node.0).or_default().extend(transactions.iter().map(|one| one.id()));
                }
                _ => {}
            }
        }
        sent.clone()
    };
    let mut handed_in = 0;
    for burst in [90, 1, 30, 120, 5, 154] {
        for transfer in &transfers[handed_in..handed_in + burst] {
            let message = Message::Broadcast([transfer.clone()].into());
            let effects = lone.step(Input::Message { from: pool, message });
            follow(&lone, effects, &mut alarms);
            lone.now = lone.now + Duration::from_millis(3);
            while alarms.first().is_some_and(|at| *at <= lone.now) {
                alarms.pop_first();
                let effects = lone.step(Input::Wake(Wake::Throttled));
                follow(&lone, effects, &mut alarms);
            }
        }
        handed_in += burst;
        let sent = follow(&lone, Vec::new(), &mut alarms);
        let is_held = sent.values().any(|of| of.len() < handed_in);
        assert!(!is_held || !alarms.is_empty(), "{handed_in} handed in, and no alarm for what is held back");
    }
    while let Some(at) = alarms.pop_first() {
        lone.now = lone.now.max(at);
        let effects = lone.step(Input::Wake(Wake::Throttled));
        follow(&lone, effects, &mut alarms);
    }
    let sent = follow(&lone, Vec::new(), &mut alarms);
    let wanted: BTreeSet<_> = transfers.iter().map(|one| one.id()).collect();
    for (node, sent) in &sent {
        assert_eq!(sent.len(), 400, "to {node}, each once");
        assert_eq!(sent.iter().copied().collect::<BTreeSet<_>>(), wanted, "to {node}");
    }
    assert_eq!(sent.len(), 2);
}

/// Before forging, peers have 1500 ms: one that answers in the last microsecond stays, one that does not counts once more and is
/// dropped then.
/// Source: consensus.md 2.2.
#[test]
fn a_ping_before_forging_waits_for_one_and_a_half_seconds() {
    let claim = Claim::new(1, 4, |rules| rules.rate_limits = false, None);
    let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[1, 2], Cluster::at(8 * 1_000));
    let began = lone.now;
    let from = ActorId { node: NodeId(0), role: Role::Delegate };
    let effects = lone.step(Input::Message { from, message: Message::NetworkStateRequest });
    let over = effects.iter().find_map(|effect| match effect {
        Effect::WakeAt { at, wake: Wake::PingOver { ping } } => Some((*at, *ping)),
        _ => None,
    });
    let (over, ping) = over.expect("it ends");
    assert_eq!(over, began + Duration::from_millis(1_500));
    lone.now = began + Duration::from_micros(1_499_999);
    let tip = lone.peer.tip().block().clone();
    let reached = |effects: &[Effect]| {
        message(effects, |message| match message {
            Message::NetworkState(state) => Some((state.reached, state.in_quorum)),
            _ => None,
        })
    };
    assert!(reached(&lone.hear(1, Message::Status { tip })).is_none(), "the other one is awaited");
    lone.now = over;
    let effects = lone.step(Input::Wake(Wake::PingOver { ping }));
    assert_eq!(reached(&effects).map(|(_, state)| state), Some((2, 2)));
    assert_eq!(lone.peer.connected().collect::<Vec<_>>(), [NodeId(1)]);
}
