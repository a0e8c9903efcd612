//! A testnet that is kept, whoever kills it and however full the disk is, against a model of what it has acknowledged: all that
//! clients saw after the last answer. Between two answers nothing moves, so the next start shows exactly that, or what the one
//! request that was under way makes of it.

use crate::{
    checkpoints::kills_or,
    folders::{DataFolder, copy, kill, posted, seen_of_kept},
    support::dposlab,
    testnet::Up,
};
use dposlab::protocol::{Block, BlockDraft, Height, KeyPair, Milestones, Timestamp, crypto::CryptoMode::Real};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};
use tempfile::TempDir;

/// A request that changes something.
#[derive(Clone, Debug)]
struct Change {
    kind: &'static str,
    method: &'static str,
    path: String,
    body: Value,
}

impl Change {
    fn post(kind: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self { kind, method: "POST", path: path.into(), body }
    }

    /// Any one that fits what is there.
    fn any(random: &mut ChaCha8Rng, up: &Up, seen: &Value) -> Self {
        let testnet = &seen["testnet"];
        let to = &up.ready["accounts"][random.random_range(0..2)]["address"];
        let one_of = |random: &mut ChaCha8Rng, list: &Value| {
            list.as_array().into_iter().flatten().collect::<Vec<_>>().choose(random).map(|one| one["id"].clone())
        };
        let height = height(testnet);
        loop {
            match random.random_range(0..18) {
                0 | 1 if testnet["pace"] == "manual" => {
                    let slots = random.random_range(1..12);
                    return Self::post("advance", "/lab/advance", json!({ "slots": slots }));
                }
                2 => return Self::post("pay", "/lab/faucet", json!({ "recipient": to, "amount": "7" })),
                3 => return Self::post("pay", "/lab/accounts", json!({ "count": 2, "balance": "500000000" })),
                4 => return Self::post("snapshot", "/lab/snapshots", json!({})),
                5 | 6 => {
                    if let Some(id) = one_of(random, &testnet["snapshots"]) {
                        return Self::post("revert", format!("/lab/snapshots/{id}/revert"), json!({}));
                    }
                }
                7 | 8 if height > 4 => {
                    let depth = random.random_range(1..height.min(5));
                    let transactions = *["return", "drop"].choose(random).expect("there are two");
                    return Self::post("reorg", "/lab/reorg", json!({ "depth": depth, "transactions": transactions }));
                }
                9 => {
                    let until = json!({ "after": random.random_range(8..60) });
                    let fault = match random.random_range(0..3) {
                        0 => json!({ "kind": "offline", "delegates": ["genesis_2"], "until": until }),
                        1 => json!({ "kind": "partition", "groups": [[3]], "until": until }),
                        _ => json!({ "kind": "delay", "by_ms": 300, "messages": ["block"], "until": until }),
                    };
                    return Self::post("fault", "/lab/faults", fault);
                }
                10 => {
                    let hook = json!({ "event": "wallet.vote", "target": "http://127.0.0.1:9/", "conditions": [] });
                    return Self::post("hook", "/api/webhooks", hook);
                }
                11 => {
                    if let Some(id) = one_of(random, &seen["webhooks"]) {
                        let path = format!("/api/webhooks/{}", id.as_str().expect("an id"));
                        return Self { kind: "hook", method: "DELETE", path, body: Value::Null };
                    }
                }
                12 => {
                    let pace = [json!("manual"), json!("on-demand")].choose(random).expect("there are two").clone();
                    return Self::post("pace", "/lab/pace", json!({ "pace": pace }));
                }
                13 => return Self::post("chain", "/lab/chains", json!({ "delegates": 1 })),
                14 => {
                    if let Some(id) = one_of(random, &testnet["pool"]) {
                        let path = format!("/lab/pool/{}", id.as_str().expect("an id"));
                        return Self { kind: "drop", method: "DELETE", path, body: Value::Null };
                    }
                }
                15 if testnet["pace"] == "manual" => {
                    let later = random.random_range(0..3);
                    return Self::post("push", "/lab/blocks", block_of_a_client(up, later));
                }
                16 => {
                    let pace = [json!(2000), json!(0.5)].choose(random).expect("there are two").clone();
                    return Self::post("run", "/lab/pace", json!({ "pace": pace }));
                }
                _ => {}
            }
        }
    }

