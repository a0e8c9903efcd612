//! Isolated chains in one process: each is a network of its own, with its own API, and gone when it is deleted.

use crate::{folders::Receiver, testnet::Up};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read},
    time::Duration,
};

fn make(up: &Up, body: Value) -> Value {
    let (status, answer) = up.post("/lab/chains", &body);
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

/// The answer to a path below a chain's.
fn get(up: &Up, id: &Value, path: &str) -> Value {
    serde_json::from_slice(&up.bytes(&format!("/chains/{id}{path}"))).expect("JSON")
}

#[test]
fn chains_are_networks_of_their_own() {
    let up = Up::start(&["--delegates", "5", "--pace", "manual", "--seed", "7"]);
    up.advance(3);
    let (same, other) = (make(&up, json!({})), make(&up, json!({"seed": 8, "delegates": 3})));
    assert_eq!((&same["id"], &same["seed"], &same["delegates"]), (&json!(1), &json!(7), &json!(5)));
    assert_eq!((&other["id"], &other["seed"], &other["delegates"]), (&json!(2), &json!(8), &json!(3)));
    assert_eq!(same["nethash"], up.ready["nethash"], "it is the same network, from its beginning");
    assert_eq!(same["accounts"][0]["passphrase"], up.ready["accounts"][0]["passphrase"]);
    assert_ne!(same["nethash"], other["nethash"]);
    assert_eq!((&same["from"], &other["from"]), (&json!(null), &json!(null)), "each has a genesis block of its own");
    let base = up.api().trim_end_matches("/api");
    assert_eq!(same["url"], format!("{base}/chains/1/api"));
    assert_eq!(same["lab"], format!("{base}/chains/1/lab"));

    // A command to one chain changes no other.
    let (status, body) = up.post("/chains/1/lab/advance", &json!({"slots": 20}));
    assert_eq!((status, &body["data"]["height"]), (200, &json!(21)), "{body}");
    assert_eq!(get(&up, &other["id"], "/api/blockchain")["data"]["block"]["height"], 1);
    assert_eq!(up.height(), 4);
    // With the same seed and inputs it is the same chain.
    up.advance(17);
    assert_eq!(get(&up, &json!(1), "/api/blocks?limit=50"), up.get("/blocks?limit=50"));
    // All of the lab is there, but no chains within a chain.
    let (status, paid) =
        up.post("/chains/1/lab/faucet", &json!({"recipient": other["accounts"][3]["address"], "amount": "5"}));
    assert_eq!(status, 200, "{paid}");
    assert_eq!(up.post("/chains/1/lab/snapshots", &json!({})).0, 201);
    assert_eq!(get(&up, &json!(1), "/lab")["data"]["snapshots"][0]["id"], 1);
    assert_eq!(get(&up, &json!(2), "/lab")["data"]["snapshots"], json!([]));
    assert_eq!(up.post("/chains/1/lab/chains", &json!({})).0, 404);
    assert_eq!(up.post("/chains/1/chains/2/lab/advance", &json!({"slots": 1})).0, 404);

    let listed: Value = serde_json::from_slice(&up.bytes("/lab/chains")).expect("JSON");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!((up.delete_below_root("/lab/chains/1"), up.delete_below_root("/lab/chains/1")), (204, 404));
    assert_eq!(up.post("/chains/1/lab/advance", &json!({"slots": 1})).0, 404);
    assert_eq!(get(&up, &json!(2), "/lab")["data"]["ready"], true);
    up.interrupt();
}

/// The posts of a chain's webhooks are those of its own run, in its own order, and no other network's.
#[test]
fn a_chain_has_webhooks_of_its_own() {
    let up = Up::start(&["--delegates", "5", "--pace", "manual", "--seed", "7"]);
    let (one, other) = (make(&up, json!({"pace": "on-demand"})), make(&up, json!({})));
    let [of_chain, of_testnet] = [(); 2].map(|()| Receiver::start());
    let events = json!(["block.applied", "block.reverted", "transaction.applied", "transaction.reverted"]);
    let hook = |receiver: &Receiver| json!({"event": events, "target": receiver.url, "conditions": []});
    let base = format!("/chains/{}", one["id"]);
    let (status, made) = up.post(&format!("{base}/api/webhooks"), &hook(&of_chain));
    assert_eq!((status, &made["data"]["event"]), (201, &events), "{made}");
    assert_eq!(up.post("/api/webhooks", &hook(&of_testnet)).0, 201);
    let listed = |path: &str| -> usize {
        let hooks: Value = serde_json::from_slice(&up.bytes(path)).expect("JSON");
        hooks["data"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(listed(&format!("{base}/api/webhooks")), 1);
    assert_eq!(listed(&format!("/chains/{}/api/webhooks", other["id"])), 0);

    let pay = json!({"recipient": one["accounts"][3]["address"], "amount": "5"});
    let (status, paid) = up.post(&format!("{base}/lab/faucet"), &pay);
    assert_eq!(status, 200, "{paid}");
    assert_eq!(up.post(&format!("{base}/lab/reorg"), &json!({"depth": 1, "transactions": "drop"})).0, 200);
    assert_eq!(up.post(&format!("/chains/{}/lab/advance", other["id"]), &json!({"slots": 9})).0, 200);
    let told = |receiver: &Receiver, count: usize| -> Vec<(String, (u64, u64))> {
        while receiver.heard().len() < count {
            std::thread::yield_now();
        }
        let place = |body: &Value, name: &str| body["sequence"][name].as_u64().expect("a number");
        let one = |(_, body): (String, Value)| {
            let event = body["event"].as_str().expect("a text").to_owned();
            (event, (place(&body, "event"), place(&body, "post")))
        };
        receiver.heard().into_iter().map(one).collect()
    };
    let heard = told(&of_chain, 5);
    let names: Vec<&str> = heard.iter().map(|(event, _)| &**event).collect();
    let wanted = ["transaction.applied", "block.applied", "transaction.reverted", "block.reverted", "block.applied"];
    assert_eq!(names, wanted);
    assert!(heard.windows(2).all(|pair| pair[0].1 < pair[1].1), "each later than the one before: {heard:?}");
    assert!(of_testnet.heard().is_empty(), "the testnet stands");
    let counted: Value = serde_json::from_slice(&up.bytes(&format!("{base}/lab/webhooks"))).expect("JSON");
    assert_eq!(counted["data"]["webhooks"].as_array().map(Vec::len), Some(1), "{counted}");

    // A rule of the chain's chaos is for its posts, by the event of each and not by those of the webhook.
    let rule = json!({"event": "transaction.applied", "lost": true});
    assert_eq!(up.post(&format!("{base}/lab/chaos"), &rule).0, 201);
    assert_eq!(up.post(&format!("{base}/lab/faucet"), &pay).0, 200);
    assert_eq!(told(&of_chain, 6)[5].0, "block.applied", "the post about the transaction was lost");
    // It ends with its chain, and the testnet's goes on.
    assert_eq!(up.delete_below_root(&format!("/lab/chains/{}", one["id"])), 204);
    up.advance(1);
    assert_eq!(told(&of_testnet, 1)[0].0, "block.applied");
    assert_eq!(of_chain.heard().len(), 6);
    up.interrupt();
}

/// Its first block is there before anybody knows of it, and its streams end with it.
#[test]
fn a_chain_begins_before_it_is_told_of_and_its_streams_end_with_it() {
    let up = Up::start(&["--delegates", "5", "--pace", "manual"]);
    for _ in 0..10 {
        let chain = make(&up, json!({"pace": "on-demand"}));
        let pay = json!({"recipient": chain["accounts"][3]["address"], "amount": "5"});
        let (status, paid) = up.post(&format!("/chains/{}/lab/faucet", chain["id"]), &pay);
        assert_eq!(status, 200, "{paid}");
    }
    let url = format!("{}/chains/1/lab/events", up.api().trim_end_matches("/api"));
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60))).build().into();
    let mut stream = BufReader::new(agent.get(url).call().expect("it answers").into_body().into_reader());
    let mut line = String::new();
    stream.read_line(&mut line).expect("it greets");
    assert_eq!(up.delete_below_root("/lab/chains/1"), 204);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("it ends, and is not cut off by the limit of this test");
    up.interrupt();
}

