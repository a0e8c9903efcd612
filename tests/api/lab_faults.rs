//! Faults of a running network, over HTTP: added, ended, refused, recorded and repeated.

use crate::live::Network;
use dposlab::{
    api::Settings,
    report::session::{ReplaySummary, SessionFile, replay},
    scenario::{FaultDesk, run::on_current_thread},
    sim::{FaultKind, Plan},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, thread};

/// A fault of every kind, as it can be added to a network of five delegates, and one that is off by rounds.
pub fn of_every_kind() -> Vec<Value> {
    let mut all: Vec<Value> =
        FaultKind::examples().iter().map(|text| toml::from_str(text).expect("it is a table")).collect();
    all.push(json!({"kind": "offline", "delegates": {"share": 0.4}, "rounds": {"from": 1, "to": 900}}));
    // Delegates do not come back from a resignation.
    let resigned = all.iter_mut().find(|fault| fault["kind"] == "mass-resignation").expect("it is a kind");
    resigned["from"] = json!({"height": 1000});
    all
}

/// Plays a recorded session again, on the ractor stage.
pub fn replayed((plan, desk): &(Plan, FaultDesk), file: &Path) -> ReplaySummary {
    let file = SessionFile::open(file).expect("it is a session");
    on_current_thread(replay(file, plan, desk, None)).expect("it is the same")
}

/// The last line of a record.
pub fn end_of(file: &Path) -> Value {
    let text = fs::read_to_string(file).expect("it is there");
    serde_json::from_str(text.lines().last().expect("it has lines")).expect("every line is JSON")
}

fn faults(network: &Network) -> Vec<Value> {
    let answered = network.get("/lab/faults");
    assert_eq!(answered.status, 200, "{}", answered.body);
    answered.body["data"].as_array().expect("a list").clone()
}

fn add(network: &Network, fault: &Value) -> Value {
    let answered = network.post("/lab/faults", fault);
    assert_eq!(answered.status, 201, "{fault}: {}", answered.body);
    answered.body["data"].clone()
}

fn height(network: &Network) -> u64 {
    network.get("/api/blockchain").body["data"]["block"]["height"].as_u64().expect("a number")
}

#[test]
fn every_kind_of_fault_comes_and_goes_and_the_recording_repeats_it() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut digests = BTreeSet::new();
    for inline in [false, true] {
        let file = folder.path().join(format!("{inline}.jsonl"));
        let network = Network::recorded(3, Settings::default(), &[], inline, Some(&file));
        network.advance(6);
        let kinds: BTreeSet<String> =
            of_every_kind().iter().map(|fault| fault["kind"].as_str().expect("a text").to_owned()).collect();
        let all = FaultKind::names().into_iter().map(str::to_owned);
        assert_eq!(kinds, all.collect(), "every kind once at least");
        for (id, fault) in of_every_kind().iter().enumerate() {
            let added = add(&network, fault);
            let name = fault["kind"].as_str().expect("a text");
            let is_over = matches!(name, "heal" | "restart");
            let waits = fault.get("from").is_some() || fault.get("rounds").is_some();
            let state = if is_over {
                "over"
            } else if waits && name != "offline" {
                "waiting"
            } else {
                "in-force"
            };
            assert_eq!((&added["id"], &added["state"]), (&json!(id), &json!(state)), "{added}");
            assert_eq!(added["fault"]["kind"], name);
            network.advance(2);
            assert_eq!(network.delete(&format!("/lab/faults/{id}")).status, 204);
            assert_eq!(faults(&network)[id]["state"], "over", "{fault}");
            network.advance(1);
        }
        let before = height(&network);
        network.advance(20);
        assert!(height(&network) >= before + 10, "the network goes on without them");
        let begun = (network.plan.clone(), network.desk.clone());
        drop(network);
        let replayed = replayed(&begun, &file);
        let end = end_of(&file);
        assert_eq!((json!(replayed.digest), json!(replayed.end_us)), (end["digest"].clone(), end["at"].clone()));
        assert_eq!(replayed.inputs as usize, 2 * of_every_kind().len());
        digests.insert(replayed.digest);
    }
    assert_eq!(digests.len(), 1, "both stages give the same");
}

/// A revert takes faults away. Whoever adds one meanwhile is told of its own.
#[test]
fn faults_that_are_added_beside_reverts_are_told_of() {
    let network = Network::start(66);
    let taken = network.post("/lab/snapshots", &json!({}));
    assert_eq!(taken.status, 201, "{}", taken.body);
    thread::scope(|scope| {
        let reverts = scope.spawn(|| {
            for _ in 0..150 {
                let back = network.post("/lab/snapshots/1/revert", &json!({}));
                assert_eq!(back.status, 200, "{}", back.body);
            }
        });
        for number in 0..150 {
            let (path, body) = match number % 3 {
                0 => ("/lab/faults", json!({"kind": "isolate", "nodes": [1]})),
                1 => ("/lab/nodes/2/crash", json!({})),
                _ => ("/lab/nodes/2/restart", json!({})),
            };
            let added = network.post(path, &body);
            assert_eq!(added.status, 201, "{path}: {}", added.body);
            let id = &added.body["data"]["id"];
            let ended = network.send_raw(&format!(
                "DELETE /lab/faults/{id} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
                network.address
            ));
            assert!(ended.starts_with("HTTP/1.1 204") || ended.starts_with("HTTP/1.1 404"), "{ended}");
        }
        reverts.join().expect("every revert is done");
    });
}

