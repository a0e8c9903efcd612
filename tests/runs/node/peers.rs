//! The peers of a node: limits, subnets, discovery, and the verification of what a peer claims. Source: consensus.md 6.

use super::cluster::{Cluster, Lone, Setup, message, nobody, one_by_one, rules};
use dposlab::{
    actors::{
        ActorId, Effect, Event, Input, Message, NodeId, Role, Wake,
        message::{Inquiry, Reorganisation},
    },
    ledger::{Link, Rules, rules::NodeRules},
    protocol::{Block, BlockDraft, BlockId, Height, KeyPair, Slot, crypto::CryptoMode::Real},
};
use std::{sync::Arc, time::Duration};

fn quiet(change: impl FnOnce(&mut NodeRules)) -> Cluster {
    let mut rules = rules(Rules::reference());
    change(&mut rules.node);
    Setup { rules, offline: nobody, ..Setup::default() }.build()
}

fn hung_up(effects: &[Effect]) -> bool {
    message(effects, |message| matches!(message, Message::HungUp).then_some(())).is_some()
}

fn added(effects: &[Effect]) -> Vec<u32> {
    let added = effects.iter().filter_map(|effect| match effect {
        Effect::Observe(Event::PeerAdded(node)) => Some(node.0),
        _ => None,
    });
    added.collect()
}

#[test]
fn who_calls_too_often_is_cut_off() {
    let blocks =
        |number| Message::BlocksRequest { inquiry: Inquiry(number), above: Height(1), limit: 400, headers_only: false };
    let ids: Arc<[_]> = Vec::new().into();
    let common = |number| Message::CommonBlocksRequest { inquiry: Inquiry(number), ids: ids.clone() };
    // Requests, and the seconds that they may take.
    type Limit<'a> = (&'a dyn Fn(u64) -> Message, u64, u64);
    let limits: [Limit<'_>; 4] =
        [(&|_| Message::StatusRequest, 2, 1), (&|_| Message::PeersRequest, 1, 1), (&blocks, 1, 2), (&common, 9, 1)];
    for (call, allowed, seconds) in limits {
        for limited in [true, false] {
            let cluster = quiet(|rules| rules.rate_limits = limited);
            let mut lone = Lone::new(&cluster.tree, cluster.tree.genesis(), 0, &[1, 2, 3], Cluster::at(800));
            let calls = |lone: &mut Lone| (0..=allowed).map(|number| lone.hear(1, call(number))).collect::<Vec<_>>();
            let answers = calls(&mut lone);
            assert!(answers[..allowed as usize].iter().all(|effects| !effects.is_empty() && !hung_up(effects)));
            assert_eq!(hung_up(&answers[allowed as usize]), limited, "{:?}", call(0));
            assert!(!hung_up(&lone.hear(2, call(0))), "others are not concerned");
            lone.now = lone.now + Duration::from_secs(seconds);
            assert!(!hung_up(&calls(&mut lone)[0]), "{:?} is heard again after {seconds} s", call(0));
        }
    }
}

#[test]
fn who_floods_is_not_answered_for_a_minute() {
    let cluster = quiet(|_| {});
    let mut lone = Lone::new(&cluster.tree, cluster.tree.genesis(), 0, &[1, 2, 3], Cluster::at(800));
    let transactions = || Message::Transactions(Vec::new().into());
    let heard = (0..101).map(|_| lone.hear(1, transactions())).filter(|effects| !hung_up(effects)).count();
    assert_eq!(heard, 100);
    for (wait, answered) in [(1, false), (58, false), (2, true)] {
        lone.now = lone.now + Duration::from_secs(wait);
        assert_eq!(!lone.hear(1, Message::StatusRequest).is_empty(), answered, "{wait} s later");
    }
}

