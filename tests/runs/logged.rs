//! What a testnet writes where nobody sits before it: no line a block with `--quiet`, and a log that another program rotates.

use crate::{
    support::{dposlab, interrupt},
    testnet::Up,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{fs, io::Read, path::Path, process::Stdio, thread};

/// All that a testnet prints while it makes ten blocks, and how it ended.
fn printed(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let ready = folder.path().join("ready.json");
    let mut command = dposlab();
    command.args(["up", "--port", "0", "--delegates", "3", "--pace=manual", "--ready-file"]).arg(&ready);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the binary was built for this test");
    while !ready.exists() {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it was ready");
        thread::yield_now();
    }
    let ready: serde_json::Value = serde_json::from_slice(&fs::read(&ready).expect("it appears whole")).expect("JSON");
    let lab = ready["url"].as_str().expect("a URL").replace("/api", "/lab/advance");
    ureq::post(lab).send_json(json!({ "slots": 10 })).expect("it advances");
    interrupt(&child);
    let mut text = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut text).expect("it is text");
    assert!(child.wait().expect("it ends").success());
    text
}

#[test]
fn a_quiet_testnet_prints_its_beginning_and_its_end() {
    let (loud, quiet) = (printed(&[]), printed(&["--quiet"]));
    let is_block = |line: &&str| line.starts_with("block ");
    assert_eq!(loud.lines().filter(is_block).count(), 10, "{loud}");
    assert_eq!(quiet.lines().filter(is_block).count(), 0, "{quiet}");
    let rest = |text: &str| text.lines().filter(|line| !is_block(line) && !line.contains("  API ")).collect::<String>();
    assert_eq!(rest(&quiet), rest(&loud), "all else is the same");
    assert!(quiet.ends_with("stopped after 10 blocks, 88 virtual seconds after the epoch\n"), "{quiet}");
    let json = printed(&["--quiet", "--json"]);
    let events: Vec<String> = json.lines().map(|line| line.chars().take(18).collect()).collect();
    assert_eq!(events, ["{\"event\":\"ready\",\"", "{\"event\":\"stopped\""], "{json}");
}

#[test]
fn a_quiet_testnet_tells_of_the_end_of_its_scenario() {
    let up = Up::start(&["scenarios/healthy.toml", "--quiet", "--pace=manual", "--set", "rounds=1"]);
    up.advance(60);
    let events: Vec<_> = up.interrupt().into_iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["last_round_over", "stopped"]);
}

/// A testnet of three delegates that logs to a file, and whose standard error is read.
fn logging(log: &Path) -> Up {
    let mut command = dposlab();
    command.args(["up", "--json", "--port", "0", "--delegates", "3", "--pace=manual", "--stage=inline", "--log"]);
    Up::begun(command.arg(log).stderr(Stdio::piped()))
}

fn hang_up(up: &Up) {
    kill_process(Pid::from_child(up.child()), Signal::HUP).expect("it is still there");
}

/// The heights of the blocks that a log names as applied.
fn heights(log: &Path) -> Vec<u32> {
    let text = fs::read_to_string(log).expect("it is there");
    assert!(text.is_empty() || text.ends_with('\n'), "a line is whole: {text}");
    text.lines()
        .filter_map(|line| line.split_once("Applied block ")?.1.split_once(" at height ")?.1.parse().ok())
        .collect()
}

#[test]
fn a_log_that_is_moved_away_goes_on_in_a_new_file_after_a_hang_up() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (log, old) = (folder.path().join("node.log"), folder.path().join("node.log.1"));
    let up = logging(&log);
    up.advance(20);
    fs::rename(&log, &old).expect("it is on one disk");
    hang_up(&up);
    // Opened at once, and not with the next line.
    while !log.exists() {
        thread::yield_now();
    }
    up.advance(20);
    up.interrupt();
    assert_eq!((heights(&old), heights(&log)), ((2..=21).collect(), (22..=41).collect()));
}

#[test]
fn a_busy_log_loses_no_line_however_often_it_is_moved_away() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let log = folder.path().join("node.log");
    let up = logging(&log);
    let moves = 5;
    thread::scope(|scope| {
        let advanced = scope.spawn(|| up.advance(400));
        for number in 0..moves {
            fs::rename(&log, folder.path().join(format!("{number}"))).expect("it is on one disk");
            hang_up(&up);
            while !log.exists() {
                thread::yield_now();
            }
        }
        advanced.join().expect("it advances");
    });
    up.interrupt();
    let mut all: Vec<u32> = (0..moves).flat_map(|number| heights(&folder.path().join(format!("{number}")))).collect();
    all.extend(heights(&log));
    assert_eq!(all, (2..=401).collect::<Vec<_>>());
}

#[test]
fn a_log_that_cannot_be_opened_anew_is_named_and_goes_on_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (log, old) = (folder.path().join("node.log"), folder.path().join("node.log.1"));
    let mut up = logging(&log);
    fs::rename(&log, &old).expect("it is on one disk");
    fs::create_dir(&log).expect("the name is free");
    hang_up(&up);
    let told = up.error_line();
    assert!(told.ends_with("node.log: is a folder, and no file. The log goes on in the file that was open"), "{told}");
    up.advance(5);
    up.interrupt();
    assert_eq!(heights(&old), [2, 3, 4, 5, 6]);
}
