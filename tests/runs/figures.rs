//! docs/figures.md tells of every member and column that a run and a sweep write, and of nothing else. What they mean is
//! held by `tests/figures`, which computes them again.

use crate::support::{root, run};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Something in every list: a fault that ends, clients, an assertion.
const SCENARIO: &str = r#"
version = 1
rounds = 8
[network]
delegates = 7
gossip = "reference"
latency = { min_ms = 10, max_ms = 50 }
[rules]
base = "corrected"
[[fault]]
kind = "partition"
share = { share = 0.43 }
from = { seconds = 84.3 }
until = { seconds = 130 }
[[workload]]
kind = "generate"
per_second = 0.5
wallets = 3
funding = 5000
amount = { median = 3, sigma = 1 }
fee = { min = 1, max = 3 }
[[assert]]
finally = "height >= 10"
"#;

/// Names in the first column of a section of the page, up to the next heading of any depth.
fn documented(page: &str, heading: &str) -> BTreeSet<String> {
    let mut lines = page.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "docs/figures.md has no heading '{heading}'");
    let rows = lines.take_while(|line| !line.starts_with('#'));
    rows.filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

fn hold(page: &str, heading: &str, written: impl IntoIterator<Item = impl Into<String>>) {
    let written: BTreeSet<String> = written.into_iter().map(Into::into).collect();
    assert!(!written.is_empty(), "{heading}: nothing is written");
    assert_eq!(documented(page, heading), written, "docs/figures.md, '{heading}', and what is written");
}

fn members(value: &Value) -> Vec<String> {
    value.as_object().unwrap_or_else(|| panic!("{value} is no object")).keys().cloned().collect()
}

fn columns(file: &Path) -> Vec<String> {
    let mut table = csv::Reader::from_path(file).expect("the table is there");
    table.headers().expect("it has a head").iter().map(str::to_owned).collect()
}

/// The rows of a table, by column.
fn table(file: &Path) -> Vec<BTreeMap<String, String>> {
    let mut table = csv::Reader::from_path(file).expect("the table is there");
    table.deserialize().map(|row| row.expect("a row")).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> i64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is a number in {row:?}"))
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).expect("it was written")).expect("JSON")
}

