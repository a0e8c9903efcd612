//! The test bench over HTTP: forging on demand, advancing until something has come, coin and accounts. All of it is written
//! down, and replayed.

use crate::{
    kept_by_model::block_of_a_client,
    support::{recordings, run},
    testnet::Up,
};
use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real};
use serde_json::{Value, json};
use std::{fs, path::Path, thread};

fn keys(account: &Value) -> KeyPair {
    KeyPair::from_passphrase(account["passphrase"].as_str().expect("a passphrase"), Real)
}

/// A transfer of one coin to nobody in particular.
fn transfer(keys: &KeyPair, nonce: u64) -> Value {
    let recipient = KeyPair::from_passphrase("somebody", Real).public().address(23);
    Transaction::transfer(recipient, Arktoshi::coins(1)).network(23).nonce(Nonce(nonce)).sign(keys).to_json()
}

/// Hands one in, and answers its id.
fn submit(up: &Up, transaction: &Value) -> String {
    let (status, answer) = up.post("/api/transactions", &json!({ "transactions": [transaction] }));
    assert_eq!((status, &answer["data"]["accept"]), (200, &json!([transaction["id"]])), "{answer}");
    transaction["id"].as_str().expect("an id").to_owned()
}

fn confirmed(up: &Up, id: &str) -> Value {
    up.get(&format!("/transactions/{id}"))["data"].clone()
}

fn ok(up: &Up, path: &str, body: &Value) -> Value {
    let (status, answer) = up.post(path, body);
    assert_eq!(status, 200, "{path} {body}: {answer}");
    answer["data"].clone()
}

/// The clock and what is pending: what a refused request may not change.
fn standing(up: &Up) -> (Value, Value, u64) {
    let now = ok_get(up, "/lab/pace");
    (now, up.get("/transactions/unconfirmed")["meta"]["totalCount"].clone(), up.height())
}

fn ok_get(up: &Up, path: &str) -> Value {
    let url = format!("{}{path}", up.api().trim_end_matches("/api"));
    ureq::get(url).call().expect("it answers").body_mut().read_json().expect("JSON")
}

