//! Several votes of a wallet: the rule in all of its cases, weights against votes that are read from the chain, forks, and what is kept.

use crate::pool::{Bench, FEE};
use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, Request, View, answer},
    check::{
        check_all, check_rebuilt, check_step,
        strategies::{Attempt, Play, Stage, Try},
    },
    ledger::{
        BlockRejected, BlockTree, Link, State,
        codec::{Loader, Save, Saver},
        rules::{VoteRule, VoteShare},
    },
    protocol::{Asset, PublicKey, Transaction, Vote},
    sim::LiveHandle,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use warp::http::Method;

// The rule.

const FULL: VoteRule = VoteRule { most: 2, weight: VoteShare::Full };
const UNIT: VoteRule = VoteRule { most: 3, weight: VoteShare::Unit };
const FOUR: VoteRule = VoteRule { most: 4, weight: VoteShare::Unit };

/// Votes of one wallet, one block each: above 0 for the delegate of this number, below 0 against it. The last one is judged.
type Case = (VoteRule, &'static [i8], Option<&'static str>);

#[test]
fn a_wallet_has_as_many_votes_as_the_rule_says() {
    let twice = Some("the sender wallet has already voted.");
    let two = Some("the sender wallet has 2 votes, and rules.ledger.votes.most allows no more.");
    let three = Some("the sender wallet has 3 votes, and rules.ledger.votes.most allows no more.");
    let (none, other) = (Some("the wallet has not voted."), Some("the wallet vote does not match."));
    let cases: [Case; 19] = [
        (FOUR, &[1, 2, 3, 2, -2, 4], None),
        (FULL, &[1, 2], None),
        (FULL, &[1, 1], twice),
        (FULL, &[1, 2, 1], twice),
        (FULL, &[1, 2, 2], twice),
        (FULL, &[1, 2, 3], two),
        (FULL, &[1, 2, -1, 3], None),
        (FULL, &[1, 2, -1, 2], twice),
        (FULL, &[1, 2, -2, 2], None),
        (FULL, &[1, 2, -3], other),
        (FULL, &[1, 2, -1, -1], other),
        (FULL, &[1, 2, -1, -2], None),
        (FULL, &[1, 2, -1, -2, -2], none),
        (UNIT, &[1, 1, 1], None),
        (UNIT, &[1, 1, 1, 1], three),
        (UNIT, &[1, 2, 1, 3], three),
        (UNIT, &[1, 2, 1, -1, -1, 3], None),
        (UNIT, &[1, 2, 1, -1, -1, -1], other),
        (UNIT, &[-1], none),
    ];
    for (rule, votes, refusal) in cases {
        let mut bench = Bench::new(|rules| rules.ledger.votes = rule);
        let delegates: Vec<PublicKey> = bench.testnet.delegates.iter().map(|one| *one.keys.public()).collect();
        let (mut cast, voter) = (Vec::new(), bench.keys(1).public().address(23));
        for (place, vote) in votes.iter().enumerate() {
            let key = delegates[usize::from(vote.unsigned_abs()) - 1];
            let vote = if *vote > 0 { Vote::For(key) } else { Vote::Against(key) };
            let signed = bench.sign(Transaction::vote(vote), 1, place as u64 + 1, FEE);
            let judged = refusal.filter(|_| place + 1 == votes.len());
            let pooled = bench.submit(std::slice::from_ref(&signed));
            assert_eq!(pooled.accept.is_empty(), judged.is_some(), "{votes:?}: the pool says {:?}", pooled.errors);
            match (bench.try_forge(vec![signed]), judged) {
                (Err(BlockRejected::NotApplicable { source, .. }), Some(why)) => {
                    assert!(source.to_string().ends_with(why), "{votes:?}: {source}");
                }
                (Ok(()), None) => follow(&mut cast, vote),
                (other, _) => panic!("{votes:?}: {other:?}, and should be refused: {judged:?}"),
            }
            let state = &bench.tree.applied(&bench.tip).state;
            assert_eq!(state.wallet(&voter).expect("an account").votes().collect::<Vec<_>>(), cast, "{votes:?}");
        }
    }
}

/// Changes a list of votes: the newest one for a delegate is taken back.
fn follow(cast: &mut Vec<PublicKey>, vote: Vote) {
    match vote {
        Vote::For(key) => cast.push(key),
        Vote::Against(key) => {
            let newest = cast.iter().rposition(|one| *one == key).expect("it is one of them");
            cast.remove(newest);
        }
    }
}

// The API.

fn get(bench: &Bench, target: &str) -> Value {
    let view = View::new(NodeId(0), bench.tree.clone(), bench.tip.clone(), SimTime::default());
    let context = ApiContext::new(view, LiveHandle::ended());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    let request = Request::new(Method::GET, target);
    let reply = runtime.block_on(answer(&context, &request, async { Ok(Vec::new()) }));
    serde_json::from_slice(&reply.body).expect("it answers in JSON")
}