#[test]
fn every_member_and_column_of_a_run_stands_in_the_page_and_no_other_does() {
    let page = fs::read_to_string(root().join("docs/figures.md")).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    fs::write(&scenario, SCENARIO).expect("it is written");
    let (scenario, out_name) = (scenario.display().to_string(), out.display().to_string());
    let output = run(&["run", &scenario, "--stage", "inline", "--out", &out_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for table in ["rounds", "elections", "time", "blocks", "orphans", "links"] {
        hold(&page, &format!("## `{table}`"), columns(&out.join(format!("{table}.csv"))));
    }
    hold(&page, "## `delegates`", columns(&out.join("delegates.csv")));
    let summary = json(&out.join("summary.json"));
    let lists = ["totals", "heals", "delegates"];
    hold(&page, "## `summary.json`", members(&summary).into_iter().filter(|name| !lists.contains(&name.as_str())));
    let totals = summary["totals"].as_object().expect("an object");
    hold(&page, "### `totals`", totals.keys());
    hold(&page, "### `heals`", members(&summary["heals"][0]));
    hold(&page, "### `delegates`", members(&summary["delegates"][0]));
    let quantiles: Vec<&Map<String, Value>> =
        totals.iter().filter(|(name, _)| name.ends_with("_ms")).filter_map(|(_, value)| value.as_object()).collect();
    assert_eq!(quantiles.len(), 6, "three of propagation, two of gossip, one of transactions");
    quantiles.iter().for_each(|members| hold(&page, "### Quantiles", members.keys()));
}

#[test]
fn every_member_and_column_of_a_sweep_stands_in_the_page_and_no_other_does() {
    let page = fs::read_to_string(root().join("docs/figures.md")).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    fs::write(&scenario, SCENARIO).expect("it is written");
    let (scenario, out_name) = (scenario.display().to_string(), out.display().to_string());
    let vary = "network.latency.max_ms=50,200";
    let output = run(&["sweep", &scenario, "--seeds", "0..2", "--vary", vary, "--compare", "--out", &out_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs = columns(&out.join("runs.csv")).into_iter().filter(|name| name != "network.latency.max_ms");
    hold(&page, "## `runs`", runs);
    hold(&page, "## `failures`", columns(&out.join("failures.csv")));
    let summary = json(&out.join("summary.json"));
    let own = members(&summary).into_iter().filter(|name| name != "cells" && name != "compared");
    hold(&page, "## `summary.json` of a sweep", own);
    let compared = &summary["compared"][0];
    hold(&page, "### `compared`", members(compared));
    hold(&page, "### Pairs", members(&compared["figures"]["missed_slots"]));
    hold(&page, "### Pairs of times", members(&compared["converged"]));
    let cell = &summary["cells"][0];
    hold(&page, "### `cells`", members(cell));
    hold(&page, "### Shares", members(&cell["ok"]));
    hold(&page, "### Bounds", members(&cell["assertions"][0]["bounds"]));
    hold(&page, "### Distributions", members(&cell["figures"]["height"]));
    hold(&page, "### Times to an event", members(&cell["converged_seconds"]));
}

/// A run of seven delegates on one latency, with this fault: its totals.
fn totals_with(fault: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    let latency = "latency = { distribution = \"constant\", ms = 50 }";
    let text = format!("version = 1\nrounds = 6\n[network]\ndelegates = 7\n{latency}\n{fault}");
    fs::write(&scenario, text).expect("it is written");
    let (scenario, out_name) = (scenario.display().to_string(), out.display().to_string());
    let output = run(&["run", &scenario, "--stage", "inline", "--out", &out_name]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("digest:"), "{told}{}", String::from_utf8_lossy(&output.stderr));
    json(&out.join("summary.json"))["totals"].clone()
}

/// A node that no pushed block reaches downloads what it has missed, which is no gossip.
#[test]
fn what_is_pushed_and_what_is_downloaded_a_minute_later_are_two_figures() {
    let totals = totals_with(
        "[[fault]]\nkind = \"drop\"\nmessages = [\"block\"]\nreceivers = [3]\nfrom = { seconds = 60 }\nuntil = { after = 60 }\n",
    );
    let of = |figure: &str, member: &str| totals[figure][member].as_f64().expect("a number");
    assert!(of("propagation_ms", "max") > 20_000.0 && of("propagation_all_ms", "max") > 20_000.0, "{totals}");
    assert!(of("gossip_ms", "max") < 3_000.0 && of("gossip_all_ms", "max") < 3_000.0, "{totals}");
    assert!(of("gossip_ms", "count") < of("propagation_ms", "count"), "{totals}");
    let plain = totals_with("");
    assert_eq!(plain["gossip_ms"], plain["propagation_ms"], "nobody has to catch up");
}

/// A forger that goes down with its own block has sent it to nobody: that is no propagation in no time.
#[test]
fn a_block_that_never_left_its_forger_has_no_delays() {
    let crash = |from: &str| {
        totals_with(&format!("[[fault]]\nkind = \"crash\"\nnodes = {{ from = 0, to = 6 }}\nfrom = {{ {from} = 20 }}\n"))
    };
    // Blocks 2 to 19 are on all seven chains when all go down: as the forger has its own block 20, or as it comes to the others.
    let count = |totals: &Value| totals["propagation_ms"]["count"].as_u64().expect("a number");
    assert_eq!(count(&crash("height-at-any")), 18 * 7);
    assert_eq!(count(&crash("height")), 19 * 7, "the forger's own delay counts with those of the others");
}

/// A full pool tells at once what gives way, and what a batch has added only after the batch: a transaction that goes and
/// comes with one batch is in no pool.
#[test]
fn pools_in_the_figures_are_no_fuller_than_they_may_be() {
    let mut text =
        "version = 1\nrounds = 3\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n[rules]\nbase = \"reference\"\n\
                    [rules.pool]\nmax_transactions = 2\n"
            .to_owned();
    for account in 1..=6 {
        text += &format!("[[action]]\nheight = 3\nnode = 1\nby = \"account_{account}\"\ndoes = \"transfer\"\n");
        text += &format!("to = \"account_1\"\nfee = {account}0000000\n");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    fs::write(&scenario, text).expect("it is written");
    let (scenario, out_name) = (scenario.display().to_string(), out.display().to_string());
    let output = run(&["run", &scenario, "--stage", "inline", "--out", &out_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = fs::read_to_string(out.join("events.jsonl")).expect("it was written");
    let evicted = trace.matches(r#""node":1,"kind":"pool.evicted""#).count();
    assert_eq!(evicted, 4, "or the test proved nothing");
    // Two are left, which stand in a block before the slot ends.
    let totals = &json(&out.join("summary.json"))["totals"];
    assert_eq!((&totals["pool_max"], &totals["transactions"]), (&0.into(), &2.into()), "{totals}");
}

/// Networks in which every figure has something to count: forks, crashes that lose pools, full pools, rollbacks, refusals.
pub const EVENTFUL: [&str; 4] = [
    "rounds = 10\n[network]\ndelegates = 7\nrelays = 1\n[rules.pool]\nmax_transactions = 4\n\
     [[fault]]\nkind = \"crash\"\nnodes = [2, 5]\nkeep_pool = false\nfrom = { seconds = 90 }\nuntil = { seconds = 150 }\n\
     [[fault]]\nkind = \"refuse-transactions\"\nnodes = [0]\nfrom = { seconds = 20 }\nuntil = { seconds = 140 }\n\
     [[fault]]\nkind = \"censor\"\ndelegates = { share = 0.8 }\nsender = \"account_1\"\nfrom = { seconds = 20 }\n\
     until = { seconds = 300 }\n\
     [[workload]]\nkind = \"generate\"\nper_second = 2\nfee = { min = 1, max = 5 }\n",
    "rounds = 12\nstall = \"off\"\n[rules]\nnode.retry_dropped_peers = true\n[network]\ndelegates = 9\n[[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\n\
     from = { height = 12 }\nuntil = { seconds = 250 }\n[[fault]]\nkind = \"pause\"\nnodes = [1]\n\
     from = { seconds = 300 }\nuntil = { seconds = 370 }\n[[fault]]\nkind = \"forge-invalid\"\n\
     delegates = [\"genesis_4\"]\nerror = \"reward\"\nfrom = { round = 2 }\nuntil = { round = 4 }\n\
     [[fault]]\nkind = \"double-forge\"\ndelegates = [\"genesis_2\", \"genesis_3\"]\nfrom = { round = 6 }\n\
     until = { round = 9 }\n[[workload]]\nkind = \"generate\"\nper_second = 1\n",
    "rounds = 8\nstall = \"off\"\n[network]\ndelegates = 7\nloss = 0.05\n[rules.pool]\nmax_transactions = 3\n[[fault]]\n\
     kind = \"restart\"\nnodes = [3]\nfrom = { seconds = 100 }\n[[fault]]\nkind = \"crash\"\nnodes = [6]\n\
     keep_pool = false\nfrom = { seconds = 120 }\nuntil = { seconds = 400 }\n\
     [[fault]]\nkind = \"low-fee-flood\"\nper_second = 2\nfrom = { height = 5 }\n",
    // A node loses its pool again and again.
    "rounds = 8\nstall = \"off\"\n[network]\ndelegates = 7\n\
     [[fault]]\nkind = \"crash\"\nnodes = [6]\nkeep_pool = false\nfrom = { seconds = 47 }\nuntil = { seconds = 60 }\n\
     [[fault]]\nkind = \"crash\"\nnodes = [6]\nkeep_pool = false\nfrom = { seconds = 87 }\nuntil = { seconds = 100 }\n\
     [[fault]]\nkind = \"crash\"\nnodes = [6]\nkeep_pool = false\nfrom = { seconds = 127 }\nuntil = { seconds = 140 }\n\
     [[fault]]\nkind = \"crash\"\nnodes = [6]\nkeep_pool = false\nfrom = { seconds = 167 }\nuntil = { seconds = 180 }\n\
     [[workload]]\nkind = \"generate\"\nper_second = 2\n",
];

/// An assertion measures what the tables of the same run say, for each figure.
#[test]
fn assertions_measure_what_the_tables_say() {
    let (folder, mut counted) = (tempfile::tempdir().expect("a folder"), 0);
    for (place, text) in EVENTFUL.iter().enumerate() {
        let text = format!("version = 1\ncrypto = \"modelled\"\n{text}");
        let (file, out) = (folder.path().join(format!("{place}.toml")), folder.path().join(format!("{place}")));
        fs::write(&file, &text).expect("it is written");
        let (file, out_name) = (file.display().to_string(), out.display().to_string());
        run(&["run", &file, "--stage", "inline", "--seed", "3", "--out", &out_name]);
        let trace = fs::read_to_string(out.join("events.jsonl")).expect("it was written");
        let told = |kind: &str| trace.matches(&format!("\"kind\":\"{kind}\"")).count().to_string();
        let totals = json(&out.join("summary.json"))["totals"].clone();
        let mut asserted = text.clone();
        let mut add = |claim: &str, metric: &str, sign: &str, value: &str| {
            asserted += &format!("[[assert]]\n{claim} = \"{metric} {sign} {value}\"\n");
        };
        for (metric, member) in [("pool", "pool_max"), ("chains", "branches_max"), ("down", "down_max")] {
            let most = totals[member].to_string();
            add("always", metric, "<=", &most);
            add("sometimes", metric, ">=", &most);
        }
        for (metric, member) in [("agreement", "agreement_min"), ("vote-agreement", "weight_agreement_min")] {
            let least = totals[member].as_f64().expect("somebody is live");
            add("always", metric, ">=", &(least - 1e-9).max(0.0).to_string());
            add("sometimes", metric, "<=", &(least + 1e-9).to_string());
        }
        for (metric, member) in [
            ("height", "height"),
            ("missed", "missed_slots"),
            ("blocks-forged", "forged"),
            ("blocks-refused", "blocks_refused"),
            ("rollbacks", "rollbacks"),
            ("rollback-depth", "rollback_depth_max"),
            ("suspended", "forging_suspended"),
            ("rejected", "transactions_rejected"),
        ] {
            add("finally", metric, "==", &totals[member].to_string());
        }
        for (metric, kind) in [
            ("blocks-reverted", "block.reverted"),
            ("health-checks", "health.checked"),
            ("expired", "pool.expired"),
            ("evicted", "pool.evicted"),
            ("peers-removed", "peer.removed"),
        ] {
            add("finally", metric, "==", &told(kind));
        }
        for (metric, kind) in [
            ("blocks-reverted", "block.reverted"),
            ("health-checks", "health.checked"),
            ("evicted", "pool.evicted"),
            ("peers-removed", "peer.removed"),
        ] {
            let of_node = |node: u32| trace.matches(&format!("\"node\":{node},\"kind\":\"{kind}\"")).count();
            let most = (0..9).map(of_node).max().expect("there are nodes").to_string();
            add("finally", &format!("every node {metric}"), "<=", &most);
            add("finally", &format!("some node {metric}"), ">=", &most);
        }
        let blocks = table(&out.join("blocks.csv"));
        let most =
            blocks.iter().map(|block| number(block, "transactions")).max().expect("there are blocks").to_string();
        add("always", "every block transactions", "<=", &most);
        add("finally", "some block transactions", ">=", &most);
        let times: Vec<i64> = blocks.iter().map(|block| number(block, "slot") * 8).collect();
        let gap = times.windows(2).map(|two| two[1] - two[0]).max().expect("there are blocks").to_string();
        add("finally", "every block gap", "<=", &gap);
        add("finally", "not every block gap", "<", &gap);
        let forged = |key: &str| blocks.iter().filter(|block| block["forger"] == key).count();
        let members = table(&out.join("delegates.csv"));
        let shares: Vec<usize> = members.iter().map(|member| forged(&member["public_key"])).collect();
        let (least, most) = (shares.iter().min().expect("one"), shares.iter().max().expect("one"));
        // Asked in every slot, so that shares follow each reorganisation.
        add("always", "every delegate blocks", ">=", "0");
        add("finally", "every delegate blocks", "<=", &most.to_string());
        add("finally", "some delegate blocks", "<=", &least.to_string());
        add("finally", &format!("not some delegate (blocks > {most} or blocks"), "<", &format!("{least})"));
        // The state counts a round of each gap at most, and none of the gap after genesis.
        let round = 8 * members.iter().map(|member| &member["public_key"]).collect::<BTreeSet<_>>().len() as i64;
        let whole = times[0] == 8 && times.windows(2).all(|two| two[1] - two[0] <= round);
        let mut missed: BTreeMap<&str, i64> = BTreeMap::new();
        for member in members.iter().filter(|_| whole) {
            *missed.entry(&member["public_key"]).or_default() += number(member, "missed");
        }
        if let Some(most) = missed.values().max() {
            counted += 1;
            add("finally", "every delegate missed", "<=", &most.to_string());
            add("finally", "some delegate missed", ">=", &most.to_string());
        }
        let lowest: Vec<i64> = table(&out.join("time.csv")).iter().map(|row| number(row, "height_least")).collect();
        let [.., before, last] = lowest[..] else { panic!("two slots") };
        add("finally", "change lowest-height", "==", &(last - before).to_string());
        let changes: Vec<i64> = lowest.windows(2).map(|two| two[1] - two[0]).collect();
        let (least, most) = (changes.iter().min().expect("one"), changes.iter().max().expect("one"));
        add("always", "change lowest-height", "<=", &most.to_string());
        add("always", "change lowest-height", ">=", &least.to_string());
        add("sometimes", "change lowest-height", ">=", &most.to_string());
        add("sometimes", "change lowest-height", "<=", &least.to_string());
        fs::write(&file, &asserted).expect("it is written");
        let output = run(&["run", &file, "--stage", "inline", "--seed", "3"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(counted > 1, "missed slots of delegates were compared in {counted} runs");
}

/// A condition on blocks that a chain decided is open again once that chain has lost. Two of five delegates and four relays are the larger
/// part of the nodes, so theirs is the winning chain during the split, and the shorter one.
#[test]
fn what_a_lost_chain_decided_is_forgotten() {
    const SPLIT: &str = "version = 1\nrounds = 12\nstall = \"off\"\ncrypto = \"modelled\"\n[rules]\nbase = \"repaired\"\n\
         [network]\ndelegates = 5\nrelays = 4\n[[fault]]\nkind = \"partition\"\ngroups = [[0, 1, 5, 6, 7, 8]]\n\
         from = { seconds = 40 }\nuntil = { seconds = 300 }\n";
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("split.toml"), folder.path().join("split"));
    fs::write(&file, SPLIT).expect("it is written");
    let (file_name, out_name) = (file.display().to_string(), out.display().to_string());
    let output = run(&["run", &file_name, "--stage", "inline", "--seed", "3", "--out", &out_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let greatest = |rows: &[BTreeMap<String, String>]| {
        let pairs = rows.windows(2).filter(|two| number(&two[1], "height") == number(&two[0], "height") + 1);
        pairs.map(|two| (number(&two[1], "slot") - number(&two[0], "slot")) * 8).max().expect("blocks in a row")
    };
    let (kept, lost) = (greatest(&table(&out.join("blocks.csv"))), greatest(&table(&out.join("orphans.csv"))));
    assert!(lost > kept, "or the test proves nothing: {lost} s on the lost chain, {kept} s on the other");
    let asserted = format!(
        "{SPLIT}[[assert]]\nsometimes = \"some block gap >= {lost}\"\n\
         [[assert]]\neventually = \"not some block gap > {kept}\"\nafter_fault = 0\n\
         [[assert]]\nfinally = \"every block gap <= {kept} and not some block gap >= {lost}\"\n\
         [[assert]]\nsometimes = \"not every block gap <= {kept}\"\n\
         [[assert]]\nfinally = \"every block gap <= {kept} and every delegate blocks >= 1\"\n"
    );
    fs::write(&file, &asserted).expect("it is written");
    let output = run(&["run", &file_name, "--stage", "inline", "--seed", "3"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
