//! Answers that go wrong on purpose, as clients meet them over a socket.

use crate::live::{Network, head};
use dposlab::{
    api::{RateLimit, Settings},
    protocol::{Arktoshi, Nonce, Transaction},
};
use serde_json::{Value, json};

fn rule(network: &Network, rule: Value) -> u64 {
    let made = network.post("/lab/chaos", &rule);
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["data"]["id"].as_u64().expect("a number")
}

/// The number of requests that a rule matched, and the number of them it struck.
fn did(network: &Network, id: u64) -> (u64, u64) {
    let rule = network.get(&format!("/lab/chaos/{id}")).body["data"].clone();
    (rule["matched"].as_u64().expect("a number"), rule["applied"].as_u64().expect("a number"))
}

fn delete(network: &Network, path: &str) -> Value {
    network.send(&format!("DELETE {path} HTTP/1.1\r\nhost: test\r\n\r\n")).body
}

#[test]
fn the_nth_request_meets_the_same_in_every_run() {
    let statuses = |seed| -> Vec<u16> {
        let network = Network::start(seed);
        rule(&network, json!({"route": "/api/blocks", "share": 0.4, "count": 12, "status": 503}));
        (0..60).map(|_| network.get("/api/blocks").status).collect()
    };
    let first = statuses(51);
    assert_eq!(first.iter().filter(|status| **status == 503).count(), 12, "{first:?}");
    assert_eq!(first, statuses(51));
    assert_ne!(first, statuses(52));
}

#[test]
fn a_route_that_is_asked_for_its_head_alone_can_be_struck() {
    let network = Network::start(54);
    let id = rule(&network, json!({"route": "/api/blocks", "method": "HEAD", "status": 503}));
    let host = format!("host: {}\r\nconnection: close", network.address);
    let status = |method: &str| {
        let answer = network.send_raw(&format!("{method} /api/blocks HTTP/1.1\r\n{host}\r\n\r\n"));
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    assert_eq!([status("GET"), status("HEAD")], ["200", "503"]);
    assert_eq!(did(&network, id), (1, 1));
}

#[test]
fn an_answer_is_delayed_refused_replaced_or_cut() {
    let network = Network::start(53);
    let ask = "GET /api/delegates HTTP/1.1\r\nhost: test\r\n\r\n";
    let raw = |network: &Network| {
        let host = format!("host: {}\r\nconnection: close", network.address);
        network.send_raw(&ask.replacen("host: test", &host, 1))
    };
    let whole = raw(&network);
    let body = |answer: &str| answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();

    let refuse = rule(&network, json!({"route": "/api/delegates", "refuse": true, "count": 2}));
    assert_eq!([raw(&network), raw(&network)], ["", ""], "closed without an answer");
    assert_eq!((body(&raw(&network)), did(&network, refuse)), (body(&whole), (3, 2)));

    let cut = rule(&network, json!({"method": "GET", "cut": true, "count": 1}));
    let half = raw(&network);
    let announced = half.to_ascii_lowercase();
    let announced =
        announced.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()).map(str::parse);
    assert_eq!(announced, Some(Ok(body(&whole).len())), "{half}");
    assert_eq!(body(&half), body(&whole)[..body(&whole).len() / 2]);
    assert_eq!((body(&raw(&network)), did(&network, cut)), (body(&whole), (2, 1)));

    let delay = rule(&network, json!({"route": "/api/del*", "delay_ms": 30, "count": 1}));
    assert_eq!((body(&raw(&network)), did(&network, delay)), (body(&whole), (1, 1)));

    for (status, message) in [
        (429, "Rate limit exceeded"),
        (500, "An internal server error occurred"),
        (502, "Bad Gateway"),
        (503, "Service Unavailable"),
        (599, "Unknown"),
    ] {
        rule(&network, json!({"status": status, "count": 1}));
        let answered = network.get("/api/blocks");
        assert_eq!((answered.status, &answered.body["message"]), (status, &json!(message)));
        assert!(!head(&answered).contains("chaos"), "it says nothing of it");
    }
    assert_eq!(delete(&network, "/lab/chaos")["data"]["deleted"], 8);
    assert_eq!(network.get("/lab/chaos").body["data"], json!([]));
}

/// A client cannot tell it from the answer that the limit itself gives: the same headers, and what they say fits.
#[test]
fn an_answer_429_has_the_headers_of_a_real_one() {
    let names = |answered: &crate::support::Answered| -> Vec<String> {
        let head = head(answered);
        let lines = head.lines().skip(1).filter_map(|line| Some(line.split_once(": ")?.0.to_owned()));
        lines.collect()
    };
    let value = |answered: &crate::support::Answered, name: &str| -> Option<u64> {
        let head = head(answered);
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
    };
    let limit = RateLimit { requests: 2, window_ms: 3_600_000 };
    let limited = Network::with(55, Settings { rate_limit: Some(limit), ..Settings::default() });
    let real = [(); 3].map(|()| limited.get("/api/blocks")).into_iter().last().expect("three answers");
    assert_eq!(real.status, 429);
    assert!(names(&real).contains(&"retry-after".to_owned()), "{:?}", names(&real));
    // With a limit of its own, and with the reference's where none is set.
    for (network, requests, seconds) in [(limited, 2, 3_600), (Network::start(55), 100, 60)] {
        rule(&network, json!({"status": 429}));
        let struck = network.get("/api/blocks");
        assert_eq!((struck.status, &struck.body, names(&struck)), (429, &real.body, names(&real)));
        assert!(head(&struck).contains("x-ratelimit-userremaining: -1"), "{}", head(&struck));
        assert_eq!(value(&struck, "x-ratelimit-userlimit"), Some(requests));
        assert_eq!(value(&struck, "retry-after"), Some(seconds));
        // The window ends so many seconds from now, in real time.
        assert!(value(&struck, "x-ratelimit-userreset") > Some(1_600_000_000_000));
    }
}

