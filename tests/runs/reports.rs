//! The files that a run leaves behind: figures, tables, the trace, the page; and the comparison of traces.

use crate::support::{dposlab, interrupt, root, run, scenario};
use dposlab::{
    actors::{ActorId, Message, NodeId, Role, SimTime},
    report::trace::{TraceFormat, TraceWriter, line::Header},
    sim::{NetworkEvent, Observer, SeedTree},
};
use parquet::{file::reader::SerializedFileReader, record::Field};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
    process::Stdio,
};

const SCENARIO: &str = r#"
version = 1
description = "one of seven is offline in rounds 2 and 3 & <so> on"
rounds = 4
[network]
delegates = 7
latency = { min_ms = 30, max_ms = 900 }
[[fault]]
kind = "offline"
delegates = ["genesis_3"]
rounds = { from = 2, to = 3 }
"#;

fn scenario_in(folder: &Path) -> String {
    let file = folder.join("one offline.toml");
    fs::write(&file, SCENARIO).expect("it can be written");
    file.display().to_string()
}

fn json_file(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).expect("it is there")).expect("it is JSON")
}

fn json_lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("it is there");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn csv_rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(file).expect("it is there");
    reader.deserialize().map(|row| row.expect("every row is whole")).collect()
}

fn parquet_rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let reader = SerializedFileReader::new(File::open(file).expect("it is there")).expect("it is a Parquet file");
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(count) => count.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Bool(flag) => flag.to_string(),
        other => panic!("no table has such a column: {other:?}"),
    };
    let rows = reader.into_iter().map(|row| row.expect("every row is whole"));
    rows.map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect()).collect()
}

