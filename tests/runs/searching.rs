//! `dposlab check` as a command: each finding leaves a file that shows it, a search goes on where it was, what is known is
//! only counted, and what a scenario asserts is searched for.

use crate::support::{dposlab, interrupt, root, run};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::liveness::liveness,
    scenario::Scenario,
    sim::{Observer, SeedTree, stage::inline::InlineStage},
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// The output of a search, by the arguments behind `check --json --out FOLDER`.
fn search(folder: &Path, arguments: &[&str]) -> (Output, Value) {
    let command = dposlab().args(["check", "--json", "--out"]).arg(folder).args(arguments).output();
    let output = command.expect("the binary was built for this test");
    let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output, said)
}

fn found(said: &Value) -> &Vec<Value> {
    said["found"].as_array().expect("a list")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no '{key}' in {value}"))
}

/// Plays the files of all findings: each ends with exit code 1 and names what it shows.
fn play_all(said: &Value) {
    let mut files = BTreeSet::new();
    for one in found(said) {
        let (file, invariant) = (text(one, "file"), text(one, "invariant"));
        assert!(files.insert(file.to_owned()), "{file} is of two findings");
        let output = run(&["run", "--stage", "inline", file]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{file}: {error}");
        assert!(error.contains(invariant), "{file}: {error}");
    }
}

#[test]
fn every_finding_leaves_a_file_that_shows_it() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let (_, said) = search(folder.path(), &["--rules", "reference", "--runs", "100", "--budget", "0"]);
    assert!(found(&said).len() > 8, "the reference has weaknesses");
    play_all(&said);
    let (_, small) = search(folder.path(), &["--rules", "reference", "--runs", "1", "--seed", "33", "--budget", "20"]);
    assert!(found(&small).len() >= 3, "it shows its findings after the chain has stood still for long");
    play_all(&small);
    play_all(&said);
}

#[test]
fn an_assertion_is_searched_for_and_its_file_shows_it() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let base = folder.path().join("base.toml");
    let scenario = "version = 1\nrounds = 9\ncrypto = \"modelled\"\n[network]\ndelegates = 7\n[[fault]]\nkind = \"crash\"\n\
                    nodes = [0]\nfrom = { seconds = 20.0 }\nuntil = { seconds = 60.0 }\n[[assert]]\nalways = \"chains <= 1\"\n\
                    [[assert]]\nfinally = \"height >= 2\"\n";
    fs::write(&base, scenario).expect("it can be written");
    let base = base.to_string_lossy();
    let (output, said) = search(folder.path(), &[&base, "--runs", "40", "--budget", "60"]);
    assert_eq!(output.status.code(), Some(1));
    let asserted = found(&said).iter().find(|one| text(one, "source") == "asserted by the scenario");
    let asserted = asserted.unwrap_or_else(|| panic!("two chains come about: {said}"));
    assert_eq!(text(asserted, "invariant"), "always chains <= 1");
    let small = Scenario::load(Path::new(text(asserted, "file"))).expect("a scenario");
    assert_eq!(small.faults[0].kind.name(), "crash", "what the scenario itself says stays");
    play_all(&said);
    let wrong = fs::read_to_string(&*base).expect("it is there").replace("chains <= 1", "invariant of mine");
    fs::write(&*base, wrong).expect("it can be written");
    let (refused, _) = search(folder.path(), &[&base]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("assert[0]") && why.contains("'of mine'"), "{why}");
}

#[test]
fn a_search_ends_when_its_time_is_over_and_goes_on_when_it_is_given_more() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["--for", "1s", "--delegates", "4", "--rounds", "1", "--jobs", "1", "--budget", "0"];
    let runs = || {
        let (_, said) = search(folder.path(), &arguments);
        assert_eq!((&said["seconds_asked"], &said["interrupted"]), (&Value::from(1), &Value::from(false)));
        said["runs"].as_u64().expect("a count")
    };
    let first = runs();
    assert!(runs() > first && first < 1_000_000);
}

/// Busy, but never asleep: until the search has written what it keeps.
fn wait_for(file: &Path) {
    while !file.exists() {
        thread::yield_now();
    }
}

