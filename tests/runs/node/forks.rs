//! Networks that fall apart and come together again. Source: consensus.md 3.5, 7.2.

use super::cluster::{Cluster, Lone, Setup, message, nobody, rules};
use dposlab::{
    actors::{Effect, Event, Message, NodeId, RollbackCause, message::Inquiry},
    ledger::{
        Link, Rules,
        rules::{FinalityRule, ForkChoiceRule},
    },
    protocol::{Block, BlockDraft, Height, Slot},
};
use std::{sync::Arc, time::Duration};

/// Fifteen delegates, cut in two for a while.
fn split(base: Rules, seed: u64, minority: u32, seconds: u64) -> Cluster {
    let mut cluster = Setup { delegates: 15, rules: rules(base), seed, ..Setup::default() }.build();
    cluster.run_for(200);
    assert!(cluster.on_one_chain(cluster.numbers()), "nothing has gone wrong yet");
    cluster.cut(|node| u32::from(node < minority));
    cluster.run_for(seconds);
    cluster
}

#[test]
fn after_a_heal_the_minority_leaves_its_chain_and_the_majority_stays() {
    for (base, name) in [(Rules::reference(), "reference"), (Rules::corrected(), "corrected")] {
        let mut cluster = split(base, 7, 4, 900);
        let (minority, majority) = (cluster.tip(0).clone(), cluster.tip(14).clone());
        let common = (1..).find(|height| {
            let at = |tip: &Arc<Link>| tip.ancestor(Height(*height)).map(|link| link.id());
            at(&minority) != at(&majority)
        });
        let common = common.expect("the chains differ somewhere") - 1;
        assert!(minority.height().0 > common && majority.height().0 > common, "{name}: both sides forge");
        cluster.heal();
        cluster.run_for(3_600);
        assert!(cluster.on_one_chain(cluster.numbers()), "{name}: {:?}", heights(&cluster));
        assert!(cluster.tip(0).descends_from(&majority), "{name}: the majority's chain has won");
        for node in 0..4 {
            let rollbacks = cluster.rollbacks(node);
            // Later ones may come of chunks from both chains.
            assert_eq!(rollbacks.first().map(|first| first.2), Some(RollbackCause::Forked), "{name}: {rollbacks:?}");
            let reverted = cluster.events(node).filter(|event| matches!(event, Event::BlockReverted(_))).count() as u32;
            assert_eq!(reverted, rollbacks.iter().map(|(from, to, _)| from - to).sum::<u32>());
        }
        for node in 4..15 {
            assert_eq!(cluster.rollbacks(node), [], "{name}: node {node} stayed");
        }
    }
}

fn heights(cluster: &Cluster) -> Vec<u32> {
    cluster.numbers().map(|node| cluster.height(node)).collect()
}

#[test]
fn equal_halves_both_stop_and_find_together_again() {
    let mut cluster = Setup { delegates: 16, rules: rules(Rules::reference()), ..Setup::default() }.build();
    cluster.run_for(200);
    cluster.cut(|node| node % 2);
    cluster.run_for(900);
    assert!(!cluster.on_one_chain(cluster.numbers()), "both halves forge");
    cluster.heal();
    let mut hours = 0;
    while !cluster.on_one_chain(cluster.numbers()) && hours < 48 {
        cluster.run_for(3_600);
        hours += 1;
    }
    assert!(cluster.on_one_chain(cluster.numbers()), "{:?} after {hours} hours", heights(&cluster));
    let left = |half: u32| cluster.numbers().any(|node| node % 2 == half && !cluster.rollbacks(node).is_empty());
    assert!(left(0) || left(1), "each sees more than half of its peers on the other chain");
    let before = cluster.height(0);
    cluster.run_for(3_600);
    assert!(cluster.height(0) > before + 300, "and the chain goes on");
}