    /// The status it was answered with, if it was.
    fn send(&self, root: &str) -> Option<u16> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{root}{}", self.path);
        let answered = match self.method {
            "POST" => agent.post(url).send_json(&self.body),
            _ => agent.delete(url).call(),
        };
        let mut answered = answered.ok()?;
        // A status without the whole answer may be that of a process that is gone.
        answered.body_mut().read_to_vec().ok()?;
        Some(answered.status().as_u16())
    }

    /// What does not hold of a start after this request was under way. `before` is what was there.
    fn contradicts(&self, before: &Value, after: &Value, up: &Up) -> Option<String> {
        if before == after {
            return None;
        }
        let (was, is) = (&before["testnet"], &after["testnet"]);
        let all = BTreeSet::from(["blocks", "pool", "pace", "faults", "snapshots"]);
        let mut changes = match self.kind {
            "advance" => BTreeSet::from(["blocks", "pool", "faults"]),
            "pay" => BTreeSet::from(["pool"]),
            "snapshot" => BTreeSet::from(["snapshots"]),
            "reorg" => BTreeSet::from(["blocks", "pool"]),
            "revert" => BTreeSet::from(["blocks", "pool", "faults", "snapshots"]),
            "fault" => BTreeSet::from(["faults"]),
            "pace" => BTreeSet::from(["pace", "faults"]),
            "drop" => BTreeSet::from(["pool"]),
            "push" => BTreeSet::from(["blocks", "pool"]),
            _ => BTreeSet::new(),
        };
        // On demand the clock goes on by itself.
        let moves = was["pace"] == "on-demand" || is["pace"] == "on-demand" || self.kind == "run";
        if moves {
            changes.extend(["blocks", "pool", "faults"]);
        }
        // Whoever looked has made the clock stand again.
        if self.kind == "run" {
            changes.insert("pace");
        }
        if let Some(member) = all.difference(&changes).find(|member| was[**member] != is[**member]) {
            return Some(format!("{member} changed"));
        }
        if self.kind != "hook" && before["webhooks"] != after["webhooks"] {
            return Some("webhooks changed".to_owned());
        }
        let (old, new) = (blocks(was), blocks(is));
        // The blocks up to a height are still there.
        let shorter = |to: u64| {
            let lost = old.iter().find(|(height, id)| **height <= to && new.get(height).is_some_and(|new| new != *id));
            lost.map(|(height, _)| format!("block {height} is another"))
                .or((height(is) < to).then(|| format!("the chain ends at {}, below {to}", height(is))))
        };
        let own = match self.kind {
            "reorg" => return shorter(height(was) - self.body["depth"].as_u64().expect("a number")),
            "revert" => {
                let id: Option<u64> = self.path.split('/').nth(3).and_then(|id| id.parse().ok());
                let all = was["snapshots"].as_array().expect("a list");
                let taken = all.iter().find(|one| one["id"].as_u64() == id).expect("it is listed");
                let at = taken["height"].as_u64().expect("a height");
                let is_there = new.get(&at).is_some_and(|id| **id == taken["tip"]) && (moves || height(is) == at);
                return (!is_there).then(|| "it is neither as it was nor as it was at the snapshot".to_owned());
            }
            "snapshot" | "fault" => {
                let list = if self.kind == "snapshot" { "snapshots" } else { "faults" };
                let (old, new) = (ids(was, list), ids(is, list));
                let is_more = new.len() <= old.len() + 1 && old.iter().all(|id| new.contains(id));
                (!is_more).then(|| format!("{list}: {new:?}"))
            }
            "hook" => {
                let list = |seen: &Value| ids(seen, "webhooks");
                let differ = list(before).symmetric_difference(&list(after)).count();
                (differ > 1).then(|| "more than one webhook differs".to_owned())
            }
            _ => (ids(was, "faults") != ids(is, "faults")).then(|| "faults changed".to_owned()),
        };
        let pending = was["pool"].as_array().expect("a list");
        let dropped = self.path.strip_prefix("/lab/pool/");
        let goes = pending.iter().find(|one| one["id"].as_str() == dropped).map(|one| &one["sender"]);
        let gone = pending.iter().find(|one| {
            goes != Some(&one["sender"]) && !is_known(up, one["id"].as_str().expect("an id")) && !is_replaced(up, one)
        });
        own.or(shorter(height(was))).or(gone.map(|one| format!("transaction {one} is gone")))
    }
}

