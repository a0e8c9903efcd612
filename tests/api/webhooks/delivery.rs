//! The posts and where they may go, and receivers that behave badly.

use super::{
    Node, patient,
    receiver::{Manner, Receiver},
};
use crate::support::{recorded_chain, recordings};
use dposlab::{
    actors::Event,
    api::{
        Dialect, WebhookSettings,
        webhooks::{QUEUE_BYTES_MAX, Targets},
    },
    ledger::Link,
    protocol::Height,
};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use warp::http::Method;

fn removed(byte: u8) -> Event {
    Event::PoolRemoved(dposlab::protocol::TransactionId([byte; 32]))
}

fn node() -> Node {
    Node::new(Dialect::Documented, patient())
}

#[test]
fn a_post_is_what_the_contract_says() {
    let (mut node, receiver) = (node(), Receiver::kind());
    let created = node.create("transaction.pool.removed", &receiver.url("/hook?a=b"), json!([]));
    node.happens(100, &removed(7));
    let post = receiver.next();
    assert!(post.head.starts_with("post /hook?a=b http/1.1\r\n"), "{}", post.head);
    let secret = &created["token"].as_str().expect("a text")[..32];
    assert_eq!(post.header("authorization"), Some(secret), "the kept half, without a scheme");
    assert_eq!(post.header("content-type"), Some("application/json"));
    assert_eq!(post.header("host"), Some(receiver.address.to_string().as_str()));
    let timestamp = node.context.view.tree().slots().epoch_ms() + 100_000;
    let wanted = json!({
        "timestamp": timestamp,
        "data": "07".repeat(32),
        "event": "transaction.pool.removed",
        "sequence": {"event": 1, "post": 0},
    });
    assert_eq!(post.body, wanted, "in virtual time, with a real node's members first");
    let members: Vec<&String> = post.body.as_object().expect("an object").keys().collect();
    assert_eq!(members.len(), 4, "{members:?}");
    assert_eq!(post.header("webhook-sequence"), Some("1.0"));
    node.finish();
}

#[test]
fn each_webhook_gets_all_its_posts_in_order() {
    // One keeps its connections open and one closes them without having said so.
    let (mut node, receiver, other) = (node(), Receiver::kind(), Receiver::new(Manner::HangsUp));
    node.create("transaction.pool.removed", &receiver.url("/a"), json!([]));
    node.create("transaction.pool.removed", &other.url("/b"), json!([]));
    (0..=255).for_each(|byte| node.happens(1, &removed(byte)));
    for byte in 0..=255_u8 {
        let wanted = json!(hex::encode([byte; 32]));
        let (kept, closed) = (receiver.next(), other.next());
        assert_eq!((&kept.body["data"], &closed.body["data"]), (&wanted, &wanted));
    }
    node.finish();
}

/// A webhook for several events gets them in their order, and the places of what is told do not depend on who is told.
#[test]
fn posts_of_all_webhooks_have_one_order() {
    let folder = recordings();
    let context = recorded_chain(&folder, 12, Dialect::Documented);
    let tip = context.view.head().tip().clone();
    let block = tip.ancestor(Height(11)).expect("it is there");
    let (mut node, receiver) = (Node::of(context, patient()), Receiver::kind());
    let body = |events: Value, path: &str| json!({"event": events, "target": receiver.url(path), "conditions": []});
    let names = ["transaction.applied", "transaction.reverted", "block.reverted", "block.applied"];
    let several = node.ask(Method::POST, "/api/webhooks", &body(json!(names), "/several"));
    assert_eq!((several.status, &several.body["data"]["event"]), (201, &json!(names)), "{}", several.body);
    node.create("transaction.reverted", &receiver.url("/one"), json!([]));
    // An event that nobody asks for has its number, too.
    node.happens(8, &removed(1));
    node.happens(9, &Event::BlockApplied(block.clone()));
    node.happens(9, &Event::BlockReverted(block.clone()));
    let transactions = block.block().transactions.len();
    assert!(transactions > 2);
    let posts: Vec<_> = (0..2 * (transactions + 1) + transactions).map(|_| receiver.next()).collect();
    node.finish();
    assert!(receiver.all().is_empty());
    let told = |path: &str| -> Vec<(String, String, (u64, u64))> {
        let of = posts.iter().filter(|post| post.path == path);
        of.map(|post| {
            let place = |name: &str| post.body["sequence"][name].as_u64().expect("a number");
            let place = (place("event"), place("post"));
            assert_eq!(post.header("webhook-sequence"), Some(&*format!("{}.{}", place.0, place.1)));
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            (text(&post.body["event"]), text(&post.body["data"]["id"]), place)
        })
        .collect()
    };
    let (all, one) = (told("/several"), told("/one"));
    assert!(all.windows(2).all(|pair| pair[0].2 < pair[1].2), "each later than the one before: {all:?}");
    assert!(all.iter().all(|(event, _, (number, _))| *number == if event.ends_with("applied") { 2 } else { 3 }));
    let reverted: Vec<_> = all.into_iter().filter(|(event, ..)| event == "transaction.reverted").collect();
    assert_eq!(one, reverted, "the same is told under the same place");
}

