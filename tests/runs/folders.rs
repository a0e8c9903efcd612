//! A testnet that is kept in a folder: it goes on where it was, whatever ended it, and damage is named.

use crate::{
    checkpoints::kills_or,
    support::{dposlab, root, run},
    testnet::Up,
};
use dposlab::{
    actors::{NodeId, SimTime},
    files::segments::{Log, Records},
    report::session::{
        Session,
        folder::{Folder, FolderWriter, OpenFolder, Sync},
    },
    scenario::{FaultDesk, Scenario, run::among_actors},
    sim::{SeedTree, Stage},
};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
};

const FIVE: [&str; 4] = ["--delegates", "5", "--seed", "3"];

/// A folder of its own, and the arguments of a testnet that is kept in it.
pub struct DataFolder(tempfile::TempDir);

impl DataFolder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for temporary files"))
    }

    pub fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn text(&self) -> String {
        self.data().display().to_string()
    }

    pub fn start(&self, more: &[&str]) -> Up {
        Up::start(&[&FIVE[..], &["--data-dir", &self.text()], more].concat())
    }

    /// One that is told of files that may not grow by an error and not by a signal, and whose standard error can be read.
    fn start_watched(&self, pace: &str) -> Up {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dposlab")]);
        shell.args(["up", "--json", "--port", "0", "--pace", pace, "--data-dir", &self.text()]).args(FIVE);
        Up::begun(shell.stderr(Stdio::piped()))
    }

    /// The message of a command that is to be refused.
    fn refused(&self, more: &[&str]) -> String {
        let output = run(&[&["up", "--port", "0", "--pace", "manual", "--data-dir", &self.text()], more].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        error
    }

    fn segment(&self) -> PathBuf {
        self.data().join("log/00000001.log")
    }

    fn checkpoints(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.data()).expect("it is there").map(|entry| entry.expect("an entry").path());
        files.filter(|path| path.display().to_string().contains("/checkpoint-")).collect()
    }
}

/// Without a chance to do anything more.
pub fn kill(mut up: Up) {
    up.kill();
}

pub fn posted(up: &Up, path: &str, body: &Value) -> Value {
    let (status, body) = up.post(path, body);
    assert!(status < 300, "{path}: {status} {body}");
    body["data"].clone()
}

/// All that clients see of a testnet.
fn seen(up: &Up) -> Value {
    let lab: Value = serde_json::from_slice(&up.bytes("/lab")).expect("JSON");
    json!({
        "blocks": up.get("/blocks?limit=100")["data"],
        "wallets": up.get("/wallets?limit=100")["data"],
        "pool": up.get("/transactions/unconfirmed")["data"],
        "time": lab["data"]["nowMicros"],
        "pace": lab["data"]["pace"],
        "nodes": lab["data"]["nodes"],
        "faults": lab["data"]["faults"],
        "snapshots": lab["data"]["snapshots"],
    })
}

/// Some of everything that changes a testnet.
fn morning(up: &Up) {
    up.advance(12);
    posted(up, "/lab/faucet", &json!({"recipient": up.ready["accounts"][0]["address"], "amount": "7"}));
    posted(up, "/lab/snapshots", &json!({"name": "early"}));
    up.advance(6);
    posted(up, "/lab/faults", &json!({"kind": "offline", "delegates": ["genesis_2"]}));
    up.advance(9);
    posted(up, "/lab/reorg", &json!({"depth": 2, "transactions": "return"}));
    posted(up, "/lab/accounts", &json!({"count": 2, "balance": "500000000"}));
}

fn evening(up: &Up) -> Value {
    let before = seen(up);
    up.advance(7);
    let fresh = posted(up, "/lab/accounts", &json!({"count": 1, "balance": "500000000"}));
    up.advance(3);
    let after = seen(up);
    let early = before["snapshots"][0]["id"].as_u64().expect("there is one");
    let text = |path: &str| String::from_utf8(up.bytes(path)).expect("text");
    let file = text(&format!("/lab/snapshots/{early}/file"));
    let recorded = text("/lab/recording").lines().map(without_digest).collect::<Vec<_>>();
    posted(up, &format!("/lab/snapshots/{early}/revert"), &json!({}));
    up.advance(5);
    let end = seen(up);
    posted(up, "/lab/snapshots", &json!({"name": "late"}));
    json!([before, fresh, after, end, file, recorded])
}

/// A client comes before anything else happens, then asks for all that came in: the file of a snapshot, and a recording.
fn night(up: &Up) -> Value {
    posted(up, "/lab/faucet", &json!({"recipient": up.ready["accounts"][0]["address"], "amount": "8"}));
    let text = |path: &str| String::from_utf8(up.bytes(path)).expect("text");
    let late = seen(up)["snapshots"].as_array().and_then(|all| all.last()?["id"].as_u64()).expect("there is one");
    let recorded = text("/lab/recording").lines().map(without_digest).collect::<Vec<_>>();
    json!([text(&format!("/lab/snapshots/{late}/file")), recorded])
}

