//! `dposlab explain`: of each known finding it names the cause that docs/findings.md tells, the same on any number of
//! threads, and the page holds what is printed.

use crate::{
    support::{root, run},
    testnet::Up,
};
use serde_json::Value;
use std::{fs, process::Output};

/// The text of an explanation, and the output of the command.
fn explained(file: &str, arguments: &[&str]) -> (Output, Value) {
    let all = [&["explain", file, "--json"][..], arguments].concat();
    let output = run(&all);
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|why| panic!("{file}: {why}: {}", String::from_utf8_lossy(&output.stderr)));
    (output, said)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list '{key}' in {value}"))
}

/// A finding, and its cause as docs/findings.md tells it.
struct Known {
    file: &'static str,
    /// Of the rows: a kind and what it says.
    rows: &'static [(&'static str, &'static str)],
    /// Among the numbers that decided, those of rows included.
    numbers: &'static [&'static str],
    /// Changes with which it does not fail, as options.
    passes: &'static [&'static str],
}

/// Written from docs/findings.md, finding by finding.
const KNOWN: [Known; 13] = [
    Known {
        file: "a-rollback-ends-at-the-common-block",
        rows: &[("fault.began", "'withhold'"), ("health.checked", "2 of 4 = 50 %"), ("chain.rolled-back", "(forked)")],
        numbers: &["reaches the 50 % to roll back"],
        passes: &[],
    },
    Known {
        file: "a-rollback-is-no-deeper-than-a-round",
        rows: &[("fault.began", "'withhold'"), ("chain.rolled-back", "(forked)")],
        numbers: &["9 blocks taken back are deeper than a round of 5"],
        passes: &[],
    },
    Known {
        file: "a-pool-keeps-what-can-still-be-forged",
        rows: &[
            ("submitted", "from a client"),
            ("block.refused", "IPFS hash is already registered"),
            ("failure", "Transfer"),
        ],
        numbers: &[],
        passes: &["rules.pool.ipfs_hashes_seen_of_delegates=false"],
    },
    Known {
        file: "a-forger-counts-pending-resignations",
        rows: &[("submitted", "from a client"), ("block.refused", "not enough delegates to allow resignation")],
        numbers: &[],
        passes: &["rules.pool.resignations_counted_on_chain=false"],
    },
    Known {
        file: "a-rollback-keeps-what-is-pending",
        rows: &[
            ("fault.began", "'partition'"),
            ("chain.rolled-back", "(forked)"),
            ("pool.replaced", "begins its pool anew"),
        ],
        numbers: &["to roll back"],
        passes: &[],
    },
    Known {
        file: "a-forger-sees-registered-hashes",
        rows: &[("submitted", "from a client"), ("block.refused", "IPFS hash is already registered")],
        numbers: &[],
        passes: &["rules.pool.ipfs_hashes_seen_of_delegates=false"],
    },
    Known {
        file: "all-nodes-come-to-one-chain-once-all-faults-are-over",
        rows: &[("fault.began", "'forge-invalid'"), ("block.forged", "forges")],
        numbers: &[
            "2 of 3 peers = 66.6 % on the chain reaches the 66 % to forge",
            "1 of 3 peers = 33.3 % on other chains is below the 50 % to roll back",
        ],
        passes: &[],
    },
    Known {
        file: "the-chain-grows-once-all-faults-are-over",
        rows: &[
            ("fault.began", "'double-forge'"),
            ("health.checked", "4 of 5 = 80 %"),
            ("health.checked", "3 of 5 = 60 %"),
            ("chain.rolled-back", "(forked)"),
        ],
        numbers: &[
            "3 of 5 peers = 60 % on the chain is below the 66 % to forge",
            "2 of 5 peers = 40 % on other chains is below the 50 % to roll back",
        ],
        passes: &["rules.quorum_percent=60"],
    },
    Known {
        file: "resignations-leave-enough-delegates-for-the-next-milestone",
        rows: &[("submitted", "from a client"), ("block.refused", "at height 28")],
        numbers: &["7 delegates that have not resigned are below the 8 of the next round"],
        passes: &[],
    },
    Known {
        file: "a-forger-s-own-relay-takes-its-block",
        rows: &[("fault.began", "'withhold'"), ("block.refused", "forged it")],
        numbers: &[],
        passes: &[],
    },
    Known {
        file: "a-refused-transaction-displaces-nobody",
        rows: &[("pool.evicted", "in its full pool"), ("failure", "room was made for")],
        numbers: &[],
        passes: &["rules.pool.ipfs_hashes_seen_of_delegates=false"],
    },
    Known {
        file: "a-pool-holds-one-vote-or-registration-of-a-sender",
        rows: &[("submitted", "from a client"), ("failure", "of type")],
        numbers: &[],
        passes: &["rules.pool.checks_precede_adding=false"],
    },
    Known {
        file: "a-pool-holds-no-more-than-its-limit",
        rows: &[
            ("submitted", "from a client"),
            ("chain.rolled-back", "rolls back 2 blocks"),
            ("pool.replaced", "with 4 transactions"),
        ],
        numbers: &["4 transactions in the new pool are above its limit of 3"],
        passes: &[],
    },
];