#[test]
fn conditions_and_switches_decide() {
    let (mut node, receiver) = (node(), Receiver::kind());
    let create = |event: &str, path: &str, conditions| node.create(event, &receiver.url(path), conditions);
    create("transaction.pool.removed", "/none", json!([]));
    create("transaction.pool.removed", "/yes", json!([{"key": "0", "condition": "eq", "value": "a"}]));
    let no = create("transaction.pool.removed", "/no", json!([{"key": "0", "condition": "eq", "value": "b"}]));
    create("forger.failed", "/failed", json!([{"key": "error", "condition": "contains", "value": "slot"}]));
    let never = create("transaction.pool.purged", "/never", json!([]));
    let off = create("transaction.pool.removed", "/off", json!([]));
    let path = format!("/api/webhooks/{}", off["id"].as_str().expect("a text"));
    assert_eq!(node.ask(warp::http::Method::PUT, &path, &json!({"enabled": false})).status, 204);
    node.happens(1, &removed(0xaa));
    node.happens(1, &Event::ForgerFailed { error: "no slot".to_owned() });
    let mut paths = [(); 3].map(|()| receiver.next().path);
    paths.sort();
    assert_eq!(paths, ["/failed", "/none", "/yes"]);
    // The dispatcher is asked after it has heard of all events.
    for quiet in [no, never, off] {
        let counts = node.counts(&quiet["id"]);
        assert_eq!([&counts["queued"], &counts["delivered"], &counts["failed"]], [0, 0, 0], "{counts}");
    }
    node.finish();
    assert!(receiver.all().is_empty());
}

#[test]
fn a_webhook_that_was_deleted_hears_nothing_more() {
    let (mut node, receiver) = (node(), Receiver::kind());
    let id = node.create("transaction.pool.removed", &receiver.url("/"), json!([]))["id"].clone();
    node.happens(1, &removed(1));
    assert_eq!(receiver.next().body["data"], "01".repeat(32));
    let path = format!("/api/webhooks/{}", id.as_str().expect("a text"));
    assert_eq!(node.ask(warp::http::Method::DELETE, &path, &Value::Null).status, 204);
    node.happens(1, &removed(2));
    node.finish();
    assert!(receiver.all().is_empty());
}

#[test]
fn failures_are_counted_and_hold_nobody_up() {
    let mut node = node();
    // Bound and not listening: it refuses, and nobody else gets the port.
    let deaf = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    deaf.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    let closed = deaf.local_addr().ok().and_then(|address| address.as_socket()).expect("it is bound");
    let endless = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{}", "x".repeat(1_000_000));
    let bad = [
        (Receiver::new(Manner::status(500)), "the receiver answered 500"),
        (Receiver::new(Manner::Says("nonsense\r\n\r\n".to_owned())), "the connection broke"),
    ];
    let hook = |target: &str| node.create("transaction.pool.removed", target, json!([]))["id"].clone();
    let mut ids: Vec<(Value, &str)> = bad.iter().map(|(receiver, why)| (hook(&receiver.url("/")), *why)).collect();
    ids.push((hook(&format!("http://{closed}/")), "no connection to 127.0.0.1"));
    ids.push((hook("ftp://127.0.0.1/"), "only http targets"));
    ids.push((hook("http://name.invalid/"), "name.invalid cannot be found"));
    let (hanging, talker, good) =
        (Receiver::new(Manner::Hangs), Receiver::new(Manner::Says(endless)), Receiver::kind());
    let (hangs, talks) = (hook(&hanging.url("/")), hook(&talker.url("/")));
    hook(&good.url("/"));
    // Many for all: the hanging one would take its time for each.
    (0..50).for_each(|byte| node.happens(1, &removed(byte)));
    for byte in 0..50_u8 {
        assert_eq!(good.next().body["data"], json!(hex::encode([byte; 32])));
        talker.next();
    }
    for (id, why) in &ids {
        let counts = node.failed(id);
        assert!(counts["lastFailure"].as_str().expect("a text").contains(why), "{counts}");
        assert_eq!(counts["delivered"], 0);
    }
    assert_eq!(node.counts(&talks)["failed"], 0, "what it says on top is not listened to");
    assert_eq!(node.counts(&hangs)["queued"], 50, "it still has the first");
}