/// Stops it and replays what it wrote down.
fn replays(up: Up, record: &Path) {
    up.interrupt();
    let text = fs::read_to_string(record).expect("it was recorded");
    let end: Value = serde_json::from_str(text.lines().last().expect("an end")).expect("JSON");
    let output = run(&["replay", record.to_str().expect("a path in UTF-8"), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let replayed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!((&replayed["digest"], &replayed["end_us"]), (&end["digest"], &end["at"]));
    assert!(replayed["inputs"].as_u64() > Some(0), "or nothing came in");
}

#[test]
fn on_demand_a_transaction_is_in_a_block_when_the_post_is_answered() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for stage in ["inline", "ractor"] {
        let record = folder.path().join(stage);
        let recorded = record.to_str().expect("a path in UTF-8");
        let up = Up::start(&["--pace", "on-demand", "--stage", stage, "--delegates", "11", "--record", recorded]);
        assert_eq!(up.height(), 2, "the first block is there, for transactions of version 2 are taken from then on");
        let made = ok(&up, "/lab/accounts", &json!({"count": 8, "balance": 1_000_000_000}));
        assert_eq!(up.height(), 3, "eight accounts, one multipayment, one block");
        let senders: Vec<KeyPair> = made["accounts"].as_array().expect("a list").iter().map(keys).collect();
        for nonce in 1..=5 {
            let id = submit(&up, &transfer(&senders[0], nonce));
            assert_eq!(confirmed(&up, &id)["nonce"], nonce.to_string());
            assert_eq!(up.height(), 3 + nonce, "each in the block of the next slot");
        }
        assert_eq!(up.get("/transactions/unconfirmed")["meta"]["totalCount"], 0);
        let height = up.height();
        thread::scope(|scope| {
            for sender in &senders[1..] {
                scope.spawn(|| {
                    let id = submit(&up, &transfer(sender, 1));
                    assert_eq!(confirmed(&up, &id)["nonce"], "1");
                });
            }
        });
        assert!((height + 1..=height + 7).contains(&up.height()), "seven at once, seven blocks at most");
        assert_eq!(up.height(), up.height(), "the clock stands");
        let (status, answer) = up.post("/api/transactions", &json!({ "transactions": [transfer(&senders[1], 1)] }));
        assert_eq!((status, &answer["data"]["accept"]), (200, &json!([])), "refused at once: {answer}");
        // From any pace to this one and back.
        assert_eq!(ok(&up, "/lab/pace", &json!({"pace": "manual"}))["pace"], "manual");
        let (id, height) = (submit(&up, &transfer(&senders[1], 2)), up.height());
        assert_eq!(ok(&up, "/lab/pace", &json!({"pace": "on-demand"}))["pace"], "on-demand");
        assert_eq!(up.height(), height, "what waited before waits for the next request");
        submit(&up, &transfer(&senders[2], 2));
        assert_eq!(confirmed(&up, &id)["nonce"], "2");
        assert_eq!(
            ok(&up, "/lab/advance", &json!({"slots": 4}))["height"],
            height + 4,
            "the running slot has its block"
        );
        replays(up, &record);
    }
}

/// While the clock stands, all live nodes are on one block: no answer of any node is behind another's.
#[test]
fn on_demand_the_clock_stands_only_when_all_nodes_have_the_block() {
    let at_rest = |up: &Up, height: u64| {
        let lab = ok_get(up, "/lab")["data"].clone();
        for node in lab["nodes"].as_array().expect("a list").iter().filter(|node| node["live"] == true) {
            assert_eq!(node["height"].as_u64(), Some(height), "{lab}");
        }
        let tree = ok_get(up, "/lab/tree?from=1")["data"].clone();
        assert_eq!(tree["height"].as_u64(), Some(height));
        assert!(tree["blocks"].as_array().expect("a list").iter().all(|block| block["winning"] == true), "{tree}");
        let urls = up.ready["urls"].as_array().expect("a list");
        for url in urls.iter().map(|url| url.as_str().expect("a text")) {
            let get = |path: &str| -> Value {
                ureq::get(format!("{url}{path}")).call().expect("it answers").body_mut().read_json().expect("JSON")
            };
            let status = get("/node/status")["data"].clone();
            assert_eq!((&status["now"], &status["blocksCount"]), (&json!(height), &json!(0)), "{url}: {status}");
            let peers = get("/peers");
            for peer in peers["data"].as_array().expect("a list") {
                assert_eq!(peer["height"].as_u64(), Some(height), "{url}: {peers}");
            }
        }
    };
    for (stage, gossip) in [("inline", "once"), ("ractor", "once"), ("inline", "reference")] {
        let plain = ["--pace", "on-demand", "--delegates", "11", "--api-nodes", "3", "--stage", stage];
        let up = Up::start(&[&plain[..], &["--gossip", gossip]].concat());
        at_rest(&up, 2);
        for nonce in 1..=6 {
            submit(&up, &transfer(&keys(&up.ready["accounts"][0]), nonce));
            at_rest(&up, 2 + nonce);
        }
        // From a pace at which blocks come all the time.
        ok(&up, "/lab/pace", &json!({"pace": "max"}));
        ok(&up, "/lab/pace", &json!({"pace": "on-demand"}));
        at_rest(&up, up.height());
    }
}

/// A client's own block comes to all nodes before its answer does.
#[test]
fn on_demand_a_block_that_is_handed_in_is_at_every_node_when_it_is_answered() {
    let up = Up::start(&["--pace", "manual", "--delegates", "7", "--stage", "inline"]);
    up.advance(3);
    ok(&up, "/lab/pace", &json!({"pace": "on-demand"}));
    let taken = ok(&up, "/lab/blocks", &block_of_a_client(&up, 0));
    let lab = ok_get(&up, "/lab")["data"].clone();
    for node in lab["nodes"].as_array().expect("a list") {
        assert_eq!(node["tip"], taken["id"], "{lab}");
    }
}

/// Nothing happens between the answer about a pace and a kill, so the next start stands where the answer said.
#[test]
fn the_clock_stands_after_a_kill_where_the_answer_about_the_pace_said() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let data = folder.path().join("data").display().to_string();
    let arguments = ["--pace", "manual", "--delegates", "3", "--stage", "inline", "--data-dir", &data];
    let mut up = Up::start(&arguments);
    for _ in 0..3 {
        ok(&up, "/lab/pace", &json!({"pace": 700}));
        let begun = ok_get(&up, "/lab/pace")["data"]["now"].as_u64();
        while ok_get(&up, "/lab/pace")["data"]["now"].as_u64() < begun.map(|begun| begun + 3) {}
        let answered = ok(&up, "/lab/pace", &json!({"pace": "manual"}));
        up.kill();
        up = Up::start(&arguments);
        assert_eq!(ok_get(&up, "/lab/pace")["data"], answered);
    }
}