fn without_snapshots(seen: &Value) -> Value {
    let mut seen = seen.clone();
    seen["snapshots"].take();
    seen
}

/// A line of a recording. What came in before the process began has no digest.
fn without_digest(line: &str) -> Value {
    let mut line: Value = serde_json::from_str(line).expect("JSON");
    line.as_object_mut().expect("an object").remove("digest");
    line
}

#[test]
fn what_is_kept_goes_on_as_if_nothing_had_ended_it() {
    let expected = {
        let up = Up::start(&[&FIVE[..], &["--pace", "manual"]].concat());
        morning(&up);
        let evening = evening(&up);
        (evening, night(&up))
    };
    let (expected, at_night) = expected;
    assert!(expected[0]["faults"][0].is_object() && expected[0]["snapshots"][0].is_object(), "{expected}");
    let lines = expected[5].as_array().expect("a list");
    assert!(lines.iter().filter(|line| line["came"].get("submit").is_some()).count() >= 3, "{expected}");
    for stage in ["inline", "ractor"] {
        for end in [kill as fn(Up), |up| drop(up.interrupt())] {
            let place = DataFolder::new();
            let begun = place.start(&["--pace", "manual", "--stage", stage]);
            morning(&begun);
            end(begun);
            let again = place.start(&["--pace", "manual", "--stage", stage]);
            assert_eq!(evening(&again), expected, "{stage}");
            end(again);
            let last = place.start(&["--pace", "manual", "--stage", stage]);
            let after = seen(&last);
            assert_eq!(without_snapshots(&after), without_snapshots(&expected[3]), "after going back, too");
            assert_eq!(night(&last), at_night, "{stage}");
        }
    }
}

/// A testnet that begins where a snapshot was taken is kept from there: its next start is from a checkpoint, which knows of all
/// that came in before.
#[test]
fn what_begins_at_a_snapshot_is_kept_with_all_that_came_in_before() {
    let (first, place) = (Up::start(&[&FIVE[..], &["--pace", "manual"]].concat()), DataFolder::new());
    morning(&first);
    posted(&first, "/lab/snapshots", &json!({"name": "taken along"}));
    let id = seen(&first)["snapshots"].as_array().expect("a list").len();
    let file = place.0.path().join("snapshot");
    fs::write(&file, first.bytes(&format!("/lab/snapshots/{id}/file"))).expect("it can be written");
    drop(first);
    let start = || {
        let from = file.display().to_string();
        Up::start(&["--from", &from, "--data-dir", &place.text(), "--pace", "manual"])
    };
    let up = start();
    up.advance(3);
    let recording = |up: &Up| {
        let text = String::from_utf8(up.bytes("/lab/recording")).expect("text");
        text.lines().map(without_digest).collect::<Vec<_>>()
    };
    let before = (seen(&up), recording(&up));
    assert!(before.1.len() > 4, "{before:?}");
    drop(up.interrupt());
    assert!(place.data().join("checkpoint-1").is_file(), "it can be written");
    let up = start();
    assert_eq!((seen(&up), recording(&up)), before);
}

/// The pace that somebody has set counts for more than that of the command, and only the last one.
#[test]
fn the_pace_that_was_set_is_kept() {
    let place = DataFolder::new();
    let pace = |up: &Up| serde_json::from_slice::<Value>(&up.bytes("/lab/pace")).expect("JSON")["data"]["pace"].clone();
    let up = place.start(&["--pace", "manual"]);
    assert_eq!(pace(&up), "manual");
    for set in [json!("on-demand"), json!(0.5)] {
        posted(&up, "/lab/pace", &json!({ "pace": set }));
    }
    kill(up);
    let up = place.start(&["--pace", "manual"]);
    assert_eq!(pace(&up), 0.5);
    posted(&up, "/lab/pace", &json!({"pace": "manual"}));
    kill(up);
    assert_eq!(pace(&place.start(&["--speed", "max"])), "manual");
}

