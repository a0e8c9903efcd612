//! Every event of a chain and a pool, told as the contract's table of events says, by a narration of its own from the blocks.
//! Source: api.md 6.4.

use super::{Node, patient, receiver::Receiver};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    api::{ApiContext, View},
    check::strategies::{Play, Stage, stage},
    ledger::{BlockTree, Link},
    protocol::{
        Address, Arktoshi, Asset, KeyPair, Kind, Nonce, SignedTransaction, Slot, Transaction, Vote,
        crypto::CryptoMode::Real,
        transaction::{Payment, TransactionBuilder},
    },
    sim::LiveHandle,
};
use proptest::{
    prelude::prop,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Blocks of a round.
const ROUND: u32 = 5;

/// The payloads of each event, the oldest first: the part that says what it is about.
#[derive(Default)]
struct Narration(BTreeMap<&'static str, Vec<Value>>);

impl Narration {
    fn tell(&mut self, event: &'static str, about: impl Into<Value>) {
        self.0.entry(event).or_default().push(about.into());
    }

    /// A block on top of the chain: slots without a block, its transactions with what they do, the block.
    fn applied(&mut self, tree: &BlockTree, link: &Arc<Link>) {
        let (block, parent) = (link.block(), link.parent().expect("above genesis"));
        let (slots, before) = (tree.slots(), tree.applied(&parent));
        let slot_of = |link: &Link| slots.slot(link.block().header.timestamp).0;
        // Of a gap of more than a round as many are told as a round has members. Source: consensus.md 1.5.
        for slot in (slot_of(&parent) + 1..slot_of(link)).take(ROUND as usize) {
            let owner = before.state.round().owner(Slot(slot)).expect("each slot has an owner").public_key;
            self.tell("forger.missing", owner.address(23).to_string());
        }
        if link.height().0.is_multiple_of(ROUND) {
            self.tell("round.applied", Value::Null);
        }
        let mut known: BTreeSet<Address> = before.state.wallets().map(|wallet| wallet.address).collect();
        for (index, one) in block.transactions.iter().enumerate() {
            let id = one.id().to_string();
            for recipient in credited(one).into_iter().filter(|address| known.insert(*address)) {
                self.tell("wallet.created.cold", recipient.to_string());
            }
            self.tell("transaction.applied", json!([id, index, block.id.to_string()]));
            match one.asset() {
                Asset::DelegateRegistration { .. } => self.tell("delegate.registered", id),
                Asset::DelegateResignation => self.tell("delegate.resigned", id),
                Asset::Vote(Vote::For(key)) => self.tell("wallet.vote", json!([format!("+{key}"), id])),
                Asset::Vote(Vote::Against(key)) => self.tell("wallet.unvote", json!([format!("-{key}"), id])),
                _ => {}
            }
        }
        self.tell("block.applied", block.id.to_string());
    }

    /// The newest block is taken back: its transactions from the last to the first, then the block.
    fn reverted(&mut self, link: &Link) {
        for one in link.block().transactions.iter().rev() {
            self.tell("transaction.reverted", one.id().to_string());
        }
        self.tell("block.reverted", link.id().to_string());
    }
}

/// The addresses that a transaction names to have coin.
fn credited(transaction: &SignedTransaction) -> Vec<Address> {
    match transaction.asset() {
        Asset::Transfer { recipient, .. } | Asset::HtlcLock { recipient, .. } => vec![*recipient],
        Asset::MultiPayment { payments } => payments.iter().map(|payment| payment.recipient).collect(),
        _ => Vec::new(),
    }
}

/// The part of a payload that says what it is about.
fn about(event: &str, data: &Value) -> Value {
    let ids = |list: &Value, at: &str| -> Value {
        list.as_array().expect("a list").iter().map(|one| one.pointer(at).expect("an id").clone()).collect()
    };
    match event {
        "transaction.applied" => json!([data["id"], data["sequence"], data["blockId"]]),
        "wallet.vote" | "wallet.unvote" => json!([data["delegate"], data["transaction"]["id"]]),
        "forger.missing" => data["delegate"]["address"].clone(),
        "wallet.created.cold" => data["address"].clone(),
        "transaction.pool.added" => ids(data, "/data/id"),
        "block.received" | "block.disregarded" => json!([data["id"], ids(&data["transactions"], "/id")]),
        "round.applied" => data.clone(),
        "transaction.pool.removed" if data.is_string() => data.clone(),
        _ => data["id"].clone(),
    }
}

/// Blocks with transactions of all kinds, some after empty slots.
fn chain() -> (Play, Vec<Arc<Link>>) {
    let mut play = Play::new();
    let stages = prop::collection::vec(stage(), 60).new_tree(&mut TestRunner::deterministic()).expect("a value");
    let mut links = Vec::new();
    for stage in stages.current() {
        play.play(&Stage { back: 0, ..stage }).expect("each of them fitted");
        links.push(play.tip.clone());
    }
    for transactions in strangers(&play) {
        let block = play.block(0, transactions);
        play.tip = play.tree.extend(&play.tip, &block).expect("the genesis wallets have coin");
        links.push(play.tip.clone());
    }
    let has = |kind: Kind| links.iter().flat_map(|link| &link.block().transactions).any(|one| one.kind() == kind);
    assert!([Kind::Vote, Kind::DelegateRegistration, Kind::Transfer].into_iter().all(has), "or little is told");
    assert!(links.iter().filter(|link| link.block().transactions.len() > 1).count() > 3, "or there is no order to see");
    (play, links)
}

/// Two blocks that name nine addresses, some more than once: in one transaction, in two of a block, in both blocks.
fn strangers(play: &Play) -> [Vec<Arc<SignedTransaction>>; 2] {
    let stranger = |number: usize| KeyPair::from_passphrase(&format!("stranger {number}"), Real).public().address(23);
    let amount = Arktoshi::coins(1);
    let transfer = |to| Transaction::transfer(stranger(to), amount);
    let payments = |to: &[usize]| {
        Transaction::multi_payment(to.iter().map(|to| Payment { recipient: stranger(*to), amount }).collect())
    };
    // Of those accounts that the stages do not send from.
    let (one, other) = (&play.testnet.accounts[8].keys, &play.testnet.accounts[9].keys);
    let sign = |builder: TransactionBuilder, keys: &KeyPair, nonce| {
        Arc::new(builder.nonce(Nonce(nonce)).fee(Arktoshi::coins(2)).sign(keys))
    };
    [
        vec![
            sign(transfer(1), one, 1),
            sign(transfer(1), other, 1),
            sign(payments(&[2, 3, 2]), one, 2),
            sign(payments(&[3, 4, 1]), other, 2),
            sign(transfer(5), one, 3),
        ],
        vec![
            sign(transfer(5), other, 3),
            sign(payments(&[6, 1, 6, 7]), one, 4),
            sign(transfer(6), other, 4),
            sign(transfer(8), other, 5),
            sign(transfer(9), other, 6),
        ],
    ]
}

const EVENTS: [&str; 20] = [
    "block.applied",
    "block.disregarded",
    "block.forged",
    "block.received",
    "block.reverted",
    "delegate.registered",
    "delegate.resigned",
    "forger.missing",
    "round.applied",
    "transaction.applied",
    "transaction.expired",
    "transaction.forged",
    "transaction.pool.added",
    "transaction.pool.removed",
    "transaction.reverted",
    "wallet.created.cold",
    "wallet.unvote",
    "wallet.vote",
    "peer.never",
    "state.started",
];

#[test]
fn what_happens_is_told_as_the_table_of_events_says() {
    let (play, links) = chain();
    let view = View::new(NodeId(0), play.tree.clone(), play.tip.clone(), SimTime::default());
    let (mut node, receiver) = (Node::of(ApiContext::new(view, LiveHandle::ended()), patient()), Receiver::kind());
    for event in EVENTS {
        node.create(event, &receiver.url(&format!("/{event}")), json!([]));
    }
    let mut wanted = Narration::default();
    let id = |one: &Arc<SignedTransaction>| one.id().to_string();
    let (received, disregarded) = ("block.received", "block.disregarded");
    for (number, link) in links.iter().enumerate() {
        let block = link.block();
        let inside: Vec<String> = block.transactions.iter().map(id).collect();
        if !inside.is_empty() {
            node.happens(9, &Event::PoolAdded(block.transactions.clone()));
            wanted.tell("transaction.pool.added", inside.clone());
        }
        let whole = json!([block.id.to_string(), inside]);
        match number % 3 {
            0 => {
                node.happens(9, &Event::BlockForged(block.clone()));
                wanted.tell("block.forged", block.id.to_string());
                inside.iter().for_each(|id| wanted.tell("transaction.forged", id.clone()));
            }
            1 => {
                node.happens(9, &Event::BlockReceived(block.clone()));
                wanted.tell(received, whole);
            }
            _ => {
                node.happens(9, &Event::BlockDisregarded(block.clone()));
                wanted.tell(disregarded, whole);
            }
        }
        node.happens(9, &Event::BlockApplied(link.clone()));
        wanted.applied(&play.tree, link);
        for (index, one) in block.transactions.iter().enumerate() {
            match index % 3 {
                0 => {
                    node.happens(9, &Event::PoolRemoved(one.id()));
                    wanted.tell("transaction.pool.removed", id(one));
                }
                1 => {
                    node.happens(9, &Event::PoolExpired(one.clone()));
                    wanted.tell("transaction.expired", id(one));
                }
                _ => {
                    node.happens(9, &Event::PoolPurged(one.clone()));
                    wanted.tell("transaction.pool.removed", id(one));
                }
            }
        }
    }
    for link in links.iter().rev() {
        node.happens(9, &Event::BlockReverted(link.clone()));
        wanted.reverted(link);
    }
    let posts: Vec<_> = (0..wanted.0.values().map(Vec::len).sum()).map(|_| receiver.next()).collect();
    for event in EVENTS {
        let of_event = posts.iter().filter(|post| post.body["event"] == event);
        let told: Vec<Value> = of_event.map(|post| about(event, &post.body["data"])).collect();
        assert_eq!(told, wanted.0.remove(event).unwrap_or_default(), "{event}");
    }
    node.finish();
    assert!(receiver.all().is_empty());
}
