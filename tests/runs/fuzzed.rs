//! Nothing that comes from outside makes the program panic: seeds from `fuzz/seeds`, each as it is and then changed by chance,
//! go through the functions that the commands call. `DPOSLAB_FUZZ=100000` tries so many changed ones a target, and
//! `DPOSLAB_FUZZ_SEED=7` other ones; an input that panics is kept, and belongs among the seeds.

use crate::support::root;
use dposlab::{
    actors::NodeId,
    cli::fuzz,
    files::segments::Log,
    ledger::{Link, rules::Gossip},
    protocol::{Arktoshi, Height, Milestone, Nonce, Transaction, crypto::CryptoMode::Real},
    report::{
        session::{Came, Entry, Session},
        sweep::{
            SweepRun,
            columns::{FIGURES, Status},
            handover,
            rows::Row,
        },
    },
    scenario::{Scenario, Testnet, section::NetworkSection, testnet::rules_for},
    sim::{NodePlan, Plan, SeedTree, stage::inline::InlineStage},
};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Numbers that are on an edge of something.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "51",
    "255",
    "256",
    "65535",
    "4294967295",
    "4294967296",
    "2147483647",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
    "0.5",
    "1e400",
    "-0.0",
    "nan",
    "inf",
];
/// Words that may come in the place of another.
const WORDS: [&str; 14] = [
    "",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\n",
    "\r\n\r\n",
    "\u{0}",
    "genesis_1",
    "account_11",
    "[[[[",
    "\"\u{fffd}\"",
    "%00",
];

/// The seeds of a target by their names.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = match target {
        // Each run that can be played can be explained.
        "explained" => vec!["scenario", "recording"],
        target => vec![target],
    };
    let folders = folders.into_iter().map(|folder| root().join("fuzz/seeds").join(folder));
    let entries = folders.flat_map(|folder| fs::read_dir(folder).expect("each target has seeds"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).expect("it is there"))).collect()
}

/// The value of a variable of the environment.
fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|why| panic!("{variable}={text}: {why}")))
}

/// Tries every seed, and so many changed ones.
fn fuzzed(target: &str, cases: usize, mut try_one: impl FnMut(&[u8])) {
    let cases = number_of("DPOSLAB_FUZZ").map_or(cases, |cases| cases as usize);
    let seeds = seeds(target);
    let mut random = ChaCha8Rng::seed_from_u64(number_of("DPOSLAB_FUZZ_SEED").unwrap_or(0x5eed));
    let mut try_named = |name: &Path, bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| try_one(bytes))) {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("panics-{target}"));
            fs::write(&kept, bytes).expect("the folder of the build can be written to");
            eprintln!("{target}: panics at {}, from {}", kept.display(), name.display());
            resume_unwind(panic);
        }
    };
    seeds.iter().for_each(|(file, bytes)| try_named(file, bytes));
    for _ in 0..cases {
        let (file, bytes) = seeds.choose(&mut random).expect("there are seeds");
        let (_, other) = seeds.choose(&mut random).expect("there are seeds");
        let mut bytes = bytes.clone();
        for _ in 0..random.random_range(1..=4) {
            change(&mut random, &mut bytes, other);
        }
        try_named(file, &bytes);
    }
}

