//! A real node's answers about its webhooks, and its posts.

use super::Node;
use crate::support::{Answered, ask, exchanges, recorded_chain, recordings};
use dposlab::{
    actors::{
        Event, SimTime,
        pool::PoolRejection,
        webhook::{Observation, Webhook, WebhookDispatcher, WebhookEffect, WebhookInput},
    },
    api::{Dialect, Request, WebhookSettings},
    ledger::Link,
    protocol::{Height, SignedTransaction, Timestamp, TransactionId},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use warp::http::{HeaderName, HeaderValue, Method, header::CONTENT_TYPE};

/// Every recorded request about webhooks, as a row of the table of deviations names it, and what differs if anything.
pub fn differences(folder: &Path) -> Vec<(String, Option<String>)> {
    let node = Node::new(Dialect::Core26, WebhookSettings::default());
    // Their ids to ours.
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let mut differences = Vec::new();
    for exchange in exchanges(&folder.join("webhooks-crud.jsonl")) {
        let renamed = |value: &Value, ids: &BTreeMap<String, String>| {
            let text = ids.iter().fold(value.to_string(), |text, (theirs, ours)| text.replace(theirs, ours));
            serde_json::from_str::<Value>(&text).expect("ids are replaced by ids")
        };
        let request = renamed(&exchange["request"], &ids);
        let first = send(&node, &request, false);
        // A body that is not JSON by its own word is refused; what is there afterwards is held against the recording.
        let is_refused = first.status == 415;
        let answered = if is_refused { send(&node, &request, true) } else { first };
        if let (Some(theirs), Some(ours)) =
            (exchange["response"]["body"]["data"]["id"].as_str(), answered.body["data"]["id"].as_str())
        {
            ids.insert(theirs.to_owned(), ours.to_owned());
        }
        let recorded = renamed(&exchange["response"], &ids);
        let mut body = recorded["body"].clone();
        if let Some(token) = body.pointer_mut("/data/token") {
            let ours = answered.body["data"]["token"].as_str().unwrap_or_default();
            assert_eq!(ours.len(), token.as_str().expect("a text").len());
            assert!(ours.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)), "{ours}");
            *token = ours.into();
        }
        // Bodies that are none were recorded as empty texts, those of HEAD and OPTIONS were not looked at.
        let is_same = !is_refused && recorded["status"] == answered.status && (body == "" || body == answered.body);
        let name = &exchange["name"];
        // All but one were asked on the port that webhooks have for themselves there.
        let port = if name == "webhooks-on-public-port" { 4003 } else { 4004 };
        let shown = crate::recorded::shown(&exchange).replacen(" /", &format!(" :{port}/"), 1);
        let difference = format!("{name}: got {} {}\n  wanted {recorded}", answered.status, answered.body);
        differences.push((shown, (!is_same).then_some(difference)));
    }
    differences
}

fn send(node: &Node, recorded: &Value, as_json: bool) -> Answered {
    let method = Method::from_bytes(recorded["method"].as_str().expect("a method").as_bytes()).expect("a method");
    let mut request = Request::new(method, recorded["path"].as_str().expect("a path"));
    for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header");
            request.headers.insert(name, HeaderValue::from_str(value).expect("a header"));
        }
    }
    if as_json {
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let body = match (&recorded["body"], recorded["body"]["raw"].as_str()) {
        (Value::Null, _) => Vec::new(),
        (_, Some(raw)) => raw.as_bytes().to_vec(),
        (body, None) => body.to_string().into_bytes(),
    };
    ask(&node.context, &request, body)
}

#[test]
fn most_recorded_requests_are_answered_the_same() {
    let folder = recordings();
    let differences = differences(&folder);
    let different: Vec<&String> = differences.iter().filter_map(|(_, difference)| difference.as_ref()).collect();
    assert_eq!(differences.len(), 118);
    assert_eq!(different.len(), 6, "those that docs/deviations.md accepts: {different:#?}");
}

/// Finds the observation behind a recorded delivery on the recorded chain, if the chain reaches so far.
struct Chain {
    tip: Arc<Link>,
    dispatcher: WebhookDispatcher,
    transactions: BTreeMap<TransactionId, Arc<SignedTransaction>>,
}

impl Chain {
    fn link(&self, height: u64) -> Option<Arc<Link>> {
        self.tip.ancestor(Height(u32::try_from(height).expect("a height")))
    }

    fn transaction(&self, shown: &Value) -> Option<Arc<SignedTransaction>> {
        self.transactions.get(&shown["id"].as_str()?.parse().ok()?).cloned()
    }

    /// All bodies that one input makes, in their order.
    fn bodies(&self, event: Event) -> Vec<Value> {
        let mut effects = Vec::new();
        let input = WebhookInput::Observed(Box::new(Observation::from(event)));
        self.dispatcher.step(SimTime::from_seconds(Timestamp(1)), &input, &mut effects);
        let body = |effect: &WebhookEffect| match effect {
            WebhookEffect::Deliver(delivery) => serde_json::from_slice(&delivery.body).expect("JSON"),
        };
        effects.iter().map(body).collect()
    }
}

