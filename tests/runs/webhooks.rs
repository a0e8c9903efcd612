//! `dposlab up` with webhooks: several nodes served, a restart, and the example receiver as a process.

use crate::{
    replays::{submit, transfer},
    support::{dposlab, root},
    testnet::Up,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn get(url: &str) -> Value {
    ureq::get(url).call().expect("it answers").body_mut().read_json().expect("JSON")
}

#[test]
fn several_nodes_are_served_each_as_it_sees_the_network() {
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--api-nodes", "3"]);
    up.advance(20);
    let urls = texts(&up.ready["urls"]);
    assert_eq!((urls.len(), urls[0].as_str()), (3, up.api()));
    let chains: Vec<Value> = urls.iter().map(|url| get(&format!("{url}/blockchain"))["data"].clone()).collect();
    assert_eq!(chains[0]["block"]["height"], 21);
    assert!(chains.iter().all(|chain| *chain == chains[0]), "{chains:?}");
    for (index, url) in urls.iter().enumerate() {
        let peers = get(&format!("{url}/peers"))["data"].as_array().expect("a list").clone();
        assert_eq!(peers.len(), 4);
        // Nobody is its own peer. The other served nodes are where their APIs are, and the others nowhere.
        let api = |peer: &Value| peer["ports"]["@arkecosystem/core-api"].as_i64().expect("a number");
        let mut found: Vec<String> = peers
            .iter()
            .filter(|peer| api(peer) > 0)
            .map(|peer| format!("http://{}:{}/api", peer["ip"].as_str().expect("a text"), api(peer)))
            .collect();
        let mut others: Vec<String> = urls.iter().filter(|other| *other != url).cloned().collect();
        found.sort();
        others.sort();
        assert_eq!(found, others, "{peers:?}");
        assert_eq!(peers.iter().filter(|peer| api(peer) == -1).count(), 2, "{peers:?}");
        for peer in peers.iter().filter(|peer| api(peer) == -1) {
            assert!(["198.18.0.4", "198.18.0.5"].iter().any(|ip| peer["ip"] == *ip), "{peer}");
        }
        // A served node still goes by its simulated address, and nobody's own is a peer's.
        let by_ip = |node: usize| ureq::get(format!("{url}/peers/198.18.0.{}", node + 1)).call();
        let next = (index + 1) % 3;
        let shown: Value = by_ip(next).expect("a peer").body_mut().read_json().expect("JSON");
        assert_eq!(format!("http://127.0.0.1:{}/api", api(&shown["data"])), urls[next]);
        assert!(by_ip(index).is_err(), "nobody is its own peer");
        let log = ureq::get(format!("{url}/node/debug?lines=1")).call().expect("it answers");
        assert_eq!(log.status(), 200);
    }
    up.interrupt();
}

#[test]
fn webhooks_are_there_again_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let arguments = ["--pace", "manual", "--delegates", "3", "--data-dir", data.to_str().expect("a text")];
    let up = Up::start(&arguments);
    let wanted = json!({"event": "round.created", "target": "http://127.0.0.1:9/", "conditions": []});
    let (status, created) = up.post("/api/webhooks", &wanted);
    assert_eq!(status, 201, "{created}");
    let second = dposlab().args(["up", "--port", "0"]).args(arguments).output().expect("it ends");
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another process"), "{second:?}");
    up.interrupt();
    let up = Up::start(&arguments);
    let kept = up.get("/webhooks");
    assert_eq!((&kept["data"][0]["id"], kept["data"][0].get("token")), (&created["data"]["id"], None));
    up.interrupt();
}

/// The next post: its body. It is answered with 200.
///
/// # Panics
/// No post has come within a minute, which is a hundred times what one takes: the webhook is deaf.
fn received(listener: &TcpListener) -> Value {
    // On Linux it is how long an accept waits, too.
    let minute = Some(std::time::Duration::from_secs(60));
    socket2::SockRef::from(listener).set_read_timeout(minute).expect("it is a socket");
    let (mut stream, _) = listener.accept().expect("the node posts");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").expect("it reads");
    serde_json::from_slice(&body).expect("JSON")
}

#[test]
fn webhooks_tell_of_a_reorganisation() {
    let [blocks, transactions] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
    for (event, listener) in [("block.reverted", &blocks), ("transaction.reverted", &transactions)] {
        let target = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let (status, body) = up.post("/api/webhooks", &json!({"event": event, "target": target, "conditions": []}));
        assert_eq!(status, 201, "{body}");
    }
    up.advance(6);
    let transfer = transfer(&up, 1);
    submit(&up, std::slice::from_ref(&transfer));
    up.advance(3);
    let (status, done) = up.post("/lab/reorg", &json!({"depth": 4, "transactions": "return"}));
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["data"]["transactions"], json!([{"id": transfer["id"], "became": "returned"}]));
    for reverted in done["data"]["reverted"].as_array().expect("a list") {
        assert_eq!(received(&blocks)["data"]["id"], reverted["id"], "the highest first");
    }
    assert_eq!(received(&transactions)["data"]["id"], transfer["id"]);
    up.interrupt();
}

