//! Laws of the ledger, over random valid and invalid transactions of all types, missed slots and forks.

use dposlab::{
    check::{
        check_all, check_rebuilt, check_step,
        strategies::{Attempt, Play, Stage, Try, stages},
    },
    ledger::{ApplyError, BlockRejected, BlockTree, Link, Rules, Scratch, Wallet, apply::Look},
    protocol::{
        Arktoshi, Block, BlockDraft, BlockId, Height, KeyPair, Kind, Nonce, Transaction, TransactionId,
        crypto::CryptoMode::Real,
    },
    scenario::Testnet,
    sim::SeedTree,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// A block with what was refused in it is refused for the same reason, at the same transaction.
fn blocks_with_refused_ones_are_refused(play: &Play, outcome: &dposlab::check::strategies::Outcome, missed: u32) {
    for (bad, why) in &outcome.refused {
        let transactions = vec![bad.clone()];
        match play.tree.extend(&play.tip, &play.block(missed, transactions)) {
            Err(BlockRejected::NotApplicable { transaction, .. }) => assert_eq!(transaction, bad.id()),
            // Of a shared wallet, and its wallet does not vouch for it.
            Err(BlockRejected::NotVerified { .. }) if bad.transaction().signature.is_none() => {}
            Err(BlockRejected::AlreadyForged { .. }) => {}
            // On top of the block its turn may have come, unless it is wrong for good.
            Ok(_) => assert!(!matches!(why, ApplyError::InvalidSecondSignature), "{why}"),
            Err(other) => panic!("a block with a transaction refused for '{why}': {other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is tried, the invariants hold after each block of each fork, weights are those counted from scratch, and
    /// what is refused changes nothing.
    #[test]
    fn invariants_hold_on_every_fork(stages in stages(14)) {
        let mut play = Play::new();
        let mut states = BTreeMap::new();
        for stage in &stages {
            let outcome = play.play(stage).expect("each of them was applied to a scratch state");
            let applied = play.tree.applied(&play.tip);
            let before = play.tip.parent().expect("it is not genesis").transactions();
            prop_assert_eq!(play.tip.transactions(), before + play.tip.block().transactions.len() as u64);
            check_all(&play.tree, &play.tip).unwrap_or_else(|violation| panic!("{violation}"));
            check_step(&play.tree, &play.tip, &applied.state).unwrap_or_else(|violation| panic!("{violation}"));
            let wallets: Vec<_> = applied.state.wallets().cloned().collect();
            states.insert(play.tip.id(), (play.tip.clone(), wallets));
            blocks_with_refused_ones_are_refused(&play, &outcome, stage.missed);
        }
        // Moving back in the tree restores: a state is the same whenever it is asked for, and computed anew by another
        // process it is the same too.
        for (link, wallets) in states.values() {
            prop_assert!(play.tree.applied(link).state.wallets().eq(wallets.iter()));
            check_rebuilt(&play.tree, link).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }
}

/// The ids of the blocks of a chain that hold a transaction, looked for block by block.
fn holders(tip: &Arc<Link>, transaction: &TransactionId) -> Vec<BlockId> {
    let chain = std::iter::successors(Some(tip.clone()), |link| link.parent());
    let holds = |link: &Arc<Link>| link.block().transactions.iter().any(|one| one.id() == *transaction);
    chain.filter(holds).map(|link| link.id()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A forger without oversights sees what its block will do: after each transaction each wallet holds the same, and
    /// what it refuses is what the state refuses.
    #[test]
    fn a_forger_sees_what_its_block_does(stages in stages(14)) {
        let (mut play, rules) = (Play::new(), Rules::corrected());
        for stage in &stages {
            let (tree, height) = (play.tree.clone(), play.tip.height().0.saturating_sub(stage.back).max(2));
            let before = tree.applied(&play.tip.ancestor(Height(height)).expect("it is below"));
            let terms = tree.terms(before.state.height());
            let outcome = play.play(stage).expect("each of them was applied to a scratch state");
            let time = play.tip.block().header.timestamp;
            let (mut state, mut scratch) = (before.state.clone(), Scratch::new(&before.state, &rules.pool));
            let refused = outcome.refused.iter().map(|(transaction, _)| transaction);
            for transaction in outcome.forged.iter().chain(refused) {
                let one = state.try_apply(transaction, time, &terms);
                let other = scratch.try_apply(transaction, time, &terms);
                prop_assert_eq!(format!("{:?}", one), format!("{:?}", other), "{}", transaction.id());
                let told = |wallet: &Wallet| {
                    (wallet.balance, wallet.nonce, wallet.second_public_key, wallet.multi_signature.clone())
                };
                for wallet in state.wallets() {
                    let seen = Look::wallet(&scratch, &wallet.address).map(told);
                    prop_assert_eq!(seen, Some(told(wallet)), "{}", wallet.address);
                }
            }
        }
    }

    /// A transaction is found in the block of the chain that holds it, on whichever forks it is, and nowhere else.
    #[test]
    fn a_transaction_is_found_on_each_fork_that_holds_it(stages in stages(24), later in 1..6u32) {
        let mut play = Play::new();
        let (mut tips, mut all) = (vec![play.tip.clone()], Vec::new());
        for (number, stage) in stages.iter().enumerate() {
            // Now and then the same transactions stand on another fork as well, so many slots later, if they fit there.
            let (tip, again) = (play.tip.clone(), play.tip.block().transactions.clone());
            if let Some(below) = tip.parent().filter(|below| number % 3 == 0 && below.height().0 > 2) {
                play.tip = below.clone();
                tips.extend(play.tree.extend(&below, &play.block(later, again)).ok());
                play.tip = tip;
            }
            let outcome = play.play(stage).expect("each of them was applied to a scratch state");
            all.extend(outcome.forged.iter().map(|one| one.id()));
            tips.push(play.tip.clone());
        }
        for (tip, id) in tips.iter().flat_map(|tip| all.iter().map(move |id| (tip, id))) {
            let found = play.tree.block_of(tip, id).map(|link| link.id());
            prop_assert_eq!(found.into_iter().collect::<Vec<_>>(), holders(tip, id), "{}", id);
        }
    }
}

/// Found by the first law, once in a thousand chains: a wallet that is made, paid and spent from within one block.
#[test]
fn a_shared_wallet_is_spent_from_in_a_later_block_than_it_is_made_in() {
    let attempt = |sender, attempt| Try { sender, attempt, flaw: None };
    let make = attempt(0, Attempt::MultiSignature { first: 0, min: 1, whole: true });
    let pay = attempt(0, Attempt::MultiPayment { to: [0, Play::SENDERS], amounts: [31, 53_603_142_080] });
    let spend = attempt(4, Attempt::SpendTogether { to: 1, amount: 992_551_725, signers: 3 });
    let stage = |tries: &[&Try]| Stage { missed: 0, back: 0, tries: tries.iter().map(|one| (*one).clone()).collect() };
    let mut play = Play::new();
    assert_eq!(play.play(&stage(&[&make, &pay, &spend])).expect("it waits").forged.len(), 2);
    assert_eq!(play.play(&stage(&[&spend])).expect("its turn has come").forged.len(), 1);
}

#[test]
fn the_strategy_reaches_every_type_both_ways() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut taken, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let (mut forks, mut reasons, mut together) = (0, BTreeMap::new(), 0);
    for _ in 0..100 {
        let stages = stages(60).new_tree(&mut runner).expect("a value").current();
        let mut play = Play::new();
        for stage in &stages {
            forks += usize::from(stage.back > 0 && play.tip.height().0 > 2);
            let outcome = play.play(stage).expect("the ledger agrees with itself");
            for transaction in &outcome.forged {
                *taken.entry(transaction.kind()).or_insert(0) += 1;
                together += usize::from(transaction.transaction().signature.is_none());
            }
            for (transaction, why) in &outcome.refused {
                *refused.entry(transaction.kind()).or_insert(0) += 1;
                *reasons
                    .entry(format!("{why:?}").split([' ', '(']).next().unwrap_or_default().to_owned())
                    .or_insert(0) += 1;
            }
        }
    }
    for kind in Kind::ALL {
        assert!(taken.contains_key(&kind), "no {kind:?} was ever taken: {taken:?}");
        assert!(refused.contains_key(&kind), "no {kind:?} was ever refused: {refused:?}");
    }
    assert!(forks > 15 && together > 0 && reasons.len() > 20, "{forks} {together} {reasons:?}");
    assert_eq!(Attempt::Resign.kind(), Kind::DelegateResignation);
}

/// The message of the refusal of a block on the tip of a chain.
fn refusal(chain: &Play, block: Block) -> String {
    chain.tree.extend(&chain.tip, &Arc::new(block)).expect_err("it must be refused").to_string()
}

fn draft_of(chain: &Play, block: &Block) -> BlockDraft {
    BlockDraft {
        timestamp: block.header.timestamp,
        height: block.header.height,
        previous: block.header.previous,
        reward: block.header.reward,
        version: block.header.version,
        transactions: vec![Arc::new(
            Transaction::transfer(chain.testnet.accounts[0].keys.public().address(23), Arktoshi::coins(1))
                .nonce(Nonce(1))
                .sign(&chain.testnet.accounts[1].keys),
        )],
    }
}

#[test]
fn a_block_that_breaks_one_rule_is_refused_by_that_rule() {
    let chain = Play::new();
    let milestones = &chain.testnet.config.milestones;
    let good = chain.block(0, Vec::new());
    let owner = good.header.generator;
    let owners_keys = || {
        let delegates = chain.testnet.delegates.iter().map(|delegate| &delegate.keys);
        delegates.clone().find(|keys| *keys.public() == owner).expect("it forged")
    };
    let other = chain.testnet.delegates.iter().find(|delegate| *delegate.keys.public() != owner).expect("five");
    let forge = |change: &dyn Fn(&mut BlockDraft), keys: &KeyPair| {
        let mut draft = draft_of(&chain, &good);
        change(&mut draft);
        Block::forge(draft, keys, milestones)
    };
    let out_of_turn = refusal(&chain, forge(&|_| {}, &other.keys));
    assert!(out_of_turn.contains("forged it") && out_of_turn.contains(&owner.to_string()), "{out_of_turn}");
    let rewarded = forge(&|draft| draft.reward = Arktoshi::coins(2), owners_keys());
    assert!(refusal(&chain, rewarded).contains("Invalid block reward"));
    let high = forge(&|draft| draft.height = draft.height.next(), owners_keys());
    assert!(refusal(&chain, high).contains("does not chain"));
    let early = chain.tip.block().header.timestamp;
    let same_slot = forge(&|draft| draft.timestamp = early, owners_keys());
    assert!(refusal(&chain, same_slot).contains("does not chain"));
    let twice = forge(&|draft| draft.transactions.push(draft.transactions[0].clone()), owners_keys());
    assert!(refusal(&chain, twice).contains("duplicate transaction"));
    // Of two rules that are broken, the one that is looked at first is named. Source: consensus.md 3.3.
    let gap = |draft: &mut BlockDraft| {
        let transfer = Transaction::transfer(chain.testnet.accounts[0].keys.public().address(23), Arktoshi::coins(1));
        draft.transactions = vec![Arc::new(transfer.nonce(Nonce(3)).sign(&chain.testnet.accounts[1].keys))];
    };
    let both = refusal(&chain, forge(&gap, &other.keys));
    assert!(both.contains("nonce"), "{both}");
    // One header, other transactions: what is known of a block is not believed of another with its id.
    let whole = forge(&|_| {}, owners_keys());
    let header = whole.header.clone();
    chain.tree.extend(&chain.tip, &Arc::new(whole)).expect("nothing is wrong with it");
    let emptied = Block::new(Block::forge(draft_of(&chain, &good), owners_keys(), milestones).id, header, Vec::new());
    assert!(refusal(&chain, emptied).contains("Invalid number of transactions"));
    let renamed = Block::new(chain.tip.id(), good.header.clone(), Vec::new());
    assert!(refusal(&chain, renamed).contains("its id should be"));
}

#[test]
fn the_forger_of_the_first_block_has_its_reward_and_fees() {
    let testnet = Testnet::generate(SeedTree::new(1), 5, Real);
    let balance = |reward: u64, fees: u64| {
        let mut config = (*testnet.config).clone();
        config.genesis.block.header.reward = Arktoshi::new(reward).expect("an amount");
        config.genesis.block.header.total_fee = Arktoshi::new(fees).expect("an amount");
        let forger = config.genesis.block.header.generator.address(config.network.pub_key_hash);
        let tree = BlockTree::new(Arc::new(config), Arc::new(Rules::reference())).expect("5 delegates");
        let applied = tree.applied(tree.genesis());
        applied.state.wallet(&forger).expect("it forged").balance
    };
    assert_eq!(balance(30, 4) - balance(0, 0), Arktoshi::new(34).expect("an amount").into());
}