#[test]
fn a_fault_waits_for_its_trigger_and_ends_by_it() {
    let network = Network::start(4);
    network.advance(3);
    let waits = json!({"kind": "crash", "nodes": [1, 2, 3, 4], "from": {"height": 8}, "until": {"after": 80.0}});
    let watched = || network.get("/watch").body["data"]["faults"].clone();
    assert_eq!((&add(&network, &waits)["state"], &watched()[0]["state"]), (&json!("waiting"), &json!("waiting")));
    assert_eq!(faults(&network)[0]["fault"]["from"], json!({"height": 8}));
    network.advance(6);
    let status = &faults(&network)[0];
    assert_eq!((&status["state"], height(&network)), (&json!("in-force"), 8), "{status}");
    assert!(status["since"].as_u64() > Some(0), "{status}");
    network.advance(8);
    assert_eq!(height(&network), 8, "a node alone does not forge");
    network.advance(20);
    assert_eq!((&faults(&network)[0]["state"], watched()), (&json!("over"), json!([])), "what is over is not watched");
    assert!(height(&network) > 9, "they are back");
    let never = json!({"kind": "isolate", "nodes": [0], "from": {"height": 40}});
    let id = add(&network, &never)["id"].clone();
    assert_eq!(network.delete(&format!("/lab/faults/{id}")).status, 204);
    network.advance(40);
    assert!(height(&network) > 44, "it never began");
}

#[test]
fn a_delegate_is_off_in_the_rounds_of_an_added_fault_until_it_is_ended() {
    let network = Network::start(6);
    network.advance(4);
    let id = add(&network, &json!({"kind": "offline", "delegates": [0, 1, 2, 3, 4], "rounds": {"from": 3, "to": 90}}))
        ["id"]
        .clone();
    network.advance(20);
    assert_eq!(height(&network), 10, "two rounds of five");
    assert_eq!(faults(&network)[0]["state"], "in-force");
    assert_eq!(network.delete(&format!("/lab/faults/{id}")).status, 204);
    network.advance(10);
    assert!(height(&network) >= 18, "{}", height(&network));
}

#[test]
fn a_node_crashes_and_is_restarted_by_the_short_forms() {
    let network = Network::start(5);
    network.advance(4);
    let crashed = network.post("/lab/nodes/0/crash", &json!({}));
    assert_eq!((crashed.status, &crashed.body["data"]["state"]), (201, &json!("in-force")), "{}", crashed.body);
    let refused = network.post("/api/transactions", &json!({"transactions": [transfer(&network, 1)]}));
    assert!(refused.body["errors"].to_string().contains("The node is down."), "{}", refused.body);
    network.advance(10);
    assert_eq!(height(&network), 5, "the observed node hears nothing");
    let back = network.post("/lab/nodes/0/restart", &json!({"keep_pool": false}));
    assert_eq!((back.status, &back.body["data"]["fault"]["kind"]), (201, &json!("restart")), "{}", back.body);
    assert_eq!(back.body["data"]["fault"]["keep_pool"], false);
    assert!(faults(&network).iter().all(|fault| fault["state"] == "over"), "{:?}", faults(&network));
    network.advance(12);
    assert!(height(&network) > 12, "it has caught up: {}", height(&network));
    for target in ["/lab/nodes/5/crash", "/lab/nodes/5/restart"] {
        let refused = network.post(target, &json!({}));
        let message = json!("key 'nodes': found 5, allowed is 0 to 4");
        assert_eq!((refused.status, &refused.body["message"]), (422, &message), "{target}");
    }
    assert_eq!(network.post("/lab/nodes/0/crash", &json!({"pool": 1})).status, 422);
}

/// A transfer of one coin from the first account.
pub fn transfer(network: &Network, nonce: u64) -> Value {
    use dposlab::protocol::{Arktoshi, Nonce, Transaction};
    let (sender, recipient) = (&network.testnet.accounts[0].keys, network.testnet.accounts[1].address);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(nonce)).fee(Arktoshi::coins(1));
    transfer.sign(sender).to_json()
}