#[test]
fn who_forged_on_the_wrong_block_of_two_is_left_behind_and_comes_back() {
    let mut cluster = Setup { delegates: 15, rules: rules(Rules::reference()), ..Setup::default() }.build();
    cluster.run_for(200);
    let tip = cluster.tip(0).clone();
    // The owner of the running slot makes a second block, and three who have no turn soon hear of that one first.
    let slot = cluster.slot();
    let transfer = Arc::new(cluster.transfer(0, 1).remove(0));
    let second = cluster.block(&tip, slot, vec![transfer]);
    let owners: Vec<_> = (0..8).map(|step| *cluster.owner(&tip, Slot(slot.0 + step)).public()).collect();
    let mine = |node: &u32| *cluster.testnet.delegates[*node as usize].keys.public();
    let fooled: Vec<u32> = cluster.numbers().filter(|node| !owners.contains(&mine(node))).take(3).collect();
    while cluster.numbers().all(|node| cluster.tip(node).id() == tip.id()) {
        cluster.run_until(cluster.now + Duration::from_millis(10));
    }
    for &node in &fooled {
        cluster.say(14, node, Message::Block(second.clone()));
    }
    cluster.run_for(60);
    for &node in &fooled {
        assert_eq!(
            cluster.tip(node).id(),
            second.id,
            "first come, first served: the chain goes on without node {node}"
        );
    }
    assert!(cluster.height(0) > tip.height().0 + 5);
    cluster.run_for(1_800);
    assert!(cluster.on_one_chain(cluster.numbers()), "{:?}", heights(&cluster));
    for node in cluster.numbers() {
        assert_eq!(!cluster.rollbacks(node).is_empty(), fooled.contains(&node), "node {node}");
    }
}

#[test]
fn what_a_rolled_back_chain_held_is_pending_again_and_forged_on_the_other() {
    let mut cluster = split(Rules::reference(), 7, 4, 60);
    let transfer = Arc::new(cluster.transfer(0, 1).remove(0));
    cluster.submit(0, std::slice::from_ref(&transfer));
    cluster.run_for(840);
    let stands_on = |cluster: &Cluster, node| cluster.tree.block_of(cluster.tip(node), &transfer.id()).is_some();
    assert!(
        stands_on(&cluster, 0) && !stands_on(&cluster, 14),
        "the minority has forged it, the majority not heard of it"
    );
    cluster.heal();
    cluster.run_for(3_600);
    let back =
        |event: &Event| matches!(event, Event::PoolReplaced(all) if all.iter().any(|one| one.id() == transfer.id()));
    assert!((0..4).any(|node| cluster.events(node).any(back)), "it is pending again");
    assert!(cluster.on_one_chain(cluster.numbers()));
    assert!(cluster.numbers().all(|node| stands_on(&cluster, node)), "and one of the four has forged it anew");
}

/// Five nodes whose delegates do not forge, and who stand on the longest chain.
fn onlookers(base: fn() -> Rules) -> Cluster {
    let mut rules = rules(base());
    (rules.node.fork_choice, rules.node.discovery) = (ForkChoiceRule::LongestChain, false);
    Setup { rules, offline: nobody, ..Setup::default() }.build()
}

fn asks(effects: &[Effect]) -> bool {
    message(effects, |message| matches!(message, Message::StatusRequest).then_some(())).is_some()
}

/// Of blocks that do not follow its tip a node looks around for those that a delegate signed, that are as high as its tip where heights
/// decide, and not its own. Whoever could send others would have it ask all its peers for nothing.
#[test]
fn a_node_looks_around_for_blocks_of_rivals_only() {
    let eos = || {
        let mut rules = Rules::corrected();
        rules.ledger.finality = FinalityRule::LastIrreversible;
        rules
    };
    for (base, low_counts) in [(Rules::corrected as fn() -> Rules, false), (eos, true)] {
        let cluster = onlookers(base);
        let (tree, genesis) = (&cluster.tree, cluster.tree.genesis());
        let (own, his) = (cluster.chain(genesis, Slot(1), 5), cluster.chain(genesis, Slot(10), 6));
        let looks = |block: &Arc<Block>| {
            let mut lone = Lone::new(tree, &own[4], 0, &[1, 2], Cluster::at(8 * 1_000));
            asks(&lone.hear(1, Message::Block(block.clone())))
        };
        assert!(looks(his[5].block()) && looks(his[4].block()), "as high as the tip, or higher");
        assert_eq!(looks(his[1].block()), low_counts, "lower");
        assert!(!looks(own[1].block()) && !looks(own[4].block()), "its own");
        let mut unsigned = Block::clone(his[5].block());
        unsigned.header.height = Height(99);
        assert!(!looks(&Arc::new(unsigned)), "not signed");
        let draft = BlockDraft {
            version: 0,
            timestamp: his[5].block().header.timestamp,
            height: his[5].height(),
            previous: Some(his[4].id()),
            reward: his[5].block().header.reward,
            transactions: Vec::new(),
        };
        let strangers = Block::forge(draft, &cluster.testnet.accounts[0].keys, &tree.config().milestones);
        assert!(!looks(&Arc::new(strangers)), "by one who is no delegate");
    }
}

