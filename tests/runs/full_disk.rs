//! Disks that become full while a command runs. No file of the process may grow any more then: a limit that it is given from
//! outside, and that is taken from it again.

use crate::{
    support::{dposlab, run},
    testnet::Up,
};
use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const FULL: &str = "File too large";

/// A testnet that is told of files that may not grow, as one on a full disk is: by an error and not by a signal.
fn up(arguments: &[&str]) -> Up {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dposlab")]);
    shell.args(["up", "--json", "--port", "0", "--pace", "manual", "--delegates", "5"]).args(arguments);
    Up::begun(shell.stderr(Stdio::piped()))
}

/// Limits the length of its files; they are as long as they like where nothing is given.
fn limit(up: &Up, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(Pid::from_child(up.child())), Resource::Fsize, limit).expect("it is a process of this user");
}

/// The webhooks that a testnet lists, by id.
fn hooks(up: &Up) -> Vec<Value> {
    up.get("/webhooks")["data"].as_array().expect("a list").clone()
}

#[test]
fn a_webhook_that_cannot_be_kept_has_not_happened() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let data = folder.path().join("data").display().to_string();
    let hook = |event: &str| json!({"event": event, "target": "http://127.0.0.1:9/", "conditions": []});
    let first = up(&["--data-dir", &data]);
    let created: Vec<Value> = ["round.created", "block.applied"]
        .map(|event| {
            let (status, body) = first.post("/api/webhooks", &hook(event));
            assert_eq!(status, 201, "{body}");
            body["data"]["id"].clone()
        })
        .into();
    let before = hooks(&first);
    limit(&first, Some(0));
    let (status, body) = first.post("/api/webhooks", &hook("block.forged"));
    assert_eq!(status, 500, "{body}");
    let target = format!("/webhooks/{}", created[0].as_str().expect("an id"));
    let (status, body) = first.put(&target, &json!({"event": "block.reverted", "enabled": false}));
    assert_eq!(status, 500, "{body}");
    assert_eq!(hooks(&first), before, "neither one more nor another one");
    // Its own log names the file of each that could not be kept.
    let log = first.log();
    let named =
        |id: &str| log.lines().any(|line| line.contains(FULL) && line.contains(&format!("webhooks-node-0/{id}")));
    assert!(named(created[0].as_str().expect("an id")) && log.matches(FULL).count() == 2, "{log}");
    let left = fs::read_dir(folder.path().join("data/webhooks-node-0")).expect("it is there");
    let left = left.map(|entry| entry.expect("it can be listed").path());
    let parts = left.filter(|path| path.extension().is_some_and(|kind| kind == "new")).count();
    assert_eq!(parts, 0, "what could not be written whole takes no room");
    // To forget one takes no room.
    assert_eq!(first.delete(&format!("/webhooks/{}", created[1].as_str().expect("an id"))), 204);
    limit(&first, None);
    let (status, body) = first.post("/api/webhooks", &hook("block.received"));
    assert_eq!(status, 201, "{body}");
    let kept = hooks(&first);
    assert_eq!(kept.len(), 2);
    first.interrupt();
    let again = up(&["--data-dir", &data]);
    assert_eq!(hooks(&again), kept, "what was acknowledged, and nothing else");
    again.interrupt();
}

#[test]
fn a_sweep_without_room_for_more_rows_says_so_and_goes_on_later() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let scenario = path("s.toml");
    let text = "version = 1\ncrypto = \"modelled\"\nrounds = 1\n[network]\ndelegates = 3\n";
    fs::write(&scenario, text).expect("it can be written");
    let out = path("out");
    let arguments = ["sweep", &scenario, "--seeds", "0..40", "--jobs", "1", "--out", &out];
    // In units of 512 bytes: room for the manifest and some rows.
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 12; exec \"$0\" \"$@\"";
    let limited = shell.args(["-c", script, env!("CARGO_BIN_EXE_dposlab")]).args(arguments).output().expect("a shell");
    let error = String::from_utf8_lossy(&limited.stderr).into_owned();
    assert_eq!(limited.status.code(), Some(1), "{error}");
    assert!(error.contains("/rows.bin: ") && error.contains(FULL), "{error}");
    let rows = |out: &str| fs::read(Path::new(out).join("rows.bin")).expect("it is there");
    let kept = rows(&out);
    assert!(kept.len() > 12 * 512 - 600 && kept.len() <= 12 * 512, "{} bytes of rows", kept.len());
    // It goes on from the rows that there are, and ends as if nothing had been.
    assert!(run(&arguments).status.success());
    let whole = path("whole");
    assert!(run(&["sweep", &scenario, "--seeds", "0..40", "--out", &whole]).status.success());
    let all = rows(&out);
    let torn = 600;
    assert_eq!(all[..kept.len() - torn], kept[..kept.len() - torn], "rows that were written stay as they are");
    let table = |out: &str| fs::read_to_string(Path::new(out).join("runs.csv")).expect("it is there");
    assert_eq!((table(&out), all), (table(&whole), rows(&whole)));
}

/// A transfer of one coin from the first funded account.
fn transfer(up: &Up, nonce: u64) -> Value {
    let keys = KeyPair::from_passphrase(up.ready["accounts"][0]["passphrase"].as_str().expect("a passphrase"), Real);
    let recipient = KeyPair::from_passphrase("somebody", Real).public().address(23);
    let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).network(23).nonce(Nonce(nonce)).sign(&keys);
    json!({ "transactions": [transfer.to_json()] })
}

#[test]
fn a_recording_without_room_for_more_says_so_at_once_and_repeats_what_it_holds() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    // Room for nothing of the next line, and for a part of it.
    for room in [0, 40] {
        let file = folder.path().join(format!("session-{room}")).display().to_string();
        let mut up = up(&["--record", &file]);
        up.advance(4);
        for nonce in [1, 2] {
            let (status, body) = up.post("/api/transactions", &transfer(&up, nonce));
            assert_eq!((status, body["data"]["accept"].as_array().map(Vec::len)), (200, Some(1)), "{body}");
        }
        let written = fs::metadata(&file).expect("it is there").len();
        limit(&up, Some(written + room));
        let (status, body) = up.post("/api/transactions", &transfer(&up, 3));
        assert_eq!((status, body["data"]["accept"].as_array().map(Vec::len)), (200, Some(1)), "it goes on: {body}");
        // While it runs, of lines that say how it began and two transfers.
        let told = up.error_line();
        let cut =
            format!("--record {file}: {FULL} (os error 27); the recording ends with its line 3, at virtual second ");
        assert!(told.contains(&cut) && told.ends_with("what comes in is not recorded"), "{told}");
        // Even where there is room again, nothing comes behind the gap.
        limit(&up, None);
        up.post("/api/transactions", &transfer(&up, 4));
        up.advance(4);
        let (code, error) = up.fails();
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains(&cut), "{error}");
        assert_eq!(error.matches(FULL).count(), 1, "at the end once more, and no more often: {error}");
        assert_eq!(fs::metadata(&file).expect("it is there").len(), written + room);
        let replayed = dposlab().args(["replay", &file]).output().expect("the binary was built");
        let told = String::from_utf8_lossy(&replayed.stdout).into_owned();
        assert!(replayed.status.success(), "{told}{}", String::from_utf8_lossy(&replayed.stderr));
        assert!(told.contains("2 inputs") && told.contains("it was not stopped in order"), "{told}");
    }
}
