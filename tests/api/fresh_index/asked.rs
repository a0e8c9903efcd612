//! The requests: every route that the API's own description names, with parameters drawn from what it says they may be.

use crate::support::{Answered, ask, get};
use dposlab::api::{ApiContext, Request};
use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use warp::http::Method;

/// A route as the description has it.
#[derive(Debug)]
pub struct Operation {
    method: Method,
    pub path: String,
    /// Names and schemas.
    arguments: Vec<(String, Value)>,
    query: Vec<(String, Value)>,
    body: Map<String, Value>,
    required: Vec<String>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: Method,
    pub target: String,
    body: Value,
}

/// Values that requests may ask for, by the names under which answers have shown them: those of blocks long rolled back,
/// too.
#[derive(Default)]
pub struct Words(BTreeMap<String, Vec<Value>>);

/// Lists that show all there is to ask for, with what stands before the names of their `id` and `address`.
const TEACHERS: [(&str, &str); 10] = [
    ("block", "/api/blocks?limit=100"),
    ("block", "/api/blocks?limit=100&transform=false"),
    ("transaction", "/api/transactions?limit=100"),
    ("transaction", "/api/transactions/unconfirmed"),
    ("wallet", "/api/wallets?limit=100"),
    ("delegate", "/api/delegates"),
    ("lock", "/api/locks"),
    ("business", "/api/businesses"),
    ("bridgechain", "/api/bridgechains"),
    ("peer", "/api/peers"),
];

/// All routes that answer without changing anything: GET, and searches by POST.
pub fn operations(context: &ApiContext) -> Vec<Operation> {
    let described = get(context, "/api/openapi.json").body;
    let paths = described["paths"].as_object().expect("it has paths");
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("one object a path").iter();
        methods.map(move |(method, described)| (path.clone(), method.as_str(), described))
    });
    let answering = all.filter_map(|(path, method, described)| match (method, path.as_str()) {
        // The run, which is not of the node's chain.
        (_, path) if path == "/lab" || path == "/metrics" || path.starts_with("/lab/") => None,
        ("get", _) => Some(Operation::of(Method::GET, path, described)),
        // These change the pool and the webhooks.
        ("post", "/api/transactions" | "/api/webhooks") => None,
        ("post", _) => Some(Operation::of(Method::POST, path, described)),
        _ => None,
    });
    answering.collect()
}

impl Operation {
    fn of(method: Method, path: String, described: &Value) -> Self {
        let parameters = described["parameters"].as_array().expect("a list");
        let place = |wanted: &str| -> Vec<(String, Value)> {
            let found = parameters.iter().filter(|parameter| parameter["in"] == wanted);
            found.map(|parameter| (text(&parameter["name"]), parameter["schema"].clone())).collect()
        };
        let body = &described["requestBody"]["content"]["application/json"]["schema"];
        let required =
            parameters.iter().filter(|parameter| parameter["required"] == true && parameter["in"] == "query");
        let required = required.map(|parameter| text(&parameter["name"]));
        Self {
            arguments: place("path"),
            query: place("query"),
            required: required.chain(body["required"].as_array().into_iter().flatten().map(text)).collect(),
            body: body["properties"].as_object().cloned().unwrap_or_default(),
            method,
            path,
        }
    }

    /// A request with up to three parameters in the query and up to two in the body.
    pub fn draw(&self, words: &Words, random: &mut ChaCha8Rng) -> Asked {
        let mut target = self.path.clone();
        for (name, schema) in &self.arguments {
            let value = shown(&words.draw(&known_as(&self.path, name), schema, random));
            target = target.replace(&format!("{{{name}}}"), &value);
        }
        let mut query: Vec<String> = Vec::new();
        let count = random.random_range(0..=3);
        let chosen: Vec<&(String, Value)> = self.query.choose_multiple(random, count).collect();
        for (name, schema) in self.query.iter().filter(|one| chosen.contains(one) || self.required.contains(&one.0)) {
            let known = match name.trim_end_matches(".from").trim_end_matches(".to") {
                "id" if self.path.contains("blocks") && !self.path.contains("transactions") => "block id",
                "id" => "transaction id",
                name => name,
            };
            let value = match words.draw(known, schema, random) {
                Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(&format!("&{name}=")),
                value => shown(&value),
            };
            query.push(format!("{name}={value}"));
        }
        let names: Vec<&String> = self.body.keys().collect();
        let count = random.random_range(0..=2);
        let chosen: Vec<&&String> = names.choose_multiple(random, count).collect();
        let body = self.body.iter().filter(|(name, _)| chosen.contains(&name) || self.required.contains(name));
        let body: Map<_, _> =
            body.map(|(name, schema)| (name.clone(), words.draw_for_body(name, schema, random))).collect();
        let body = if self.method == Method::POST { Value::Object(body) } else { Value::Null };
        Asked { method: self.method.clone(), target: format!("{target}?{}", query.join("&")), body }
    }
}