/// A peer that names the tip of a strong chain beside the header of a weak one, whose headers it can show, stands on neither.
#[test]
fn an_id_beside_another_header_leads_nobody_away() {
    let cluster = onlookers(Rules::corrected);
    let (tree, genesis) = (&cluster.tree, cluster.tree.genesis());
    let own = cluster.chain(genesis, Slot(1), 5);
    let (weak, strong) = (cluster.chain(genesis, Slot(10), 2), cluster.chain(genesis, Slot(20), 9));
    let blocks = |chain: &[Arc<Link>]| chain.iter().map(|link| link.block().clone()).collect::<Vec<_>>();
    let leaves = |claim: Arc<Block>, shown: Vec<Arc<Block>>| {
        let mut lone = Lone::new(tree, &own[4], 0, &[1, 2], Cluster::at(8 * 1_000));
        lone.hear(2, Message::Status { tip: own[4].block().clone() });
        let mut effects = lone.hear(1, Message::Block(strong[8].block().clone()));
        assert!(asks(&effects));
        lone.hear(2, Message::Status { tip: own[4].block().clone() });
        effects = lone.hear(1, Message::Status { tip: claim.clone() });
        let (height, mut left, mut verified) = (claim.header.height, false, false);
        while !verified {
            let common = message(&effects, |message| match message {
                Message::CommonBlocksRequest { inquiry, .. } => Some(*inquiry),
                _ => None,
            });
            let headers = message(&effects, |message| match message {
                Message::BlocksRequest { inquiry, limit, .. } => Some((*inquiry, *limit)),
                _ => None,
            });
            effects = match (common, headers) {
                (Some((_, inquiry)), _) => {
                    lone.hear(1, Message::CommonBlocks { inquiry, height, common: Some(Box::new(genesis.id())) })
                }
                (None, Some((_, (inquiry, limit)))) => {
                    verified = true;
                    let blocks = shown.iter().take(limit as usize).cloned().collect();
                    lone.hear(1, Message::Blocks { inquiry, height, blocks })
                }
                (None, None) => panic!("it asks no more: {effects:?}"),
            };
            left |= effects.iter().any(|effect| matches!(effect, Effect::Observe(Event::RolledBack { .. })));
        }
        assert!(lone.peer.connected().any(|node| node == NodeId(1)), "its headers hold");
        left
    };
    assert!(leaves(strong[8].block().clone(), blocks(&strong)), "a stronger chain");
    assert!(!leaves(weak[1].block().clone(), blocks(&weak)), "a weaker one");
    let claim = Block::new(strong[8].id(), weak[1].block().header.clone(), Vec::new());
    assert!(!leaves(Arc::new(claim), blocks(&weak)));
}

/// A node that hears of blocks above the next one looks around, finds that its peers have more of its chain, and downloads that at once.
/// The reference's waits until it wakes up.
#[test]
fn a_node_that_finds_itself_behind_catches_up_at_once() {
    for stays_behind in [false, true] {
        let base = if stays_behind { Rules::corrected } else { catching_up };
        let cluster = onlookers(base);
        let (tree, genesis) = (&cluster.tree, cluster.tree.genesis());
        let own = cluster.chain(genesis, Slot(1), 5);
        let ahead = cluster.chain(&own[4], Slot(10), 3);
        let mut lone = Lone::new(tree, &own[4], 0, &[1, 2], Cluster::at(8 * 1_000));
        assert!(asks(&lone.hear(1, Message::Block(ahead[2].block().clone()))));
        lone.hear(1, Message::Status { tip: own[4].block().clone() });
        let effects = lone.hear(2, Message::Status { tip: ahead[2].block().clone() });
        let asked = message(&effects, |message| match message {
            Message::BlocksRequest { above, headers_only: false, .. } => Some(*above),
            _ => None,
        });
        let wanted = (!stays_behind).then_some(own[4].height());
        assert_eq!(asked.map(|(_, above)| above), wanted, "{effects:?}");
    }
}

