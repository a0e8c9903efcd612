//! Snapshots over HTTP: the whole API is where it was, the pool too, and bad input changes nothing.

use crate::{live::Network, support::of_json};
use dposlab::{
    api::answer,
    protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real},
    sim::live::ADVANCES_MAX,
};
use serde_json::{Value, json};
use std::{
    io::Write,
    net::TcpStream,
    task::{Context, Waker},
};
use warp::http::Method;

/// The routes that show the chain, the wallets and the pool.
const SEEN: [&str; 9] = [
    "/api/blocks?limit=100",
    "/api/blockchain",
    "/api/delegates",
    "/api/node/syncing",
    "/api/peers",
    "/api/transactions?limit=100",
    "/api/transactions/unconfirmed",
    "/api/wallets",
    "/lab/pace",
];

fn seen(network: &Network) -> Vec<Value> {
    SEEN.iter()
        .map(|path| {
            let answered = network.get(path);
            assert_eq!(answered.status, 200, "{path}: {}", answered.body);
            answered.body
        })
        .collect()
}

/// Hands in a transfer from the first account to somebody.
fn submit(network: &Network, nonce: u64) {
    let recipient = KeyPair::from_passphrase("somebody", Real).public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(5)).network(23).nonce(Nonce(nonce));
    let transfer = transfer.sign(&network.testnet.accounts[0].keys);
    let answered = network.post("/api/transactions", &json!({ "transactions": [transfer.to_json()] }));
    assert_eq!(answered.body["data"]["accept"], json!([transfer.id().to_string()]), "{}", answered.body);
}

fn take(network: &Network, body: Value) -> Value {
    let answered = network.post("/lab/snapshots", &body);
    assert_eq!(answered.status, 201, "{}", answered.body);
    answered.body["data"].clone()
}

fn revert(network: &Network, id: &Value) -> Value {
    let answered = network.post(&format!("/lab/snapshots/{id}/revert"), &json!({}));
    assert_eq!(answered.status, 200, "{}", answered.body);
    answered.body["data"].clone()
}