#[test]
fn a_run_leaves_a_summary_tables_a_trace_and_a_page_that_agree() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let scenario = scenario_in(folder.path());
    let out = folder.path().join("out");
    let output = run(&["run", &scenario, "--seed", "7", "--json", "--out", &out.display().to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    let summary = json_file(&out.join("summary.json"));
    assert_eq!((&summary["digest"], &summary["totals"]), (&printed["digest"], &printed["totals"]));
    // The file's name, and no folder of this machine.
    let name = Path::new(&scenario).file_name().expect("it has one").to_string_lossy();
    assert_eq!(summary["reproduce"], format!("dposlab run '{name}' --seed 7"));

    // The tables say the same in both forms, and the same as the summary.
    for table in ["rounds", "delegates", "elections", "time", "blocks", "orphans", "links"] {
        let csv = csv_rows(&out.join(format!("{table}.csv")));
        assert_eq!(csv, parquet_rows(&out.join(format!("{table}.parquet"))), "{table}");
    }
    let sum = |table: &str, column: &str| -> u64 {
        let rows = csv_rows(&out.join(format!("{table}.csv")));
        rows.iter().map(|row| row[column].parse::<u64>().expect("a count")).sum()
    };
    let totals = &summary["totals"];
    assert!(totals["missed_slots"].as_u64() > Some(0), "or the fault did nothing");
    for table in ["rounds", "delegates"] {
        let missed = if table == "rounds" { "missed_slots" } else { "missed" };
        assert_eq!(Some(sum(table, missed)), totals["missed_slots"].as_u64(), "{table}");
    }
    assert_eq!(Some(sum("rounds", "blocks")), totals["blocks"].as_u64());
    assert_eq!(Some(sum("rounds", "slots")), totals["slots"].as_u64());
    assert_eq!(Some(sum("time", "slots")), totals["slots"].as_u64());
    assert_eq!(csv_rows(&out.join("rounds.csv")).len(), 4, "a row a round");
    assert_eq!(csv_rows(&out.join("blocks.csv")).len() as u64, totals["blocks"].as_u64().expect("a count"));
    let leftover = fs::read_dir(&out).expect("it can be listed").map(|entry| entry.expect("an entry").path());
    assert!(leftover.into_iter().all(|path| path.extension().is_none_or(|extension| extension != "part")));

    the_trace_says_the_same(&out, &summary);
    the_page_stands_alone(&fs::read_to_string(out.join("report.html")).expect("it is there"), &summary);
}

#[test]
fn a_run_that_is_interrupted_leaves_all_of_what_was_played() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let scenario = scenario_in(folder.path());
    let out = folder.path().join("out");
    fs::write(&scenario, format!("{SCENARIO}\n[[assert]]\nsometimes = \"rollbacks > 99\"")).expect("it can be written");
    let mut command = dposlab();
    command.args(["run", &scenario, "--seed", "7", "--json", "--out", &out.display().to_string()]);
    command.args(["--set", "rounds=100000"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built for this test");
    while fs::metadata(out.join("events.jsonl")).map_or(0, |file| file.len()) < 100_000 {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
        std::thread::yield_now();
    }
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    let printed: Value = serde_json::from_slice(&ended.stdout).expect("--json prints one object");
    let summary = json_file(&out.join("summary.json"));
    assert!(told.contains(&format!("interrupted at height {} of 700000", summary["totals"]["height"])), "{told}");
    assert_eq!((&printed["interrupted"], &summary["interrupted"]), (&true.into(), &true.into()));
    assert_eq!(summary["assertions"], Value::Array(Vec::new()), "what is asserted of the whole is not judged");
    the_trace_says_the_same(&out, &summary);
    let data = page_data(&fs::read_to_string(out.join("report.html")).expect("it is there"));
    assert_eq!((&data["about"]["interrupted"], &data["about"]["digest"]), (&true.into(), &printed["digest"]));
    let lacks: Vec<&Value> = data["rings"].as_array().expect("rings").iter().map(|ring| &ring["lacks"]).collect();
    let (last, whole) = lacks.split_last().expect("some rounds were played");
    let height = summary["totals"]["height"].as_u64().expect("a height");
    // A round that has begun with missed slots lacks all of its blocks.
    let has_block = !data["rings"][lacks.len() - 1]["height"].is_null();
    let expected = if has_block { (7 - height % 7) % 7 } else { 7 };
    assert_eq!(last.as_u64(), Some(expected), "blocks that the last round lacks");
    assert!(whole.iter().all(|lacks| **lacks == 0), "{whole:?}");
}

/// Its slots are missed ones, and no block of an earlier round counts as its own.
#[test]
fn a_round_without_a_block_lacks_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (file, out) = (folder.path().join("silent.toml"), folder.path().join("out"));
    let text = "version = 1\ndescription = \"nobody forges in round 2\"\nrounds = 3\nstall = \"off\"\ntime_limit_seconds = 80\n\
                [network]\ndelegates = 5\n[[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_1\", \"genesis_2\", \"genesis_3\", \"genesis_4\", \"genesis_5\"]\nfrom = { height = 5 }\n";
    fs::write(&file, text).expect("it can be written");
    let output = run(&["run", &file.display().to_string(), "--seed", "7", "--out", &out.display().to_string()]);
    let printed = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("round 1: heights 1-5, 4 blocks forged"), "{printed}{told}");
    let rounds = csv_rows(&out.join("rounds.csv"));
    let [_, second] = &rounds[..] else { panic!("two rounds: {rounds:?}") };
    assert_eq!([&second["blocks"], &second["last_height"]], ["0", ""]);
    let missed = &second["missed_slots"];
    assert!(printed.contains(&format!("round 2: from height 6, 0 blocks forged, {missed} slots missed")), "{printed}");
    assert!(missed.parse::<u32>().expect("a count") > 2, "{missed}");
    let data = page_data(&fs::read_to_string(out.join("report.html")).expect("it is there"));
    let lacks: Vec<&Value> = data["rings"].as_array().expect("rings").iter().map(|ring| &ring["lacks"]).collect();
    assert_eq!(lacks, [0, 5]);
}

/// Under a lottery a slot has no owner, one or several, so the slots of a ring are not consecutive.
#[test]
fn the_rings_of_a_lottery_name_the_slots_of_its_blocks() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let out = folder.path().join("out");
    run(&["run", "scenarios/lottery.toml", "--seed", "7", "--set", "rounds=2", "--out", &out.display().to_string()]);
    let number = |value: &Value| value.as_u64().expect("a number");
    let blocks = csv_rows(&out.join("blocks.csv"));
    let expected: Vec<(u64, u64)> = blocks
        .iter()
        .map(|block| (block["height"].parse().expect("a height"), block["slot"].parse().expect("a slot")))
        .collect();
    let data = page_data(&fs::read_to_string(out.join("report.html")).expect("it is there"));
    let mut found = Vec::new();
    for ring in data["rings"].as_array().expect("rings") {
        let list = |key: &str| ring[key].as_array().expect("a list").clone();
        let (slots, missed) = (list("slots"), list("missed"));
        assert_eq!(slots.len(), list("owners").len(), "a slot for each owner");
        let forged = (0..slots.len()).filter(|place| !missed.contains(&(*place).into()));
        found.extend(forged.zip(number(&ring["height"])..).map(|(place, height)| (height, number(&slots[place]))));
    }
    assert!(found.len() > 80 && found == expected, "{found:?}\n{expected:?}");
}