#[test]
fn a_chain_runs_a_scenario_and_a_wrong_wish_is_told() {
    let up = Up::start(&["--delegates", "3", "--pace", "manual"]);
    let text = "version = 1\nrounds = 2\n[network]\ndelegates = 4\n[[fault]]\nkind = \"crash\"\nnodes = [1]\n";
    let chain = make(&up, json!({"scenario": text, "set": ["network.loss=0.01"]}));
    assert_eq!(chain["delegates"], 4);
    assert_eq!(get(&up, &chain["id"], "/lab/faults")["data"][0]["fault"]["kind"], "crash");
    let before: Value = serde_json::from_slice(&up.bytes("/lab/chains")).expect("JSON");
    let of_file = "version = 1\nrounds = 1\n[[workload]]\nkind = \"chain\"\nfile = \"/etc/hostname\"\n";
    for (body, part) in [
        (json!({"seed": -1}), "\"seed\" must be larger than or equal to 0"),
        (json!({"seed": "seven"}), "\"seed\" must be a number"),
        (json!({"delegates": 0}), "\"delegates\" must be larger than or equal to 1"),
        (json!({"delegates": 5_000}), "\"delegates\" must be less than or equal to 200"),
        (json!({"scenario": "version = 9\nrounds = 1\n"}), "version"),
        (json!({"scenario": "version = 1"}), "missing field `rounds`"),
        (json!({"scenario": "what"}), "key 'scenario'"),
        (json!({"scenario": "include = [\"/etc/hostname\"]\nversion = 1\nrounds = 1\n"}), "allowed is no file"),
        (json!({"scenario": of_file}), "key 'workload[0].file': found '/etc/hostname', allowed is no file"),
        (json!({"set": ["include=[\"/etc/hostname\"]"]}), "key 'include': found '/etc/hostname', allowed is no file"),
        (json!({"set": ["workload=[{kind=\"chain\",file=\"/nowhere\"}]"]}), "found '/nowhere', allowed is no file"),
        (json!({"set": ["network.loss"]}), "network.loss"),
        (json!({"set": ["network.lost=1"]}), "lost"),
        (json!({"set": ["network.relays=9000"]}), "allowed are up to 300 on a chain"),
        (json!({"pace": "fast"}), "'fast' is no pace"),
        (json!({"sneed": 1}), "\"sneed\" is not allowed"),
        (json!([]), "must be an object"),
    ] {
        let (status, answer) = up.post("/lab/chains", &body);
        assert_eq!(status, 422, "{body}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|message| message.contains(part)), "{body}: {answer}");
    }
    assert_eq!(serde_json::from_slice::<Value>(&up.bytes("/lab/chains")).expect("JSON"), before);
    for nowhere in ["/chains/9/lab", "/chains/x/lab", "/chains/18446744073709551616/lab", "/chains/"] {
        assert_eq!(up.post(nowhere, &json!({})).0, 404, "{nowhere}");
    }
    up.interrupt();
}

/// Resident memory of a testnet's process [bytes].
fn resident(up: &Up) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", up.ready["pid"])).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("it is there");
    let kilobytes: Option<u64> = line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok());
    kilobytes.expect("a number") << 10
}

