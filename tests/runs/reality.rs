//! Seven real nodes beside simulated ones. `tests/data/seven-nodes` holds windows of a real network: what its nodes did, in facts,
//! and a scenario beside each. The same code computes the same figures from the facts of a window and from 50 runs of its scenario.
//! Each real figure lies within what the runs give, with the tolerance that `compare.rs` states for it, or is in `differences.toml`.
//! `docs/reality.md` is the result; `REWRITE_REALITY=1` writes it. `DPOSLAB_SEVEN_NODES=DIR` compares another folder.

mod compare;
mod derive;
mod facts;
mod figures;
mod node;
mod page;
mod simulated;

use crate::support::root;
use compare::Row;
use dposlab::{
    scenario::Scenario,
    sim::{Trigger, network::Distribution},
};
use facts::{Facts, Window};
use figures::Figures;
use rayon::prelude::*;
use serde_json::{Value, json};
use simulated::Extent;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// Runs of each scenario.
const SEEDS: u64 = 200;

fn shipped() -> PathBuf {
    root().join("tests/data/seven-nodes")
}

/// The folder to compare, and whether it is the project's own.
fn folder() -> (PathBuf, bool) {
    env::var_os("DPOSLAB_SEVEN_NODES").map_or_else(|| (shipped(), true), |folder| (PathBuf::from(folder), false))
}