/// Going back to a snapshot leaves blocks, and going to a later one takes them: webhooks hear of each, in order.
#[test]
fn webhooks_tell_of_a_revert() {
    let [left, taken] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
    let ids = |up: &Up| -> Vec<Value> {
        let blocks = up.get("/blocks?limit=4")["data"].clone();
        blocks.as_array().expect("a list").iter().map(|block| block["id"].clone()).collect()
    };
    up.advance(6);
    assert_eq!(up.post("/lab/snapshots", &json!({})).0, 201);
    up.advance(4);
    assert_eq!(up.post("/lab/snapshots", &json!({})).0, 201);
    let newest_first = ids(&up);
    for (event, listener) in [("block.reverted", &left), ("block.applied", &taken)] {
        let target = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let (status, body) = up.post("/api/webhooks", &json!({"event": event, "target": target, "conditions": []}));
        assert_eq!(status, 201, "{body}");
    }
    assert_eq!(up.post("/lab/snapshots/1/revert", &json!({})).0, 200);
    let reverted: Vec<Value> = (0..4).map(|_| received(&left)["data"]["id"].clone()).collect();
    assert_eq!(reverted, newest_first);
    assert_eq!(up.post("/lab/snapshots/2/revert", &json!({})).0, 200);
    let applied: Vec<Value> = (0..4).map(|_| received(&taken)["data"]["id"].clone()).collect();
    assert_eq!(applied, newest_first.into_iter().rev().collect::<Vec<_>>());
    up.interrupt();
}

#[test]
fn mistakes_are_told_in_a_line() {
    for (arguments, why) in [
        (&["--api-nodes", "4", "--delegates", "3"][..], "--api-nodes 4: the network has 3 nodes"),
        (&["--port", "65535", "--api-nodes", "2"], "from --port 65535 on there are 1 ports"),
        (&["--webhook-targets", "localhost"], "no range of addresses"),
        (&["--rate-limit", "0"], "no limit"),
        (&["--whitelist", "example.com"], "no pattern of addresses"),
        (&["--data-dir", "/dev/null/x"], "--data-dir /dev/null/x"),
    ] {
        let mut command = dposlab();
        command.arg("up").args(arguments);
        if !arguments.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        let output = command.output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_example_receives_events_and_refuses_others() {
    let up = Up::start(&["--pace", "manual", "--delegates", "3"]);
    let built = Path::new(env!("CARGO_BIN_EXE_dposlab")).with_file_name("examples").join("webhook_receiver");
    if !built.exists() {
        let build = ["build", "--example", "webhook_receiver"];
        let status = Command::new(env!("CARGO")).args(build).current_dir(root()).status();
        assert!(status.expect("cargo runs this test").success());
    }
    let mut receiver = Command::new(built)
        .args(["--node", up.api(), "--event", "block.applied", "--count", "2"])
        .args(["--key", "height", "--condition", "between", "--value", r#"{"min":3,"max":6}"#])
        .stdout(Stdio::piped())
        .spawn()
        .expect("examples are built for the tests");
    let mut lines =
        BufReader::new(receiver.stdout.take().expect("it is piped")).lines().map(|line| line.expect("text"));
    assert_eq!(lines.next().as_deref(), Some("waiting for block.applied"));
    let hooks = up.get("/webhooks")["data"].clone();
    let target = hooks[0]["target"].as_str().expect("a text").trim_start_matches("http://").trim_end_matches('/');
    let mut stranger = TcpStream::connect(target).expect("it listens");
    let post = "POST / HTTP/1.1\r\nauthorization: guessed\r\ncontent-length: 2\r\n\r\n{}";
    stranger.write_all(post.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(lines.next().as_deref(), Some("refused a post without the token"));
    up.advance(10);
    for height in [4, 5] {
        let line = lines.next().expect("it is posted");
        let id = up.get(&format!("/blocks/{height}"))["data"]["id"].as_str().expect("a text").to_owned();
        assert!(line.starts_with("block.applied at "), "{line}");
        assert!(line.ends_with(&format!("height {height}, id \"{id}\"")), "{line}");
    }
    assert_eq!(lines.next().as_deref(), Some("done"));
    assert!(receiver.wait().expect("it ends").success());
    assert_eq!(up.get("/webhooks")["data"], json!([]), "it has tidied up");
    let log = ureq::get(format!("{}/node/debug", up.api())).call().expect("it answers");
    let log = log.into_body().read_to_string().expect("text");
    assert!(log.contains("created: block.applied\n") && log.contains("deleted"), "{log}");
    assert!(!log.contains("http://"), "targets are for those who may see webhooks: {log}");
    up.interrupt();
}

#[test]
fn webhooks_change_nothing_in_the_simulation() {
    // One that hangs: the run must neither wait for it nor come out otherwise.
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let target = format!("http://{}/", hanging.local_addr().expect("it is bound"));
    let chain = |hooks: &[&str]| {
        let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
        for event in hooks {
            let (status, body) = up.post("/api/webhooks", &json!({"event": event, "target": target, "conditions": []}));
            assert_eq!(status, 201, "{body}");
        }
        up.advance(100);
        let lines = up.interrupt();
        lines.iter().filter(|line| line["event"] == "block").map(|line| line["id"].clone()).collect::<Vec<_>>()
    };
    let without = chain(&[]);
    assert_eq!(without.len(), 100);
    assert_eq!(chain(&["block.applied", "block.received", "wallet.saved", "round.created"]), without);
}
