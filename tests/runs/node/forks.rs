//! Networks that fall apart and come together again. Source: consensus.md 3.5, 7.2.

use super::cluster::{Cluster, Setup, rules};
use dposlab::{
    actors::{Event, Message, RollbackCause},
    ledger::Rules,
    protocol::Slot,
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
            let at = |tip: &Arc<dposlab::ledger::Link>| {
                tip.ancestor(dposlab::protocol::Height(*height)).map(|link| link.id())
            };
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