#[test]
fn the_api_names_all_votes_of_a_wallet_and_all_voters_of_a_delegate() {
    let mut bench = Bench::new(|rules| rules.ledger.votes = UNIT);
    let delegates: Vec<PublicKey> = bench.testnet.delegates.iter().map(|one| *one.keys.public()).collect();
    let vote = |bench: &Bench, delegate: usize, account, nonce| {
        bench.sign(Transaction::vote(Vote::For(delegates[delegate])), account, nonce, FEE)
    };
    for (nonce, delegate) in [(1, 0), (2, 1), (3, 1)] {
        let transaction = vote(&bench, delegate, 1, nonce);
        bench.forge(vec![transaction]);
    }
    let transaction = vote(&bench, 1, 2, 1);
    bench.forge(vec![transaction]);
    let [three, one] = [1, 2].map(|account| bench.keys(account).public().address(23).to_string());
    let wallet = get(&bench, &format!("/api/wallets/{three}"));
    let data = &wallet["data"];
    assert_eq!((&data["vote"], &data["attributes"]["vote"]), (&json!(delegates[0]), &json!(delegates[0])));
    assert_eq!(data["attributes"]["votes"], json!([delegates[0], delegates[1], delegates[1]]));
    let wallet = get(&bench, &format!("/api/wallets/{one}"));
    assert_eq!(wallet["data"]["attributes"]["vote"], json!(delegates[1]));
    assert_eq!(wallet["data"]["attributes"].get("votes"), None, "one vote is shown as ever");
    for (username, key, others) in [("genesis_1", 0, vec![&three]), ("genesis_2", 1, vec![&three, &one])] {
        let own = delegates[key].address(23).to_string();
        let rows = get(&bench, &format!("/api/delegates/{username}/voters"));
        let found: BTreeSet<&str> =
            rows["data"].as_array().expect("a list").iter().filter_map(|row| row["address"].as_str()).collect();
        assert_eq!(found, others.into_iter().chain([&own]).map(String::as_str).collect(), "{username}");
        assert_eq!(rows["meta"]["totalCount"], found.len());
    }
    // An account has a million coins, less the fees, and the forgers got these.
    let state = &bench.tree.applied(&bench.tip).state;
    let coin = |key: &PublicKey| state.wallet(&key.address(23)).expect("it has coins").balance.0;
    let [first, second] = [1, 2].map(|account| coin(bench.keys(account).public()) / 3);
    let shown = get(&bench, "/api/delegates/genesis_2");
    assert_eq!(shown["data"]["votes"].to_string(), (coin(&delegates[1]) / 3 + 2 * first + second).to_string());
}

// The weights.

/// The weight of each delegate, from the votes that stand on the chain and from balances and locks of wallets.
fn weights(tree: &BlockTree, tip: &Arc<Link>, rule: VoteRule) -> BTreeMap<PublicKey, i128> {
    let mut votes: BTreeMap<_, Vec<PublicKey>> = BTreeMap::new();
    let mut chain: Vec<Arc<Link>> = std::iter::successors(Some(tip.clone()), |link| link.parent()).collect();
    chain.reverse();
    for transaction in chain.iter().flat_map(|link| &link.block().transactions) {
        if let Asset::Vote(vote) = transaction.asset() {
            follow(votes.entry(transaction.sender_address()).or_default(), *vote);
        }
    }
    let (mut weights, applied) = (BTreeMap::new(), tree.applied(tip));
    for wallet in applied.state.wallets() {
        let locked: i128 =
            wallet.htlc.iter().flat_map(|htlc| htlc.locks.values()).map(|lock| i128::from(lock.amount.value())).sum();
        let coin = wallet.balance.0 + locked;
        let of_wallet = votes.remove(&wallet.address).unwrap_or_default();
        assert_eq!(wallet.votes().collect::<Vec<_>>(), of_wallet);
        for key in of_wallet {
            *weights.entry(key).or_default() += match rule.weight {
                VoteShare::Full => coin,
                VoteShare::Unit => {
                    assert!(coin >= 0, "no voter is in debt");
                    coin / i128::from(rule.most)
                }
            };
        }
    }
    weights
}

fn assert_weights(tree: &BlockTree, tip: &Arc<Link>, rule: VoteRule) {
    let (mut expected, applied) = (weights(tree, tip, rule), tree.applied(tip));
    for wallet in applied.state.delegates() {
        let delegate = wallet.delegate.as_ref().expect("it is one");
        let expected = wallet.public_key.and_then(|key| expected.remove(&key)).unwrap_or_default();
        assert_eq!(delegate.vote_balance.0, expected, "{rule:?}: {} after {tip:?}", delegate.username);
    }
    assert!(expected.values().all(|weight| *weight == 0), "votes are for delegates: {expected:?}");
}

