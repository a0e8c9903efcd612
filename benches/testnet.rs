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
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const COLD_STARTS: usize = 20;
const BLOCKS: u32 = 10_000;

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
        let (mut child, url, _out) = start();
        while TcpStream::connect(url.trim_start_matches("http://")).is_err() {}
        get(&url, "/api/node/status");
        times.push(begin.elapsed());
        memory.push(resident_kib(&child));
        stop(&mut child);
    }
    times.sort();
    memory.sort_unstable();
    let (median, slowest) = (times[COLD_STARTS / 2], times[COLD_STARTS - 1]);
    println!("cold start to first answer: median {median:.1?}, slowest {slowest:.1?} of {COLD_STARTS}");
    println!("resident then: median {} MiB", memory[COLD_STARTS / 2] / 1024);
}

fn ten_thousand_blocks() {
    let (mut child, url, out) = start();
    let drain =
        std::thread::spawn(move || out.lines().map_while(Result::ok).filter(|line| line.starts_with("block")).count());
    let begin = Instant::now();
    let advanced: Value = ureq::post(format!("{url}/lab/advance"))
        .send_json(json!({ "slots": BLOCKS }))
        .and_then(|mut response| response.body_mut().read_json())
        .expect("it answers");
    let took = begin.elapsed();
    for height in [2, BLOCKS / 2, BLOCKS + 1] {
        assert_eq!(get(&url, &format!("/api/blocks/{height}"))["data"]["height"], height);
    }
    let total = &get(&url, "/api/blocks?limit=1")["meta"]["totalCount"];
    let last = &get(&url, "/api/blocks/last")["data"]["id"];
    let rate = f64::from(BLOCKS) / took.as_secs_f64();
    println!(
        "{BLOCKS} slots by /lab/advance: {took:.2?}, {rate:.0} blocks a second; {total} blocks in /api, last {last}"
    );
    println!("resident then: {} MiB; {advanced}", resident_kib(&child) / 1024);
    stop(&mut child);
    println!("{} lines of blocks printed", drain.join().expect("it reads to the end"));
}

/// A testnet whose clock stands, and the root of its server.
fn start() -> (Child, String, BufReader<ChildStdout>) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dposlab"))
        .args(["up", "--pace", "manual", "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this bench");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    (child, format!("http://127.0.0.1:{port}"), out)
}

fn get(url: &str, path: &str) -> Value {
    let answer =
        ureq::get(format!("{url}{path}")).config().timeout_global(Some(Duration::from_secs(60))).build().call();
    answer.and_then(|mut response| response.body_mut().read_json()).expect("it answers")
}

/// Resident memory [KiB], as the operating system counts it.
fn resident_kib(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn stop(child: &mut Child) {
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    assert!(child.wait().is_ok_and(|status| status.success()), "it ends cleanly");
}