#[test]
fn a_search_goes_on_where_it_was_and_comes_to_the_same() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["--rules", "reference", "--delegates", "4", "--rounds", "2", "--budget", "0", "--jobs", "2"];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    let begun = dposlab()
        .args(["check", "--json", "--for", "1h", "--out"])
        .arg(folder.path())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = begun.expect("the binary was built for this test");
    wait_for(&folder.path().join("search.json"));
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("interrupted") && told.contains("the same command goes on from there"), "{told}");
    let before: Value = serde_json::from_slice(&ended.stdout).expect("--json prints one object");
    let runs = before["runs"].as_u64().expect("a count") + 30;
    let count = ["--runs".to_owned(), runs.to_string()];
    let count: Vec<&str> = count.iter().map(String::as_str).collect();
    let (_, resumed) = search(folder.path(), &[&with(&["--for", "1h"])[..], &count].concat());
    let other = tempfile::tempdir().expect("another one");
    let (_, whole) = search(other.path(), &[&with(&[])[..], &count].concat());
    for key in ["runs", "slots", "delivered", "sometimes", "broken"] {
        assert_eq!(resumed[key], whole[key], "{key}");
    }
    let counts = |said: &Value| -> Vec<Value> {
        let keys = ["invariant", "cause", "runs", "seed", "share", "finding"];
        found(said).iter().flat_map(|one| keys.map(|key| one[key].clone())).collect()
    };
    assert_eq!(counts(&resumed), counts(&whole));
    play_all(&resumed);
    let (refused, _) = search(folder.path(), &["--rules", "corrected", "--for", "1h", "--runs", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("search.json") && why.contains("another search"), "{why}");
    let (refused, _) = search(other.path(), &["--for", "ten minutes"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// How a search draws its runs by default under the corrected rules, as lists of known causes say it.
const DRAWN: &str = "networks as drawn; rules 'corrected'; one of four quick and without flaws";

/// A list of these lines, recorded with the corrected rules.
fn known_list(folder: &Path, lines: &[String]) -> String {
    let list = folder.join("known.txt");
    let text = format!("# What is known.\ndrawn with: {DRAWN}\n{}\n", lines.join("\n"));
    fs::write(&list, text).expect("it can be written");
    list.to_string_lossy().into_owned()
}

fn signature(one: &Value) -> String {
    match text(one, "cause") {
        "" => text(one, "invariant").to_owned(),
        cause => format!("{}: {cause}", text(one, "invariant")),
    }
}

#[test]
fn what_is_known_is_counted_and_does_not_fail() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["--rules", "corrected", "--runs", "30", "--budget", "0"];
    let (_, all) = search(folder.path(), &arguments);
    assert!(found(&all).len() > 1 && found(&all).iter().all(|one| one["certified"] == true), "{all}");
    let lines: Vec<String> =
        found(&all).iter().map(|one| format!("{} | {} of 30", signature(one), one["runs"])).collect();
    let known = |lines: &[String]| {
        let list = known_list(folder.path(), lines);
        search(folder.path(), &[&arguments[..], &["--known", &list]].concat())
    };
    let (output, said) = known(&lines);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(found(&said).iter().all(|one| one["known"] == true && one["file"].is_null() && one["runs"].is_u64()));
    let (output, said) = known(&lines[1..]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(found(&said).iter().filter(|one| one["known"] == false).count(), 1);
    let (output, _) = known(&["the sky is green | 1 of 2".to_owned()]);
    assert_eq!(output.status.code(), Some(2));
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("line 3") && why.contains("the sky is green"), "{why}");
    let list = known_list(folder.path(), &lines);
    let (output, _) = search(folder.path(), &["--rules", "reference", "--runs", "1", "--known", &list]);
    assert_eq!(output.status.code(), Some(2), "causes come as often as the rules have them");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("rules 'corrected'") && why.contains("rules 'reference'"), "{why}");
}

#[test]
fn a_known_cause_that_comes_more_often_than_recorded_fails() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["--rules", "corrected", "--runs", "30", "--budget", "0"];
    let (_, all) = search(folder.path(), &arguments);
    let most = found(&all).iter().max_by_key(|one| one["runs"].as_u64()).expect("the rules have weaknesses");
    let runs = most["runs"].as_u64().expect("a count");
    assert!(runs >= 3, "it comes often enough to be told from one in a thousand: {most}");
    let record = |one: &Value, often: &str| match signature(one) == signature(most) {
        true => format!("{} | {often}", signature(one)),
        false => format!("{} | {} of 30", signature(one), one["runs"]),
    };
    let known = |often: &str, more: &[&str]| {
        let lines: Vec<String> = found(&all).iter().map(|one| record(one, often)).collect();
        let list = known_list(folder.path(), &lines);
        let out = folder.path().to_string_lossy().into_owned();
        let command = [&["check", "--out", &out][..], &arguments, &["--known", &list], more].concat();
        dposlab().args(command).output().expect("the binary was built for this test")
    };
    let output = known("1 of 10000", &[]);
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    assert!(
        said.contains(&format!("too often: {}", signature(most))) && said.contains("recorded: 1 of 10000"),
        "{said}"
    );
    assert!(error.contains("1 known cause comes more often than recorded"), "{error}");
    let output = known("10000 of 10000", &[]);
    assert_eq!(output.status.code(), Some(0), "what is rarer is told and no more");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(runs == 30 || said.contains("rarer than recorded: 10000 of 10000"), "{said}");
}

