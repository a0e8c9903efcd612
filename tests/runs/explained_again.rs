//! Computes what `dposlab explain` says a second time: from the trace alone, by other code. The trace knows no steps: what
//! happened before is told by an instant for each node, up to which all that the node did belongs to it.

use crate::support::run;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

const FINDINGS: [&str; 2] = ["a-rollback-keeps-what-is-pending", "a-pool-holds-no-more-than-its-limit"];

/// A finding's trace with all messages, and its explanation with every row.
fn told(finding: &str, folder: &Path) -> (Vec<Value>, Value) {
    let file = format!("scenarios/findings/{finding}.toml");
    let trace = folder.join("trace.jsonl").display().to_string();
    run(&["run", &file, "--trace", &trace, "--trace-network"]);
    let lines = fs::read_to_string(&trace).expect("the trace was written");
    let said = run(&["explain", &file, "--full", "--json", "--repeats", "0", "--budget", "0"]);
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    (lines.collect(), serde_json::from_slice(&said.stdout).expect("--json prints an object"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn kind(event: &Value) -> &str {
    event["kind"].as_str().unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn is_decision(event: &Value) -> bool {
    matches!(kind(event), "health.checked" | "forger.suspended")
}

/// By node, the last instant of what happened before an instant of one node; -1 where nothing did.
fn before(trace: &[Value], node: i64, at: i64) -> Vec<i64> {
    let (nodes, events) = (number(&trace[0]["nodes"]), &trace[1..]);
    let sent: Vec<&Value> = events
        .iter()
        .filter(|event| kind(event) == "network.sent" && event["from"]["node"] != event["to"]["node"])
        .collect();
    let mut cut = vec![-1; nodes as usize];
    cut[node as usize] = at;
    loop {
        let was = cut.clone();
        for message in &sent {
            let carries = matches!(message["message"]["type"].as_str(), Some("block" | "blocks" | "transactions"));
            let (from, to) = (number(&message["from"]["node"]) as usize, number(&message["to"]["node"]) as usize);
            if carries && number(&message["arrives"]) <= cut[to] {
                cut[from] = cut[from].max(number(&message["at"]));
            }
        }
        for decision in events.iter().filter(|event| is_decision(event)) {
            if number(&decision["at"]) <= cut[number(&decision["node"]) as usize] {
                for (peer, stood) in peers(events, &sent, decision, nodes) {
                    cut[peer] = cut[peer].max(stood);
                }
            }
        }
        if cut == was {
            return cut;
        }
    }
}

/// The peers of which a node knew where they stand when it decided, and when each had come there.
fn peers(events: &[Value], sent: &[&Value], decision: &Value, nodes: i64) -> Vec<(usize, i64)> {
    let (node, at) = (number(&decision["node"]), number(&decision["at"]));
    let ups = events.iter().filter(|event| kind(event) == "node.up" && event["node"] == node);
    let up = ups.map(|event| number(&event["at"])).filter(|up| *up <= at).max().unwrap_or(-1);
    let known = (0..nodes).filter_map(|peer| {
        let said = sent.iter().filter(|message| {
            let arrives = number(&message["arrives"]);
            message["message"]["type"] == "status"
                && message["from"]["node"] == peer
                && message["to"]["node"] == node
                && (up..=at).contains(&arrives)
        });
        let block = &said.max_by_key(|message| number(&message["arrives"]))?["message"]["block"];
        let came = events.iter().filter(|event| event["node"] == peer && number(&event["at"]) <= at);
        let mut there = came.filter(|event| match kind(event) {
            "block.applied" => event["block"]["id"] == *block,
            "chain.rolled-back" => event["to"]["id"] == *block,
            _ => false,
        });
        Some((peer as usize, number(&there.next_back()?["at"])))
    });
    known.collect()
}

#[test]
fn what_happened_before_is_what_the_trace_says() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    for finding in FINDINGS {
        let (trace, said) = told(finding, folder.path());
        let target = &said["target"];
        let cut = before(&trace, number(&target["node"]), number(&target["at_us"]));
        let mut within: BTreeSet<(String, i64, String)> = BTreeSet::new();
        let mut all = 0;
        for event in trace[1..].iter().filter(|event| matches!(kind(event), "block.forged" | "block.applied")) {
            let (node, id) = (number(&event["node"]), event["block"]["id"].as_str().expect("an id"));
            all += 1;
            if number(&event["at"]) <= cut[node as usize] {
                within.insert((kind(event).to_owned(), node, id.to_owned()));
            }
        }
        let mut rows: BTreeSet<(String, i64, String)> = BTreeSet::new();
        for row in list(&said["chain"]["rows"]).iter().filter(|row| row["block"].is_object()) {
            let id = row["block"]["id"].as_str().expect("an id");
            rows.extend(list(&row["nodes"]).iter().map(|node| (kind(row).to_owned(), number(node), id.to_owned())));
        }
        let differ: Vec<_> = rows.symmetric_difference(&within).collect();
        assert!(differ.is_empty(), "{finding}: {differ:?}");
        assert!(rows.len() > 40 && rows.len() < all, "{finding}: {} of {all}, or nothing was left out", rows.len());
    }
}

/// Per cent of some of all, cut off after a decimal.
fn percent(some: i64, of: i64) -> f64 {
    (some * 1_000).checked_div(of).unwrap_or(0) as f64 / 10.0
}

#[test]
fn the_numbers_beside_the_rules_are_what_the_trace_counted() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let mut compared = BTreeSet::new();
    for finding in FINDINGS {
        let (trace, said) = told(finding, folder.path());
        let rows = list(&said["chain"]["rows"]).iter().flat_map(|row| list(&row["numbers"]));
        for one in rows.chain(list(&said["chain"]["numbers"])) {
            let rule = one["rule"].as_str().expect("a rule");
            // Found last by one of these nodes at this instant.
            let here = |event: &&Value| event["at"] == one["at_us"] && list(&one["nodes"]).contains(&event["node"]);
            let found: Vec<f64> = trace[1..]
                .iter()
                .filter(here)
                .filter_map(|event| match (rule, kind(event)) {
                    ("node.forked_percent", "health.checked") => {
                        Some(percent(number(&event["forked"]), number(&event["peers"])))
                    }
                    ("quorum_percent", "forger.suspended") => {
                        Some(percent(number(&event["in_quorum"]), number(&event["reached"])))
                    }
                    ("minimum_network_reach", "forger.suspended") => Some(number(&event["reached"]) as f64),
                    ("rollback", "chain.rolled-back") => {
                        Some((number(&event["from"]["height"]) - number(&event["to"]["height"])) as f64)
                    }
                    ("pool.max_transactions", "pool.replaced") => Some(list(&event["transactions"]).len() as f64),
                    _ => None,
                })
                .collect();
            let (value, threshold) = (one["found"].as_f64(), one["threshold"].as_f64().expect("a number"));
            // Every forger had the quorum. The trace does not say by how much.
            if rule == "quorum_percent" && found.is_empty() {
                assert_eq!(one["met"], true, "{finding}: {one}");
                continue;
            }
            // Why a node disregards a block is not in the trace.
            if rule == "slot" {
                assert_eq!(one["met"], value.expect("a number") <= threshold, "{finding}: {one}");
                continue;
            }
            assert!(found.iter().any(|found| Some(*found) == value), "{finding}: {one}, the trace says {found:?}");
            let value = value.expect("a number");
            let met =
                if rule == "rollback" || rule.starts_with("pool") { value <= threshold } else { value >= threshold };
            assert_eq!(one["met"], met, "{finding}: {one}");
            compared.insert(rule.to_owned());
        }
    }
    let rules = ["node.forked_percent", "pool.max_transactions", "rollback"];
    assert!(rules.iter().all(|rule| compared.contains(*rule)), "{compared:?}");
}