/// The figures computed while the run went on, computed again from its trace.
fn the_trace_says_the_same(out: &Path, summary: &Value) {
    let lines = json_lines(&out.join("events.jsonl"));
    let (header, events) = lines.split_first().expect("a trace has a first line");
    assert_eq!((&header["trace"], &header["schema"], &header["seed"]), (&"dposlab".into(), &1.into(), &7.into()));
    let faults = events.iter().filter(|event| event["node"].is_null()).count();
    assert_eq!((events.len() - faults) as u64, summary["events"].as_u64().expect("a count"));
    let at = |event: &Value| event["at"].as_u64().expect("every event has a time");
    assert!(events.windows(2).all(|pair| at(&pair[0]) <= at(&pair[1])), "in the order of their times");
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    let forged: BTreeMap<&str, u64> = of("block.forged")
        .into_iter()
        .map(|event| (event["block"]["id"].as_str().expect("an id"), at(event)))
        .collect();
    let totals = &summary["totals"];
    assert_eq!(forged.len() as u64, totals["forged"].as_u64().expect("a count"));
    let mut delays: Vec<f64> = of("block.applied")
        .into_iter()
        .map(|event| (at(event) - forged[event["block"]["id"].as_str().expect("an id")]) as f64 / 1_000.0)
        .collect();
    delays.sort_by(f64::total_cmp);
    let expected = &totals["propagation_ms"];
    assert_eq!(delays.len() as u64, expected["count"].as_u64().expect("a count"));
    for (share, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (1.0, "max")] {
        let delay = delays[((delays.len() as f64 * share).ceil() as usize).clamp(1, delays.len()) - 1];
        let found = expected[name].as_f64().expect("a number");
        assert!((found - delay).abs() <= delay * 0.002 + 0.01, "{name}: {found}, by the trace {delay}");
    }
    let nodes: BTreeSet<u64> = events.iter().filter_map(|event| event["node"].as_u64()).collect();
    assert_eq!(nodes, (0..7).collect());
}

/// It names nothing outside of itself, forbids itself to load anything, and has its figures in it.
fn the_page_stands_alone(page: &str, summary: &Value) {
    let scripts: Vec<&str> = page.split("<script").skip(1).collect();
    assert_eq!(scripts.len(), 3, "the figures, what all pages share, and what this one shows");
    for outside in ["http://", "https://", "src=", "<link", "@import", "fetch(", "import("] {
        assert!(!page.contains(outside), "the page names {outside}");
    }
    let local = page.match_indices("url(").all(|(at, _)| page[at..].starts_with("url(#"));
    assert!(local, "what the page names by url() is in it");
    assert!(page.contains("default-src 'none'"), "nothing can be loaded");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    let ours = page.replace(&data_in(page), "");
    assert!(!ours.contains("{{"), "every part of the template is filled in");
    let data = page_data(page);
    assert_eq!(data["about"]["digest"], summary["digest"]);
    assert_eq!(data["about"]["description"], "one of seven is offline in rounds 2 and 3 & <so> on");
    let rings = data["rings"].as_array().expect("rings").iter();
    assert!(rings.clone().all(|ring| ring["slots"].as_array().expect("slots").len() == 1), "the others follow");
    let missed: u64 = rings.map(|ring| ring["missed"].as_array().expect("places").len() as u64).sum();
    assert_eq!(Some(missed), summary["totals"]["missed_slots"].as_u64());
}

/// The figures in a page.
fn page_data(page: &str) -> Value {
    serde_json::from_str(&data_in(page)).expect("figures are JSON")
}

fn data_in(page: &str) -> String {
    let script = page.split("<script").nth(1).expect("the figures come first");
    let data = script.split_once('>').and_then(|(_, data)| data.split_once("</script>")).expect("it is closed").0;
    data.to_owned()
}