/// Nodes hold transactions whose earlier ones have not come, and messages bring them.
#[test]
fn what_a_sender_has_after_a_dropped_transaction_comes_no_more() {
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--stage", "inline"]);
    up.advance(4);
    let payer = keys(&up.ready["accounts"][0]);
    let ids: Vec<String> = (1..=3).map(|nonce| submit(&up, &transfer(&payer, nonce))).collect();
    assert_eq!(up.delete_below_root(&format!("/lab/pool/{}", ids[0])), 200);
    up.advance(2);
    submit(&up, &transfer(&payer, 1));
    up.advance(8);
    let address = up.ready["accounts"][0]["address"].as_str().expect("an address");
    assert_eq!(up.get(&format!("/wallets/{address}"))["data"]["nonce"], "1");
}

#[test]
fn a_reorganisation_keeps_no_more_pending_than_a_pool_holds() {
    let up = Up::start(&[
        "--pace",
        "manual",
        "--delegates",
        "5",
        "--stage",
        "inline",
        "--set",
        "rules.pool.max_transactions=6",
    ]);
    up.advance(4);
    let payer = |account: usize| keys(&up.ready["accounts"][account]);
    (1..=3).for_each(|nonce| drop(submit(&up, &transfer(&payer(0), nonce))));
    up.advance(3);
    (1..=6).for_each(|nonce| drop(submit(&up, &transfer(&payer(1), nonce))));
    ok(&up, "/lab/reorg", &json!({"depth": 3}));
    assert_eq!(up.get("/transactions/unconfirmed")["meta"]["totalCount"], 6);
}

/// Nodes that are cut off never get the block. The clock does not wait for them beyond the slot.
#[test]
fn on_demand_nodes_that_are_cut_off_hold_up_nothing() {
    let up = Up::start(&["--pace", "on-demand", "--delegates", "7", "--stage", "inline"]);
    let (status, answer) = up.post("/lab/faults", &json!({"kind": "partition", "groups": [[6]]}));
    assert_eq!(status, 201, "{answer}");
    for nonce in 1..=3 {
        let before = ok_get(&up, "/lab/pace")["data"]["now"].as_u64().expect("seconds");
        submit(&up, &transfer(&keys(&up.ready["accounts"][0]), nonce));
        let lab = ok_get(&up, "/lab")["data"].clone();
        let height = |node: usize| lab["nodes"][node]["height"].as_u64().expect("a height");
        assert!((1..6).all(|node| height(node) == height(0)) && height(6) < height(0), "{lab}");
        let now = lab["now"].as_u64().expect("seconds");
        assert!(now - before <= 8 * 8, "within a round: {before} to {now}");
    }
}

/// The fault that takes five delegates offline.
fn nobody_forges_from_height_2() -> String {
    let all: Vec<String> = (1..=5).map(|number| format!("\"genesis_{number}\"")).collect();
    format!("fault=[{{ kind = \"offline\", delegates = [{}], from = {{ height = 2 }} }}]", all.join(","))
}