/// All that clients see. Each fault has its number.
fn seen(up: &Up) -> Value {
    let mut seen = seen_of_kept(up);
    let faults: Value = serde_json::from_slice(&up.bytes("/lab/faults")).expect("JSON");
    seen["testnet"]["faults"] = faults["data"].clone();
    seen
}

/// What clients see, once nothing moves any more. On demand the clock goes on behind an answer until what came in is forged; what
/// was pending before may stay pending.
fn seen_at_rest(up: &Up) -> Value {
    // At a pace by the wall clock nothing stands.
    let pace: Value = serde_json::from_slice(&up.bytes("/lab/pace")).expect("JSON");
    if pace["data"]["pace"].is_number() {
        posted(up, "/lab/pace", &json!({ "pace": "manual" }));
    }
    let (mut last, mut equal) = (seen(up), 0);
    while equal < 15 {
        let again = seen(up);
        equal = if again == last { equal + 1 } else { 0 };
        last = again;
        if equal > 0 && (last["testnet"]["pace"] != "on-demand" || last["testnet"]["pool"] == json!([])) {
            break;
        }
    }
    at_rest(last)
}

/// On demand nobody waits for the clock: where exactly it stands, and what its time alone changes, is written down by and by.
fn at_rest(mut seen: Value) -> Value {
    let testnet = &mut seen["testnet"];
    if testnet["pace"] == "on-demand" {
        testnet["time"].take();
        testnet["nodes"].take();
        for fault in testnet["faults"].as_array_mut().expect("a list") {
            *fault = json!({ "id": fault["id"] });
        }
    }
    seen
}

/// Where two values differ, with both.
fn differences(path: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |map: &serde_json::Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            keys.into_iter()
                .flat_map(|key| differences(&format!("{path}/{key}"), &of(one, key), &of(other, key)))
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => (one.iter().zip(other))
            .enumerate()
            .flat_map(|(index, (one, other))| differences(&format!("{path}/{index}"), one, other))
            .collect(),
        _ if one == other => Vec::new(),
        _ => vec![format!("{path}: {one} and {other}")],
    }
}

fn height(testnet: &Value) -> u64 {
    testnet["blocks"][0]["height"].as_u64().expect("a height")
}

fn blocks(testnet: &Value) -> BTreeMap<u64, &Value> {
    let list = testnet["blocks"].as_array().expect("a list").iter();
    list.map(|block| (block["height"].as_u64().expect("a height"), &block["id"])).collect()
}

fn ids(parent: &Value, list: &str) -> BTreeSet<String> {
    parent[list].as_array().expect("a list").iter().map(|one| one["id"].to_string().replace('"', "")).collect()
}

/// Pending or in a block. In this order: it may come into one meanwhile.
fn is_known(up: &Up, id: &str) -> bool {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    ["transactions/unconfirmed", "transactions"].iter().any(|path| {
        let mut answer = agent.get(format!("{}/{path}/{id}", up.api())).call().expect("it answers");
        let body = answer.body_mut().read_to_string().expect("text");
        match answer.status().as_u16() {
            200 => true,
            404 => false,
            status => panic!("{path}/{id}: {status} {body}"),
        }
    })
}

/// Another transaction of the sender took its place. A reorganisation empties pools while messages with what was in them are under
/// way, and funds are paid from the nonce that the pool knows.
fn is_replaced(up: &Up, transaction: &Value) -> bool {
    let wallet = up.get(&format!("/wallets/{}", transaction["sender"].as_str().expect("an address")));
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number");
    number(&wallet["data"]["nonce"]) >= number(&transaction["nonce"])
}