/// A transfer stays in the pool of one node, which then crashes until after the end.
const KEPT_BY_ONE_THAT_IS_DOWN: &str = r#"
version = 1
rounds = 4
[network]
delegates = 7
relays = 1
gossip = "once"
[[fault]]
kind = "drop"
messages = ["transactions"]
senders = [7]
[[fault]]
kind = "crash"
nodes = [7]
keep_pool = true
from = { height = 9 }
[[action]]
height = 6
node = 7
by = "account_1"
does = "transfer"
to = "account_2"
"#;

/// All nodes lose their pools, or one is down and keeps its own.
#[test]
fn transactions_that_no_pool_and_no_block_holds_are_lost() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let kept = folder.path().join("kept.toml");
    fs::write(&kept, KEPT_BY_ONE_THAT_IS_DOWN).expect("it is written");
    for (scenario, all, wanted) in
        [("scenarios/restart-empty-pool.toml".to_owned(), 10, 10), (kept.display().to_string(), 1, 0)]
    {
        for stage in ["inline", "ractor"] {
            let out = folder.path().join(format!("{wanted}-{stage}"));
            run(&["run", &scenario, "--stage", stage, "--out", &out.display().to_string()]);
            let (accepted, lost) = lost_by_trace(&out);
            assert_eq!((accepted, lost), (all, wanted), "{scenario}");
            let told = &json_file(&out.join("summary.json"))["totals"]["transactions_lost"];
            assert_eq!(*told, lost, "{scenario}, {stage}");
        }
    }
}

/// The number of transactions that pools have taken, and of those that neither the chain nor a pool has at the end, by a run's trace.
fn lost_by_trace(out: &Path) -> (usize, usize) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let (mut accepted, mut expired, mut held) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let mut pools: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in json_lines(&out.join("events.jsonl")).into_iter().skip(1) {
        let pool = pools.entry(line["node"].as_u64().unwrap_or(u64::MAX)).or_default();
        let ids = list(&line["transactions"]).iter().map(|one| text(&one["id"])).collect::<Vec<_>>();
        match line["kind"].as_str().expect("a kind") {
            "pool.added" => {
                accepted.extend(ids.clone());
                pool.extend(ids);
            }
            "pool.replaced" => *pool = ids.into_iter().collect(),
            "pool.removed" => drop(pool.remove(&text(&line["transaction"]))),
            "pool.expired" => {
                expired.insert(text(&line["transaction"]["id"]));
                pool.remove(&text(&line["transaction"]["id"]));
            }
            "block.forged" => drop(held.insert(text(&line["block"]["id"]), list(&line["holds"]))),
            _ => {}
        }
    }
    let chain = csv_rows(&out.join("blocks.csv")).into_iter().flat_map(|row| held[&row["id"]].clone());
    let settled: BTreeSet<String> =
        chain.map(|id| text(&id)).chain(pools.into_values().flatten()).chain(expired).collect();
    (accepted.len(), accepted.difference(&settled).count())
}

