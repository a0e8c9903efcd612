//! `dposlab up` as a developer meets it: a process, its output, its API, Ctrl-C.

use crate::support::{dposlab, interrupt, recordings};
use dposlab::protocol::{
    Arktoshi, KeyPair, Nonce, Transaction, Vote,
    crypto::CryptoMode::Real,
    transaction::{Expiration, TransactionBuilder},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Read},
    process::{Child, ChildStdout, Command, Stdio},
};

/// A running testnet; killed when dropped, if it was not stopped.
pub struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub ready: Value,
}

impl Up {
    pub fn start(arguments: &[&str]) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file for the log").into_temp_path();
        Self::begun(dposlab().args(["up", "--json", "--port", "0", "--log"]).arg(&log).args(arguments))
    }

    /// Of a command that prints JSON.
    pub fn begun(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary was built for this test");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next().expect("it says when it is ready").expect("text");
        let ready: Value = serde_json::from_str(&first).expect("--json prints one object a line");
        assert_eq!(ready["event"], "ready");
        Self { child, lines, ready }
    }

    pub fn api(&self) -> &str {
        self.ready["url"].as_str().expect("a URL")
    }

    pub fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.api());
        ureq::get(url).call().expect("it answers").body_mut().read_json().expect("JSON")
    }

    /// Posts to a path below the server's root, and answers status and body.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}{path}", self.api().trim_end_matches("/api"));
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.post(url).send_json(body).expect("it answers");
        (response.status().as_u16(), response.body_mut().read_json().expect("JSON"))
    }

    /// The bytes at a path below the server's root, as they are sent.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let url = format!("{}{path}", self.api().trim_end_matches("/api"));
        ureq::get(url).call().expect("it answers").body_mut().read_to_vec().expect("bytes")
    }

    /// Deletes what is at a path below the server's root, and answers the status.
    pub fn delete_below_root(&self, path: &str) -> u16 {
        let url = format!("{}{path}", self.api().trim_end_matches("/api"));
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.delete(url).call().expect("it answers").status().as_u16()
    }

    /// Puts to a path of the API, and answers status and body, if there is one.
    pub fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.put(format!("{}{path}", self.api())).send_json(body).expect("it answers");
        (response.status().as_u16(), response.body_mut().read_json().unwrap_or_default())
    }

    /// Deletes what a path of the API names, and answers the status.
    pub fn delete(&self, path: &str) -> u16 {
        ureq::delete(format!("{}{path}", self.api())).call().expect("it answers").status().as_u16()
    }

    /// The node's log, as its API shows it.
    pub fn log(&self) -> String {
        let url = format!("{}/node/debug?lines=1000", self.api());
        ureq::get(url).call().expect("it answers").body_mut().read_to_string().expect("text")
    }

    /// Its process.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// The next line of standard error, which was piped. Waits for it.
    pub fn error_line(&mut self) -> String {
        let pipe = self.child.stderr.as_mut().expect("it is piped");
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte: what comes behind the line stays in the pipe.
        while pipe.read(&mut byte).expect("it can be read") == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text")
    }

    pub fn advance(&self, slots: u32) {
        let (status, body) = self.post("/lab/advance", &json!({ "slots": slots }));
        assert_eq!(status, 200, "{body}");
    }

    pub fn height(&self) -> u64 {
        self.get("/node/status")["data"]["now"].as_u64().expect("a height")
    }

    /// Ctrl-C; answers the lines that were printed since the start.
    pub fn interrupt(mut self) -> Vec<Value> {
        interrupt(&self.child);
        let lines = self.lines.by_ref().map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect();
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "Ctrl-C stops it cleanly");
        lines
    }

    /// Ends it wherever it is.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is still there");
        self.child.wait().expect("it ends");
    }

    /// Waits for one that ends by itself; answers as [`Up::fails`].
    pub fn ends(mut self) -> (Option<i32>, String) {
        self.lines.by_ref().for_each(drop);
        let mut error = String::new();
        let told = self.child.stderr.as_mut().expect("it is piped").read_to_string(&mut error);
        told.expect("text");
        (self.child.wait().expect("it ends").code(), error)
    }

    /// Ctrl-C, of one that is to fail; answers its exit code and what it said on standard error, which must be piped.
    pub fn fails(self) -> (Option<i32>, String) {
        interrupt(&self.child);
        self.ends()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

#[test]
fn a_manual_clock_stands_until_told_and_the_same_seed_gives_the_same_chain() {
    let chain = |seed: &str| {
        let up = Up::start(&["--pace", "manual", "--seed", seed]);
        assert_eq!(up.height(), 1);
        up.advance(60);
        assert_eq!(up.height(), 61, "sixty slots, sixty blocks");
        up.advance(1);
        let blocks = up.get("/blocks?limit=100");
        assert_eq!(blocks["meta"]["totalCount"], 62);
        let printed = up.interrupt();
        assert_eq!(printed.iter().filter(|line| line["event"] == "block").count(), 61, "one line a block");
        assert_eq!(printed.last().expect("the end is printed")["event"], "stopped");
        blocks["data"].clone()
    };
    let first = chain("5");
    assert_eq!(first, chain("5"));
    assert_ne!(first, chain("6"));
}

#[test]
fn the_pace_changes_while_it_runs() {
    let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
    let (status, body) = up.post("/lab/pace", &json!({ "pace": "max" }));
    assert_eq!(status, 200, "{body}");
    // As fast as it goes: a few requests later there are blocks.
    let mut asked = 0;
    while up.height() < 100 {
        asked += 1;
        assert!(asked < 100_000, "no blocks after {asked} requests");
    }
    let (status, _) = up.post("/lab/pace", &json!({ "pace": "manual" }));
    assert_eq!(status, 200);
    let height = up.height();
    assert_eq!(up.height(), height, "the clock stands again");
    for bad in [
        json!({ "pace": "quick" }),
        json!({ "pace": -1 }),
        json!({ "pace": 1e-20 }),
        json!({}),
        json!([]),
        json!({ "slots": 1 }),
    ] {
        let (status, body) = up.post("/lab/pace", &bad);
        assert_eq!(status, 422, "{bad}: {body}");
    }
    for bad in [json!({ "slots": 0 }), json!({ "slots": "many" }), json!({}), json!({ "slots": 1e12 })] {
        let (status, body) = up.post("/lab/advance", &bad);
        assert_eq!(status, 422, "{bad}: {body}");
    }
    assert_eq!(up.height(), height, "what was refused did nothing");
}

#[test]
fn a_network_is_loaded_from_the_files_of_another() {
    let up = Up::start(&["--pace", "manual", "--delegates", "7", "--seed", "3"]);
    let crypto = up.get("/node/configuration/crypto")["data"].clone();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let write = |name: &str, content: &Value| {
        fs::write(folder.path().join(name), content.to_string()).expect("it can be written");
    };
    for member in ["genesisBlock", "milestones", "network", "exceptions"] {
        write(&format!("{member}.json"), &crypto[member]);
    }
    let delegates = up.ready["delegates"].as_array().expect("a list");
    let secrets: Vec<&Value> = delegates.iter().map(|delegate| &delegate["passphrase"]).collect();
    write("secrets.json", &json!({ "secrets": secrets }));
    let dir = folder.path().to_str().expect("a path in UTF-8");
    let secrets = folder.path().join("secrets.json");
    let secrets = secrets.to_str().expect("a path in UTF-8");
    let loaded = Up::start(&["--pace", "manual", "--seed", "3", "--network-dir", dir, "--secrets", secrets]);
    assert_eq!(loaded.ready["nethash"], up.ready["nethash"]);
    up.advance(30);
    loaded.advance(30);
    assert_eq!(
        up.get("/blocks")["data"],
        loaded.get("/blocks")["data"],
        "the same keys, the same seed, the same chain"
    );
    assert_eq!(loaded.get("/node/configuration/crypto"), up.get("/node/configuration/crypto"));
}

/// As files of other networks are: numbers as text, no limit of vendor fields, an epoch between two seconds, heights out of order.
#[test]
fn a_network_with_files_in_the_form_of_other_networks_forges() {
    let up = Up::start(&["--pace", "manual", "--delegates", "3", "--seed", "3"]);
    let crypto = up.get("/node/configuration/crypto")["data"].clone();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let write = |name: &str, content: &Value| {
        fs::write(folder.path().join(name), content.to_string()).expect("it can be written");
    };
    let mut milestones = crypto["milestones"].clone();
    let first = milestones[0].as_object_mut().expect("an object");
    first.remove("vendorFieldLength");
    for (key, value) in [
        ("reward", json!("0")),
        ("activeDelegates", json!("3")),
        ("blocktime", json!("8")),
        ("epoch", json!("2021-11-08T13:04:13.688Z")),
    ] {
        first.insert(key.to_owned(), value);
    }
    let list = json!([{ "height": "5", "reward": "200000000" }, milestones[0], { "height": 2, "aip11": true }]);
    let mut network = crypto["network"].clone();
    network.as_object_mut().expect("an object").remove("slip44");
    write("milestones.json", &list);
    write("network.json", &network);
    write("exceptions.json", &json!({ "blocks": [], "transactions": [] }));
    write("genesisBlock.json", &crypto["genesisBlock"]);
    let delegates = up.ready["delegates"].as_array().expect("a list");
    let secrets: Vec<&Value> = delegates.iter().map(|delegate| &delegate["passphrase"]).collect();
    write("secrets.json", &json!({ "secrets": secrets }));
    let dir = folder.path().to_str().expect("a path in UTF-8");
    let secrets = folder.path().join("secrets.json");
    let secrets = secrets.to_str().expect("a path in UTF-8");
    let loaded = Up::start(&["--pace", "manual", "--network-dir", dir, "--secrets", secrets]);
    loaded.advance(9);
    let blocks = loaded.get("/blocks")["data"].clone();
    assert_eq!((&blocks[0]["height"], &blocks[0]["forged"]["reward"]), (&json!(10), &json!("200000000")));
    assert_eq!(blocks[6]["forged"]["reward"], "0", "at height 4");
    assert_eq!(
        blocks[9]["timestamp"],
        json!({ "epoch": 0, "unix": 1_636_376_653, "human": "2021-11-08T13:04:13.688Z" })
    );
    assert_eq!(loaded.get("/node/configuration")["data"]["constants"]["reward"], "200000000", "as the file has it");
}

#[test]
fn the_references_own_preset_forges() {
    let preset = recordings().join("network");
    let dir = preset.to_str().expect("a path in UTF-8");
    let secrets = preset.join("delegates.json");
    let secrets = secrets.to_str().expect("a path in UTF-8");
    let up = Up::start(&["--pace", "manual", "--network-dir", dir, "--secrets", secrets]);
    assert_eq!(up.ready["nethash"], "d9acd04bde4234a81addb8482333b4ac906bed7be5a9970ce8ada428bd083192");
    up.advance(102);
    assert_eq!(up.height(), 103);
    assert_eq!(up.get("/blocks/first")["data"]["id"], "17184958558311101492");
}

#[test]
fn ctrl_c_ends_it_when_nobody_reads_and_in_the_middle_of_a_long_advance() {
    let up = Up::start(&["--speed", "max", "--delegates", "5"]);
    while up.height() < 2_000 {}
    up.interrupt();
    let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
    let url = format!("{}/lab/advance", up.api().trim_end_matches("/api"));
    let advancing = std::thread::spawn(move || {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.post(url).send_json(json!({ "slots": 1_000_000 })).map(|response| response.status().as_u16())
    });
    while up.height() < 100 {}
    up.interrupt();
    let answered = advancing.join().expect("it does not panic");
    assert!(!matches!(answered, Ok(200)), "an advance that was broken off is no success: {answered:?}");
}

#[test]
fn advances_run_one_after_the_other() {
    let up = Up::start(&["--pace", "manual", "--delegates", "5"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| up.advance(50));
        }
    });
    assert_eq!(up.height(), 201);
}

