//! Rules of blocks and votes, each in all of its cases: who may vote when, whose signature counts beside whose, and from which
//! height a constant of blocks binds.

use crate::pool::{Bench, FEE};
use dposlab::{
    ledger::BlockRejected,
    protocol::{
        Address, Arktoshi, BlockError, KeyPair, Milestones, Nonce, PublicKey, SignedTransaction, Transaction, Vote,
        keys::multisignature_key,
    },
};
use serde_json::Value;
use std::sync::Arc;

// Votes.

/// The target of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Live,
    Resigned,
    Stranger,
}

/// The vote of the voter before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nobody,
    Target,
    Another,
}

/// The voter's account, and that of the sixth delegate, without whom nobody could resign.
const VOTER: usize = 1;
const SIXTH: usize = 2;

/// A chain on which the voter votes as said and the target is what it is to be, and the target's key.
fn poll(target: Target, before: Before) -> (Bench, PublicKey) {
    let mut bench = Bench::new(|_| {});
    let delegate = |bench: &Bench, index: usize| *bench.testnet.delegates[index].keys.public();
    let key = if target == Target::Stranger { *bench.keys(3).public() } else { delegate(&bench, 0) };
    bench.forge(vec![bench.sign(Transaction::delegate_registration("sixth"), SIXTH, 1, Arktoshi::coins(25).value())]);
    let voted = match before {
        Before::Nobody => None,
        Before::Target => Some(key),
        Before::Another => Some(delegate(&bench, 1)),
    };
    if let Some(voted) = voted {
        bench.forge(vec![bench.sign(Transaction::vote(Vote::For(voted)), VOTER, 1, FEE)]);
    }
    if target == Target::Resigned {
        let resignation = Transaction::delegate_resignation().nonce(Nonce(3)).fee(Arktoshi::coins(25));
        bench.forge(vec![Arc::new(resignation.sign(&bench.testnet.delegates[0].keys))]);
    }
    (bench, key)
}

/// Why a vote is refused, by the contract; `None` where it counts.
fn refusal(target: Target, before: Before, is_for: bool) -> Option<&'static str> {
    match (is_for, before, target) {
        (true, Before::Target | Before::Another, _) => Some("the sender wallet has already voted."),
        (true, Before::Nobody, Target::Resigned) => Some("it votes for a resigned delegate."),
        (false, Before::Nobody, _) => Some("the wallet has not voted."),
        (false, Before::Another, _) => Some("the wallet vote does not match."),
        (_, _, Target::Stranger) => Some("only delegates can be voted."),
        (true, Before::Nobody, Target::Live) | (false, Before::Target, _) => None,
    }
}

/// Source: consensus.md 4.5 type 3.
#[test]
fn a_vote_counts_or_not_by_who_it_is_for_and_what_was_voted_before() {
    for target in [Target::Live, Target::Resigned, Target::Stranger] {
        for before in [Before::Nobody, Before::Target, Before::Another] {
            // Nobody can have voted for a stranger.
            if (target, before) == (Target::Stranger, Before::Target) {
                continue;
            }
            for is_for in [true, false] {
                let (mut bench, key) = poll(target, before);
                let vote = Transaction::vote(if is_for { Vote::For(key) } else { Vote::Against(key) });
                let vote = bench.sign(vote, VOTER, 1 + u64::from(before != Before::Nobody), FEE);
                let case = format!("{target:?}, voted before: {before:?}, for: {is_for}");
                let wanted = refusal(target, before, is_for);
                let pooled = bench.submit(std::slice::from_ref(&vote));
                assert_eq!(pooled.accept.is_empty(), wanted.is_some(), "{case}: the pool says {:?}", pooled.errors);
                let forged = bench.try_forge(vec![vote]);
                let state = &bench.tree.applied(&bench.tip).state;
                let voted = state.wallet(&address(bench.keys(VOTER))).expect("an account").vote;
                match (forged, wanted) {
                    (Err(BlockRejected::NotApplicable { source, .. }), Some(why)) => {
                        assert!(source.to_string().to_lowercase().contains(why), "{case}: {source}");
                    }
                    (Ok(()), None) => assert_eq!(voted, is_for.then_some(key), "{case}"),
                    (other, _) => panic!("{case}: {other:?}, and should be refused: {wanted:?}"),
                }
            }
        }
    }
}

fn address(keys: &KeyPair) -> Address {
    keys.public().address(23)
}

// Signatures.

/// The signature of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signed {
    /// By its sender.
    Rightly,
    /// By somebody else.
    Wrongly,
    /// By two of the three owners of a shared wallet that asks for two.
    ByTwo,
    /// By one of them, and a stranger.
    ByOneAndAStranger,
}

impl Signed {
    const ALL: [Self; 4] = [Self::Rightly, Self::Wrongly, Self::ByTwo, Self::ByOneAndAStranger];

    fn holds(self) -> bool {
        matches!(self, Self::Rightly | Self::ByTwo)
    }
}

