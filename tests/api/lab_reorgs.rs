//! Reorganisations that are asked for, over HTTP: another branch that delegates signed, and the network goes on along it.

use crate::{
    lab_faults::{end_of, of_every_kind, replayed, transfer},
    live::Network,
};
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    api::Settings,
    check::invariants::check_all,
    protocol::BlockId,
    sim::Observer,
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

fn reorganise(network: &Network, body: &Value) -> Value {
    let answered = network.post("/lab/reorg", body);
    assert_eq!(answered.status, 200, "{body}: {}", answered.body);
    answered.body["data"].clone()
}

fn submit(network: &Network, nonce: u64) -> String {
    let transfer = transfer(network, nonce);
    let id = transfer["id"].as_str().expect("an id").to_owned();
    let answered = network.post("/api/transactions", &json!({ "transactions": [transfer] }));
    assert_eq!(answered.body["data"]["accept"], json!([id]), "{}", answered.body);
    id
}

/// The ids of all blocks, the newest first.
fn chain(network: &Network) -> Vec<String> {
    let body = network.get("/api/blocks?limit=100").body;
    let blocks = body["data"].as_array().expect("a list");
    blocks.iter().map(|block| block["id"].as_str().expect("an id").to_owned()).collect()
}

fn status_of(network: &Network, id: &str) -> (u16, u16) {
    let status = |target: &str| network.get(&format!("{target}/{id}")).status;
    (status("/api/transactions"), status("/api/transactions/unconfirmed"))
}

/// The blocks that the nodes stand on, each once.
fn tips(network: &Network) -> BTreeSet<BlockId> {
    let tips = network.handle.look(|stage| stage.world().tips().all().map(|tip| tip.id()).collect());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    runtime.block_on(tips).expect("it runs")
}

/// Holds every invariant of a chain's state against each block of the observed chain above a height.
fn check_chain(network: &Network, above: u32) {
    let tree = &network.plan.tree;
    for id in chain(network) {
        let link = tree.link(&id.parse().expect("an id")).expect("it is in the tree");
        if link.height().0 > above {
            check_all(tree, &link).expect("all invariants hold");
        }
    }
}

#[test]
fn a_reorganisation_goes_back_to_a_block_by_its_height_or_its_id() {
    let network = Network::start(8);
    network.advance(14);
    let old = chain(&network);
    for (to, height) in [(json!(12), 12), (json!(old[15 - 9]), 9)] {
        let tip = network.get("/api/blockchain").body["data"]["block"]["height"].as_u64().expect("a height");
        let done = reorganise(&network, &json!({ "to": to }));
        assert_eq!(done["common"], json!({"id": old[15 - height], "height": height}), "{to}");
        assert_eq!(done["reverted"].as_array().map(Vec::len), Some(tip as usize - height), "{to}");
        assert_eq!(chain(&network)[tip as usize - height..], old[15 - height..], "below it all stays");
    }
    let tip = chain(&network)[0].clone();
    let now = network.get("/api/blockchain").body;
    let allowed = "allowed is a block of the node's chain below its tip, by its id or by its height, 1 to 14";
    for (wrong, found) in [
        (json!(0), "found 0".to_owned()),
        (json!(15), "found 15".to_owned()),
        (json!(tip), format!("found \"{tip}\"")),
        // It was left.
        (json!(old[0]), format!("found \"{}\"", old[0])),
        (json!("17"), "found \"17\"".to_owned()),
    ] {
        let refused = network.post("/lab/reorg", &json!({ "to": wrong }));
        let told = format!("key 'to': {found}, {allowed}");
        assert_eq!((refused.status, &refused.body["message"]), (422, &json!(told)));
    }
    let nowhere = network.post("/lab/reorg", &json!({"to": 3, "node": 9}));
    assert_eq!(nowhere.status, 422, "{}", nowhere.body);
    assert!(nowhere.body["message"].as_str().is_some_and(|why| why.contains("node")), "{}", nowhere.body);
    assert_eq!(network.get("/api/blockchain").body, now, "what is refused changes nothing");
}