/// The request that hands in a block on the newest one that is shown, signed by the owner of the running slot or of one that comes,
/// at the owner's node, which then forges no other one.
pub fn block_of_a_client(up: &Up, later: u64) -> Value {
    let round: Value = serde_json::from_slice(&up.bytes("/lab/round")).expect("JSON");
    let round = &round["data"];
    let now = round["slotNow"].as_u64().expect("a slot") + later;
    let slots = round["slots"].as_array().expect("a list");
    let Some(slot) = slots.iter().find(|slot| slot["slot"].as_u64() == Some(now)) else { return json!({}) };
    let delegates = up.ready["delegates"].as_array().expect("a list");
    let owner = delegates.iter().find(|one| one["username"] == slot["owner"]).expect("it forges here");
    let number = |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("it is short");
    let milestones = Milestones::testnet();
    let height = Height(number(&round["height"]) + 1);
    let draft = BlockDraft {
        version: milestones.at(height).block.version,
        timestamp: Timestamp(number(&slot["time"])),
        height,
        previous: Some(round["tip"].as_str().and_then(|id| id.parse().ok()).expect("an id")),
        reward: milestones.at(height).reward,
        transactions: Vec::new(),
    };
    let keys = KeyPair::from_passphrase(owner["passphrase"].as_str().expect("a text"), Real);
    let block = Block::forge(draft, &keys, &milestones).to_json(&milestones);
    let lab: Value = serde_json::from_slice(&up.bytes("/lab")).expect("JSON");
    let nodes = lab["data"]["nodes"].as_array().expect("a list");
    let node = nodes.iter().find(|node| node["delegate"] == slot["owner"]).expect("it is on a node");
    json!({ "block": block, "node": node["node"] })
}

/// Some time of the processor, without a clock: up to about a tenth of a second, mostly less.
fn a_while(random: &mut ChaCha8Rng) {
    let exponent = random.random_range(0..18);
    for _ in 0..random.random_range(0..1_u32 << exponent) {
        thread::yield_now();
    }
}

/// How a testnet begins: by itself, where a snapshot of another one was taken, or with a folder that has been in use for long.
struct Begins {
    place: DataFolder,
    arguments: Vec<String>,
    /// What is seen after its first start.
    seen: Value,
    /// The folder that it begins with.
    used: Option<TempDir>,
}

impl Begins {
    fn new(arguments: &[&str]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let begins = Self { place: DataFolder::new(), arguments, seen: Value::Null, used: None };
        let seen = seen_at_rest(&begins.start());
        fs::remove_dir_all(begins.place.data()).expect("it is there");
        Self { seen, ..begins }
    }

    /// With a folder whose first blocks have settled.
    fn settled(arguments: &[&str]) -> Self {
        let mut begins = Self::new(arguments);
        let up = begins.start();
        up.advance(8_000);
        posted(&up, "/lab/snapshots", &json!({}));
        up.advance(8_000);
        begins.seen = seen_at_rest(&up);
        drop(up.interrupt());
        assert!(begins.place.data().join("index").exists(), "its blocks have settled");
        let used = tempfile::tempdir().expect("a folder for temporary files");
        copy(&begins.place.data(), &used.path().join("data"));
        fs::remove_dir_all(begins.place.data()).expect("it is there");
        begins.used = Some(used);
        begins
    }

    fn arguments(&self) -> Vec<String> {
        let data = self.place.data().display().to_string();
        [&self.arguments[..], &["--pace".into(), "manual".into(), "--data-dir".into(), data]].concat()
    }

    /// Makes its folder as it begins, if there is none.
    fn make(&self) {
        if let Some(used) = self.used.as_ref().filter(|_| !self.place.data().exists()) {
            copy(&used.path().join("data"), &self.place.data());
        }
    }

