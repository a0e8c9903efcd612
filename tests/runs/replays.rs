//! A recorded live session is repeated exactly.

use crate::{support::run, testnet::Up};
use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A transfer of one coin from the first funded account.
pub fn transfer(up: &Up, nonce: u64) -> Value {
    let keys = KeyPair::from_passphrase(up.ready["accounts"][0]["passphrase"].as_str().expect("a passphrase"), Real);
    let recipient = KeyPair::from_passphrase("somebody", Real).public().address(23);
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
    assert_eq!(lines.iter().filter(|line| line["came"]["submit"].is_object()).count(), 4);
    assert_eq!(lines[0]["seed"], 3);
    lines.last().expect("it has lines").clone()
}

/// The first and the latest start of `up` follow the length of a slot, and its recording is repeated from there.
#[test]
fn a_session_of_short_slots_is_repeated_from_any_start() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (start, slot) in [("4", 1), ("4000000000", 1_000_000_000)] {
        let file = folder.path().join(format!("{slot}.jsonl")).display().to_string();
        let options = ["--delegates", "5", "--pace", "manual", "--set", "network.block_time_s=4"];
        let up = Up::start(&[&options[..], &["--start", start, "--record", &file]].concat());
        up.advance(3);
        up.interrupt();
        let text = fs::read_to_string(&file).expect("it is there");
        let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("every line is JSON");
        assert_eq!(first["start"], slot);
        let output = run(&["replay", &file]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for (start, allowed) in [
        ("4", "found 4; give 'genesis', 'now' or seconds since the epoch, 8 to 4000000000"),
        ("4000000001", "1 to 4000000000"),
    ] {
        let output = run(&["up", "--port", "0", "--delegates", "5", "--start", start]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(allowed), "{told}");
    }
}

#[test]
fn a_session_is_repeated_with_the_same_digest_whatever_its_pace_was() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for pace in [["--pace", "manual"], ["--speed", "max"], ["--speed", "300"]] {
        let file = folder.path().join(format!("{}.jsonl", pace[1]));
        let end = record(&file, &pace);
        assert_eq!(end["came"], "end");
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
fn snapshots_and_what_went_back_to_them_are_repeated() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("session.jsonl");
    let up = Up::start(&["--delegates", "7", "--pace", "manual", "--record", file.to_str().expect("a path in UTF-8")]);
    let post = |path: &str, body: Value| up.post(path, &body);
    up.advance(5);
    submit(&up, &[transfer(&up, 1)]);
    assert_eq!(post("/lab/snapshots", json!({"name": "with a pending transfer"})).0, 201);
    up.advance(9);
    submit(&up, &[transfer(&up, 2)]);
    assert_eq!(post("/lab/snapshots", json!({})).0, 201);
    assert_eq!(post("/lab/snapshots/1/revert", json!({})).0, 200);
    up.advance(3);
    assert_eq!(post("/lab/snapshots/2/revert", json!({})).0, 200);
    assert_eq!(post("/lab/snapshots/9/revert", json!({})).0, 404);
    up.advance(4);
    assert_eq!(up.delete_below_root("/lab/snapshots/1"), 204);
    up.interrupt();
    let text = fs::read_to_string(&file).expect("it is there");
    let last: Value = serde_json::from_str(text.lines().last().expect("it has lines")).expect("JSON");
    let output = run(&["replay", file.to_str().expect("a path in UTF-8"), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let replayed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!((&replayed["digest"], &replayed["end_us"]), (&last["digest"], &last["at"]));
}

/// The lines of a file, and the last of them.
fn before_the_last_line(file: &[u8]) -> (&[u8], &[u8]) {
    let lines = file.trim_ascii_end();
    lines.split_at(1 + lines.iter().rposition(|byte| *byte == b'\n').expect("it has lines"))
}

/// The result of `dposlab replay` on the bytes of a recording.
fn replayed(bytes: &[u8]) -> Value {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), bytes).expect("it can be written");
    let output = run(&["replay", file.path().to_str().expect("a path in UTF-8"), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints one object")
}

/// A session of a testnet or of a chain, by its API and lab below `path`: the recording so far, in the middle and at the end.
fn recorded_below(up: &Up, path: &str) -> [Vec<u8>; 2] {
    let post = |route: &str, body: Value| {
        let (status, answer) = up.post(&format!("{path}{route}"), &body);
        assert!((200..300).contains(&status), "{route}: {answer}");
    };
    let recording = || up.bytes(&format!("{path}/lab/recording"));
    post("/lab/advance", json!({"slots": 5}));
    post("/api/transactions", json!({"transactions": [transfer(up, 1)]}));
    post("/lab/snapshots", json!({"name": "with a pending transfer"}));
    post("/lab/advance", json!({"slots": 3}));
    post("/lab/nodes/2/crash", json!({}));
    post("/lab/advance", json!({"slots": 9}));
    let middle = recording();
    post("/lab/snapshots/1/revert", json!({}));
    post("/lab/advance", json!({"slots": 2}));
    post("/lab/reorg", json!({"depth": 1}));
    post("/lab/advance", json!({"until": {"event": {"kind": "block-forged"}}}));
    [middle, recording()]
}

/// The answer of `GET /lab/recording` is repeated with the digest that it names, whatever goes on afterwards. It is the file of
/// `--record` as far as that went; on both stages, and of a chain, it is the same.
#[test]
fn the_recording_so_far_is_repeated() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("session.jsonl");
    let arguments = ["--delegates", "7", "--seed", "3", "--pace", "manual"];
    let up = Up::start(&[&arguments[..], &["--record", file.to_str().expect("a path in UTF-8")]].concat());
    let [middle, end] = recorded_below(&up, "");
    up.advance(3);
    up.interrupt();
    let all = fs::read(&file).expect("it is there");
    for (recording, inputs) in [(&middle, 3), (&end, 5)] {
        let (came, last) = before_the_last_line(recording);
        assert!(all.starts_with(came), "it is the beginning of what --record wrote");
        let last: Value = serde_json::from_slice(last).expect("JSON");
        let replayed = replayed(recording);
        assert_eq!((&replayed["inputs"], &replayed["ended"]), (&inputs.into(), &true.into()));
        assert_eq!((&replayed["digest"], &replayed["end_us"]), (&last["digest"], &last["at"]));
    }

    let up = Up::start(&[&arguments[..], &["--stage", "inline"]].concat());
    assert_eq!(up.post("/lab/chains", &json!({})).0, 201);
    for path in ["", "/chains/1"] {
        assert!(recorded_below(&up, path) == [middle.clone(), end.clone()], "{path}");
    }
    up.interrupt();
}

/// The status of each of sixty answers.
fn answered(up: &Up) -> Vec<u16> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let ask = |page| agent.get(format!("{}/blocks?page={page}", up.api())).call().expect("it answers");
    (1..=60).map(|page| ask(page).status().as_u16()).collect()
}

/// The rules of a recording, and the same requests in the same order, are met by the same troubles.
#[test]
fn chaos_is_recorded_and_strikes_the_same_again() {
    let arguments = ["--delegates", "3", "--seed", "9", "--pace", "manual"];
    let up = Up::start(&arguments);
    let chaos = |up: &Up, rule: &Value| assert_eq!(up.post("/lab/chaos", rule).0, 201, "{rule}");
    chaos(&up, &json!({"route": "/api/blocks", "share": 0.2, "status": 503, "count": 6}));
    chaos(&up, &json!({"route": "/api/blocks", "share": 0.9, "status": 500}));
    up.advance(4);
    assert_eq!(up.post("/lab/snapshots", &json!({})).0, 201);
    chaos(&up, &json!({"route": "/api/*", "method": "GET", "share": 0.3, "status": 429}));
    assert_eq!(up.delete_below_root("/lab/chaos/2"), 200);
    assert_eq!(up.delete_below_root("/lab/chaos/9"), 404);
    // Rules are no part of what a snapshot keeps.
    assert_eq!(up.post("/lab/snapshots/1/revert", &json!({})).0, 200);
    let first = answered(&up);
    for status in [200, 429, 503] {
        assert!(first.contains(&status), "{status}: {first:?}");
    }
    let recording = up.bytes("/lab/recording");
    let file = up.bytes("/lab/snapshots/1/file");
    up.interrupt();
    assert!(!String::from_utf8_lossy(&file).contains("chaos"), "nor of its file");

    let replayed = replayed(&recording);
    assert_eq!((&replayed["inputs"], &replayed["rules"]), (&json!(2), &json!(4)));
    let up = Up::start(&arguments);
    let text = String::from_utf8(recording).expect("text");
    for entry in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        let change = &entry["came"]["chaos"];
        if change["added"].is_object() {
            chaos(&up, &change["added"]["rule"]);
        } else if let Some(id) = change["deleted"]["id"].as_u64() {
            assert_eq!(up.delete_below_root(&format!("/lab/chaos/{id}")), 200);
        }
    }
    assert_eq!(answered(&up), first);
    up.interrupt();
}

