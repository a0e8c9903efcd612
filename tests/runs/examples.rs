//! The examples in the published description are answers of a live node, which is asked again here. What is drawn from the
//! machine's own randomness (ids and tokens of webhooks) is masked, and lists are cut to their first rows.

use crate::{kept_by_model::block_of_a_client, support::root, testnet::Up};
use dposlab::protocol::{
    Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Transaction, Vote,
    crypto::CryptoMode::Real,
    transaction::{Expiration, TransactionBuilder},
};
use serde_json::{Map, Value, json};
use std::{env, fs};

/// Set to write the file of examples anew.
const REWRITE: &str = "REWRITE_EXAMPLES";
/// Of a longer list so many items are shown.
const ROWS: usize = 2;
const COIN: u64 = 100_000_000;
const FEE: u64 = COIN / 10;
const SECRET: [u8; 32] = [7; 32];
/// Of the registered bridgechain.
const GENESIS: [u8; 32] = [0x3a; 32];
/// In place of the ids and tokens of webhooks.
const SOME_ID: &str = "2f9d0c8e-5b7a-4c3f-9e21-6d1b0a4f8c57";

/// A live node with something of everything on its chain.
pub struct Node {
    up: Up,
    recipient: String,
    /// The wallet that has a business.
    business: String,
    transfer: SignedTransaction,
    vote: SignedTransaction,
    /// Open.
    lock: SignedTransaction,
    claimed: SignedTransaction,
    pending: SignedTransaction,
    /// Not handed in yet.
    next: SignedTransaction,
    /// The id of a webhook.
    webhook: String,
}

fn sign(builder: TransactionBuilder, nonce: u64, fee: u64, keys: &KeyPair) -> SignedTransaction {
    builder.network(23).nonce(Nonce(nonce)).fee(Arktoshi::new(fee).expect("a fee")).sign(keys)
}

impl Node {
    pub fn start(dialect: &str) -> Self {
        let up = Up::start(&[
            "--pace",
            "manual",
            "--delegates",
            "5",
            "--seed",
            "7",
            "--dialect",
            dialect,
            "--public-faucet",
            "10",
        ]);
        let accounts = up.ready["accounts"].as_array().expect("a list").clone();
        let keys: Vec<KeyPair> = accounts
            .iter()
            .map(|account| KeyPair::from_passphrase(account["passphrase"].as_str().expect("a text"), Real))
            .collect();
        let delegate: PublicKey =
            up.ready["delegates"][0]["publicKey"].as_str().expect("a key").parse().expect("a key");
        let recipient = keys[1].public().address(23);
        let transfer = Transaction::transfer(recipient, Arktoshi::coins(5)).vendor_field("for two tickets");
        let transfer = sign(transfer, 1, FEE, &keys[0]);
        let vote = sign(Transaction::vote(Vote::For(delegate)), 1, COIN, &keys[2]);
        let locked = || {
            let secret_hash = dposlab::protocol::crypto::sha256(&SECRET);
            Transaction::htlc_lock(
                recipient,
                Arktoshi::coins(7),
                secret_hash,
                Expiration::from_numbers(2, 5_000).expect("a height"),
            )
        };
        let (lock, claimed) = (sign(locked(), 1, FEE, &keys[3]), sign(locked(), 2, FEE, &keys[3]));
        let business = Transaction::business_registration("Example Ltd", "https://example.com", None, None);
        let business = sign(business, 1, 50 * COIN, &keys[4]);
        let ports = [("@arkecosystem/core-api".to_owned(), 4003)].into_iter().collect();
        let (seeds, repository) = (vec!["198.51.100.7".to_owned()], "https://example.com/chain");
        let chain = Transaction::bridgechain_registration("Example Chain", seeds, GENESIS, repository, None, ports);
        let chain = sign(chain, 2, 50 * COIN, &keys[4]);
        let pending = sign(Transaction::transfer(recipient, Arktoshi::coins(1)), 2, FEE, &keys[0]);
        let next = Transaction::transfer(recipient, Arktoshi::coins(3)).vendor_field("posted by hand");
        let next = sign(next, 1, FEE, &keys[5]);
        let claim = sign(Transaction::htlc_claim(claimed.id(), SECRET), 1, 0, &keys[1]);
        up.advance(4);
        let (recipient, webhook) = (recipient.to_string(), String::new());
        let owner = business.sender_address().to_string();
        let mut node = Self { up, recipient, business: owner, transfer, vote, lock, claimed, pending, next, webhook };
        node.submit(&[&node.transfer, &node.vote, &node.lock, &node.claimed, &business, &chain]);
        node.up.advance(3);
        node.submit(&[&claim]);
        node.up.advance(2);
        node.submit(&[&node.pending]);
        let (status, created) = node.up.post("/api/webhooks", &new_webhook());
        assert_eq!(status, 201, "{created}");
        node.webhook = created["data"]["id"].as_str().expect("an id").to_owned();
        node
    }

