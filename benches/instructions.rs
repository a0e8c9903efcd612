//! The number of instructions that six fixed runs take, counted by valgrind's callgrind: busy neighbours do not change it.
//!
//! This program starts itself below callgrind, once for each run, and counts what happens in [`counted_part`]. `-- held` compares
//! the counts with [`RATCHET`], as CI does in the build of its tests. Counts do not tell how long the processor waits for
//! memory or for itself; the bench `simulation` does.
//!
//! No harness is used: gungraun (iai-callgrind) needs a runner installed beside it, of exactly its version.

use dposlab::{
    actors::{NodeId, SimTime},
    api::{ApiContext, View, answer_bytes},
    check::{
        search::{self, Networks},
        swarm::{self, Frame},
    },
    protocol::{Height, crypto::CryptoMode},
    scenario::{Scenario, StageKind, run::on_current_thread},
    sim::{LiveHandle, SeedTree},
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
};

#[path = "support/chain.rs"]
mod chain;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The counts that CI allows, from the root of the repository. Its head says how to change them.
const RATCHET: &str = "tests/data/instructions.toml";

/// The runs by name.
const RUNS: [(&str, fn()); 6] = [
    ("empty-blocks", || play("rounds = 10\n[network]\ngossip = \"once\"")),
    ("gossip-on-the-mesh", || play("rounds = 2\n[network]\ngossip = \"reference\"")),
    ("5000-peers", || {
        play(
            "rounds = 1\n[network]\ndelegates = 4\nrelays = 4996\ngossip = \"reference\"\n\
             topology = { regular = 8 }",
        );
    }),
    ("full-blocks", || {
        play(
            "rounds = 5\n[network]\ndelegates = 4\n\
             [[workload]]\nkind = \"generate\"\nper_second = 20\nwallets = 100",
        );
    }),
    ("drawn-run-of-check", check),
    ("requests-of-the-api", ask),
];

/// The content of the file.
#[derive(Deserialize)]
struct Ratchet {
    /// What `rustc --version` says of the compiler that the counts are of.
    compiler: String,
    /// The share by which a count may differ from the one allowed.
    tolerance: f64,
    /// The same for other compilers.
    tolerance_elsewhere: f64,
    /// By run: the count of the first measurement, and one for each raise since. The last is in force.
    counts: BTreeMap<String, Vec<(u64, String)>>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let word = arguments.first().map_or("", String::as_str);
    if let Some((_, run)) = RUNS.iter().find(|(name, _)| *name == word) {
        run();
        return ExitCode::SUCCESS;
    }
    match (counts(), word) {
        (Err(why), "held") => {
            println!("{why}");
            ExitCode::FAILURE
        }
        (Err(why), _) => {
            println!("Not counted: {why}");
            ExitCode::SUCCESS
        }
        (Ok(counts), "held") => hold(&counts),
        (Ok(counts), _) => {
            counts.iter().for_each(|(name, count)| println!("{name:<22} {count:>13}"));
            ExitCode::SUCCESS
        }
    }
}

/// Counts the instructions of all runs, each in a process of its own.
fn counts() -> Result<Vec<(&'static str, u64)>, String> {
    let runs: Vec<_> = RUNS.iter().map(|(name, _)| (*name, begin(name))).collect();
    runs.into_iter().map(|(name, run)| Ok((name, run.and_then(end).map_err(|why| format!("{name}: {why}"))?))).collect()
}

