//! Passes outside input to the functions that the commands call, for `tests/runs/fuzzed.rs` and the targets in `fuzz/`. Each function
//! returns if the input is refused or played, and panics if the program has a mistake.

use super::{
    replay,
    up::network::{Secrets, UpNetwork, plain},
};
use crate::{
    actors::{NodeId, SimTime},
    api::{ApiContext, View, answer_bytes},
    check::{
        self,
        explain::{self, Explanation, Lines, Options, explain, explain_recorded},
    },
    files::segments::{Log, Records},
    ledger::{BlockTree, Rules, import::import, rules::Gossip},
    protocol::{NetworkConfig, Slot, Timestamp, crypto::CryptoMode, network::NetworkError},
    report::{
        page,
        session::{
            Entry, Session, SessionError, SessionFile,
            folder::{Folder, FolderError},
            replay as played_again, replay_and_keep,
        },
        sweep::{Manifest, Seeds, Sweep, SweepValues, handover, results},
    },
    scenario::{Override, Scenario, StageKind, Testnet, run::among_actors, testnet::rules_for},
    sim::{LiveHandle, Plan, SeedTree, stage::inline::InlineStage},
};
use serde_json::Value;
use std::{
    cell::Cell,
    fs,
    io::Cursor,
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, LazyLock, atomic::AtomicBool},
};

/// The number of slots that an accepted input is played for.
const SLOTS: u32 = 12;
/// The largest number of nodes of a network that is played: more take too long.
const NODES: usize = 8;

/// Parses a scenario's text. An accepted scenario stays the same when it is written and parsed again, and its run can start.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = Path::new("fuzzed.toml");
    let Ok(scenario) = Scenario::parse(text, file) else { return };
    let written = scenario.to_toml();
    let again = Scenario::parse(&written, file).unwrap_or_else(|why| panic!("what we write we read: {why}\n{written}"));
    assert_eq!(again.to_toml(), written, "and it says the same");
    if is_large(&scenario) {
        return;
    }
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let judged = check::judge(&scenario, &plan);
    let observers = judged.iter().filter_map(|judge| judge.observer()).collect();
    let slots = Cell::new(0);
    let go_on = |_| {
        slots.set(slots.get() + 1);
        slots.get() < SLOTS
    };
    let outcome = scenario.play_while(&plan, StageKind::Inline, observers, go_on);
    let outcome = outcome.expect("no actor dies on this stage");
    if let Ok(judge) = judged {
        judge.verdicts(outcome.end, outcome.ended);
    }
}

/// Returns true if the start of the scenario would take long.
fn is_large(scenario: &Scenario) -> bool {
    let nodes =
        scenario.network.delegates as usize + scenario.network.standby as usize + scenario.network.relays as usize;
    nodes > NODES || scenario.workloads.len() + scenario.actions.len() + scenario.faults.len() > 20
}

/// Reads a recorded session. Replays an accepted one that is short.
pub fn recording(bytes: &[u8]) {
    let Some((read, network, plan)) = short_session(bytes) else { return };
    let desk = network.desk(&plan);
    if let Err(error) = among_actors(played_again(read, &plan, &desk, None)) {
        check_told(&error);
    }
}

/// Returns an accepted session that is small and short, with the network it began on and its plan.
fn short_session(bytes: &[u8]) -> Option<(SessionFile, UpNetwork, Plan)> {
    let file = Path::new("fuzzed.jsonl");
    let read = SessionFile::read(file, Box::new(Cursor::new(bytes.to_vec()))).ok()?;
    let end = short_end(&read.session)?;
    let is_long = bytes.split(|byte| *byte == b'\n').skip(1).any(|line| match serde_json::from_slice(line) {
        Ok(Entry { at, .. }) => at > end,
        Err(_) => false,
    });
    if is_long {
        return None;
    }
    let (network, plan) = replay::planned(file, &read.session).ok()?;
    Some((read, network, plan))
}