    fn start(&self) -> Up {
        self.make();
        Up::start(&self.arguments().iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// One that is told of files that may not grow by an error and not by a signal.
    fn start_watched(&self) -> Up {
        let mut shell = watched(&[]);
        Up::begun(shell.args(self.arguments()).stderr(Stdio::null()))
    }

    /// Kills its first start somewhere before it is ready, or just after.
    fn killed_start(&self, random: &mut ChaCha8Rng) {
        self.make();
        let mut command = dposlab();
        command.args(["up", "--json", "--port", "0"]).args(self.arguments());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary was built");
        for _ in 0..random.random_range(0..12) {
            a_while(random);
        }
        child.kill().expect("it is there");
        child.wait().expect("it ends");
    }
}

/// The file of a snapshot that a testnet has after some use.
fn snapshot_file(folder: &Path) -> PathBuf {
    let up = Up::start(&["--delegates", "5", "--seed", "3", "--pace", "manual"]);
    up.advance(9);
    posted(&up, "/lab/faucet", &json!({ "recipient": up.ready["accounts"][0]["address"], "amount": "7" }));
    posted(&up, "/lab/reorg", &json!({ "depth": 2 }));
    posted(&up, "/lab/snapshots", &json!({}));
    let file = folder.join("state");
    fs::write(&file, up.bytes("/lab/snapshots/1/file")).expect("it can be written");
    file
}

/// Twenty-five kills, or as many as `DPOSLAB_KILLS` says: of first starts, between requests and in the midst of one, among them
/// reorganisations, ways back to snapshots and advances.
#[test]
#[ignore = "long: CI runs it"]
fn whoever_kills_it_the_next_start_shows_what_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = snapshot_file(folder.path()).display().to_string();
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let plain = ["--delegates", "5", "--seed", "3"];
    let begins = [Begins::new(&plain), Begins::new(&["--from", &file]), Begins::settled(&plain)];
    let (mut kills, mut first, mut amid) = (0, 0, BTreeMap::<&str, (u32, u32)>::new());
    for turn in 0.. {
        if kills >= kills_or(25) {
            break;
        }
        println!("testnet {turn} begins after {kills} kills");
        let begun = &begins[turn % begins.len()];
        for _ in 0..random.random_range(0..4) {
            begun.killed_start(&mut random);
            (kills, first) = (kills + 1, first + 1);
        }
        let (mut expected, mut under_way): (Value, Option<Change>) = (begun.seen.clone(), None);
        for life in 0..12 {
            let up = begun.start();
            let seen = seen_at_rest(&up);
            let told = || {
                let differ = differences("", &expected, &seen).join("\n");
                format!("turn {turn}, life {life}, {under_way:?}, after which these differ:\n{differ}")
            };
            match &under_way {
                // On demand the clock may have gone on after the last look.
                None if expected["testnet"]["pace"] == "on-demand" => {
                    let pays = Change::post("pay", "", Value::Null);
                    assert_eq!(pays.contradicts(&expected, &seen, &up), None, "{}", told());
                }
                None => assert!(seen == expected, "{}", told()),
                Some(change) => {
                    let wrong = change.contradicts(&expected, &seen, &up);
                    assert_eq!(wrong, None, "{}", told());
                    let counts = amid.entry(change.kind).or_default();
                    let is_done = seen != expected;
                    *counts = (counts.0 + 1, counts.1 + u32::from(is_done));
                }
            }
            let (root, mut known) = (up.api().trim_end_matches("/api").to_owned(), seen);
            for _ in 0..random.random_range(0..5) {
                let change = Change::any(&mut random, &up, &known);
                let status = change.send(&root).expect("it runs");
                assert!(status < 500, "{status}: {change:?}");
                known = seen_at_rest(&up);
            }
            under_way = random.random_bool(0.7).then(|| Change::any(&mut random, &up, &known));
            expected = known;
            if let Some(change) = under_way.clone() {
                let sent = thread::spawn(move || change.send(&root));
                a_while(&mut random);
                kill(up);
                // Answered or not, it is among what may have happened. What was answered has happened.
                let answered = sent.join().expect("it does not panic");
                if answered.is_some_and(|status| status < 300) {
                    let up = begun.start();
                    let seen = seen_at_rest(&up);
                    let change = under_way.as_ref().expect("it was sent");
                    let is_seen = seen != expected;
                    // These may leave all as it was.
                    let may_change_nothing = matches!(change.kind, "chain" | "pace" | "run" | "revert" | "reorg");
                    assert!(
                        is_seen || may_change_nothing,
                        "turn {turn}, life {life}: {change:?} was answered and is gone"
                    );
                    kill(up);
                    kills += 1;
                }
            } else {
                kill(up);
            }
            kills += 1;
        }
        fs::remove_dir_all(begun.place.data()).expect("it is there");
    }
    println!("{kills} kills, {first} of first starts; amid requests, and done all the same: {amid:?}");
    assert!(first > 1 && amid.len() > 3, "it was really used: {first} first starts, {amid:?}");
}

/// Cut within what a request wrote to the log, as a kill cuts it: the next start shows what was there before the request
/// or after it.
#[test]
#[ignore = "long: CI runs it"]
fn a_log_that_is_cut_amid_a_request_shows_it_whole_or_not_at_all() {
    let begun = Begins::new(&["--delegates", "5", "--seed", "3"]);
    let segment = |folder: &Path| folder.join("log/00000001.log");
    let to = |up: &Up| up.ready["accounts"][0]["address"].clone();
    let up = begun.start();
    up.advance(7);
    posted(&up, "/lab/snapshots", &json!({}));
    up.advance(2);
    let paid = json!({ "recipient": to(&up), "amount": "7" });
    kill(up);
    let kept = tempfile::tempdir().expect("a folder for temporary files");
    copy(&begun.place.data(), &kept.path().join("data"));
    let mut starts = 0;
    for change in [
        Change::post("pay", "/lab/faucet", paid),
        Change::post("pace", "/lab/pace", json!({ "pace": "on-demand" })),
        Change::post("snapshot", "/lab/snapshots", json!({})),
        Change::post("fault", "/lab/faults", json!({ "kind": "offline", "delegates": ["genesis_2"] })),
        Change::post("revert", "/lab/snapshots/1/revert", json!({})),
        Change::post("reorg", "/lab/reorg", json!({ "depth": 1 })),
        Change::post("advance", "/lab/advance", json!({ "slots": 1 })),
    ] {
        let renew = || {
            fs::remove_dir_all(begun.place.data()).expect("it is there");
            copy(&kept.path().join("data"), &begun.place.data());
        };
        renew();
        let up = begun.start();
        let before = seen_at_rest(&up);
        let written = fs::metadata(segment(&begun.place.data())).expect("it is there").len() as usize;
        let status = change.send(up.api().trim_end_matches("/api")).expect("it runs");
        assert!(status < 300, "{status}: {change:?}");
        let after = seen_at_rest(&up);
        kill(up);
        let whole = fs::read(segment(&begun.place.data())).expect("it is there");
        assert!(whole.len() > written, "{change:?} is in the log");
        // All bytes would take an hour: those about six places of each request.
        let step = (whole.len() - written).div_ceil(6).max(1);
        for cut in (written..=whole.len()).filter(|cut| step == 1 || (cut - written) % step < 2 || *cut == whole.len())
        {
            renew();
            fs::write(segment(&begun.place.data()), &whole[..cut]).expect("it can be written");
            let up = begun.start();
            let seen = seen_at_rest(&up);
            let told = format!("cut at byte {cut} of {written} to {}: {change:?}", whole.len());
            match cut == whole.len() {
                true => assert_eq!(seen, after, "{told}"),
                false => assert_eq!(change.contradicts(&before, &seen, &up), None, "{told}\n{before}\n{seen}"),
            }
            starts += 1;
            kill(up);
        }
    }
    assert!(starts > 50, "{starts} starts");
}

/// The command of a testnet that gets an error and no signal where a file may not grow; first the shell does what is given.
fn watched(first: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    let script = [first, &["trap '' XFSZ", "exec \"$0\" \"$@\""]].concat().join("; ");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_dposlab"), "up", "--json", "--port", "0"]);
    shell
}

/// One whose files may not grow beyond so many bytes from its first instruction on: it waits until that is set.
fn limited(arguments: &[String], bytes: u64) -> (Option<i32>, String, String) {
    let mut shell = watched(&["read go"]);
    shell.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("there is a shell");
    let limit = Rlimit { current: Some(bytes), maximum: None };
    prlimit(Some(Pid::from_child(&child)), Resource::Fsize, limit).expect("it is a process of this user");
    child.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    // Its first line says that it is ready; without one it has ended.
    let (mut first, mut byte) = (Vec::new(), [0]);
    let output = child.stdout.as_mut().expect("it is piped");
    while output.read(&mut byte).expect("it can be read") == 1 && byte != *b"\n" {
        first.push(byte[0]);
    }
    if !first.is_empty() {
        child.kill().expect("it is there");
    }
    let mut error = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("text");
    (child.wait().expect("it ends").code(), String::from_utf8(first).expect("text"), error)
}

/// However long a file may be, a first start ends with the name of one or is ready, and the next one with room shows the
/// testnet as it begins.
#[test]
#[ignore = "long: CI runs it"]
fn a_first_start_on_a_full_disk_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = snapshot_file(folder.path()).display().to_string();
    let mut random = ChaCha8Rng::seed_from_u64(43);
    for arguments in [&["--delegates", "5", "--seed", "3"][..], &["--from", &file]] {
        let begun = Begins::new(arguments);
        drop(begun.start());
        let longest = longest_file(&begun.place.data());
        fs::remove_dir_all(begun.place.data()).expect("it is there");
        let (mut refused, mut ready) = (0, 0);
        for bytes in
            [0, 1, 8, 9, longest, longest - 1].into_iter().chain((0..24).map(|_| random.random_range(0..longest)))
        {
            let (code, first, error) = limited(&begun.arguments(), bytes);
            let told = format!("{arguments:?} with {bytes} bytes: {code:?} {error}");
            match first.is_empty() {
                true => {
                    assert!(matches!(code, Some(1 | 2)), "{told}");
                    assert!(
                        error.contains("File too large") && error.contains(&begun.place.data().display().to_string()),
                        "{told}"
                    );
                    refused += 1;
                }
                false => ready += 1,
            }
            let up = begun.start();
            assert_eq!(seen_at_rest(&up), begun.seen, "{told}");
            drop(up);
            fs::remove_dir_all(begun.place.data()).expect("it is there");
        }
        assert!(refused > 3 && ready > 0, "{refused} were refused, {ready} ready");
    }
}