#[test]
fn the_network_leaves_its_chain_for_another_branch_and_goes_on_along_it() {
    for depth in [1, 5, 12] {
        let network = Network::start(7);
        network.advance(14);
        let old = chain(&network);
        let done = reorganise(&network, &json!({ "depth": depth }));
        let id = |part: &str| done[part]["id"].as_str().expect("an id").to_owned();
        assert_eq!((id("from"), id("common")), (old[0].clone(), old[depth].clone()));
        let reverted: Vec<&str> = done["reverted"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|block| block["id"].as_str().expect("an id"))
            .collect();
        assert_eq!(reverted, old[..depth], "the highest first");
        let new = chain(&network);
        assert_eq!(new.len(), old.len(), "each slot has another block");
        assert_eq!((&id("to"), &new[depth..]), (&new[0], &old[depth..]));
        assert!(new[..depth].iter().all(|block| !old.contains(block)), "{new:?}");
        for block in &reverted {
            assert_eq!(network.get(&format!("/api/blocks/{block}")).status, 404);
        }
        assert_eq!((&done["moved"], &done["left"]), (&json!([0, 1, 2, 3, 4]), &json!([])));
        assert_eq!(tips(&network).len(), 1, "all nodes stand on it");
        network.advance(10);
        let on = chain(&network);
        assert_eq!(on.len(), new.len() + 10, "no slot is missed for it");
        assert_eq!(on[10..], new[..], "nobody comes back");
        assert_eq!(tips(&network).len(), 1);
        check_chain(&network, 1);
    }
}

#[test]
fn reverted_transactions_go_back_to_the_pools_or_not_as_asked() {
    let network = Network::start(8);
    network.advance(4);
    let first = submit(&network, 1);
    network.advance(2);
    let second = submit(&network, 2);
    network.advance(2);
    assert_eq!((status_of(&network, &first), status_of(&network, &second)), ((200, 404), (200, 404)));
    let became = |done: &Value| {
        let list = done["transactions"].as_array().expect("a list").clone();
        list.iter()
            .map(|one| (one["id"].as_str().unwrap().to_owned(), one["became"].as_str().unwrap().to_owned()))
            .collect::<Vec<_>>()
    };
    let pair = |a: &str, b: &str| vec![(first.clone(), a.to_owned()), (second.clone(), b.to_owned())];

    let done = reorganise(&network, &json!({"depth": 5, "transactions": "return"}));
    assert_eq!(became(&done), pair("returned", "returned"));
    assert_eq!((status_of(&network, &first), status_of(&network, &second)), ((404, 200), (404, 200)));
    let sent = format!("/api/wallets/{}/transactions/sent", network.testnet.accounts[0].address);
    assert_eq!(network.get(&sent).body["meta"]["totalCount"], 0);
    network.advance(2);
    assert_eq!((status_of(&network, &first), status_of(&network, &second)), ((200, 404), (200, 404)));

    // The second cannot stand in a pool without the first.
    let done = reorganise(&network, &json!({"depth": 3, "transactions": [second]}));
    assert_eq!(became(&done), pair("dropped", "refused"));
    assert_eq!((status_of(&network, &first), status_of(&network, &second)), ((404, 404), (404, 404)));
    network.advance(6);
    assert_eq!(status_of(&network, &first), (404, 404), "it is in no pool of any forger");
    // A client that still has it may hand it in again.
    assert_eq!(submit(&network, 1), first);
    network.advance(2);
    assert_eq!(status_of(&network, &first), (200, 404));
    let done = reorganise(&network, &json!({"depth": 3, "transactions": "drop"}));
    assert_eq!(became(&done), [(first.clone(), "dropped".to_owned())]);
    network.advance(6);
    assert_eq!(status_of(&network, &first), (404, 404));
    let balance =
        network.get(&format!("/api/wallets/{}", network.testnet.accounts[0].address)).body["data"]["balance"].clone();
    assert_eq!(balance, "100000000000000", "it has what it began with");
    check_chain(&network, 1);
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers_and_changes_nothing() {
    let network = Network::start(8);
    network.advance(5);
    submit(&network, 1);
    let before = chain(&network);
    let refused = |body: Value, part: &str| {
        let answered = network.post("/lab/reorg", &body);
        let message = answered.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(answered.status == 422 && message.contains(part), "{body}: {}", answered.body);
        assert_eq!(chain(&network), before);
    };
    let deepest = "allowed is 1 to 5: node.rollback_max is 5000, the chain was at height 6 at most, and above genesis there are 5 blocks";
    refused(json!({"depth": 6}), &format!("key 'depth': found 6, {deepest}"));
    refused(json!({"depth": 0}), &format!("key 'depth': found 0, {deepest}"));
    refused(json!({"depth": 4_294_967_295_u64}), deepest);
    refused(json!({"depth": 1, "node": 5}), "key 'node': found 5, allowed is 0 to 4");
    let id = "ab".repeat(32);
    let none = format!("key 'transactions': {id} is none of the 0 transactions of the 2 blocks to revert");
    refused(json!({"depth": 2, "transactions": [id]}), &none);
    refused(json!({}), "keys 'depth' and 'to': found none");
    network.post("/lab/faults", &json!({"kind": "slow", "nodes": [1], "step_ms": 5}));
    refused(json!({"depth": 1, "node": 1}), "a fault slows node-1 down");
    network.post("/lab/nodes/2/crash", &Value::Null);
    refused(json!({"depth": 1, "node": 2}), "node-2 is down");
}

#[test]
fn what_is_refused_plays_nothing_that_is_due() {
    let network = Network::start(8);
    network.advance(5);
    // The delegate of the slot that begins now is due to look whether it can forge.
    let delivered = || {
        let delivered = network.handle.look(|stage| stage.world().delivered());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
        runtime.block_on(delivered).expect("it runs")
    };
    let before = delivered();
    for body in
        [json!({"depth": 9}), json!({"depth": 1, "node": 5}), json!({"depth": 1, "transactions": ["ab".repeat(32)]})]
    {
        assert_eq!(network.post("/lab/reorg", &body).status, 422, "{body}");
        assert_eq!(delivered(), before, "{body}");
    }
    reorganise(&network, &json!({"depth": 1}));
    assert!(delivered() > before);
}

#[test]
fn nodes_that_are_down_or_cut_off_stay_as_they_are() {
    let network = Network::start(9);
    network.advance(10);
    network.post("/lab/nodes/4/crash", &json!({}));
    network.post("/lab/faults", &json!({"kind": "isolate", "nodes": [3]}));
    let done = reorganise(&network, &json!({"depth": 5}));
    assert_eq!((&done["moved"], &done["left"]), (&json!([0, 1, 2]), &json!([3, 4])));
    assert_eq!(done["blocks"].as_array().map(Vec::len), Some(3), "the slots of the other two are empty: {done}");
    assert_eq!(tips(&network).len(), 2, "the old tip and the new one");
    network.post("/lab/faults", &json!({"kind": "offline", "delegates": [0]}));
    let done_again = reorganise(&network, &json!({"depth": 3}));
    assert_eq!(done_again["blocks"].as_array().map(Vec::len), Some(2), "one is switched off: {done_again}");
    network.delete("/lab/faults/2");
    // The rules bring them back, once they are there again and see that they are alone.
    network.delete("/lab/faults/1");
    network.post("/lab/nodes/4/restart", &Value::Null);
    network.advance(400);
    assert_eq!(tips(&network).len(), 1);
    assert!(chain(&network)[0] != done["to"]["id"].as_str().expect("an id"));
    let common = done["common"]["id"].as_str().expect("an id");
    assert_eq!(network.get(&format!("/api/blocks/{common}")).status, 200);
}

/// The rollbacks by a node's own events.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(usize, Vec<String>)>>);

impl Observer for Told {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut told = self.0.lock().expect("no one panics while holding it");
        match event {
            Event::BlockReverted(_) => told.0 += usize::from(node == NodeId(0)),
            Event::RolledBack { cause, .. } if *cause == RollbackCause::Asked => told.1.push(node.to_string()),
            _ => {}
        }
    }
}