/// At fifty instants, or as many as `DPOSLAB_KILLS` says: whatever was answered before is there again, and the chain is never shorter than it was told to be.
#[test]
#[ignore = "long: CI runs it"]
fn whoever_kills_it_whenever_loses_nothing_that_was_answered() {
    let place = DataFolder::new();
    let mut random = ChaCha8Rng::seed_from_u64(28);
    let mut blocks: BTreeMap<u64, Value> = BTreeMap::new();
    let (mut transactions, mut snapshots): (Vec<Value>, usize) = (Vec::new(), 0);
    for turn in 0..kills_or(50) {
        let up = place.start(&["--speed", "2000"]);
        println!("start {turn} at height {}", up.height());
        let last = |blocks: &BTreeMap<u64, Value>| blocks.last_key_value().map_or(0, |(height, _)| *height);
        assert!(up.height() >= last(&blocks), "{} after {}", up.height(), last(&blocks));
        for height in blocks.keys().copied().collect::<Vec<_>>().choose_multiple(&mut random, 3) {
            assert_eq!(up.get(&format!("/blocks/{height}"))["data"]["id"], blocks[height]);
        }
        for id in transactions.iter().rev().take(20) {
            let id = id.as_str().expect("an id");
            let is_at = |path: &str| ureq::get(format!("{}/{path}/{id}", up.api())).call().is_ok();
            // In this order: it may come into a block meanwhile.
            assert!(is_at("transactions/unconfirmed") || is_at("transactions"), "{id}");
        }
        let lab: Value = serde_json::from_slice(&up.bytes("/lab/snapshots")).expect("JSON");
        assert_eq!(lab["data"].as_array().map(Vec::len), Some(snapshots));
        for _ in 0..random.random_range(0..12) {
            match random.random_range(0..6) {
                0 => {
                    posted(&up, "/lab/snapshots", &json!({}));
                    snapshots += 1;
                }
                1 if up.height() > 1 => {
                    let to = &up.ready["accounts"][0]["address"];
                    let paid = posted(&up, "/lab/faucet", &json!({"recipient": to, "amount": "7"}));
                    transactions.extend(paid["transactions"].as_array().expect("a list").clone());
                }
                _ => {
                    let tip = up.get("/blockchain")["data"]["block"].clone();
                    blocks.insert(tip["height"].as_u64().expect("a height"), tip["id"].clone());
                }
            }
        }
        kill(up);
    }
    assert!(blocks.len() > 50 && transactions.len() > 10 && snapshots > 10, "it was really used");
}

/// Hears posts, and answers them while its gate is open.
pub struct Receiver {
    pub url: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let (heard, gate) = (Arc::default(), Arc::new((Mutex::new(true), Condvar::new())));
        let receiver = Self { url, heard, gate };
        let (heard, gate) = (receiver.heard.clone(), receiver.gate.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(post) = read_post(&stream) else { continue };
                heard.lock().expect("nobody panics").push(post);
                let (is_open, changed) = &*gate;
                drop(changed.wait_while(is_open.lock().expect("nobody panics"), |is_open| !*is_open));
                // A process that was killed does not hear the answer.
                let _gone = (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        receiver
    }

    pub fn open(&self, open: bool) {
        *self.gate.0.lock().expect("nobody panics") = open;
        self.gate.1.notify_all();
    }

    pub fn heard(&self) -> Vec<(String, Value)> {
        self.heard.lock().expect("nobody panics").clone()
    }
}

/// The id and the body of a post that came whole; its place by the header is added to the body as `header`.
fn read_post(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut id, mut header, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("webhook-id", value)) => value.clone_into(&mut id),
            Some(("webhook-sequence", value)) => value.clone_into(&mut header),
            Some(("content-length", value)) => length = value.parse().ok()?,
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut body: Value = serde_json::from_slice(&body).ok()?;
    body["header"] = header.into();
    Some((id, body))
}

/// Killed with posts under way, it makes them after its next start: every block is posted at least once, and a post that is
/// made again has the id that it had.
#[test]
fn every_event_reaches_its_webhook_however_often_the_process_is_killed() {
    let (place, receiver) = (DataFolder::new(), Receiver::start());
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let up = place.start(&["--pace", "manual"]);
    up.advance(2);
    let first = up.height() + 1;
    let hook = json!({"event": "block.applied", "target": receiver.url, "conditions": []});
    let (status, created) = up.post("/api/webhooks", &hook);
    assert_eq!(status, 201, "{created}");
    kill(up);
    for round in 0..12 {
        receiver.open(true);
        let up = place.start(&["--pace", "manual"]);
        receiver.open(false);
        up.advance(random.random_range(6..20));
        if round % 4 == 3 {
            let tip = || up.get("/blockchain")["data"]["block"]["id"].clone();
            let left = tip();
            posted(&up, "/lab/reorg", &json!({"depth": 2, "transactions": "return"}));
            assert_ne!(tip(), left, "blocks that were posted are left for others");
        }
        let (known, height) = (receiver.heard().len() as u64, up.height());
        if random.random_bool(0.8) {
            kill(up);
        } else {
            receiver.open(true);
            drop(up.interrupt());
            assert!(receiver.heard().len() as u64 > known, "what is under way is delivered before it ends");
        }
        assert!(round > 0 || known < height - first, "{known} of {height}: most wait for the next start");
    }
    receiver.open(true);
    let up = place.start(&["--pace", "manual"]);
    let lane =
        || serde_json::from_slice::<Value>(&up.bytes("/lab/webhooks")).expect("JSON")["data"]["webhooks"][0].clone();
    while lane()["queued"] != 0 {
        thread::yield_now();
    }
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let mut order: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for (id, body) in receiver.heard() {
        let block = format!("{} {}", body["data"]["height"], body["data"]["id"]);
        let of_it = ids.entry(block.clone()).or_insert_with(|| id.clone());
        assert_eq!(*of_it, id, "one id for {block}");
        // Also one that waited on the disk has its place in its header.
        let place = |name: &str| body["sequence"][name].as_u64().expect("a number");
        let (event, post) = (place("event"), place("post"));
        assert_eq!(body["header"], format!("{event}.{post}"), "{block}");
        let told = order.entry((event, post)).or_insert_with(|| block.clone());
        assert_eq!(*told, block, "one place for {block}, in each start of the process");
    }
    assert_eq!(order.len(), ids.len());
    // In the order of the places, the last block of each height is the one that the chain kept.
    let last: BTreeMap<String, &String> =
        order.values().map(|block| (block.split(' ').next().unwrap_or_default().to_owned(), block)).collect();
    for (height, block) in last {
        assert_eq!(*block, format!("{height} {}", up.get(&format!("/blocks/{height}"))["data"]["id"]));
    }
    let distinct: BTreeSet<&String> = ids.values().collect();
    assert_eq!(distinct.len(), ids.len(), "each post has an id of its own");
    for height in first..=up.height() {
        let block = up.get(&format!("/blocks/{height}"))["data"]["id"].clone();
        assert!(ids.contains_key(&format!("{height} {block}")), "block {height} was posted");
    }
}