/// The last instant that a session is played to, in microseconds; `None` if beginning it would take long.
fn short_end(session: &Session) -> Option<u64> {
    let scenario = Scenario::parse(&session.scenario, Path::new("fuzzed.toml")).ok();
    if scenario.as_ref().is_some_and(is_large) || session.network_dir.is_some() || session.chain.is_some() {
        return None;
    }
    // An invalid scenario is refused before anything is played.
    let slot_s = scenario.map_or(1, |scenario| scenario.network.block_time_s);
    let begin = SimTime::from_seconds(Timestamp(session.start.saturating_mul(slot_s)));
    Some(begin.micros().saturating_add(u64::from(SLOTS * slot_s) * 1_000_000))
}

/// Checks the error of a replayed session: the error blames the file and names it.
fn check_told(error: &SessionError) {
    assert!(!matches!(error, SessionError::Died(_) | SessionError::NotSpawned(_)), "{error}");
    assert!(error.to_string().starts_with("fuzzed.jsonl:"), "it names the file: {error}");
}

/// Explains a scenario or a recorded session, unless it is refused. Writes the explanation as text, as JSON and as a page.
pub fn explained(bytes: &[u8]) {
    let explanation = match bytes.first() {
        Some(b'{') => explained_session(bytes),
        _ => explained_scenario(bytes),
    };
    if let Some(explanation) = explanation {
        let json = serde_json::json!(explanation);
        assert!(!explanation.to_string().is_empty() && !page::explain::page(&json).is_empty());
    }
}

const FEW: Options = Options { seed: 1, repeats: Some(2), instants: 2, budget: 2, lines: 20, jobs: 1 };

fn explained_scenario(bytes: &[u8]) -> Option<Explanation> {
    let mut scenario = Scenario::parse(std::str::from_utf8(bytes).ok()?, Path::new("fuzzed.toml")).ok()?;
    if is_large(&scenario) {
        return None;
    }
    let limit = SLOTS * scenario.network.block_time_s;
    scenario.rounds = scenario.rounds.min(3);
    scenario.time_limit_seconds = Some(scenario.time_limit_seconds.map_or(limit, |seconds| seconds.min(limit)));
    explain(&scenario, &FEW, &AtomicBool::new(false), &|_, _, _| {}).ok()
}

fn explained_session(bytes: &[u8]) -> Option<Explanation> {
    let (read, network, plan) = short_session(bytes)?;
    let (session, desk) = (read.session.clone(), network.desk(&plan));
    let replayed = replay_and_keep(StageKind::Inline, read, &plan, &desk, None);
    let (replayed, inputs) = match among_actors(replayed) {
        Ok(replayed) => replayed,
        Err(error) => {
            check_told(&error);
            return None;
        }
    };
    let lines = Lines::of(inputs, plan.start, SimTime::from_micros(replayed.end_us));
    let anew = || replay::planned(Path::new("fuzzed.jsonl"), &session).expect("it was planned").1;
    let scenario = &network.scenario;
    let (delegates, rules) = (Vec::new(), replayed.rules);
    let recorded = explain::Session { scenario, plan: &anew, lines: &lines, line: None, delegates, rules };
    explain_recorded(recorded, &FEW, &AtomicBool::new(false), &|_, _, _| {}).ok()
}