/// Two requests that cannot be met: nobody forges, and the chain of the node cannot hold them for another reason.
#[test]
fn on_demand_it_does_not_play_for_ever() {
    let off = nobody_forges_from_height_2();
    let up = Up::start(&["--pace", "on-demand", "--delegates", "5", "--set", &off, "--stage", "inline"]);
    let before = ok_get(&up, "/lab/pace")["data"]["now"].as_u64().expect("seconds");
    let id = submit(&up, &transfer(&keys(&up.ready["accounts"][0]), 1));
    let after = ok_get(&up, "/lab/pace")["data"]["now"].as_u64().expect("seconds");
    assert_eq!((after - before).div_ceil(8), 120, "so many slots, and no more");
    assert_eq!(
        (up.height(), up.get(&format!("/transactions/unconfirmed/{id}"))["data"]["nonce"].clone()),
        (2, json!("1"))
    );
}

/// More slots than one answer shows: the newest are shown.
#[test]
fn a_round_that_lasts_shows_its_newest_slots() {
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--set", &nobody_forges_from_height_2()]);
    ok(&up, "/lab/advance", &json!({"slots": 2_500}));
    let round = ok_get(&up, "/lab/round")["data"].clone();
    let slots = round["slots"].as_array().expect("a list");
    let number = |value: &Value| value.as_u64().expect("a number");
    let running = slots.iter().find(|slot| slot["state"] == "running").expect("it is among the newest");
    assert_eq!((slots.len(), &running["slot"]), (2_000, &round["slotNow"]));
    assert_eq!(number(&slots[1_999]["slot"]) - number(&slots[0]["slot"]), 1_999);
    assert!(number(&round["leftOff"]) >= 490, "{}", round["leftOff"]);
}

/// No delegate misses a slot without an owner.
#[test]
fn a_slot_of_a_lottery_without_an_owner_is_not_missed() {
    let up = Up::start(&["scenarios/lottery.toml", "--pace", "manual", "--seed", "7"]);
    ok(&up, "/lab/advance", &json!({"slots": 300}));
    let round = ok_get(&up, "/lab/round")["data"].clone();
    assert_eq!((&round["delegates"], &round["blocks"]), (&json!(51), &json!(51)));
    let slots = round["slots"].as_array().expect("a list");
    let of = |state: &str| slots.iter().filter(|slot| slot["state"] == state).collect::<Vec<_>>();
    let past = |slot: &&&Value| slot["slot"].as_u64() < round["slotNow"].as_u64();
    assert!(of("unowned").iter().filter(past).count() > 200, "a slot of 20 has an owner: {round}");
    assert!(of("unowned").iter().all(|slot| slot["owner"].is_null() && slot["block"].is_null()), "{round}");
    assert!(["missed", "running", "coming"].iter().all(|state| of(state).iter().all(|slot| slot["owner"].is_string())));
    for slot in of("forged").into_iter().filter(|slot| slot["height"] != 1) {
        let block = up.get(&format!("/blocks/{}", slot["height"]))["data"].clone();
        assert_eq!((&block["id"], &block["generator"]["username"]), (&slot["block"], &slot["owner"]));
    }
    assert_eq!(of("forged").len() + of("running").len() + of("coming").len(), 51, "{round}");
}

/// A delegate of EOS owns twelve slots in a row, so twelve blocks of each make a round.
#[test]
fn a_round_of_turns_has_a_block_for_each_slot_of_a_turn() {
    let up = Up::start(&["--pace", "manual", "--delegates", "21", "--set", "rules.base=eos"]);
    ok(&up, "/lab/advance", &json!({"slots": 5}));
    let round = ok_get(&up, "/lab/round")["data"].clone();
    assert_eq!((&round["delegates"], &round["blocks"]), (&json!(21), &json!(252)));
    let slots = round["slots"].as_array().expect("a list");
    let count = slots.iter().filter(|slot| slot["state"] != "missed" && slot["state"] != "elsewhere").count();
    assert_eq!(count, 252, "{round}");
}

/// The two least fees differ in no shipped network.
#[test]
fn the_least_fees_of_the_pool_are_told_apart() {
    let fees = "rules.pool.dynamic_fees={ min_fee_pool = 7, min_fee_broadcast = 9 }";
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--set", fees]);
    let told = up.get("/node/configuration")["data"]["transactionPool"]["dynamicFees"].clone();
    assert_eq!((&told["minFeePool"], &told["minFeeBroadcast"]), (&json!(7), &json!(9)));
}

