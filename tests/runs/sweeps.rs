//! Sweeps: interrupted and killed ones go on where they were, and parts make the whole, byte for byte.

use crate::support::{dposlab, interrupt, root, run};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

const SCENARIO: &str = r#"
version = 1
rounds = 6
[network]
delegates = 9
latency = { min_ms = 20, max_ms = 100 }
[[fault]]
kind = "offline"
delegates = ["genesis_3"]
rounds = { from = 2, to = 3 }
"#;

/// The files that a sweep leaves; `sweep.json` and `rows.bin` are the means.
const RESULTS: [&str; 6] =
    ["runs.parquet", "runs.csv", "failures.csv", "failures.parquet", "summary.json", "report.html"];

struct SweepFolder {
    folder: tempfile::TempDir,
}

impl SweepFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fs::write(folder.path().join("s.toml"), SCENARIO).expect("it can be written");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A sweep of so many seeds with two latencies, one run at a time.
    fn sweep(&self, seeds: &str, out: &str, more: &[&str]) -> Command {
        let mut command = dposlab();
        command.args(["sweep", &self.path("s.toml"), "--seeds", seeds, "--vary", "network.latency.max_ms=100,700"]);
        command.args(["--jobs", "1", "--out", &self.path(out)]).args(more);
        command
    }

    fn results(&self, out: &str) -> BTreeMap<&'static str, Vec<u8>> {
        let read = |name| fs::read(Path::new(&self.path(out)).join(name)).expect("it is there");
        RESULTS.iter().map(|name| (*name, read(*name))).collect()
    }

    /// Starts a sweep and waits until it has written more than one row.
    fn begun(&self, seeds: &str, out: &str) -> Child {
        let quiet = |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = quiet(self.sweep(seeds, out, &[])).expect("the binary was built for this test");
        let rows = Path::new(&self.path(out)).join("rows.bin");
        while fs::metadata(&rows).map_or(0, |rows| rows.len()) < 600 {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
            std::thread::yield_now();
        }
        child
    }
}

fn ok(command: &mut Command) -> Output {
    let output = command.output().expect("the binary was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_sweep_that_was_killed_and_one_that_was_interrupted_end_as_one_that_was_not() {
    let place = SweepFolder::new();
    ok(&mut place.sweep("0..50", "whole", &[]));
    for out in ["killed", "interrupted"] {
        let mut child = place.begun("0..50", out);
        match out {
            "killed" => child.kill().expect("it is still there"),
            _ => interrupt(&child),
        }
        let ended = child.wait_with_output().expect("it ends");
        assert!(!Path::new(&place.path(out)).join("runs.parquet").exists(), "it was in the middle");
        if out == "interrupted" {
            let told = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(1), "{told}");
            assert!(told.contains("interrupted:") && told.contains("of 100 runs are done"), "{told}");
        }
        // A crash may leave a torn row after whole ones.
        let rows = Path::new(&place.path(out)).join("rows.bin");
        let mut bytes = fs::read(&rows).expect("it is there");
        bytes[300] ^= 1;
        bytes.truncate(bytes.len() - 7);
        fs::write(&rows, bytes).expect("it can be written");
        ok(&mut place.sweep("0..50", out, &[]));
        assert!(place.results("whole") == place.results(out), "{out}");
        let before = fs::read(&rows).expect("it is there");
        ok(&mut place.sweep("0..50", out, &[]));
        assert!(before == fs::read(&rows).expect("it is there"), "a sweep that is done plays nothing again");
    }
    let summary: Value = serde_json::from_slice(&place.results("whole")["summary.json"]).expect("JSON");
    assert_eq!((&summary["runs"], &summary["failed"]), (&100.into(), &0.into()));
    let csv = String::from_utf8(place.results("whole")["runs.csv"].clone()).expect("text");
    assert_eq!(csv.lines().count(), 101, "a row a run, none twice");
}

#[test]
fn a_row_is_that_of_the_run_alone() {
    let place = SweepFolder::new();
    ok(&mut place.sweep("4..6", "out", &[]));
    let mut csv = csv::Reader::from_path(Path::new(&place.path("out")).join("runs.csv")).expect("it is there");
    let rows: Vec<BTreeMap<String, String>> = csv.deserialize().map(|row| row.expect("whole")).collect();
    let order: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["network.latency.max_ms"].as_str(), row["seed"].as_str())).collect();
    assert_eq!(order, [("100", "4"), ("100", "5"), ("700", "4"), ("700", "5")]);
    let set = "network.latency.max_ms=700";
    let alone = run(&["run", &place.path("s.toml"), "--seed", "5", "--set", set, "--json"]);
    let alone: Value = serde_json::from_slice(&alone.stdout).expect("--json prints one object");
    assert_eq!(rows[3]["digest"], alone["digest"].as_str().expect("a digest"));
    for figure in ["height", "missed_slots", "forged", "slots"] {
        assert_eq!(rows[3][figure], alone["totals"][figure].to_string(), "{figure}");
    }
    let propagation = &alone["totals"]["propagation_ms"]["p99"];
    assert_eq!(rows[3]["propagation_p99_ms"].parse::<f64>().ok(), propagation.as_f64());
}

