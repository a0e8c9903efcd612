//! The two dialects, row by row of the table in api.md 4.10, on a generated network.

use crate::support::{at_genesis, get};
use dposlab::api::{ApiContext, Dialect};
use serde_json::{Value, json};

fn both() -> (ApiContext, ApiContext) {
    (at_genesis(Dialect::Documented).1, at_genesis(Dialect::Core26).1)
}

fn data(context: &ApiContext, target: &str) -> Value {
    let answered = get(context, target);
    assert_eq!(answered.status, 200, "{target}: {}", answered.body);
    answered.body["data"].clone()
}

#[test]
fn delegates_have_numbers_or_texts() {
    let (documented, core) = both();
    let delegate = data(&documented, "/api/delegates/genesis_1");
    assert!(delegate["votes"].is_u64() && delegate["forged"]["total"] == 0, "{delegate}");
    assert_eq!(delegate["blocks"], json!({"produced": 0, "missed": 0}));
    assert_eq!(delegate["production"]["productivity"], 0);
    let delegate = data(&core, "/api/delegates/genesis_1");
    assert!(delegate["votes"].is_string() && delegate["forged"]["total"] == "0", "{delegate}");
    assert_eq!(delegate["blocks"], json!({"produced": 0}));
    assert_eq!(delegate["production"].get("productivity"), None);
}

#[test]
fn voters_are_found_wallets() {
    let (documented, core) = both();
    let voter = data(&documented, "/api/delegates/genesis_1/voters")[0].clone();
    assert!(voter["balance"].is_u64() && voter["secondPublicKey"].is_null() && voter["username"] == "genesis_1");
    assert!(voter.as_object().expect("an object").contains_key("secondPublicKey"));
    let voter = data(&core, "/api/delegates/genesis_1/voters")[0].clone();
    assert!(voter["balance"].is_string() && voter.get("secondPublicKey").is_none(), "{voter}");
}

#[test]
fn lists_take_ranges_and_aliases_or_not() {
    let (documented, core) = both();
    let key = data(&documented, "/api/delegates/genesis_1")["publicKey"].as_str().expect("a key").to_owned();
    for (target, rows) in [
        ("/api/blocks?height.from=1&height.to=5".to_owned(), 1),
        ("/api/blocks?height.from=2".to_owned(), 0),
        ("/api/blocks?payloadLength.from=1".to_owned(), 1),
        (format!("/api/wallets?senderPublicKey={key}"), 1),
        ("/api/transactions?amount.from=1&limit=undefined".to_owned(), 15),
    ] {
        assert_eq!(data(&documented, &target).as_array().map(Vec::len), Some(rows), "{target}");
        assert_eq!(get(&core, &target).status, 422, "{target}");
    }
}

/// Source: api.md 2.
#[test]
fn an_offset_begins_a_page_unless_it_is_zero() {
    let (documented, core) = both();
    for context in [documented, core] {
        let all = data(&context, "/api/transactions?limit=9");
        for (query, from) in
            [("page=2", 3), ("page=2&offset=0", 3), ("offset=0", 0), ("page=2&offset=4", 4), ("offset=4", 4)]
        {
            let found = data(&context, &format!("/api/transactions?limit=3&{query}"));
            assert_eq!(
                found.as_array().expect("a list")[..],
                all.as_array().expect("a list")[from..from + 3],
                "{query}"
            );
        }
    }
}

#[test]
fn numbers_beyond_javascript_are_taken_or_refused() {
    let (documented, core) = both();
    let total = data(&documented, "/api/blocks/first")["forged"]["amount"].as_str().expect("a text").to_owned();
    let target = format!("/api/blocks?totalAmount={total}");
    assert_eq!(data(&documented, &target).as_array().map(Vec::len), Some(1));
    let message = "child \"totalAmount\" fails because [\"totalAmount\" must be a safe number]";
    assert_eq!(get(&core, &target).body["message"], message);
}