/// Starts a run. Its environment is empty, for its size moves the stack.
fn begin(name: &str) -> Result<Child, String> {
    let profile = profile_of(name);
    let this = std::env::current_exe().map_err(|why| why.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--toggle-collect=*counted_part*"]);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display())).arg(this).arg(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    valgrind.env_clear().env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped());
    valgrind.spawn().map_err(|why| format!("valgrind does not start: {why}"))
}

/// Waits for a run and reads its count.
fn end(run: Child) -> Result<u64, String> {
    let output = run.wait_with_output().map_err(|why| why.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    count.filter(|count| output.status.success() && *count > 0).ok_or_else(|| format!("it was not counted:\n{said}"))
}

/// The file of a run's profile, which `callgrind_annotate` reads.
fn profile_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.callgrind"))
}

/// Compares the counts with those that the file allows.
fn hold(counts: &[(&str, u64)]) -> ExitCode {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(RATCHET)).expect("the file is there");
    let ratchet: Ratchet = toml::from_str(&text).expect("the file has the form that its head describes");
    let mut wrong = String::new();
    let compiler = compiler();
    let tolerance = if compiler == ratchet.compiler { ratchet.tolerance } else { ratchet.tolerance_elsewhere };
    println!("{compiler}; the counts allowed are of {}: up to {} % more or less", ratchet.compiler, tolerance * 100.0);
    for (name, count) in counts {
        let list = ratchet.counts.get(*name).map_or(&[][..], Vec::as_slice);
        let Some((allowed, _)) = list.last() else {
            writeln!(wrong, "{name}: {RATCHET} has no count for it").expect("a string takes all");
            continue;
        };
        let share = *count as f64 / *allowed as f64 - 1.0;
        println!("{name:<22} {count:>13} of {allowed:>13} {:>+7.2} %", share * 100.0);
        if list.iter().any(|(_, reason)| reason.trim().is_empty()) {
            writeln!(wrong, "{name}: a count in {RATCHET} has no reason").expect("a string takes all");
        }
        if share > tolerance {
            let profile = profile_of(name);
            writeln!(
                wrong,
                "{name}: {:.2} % more instructions than {RATCHET} allows. `callgrind_annotate {}` shows where they go. Mend it, or \
                 add [{count}, \"the reason\"] to its list.",
                share * 100.0,
                profile.display()
            )
            .expect("a string takes all");
        }
        if share < -tolerance {
            writeln!(wrong, "{name}: {:.2} % fewer. Put {count} in place of {allowed} in {RATCHET}.", -share * 100.0)
                .expect("a string takes all");
        }
    }
    print!("{wrong}");
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the compiler says of itself.
fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// The part of a run that is counted: callgrind knows it by its name.
#[inline(never)]
fn counted_part<T>(run: impl FnOnce() -> T) -> T {
    run()
}

fn play(text: &str) {
    let mut scenario = Scenario::parse(&format!("version = 1\n{text}"), Path::new("instructions")).expect("a scenario");
    scenario.crypto = CryptoMode::Modelled;
    let seeds = SeedTree::new(7);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let mut reached = Height(0);
    let outcome = counted_part(|| scenario.play(&plan, StageKind::Inline, Vec::new(), |height| reached = height));
    outcome.expect("no actor dies");
    assert_eq!(reached, scenario.last_height(), "every slot has its block");
}

fn check() {
    let scenario = swarm::draw(&Frame { crypto: Some(CryptoMode::Modelled), ..Frame::default() }, 3);
    let networks = Networks::default();
    networks.of(&scenario);
    let outcome = counted_part(|| search::play(&scenario, &networks, None, false, &AtomicBool::new(false)));
    assert!(outcome.slots > 0, "it is played");
}

/// Requests over one connection, from the first byte to the last.
fn ask() {
    let bench = chain::Bench::new(51, 100);
    let mut chain = bench.start();
    chain.forge(Vec::new());
    for wallet in 0..100 {
        chain.forge(vec![bench.vote(wallet)]);
    }
    let (tip, address) = (chain.tip.clone(), bench.address(7));
    let now = SimTime::from_seconds(tip.block().header.timestamp);
    let context = ApiContext::new(View::new(NodeId(0), chain.tree.clone(), tip, now), LiveHandle::ended());
    let mut requests = String::new();
    for page in 1..=40 {
        for path in [
            "node/status",
            &format!("wallets/{address}"),
            &format!("blocks?limit=2&page={page}"),
            &format!("transactions?limit=2&page={page}&orderBy=timestamp:asc"),
        ] {
            write!(requests, "GET /api/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").expect("a string takes all");
        }
    }
    let answers = counted_part(|| on_current_thread(answer_bytes(context, requests.as_bytes())));
    // The last one may be lost with the connection, which the client closes behind it.
    let answered = String::from_utf8_lossy(&answers).matches("HTTP/1.1 200").count();
    assert!(answered >= 159, "{answered} of 160 requests are answered");
}
