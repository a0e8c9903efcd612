//! Clients take connections, and never the files that a testnet needs for itself.

use crate::testnet::Up;
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

/// A testnet that is kept in a folder, under limits of a shell.
fn limited(limits: &str, folder: &std::path::Path) -> Up {
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_dposlab"), "up", "--json", "--port", "0", "--delegates", "3"]);
    Up::begun(command.args(["--pace=manual", "--data-dir"]).arg(folder).stderr(Stdio::piped()))
}

#[test]
fn more_clients_than_open_files_end_no_testnet() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut up = limited("ulimit -n 200", &folder.path().join("kept"));
    assert_eq!(
        up.error_line(),
        "dposlab: the system allows 200 open files, 1128 are needed for --max-connections 1000: 100 connections are allowed"
    );
    let address = up.api().trim_start_matches("http://").trim_end_matches("/api").to_owned();
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = TcpStream::connect(&address).expect("it accepts");
        client.write_all(b"GET /api/node/status HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut answer = [0; 12];
        client.read_exact(&mut answer).expect("it answers each of them");
        assert_eq!(&answer, b"HTTP/1.1 200");
        clients.push(client);
    }
    let open = fs::read_dir(format!("/proc/{}/fd", up.child().id())).expect("it runs").count();
    assert!((100..=190).contains(&open), "{open} files are open");
    assert_eq!(up.post("/lab/advance", &json!({ "slots": 40 })).1["data"]["height"], 41);
    up.interrupt();
}

#[test]
fn a_limit_that_may_be_raised_is_raised() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let up = limited("ulimit -Sn 60", &folder.path().join("kept"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", up.child().id())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the system says it");
    assert_eq!(line.split_whitespace().nth(3), Some("1128"), "{line}");
    up.interrupt();
}