#[test]
fn each_known_finding_is_explained_by_its_known_cause() {
    for Known { file, rows, numbers, passes } in KNOWN {
        let path = format!("scenarios/findings/{file}.toml");
        let budget = if passes.is_empty() { "0" } else { "80" };
        let (output, said) = explained(&path, &["--full", "--repeats", "0", "--budget", budget]);
        assert_eq!(output.status.code(), Some(1), "{file}: a failure is explained");
        let told = list(&said["chain"], "rows");
        for (kind, words) in rows {
            let is_told =
                |row: &&Value| row["kind"] == *kind && row["text"].as_str().is_some_and(|text| text.contains(words));
            assert!(told.iter().any(|row| is_told(&row)), "{file}: no {kind} '{words}' in {told:#?}");
        }
        let of_rows = told.iter().flat_map(|row| list(row, "numbers"));
        let known: Vec<&str> =
            list(&said["chain"], "numbers").iter().chain(of_rows).filter_map(|one| one["text"].as_str()).collect();
        for number in numbers {
            assert!(known.iter().any(|text| text.contains(number)), "{file}: no '{number}' in {known:#?}");
        }
        for option in passes {
            let tried = list(&said["nearest"], "tried");
            let passes = tried.iter().any(|tried| tried["set"] == *option && tried["passes"] == true);
            assert!(passes, "{file}: {option} in {tried:#?}");
        }
    }
}

#[test]
fn the_halt_is_decided_by_the_rollbacks_that_leave_each_node_between_the_thresholds() {
    let file = "scenarios/findings/the-chain-grows-once-all-faults-are-over.toml";
    let (_, said) = explained(file, &["--repeats", "24", "--instants", "16", "--budget", "0"]);
    let rivals = list(&said["chain"], "rivals");
    let twins: Vec<&Value> = rivals.iter().filter(|rival| rival["height"] == 16).collect();
    assert_eq!(twins.len(), 2, "node 3 makes two blocks at height 16: {rivals:?}");
    assert!(twins.iter().all(|rival| rival["node"] == 3 && rival["slot"] == 15), "{twins:?}");
    let stand: Vec<&Value> = twins.iter().map(|rival| &rival["stand_on_it"]).collect();
    let (one, other) = (serde_json::json!([1, 2, 3, 7]), serde_json::json!([0, 4, 5, 6]));
    assert!(stand.contains(&&one) && stand.contains(&&other), "{stand:?}");
    let curve = &said["curve"];
    let points = list(curve, "points");
    let share = |point: &Value| point["share"].as_f64().unwrap_or(-1.0);
    assert!(share(&points[0]) < 0.9, "from the start it may go well: {curve:#?}");
    // Node 1 changes sides at 294 s by a health check that node 0's rollback at 286 s made end so.
    let certain = curve["certain_from_seconds"].as_f64().expect("it is certain in the end");
    assert!(certain > 194.0 && certain < 340.0, "{certain}");
    let after = points.iter().filter(|point| point["after_seconds"].as_f64() >= Some(certain));
    assert!(after.clone().count() > 2 && after.clone().all(|point| share(point) == 1.0), "{curve:#?}");
}