#[test]
fn a_peer_keeps_within_the_limits_of_others() {
    // A hundred and fifty submissions in a second: each goes to all four others, who cut nobody off.
    let mut cluster = Setup::default().build();
    cluster.run_for(40);
    let transfers: Vec<_> = cluster.transfer(0, 150).into_iter().map(Arc::new).collect();
    for transfer in &transfers {
        cluster.submit(0, std::slice::from_ref(transfer));
    }
    cluster.run_for(600);
    assert!(!cluster.sent.iter().any(|sent| matches!(sent.message, Message::HungUp)));
    let received = cluster.sent.iter().filter(|sent| (sent.from, sent.to) == (0, 1));
    let bundles = received.filter(|sent| matches!(sent.message, Message::Transactions(_)));
    assert_eq!(bundles.count(), 150, "held back, and not lost");
    let tip = cluster.tip(3).clone();
    assert!(transfers.iter().all(|transfer| cluster.tree.block_of(&tip, &transfer.id()).is_some()));
}

#[test]
fn callers_are_taken_up_once_verified_five_of_a_subnet() {
    let meet = |change: fn(&mut NodeRules), given: &[u32]| {
        let cluster = quiet(change);
        let genesis = cluster.tree.genesis().clone();
        let mut lone = Lone::new(&cluster.tree, &genesis, 1, given, Cluster::at(800));
        let mut all = Vec::new();
        // The second node of each pair is in the subnet of the first.
        for node in [5, 6, 7, 8, 9, 5 + 2_560, 10] {
            let asked_back = lone.called_by(node);
            let called = message(&asked_back, |message| matches!(message, Message::StatusRequest).then_some(()));
            if called.is_some() {
                all.extend(added(&lone.hear(node, Message::Status { tip: genesis.block().clone() })));
            }
        }
        all
    };
    assert_eq!(meet(|_| {}, &[]), [5, 6, 7, 8, 9, 10]);
    assert_eq!(meet(|rules| rules.peers_per_subnet = 2, &[]), [5, 6, 10]);
    assert_eq!(meet(|rules| rules.peers_per_subnet = 6, &[]).len(), 7);
}

/// Three round trips in two seconds: what takes a third of a second one way is too late. Source: consensus.md 6.
#[test]
fn a_connection_takes_three_round_trips_within_two_seconds() {
    for (round_trip_ms, connects) in [(100, true), (666, true), (667, false), (800, false)] {
        let cluster = quiet(|_| {});
        let genesis = cluster.tree.genesis().clone();
        let mut lone = Lone::new(&cluster.tree, &genesis, 1, &[], Cluster::at(800));
        let begun = lone.now;
        let mut effects = lone.hear(5, Message::StatusRequest);
        for trip in 1..=3 {
            assert_eq!(
                message(&effects, |message| matches!(message, Message::Connect { .. }).then_some(())).is_some(),
                trip == 1 || begun + Duration::from_secs(2) > lone.now,
                "trip {trip} at {round_trip_ms} ms"
            );
            lone.now = lone.now + Duration::from_millis(round_trip_ms);
            if lone.now >= begun + Duration::from_secs(2) {
                lone.step(Input::Wake(Wake::Unanswered));
            }
            effects = lone.hear(5, Message::Connected { trip });
        }
        let asked = message(&effects, |message| matches!(message, Message::StatusRequest).then_some(()));
        assert_eq!(asked.is_some(), connects, "a round trip of {round_trip_ms} ms");
    }
}

/// The pings race against 1.5 seconds, the state is told, and only then the silent peers go. Source: consensus.md 2.2.
#[test]
fn a_dead_peer_counts_once_before_it_is_dropped() {
    let cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let mut lone = Lone::new(&cluster.tree, &genesis, 0, &[1, 2, 3], Cluster::at(800));
    let from = ActorId { node: NodeId(0), role: Role::Delegate };
    let ask = |lone: &mut Lone| lone.step(Input::Message { from, message: Message::NetworkStateRequest });
    let over = |effects: &[Effect]| {
        let over = effects.iter().find_map(|effect| match effect {
            Effect::WakeAt { at, wake: wake @ Wake::PingOver { .. } } => Some((*at, *wake)),
            _ => None,
        });
        over.expect("it waits for its peers")
    };
    let (at, wake) = over(&ask(&mut lone));
    assert_eq!(at.since(lone.now), Duration::from_millis(1_500));
    lone.hear(1, Message::Status { tip: genesis.block().clone() });
    lone.now = at;
    let effects = lone.step(Input::Wake(wake));
    assert_eq!(reached(&effects), Some(3), "the silent ones count");
    let place = |fits: fn(&Effect) -> bool| effects.iter().position(fits).expect("it is among them");
    let told = place(|effect| matches!(effect, Effect::Send { message: Message::NetworkState(_), .. }));
    let removed = place(|effect| matches!(effect, Effect::Observe(Event::PeerRemoved(_))));
    assert!(told < removed, "and only then they go");
    assert_eq!(lone.peer.connected().collect::<Vec<_>>(), [NodeId(1)]);
    lone.now = lone.now + Duration::from_secs(8);
    ask(&mut lone);
    let effects = lone.hear(1, Message::Status { tip: genesis.block().clone() });
    assert_eq!(reached(&effects), Some(1), "they count once");
}