#[test]
fn a_partition_and_its_end_are_in_the_figures() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let out = folder.path().join("out");
    run(&["run", "scenarios/partition-even.toml", "--seed", "7", "--out", &out.display().to_string()]);
    let summary = json_file(&out.join("summary.json"));
    let totals = &summary["totals"];
    let count = |figure: &str| totals[figure].as_u64().unwrap_or_else(|| panic!("{figure} is a count"));
    let lines = json_lines(&out.join("events.jsonl"));
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    assert!(count("branches_max") >= 2 && count("fork_depth_max") > 0 && count("slots_forked") > 0, "{totals}");
    assert!(totals["agreement_min"].as_f64() < Some(0.7), "{totals}");
    assert_eq!(count("rollbacks"), of("chain.rolled-back").len() as u64);
    let depth = |line: &Value| line["from"]["height"].as_u64().zip(line["to"]["height"].as_u64());
    let depths = of("chain.rolled-back").into_iter().filter_map(depth).map(|(from, to)| from - to);
    assert_eq!(count("rollback_depth_max"), depths.max().expect("nodes have gone back"));
    assert_eq!(count("forged"), of("block.forged").len() as u64);
    assert_eq!(count("orphaned"), count("forged") - count("blocks"));
    let (ended, heals) = (of("fault.ended"), summary["heals"].as_array().expect("a list"));
    assert_eq!(
        ended.iter().map(|line| &line["at"]).collect::<Vec<_>>(),
        heals.iter().map(|heal| &heal["at_us"]).collect::<Vec<_>>()
    );
    assert!(!heals.is_empty() && heals.iter().all(|heal| heal["converged_seconds"].as_f64() > Some(0.0)), "{heals:?}");
    let data = page_data(&fs::read_to_string(out.join("report.html")).expect("it is there"));
    let faults = data["faults"].as_array().expect("a list");
    for (kind, key) in [("fault.began", "began_us"), ("fault.ended", "ended_us")] {
        let told: BTreeSet<(u64, u64)> =
            faults.iter().filter_map(|fault| fault["fault"].as_u64().zip(fault[key].as_u64())).collect();
        let traced = of(kind).into_iter().filter_map(|line| line["fault"].as_u64().zip(line["at"].as_u64()));
        assert_eq!(told, traced.collect(), "the page shades what the trace tells: {kind}");
    }
    let lengths: BTreeSet<usize> = ["rounds", "time"]
        .into_iter()
        .flat_map(|table| data[table].as_object().expect("columns").values())
        .map(|column| column.as_array().expect("cells").len())
        .collect();
    let rows = |table: &str| csv_rows(&out.join(format!("{table}.csv"))).len();
    assert_eq!(lengths, BTreeSet::from([rows("rounds"), rows("time")]), "as many as in the tables");
    // The chain is made of blocks that were forged, and orphans of the others.
    let ids = |table: &str| -> BTreeSet<String> {
        csv_rows(&out.join(format!("{table}.csv"))).into_iter().map(|row| row["id"].clone()).collect()
    };
    let forged: BTreeSet<String> =
        of("block.forged").into_iter().map(|line| line["block"]["id"].as_str().expect("an id").to_owned()).collect();
    assert!(ids("blocks").is_subset(&forged) && ids("orphans").is_subset(&forged));
    assert!(ids("blocks").is_disjoint(&ids("orphans")));
    assert_eq!(ids("orphans").len() as u64, count("orphaned"), "every orphan is listed");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let scenario = scenario_in(folder.path());
    let nowhere = folder.path().join("no/such/folder/trace.jsonl").display().to_string();
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").expect("it can be written");
    let in_the_way = in_the_way.display().to_string();
    for arguments in [["--trace", &nowhere], ["--out", &in_the_way]] {
        let output = run(&["run", &scenario, arguments[0], arguments[1]]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(output.stdout.is_empty() && error.trim_end().lines().count() == 1, "{error}");
        assert!(error.contains(arguments[1]), "{error}");
    }
}