#[test]
fn a_receiver_that_does_not_answer_is_given_up() {
    let settings = WebhookSettings { timeout: Duration::from_millis(200), ..WebhookSettings::default() };
    let (mut node, receiver) = (Node::new(Dialect::Documented, settings), Receiver::new(Manner::Hangs));
    let id = node.create("transaction.pool.removed", &receiver.url("/"), json!([]))["id"].clone();
    node.happens(1, &removed(1));
    assert_eq!(node.failed(&id)["lastFailure"], "no answer within 200 ms");
    node.finish();
}

#[test]
fn a_queue_is_bounded() {
    let (mut node, receiver) = (node(), Receiver::new(Manner::Hangs));
    let id = node.create("transaction.pool.removed", &receiver.url("/"), json!([]))["id"].clone();
    (0..5_000).for_each(|_| node.happens(1, &removed(1)));
    // The dispatcher is asked after it has heard of all events.
    let counts = node.counts(&id);
    assert_eq!(counts["queued"], 4_096, "{counts}");
    assert_eq!(counts["dropped"], 5_000 - 4_096, "{counts}");
}

#[test]
fn addresses_are_looked_at_when_they_are_connected_to() {
    // A name leads to this machine, as one that is rebound would: what was written down says nothing.
    let receiver = Receiver::kind();
    let port = receiver.address.port();
    let (named, literal) = (format!("http://localhost:{port}/name"), receiver.url("/ip"));
    let disguised = format!("http://[::ffff:127.0.0.1]:{port}/disguised");
    let unspecified = format!("http://0.0.0.0:{port}/unspecified");
    for targets in ["none", "public", "10.0.0.0/8,192.0.2.1"] {
        let targets: Targets = targets.parse().expect("ranges");
        let mut node = Node::new(Dialect::Documented, WebhookSettings { targets, ..patient() });
        let hook = |target: &String| node.create("transaction.pool.removed", target, json!([]))["id"].clone();
        let ids: Vec<Value> = [&named, &literal, &disguised, &unspecified].into_iter().map(hook).collect();
        node.happens(1, &removed(1));
        for id in &ids {
            let counts = node.failed(id);
            assert!(counts["lastFailure"].as_str().expect("a text").contains("may go to these only"), "{counts}");
        }
        assert!(receiver.all().is_empty());
        node.finish();
    }
    let mut node = node();
    let hook = |target: &String| node.create("transaction.pool.removed", target, json!([]))["id"].clone();
    let ids = [&named, &literal, &disguised, &unspecified].map(hook);
    node.happens(1, &removed(1));
    let mut paths = [receiver.next().path, receiver.next().path, receiver.next().path];
    paths.sort();
    assert_eq!(paths, ["/disguised", "/ip", "/name"]);
    node.failed(&ids[3]);
    node.finish();
    assert!(receiver.all().is_empty());
}

#[test]
fn no_redirect_is_followed() {
    let (mut node, goal) = (node(), Receiver::kind());
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", goal.url("/"));
        let receiver = Receiver::new(Manner::Says(answer));
        let id = node.create("transaction.pool.removed", &receiver.url("/"), json!([]))["id"].clone();
        node.happens(1, &removed(1));
        receiver.next();
        assert_eq!(node.failed(&id)["lastFailure"], format!("the receiver answered {status}"));
    }
    node.finish();
    assert!(goal.all().is_empty());
}

/// The recorded chain, block by block.
fn links(tip: &Arc<Link>) -> Vec<Arc<Link>> {
    (2..=tip.height().0).filter_map(|height| tip.ancestor(Height(height))).collect()
}

#[test]
fn wallets_are_told_of_when_blocks_change_them() {
    let folder = recordings();
    let context = recorded_chain(&folder, 111, Dialect::Documented);
    let (view, tree) = (context.view.clone(), context.view.tree().clone());
    let (mut node, receiver) = (Node::of(context, patient()), Receiver::kind());
    node.create("wallet.saved", &receiver.url("/saved"), json!([]));
    node.create("wallet.created.cold", &receiver.url("/cold"), json!([]));
    let mut wanted = Vec::new();
    for link in links(view.head().tip()) {
        node.happens(1, &Event::BlockApplied(link.clone()));
        let (before, after) = (tree.applied(&link.parent().expect("above genesis")), tree.applied(&link));
        let (before, after) = (&before.state, &after.state);
        for wallet in after.wallets() {
            let was = before.wallet(&wallet.address);
            // A wallet as the API shows it, without the missed slots of a delegate.
            let shown = |wallet: &dposlab::ledger::Wallet| {
                let mut wallet = wallet.clone();
                if let Some(delegate) = &mut wallet.delegate {
                    Arc::make_mut(delegate).missed_blocks = 0;
                }
                wallet
            };
            if was.map(|was| shown(was)) != Some(shown(wallet)) {
                wanted.push((wallet.address.to_string(), wallet.balance.to_string()));
            }
        }
    }
    let saved = wanted.into_iter().map(|(address, balance)| {
        let mut post = receiver.next();
        let mut colds = 0;
        while post.path == "/cold" {
            assert_eq!(post.body["data"]["nonce"], "0", "{}", post.body);
            colds += 1;
            post = receiver.next();
        }
        let wallet = &post.body["data"];
        assert_eq!((&wallet["address"], &wallet["balance"]), (&json!(address), &json!(balance)));
        colds
    });
    let colds: u32 = saved.sum();
    node.finish();
    let colds = colds + receiver.all().iter().filter(|post| post.path == "/cold").count() as u32;
    assert!(colds > 5, "the recorded chain names new addresses: {colds}");
}