/// A question for common blocks ends with the 1.5 seconds, headers that were asked for before may come later, and no step
/// begins any more. Source: consensus.md 2.2, 6.
#[test]
fn a_peer_in_verification_when_the_race_is_lost_passes_or_fails_later() {
    let claim = Claim::new(20, 4, |_| {}, None);
    let from = ActorId { node: NodeId(0), role: Role::Delegate };
    for (waits_for_headers, late) in [(false, false), (false, true), (true, true)] {
        let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[1, 2], Cluster::at(8 * 1_000));
        lone.step(Input::Message { from, message: Message::NetworkStateRequest });
        lone.hear(2, Message::Status { tip: claim.own.block().clone() });
        let mut effects = lone.hear(1, Message::Status { tip: claim.his[3].clone() });
        let race_over = lone.now + Duration::from_millis(1_500);
        let height = Height(24);
        let headers = |effects: &[Effect]| {
            message(effects, |message| match message {
                Message::BlocksRequest { inquiry, limit, .. } => Some((*inquiry, *limit)),
                _ => None,
            })
        };
        let answer = |lone: &mut Lone, effects: &[Effect]| {
            let (_, (inquiry, ids)) = message(effects, |message| match message {
                Message::CommonBlocksRequest { inquiry, ids } => Some((*inquiry, ids.clone())),
                _ => None,
            })?;
            let has = |link: &Arc<Link>| link.height().0 <= 20 && claim.own.descends_from(link);
            let common = ids.iter().filter_map(|id| claim.cluster.tree.link(id)).filter(has);
            let common = common.max_by_key(|link| link.height()).map(|link| link.id());
            Some(lone.hear(1, Message::CommonBlocks { inquiry, height, common: common.map(Box::new) }))
        };
        while waits_for_headers && headers(&effects).is_none() {
            effects = answer(&mut lone, &effects).expect("it searches on");
        }
        lone.now = race_over;
        let over = lone.step(Input::Wake(Wake::PingOver { ping: 1 }));
        assert_eq!(reached(&over), Some(2), "told as it was last known");
        assert!(lone.peer.connected().any(|node| node == NodeId(1)), "it does not fail by the race");
        if waits_for_headers {
            let (_, (inquiry, limit)) = headers(&effects).expect("they were asked for");
            lone.now = lone.now + Duration::from_secs(20);
            let blocks = claim.his.iter().take(limit as usize).cloned().collect();
            lone.hear(1, Message::Blocks { inquiry, height, blocks });
        } else if late {
            answer(&mut lone, &effects);
        } else {
            lone.step(Input::Wake(Wake::Unanswered));
        }
        let stays = lone.peer.connected().any(|node| node == NodeId(1));
        assert_eq!(stays, waits_for_headers, "headers: {waits_for_headers}, late: {late}");
    }
}