#[test]
fn signatures_are_treated_in_a_sweep_as_in_the_run_that_repeats_it() {
    let place = SweepFolder::new();
    let clients = "\n[[workload]]\nkind = \"generate\"\nper_second = 1\nmix = { transfer = 1 }\n";
    fs::write(place.path("s.toml"), format!("{SCENARIO}{clients}")).expect("it can be written");
    let (file, out) = (place.path("s.toml"), place.path("out"));
    ok(dposlab().args(["sweep", &file, "--seeds", "7..8", "--vary", "crypto=real,modelled", "--out", &out]));
    let mut csv = csv::Reader::from_path(Path::new(&out).join("runs.csv")).expect("it is there");
    let rows: Vec<BTreeMap<String, String>> = csv.deserialize().map(|row| row.expect("whole")).collect();
    let digests = ["real", "modelled"].map(|mode| {
        let alone = run(&["run", &file, "--seed", "7", "--crypto", mode, "--json"]);
        let alone: Value = serde_json::from_slice(&alone.stdout).expect("--json prints one object");
        let command = alone["reproduce"].as_str().expect("a command").to_owned();
        assert!(command.contains(&format!("--set crypto={mode}")), "{command}");
        alone["digest"].as_str().expect("a digest").to_owned()
    });
    assert_eq!([&rows[0]["digest"], &rows[1]["digest"]], [&digests[0], &digests[1]]);
    assert_ne!(digests[0], digests[1], "signatures are part of blocks");
}

#[test]
fn parts_that_are_merged_are_the_whole() {
    let place = SweepFolder::new();
    ok(&mut place.sweep("10..17", "whole", &[]));
    let parts = ["part-1", "part-2", "part-3"];
    let shards = ["1/3", "2/3", "3/3"];
    ok(&mut place.sweep("10..17", parts[0], &["--shard", shards[0]]));
    ok(&mut place.sweep("10..17", parts[2], &["--shard", shards[2]]));
    let merge = |parts: &[&str], out: &str| {
        let paths: Vec<String> = parts.iter().map(|part| place.path(part)).collect();
        dposlab().arg("merge").args(paths).args(["--out", &place.path(out)]).output().expect("the binary was built")
    };
    let refused = |output: Output, part: &str| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part) && error.trim_end().lines().count() == 1, "{error}");
    };
    refused(merge(&["part-1", "part-3"], "whole-2"), "parts are missing: 2/3");
    refused(merge(&["part-1", "part-3", "part-1"], "whole-2"), "part-1: is given twice");
    refused(merge(&["part-1", "nothing"], "whole-2"), "sweep.json");
    ok(&mut place.sweep("10..17", parts[1], &["--shard", shards[1]]));
    let merged = merge(&["part-3", "part-1", "part-2"], "merged");
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    assert!(place.results("whole") == place.results("merged"));
    let rows = |out: &str| fs::read(Path::new(&place.path(out)).join("rows.bin")).expect("it is there");
    assert!(rows("whole") == rows("merged"));

    // A part with a run missing.
    let part = Path::new(&place.path(parts[1])).join("rows.bin");
    let bytes = fs::read(&part).expect("it is there");
    fs::write(&part, &bytes[..bytes.len() - 5]).expect("it can be written");
    refused(merge(&["part-1", "part-2", "part-3"], "whole-3"), "lacks 1 of its 5 runs");
}