#[test]
fn zeros_that_javascript_writes_otherwise_are_taken_or_refused() {
    let (documented, core) = both();
    for zero in ["-0", "00"] {
        for (target, name) in [("/api/blocks?offset=", "offset"), ("/api/blocks?version=", "version")] {
            let target = format!("{target}{zero}");
            assert_eq!(get(&documented, &target).status, 200, "{target}");
            let refused = get(&core, &target);
            let message = format!("child \"{name}\" fails because [\"{name}\" must be a safe number]");
            assert_eq!((refused.status, &refused.body["message"]), (422, &json!(message)), "{target}");
        }
        // A path is a text, and names a block or none.
        let status = |context| get(context, &format!("/api/blocks/{zero}")).status;
        let wanted = if zero == "00" { 404 } else { 422 };
        assert_eq!(status(&core), wanted, "{zero}");
    }
}

#[test]
fn the_configuration_is_the_union_or_the_references() {
    let (documented, core) = both();
    let age = |context| data(context, "/api/node/configuration")["transactionPool"].get("maxTransactionAge").cloned();
    assert_eq!((age(&documented), age(&core)), (Some(json!(2_700)), None));
    let crypto = data(&documented, "/api/node/configuration/crypto");
    assert_eq!(crypto["milestones"].as_array().map(Vec::len), Some(5));
    assert_eq!(crypto["network"]["client"]["token"], "TARK");
    assert_eq!(crypto["exceptions"], json!({}));
    assert_eq!(data(&documented, "/api/blocks/first")["payload"]["hash"], crypto["network"]["nethash"]);
}

#[test]
fn what_both_say_is_said_once() {
    let (documented, core) = both();
    for target in [
        "/api/blockchain",
        "/api/blocks?limit=1",
        "/api/blocks/1?transform=false",
        "/api/blocks/1/transactions?orderBy=fee:asc",
        "/api/transactions?limit=7&page=2",
        "/api/transactions/types",
        "/api/transactions/fees",
        "/api/votes",
        "/api/wallets",
        "/api/wallets/top?limit=3",
        "/api/wallets/genesis_2",
        "/api/wallets/genesis_2/transactions",
        "/api/wallets/genesis_2/votes",
        "/api/rounds/1/delegates",
        "/api/peers",
        "/api/node/syncing",
    ] {
        let (one, other) = (get(&documented, target), get(&core, target));
        assert_eq!(one.status, 200, "{target}: {}", one.body);
        assert_eq!(one.body, other.body, "{target}");
    }
}

#[test]
fn an_argument_of_a_path_that_cannot_be_is_refused_and_alternatives_speak_one_by_one() {
    let (documented, core) = both();
    let message = |context: &ApiContext, target: &str| {
        let answered = get(context, target);
        (answered.status, answered.body["message"].as_str().unwrap_or_default().to_owned())
    };
    let cut = "child \"bridgechainId\" fails because [\"bridgechainId\" length must be 64 characters long]";
    let hex = "child \"bridgechainId\" fails because [\"bridgechainId\" must only contain hexadecimal characters]";
    for context in [&documented, &core] {
        let businesses = "/api/businesses/genesis_1/bridgechains";
        assert_eq!(message(context, &format!("{businesses}/abc")), (422, cut.to_owned()));
        assert_eq!(message(context, &format!("{businesses}/xyz")), (422, hex.to_owned()));
        let whole = format!("{businesses}/{}", "ab".repeat(32));
        assert_eq!(message(context, &whole), (404, "Business not found".to_owned()));
        let empty = "\"blockId\" is not allowed to be empty";
        let twice = format!("child \"blockId\" fails because [{empty}, {empty}]");
        assert_eq!(message(context, "/api/transactions?blockId="), (422, twice));
        let list = "\"id\" must be a string";
        let twice = format!("child \"id\" fails because [{list}, {list}]");
        assert_eq!(message(context, "/api/blocks?id=1&id=2"), (422, twice));
        let wide = format!("/api/transactions?vendorField={}", "%C5%BC".repeat(128));
        let long = "\"vendorField\" length must be less than or equal to 255 characters long";
        assert_eq!(message(context, &wide), (422, format!("child \"vendorField\" fails because [{long}]")));
    }
}