/// A testnet that goes on from a recording stands where the recorded one ended, whatever that went back to.
#[test]
fn a_recording_leads_to_where_it_ended() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path in UTF-8").to_owned();
    let seen = |up: &Up| {
        let lists = ["/blocks?limit=100", "/transactions", "/transactions/unconfirmed", "/wallets", "/delegates"];
        (lists.map(|list| up.get(list)), up.get("/node/status"))
    };
    let up = Up::start(&["--delegates", "7", "--seed", "5", "--pace", "manual", "--record", &path("first")]);
    up.advance(12);
    submit(&up, &[transfer(&up, 1)]);
    assert_eq!(up.post("/lab/snapshots", &json!({})).0, 201);
    assert_eq!(up.post("/lab/faults", &json!({"kind": "crash", "nodes": [6]})).0, 201);
    up.advance(5);
    assert_eq!(up.post("/lab/snapshots/1/revert", &json!({})).0, 200);
    assert_eq!(up.post("/lab/chaos", &json!({"status": 503, "route": "/api/votes"})).0, 201);
    up.advance(3);
    submit(&up, &[transfer(&up, 2)]);
    assert_eq!(up.post("/lab/faults", &json!({"kind": "crash", "nodes": [5]})).0, 201);
    up.advance(2);
    let was = seen(&up);
    fs::write(path("asked"), up.bytes("/lab/recording")).expect("it can be written");
    up.interrupt();
    for recording in ["first", "asked"] {
        let record = path(&format!("{recording}-again"));
        let up = Up::start(&["--from", &path(recording), "--pace", "manual", "--record", &record]);
        assert_eq!(seen(&up), was, "{recording}");
        let lab: Value = serde_json::from_slice(&up.bytes("/lab")).expect("JSON");
        let live: Vec<&Value> =
            lab["data"]["nodes"].as_array().expect("a list").iter().map(|node| &node["live"]).collect();
        assert_eq!((live[5], live[6]), (&json!(false), &json!(true)), "the crash of what was left is not there");
        up.advance(10);
        let then = seen(&up);
        up.interrupt();
        let output = run(&["replay", &record, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let up = Up::start(&["--from", &record, "--pace", "manual"]);
        assert_eq!(seen(&up), then, "{recording}");
        up.interrupt();
    }
}

/// A testnet that goes on from a file is the one that the snapshot was taken of: the same pool, and the same blocks to come.
#[test]
fn a_snapshot_as_a_file_is_the_same_network() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path in UTF-8").to_owned();
    let seen = |up: &Up| {
        let lists = ["/blocks?limit=100", "/transactions", "/transactions/unconfirmed", "/wallets", "/delegates"];
        lists.map(|list| up.get(list))
    };
    let up = Up::start(&["--delegates", "7", "--seed", "5", "--pace", "manual", "--set", "network.loss=0.02"]);
    up.advance(12);
    submit(&up, &[transfer(&up, 1)]);
    up.advance(2);
    submit(&up, &[transfer(&up, 2)]);
    assert_eq!(up.post("/lab/snapshots", &json!({"name": "to keep"})).0, 201);
    let bytes = up.bytes("/lab/snapshots/1/file");
    fs::write(path("kept"), &bytes).expect("it can be written");
    let was = seen(&up);
    up.advance(20);
    let then = seen(&up);
    up.interrupt();
    assert_ne!(was, then);

    for stage in ["ractor", "inline"] {
        let record = path(&format!("{stage}.jsonl"));
        let up = Up::start(&["--from", &path("kept"), "--pace", "manual", "--stage", stage, "--record", &record]);
        assert_eq!(seen(&up), was, "{stage}");
        up.advance(20);
        assert_eq!(seen(&up), then, "{stage}");
        // A snapshot of this one holds what came in before it, too.
        assert_eq!(up.post("/lab/snapshots", &json!({})).0, 201);
        fs::write(path(stage), up.bytes("/lab/snapshots/1/file")).expect("it can be written");
        up.interrupt();
        let output = run(&["replay", &record, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let up = Up::start(&["--from", &path(stage), "--pace", "manual"]);
        assert_eq!(seen(&up), then, "{stage}");
        up.interrupt();
    }

    let refused = |bytes: &[u8], part: &str| {
        fs::write(path("damaged"), bytes).expect("it can be written");
        let output = run(&["up", "--port", "0", "--from", &path("damaged")]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("damaged") && told.contains(part), "{part}: {told}");
    };
    let first = bytes.iter().position(|byte| *byte == b'\n').expect("it has lines");
    for at in (first + 1..bytes.len()).step_by(bytes.len() / 9) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        refused(&flipped, "is damaged: its checksum is");
    }
    refused(&bytes[..bytes.len() - 1], "is damaged: its checksum is");
    refused(&bytes[..first / 2], "it has no first line");
    refused(b"", "it has no first line");
    refused(b"{\"state\":1}\n", "line 1: ");
    refused(b"{\"session\":5}\n", "is no line of `dposlab up --record FILE`: missing field `version`");
    let text = String::from_utf8(bytes).expect("it is text");
    refused(text.replacen("\"state\":1", "\"state\":7", 1).as_bytes(), "key 'state': found 7, allowed is 1");
    refused(text.replacen("\"height\":", "\"height\":1", 1).as_bytes(), "the session differs: tip recorded");
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
    case(&text.replacen("\"session\":5", "\"session\":9", 1), 2, "key 'session': found 9, allowed is 5");
    case(&text.replacen("\"node\":0", "\"node\":70", 1), 2, "node 70 is none of 7");
    case(&text.replacen("\"seed\":3", "\"seed\":4", 1), 2, "key 'nethash'");
    case("", 2, "changed.jsonl:1:");
    case("{}\n", 2, "changed.jsonl:1:");
}