#[test]
fn a_rollback_is_told_from_the_top_down() {
    let folder = recordings();
    let context = recorded_chain(&folder, 12, Dialect::Documented);
    let tip = context.view.head().tip().clone();
    let (mut node, receiver) = (Node::of(context, patient()), Receiver::kind());
    node.create("transaction.reverted", &receiver.url("/"), json!([]));
    node.create("block.reverted", &receiver.url("/blocks"), json!([]));
    let block = tip.ancestor(Height(11)).expect("it is there");
    assert!(block.block().transactions.len() > 2);
    [&tip, &block].into_iter().for_each(|link| node.happens(9, &Event::BlockReverted(link.clone())));
    let all: usize = [&tip, &block].iter().map(|link| 1 + link.block().transactions.len()).sum();
    let posts: Vec<_> = (0..all).map(|_| receiver.next()).collect();
    node.finish();
    assert!(receiver.all().is_empty());
    let of =
        |path: &str| posts.iter().filter(|post| post.path == path).map(|post| &post.body["data"]).collect::<Vec<_>>();
    let heights: Vec<&Value> = of("/blocks").into_iter().map(|block| &block["height"]).collect();
    assert_eq!(heights, [12, 11]);
    let mut wanted: Vec<Value> = Vec::new();
    for link in [&tip, &block] {
        wanted.extend(link.block().transactions.iter().rev().map(|one| json!(one.id().to_string())));
    }
    assert_eq!(of("/").into_iter().map(|one| one["id"].clone()).collect::<Vec<_>>(), wanted);
}

/// Whatever became of a delivery, once it is over it takes up no room: far more may pass than may wait at one time.
#[test]
fn what_is_over_takes_up_no_room() {
    let taken = Receiver::kind();
    let refused = Receiver::new(Manner::status(500));
    let mut node = node();
    let hook = |target: &str| node.create("forger.failed", target, json!([]))["id"].clone();
    let ids = [hook(&taken.url("/")), hook(&refused.url("/")), hook("ftp://127.0.0.1/")];
    let error = "x".repeat(4 << 20);
    let times = 2 * QUEUE_BYTES_MAX / error.len() as u64;
    for number in 1..=times {
        node.happens(1, &Event::ForgerFailed { error: error.clone() });
        for id in &ids {
            while node.counts(id)["queued"] != 0 {
                std::thread::yield_now();
            }
        }
        for (id, how) in ids.iter().zip(["delivered", "failed", "failed"]) {
            let counts = node.counts(id);
            assert_eq!([&counts[how], &counts["dropped"]], [&json!(number), &json!(0)], "{counts}");
        }
    }
    node.finish();
}

/// An event that nobody is posted for, since nobody asks or a condition is not met, leaves the inbox as any other does.
#[test]
fn nothing_is_overlooked_while_the_dispatcher_keeps_up() {
    let (mut node, receiver) = (node(), Receiver::kind());
    let nobody = node.create("peer.never", &receiver.url("/never"), json!([]));
    let unmet = json!([{ "key": "height", "value": 1, "condition": "eq" }]);
    node.create("transaction.pool.removed", &receiver.url("/unmet"), unmet);
    // Three times as many as may wait, and a fraction of that at a time.
    for _ in 0..25 {
        (0..2_000).for_each(|number| node.happens(1, &removed(number as u8)));
        let overlooked = node.ask(Method::GET, "/lab/webhooks", &Value::Null).body["data"]["overlooked"].clone();
        assert_eq!(overlooked, 0, "and all before it have been heard");
    }
    node.create("transaction.pool.removed", &receiver.url("/met"), json!([]));
    node.happens(2, &removed(7));
    assert_eq!(receiver.next().body["data"], json!("07".repeat(32)));
    assert_eq!(node.counts(&nobody["id"])["delivered"], 0);
    node.finish();
    assert!(receiver.all().is_empty());
}