#[test]
fn who_is_silent_before_forging_is_dropped_and_tried_again_with_the_next_discovery() {
    for again in [true, false] {
        let mut rules = rules(Rules::reference());
        rules.node.retry_dropped_peers = again;
        let mut cluster = Setup { delegates: 6, rules, ..Setup::default() }.build();
        cluster.run_for(100);
        cluster.cut(|node| node % 2);
        cluster.run_for(700);
        let connected = |cluster: &Cluster| cluster.numbers().map(|node| cluster.peer(node).connected().count()).sum();
        let apart: usize = connected(&cluster);
        assert_eq!(apart, 6 * 2, "each has forged, and found three of five silent");
        cluster.heal();
        cluster.run_for(700);
        let together: usize = connected(&cluster);
        assert_eq!(together, if again { 6 * 5 } else { 6 * 2 }, "retry {again}");
        let events = |wanted: fn(&Event) -> bool| cluster.seen.iter().filter(|seen| wanted(&seen.event)).count();
        // Who could not push a block to a peer dropped it without an event.
        let removed = events(|event| matches!(event, Event::PeerRemoved(_)));
        assert!((1..=6 * 3).contains(&removed), "three of five at each: {removed}");
        let added = events(|event| matches!(event, Event::PeerAdded(_)));
        assert_eq!(added, if again { 6 * 3 } else { 0 });
    }
}

/// A peer looks for others, and is told of these by each peer it asks. How many it asked.
fn discover(lone: &mut Lone, told: std::ops::Range<u32>) -> usize {
    let told: Arc<[NodeId]> = told.map(NodeId).collect();
    let asked = |effects: &[Effect], call: fn(&Message) -> bool| {
        let asked = effects.iter().cloned().flat_map(one_by_one).filter_map(|effect| match effect {
            Effect::Send { to, message } if call(&message) => Some(to.node.0),
            _ => None,
        });
        asked.collect::<Vec<_>>()
    };
    let effects = lone.step(Input::Wake(Wake::Discover));
    let asked_for_peers = asked(&effects, |message| matches!(message, Message::PeersRequest));
    for peer in &asked_for_peers {
        let effects = lone.hear(*peer, Message::Peers(told.clone()));
        for newcomer in asked(&effects, |message| matches!(message, Message::Connect { .. })) {
            (1..=3).for_each(|trip| drop(lone.hear(newcomer, Message::Connected { trip })));
            let tip = lone.peer.tip().block().clone();
            lone.hear(newcomer, Message::Status { tip });
        }
    }
    asked_for_peers.len()
}

#[test]
fn a_peer_asks_its_peers_for_more_until_it_has_three_quarters_of_what_they_know() {
    let cluster = quiet(|_| {});
    let alone = |cluster: &Cluster| Lone::new(&cluster.tree, cluster.tree.genesis(), 1, &[0], Cluster::at(800));
    let connected = |lone: &Lone| lone.peer.connected().map(|node| node.0).collect::<Vec<_>>();
    let mut lone = alone(&cluster);
    assert_eq!((discover(&mut lone, 0..12), connected(&lone).len()), (1, 11), "all but itself: {:?}", connected(&lone));
    lone.now = lone.now + Duration::from_secs(600);
    assert!(discover(&mut lone, 0..14) > 1, "it asks some of its new ones");
    assert_eq!(connected(&lone).len(), 11, "eleven of fourteen are enough");
    lone.now = lone.now + Duration::from_secs(600);
    discover(&mut lone, 0..16);
    assert_eq!(connected(&lone).len(), 15, "eleven of sixteen are not");
    let without = quiet(|rules| rules.discovery = false);
    let mut lone = alone(&without);
    assert_eq!((discover(&mut lone, 0..12), connected(&lone)), (0, vec![0]), "it asks nobody");
}

// Verification.

/// A chain on which a peer of our number 0 stands, and what another node claims to have.
pub struct Claim {
    pub cluster: Cluster,
    pub own: Arc<Link>,
    /// Blocks above the common one.
    pub his: Vec<Arc<Block>>,
    common: u32,
}

