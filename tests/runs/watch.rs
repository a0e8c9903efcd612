//! The things that scripts hold on to: the ready file and a free port, and the numbers of events.

use crate::{
    support::{dposlab, root},
    testnet::Up,
};
use serde_json::Value;
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

#[test]
fn a_ready_file_is_there_while_the_testnet_answers_and_says_all_that_the_first_line_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ready.json");
    let file = path.to_str().expect("a path in UTF-8");
    let arguments = ["--pace", "manual", "--delegates", "3", "--api-nodes", "2", "--ready-file", file];
    // As a testnet that was killed leaves it.
    fs::write(&path, "{\"event\":\"ready\",\"url\":\"http://127.0.0.1:1/api\"}\n").expect("it can be written");
    let up = Up::start(&arguments);
    // The line may be read before the file is there, and what was there before is gone.
    let ready: Value = loop {
        if let Ok(text) = fs::read_to_string(&path) {
            break serde_json::from_str(&text).expect("it appears whole");
        }
    };
    assert_eq!(ready, up.ready);
    let ports = ready["urls"].as_array().expect("a list").iter().map(|url| {
        let port = url.as_str().and_then(|url| url.rsplit_once(':')).map(|(_, end)| end.trim_end_matches("/api"));
        port.and_then(|port| port.parse::<u16>().ok()).expect("a port")
    });
    let ports: Vec<u16> = ports.collect();
    assert!(ports.len() == 2 && ports[0] != ports[1] && !ports.contains(&0), "{ports:?}");
    assert_eq!(ready["accounts"].as_array().map(Vec::len), up.ready["accounts"].as_array().map(Vec::len));
    assert!(ready["delegates"][0]["passphrase"].is_string() && ready["pid"].is_u64(), "{ready}");
    assert_eq!(up.height(), 1, "it answers");
    up.interrupt();
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left");
}

/// The recipe of docs/lab.md, word for word, where a testnet that was killed has left its file.
#[test]
fn the_recipe_for_scripts_believes_no_old_file() {
    let page = fs::read_to_string(root().join("docs/lab.md")).expect("it is there");
    let mut blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let recipe = blocks.find(|code| code.contains("--ready-file")).expect("the recipe");
    let (start, ask) = recipe.split_once("curl ").expect("it asks then");
    assert!(ask.contains("jq -r .url ready.json"), "{ask}");
    let program = Path::new(env!("CARGO_BIN_EXE_dposlab")).parent().expect("a folder");
    let path = env::join_paths(
        [program.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").expect("a path"))),
    );
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let stale = "{\"event\":\"ready\",\"pid\":1,\"url\":\"http://127.0.0.1:1/api\"}\n";
        fs::write(folder.path().join("ready.json"), stale).expect("it can be written");
        let script = format!("set -e\n{start}cat ready.json > seen.json\nkill $!\nwait $!\n");
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", path.as_ref().expect("no colon in them"))
            .current_dir(folder.path())
            .output()
            .expect("there is a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let seen = fs::read_to_string(folder.path().join("seen.json")).expect("it was ready");
        let seen: Value = serde_json::from_str(&seen).expect("it appears whole");
        assert_ne!(seen["pid"], 1, "the old file was believed");
        assert_eq!(seen["version"], env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn a_file_of_somebody_else_is_no_ready_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    fs::write(&path, "mine").expect("it can be written");
    let output = dposlab().args(["up", "--port", "0", "--ready-file"]).arg(&path).output().expect("it ends");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("notes.txt: is there already, and no testnet has written it"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "mine");
}

#[test]
fn an_events_number_is_that_of_its_line_in_a_trace_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (recorded, trace) = (folder.path().join("session"), folder.path().join("trace.jsonl"));
    let record = recorded.to_str().expect("a path in UTF-8");
    let up = Up::start(&["--pace", "manual", "--delegates", "3", "--record", record]);
    let address = up.api().trim_start_matches("http://").trim_end_matches("/api").to_owned();
    up.advance(5);
    let mut stream = TcpStream::connect(&address).expect("it listens");
    let request = format!("GET /lab/events?limit=150 HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a text"));
    lines.find(|line| line.starts_with(": the next event is")).expect("it listens");
    up.advance(30);
    let events: Vec<String> = lines.collect();
    up.interrupt();
    let replayed = dposlab().arg("replay").arg(&recorded).arg("--trace").arg(&trace).output().expect("it ends");
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    let trace = fs::read_to_string(&trace).expect("it was written");
    let trace: Vec<&str> = trace.lines().collect();
    let mut compared = 0;
    for pair in events.windows(2) {
        if let (Some(number), Some(data)) = (pair[0].strip_prefix("id: "), pair[1].strip_prefix("data: ")) {
            let number: usize = number.parse().expect("a number");
            assert_eq!(data, trace[number], "event {number}");
            compared += 1;
        }
    }
    assert_eq!(compared, 150);
}

/// The lines of a stream of sixty events, while twenty slots are played.
fn sixty_events(up: &Up, query: &str) -> Vec<String> {
    let address = up.api().trim_start_matches("http://").trim_end_matches("/api").to_owned();
    let mut stream = TcpStream::connect(&address).expect("it listens");
    let request = format!("GET /lab/events?limit=60{query} HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a text"));
    let mut read: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with(": the next event is")).collect();
    up.advance(20);
    read.extend(lines);
    read
}

fn numbers(lines: &[String]) -> Vec<u64> {
    lines.iter().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

/// A reader of an earlier process gets a gap, whatever this process has played by then.
#[test]
fn after_a_restart_no_number_stands_for_another_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let begin =
        || Up::start(&["--pace", "manual", "--delegates", "3", "--data-dir", data.to_str().expect("a path in UTF-8")]);
    let first = begin();
    first.advance(5);
    let last = *numbers(&sixty_events(&first, "")).last().expect("sixty events");
    first.interrupt();
    let second = begin();
    let between = numbers(&sixty_events(&second, ""));
    assert!(between.len() >= 60 && between.iter().all(|number| *number > last), "after {last}: {between:?}");
    let back = sixty_events(&second, &format!("&last_event_id={last}"));
    let gap = back.iter().position(|line| line == "event: gap").expect("the reader is told");
    let data = back[gap..].iter().find(|line| line.starts_with("data: ")).expect("with its numbers");
    assert!(data.contains(&format!("\"after\":{last},")) && data.ends_with("\"missed\":null}"), "{data}");
}

/// The figure counts events of this process, whatever their numbers are.
#[test]
fn after_a_restart_events_are_counted_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let begin =
        || Up::start(&["--pace", "manual", "--delegates", "3", "--data-dir", data.to_str().expect("a path in UTF-8")]);
    let first = begin();
    first.advance(20);
    first.interrupt();
    let second = begin();
    let numbered = numbers(&sixty_events(&second, ""));
    let figures = String::from_utf8(second.bytes("/metrics")).expect("a text");
    let mut counts = figures.lines().filter_map(|line| line.strip_prefix("dposlab_events_total ")?.parse::<f64>().ok());
    let count = counts.next().expect("it is served");
    assert!((60.0..10_000.0).contains(&count) && numbered[0] > 10_000, "{count} from {}", numbered[0]);
}