/// A testnet's folder: `network.json`, then a line `log` and the bytes of the only segment, or a line `records` and in each further
/// line a record. The input is copied to an empty folder. An accepted testnet goes on, and its blocks are read.
pub fn data_folder(bytes: &[u8], folder: &Path) {
    let split = |between: &[u8]| {
        let at = bytes.windows(between.len()).position(|window| window == between)?;
        Some((&bytes[..at], &bytes[at + between.len()..]))
    };
    let segment = folder.join("log/00000001.log");
    let text = match (split(b"\nlog\n"), split(b"\nrecords\n")) {
        (Some((text, log)), _) => {
            fs::create_dir(folder.join("log")).expect("a folder of our own");
            fs::write(&segment, log).expect("a folder of our own");
            text
        }
        (None, Some((text, records))) => {
            let mut log = Log::create(&folder.join("log")).expect("a folder of our own");
            let records = records.split(|byte| *byte == b'\n');
            records.for_each(|record| {
                log.append(record).expect("a folder of our own");
            });
            text
        }
        (None, None) => bytes,
    };
    fs::write(folder.join("network.json"), text).expect("a folder of our own");
    let found = Folder::new(folder);
    let Ok(Some(session)) = found.session() else { return };
    let (Some(end), name) = (short_end(&session), Path::new("fuzzed")) else { return };
    if is_long_log(&folder.join("log"), end) {
        return;
    }
    let Ok((network, plan)) = replay::planned(name, &session) else { return };
    let desk = network.desk(&plan);
    let opened = among_actors(found.open(&session, &plan, &desk, Vec::new()));
    match opened {
        Ok(mut opened) => {
            opened.log.append(b"jnext").expect("what was accepted goes on");
        }
        Err(error) => {
            assert!(!matches!(error, FolderError::Died(_)), "{error}");
            assert!(error.to_string().starts_with(&*folder.to_string_lossy()), "it names the file: {error}");
        }
    }
    let _read_or_refused = found.blocks(plan.tree.config(), |_| Ok::<_, FolderError>(()));
}

/// Returns true if a record states an instant later than this one, in microseconds, up to which the replay would have to play.
fn is_long_log(log: &Path, end: u64) -> bool {
    let Ok(Some(mut records)) = Records::open(log) else { return false };
    std::iter::from_fn(|| records.next_record().ok().flatten()).any(|record| {
        let told = record.split_first().and_then(|(_, json)| serde_json::from_slice::<Value>(json).ok());
        let at = |part: &str| told.as_ref().and_then(|told| told[part]["at"].as_u64());
        // For a block that clients saw, the replay searches up to an hour of virtual time.
        record.first() == Some(&b't') || ["came", "stood"].into_iter().filter_map(at).any(|at| at > end)
    })
}

/// Gathers the rows that one machine hands to another, for a sweep of six runs. `HEAD` in the first line stands for the head
/// of this sweep, so that the lines after it are read.
pub fn handed(bytes: &[u8], folder: &Path) {
    static SWEEP: LazyLock<Sweep> = LazyLock::new(|| {
        let (scenario, seeds) = (Path::new("scenarios/healthy.toml"), Seeds { first: 0, end: 6 });
        Sweep::new(scenario, seeds, &[], SweepValues::default(), None).expect("it is shipped")
    });
    let text = String::from_utf8_lossy(bytes).replacen("HEAD", &handover::head(&SWEEP.manifest), 1);
    let file = folder.join("rows.jsonl");
    fs::write(&file, text).expect("a folder of our own");
    match handover::gather(&SWEEP, std::slice::from_ref(&file), &folder.join("gathered")) {
        Ok(rows) => {
            let _written_or_incomplete = results::write(&SWEEP, &rows, &folder.join("gathered"), None);
        }
        Err(error) => assert!(error.to_string().starts_with(&*file.to_string_lossy()), "it names the file: {error}"),
    }
}