impl Claim {
    /// Both have `common` blocks; then the peer has some of its own, made by `makers` in their slots.
    pub fn new(common: u32, more: u32, change: impl FnOnce(&mut NodeRules), stranger_from: Option<u32>) -> Self {
        let cluster = quiet(change);
        let genesis = cluster.tree.genesis().clone();
        let shared = cluster.chain(&genesis, Slot(1), common - 1).pop().unwrap_or(genesis);
        let own = cluster.chain(&shared, Slot(200), 3).pop().expect("three blocks");
        // Not in the tree: what the other node has is known from what it says only.
        let mut his: Vec<Arc<Block>> = Vec::new();
        let stranger = KeyPair::from_passphrase("nobody's delegate", Real);
        for step in 0..more {
            let height = Height(common + 1 + step);
            let strange = stranger_from.is_some_and(|from| height.0 >= from);
            let member = &cluster.testnet.delegates[(step % 5) as usize].keys;
            let draft = BlockDraft {
                version: 0,
                timestamp: cluster.tree.slots().start(Slot(300 + step)),
                height,
                previous: Some(his.last().map_or(shared.id(), |block| block.id)),
                reward: cluster.tree.config().milestones.at(height).reward,
                transactions: Vec::new(),
            };
            let keys = if strange { &stranger } else { member };
            his.push(Arc::new(Block::forge(draft, keys, &cluster.tree.config().milestones)));
        }
        Self { cluster, own, his, common }
    }

    /// Has the node ask for peers, and answers as the other node would. Says what came of it, and how many times it
    /// was asked which blocks are common.
    fn judge(&self) -> (Vec<Effect>, u32) {
        let mut lone = Lone::new(&self.cluster.tree, &self.own, 0, &[], Cluster::at(8 * 1_000));
        let tip = self.his.last().expect("it has some").clone();
        lone.called_by(1);
        let effects = lone.hear(1, Message::Status { tip });
        self.answer(&mut lone, effects)
    }

    /// Answers all that the node asks the other one from these effects on, as that would.
    fn answer(&self, lone: &mut Lone, mut effects: Vec<Effect>) -> (Vec<Effect>, u32) {
        let mut probes = 0;
        loop {
            lone.now = lone.now + Duration::from_millis(100);
            let height = Height(self.common + self.his.len() as u32);
            if let Some((inquiry, ids)) = asked_for_common(&effects) {
                assert!(ids.len() <= 10);
                let has = |link: &Arc<Link>| link.height().0 <= self.common && self.own.descends_from(link);
                let common = ids.iter().filter_map(|id| self.cluster.tree.link(id)).filter(has);
                let common = common.max_by_key(|link| link.height()).map(|link| link.id());
                probes += 1;
                effects = lone.hear(1, Message::CommonBlocks { inquiry, height, common: common.map(Box::new) });
            } else if let Some((_, (inquiry, above, limit))) = message(&effects, |message| match message {
                Message::BlocksRequest { inquiry, above, limit, headers_only: true } => {
                    Some((*inquiry, *above, *limit))
                }
                _ => None,
            }) {
                assert_eq!(above.0, self.common, "the highest common block was found");
                let blocks = self.his.iter().take(limit as usize).cloned().collect();
                effects = lone.hear(1, Message::Blocks { inquiry, height, blocks });
            } else {
                return (effects, probes);
            }
        }
    }
}

/// The blocks that a peer is asked for that may be common, and the number of the question.
fn asked_for_common(effects: &[Effect]) -> Option<(Inquiry, Arc<[BlockId]>)> {
    let asked = message(effects, |message| match message {
        Message::CommonBlocksRequest { inquiry, ids } => Some((*inquiry, ids.clone())),
        _ => None,
    });
    asked.map(|(_, asked)| asked)
}

/// A peer on another chain is forked where it stands below the node or as high, and over height above it. Source:
/// consensus.md 2.2.
#[test]
fn a_peer_on_another_chain_is_in_no_quorum_at_any_height() {
    for (more, forked, over_height) in [(2, 1, 0), (3, 1, 0), (4, 0, 1)] {
        let claim = Claim::new(20, more, |_| {}, None);
        let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[1], Cluster::at(8 * 1_000));
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        lone.step(Input::Message { from, message: Message::NetworkStateRequest });
        let tip = claim.his.last().expect("it has some").clone();
        let effects = lone.hear(1, Message::Status { tip });
        let (effects, _) = claim.answer(&mut lone, effects);
        let state = message(&effects, |message| match message {
            Message::NetworkState(state) => Some((state.in_quorum, state.forked, state.over_height)),
            _ => None,
        });
        assert_eq!(state.map(|(_, state)| state), Some((0, forked, over_height)), "{more} blocks above the common one");
    }
}

