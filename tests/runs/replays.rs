//! A recorded live session is repeated exactly.

use crate::{support::run, testnet::Up};
use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A transfer of one coin from the first funded account.
pub fn transfer(up: &Up, nonce: u64) -> Value {
    let keys = KeyPair::from_passphrase(up.ready["accounts"][0]["passphrase"].as_str().expect("a passphrase"));
    let recipient = KeyPair::from_passphrase("somebody").public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).network(23).nonce(Nonce(nonce)).sign(&keys);
    transfer.to_json()
}

pub fn submit(up: &Up, transactions: &[Value]) {
    let (status, body) = up.post("/api/transactions", &json!({ "transactions": transactions }));
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["data"]["accept"].as_array().map(Vec::len), Some(transactions.len()), "{body}");
}

/// Plays a session and answers the last line of its record.
fn record(file: &Path, pace: &[&str]) -> Value {
    let mut arguments = vec!["--delegates", "7", "--seed", "3", "--record", file.to_str().expect("a path in UTF-8")];
    arguments.extend(pace);
    let up = Up::start(&arguments);
    up.advance(4);
    submit(&up, &[transfer(&up, 1)]);
    up.advance(8);
    // Two one after the other, and one just before the end: each line holds the digest of all before it.
    submit(&up, &[transfer(&up, 2), transfer(&up, 3)]);
    submit(&up, &[transfer(&up, 4)]);
    up.advance(9);
    submit(&up, &[transfer(&up, 5)]);
    up.interrupt();
    let text = fs::read_to_string(file).expect("it is there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    assert_eq!(lines.iter().filter(|line| line["entry"] == "submit").count(), 4);
    assert_eq!(lines[0]["seed"], 3);
    lines.last().expect("it has lines").clone()
}

#[test]
fn a_session_is_repeated_with_the_same_digest_whatever_its_pace_was() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for pace in [["--pace", "manual"], ["--speed", "max"], ["--speed", "300"]] {
        let file = folder.path().join(format!("{}.jsonl", pace[1]));
        let end = record(&file, &pace);
        assert_eq!(end["entry"], "end");
        let file = file.display().to_string();
        let output = run(&["replay", &file, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let replayed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
        assert_eq!((&replayed["digest"], &replayed["end_us"]), (&end["digest"], &end["at"]));
        assert_eq!((&replayed["inputs"], &replayed["ended"]), (&4.into(), &true.into()));
        let output = run(&["replay", &file]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains(end["digest"].as_str().expect("a digest")), "{told}");
    }
}

#[test]
fn a_session_that_differs_or_is_none_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("session.jsonl");
    record(&file, &["--pace", "manual"]);
    let text = fs::read_to_string(&file).expect("it is there");
    let case = |text: &str, code: i32, part: &str| {
        let changed = folder.path().join("changed.jsonl");
        fs::write(&changed, text).expect("it can be written");
        let output = run(&["replay", changed.to_str().expect("a path in UTF-8")]);
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(part), "{part}: {told}");
    };
    let lines: Vec<&str> = text.lines().collect();
    let end: Value = serde_json::from_str(lines[5]).expect("JSON");
    let digest = end["digest"].as_str().expect("a digest");
    case(&text.replace(digest, &"0".repeat(64)), 1, "changed.jsonl:6: the session differs: digest recorded 000");
    // An input left out changes what comes after it.
    let left_out: String = [lines[0], lines[1], lines[3], lines[4], lines[5], ""].join("\n");
    case(&left_out, 1, "changed.jsonl:3: the session differs");
    // Killed: in the middle of a line, or before the end was written.
    case(&text[..text.len() - 30], 0, "4 inputs");
    case(&text[..text.len() - 30], 0, "it was not stopped in order");
    case(&text.replacen("\"seed\":3", "\"seed\":\"three\"", 1), 2, "changed.jsonl:1:");
    case(&text.replacen("\"session\":3", "\"session\":9", 1), 2, "key 'session': found 9, allowed is 3");
    case(&text.replacen("\"node\":0", "\"node\":70", 1), 2, "node 70 is none of 7");
    case(&text.replacen("\"seed\":3", "\"seed\":4", 1), 2, "key 'nethash'");
    case("", 2, "changed.jsonl:1:");
    case("{}\n", 2, "changed.jsonl:1:");
}