/// A block is in the log before those see it who tell clients, though nobody has noted yet where the network stands.
#[test]
fn a_block_that_a_client_may_know_is_there_again() {
    let text = "version = 1\ndescription = \"d\"\nrounds = 9\n[network]\ndelegates = 5\n";
    let scenario = Scenario::parse(text, Path::new("a test")).expect("it is one");
    let (place, seeds) = (DataFolder::new(), SeedTree::new(1));
    let folder = Folder::new(place.0.path());
    let begin = || {
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let session = Session::new(1, &scenario, 1, plan.tree.config());
        let desk = FaultDesk::new(&plan, testnet);
        let opened = among_actors(folder.open(&session, &plan, &desk, Vec::new())).expect("it can be used");
        (plan, opened)
    };
    let (plan, OpenFolder { log, settling, inputs, resumed, .. }) = begin();
    assert!(resumed.is_none());
    folder.becomes_testnet().expect("it can be written to");
    let writer = FolderWriter::new(log, settling, inputs, Sync::Never, &plan, 1);
    let mut stage = Stage::inline(&plan, vec![Box::new(writer)]);
    let end = SimTime::from_micros(100_000_000);
    while among_actors(stage.step(end)).expect("nobody dies") {}
    let known = stage.world().tips().of(NodeId(0)).id();
    drop(stage);
    let (_, opened) = begin();
    let resumed = opened.resumed.expect("there is a log");
    assert_eq!(resumed.moment.tips().of(NodeId(0)).id(), known);
    assert!(resumed.moment.tips().of(NodeId(0)).height().0 > 5);
}

#[test]
fn another_testnet_is_refused_by_name_and_nothing_is_written_over() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    up.advance(3);
    let height = up.height();
    drop(up.interrupt());
    let log = fs::read(place.segment()).expect("it is there");
    for (other, key, found, asked) in [
        (&["--delegates", "5", "--seed", "4"][..], "seed", "found 3", "says 4"),
        (&["--delegates", "6", "--seed", "3"], "scenario", "'delegates = 5'", "'delegates = 6'"),
        (&["--delegates", "5", "--seed", "3", "--start", "800"], "start", "found 1", "says 100"),
        (&["--delegates", "5", "--seed", "3", "--set", "network.loss=0.5"], "scenario", "'loss = 0.0'", "'loss = 0.5'"),
    ] {
        let error = place.refused(other);
        for told in [&format!("{}/network.json", place.text()), &format!("key '{key}'"), found, asked] {
            assert!(error.contains(told), "{told}: {error}");
        }
    }
    let running = place.start(&["--pace", "manual"]);
    assert!(place.refused(&FIVE).contains("another process"), "two at a time");
    drop(running);
    let both = run(&["up", "--data-dir", "x", "--record", "y"]);
    assert_eq!(both.status.code(), Some(2));
    let manifest = place.data().join("network.json");
    let version = fs::read_to_string(&manifest).expect("text").replace(env!("CARGO_PKG_VERSION"), "0.0.9");
    let file = place.0.path().join("chain").display().to_string();
    assert!(run(&["export", &place.text(), "--out", &file]).status.success());
    // Another version may have a key that this one does not know.
    fs::write(&manifest, version.replacen('{', "{\"more\": 1,", 1)).expect("it can be written");
    let error = place.refused(&FIVE);
    for told in ["was begun by dposlab 0.0.9", "export DIR --out FILE", "--chain FILE"] {
        assert!(error.contains(told), "{told}: {error}");
    }
    assert_eq!(Up::start(&[&FIVE[..], &["--pace", "manual", "--chain", &file]].concat()).height(), height);
    fs::remove_file(&manifest).expect("it is there");
    let error = place.refused(&FIVE);
    assert!(error.contains("network.json: is missing, though"), "{error}");
    assert_eq!(fs::read(place.segment()).expect("it is there"), log);
}

/// Set to add a folder of this build to those that later ones must open, under this name.
const ADD_KEPT: &str = "ADD_KEPT";

