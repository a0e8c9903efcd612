//! Whatever is asked, there is an answer of the right shape.

use crate::support::{Answered, ask, at_genesis, get};
use dposlab::api::{ApiContext, Dialect, Request};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;
use warp::http::Method;

static CONTEXTS: LazyLock<[ApiContext; 2]> =
    LazyLock::new(|| [at_genesis(Dialect::Documented).1, at_genesis(Dialect::Core26).1]);

/// Words of the API, so that chance gets past the routes and the names of parameters.
const SEGMENTS: [&str; 34] = [
    "api",
    "v2",
    "blocks",
    "wallets",
    "delegates",
    "transactions",
    "votes",
    "node",
    "status",
    "configuration",
    "crypto",
    "rounds",
    "first",
    "last",
    "top",
    "sent",
    "received",
    "voters",
    "unconfirmed",
    "types",
    "peers",
    "locks",
    "businesses",
    "bridgechains",
    "search",
    "unlocked",
    "fees",
    "debug",
    "schemas",
    "198.18.0.2",
    "business",
    "genesis_1",
    "1",
    "",
];
const NAMES: [&str; 20] = [
    "page",
    "limit",
    "offset",
    "orderBy",
    "transform",
    "height",
    "height.from",
    "height.to",
    "type",
    "typeGroup",
    "senderId",
    "recipientId",
    "username",
    "amount",
    "id",
    "blockId",
    "previousBlock",
    "generatorPublicKey",
    "nonce",
    "vendorField",
];
const VALUES: [&str; 16] = [
    "1",
    "0",
    "-1",
    "9007199254740993",
    "99999999999999999999999",
    "1e400",
    "true",
    "undefined",
    "height:asc",
    "amount:desc",
    "timestamp:asc",
    "username:desc",
    "%",
    "%00%ff",
    "+",
    "genesis",
];

const SEARCHED: [&str; 12] = [
    "address",
    "addresses",
    "usernames",
    "approval",
    "balance",
    "height",
    "amount",
    "asset",
    "name",
    "expirationType",
    "timestamp",
    "vendorFieldHex",
];

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(words).prop_map(str::to_owned), 1 => "[ -~]{0,40}", 1 => "[0-9a-f]{64,66}"]
}

fn check(answered: &Answered) {
    let body = &answered.body;
    match answered.status {
        200 => assert!(body.get("data").is_some(), "{body}"),
        301 => assert!(answered.reply.location.is_some()),
        status @ (403 | 404 | 422) => {
            assert_eq!(body["statusCode"], status);
            assert!(body["error"].is_string() && body["message"].is_string(), "{body}");
        }
        status => panic!("{status} {body}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    #[test]
    fn every_address_has_an_answer(
        segments in prop::collection::vec(word(&SEGMENTS), 0..5),
        query in prop::collection::vec((word(&NAMES), word(&VALUES)), 0..4),
        is_api in prop::bool::weighted(0.9),
        dialect in 0..2_usize,
    ) {
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let root = if is_api { "/api/" } else { "/" };
        check(&get(&CONTEXTS[dialect], &format!("{root}{}?{}", segments.join("/"), query.join("&"))));
    }

    #[test]
    fn every_body_has_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..60), kind in word(&["transactions"])) {
        let path = format!("/api/{kind}");
        check(&ask(&CONTEXTS[0], &Request::new(Method::POST, &path), bytes));
    }

    #[test]
    fn every_search_has_an_answer(
        kind in prop::sample::select(&["wallets", "delegates", "blocks", "transactions", "locks", "businesses"][..]),
        members in prop::collection::vec((word(&SEARCHED), any_value()), 0..3),
        dialect in 0..2_usize,
    ) {
        let body = Value::Object(members.into_iter().collect()).to_string();
        let request = Request::new(Method::POST, &format!("/api/{kind}/search"));
        check(&ask(&CONTEXTS[dialect], &request, body.into_bytes()));
    }

    #[test]
    fn every_transaction_has_an_answer(members in prop::collection::vec((0..12_usize, any_value()), 0..12)) {
        const MEMBERS: [&str; 12] = [
            "id", "version", "type", "typeGroup", "network", "nonce", "senderPublicKey", "fee", "amount", "recipientId",
            "asset", "signature",
        ];
        let item: Value = members.into_iter().map(|(name, value)| (MEMBERS[name].to_owned(), value)).collect();
        let body = json!({ "transactions": [item] }).to_string();
        check(&ask(&CONTEXTS[0], &Request::new(Method::POST, "/api/transactions"), body.into_bytes()));
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9a-f]{64}".prop_map(Value::from),
        "[0-9]{0,20}".prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("votes|payments|lock|delegate|from|to", inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

#[test]
fn wrong_parameters_are_named() {
    let message = |target: &str| {
        let answered = get(&CONTEXTS[0], target);
        assert_eq!(answered.status, 422, "{target}: {}", answered.body);
        answered.body["message"].as_str().expect("a text").to_owned()
    };
    assert_eq!(message("/api/blocks?foo=1"), "\"foo\" is not allowed");
    let limit = "child \"limit\" fails because [\"limit\" must be less than or equal to 100]";
    assert_eq!(message("/api/wallets?limit=101&foo=1"), limit);
    let range = "child \"height\" fails because [child \"from\" fails because [\"from\" must be a positive number]]";
    assert_eq!(message("/api/blocks?height.from=0"), range);
    assert_eq!(message("/api/blocks?page=1&page=2"), "child \"page\" fails because [\"page\" must be a number]");
    assert!(message("/api/wallets/Not%20An%20Id").contains("required pattern"));
}