#[test]
fn a_reorganisation_is_told_by_the_events_of_a_rollback() {
    let told = Told::default();
    let network = Network::watched(7, vec![Box::new(told.clone())]);
    network.advance(9);
    reorganise(&network, &json!({"depth": 4}));
    let told = told.0.lock().expect("no one panics while holding it");
    assert_eq!((told.0, told.1.len()), (4, 5), "{told:?}");
}

/// Checks the sums of one answer, whatever the head.
fn check_answers(network: &Network) {
    let wallets = network.get("/api/wallets?limit=100").body;
    let wallets = wallets["data"].as_array().expect("a list");
    let balances =
        wallets.iter().map(|row| row["balance"].as_str().expect("a text").parse::<i128>().expect("a number"));
    // No block has a reward here, and the sender of what genesis gave owes all of it.
    assert_eq!(balances.sum::<i128>(), 0);
    let blocks = network.get("/api/blocks?limit=100").body;
    let rows = blocks["data"].as_array().expect("a list");
    assert_eq!(blocks["meta"]["totalCount"], rows[0]["height"], "the highest block is the newest");
    for (index, pair) in rows.windows(2).enumerate() {
        assert_eq!((&pair[0]["previous"], &pair[0]["confirmations"]), (&pair[1]["id"], &json!(index)));
    }
    let address = network.testnet.accounts[0].address;
    let sent = network.get(&format!("/api/wallets/{address}/transactions/sent?limit=100")).body;
    let rows = sent["data"].as_array().expect("a list");
    assert_eq!(sent["meta"]["totalCount"], rows.len());
    let mut nonces: Vec<u64> =
        rows.iter().map(|row| row["nonce"].as_str().expect("a text").parse().expect("a number")).collect();
    nonces.sort_unstable();
    assert!(nonces.iter().copied().eq(1..=nonces.len() as u64), "no gap: {nonces:?}");
}

