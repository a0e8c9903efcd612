//! Each certificate is shown where its facts are there, and missing where one of them is not.

use super::{
    Certificate,
    numbers::{LOOKS, Numbers, is_parted},
};
use crate::{
    actors::{Event, NodeId, PoolError, RollbackCause, SimTime, peer::VerificationResult, pool::PoolRejection},
    check::{
        Watch,
        conduct::{self, Conduct},
    },
    ledger::{ApplyError, BlockRejected, BlockTree, Link},
    protocol::{Arktoshi, Block, BlockError, BlockId, Height, Nonce, SignedTransaction, Transaction, Vote},
    scenario::{Account, Scenario},
    sim::{Observer, SeedTree, Tips, stage::inline::InlineStage},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

const NODE: NodeId = NodeId(0);

/// A chain of five delegates without a fault, and a watch over a node from one of its blocks on.
struct WatchedChain {
    tree: Arc<BlockTree>,
    /// The last block of the chain.
    tip: Arc<Link>,
    watch: Watch,
    now: SimTime,
    /// The first of them votes for a delegate, and takes that back a few blocks later.
    accounts: Vec<Account>,
}

impl WatchedChain {
    /// Watches from a height on; the chain has 24 blocks. `rules` are lines of the scenario.
    fn from(height: u32, rules: &str) -> Self {
        let text = format!(
            "version = 1\nrounds = 5\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n[rules]\n{rules}\n[[workload]]\n\
             kind = \"generate\"\nper_second = 1\nwallets = 5\nfunding = 500\n[workload.mix]\ntransfer = 1\n\
             [[action]]\nheight = 5\nby = \"account_1\"\ndoes = \"vote\"\nto = \"genesis_1\"\n\
             [[action]]\nheight = 8\nby = \"account_1\"\ndoes = \"unvote\"\nto = \"genesis_1\"\n"
        );
        let scenario = Scenario::parse(&text, "quiet.toml".as_ref()).unwrap_or_else(|error| panic!("{error}"));
        let seeds = SeedTree::new(1);
        let testnet = scenario.testnet(seeds);
        let (plan, accounts) = (scenario.plan(&testnet, seeds), testnet.accounts.clone());
        let mut stage = InlineStage::new(&plan, Vec::new());
        stage.run_until(plan.start + Duration::from_secs(8 * 30));
        let tip = stage.world().tips().winning().ancestor(Height(24)).expect("a block for each slot");
        let tree = plan.tree.clone();
        let begin = tip.ancestor(Height(height)).expect("it is there");
        let watch = Watch::new(tree.clone(), &begin, 1, &BTreeSet::new(), &BTreeSet::new());
        let now = SimTime::from_seconds(begin.block().header.timestamp) + Duration::from_secs(1);
        Self { tree, tip, watch, now, accounts }
    }

    fn at(&self, height: u32) -> Arc<Link> {
        self.tip.ancestor(Height(height)).expect("it is there")
    }

    fn hears(&mut self, event: Event) {
        self.watch.observe(self.now, NODE, &event);
    }

    /// The only finding of an invariant.
    #[track_caller]
    fn certificate(&self, conduct: &Conduct) -> Certificate {
        let seen = self.watch.seen();
        let mut found = seen.findings().iter().filter(|finding| finding.invariant == conduct.name);
        let finding = found.next().unwrap_or_else(|| panic!("'{}' is not broken: {:?}", conduct.name, seen.findings()));
        assert!(found.next().is_none(), "{:?}", seen.findings());
        finding.certificate.clone()
    }

    #[track_caller]
    fn shows(&self, conduct: &Conduct) {
        let certificate = self.certificate(conduct);
        assert!(certificate.is_shown(), "{certificate:?}");
    }

    #[track_caller]
    fn lacks(&self, conduct: &Conduct, what: &str) {
        let certificate = self.certificate(conduct);
        assert!(certificate.missing().is_some_and(|missing| missing.contains(what)), "{certificate:?} of '{what}'");
    }
}

const CORRECTED: &str = "base = \"corrected\"";
const REFERENCE: &str = "base = \"reference\"";

/// A node takes all blocks up to 24, and then goes back to a height.
fn rolls_back(rules: &str, to: u32, cause: RollbackCause, before: impl Fn(&mut WatchedChain)) -> WatchedChain {
    let mut watched = WatchedChain::from(2, rules);
    (3..24).for_each(|height| watched.hears(Event::BlockApplied(watched.at(height))));
    watched.now = watched.now + Duration::from_secs(200);
    before(&mut watched);
    let (from, to) = (watched.at(23), watched.at(to));
    watched.hears(Event::RolledBack { from, to, cause });
    watched
}

#[test]
fn a_rollback_after_a_health_check_has_half_of_the_peers_on_other_chains() {
    let forked = |rules, to, before: &dyn Fn(&mut WatchedChain)| rolls_back(rules, to, RollbackCause::Forked, before);
    let checks = |peers, forked| move |one: &mut WatchedChain| one.hears(Event::HealthChecked { peers, forked });
    forked(REFERENCE, 10, &checks(4, 2)).shows(&conduct::SHALLOW);
    forked(REFERENCE, 10, &|_| {}).lacks(&conduct::SHALLOW, "makes no health check");
    forked(REFERENCE, 10, &checks(4, 1)).lacks(&conduct::SHALLOW, "1 of 4 peers");
    let late = |one: &mut WatchedChain| {
        one.hears(Event::HealthChecked { peers: 4, forked: 2 });
        one.now = one.now + Duration::from_secs(1);
    };
    forked(REFERENCE, 10, &late).lacks(&conduct::SHALLOW, "makes no health check");
    forked(CORRECTED, 10, &checks(4, 2)).lacks(&conduct::SHALLOW, "no other chain parts");
    let deepest = "base = \"reference\"\nnode = { random_rollback_max = 12 }";
    forked(deepest, 10, &checks(4, 2)).lacks(&conduct::SHALLOW, "leaves 13 blocks, 4 to 12 may be drawn");
}

/// A block of the same height as the tip, by the same delegate.
fn rival(link: &Link) -> Arc<Block> {
    let mut block = (**link.block()).clone();
    block.id = BlockId::Full([1; 32]);
    Arc::new(block)
}

#[test]
fn a_rollback_after_double_forging_has_a_rival_that_came_with_a_download() {
    let double =
        |to, before: &dyn Fn(&mut WatchedChain)| rolls_back(CORRECTED, to, RollbackCause::DoubleForging, before);
    // The node took its last block before in a download.
    let downloads = |one: &mut WatchedChain| one.hears(Event::BlockApplied(one.at(23)));
    let competes = |one: &mut WatchedChain| one.hears(Event::BlockReceived(rival(&one.at(23))));
    let both = |one: &mut WatchedChain| {
        competes(one);
        downloads(one);
    };
    double(10, &both).shows(&conduct::SHALLOW);
    double(10, &competes).lacks(&conduct::SHALLOW, "takes in no block of a download");
    double(10, &downloads).lacks(&conduct::SHALLOW, "no block by the owner of its slot competes");
    let of_others = |one: &mut WatchedChain| {
        let mut block = (*rival(&one.at(23))).clone();
        block.header.generator = one.at(22).block().header.generator;
        one.hears(Event::BlockReceived(Arc::new(block)));
        downloads(one);
    };
    double(10, &of_others).lacks(&conduct::SHALLOW, "no block by the owner of its slot competes");
}

/// Transactions of a block above the one that the node stands on, which could be forged.
fn forgeable(watched: &WatchedChain, height: u32) -> Vec<Arc<SignedTransaction>> {
    let transactions = watched.at(height).block().transactions.clone();
    assert!(!transactions.is_empty(), "the workload sends");
    transactions
}

#[test]
fn a_pool_that_begins_anew_holds_what_the_reverted_blocks_held() {
    let begins_anew = |reverts: bool, keeps: bool| {
        let mut watched = WatchedChain::from(20, CORRECTED);
        let pending = forgeable(&watched, 21);
        watched.hears(Event::PoolAdded(pending.clone()));
        if reverts {
            watched.hears(Event::BlockReverted(watched.at(if keeps { 19 } else { 21 })));
        }
        watched.now = watched.now + Duration::from_secs(8);
        watched.hears(Event::PoolReplaced(Vec::new()));
        watched
    };
    begins_anew(true, true).shows(&conduct::KEPT_IN_ROLLBACK);
    begins_anew(true, false).lacks(&conduct::KEPT_IN_ROLLBACK, "was of a reverted block");
    begins_anew(false, true).lacks(&conduct::KEPT_IN_ROLLBACK, "no block with it");
}

/// A pool holds four at most, and so do blocks.
const FOUR: &str = "base = \"corrected\"\npool = { max_transactions = 4 }";

#[test]
fn a_pool_above_its_limit_began_anew_with_reverted_blocks() {
    let holds = |reverts: bool| {
        let mut watched = WatchedChain::from(20, FOUR);
        let back = [forgeable(&watched, 21), forgeable(&watched, 22)].concat();
        assert!(back.len() > 4, "more than the limit");
        if reverts {
            [22, 21].into_iter().for_each(|height| watched.hears(Event::BlockReverted(watched.at(height))));
        }
        watched.hears(Event::PoolReplaced(back));
        watched
    };
    holds(true).shows(&conduct::POOL_SIZE);
    holds(false).lacks(&conduct::POOL_SIZE, "did not begin anew above its limit");
}

#[test]
fn a_transaction_that_gave_way_was_cheaper_in_a_full_pool() {
    let displaced = |held: usize, paid: u64| {
        let mut watched = WatchedChain::from(20, FOUR);
        let pending = forgeable(&watched, 21);
        watched.hears(Event::PoolAdded(pending[..held].to_vec()));
        watched.hears(Event::PoolEvicted(pending[0].clone()));
        let mut newcomer = pending[0].transaction().clone();
        newcomer.fee = Arktoshi::new(paid).expect("an amount");
        let transaction = Arc::new(SignedTransaction::new(newcomer));
        let error = PoolError::Apply(ApplyError::NotEnoughDelegates);
        watched.hears(Event::PoolRejected(vec![PoolRejection { transaction, error }]));
        watched
    };
    displaced(4, u64::MAX / 2).shows(&conduct::DISPLACED);
    displaced(3, u64::MAX / 2).lacks(&conduct::DISPLACED, "the pool held 3 at most, its limit is 4");
    displaced(4, 1).lacks(&conduct::DISPLACED, "what gave way paid no less");
}

#[test]
fn a_transaction_that_a_pool_lost_went_with_a_block() {
    let lost = |before: &dyn Fn(&mut WatchedChain)| {
        let mut watched = WatchedChain::from(20, CORRECTED);
        let pending = forgeable(&watched, 21);
        watched.hears(Event::PoolAdded(pending.clone()));
        before(&mut watched);
        watched.hears(Event::PoolRemoved(pending[0].id()));
        watched.hears(Event::HealthChecked { peers: 1, forked: 0 });
        watched
    };
    let refuses = |height: u32| {
        move |one: &mut WatchedChain| {
            let block = one.at(height).block().clone();
            one.hears(Event::BlockReceived(block.clone()));
            let why = BlockRejected::AlreadyForged {
                id: block.id,
                height: block.header.height,
                transaction: block.transactions[0].id(),
            };
            one.hears(Event::BlockRefused(Box::new(why)));
        }
    };
    lost(&refuses(21)).shows(&conduct::KEPT);
    lost(&|_| {}).lacks(&conduct::KEPT, "no block");
    let late = |one: &mut WatchedChain| {
        refuses(21)(one);
        one.now = one.now + Duration::from_secs(9);
    };
    lost(&late).lacks(&conduct::KEPT, "no block");
}

/// A vote is dropped in a download, of which one block holds another vote of its sender and a later one takes that back.
#[test]
fn a_pool_that_follows_a_download_may_drop_what_does_not_fit_on_one_of_its_blocks() {
    let dropped_after = |seconds: u64, last: Height| {
        let mut watched = WatchedChain::from(4, CORRECTED);
        let voter = watched.accounts[0].clone();
        let nonce = watched.tree.applied(&watched.at(4)).state.wallet(&voter.address).expect("it has coins").nonce.0;
        let delegate = watched.at(5).block().header.generator;
        let vote = Transaction::vote(Vote::For(delegate)).network(23).nonce(Nonce(nonce + 3));
        let vote = Arc::new(vote.sign(&voter.keys));
        watched.hears(Event::PoolAdded(vec![vote.clone()]));
        watched.now = watched.now + Duration::from_secs(100);
        (5..=last.0).for_each(|height| watched.hears(Event::BlockApplied(watched.at(height))));
        watched.now = watched.now + Duration::from_secs(seconds);
        watched.hears(Event::PoolRemoved(vote.id()));
        watched.hears(Event::HealthChecked { peers: 1, forked: 0 });
        watched
    };
    let is_found = |watched: &WatchedChain| {
        watched.watch.seen().findings().iter().any(|finding| finding.invariant == conduct::KEPT.name)
    };
    assert!(!is_found(&dropped_after(0, Height(6))), "it does not fit on the last block");
    assert!(!is_found(&dropped_after(0, Height(12))), "it did not fit on the way");
    assert!(is_found(&dropped_after(1, Height(12))), "nothing came that it did not fit on");
}

#[test]
fn a_relay_refuses_its_delegates_block_for_a_round_that_it_left_in_the_slot_before() {
    let refused = |takes_the_rounds_end: bool, seconds: u64| {
        // The round of five ends with block 20.
        let mut watched = WatchedChain::from(19, CORRECTED);
        if takes_the_rounds_end {
            watched.hears(Event::BlockApplied(watched.at(20)));
        }
        watched.now = watched.now + Duration::from_secs(seconds);
        let before = watched.tree.applied(&watched.at(19)).state.round().clone();
        let slots = watched.tree.slots();
        let slot = slots.slot(watched.now.seconds());
        let mut block = (**watched.at(21).block()).clone();
        (block.header.generator, block.id) =
            (before.owner(slot).expect("each slot has an owner").public_key, BlockId::Full([1; 32]));
        let (id, height) = (block.id, block.header.height);
        block.header.timestamp = slots.start(slot);
        let (got, expected) = (block.header.generator, Some(watched.at(21).block().header.generator));
        watched.hears(Event::BlockForged(Arc::new(block)));
        let why = BlockRejected::WrongForger { id, height, slot, expected, got };
        watched.hears(Event::BlockRefused(Box::new(why)));
        watched
    };
    refused(true, 7).shows(&conduct::RELAY);
    refused(false, 7).lacks(&conduct::RELAY, "in no round that the node left");
    refused(true, 9).lacks(&conduct::RELAY, "in no round that the node left");
}

#[test]
fn a_relay_refuses_a_reward_that_changed_while_the_block_was_made() {
    // A block at height 21 has another reward.
    let changes = "base = \"corrected\"\n[[network.milestones]]\nheight = 21\nreward = 7";
    let refused = |seconds: u64, reward: Arktoshi| {
        let mut watched = WatchedChain::from(19, changes);
        watched.hears(Event::BlockApplied(watched.at(20)));
        watched.now = watched.now + Duration::from_secs(seconds);
        let mut block = (**watched.at(21).block()).clone();
        block.id = BlockId::Full([1; 32]);
        let (id, height) = (block.id, block.header.height);
        let expected = std::mem::replace(&mut block.header.reward, reward);
        watched.hears(Event::BlockForged(Arc::new(block)));
        let errors = Arc::from([BlockError::Reward { found: reward, expected }]);
        watched.hears(Event::BlockRefused(Box::new(BlockRejected::NotVerified { id, height, errors })));
        watched
    };
    let before = WatchedChain::from(19, changes).at(20).block().header.reward;
    assert_ne!(before, Arktoshi::new(7).expect("an amount"));
    refused(7, before).shows(&conduct::RELAY);
    refused(9, before).lacks(&conduct::RELAY, "gives that reward");
    refused(7, Arktoshi::new(8).expect("an amount")).lacks(&conduct::RELAY, "gives that reward");
}

#[test]
fn too_few_delegates_are_found_whoever_ends_the_round() {
    let mut watched = WatchedChain::from(19, CORRECTED);
    watched.watch = Watch::new(watched.tree.clone(), &watched.at(19), 1, &BTreeSet::from([NODE]), &BTreeSet::new());
    let block = watched.at(20).block().clone();
    let (id, height) = (block.id, block.header.height);
    watched.hears(Event::BlockForged(block));
    watched.hears(Event::BlockRefused(Box::new(BlockRejected::TooFewDelegates { id, height, expected: 6, found: 5 })));
    watched.lacks(&conduct::ENOUGH, "no block of the chain holds a resignation");
}

/// Five nodes before a cut, where they stand on one chain, and while it stands, with 0 to 2 on one chain and 3 and 4 on another.
fn before_and_while_cut() -> [Tips; 2] {
    let text = "version = 1\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n[[fault]]\nkind = \"partition\"\n\
                groups = [[3, 4]]\nfrom = { seconds = 40.0 }\nuntil = { seconds = 300.0 }\n";
    let scenario = Scenario::parse(text, "cut.toml".as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    [30, 180].map(|seconds| {
        stage.run_until(plan.start + Duration::from_secs(seconds));
        stage.world().tips().clone()
    })
}

/// Records of nodes 1 to 4, of which these say that the peer is on another chain.
fn records_of(forked: &[u32]) -> Vec<(NodeId, VerificationResult)> {
    let common = |node| Height(if forked.contains(&node) { 2 } else { 5 });
    let record =
        |node| VerificationResult { my_height: Height(5), his_height: Height(5), highest_common: common(node) };
    (1..5).map(|node| (NodeId(node), record(node))).collect()
}

#[test]
fn a_leaver_counts_peers_where_they_stood_within_the_time_of_a_verification() {
    let [one, two] = before_and_while_cut();
    assert!(one.is_converged() && is_parted(two.of(NODE), two.of(NodeId(3))), "or nothing is shown");
    let forked = |looks: &[&Tips], forked: &[u32]| {
        let looks = looks.iter().map(|tips| (*tips).clone()).collect();
        Numbers::of_leaver(&records_of(forked), two.of(NODE), &looks).forked
    };
    assert_eq!(forked(&[&two, &two], &[]), 2, "where they stand");
    assert_eq!(forked(&[&one, &two], &[]), 2, "where they stand at one of the two looks");
    assert_eq!(forked(&[&two, &one], &[]), 2, "and at the other");
    assert_eq!(forked(&[&one, &one], &[3, 4]), 0, "a false record counts no node");
    assert_eq!(forked(&[&two, &one, &one], &[3]), 1, "a record of where they stood");
    assert_eq!(forked(&[&two, &one, &one], &[]), 0, "and none without one");
    let later = [&[&two][..], &vec![&one; LOOKS]].concat();
    assert_eq!(forked(&later, &[3, 4]), 0, "no verification takes so long");
}

#[test]
fn a_forger_counts_peers_where_they_stood_or_were_known_to_stand() {
    let [one, two] = before_and_while_cut();
    let in_quorum = |looks: [&Tips; 2], forked: &[u32]| {
        Numbers::of_forger(&records_of(forked), &[], two.of(NODE), looks.into_iter()).in_quorum
    };
    assert_eq!(in_quorum([&two, &two], &[3, 4]), 2, "where they stand");
    assert_eq!(in_quorum([&one, &two], &[3, 4]), 4, "where they stood a second before");
    assert_eq!(in_quorum([&two, &two], &[4]), 3, "where it knew them");
}
