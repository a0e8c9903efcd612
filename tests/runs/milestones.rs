//! Chains whose parameters change, and what a network lists as exceptions.

use crate::{
    pool::{Bench, FEE},
    support::play,
};
use dposlab::{
    check::check_all,
    ledger::{BlockTree, Link, Rules},
    protocol::{
        Arktoshi, Block, BlockDraft, Height, KeyPair, Milestones, NetworkConfig, Nonce, Slot, Transaction,
        crypto::CryptoMode::Real, genesis::GenesisPlan, network::Network,
    },
    scenario::{Scenario, StageKind},
};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// The number of delegates as in the example of consensus.md 1.1, to the same rounds.
#[test]
fn a_chain_crosses_changes_of_the_number_of_delegates() {
    let changes = [(1, 2), (3, 3), (6, 1), (10, 51), (112, 1), (115, 2)];
    let testnet = Milestones::testnet().all()[1].json.clone();
    let list: Vec<_> = changes
        .iter()
        .map(|(height, delegates)| {
            let mut milestone = testnet.clone();
            milestone["height"] = (*height).into();
            milestone["activeDelegates"] = (*delegates).into();
            milestone["reward"] = 100_000_000.into();
            milestone
        })
        .collect();
    let keys: Vec<KeyPair> =
        (0..51).map(|number| KeyPair::from_passphrase(&format!("changing {number}"), Real)).collect();
    let plan = GenesisPlan {
        network: Network::testnet(),
        milestones: Milestones::from_json(&list.into()).expect("each change begins a round"),
        premine: KeyPair::from_passphrase("changing premine", Real),
        delegates: keys.iter().enumerate().map(|(n, keys)| (format!("delegate_{n}"), keys.clone())).collect(),
        total: Arktoshi::coins(1_000_000),
        accounts: Vec::new(),
    };
    let config = Arc::new(NetworkConfig::from_plan(plan).expect("a valid plan"));
    let tree = BlockTree::new(config.clone(), Arc::new(Rules::reference())).expect("51 delegates");
    let mut tip: Arc<Link> = tree.genesis().clone();
    let mut rounds = BTreeMap::new();
    for height in 2..=120 {
        let state = &tree.applied(&tip).state;
        let delegates = changes.iter().rev().find(|(from, _)| *from <= height).expect("from height 1").1;
        assert_eq!(state.round().members.len(), delegates, "height {height}");
        rounds.entry(state.round().number().0).or_insert(height);
        let slots = tree.slots();
        let slot = Slot(slots.slot(tip.block().header.timestamp).0 + 1 + u32::from(height % 7 == 0));
        let owner = state.round().owner(slot).expect("each slot has an owner").public_key;
        let draft = BlockDraft {
            timestamp: slots.start(slot),
            height: Height(height),
            previous: Some(tip.id()),
            reward: config.milestones.at(Height(height)).reward,
            version: 0,
            transactions: Vec::new(),
        };
        let forger = keys.iter().find(|keys| *keys.public() == owner).expect("one of the genesis block");
        tip = tree.extend(&tip, &Arc::new(Block::forge(draft, forger, &config.milestones))).expect("a valid block");
        check_all(&tree, &tip).unwrap_or_else(|violation| panic!("{violation}"));
    }
    let first = |round| rounds[&round];
    assert_eq!([2, 3, 4, 7, 8, 9, 10, 12].map(first), [3, 6, 7, 10, 61, 112, 113, 115]);
}