#[test]
fn a_chain_for_which_there_is_no_room_is_refused() {
    let options = ["--delegates", "3", "--pace", "manual"];
    let up = Up::start(&options);
    let most = (resident(&up) * 6 / 5).to_string();
    make(&up, json!({}));
    up.interrupt();
    let up = Up::start(&[&options[..], &["--max-memory", &most]].concat());
    let (status, answer) = up.post("/lab/chains", &json!({}));
    assert_eq!(status, 422, "{answer}");
    let message = answer["message"].as_str().expect("a message");
    assert!(message.contains(" of memory in use, allowed is three quarters of "), "{message}");
    up.interrupt();
}

/// Two hundred at once; all answer, and the process stops in order with them.
#[test]
fn two_hundred_chains_live_beside_each_other() {
    let up = Up::start(&["--delegates", "51", "--pace", "manual"]);
    let memory = || resident(&up) >> 10;
    let before = memory();
    let chains: Vec<Value> = (0..200).map(|_| make(&up, json!({}))["id"].clone()).collect();
    for id in &chains {
        let (status, body) = up.post(&format!("/chains/{id}/lab/advance"), &json!({"slots": 2}));
        assert_eq!((status, &body["data"]["height"]), (200, &json!(3)), "{id}: {body}");
    }
    let each = (memory() - before) / 200;
    assert!(each < 3 * 1024, "a chain takes {each} KiB");
    for id in &chains[..100] {
        assert_eq!(up.delete_below_root(&format!("/lab/chains/{id}")), 204);
    }
    assert_eq!(make(&up, json!({}))["id"], 201, "numbers are not used again");
    up.interrupt();
}

/// A chain says from which instant of the past it goes on, whatever has happened since, and goes on from there.
#[test]
fn a_chain_of_a_view_says_where_it_went_on_from() {
    let up = Up::start(&["--delegates", "5", "--pace", "manual", "--seed", "7"]);
    up.advance(12);
    let (status, view) = up.post("/lab/views", &json!({"at": 40_000_000}));
    assert_eq!(status, 201, "{view}");
    up.advance(20);
    let (status, made) = up.post(&format!("/lab/views/{}/chain", view["data"]["id"]), &json!({}));
    assert_eq!(status, 201, "{made}");
    let (view, made) = (&view["data"], &made["data"]);
    for (member, wanted) in [("at", 40_000_000), ("height", 5)] {
        assert_eq!((&made["from"][member], &view[member]), (&json!(wanted), &json!(wanted)), "{member}");
    }
    for member in ["delivered", "inputs"] {
        assert_eq!(made["from"][member], view[member], "{member}");
    }
    assert_eq!(get(&up, &made["id"], "/api/blockchain")["data"]["block"]["height"], 5);
    assert_eq!(up.post(&format!("/chains/{}/lab/advance", made["id"]), &json!({"slots": 2})).0, 200);
    let listed: Value = serde_json::from_slice(&up.bytes("/lab/chains")).expect("JSON");
    assert_eq!(listed["data"][0]["from"], made["from"], "that stays, however far the chain goes");
}
