//! Recorded exchanges with a real node, replayed on the recorded chain: status, headers and body are the same, but
//! for what stands in the table of accepted differences.

use crate::support::{ask, exchanges, recorded_chain, recordings};
use dposlab::api::{ApiContext, Dialect, Request};
use serde_json::Value;
use std::collections::BTreeSet;
use warp::http::{HeaderName, HeaderValue, Method};

/// The table of accepted differences: which requests, and why.
const DEVIATIONS: &str = include_str!("../../docs/deviations.md");

/// The patterns of the table's rows.
fn accepted() -> Vec<String> {
    let rows = DEVIATIONS.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(pattern, reason)| {
        assert!(reason.trim_end_matches('|').trim().len() > 5, "{pattern}: no reason");
        pattern.to_owned()
    })
    .collect()
}

/// The name of a row of the table: method, path and body.
pub fn shown(exchange: &Value) -> String {
    let recorded = &exchange["request"];
    let line = format!("{} {}", recorded["method"], recorded["path"]).replace('"', "");
    if recorded["body"].is_null() { line } else { format!("{line} {}", recorded["body"]) }
}

/// Returns true if a text has the parts of a pattern in their order, the first at its beginning and the last at its end.
fn is_meant(pattern: &str, text: &str) -> bool {
    let mut parts: Vec<&str> = pattern.split('*').collect();
    let (Some(mut rest), Some(last)) = (text.strip_prefix(parts.remove(0)), parts.pop()) else {
        return pattern == text;
    };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn request(exchange: &Value) -> (Request, Vec<u8>) {
    let recorded = &exchange["request"];
    let method = Method::from_bytes(recorded["method"].as_str().expect("a method").as_bytes()).expect("a method");
    let mut request = Request::new(method, recorded["path"].as_str().expect("a path"));
    request.headers.insert("host", HeaderValue::from_static("127.0.0.1:4003"));
    for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
        let value = HeaderValue::from_str(value.as_str().expect("a text")).expect("a header");
        request.headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("a header"), value);
    }
    let body = match (&recorded["body"], &recorded["raw"]) {
        (Value::Null, Value::Null) => Vec::new(),
        (Value::Null, raw) => raw.as_str().expect("a text").as_bytes().to_vec(),
        (body, _) => body.to_string().into_bytes(),
    };
    (request, body)
}

/// The part of a body that is compared: not the estimate, which is exact in the recordings, and of delegates neither the last
/// block nor the round, which a restart changes (README of the recordings).
fn compared(body: &Value) -> Value {
    match body {
        Value::Object(members) => {
            let is_restarted = members.contains_key("forgedFees");
            let left_out = |name: &str| match name {
                "totalCountIsEstimate" => true,
                "lastBlock" | "round" => is_restarted,
                _ => false,
            };
            let kept = members.iter().filter(|(name, _)| !left_out(name));
            kept.map(|(name, value)| (name.clone(), compared(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(compared).collect(),
        other => other.clone(),
    }
}

/// Returns true if two lists are in the same order by the field they were to be ordered by: the recorded database orders equals
/// as it likes.
fn same_order(path: &str, got: &Value, wanted: &Value) -> bool {
    let Some((_, field)) = path.split_once("orderBy=") else { return false };
    let field = field.split([':', '%']).next().unwrap_or_default();
    let keys = |body: &Value| -> Vec<Value> {
        body["data"].as_array().into_iter().flatten().map(|row| row[field].clone()).collect()
    };
    got["meta"] == wanted["meta"] && keys(got) == keys(wanted)
}

/// The difference between the recorded answer and ours, if there is one.
fn difference(context: &ApiContext, exchange: &Value) -> Option<String> {
    let path = exchange["request"]["path"].as_str().expect("a path");
    let (request, body) = request(exchange);
    let response = ask(context, &request, body).reply.into_response(&request);
    let recorded = &exchange["response"];
    let text = std::str::from_utf8(response.body()).expect("JSON is UTF-8");
    let got: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let wanted = if request.method == Method::HEAD { &got } else { &recorded["body"] };
    let asked = &exchange["request"]["body"];
    let differs = |why: &str| format!("{} {path} {asked}: {why}\n  got    {got}\n  wanted {recorded}", request.method);
    if recorded["status"] != u64::from(response.status().as_u16()) {
        return Some(differs("status"));
    }
    let (one, other) = (compared(&got), compared(wanted));
    if one != other && !same_order(path, &one, &other) {
        return Some(differs("body"));
    }
    for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
        let header = response.headers().get(name).map(|value| value.to_str().expect("a text"));
        // The recorded estimate is false where ours is true, which is a byte longer.
        if header != value.as_str() && name != "content-range" {
            return Some(differs(name));
        }
    }
    None
}

#[test]
fn the_answers_of_a_real_node_are_given_again() {
    let folder = recordings();
    let accepted = accepted();
    let mut unneeded: BTreeSet<&String> = accepted.iter().collect();
    let mut compared = 0;
    let mut differences = Vec::new();
    for (file, height) in [("api.jsonl", 111), ("fresh.jsonl", 8)] {
        let context = recorded_chain(&folder, height, Dialect::Core26);
        for exchange in exchanges(&folder.join(file)) {
            compared += 1;
            let Some(difference) = difference(&context, &exchange) else { continue };
            let rows: Vec<&String> = accepted.iter().filter(|row| is_meant(row, &shown(&exchange))).collect();
            rows.iter().for_each(|row| _ = unneeded.remove(row));
            differences.extend(rows.is_empty().then_some(difference));
        }
    }
    for (shown, difference) in crate::webhooks::recorded::differences(&folder) {
        compared += 1;
        let Some(difference) = difference else { continue };
        let rows: Vec<&String> = accepted.iter().filter(|row| is_meant(row, &shown)).collect();
        rows.iter().for_each(|row| _ = unneeded.remove(row));
        differences.extend(rows.is_empty().then_some(difference));
    }
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(unneeded.is_empty(), "docs/deviations.md accepts what does not differ: {unneeded:?}");
    assert!(compared > 1_250, "or the recordings were not found: {compared}");
}

#[test]
fn requests_that_a_real_node_refused_are_refused() {
    let folder = recordings();
    // Nothing is behind this API, so what gets past the request's checks and decoding ends as an internal error.
    let context = recorded_chain(&folder, 50, Dialect::Core26);
    for exchange in exchanges(&folder.join("submissions.jsonl")) {
        let (request, body) = request(&exchange);
        let answered = ask(&context, &request, body);
        let recorded = &exchange["response"];
        let name = exchange["name"].as_str().expect("a name");
        if recorded["status"] == 422 {
            assert_eq!(answered.status, 422, "{name}: {}", answered.body);
            let message = answered.body["message"].as_str().expect("a text");
            let wanted = recorded["body"]["message"].as_str().expect("a text");
            let any_of = "should match some schema in anyOf";
            assert!(message == wanted || (message.ends_with(any_of) && wanted.ends_with(any_of)), "{name}: {message}");
            continue;
        }
        let codes = |body: &Value| -> Vec<String> {
            let errors = body["errors"].as_object().into_iter().flatten();
            errors.map(|(id, errors)| format!("{id} {}", errors[0]["type"])).collect()
        };
        let wanted = codes(&recorded["body"]);
        if wanted.iter().any(|code| code.contains("ERR_UNKNOWN") || code.contains("ERR_UNSUPPORTED")) {
            assert_eq!(codes(&answered.body), wanted, "{name}: {}", answered.body);
        } else {
            assert_ne!(answered.status, 422, "{name}: {}", answered.body);
        }
    }
}