/// An owner of a slot signs a block; somebody else's is refused unless the network lists it.
#[test]
fn a_listed_block_and_a_listed_transaction_stand_whatever_is_wrong_with_them() {
    let plain = Bench::new(|_| {});
    // From a wallet that has nothing, in a block that promises a reward.
    let poor = KeyPair::from_passphrase("has nothing", Real);
    let home = plain.keys(0).public().address(23);
    let gift = Transaction::transfer(home, Arktoshi::coins(5)).nonce(Nonce(1)).fee(Arktoshi::coins(1)).sign(&poor);
    let gift = Arc::new(gift);
    let good = plain.block(0, Vec::new());
    let draft = BlockDraft {
        timestamp: good.header.timestamp,
        height: good.header.height,
        previous: good.header.previous,
        reward: Arktoshi::coins(2),
        version: 0,
        transactions: vec![gift.clone()],
    };
    let forger = &plain.testnet.delegates.iter().find(|one| *one.keys.public() != good.header.generator);
    let bad = Arc::new(Block::forge(draft, &forger.expect("five").keys, &plain.testnet.config.milestones));
    let refused = plain.tree.extend(&plain.tip, &bad).expect_err("three things are wrong").to_string();
    assert!(refused.contains("Invalid block reward"), "{refused}");

    let listed = |block: bool, transaction: bool| {
        let mut bench = Bench::of_network(
            |network| {
                if block {
                    network.exceptions.blocks.insert(bad.id);
                    network.exceptions.blocks_transactions.insert(bad.id, vec![gift.id()]);
                }
                if transaction {
                    network.exceptions.transactions.insert(gift.id());
                }
            },
            |_| {},
        );
        bench.forge(Vec::new());
        assert_eq!(bench.tip.id(), plain.tip.id());
        // The result of checking a block in one network is not used in another.
        let block = Arc::new(Block::clone(&bad));
        bench.tree.extend(&bench.tip, &block).map(|tip| bench.tree.applied(&tip)).map_err(|why| why.to_string())
    };
    assert!(listed(false, true).is_err());
    let poor_still = listed(true, false).expect_err("the transaction is held against its sender's wallet");
    assert!(poor_still.contains("Insufficient balance"), "{poor_still}");
    let applied = listed(true, true).expect("both are listed");
    let debt = applied.state.wallet(&poor.public().address(23)).expect("it sent").balance;
    assert_eq!(debt.0, -600_000_000);
}

#[test]
fn a_listed_debt_is_tolerated_for_that_sender_at_that_nonce_to_that_amount() {
    let spend = |bench: &Bench| {
        let home = bench.keys(0).public().address(23);
        bench.sign(Transaction::transfer(home, Arktoshi::coins(1_000_000)), 1, 1, FEE)
    };
    for (nonce, balance, tolerated) in [(1, -10_000_000, true), (2, -10_000_000, false), (1, -9_999_999, false)] {
        let mut bench = Bench::of_network(
            |network| {
                let testnet = dposlab::scenario::Testnet::generate(dposlab::sim::SeedTree::new(1), 5, Real);
                let key = *testnet.accounts[1].keys.public();
                network.exceptions.negative_balances.insert(key, BTreeMap::from([(nonce, balance)]));
            },
            |_| {},
        );
        bench.forge(Vec::new());
        let spend = spend(&bench);
        assert_eq!(bench.try_forge(vec![spend]).is_ok(), tolerated, "{nonce} {balance}");
    }
}

/// A scenario's own milestones: five delegates, then three, then six, and two rewards.
#[test]
fn a_scenario_changes_the_reward_and_the_number_of_delegates() {
    let text = "version = 1\nrounds = 6\n[network]\ndelegates = 5\nstandby = 1\nreward = 10\n\
                milestones = [{ height = 8, reward = 30 }, { height = 11, delegates = 3 }, \
                { height = 17, delegates = 6, reward = 20 }]\n\
                [[assert]]\nalways = \"invariants\"\n[[assert]]\nfinally = \"missed == 0\"\n";
    let scenario = Scenario::parse(text, Path::new("milestones.toml")).expect("it is valid");
    assert_eq!(scenario.last_height(), Height(28), "two rounds of five, two of three, two of six");
    let (rounds, outcome) = play(&scenario, 7, StageKind::Inline);
    assert!(outcome.delivered > 0);
    assert_eq!(rounds.height(), Height(28));
    let tip = rounds.tip();
    let mut rewards = BTreeMap::new();
    for link in std::iter::successors(Some(tip), |link| link.parent()) {
        *rewards.entry(link.block().header.reward.value()).or_insert(0) += 1;
    }
    assert_eq!(rewards, BTreeMap::from([(0, 1), (10, 6), (30, 9), (20, 12)]));
}