/// The bytes of the longest file below a folder.
fn longest_file(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read"));
    let lengths = entries.map(|entry| match entry.file_type().expect("it is there").is_dir() {
        true => longest_file(&entry.path()),
        false => entry.metadata().expect("it is there").len(),
    });
    lengths.max().unwrap_or(0)
}

/// Whatever is asked of it, with room for so many more bytes of the log: what was answered with success is there afterwards.
#[test]
#[ignore = "long: CI runs it"]
fn a_full_disk_at_any_write_loses_nothing_that_was_acknowledged() {
    let mut random = ChaCha8Rng::seed_from_u64(47);
    let (mut answered, mut failed) = (BTreeMap::<&str, u32>::new(), BTreeMap::<&str, u32>::new());
    let begun = Begins::new(&["--delegates", "5", "--seed", "3"]);
    for _ in 0..16 {
        let up = begun.start_watched();
        up.advance(6);
        posted(&up, "/lab/snapshots", &json!({}));
        let mut known = seen_at_rest(&up);
        let root = up.api().trim_end_matches("/api").to_owned();
        let written = fs::metadata(begun.place.data().join("log/00000001.log")).expect("it is there").len();
        let limit = Rlimit { current: Some(written + random.random_range(0..1_500)), maximum: None };
        prlimit(Some(Pid::from_child(up.child())), Resource::Fsize, limit).expect("it is a process of this user");
        let mut last = None;
        for _ in 0..12 {
            let change = Change::any(&mut random, &up, &known);
            match change.send(&root) {
                Some(status) if status < 500 => {
                    *answered.entry(change.kind).or_default() += 1;
                    // It may end behind its answer, when it notes where the network stands.
                    let Ok(seen) = panic::catch_unwind(AssertUnwindSafe(|| seen_at_rest(&up))) else {
                        last = Some(change);
                        break;
                    };
                    known = seen;
                }
                _ => {
                    *failed.entry(change.kind).or_default() += 1;
                    last = Some(change);
                    break;
                }
            }
        }
        // It has perhaps ended by itself.
        drop(up);
        let up = begun.start();
        let seen = seen_at_rest(&up);
        match &last {
            None => assert_eq!(seen, known),
            Some(change) => {
                assert_eq!(
                    change.contradicts(&known, &seen, &up),
                    None,
                    "{change:?}\nexpected {known}\nfound    {seen}"
                );
            }
        }
        drop(up);
        fs::remove_dir_all(begun.place.data()).expect("it is there");
    }
    println!("answered {answered:?}, failed {failed:?}");
    assert!(failed.values().sum::<u32>() > 5 && answered.len() > 3, "answered {answered:?}, failed {failed:?}");
}
