//! Studies of many values: points of a table, and the indices of Sobol of what comes of them.

use crate::support::run;
use serde_json::Value;
use std::{fs, path::Path, process::Output};

const SCENARIO: &str = "version = 1\nrounds = 2\ncrypto = \"modelled\"\n[network]\ndelegates = 4\nloss = 0.0\nlatency = { min_ms = 20, max_ms = 100 }\n";

/// A folder with a scenario of four delegates.
struct Study(tempfile::TempDir);

impl Study {
    fn new() -> Self {
        let study = Self(tempfile::tempdir().expect("a folder for temporary files"));
        study.write("s.toml", SCENARIO);
        study
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it is there")
    }

    fn sweep(&self, points: &str, out: &str, more: &[&str]) -> Output {
        let (file, points, out) = (self.path("s.toml"), self.path(points), self.path(out));
        let arguments = ["sweep", &file, "--points", &points, "--seeds", "0..2", "--out", &out];
        run(&[&arguments, more].concat())
    }
}

#[track_caller]
fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Each point with every combination of `--vary` and every seed; a row is that of the run with its values.
#[test]
fn points_are_played_with_every_combination_and_seed() {
    let study = Study::new();
    study.write("points.csv", "network.loss, rounds\n0.01,1\n0.0,3\n0.02,2\n");
    text(study.sweep("points.csv", "out", &["--vary", "network.latency.max_ms=100,200"]));
    let table = study.read("out/runs.csv");
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let head = rows.headers().expect("it has a head").clone();
    assert_eq!(
        head.iter().skip(1).take(4).collect::<Vec<_>>(),
        ["network.loss", "rounds", "network.latency.max_ms", "seed"]
    );
    let rows: Vec<Vec<String>> =
        rows.records().map(|row| row.expect("it is whole").iter().map(str::to_owned).collect()).collect();
    let values =
        |row: &Vec<String>| row[1..5].iter().map(|value| value.parse().expect("a number")).collect::<Vec<f64>>();
    let expected = [(0.01, 1.0), (0.0, 3.0), (0.02, 2.0)].into_iter().flat_map(|(loss, rounds)| {
        [100.0, 200.0].into_iter().flat_map(move |late| [0.0, 1.0].map(|seed| vec![loss, rounds, late, seed]))
    });
    assert_eq!(rows.iter().map(values).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let sets = ["--set", "network.loss=0.02", "--set", "rounds=2", "--set", "network.latency.max_ms=200", "--json"];
    let file = study.path("s.toml");
    let alone: Value =
        serde_json::from_str(&text(run(&[&["run", &file, "--seed", "1"], &sets[..]].concat()))).expect("JSON");
    assert_eq!(Some(rows[11].last().expect("its digest").as_str()), alone["digest"].as_str());
}

/// What a study is made of is in its folder: the parts make the whole without the table.
#[test]
fn a_study_holds_its_points() {
    let study = Study::new();
    text(run(&["points", "sobol", "--count", "4", "network.loss=uniform(0,0.2)", "--out", &study.path("points.csv")]));
    text(study.sweep("points.csv", "whole", &[]));
    for part in ["1", "2"] {
        text(study.sweep("points.csv", part, &["--shard", &format!("{part}/2")]));
    }
    let points = study.read("points.csv");
    fs::remove_file(study.path("points.csv")).expect("it was there");
    text(run(&["merge", &study.path("1"), &study.path("2"), "--out", &study.path("merged")]));
    for name in ["runs.csv", "runs.parquet", "summary.json", "report.html", "points.csv"] {
        let of = |folder| fs::read(Path::new(&study.path(folder)).join(name)).expect("it is there");
        assert!(of("whole") == of("merged"), "{name}");
    }
    assert_eq!(study.read("whole/points.csv"), points);
    assert!(study.read("whole/report.html").contains("--points points.csv"));
    // Other points are another study.
    study.write("points.csv", &points.replacen("\n0.", "\n0.0", 1));
    refused(&study.sweep("points.csv", "whole", &[]), &["another sweep: key 'points'", "4 points of network.loss ("]);
}

/// The height follows from the rounds alone, and the latency changes nothing.
#[test]
fn indices_say_what_a_figure_depends_on() {
    let study = Study::new();
    let values = ["rounds=integer(1,8)", "network.latency.max_ms=integer(110,300)", "--out", &study.path("points.csv")];
    text(run(&[&["points", "saltelli", "--count", "16"], &values[..]].concat()));
    assert_eq!(study.read("points.csv").lines().count(), 1 + 16 * 4);
    text(study.sweep("points.csv", "out", &[]));
    let out = study.path("out");
    let told: Value =
        serde_json::from_str(&text(run(&["indices", &out, "--of", "height", "--of", "blocks", "--json"])))
            .expect("JSON");
    for (report, figure) in [(0, "height"), (1, "blocks")] {
        let report = &told["indices"][report];
        assert_eq!(
            (report["figure"].as_str(), &report["pairs"], &report["seeds"]),
            (Some(figure), &16.into(), &2.into())
        );
        let [rounds, latency] = [0, 1].map(|value| &report["values"][value]);
        assert_eq!((latency["first"].as_f64(), latency["total"].as_f64()), (Some(0.0), Some(0.0)), "{latency}");
        let total = rounds["total"].as_f64().expect("a number");
        assert!((0.7..1.3).contains(&total) && rounds["first"].as_f64() > Some(0.7), "{rounds}");
        assert!(rounds["total_confidence"]["low"].as_f64() < Some(total), "{rounds}");
    }
    let table = text(run(&["indices", &out, "--of", "height"]));
    assert!(
        table.contains("height over 16 pairs of points, 2 seeds or more each") && table.contains("| rounds | "),
        "{table}"
    );
    refused(&run(&["indices", &out, "--of", "missed.rate"]), &["missed.rate does not vary in the 16 of 16 pairs"]);
    let told = run(&["indices", &out, "--of", "heights"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains("found 'heights', allowed are missed.rate, "));
}

#[test]
fn what_are_no_points_is_refused_before_the_first_run() {
    let study = Study::new();
    for (table, parts) in [
        ("", &["points.csv: found no point"][..]),
        ("rounds\n", &["found no point"]),
        ("rounds,network.loss\n1,0.1\n2\n", &["points.csv: CSV error: record 2 (line: 3"]),
        ("rounds,network.loss\n1,0.1\n2,\n", &["line 3: column 'network.loss' is empty"]),
        ("rounds,rounds\n1,2\n", &["rounds: a path is varied once"]),
        ("network.lots\n1\n", &["point 1 in line 2 (network.lots=1): ", "lots"]),
        ("rounds,network.loss\n1,0.1\n2,1.5\n", &["point 2 in line 3 (rounds=2, network.loss=1.5): ", "found 1.5"]),
        (
            "network.latency.max_ms,network.latency\n99,1\n",
            &["network.latency: a path is varied once, and neither it nor a part"],
        ),
        (
            "rounds,network.loss\n\n1,0.1\n\n2 # three,0.1\n",
            &["point 2 in line 5 (rounds=2 # three", "invalid type: string"],
        ),
        ("rounds=3 #,network.loss\n1,0.1\n", &["'rounds=3 #' is no path"]),
        ("what is this\n1\n", &["'what is this' is no path"]),
    ] {
        study.write("points.csv", table);
        refused(&study.sweep("points.csv", "out", &[]), parts);
    }
    study.write("points.csv", "rounds\n1\n2\n");
    refused(&study.sweep("points.csv", "out", &["--vary", "rounds=1,2"]), &["rounds: a path is varied once"]);
    refused(&study.sweep("points.csv", "out", &["--set", "rounds=3"]), &["rounds: a path is varied once"]);
    refused(&study.sweep("nowhere.csv", "out", &[]), &["--points ", "nowhere.csv: No such file"]);
    let many = format!("rounds\n{}", "1\n".repeat(10_001));
    study.write("points.csv", &many);
    refused(&study.sweep("points.csv", "out", &[]), &["points.csv: found more points than the 10000 that are allowed"]);
    study.write("points.csv", &format!("rounds{}\n1\n", ",rounds".repeat(100)));
    refused(&study.sweep("points.csv", "out", &[]), &["points.csv: found 101 paths, allowed are 100"]);
    study.write("points.csv", "network.latency\n\"{ min_ms = 1, max_ms = 2 }\"\n");
    let part = ["--set", "network.latency.max_ms=9"];
    refused(&study.sweep("points.csv", "out", &part), &["network.latency: a path is varied once, and neither"]);
    assert!(!Path::new(&study.path("out")).exists(), "nothing was begun");
}

/// Another program deals the runs out, and gathers their rows: those of other points, and of none, are refused.
#[test]
fn rows_of_points_are_gathered_for_the_same_points_only() {
    let study = Study::new();
    let (rows, wrong) = (study.path("rows.jsonl"), study.path("wrong.jsonl"));
    let play = |points: &str, file: &str| {
        study.write("points.csv", points);
        let (scenario, points) = (study.path("s.toml"), study.path("points.csv"));
        let only = ["sweep", &scenario, "--points", &points, "--seeds", "0..2", "--only", "0..4"];
        fs::write(file, text(run(&only))).expect("it can be written");
    };
    // The same numbers of runs and columns, and other values.
    play("network.loss\n0.01\n0.03\n", &wrong);
    play("network.loss\n0.01\n0.02\n", &rows);
    text(study.sweep("points.csv", "whole", &[]));
    text(study.sweep("points.csv", "gathered", &["--gather", &rows]));
    assert!(study.read("whole/runs.csv") == study.read("gathered/runs.csv"));
    refused(&study.sweep("points.csv", "none", &["--gather", &wrong]), &["wrong.jsonl: line 1"]);
}

/// What is set comes first, so a part of it may be varied.
#[test]
fn a_part_of_what_is_set_may_be_varied() {
    let study = Study::new();
    study.write("points.csv", "network.latency.max_ms\n60\n90\n");
    let set = ["--set", "network.latency={ min_ms = 50, max_ms = 50 }"];
    text(study.sweep("points.csv", "set", &set));
    text(study.sweep("points.csv", "file", &["--set", "network.latency.min_ms=50"]));
    let digests = |folder: &str| {
        let table = study.read(&format!("{folder}/runs.csv"));
        table.lines().skip(1).map(|line| line.rsplit(',').next().expect("a digest").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(digests("set"), digests("file"));
    let [first, _, second, _] = &digests("set")[..] else { panic!("two points of two seeds") };
    assert_ne!(first, second);
}

/// A point without the figure takes its pair out, and a seed without it takes itself out of its pair.
#[test]
fn what_lacks_the_figure_is_left_out_of_indices() {
    let study = Study::new();
    let judged = format!("{SCENARIO}[[assert]]\nfinally = \"height >= 9\"\n");
    study.write("s.toml", &judged);
    let rows = [
        "1,1000", "3,1000", "1,2000", "3,2000", "3,1500", "2,1500", "3,1200", "2,1200", "1,1000", "3,1000", "1,16",
        "3,16",
    ];
    study.write("points.csv", &format!("rounds,time_limit_seconds\n{}\n", rows.join("\n")));
    let ended = study.sweep("points.csv", "out", &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let out = study.path("out");
    let told: Value = serde_json::from_str(&text(run(&["indices", &out, "--of", "ok.rate", "--json"]))).expect("JSON");
    let report = &told["indices"][0];
    assert_eq!((&report["pairs"], &report["left_out"], &report["seeds"]), (&2.into(), &1.into(), &2.into()), "{told}");
    assert_eq!(report["values"][1]["total"].as_f64(), Some(0.0), "the time limit decides nothing there: {told}");
    assert!(report["values"][0]["total"].as_f64() > Some(0.9), "{told}");
    assert!(text(run(&["indices", &out, "--of", "ok.rate"])).contains("over 2 pairs of points, 1 more without it"));
    refused(&run(&["indices", &out, "--of", "transaction_latency_p50_ms"]), &["found 0 of 3 pairs that have it"]);
    let times = run(&["indices", &out, "--of", "converged_seconds_max"]);
    assert!(String::from_utf8_lossy(&times.stderr).contains("found 'converged_seconds_max', allowed are missed.rate"));
    let until = ["--until-ci", "missed.rate<0.9"];
    study.write("s.toml", SCENARIO);
    let sweep = ["sweep", &study.path("s.toml"), "--points", &study.path("points.csv"), "--seeds", "0..60", "--out"];
    assert_eq!(run(&[&sweep[..], &[&study.path("until")], &until].concat()).status.code(), Some(0));
    refused(&run(&["indices", &study.path("until"), "--of", "height"]), &["such as one that --until-ci ended"]);
}

#[test]
fn what_has_no_indices_says_so() {
    let study = Study::new();
    study.write("points.csv", "rounds\n1\n2\n3\n");
    text(study.sweep("points.csv", "plain", &[]));
    refused(
        &run(&["indices", &study.path("plain"), "--of", "height"]),
        &["point 2 is not point 1 with the rounds of point 3"],
    );
    study.write("points.csv", "rounds\n1\n2\n2\n1\n");
    text(study.sweep("points.csv", "odd", &[]));
    refused(&run(&["indices", &study.path("odd"), "--of", "height"]), &["found 4 points, which are no groups of 3"]);
    study.write("points.csv", "rounds\n1\n2\n2\n3\n1\n1\n");
    text(study.sweep("points.csv", "varied", &["--vary", "network.loss=0.0,0.1"]));
    refused(&run(&["indices", &study.path("varied"), "--of", "height"]), &["found --vary beside points"]);
    text(study.sweep("points.csv", "part", &["--shard", "1/2"]));
    refused(&run(&["indices", &study.path("part"), "--of", "height"]), &["found a part, allowed is a whole study"]);
    refused(&run(&["indices", &study.path("nowhere"), "--of", "height"]), &["sweep.json"]);
}

/// The same seed gives the same points; a file that is there is kept.
#[test]
fn points_are_a_function_of_their_seed() {
    let study = Study::new();
    let draw = |design: &str, seed: &str, more: &[&str]| {
        run(&[&["points", design, "--count", "8", "--seed", seed, "a=uniform(0,1)", "b=choice(x,y)"], more].concat())
    };
    for design in ["latin", "sobol", "saltelli"] {
        let first = text(draw(design, "1", &[]));
        assert!(
            first.starts_with("a,b\n")
                && first == text(draw(design, "1", &[]))
                && first != text(draw(design, "2", &[]))
        );
        assert_eq!(first.lines().count(), if design == "saltelli" { 33 } else { 9 });
    }
    let file = study.path("kept.csv");
    assert_eq!(text(draw("latin", "1", &["--out", &file])), "");
    let again = draw("latin", "2", &["--out", &file]);
    assert!(again.status.code() == Some(1) && String::from_utf8_lossy(&again.stderr).contains("kept.csv: File exists"));
    refused(&run(&["points", "sobol", "--count", "7", "a=uniform(0,1)"]), &["found 7, allowed are powers of two"]);
    refused(&run(&["points", "latin", "--count", "7", "a=uniform(0,1)", "a=integer(1,2)"]), &["a: is varied twice"]);
    let many = ["points", "saltelli", "--count", "4096", "a=uniform(0,1)", "b=uniform(0,1)"];
    refused(&run(&many), &["found 16384 points, allowed are 10000"]);
    assert_eq!(text(draw("latin", "1", &["--out", &study.path("new/points.csv")])), "");
    let many: Vec<String> = (0..101).map(|number| format!("a{number}=uniform(0,1)")).collect();
    let arguments: Vec<&str> =
        ["points", "latin", "--count", "2"].into_iter().chain(many.iter().map(String::as_str)).collect();
    refused(&run(&arguments), &["found 101 varied values, allowed are 100"]);
}
