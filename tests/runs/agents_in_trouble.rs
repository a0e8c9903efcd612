//! Agents where things go wrong: transactions that are lost, refused or cannot be paid, full pools and queues, nodes that are down, forks, and
//! copies of a run.

use crate::agents::{COIN, Played, head, play};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    ledger::Balance,
    protocol::{Asset, Height},
    scenario::Scenario,
    sim::{Observer, SeedTree, stage::inline::InlineStage, world::Moment},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

impl Played {
    /// The heights of the payments of a delegate, one for each recipient.
    fn paid_at(&self, name: &str) -> Vec<u32> {
        self.payments(&[name]).into_iter().map(|(height, ..)| height).collect()
    }

    /// The number of voters of the first group that have a vote after a block.
    fn voting(&self, height: u32) -> usize {
        self.votes(0, &self.state(height)).iter().flatten().count()
    }
}

/// Pools lose most of the votes: what was lost is handed in again.
#[test]
fn a_lost_vote_is_handed_in_again() {
    let group = "[[agents]]\nkind = 'apathy'\nvoters = 600\nstake = 60_000\n\
                 [[fault]]\nkind = 'restart'\nnodes = { from = 0, to = 4 }\nkeep_pool = false\nfrom = { height = 7 }\n";
    let played = play(&format!("{}{group}", head(40, 5, 0)), 1);
    let early = played.votes(0, &played.state(60)).iter().flatten().count();
    assert!(early < 600, "or nothing was lost: {early}");
    assert_eq!(played.votes(0, &played.last()).iter().flatten().count(), 600);
}

/// A voter whose coins are enough for one fee and not for two keeps its vote.
#[test]
fn a_voter_that_cannot_pay_a_change_keeps_its_vote() {
    let group = "[[agents]]\nkind = 'churn'\nchance = 1.0\nvoters = 10\nstake = 25\n";
    let played = play(&format!("{}{group}", head(30, 5, 2)), 1);
    let all = |height| played.votes(0, &played.state(height)).iter().flatten().count();
    assert_eq!(all(played.tip.height().0), 10, "{:?}", played.votes(0, &played.last()));
    let spent = played.testnet.voters[0].iter().all(|voter| {
        let state = played.last();
        let wallet = state.wallet(&voter.address).expect("it has voted");
        wallet.balance < Balance(2 * i128::from(COIN))
    });
    assert!(spent, "each could pay one more");
}

/// A chance that is next to nothing draws next to none.
#[test]
fn a_tiny_chance_draws_none() {
    let group = "[[agents]]\nkind = 'churn'\nchance = 1e-17\nvoters = 50\nstake = 1000\n";
    let played = play(&format!("{}{group}", head(9, 5, 3)), 1);
    let first = played.votes(0, &played.state(15));
    assert!(first.iter().all(Option::is_some), "each has its first vote: {first:?}");
    assert_eq!(played.votes(0, &played.last()), first);
}

/// The payments of a delegate whose node was down when the first was handed in come after the patience with it: a delegate hands in at its
/// own node, and payments behind the lost one cannot pass it.
#[test]
fn a_lost_payment_is_handed_in_again() {
    let group = "[[agents]]\nkind = 'apathy'\nvoters = 20\nstake = 60_000\ndelegates = ['genesis_2']\nshare = 0.5\npay_rounds = 3\n\
                 [[fault]]\nkind = 'crash'\nnodes = [1]\nfrom = { height = 36 }\nuntil = { height = 50 }\n";
    let played = play(&format!("{}{group}", head(40, 7, 0)), 1);
    let heights = played.paid_at("genesis_2");
    // Payments are due at 21, 42, 63, ... That of 42 is lost.
    let (early, late): (Vec<u32>, Vec<u32>) = heights.iter().partition(|height| **height < 42);
    assert!(!early.is_empty() && late.first().is_some_and(|first| (162..=170).contains(first)), "{heights:?}");
    assert!(late.len() >= 10 * early.len(), "the others follow: {heights:?}");
}