/// All rows of a list, page by page as served.
fn pages(up: &Up, path: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(path) = next {
        let page = up.get(&path);
        next = page["meta"]["next"].as_str().map(str::to_owned);
        pages.push(page);
    }
    pages
}

#[test]
fn a_chain_goes_out_by_the_api_and_in_by_a_file() {
    let network = ["--pace", "manual", "--delegates", "7", "--seed", "3"];
    let up = Up::start(&network);
    up.advance(5);
    let accounts = up.ready["accounts"].as_array().expect("a list").clone();
    let keys =
        |index: usize| KeyPair::from_passphrase(accounts[index]["passphrase"].as_str().expect("a passphrase"), Real);
    let sign = |builder: TransactionBuilder, nonce, index| {
        builder.network(23).nonce(Nonce(nonce)).fee(Arktoshi::coins(60)).sign(&keys(index)).to_json()
    };
    let to = keys(1).public().address(23);
    let delegate = up.ready["delegates"][0]["publicKey"].as_str().expect("a key").parse().expect("a key");
    let lock = || {
        let hash = dposlab::protocol::crypto::sha256(&[7; 32]);
        Transaction::htlc_lock(to, Arktoshi::coins(2), hash, Expiration::from_numbers(2, 900).expect("a height"))
    };
    let more = [
        sign(Transaction::transfer(to, Arktoshi::coins(1)).vendor_field("żółw"), 1, 0),
        sign(Transaction::vote(Vote::For(delegate)), 1, 2),
        sign(lock(), 1, 3),
        sign(Transaction::business_registration("Example Ltd", "https://example.com", None, None), 1, 4),
        sign(Transaction::delegate_registration("somebody_else"), 1, 5),
    ];
    let submit = |transactions: &[Value]| {
        let (_, answer) = up.post("/api/transactions", &json!({ "transactions": transactions }));
        assert_eq!(answer["data"]["accept"].as_array().map(Vec::len), Some(transactions.len()), "{answer}");
    };
    submit(&more);
    up.advance(3);
    let whole = pages(&up, "/transactions?limit=4");
    let expires = sign(Transaction::transfer(to, Arktoshi::coins(1)).expiration(800), 2, 0);
    submit(&[sign(Transaction::transfer(to, Arktoshi::coins(1)), 1, 6), expires.clone()]);
    up.advance(120);
    let blocks = up.get("/blocks?limit=100")["data"].clone();
    let raw = pages(&up, "/transactions?transform=false&limit=4");
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("chain.jsonl");
    let load = |parts: &[&[Value]]| {
        let lines: Vec<String> = parts.iter().copied().flatten().map(Value::to_string).collect();
        fs::write(&file, lines.join("\n")).expect("it can be written");
        let mut arguments = network.to_vec();
        arguments.extend(["--chain", file.to_str().expect("a path in UTF-8")]);
        arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>()
    };
    let again = |parts: &[&[Value]]| {
        let arguments = load(parts);
        let other = Up::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(other.get("/blocks?limit=100")["data"], blocks);
        assert_eq!(other.get("/wallets?limit=100")["data"], up.get("/wallets?limit=100")["data"]);
        other.advance(2);
        assert_eq!(other.height(), up.height() + 2, "and it goes on");
    };
    again(&[&pages(&up, "/blocks?limit=100"), &raw]);
    let by_rows: Vec<Value> =
        raw.iter().flat_map(|page| page["data"].as_array().expect("rows").clone()).rev().collect();
    again(&[&by_rows, &pages(&up, "/blocks?transform=false&limit=7&orderBy=height:asc")]);
    // Of one that expires, the API's own shape does not say when.
    let shown = pages(&up, "/transactions?limit=4");
    again(&[&pages(&up, "/blocks"), &shown, std::slice::from_ref(&expires)]);
    let refused = |parts: &[&[Value]]| {
        let output = dposlab().arg("up").args(load(parts)).args(["--port", "0"]).output().expect("it ends");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = refused(&[&pages(&up, "/blocks"), &shown]);
    assert!(error.contains("one that expires is whole with transform=false only"), "{error}");
    let error = refused(&[&pages(&up, "/blocks"), &whole]);
    assert!(error.contains("of its 2 transactions, 0 are in the file"), "{error}");
    let error = refused(&[&up.get("/blocks?limit=5")["data"].as_array().expect("rows").clone()]);
    assert!(error.contains("key 'height': found 125, allowed is 2"), "{error}");
    let error = refused(&[&[json!({"height": "none"})]]);
    assert!(error.contains("line 1: found {\"height\":\"none\"}, allowed is a block, a transaction"), "{error}");
}