/// Each folder of an earlier build opens and goes on, from its checkpoint and without one, and its chain can be exported. A checkpoint of
/// another form is passed over by its mark, and not because its bytes happen to make no sense.
#[test]
fn a_folder_of_an_earlier_build_opens() {
    let all = root().join("tests/data/kept");
    if let Some(name) = env::var_os(ADD_KEPT) {
        add_kept(&all.join(name));
    }
    let kept: Vec<PathBuf> =
        fs::read_dir(&all).expect("it is there").map(|entry| entry.expect("it can be read").path()).collect();
    let mut gone_on_from = 0;
    for folder in kept {
        let told = folder.display();
        let expected: Value =
            serde_json::from_slice(&fs::read(folder.join("seen.json")).expect("it is there")).expect("JSON");
        for is_checkpointed in [true, false] {
            let place = DataFolder::new();
            copy(&folder.join("data"), &place.data());
            if !is_checkpointed {
                place.checkpoints().iter().for_each(|file| fs::remove_file(file).expect("it is there"));
            }
            let up = place.start_watched("manual");
            let (mut seen, height) = (seen_of_kept(&up), up.height());
            // The folder does not say at which time it was.
            seen["testnet"]["time"].take();
            up.advance(9);
            assert!(up.height() > height, "{told}");
            let (code, error) = up.fails();
            assert_eq!(code, Some(0), "{error}");
            let passed: Vec<&str> = error.lines().filter(|line| line.contains("is passed over")).collect();
            let by_mark = |line: &&str| line.ends_with("it does not begin as one of this version does");
            assert!(passed.iter().all(by_mark), "give what has another form another mark: {error}");
            gone_on_from += usize::from(is_checkpointed && passed.is_empty());
            assert_eq!(seen, expected, "{told}, with its checkpoint: {is_checkpointed}");
            let exported = run(&["export", &place.text(), "--to", &height.to_string()]);
            let exported = String::from_utf8(exported.stdout).expect("text");
            let last: Value = serde_json::from_str(exported.lines().last().expect("a block")).expect("JSON");
            assert_eq!(last["id"], expected["testnet"]["blocks"][0]["id"], "{told}");
        }
    }
    assert!(gone_on_from > 0, "no kept folder has checkpoints of this mark: {ADD_KEPT}=NAME adds one");
}

/// All that clients see of a testnet, and its webhooks, whose tokens only their makers see.
pub fn seen_of_kept(up: &Up) -> Value {
    json!({ "testnet": seen(up), "webhooks": up.get("/webhooks")["data"] })
}

/// A testnet with something of everything that is kept.
fn add_kept(folder: &Path) {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    morning(&up);
    // Nobody listens there.
    let target = json!({"event": "block.applied", "target": "http://127.0.0.1:9/posts",
                        "conditions": [{"key": "height", "condition": "gt", "value": "20"}]});
    up.post("/api/webhooks", &target);
    posted(&up, "/lab/snapshots", &json!({"name": "late"}));
    up.advance(4);
    posted(&up, "/lab/pace", &json!({"pace": "manual"}));
    let mut seen = seen_of_kept(&up);
    // The folder does not say it.
    seen["testnet"]["time"].take();
    drop(up.interrupt());
    fs::create_dir_all(folder).expect("a folder that is new");
    copy(&place.data(), &folder.join("data"));
    fs::write(folder.join("seen.json"), serde_json::to_vec_pretty(&seen).expect("JSON")).expect("it can be written");
}

/// Copies a folder, but for the index, which a start makes again.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be read");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().expect("it is there").is_dir() {
            true if entry.file_name() == "index" => {}
            true => copy(&source, &target),
            false => drop(fs::copy(&source, &target).expect("there is room")),
        }
    }
}

#[test]
fn damage_is_named_and_what_was_not_whole_is_cut_off() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    morning(&up);
    drop(up.interrupt());
    let whole = fs::read(place.segment()).expect("it is there");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Everywhere: the file's head, records of each kind, their lengths and checksums.
    for _ in 0..40 {
        let mut bytes = whole.clone();
        let at = random.random_range(0..bytes.len());
        bytes[at] ^= random.random_range(1..=255_u8);
        fs::write(place.segment(), &bytes).expect("it can be written");
        let error = place.refused(&FIVE);
        assert!(error.contains("00000001.log: is damaged at byte"), "byte {at}: {error}");
        assert_eq!(fs::read(place.segment()).expect("it is there"), bytes, "it is left as it is");
    }
    for _ in 0..10 {
        // With less than a record of it the log is refused.
        let kept = random.random_range(2_000..whole.len());
        fs::write(place.segment(), &whole[..kept]).expect("it can be written");
        let up = place.start(&["--pace", "manual"]);
        up.advance(2);
        assert!(up.height() >= 2, "it goes on");
    }
    fs::write(place.segment(), &whole).expect("it can be written");
    fs::rename(place.segment(), place.data().join("log/00000002.log")).expect("it can be moved");
    assert!(place.refused(&FIVE).contains("00000001.log: is missing"));
    fs::remove_dir_all(place.data()).expect("it is there");
    fs::write(place.data(), "no folder").expect("it can be written");
    assert!(place.refused(&FIVE).contains(&place.text()));
}

