//! Two nodes of one network, each with its own view: a fork is seen as two chains until one of them comes back.

use crate::{support::get, torn::Forge};
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    api::{ApiContext, View},
    ledger::Link,
    protocol::{Arktoshi, Nonce, SignedTransaction, Transaction, crypto::CryptoMode::Real},
    scenario::{Testnet, testnet::rules_for},
    sim::{LiveHandle, NetworkEvent, Observer, SeedTree},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The nodes' APIs, told of everything that happens at either, as the run tells all observers.
struct Nodes {
    forge: Forge,
    views: [View; 2],
}

impl Nodes {
    fn new() -> Self {
        let testnet = Testnet::generate(SeedTree::new(5), 5, Real);
        let tree = testnet.tree(rules_for(5)).expect("as many delegates as it wants");
        let view = |node| {
            let view = View::new(NodeId(node), tree.clone(), tree.genesis().clone(), SimTime::default());
            view.with_neighbours([NodeId(0), NodeId(1)])
        };
        let views = [view(0), view(1)];
        Self { forge: Forge { testnet, tree }, views }
    }

    fn happens(&mut self, node: usize, event: &Event) {
        for view in &mut self.views {
            view.observe(SimTime::default(), NodeId(node as u32), event);
        }
    }

    fn applies(&mut self, node: usize, link: &Arc<Link>) {
        self.happens(node, &Event::BlockApplied(link.clone()));
    }

    fn rolls_back(&mut self, node: usize, from: &Arc<Link>, to: &Arc<Link>, pool: &[Arc<SignedTransaction>]) {
        let mut at = from.clone();
        while at.id() != to.id() {
            self.happens(node, &Event::BlockReverted(at.clone()));
            at = at.parent().expect("it is above the other");
        }
        let cause = RollbackCause::Forked;
        self.happens(node, &Event::RolledBack { from: from.clone(), to: to.clone(), cause });
        self.happens(node, &Event::PoolReplaced(pool.to_vec()));
    }

    fn get(&self, node: usize, target: &str) -> Value {
        get(&ApiContext::new(self.views[node].clone(), LiveHandle::ended()), target).body
    }

    /// The ids of all blocks, newest first.
    fn chain(&self, node: usize) -> Vec<Value> {
        let body = self.get(node, "/api/blocks");
        body["data"].as_array().expect("a list").iter().map(|block| block["id"].clone()).collect()
    }
}

#[test]
fn a_fork_is_two_chains_until_one_comes_back() {
    let mut nodes = Nodes::new();
    let account = nodes.forge.testnet.accounts[0].keys.clone();
    let recipient = nodes.forge.testnet.accounts[1].keys.public().address(23);
    let transfer = |nonce, coins| {
        let transfer = Transaction::transfer(recipient, Arktoshi::coins(coins)).nonce(Nonce(nonce));
        Arc::new(transfer.fee(Arktoshi::coins(1)).sign(&account))
    };
    let (both, lost, won) = (transfer(1, 1), transfer(2, 2), transfer(2, 4));
    let forge = &nodes.forge;
    // Version 2 is in force from the third block on.
    let second = forge.block(forge.tree.genesis(), 1, Vec::new());
    let common = forge.block(&second, 1, vec![both.clone()]);
    let short = forge.block(&common, 1, vec![lost.clone()]);
    let long = forge.block(&common, 2, vec![won.clone()]);
    let longer = forge.block(&long, 1, Vec::new());
    for node in [0, 1] {
        [&second, &common].into_iter().for_each(|link| nodes.applies(node, link));
    }
    assert_eq!(nodes.chain(0), nodes.chain(1));
    nodes.applies(0, &short);
    [&long, &longer].into_iter().for_each(|link| nodes.applies(1, link));

    let balance =
        |nodes: &Nodes, node| nodes.get(node, &format!("/api/wallets/{recipient}"))["data"]["balance"].clone();
    assert_eq!(nodes.chain(0)[0], json!(short.id()));
    assert_eq!(nodes.chain(1)[..2], [json!(longer.id()), json!(long.id())]);
    assert_eq!(nodes.chain(0)[1..], nodes.chain(1)[2..], "they part above the block they have in common");
    assert_ne!(balance(&nodes, 0), balance(&nodes, 1));
    let found = |nodes: &Nodes, node, one: &SignedTransaction| {
        nodes.get(node, &format!("/api/transactions/{}", one.id()))["data"]["confirmations"].clone()
    };
    assert_eq!([found(&nodes, 0, &lost), found(&nodes, 1, &lost)], [json!(1), Value::Null]);
    assert_eq!([found(&nodes, 0, &won), found(&nodes, 1, &won)], [Value::Null, json!(2)]);
    let peer = |nodes: &Nodes, node| nodes.get(node, "/api/peers")["data"][0]["height"].clone();
    assert_eq!([peer(&nodes, 0), peer(&nodes, 1)], [json!(5), json!(4)]);

    nodes.rolls_back(0, &short, &common, std::slice::from_ref(&lost));
    let pending = |nodes: &Nodes| nodes.get(0, "/api/transactions/unconfirmed")["data"].clone();
    assert_eq!(pending(&nodes)[0]["id"], json!(lost.id()), "what was reverted is pending again");
    assert_eq!((nodes.chain(0)[0].clone(), found(&nodes, 0, &lost)), (json!(common.id()), Value::Null));
    assert_eq!(peer(&nodes, 1), 3, "the other sees it fall back");
    [&long, &longer].into_iter().for_each(|link| nodes.applies(0, link));
    nodes.happens(0, &Event::PoolReplaced(Vec::new()));
    assert_eq!(pending(&nodes), json!([]), "its nonce is used up");
    for target in ["/api/blocks", "/api/transactions", "/api/wallets", "/api/delegates", "/api/blockchain"] {
        assert_eq!(nodes.get(0, target), nodes.get(1, target), "{target}");
    }
    let sent = format!("/api/wallets/{}/transactions/sent", account.public());
    assert_eq!(nodes.get(0, &sent)["meta"]["totalCount"], 2);
}

#[test]
fn what_was_lost_with_a_crashed_pool_is_not_pending() {
    let mut nodes = Nodes::new();
    let keys = &nodes.forge.testnet.accounts[0].keys;
    let to = nodes.forge.testnet.accounts[1].keys.public().address(23);
    let transfer = Transaction::transfer(to, Arktoshi::coins(1)).nonce(Nonce(1)).fee(Arktoshi::coins(1)).sign(keys);
    for node in 0..2 {
        nodes.happens(node, &Event::PoolAdded(vec![Arc::new(transfer.clone())]));
    }
    for view in &mut nodes.views {
        view.observe_network(SimTime::default(), &NetworkEvent::PoolLost { node: NodeId(1) });
    }
    let pending = |node| nodes.get(node, "/api/transactions/unconfirmed")["meta"]["totalCount"].clone();
    assert_eq!((pending(0), pending(1)), (json!(1), json!(0)));
}