#[test]
fn a_list_is_recorded_by_the_search_that_it_is_held_against() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let list = folder.path().join("known.txt");
    let head = "# Why.\n\na rollback ends at the common block: double-forging\n";
    fs::write(&list, head).expect("it can be written");
    let path = list.to_string_lossy().into_owned();
    let arguments = ["--rules", "corrected", "--runs", "30", "--budget", "0"];
    let (output, _) = search(folder.path(), &[&arguments[..], &["--known", &path]].concat());
    assert_eq!(output.status.code(), Some(2), "nothing is recorded");
    let (_, said) = search(folder.path(), &[&arguments[..], &["--record-known", &path]].concat());
    let runs = found(&said).iter().find(|one| signature(one) == "a rollback ends at the common block: double-forging");
    let runs = runs.map_or(0, |one| one["runs"].as_u64().expect("a count"));
    let recorded =
        format!("# Why.\n\ndrawn with: {DRAWN}\na rollback ends at the common block: double-forging | {runs} of 30\n");
    assert_eq!(fs::read_to_string(&list).expect("it is there"), recorded);
    let (_, said) = search(folder.path(), &[&arguments[..], &["--known", &path]].concat());
    let known: Vec<&Value> = found(&said).iter().filter(|one| one["known"] == true).collect();
    assert_eq!(known.len(), usize::from(runs > 0));
    assert!(known.iter().all(|one| one["too_often"] == false && one["recorded"][1] == 30), "{said}");
}

/// The list that CI takes for known, read by the command itself.
#[test]
fn the_committed_list_of_known_findings_is_one() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let list = root().join("tests/data/known-causes.txt");
    let list = list.to_string_lossy();
    let (output, _) = search(folder.path(), &["--runs", "40", "--known", &list]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Its certificate in docs/findings.md says why. Here it is seen for a day: no block, no node that leaves its chain, and at
/// each node that asks, too few peers in quorum to forge and too few forked to roll back.
#[test]
fn the_halted_network_forges_nothing_in_a_day() {
    let file = root().join("scenarios/findings/the-chain-grows-once-all-faults-are-over.toml");
    {
        let scenario = Scenario::load(&file).expect("it is shipped");
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        // The last block comes three minutes after the fault.
        let over = liveness(&scenario).expect("its fault ends").from_seconds + 210.0;
        let halt = Halt { from: plan.start + Duration::from_secs_f64(over), ..Halt::default() };
        let seen = Arc::new(Mutex::new(halt));
        let mut stage = InlineStage::new(&plan, vec![Box::new(Shared(seen.clone()))]);
        stage.run_until(plan.start + Duration::from_secs_f64(over) + Duration::from_secs(24 * 3_600));
        let rules = plan.tree.rules();
        let seen = seen.lock().expect("the run is over");
        assert_eq!(seen.moved, 0, "blocks forged or taken back, and rollbacks");
        assert!(!seen.quorums.is_empty() && !seen.health.is_empty(), "somebody wants to forge, somebody asks");
        for (reached, in_quorum) in &seen.quorums {
            let (least, percent) = (rules.minimum_network_reach.unwrap_or(0), rules.quorum_percent);
            assert!(*reached < least || 100 * in_quorum < percent * reached, "{in_quorum} of {reached}");
        }
        for (peers, forked) in &seen.health {
            assert!(100 * forked < rules.node.forked_percent * peers, "{forked} of {peers}");
        }
    }
}

/// The nodes' own events while the network stands still.
#[derive(Default)]
struct Halt {
    from: SimTime,
    moved: u32,
    /// Peers reached, and those of them on the chain.
    quorums: BTreeSet<(u32, u32)>,
    /// Peers, and those of them on other chains.
    health: BTreeSet<(u32, u32)>,
}

struct Shared(Arc<Mutex<Halt>>);

impl Observer for Shared {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        let mut halt = self.0.lock().expect("no one panics while holding it");
        if now < halt.from {
            return;
        }
        match event {
            Event::BlockForged(_) | Event::BlockApplied(_) | Event::RolledBack { .. } => halt.moved += 1,
            Event::ForgingSuspended { reached, in_quorum } => {
                halt.quorums.insert((*reached, *in_quorum));
            }
            Event::HealthChecked { peers, forked } => {
                halt.health.insert((*peers, *forked));
            }
            _ => {}
        }
    }
}