#[test]
fn after_a_change_of_chains_peers_are_asked_for_blocks_of_the_new_one() {
    let claim = Claim::new(20, 3, |_| {}, None);
    let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[], Cluster::at(8 * 1_000));
    let asked = |lone: &mut Lone, peer| {
        lone.called_by(peer);
        let effects = lone.hear(peer, Message::Status { tip: claim.his[2].clone() });
        let (_, ids) = asked_for_common(&effects).expect("its tip is not known");
        ids.iter().filter_map(|id| claim.cluster.tree.link(id)).collect::<Vec<_>>()
    };
    let before = asked(&mut lone, 1);
    assert!(before.iter().all(|link| claim.own.descends_from(link)));
    let common = claim.own.ancestor(Height(20)).expect("it is on the chain");
    let tip = claim.cluster.chain(&common, Slot(210), 3).pop().expect("three blocks");
    lone.step(Input::Reorganise(Arc::new(Reorganisation { common, tip: tip.clone(), dropped: Arc::new([]) })));
    assert_eq!(lone.peer.tip().id(), tip.id());
    let after = asked(&mut lone, 2);
    assert_eq!(before.len(), after.len(), "of the same heights");
    assert!(after.iter().all(|link| tip.descends_from(link)));
}

/// A health check meets again whom the node has dropped, where the rules say so.
#[test]
fn a_health_check_tries_dropped_peers_again() {
    for again in [true, false] {
        let cluster = quiet(|rules| {
            (rules.health_check_percent, rules.discovery, rules.retry_dropped_peers) = (100, false, again);
        });
        let tip = cluster.chain(cluster.tree.genesis(), Slot(1), 7).pop().expect("seven blocks");
        let mut lone = Lone::new(&cluster.tree, &tip, 0, &[1, 2, 3], Cluster::at(800));
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        lone.step(Input::Message { from, message: Message::NetworkStateRequest });
        for peer in [1, 2] {
            lone.hear(peer, Message::Status { tip: tip.block().clone() });
        }
        lone.now = lone.now + Duration::from_millis(1_500);
        lone.step(Input::Wake(Wake::PingOver { ping: 1 }));
        assert_eq!(lone.peer.connected().count(), 2, "the silent one is gone");
        // After so many missed slots the node looks around.
        let block = cluster.block(&tip, cluster.tree.slots().slot(lone.now.seconds()), Vec::new());
        let effects = lone.hear(1, Message::Block(block.clone()));
        assert_eq!(lone.peer.tip().id(), block.id);
        let tried = message(&effects, |message| matches!(message, Message::Connect { .. }).then_some(()));
        assert_eq!(tried.map(|(to, ())| to.node), again.then_some(NodeId(3)), "retry {again}");
    }
}

#[test]
fn the_highest_common_block_is_found_in_few_steps_and_a_fork_of_delegates_is_kept_as_a_peer() {
    for common in [1, 2, 7, 8, 9, 63, 64, 65, 150] {
        let (effects, probes) = Claim::new(common, 4, |_| {}, None).judge();
        assert_eq!(added(&effects), [1], "{common} in common");
        assert!(probes <= 4, "{probes} questions for {common} blocks");
    }
}

#[test]
fn who_shows_blocks_of_no_delegate_or_without_signature_is_not_taken_up() {
    assert!(added(&Claim::new(20, 4, |_| {}, Some(21)).judge().0).is_empty(), "a stranger's blocks");
    let mut forged = Claim::new(20, 4, |_| {}, None);
    let mut unsigned = Block::clone(&forged.his[1]);
    unsigned.header.signature = forged.his[0].header.signature.clone();
    forged.his[1] = Arc::new(unsigned);
    assert!(added(&forged.judge().0).is_empty(), "a signature from elsewhere");
}

#[test]
fn verification_looks_at_the_next_rounds_first_block_unless_ruled_otherwise() {
    // Rounds of five: the round of block 21 ends with 25, and block 26 is of a delegate that is new then.
    for q11 in [true, false] {
        let claim = Claim::new(21, 8, |rules| rules.verify_next_round_block = q11, Some(26));
        assert_eq!(added(&claim.judge().0).len(), usize::from(!q11), "Q11 {q11}");
    }
}