#[test]
fn the_first_difference_of_two_traces_is_named() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let scenario = scenario_in(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let trace = |name: &str, more: &[&str]| {
        let file = path(name);
        let output = dposlab().args(["run", &scenario, "--seed", "7", "--trace", &file]).args(more).output();
        assert!(output.expect("the binary was built for this test").status.success());
        file
    };
    let (one, same) = (trace("one.jsonl", &[]), trace("same.jsonl", &["--stage", "ractor"]));
    let output = run(&["diff", &one, &same]);
    let events = json_lines(Path::new(&one)).len() - 1;
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("the same {events} events\n"));

    // Another length of the last fault: the same events up to the round that it spares.
    let other = trace("other.jsonl", &["--set", "fault[0].rounds.to=2"]);
    let output = run(&["diff", &one, &other, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    let (ours, theirs) = (json_lines(Path::new(&one)), json_lines(Path::new(&other)));
    let first = (1..).find(|line| ours[*line] != theirs[*line]).expect("they differ");
    assert!(first > 1, "they begin alike");
    assert_eq!((&told["event"], &told["first"]), (&first.into(), &ours[first]));
    assert_eq!(told["second"], theirs[first]);

    // One that ends before the other; one that breaks off in a line; files that are no traces.
    let text = fs::read_to_string(&one).expect("it is there");
    let cut: String = text.lines().take(100).map(|line| format!("{line}\n")).collect();
    fs::write(path("cut.jsonl"), &cut).expect("it can be written");
    let output = run(&["diff", &path("cut.jsonl"), &one]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.starts_with("event 100 is the first that differs:") && told.contains("cut.jsonl: ends before"),
        "{told}"
    );
    fs::write(path("torn.jsonl"), &cut[..cut.len() - 20]).expect("it can be written");
    for (first, second) in [(path("torn.jsonl"), one.clone()), (scenario.clone(), one.clone()), (one, path("none"))] {
        let output = run(&["diff", &first, &second]);
        assert_eq!(output.status.code(), Some(2), "{first} {second}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end().lines().count(), 1);
    }
}

#[test]
fn a_trace_for_viewers_has_a_track_for_each_actor_and_flows_with_two_ends() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("run.json");
    let output = dposlab().args(["run", &scenario_in(folder.path()), "--trace-network", "--trace"]).arg(&file).output();
    assert!(output.expect("the binary was built for this test").status.success());
    let events = json_file(&file);
    let events = events.as_array().expect("an array of events");
    let named = events.iter().filter(|event| event["ph"] == "M");
    let tracks: BTreeSet<String> = named
        .filter(|event| event["name"] == "thread_name")
        .map(|event| format!("{} {}", event["pid"], event["args"]["name"]))
        .collect();
    assert_eq!(tracks.len(), 7 * 3);
    // Viewers sort by time and drop what overlaps in part.
    let mut open: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    let mut last = 0;
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        assert!(number("ts") >= last, "{event}");
        last = number("ts");
        if event["ph"] == "X" {
            let ends = open.entry((number("pid"), number("tid"))).or_default();
            ends.retain(|end| *end > last);
            assert!(ends.last().is_none_or(|end| last + number("dur") <= *end), "{event}");
            ends.push(last + number("dur"));
        }
    }
    assert!(events.iter().any(|event| event["name"] == "block.forged" && event["tid"] == 2), "delegates forge");
    let ends = |phase: &str| -> BTreeMap<u64, u64> {
        let of = events.iter().filter(|event| event["ph"] == phase);
        of.map(|event| (event["id"].as_u64().expect("a flow"), event["ts"].as_u64().expect("a time"))).collect()
    };
    let (sent, arrived) = (ends("s"), ends("f"));
    assert!(sent.len() > 500, "a run has messages, and not {}", sent.len());
    assert!(sent.keys().eq(arrived.keys()) && sent.iter().all(|(flow, at)| *at <= arrived[flow]));

    // A message, as the stage tells of it.
    let file = folder.path().join("message.json");
    let healthy = scenario("healthy");
    let seeds = SeedTree::new(1);
    let plan = healthy.plan(&healthy.testnet(seeds), seeds);
    let header = Header::new("s.toml".into(), 1, Vec::new(), true, &plan);
    let mut writer = TraceWriter::create(&file, TraceFormat::Perfetto, &header, &plan).expect("it can be written");
    let actor = |node| ActorId { node: NodeId(node), role: Role::Peer };
    let (from, to, message) = (actor(0), actor(1), Message::StatusRequest);
    let arrives = SimTime::from_micros(75);
    writer.observe_network(SimTime::from_micros(5), &NetworkEvent::Sent { from, to, message: &message, arrives });
    writer.observe_network(SimTime::from_micros(6), &NetworkEvent::Lost { from, to, message: &message });
    assert_eq!(writer.finish().expect("it is written"), 3, "the first round, and two messages");
    let events = json_file(&file);
    let ends: Vec<String> = events
        .as_array()
        .expect("an array of events")
        .iter()
        .filter(|event| event["ph"] == "s" || event["ph"] == "f")
        .map(|event| format!("{} {} {} {}", event["ph"], event["id"], event["pid"], event["ts"]))
        .collect();
    assert_eq!(ends, ["\"s\" 0 1 5", "\"f\" 0 2 75"]);
}

#[test]
fn a_stalled_run_names_the_command_that_repeats_it() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let scenario = scenario_in(folder.path());
    let all = "fault[0].delegates=[\"genesis_1\", \"genesis_2\", \"genesis_3\", \"genesis_4\", \"genesis_5\", \"genesis_6\", \"genesis_7\"]";
    let output = run(&["run", &scenario, "--seed", "9", "--set", all]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let (_, command) = error.trim_end().split_once("to repeat: ").expect("it is named");
    let shell = command.replacen("dposlab", env!("CARGO_BIN_EXE_dposlab"), 1);
    let again = std::process::Command::new("sh").args(["-c", &shell]).current_dir(root()).output().expect("a shell");
    assert_eq!((again.status.code(), &again.stdout), (Some(1), &output.stdout));
}
