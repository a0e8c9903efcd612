//! The judge on chains whose wallets have several votes: it finds each wrong vote and each wrong weight.

use super::{Tamper, check_step, delegate, key, played, tampered};
use crate::{
    check::check_all,
    ledger::{Balance, BlockTree, Link},
    protocol::Arktoshi,
};
use std::sync::Arc;

const FULL: &str = "most = 3, weight = \"full\"";
const UNIT: &str = "most = 4, weight = \"unit\"";

/// Voters that choose anew at the ends of rounds, and a voter that pays, locks and gets back coin while it has several votes.
fn chain(rule: &str) -> (Arc<BlockTree>, Vec<Arc<Link>>) {
    let mut text = format!(
        "version = 1\nrounds = 12\ncrypto = \"modelled\"\n[network]\ndelegates = 4\nstandby = 2\nreward = 7\n\
         [rules]\nledger.votes = {{ {rule} }}\n[[agents]]\nkind = \"churn\"\nchance = 0.5\nvoters = 5\nstake = 1_001\n"
    );
    let mut act = |height: u32, does: &str, more: &str| {
        text += &format!("[[action]]\nheight = {height}\nby = \"account_1\"\ndoes = \"{does}\"\n{more}");
    };
    act(3, "vote", "to = \"genesis_2\"\n");
    act(4, "vote", "to = \"genesis_5\"\n");
    act(5, "vote", "to = \"genesis_6\"\n");
    act(6, "transfer", "to = \"account_2\"\namount = 12345\n");
    act(7, "lock", "name = \"l\"\nto = \"account_2\"\namount = 9\nblocks = 6\n");
    act(8, "unvote", "to = \"genesis_5\"\n");
    act(9, "vote", "to = \"genesis_1\"\n");
    act(22, "refund", "name = \"l\"\n");
    played(&text)
}

/// Each mistake, and the judge's words for it.
#[expect(clippy::unit_arg, reason = "each is one expression, which says what is changed")]
const TAMPERS: [(&str, Tamper); 7] = [
    ("vote of", |wallet| wallet.tamper_with_later_votes(|votes| _ = votes.pop())),
    ("vote of", |wallet| wallet.tamper_with_later_votes(|votes| votes.push(votes[0]))),
    ("vote of", |wallet| wallet.tamper_with_later_votes(|votes| votes[0] = key())),
    ("vote of", |wallet| {
        let first = wallet.votes().nth(1).and(wallet.vote)?;
        wallet.tamper_with_later_votes(|votes| votes.push(first))
    }),
    ("vote of", |wallet| {
        let second = wallet.votes().nth(1)?;
        wallet.vote = Some(second);
        Some(())
    }),
    ("weight of", |wallet| Some(delegate(wallet)?.vote_balance += Balance(1))),
    ("weight of", |wallet| Some(delegate(wallet)?.vote_balance = Balance::ZERO - Arktoshi::coins(1))),
];

#[test]
fn each_wrong_vote_and_weight_is_found_where_wallets_have_several() {
    for rule in [FULL, UNIT] {
        let (tree, chain) = chain(rule);
        let last = tree.applied(chain.last().expect("it has blocks"));
        assert!(last.state.wallets().filter(|wallet| wallet.votes().nth(1).is_some()).count() > 3, "{rule}");
        for link in &chain {
            check_step(&tree, link, &tree.applied(link).state).unwrap_or_else(|why| panic!("{rule}: {why}"));
            check_all(&tree, link).unwrap_or_else(|why| panic!("{rule}: {why}"));
        }
        for (place, (said, tamper)) in TAMPERS.into_iter().enumerate() {
            for touched in [true, false] {
                let states = chain.iter().skip(1).flat_map(|link| {
                    let before = tree.applied(&link.parent().expect("it is not genesis"));
                    let states = tampered(&before.state, &tree.applied(link).state, touched, tamper);
                    states.into_iter().map(move |state| (link, state))
                });
                let states: Vec<_> = states.take(6).collect();
                assert!(!states.is_empty(), "{rule}, {place}: no wallet has it: {said}");
                for (link, state) in states {
                    let violation = check_step(&tree, link, &state).expect_err(&format!("{rule}, {place}: {said}"));
                    assert!(violation.what.contains(said) || !touched || said == "vote of", "{place}: {violation}");
                }
            }
        }
    }
}

/// A ledger that took a unit for a full vote, or three votes for four, makes blocks that the judge does not accept.
#[test]
fn a_chain_of_another_rule_of_votes_is_found() {
    let (full, other) = (chain(FULL), chain(UNIT));
    for ((tree, chain), (judge, _)) in [(&full, &other), (&other, &full)] {
        let wrong = chain.iter().filter(|link| check_step(judge, link, &tree.applied(link).state).is_err());
        assert!(wrong.count() > 5);
    }
}