/// Reads a sweep's manifest, and rows after a line `rows`. If they are accepted, writes the results. `folder` is an empty
/// folder.
pub fn manifest(bytes: &[u8], folder: &Path) {
    const BETWEEN: &[u8] = b"\nrows\n";
    let split = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (text, rows) = split.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + BETWEEN.len()..]));
    let path = |name: &str| folder.join(name);
    fs::create_dir(path("found")).expect("a folder of our own");
    fs::write(path("found/sweep.json"), text).expect("a folder of our own");
    fs::write(path("found/rows.bin"), rows).expect("a folder of our own");
    let merged = results::merge(&[&path("found")], &path("merged"), false, Vec::new());
    assert!(merged.is_err(), "rows without their digest belong to no sweep");
    let Ok(found) = Manifest::read(&path("found")) else { return };
    let set = found.set.iter().map(|set| set.parse()).collect::<Result<Vec<Override>, _>>();
    let (Ok(set), true) = (set, found.vary.concat().len() < 200) else { return };
    let sweep = Sweep::new(Path::new(&found.scenario), found.seeds, &set, found.varied(), found.shard);
    let Some(sweep) = sweep.ok().filter(|sweep| sweep.len() < 200) else { return };
    let begun = sweep.claim(&path("begun")).expect("a folder of our own");
    begun.fill(rows).expect("a folder of our own");
    let written = results::write(&sweep, &begun, &path("begun"), None);
    drop(begun);
    let again = results::merge(&[&path("begun")], &path("again"), false, Vec::new());
    if sweep.manifest.shard.is_none_or(|shard| shard.of == 1) {
        assert_eq!(written.is_ok(), again.is_ok(), "a part that is all of it: {:?} {:?}", written.err(), again.err());
    }
}

/// A network of three delegates.
static NETWORK: LazyLock<Testnet> = LazyLock::new(|| Testnet::generate(SeedTree::new(1), 3, CryptoMode::Real));

/// Imports the blocks of a chain, one a line. Or reads an object with the four files of a network by their names, `secrets`,
/// and such lines as `chain`, and plays an accepted network.
pub fn chain(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match serde_json::from_str::<Value>(text) {
        Ok(parts) if parts.get("network").is_some() => network(&parts),
        _ => {
            let rules = Rules { gossip: Gossip::Once, ..rules_for(3) };
            let tree = BlockTree::new(NETWORK.config.clone(), Arc::new(rules)).expect("it is generated");
            let _refused_or_imported = import(&tree, text.lines());
        }
    }
}

fn network(parts: &Value) {
    let part = |name: &str| Ok::<_, NetworkError>(parts[name.trim_end_matches(".json")].clone());
    let name = Path::new("fuzzed");
    let Ok(secrets) = Secrets::parse(&parts["secrets"].to_string(), name) else { return };
    let Ok(scenario) = plain(secrets.nodes(), Gossip::Reference, &[]) else { return };
    let Ok(config) = NetworkConfig::of(part, scenario.crypto) else { return };
    let Ok(network) = UpNetwork::of(config, name, secrets, name, scenario, SeedTree::new(1)) else { return };
    let lines = parts["chain"].as_array().into_iter().flatten().map(Value::to_string);
    let Ok(tip) = import(&network.tree, lines) else { return };
    if network.testnet.delegates.len() > NODES {
        return;
    }
    let slots = network.tree.slots();
    let first = Slot(slots.slot(tip.block().header.timestamp).0.saturating_add(1));
    let plan = network.plan(tip, first);
    let mut stage = InlineStage::new(&plan, Vec::new());
    (1..=SLOTS).for_each(|slot| {
        stage.run_until(SimTime::from_seconds(slots.start(Slot(first.0.saturating_add(slot)))));
    });
}

/// Sends bytes to the API over a connection. Every answer is HTTP, and none has status 500.
pub fn http(bytes: &[u8]) {
    static CONTEXT: LazyLock<ApiContext> = LazyLock::new(|| {
        let tree = NETWORK.tree(Rules::reference()).expect("it is generated");
        let view = View::new(NodeId(0), tree.clone(), tree.genesis().clone(), SimTime::default());
        ApiContext { host: Ipv4Addr::LOCALHOST.into(), ..ApiContext::new(view, LiveHandle::ended()) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime without IO");
    let answered = runtime.block_on(answer_bytes(CONTEXT.clone(), bytes));
    let text = String::from_utf8_lossy(&answered);
    assert!(text.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert!(!text.contains("HTTP/1.1 500 "), "{text}");
}
