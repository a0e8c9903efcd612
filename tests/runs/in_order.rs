//! Transactions that one node accepted are forged in the order of nonces at the earliest slots with room, whatever node forges.

use crate::{
    pool::{Bench, FEE, codes},
    support::run,
    testnet::Up,
};
use dposlab::{
    actors::{Effect, Event, Message, NodeId, SimTime, message::AddTransactions},
    ledger::{
        Link, Rules,
        codec::{LoadError, Loader, Saver},
        rules::Gossip,
    },
    protocol::{Arktoshi, Height, KeyPair, Nonce, SignedTransaction, Transaction, crypto::CryptoMode::Real},
    scenario::{Scenario, StageKind, Testnet},
    sim::{
        Observer, SeedTree,
        fault::Trigger,
        source::{PlannedSource, Poll, Source, Tally},
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

/// Room in a block.
const ROOM: usize = 150;

/// Transfers of so many senders in turn, so many each, all handed in at one node in one instant.
#[derive(Clone)]
struct Burst {
    testnet: Arc<Testnet>,
    senders: usize,
    each: u64,
    /// In one request.
    at_once: usize,
}

impl Source for Burst {
    fn poll(&mut self, _: SimTime, _: &Arc<Link>) -> Poll {
        let transfers = (1..=self.each).flat_map(|nonce| (0..self.senders).map(move |sender| (sender, nonce)));
        let made: Vec<Arc<SignedTransaction>> =
            transfers.map(|(sender, nonce)| Arc::new(transfer(&self.testnet.accounts[sender].keys, nonce))).collect();
        let submissions = made.chunks(self.at_once).map(|some| (NodeId(3), some.into())).collect();
        Poll { submissions, ..Poll::default() }
    }

    fn save(&self, _: &mut Saver) {}

    fn go_on(&mut self, _: &mut Loader) -> Result<(), LoadError> {
        Ok(())
    }
}

fn transfer(keys: &KeyPair, nonce: u64) -> SignedTransaction {
    let recipient = KeyPair::from_passphrase("somebody", Real).public().address(23);
    let fee = Arktoshi::new(10_000_000).expect("a fee");
    Transaction::transfer(recipient, Arktoshi::coins(1)).network(23).nonce(Nonce(nonce)).fee(fee).sign(keys)
}

/// The transactions of node 0's chain, block by block.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Vec<Vec<Arc<SignedTransaction>>>>>);

impl Observer for Blocks {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        if let (Event::BlockApplied(link), NodeId(0)) = (event, node) {
            self.0.lock().expect("no one panics while holding it").push(link.block().transactions.to_vec());
        }
    }
}

/// Plays `senders` times `each` transfers; answers those of each block from the first one with any on.
fn forged(
    rules: &str,
    stage: StageKind,
    (senders, each, at_once): (usize, u64, usize),
) -> Vec<Vec<Arc<SignedTransaction>>> {
    let text = format!("version = 1\nrounds = 2\n[network]\ndelegates = 51\n{rules}");
    let scenario = Scenario::parse(&text, Path::new("burst.toml")).expect("it is valid");
    let seeds = SeedTree::new(11);
    let testnet = Arc::new(scenario.testnet(seeds));
    let make = {
        let testnet = testnet.clone();
        move || -> Box<dyn Source> { Box::new(Burst { testnet: testnet.clone(), senders, each, at_once }) }
    };
    let mut plan = scenario.plan(&testnet, seeds);
    let (from, tally) = (Trigger::Height(4), Tally::default());
    plan.sources.push(PlannedSource {
        from,
        until: None,
        fault: None,
        name: "list".to_owned(),
        make: Arc::new(make),
        tally: tally.clone(),
    });
    let blocks = Blocks::default();
    scenario.play(&plan, stage, vec![Box::new(blocks.clone())], |_: Height| {}).expect("no actor dies");
    assert_eq!(tally.counts().accepted, senders as u64 * each, "{:?}", tally.counts());
    let blocks = blocks.0.lock().expect("no one panics while holding it").clone();
    blocks.into_iter().skip_while(Vec::is_empty).collect()
}

const IN_ORDER: &str = "[rules.node]\ntransactions_in_order = true\n";

#[test]
fn a_burst_fills_the_next_blocks_in_order_on_both_stages() {
    // In requests of one and of forty, of one sender and of several, and several thousand.
    for burst in [(1, 200, 1), (1, 200, 40), (7, 40, 1), (10, 300, 1), (10, 300, 40)] {
        let blocks = forged(IN_ORDER, StageKind::Inline, burst);
        let sizes: Vec<usize> = blocks.iter().map(Vec::len).collect();
        let total = burst.0 * burst.1 as usize;
        // The first may be forged while the last are on their way.
        let enough = total.div_ceil(ROOM) + 1;
        assert_eq!(sizes.iter().take(enough).sum::<usize>(), total, "{burst:?}: {sizes:?}");
        let mut next: BTreeMap<_, u64> = BTreeMap::new();
        for one in blocks.iter().flatten() {
            let nonce = next.entry(one.sender_address()).or_default();
            *nonce += 1;
            assert_eq!(one.to_json()["nonce"], nonce.to_string());
        }
        let ids = |blocks: &[Vec<Arc<SignedTransaction>>]| -> Vec<Vec<String>> {
            blocks.iter().map(|block| block.iter().map(|one| one.id().to_string()).collect()).collect()
        };
        if total <= 1_000 {
            assert_eq!(ids(&blocks), ids(&forged(IN_ORDER, StageKind::Ractor, burst)), "{burst:?} on the other stage");
        }
    }
}

#[test]
fn it_holds_where_peers_repeat_what_they_hear() {
    let blocks = forged(&format!("gossip = \"reference\"\n{IN_ORDER}"), StageKind::Inline, (1, 200, 1));
    assert_eq!(blocks.iter().take(3).map(Vec::len).sum::<usize>(), 200);
}

#[test]
fn in_the_reference_most_of_a_burst_waits() {
    for gossip in ["once", "reference"] {
        let blocks = forged(&format!("gossip = \"{gossip}\"\n"), StageKind::Inline, (1, 200, 1));
        let soon: usize = blocks.iter().take(3).map(Vec::len).sum();
        assert!(soon < 100, "{soon} of 200 within three blocks");
    }
}

/// Posts transfers of the first account, one request each, and answers how many stand in blocks three slots later.
fn confirmed_within_three_blocks(up: &Up, count: u64) -> u64 {
    up.advance(5);
    let keys = KeyPair::from_passphrase(up.ready["accounts"][0]["passphrase"].as_str().expect("a passphrase"), Real);
    for nonce in 1..=count {
        let body = json!({ "transactions": [transfer(&keys, nonce).to_json()] });
        let (status, answer) = up.post("/api/transactions", &body);
        let broadcast = answer["data"]["broadcast"].as_array().map(Vec::len);
        assert_eq!((status, broadcast), (200, Some(1)), "{answer}");
    }
    up.advance(3);
    let sender = keys.public().address(23);
    up.get(&format!("/wallets/{sender}/transactions/sent?limit=1"))["meta"]["totalCount"].as_u64().expect("a count")
}

#[test]
fn two_hundred_posted_one_by_one_stand_in_three_blocks_and_are_replayed() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("session.jsonl").display().to_string();
    let up = Up::start(&["--pace", "manual", "--record", &file]);
    assert_eq!(confirmed_within_three_blocks(&up, 200), 200);
    up.interrupt();
    let output = run(&["replay", &file, "--json"]);
    let replayed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!((&replayed["inputs"], &replayed["ended"]), (&200.into(), &true.into()), "{replayed}");
    let up = Up::start(&["--pace", "manual", "--gossip", "reference"]);
    let soon = confirmed_within_three_blocks(&up, 200);
    assert!(soon < 100, "{soon} of 200: in the reference most of them wait");
}