    /// A text with the ids of what is there in place of their names.
    pub fn fill_in(&self, text: &str) -> String {
        let (pending, claimed) = (self.pending.id().to_string(), self.claimed.id().to_string());
        let transfer = self.next.to_json().to_string();
        let names = [
            ("TRANSFER", &transfer),
            ("PENDING", &pending),
            ("CLAIMED", &claimed),
            ("BUSINESS", &self.business),
            ("RECIPIENT", &self.recipient),
            ("WEBHOOK", &self.webhook),
        ];
        names.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Status and body of an answer; a body that is no JSON as a text.
    pub fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> (u16, Value) {
        let url = format!("{}{target}", self.up.api().trim_end_matches("/api"));
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = match (method, body) {
            ("post", Some(body)) => agent.post(url).send_json(body),
            ("put", Some(body)) => agent.put(url).send_json(body),
            ("delete", _) => agent.delete(url).call(),
            _ => agent.get(url).call(),
        }
        .expect("it answers");
        let text = response.body_mut().read_to_string().expect("a text");
        (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(json!(text)))
    }

    fn submit(&self, transactions: &[&SignedTransaction]) {
        let all: Vec<Value> = transactions.iter().map(|transaction| transaction.to_json()).collect();
        let (status, answer) = self.up.post("/api/transactions", &json!({ "transactions": all }));
        assert_eq!((status, answer["data"]["accept"].as_array().map(Vec::len)), (200, Some(all.len())), "{answer}");
    }
}

fn new_webhook() -> Value {
    let condition = json!({"key": "amount", "condition": "gte", "value": "100000000"});
    json!({"event": "transaction.applied", "target": "http://127.0.0.1:5000/paid", "conditions": [condition]})
}

/// The request for each operation: the target, and the body. Requests that change something stand after those that only look.
fn asked(node: &Node, documented: bool) -> Vec<(&'static str, &'static str, String, Option<Value>)> {
    let business = &node.business;
    let (transfer, vote, recipient) = (node.transfer.id(), node.vote.id(), &node.recipient);
    let get = |path: &'static str, target: &str| ("get", path, target.to_owned(), None);
    let post = |path: &'static str, target: &str, body: Value| ("post", path, target.to_owned(), Some(body));
    let range = |from: u64, to: u64| json!({"from": from, "to": to});
    let change = match documented {
        true => json!({"enabled": false}),
        false => {
            json!({"event": "block.applied", "target": "http://127.0.0.1:5000/", "enabled": "true", "conditions": []})
        }
    };
    let ids = json!({"ids": [node.claimed.id().to_string()]});
    let mut asked = vec![
        get("/api/node/status", "/api/node/status"),
        get("/api/node/syncing", "/api/node/syncing"),
        get("/api/node/configuration", "/api/node/configuration"),
        get("/api/node/configuration/crypto", "/api/node/configuration/crypto"),
        get("/api/node/debug", "/api/node/debug?lines=3"),
        get("/api/node/fees", "/api/node/fees?days=7"),
        get("/api/blockchain", "/api/blockchain"),
        get("/api/rounds/{id}/delegates", "/api/rounds/1/delegates"),
        get("/api/blocks", "/api/blocks?limit=1"),
        get("/api/blocks/first", "/api/blocks/first"),
        get("/api/blocks/last", "/api/blocks/last"),
        get("/api/blocks/{id}", "/api/blocks/2"),
        get("/api/blocks/{id}/transactions", "/api/blocks/1/transactions?limit=1"),
        post("/api/blocks/search", "/api/blocks/search?limit=1", json!({"height": range(2, 5)})),
        get("/api/transactions", "/api/transactions?limit=1&type=0"),
        post("/api/transactions/search", "/api/transactions/search?limit=1", json!({"vendorField": "tickets"})),
        get("/api/transactions/types", "/api/transactions/types"),
        get("/api/transactions/fees", "/api/transactions/fees"),
        get("/api/transactions/schemas", "/api/transactions/schemas"),
        get("/api/transactions/unconfirmed", "/api/transactions/unconfirmed"),
        get("/api/transactions/unconfirmed/{id}", &format!("/api/transactions/unconfirmed/{}", node.pending.id())),
        get("/api/transactions/{id}", &format!("/api/transactions/{transfer}")),
        get("/api/votes", "/api/votes?limit=1"),
        get("/api/votes/{id}", &format!("/api/votes/{vote}")),
        get("/api/wallets", "/api/wallets?limit=1"),
        get("/api/wallets/top", "/api/wallets/top?limit=1"),
        get("/api/wallets/{id}", &format!("/api/wallets/{recipient}")),
        get("/api/wallets/{id}/transactions", &format!("/api/wallets/{recipient}/transactions?limit=1")),
        get("/api/wallets/{id}/transactions/sent", &format!("/api/wallets/{recipient}/transactions/sent?limit=1")),
        get(
            "/api/wallets/{id}/transactions/received",
            &format!("/api/wallets/{recipient}/transactions/received?limit=1"),
        ),
        get("/api/wallets/{id}/votes", &format!("/api/wallets/{}/votes", node.vote.sender_address())),
        get("/api/wallets/{id}/locks", &format!("/api/wallets/{}/locks", node.lock.sender_address())),
        post(
            "/api/wallets/search",
            "/api/wallets/search?limit=1",
            json!({"balance": range(COIN, 1_000_000_000_000_000)}),
        ),
        get("/api/delegates", "/api/delegates?limit=1"),
        get("/api/delegates/{id}", "/api/delegates/genesis_1"),
        get("/api/delegates/{id}/blocks", "/api/delegates/genesis_1/blocks?limit=1"),
        get("/api/delegates/{id}/voters", "/api/delegates/genesis_1/voters?limit=1"),
        post("/api/delegates/search", "/api/delegates/search?limit=1", json!({"approval": range(1, 100)})),
        get("/api/locks", "/api/locks"),
        get("/api/locks/{id}", &format!("/api/locks/{}", node.lock.id())),
        post("/api/locks/search", "/api/locks/search", json!({"expirationType": 2, "isExpired": false})),
        post("/api/locks/unlocked", "/api/locks/unlocked", ids),
        get("/api/businesses", "/api/businesses"),
        get("/api/businesses/{id}", &format!("/api/businesses/{business}")),
        get("/api/businesses/{id}/bridgechains", &format!("/api/businesses/{business}/bridgechains")),
        get(
            "/api/businesses/{businessId}/bridgechains/{bridgechainId}",
            &format!("/api/businesses/{business}/bridgechains/{}", hex::encode(GENESIS)),
        ),
        post("/api/businesses/search", "/api/businesses/search", json!({"name": "Example"})),
        get("/api/bridgechains", "/api/bridgechains"),
        post("/api/bridgechains/search", "/api/bridgechains/search", json!({"seedNodes": ["198.51.100.7"]})),
        get("/api/peers", "/api/peers?limit=1"),
        get("/api/peers/{ip}", "/api/peers/198.18.0.2"),
        get("/api/webhooks", "/api/webhooks"),
        get("/api/webhooks/{id}", &format!("/api/webhooks/{}", node.webhook)),
        get("/lab", "/lab"),
        get("/lab/tree", "/lab/tree?from=9"),
        get("/lab/round", "/lab/round"),
        get("/lab/webhooks", "/lab/webhooks"),
        get("/lab/submissions", "/lab/submissions"),
        get("/lab/pace", "/lab/pace"),
        post("/lab/chaos", "/lab/chaos", json!({"route": "/api/blocks", "share": 0.25, "count": 3, "delay_ms": 20})),
        post("/lab/chaos", "/lab/chaos", json!({"route": "/api/transactions", "method": "POST", "status": 503})),
        get("/lab/chaos", "/lab/chaos"),
        get("/lab/chaos/{id}", "/lab/chaos/2"),
        ("delete", "/lab/chaos/{id}", "/lab/chaos/2".to_owned(), None),
        ("delete", "/lab/chaos", "/lab/chaos".to_owned(), None),
        post("/api/transactions", "/api/transactions", json!({"transactions": [node.next.to_json()]})),
        post("/api/webhooks", "/api/webhooks", new_webhook()),
        ("put", "/api/webhooks/{id}", format!("/api/webhooks/{}", node.webhook), Some(change)),
        ("delete", "/api/webhooks/{id}", format!("/api/webhooks/{}", node.webhook), None),
        post("/lab/faucet", "/lab/faucet", json!({"recipient": recipient, "amount": "150000000"})),
        post("/faucet", "/faucet", json!({"recipient": recipient})),
        get("/watch", "/watch?from=1"),
        get("/lab/happened", "/lab/happened"),
        post("/lab/accounts", "/lab/accounts", json!({"count": 2, "balance": "500000000"})),
        post("/lab/pace", "/lab/pace", json!({"pace": "manual"})),
        ("delete", "/lab/pool/{id}", format!("/lab/pool/{}", node.pending.id()), None),
        post("/lab/blocks", "/lab/blocks", block_of_a_client(&node.up, 0)),
        post("/lab/advance", "/lab/advance", json!({"slots": 10})),
        post("/lab/faults", "/lab/faults", json!({"kind": "delay", "by_ms": 200, "messages": ["block"]})),
        get("/lab/faults", "/lab/faults"),
        ("delete", "/lab/faults/{id}", "/lab/faults/0".to_owned(), None),
        post("/lab/nodes/{node}/crash", "/lab/nodes/4/crash", json!({"keep_pool": false})),
        post("/lab/nodes/{node}/restart", "/lab/nodes/4/restart", json!({"keep_pool": true})),
        post("/lab/reorg", "/lab/reorg", json!({"depth": 2, "transactions": "return"})),
        post("/lab/snapshots", "/lab/snapshots", json!({"name": "before the test"})),
        get("/lab/snapshots", "/lab/snapshots"),
        get("/lab/snapshots/{id}", "/lab/snapshots/1"),
        post("/lab/snapshots/{id}/revert", "/lab/snapshots/1/revert", json!({})),
        ("delete", "/lab/snapshots/{id}", "/lab/snapshots/1".to_owned(), None),
        post("/lab/chains", "/lab/chains", json!({"delegates": 3, "seed": 2})),
        get("/lab/chains", "/lab/chains"),
        get("/lab/chains/{id}", "/lab/chains/1"),
        ("delete", "/lab/chains/{id}", "/lab/chains/1".to_owned(), None),
        post("/lab/views", "/lab/views", json!({"at": 40_000_000, "step": "block", "back": true})),
        get("/lab/views", "/lab/views"),
        get("/lab/views/{id}", "/lab/views/1"),
        post("/lab/views/{id}/chain", "/lab/views/1/chain", json!({})),
        ("delete", "/lab/views/{id}", "/lab/views/1".to_owned(), None),
    ];
    if documented {
        asked.push(get("/api/locks/search", "/api/locks/search?expirationType=2"));
        asked.push(get("/api/locks/unlocked", &format!("/api/locks/unlocked?ids={}", node.claimed.id())));
        asked.push(get("/api/business/{id}", &format!("/api/business/{business}")));
    }
    asked
}

/// Cuts lists, and masks what is drawn from the machine's own randomness, or was free on it.
fn presentable(value: Value, webhook: &str) -> Value {
    let text = |text: String| text.replace(webhook, SOME_ID);
    match value {
        Value::Array(items) => items.into_iter().take(ROWS).map(|item| presentable(item, webhook)).collect(),
        Value::String(found) => text(found).into(),
        Value::Object(members) => {
            let is_webhook = members.contains_key("event");
            let member = |(name, value): (String, Value)| {
                let value = match &*name {
                    "id" if is_webhook => SOME_ID.into(),
                    "token" if is_webhook => SOME_ID.replace('-', "").repeat(2).into(),
                    // The port is any free one.
                    "url" | "lab" if value.as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")) => {
                        let path = value.as_str().and_then(|url| url.splitn(4, '/').nth(3)).unwrap_or_default();
                        format!("http://127.0.0.1:4003/{path}").into()
                    }
                    // The size of a moment differs by machine.
                    "bytes" if value.is_u64() => 64_000.into(),
                    // Any free one was taken.
                    "@arkecosystem/core-api" if value.as_u64() > Some(1_024) => 4_003.into(),
                    _ => presentable(value, webhook),
                };
                (name, value)
            };
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// One example a line, so that a change shows which it changes.
fn one_a_line(examples: &Map<String, Value>) -> String {
    let dialects = examples.iter().map(|(dialect, examples)| {
        let lines =
            examples.as_object().into_iter().flatten().map(|(name, example)| format!("{}: {example}", json!(name)));
        format!("{}: {{\n{}\n}}", json!(dialect), lines.collect::<Vec<_>>().join(",\n"))
    });
    format!("{{\n{}\n}}\n", dialects.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn examples_are_answers_of_a_live_node() {
    let path = root().join("src/api/table/openapi/examples.json");
    let mut found = Map::new();
    for dialect in ["documented", "core-2.6"] {
        let node = Node::start(dialect);
        let (_, description) = node.ask("get", "/api/openapi.json", None);
        let mut examples = Map::new();
        let mut keep = |name: String, method: &str, target: &str, body: Option<Value>| {
            let (status, answer) = node.ask(method, target, body.as_ref());
            let mut example = json!({"target": presentable(target.into(), &node.webhook)});
            if let Some(body) = body {
                example["body"] = body;
            }
            example["status"] = status.into();
            if target == "/api/transactions/schemas" {
                // Whole, since `tests/clients/protocol` holds it against the reference's library.
                example["answer"] = answer;
            } else if answer != "" {
                example["answer"] = presentable(answer, &node.webhook);
            }
            examples.insert(name, example);
            status
        };
        for (method, path, target, body) in asked(&node, dialect == "documented") {
            let status = keep(format!("{method} {path}"), method, &target, body);
            assert!((200..300).contains(&status), "{dialect} {method} {target}: {status}");
        }
        assert_eq!(keep("missing".into(), "get", "/api/blocks/99999999", None), 404);
        assert_eq!(keep("invalid".into(), "get", "/api/blocks?limit=0", None), 422);
        for (path, operations) in description["paths"].as_object().expect("an object") {
            for method in operations.as_object().expect("an object").keys() {
                // A stream has no end; its description holds an example of its own.
                let is_described = path.starts_with("/api/docs")
                    || path == "/about"
                    || path == "/page/{file}"
                    || path == "/api/openapi.json"
                    || path == "/lab/events"
                    || path == "/lab/snapshots/{id}/file"
                    || path == "/lab/recording"
                    || path == "/metrics";
                let name = format!("{method} {path}");
                assert!(is_described || examples.contains_key(&name), "{dialect}: no example of {name}");
            }
        }
        found.insert(dialect.to_owned(), examples.into());
    }
    let found = one_a_line(&found);
    if env::var_os(REWRITE).is_some() {
        fs::write(&path, &found).expect("it can be written");
    }
    let kept = fs::read_to_string(&path).expect("it is there");
    let differs = kept.lines().zip(found.lines()).find(|(kept, found)| kept != found);
    assert!(kept == found, "{}: {differs:?}; {REWRITE}=1 writes it anew", path.display());
}