/// One change: of a number, a word, a line, a stretch or a byte.
fn change(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.random_range(0..=bytes.len());
    let (start, end) = match random.random_range(0..8) {
        0..=2 => token(bytes, at, u8::is_ascii_digit),
        3 => token(bytes, at, |byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
        4 => token(bytes, at, |byte| *byte != b'\n'),
        5 => (at, random.random_range(at..=bytes.len().min(at + 16))),
        _ => (at, (at + 1).min(bytes.len())),
    };
    let new: Vec<u8> = match random.random_range(0..10) {
        0..=2 => NUMBERS.choose(random).expect("there are some").as_bytes().to_vec(),
        3 => WORDS.choose(random).expect("there are some").as_bytes().to_vec(),
        4 if !other.is_empty() => {
            let from = random.random_range(0..other.len());
            let (from, to) = token(other, from, |byte| *byte != b'\n');
            other[from..to].to_vec()
        }
        5 => bytes[start..end].repeat(2),
        6 => Vec::new(),
        7 => vec![random.random()],
        // Things are counted from 0 or from 1: a number beside the one that stands there, or one of those that count things.
        8 => beside(random, &bytes[start..end]),
        _ => {
            let counts = counts(bytes);
            counts.choose(random).map_or_else(Vec::new, |count| beside(random, count.as_bytes()))
        }
    };
    bytes.splice(start..end, new);
}

/// A number, or one less or more than it; nothing of what is none.
fn beside(random: &mut ChaCha8Rng, number: &[u8]) -> Vec<u8> {
    let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<i64>().ok());
    number.map_or_else(Vec::new, |number| number.saturating_add(random.random_range(-1..=1)).to_string().into_bytes())
}

/// The numbers that say how many things of a sort there are: delegates, nodes, accounts, rounds, and the tables that are numbered.
fn counts(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let said = ["delegates = ", "standby = ", "relays = ", "rounds = "].into_iter().filter_map(|key| {
        let at = text.find(key)? + key.len();
        let number: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
        Some(number).filter(|number| !number.is_empty())
    });
    let numbers: Vec<String> = said.collect();
    let nodes: u64 = numbers.iter().take(3).filter_map(|number| number.parse::<u64>().ok()).sum();
    let tables = ["[[fault]]", "[[workload]]", "[[action]]"].map(|table| text.matches(table).count().to_string());
    numbers.into_iter().chain([nodes.to_string(), "10".to_owned()]).chain(tables).collect()
}