#[test]
fn an_explanation_is_the_same_twice_and_on_any_number_of_threads() {
    let file = "scenarios/findings/a-forger-s-own-relay-takes-its-block.toml";
    let few = ["--repeats", "6", "--instants", "6", "--budget", "12"];
    let say = |jobs: &str| explained(file, &[&few[..], &["--jobs", jobs]].concat()).1;
    let first = say("1");
    assert_eq!(first, say("2"));
    assert_eq!(first, say("1"));
    let curve = &first["curve"];
    assert_eq!(curve["repeats"], 6);
    assert!(list(curve, "points").iter().all(|point| point["runs"] == 6), "{curve}");
}

#[test]
fn the_page_holds_what_is_printed_and_loads_nothing() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let page = folder.path().join("why.html");
    let out = page.to_str().expect("its name is text");
    let file = "scenarios/findings/a-pool-holds-no-more-than-its-limit.toml";
    let (_, said) = explained(file, &["--repeats", "4", "--instants", "4", "--budget", "10", "--out", out]);
    let text = fs::read_to_string(&page).expect("the page was written");
    assert!(text.len() < 300_000, "{}", text.len());
    let data = text.split_once("type=\"application/json\">").and_then(|(_, rest)| rest.split_once("</script>"));
    let (data, _) = data.expect("the figures stand in the page");
    let shown: Value = serde_json::from_str(data).expect("they are JSON");
    assert_eq!(shown, said);
    assert!(text.contains("default-src 'none'") && !text.contains("src=\"http"), "it may load nothing");
}

#[test]
fn what_is_no_scenario_ends_with_2_and_what_does_not_fail_with_0() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let none = folder.path().join("none.toml");
    fs::write(&none, "version = 1\nrounds = 'many'\n").expect("it can be written");
    let output = run(&["explain", none.to_str().expect("its name is text")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("key 'rounds'"));
    let output = run(&["explain", folder.path().join("missing.toml").to_str().expect("its name is text")]);
    assert_eq!(output.status.code(), Some(2));
    let fine = root().join("scenarios/healthy.toml");
    let output = run(&["explain", fine.to_str().expect("its name is text"), "--repeats", "0", "--set", "rounds=2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("nothing failed"), "{text}");
}

#[test]
fn a_recorded_session_is_explained_with_what_came_in() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("session.jsonl").display().to_string();
    let up = Up::start(&["--pace", "manual", "--delegates", "5", "--record", &file]);
    up.advance(12);
    let (status, answer) = up.post("/lab/faults", &serde_json::json!({ "kind": "partition", "groups": [[0, 1]] }));
    assert!((200..300).contains(&status), "{answer}");
    up.advance(10);
    up.interrupt();
    let (output, said) = explained(&file, &["--repeats", "3", "--instants", "4"]);
    assert_eq!(output.status.code(), Some(0), "a live run that stands still is nobody's failure yet");
    // Below the reach, the two have forged once more, and the three too, each side on its own.
    assert_eq!(said["target"]["kind"], "fork");
    let without = "without fault 0 'partition', added at 96.000 s";
    let tried = list(&said["nearest"], "tried");
    assert!(tried.iter().any(|tried| tried["change"] == without && tried["passes"] == true), "{tried:#?}");
    let told = list(&said["chain"], "rows");
    assert!(told.iter().any(|row| row["text"] == "fault 0 'partition' begins"), "{told:#?}");
    let points = list(&said["curve"], "points");
    assert!(points.last().is_some_and(|point| point["share"] == 1.0), "it is cut for good: {said}");
    let output = run(&["explain", &file, "--seed", "2"]);
    assert_eq!(output.status.code(), Some(2), "a session has a seed of its own");
}
