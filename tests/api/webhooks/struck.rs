//! Posts that go wrong on purpose.

use super::{Node, patient, receiver::Receiver};
use crate::support::at_genesis;
use dposlab::{
    actors::{Event, NodeId},
    api::{ApiContext, Chaos, Dialect, WebhookSettings},
};
use serde_json::{Value, json};
use std::sync::Arc;
use warp::http::Method;

fn removed(byte: u8) -> Event {
    Event::PoolRemoved(dposlab::protocol::TransactionId([byte; 32]))
}

#[test]
fn posts_are_lost_doubled_swapped_and_late() {
    let chaos = Chaos::new(7, NodeId(0), Arc::default());
    let context = ApiContext { chaos: chaos.clone(), ..at_genesis(Dialect::Documented).1 };
    let mut node = Node::of(context, WebhookSettings { chaos: Some(chaos), ..patient() });
    let receiver = Receiver::kind();
    let event = "transaction.pool.removed";
    let hook = node.create(event, &receiver.url("/"), json!([]));
    let rule = |node: &Node, rule: Value| {
        let made = node.ask(Method::POST, "/lab/chaos", &rule);
        assert_eq!(made.status, 201, "{}", made.body);
    };
    rule(&node, json!({"event": "block.applied", "lost": true}));
    rule(&node, json!({"event": event, "late_ms": 5, "count": 2}));
    for what in ["lost", "twice", "reorder"] {
        rule(&node, json!({"event": event, what: true, "count": 1}));
    }
    (0..6).for_each(|byte| node.happens(1, &removed(byte)));
    let next = |receiver: &Receiver| {
        let data = receiver.next().body["data"].as_str().map(hex::decode).expect("an id").expect("hex");
        data[0]
    };
    let came: Vec<u8> = (0..6).map(|_| next(&receiver)).collect();
    assert_eq!(came, [1, 1, 3, 2, 4, 5], "the first is lost, the second comes twice, the third after the fourth");
    let rules = node.ask(Method::GET, "/lab/chaos", &Value::Null).body["data"].clone();
    let did: Vec<(&Value, &Value)> =
        rules.as_array().expect("a list").iter().map(|rule| (&rule["matched"], &rule["applied"])).collect();
    let six = json!(6);
    assert_eq!(
        did,
        [(&json!(0), &json!(0)), (&six, &json!(2)), (&six, &json!(1)), (&six, &json!(1)), (&six, &json!(1))]
    );
    // One that waits for the next leaves at the end, if none comes.
    rule(&node, json!({"reorder": true, "count": 1}));
    node.happens(1, &removed(9));
    let counts = node.counts(&hook["id"]);
    assert!(counts["failed"] == 0 && counts["dropped"] == 0, "what is lost is counted nowhere else: {counts}");
    node.finish();
    assert_eq!(next(&receiver), 9);
}
