//! Pushed blocks, and blocks that come in one download without following each other. Source: consensus.md 3.1 to 3.3, 3.6.

use super::cluster::{Cluster, Lone, Setup, message, nobody, rules};
use dposlab::{
    actors::{ActorId, Effect, Event, Input, Message, NodeId, Role, RollbackCause, Wake},
    ledger::{BlockRejected, Link, Rules, rules::Gossip},
    protocol::{Arktoshi, Block, Height, Nonce, Slot, Transaction},
};
use std::{sync::Arc, time::Duration};

/// Five nodes none of which forges, thirteen slots after genesis.
fn quiet(change: impl FnOnce(&mut Rules)) -> Cluster {
    let mut rules = rules(Rules::reference());
    rules.gossip = Gossip::Reference;
    change(&mut rules);
    let mut cluster = Setup { rules, offline: nobody, ..Setup::default() }.build();
    cluster.run_until(Cluster::at(8 * 14 + 1));
    assert_eq!(cluster.slot(), Slot(14));
    cluster
}

fn refusals(cluster: &Cluster, node: u32) -> Vec<&BlockRejected> {
    cluster
        .events(node)
        .filter_map(|event| match event {
            Event::BlockRefused(why) => Some(&**why),
            _ => None,
        })
        .collect()
}

fn pushed_on(cluster: &Cluster, node: u32) -> usize {
    cluster.sent.iter().filter(|sent| sent.from == node && matches!(sent.message, Message::Block(_))).count()
}

#[test]
fn a_late_block_is_taken_in_and_not_passed_on() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let late = cluster.block(&genesis, Slot(3), Vec::new());
    cluster.say(1, 0, Message::Block(late.clone()));
    cluster.run_for(3);
    assert_eq!((cluster.tip(0).id(), pushed_on(&cluster, 0)), (late.id, 0));
    let tip = cluster.tip(0).clone();
    let of_slot_before = cluster.block(&tip, Slot(13), Vec::new());
    cluster.say(1, 0, Message::Block(of_slot_before.clone()));
    cluster.run_for(1);
    assert_eq!((cluster.tip(0).id(), pushed_on(&cluster, 0)), (of_slot_before.id, 0), "one slot is late, too");
    let tip = cluster.tip(0).clone();
    let timely = cluster.block(&tip, Slot(14), Vec::new());
    cluster.say(1, 0, Message::Block(timely.clone()));
    cluster.run_for(1);
    assert_eq!((cluster.tip(0).id(), pushed_on(&cluster, 0)), (timely.id, 3), "three quarters of four peers");
}

#[test]
fn a_block_from_the_future_is_dropped_and_then_taken_for_known() {
    for q10 in [true, false] {
        let mut cluster = quiet(|rules| rules.node.ping_before_slot_check = q10);
        let early = cluster.block(&cluster.tree.genesis().clone(), Slot(15), Vec::new());
        cluster.say(1, 0, Message::Block(early.clone()));
        assert!(matches!(refusals(&cluster, 0)[..], [BlockRejected::FromFuture { slot: Slot(15), now: Slot(14), .. }]));
        cluster.run_for(8);
        cluster.say(2, 0, Message::Block(early.clone()));
        assert_eq!(cluster.height(0), if q10 { 1 } else { 2 }, "Q10 {q10}");
        let received = cluster.events(0).filter(|event| matches!(event, Event::BlockReceived(_))).count();
        assert_eq!(received, usize::from(!q10));
        assert_eq!(refusals(&cluster, 0).len(), 1, "the second time nothing is said");
    }
}

#[test]
fn refusals_come_in_the_references_order() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let many = cluster.transfer(0, 151).into_iter().map(Arc::new).collect();
    let first = cluster.chain(&genesis, Slot(2), 1).remove(0);
    let crowded = cluster.block(&first, Slot(20), many);
    cluster.say(1, 0, Message::Block(crowded.clone()));
    let text = refusals(&cluster, 0)[0].to_string();
    let wanted = format!("Received block {} at height 3 contained too many transactions (151).", crowded.id);
    assert!(text.contains(&wanted), "before anything else: {text}");
    let unchained = cluster.block(&first, Slot(20), Vec::new());
    cluster.say(1, 0, Message::Block(unchained));
    assert!(matches!(refusals(&cluster, 0)[1], BlockRejected::NotChained { .. }), "before its slot is looked at");
}

#[test]
fn a_block_pushed_before_the_node_has_caught_up_is_disregarded() {
    let mut cluster = quiet(|_| {});
    cluster.cut(|node| u32::from(node == 0));
    cluster.restart(0);
    cluster.run_for(1);
    let block = cluster.block(&cluster.tree.genesis().clone(), Slot(14), Vec::new());
    cluster.say(1, 0, Message::Block(block));
    assert!(cluster.events(0).any(|event| matches!(event, Event::BlockDisregarded(_))));
    assert_eq!(cluster.height(0), 1);
    cluster.run_for(6);
    assert!(cluster.peer(0).has_started(), "nobody answers, so there is nothing to catch up with");
}