#[test]
fn a_full_disk_stops_it_before_anything_is_acknowledged_that_is_not_kept() {
    let place = DataFolder::new();
    let up = place.start_watched("manual");
    up.advance(4);
    let tip = up.get("/blockchain")["data"]["block"].clone();
    let written = fs::metadata(place.segment()).expect("it is there").len();
    let limit = Rlimit { current: Some(written + 40), maximum: None };
    prlimit(Some(Pid::from_child(up.child())), Resource::Fsize, limit).expect("it is a process of this user");
    let to = up.ready["accounts"][0]["address"].clone();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("{}/lab/faucet", up.api().trim_end_matches("/api"));
    let paid = agent.post(url).send_json(json!({"recipient": to, "amount": "7"}));
    // The server ends, too; it may still answer.
    assert!(paid.is_err() || paid.is_ok_and(|paid| paid.status().as_u16() >= 500), "it is not done");
    let (code, error) = up.ends();
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("00000001.log: File too large") && error.contains("the testnet was stopped"), "{error}");
    assert_eq!(fs::metadata(place.segment()).expect("it is there").len(), written, "nothing of it");
    let again = place.start(&["--pace", "manual"]);
    assert_eq!(again.get("/blockchain")["data"]["block"], tip);
    assert_eq!(again.get("/transactions/unconfirmed")["meta"]["totalCount"], 0);
}

/// However little room is left: what was answered with success is there after the next start.
#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let faucet = |up: &Up| json!({"recipient": up.ready["accounts"][0]["address"], "amount": "7"});
    for (pace, path, body) in [
        ("manual", "/lab/advance", Some(json!({"slots": 5}))),
        ("manual", "/lab/reorg", Some(json!({"depth": 3}))),
        ("on-demand", "/lab/faucet", None),
    ] {
        let body = |up: &Up| body.clone().unwrap_or_else(|| faucet(up));
        let tip = |up: &Up| up.get("/blockchain")["data"]["block"].clone();
        let begin = |place: &DataFolder| {
            let up = place.start_watched(pace);
            up.advance(6);
            up
        };
        let place = DataFolder::new();
        let usual = begin(&place);
        posted(&usual, path, &body(&usual));
        let (expected, mut answered) = (tip(&usual), 0);
        let rooms = [0, 40, 200, 400, 700, 1_000, 1_500, 100_000];
        for room in rooms {
            let place = DataFolder::new();
            let mut up = begin(&place);
            let written = fs::metadata(place.segment()).expect("it is there").len();
            let limit = Rlimit { current: Some(written + room), maximum: None };
            prlimit(Some(Pid::from_child(up.child())), Resource::Fsize, limit).expect("it is a process of this user");
            let url = format!("{}{path}", up.api().trim_end_matches("/api"));
            let is_done = agent.post(url).send_json(body(&up)).is_ok_and(|done| done.status().as_u16() < 300);
            up.kill();
            answered += usize::from(is_done);
            let again = place.start(&["--pace", "manual"]);
            assert!(!is_done || tip(&again) == expected, "{path} with room for {room} bytes");
        }
        assert!((1..rooms.len()).contains(&answered), "{path}: {answered} were answered");
    }
}

/// A post that there was no room to write down is written down before anything after it: whatever happens then, it is made.
#[test]
fn a_post_that_could_not_be_written_down_is_not_lost() {
    let (place, receiver) = (DataFolder::new(), Receiver::start());
    let mut up = place.start_watched("manual");
    up.advance(2);
    let first = up.height() + 1;
    for event in ["block.applied", "block.forged", "block.received", "round.created", "forger.started"] {
        let hook = json!({"event": event, "target": receiver.url, "conditions": []});
        assert_eq!(up.post("/api/webhooks", &hook).0, 201, "{event}");
    }
    receiver.open(false);
    let posts = place.data().join("webhooks-node-0/posts-1/00000001.log");
    let length = |file: &Path| fs::metadata(file).expect("it is there").len();
    while length(&posts) < length(&place.segment()) + 4_000 {
        up.advance(5);
        assert!(up.height() < 500, "{} and {} bytes", length(&posts), length(&place.segment()));
    }
    let limit = |up: &Up, bytes: Option<u64>| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(up.child())), Resource::Fsize, limit).expect("it is a process of this user");
    };
    limit(&up, Some(length(&posts) + 100));
    up.advance(2);
    let lost = up.height();
    while !up.log().contains("cannot be kept") {
        thread::yield_now();
    }
    limit(&up, None);
    up.advance(2);
    let last = up.get("/blockchain")["data"]["block"]["id"].as_str().expect("an id").to_owned();
    while !String::from_utf8_lossy(&fs::read(&posts).expect("it is there")).contains(&last) {
        thread::yield_now();
    }
    up.kill();
    receiver.open(true);
    let up = place.start(&["--pace", "manual"]);
    let queued = || {
        let counts: Value = serde_json::from_slice(&up.bytes("/lab/webhooks")).expect("JSON");
        counts["data"]["webhooks"].as_array().expect("a list").iter().any(|lane| lane["queued"] != 0)
    };
    while queued() {
        thread::yield_now();
    }
    let heard: BTreeSet<u64> = receiver
        .heard()
        .iter()
        .filter(|(_, body)| body["event"] == "block.applied")
        .filter_map(|(_, body)| body["data"]["height"].as_u64())
        .collect();
    let missing: Vec<u64> = (first..=up.height()).filter(|height| !heard.contains(height)).collect();
    assert_eq!(missing, [0_u64; 0], "written down until {lost}");
}

