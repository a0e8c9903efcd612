//! Blocks that a client makes and hands in, and pending transactions that are taken out of all pools.

use crate::{
    lab_faults::{end_of, replayed, transfer},
    live::Network,
    support::Answered,
};
use dposlab::{
    actors::NodeId,
    api::{Dialect, Settings},
    ledger::Link,
    protocol::{Arktoshi, Block, BlockDraft, KeyPair, Nonce, SignedTransaction, Slot, Timestamp, Transaction},
    sim::{Intervention, Outcome, live::Pace},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
};

fn look<T: Send + 'static>(network: &Network, look: impl FnOnce(&dposlab::sim::World) -> T + Send + 'static) -> T {
    let looked = network.handle.look(|stage| look(stage.world()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    runtime.block_on(looked).expect("it runs")
}

fn tip(network: &Network) -> Arc<Link> {
    look(network, |world| world.tips().of(NodeId(0)).clone())
}

/// The heights that the nodes stand at, each once.
fn heights(network: &Network) -> BTreeSet<u32> {
    look(network, |world| world.tips().all().map(|tip| tip.height().0).collect())
}

fn pending(network: &Network) -> Vec<String> {
    let body = network.get("/api/transactions/unconfirmed").body;
    let all = body["data"].as_array().expect("a list");
    all.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

/// The owner of a slot on top of a block.
fn owner<'n>(network: &'n Network, tip: &Arc<Link>, slot: Slot) -> &'n KeyPair {
    let round = network.plan.tree.applied(tip).state.round().clone();
    let owner = round.owner(slot).expect("each slot has an owner").public_key;
    let all = network.plan.nodes.iter().filter_map(|node| node.forger.as_ref());
    all.into_iter().find(|keys| *keys.public() == owner).expect("all forge here")
}

/// The node that forges with these keys.
fn node_of(network: &Network, keys: &KeyPair) -> usize {
    let is_it = |forger: &Option<KeyPair>| forger.as_ref().is_some_and(|forger| forger.public() == keys.public());
    network.plan.nodes.iter().position(|node| is_it(&node.forger)).expect("it is on a node")
}

/// A block on top of another one, some slots after the running one, signed by whoever owns that slot or by other keys.
fn block(
    network: &Network,
    tip: &Arc<Link>,
    later: u32,
    keys: Option<&KeyPair>,
    transactions: Vec<Arc<SignedTransaction>>,
) -> Block {
    let (tree, now) = (&network.plan.tree, look(network, |world| world.now()));
    let slot = Slot(tree.slots().slot(now.seconds()).0 + later);
    let (height, milestones) = (tip.height().next(), &tree.config().milestones);
    let draft = BlockDraft {
        version: milestones.at(height).block.version,
        timestamp: Timestamp(tree.slots().start(slot).0),
        height,
        previous: Some(tip.id()),
        reward: milestones.at(height).reward,
        transactions,
    };
    Block::forge(draft, keys.unwrap_or_else(|| owner(network, tip, slot)), milestones)
}

fn as_json(network: &Network, block: &Block) -> Value {
    block.to_json(&network.plan.tree.config().milestones)
}

fn status_of(network: &Network, id: &str) -> u16 {
    network.get(&format!("/api/transactions/{id}")).status
}

fn hand_in(network: &Network, block: &Value) -> Answered {
    network.post("/lab/blocks", &json!({ "block": block }))
}

fn submitted(network: &Network, nonce: u64) -> Value {
    let transfer = transfer(network, nonce);
    let answered = network.post("/api/transactions", &json!({ "transactions": [transfer] }));
    assert_eq!(answered.body["data"]["accept"], json!([transfer["id"]]), "{}", answered.body);
    transfer
}

#[test]
fn a_block_that_a_client_made_goes_the_way_of_all_blocks() {
    let network = Network::start(3);
    network.advance(5);
    for in_hex in [false, true] {
        let before = tip(&network);
        let context = network.plan.tree.config().transaction_context(before.height());
        let nonce = if in_hex { 2 } else { 1 };
        let given = transfer(&network, nonce);
        let given = SignedTransaction::from_json(&given, &context).expect("it is one");
        let made = block(&network, &before, 0, None, vec![Arc::new(given.clone())]);
        let body = match in_hex {
            true => hex::encode(made.to_bytes(&network.plan.tree.config().milestones)).into(),
            false => as_json(&network, &made),
        };
        let slot = network.plan.tree.slots().slot(made.header.timestamp);
        let node = node_of(&network, owner(&network, &before, slot));
        let taken = network.post("/lab/blocks", &json!({ "block": body, "node": node }));
        let told = json!({"node": node, "id": made.id, "height": made.height(), "transactions": 1});
        assert_eq!((taken.status, &taken.body["data"]), (200, &told), "{}", taken.body);
        assert_eq!(heights(&network).len(), 2, "the others hear of it as of any block");
        let again = network.post("/lab/blocks", &json!({ "block": body, "node": node }));
        assert_eq!(again.status, 422, "{}", again.body);
        assert!(again.body["message"].as_str().is_some_and(|why| why.contains("passes block")), "{}", again.body);
        network.advance(2);
        assert_eq!(network.get(&format!("/api/transactions/{}", given.id())).body["data"]["blockId"], json!(made.id));
        // By the limits of the reference's gossip a node may miss one of two blocks that come so soon after each other.
        let winning = look(&network, |world| world.tips().winning().clone());
        let follow = look(&network, |world| world.tips().all().filter(|tip| tip.is(world.tips().winning())).count());
        assert!(follow + 1 >= network.plan.nodes.len(), "{follow} nodes forge on top of it");
        assert_eq!(winning.parent().map(|parent| parent.id()), Some(made.id));
        let at_its_height = network.get(&format!("/api/blocks/{}", made.height())).body;
        assert_eq!(at_its_height["data"]["id"], json!(made.id));
    }
}

#[test]
fn a_block_that_no_node_takes_is_refused_with_the_rule_and_changes_nothing() {
    let network = Network::start(3);
    network.advance(5);
    let before = tip(&network);
    let good = || block(&network, &before, 0, None, Vec::new());
    let parent = before.parent().expect("it is no genesis").clone();
    let slot = network.plan.tree.slots().slot(look(&network, |world| world.now()).seconds());
    let stranger = {
        let owner = owner(&network, &before, slot).public();
        let all = network.plan.nodes.iter().filter_map(|node| node.forger.as_ref());
        all.into_iter().find(|keys| keys.public() != owner).expect("there are several")
    };
    let mut unsigned = as_json(&network, &good());
    unsigned["blockSignature"] = json!("00");
    let mut richer = as_json(&network, &good());
    richer["reward"] = json!("1");
    // The bytes of these say something else, or nothing, to whoever reads them again.
    let signed = |signature: &str| {
        let mut block = as_json(&network, &good());
        block["blockSignature"] = json!(signature);
        block
    };
    let longer = format!("{}00", good().header.signature.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let mut first = as_json(&network, &good());
    (first["height"], first["id"]) = (json!(1), json!("7"));
    for (body, part) in [
        (as_json(&network, &block(&network, &before, 0, Some(stranger), Vec::new())), "slot"),
        (as_json(&network, &block(&network, &before, 9, None, Vec::new())), "slot"),
        (as_json(&network, &block(&network, &parent, 0, None, Vec::new())), "height"),
        (unsigned, "key 'block': it has no wire bytes"),
        (signed(""), "key 'block': it"),
        (signed(&"ff".repeat(80)), "key 'block': it"),
        (signed(&longer), "key 'block': it"),
        (first, "key 'block': it"),
        (richer, "reward"),
        (json!({}), "key 'block'"),
        (json!("zz"), "key 'block': not hex"),
        (json!("00"), "key 'block'"),
        (json!(7), "key 'block': found 7, allowed is a block as an object, or its wire bytes in hex"),
    ] {
        let refused = hand_in(&network, &body);
        let why = refused.body["message"].as_str().unwrap_or_default();
        assert!(refused.status == 422 && why.contains(part), "{body}: {}", refused.body);
    }
    for (body, part) in [
        (json!({}), "key 'block': found none"),
        (json!([]), "the body"),
        (json!({"block": as_json(&network, &good()), "node": 99}), "key 'node': found 99, allowed is 0 to"),
        (json!({"block": as_json(&network, &good()), "nodes": 1}), "key 'nodes': no such key"),
    ] {
        let refused = network.post("/lab/blocks", &body);
        let why = refused.body["message"].as_str().unwrap_or_default();
        assert!(refused.status == 422 && why.contains(part), "{body}: {}", refused.body);
    }
    assert_eq!(heights(&network), BTreeSet::from([before.height().0]));
    // A node that is down looks at nothing, and hears of nothing later.
    assert_eq!(network.post("/lab/nodes/2/crash", &json!({})).status, 201);
    let down = network.post("/lab/blocks", &json!({"block": as_json(&network, &good()), "node": 2}));
    assert_eq!(down.status, 409, "{}", down.body);
    let other = network.post("/lab/blocks", &json!({"block": as_json(&network, &good()), "node": 1}));
    assert_eq!((other.status, &other.body["data"]["node"]), (200, &json!(1)), "{}", other.body);
    assert_eq!(tip(&network).id(), before.id(), "it is on its way to the observed node");
}

#[test]
fn a_pending_transaction_is_dropped_wherever_it_is() {
    // Nodes that hold it, messages that are on their way with it, and what waits to be sent on.
    for slots in [0, 1] {
        let network = Network::start(3);
        network.advance(5);
        if slots == 1 {
            // Nobody forges while it spreads.
            assert_eq!(
                network.post("/lab/faults", &json!({"kind": "offline", "delegates": {"share": 1.0}})).status,
                201
            );
        }
        let all: Vec<Value> = (1..=3).map(|nonce| submitted(&network, nonce)).collect();
        if slots > 0 {
            network.advance(slots);
        }
        let id = |index: usize| all[index]["id"].as_str().expect("an id");
        let dropped = network.delete(&format!("/lab/pool/{}", id(1)));
        assert_eq!(dropped.status, 200, "{}", dropped.body);
        let told: BTreeSet<&str> = dropped.body["data"]["transactions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|id| id.as_str().expect("an id"))
            .collect();
        assert_eq!(told, BTreeSet::from([id(1), id(2)]), "with what its sender has after it");
        let nodes = dropped.body["data"]["nodes"].as_array().map(Vec::len);
        assert_eq!(nodes, Some(if slots == 0 { 1 } else { network.plan.nodes.len() }), "{}", dropped.body);
        assert_eq!(pending(&network), [id(0)]);
        assert_eq!(network.delete(&format!("/lab/pool/{}", id(1))).status, 404, "it is gone");
        assert_eq!(network.delete("/lab/pool/7").status, 422);
        if slots == 1 {
            assert_eq!(network.delete("/lab/faults/0").status, 204);
        }
        // Another one takes its place.
        network.advance(3);
        let again = submitted(&network, 2);
        network.advance(4);
        let status = |id: &str| network.get(&format!("/api/transactions/{id}")).status;
        assert_eq!((status(id(0)), status(id(1)), status(id(2))), (200, 200, 404));
        assert_eq!(again["id"].as_str(), Some(id(1)), "the same one, for it is signed alike");
    }
}

/// The message that tells a pool to drop one is also the first that it hears of the newest block.
#[test]
fn what_blocks_hold_is_not_dropped_and_what_nobody_has_is_not_found() {
    let network = Network::start(3);
    network.advance(4);
    let id = submitted(&network, 1)["id"].as_str().expect("an id").to_owned();
    let confirmed = network.post("/lab/advance", &json!({"until": {"transaction": id}, "limit": 9}));
    assert_eq!(confirmed.body["data"]["stopped"], "reached", "{}", confirmed.body);
    assert_eq!(network.delete(&format!("/lab/pool/{}", "ab".repeat(32))).status, 404);
    assert_eq!(network.delete(&format!("/lab/pool/{id}")).status, 404);
    network.advance(3);
    assert_eq!(status_of(&network, &id), 200);
}

#[test]
fn what_is_dropped_may_come_again_at_once() {
    let network = Network::start(3);
    network.advance(4);
    let all: Vec<Value> = (1..=3).map(|nonce| submitted(&network, nonce)).collect();
    let id = |index: usize| all[index]["id"].as_str().expect("an id");
    let dropped = network.delete(&format!("/lab/pool/{}", id(0)));
    assert_eq!(dropped.body["data"]["transactions"].as_array().map(Vec::len), Some(3), "{}", dropped.body);
    assert_eq!(submitted(&network, 1), all[0], "signed alike");
    network.advance(8);
    assert_eq!([0, 1, 2].map(|index| status_of(&network, id(index))), [200, 404, 404]);
}

/// It waits at the node, which has not looked at it yet.
#[test]
fn what_waits_at_a_slow_node_is_dropped_as_well() {
    let network = Network::start(3);
    network.advance(4);
    let slow = json!({"kind": "slow", "nodes": [0], "step_ms": 3000});
    assert_eq!(network.post("/lab/faults", &slow).status, 201);
    network.advance(1);
    let given = transfer(&network, 1);
    network.post("/api/transactions", &json!({ "transactions": [given] }));
    let id = given["id"].as_str().expect("an id");
    let dropped = network.delete(&format!("/lab/pool/{id}"));
    assert_eq!(dropped.status, 200, "{}", dropped.body);
    assert_eq!(network.delete("/lab/faults/0").status, 204);
    network.advance(12);
    assert_eq!((status_of(&network, id), pending(&network).len()), (404, 0));
}

#[test]
fn what_is_pending_stays_so_through_a_reorganisation() {
    let network = Network::start(3);
    network.advance(4);
    let confirmed = submitted(&network, 1);
    network.advance(3);
    let waits = submitted(&network, 2);
    let (first, second) = (confirmed["id"].as_str().expect("an id"), waits["id"].as_str().expect("an id"));
    assert_eq!(pending(&network), [second]);
    let reorg = |body: Value| assert_eq!(network.post("/lab/reorg", &body).status, 200);
    reorg(json!({"depth": 1}));
    assert_eq!(pending(&network), [second], "the block that was left has none");
    reorg(json!({"depth": 6}));
    assert_eq!(pending(&network), [first, second], "in the order of their nonces");
    network.advance(2);
    assert!([first, second].iter().all(|id| network.get(&format!("/api/transactions/{id}")).status == 200));
    let third = submitted(&network, 3);
    reorg(json!({"depth": 8, "transactions": "drop"}));
    assert_eq!(pending(&network), Vec::<String>::new(), "it cannot be forged without those before: {third}");
}

#[test]
fn the_recording_of_what_was_handed_in_is_the_same_on_both_stages() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut digests = BTreeSet::new();
    for inline in [false, true] {
        let file = folder.path().join(format!("{inline}.jsonl"));
        let network = Network::recorded(3, Settings::default(), &[], inline, Some(&file));
        network.advance(6);
        let made = block(&network, &tip(&network), 0, None, Vec::new());
        assert_eq!(hand_in(&network, &as_json(&network, &made)).status, 200);
        // What is refused is written down, too, and does nothing again.
        assert_eq!(hand_in(&network, &as_json(&network, &made)).status, 422);
        network.advance(3);
        let id = submitted(&network, 1)["id"].clone();
        assert_eq!(network.delete(&format!("/lab/pool/{}", id.as_str().expect("an id"))).status, 200);
        network.advance(20);
        let begun = (network.plan.clone(), network.desk.clone());
        drop(network);
        let replayed = replayed(&begun, &file);
        assert_eq!((json!(replayed.digest), replayed.inputs), (end_of(&file)["digest"].clone(), 4));
        digests.insert(replayed.digest);
    }
    assert_eq!(digests.len(), 1);
}

#[test]
fn on_demand_a_request_does_not_wait_for_a_transaction_that_is_dropped() {
    for everywhere_or_here in [None, Some(NodeId(0))] {
        let slots = slots_until_dropped(everywhere_or_here);
        assert!(slots < 3, "{slots} slots were played: {everywhere_or_here:?}");
    }
}

/// The transaction is still pending at the node that took it, so a block may hold it.
#[test]
fn on_demand_a_request_waits_for_a_transaction_that_only_another_node_dropped() {
    let slots = slots_until_dropped(Some(NodeId(1)));
    assert!((119..=120).contains(&slots), "{slots} slots were played");
}

/// The slots for which a request at node 0 waits while its transaction is dropped at a node, or at all. No delegate forges, so that it
/// waits until 120 slots are over at most.
fn slots_until_dropped(node: Option<NodeId>) -> u32 {
    let network = Network::start(3);
    network.advance(5);
    let nobody = json!({"kind": "offline", "delegates": {"share": 1.0}});
    assert_eq!(network.post("/lab/faults", &nobody).status, 201);
    let context = network.plan.tree.config().transaction_context(tip(&network).height());
    let given = Arc::new(SignedTransaction::from_json(&transfer(&network, 1), &context).expect("it is one"));
    let (id, handle) = (given.id(), &network.handle);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    let (before, submission, after) = runtime.block_on(async {
        let (before, _) = handle.set_pace(Pace::OnDemand).await.expect("it runs");
        // The run stands until both requests are there.
        let (go, wait) = mpsc::channel();
        let (_, submission, dropped, ()) = tokio::join!(
            handle.look(move |_| wait.recv()),
            handle.submit(NodeId(0), vec![given].into()),
            async {
                // Node 1 has the transaction a moment later.
                for _ in 0..100_000 {
                    let drop = Intervention::DropPending { ids: [id].into(), node };
                    let Ok(Outcome::PendingDropped(gone)) = handle.intervene(drop).await else { panic!("it runs") };
                    if gone.transactions == [id].into() {
                        return gone.nodes;
                    }
                }
                panic!("it comes to no pool")
            },
            async { go.send(()).expect("it waits") },
        );
        assert!(node.is_none_or(|node| dropped == [node].into()), "{dropped:?}");
        (before, submission.expect("it runs"), handle.now().await.expect("it runs").0)
    });
    assert_eq!(submission.accept, [id], "it was taken before it was dropped");
    (after.seconds().0 - before.seconds().0) / 8
}

/// Two wallets want one name, and the block that a client hands in has the other's. Source: consensus.md 5.6, a list for a client.
#[test]
fn listing_what_is_pending_drops_what_cannot_be_applied_any_more_as_a_real_node_does() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for dialect in [Dialect::Documented, Dialect::Core26] {
        let (file, settings) =
            (folder.path().join(format!("{dialect:?}")), Settings { dialect, ..Settings::default() });
        let network = Network::recorded(3, settings, &[], false, Some(&file));
        network.advance(5);
        let registers = |account: usize| {
            let builder = Transaction::delegate_registration("twice").nonce(Nonce(1)).fee(Arktoshi::coins(25));
            builder.sign(&network.testnet.accounts[account].keys)
        };
        let (waits, forged) = (registers(0), registers(2));
        let other = Transaction::transfer(network.testnet.accounts[1].address, Arktoshi::coins(1));
        let other = other.nonce(Nonce(1)).fee(Arktoshi::coins(1)).sign(&network.testnet.accounts[3].keys);
        for one in [&waits, &other] {
            let answered = network.post("/api/transactions", &json!({ "transactions": [one.to_json()] }));
            assert_eq!(answered.body["data"]["accept"], json!([one.id()]), "{}", answered.body);
        }
        assert_eq!(pending(&network).len(), 2);
        let made = block(&network, &tip(&network), 0, None, vec![Arc::new(forged)]);
        assert_eq!(hand_in(&network, &as_json(&network, &made)).status, 200);
        let left = if dialect == Dialect::Core26 { vec![other.id()] } else { vec![waits.id(), other.id()] };
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        assert_eq!(pending(&network), left);
        let shown = network.get(&format!("/api/transactions/unconfirmed/{}", waits.id())).status;
        assert_eq!(shown, if dialect == Dialect::Core26 { 404 } else { 200 });
        assert_eq!(pending(&network), left, "once");
        // Only this node looked: the copies under way to the others go on, in the recording, too.
        network.advance(3);
        let begun = (network.plan.clone(), network.desk.clone());
        drop(network);
        assert_eq!(json!(replayed(&begun, &file).digest), end_of(&file)["digest"]);
    }
}