/// Blocks of votes, and of all that moves coin. Some go back, so there are forks.
fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let delegate = 0..6usize;
    let attempt = prop_oneof![
        6 => delegate.clone().prop_map(|delegate| Attempt::Vote { delegate }),
        3 => delegate.prop_map(|delegate| Attempt::Unvote { delegate }),
        2 => (0..Play::SENDERS, 1..9_999_999_999_u64).prop_map(|(to, amount)| Attempt::Transfer { to, amount }),
        1 => ([0..Play::SENDERS, 0..Play::SENDERS], [1..999_u64, 1..9_999_999_999])
            .prop_map(|(to, amounts)| Attempt::MultiPayment { to, amounts }),
        2 => (0..Play::SENDERS, 1..9_999_999_999_u64, 1..6_i8)
            .prop_map(|(to, amount, blocks)| Attempt::Lock { to, amount, blocks }),
        2 => (0..6usize, any::<bool>()).prop_map(|(lock, right)| Attempt::Claim { lock, right }),
        1 => (0..6usize).prop_map(|lock| Attempt::Refund { lock }),
        1 => (0..3u8).prop_map(|name| Attempt::Register { name }),
        1 => Just(Attempt::Resign),
    ];
    let one = (0..Play::SENDERS, attempt).prop_map(|(sender, attempt)| Try { sender, attempt, flaw: None });
    let back = prop_oneof![5 => Just(0u32), 1 => 1..6u32];
    let stage = (0..2u32, back, prop::collection::vec(one, 0..12)).prop_map(|(missed, back, tries)| Stage {
        missed,
        back,
        tries,
    });
    prop::collection::vec(stage, 1..16)
}

fn bytes(tree: &Arc<BlockTree>, state: &State) -> Vec<u8> {
    let mut out = Saver::new(tree);
    state.save(&mut out);
    out.finish().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// On every fork: weights are those counted from the chain's votes, the checker agrees, a state that is computed anew or read again is
    /// the same, and so is a state to which another fork has come back.
    #[test]
    fn weights_are_those_of_the_votes_on_the_chain(
        stages in stages(),
        rule in prop_oneof![
            Just(VoteRule::default()),
            Just(VoteRule { most: 3, weight: VoteShare::Full }),
            Just(VoteRule { most: 4, weight: VoteShare::Unit }),
        ],
    ) {
        let mut play = Play::with_rules(1_000, |rules| rules.ledger.votes = rule);
        let mut states = BTreeMap::new();
        for stage in &stages {
            play.play(stage).expect("each of them was applied to a scratch state");
            let applied = play.tree.applied(&play.tip);
            assert_weights(&play.tree, &play.tip, rule);
            check_all(&play.tree, &play.tip).unwrap_or_else(|violation| panic!("{violation}"));
            check_step(&play.tree, &play.tip, &applied.state).unwrap_or_else(|violation| panic!("{violation}"));
            let written = bytes(&play.tree, &applied.state);
            let mut from = Loader::new(written.clone().into(), &play.tree, Arc::new([]));
            let read = State::load(&mut from).expect("it was written");
            from.finish().expect("nothing is left");
            prop_assert!(read.wallets().eq(applied.state.wallets()));
            prop_assert!(bytes(&play.tree, &read) == written);
            states.insert(play.tip.id(), (play.tip.clone(), written));
        }
        for (link, written) in states.values() {
            prop_assert!(&bytes(&play.tree, &play.tree.applied(link).state) == written);
            check_rebuilt(&play.tree, link).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }
}

/// The property above reaches wallets with all votes, delegates with several votes of one wallet, and both refusals.
#[test]
fn random_votes_reach_all_that_the_rule_says() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut full_houses, mut doubles, mut reasons) = (0, 0, BTreeMap::new());
    for case in 0..30 {
        let weight = if case % 2 == 0 { VoteShare::Full } else { VoteShare::Unit };
        let mut play = Play::with_rules(1_000, |rules| rules.ledger.votes = VoteRule { most: 3, weight });
        for stage in &stages().new_tree(&mut runner).expect("a value").current() {
            let outcome = play.play(stage).expect("the ledger agrees with itself");
            outcome.refused.iter().for_each(|(_, why)| *reasons.entry(why.to_string()).or_insert(0) += 1);
        }
        for wallet in play.tree.applied(&play.tip).state.wallets() {
            let votes: Vec<PublicKey> = wallet.votes().collect();
            full_houses += usize::from(votes.len() == 3);
            doubles += usize::from(votes.iter().enumerate().any(|(place, key)| votes[..place].contains(key)));
        }
    }
    assert!(full_houses > 10 && doubles > 5, "{full_houses}, {doubles}");
    for why in ["already voted.", "has 3 votes", "has not voted.", "vote does not match."] {
        assert!(reasons.iter().any(|(reason, count)| reason.contains(why) && *count > 3), "{why}: {reasons:?}");
    }
}
