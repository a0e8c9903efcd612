//! Nodes that keep blocks of other branches (`rules.node.keeps_branches`).

use super::cluster::{Cluster, Seen, Sent, Setup, nobody, rules};
use dposlab::{
    actors::{Event, Message, RollbackCause},
    ledger::{
        Link, Rules,
        rules::{FinalityRule, ForkChoiceRule, Gossip},
    },
    protocol::{Arktoshi, Block, BlockDraft, Slot},
};
use std::sync::Arc;

/// Five nodes on the longest chain, none of which forges, fifty slots after genesis.
fn quiet(change: impl FnOnce(&mut Rules)) -> Cluster {
    let mut rules = rules(Rules::corrected());
    (rules.gossip, rules.node.fork_choice, rules.node.keeps_branches) =
        (Gossip::Once, ForkChoiceRule::LongestChain, true);
    // Node 1 pushes more than a peer may.
    rules.node.rate_limits = false;
    change(&mut rules);
    let mut cluster = Setup { rules, offline: nobody, ..Setup::default() }.build();
    cluster.run_until(Cluster::at(8 * 50 + 1));
    cluster
}

/// Node 1 pushes blocks to node 0, one after the other.
fn push(cluster: &mut Cluster, chain: &[Arc<Link>]) {
    chain.iter().for_each(|link| cluster.say(1, 0, Message::Block(link.block().clone())));
}

fn last(chain: &[Arc<Link>]) -> Arc<Link> {
    chain.last().expect("it has blocks").clone()
}

/// The questions for blocks that node 0 has sent.
fn downloads(cluster: &Cluster) -> usize {
    cluster.sent.iter().filter(|sent| sent.from == 0 && matches!(sent.message, Message::BlocksRequest { .. })).count()
}

#[test]
fn a_node_goes_to_a_longer_branch_at_once_and_downloads_nothing() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let (own, other) = (cluster.chain(&genesis, Slot(1), 3), cluster.chain(&genesis, Slot(10), 4));
    push(&mut cluster, &own);
    push(&mut cluster, &other[..3]);
    assert_eq!((cluster.tip(0).id(), cluster.rollbacks(0)), (last(&own).id(), Vec::new()), "equals are kept apart");
    let before = downloads(&cluster);
    push(&mut cluster, &other[3..]);
    assert_eq!(cluster.tip(0).id(), last(&other).id());
    assert_eq!(cluster.rollbacks(0), [(4, 1, RollbackCause::Stronger)]);
    assert_eq!(downloads(&cluster), before);
}

/// The branch begins where it leaves the own chain, though the node left that chain before and keeps its blocks.
#[test]
fn a_node_that_came_back_to_a_chain_takes_off_no_more_than_it_has_to() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let (own, other) = (cluster.chain(&genesis, Slot(1), 5), cluster.chain(&genesis, Slot(10), 4));
    push(&mut cluster, &own[..3]);
    push(&mut cluster, &other);
    push(&mut cluster, &own[3..]);
    let branch = cluster.chain(&own[3], Slot(20), 2);
    push(&mut cluster, &branch);
    assert_eq!(cluster.tip(0).id(), last(&branch).id());
    let stronger = |from, to| (from, to, RollbackCause::Stronger);
    assert_eq!(cluster.rollbacks(0), [stronger(4, 1), stronger(5, 1), stronger(6, 5)]);
}

#[test]
fn a_node_does_not_leave_what_is_final() {
    let mut cluster = quiet(|rules| rules.ledger.finality = FinalityRule::Solidified);
    let genesis = cluster.tree.genesis().clone();
    let (own, other) = (cluster.chain(&genesis, Slot(1), 8), cluster.chain(&genesis, Slot(10), 12));
    push(&mut cluster, &own);
    assert!(cluster.tree.applied(cluster.tip(0)).state.finality().height().0 > 1);
    push(&mut cluster, &other);
    assert_eq!((cluster.tip(0).id(), cluster.rollbacks(0)), (last(&own).id(), Vec::new()));
}

/// A signed block with a wrong reward, and one on top of it. Both are kept until their chain is the longest, and forgotten then.
#[test]
fn a_branch_that_breaks_a_rule_is_forgotten() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let own = cluster.chain(&genesis, Slot(1), 1);
    push(&mut cluster, &own);
    let honest = cluster.block(&genesis, Slot(10), Vec::new());
    let forged = |parent: &Block, slot: Slot, reward| {
        let draft = BlockDraft {
            version: 0,
            timestamp: cluster.tree.slots().start(slot),
            height: parent.header.height.next(),
            previous: Some(parent.id),
            reward,
            transactions: Vec::new(),
        };
        let milestones = &cluster.tree.config().milestones;
        Arc::new(Block::forge(draft, &cluster.owner(&genesis, slot), milestones))
    };
    let bad = forged(genesis.block(), Slot(10), Arktoshi::coins(7));
    let above = forged(&bad, Slot(11), honest.header.reward);
    for block in [&bad, &above] {
        cluster.say(1, 0, Message::Block(block.clone()));
    }
    assert_eq!((cluster.tip(0).id(), cluster.rollbacks(0)), (last(&own).id(), Vec::new()));
    assert!(cluster.tree.link(&bad.id).is_none(), "no tree holds it");
    // It is not a branch that one can build on any more.
    let events = cluster.seen.len();
    cluster.say(1, 0, Message::Block(above));
    let refused = |seen: &Seen| seen.node == 0 && matches!(seen.event, Event::BlockRefused(_));
    assert!(cluster.seen[events..].iter().any(refused));
    let good = cluster.chain(&genesis, Slot(20), 2);
    push(&mut cluster, &good);
    assert_eq!(cluster.tip(0).id(), last(&good).id());
}

#[test]
fn a_block_of_another_branch_from_a_later_slot_is_not_kept() {
    let mut cluster = quiet(|_| {});
    let genesis = cluster.tree.genesis().clone();
    let (own, early) = (cluster.chain(&genesis, Slot(1), 1), cluster.chain(&genesis, Slot(52), 2));
    push(&mut cluster, &own);
    push(&mut cluster, &early);
    assert_eq!((cluster.tip(0).id(), cluster.rollbacks(0)), (last(&own).id(), Vec::new()));
    let refused = |seen: &&Seen| seen.node == 0 && matches!(seen.event, Event::BlockRefused(_));
    assert_eq!(cluster.seen.iter().filter(refused).count(), 2);
}

#[test]
fn a_kept_block_is_passed_on_once_where_blocks_are_repeated() {
    let mut cluster = quiet(|rules| rules.gossip = Gossip::Reference);
    let genesis = cluster.tree.genesis().clone();
    let (own, other) = (cluster.chain(&genesis, Slot(1), 1), cluster.chain(&genesis, Slot(10), 1));
    push(&mut cluster, &own);
    let passed_on = |cluster: &Cluster| {
        let is_it = |sent: &&Sent| {
            sent.from == 0 && matches!(&sent.message, Message::Block(block) if block.id == other[0].id())
        };
        cluster.sent.iter().filter(is_it).count()
    };
    push(&mut cluster, &other);
    push(&mut cluster, &other);
    cluster.run_for(3);
    assert_eq!(passed_on(&cluster), 4, "each of its peers once");
}