#[test]
fn an_advance_ends_where_something_has_come_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let record = folder.path().join("session.jsonl");
    let recorded = record.to_str().expect("a path in UTF-8");
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--seed", "3", "--record", recorded]);
    let until = |until: Value, limit: u32| ok(&up, "/lab/advance", &json!({ "until": until, "limit": limit }));
    let ended = until(json!({"height": 7}), 100);
    assert_eq!((&ended["stopped"], &ended["height"], up.height()), (&json!("reached"), &json!(7), 7));
    assert_eq!(until(json!({"height": 5}), 100)["slots"], 0, "that is past");
    let ended = until(json!({"time": 801}), 1_000);
    assert_eq!((&ended["stopped"], &ended["now"]), (&json!("reached"), &json!(801)), "within a slot");
    let ended = until(json!({"round": 25}), 1_000);
    assert_eq!((&ended["stopped"], &ended["height"]), (&json!("reached"), &json!(120)), "rounds have five blocks");
    let id = submit(&up, &transfer(&keys(&up.ready["accounts"][0]), 1));
    let ended = until(json!({ "transaction": id }), 10);
    assert_eq!((&ended["stopped"], confirmed(&up, &id)["nonce"].clone()), (&json!("reached"), json!("1")));
    let forged = json!({"event": {"kind": "block-forged", "node": "genesis_2"}});
    assert_eq!(until(forged.clone(), 20)["stopped"], "reached");
    // All others get the block later, this node's own API among them.
    let height = up.height();
    assert_eq!(until(json!({"event": {"kind": "block-applied", "node": 0, "count": 3}}), 20)["stopped"], "reached");
    assert!((height + 2..=height + 3).contains(&up.height()), "{height} {}", up.height());
    let ended = until(json!({"event": {"kind": "rolled-back"}}), 4);
    assert_eq!((&ended["stopped"], &ended["slots"]), (&json!("limit"), &json!(4)));
    let before = standing(&up);
    for (body, part) in [
        (
            json!({"until": {"event": {"kind": "block-forged", "node": 5}}}),
            "found 5, allowed is the number of a node, 0 to 4",
        ),
        (json!({"until": {"event": {"kind": "block-forged", "node": "genesis_9"}}}), "found 'genesis_9', allowed is"),
        (json!({"until": {"event": {"kind": "forged"}}}), "expected one of `block-forged`"),
        (json!({"until": {"blocks": 3}}), "allowed is an object with one of height, time"),
        (json!({"until": {"height": 7}, "limit": 1_000_001}), "key 'limit': found 1000001"),
        (json!({"slots": 3, "limit": 3}), "from 1 to 1000000"),
    ] {
        let (status, answer) = up.post("/lab/advance", &body);
        let message = answer["message"].as_str().expect("a text");
        assert!(status == 422 && message.contains(part), "{body}: {message}");
    }
    assert_eq!(standing(&up), before);
    replays(up, &record);
}

