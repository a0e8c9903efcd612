//! Whatever comes from outside, handed to the functions that the commands call: for `tests/runs/fuzzed.rs` and the targets in
//! `fuzz/`. Each returns where the input is refused or played, and panics where the program has a mistake.

use super::{
    memory::Memory,
    replay,
    up::network::{Secrets, UpNetwork, plain},
};
use crate::{
    actors::{NodeId, SimTime},
    api::{ApiContext, View, answer_bytes},
    check,
    ledger::{BlockTree, Rules, import::import, rules::Gossip},
    protocol::{NetworkConfig, Slot, Timestamp, network::NetworkError},
    report::{
        session::{Entry, SessionError, SessionFile, replay as played_again},
        sweep::{Manifest, Sweep, results},
    },
    scenario::{Override, Scenario, StageKind, Testnet, Variation, run::among_actors, testnet::rules_for},
    sim::{LiveHandle, SeedTree, stage::inline::InlineStage},
};
use serde_json::Value;
use std::{
    cell::Cell,
    fs,
    io::Cursor,
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, LazyLock},
};

/// Slots played of what can be played.
const SLOTS: u32 = 12;
/// Nodes of what is played: more take too long.
const NODES: usize = 8;

/// A scenario's text: what is accepted says the same when it is written and read again, and can be begun.
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
    scenario.crypto.during(|| {
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
    });
}

/// Whether beginning it would take long.
fn is_large(scenario: &Scenario) -> bool {
    let nodes =
        scenario.network.delegates as usize + scenario.network.standby as usize + scenario.network.relays as usize;
    nodes > NODES || scenario.workloads.len() + scenario.actions.len() + scenario.faults.len() > 20
}

/// A recorded session: refused, or played again as far as it is short.
pub fn recording(bytes: &[u8]) {
    let file = Path::new("fuzzed.jsonl");
    let Ok(read) = SessionFile::read(file, Box::new(Cursor::new(bytes.to_vec()))) else { return };
    let session = &read.session;
    let scenario = Scenario::parse(&session.scenario, file);
    let is_large =
        scenario.is_ok_and(|scenario| is_large(&scenario)) || session.network_dir.is_some() || session.chain.is_some();
    let begin = SimTime::from_seconds(Timestamp(session.start.saturating_mul(8)));
    let end = begin.micros().saturating_add(u64::from(SLOTS) * 8_000_000);
    let is_long = bytes.split(|byte| *byte == b'\n').skip(1).any(|line| match serde_json::from_slice(line) {
        Ok(Entry { at, .. }) => at > end,
        Err(_) => false,
    });
    if is_large || is_long {
        return;
    }
    let Ok((network, plan)) = replay::planned(file, session, &Memory::default()) else { return };
    let desk = network.desk(&plan);
    if let Err(error) = network.scenario.crypto.during(|| among_actors(played_again(read, &plan, &desk, None))) {
        assert!(!matches!(error, SessionError::Died(_) | SessionError::NotSpawned(_)), "{error}");
        assert!(error.to_string().starts_with("fuzzed.jsonl:"), "it names the file: {error}");
    }
}

/// A sweep's manifest, and rows behind a line that says `rows`: refused, or its results are written. All of it goes on in an
/// empty folder.
pub fn manifest(bytes: &[u8], folder: &Path) {
    const BETWEEN: &[u8] = b"\nrows\n";
    let split = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (text, rows) = split.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + BETWEEN.len()..]));
    let path = |name: &str| folder.join(name);
    fs::create_dir(path("found")).expect("a folder of our own");
    fs::write(path("found/sweep.json"), text).expect("a folder of our own");
    fs::write(path("found/rows.bin"), rows).expect("a folder of our own");
    let merged = results::merge(&[&path("found")], &path("merged"));
    assert!(merged.is_err(), "rows without their digest are nobody's");
    let Ok(found) = Manifest::read(&path("found")) else { return };
    let set = found.set.iter().map(|set| set.parse()).collect::<Result<Vec<Override>, _>>();
    let vary = found.vary.iter().map(|vary| vary.parse()).collect::<Result<Vec<Variation>, _>>();
    let (Ok(set), Ok(vary), true) = (set, vary, found.vary.concat().len() < 200) else { return };
    let sweep = Sweep::new(Path::new(&found.scenario), found.seeds, &set, &vary, &found.vary, found.shard);
    let Some(sweep) = sweep.ok().filter(|sweep| sweep.len() < 200) else { return };
    let begun = sweep.manifest.claim(&path("begun")).expect("a folder of our own");
    begun.fill(rows).expect("a folder of our own");
    let written = results::write(&sweep, &begun, &path("begun"));
    drop(begun);
    let again = results::merge(&[&path("begun")], &path("again"));
    if sweep.manifest.shard.is_none_or(|shard| shard.of == 1) {
        assert_eq!(written.is_ok(), again.is_ok(), "a part that is all of it: {:?} {:?}", written.err(), again.err());
    }
}

/// A network of three delegates.
static NETWORK: LazyLock<Testnet> = LazyLock::new(|| Testnet::generate(SeedTree::new(1), 3));

/// The blocks of a chain, a line each; or an object with the four files of a network by their names, `secrets`, and such
/// lines as `chain`. They are refused, or played on.
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
    let Ok(config) = NetworkConfig::of(part) else { return };
    let name = Path::new("fuzzed");
    let Ok(secrets) = Secrets::parse(&parts["secrets"].to_string(), name) else { return };
    let Ok(scenario) = plain(secrets.count(), Gossip::Reference, &[]) else { return };
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

/// What a connection to the API is sent: every answer is HTTP, and none says that the server is at fault.
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