/// The chain of a folder begins another testnet, at any of its heights.
#[test]
fn the_chain_of_a_folder_is_exported_and_another_begins_on_it() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    morning(&up);
    up.advance(10);
    let tip = up.get("/blockchain")["data"]["block"].clone();
    let export = |more: &[&str]| {
        let output = run(&[&["export", &place.text()], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>()
    };
    let lines = export(&[]);
    assert_eq!(lines.last().expect("there are blocks")["id"], tip["id"], "of a testnet that runs");
    let heights = |lines: &[Value]| lines.iter().map(|line| line["height"].as_u64()).collect::<Vec<_>>();
    assert_eq!(heights(&lines), (1..=tip["height"].as_u64().expect("a height")).map(Some).collect::<Vec<_>>());
    assert_eq!(heights(&export(&["--from", "7", "--to", "9"])), [7, 8, 9].map(Some));
    let transactions = |blocks: &[Value]| {
        blocks.iter().map(|block| block["transactions"].as_array().map_or(0, Vec::len)).sum::<usize>()
    };
    assert!(transactions(&lines[1..]) > 0, "there are some behind genesis");
    let file = place.0.path().join("chain.jsonl");
    let name = file.to_str().expect("text");
    assert!(run(&["export", &place.text(), "--out", name]).status.success());
    let twice = run(&["export", &place.text(), "--out", name]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("--out"), "{twice:?}");
    let other = Up::start(&[&FIVE[..], &["--pace", "manual", "--chain", name]].concat());
    assert_eq!(other.get("/blockchain")["data"]["block"], tip);
    let kept_too = DataFolder::new();
    let begun = kept_too.start(&["--pace", "manual", "--chain", name]);
    begun.advance(2);
    let tip = begun.get("/blockchain")["data"]["block"].clone();
    drop(begun.interrupt());
    let output = run(&["export", &kept_too.text()]);
    let last = String::from_utf8(output.stdout).expect("text").lines().last().map(str::to_owned);
    assert!(last.expect("there are blocks").contains(tip["id"].as_str().expect("an id")), "what it began on, too");
    let nothing = dposlab().args(["export", &place.0.path().display().to_string()]).output().expect("it ends");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(Path::new(name).exists());
}

/// An input that a kill cuts off is played again at the next start. The blocks that it made then are in the log before anything
/// stands on them, so the start after that finds them.
#[test]
fn a_reorganisation_that_is_cut_off_leaves_no_hole() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    up.advance(120);
    let before = fs::metadata(place.segment()).expect("it is there").len();
    assert_eq!(up.post("/lab/reorg", &json!({"depth": 40})).0, 200);
    drop(up.interrupt());
    let whole = fs::read(place.segment()).expect("it is there");
    // Right behind the input, within a block, and behind some of them. What was written after that never was.
    let input =
        before as usize + 12 + u32::from_le_bytes(whole[before as usize..][..4].try_into().expect("four")) as usize;
    for cut in [input, input + 40, (input + whole.len()) / 2] {
        fs::write(place.segment(), &whole[..cut]).expect("it can be written");
        place.checkpoints().iter().for_each(|file| fs::remove_file(file).expect("it is there"));
        let up = place.start(&["--pace", "manual"]);
        up.advance(2);
        let tip = up.get("/blockchain")["data"]["block"].clone();
        drop(up.interrupt());
        let up = place.start(&["--pace", "manual"]);
        assert_eq!(up.get("/blockchain")["data"]["block"], tip, "cut at {cut} of {}", whole.len());
        drop(up.interrupt());
        let output = run(&["export", &place.text()]);
        let lines = String::from_utf8(output.stdout).expect("text");
        assert_eq!(lines.lines().count() as u64, tip["height"].as_u64().expect("a height"));
    }
}