impl Asked {
    pub fn of(&self, context: &ApiContext) -> Answered {
        let body = if self.body.is_null() { Vec::new() } else { self.body.to_string().into_bytes() };
        ask(context, &Request::new(self.method.clone(), &self.target), body)
    }
}

impl Words {
    /// Learns all that lists show now.
    pub fn learn(&mut self, context: &ApiContext) {
        for (kind, target) in TEACHERS {
            for row in get(context, target).body["data"].as_array().into_iter().flatten() {
                self.put(format!("{kind} id"), &row["id"]);
                self.put(format!("{kind} address"), &row["address"]);
                self.learn_members(row);
            }
        }
    }

    fn learn_members(&mut self, row: &Value) {
        for (name, value) in row.as_object().into_iter().flatten() {
            match value {
                Value::Object(_) => {
                    self.put(name.clone(), value);
                    self.learn_members(value);
                }
                Value::Array(list) => list.iter().for_each(|value| self.put(name.clone(), value)),
                value => self.put(name.clone(), value),
            }
        }
    }

    fn put(&mut self, name: String, value: &Value) {
        let values = self.0.entry(name).or_default();
        if !value.is_null() && !values.contains(value) {
            values.push(value.clone());
        }
    }

    fn draw(&self, name: &str, schema: &Value, random: &mut ChaCha8Rng) -> Value {
        if let Some(one) = schema["enum"].as_array().and_then(|all| all.choose(random)) {
            return one.clone();
        }
        if schema["type"] == "array" {
            let mut list = vec![self.draw(name, &schema["items"], random), self.draw(name, &schema["items"], random)];
            list.dedup();
            return Value::Array(list);
        }
        let numbers = match name {
            "page" => Some(1..=4),
            "offset" => Some(0..=9),
            "limit" => Some(1..=7),
            "days" | "round" => Some(1..=9),
            _ => None,
        };
        if let Some(range) = numbers {
            return json!(random.random_range(range));
        }
        if schema["type"] == "boolean" || schema["anyOf"][0]["type"] == "boolean" {
            return json!(random.random::<bool>());
        }
        let names = names_of(name);
        let known: Vec<&Value> = names.iter().filter_map(|name| self.0.get(*name)).flatten().collect();
        // Nothing like it has been seen yet, or nobody has said where to look.
        known.choose(random).map_or(json!(random.random_range(1..=5)), |value| (*value).clone())
    }

    fn draw_for_body(&self, name: &str, schema: &Value, random: &mut ChaCha8Rng) -> Value {
        let is_range = |schema: &Value| schema["properties"]["from"].is_object();
        let takes_range = is_range(schema) || schema["anyOf"].as_array().is_some_and(|any| any.iter().any(is_range));
        let ends: &[&str] = match random.random_range(0..4) {
            _ if !takes_range => &[],
            0 => &["from"],
            1 => &["to"],
            2 => &["from", "to"],
            // The number itself.
            _ => &[],
        };
        if ends.is_empty() {
            return self.draw(name, schema, random);
        }
        let range = ends.iter().map(|end| ((*end).to_owned(), self.draw(name, schema, random)));
        Value::Object(range.collect())
    }
}

/// The thing that an argument of a path stands for.
fn known_as(path: &str, name: &str) -> String {
    match (path.split('/').nth(2).unwrap_or_default(), name) {
        ("blocks", "id") => "block id or height".to_owned(),
        ("transactions" | "votes", "id") => "transaction id".to_owned(),
        ("wallets" | "delegates", "id") => "wallet".to_owned(),
        ("businesses" | "business", "id" | "businessId") => "business".to_owned(),
        ("businesses", "bridgechainId") => "genesisHash".to_owned(),
        ("locks", "id") => "lockId".to_owned(),
        ("rounds", "id") => "round".to_owned(),
        (_, name) => name.to_owned(),
    }
}

/// The members in which answers show what a parameter asks for.
fn names_of(parameter: &str) -> Vec<&str> {
    match parameter {
        "block id or height" => vec!["block id", "height"],
        "wallet" => vec!["address", "publicKey", "username"],
        "business" => vec!["business address", "bridgechain address", "address", "publicKey"],
        "address" | "addresses" | "senderId" | "recipientId" | "ownerId" => vec!["address", "sender", "recipient"],
        "publicKey" | "senderPublicKey" | "generatorPublicKey" => vec!["publicKey", "senderPublicKey"],
        "blockId" | "previousBlock" => vec!["block id"],
        "usernames" => vec!["username"],
        "ids" => vec!["lockId"],
        "totalFee" => vec!["fee"],
        "totalAmount" => vec!["amount"],
        "numberOfTransactions" => vec!["transactions"],
        "balance" | "lockedBalance" => vec!["balance", "lockedBalance"],
        "voteBalance" | "votebalance" => vec!["votes"],
        "producedBlocks" => vec!["produced"],
        "forgedFees" => vec!["fees"],
        "forgedRewards" => vec!["rewards"],
        "forgedTotal" => vec!["total"],
        "timestamp" => vec!["epoch"],
        name => vec![name],
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// As a query has it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).replace(' ', "%20")
}