/// One alarm does for all that is asked while it is set, unless the clock was put forward beyond it.
#[test]
fn open_questions_share_an_alarm_that_can_be_relied_on() {
    let claim = Claim::new(20, 4, |_| {}, None);
    let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[], Cluster::at(8 * 1_000));
    let mut alarms = |from: u32, later: u64| {
        lone.now = lone.now + Duration::from_secs(later);
        let effects = lone.hear(from, Message::StatusRequest);
        let alarms = effects.iter().filter_map(|effect| match effect {
            Effect::WakeAt { at, wake: Wake::Unanswered } => Some(at.since(lone.now).as_secs()),
            _ => None,
        });
        alarms.collect::<Vec<_>>()
    };
    assert_eq!(alarms(1, 0), [2], "the time to connect");
    assert_eq!(alarms(2, 1), [0; 0], "the first alarm will do");
    assert_eq!(alarms(3, 60), [2], "it should have gone off");
}

#[test]
fn a_peer_that_stops_answering_in_the_middle_of_a_verification_is_not_taken_up() {
    let claim = Claim::new(20, 4, |_| {}, None);
    let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[], Cluster::at(8 * 1_000));
    lone.called_by(1);
    let effects = lone.hear(1, Message::Status { tip: claim.his[3].clone() });
    let asked = message(&effects, |message| match message {
        Message::CommonBlocksRequest { inquiry, .. } => Some(*inquiry),
        _ => None,
    });
    let (ActorId { node, .. }, inquiry) = asked.expect("the tip is not known");
    assert_eq!(node, NodeId(1));
    lone.now = lone.now + Duration::from_secs(5);
    lone.step(Input::Wake(Wake::Unanswered));
    let common = Some(claim.cluster.tree.genesis().id());
    assert!(
        lone.hear(1, Message::CommonBlocks { inquiry, height: Height(24), common: common.map(Box::new) }).is_empty(),
        "too late"
    );
    assert_eq!(lone.peer.connected().count(), 0);
}

/// `peer.removed` tells of a ping that a peer fails; a question that no ping waits for drops whoever leaves it unanswered
/// without a word. Source: consensus.md 6.
#[test]
fn peer_removed_is_told_of_who_fails_a_ping_and_of_nobody_else() {
    // A peer is asked for common blocks and does not answer: it has passed by a newer status meanwhile, or has not.
    for passes in [false, true] {
        let claim = Claim::new(20, 4, |rules| rules.forging_ping_ms = 30_000, None);
        let mut lone = Lone::new(&claim.cluster.tree, &claim.own, 0, &[1, 2], Cluster::at(8 * 1_000));
        let from = ActorId { node: NodeId(0), role: Role::Delegate };
        lone.step(Input::Message { from, message: Message::NetworkStateRequest });
        let effects = lone.hear(1, Message::Status { tip: claim.his[3].clone() });
        let asked = |message: &Message| matches!(message, Message::CommonBlocksRequest { .. }).then_some(());
        assert!(message(&effects, asked).is_some(), "its tip is unknown");
        lone.hear(2, Message::Status { tip: claim.own.block().clone() });
        if passes {
            let effects = lone.hear(1, Message::Status { tip: claim.own.block().clone() });
            assert_eq!(reached(&effects), Some(2), "all have passed");
        }
        lone.now = lone.now + Duration::from_secs(5);
        let effects = lone.step(Input::Wake(Wake::Unanswered));
        let told = effects.iter().filter(|effect| matches!(effect, Effect::Observe(Event::PeerRemoved(_)))).count();
        assert_eq!(told, usize::from(!passes), "passes: {passes}");
        assert_eq!(reached(&effects), (!passes).then_some(1), "the ping is over without it");
        assert_eq!(lone.peer.connected().collect::<Vec<_>>(), [NodeId(2)], "gone in any case");
    }
}

/// The number of peers that a delegate is told of.
fn reached(effects: &[Effect]) -> Option<u32> {
    let state = message(effects, |message| match message {
        Message::NetworkState(state) => Some(state.reached),
        _ => None,
    });
    state.map(|(_, reached)| reached)
}