#[test]
fn a_block_that_does_not_apply_costs_the_pool_its_transactions() {
    for q4 in [true, false] {
        let mut cluster = quiet(|rules| rules.pool.refused_block_takes_transactions = q4);
        // Version 2 is taken from block 3 on.
        let tip = cluster.chain(&cluster.tree.genesis().clone(), Slot(2), 1).remove(0);
        cluster.say(1, 0, Message::Block(tip.block().clone()));
        let good = Arc::new(cluster.transfer(0, 1).remove(0));
        cluster.submit(0, std::slice::from_ref(&good));
        let accounts = &cluster.testnet.accounts;
        let too_much = Transaction::transfer(accounts[3].keys.public().address(23), Arktoshi::coins(5_000_000))
            .nonce(Nonce(1))
            .fee(Arktoshi::new(10_000_000).expect("a fee"))
            .sign(&accounts[2].keys);
        let block = cluster.block(&tip, Slot(14), vec![good.clone(), Arc::new(too_much)]);
        cluster.say(1, 0, Message::Block(block));
        assert!(matches!(refusals(&cluster, 0)[..], [BlockRejected::NotApplicable { .. }]));
        let removed = |event: &Event| matches!(event, Event::PoolRemoved(id) if *id == good.id());
        assert_eq!(cluster.events(0).any(removed), q4);
        assert_eq!(cluster.height(0), 2);
    }
}

/// A peer on top of a chain of some length that is woken up and asks for blocks; and blocks to answer with.
struct Asked {
    lone: Lone,
    cluster: Cluster,
    from: ActorId,
    question: Message,
}

impl Asked {
    fn new(length: u32) -> Self {
        let cluster = quiet(|_| {});
        let genesis = cluster.tree.genesis().clone();
        let tip = match length {
            1 => genesis,
            _ => cluster.chain(&genesis, Slot(1), length - 1).pop().expect("it has blocks"),
        };
        let now = Cluster::at(8 * (length + 20));
        let mut lone = Lone::new(&cluster.tree, &tip, 0, &[1, 2, 3], now);
        let mut effects = Vec::new();
        lone.now = now + Duration::from_secs(60);
        lone.peer.step(lone.now, Input::Wake(Wake::WakeUp), &mut effects);
        let (from, question) = asked_for_blocks(&effects).expect("its tip is old");
        Self { lone, cluster, from, question }
    }

    /// Answers the running question, and takes the next one if there is one.
    fn answer(&mut self, blocks: &[Arc<Block>]) -> Vec<Effect> {
        let Message::BlocksRequest { inquiry, .. } = self.question else { unreachable!("it is one") };
        let height = self.tip().height().next();
        let effects = self.lone.hear(self.from.node.0, Message::Blocks { inquiry, height, blocks: blocks.into() });
        self.lone.now = self.lone.now + Duration::from_secs(3);
        let mut all = effects;
        if asked_for_blocks(&all).is_none() {
            all.extend(self.lone.step(Input::Wake(Wake::Throttled)));
        }
        if let Some((from, question)) = asked_for_blocks(&all) {
            (self.from, self.question) = (from, question);
        }
        all
    }

    fn tip(&self) -> &Arc<Link> {
        self.lone.peer.tip()
    }
}

fn asked_for_blocks(effects: &[Effect]) -> Option<(ActorId, Message)> {
    message(effects, |message| matches!(message, Message::BlocksRequest { .. }).then(|| message.clone()))
}

fn rolled_back(effects: &[Effect]) -> Option<(u32, RollbackCause)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Observe(Event::RolledBack { from, to, cause }) => Some((from.height().0 - to.height().0, *cause)),
        _ => None,
    })
}

#[test]
fn a_second_block_of_one_slot_in_a_download_makes_the_node_leave_its_chain() {
    let mut asked = Asked::new(200);
    let (tip, slot) = (asked.tip().clone(), Slot(203));
    let next = asked.cluster.block(&tip, slot, Vec::new());
    let twin = asked.cluster.block(&tip, slot, vec![Arc::new(asked.cluster.transfer(0, 1).remove(0))]);
    assert_ne!(next.id, twin.id);
    let effects = asked.answer(&[next, twin]);
    let (depth, cause) = rolled_back(&effects).expect("the delegate has forged twice");
    assert_eq!(cause, RollbackCause::DoubleForging);
    assert!((4..=102).contains(&depth), "a random depth: {depth}");
    let reverted = effects.iter().filter(|effect| matches!(effect, Effect::Observe(Event::BlockReverted(_)))).count();
    assert_eq!(reverted as u32, depth);
    assert_eq!(asked.tip().height().0, 201 - depth);
}

