//! Catching up: starting late, being left behind, and health checks. Source: consensus.md 3.5, 6.

use super::cluster::{Cluster, Lone, Setup, nobody, rules};
use dposlab::{
    actors::{Effect, Event, Input, Message, RollbackCause, SimTime, Wake},
    ledger::{
        Link, Rules,
        rules::{ForkChoiceRule, Gossip, NodeRules, RollbackTarget},
    },
    protocol::{Block, Height, Slot},
    sim::fault::Span,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The node that forges nothing, in a network of five that do.
const IDLE: u32 = 5;

/// The requests of a node since an instant: when, to whom, above which height, and for how many blocks.
fn asked(cluster: &Cluster, node: u32, since: SimTime) -> Vec<(SimTime, u32, u32, u32)> {
    let sent = cluster.sent.iter().filter(|sent| sent.from == node && sent.at >= since);
    sent.filter_map(|sent| match sent.message {
        Message::BlocksRequest { above, limit, headers_only: false, .. } => Some((sent.at, sent.to, above.0, limit)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_node_that_starts_late_downloads_the_chain_in_chunks_from_several_peers() {
    let mut cluster = Setup { others: 1, ..Setup::default() }.build();
    cluster.crash(IDLE);
    cluster.run_for(8 * 1_000);
    let height = cluster.height(0);
    assert!(height > 990, "five of five forge");
    let knows = |node: &u32| cluster.peer(*node).connected().any(|peer| peer.0 == IDLE);
    assert_eq!(
        cluster.numbers().filter(|node| *node != IDLE).filter(knows).count(),
        0,
        "all see that the node is gone"
    );
    let begun = cluster.now;
    cluster.restart(IDLE);
    cluster.run_until(cluster.now + Duration::from_millis(300));
    assert!(!cluster.peer(IDLE).has_started());
    cluster.run_for(30);
    assert!(cluster.peer(IDLE).has_started());
    assert!(cluster.on_one_chain(cluster.numbers()) && cluster.height(IDLE) >= height);
    let asked = asked(&cluster, IDLE, begun);
    let first: Vec<(u32, u32)> = asked[..3].iter().map(|(_, _, above, limit)| (*above, *limit)).collect();
    assert_eq!(first, [(1, 400), (401, 400), (801, 400)], "three chunks at once for a thousand blocks");
    assert_eq!(asked[..3].iter().map(|(_, peer, ..)| *peer).collect::<BTreeSet<_>>().len(), 3, "from three peers");
    assert!(asked[..3].iter().all(|(at, ..)| *at == asked[0].0));
    let added = cluster.events(IDLE).filter(|event| matches!(event, Event::PeerAdded(_))).count();
    assert_eq!(added, 5, "it has met all it was given");
    let met = cluster.seen.iter().filter(|seen| matches!(seen.event, Event::PeerAdded(node) if node.0 == IDLE));
    assert_eq!(met.count(), 5, "and they have taken it up again, for it called");
    let before = cluster.height(IDLE);
    cluster.run_for(80);
    assert!(cluster.height(IDLE) >= before + 8, "new blocks reach it");
}

/// A node on the longest chain, at rest on genesis. Its peers 3 and 4 are on a chain of three blocks, 1 and 2 on five and four of another one.
struct Behind {
    lone: Lone,
    tips: [Arc<Link>; 4],
    /// A block on genesis, of a slot that is far ahead.
    early: Arc<Block>,
}

impl Behind {
    fn new() -> Self {
        let mut rules = rules(Rules::corrected());
        (rules.node.fork_choice, rules.node.stays_behind) = (ForkChoiceRule::LongestChain, false);
        let cluster = Setup { rules, ..Setup::default() }.build();
        let genesis = cluster.tree.genesis().clone();
        let (weak, strong) = (cluster.chain(&genesis, Slot(1), 3), cluster.chain(&genesis, Slot(10), 5));
        let tips = [&strong[4], &strong[3], &weak[2], &weak[2]].map(Arc::clone);
        let lone = Lone::new(&cluster.tree, &genesis, 0, &[1, 2, 3, 4], Cluster::at(8 * 50));
        let early = cluster.chain(&genesis, Slot(1_000), 1)[0].block().clone();
        let mut behind = Self { lone, tips, early };
        // It catches up in vain, and is at rest then.
        behind.lone.now = behind.lone.now + Duration::from_secs(60);
        let mut effects = behind.lone.step(Input::Wake(Wake::WakeUp));
        for _ in 0..30 {
            effects = behind.answer(&effects, |_| Vec::new()).1;
        }
        assert!(behind.lone.peer.has_started() && effects.is_empty(), "{effects:?}");
        behind
    }

    /// Answers questions, those for blocks with `blocks` of the peer, three seconds later. Returns the peers that were asked for blocks.
    fn answer(&mut self, effects: &[Effect], blocks: impl Fn(u32) -> Vec<Arc<Block>>) -> (Vec<u32>, Vec<Effect>) {
        let (mut asked, mut next) = (Vec::new(), Vec::new());
        for effect in effects {
            let Effect::Send { to, message } = effect else { continue };
            let (peer, tip) = (to.node.0, self.tips[to.node.0 as usize - 1].clone());
            next.extend(match message {
                Message::PeersRequest => self.lone.hear(peer, Message::Peers(Arc::new([]))),
                Message::StatusRequest => self.lone.hear(peer, Message::Status { tip: tip.block().clone() }),
                Message::BlocksRequest { inquiry, .. } => {
                    asked.push(peer);
                    let (height, blocks) = (tip.height(), blocks(peer).into());
                    self.lone.hear(peer, Message::Blocks { inquiry: *inquiry, height, blocks })
                }
                _ => continue,
            });
        }
        self.lone.now = self.lone.now + Duration::from_secs(3);
        next.extend(self.lone.step(Input::Wake(Wake::Throttled)));
        (asked, next)
    }
}

/// The node asks by the strength of the chains on which peers say that they stand. It does not believe those two any more that turn out not to
/// have the blocks.
#[test]
fn peers_without_the_blocks_are_not_asked_first_again() {
    let mut behind = Behind::new();
    let genesis = behind.lone.peer.tip().id();
    let tip = behind.tips[0].block().clone();
    let mut effects = behind.lone.hear(1, Message::Block(tip.clone()));
    let mut asked = Vec::new();
    for _ in 0..12 {
        let does_not_follow = |peer| if peer == 1 { Vec::new() } else { vec![tip.clone()] };
        let (peers, next) = behind.answer(&effects, does_not_follow);
        asked.extend(peers);
        effects = next;
    }
    assert_eq!((&asked[..2], behind.lone.peer.tip().id()), (&[1, 2][..], genesis), "{asked:?}");
    assert!([3, 4].contains(&asked[2]), "{asked:?}");
}

/// By the node's clock the only block that its peers have is of a later slot. It asks six times, and then no more until it wakes up again: where
/// messages take no time, it would ask for ever.
#[test]
fn a_block_of_a_later_slot_is_not_asked_for_again_and_again() {
    let mut behind = Behind::new();
    behind.lone.now = behind.lone.now + Duration::from_secs(60);
    let early = behind.early.clone();
    let mut effects = behind.lone.step(Input::Wake(Wake::WakeUp));
    let mut asked = Vec::new();
    for _ in 0..30 {
        let (peers, next) = behind.answer(&effects, |_| vec![early.clone()]);
        asked.extend(peers);
        effects = next;
    }
    assert_eq!((asked.len(), effects.len()), (6, 0), "{asked:?}, {effects:?}");
}

/// One peer of four is on a longer chain than the others. A node that is behind both asks that one, whichever it is.
#[test]
fn the_peer_on_the_strongest_chain_is_asked_for_blocks_first() {
    for strong in 1..=4 {
        let mut rules = rules(Rules::corrected());
        (rules.gossip, rules.node.fork_choice, rules.node.stays_behind) =
            (Gossip::Once, ForkChoiceRule::LongestChain, false);
        rules.node.rate_limits = false;
        let mut cluster = Setup { rules, offline: nobody, ..Setup::default() }.build();
        cluster.run_until(Cluster::at(8 * 50 + 1));
        let genesis = cluster.tree.genesis().clone();
        let (short, long) = (cluster.chain(&genesis, Slot(1), 3), cluster.chain(&genesis, Slot(10), 5));
        for node in 1..=4 {
            let chain = if node == strong { &long } else { &short };
            chain.iter().for_each(|link| cluster.say(0, node, Message::Block(link.block().clone())));
        }
        let since = cluster.now;
        let tip = long[4].clone();
        cluster.say(strong, 0, Message::Block(tip.block().clone()));
        cluster.run_for(20);
        let asked = asked(&cluster, 0, since);
        assert_eq!(asked.iter().filter(|one| one.0 == asked[0].0).count(), 1, "one chunk at a time: {asked:?}");
        assert_eq!(asked.first().map(|(_, peer, above, _)| (*peer, *above)), Some((strong, 1)), "{asked:?}");
        assert_eq!((cluster.tip(0).id(), cluster.rollbacks(0)), (tip.id(), Vec::new()));
    }
}

#[test]
fn a_chunk_behind_one_that_failed_is_kept_and_not_asked_for_again() {
    let cluster = Setup::default().build();
    let genesis = cluster.tree.genesis().clone();
    let chain = cluster.chain(&genesis, Slot(1), 1_100);
    let tip = chain[1_099].clone();
    let mut lone = Lone::new(&cluster.tree, &genesis, 0, &[1, 2, 3], Cluster::at(8 * 1_200));
    for peer in 1..=3 {
        lone.hear(peer, Message::Status { tip: tip.block().clone() });
    }
    lone.now = lone.now + Duration::from_secs(60);
    let mut effects = lone.step(Input::Wake(Wake::WakeUp));
    let mut asked = Vec::new();
    for _ in 0..20 {
        let mut answers = Vec::new();
        for effect in &effects {
            let Effect::Send { to, message: Message::BlocksRequest { inquiry, above, limit, .. } } = effect else {
                continue;
            };
            asked.push(above.0);
            // At first nobody has the second chunk.
            let lacks = above.0 == 401 && lone.peer.tip().id() == genesis.id();
            let count = if lacks { 0 } else { *limit as usize };
            let blocks = chain[above.0 as usize - 1..].iter().take(count).map(|link| link.block().clone());
            let (height, blocks) = (tip.height(), blocks.collect());
            answers.push((to.node.0, Message::Blocks { inquiry: *inquiry, height, blocks }));
        }
        effects = answers.into_iter().flat_map(|(peer, answer)| lone.hear(peer, answer)).collect();
        lone.now = lone.now + Duration::from_secs(3);
        effects.extend(lone.step(Input::Wake(Wake::Throttled)));
    }
    assert_eq!(lone.peer.tip().id(), tip.id(), "{asked:?}");
    let times = |wanted: u32| asked.iter().filter(|above| **above == wanted).count();
    assert_eq!((times(1), times(801)), (1, 1), "what came is kept: {asked:?}");
    assert!(times(401) > 1, "what did not come is asked for again: {asked:?}");
}

#[test]
fn a_peer_that_does_not_answer_is_dropped_and_another_one_asked() {
    let mut rules = rules(Rules::reference());
    rules.node.blocks_timeout_s = 20;
    let mut cluster = Setup { others: 1, rules, ..Setup::default() }.build();
    cluster.crash(IDLE);
    cluster.run_for(800);
    cluster.deafen([0, 1, 2]);
    let begun = cluster.now;
    cluster.restart(IDLE);
    cluster.run_for(120);
    let asked = asked(&cluster, IDLE, begun);
    let (silent, answering): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, peer, ..)| *peer <= 2);
    assert!(!silent.is_empty(), "the seed has it ask a silent peer first");
    let next = answering.first().expect("it goes on");
    assert!(next.0 >= silent[0].0 + Duration::from_secs(20), "after the time to answer");
    assert!(cluster.on_one_chain(cluster.numbers()) && cluster.height(IDLE) > 90);
    assert!(
        !cluster.events(IDLE).any(|event| matches!(event, Event::PeerRemoved(_))),
        "a peer that times out is dropped without a word"
    );
}

/// A network whose idle node, and maybe one more, stands on a second block of some slot; the instant it got it, and that
/// block's height.
fn stranded(others: u32, change: impl FnOnce(&mut NodeRules)) -> (Cluster, SimTime, u32) {
    let mut rules = rules(Rules::corrected());
    change(&mut rules.node);
    let mut cluster = Setup { others, rules, ..Setup::default() }.build();
    cluster.run_for(200);
    let tip = cluster.tip(0).clone();
    // The other one gets it later, so that the first is the first to look around.
    cluster.cut(|node| u32::from(node > IDLE));
    let second = cluster.block(&tip, cluster.slot(), vec![Arc::new(cluster.transfer(0, 1).remove(0))]);
    while cluster.numbers().all(|node| cluster.tip(node).id() == tip.id()) {
        cluster.run_until(cluster.now + Duration::from_millis(10));
    }
    let at = cluster.now;
    cluster.say(0, IDLE, Message::Block(second.clone()));
    if others > 1 {
        cluster.run_for(40);
        cluster.heal();
        cluster.say(0, IDLE + 1, Message::Block(second.clone()));
    }
    assert!((IDLE..IDLE + others).all(|node| cluster.tip(node).id() == second.id));
    (cluster, at, second.header.height.0)
}

fn health_checks(cluster: &Cluster, node: u32) -> Vec<SimTime> {
    let seen = cluster.seen.iter().filter(|seen| seen.node == node);
    seen.filter(|seen| matches!(seen.event, Event::HealthChecked { .. })).map(|seen| seen.at).collect()
}

#[test]
fn a_stranded_node_needs_four_wake_ups_of_six_downloads_each() {
    let (mut cluster, since, height) = stranded(1, |_| {});
    cluster.run_for(500);
    let first = *health_checks(&cluster, IDLE).first().expect("in the end it looks around");
    let waited = first.since(since).as_secs();
    assert!((240..300).contains(&waited), "four times a minute, and what the downloads take: {waited} s");
    let in_vain = asked(&cluster, IDLE, since).into_iter().filter(|(at, ..)| *at < first).collect::<Vec<_>>();
    let minute = |at: &SimTime| at.since(since).as_secs() / 60;
    let wake_ups: BTreeSet<u64> = in_vain.iter().map(|(at, ..)| minute(at)).collect();
    assert_eq!(wake_ups, BTreeSet::from([1, 2, 3, 4]));
    assert!(in_vain.iter().all(|(_, _, above, _)| *above == height));
    // The blocks that come do not follow its tip, so each download ends with its first answer.
    assert_eq!(in_vain.len(), 4 * 6);
    assert_eq!(cluster.rollbacks(IDLE), [(height, height - 1, RollbackCause::Forked)], "no more than it has to");
    assert!(cluster.on_one_chain(cluster.numbers()));
}

#[test]
fn a_block_ends_the_count_of_wake_ups_in_vain() {
    // The slots that the block leaves out cause no health check.
    let (mut cluster, since, _) = stranded(1, |rules| rules.health_check_percent = 0);
    cluster.run_until(since + Duration::from_secs(200));
    // The chain that it stands on gets one more block, which nobody else hears of.
    let tip = cluster.tip(IDLE).clone();
    let next = cluster.block(&tip, cluster.slot(), Vec::new());
    cluster.say(0, IDLE, Message::Block(next.clone()));
    assert_eq!(cluster.tip(IDLE).id(), next.id);
    let last = cluster.now;
    cluster.run_for(400);
    let first = *health_checks(&cluster, IDLE).first().expect("in the end it looks around");
    assert!(
        first.since(last) >= Duration::from_secs(180),
        "after four more wake-ups: {first}, the block came at {last}"
    );
}

#[test]
fn the_number_of_wake_ups_is_a_rule() {
    let (mut cluster, since, _) = stranded(1, |rules| rules.wake_ups_to_health_check = 1);
    cluster.run_for(200);
    let first = *health_checks(&cluster, IDLE).first().expect("in the end it looks around");
    assert!((60..120).contains(&first.since(since).as_secs()));
    let (mut cluster, since, _) = stranded(1, |rules| (rules.wake_ups_to_health_check, rules.wake_up_s) = (1, 130));
    cluster.run_for(300);
    let first = *health_checks(&cluster, IDLE).first().expect("in the end it looks around");
    assert!((130..190).contains(&first.since(since).as_secs()));
}

#[test]
fn how_far_a_health_check_rolls_back_is_a_rule() {
    // The first peer in the idle node's order is the other one that is stranded: common with it is its own tip.
    let depth = |change: fn(&mut NodeRules)| {
        let (mut cluster, since, height) = stranded(2, change);
        cluster.run_for(300);
        assert!(!health_checks(&cluster, IDLE).is_empty(), "since {since}");
        let first = cluster.rollbacks(IDLE).first().copied();
        first.map(|(from, to, _)| {
            assert_eq!(from, height);
            from - to
        })
    };
    assert_eq!(depth(|_| {}), Some(1), "the block below is in common with most");
    assert_eq!(depth(|rules| rules.rollback_target = RollbackTarget::FirstPeer), None, "no block is none");
    let q17 = depth(|rules| {
        (rules.rollback_target, rules.zero_rollback_is_random) = (RollbackTarget::FirstPeer, true);
    });
    assert!(q17.is_some_and(|depth| (4..=102).contains(&depth)), "{q17:?}");
    let seven = depth(|rules| {
        (rules.rollback_target, rules.zero_rollback_is_random) = (RollbackTarget::FirstPeer, true);
        (rules.random_rollback_min, rules.random_rollback_max) = (7, 7);
    });
    assert_eq!(seven, Some(7));
    let three = depth(|rules| {
        (rules.rollback_target, rules.zero_rollback_is_random) = (RollbackTarget::FirstPeer, true);
        rules.rollback_max = 3;
    });
    assert_eq!(three, Some(3));
}

#[test]
fn the_share_of_forked_peers_that_makes_a_node_leave_is_a_rule() {
    let (mut cluster, _, _) = stranded(1, |rules| rules.forked_percent = 101);
    cluster.run_for(600);
    assert!(!health_checks(&cluster, IDLE).is_empty());
    assert_eq!(cluster.rollbacks(IDLE), [], "more than all of them are never forked");
    assert!(!cluster.on_one_chain(cluster.numbers()));
}

/// Seven of fifteen delegates do not forge from round 2 on.
fn many_offline(node: u32) -> Option<Span> {
    (node % 2 == 1).then_some(Span { from: 2, to: u32::MAX })
}

fn with_many_offline(change: impl FnOnce(&mut NodeRules)) -> Cluster {
    let mut rules = rules(Rules::reference());
    change(&mut rules.node);
    let mut cluster = Setup { delegates: 15, rules, offline: many_offline, ..Setup::default() }.build();
    cluster.run_for(3_600);
    cluster
}

#[test]
fn many_missed_slots_cause_health_checks_that_find_nothing_wrong() {
    let cluster = with_many_offline(|_| {});
    for node in cluster.numbers() {
        let checks = health_checks(&cluster, node);
        assert!((2..=6).contains(&checks.len()), "node {node}: at most one in ten minutes, {checks:?}");
        assert!(checks.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(590)), "{checks:?}");
        assert_eq!(cluster.rollbacks(node), []);
    }
    assert!(cluster.on_one_chain(cluster.numbers()) && cluster.height(0) > 200, "the chain goes on with gaps");
}

/// A round's missed slots end with it, those before its last block among them.
#[test]
fn each_round_counts_its_own_missed_slots() {
    let mut rules = rules(Rules::reference());
    (rules.node.health_check_percent, rules.node.health_check_gap_s) = (100, 0);
    let offline = |node| (node % 5 == 1).then_some(Span { from: 2, to: u32::MAX });
    let mut cluster = Setup { delegates: 15, rules, offline, ..Setup::default() }.build();
    cluster.run_for(3_600);
    let (tip, schedule) = (cluster.tip(0), cluster.tree.schedule());
    let (mut missed, mut expected) = (0, Vec::new());
    for link in (2..=tip.height().0).filter_map(|height| tip.ancestor(Height(height))) {
        for _ in link.missing() {
            missed += 1;
            if 3 * (missed + 1) >= 15 {
                expected.push(link.height());
                missed = 0;
            }
        }
        if schedule.begins(link.height().next()) {
            missed = 0;
        }
    }
    let checks = health_checks(&cluster, 0);
    let height_at = |at: SimTime| {
        let of = |link: &Arc<Link>| SimTime::from_seconds(link.block().header.timestamp);
        let blocks = (2..=tip.height().0).filter_map(|height| tip.ancestor(Height(height)));
        blocks.take_while(|link| of(link) <= at).last().map(|link| link.height())
    };
    let found: Vec<_> = checks.into_iter().filter_map(height_at).collect();
    assert!(expected.len() > 10, "{expected:?}");
    // The last one may be under way.
    assert_eq!(found, expected[..found.len()]);
    assert!(found.len() + 1 >= expected.len(), "{found:?} of {expected:?}");
}

#[test]
fn the_chance_of_a_health_check_and_the_gap_between_two_are_rules() {
    let never = with_many_offline(|rules| rules.health_check_percent = 0);
    assert!(never.numbers().all(|node| health_checks(&never, node).is_empty()));
    let often = with_many_offline(|rules| rules.health_check_gap_s = 0);
    assert!(often.numbers().all(|node| health_checks(&often, node).len() > 12));
}
