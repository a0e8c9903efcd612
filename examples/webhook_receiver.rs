//! A receiver of webhooks: makes one at a node, checks the token of every post, and prints the events.
//!
//! ```console
//! cargo run --example webhook_receiver -- --event block.applied --count 3
//! ```
//!
//! Options: `--node URL` of the node's API, `http://127.0.0.1:4003/api` by default; `--event NAME`; `--key MEMBER`,
//! `--condition NAME` and `--value JSON` for a condition; `--count N` events to wait for, after which the webhook is
//! deleted again. Without a count it runs until it is stopped.

use serde_json::{Value, json};
use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
};

/// Bodies longer than this are not read.
const BODY_MAX: usize = 16 << 20;

struct Options {
    node: String,
    event: String,
    conditions: Value,
    count: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = format!("http://{}/", listener.local_addr()?);
    let webhooks = format!("{}/webhooks", options.node);
    let wanted = json!({"event": options.event, "target": target, "conditions": options.conditions});
    let created: Value = ureq::post(&webhooks).send_json(&wanted)?.body_mut().read_json()?;
    let (id, token) = (text(&created["data"]["id"])?, text(&created["data"]["token"])?);
    // The node knows the first half and shows it with every post. The second half never leaves the receiver, so that
    // the whole token still tells the two apart.
    let secret = &token[..32];
    println!("waiting for {}", options.event);
    let mut received = 0;
    while received < options.count {
        let (stream, _) = listener.accept()?;
        match receive(stream, secret) {
            Ok(Some(body)) => {
                received += 1;
                println!("{} at {}: {}", text(&body["event"])?, body["timestamp"], shown(&body["data"]));
            }
            Ok(None) => println!("refused a post without the token"),
            Err(why) => println!("not understood: {why}"),
        }
    }
    ureq::delete(format!("{webhooks}/{id}")).call()?;
    println!("done");
    Ok(())
}

/// Reads one post and answers it: 200, or 401 if it does not come from the node.
fn receive(stream: TcpStream, secret: &str) -> Result<Option<Value>, Box<dyn Error>> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut is_from_node) = (0, false);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "authorization" => is_from_node = is_same(value, secret),
                _ => {}
            }
        }
        line.clear();
    }
    if length > BODY_MAX {
        return Err("the body is too long".into());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let status = if is_from_node { "200 OK" } else { "401 Unauthorized" };
    write!(reader.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
    if is_from_node { Ok(Some(serde_json::from_slice(&body)?)) } else { Ok(None) }
}

/// Compares in a time that tells nothing of where two texts differ.
fn is_same(one: &str, other: &str) -> bool {
    let difference = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && difference == 0
}

/// The most telling members of a payload.
fn shown(data: &Value) -> String {
    let members = ["height", "id", "address", "username"];
    let known = members.iter().filter_map(|name| Some(format!("{name} {}", data.get(name)?)));
    match known.collect::<Vec<_>>() {
        none if none.is_empty() => data.to_string(),
        some => some.join(", "),
    }
}

fn text(value: &Value) -> Result<&str, Box<dyn Error>> {
    value.as_str().ok_or_else(|| format!("expected a text, found {value}").into())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let node = "http://127.0.0.1:4003/api".to_owned();
    let mut options = Options { node, event: "block.applied".to_owned(), conditions: json!([]), count: usize::MAX };
    let mut condition = json!({});
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--node" => options.node = value,
            "--event" => options.event = value,
            "--key" => condition["key"] = value.into(),
            "--condition" => condition["condition"] = value.into(),
            "--value" => condition["value"] = serde_json::from_str(&value)?,
            "--count" => options.count = value.parse()?,
            unknown => return Err(format!("unknown option {unknown}").into()),
        }
    }
    if condition != json!({}) {
        options.conditions = json!([condition]);
    }
    Ok(options)
}