/// A delegate whose node was down for long has more payments than may be pending. They follow as the first ones are forged.
#[test]
fn more_payments_than_may_be_pending_are_all_made() {
    let group = "[[agents]]\nkind = 'vote-buying'\nvoters = 3\nstake = 300\nprice = 1000\nasks_most = 0\ndelegates = ['genesis_2']\n\
                 pay_rounds = 1\nnodes = [0]\n\
                 [[fault]]\nkind = 'crash'\nnodes = [1]\nfrom = { height = 12 }\nuntil = { height = 420 }\n";
    let played = play(&format!("{}{group}", head(80, 7, 0)), 1);
    let heights = played.paid_at("genesis_2");
    let after: Vec<u32> = heights.iter().copied().filter(|height| *height >= 420).collect();
    assert!(heights.len() - after.len() <= 6, "the node was down: {heights:?}");
    // One payment of three recipients a round: more than 70 of 80 rounds.
    assert!(after.len() > 3 * 70, "{} payments after height 420: {after:?}", after.len());
}

/// A delegate whose payment is stuck promises no coins a second time.
#[test]
fn no_coin_is_promised_twice() {
    let plain = "[[agents]]\nkind = 'vote-buying'\nvoters = 1\nstake = 100\nprice = 1\nasks_most = 0\ndelegates = ['genesis_2']\n";
    let before = play(&format!("{}{plain}", head(2, 7, 0)), 1).state(1);
    let address = before.address_of("genesis_2").expect("it is registered");
    let has = before.wallet(address).expect("it has coins").balance.or_zero();
    let group = format!(
        "[[agents]]\nkind = 'vote-buying'\nvoters = 1\nstake = 100\nprice = {}\nasks_most = 0\ndelegates = ['genesis_2']\n\
         pay_rounds = 1\nnodes = [0]\n\
         [[fault]]\nkind = 'crash'\nnodes = [1]\nfrom = {{ height = 12 }}\nuntil = {{ height = 60 }}\n",
        has / 10 * 6
    );
    let played = play(&format!("{}{group}", head(40, 7, 0)), 1);
    assert_eq!(played.paid_at("genesis_2").len(), 1, "its coins are enough for one");
    // The node was down when the payment was handed in first.
    assert_eq!(played.counts.refused, [("ERR_UNKNOWN", 1)].into(), "{:?}", played.counts);
}

/// A full pool refuses votes. Each is handed in once in 120 blocks until it is forged.
#[test]
fn votes_that_a_full_pool_refuses_are_waited_for() {
    let group =
        "[rules]\npool.max_transactions = 5\n[[agents]]\nkind = 'apathy'\nvoters = 100\nstake = 100_000\nnodes = [0]\n";
    let played = play(&format!("{}{group}", head(40, 7, 0)), 1);
    // At heights 7, 127 and 247 the pool takes five.
    assert_eq!((played.voting(120), played.voting(240), played.voting(280)), (5, 10, 15));
    assert_eq!(played.counts.submitted, 100 + 95 + 90);
}

/// Votes go to the nodes of the group, and each voter's to one of them.
#[test]
fn voters_hand_in_at_their_nodes() {
    let group = "[[agents]]\nkind = 'apathy'\nvoters = 10\nstake = 1000\nnodes = [0, 1]\n\
                 [[fault]]\nkind = 'crash'\nnodes = [0]\nfrom = { height = 2 }\nuntil = { height = 68 }\n";
    let played = play(&format!("{}{group}", head(10, 7, 0)), 1);
    let votes = played.votes(0, &played.state(60));
    let voting: Vec<usize> = (0..10).filter(|voter| votes[*voter].is_some()).collect();
    assert_eq!(voting, [1, 3, 5, 7, 9]);
}

/// A delegate that forges no block promises nothing, whatever it offers.
#[test]
fn the_best_payer_is_one_that_forges() {
    let group = "[[agents]]\nkind = 'best-payer'\nvoters = 20\nstake = 40_000_000\nchance = 1\ndelegates = ['genesis_2']\nshare = 1\n\
                 nodes = [0]\n[[agents]]\nkind = 'cartel'\ndelegates = ['genesis_3']\nshare = 0.1\n";
    let crash = "[[fault]]\nkind = 'crash'\nnodes = [1]\nfrom = { height = 2 }\nuntil = { height = 54 }\n";
    for (fault, best) in [("", "genesis_2"), (crash, "genesis_3")] {
        let played = play(&format!("{}{group}{fault}", head(8, 7, 0)), 1);
        let votes = played.votes(0, &played.state(40));
        assert!(votes.iter().all(|vote| vote.as_deref() == Some(best)), "{best}: {votes:?}");
    }
}

