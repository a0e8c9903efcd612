//! `dposlab up` as a whole process: time and memory to the first answer, and ten thousand empty blocks.
//!
//! - cold start: from starting the process to the first answered `GET /api/node/status`, twenty times, with the memory
//!   then resident;
//! - ten thousand blocks: `POST /lab/advance` with 51 delegates on the ractor stage, each block forged, signed, sent to
//!   51 peers and verified, and each then there under `/api/blocks/{height}`.
//!
//! Prints figures and asserts none: machines are shared. The chain's last block id is printed as digest of the work.
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const COLD_STARTS: usize = 20;
const BLOCKS: u32 = 10_000;
/// The time that an answer may take before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    cold_starts();
    ten_thousand_blocks();
}

fn cold_starts() {
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        let begin = Instant::now();
        let testnet = Testnet::start();
        testnet.get("/api/node/status");
        times.push(begin.elapsed());
        memory.push(testnet.resident_kib());
        testnet.stop();
    }
    times.sort();
    memory.sort_unstable();
    let (median, slowest) = (times[COLD_STARTS / 2], times[COLD_STARTS - 1]);
    println!("cold start to first answer: median {median:.1?}, slowest {slowest:.1?} of {COLD_STARTS}");
    println!("resident then: median {} MiB", memory[COLD_STARTS / 2] / 1024);
}

fn ten_thousand_blocks() {
    let mut testnet = Testnet::start();
    let out = testnet.out.take().expect("nobody has read it yet");
    let printed = |line: &String| line.starts_with("block");
    let drain = std::thread::spawn(move || out.lines().map_while(Result::ok).filter(printed).count());
    let begin = Instant::now();
    let advanced: Value = ureq::post(format!("{}/lab/advance", testnet.url))
        .send_json(json!({ "slots": BLOCKS }))
        .and_then(|mut response| response.body_mut().read_json())
        .expect("it answers");
    let took = begin.elapsed();
    for height in [2, BLOCKS / 2, BLOCKS + 1] {
        assert_eq!(testnet.get(&format!("/api/blocks/{height}"))["data"]["height"], height);
    }
    let total = &testnet.get("/api/blocks?limit=1")["meta"]["totalCount"];
    let last = &testnet.get("/api/blocks/last")["data"]["id"];
    let rate = f64::from(BLOCKS) / took.as_secs_f64();
    println!(
        "{BLOCKS} slots by /lab/advance: {took:.2?}, {rate:.0} blocks a second; {total} blocks in /api, last {last}"
    );
    println!("resident then: {} MiB; {advanced}", testnet.resident_kib() / 1024);
    testnet.stop();
    println!("{} lines of blocks printed", drain.join().expect("it reads to the end"));
}

/// A testnet whose clock stands. Killed when dropped, if it was not stopped: nothing is left behind.
struct Testnet {
    child: Child,
    /// The root of its server.
    url: String,
    out: Option<BufReader<ChildStdout>>,
}

impl Testnet {
    /// Starts one on a free port, and reads which from what it prints.
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dposlab"))
            .args(["up", "--pace", "manual", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary was built for this bench");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        let url = loop {
            line.clear();
            assert!(out.read_line(&mut line).is_ok_and(|read| read > 0), "it says where its API is");
            if let Some(url) = line.trim().strip_prefix("API ") {
                break url.trim().trim_end_matches("/api").to_owned();
            }
        };
        Self { child, url, out: Some(out) }
    }

    fn get(&self, path: &str) -> Value {
        let request = ureq::get(format!("{}{path}", self.url)).config().timeout_global(Some(PATIENCE)).build();
        request.call().and_then(|mut response| response.body_mut().read_json()).expect("it answers")
    }

    /// Resident memory [KiB], as the operating system counts it.
    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
    }

    fn stop(mut self) {
        let interrupted = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(interrupted.is_ok_and(|status| status.success()));
        assert!(self.child.wait().is_ok_and(|status| status.success()), "it ends cleanly");
    }
}

impl Drop for Testnet {
    fn drop(&mut self) {
        // It has ended already where all went well.
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}
