//! The tree of blocks and the round in force, as the lab tells them; and the page that draws them.

use crate::live::{Network, head};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn data(network: &Network, path: &str) -> Value {
    let answered = network.get(path);
    assert_eq!(answered.status, 200, "{path}: {}", answered.body);
    answered.body["data"].clone()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

#[test]
fn the_tree_holds_every_branch_and_says_who_stands_where() {
    let network = Network::start(61);
    network.advance(10);
    let snapshot = network.post("/lab/snapshots", &json!({})).body["data"]["id"].clone();
    network.advance(4);
    let done = network.post("/lab/reorg", &json!({"depth": 2})).body["data"].clone();
    let left: BTreeSet<&str> =
        list(&done["reverted"]).iter().map(|block| block["id"].as_str().expect("an id")).collect();
    assert_eq!(left.len(), 2);
    network.advance(1);

    let tree = data(&network, "/lab/tree?from=5");
    let blocks = list(&tree["blocks"]);
    let (winning, others): (Vec<&Value>, Vec<&Value>) = blocks.iter().partition(|block| block["winning"] == true);
    let lost: BTreeSet<&str> = others.iter().map(|block| block["id"].as_str().expect("an id")).collect();
    assert_eq!(lost, left, "what was left is there, and nothing else");
    assert!(others.iter().all(|block| block["nodes"] == 0));
    assert_eq!((&tree["from"], &winning[0]["height"], &tree["leftOff"]), (&json!(5), &json!(5), &json!(0)));
    for pair in winning.windows(2) {
        assert_eq!(pair[1]["previous"], pair[0]["id"]);
    }
    let tip = winning.last().expect("a chain");
    assert_eq!((&tip["id"], &tip["height"], &tip["nodes"]), (&tree["tip"], &tree["height"], &json!(5)));
    for block in &winning {
        let shown = data(&network, &format!("/api/blocks/{}", block["height"]));
        assert_eq!(shown["id"], block["id"]);
        assert_eq!(shown["generator"]["username"], block["forger"]);
        assert_eq!(shown["timestamp"]["epoch"].as_u64().map(|at| at / 8 * 8), block["time"].as_u64());
        assert_eq!(block["slot"].as_u64().map(|slot| slot * 8), block["time"].as_u64());
        assert_eq!(shown["transactions"], block["transactions"]);
    }
    assert_eq!(tip["confirmed"], network.get("/api/transactions").body["meta"]["totalCount"]);

    network.post(&format!("/lab/snapshots/{snapshot}/revert"), &json!({}));
    let back = data(&network, "/lab/tree");
    let highest = list(&back["blocks"]).iter().filter_map(|block| block["height"].as_u64()).max();
    assert_eq!((highest, list(&back["blocks"]).len()), (Some(11), 11), "what came after the snapshot is gone");
    assert!(list(&back["blocks"]).iter().all(|block| block["winning"] == true));
}

/// The clock stands where one node has a block and the others do not.
#[test]
fn a_block_on_its_way_is_no_branch() {
    let network = Network::start(65);
    network.advance(6);
    let until = json!({"until": {"event": {"kind": "block-applied"}}, "limit": 3});
    assert_eq!(network.post("/lab/advance", &until).body["data"]["stopped"], "reached");
    let lab = data(&network, "/lab");
    let heights: BTreeSet<u64> = list(&lab["nodes"]).iter().filter_map(|node| node["height"].as_u64()).collect();
    assert_eq!(heights.len(), 2, "the block has not reached everybody: {lab}");
    let highest = heights.last().copied();

    let tree = data(&network, "/lab/tree");
    assert!(list(&tree["blocks"]).iter().all(|block| block["winning"] == true), "{tree}");
    let tip = list(&tree["blocks"]).last().expect("a chain");
    assert_eq!((tree["height"].as_u64(), tip["height"].as_u64(), &tip["id"]), (highest, highest, &tree["tip"]));
    assert_eq!(tip["nodes"], 1, "{tree}");
    let round = data(&network, "/lab/round");
    assert_eq!((&round["tip"], &round["height"]), (&tree["tip"], &tree["height"]), "one end for tree and round");
    assert_eq!(list(&round["slots"]).iter().filter(|slot| slot["state"] == "elsewhere").count(), 0, "{round}");
}

#[test]
fn the_round_says_whose_each_slot_is_and_what_became_of_it() {
    let network = Network::start(62);
    network.post("/lab/faults", &json!({"kind": "offline", "delegates": [2]}));
    let absent = network.testnet.delegates[2].username.clone();
    let mut seen = BTreeMap::new();
    for _ in 0..17 {
        network.advance(1);
        let round = data(&network, "/lab/round");
        let slots = list(&round["slots"]);
        let count = |state: &str| slots.iter().filter(|slot| slot["state"] == state).count();
        let now = round["slotNow"].as_u64().expect("a number");
        assert_eq!(data(&network, "/lab")["now"].as_u64(), Some(now * 8));
        for (pair, before) in slots.windows(2).zip(slots) {
            assert_eq!(pair[1]["slot"].as_u64(), before["slot"].as_u64().map(|slot| slot + 1));
        }
        for slot in slots {
            let at = slot["slot"].as_u64().expect("a number");
            *seen.entry(slot["state"].as_str().expect("a text").to_owned()).or_insert(0) += 1;
            match slot["state"].as_str().expect("a text") {
                "forged" => {
                    assert!(at < now && slot["owner"] != json!(absent));
                    let block = data(&network, &format!("/api/blocks/{}", slot["height"]));
                    assert_eq!((&block["id"], &block["generator"]["username"]), (&slot["block"], &slot["owner"]));
                    assert!(block["height"].as_u64() >= round["first"].as_u64());
                }
                "missed" => assert_eq!((at < now, &slot["owner"]), (true, &json!(absent))),
                "running" => assert_eq!(at, now),
                other => assert_eq!((other, at > now), ("coming", true)),
            }
        }
        // As many blocks as delegates make a round.
        assert_eq!(count("forged") + count("running") + count("coming"), 5, "{round}");
        assert!(count("running") <= 1);
    }
    assert!(["forged", "missed", "running", "coming"].iter().all(|state| seen.contains_key(*state)), "{seen:?}");
}

#[test]
fn where_a_tree_begins_is_a_height() {
    let network = Network::start(63);
    for wrong in ["0", "x", "-1", "99999999999"] {
        assert_eq!(network.get(&format!("/lab/tree?from={wrong}")).status, 422, "{wrong}");
    }
    assert_eq!(network.get("/lab/tree?to=3").status, 422);
    assert_eq!(list(&data(&network, "/lab/tree?from=4294967295")["blocks"]), &[] as &[Value]);
}

#[test]
fn the_live_page_and_its_parts_are_served_and_may_load_nothing_else() {
    let network = Network::start(64);
    let ask = |path: &str| network.send(&format!("GET {path} HTTP/1.1\r\nhost: test\r\naccept: text/html\r\n\r\n"));
    let body = |path: &str| {
        let answered = ask(path);
        let head = head(&answered);
        assert_eq!(answered.status, 200, "{path}");
        assert!(
            head.contains("content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';"),
            "{head}"
        );
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        let kind = match path.rsplit('.').next() {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            _ => "text/html",
        };
        assert!(head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        String::from_utf8(answered.reply.body.to_vec()).expect("a text")
    };
    let page = body("/");
    let mut parts: Vec<String> = Vec::new();
    let mut wanted: Vec<String> =
        page.split('"').filter(|text| text.starts_with("page/")).map(|part| format!("/{part}")).collect();
    assert_eq!(wanted.len(), 3, "{page}");
    while let Some(part) = wanted.pop() {
        if parts.contains(&part) {
            continue;
        }
        let text = body(&part);
        assert!(!text.contains("innerHTML") && !text.contains("insertAdjacentHTML"), "{part} sets text as HTML");
        let imports = text.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next());
        wanted.extend(imports.map(|name| format!("/page/{name}")));
        parts.push(part);
    }
    assert!(parts.len() >= 14, "{parts:?}");
    assert_eq!(network.get("/page/nothing.js").status, 404);
    assert_eq!(network.get("/page/../page/main.js").status, 404);
}