#[test]
fn what_a_real_node_posted_is_posted_again() {
    let folder = recordings();
    let context = recorded_chain(&folder, 111, Dialect::Core26);
    let (tree, tip) = (context.view.tree().clone(), context.view.head().tip().clone());
    let deliveries = exchanges(&folder.join("webhook-deliveries.jsonl"));
    let hook = |event: &Value| Webhook {
        id: event.to_string(),
        event: event.as_str().expect("a name").into(),
        target: "http://127.0.0.1:1/".to_owned(),
        secret: String::new(),
        enabled: true,
        conditions: Vec::new(),
    };
    let mut hooks: Vec<Webhook> = deliveries.iter().map(|delivery| hook(&delivery["event"])).collect();
    hooks.sort_by_key(|hook| hook.event.to_string());
    hooks.dedup();
    let all = std::iter::successors(Some(tip.clone()), |link| link.parent());
    let transactions =
        all.flat_map(|link| link.block().transactions.clone()).map(|transaction| (transaction.id(), transaction));
    let transactions = transactions.collect();
    let chain = Chain { tip: tip.clone(), dispatcher: WebhookDispatcher::new(tree.clone(), hooks), transactions };
    let every_block: Vec<Value> = (2..=111)
        .filter_map(|height| chain.link(height))
        .flat_map(|link| chain.bodies(Event::BlockApplied(link)))
        .collect();
    let mut found = BTreeMap::new();
    for delivery in &deliveries {
        // The chain was recorded up to a height only.
        let end = tree.slots().unix(tip.block().header.timestamp) + i64::from(tree.slots().blocktime());
        let is_later = delivery["body"]["timestamp"].as_i64().expect("a time") > end * 1_000;
        let (event, data) = (delivery["event"].as_str().expect("a name"), &delivery["body"]["data"]);
        let wanted = json!({"data": data, "event": event});
        let posted: Vec<Value> = match event {
            "block.received" | "block.forged" | "block.reverted" => {
                let Some(link) = chain.link(data["height"].as_u64().expect("a height")) else { continue };
                chain.bodies(match event {
                    "block.received" => Event::BlockReceived(link.block().clone()),
                    "block.forged" => Event::BlockForged(link.block().clone()),
                    _ => Event::BlockReverted(link),
                })
            }
            "transaction.forged" => {
                let Some(one) = chain.transaction(data) else { continue };
                let link = tree.block_of(&tip, &one.id()).expect("it is on the chain");
                chain.bodies(Event::BlockForged(link.block().clone()))
            }
            "transaction.pool.added" => {
                let rows = data.as_array().expect("a list").iter();
                let Some(all) = rows.map(|row| chain.transaction(&row["data"])).collect() else { continue };
                chain.bodies(Event::PoolAdded(all))
            }
            "transaction.pool.removed" => {
                let id = data.as_str().expect("an id").parse().expect("an id");
                chain.bodies(Event::PoolRemoved(id))
            }
            "transaction.pool.rejected" | "transaction.expired" => {
                let context = tree.config().transaction_context(tip.height());
                let rejected = data[0]["transaction"]["data"].clone();
                let json = if event == "transaction.expired" { data.clone() } else { rejected };
                let one = Arc::new(SignedTransaction::from_json(&json, &context).expect("a transaction"));
                if event == "transaction.expired" {
                    chain.bodies(Event::PoolExpired(one))
                } else {
                    let error = dposlab::actors::PoolError::AlreadyInPool;
                    let mut bodies = chain.bodies(Event::PoolRejected(vec![PoolRejection { transaction: one, error }]));
                    for member in ["type", "message"] {
                        assert!(bodies[0]["data"][0][member].is_string());
                        bodies[0]["data"][0][member] = data[0][member].clone();
                    }
                    bodies
                }
            }
            "forger.started" => {
                let delegate = data["activeDelegates"][0].as_str().expect("a key").parse().expect("a key");
                let mut bodies = chain.bodies(Event::ForgerStarted { delegate });
                // There one forger has all keys, here each has one.
                assert_eq!(bodies[0]["data"]["activeDelegates"][0], data["activeDelegates"][0]);
                bodies[0]["data"] = data.clone();
                bodies
            }
            _ if is_later => continue,
            _ => every_block.clone(),
        };
        let posted: Vec<Value> = posted
            .into_iter()
            .map(|mut body| {
                let members = body.as_object_mut().expect("an object");
                assert!(members.remove("timestamp").is_some_and(|timestamp| timestamp.is_i64()));
                members.entry("data").or_insert(Value::Null);
                body
            })
            .collect();
        let close = || posted.iter().find(|body| body["event"] == event);
        assert!(posted.contains(&wanted), "{event}: wanted {wanted}\nposted for example {:?}", close());
        *found.entry(event).or_insert(0) += 1;
    }
    let once = ["delegate.resigned", "forger.missing", "forger.started", "round.applied", "round.created"];
    assert!(once.iter().all(|event| found.contains_key(event)) && found.len() == 18, "{found:?}");
}