/// Seats count for a group, not for all groups together.
#[test]
fn seats_of_two_groups_are_two_counts() {
    let groups =
        "[[agents]]\nkind = 'cartel'\ndelegates = [0, 1]\n[[agents]]\nkind = 'cartel'\ndelegates = [2, 3, 4]\n";
    let played = play(&format!("{}{groups}", head(3, 5, 0)), 1);
    assert!(played.elections.iter().all(|(_, set)| set.captured == 3), "{:?}", played.elections);
}

const CHURN: &str = "[[agents]]\nkind = 'churn'\nchance = 1\nvoters = 40\nstake = 1000\n[[agents]]\nkind = 'churn'\nchance = 1\nvoters = 40\n\
                     stake = 1000\n";

/// Copies of a run that draw anew decide anew, each group for itself, and what was drawn anew is kept in the bytes of a moment.
#[test]
fn agents_of_a_copy_draw_anew() {
    let scenario = Scenario::parse(&format!("{}{CHURN}", head(9, 7, 3)), Path::new("agents.toml")).expect("it is one");
    let seeds = SeedTree::new(1);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    let at = |slots: u64| plan.start + std::time::Duration::from_secs(8 * slots);
    stage.run_until(at(25));
    let moment = stage.moment();
    let votes = |anew: Option<u64>, through_bytes: bool| {
        let mut copy = InlineStage::at(&moment);
        if let Some(seed) = anew {
            copy.draw_anew(SeedTree::new(seed));
        }
        if through_bytes {
            let bytes = copy.moment().to_bytes().0;
            copy = InlineStage::at(&Moment::from_bytes(bytes, &plan, &[]).expect("it was written down"));
        }
        copy.run_until(at(50));
        let tip = copy.world().tips().winning().clone();
        assert!(tip.height() > Height(40));
        let state = &plan.tree.applied(&tip).state;
        let of_group = |group: usize| {
            let voters = testnet.voters[group].iter();
            voters.map(|voter| state.wallet(&voter.address).and_then(|wallet| wallet.vote)).collect::<Vec<_>>()
        };
        [of_group(0), of_group(1)]
    };
    let one = votes(Some(8), false);
    assert_ne!(one[0], one[1], "each group draws for itself");
    assert_eq!(one, votes(Some(8), false));
    assert_ne!(one, votes(Some(9), false));
    assert_ne!(one, votes(None, false));
    assert_eq!(one, votes(Some(8), true));
}

/// The greatest sum that a transaction pays, of all that were handed in at a node.
#[derive(Clone, Default)]
struct Greatest(Arc<Mutex<u64>>);

impl Observer for Greatest {
    fn observe(&mut self, _now: SimTime, _node: NodeId, event: &Event) {
        let Event::PoolAdded(added) = event else { return };
        let mut greatest = self.0.lock().expect("no observer panics");
        for transaction in added.iter() {
            let sum = match transaction.asset() {
                Asset::MultiPayment { payments } => payments.iter().map(|payment| payment.amount.value()).sum(),
                _ => transaction.amount().value(),
            };
            *greatest = (*greatest).max(sum);
        }
    }
}

/// Agents see the highest chain. Where another chain becomes the highest one, delegates share what they have earned there, and no more.
#[test]
fn a_fork_makes_no_delegate_pay_what_it_has_not_earned() {
    let text = "version = 1\nrounds = 30\ncrypto = 'modelled'\n[network]\ndelegates = 4\nreward = 200_000_000\n\
                [rules]\nbase = 'corrected'\nminimum_network_reach = false\nnode.fork_choice = 'longest-chain'\n\
                [[agents]]\nkind = 'apathy'\nvoters = 20\nstake = 60_000\n\
                delegates = ['genesis_1', 'genesis_2', 'genesis_3', 'genesis_4']\nshare = 0.5\npay_rounds = 1\n\
                [[fault]]\nkind = 'partition'\ngroups = [['genesis_1', 'genesis_2']]\nfrom = { height = 10 }\nuntil = { height = 30 }\n";
    let scenario = Scenario::parse(text, Path::new("agents.toml")).expect("it is one");
    // In these runs a delegate has earned less on the chain that agents look at than on the one before.
    for seed in [1, 4, 5] {
        let seeds = SeedTree::new(seed);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let greatest = Greatest::default();
        scenario.play_inline(&plan, vec![Box::new(greatest.clone())], |_| true);
        let greatest = *greatest.0.lock().expect("it is over");
        // All rewards together are 2 coins for each of 120 blocks, and 20 voters pay 1 coin each for their vote.
        assert!((1..300 * COIN).contains(&greatest), "seed {seed}: {greatest}");
    }
}