/// The windows of a folder, by name. `network.json` describes the network.
fn windows(folder: &Path) -> Vec<Window> {
    let list = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let files = list.map(|entry| entry.expect("the folder can be listed").path());
    let is_window = |file: &PathBuf| {
        file.extension().is_some_and(|ending| ending == "json")
            && file.file_stem().is_some_and(|name| name != "network")
    };
    let mut files: Vec<PathBuf> = files.filter(is_window).collect();
    files.sort();
    assert!(!files.is_empty(), "{}: found no NAME.json, allowed is one or more", folder.display());
    files.iter().map(|file| Window::load(file).unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// The scenario beside a window, or one that is derived from the window.
fn scenario_of(folder: &Path, window: &Window) -> Result<Scenario, String> {
    let file = folder.join(format!("{}.toml", window.name));
    match file.exists() {
        true => Scenario::load(&file).map_err(|why| why.to_string()),
        false => derived(window).map_err(|why| format!("{}.json: {why}", window.name)),
    }
}

/// The figures of so many runs of a scenario, on all cores.
fn runs(scenario: &Scenario, facts: &Facts, seeds: u64) -> Vec<Figures> {
    let (extent, over) = (Extent::of(facts), facts.over());
    let play = |seed| figures::figures(&simulated::play(scenario, seed, extent), over);
    (1..=seeds).into_par_iter().map(play).collect()
}

/// The figures of each window beside those of its runs, and what is wrong with windows that have no scenario.
fn compared(folder: &Path, windows: &[Window]) -> (BTreeMap<String, Vec<Row>>, Vec<String>) {
    let (mut all, mut wrong) = (BTreeMap::new(), Vec::new());
    for window in windows {
        let real = figures::figures(&window.facts, window.facts.over());
        match scenario_of(folder, window) {
            Ok(scenario) => {
                let rows = compare::rows(&real, &runs(&scenario, &window.facts, SEEDS));
                all.insert(window.name.clone(), rows);
            }
            Err(why) => wrong.push(why),
        }
    }
    (all, wrong)
}

#[test]
fn the_figures_of_each_window_follow_from_its_facts() {
    let (folder, is_own) = folder();
    let mut compared = 0;
    for window in windows(&folder) {
        let held = figures::hold_against_file(&window.facts, &window.figures);
        compared += held.unwrap_or_else(|why| panic!("{}: {why}", window.name));
    }
    assert!(!is_own || compared > 500, "{compared} figures are compared");
}

#[test]
fn what_real_nodes_did_lies_within_what_simulated_ones_do() {
    let (folder, is_own) = folder();
    let windows = windows(&folder);
    let (mut rows, wrong) = compared(&folder, &windows);
    let nodes = node::compare_all(&folder, &windows);
    for (window, one) in &nodes {
        rows.entry(window.clone()).or_default().extend(one.rows());
    }
    let listed = |folder: &Path| compare::differences(folder).unwrap_or_else(|why| panic!("{why}"));
    let mut known = listed(&folder);
    if !is_own && known.is_empty() {
        // What is known of a window holds for one of its name.
        known = listed(&shipped());
        known.retain(|one| rows.contains_key(&one.window));
    }
    let (file, rewrite) = (root().join("docs/reality.md"), is_own && env::var_os("REWRITE_REALITY").is_some());
    if rewrite {
        fs::write(folder.join("differences.toml"), compare::file_of(&rows, &known)).expect("the list can be written");
        known = listed(&folder);
    }
    let text = page::page(&windows, &rows, &known, &nodes, SEEDS);
    if rewrite {
        fs::write(&file, &text).expect("the page can be written");
    }
    if !is_own {
        println!("{text}");
    }
    let judged = compare::judge(&rows, &known).err();
    let wrong: Vec<String> = wrong.into_iter().chain(judged).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if is_own {
        let page = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(page, text, "docs/reality.md is written anew with REWRITE_REALITY=1");
    }
}

/// The kinds of faults and when they begin and end, but for what a forger always takes.
fn acts(scenario: &Scenario) -> Vec<(&'static str, Trigger, Option<Trigger>)> {
    let faults = scenario.faults.iter().filter(|fault| fault.kind.name() != "late-forging");
    let mut acts: Vec<_> = faults.map(|fault| (fault.kind.name(), fault.from.clone(), fault.until.clone())).collect();
    acts.sort_by_key(|act| format!("{act:?}"));
    acts
}

/// The scenario that the window's own facts give.
fn derived(window: &Window) -> Result<Scenario, String> {
    let text = derive::scenario_of(&window.name, &window.facts)?;
    Scenario::parse(&text, Path::new("derived.toml")).map_err(|why| format!("{why}\n{text}"))
}

#[test]
fn a_window_without_a_scenario_gets_the_one_that_was_written_for_it() {
    let windows: BTreeMap<String, Window> =
        windows(&shipped()).into_iter().map(|one| (one.name.clone(), one)).collect();
    for (name, window) in &windows {
        match (&**name, derived(window)) {
            ("five-chains" | "connect-400-300", Err(why)) => {
                assert!(why.starts_with("tips.") && why.contains("several chains"), "{why}");
            }
            ("five-chains" | "connect-400-300", Ok(_)) => panic!("{name} begins on several chains"),
            (_, Err(why)) => panic!("{name}: {why}"),
            // They say otherwise how a window begins, or a node alone.
            ("isolate" | "healthy" | "partition-reach2-partial-mesh", Ok(derived)) => {
                assert_eq!(derived.network.delegates, 7, "{name}");
                assert!(!derived.faults.is_empty(), "{name}");
            }
            (_, Ok(derived)) => {
                let written = scenario_of(&shipped(), window).unwrap_or_else(|why| panic!("{why}"));
                assert_eq!(acts(&derived), acts(&written), "{name}");
                assert_eq!(derived.rules["minimum_network_reach"], written.rules["minimum_network_reach"], "{name}");
            }
        }
    }
    let latency =
        |name: &str| derived(&windows[name]).expect("it was derived above").network.model.latency.distribution;
    assert!(matches!(latency("latency-150"), Distribution::Uniform { min_ms: 150..160, max_ms: 160..200 }));
    assert!(matches!(latency("healthy"), Distribution::Uniform { min_ms: 0..10, max_ms: 15..40 }));
    assert!(matches!(latency("loss-20"), Distribution::LogNormal { .. }));
}

/// A window of so many nodes, with these entries in its timeline and nothing recorded.
fn bare(nodes: u32, timeline: Value) -> Window {
    let json = json!({"nodes": nodes, "block_time": 8, "epoch": 1_490_101_200, "begins_unix_ms": 1_795_634_610_076_u64,
                      "minimum_network_reach": 2, "timeline": timeline, "tips": {"1": [[100, 5, "7", 3, 0, "idle", 0, 0]]}});
    Window::of("bare", &json).expect("other members may be absent")
}

#[test]
fn a_window_may_lack_members_and_have_other_nodes() {
    let what = json!([
        [5, "net split 1,2 3,4"],
        [40, "net heal"],
        [50, "kill -9 node 4"],
        [60.5, "start node 4 clock +2s"],
        [70, "net delay 300 50"]
    ]);
    let window = bare(4, what);
    let scenario = derived(&window).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(scenario.network.nodes(), 4);
    let kinds: Vec<&str> = acts(&scenario).iter().map(|act| act.0).collect();
    assert_eq!(kinds, ["clock-skew", "crash", "delay", "partition"]);
    assert_eq!(window.facts.over(), Some(60.5));
    let runs = runs(&scenario, &window.facts, 2);
    let rows = compare::rows(&figures::figures(&window.facts, window.facts.over()), &runs);
    assert!(rows.iter().any(|row| row.figure.name == "forged" && row.outside.is_some()), "it says that nobody forged");
}

#[test]
fn what_is_not_understood_is_named() {
    let refused = |nodes, timeline| derived(&bare(nodes, timeline)).expect_err("it is not understood");
    let bent = refused(7, json!([[1, "phase one"], [2, "net bend 1 2"]]));
    assert!(bent.starts_with("timeline[1]: 'net bend 1 2': allowed is a split"), "{bent}");
    let stranger = refused(3, json!([[1, "stop (SIGTERM) node 4"]]));
    assert_eq!(stranger, "timeline[0]: 'stop (SIGTERM) node 4': found node 4, allowed are those from 1 to 3");
    let loss = refused(7, json!([[1, "net loss 50"]]));
    assert!(loss.contains("allowed is a loss of 20 %"), "{loss}");
    let wrong = |json: Value| Window::of("wrong", &json).err().expect("it has another form");
    assert_eq!(wrong(json!({"epoch": 1})), "begins_unix_ms: found none, allowed is a number");
    let form = wrong(json!({"epoch": 1, "begins_unix_ms": 1, "forged": [[1, 2]]}));
    assert_eq!(form, "forged[0]: found null, allowed is text");
}