#[test]
fn a_live_run_is_never_proved_to_have_halted() {
    let network = Network::start(5);
    network.advance(4);
    network.post("/lab/faults", &json!({"kind": "crash", "nodes": {"share": 1.0}}));
    network.advance(30);
    let halted = network.handle.look(|stage| (stage.world().tips().live(), stage.world().standstill().is_some()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    assert_eq!(runtime.block_on(halted), Ok((0, false)), "whoever steers it may bring a node back");
    assert_eq!(network.delete("/lab/faults/0").status, 204);
    network.advance(30);
    assert!(height(&network) > 15, "{}", height(&network));
}

#[test]
fn a_node_that_stands_still_does_not_answer_and_nothing_breaks() {
    let network = Network::start(5);
    network.advance(4);
    for fault in [json!({"kind": "pause", "nodes": [0]}), json!({"kind": "slow", "nodes": [0], "step_ms": 3000})] {
        let id = add(&network, &fault)["id"].clone();
        network.post("/api/transactions", &json!({"transactions": [transfer(&network, 1)]}));
        let refused = network.post("/api/transactions", &json!({"transactions": [transfer(&network, 1)]}));
        assert_eq!(refused.status, 200, "{}", refused.body);
        assert!(refused.body["errors"].to_string().contains("does not answer"), "{}", refused.body);
        network.advance(2);
        assert_eq!(network.delete(&format!("/lab/faults/{id}")).status, 204);
        network.advance(2);
    }
    network.advance(3);
    assert_eq!(network.get("/api/transactions?type=0&senderPublicKey=").status, 422);
    let sent = format!("/api/wallets/{}/transactions/sent", network.testnet.accounts[0].address);
    assert_eq!(network.get(&sent).body["meta"]["totalCount"], 1, "what it was handed it has heard in the end");
}

#[test]
fn what_is_no_fault_is_refused_by_its_key_and_changes_nothing() {
    let network = Network::start(5);
    let refused = |fault: Value| {
        let answered = network.post("/lab/faults", &fault);
        assert_eq!(answered.status, 422, "{fault}: {}", answered.body);
        answered.body["message"].as_str().expect("a text").to_owned()
    };
    assert_eq!(
        refused(json!({"kind": "crash", "nodes": ["genesis_9"]})),
        "key 'nodes': found 'genesis_9', allowed is 'genesis_1' to 'genesis_5'"
    );
    assert_eq!(
        refused(json!({"kind": "isolate", "nodes": {"share": 2}})),
        "key 'nodes.share': found 2, allowed is 0 to 1"
    );
    assert!(refused(json!({"kind": "isolat", "nodes": [1]})).starts_with("key 'kind': unknown variant `isolat`"));
    assert!(refused(json!([{"kind": "heal"}])).contains("an object with a 'kind'"));
    assert!(refused(json!({"kind": "heal", "until": {"after": 3}})).contains("it is over at once"));
    assert_eq!(faults(&network), Vec::<Value>::new());
    for (target, status) in [("/lab/faults/0", 404), ("/lab/faults/-1", 422), ("/lab/faults/x", 422)] {
        assert_eq!(network.delete(target).status, status, "{target}");
    }
    assert_eq!(network.get("/lab/faults/0").status, 404);
}

#[test]
fn a_node_says_what_keeps_it_down_now() {
    let network = Network::start(5);
    let cause = || network.get("/lab").body["data"]["nodes"][2]["cause"].take();
    network.advance(2);
    add(&network, &json!({"kind": "pause", "nodes": [2]}));
    assert_eq!(cause(), "pause");
    add(&network, &json!({"kind": "crash", "nodes": [2]}));
    assert_eq!(cause(), "crash");
    assert_eq!(network.delete("/lab/faults/1").status, 204);
    assert_eq!(cause(), "pause", "the crash is over, and it still stands still");
    assert_eq!(network.delete("/lab/faults/0").status, 204);
    assert_eq!(cause(), Value::Null);
}

/// The end of a fault reaches no actor, so no count of inputs says whether it has come.
#[test]
fn a_fault_that_ends_while_no_actor_hears_anything_has_ended_in_the_replay_too() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("session.jsonl");
    let network = Network::recorded(3, Settings::default(), &[], true, Some(&file));
    network.advance(6);
    add(&network, &json!({"kind": "isolate", "nodes": [3, 4], "until": {"after": 7.9}}));
    network.advance(1);
    assert_eq!(faults(&network)[0]["state"], "over");
    let done = network.post("/lab/reorg", &json!({"depth": 3}));
    assert_eq!(done.body["data"]["moved"], json!([0, 1, 2, 3, 4]), "{}", done.body);
    network.advance(3);
    let begun = (network.plan.clone(), network.desk.clone());
    drop(network);
    assert_eq!(json!(replayed(&begun, &file).digest), end_of(&file)["digest"]);
}

#[test]
fn rounds_that_are_over_are_refused_and_the_running_one_is_not() {
    let network = Network::start(8);
    network.advance(7);
    assert_eq!(height(&network), 8, "round 2 has the blocks 6 to 10");
    let offline = |rounds: Value| json!({"kind": "offline", "delegates": [1], "rounds": rounds});
    for over in [json!(1), json!([1]), json!({"from": 1, "to": 1})] {
        let refused = network.post("/lab/faults", &offline(over));
        let message = json!("key 'rounds': round 1 is over, allowed are later rounds");
        assert_eq!((refused.status, &refused.body["message"]), (422, &message));
    }
    for runs in [json!(2), json!([2, 1]), json!({"from": 1, "to": 2})] {
        add(&network, &offline(runs));
    }
    assert_eq!(faults(&network).len(), 3);
}