/// A log that lacks a block, as some that were written before: the start plays its way around it and closes it.
#[test]
fn a_hole_is_closed_and_until_then_named() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    up.advance(60);
    let tip = up.get("/blockchain")["data"]["block"].clone();
    drop(up.interrupt());
    let records = || {
        let mut records = Records::open(&place.data().join("log")).expect("it can be read").expect("it is there");
        std::iter::from_fn(|| records.next_record().expect("it is whole")).collect::<Vec<_>>()
    };
    let is_block = |record: &Vec<u8>| record[0] == b'b';
    let mut all = records();
    let lost = all.iter().enumerate().filter(|(_, record)| is_block(record)).map(|(index, _)| index).nth(20);
    all.remove(lost.expect("there are more"));
    let log = place.data().join("log");
    fs::remove_dir_all(&log).expect("it is there");
    let mut written = Log::create(&log).expect("it can be written");
    all.iter().for_each(|record| _ = written.append(record).expect("there is room"));
    drop(written);
    let output = run(&["export", &place.text()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("the log lacks the block "), "{error}");
    for again in 0..3 {
        let up = place.start_watched("manual");
        assert_eq!(up.get("/blockchain")["data"]["block"], tip, "start {again}");
        let (code, error) = up.fails();
        assert_eq!((code, error.contains("is passed over")), (Some(0), again == 0), "start {again}: {error}");
        let blocks = records().iter().filter(|record| is_block(record)).count();
        assert_eq!(blocks, all.iter().filter(|record| is_block(record)).count() + 1, "one, once");
    }
    assert!(run(&["export", &place.text()]).status.success());
    let height = tip["height"].as_u64().expect("a height");
    for (option, value) in [("--to", height + 1), ("--from", height + 1), ("--from", 0)] {
        let output = run(&["export", &place.text(), option, &value.to_string()]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(&format!("{option} {value}: allowed is 1 to {height}")), "{error}");
    }
}

/// A folder is a testnet once all that it begins with is in it. Killed before, at any byte, the start makes it anew.
#[test]
fn a_first_start_that_is_killed_is_made_anew() {
    let place = DataFolder::new();
    let up = Up::start(&[&FIVE[..], &["--pace", "manual"]].concat());
    morning(&up);
    up.post("/lab/snapshots", &json!({"name": "noon"}));
    let state = place.0.path().join("noon.state");
    fs::write(&state, up.bytes("/lab/snapshots/2/file")).expect("it can be written");
    let tip = up.get("/blockchain")["data"]["block"].clone();
    let from = ["--from", state.to_str().expect("text"), "--pace", "manual"];
    let start = || Up::start(&[&from[..], &["--data-dir", &place.text()]].concat());
    drop(start().interrupt());
    let whole = fs::read(place.segment()).expect("it is there");
    let manifest = place.data().join("network.json");
    let unfinished = place.data().join("network.json.new");
    let told = fs::read(&manifest).expect("it is there");
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for cut in [0, 8, 9].into_iter().chain((0..5).map(|_| random.random_range(8..whole.len()))) {
        fs::remove_dir_all(place.data()).expect("it is there");
        fs::create_dir_all(place.data().join("log")).expect("a folder");
        fs::write(&unfinished, &told).expect("it can be written");
        fs::write(place.segment(), &whole[..cut]).expect("it can be written");
        let up = start();
        assert_eq!(up.get("/blockchain")["data"]["block"], tip, "killed after {cut} bytes");
        drop(up.interrupt());
        assert!(manifest.exists() && !unfinished.exists());
    }
    // What lies there and is no part of it stays.
    let mine = place.data().join("log/mine.txt");
    fs::write(&mine, "mine").expect("it can be written");
    fs::rename(&manifest, &unfinished).expect("it is there");
    place.checkpoints().iter().for_each(|file| fs::remove_file(file).expect("it is there"));
    drop(start().interrupt());
    assert!(mine.exists());
}

/// A log that is gone is no new testnet.
#[test]
fn an_emptied_or_missing_log_is_refused() {
    let place = DataFolder::new();
    let up = place.start(&["--pace", "manual"]);
    up.advance(20);
    drop(up.interrupt());
    for left in [&b""[..], b"dposlog1", b"dposlog1\x01"] {
        fs::write(place.segment(), left).expect("it can be written");
        let error = place.refused(&FIVE);
        assert!(error.contains("/log: holds nothing, though ") && error.contains("/checkpoint-"), "{error}");
        assert_eq!(fs::read(place.segment()).expect("it is there"), left, "it is left as it is");
    }
    fs::remove_file(place.segment()).expect("it is there");
    assert!(place.refused(&FIVE).contains("/log: is missing, though "), "a missing one");
    fs::remove_dir_all(place.data().join("log")).expect("it is there");
    assert!(place.refused(&FIVE).contains("/log: is missing, though "), "nor its folder");
}

/// A webhook for something that never happens: what nobody wants counts as heard, so the next start goes on from a checkpoint.
#[test]
fn a_webhook_for_nothing_makes_no_checkpoint_useless() {
    let place = DataFolder::new();
    let up = place.start_watched("manual");
    let hook = json!({"event": "wallet.vote", "target": "http://127.0.0.1:9/", "conditions": []});
    assert_eq!(up.post("/api/webhooks", &hook).0, 201);
    for _ in 0..3 {
        up.advance(30);
    }
    drop(up.interrupt());
    let up = place.start_watched("manual");
    up.advance(1);
    let (code, error) = up.fails();
    assert!(code == Some(0) && !error.contains("is passed over"), "{error}");
}