#[test]
fn no_reader_sees_a_mixture_while_chains_are_left() {
    let network = Network::start(11);
    network.advance(8);
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut is_last = false;
                while !is_last {
                    is_last = is_over.load(Ordering::Relaxed);
                    check_answers(&network);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for turn in 0..40_u32 {
            let next = network.get(&format!("/api/wallets/{}", network.testnet.accounts[0].address)).body;
            let nonce: u64 = next["data"]["nonce"].as_str().expect("a text").parse().expect("a number");
            // Returned transactions wait in the pool already.
            network.post("/api/transactions", &json!({"transactions": [transfer(&network, nonce + 1)]}));
            network.advance(2);
            let transactions = if turn % 2 == 0 { "return" } else { "drop" };
            reorganise(&network, &json!({"depth": 1 + turn % 7, "transactions": transactions}));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() >= 3);
    network.advance(5);
    check_answers(&network);
    assert_eq!(tips(&network).len(), 1);
}

/// One request of those who steer a run.
#[derive(Clone, Debug)]
enum Step {
    Advance(u32),
    Add(usize),
    End(usize),
    Crash(u32),
    Restart(u32),
    Reorganise(u32, bool),
    Transfer,
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = of_every_kind().len();
    prop_oneof![
        4 => (1..4_u32).prop_map(Step::Advance),
        2 => (0..kinds).prop_map(Step::Add),
        2 => (0..12_usize).prop_map(Step::End),
        1 => (0..5_u32).prop_map(Step::Crash),
        1 => (0..5_u32).prop_map(Step::Restart),
        2 => (1..9_u32, any::<bool>()).prop_map(|(depth, back)| Step::Reorganise(depth, back)),
        2 => Just(Step::Transfer),
    ]
}

fn take(network: &Network, step: &Step) -> u16 {
    match step {
        Step::Advance(slots) => network.post("/lab/advance", &json!({ "slots": slots })).status,
        Step::Add(kind) => network.post("/lab/faults", &of_every_kind()[*kind]).status,
        Step::End(id) => network.delete(&format!("/lab/faults/{id}")).status,
        Step::Crash(node) => network.post(&format!("/lab/nodes/{node}/crash"), &Value::Null).status,
        Step::Restart(node) => network.post(&format!("/lab/nodes/{node}/restart"), &Value::Null).status,
        Step::Reorganise(depth, back) => {
            let transactions = if *back { "return" } else { "drop" };
            network.post("/lab/reorg", &json!({"depth": depth, "transactions": transactions})).status
        }
        Step::Transfer => {
            let wallet = network.get(&format!("/api/wallets/{}", network.testnet.accounts[0].address)).body;
            let nonce: u64 = wallet["data"]["nonce"].as_str().expect("a text").parse().expect("a number");
            network.post("/api/transactions", &json!({"transactions": [transfer(network, nonce + 1)]})).status
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        max_shrink_iters: 40,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/tests/lab_reorgs.txt"))),
        ..ProptestConfig::default()
    })]

    /// Whatever is done to a network, its chain keeps the invariants, and the recording repeats it.
    #[test]
    fn sixty_requests_keep_the_invariants_and_the_recording_repeats_them(
        steps in prop::collection::vec(step(), 60),
        inline in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let file = folder.path().join("session.jsonl");
        let network = Network::recorded(5, Settings::default(), &[], inline, Some(&file));
        network.advance(6);
        for step in &steps {
            let status = take(&network, step);
            prop_assert!([200, 201, 204, 404, 422].contains(&status), "{step:?}: {status}");
            check_answers(&network);
        }
        check_chain(&network, 1);
        let begun = (network.plan.clone(), network.desk.clone());
        drop(network);
        let (replayed, end) = (replayed(&begun, &file), end_of(&file));
        prop_assert_eq!((json!(replayed.digest), json!(replayed.end_us)), (end["digest"].clone(), end["at"].clone()));
    }
}

#[test]
fn the_recording_of_reorganisations_is_the_same_on_both_stages() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut digests = BTreeSet::new();
    for inline in [false, true] {
        let file = folder.path().join(format!("{inline}.jsonl"));
        let network = Network::recorded(3, Settings::default(), &[], inline, Some(&file));
        network.advance(6);
        let first = submit(&network, 1);
        network.advance(3);
        reorganise(&network, &json!({"depth": 4, "transactions": [first]}));
        // Refused ones are written down, too, and do nothing again.
        assert_eq!(network.post("/lab/reorg", &json!({"depth": 100})).status, 422);
        network.advance(3);
        reorganise(&network, &json!({"depth": 7, "transactions": "drop", "node": 3}));
        network.advance(20);
        let begun = (network.plan.clone(), network.desk.clone());
        drop(network);
        let replayed = replayed(&begun, &file);
        assert_eq!((json!(replayed.digest), replayed.inputs), (end_of(&file)["digest"].clone(), 4));
        digests.insert(replayed.digest);
    }
    assert_eq!(digests.len(), 1);
}
