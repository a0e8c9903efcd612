//! Recorded exchanges with a real node, replayed.

use crate::support::{Answered, ask, exchanges, recorded_chain, recordings};
use dposlab::api::{ApiContext, Dialect, Request};
use serde_json::Value;
use warp::http::{HeaderName, HeaderValue, Method};

fn replay(context: &ApiContext, exchange: &Value) -> Answered {
    let request = &exchange["request"];
    let method = Method::from_bytes(request["method"].as_str().expect("a method").as_bytes()).expect("a method");
    let mut asked = Request::new(method, request["path"].as_str().expect("a path"));
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        let value = HeaderValue::from_str(value.as_str().expect("a text")).expect("a header");
        asked.headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("a header"), value);
    }
    let body = match (&request["body"], &request["raw"]) {
        (Value::Null, Value::Null) => Vec::new(),
        (Value::Null, raw) => raw.as_str().expect("a text").as_bytes().to_vec(),
        (body, _) => body.to_string().into_bytes(),
    };
    ask(context, &asked, body)
}

#[test]
fn look() {
    let Some(folder) = recordings() else { return };
    let context = recorded_chain(&folder, 111, Dialect::Core26);
    let (mut same, mut other) = (0, 0);
    for exchange in exchanges(&folder.join("api.jsonl")) {
        let answered = replay(&context, &exchange);
        let expected = &exchange["response"];
        if u64::from(answered.status) == expected["status"].as_u64().unwrap() && (answered.body == expected["body"]) {
            same += 1;
        } else {
            other += 1;
            println!(
                "{}",
                serde_json::json!({"p": exchange["request"]["method"], "path": exchange["request"]["path"], "b": exchange["request"]["body"], "s": answered.status, "got": answered.body, "es": expected["status"], "want": expected["body"]})
            );
        }
    }
    println!("SAME {same} OTHER {other}");
}