#[test]
fn the_whole_api_goes_back_and_forth() {
    let network = Network::start(3);
    network.advance(7);
    submit(&network, 1);
    // The transfer waits: it was handed in where it is not the next slot's turn to forge, or it is in the next block.
    let (early, was) = (take(&network, json!({"name": "one waits"})), seen(&network));
    assert_eq!(was[6]["meta"]["totalCount"], 1, "{}", was[6]);
    network.advance(20);
    submit(&network, 2);
    let (late, then) = (take(&network, json!({})), seen(&network));
    assert_ne!(was, then);
    assert_eq!((&early["id"], &early["name"]), (&json!(1), &json!("one waits")));
    assert_eq!(
        (&late["id"], &late["name"], &late["height"]),
        (&json!(2), &Value::Null, &then[1]["data"]["block"]["height"])
    );

    for _ in 0..2 {
        assert_eq!(revert(&network, &json!(1)), early);
        assert_eq!(seen(&network), was);
        assert_eq!(revert(&network, &json!(2)), late);
        assert_eq!(seen(&network), then);
    }
    // The same inputs give the same blocks.
    revert(&network, &json!(1));
    network.advance(20);
    submit(&network, 2);
    assert_eq!(seen(&network), then);
    // Other inputs give others, and what is gone is gone.
    revert(&network, &json!(1));
    let gone = then[0]["data"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(network.get(&format!("/api/blocks/{gone}")).status, 404);
    submit(&network, 2);
    network.advance(20);
    assert_ne!(seen(&network), then);
    let all = network.get("/lab/snapshots").body;
    assert_eq!(all["data"], json!([early, late]));
    assert_eq!(network.get("/lab/snapshots/2").body["data"], late);
}

#[test]
fn bad_input_changes_nothing() {
    let network = Network::start(4);
    network.advance(3);
    take(&network, json!({}));
    let was = seen(&network);
    for (path, body, status, part) in [
        ("/lab/snapshots", json!({"name": 5}), 422, "\"name\" must be a string"),
        ("/lab/snapshots", json!({"name": "x".repeat(101)}), 422, "100"),
        ("/lab/snapshots", json!({"named": "x"}), 422, "\"named\" is not allowed"),
        ("/lab/snapshots/7/revert", json!({}), 404, "no snapshot of this number"),
        ("/lab/snapshots/0/revert", json!({}), 422, "\"id\" must be larger than or equal to 1"),
        ("/lab/snapshots/one/revert", json!({}), 422, "\"id\" must be a number"),
        ("/lab/snapshots/99999999999999999999/revert", json!({}), 422, "\"id\""),
        ("/lab/snapshots/1/revert", json!({"to": 1}), 422, "\"to\" is not allowed"),
        ("/lab/snapshots/1/revert", json!([]), 422, "must be an object"),
        ("/lab/snapshots/1/reverse", json!({}), 404, "Not Found"),
    ] {
        let answered = network.post(path, &body);
        let message = answered.body["message"].as_str().unwrap_or_default();
        assert_eq!(answered.status, status, "{path} {body}: {}", answered.body);
        assert!(message.contains(part), "{path} {body}: {message}");
    }
    let delete = |id: u32| network.send(&format!("DELETE /lab/snapshots/{id} HTTP/1.1\r\nhost: test\r\n\r\n")).status;
    assert_eq!((delete(5), delete(1), delete(1)), (404, 204, 404));
    assert_eq!(network.get("/lab/snapshots").body["data"], json!([]));
    assert_eq!(seen(&network), was);
}

/// Whoever waits for an advance is told that it did not come to its end.
#[test]
fn a_revert_ends_an_advance() {
    let network = Network::start(5);
    network.advance(3);
    take(&network, json!({}));
    let answered = std::thread::scope(|scope| {
        let advance = scope.spawn(|| network.post("/lab/advance", &json!({"slots": 1_000_000})));
        while network.get("/api/node/status").body["data"]["now"].as_u64() < Some(20) {}
        revert(&network, &json!(1));
        advance.join().expect("it is answered")
    });
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert!(answered.body["data"]["slots"].as_u64() < Some(1_000_000), "{}", answered.body);
    assert_eq!(network.get("/api/node/status").body["data"]["now"], 4);
}

/// Who does not wait for an advance any more ends it, and those who wait for their turn are not without number.
#[test]
fn an_advance_ends_with_its_client_and_few_wait_for_their_turn() {
    let network = Network::start(7);
    let slots = 1_000_000;
    let mut asked: Vec<_> = (0..=ADVANCES_MAX).map(|_| Box::pin(network.handle.advance(slots))).collect();
    let mut nobody = Context::from_waker(Waker::noop());
    for advance in &mut asked {
        assert!(advance.as_mut().poll(&mut nobody).is_pending());
    }
    let refused = network.post("/lab/advance", &json!({"slots": 1}));
    assert_eq!(refused.status, 409, "{}", refused.body);
    let message = format!("found {ADVANCES_MAX} advances that wait for their turn, allowed are {ADVANCES_MAX}");
    assert_eq!(refused.body["message"], message);
    drop(asked);
    // The same of one that comes over a socket, which its client closes.
    let (here, body) = (network.address, format!("{{\"slots\":{slots}}}"));
    let mut socket = TcpStream::connect(here).expect("the server accepts");
    let length = body.len();
    let head = format!("POST /lab/advance HTTP/1.1\r\nhost: {here}\r\ncontent-type: application/json\r\n");
    write!(socket, "{head}content-length: {length}\r\n\r\n{body}").expect("the connection is new");
    let now = || network.get("/lab/pace").body["data"]["now"].as_u64().expect("a number");
    let before = now();
    while now() < before + 80 {}
    drop(socket);
    let after = network.advance(1);
    assert_eq!(after["slots"], 1);
    assert!(after["now"].as_u64() < Some(4_000_000), "{after}: what nobody waited for was played");
}

/// After a revert another fault may have the number that one had, or the same fault another beginning.
#[test]
fn the_lab_shows_the_faults_of_the_moment_that_the_network_is_in() {
    let network = Network::start(6);
    let fault = |fault: Value| {
        let answered = network.post("/lab/faults", &fault);
        assert_eq!((answered.status, &answered.body["data"]["id"]), (201, &json!(0)), "{}", answered.body);
    };
    let in_force = || network.get("/lab").body["data"]["faults"].take();
    network.advance(2);
    take(&network, json!({}));
    fault(json!({"kind": "pause", "nodes": [4]}));
    network.advance(2);
    let (_, early) = (take(&network, json!({})), in_force());
    revert(&network, &json!(1));
    network.advance(1);
    fault(json!({"kind": "isolate", "nodes": [3]}));
    network.advance(2);
    let (_, other) = (take(&network, json!({})), in_force());
    assert_eq!(early, json!([{"fault": 0, "kind": "pause", "since": 24_000_000}]));
    assert_eq!(other, json!([{"fault": 0, "kind": "isolate", "since": 32_000_000}]));
    for (id, faults) in [(2, &early), (3, &other), (1, &json!([])), (3, &other), (2, &early)] {
        revert(&network, &json!(id));
        assert_eq!(&in_force(), faults, "at snapshot {id}");
    }
}

/// A client that waits for a block goes on waiting if nobody goes back.
#[test]
fn a_revert_to_no_snapshot_answers_nobody_before_the_block() {
    let network = Network::start(7);
    network.advance(3);
    assert_eq!(network.post("/lab/pace", &json!({"pace": "on-demand"})).status, 200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without IO");
    for nonce in 1..=20 {
        let transfer = crate::lab_faults::transfer(&network, nonce);
        let body = json!({ "transactions": [transfer] }).to_string().into_bytes();
        let (submit, revert) = ("/api/transactions", "/lab/snapshots/77/revert");
        let [submit, revert] = [submit, revert].map(|target| of_json(Method::POST, target));
        let (submitted, reverted) = runtime.block_on(async {
            let submitted = answer(&network.context, &submit, async { Ok(body) });
            tokio::join!(submitted, answer(&network.context, &revert, async { Ok(Vec::new()) }))
        });
        assert_eq!((submitted.status.as_u16(), reverted.status.as_u16()), (200, 404));
        let id = transfer["id"].as_str().expect("an id");
        assert_eq!(network.get(&format!("/api/transactions/{id}")).status, 200, "transfer {nonce} is in a block");
    }
}

/// A pool hears of a block an instant after its peer. What the API shows as pending does not depend on that.
#[test]
fn what_is_pending_after_a_revert_is_what_was_pending() {
    let network = Network::start(8);
    network.advance(3);
    submit(&network, 1);
    let id = network.get("/api/transactions/unconfirmed").body["data"][0]["id"].clone();
    let (_, waits) = (take(&network, json!({})), seen(&network));
    let until = json!({"until": {"transaction": id}, "limit": 9});
    assert_eq!(network.post("/lab/advance", &until).body["data"]["stopped"], "reached");
    let (_, confirmed) = (take(&network, json!({})), seen(&network));
    assert_eq!((&waits[6]["meta"]["totalCount"], &confirmed[6]["meta"]["totalCount"]), (&json!(1), &json!(0)));
    for _ in 0..2 {
        revert(&network, &json!(1));
        assert_eq!(seen(&network), waits);
        revert(&network, &json!(2));
        assert_eq!(seen(&network), confirmed);
    }
    network.advance(5);
    revert(&network, &json!(2));
    assert_eq!(seen(&network), confirmed);
}