/// A node looks around for the slots that were missed before a block. One of three peers stands higher, on another chain, which the
/// reference's choice lets be: there is nothing to download.
#[test]
fn a_node_that_is_below_another_chain_alone_is_not_behind() {
    let mut rules = rules(catching_up());
    (rules.node.health_check_percent, rules.node.discovery) = (100, false);
    let cluster = Setup { rules, offline: nobody, ..Setup::default() }.build();
    let (tree, genesis) = (&cluster.tree, cluster.tree.genesis());
    let (own, strong) = (cluster.chain(genesis, Slot(1), 5), cluster.chain(genesis, Slot(20), 9));
    let late = cluster.chain(&own[4], Slot(40), 1);
    let (his, mine) = (strong[8].block(), late[0].block());
    let mut lone = Lone::new(tree, &own[4], 0, &[1, 2, 3], Cluster::at(8 * 1_000));
    assert!(asks(&lone.hear(1, Message::Block(mine.clone()))));
    let (inquiry, limit) = asked_for_headers(&mut lone, 3, his, genesis);
    let blocks = strong.iter().take(limit as usize).map(|link| link.block().clone()).collect();
    lone.hear(3, Message::Blocks { inquiry, height: his.header.height, blocks });
    lone.hear(1, Message::Status { tip: mine.clone() });
    let effects = lone.hear(2, Message::Status { tip: mine.clone() });
    let checked = |effect: &Effect| matches!(effect, Effect::Observe(Event::HealthChecked { peers: 3, forked: 1 }));
    assert!(effects.iter().any(checked), "{effects:?}");
    let left = |effect: &Effect| matches!(effect, Effect::Observe(Event::RolledBack { .. }));
    assert!(!effects.iter().any(left), "{effects:?}");
    let asked = message(&effects, |message| matches!(message, Message::BlocksRequest { .. }).then_some(()));
    assert!(asked.is_none(), "{effects:?}");
}

/// A node says that it stands on this block, and shows where its chain parts from the peer's: the number and the count of the headers for
/// which the peer asks then.
fn asked_for_headers(lone: &mut Lone, node: u32, his: &Arc<Block>, common: &Link) -> (Inquiry, u32) {
    let effects = lone.hear(node, Message::Status { tip: his.clone() });
    let asked = message(&effects, |message| match message {
        Message::CommonBlocksRequest { inquiry, .. } => Some(*inquiry),
        _ => None,
    });
    let (_, inquiry) = asked.expect("it asks for common blocks");
    let common = Some(Box::new(common.id()));
    let effects = lone.hear(node, Message::CommonBlocks { inquiry, height: his.header.height, common });
    let headers = message(&effects, |message| match message {
        Message::BlocksRequest { inquiry, limit, .. } => Some((*inquiry, *limit)),
        _ => None,
    });
    headers.expect("it asks for headers").1
}

fn catching_up() -> Rules {
    let mut rules = Rules::corrected();
    rules.node.stays_behind = false;
    rules
}

/// A node that is no peer yet says where it stands, and becomes a peer while a health check runs, once it has shown its headers. A slot
/// later it may have left that chain, so the check does not decide by it.
#[test]
fn a_health_check_does_not_decide_by_where_a_newcomer_stood_a_slot_before() {
    for (seconds, leaves) in [(8, true), (9, false)] {
        let cluster = onlookers(Rules::corrected);
        let (tree, genesis) = (&cluster.tree, cluster.tree.genesis());
        let (own, strong) = (cluster.chain(genesis, Slot(1), 5), cluster.chain(genesis, Slot(20), 9));
        let (his, mine) = (strong[8].block(), own[4].block());
        let mut lone = Lone::new(tree, &own[4], 0, &[1, 2], Cluster::at(8 * 1_000));
        lone.called_by(9);
        let (inquiry, limit) = asked_for_headers(&mut lone, 9, his, genesis);
        lone.now = lone.now + Duration::from_secs(seconds);
        assert!(asks(&lone.hear(1, Message::Block(his.clone()))));
        let blocks = strong.iter().take(limit as usize).map(|link| link.block().clone()).collect();
        lone.hear(9, Message::Blocks { inquiry, height: his.header.height, blocks });
        assert!(lone.peer.connected().any(|node| node == NodeId(9)), "its headers hold");
        lone.hear(1, Message::Status { tip: mine.clone() });
        let effects = lone.hear(2, Message::Status { tip: mine.clone() });
        let checked = |effect: &Effect| matches!(effect, Effect::Observe(Event::HealthChecked { peers: 3, forked: 1 }));
        assert!(effects.iter().any(checked), "{effects:?}");
        let left = |effect: &Effect| matches!(effect, Effect::Observe(Event::RolledBack { .. }));
        assert_eq!(effects.iter().any(left), leaves, "{seconds} s: {effects:?}");
    }
}