#[test]
fn coin_comes_by_real_transactions_of_the_funded_accounts() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let record = folder.path().join("session.jsonl");
    let recorded = record.to_str().expect("a path in UTF-8");
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--seed", "3", "--record", recorded]);
    let recipient = KeyPair::from_passphrase("someone new", Real).public().address(23).to_string();
    let other = KeyPair::from_passphrase("someone else", Real).public().address(23).to_string();
    let one = json!({"recipient": recipient, "amount": "150000000"});
    let (status, answer) = up.post("/lab/faucet", &one);
    assert_eq!(status, 409, "{answer}");
    assert!(answer["message"].as_str().expect("a text").contains("the chain is at height 1"), "{answer}");
    up.advance(1);
    let balance = |address: &str| up.get(&format!("/wallets/{address}"))["data"]["balance"].clone();
    // The paying account is used by somebody else as well, whose transfer is pending.
    let payer = keys(&up.ready["accounts"][9]);
    submit(&up, &transfer(&payer, 1));
    let paid = ok(&up, "/lab/faucet", &one);
    let first = paid["transactions"][0].as_str().expect("an id").to_owned();
    let list = json!([one, {"recipient": other, "amount": 7}, one]);
    let second = ok(&up, "/lab/faucet", &list)["transactions"][0].as_str().expect("an id").to_owned();
    up.advance(2);
    assert_eq!((balance(&recipient), balance(&other)), (json!("450000000"), json!("7")));
    assert_eq!(
        (confirmed(&up, &first)["nonce"].clone(), confirmed(&up, &first)["type"].clone()),
        (json!("2"), json!(0))
    );
    assert_eq!(
        (confirmed(&up, &second)["nonce"].clone(), confirmed(&up, &second)["type"].clone()),
        (json!("3"), json!(6))
    );
    assert_eq!(confirmed(&up, &second)["senderPublicKey"], payer.public().to_string());
    // More than one account has: what is left of the last one, and the rest of the one before.
    let much = ok(&up, "/lab/faucet", &json!({"recipient": recipient, "amount": 150_000_000_000_000_u64}));
    assert_eq!(much["transactions"].as_array().map(Vec::len), Some(2));
    up.advance(2);
    assert_eq!(balance(&recipient), "150000450000000");
    let before = standing(&up);
    let refused = |path: &str, body: Value, part: &str| {
        let (status, answer) = up.post(path, &body);
        let message = answer["message"].as_str().expect("a text");
        assert!(status == 422 && message.contains(part), "{body}: {status} {message}");
    };
    let funds = "arktoshi were asked for, and the funded accounts have 8";
    refused("/lab/faucet", json!({"recipient": recipient, "amount": "900000000000000"}), funds);
    refused("/lab/accounts", json!({"count": 1_000, "balance": "1000000000000"}), funds);
    refused("/lab/accounts", json!({"count": 0, "balance": 1}), "key 'count': found 0, allowed is a whole number");
    refused("/lab/faucet", json!({"recipient": recipient, "amount": "-5"}), "key 'amount': found \"-5\", allowed is");
    refused("/lab/faucet", json!({"recipient": "nobody", "amount": 5}), "key 'recipient': found \"nobody\"");
    refused("/lab/faucet", json!(null), "allowed is an object of 'recipient' and 'amount'");
    assert_eq!(standing(&up), before);
    let made = ok(&up, "/lab/accounts", &json!({"count": 250, "balance": 1_000}));
    assert_eq!(made["transactions"].as_array().map(Vec::len), Some(3), "a hundred in a multipayment");
    up.advance(2);
    let accounts = made["accounts"].as_array().expect("a list");
    for account in [&accounts[0], &accounts[249]] {
        assert_eq!(balance(account["address"].as_str().expect("an address")), "1000");
        assert_eq!(keys(account).public().to_string(), account["publicKey"].as_str().expect("a key"));
    }
    let again = ok(&up, "/lab/accounts", &json!({"count": 1, "balance": 1_000}));
    assert!(!accounts.contains(&again["accounts"][0]), "a fresh one");
    replays(up, &record);
    let up = Up::start(&["--pace", "on-demand", "--delegates", "7", "--seed", "3"]);
    let made = ok(&up, "/lab/accounts", &json!({"count": 2, "balance": "1000"}));
    assert_eq!(made["accounts"].as_array().expect("a list")[..], accounts[..2], "they follow from the seed");
}

#[test]
fn a_faucet_past_a_limit_of_the_pool_names_it() {
    for (rule, wanted) in [
        ("max_transactions_per_sender=2", "2 of each (rules.pool.max_transactions_per_sender)"),
        ("max_transactions=3", "Pool is full (has 3 transactions)"),
    ] {
        let up = Up::start(&["--delegates", "3", "--pace", "manual", "--set", &format!("rules.pool.{rule}")]);
        up.advance(3);
        let body = json!({"recipient": up.ready["accounts"][0]["address"], "amount": 5});
        let answers = (0..30).map(|_| up.post("/lab/faucet", &body));
        let (status, answer) = answers.into_iter().find(|(status, _)| *status != 200).expect("there is a limit");
        assert_eq!(status, 409, "{answer}");
        assert!(answer["message"].as_str().is_some_and(|message| message.contains(wanted)), "{answer}");
        up.advance(3);
        assert_eq!(up.post("/lab/faucet", &body).0, 200, "blocks make room");
        up.interrupt();
    }
}