#[test]
fn runs_that_fail_are_named_with_the_command_that_repeats_each() {
    let place = SweepFolder::new();
    // Whoever is off stays off.
    fs::write(place.path("s.toml"), SCENARIO.replace("rounds = { from = 2, to = 3 }", "")).expect("it can be written");
    let nobody: Vec<String> = (1..=9).map(|number| format!("\"genesis_{number}\"")).collect();
    let vary = format!("fault[0].delegates=[\"genesis_3\"],[{}]", nobody.join(","));
    let out = place.path("out");
    let output = run(&["sweep", &place.path("s.toml"), "--seeds", "0..2", "--vary", &vary, "--out", &out, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!(
        (&summary["runs"], &summary["failed"], &summary["by_status"]["halted"]),
        (&4.into(), &2.into(), &2.into())
    );
    let ok = |cell: usize| &summary["cells"][cell]["ok"];
    assert_eq!((&ok(0)["share"], &ok(1)["share"]), (&1.0.into(), &0.0.into()));
    assert_eq!((&ok(1)["confidence"]["low"], &ok(0)["confidence"]["high"]), (&0.0.into(), &1.0.into()));
    let seeds: Vec<&Value> = summary["failures"].as_array().expect("a list").iter().map(|run| &run["seed"]).collect();
    assert_eq!(seeds, [0, 1]);
    let command = summary["failures"][1]["reproduce"].as_str().expect("a command");
    let shell = command.replacen("dposlab", env!("CARGO_BIN_EXE_dposlab"), 1);
    let again = Command::new("sh").args(["-c", &shell]).current_dir(root()).output().expect("a shell");
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("halted for good"));
}

#[test]
fn assertions_that_broke_are_counted_and_named() {
    let place = SweepFolder::new();
    let asserted = "\n[[assert]]\nalways = \"invariants\"\n[[assert]]\nalways = \"missed == 0\"\n";
    fs::write(place.path("s.toml"), format!("{SCENARIO}{asserted}")).expect("it can be written");
    let out = place.path("out");
    let vary = "fault[0].delegates=[\"genesis_3\"],[\"genesis_4\"]";
    let output = run(&["sweep", &place.path("s.toml"), "--seeds", "0..3", "--vary", vary, "--out", &out, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    assert_eq!((&summary["failed"], &summary["by_status"]["broken"]), (&6.into(), &6.into()));
    let cell = &summary["cells"][1];
    assert_eq!((&cell["assertions"][0]["holds"]["so"], &cell["assertions"][1]["holds"]["so"]), (&3.into(), &0.into()));
    let broken = &summary["failures"][0]["broken"];
    assert_eq!(broken.as_array().map(Vec::len), Some(1));
    assert!(broken[0].as_str().is_some_and(|text| text.contains("missed == 0")), "{broken}");
    let csv = fs::read_to_string(Path::new(&out).join("failures.csv")).expect("it is there");
    assert_eq!(csv.matches("missed == 0").count(), 6, "{csv}");
    // The run alone says the same.
    let command = summary["failures"][4]["reproduce"].as_str().expect("a command");
    let shell = command.replacen("dposlab", env!("CARGO_BIN_EXE_dposlab"), 1);
    let again = Command::new("sh").args(["-c", &shell]).current_dir(root()).output().expect("a shell");
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("missed == 0"));

    fs::write(place.path("s.toml"), format!("{SCENARIO}\n[[assert]]\nalways = \"invariant nonsense\"\n"))
        .expect("it can be written");
    let output = run(&["sweep", &place.path("s.toml"), "--seeds", "0..3", "--out", &place.path("other")]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_no_sweep_is_refused_before_the_first_run() {
    let place = SweepFolder::new();
    let file = place.path("s.toml");
    let case = |arguments: &[&str], part: &str| {
        let mut all = vec!["sweep", &file];
        all.extend(arguments);
        let output = run(&all);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    };
    let out = place.path("out");
    case(&["--out", &out, "--seeds", "5..5"], "'5..5' are no seeds");
    case(&["--out", &out, "--shard", "4/3"], "'4/3' is no part");
    case(&["--out", &out, "--vary", "rounds"], "'rounds' sets nothing");
    case(&["--out", &out, "--vary", "rounds=4,0"], "key 'rounds': found 0");
    case(&["--out", &out, "--vary", "network.lots=1,2"], "network.lots=1");
    case(&["--out", &out, "--vary", "rounds=2,3", "--set", "rounds=4"], "varied once");
    assert!(!Path::new(&out).exists(), "nothing was begun");
    ok(&mut place.sweep("1..3", "out", &[]));
    for seeds in ["0..3", "1..2", "2..4"] {
        let part = format!("another sweep: key 'seeds': found 1..3, this one has {seeds}");
        case(&["--out", &out, "--seeds", seeds, "--vary", "network.latency.max_ms=100,700"], &part);
    }
    fs::write(&file, SCENARIO.replace("rounds = 6", "rounds = 5")).expect("it can be written");
    for seeds in ["1..3", "1..4"] {
        case(
            &["--out", &out, "--seeds", seeds, "--vary", "network.latency.max_ms=100,700"],
            "another sweep: key 'scenario_digest'",
        );
    }
}

/// The line that refuses a command, with exit code 2.
fn refusal(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    error
}

/// Two sweeps into one folder, begun at the same time: one has it, and the other is told so. Which of them is not for the
/// test to say, but the folder never holds rows of both.
#[test]
fn two_sweeps_at_once_into_one_folder_never_mix() {
    let place = SweepFolder::new();
    let alone = ["first", "second"];
    let scenarios = [SCENARIO.replace("rounds = 6", "rounds = 2"), SCENARIO.replace("rounds = 6", "rounds = 3")];
    let sweep = |which: usize, out: &str| {
        let mut command = dposlab();
        command.args([
            "sweep",
            &place.path(&format!("{which}.toml")),
            "--seeds",
            "0..4",
            "--jobs",
            "1",
            "--out",
            &place.path(out),
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    for which in 0..2 {
        let text = scenarios[which].replace("from = 2, to = 3", "from = 2, to = 2");
        fs::write(place.path(&format!("{which}.toml")), text).expect("it can be written");
        ok(&mut sweep(which, alone[which]));
    }
    for round in 0..12 {
        let out = format!("both-{round}");
        let spawn = |which| sweep(which, &out).spawn().expect("the binary was built for this test");
        // Each begins first in turn.
        let (one, other) = (round % 2, 1 - round % 2);
        let (first, second) = (spawn(one), spawn(other));
        let ended =
            [(one, first), (other, second)].map(|(which, child)| (which, child.wait_with_output().expect("it ends")));
        let winners: Vec<usize> =
            ended.iter().filter(|(_, output)| output.status.success()).map(|(which, _)| *which).collect();
        assert_eq!(winners.len(), 1, "one has the folder: {ended:?}");
        assert!(place.results(alone[winners[0]]) == place.results(&out), "and its results are as if it had been alone");
        let (_, loser) = ended.iter().find(|(_, output)| !output.status.success()).expect("the other one");
        let why = refusal(loser);
        assert!(why.contains("is in use by another process") || why.contains("holds another sweep: key '"), "{why}");
    }
}

#[test]
fn a_folder_whose_manifest_or_rows_are_anothers_is_refused() {
    let place = SweepFolder::new();
    let file = |out: &str, name: &str| Path::new(&place.path(out)).join(name);
    for (out, seeds) in [("one", "1..3"), ("two", "0..3")] {
        ok(&mut place.sweep(seeds, out, &[]));
    }
    let again = |seeds: &str, out: &str| place.sweep(seeds, out, &[]).output().expect("the binary was built");
    let merge = |part: &str, out: &str| run(&["merge", &place.path(part), "--out", &place.path(out)]);
    let why = refusal(&again("0..3", "one"));
    assert!(why.contains("one holds another sweep: key 'seeds': found 1..3, this one has 0..3"), "{why}");
    // The manifest is lost: the command that began the sweep makes it again, and no other one goes on there.
    let manifest = fs::read(file("one", "sweep.json")).expect("it is there");
    let whole = place.results("one");
    fs::remove_file(file("one", "sweep.json")).expect("it is there");
    let why = refusal(&again("0..3", "one"));
    assert!(why.contains("rows.bin holds the rows of another sweep, and no sweep.json says which"), "{why}");
    let why = refusal(&merge("one", "merged"));
    assert!(why.contains("sweep.json: is no sweep's: there is none; the command that began the sweep"), "{why}");
    ok(&mut place.sweep("1..3", "one", &[]));
    assert!(manifest == fs::read(file("one", "sweep.json")).expect("it is there again"));
    assert!(whole == place.results("one"));
    // A manifest beside the rows of another sweep.
    fs::copy(file("two", "sweep.json"), file("one", "sweep.json")).expect("it can be written");
    for output in [again("0..3", "one"), merge("one", "merged")] {
        let why = refusal(&output);
        assert!(why.contains("rows.bin holds the rows of another sweep than sweep.json beside it says"), "{why}");
    }
    // Rows without a beginning, as an older version wrote them.
    let rows = fs::read(file("two", "rows.bin")).expect("it is there");
    fs::write(file("two", "rows.bin"), &rows[64..]).expect("it can be written");
    let why = refusal(&again("0..3", "two"));
    assert!(
        why.contains("two/rows.bin: found another beginning, allowed are rows of a sweep of this version"),
        "{why}"
    );
    // Rows that are lost are played again.
    fs::remove_file(file("two", "rows.bin")).expect("it is there");
    ok(&mut place.sweep("0..3", "two", &[]));
    assert!(rows == fs::read(file("two", "rows.bin")).expect("it is there again"));
}

#[test]
fn a_file_that_a_scenario_names_is_part_of_its_sweep() {
    let place = SweepFolder::new();
    let chain = fs::read_to_string(root().join("fuzz/seeds/chain/blocks.jsonl")).expect("it is in the repository");
    fs::write(place.path("chain.jsonl"), &chain).expect("it can be written");
    let workload = format!("\n[[workload]]\nkind = \"chain\"\nfile = '{}'\n", place.path("chain.jsonl"));
    fs::write(place.path("s.toml"), format!("{SCENARIO}{workload}")).expect("it can be written");
    ok(&mut place.sweep("0..1", "out", &[]));
    fs::write(place.path("chain.jsonl"), format!("{chain}\n")).expect("it can be written");
    let why = refusal(&place.sweep("0..1", "out", &[]).output().expect("the binary was built"));
    assert!(why.contains("holds another sweep: key 'scenario_digest'"), "{why}");
}

#[test]
fn no_number_of_runs_or_parts_is_too_large_to_be_refused() {
    let place = SweepFolder::new();
    let sweep = |more: &[&str]| {
        let arguments: Vec<&str> = more.to_vec();
        let (file, out) = (place.path("s.toml"), place.path("out"));
        let mut all = vec!["sweep", &file, "--out", &out];
        all.extend(arguments);
        refusal(&run(&all))
    };
    let last = "18446744073709551615";
    let all = format!("0..{last}");
    let why = sweep(&["--seeds", &all]);
    assert!(why.contains(&format!("found {last} runs, allowed are 100000000")), "{why}");
    let values: Vec<String> = (1..=200).map(|number| number.to_string()).collect();
    let [one, two] = ["network.latency.max_ms", "rounds"].map(|path| format!("{path}={}", values.join(",")));
    let why = sweep(&["--seeds", &all, "--vary", &one, "--vary", &two]);
    assert!(why.contains("found 40000 combinations of values, allowed are 10000"), "{why}");
    let assertions = |count: usize| format!("assert=[{}]", vec!["{ always = 'height >= 1' }"; count].join(","));
    let why = sweep(&["--seeds", "0..1", "--set", &assertions(65)]);
    assert!(why.contains("found 65 assertions (key 'assert'), allowed are 64"), "{why}");
    ok(&mut place.sweep("0..1", "most", &["--set", &assertions(64)]));
    let shard = format!("{last}/{last}");
    let output = run(&["sweep", &place.path("s.toml"), "--out", &place.path("out"), "--shard", &shard]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("is no part: give I/N with I from 1 to N and N up to 100000"), "{why}");
    // The parts of a folder that says so itself.
    ok(&mut place.sweep("0..2", "part", &["--shard", "1/100000"]));
    let why = refusal(&run(&["merge", &place.path("part"), "--out", &place.path("out")]));
    assert!(
        why.contains("parts are missing: 2/100000, 3/100000,") && why.contains("11/100000, and 99989 more"),
        "{why}"
    );
    let manifest = Path::new(&place.path("part")).join("sweep.json");
    let text = fs::read_to_string(&manifest).expect("it is there").replace("1/100000", &format!("1/{last}"));
    fs::write(&manifest, text).expect("it can be written");
    let why = refusal(&run(&["merge", &place.path("part"), "--out", &place.path("out")]));
    assert!(why.contains("sweep.json: is no sweep's: ") && why.contains("is no part"), "{why}");
}

/// Another program deals a sweep out to machines: it asks for the plan, has runs played by number, and has rows put together.
#[test]
fn rows_that_are_handed_over_make_the_whole_and_those_who_died_say_by_what() {
    let place = SweepFolder::new();
    ok(&mut place.sweep("10..14", "whole", &[]));
    let vary = "network.latency.max_ms=100,700";
    let asked = |more: &[&str]| {
        let mut all = vec!["sweep", "s.toml", "--seeds", "10..14", "--vary", vary];
        all.extend(more);
        dposlab().current_dir(place.folder.path()).args(all).output().expect("the binary was built for this test")
    };
    let plan = asked(&["--plan"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("--plan prints one object");
    assert_eq!((&plan["runs"], &plan["files"]), (&8.into(), &serde_json::json!(["s.toml"])));
    let [part, other] = ["3..8", "0..3"].map(|runs| String::from_utf8(asked(&["--only", runs]).stdout).expect("text"));
    assert_eq!((part.lines().count(), other.lines().count()), (6, 4));
    assert!(part.starts_with(&format!("{{\"rows_of\":{}}}\n", plan["rows_of"])));
    let write = |name: &str, text: &str| fs::write(place.path(name), text).expect("it can be written");
    write("part", &part);
    write("other", &other);
    // Wherever the scenario lies, the rows are the same sweep's; here its path is the one that the whole was made with.
    let gather = |out: &str, files: &[&str]| {
        let paths: Vec<String> = files.iter().map(|file| place.path(file)).collect();
        let mut command = place.sweep("10..14", out, &["--gather"]);
        command.args(paths).output().expect("the binary was built")
    };
    assert!(refusal(&gather("lacks", &["part"])).contains("lacks 3 of its 8 runs"));
    let gathered = gather("gathered", &["part", "other", "part"]);
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));
    assert!(place.results("whole") == place.results("gathered"));

    // Run 2 died; where it was played elsewhere, that counts.
    let died: Vec<&str> = other.lines().filter(|line| !line.contains("\"run\":2,")).collect();
    write("died", &format!("{}\n{{\"run\":2,\"status\":\"died\",\"by\":\"signal 9\"}}\n", died.join("\n")));
    let gathered = gather("with-died", &["part", "died"]);
    assert_eq!(gathered.status.code(), Some(1));
    let told = String::from_utf8_lossy(&gathered.stdout).into_owned();
    assert!(told.contains("8 runs, 1 failed (1 of them died"), "{told}");
    assert!(told.contains("died: signal 9: seed 12: dposlab run"), "{told}");
    let summary: Value = serde_json::from_slice(&place.results("with-died")["summary.json"]).expect("JSON");
    assert_eq!((&summary["died"], &summary["cells"][0]["died"]), (&1.into(), &1.into()));
    assert_eq!((&summary["cells"][0]["ok"]["of"], &summary["failures"][0]["ended"]), (&3.into(), &"signal 9".into()));
    let gathered = gather("with-died", &["other"]);
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));
    assert!(place.results("whole") == place.results("with-died"));
    // Also where the word of its death comes after it was played, and in whichever order the files are given.
    for (out, files) in [
        ("with-died", &["died"][..]),
        ("died-first", &["died", "part", "other"][..]),
        ("died-last", &["part", "other", "died"][..]),
    ] {
        let gathered = gather(out, files);
        assert!(gathered.status.success(), "{out}: {}", String::from_utf8_lossy(&gathered.stderr));
        assert!(place.results("whole") == place.results(out), "{out}");
    }

    write("another", &part.replacen("rows_of\":\"", "rows_of\":\"00", 1));
    assert!(refusal(&gather("x", &["another"])).contains("another: line 1: found rows of another sweep"));
    write("torn", &part[..part.len() - 9]);
    assert!(refusal(&gather("x", &["torn"])).contains("torn: line 6: is no row"));
    assert!(refusal(&asked(&["--only", "7..9"])).contains("--only: found run 8, allowed are those below 8"));
}

/// Files and numbers that no worker of ours hands over; each is refused by its name, and leaves nothing in the folder.
#[test]
fn rows_that_were_changed_on_their_way_are_named() {
    let place = SweepFolder::new();
    let asked = |seeds: &str, more: &[&str]| {
        let all = [&["sweep", "s.toml", "--seeds", seeds], more].concat();
        dposlab().current_dir(place.folder.path()).args(all).output().expect("the binary was built for this test")
    };
    let rows = |seeds: &str, more: &[&str]| String::from_utf8(asked(seeds, more).stdout).expect("text");
    let write = |name: &str, text: &str| fs::write(place.path(name), text).expect("it can be written");
    let all = rows("10..14", &["--only", "0..4", "--jobs", "1"]);
    let lines: Vec<&str> = all.lines().collect();
    let (head, first, last) = (lines[0], lines[1], lines[4]);
    let under = |line: &str| format!("{head}\n{line}\n");
    let digit = last.find("\"row\":\"").expect("it has a row") + 40;
    let other = if &last[digit..=digit] == "0" { "1" } else { "0" };
    let flipped = format!("{}{other}{}", &last[..digit], &last[digit + 1..]);
    let at = |run: &str| under(&last.replace("\"run\":3", &format!("\"run\":{run}")));
    let hostile = [
        ("nothing", String::new(), "line 1: is no first line of rows"),
        ("headless", lines[1..].join("\n"), "line 1: is no first line of rows"),
        ("another manifest", rows("10..15", &["--only", "0..1"]), "line 1: found rows of another sweep"),
        ("two heads", format!("{head}\n{all}"), "line 2: is no row"),
        ("truncated", all[..all.len() - last.len() / 2].to_owned(), "line 5: is no row"),
        ("truncated to whole lines", lines[..3].join("\n"), "lacks 2 of its 4 runs"),
        ("doubled in a line", under(&first.repeat(2)), "line 2: is no row"),
        ("flipped", under(&flipped), "line 2: run 3: found no row of that run"),
        ("another run's", at("2"), "line 2: run 2: found no row of that run"),
        ("beyond", at("4"), "line 2: key 'run': found 4, allowed are those below 4"),
        ("far beyond", at("18446744073709551615"), "key 'run': found 18446744073709551615, allowed are those below 4"),
        ("too far", at("18446744073709551616"), "line 2: is no row"),
        ("negative", at("-1"), "line 2: is no row"),
        ("dead of what", under(r#"{"run":1,"status":"died","by":"magic"}"#), "line 2: key 'by'"),
        ("a blank line", under(""), "line 2: is no row"),
    ];
    for (number, (name, text, why)) in hostile.iter().enumerate() {
        write(name, text);
        let told = refusal(&asked("10..14", &["--out", &format!("refused-{number}"), "--gather", name]));
        assert!(told.contains(why), "{name}: {told}");
    }
    fs::write(place.path("no text"), [head.as_bytes(), b"\n\xff\xfe\n"].concat()).expect("it can be written");
    assert!(refusal(&asked("10..14", &["--out", "x", "--gather", "no text"])).contains("no text: line 2: "));
    assert!(refusal(&asked("10..14", &["--out", "x", "--gather", "none"])).contains("none: No such file"));

    // Twice the same is no matter. A row of the same run that differs is one: it has its checksum, and somebody made it.
    let figures = "\"row\":\"";
    let slow = rows("10..14", &["--set", "network.latency.max_ms=900", "--only", "3..4"]);
    let slow = slow.lines().nth(1).expect("a row");
    assert_ne!(slow.split(figures).nth(1), last.split(figures).nth(1), "another latency, other figures");
    write("differs", &under(slow));
    write("all", &format!("{all}{first}\n"));
    let told = refusal(&asked("10..14", &["--out", "x", "--gather", "all", "differs"]));
    assert!(told.contains("differs: line 2: run 3: found a row that differs from another one of that run"), "{told}");
    ok(dposlab().current_dir(place.folder.path()).args(["sweep", "s.toml", "--seeds", "10..14", "--out", "alone"]));
    // Where a file was refused the whole can still be made.
    for out in ["refused-7", "refused-10"] {
        let whole = asked("10..14", &["--out", out, "--gather", "all"]);
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        assert!(place.results(out) == place.results("alone"));
    }

    for (runs, why) in [
        ("0..5", "--only: found run 4, allowed are those below 4"),
        ("0..18446744073709551615", "--only: found run 18446744073709551614, allowed are those below 4"),
        ("18446744073709551615", "are no seeds"),
        ("0..18446744073709551616", "are no seeds"),
        ("2..2", "are no seeds"),
    ] {
        let output = asked("10..14", &["--only", runs]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.contains(why)), (Some(2), true), "{runs}: {told}");
    }
}

#[test]
fn a_part_is_well_when_its_runs_are_written_down_and_may_be_named_by_a_batch_system() {
    let place = SweepFolder::new();
    let asserted = "\n[[assert]]\nalways = \"missed == 0\"\n";
    fs::write(place.path("s.toml"), format!("{SCENARIO}{asserted}")).expect("it can be written");
    let part = |variables: &[(&str, &str)], shard: &str, out: &str| {
        let mut command = place.sweep("0..2", out, &["--shard", shard]);
        command
            .env_remove("SLURM_ARRAY_TASK_ID")
            .envs(variables.iter().copied())
            .output()
            .expect("the binary was built")
    };
    let array = [("SLURM_ARRAY_TASK_ID", "1"), ("SLURM_ARRAY_TASK_COUNT", "2"), ("SLURM_ARRAY_TASK_MIN", "1")];
    for (variables, shard, out) in
        [(&array[..], "auto", "one"), (&[("JOB_COMPLETION_INDEX", "1")][..], "auto/2", "two")]
    {
        let played = part(variables, shard, out);
        assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
        assert!(String::from_utf8_lossy(&played.stdout).contains("2 runs, 2 failed"), "what failed is told");
    }
    let merged = run(&["merge", &place.path("one"), &place.path("two"), "--out", &place.path("whole")]);
    assert_eq!(merged.status.code(), Some(1), "the whole says that runs failed");
    let refused = part(&[], "auto", "none");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"));
}

#[test]
fn progress_is_told_in_lines_where_it_is_asked_for() {
    let place = SweepFolder::new();
    let swept = ok(&mut place.sweep("0..2", "out", &["--progress", "json"]));
    let told = String::from_utf8(swept.stderr).expect("text");
    let last: Value = serde_json::from_str(told.lines().last().expect("a line")).expect("JSON");
    let done = serde_json::json!({"progress": {"done": 4, "total": 4, "failed": 0, "censored": 0, "found": 0}});
    assert_eq!(last, done);
    let played = run(&["run", &place.path("s.toml"), "--progress", "json"]);
    assert!(String::from_utf8_lossy(&played.stderr).contains(r#"{"progress":{"done":54,"total":54}}"#));
}

/// Of a sweep in which some runs are ended before their last round: by its rows, the seeds of which both runs were not.
#[test]
fn combinations_are_compared_by_seeds_of_which_both_runs_came_to_their_end() {
    let folder = SweepFolder::new();
    let limits = "time_limit_seconds=100000,560";
    let scenario = folder.path("s.toml");
    let sweep = |out: &str, more: &[&str]| {
        let mut command = dposlab();
        command.args(["sweep", &scenario, "--seeds", "0..8", "--vary", limits, "--set", "network.loss=0.02"]);
        command.args(["--out", &folder.path(out)]).args(more);
        command
    };
    let json = |output: Output| serde_json::from_slice::<Value>(&output.stdout).expect("it prints JSON");
    let told = json(sweep("whole", &["--compare", "--json"]).output().expect("it runs"));
    let mut rows = csv::Reader::from_path(Path::new(&folder.path("whole")).join("runs.csv")).expect("it is there");
    let head = rows.headers().expect("it has a head").clone();
    let column = |name: &str| head.iter().position(|column| column == name).expect("it is a column");
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("it can be read")).collect();
    let (first, second) = rows.split_at(8);
    let ended = |row: &csv::StringRecord| &row[column("status")] != "censored";
    let pairs: Vec<_> = first.iter().zip(second).filter(|(one, other)| ended(one) && ended(other)).collect();
    assert!(
        !pairs.is_empty() && pairs.len() < 8,
        "{} of 8 pairs came to their end: the test compares nothing",
        pairs.len()
    );
    let figure = |row: &csv::StringRecord| row[column("blocks")].parse::<f64>().expect("a number");
    let mean = pairs.iter().map(|(one, other)| figure(other) - figure(one)).sum::<f64>() / pairs.len() as f64;
    let compared = &told["compared"][0];
    assert_eq!(compared["left_out"], 8 - pairs.len());
    assert_eq!(compared["figures"]["blocks"]["pairs"], pairs.len());
    assert_eq!(compared["figures"]["blocks"]["difference"].as_f64(), Some(mean));

    // Parts that are merged are compared as the whole.
    for part in ["1/2", "2/2"] {
        sweep(&part.replace('/', "-"), &["--shard", part]).output().expect("it runs");
    }
    let mut merge = dposlab();
    merge.args([
        "merge",
        &folder.path("1-2"),
        &folder.path("2-2"),
        "--out",
        &folder.path("merged"),
        "--compare",
        "--json",
    ]);
    assert_eq!(json(merge.output().expect("it runs"))["compared"], told["compared"]);
    // Nobody asked, and nothing is told.
    let plain = json(sweep("whole", &["--json"]).output().expect("it runs"));
    assert_eq!(plain.get("compared"), None);
}

/// It ends with the first seed after which the mean is known well enough, however many runs are played at a time, and wherever it was
/// interrupted; what it leaves is what a sweep of these seeds leaves.
#[test]
fn a_sweep_ends_when_a_mean_is_known() {
    let folder = SweepFolder::new();
    let until = |out: &str, width: &str, jobs: &str| {
        let mut command = dposlab();
        command.args([
            "sweep",
            &folder.path("s.toml"),
            "--seeds",
            "3..500",
            "--vary",
            "network.latency.max_ms=100,700",
        ]);
        command.args([
            "--json",
            "--until-ci",
            &format!("missed.rate<{width}"),
            "--jobs",
            jobs,
            "--out",
            &folder.path(out),
        ]);
        let output = command.output().expect("it runs");
        let told: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        let seeds = told["runs"].as_u64().expect("a number") / 2;
        (seeds, told, output.status.code())
    };
    let widest = |told: &Value| {
        let ends = |cell: &Value| cell["confidence"]["high"].as_f64().zip(cell["confidence"]["low"].as_f64());
        let cells = told["until_ci"]["cells"].as_array().expect("a list").iter();
        cells.map(|cell| ends(cell).map_or(1.0, |(high, low)| high - low)).fold(0.0, f64::max)
    };
    let (seeds, told, code) = until("one", "0.35", "1");
    assert!(code == Some(0) && told["until_ci"]["reached"] == true && widest(&told) < 0.35, "{told}");
    assert!((5..400).contains(&seeds), "{seeds} seeds");
    assert_eq!(told["until_ci"]["cells"].as_array().map(Vec::len), Some(2));
    // The same seeds without it: the same tables, and the rest of the summary.
    ok(&mut folder.sweep(&format!("3..{}", 3 + seeds), "plain", &[]));
    let mut tables = folder.results("one");
    let mut plain = folder.results("plain");
    let [mut summary, wanted] = [&mut tables, &mut plain].map(|all| {
        all.remove("report.html");
        serde_json::from_slice::<Value>(&all.remove("summary.json").expect("it is there")).expect("JSON")
    });
    summary.as_object_mut().expect("an object").shift_remove("until_ci");
    assert!(tables == plain && summary == wanted, "the results of {seeds} seeds");
    // One seed less is not enough, and says so.
    let few = format!("3..{}", 2 + seeds);
    let output = folder.sweep(&few, "few", &["--until-ci", "missed.rate<0.35"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code() == Some(1)
            && said.contains("is not known to less than 0.35, the same command with more --seeds goes on"),
        "{said}"
    );

    // Several at a time, and from a wider interval to a narrower one.
    let whole = until("whole", "0.3", "1");
    assert!(whole.0 > seeds);
    for (out, first) in [("many", "0.3"), ("on", "0.35")] {
        until(out, first, "4");
        assert_eq!(until(out, "0.3", "3"), whole);
        assert_eq!(folder.results(out), folder.results("whole"), "{out}");
    }
}

/// Further seeds, one at a time and several, after a study that had too few of them, one that had enough, and one that was killed. The
/// files are those of one long study, byte for byte.
#[test]
fn a_study_that_a_mean_ends_goes_on_with_further_seeds() {
    let folder = SweepFolder::new();
    let study = |out: &str, seeds: &str, width: &str, jobs: &str| {
        let mut command = dposlab();
        command.args(["sweep", &folder.path("s.toml"), "--seeds", seeds, "--vary", "network.latency.max_ms=100,700"]);
        command.args(["--until-ci", &format!("missed.rate<{width}"), "--jobs", jobs, "--out", &folder.path(out)]);
        command
    };
    let until = |out: &str, seeds: &str, width: &str, jobs: &str| {
        let output = study(out, seeds, width, jobs).output().expect("it runs");
        let played = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{played}{}", String::from_utf8_lossy(&output.stderr));
        output.status.code() == Some(0)
    };
    assert!(until("whole", "3..500", "0.3", "1"), "it is known");
    let whole = folder.results("whole");
    let manifest = |out: &str| fs::read(Path::new(&folder.path(out)).join("sweep.json")).expect("it is there");
    let is_whole = |out: &str| {
        assert!(folder.results(out) == whole, "{out}");
        assert!(manifest(out) == manifest("whole"), "{out}");
    };
    // Too few, twice, and then enough.
    for (seeds, width, reaches) in [("3..8", "0.3", false), ("3..11", "0.3", false), ("3..500", "0.3", true)] {
        assert_eq!(until("on", seeds, width, "3"), reaches, "{seeds}");
    }
    is_whole("on");
    // Enough for a wider interval, with a limit above the seeds that it took; then both a smaller width and a higher limit.
    assert!(until("wide", "3..300", "0.35", "2"));
    assert!(until("wide", "3..500", "0.3", "4"));
    is_whole("wide");
    // A higher limit alone changes the limit and no seed.
    assert!(until("limit", "3..300", "0.3", "2"));
    assert!(until("limit", "3..500", "0.3", "1"));
    is_whole("limit");
    // Seeds that were played without an end by a mean, and one that goes on after a kill in the middle of the further seeds.
    let mut killed = folder.begun("3..9", "killed");
    killed.kill().and_then(|()| killed.wait()).expect("it is its parent's");
    assert!(until("killed", "3..500", "0.3", "2"));
    is_whole("killed");
    assert!(!until("torn", "3..6", "0.3", "1"));
    let rows = Path::new(&folder.path("torn")).join("rows.bin");
    let before = fs::metadata(&rows).expect("it is there").len();
    let mut command = study("torn", "3..500", "0.3", "1");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the binary was built for this test");
    while fs::metadata(&rows).expect("it is there").len() == before && child.try_wait().expect("it is ours").is_none() {
        std::thread::yield_now();
    }
    child.kill().and_then(|()| child.wait()).expect("it is its parent's");
    assert!(until("torn", "3..500", "0.3", "3"));
    is_whole("torn");
    // A part cannot be extended: its runs would have other numbers.
    ok(&mut folder.sweep("3..6", "part", &["--shard", "1/2"]));
    let why = refusal(&folder.sweep("3..7", "part", &["--shard", "1/2"]).output().expect("it runs"));
    assert!(why.contains("part holds another sweep: key 'seeds': found 3..6, this one has 3..7"), "{why}");
}

/// The same of a sweep without an end by a mean, with its rows, in which further seeds move none.
#[test]
fn a_sweep_goes_on_with_further_seeds() {
    let folder = SweepFolder::new();
    let rows = |out: &str| fs::read(Path::new(&folder.path(out)).join("rows.bin")).expect("it is there");
    ok(&mut folder.sweep("2..9", "whole", &[]));
    ok(&mut folder.sweep("2..4", "on", &[]));
    let few = rows("on");
    ok(&mut folder.sweep("2..5", "on", &[]));
    assert!(rows("on").starts_with(&few) && rows("on").len() > few.len(), "the rows that were there stay");
    ok(&mut folder.sweep("2..9", "on", &[]));
    assert!(folder.results("on") == folder.results("whole") && rows("on") == rows("whole"));
    let told = run(&["sweep", &folder.path("on")]);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && text.contains("the same: 14 runs"), "{text}");
    // A lost manifest is written again, and no run is played twice.
    fs::remove_file(Path::new(&folder.path("on")).join("sweep.json")).expect("it was there");
    ok(&mut folder.sweep("2..9", "on", &[]));
    assert!(rows("on") == rows("whole"));
}

#[test]
fn what_is_no_mean_to_end_by_is_refused() {
    let folder = SweepFolder::new();
    for wrong in
        ["missed.rate", "missed.rate<0", "missed.rate<1", "missed.rate<nan", "missed.rate<x", "height<0.1", "<0.1", ""]
    {
        let output = folder.sweep("0..4", "out", &["--until-ci", wrong]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("ok.rate") && said.contains("missed.rate<0.001"),
            "{said}"
        );
    }
    for other in [&["--shard", "1/2"][..], &["--plan"], &["--only", "0..1"], &["--gather", "rows"]] {
        let mut command = folder.sweep("0..4", "out", &["--until-ci", "ok.rate<0.5"]);
        assert_eq!(command.args(other).output().expect("it runs").status.code(), Some(2), "{other:?}");
    }
    assert!(!Path::new(&folder.path("out")).exists(), "nothing is begun");
}

#[test]
fn one_combination_of_values_is_compared_with_nothing() {
    let folder = SweepFolder::new();
    for vary in [&[][..], &["--vary", "rounds=4"]] {
        let mut command = dposlab();
        command
            .args(["sweep", &folder.path("s.toml"), "--seeds", "0..2", "--compare", "--out", &folder.path("out")])
            .args(vary);
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(refusal(&output).contains("two or more can be compared: give --vary"), "{}", refusal(&output));
        assert!(!Path::new(&folder.path("out")).exists(), "nothing is begun");
    }
}

#[test]
fn a_value_that_is_varied_twice_is_refused_however_it_is_written() {
    let folder = SweepFolder::new();
    for values in ["0,0.0", "0.0,0", "0.1,0.10", "0,0.1,0"] {
        let vary = format!("network.loss={values}");
        let output = folder.sweep("0..1", "out", &["--vary", &vary]).output().expect("it runs");
        assert!(refusal(&output).contains("the value is there twice"), "{values}: {}", refusal(&output));
        assert!(!Path::new(&folder.path("out")).exists(), "nothing is begun");
    }
}