fn in_order(rules: &mut Rules) {
    rules.node.transactions_in_order = true;
    rules.gossip = Gossip::Once;
    rules.pool.max_transactions_per_sender = 3;
}

/// A peer sends these on; answers how many messages the pool has for other peers.
fn from_peer(bench: &mut Bench, transactions: &[Arc<SignedTransaction>]) -> usize {
    let add = AddTransactions { tip: bench.tip.clone(), transactions: transactions.into(), request: None };
    let effects = bench.tell(Message::AddTransactions(add.into()));
    effects.iter().filter(|effect| matches!(effect, Effect::Send { message: Message::Broadcast(_), .. })).count()
}

fn ids(transactions: &[Arc<SignedTransaction>]) -> Vec<String> {
    transactions.iter().map(|one| one.id().to_string()).collect()
}

#[test]
fn a_pool_keeps_what_a_peer_sends_too_early() {
    let mut bench = Bench::new(in_order);
    let all: Vec<_> = (1..=5).map(|nonce| bench.transfer(1, nonce, FEE)).collect();
    from_peer(&mut bench, &[all[2].clone(), all[1].clone()]);
    assert!(bench.chosen().is_empty(), "the first one is missing");
    let repeated = from_peer(&mut bench, &[all[4].clone(), all[0].clone(), all[3].clone()]);
    assert_eq!(repeated, 0, "with gossip once nobody repeats what it hears");
    assert_eq!(ids(&bench.chosen()), ids(&all[..3]), "three of a sender are pending at most");
    assert!(!bench.events.iter().any(|event| matches!(event, Event::PoolRejected(_))), "{:?}", bench.events);
    bench.forge(all[..3].to_vec());
    assert_eq!(ids(&bench.chosen()), ids(&all[3..]), "after the block there is room");
    // Twice the same, and what stands on the chain.
    from_peer(&mut bench, &all);
    assert_eq!(ids(&bench.chosen()), ids(&all[3..]));
    // A client is told of a gap, as ever; what it hands in makes way for what a peer has sent.
    let other: Vec<_> = (1..=2).map(|nonce| bench.transfer(2, nonce, 2 * FEE)).collect();
    assert_eq!(codes(&bench.submit(&other[1..])), ["ERR_APPLY"]);
    from_peer(&mut bench, &other[1..]);
    assert_eq!(bench.submit(&other[..1]).accept.len(), 1);
    assert_eq!(ids(&bench.chosen())[..2], ids(&other)[..]);
}

#[test]
fn a_pool_keeps_what_needs_a_block_that_is_still_to_come() {
    let mut bench = Bench::new(in_order);
    let newcomer = KeyPair::from_passphrase("funded in the next block", Real);
    let address = newcomer.public().address(23);
    let funding = Transaction::transfer(address, Arktoshi::coins(10));
    let funding = bench.sign(funding, 1, 1, FEE);
    let spent = Arc::new(transfer(&newcomer, 1));
    from_peer(&mut bench, &[spent.clone(), funding.clone()]);
    assert_eq!(ids(&bench.chosen()), ids(std::slice::from_ref(&funding)), "unconfirmed coin cannot be spent");
    bench.forge(vec![funding]);
    assert_eq!(ids(&bench.chosen()), ids(&[spent]));
}