/// A chain with two wallets that are shared by the accounts 1 to 3 and by the accounts 4 to 6, both with coin. Says their keys.
fn shared() -> (Bench, [PublicKey; 2]) {
    let mut bench = Bench::new(|_| {});
    let mut wallets = Vec::new();
    for first in [1, 4] {
        let owners = owners(&bench, first);
        let publics: Vec<PublicKey> = owners.iter().map(|keys| *keys.public()).collect();
        let wallet = multisignature_key(2, &publics).expect("keys on the curve have a sum");
        let unsigned = Transaction::multi_signature(2, publics).nonce(Nonce(1)).fee(Arktoshi::coins(15));
        let unsigned = unsigned.sender(*owners[0].public());
        let signed = (0..3).fold(unsigned, |unsigned, index| unsigned.multi_sign(index as u8, &owners[index]));
        let pay = Transaction::transfer(wallet.address(23), Arktoshi::coins(10));
        let pay = bench.sign(pay, first, 2, FEE);
        bench.forge(vec![Arc::new(signed.sign(&owners[0]).finish()), pay]);
        wallets.push(wallet);
    }
    (bench, [wallets[0], wallets[1]])
}

fn owners(bench: &Bench, first: usize) -> Vec<KeyPair> {
    (first..first + 3).map(|account| bench.keys(account).clone()).collect()
}

/// A transfer by a wallet of its own for each place.
fn transfer(bench: &Bench, wallets: [PublicKey; 2], place: usize, signed: Signed) -> Arc<SignedTransaction> {
    let builder = Transaction::transfer(address(bench.keys(0)), Arktoshi::coins(1)).nonce(Nonce(1));
    let (own, stranger) = (bench.keys(7 + place), bench.keys(0));
    let owners = owners(bench, [1, 4][place]);
    Arc::new(match signed {
        Signed::Rightly => builder.sign(own),
        Signed::Wrongly => builder.sender(*own.public()).sign(stranger).finish(),
        Signed::ByTwo => builder.sender(wallets[place]).multi_sign(0, &owners[0]).multi_sign(2, &owners[2]).finish(),
        Signed::ByOneAndAStranger => {
            builder.sender(wallets[place]).multi_sign(0, &owners[0]).multi_sign(2, stranger).finish()
        }
    })
}

/// A block stands if each of its transactions is signed by whom it must be: none vouches for another.
/// Source: consensus.md 3.4.
#[test]
fn each_transaction_of_a_block_must_be_signed_for_itself() {
    let (bench, wallets) = shared();
    for one in Signed::ALL {
        for other in Signed::ALL {
            let both = vec![transfer(&bench, wallets, 0, one), transfer(&bench, wallets, 1, other)];
            let found = bench.tree.extend(&bench.tip, &bench.block(0, both));
            assert_eq!(found.is_ok(), one.holds() && other.holds(), "{one:?} and {other:?}: {found:?}");
        }
    }
}

// Constants of blocks.

/// Transfers that a block may hold before the milestone and from it on.
const LIMITS: [(usize, usize); 2] = [(2, 5), (5, 2)];
/// The height of the milestone.
const CHANGES: u32 = 7;

/// A chain up to below a height, with a milestone that changes a constant of blocks.
fn before_height(height: u32, member: &str, values: (usize, usize)) -> Bench {
    let mut bench = Bench::of_network(
        |network| {
            let mut list: Vec<Value> = network.milestones.all().iter().map(|one| one.json.clone()).collect();
            list.iter_mut().for_each(|milestone| milestone["block"][member] = values.0.into());
            let place = network.milestones.all().partition_point(|one| one.height.0 < CHANGES);
            let mut changed = list[place - 1].clone();
            changed["height"] = CHANGES.into();
            list.insert(place, changed);
            list[place..].iter_mut().for_each(|milestone| milestone["block"][member] = values.1.into());
            network.milestones = Milestones::from_json(&list.into()).expect("no round is cut");
        },
        |_| {},
    );
    (2..height).for_each(|_| bench.forge(Vec::new()));
    bench
}

fn transfers(bench: &Bench, count: usize) -> Vec<Arc<SignedTransaction>> {
    (0..count).map(|account| bench.transfer(account, 1, FEE)).collect()
}

/// The number of transactions and the bytes that a block may hold change with the milestone's own block.
/// Source: consensus.md 3.4, 4.4.
#[test]
fn a_constant_of_blocks_binds_from_the_milestones_own_height() {
    let sample = before_height(CHANGES, "maxTransactions", (9, 9));
    let bytes = |count| sample.block(0, transfers(&sample, count)).size(&sample.testnet.config.milestones);
    for (before, from) in LIMITS {
        for height in [CHANGES - 1, CHANGES, CHANGES + 1] {
            let limit = if height < CHANGES { before } else { from };
            for count in [limit, limit + 1] {
                let case = format!("{count} at height {height}, {before} before {CHANGES} and {from} from it on");
                // A signature may be a few bytes shorter in one block than in another.
                let room = |count| bytes(count) + 8;
                let chains = [
                    before_height(height, "maxTransactions", (before, from)),
                    before_height(height, "maxPayload", (room(before), room(from))),
                ];
                for (which, mut bench) in chains.into_iter().enumerate() {
                    let found = bench.try_forge(transfers(&bench, count));
                    let is_that = |error: &BlockError| match error {
                        BlockError::TooManyTransactions { .. } => which == 0,
                        BlockError::PayloadSize { .. } => which == 1,
                        _ => false,
                    };
                    match found {
                        Ok(()) => assert_eq!(count, limit, "{case}, chain {which}"),
                        Err(BlockRejected::NotVerified { errors, .. }) => {
                            assert!(count > limit && errors.iter().all(is_that), "{case}: {errors:?}");
                        }
                        Err(other) => panic!("{case}, chain {which}: {other}"),
                    }
                }
            }
        }
    }
}