/// The pool has room for two of the three multipayments, and then for none.
#[test]
fn a_payment_of_which_the_pool_takes_a_part_names_that_part() {
    let up = Up::start(&["--delegates", "3", "--pace", "manual", "--set", "rules.pool.max_transactions=2"]);
    up.advance(3);
    let many = json!({"count": 250, "balance": 1_000});
    let (status, answer) = up.post("/lab/accounts", &many);
    let message = answer["message"].as_str().unwrap_or_default().to_owned();
    let pending = up.get("/transactions/unconfirmed");
    let pending: Vec<&str> =
        pending["data"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(status == 409 && pending.len() == 2, "{status}: {answer}; {pending:?}");
    assert!(message.contains("recipients of these transactions are paid: "), "{message}");
    assert!(pending.iter().all(|id| message.contains(id)), "{message}; {pending:?}");
    let (status, answer) = up.post("/lab/accounts", &many);
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(status == 409 && message.ends_with("; no recipient is paid"), "{status}: {answer}");
    up.interrupt();
}

#[test]
fn many_ask_for_coin_at_once_and_each_is_paid() {
    let up = Up::start(&["--pace", "on-demand", "--delegates", "5", "--stage", "inline"]);
    thread::scope(|scope| {
        for number in 0..8 {
            let up = &up;
            scope.spawn(move || {
                let address =
                    KeyPair::from_passphrase(&format!("number {number}"), Real).public().address(23).to_string();
                for _ in 0..3 {
                    ok(up, "/lab/faucet", &json!({"recipient": address, "amount": 11}));
                }
                assert_eq!(up.get(&format!("/wallets/{address}"))["data"]["balance"], "33");
            });
        }
    });
}

#[test]
fn a_loaded_network_has_no_coin_at_hand() {
    let network = recordings().join("network");
    let (dir, secrets) = (network.display().to_string(), network.join("delegates.json").display().to_string());
    let up = Up::start(&["--pace", "manual", "--network-dir", &dir, "--secrets", &secrets]);
    for (path, body) in [
        ("/lab/faucet", json!({"recipient": "ATGRRfTAomMSw7k2nyePRbFiBmvNro4EoF", "amount": 1})),
        ("/lab/accounts", json!({"count": 1, "balance": 1})),
    ] {
        let (status, answer) = up.post(path, &body);
        let message = answer["message"].as_str().expect("a text");
        assert!(status == 409 && message.contains("no account's passphrase is known"), "{status} {message}");
    }
}

/// The nodes that each node is connected to are those of the moment, after going back, too.
#[test]
fn peers_are_those_of_the_moment() {
    for stage in ["inline", "ractor"] {
        let up = Up::start(&["--pace", "manual", "--delegates", "5", "--stage", stage]);
        let peers = || ok_get(&up, "/lab?peers=true")["data"]["nodes"].as_array().expect("a list").clone();
        let of = |node: usize| peers()[node]["peers"].clone();
        up.advance(3);
        assert_eq!((of(0), of(2)), (json!([1, 2, 3, 4]), json!([0, 1, 3, 4])), "a full mesh");
        let (status, taken) = up.post("/lab/snapshots", &json!({}));
        assert_eq!(status, 201, "{taken}");
        assert_eq!(up.post("/lab/nodes/2/crash", &json!({})).0, 201);
        // A peer that gets no answer drops the node at the next ping.
        up.advance(120);
        assert_eq!(of(0), json!([1, 3, 4]));
        ok(&up, &format!("/lab/snapshots/{}/revert", taken["data"]["id"]), &json!({}));
        assert_eq!(of(0), json!([1, 2, 3, 4]));
        assert_eq!(ok_get(&up, "/lab")["data"]["nodes"][0].get("peers"), None, "only where asked for");
        assert_eq!(up.post("/lab/advance", &json!({"slots": 1})).0, 200);
        up.interrupt();
    }
}