/// Every number of a scenario that can be played, each with the numbers beside it and with one past the last node, delegate,
/// account, round and fault in its place.
#[test]
fn no_number_one_past_the_last_panics() {
    let seeds = seeds("scenario");
    let good = |file: &Path| file.file_name().is_some_and(|name| name.display().to_string().starts_with("good-s"));
    let mut tried = 0;
    for (file, bytes) in seeds.iter().filter(|(file, _)| good(file)) {
        let counts: BTreeSet<i64> = counts(bytes).iter().filter_map(|count| count.parse().ok()).collect();
        let mut at = 0;
        while at < bytes.len() {
            let (start, end) = token(bytes, at, u8::is_ascii_digit);
            at = end.max(at + 1);
            let there = std::str::from_utf8(&bytes[start..end]).ok().and_then(|text| text.parse::<i64>().ok());
            let Some(there) = there else { continue };
            let near = counts.iter().chain([&there]).flat_map(|number| [number - 1, *number, number + 1]);
            for number in near.collect::<BTreeSet<i64>>() {
                let changed = [&bytes[..start], number.to_string().as_bytes(), &bytes[end..]].concat();
                let result = catch_unwind(AssertUnwindSafe(|| fuzz::scenario(&changed)));
                assert!(result.is_ok(), "{}: {number} at byte {start} in place of {there}", file.display());
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

/// The stretch of such bytes around a place, or after it.
fn token(bytes: &[u8], at: usize, is_in: impl Fn(&u8) -> bool) -> (usize, usize) {
    let start = bytes[at..].iter().position(&is_in).map_or(at, |skipped| at + skipped);
    let before = bytes[..start].iter().rev().take_while(|byte| is_in(byte)).count();
    let after = bytes[start..].iter().take_while(|byte| is_in(byte)).count();
    (start - before, start + after)
}

#[test]
fn no_scenario_panics() {
    fuzzed("scenario", 1_500, fuzz::scenario);
}

#[test]
fn no_recording_panics() {
    fuzzed("recording", 400, fuzz::recording);
}

#[test]
fn no_manifest_and_no_rows_panic() {
    fuzzed("manifest", 400, |bytes| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fuzz::manifest(bytes, folder.path());
    });
}

#[test]
fn no_handed_rows_panic() {
    fuzzed("handed", 200, |bytes| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fuzz::handed(bytes, folder.path());
    });
}

#[test]
fn no_folder_of_a_testnet_panics() {
    fuzzed("data_folder", 300, |bytes| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fuzz::data_folder(bytes, folder.path());
    });
}

#[test]
fn nothing_to_explain_panics() {
    fuzzed("explained", 60, fuzz::explained);
}

#[test]
fn no_chain_and_no_network_panics() {
    fuzzed("chain", 400, fuzz::chain);
}

#[test]
fn no_bytes_on_a_connection_panic() {
    fuzzed("http", 3_000, fuzz::http);
}

/// A chain of three delegates with a transfer in it, and its blocks as lines.
fn played() -> (Testnet, Arc<Link>, Vec<Value>) {
    let testnet = Testnet::generate(SeedTree::new(1), 3, Real);
    let tree = testnet.tree(rules_for(3)).expect("it is generated");
    let node = |delegate: &dposlab::scenario::NamedDelegate| NodePlan { forger: Some(delegate.keys.clone()) };
    let nodes = testnet.delegates.iter().map(node).collect();
    let start = dposlab::actors::SimTime::from_seconds(tree.slots().start(dposlab::protocol::Slot(1)));
    let plan = Plan::new(tree.clone(), tree.genesis().clone(), nodes, SeedTree::new(1), start);
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(start + std::time::Duration::from_secs(64));
    let tip = stage.world().tips().of(NodeId(0)).clone();
    let lines = (2..=tip.height().0).map(|height| {
        let link = tip.ancestor(Height(height)).expect("it is on the chain");
        link.block().to_json(&testnet.config.milestones)
    });
    let lines = lines.collect();
    (testnet, tip, lines)
}

/// The seeds that code makes are those in the folder: `REWRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_as_code_makes_them() {
    let (testnet, tip, blocks) = played();
    let config = &testnet.config;
    let milestones: Vec<&Value> = config.milestones.all().iter().map(|milestone: &Milestone| &milestone.json).collect();
    let secrets: Vec<&String> = testnet.delegates.iter().map(|delegate| &delegate.passphrase).collect();
    let network = json!({
        "network": config.network.to_json(),
        "milestones": milestones,
        "exceptions": config.exceptions.json,
        "genesisBlock": config.genesis.json,
        "secrets": { "secrets": secrets },
        "chain": blocks[..2],
    });
    let lines: String = blocks.iter().map(|block| format!("{block}\n")).collect();
    let account = &testnet.accounts[0];
    let transfer =
        Transaction::transfer(account.address, Arktoshi::coins(1)).network(23).nonce(Nonce(1)).sign(&account.keys);
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned();
    let of = |delegates: u32| {
        let network = NetworkSection { delegates, gossip: Some(Gossip::Once), ..NetworkSection::default() };
        Scenario { network, ..Scenario::parse("version = 1\nrounds = 1\n", Path::new("seed.toml")).expect("it is one") }
    };
    let session = Session::new(1, &of(3), 1, config);
    let submit = |node| {
        let came = Came::Submit { node, transactions: vec![hex::encode(transfer.bytes())] };
        Entry { at: 8_000_000, delivered: 0, digest: Some(digest.clone()), height: None, came }
    };
    let recording = |session: &Session, node| format!("{}\n{}\n", json!(session), json!(submit(node)));
    let body = json!({ "transactions": [transfer.to_json()] }).to_string();
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let played_row = |run| {
        let figures = vec![Some(0.25); FIGURES.len()];
        let row = Row { status: Status::Ok, ended: 0, broken: 0, undecided: 0, figures, digest: [7; 32] };
        handover::line(SweepRun { run, cell: 0, seed: run }, &row)
    };
    let died = r#"{"run":5,"status":"died","by":"signal 9"}"#;
    let played: Vec<String> = (0..6).map(played_row).collect();
    let genesis = tip.ancestor(Height(1)).expect("it is the first").id();
    let stood = json!({ "stood": { "at": 8_000_000, "delivered": 0, "height": 1, "tip": genesis.to_string() } });
    let came = json!({ "came": submit(0) });
    let records = [format!("j{stood}"), format!("j{came}"), "j{\"pace\":\"manual\"}".to_owned()];
    let kept = |end: &[u8]| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let mut log = Log::create(folder.path()).expect("it is empty");
        for record in &records {
            log.append(record.as_bytes()).expect("there is room");
        }
        let log = fs::read(folder.path().join("00000001.log")).expect("it was written");
        [format!("{}\nlog\n", json!(session)).as_bytes(), &log[..], end].concat()
    };
    let of_records = |records: &[String]| format!("{}\nrecords\n{}", json!(session), records.join("\n"));
    let taken = format!("t\0\0\0\0{genesis}");
    let binary = [
        ("data_folder/whole", kept(&[])),
        ("data_folder/zeros", kept(&[0; 40])),
        ("data_folder/torn", kept(&[5, 0, 0, 0])),
    ];
    let made = [
        ("handed/all", format!("HEAD\n{}\n", played.join("\n"))),
        ("handed/died-and-played", format!("HEAD\n{died}\n{}\n{died}\n", played[5])),
        ("handed/of-no-run", format!("HEAD\n{}\n", played_row(6))),
        ("data_folder/records", of_records(&records)),
        ("data_folder/of-another-kind", of_records(&["x".to_owned(), String::new()])),
        ("data_folder/taken", of_records(&[records[0].clone(), taken])),
        ("chain/blocks.jsonl", lines),
        ("chain/network.json", network.to_string()),
        ("recording/of-three", recording(&session, 0)),
        ("recording/of-no-such-node", recording(&session, 3)),
        ("recording/of-no-delegates", recording(&Session { scenario: of(0).to_toml(), ..session.clone() }, 0)),
        (
            "recording/of-too-many-delegates",
            recording(&Session { scenario: of(u32::MAX).to_toml(), ..session.clone() }, 0),
        ),
        ("recording/of-the-last-slot", recording(&Session { start: u32::MAX, ..session.clone() }, 0)),
        ("http/transfer", post("/api/transactions", &body)),
        ("http/advance", post("/lab/advance", "{\"slots\":1}")),
        ("http/search", post("/api/transactions/search", "{\"amount\":{\"from\":1},\"asset\":{\"votes\":[\"+\"]}}")),
    ];
    let made = made.into_iter().map(|(name, text)| (name, text.into_bytes()));
    for (name, content) in made.chain(binary) {
        let file = root().join("fuzz/seeds").join(name);
        if std::env::var_os("REWRITE_SEEDS").is_some() {
            fs::create_dir_all(file.parent().expect("it is in a folder")).expect("it can be made");
            fs::write(&file, &content).expect("it can be written");
        }
        assert!(fs::read(&file).is_ok_and(|kept| kept == content), "{name}: REWRITE_SEEDS=1 writes it anew");
    }
}

/// Every seed of a scenario that is meant to be one is one, or the seeds reach nothing behind the reader.
#[test]
fn scenarios_among_the_seeds_are_read() {
    let read = |(file, bytes): &(PathBuf, Vec<u8>)| {
        let text = String::from_utf8_lossy(bytes);
        file.file_name()
            .is_some_and(|name| name.display().to_string().starts_with("good-"))
            .then(|| Scenario::parse(&text, file).unwrap_or_else(|why| panic!("{why}")))
    };
    assert!(seeds("scenario").iter().filter_map(read).count() > 5);
}
