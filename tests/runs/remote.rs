//! Strategies that another process decides: the same run as the same strategy here, on both stages; and what is said of a process that
//! does not keep to the lines of `docs/extending.md`.

use crate::support::dposlab;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Output,
    thread,
};

/// Serves connections until the process ends.
fn serve(answer: impl Fn(usize, &str) -> Option<String> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || talk(stream.expect("it listens"), answer));
        }
    });
    address
}

/// Answers each line of a connection; hangs up where there is no answer.
fn talk(mut stream: TcpStream, answer: impl Fn(usize, &str) -> Option<String>) {
    let lines = BufReader::new(stream.try_clone().expect("it can be cloned")).lines();
    for (number, line) in lines.map_while(Result::ok).enumerate() {
        let Some(said) = answer(number, &line) else { return };
        if stream.write_all(said.as_bytes()).is_err() {
            return;
        }
    }
}

fn kinds(example: &Value) -> String {
    let on = ["hears forged", "sends block"];
    let kind = json!({ "name": "hold-back", "about": "Keeps blocks back.", "actor": "peer", "breaks": "forging", "lists": ["delegates"],
        "example": example, "on": on });
    format!("{}\n", json!({ "kinds": [kind] }))
}

/// Keeps the blocks of its own delegate back, as the kind `withhold` has it.
fn hold_back(number: usize, line: &str) -> Option<String> {
    if number == 0 {
        assert_eq!(line, r#"{"dposlab":1}"#);
        return Some(kinds(&json!({ "delegates": [2], "release_ms": 4000 })));
    }
    let asked: Value = serde_json::from_str(line).expect("JSON");
    let block = &asked["message"]["block"]["id"];
    let answer = match asked["turn"].as_str() {
        Some("hears") => json!({ "state": block }),
        _ if asked["state"] == *block => {
            let after = &asked["parameters"]["release_ms"];
            json!({ "state": block, "swallow": true, "effects": [{ "send": { "to": asked["to"], "after_ms": after } }] })
        }
        _ => json!({ "state": asked["state"] }),
    };
    Some(format!("{}\n", json!({ "answer": answer })))
}

fn played(kind: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scenario.toml");
    let text = format!(
        "version = 1\nrounds = 4\n[network]\ndelegates = 5\n[[fault]]\nkind = '{kind}'\ndelegates = [2]\nrelease_ms = 4000\n"
    );
    fs::write(&file, text).expect("it can be written");
    dposlab().arg("run").arg(file).args(["--seed", "7", "--json"]).args(more).output().expect("it starts")
}

fn digest(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["digest"].clone()
}

#[test]
fn a_strategy_of_another_process_gives_the_run_of_the_same_strategy_here() {
    let native = digest(&played("withhold", &[]));
    assert_ne!(native, digest(&played("withhold", &["--set", "fault[0].release_ms=1"])), "or it changes nothing");
    let there = format!("--strategies={}", serve(hold_back));
    for stage in ["inline", "ractor"] {
        assert_eq!(native, digest(&played("hold-back", &[&there, "--stage", stage])), "{stage}");
    }
}

#[test]
fn a_process_that_is_not_there_or_says_something_else_is_refused() {
    let refused = |address: &str, why: &str| {
        let output = played("hold-back", &["--strategies", address]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{address}: {said}");
    };
    refused("192.0.2.1:4100", "allowed is an address of this machine");
    refused("localhost", "localhost");
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free");
    refused(&gone.to_string(), "refused");
    let says = |said: &'static str| serve(move |_, _| Some(said.to_owned())).to_string();
    refused(&serve(|_, _| None).to_string(), "hung up");
    refused(&says("HTTP/1.1 400 Bad Request\n"), "no answer");
    refused(&says("{\"kinds\":[]}\n"), "found 0 kinds");
    let without = serve(|_, _| Some(kinds(&json!({ "release_ms": 1 })))).to_string();
    refused(&without, "example: has no 'delegates'");
    let null = serve(|_, _| Some(kinds(&json!({ "delegates": [1], "release_ms": null })))).to_string();
    refused(&null, "'release_ms' is null");
}

#[test]
fn a_run_whose_strategy_is_lost_ends_and_says_so() {
    let ends = |answer: &'static str, why: &str| {
        let address = serve(move |number, line| match number {
            0 | 1 => hold_back(number, line),
            _ => Some(answer.to_owned()).filter(|answer| !answer.is_empty()),
        });
        for stage in ["inline", "ractor"] {
            let output = played("hold-back", &[&format!("--strategies={address}"), "--stage", stage]);
            let said = String::from_utf8_lossy(&output.stderr);
            let line = format!("the strategy 'hold-back' at {address}: ");
            assert!(output.status.code() == Some(1) && said.contains(&line) && said.contains(why), "{answer}: {said}");
            assert!(output.stdout.is_empty(), "nothing is told of half a run");
        }
    };
    ends("", "it hung up");
    ends("{\"answer\":{}}\n", "missing field `state`");
    ends("{\"answer\":{\"state\":1,\"swalow\":true}}\n", "unknown field `swalow`");
    ends("{\"failed\":\"no idea\"}\n", "no idea");
    ends("yes\n", "found \"yes\", which is no answer");
    ends(
        "{\"answer\":{\"state\":1,\"effects\":[{\"send\":{\"to\":[2]}}]}}\n",
        "found node 2, allowed are 0 to 4 but for its own",
    );
}