#[test]
fn an_answer_comes_from_an_older_head_or_from_another_node() {
    let network = Network::start(54);
    network.advance(5);
    let recipient = network.testnet.accounts[1].keys.public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(1)).fee(Arktoshi::coins(1));
    let transfer = transfer.sign(&network.testnet.accounts[0].keys);
    network.post("/api/transactions", &json!({ "transactions": [transfer.to_json()] }));
    let wallet = format!("/api/wallets/{recipient}");
    let before = network.get(&wallet).body;
    network.advance(6);
    let after = network.get(&wallet).body;
    assert_ne!(before, after);

    let stale = rule(&network, json!({"stale": 6}));
    let (transaction, pending) =
        (format!("/api/transactions/{}", transfer.id()), format!("/api/transactions/unconfirmed/{}", transfer.id()));
    assert_eq!(network.get("/api/blockchain").body["data"]["block"]["height"], 6);
    assert_eq!(network.get(&wallet).body, before, "with the balance of then");
    assert_eq!((network.get(&transaction).status, network.get(&pending).status), (404, 200));
    assert_eq!(network.get("/api/blocks?limit=1").body["data"][0]["height"], 6);
    assert_eq!(network.get("/lab").body["data"]["nodes"][0]["height"], 12, "the lab is not touched");
    let deleted = delete(&network, &format!("/lab/chaos/{stale}"));
    assert_eq!(deleted["data"]["applied"], 5);
    assert_eq!(network.get(&wallet).body, after);
    assert_eq!((network.get(&transaction).status, network.get(&pending).status), (200, 404));
    rule(&network, json!({"stale": 1000, "count": 1}));
    assert_eq!(network.get("/api/blockchain").body["data"]["block"]["height"], 1, "genesis at the least");

    let others = || -> Vec<Value> {
        let peers = network.get("/api/peers").body["data"].as_array().expect("a list").clone();
        let mut ips: Vec<Value> = peers.iter().map(|peer| peer["ip"].clone()).collect();
        ips.sort_by_key(Value::to_string);
        ips
    };
    let own = others();
    rule(&network, json!({"node": 1, "count": 1}));
    let of_other = others();
    assert!(!own.contains(&json!("198.18.0.1")) && of_other.contains(&json!("198.18.0.1")), "{own:?} {of_other:?}");
    assert_eq!(others(), own);
}

#[test]
fn rules_that_mean_nothing_are_refused_and_change_nothing() {
    let network = Network::start(55);
    for (wrong, named) in [
        (json!({}), "found none of what a rule can do, allowed is one of delay_ms"),
        (json!({"cut": true, "refuse": true}), "found refuse and cut"),
        (json!({"cut": false}), "cut: found false"),
        (json!({"delay_ms": 0}), "must be larger than or equal to 1"),
        (json!({"delay_ms": 60_001}), "must be less than or equal to 60000"),
        (json!({"status": 404}), "must be larger than or equal to 429"),
        (json!({"status": 431}), "found 431, allowed are 429 and 500 to 599"),
        (json!({"share": 1.5, "cut": true}), "must be a number from 0 to 1"),
        (json!({"stale": 0}), "must be larger than or equal to 1"),
        (json!({"node": 2}), "found 2, allowed are the served nodes 0 to 1"),
        (json!({"node": 4_294_967_297_u64}), "found 4294967297, allowed"),
        (json!({"route": "/api/block", "cut": true}), "route: found '/api/block', allowed are"),
        (json!({"route": "/lab/pace", "cut": true}), "none under /lab"),
        (json!({"route": "/metrics", "cut": true}), "none under /lab"),
        (json!({"route": "/api/blocks", "method": "PUT", "cut": true}), "found PUT, by which no route '/api/blocks'"),
        (json!({"method": "PATCH", "cut": true}), "must be one of [GET, HEAD"),
        (json!({"event": "block.applied", "cut": true}), "event: found beside what happens to requests"),
        (json!({"route": "/api/blocks", "lost": true}), "route: found beside what happens to webhooks"),
        (json!({"every": 2, "cut": true}), "\"every\" is not allowed"),
    ] {
        let refused = network.post("/lab/chaos", &wrong);
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.body);
        assert!(refused.body["message"].as_str().expect("a text").contains(named), "{wrong}: {}", refused.body);
    }
    assert_eq!(network.get("/lab/chaos").body["data"], json!([]));
    assert_eq!(network.get("/lab/chaos/1").status, 404);
    assert_eq!(delete(&network, "/lab/chaos/1")["statusCode"], 404);
    assert_eq!(network.get("/lab/chaos/none").status, 422);
}