#[test]
fn what_else_does_not_follow_in_a_download_is_discarded_or_refused() {
    let mut asked = Asked::new(20);
    let tip = asked.tip().clone();
    let (next, parent) = (asked.cluster.block(&tip, Slot(30), Vec::new()), tip.parent().expect("it is high"));
    // Already there, and older than the tip: lower than it, or as high and from an earlier slot.
    let lower = asked.cluster.block(&parent, Slot(29), Vec::new());
    let effects = asked.answer(&[next.clone(), lower]);
    assert_eq!((asked.tip().id(), rolled_back(&effects)), (next.id, None));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Observe(Event::BlockRefused(_)))), "discarded");
    let tip = asked.tip().clone();
    let (next, earlier) =
        (asked.cluster.block(&tip, Slot(32), Vec::new()), asked.cluster.block(&tip, Slot(31), Vec::new()));
    let effects = asked.answer(&[next.clone(), earlier]);
    assert_eq!((asked.tip().id(), rolled_back(&effects)), (next.id, None));
    let refused = effects.iter().filter(|effect| matches!(effect, Effect::Observe(Event::BlockRefused(_))));
    assert_eq!(refused.count(), 1, "refused");
}

#[test]
fn a_block_that_is_never_ready_makes_the_node_leave_all_of_its_chain() {
    let mut asked = Asked::new(40);
    let far = asked.cluster.chain(&asked.tip().clone(), Slot(41), 20).pop().expect("it has blocks").block().clone();
    for time in 1..=6 {
        let tip = asked.tip().clone();
        let slot = asked.cluster.tree.slots().slot(tip.block().header.timestamp).0 + 1;
        let next = asked.cluster.block(&tip, Slot(slot), Vec::new());
        let effects = asked.answer(&[next, far.clone()]);
        match time {
            6 => assert_eq!(rolled_back(&effects), Some((45, RollbackCause::NeverReady)), "all there is, at most 5000"),
            _ => assert_eq!((asked.tip().height().0, rolled_back(&effects)), (40 + time, None)),
        }
    }
    assert_eq!(asked.tip().height(), Height::GENESIS);
}

#[test]
fn an_answer_nobody_waits_for_is_not_listened_to() {
    let mut asked = Asked::new(20);
    let next = asked.cluster.block(&asked.tip().clone(), Slot(30), Vec::new());
    let Message::BlocksRequest { inquiry, .. } = asked.question else { unreachable!("it is one") };
    let blocks = Message::Blocks { inquiry, height: Height(21), blocks: [next].into() };
    let other = (1..=3).find(|node| *node != asked.from.node.0).expect("three were there");
    assert!(asked.lone.hear(other, blocks).is_empty());
    assert_eq!(asked.tip().height().0, 20);
}

/// A delegate tells of its own block to the relay, before or after what became of it.
#[test]
fn a_forged_block_is_told_whatever_its_relay_says_unless_ruled_otherwise() {
    for q18 in [true, false] {
        let mut rules = rules(Rules::reference());
        rules.node.forged_before_accepted = q18;
        let mut cluster = Setup { rules, ..Setup::default() }.build();
        cluster.run_for(80);
        let forged = cluster.seen.iter().filter(|seen| matches!(seen.event, Event::BlockForged(_))).count() as u32;
        assert_eq!(forged, cluster.height(0) - 1, "each block of a healthy chain is told of once");
        // A block on another parent: the relay refuses it.
        let tip = cluster.tip(0).clone();
        let elsewhere = cluster.block(&tip.parent().expect("it is high"), cluster.slot(), Vec::new());
        let peer = ActorId { node: NodeId(0), role: Role::Peer };
        let delegate = ActorId { node: NodeId(0), role: Role::Delegate };
        let mut lone = Lone::new(&cluster.tree, &tip, peer.node.0, &[1, 2], cluster.now);
        let effects = lone.step(Input::Message { from: delegate, message: Message::Forged(elsewhere) });
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Observe(Event::BlockForged(_)))));
        let slot = cluster.slot();
        let fits = cluster.block(&tip, slot, Vec::new());
        let effects = lone.step(Input::Message { from: delegate, message: Message::Forged(fits) });
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::Observe(Event::BlockForged(_)))), !q18);
    }
}

#[test]
fn a_block_with_a_transaction_of_the_chain_is_not_taken_and_passed_on_and_the_pool_hears_of_it() {
    let cluster = quiet(|rules| rules.gossip = Gossip::Reference);
    let genesis = cluster.tree.genesis().clone();
    // Of version 1: a nonce that comes again is found out before the id is looked for.
    let again = genesis.block().transactions[0].clone();
    let block = cluster.block(&genesis, Slot(2), vec![again.clone()]);
    let mut lone = Lone::new(&cluster.tree, &genesis, 0, &[1, 2, 3], Cluster::at(8 * 2 + 3));
    let effects = lone.hear(1, Message::Block(block.clone()));
    let told = message(&effects, |message| match message {
        Message::AlreadyForged { ids, .. } => Some(ids.to_vec()),
        _ => None,
    });
    assert_eq!(told.map(|(to, ids)| (to.role, ids)), Some((Role::Pool, vec![again.id()])));
    let waits = |effect: &Effect| matches!(effect, Effect::WakeAt { wake: Wake::Gossip(id), .. } if *id == block.id);
    assert!(effects.iter().any(waits), "it is passed on: {effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Observe(Event::BlockRefused(_)))), "discarded");
    assert_eq!(lone.peer.tip().id(), genesis.id());
}