/// Two answers and a block of four nodes, and what comes of it when all of them are lost: a rollback that is too deep.
const FRAGILE: &str = "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n\
                       [rules]\nbase = \"corrected\"\n\
                       [[fault]]\nkind = \"drop\"\nmessages = [\"status\"]\nsenders = [0]\nreceivers = [1]\nonly = 3\n\
                       until = { seconds = 64 }\n\
                       [[fault]]\nkind = \"drop\"\nmessages = [\"block\"]\nsenders = [1]\nreceivers = [2]\nonly = 2\n\
                       until = { seconds = 64 }\n";

#[test]
fn an_exhaustive_search_finds_the_one_message_and_its_file_shows_it() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let base = folder.path().join("fragile.toml");
    fs::write(&base, FRAGILE).expect("it can be written");
    let base = base.to_string_lossy();
    let (output, said) = search(folder.path(), &[&base, "--exhaustive", "1", "--budget", "20"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let deep = found(&said).iter().find(|one| text(one, "invariant") == "a rollback is no deeper than a round");
    let deep = deep.unwrap_or_else(|| panic!("it was not found: {said}"));
    assert_eq!(deep["schedule"].as_array().map(Vec::len), Some(1), "without another loss nothing breaks");
    assert_eq!(said["schedules"][1], said["messages"], "one schedule for each message");
    play_all(&said);
    let told = run(&["explain", text(deep, "file")]);
    assert_eq!(told.status.code(), Some(1), "it explains a failure: {}", String::from_utf8_lossy(&told.stderr));
    assert!(String::from_utf8_lossy(&told.stdout).contains("a rollback is no deeper than a round"));
    assert!(!folder.path().join("exhaustive.json").exists(), "it is over");
}

#[test]
fn an_exhaustive_search_goes_on_after_an_interruption() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["check", "--exhaustive", "2", "--mishaps", "lost,late", "--slots", "6", "--json", "--out"];
    let mut child = dposlab();
    let child = child.args(arguments).arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("the binary was built for this test");
    let kept = folder.path().join("exhaustive.json");
    while !kept.exists() {
        thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let partly: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(partly["interrupted"], true);
    let other = run(&["check", "--exhaustive", "1", "--out", &folder.path().to_string_lossy()]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("holds another search"), "{other:?}");
    let again = dposlab().args(arguments).arg(folder.path()).output().expect("it runs");
    let again: Value = serde_json::from_slice(&again.stdout).expect("one object");
    let elsewhere = tempfile::tempdir().expect("another folder of our own");
    let whole = dposlab().args(arguments).arg(elsewhere.path()).output().expect("it runs");
    let whole: Value = serde_json::from_slice(&whole.stdout).expect("one object");
    for key in ["schedules", "messages", "slots", "depth", "interrupted", "found", "bounds"] {
        assert_eq!(again[key], whole[key], "{key}");
    }
}

#[test]
fn an_exhaustive_search_refuses_what_it_cannot_keep_to() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let refused = |arguments: &[&str], why: &str| {
        let (output, _) = search(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(why), "{arguments:?}: {error}");
    };
    let skewed = folder.path().join("skewed.toml");
    fs::write(&skewed, "version = 1\nrounds = 1\n[[fault]]\nkind = \"clock-skew\"\nnodes = [1]\noffset_ms = 9\n")
        .expect("written");
    refused(
        &[&skewed.to_string_lossy(), "--exhaustive", "1"],
        "skewed.toml: key 'fault[0].kind': found \"clock-skew\"",
    );
    refused(&["--exhaustive", "9"], "9 is not in 1..=8");
    refused(&["--exhaustive", "1", "--runs", "5"], "cannot be used with");
    refused(
        &["--exhaustive", "1", "--mishaps", "lots"],
        "unknown variant `lots`, expected one of `lost`, `late`, `doubled`",
    );
    refused(&["--exhaustive", "1", "--messages", "blok"], "unknown variant `blok`");
    refused(&[&skewed.to_string_lossy(), "--exhaustive", "1", "--delegates", "5"], "--delegates");
    fs::write(folder.path().join("exhaustive.json"), "{\"guard\": 1}").expect("it can be written");
    refused(&["--exhaustive", "1"], "exhaustive.json: is no exhaustive search of this version");
}
