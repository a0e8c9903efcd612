//! Searches, by POST and by GET, as the published specification has them, on a generated network.

use crate::support::{Answered, ask, at_genesis, get, recorded_chain, recordings};
use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, Dialect, Request, View},
    ledger::Rules,
    protocol::crypto::CryptoMode::Real,
    scenario::Testnet,
    sim::{LiveHandle, SeedTree},
};
use serde_json::{Value, json};
use warp::http::Method;

fn post(context: &ApiContext, target: &str, body: &Value) -> Answered {
    ask(context, &Request::new(Method::POST, target), body.to_string().into_bytes())
}

fn found(context: &ApiContext, target: &str, body: &Value) -> usize {
    let answered = post(context, target, body);
    assert_eq!(answered.status, 200, "{target} {body}: {}", answered.body);
    answered.body["data"].as_array().expect("a list").len()
}

#[test]
fn searches_take_numbers_for_ranges_and_the_old_names() {
    let (testnet, context) = at_genesis(Dialect::Documented);
    let key = testnet.delegates[0].keys.public().to_string();
    let wallet = get(&context, &format!("/api/wallets/{key}")).body;
    let address = wallet["data"]["address"].as_str().expect("an address").to_owned();
    let other =
        testnet.delegates[1].keys.public().address(context.view.tree().config().network.pub_key_hash).to_string();
    for (target, body, count) in [
        ("/api/blocks/search", json!({"height": 1}), 1),
        ("/api/blocks/search?orderBy=height:asc", json!({"payloadLength": {"from": 1}}), 1),
        ("/api/transactions/search", json!({"ownerId": address, "type": 3}), 1),
        ("/api/transactions/search", json!({"ownerId": address, "recipientId": other}), 0),
        ("/api/transactions/search", json!({"ownerId": other, "senderId": address}), 0),
        ("/api/transactions/search", json!({"ownerId": address, "senderId": address}), 2),
        ("/api/transactions/search", json!({"addresses": [address]}), 3),
        ("/api/transactions/search", json!({"vendorFieldHex": "ab"}), 0),
        ("/api/transactions/search", json!({"asset": {"delegate": {}}}), 5),
        ("/api/wallets/search", json!({"votebalance": {"from": 1}}), 5),
        ("/api/wallets/search", json!({"publicKey": key, "balance": {}}), 1),
        ("/api/delegates/search", json!({"usernames": ["genesis_1", "genesis_2"], "approval": {"from": 0.01}}), 2),
        ("/api/locks/search", json!({"amount": 5}), 0),
        ("/api/businesses/search", json!({"name": "A - B."}), 0),
        ("/api/bridgechains/search", json!({"seedNodes": ["1.2.3.4"]}), 0),
    ] {
        assert_eq!(found(&context, target, &body), count, "{target} {body}");
    }
    for target in ["/api/locks/search?amount=1&timestamp.from=1", "/api/locks/unlocked?ids=ab", "/api/business/nobody"]
    {
        assert_ne!(get(&context, target).body["message"], "Not Found", "{target}");
    }
    assert_eq!(get(&context, "/api/locks/search").status, 200);
    assert_eq!(get(&at_genesis(Dialect::Core26).1, "/api/locks/search").status, 422);
}

#[test]
fn short_pages_and_long_ones_have_one_order() {
    let testnet = Testnet::generate(SeedTree::new(1), 60, Real);
    let tree = testnet.tree(Rules::reference()).expect("as many delegates as it wants");
    let view = View::new(NodeId(0), tree.clone(), tree.genesis().clone(), SimTime::default());
    let context = ApiContext::new(view, LiveHandle::ended());
    let ids = |order: &str, limit: usize| -> Vec<Value> {
        let pages = (1..).map(|page| {
            let target = format!("/api/transactions?orderBy={order}&limit={limit}&page={page}");
            get(&context, &target).body["data"].as_array().expect("a list").clone()
        });
        pages.take_while(|page| !page.is_empty()).flatten().map(|row| row["id"].clone()).collect()
    };
    for order in ["amount:desc", "amount:asc", "fee:asc", "type:desc", "timestamp:asc", "nonce:asc"] {
        let long = ids(order, 100);
        assert!(long.len() > 150, "{order}: or nothing is let go: {}", long.len());
        assert_eq!(ids(order, 7), long, "{order}");
    }
}

#[test]
fn what_a_search_takes_is_checked_in_the_words_of_the_reference() {
    let (_, context) = at_genesis(Dialect::Documented);
    for (target, body, message) in [
        ("/api/wallets/search", json!([]), "\"value\" must be an object"),
        ("/api/wallets/search", json!({"foo": 1}), "\"foo\" is not allowed"),
        ("/api/locks/unlocked", json!({}), "child \"ids\" fails because [\"ids\" is required]"),
        (
            "/api/businesses/search",
            json!({"name": "a  b"}),
            "child \"name\" fails because [\"name\" with value \"a  b\" fails to match the required pattern: \
             /^[a-zA-Z0-9]+(( - |[ ._-])[a-zA-Z0-9]+)*[.]?$/]",
        ),
    ] {
        let answered = post(&context, target, &body);
        assert_eq!((answered.status, &answered.body["message"]), (422, &json!(message)), "{target}");
    }
}

#[test]
fn locks_and_what_closed_them_are_found() {
    let folder = recordings();
    let context = recorded_chain(&folder, 111, Dialect::Documented);
    let lock = get(&context, "/api/locks?orderBy=amount:asc").body["data"][0].clone();
    let amount = &lock["amount"];
    assert_eq!(found(&context, "/api/locks/search", &json!({ "amount": amount })), 1);
    let owner = lock["senderPublicKey"].as_str().expect("a key");
    let locks = get(&context, &format!("/api/wallets/{owner}/locks")).body;
    assert_eq!(locks["meta"]["totalCountIsEstimate"], false);
    let closed = "4ad0e1931a514778dcb2fc377cb482d4f1fe9a3eb224d86e1af43f89b147343f";
    let claims = get(&context, &format!("/api/locks/unlocked?ids={closed}")).body;
    assert_eq!(claims["data"][0]["asset"]["claim"]["lockTransactionId"], closed);
    let fees = get(&context, "/api/node/fees?days=undefined").body;
    assert_eq!((&fees["meta"]["days"], &fees["data"][0]["key"]), (&json!(7), &json!("transfer")));
    assert!(fees["data"][0]["median"].is_string());
}
