//! A study is repeated from its folder alone, and what differs is named.

use crate::support::{dposlab, interrupt, root, run};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const BASE: &str = r#"
version = 1
rounds = 3
crypto = "modelled"
[network]
delegates = 5
latency = { min_ms = 20, max_ms = 100 }
"#;

/// It includes a file of another folder, and names a chain.
fn scenario(chain: &str) -> String {
    format!(
        "include = [\"../base.toml\"]\ndescription = \"A study\"\nrounds = 4\n\
         [[fault]]\nkind = \"offline\"\ndelegates = [\"genesis_3\"]\nrounds = {{ from = 2, to = 2 }}\n\
         [[workload]]\nkind = \"chain\"\nfile = '{chain}'\n"
    )
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder for temporary files") };
        fs::create_dir(place.file("of")).expect("it can be made");
        place.write("base.toml", BASE);
        let chain = fs::read_to_string(root().join("fuzz/seeds/chain/blocks.jsonl")).expect("it is in the repository");
        place.write("chain.jsonl", &chain);
        place.write("of/s.toml", &scenario(&place.path("chain.jsonl")));
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Replaces a part of a file that is there.
    fn replace(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert!(text.contains(old), "{name} has no '{old}'");
        self.write(name, &text.replacen(old, new, 1));
    }

    /// Takes away what the studies were made from.
    fn forget(&self) {
        for name in ["of/s.toml", "base.toml", "chain.jsonl"] {
            fs::remove_file(self.file(name)).expect("it was there");
        }
    }

    fn play(&self, command: &str, out: &str, more: &[&str]) {
        let (scenario, out) = (self.path("of/s.toml"), self.path(out));
        let output = run(&[&[command, &scenario, "--out", &out], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn again(&self, command: &str, out: &str) -> Output {
        run(&[command, &self.path(out)])
    }

    /// The repetition comes out the same.
    fn same(&self, command: &str, out: &str) -> String {
        let output = self.again(command, out);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains(&format!("{}: the same: ", self.path(out))), "{told}");
        told
    }

    /// It differs, and says so with exit code 1.
    fn differs(&self, command: &str, out: &str, part: &str) {
        let output = self.again(command, out);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains(&format!("{}: differs: ", self.path(out))) && told.contains(part), "{told}");
    }

    /// It is refused with exit code 2 and one line.
    fn refused(&self, arguments: &[&str], part: &str) {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.trim_end().lines().count() == 1 && error.contains(part), "{error}");
    }

    /// A copy of a folder, to change.
    fn copy(&self, of: &str, to: &str) {
        let done = Command::new("cp").args(["-r", &self.path(of), &self.path(to)]).status().expect("there is cp");
        assert!(done.success());
    }
}

fn about(file: &Path) -> BTreeMap<String, String> {
    let reader = SerializedFileReader::new(File::open(file).expect("it is there")).expect("it is a Parquet file");
    let about = reader.metadata().file_metadata().key_value_metadata().expect("it has metadata");
    about.iter().map(|entry| (entry.key.clone(), entry.value.clone().expect("a value"))).collect()
}

#[test]
fn a_run_is_repeated_from_its_folder_alone() {
    let place = Place::new();
    place.play("run", "one", &["--seed", "7", "--set", "network.loss=0.05"]);
    // All that it was made from, byte for byte, and how.
    let provenance = place.json("one/provenance.json");
    let texts = [("scenario", 0, "of/s.toml"), ("scenario", 1, "base.toml"), ("named", 0, "chain.jsonl")];
    for (list, index, file) in texts {
        let kept = provenance[list][index]["kept"].as_str().expect("a copy");
        assert_eq!(place.read(&format!("one/{kept}")), place.read(file), "{kept}");
    }
    let played = &provenance["played"][0];
    let words: Vec<&str> = played["command"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    let expected =
        ["run", &place.path("of/s.toml"), "--out", &place.path("one"), "--seed", "7", "--set", "network.loss=0.05"];
    assert_eq!(words, [&["dposlab"], &expected[..]].concat());
    assert_eq!(played["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(provenance["study"]["run"]["set"], json!(["network.loss=0.05"]));
    for key in ["commit", "profile", "optimisation", "target"] {
        assert!(played["program"][key].as_str().is_some_and(|value| !value.is_empty()), "{key}");
    }
    // The tables that are handed on alone say it, too, but for the machine.
    let told = about(&place.file("one/rounds.parquet"));
    let study: Value = serde_json::from_str(&told["dposlab.study"]).expect("JSON");
    assert_eq!(
        study,
        json!({ "version": env!("CARGO_PKG_VERSION"), "scenario": "s.toml", "seed": 7, "set": ["network.loss=0.05"] })
    );
    let texts: Value = serde_json::from_str(&told["dposlab.scenario"]).expect("JSON");
    assert_eq!(texts, json!({ "scenario/base.toml": BASE, "scenario/s.toml": place.read("of/s.toml") }));
    let program: Value =
        serde_json::from_str(&about(&place.file("one/rounds.parquet"))["dposlab.program"]).expect("JSON");
    let mut named = played["program"].clone();
    named["name"] = json!("dposlab");
    assert_eq!(program, named);
    // Without what it was made from.
    place.forget();
    let told = place.same("run", "one");
    assert!(told.contains(", 17 files") && !told.contains("not compared"), "{told}");
    // Elsewhere, and though the largest files were thrown away.
    place.copy("one", "moved");
    fs::remove_file(place.file("moved/events.jsonl")).expect("it was there");
    assert!(place.same("run", "moved").contains("not compared, since they are not there: events.jsonl"));
    for (file, old, new, part) in [
        ("rounds.csv", "\n2,", "\n3,", "rounds.csv: line 3: 'round': found '3', the repetition has '2'"),
        ("summary.json", "\"digest\": \"", "\"digest\": \"0", "summary.json: key 'digest': found 0"),
        ("summary.json", "\"blocks\"", "\"block\"", "summary.json: line "),
        ("events.jsonl", "\"kind\":\"block.forged\"", "\"kind\":\"block.forgot\"", "events.jsonl: line "),
        ("report.html", "<title>", "<title> ", "report.html: differs from byte "),
    ] {
        fs::remove_dir_all(place.file("changed")).ok();
        place.copy("one", "changed");
        place.replace(&format!("changed/{file}"), old, new);
        place.differs("run", "changed", part);
    }
    let told: Value = serde_json::from_slice(&run(&["run", &place.path("changed"), "--json"]).stdout).expect("JSON");
    assert_eq!((&told["is_same"], &told["missing"]), (&false.into(), &json!([])));
}

/// The Parquet files of another build name another program, and nothing else of them may differ.
#[test]
fn parquet_files_of_another_build_are_compared_but_for_the_name_of_the_program() {
    let place = Place::new();
    place.play("run", "one", &["--without", "events"]);
    let profile = place.json("one/provenance.json")["played"][0]["program"]["profile"].clone();
    let profile = profile.as_str().expect("a text").to_owned();
    let other = profile.to_uppercase();
    let change = |folder: &str, old: &str, new: &str| {
        assert_eq!(old.len(), new.len(), "the metadata keep their length");
        let mut changed = 0;
        for file in fs::read_dir(place.file(folder)).expect("it is there") {
            let file = file.expect("an entry").path();
            if file.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            let mut bytes = fs::read(&file).expect("it is there");
            let at = bytes.windows(old.len()).rposition(|part| part == old.as_bytes()).expect("the metadata come last");
            bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
            fs::write(&file, bytes).expect("it is written");
            changed += 1;
        }
        assert_eq!(changed, 7, "all tables");
    };
    let (old, new) = (format!("\"profile\":\"{profile}\""), format!("\"profile\":\"{other}\""));
    // The same program has left no other name.
    place.copy("one", "forged");
    change("forged", &old, &new);
    place.differs("run", "forged", "parquet: differs from byte ");
    let by_other = |folder: &str| {
        place.copy("one", folder);
        change(folder, &old, &new);
        place.replace(
            &format!("{folder}/provenance.json"),
            &format!("\"profile\": \"{profile}\""),
            &format!("\"profile\": \"{other}\""),
        );
    };
    by_other("other");
    let told = place.same("run", "other");
    assert!(told.contains(", 16 files") && told.contains(&format!(", {other}, ")), "{told}");
    by_other("study");
    change("study", "\"seed\":1", "\"seed\":2");
    place.differs("run", "study", "rounds.parquet: metadata 'dposlab.study': found ");
    by_other("rows");
    let file = place.file("rows/time.parquet");
    let mut bytes = fs::read(&file).expect("it is there");
    bytes[40] ^= 1;
    fs::write(&file, bytes).expect("it is written");
    place.differs("run", "rows", "time.parquet: differs from byte 40 on");
    by_other("short");
    fs::write(place.file("short/time.parquet"), "PAR1").expect("it is written");
    place.differs("run", "short", "time.parquet: differs from byte 4 on");
}

#[test]
fn a_folder_that_does_not_say_enough_is_refused() {
    let place = Place::new();
    place.play("run", "one", &[]);
    let (one, wrong) = (place.path("one"), place.path("wrong"));
    place.refused(&["run", &one, "--seed", "2"], "repeated as it was: found --seed, allowed are --stage");
    place.refused(&["sweep", &one], "is of a run: dposlab run repeats it");
    place.refused(&["run", &place.path("of")], "of/provenance.json: cannot be read: No such file");
    let case = |file: &str, old: &str, new: &str, part: &str| {
        fs::remove_dir_all(&wrong).ok();
        place.copy("one", "wrong");
        match old {
            "" => fs::remove_file(place.file("wrong").join(file)).expect("it was there"),
            old => place.replace(&format!("wrong/{file}"), old, new),
        }
        place.refused(&["run", &wrong], part);
    };
    case("scenario/base.toml", "", "", "wrong/scenario/base.toml: cannot be read: No such file");
    case("scenario/base.toml", "rounds = 3", "rounds = 5", "wrong/scenario/base.toml: found SHA256 ");
    case("scenario/chain.jsonl", "", "", "wrong/scenario/chain.jsonl: cannot be read: No such file");
    case("summary.json", "", "", "wrong/summary.json: there is none: the study did not end");
    case("provenance.json", "\"provenance\": 1", "\"provenance\": 2", "key 'provenance': found 2, allowed is 1");
    case(
        "provenance.json",
        "\"scenario/base.toml\"",
        "\"scenario/../../base.toml\"",
        "found 'scenario/../../base.toml'",
    );
    case(
        "provenance.json",
        "\"scenario/base.toml\"",
        "\"/etc/passwd\"",
        "found '/etc/passwd', allowed is scenario/NAME",
    );
    case("provenance.json", "\"seed\": 1", "\"seed\": -1", "provenance.json: ");
    case("provenance.json", "{", "", "provenance.json: ");
    // A text of others reads no file of this machine, though it is there.
    case(
        "provenance.json",
        &format!("\"path\": \"{}\"", place.path("of/../base.toml")),
        "\"path\": \"base.toml\"",
        "base.toml: cannot be read: ",
    );
    case(
        "provenance.json",
        &format!("\"path\": \"{}\"", place.path("chain.jsonl")),
        "\"path\": \"other\"",
        "a file that the study has kept",
    );
}

/// Values are compared where a program of another version left the folder, for what it says of itself differs.
#[test]
fn a_folder_of_another_version_is_compared_by_its_tables() {
    let place = Place::new();
    for (command, more, table, old, new) in [
        ("run", &["--seed", "3"][..], "rounds.csv", "\n2,", "\n9,"),
        ("sweep", &["--seeds", "0..2"][..], "runs.csv", "\n1,", "\n9,"),
    ] {
        place.play(command, command, more);
        let version = env!("CARGO_PKG_VERSION");
        for file in ["provenance.json", "summary.json"] {
            place.replace(
                &format!("{command}/{file}"),
                &format!("\"version\": \"{version}\""),
                "\"version\": \"0.0.9\"",
            );
        }
        let told = place.same(command, command);
        assert!(
            told.contains("left by dposlab 0.0.9 (commit ") && told.contains("the files that name it are not compared"),
            "{told}"
        );
        place.replace(&format!("{command}/{table}"), old, new);
        place.differs(command, command, &format!("{table}: line 3: "));
    }
}

#[test]
fn a_sweep_is_repeated_from_its_folder_alone() {
    let place = Place::new();
    place.write("points.csv", "network.loss\n0\n0.1\n");
    let varied = ["--vary", "network.latency.max_ms=100,300", "--jobs", "2"];
    place.play("sweep", "varied", &[&varied[..], &["--seeds", "0..3", "--compare"]].concat());
    place.play("sweep", "points", &["--points", &place.path("points.csv"), "--seeds", "4..6"]);
    place.play("sweep", "until", &["--seeds", "0..500", "--until-ci", "missed.rate<0.5"]);
    for part in ["1", "2"] {
        place.play(
            "sweep",
            &format!("part-{part}"),
            &[&varied[..], &["--seeds", "0..3", "--shard", &format!("{part}/2")]].concat(),
        );
    }
    fs::remove_file(place.file("points.csv")).expect("it was there");
    place.forget();
    // The parts hold what they were made from, and so does the whole.
    let parts = [place.path("part-1"), place.path("part-2")];
    let merged = run(&["merge", &parts[0], &parts[1], "--compare", "--out", &place.path("merged")]);
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    for name in ["runs.parquet", "summary.json", "report.html", "scenario/s.toml", "scenario/chain.jsonl"] {
        let of = |folder: &str| fs::read(place.file(folder).join(name)).expect("it is there");
        assert!(of("varied") == of("merged"), "{name}");
    }
    let played = place.json("merged/provenance.json")["played"].as_array().expect("a list").len();
    assert_eq!(played, 2, "a part's and that of the merger");
    for folder in ["varied", "points", "until", "part-2", "merged"] {
        place.same("sweep", folder);
    }
    let study: Value = serde_json::from_str(&about(&place.file("points/runs.parquet"))["dposlab.study"]).expect("JSON");
    assert_eq!((&study["seeds"], &study["points"]["rows"]), (&"4..6".into(), &json!([["0"], ["0.1"]])));
    // What differs is named by the run and its column.
    place.copy("varied", "changed");
    place.replace("changed/runs.csv", ",ok,", ",broken,");
    place.differs("sweep", "changed", "runs.csv: line 2: 'status': found 'broken', the repetition has 'ok'");
    place.refused(&["sweep", &place.path("varied"), "--seeds", "0..9"], "repeated as it was: found --seeds");
    place.refused(&["run", &place.path("varied")], "is of a sweep: dposlab sweep repeats it");
    place.replace("changed/sweep.json", "\"seeds\": \"0..3\"", "\"seeds\": \"0..x\"");
    place.refused(&["sweep", &place.path("changed")], "sweep.json: is no sweep's: ");
    place.replace("changed/sweep.json", "\"0..x\"", "\"0..3\"");
    place.replace("changed/sweep.json", "\"scenario_digest\": \"", "\"scenario_digest\": \"0");
    place.refused(&["sweep", &place.path("changed")], "key 'scenario_digest'");
    fs::remove_file(place.file("part-1/provenance.json")).expect("it was there");
    let all = ["merge", &parts[0], &parts[1], "--out", &place.path("other")];
    place.refused(&all, "part-1/provenance.json: cannot be read: No such file");
}

/// It says what was begun, and that it did not end: nothing of an earlier run is taken for it.
#[test]
fn a_run_that_was_killed_says_that_it_did_not_end() {
    let place = Place::new();
    place.play("run", "out", &["--seed", "1"]);
    let mut command = dposlab();
    command.args([
        "run",
        &place.path("of/s.toml"),
        "--seed",
        "2",
        "--set",
        "rounds=100000",
        "--out",
        &place.path("out"),
    ]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary was built");
    while fs::metadata(place.file("out/events.jsonl")).map_or(0, |file| file.len()) < 2 << 20 {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
        std::thread::yield_now();
    }
    child.kill().and_then(|()| child.wait()).expect("it is still there");
    let study = &place.json("out/provenance.json")["study"]["run"];
    assert_eq!((&study["seed"], &study["set"]), (&2.into(), &json!(["rounds=100000"])));
    place.refused(&["run", &place.path("out")], "out/summary.json: there is none: the study did not end");
}

#[test]
fn outputs_that_are_not_wanted_are_left_out() {
    let place = Place::new();
    place.play("run", "all", &[]);
    place.play("run", "few", &["--without", "events,blocks", "--without", "report"]);
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(place.file(folder)).expect("it is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let left_out = ["blocks.csv", "blocks.parquet", "events.jsonl", "report.html"];
    let expected: Vec<String> = names("all").into_iter().filter(|name| !left_out.contains(&name.as_str())).collect();
    assert_eq!(names("few"), expected);
    for name in ["rounds.csv", "time.parquet", "summary.json"] {
        assert!(place.read_bytes("all", name) == place.read_bytes("few", name), "{name}");
    }
    let told = place.same("run", "few");
    assert!(!told.contains("not compared"), "{told}");
    let (scenario, all) = (place.path("of/s.toml"), place.path("all"));
    let events = place.read_bytes("all", "events.jsonl");
    place.refused(&["run", &scenario, "--out", &all, "--without", "events"], "all/events.jsonl of an earlier run");
    assert!(
        events == place.read_bytes("all", "events.jsonl") && place.file("all/summary.json").exists(),
        "it is not lost"
    );
    let output = run(&["run", &scenario, "--out", &all, "--without", "summary"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("[possible values: events, rounds, delegates, elections, time, blocks, orphans, links, report]"),
        "{error}"
    );
}

impl Place {
    fn read_bytes(&self, folder: &str, name: &str) -> Vec<u8> {
        fs::read(self.file(folder).join(name)).expect("it is there")
    }
}

/// A terminal obeys no text of others.
#[test]
fn an_error_moves_no_cursor() {
    let place = Place::new();
    place.write("points.csv", "rounds\u{1b}[2J\n1\n");
    let output =
        run(&["sweep", &place.path("of/s.toml"), "--points", &place.path("points.csv"), "--out", &place.path("out")]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("'rounds\\u{1b}[2J' is no path"), "{error}");
}

/// What could not be written whole is not taken for a study.
#[test]
fn a_run_on_a_full_disk_did_not_end() {
    let place = Place::new();
    // In units of 512 bytes: room for what repeats the run, and for a part of its events.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    let arguments = ["run", &place.path("of/s.toml"), "--set", "rounds=40", "--out", &place.path("out")];
    let output = shell.args(["-c", script, env!("CARGO_BIN_EXE_dposlab")]).args(arguments).output().expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("events.jsonl") && error.contains("File too large"), "{error}");
    place.refused(&["run", &place.path("out")], "out/summary.json: there is none: the study did not end");
}

#[test]
fn a_study_that_the_real_time_ended_is_refused() {
    let place = Place::new();
    place.write("endless.toml", "version = 1\nrounds = 100000\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n");
    for (command, out, file) in [("run", "one", "summary.json"), ("sweep", "many", "runs.csv: line 2")] {
        let (scenario, folder) = (place.path("endless.toml"), place.path(out));
        let mut arguments = vec![command, &scenario, "--max-time", "1s", "--out", &folder];
        arguments.extend(if command == "run" { ["--without", "events"] } else { ["--seeds", "0..1"] });
        run(&arguments);
        place.refused(&[command, &folder], file);
    }
    // The limit of events is a value of the scenario, and ends a repetition at the same event.
    let (scenario, folder) = (place.path("endless.toml"), place.path("events"));
    run(&["sweep", &scenario, "--max-events", "500", "--seeds", "0..2", "--out", &folder]);
    place.same("sweep", "events");
}

#[test]
fn a_sweep_is_repeated_from_any_working_folder() {
    let place = Place::new();
    let in_folder = |folder: &Path, arguments: &[&str]| {
        let output = dposlab().args(arguments).current_dir(folder).output().expect("the binary was built");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    let (here, scenario, out) = (place.folder.path(), place.path("of/s.toml"), place.path("many"));
    in_folder(here, &["sweep", &scenario, "--seeds", "0..2", "--out", &out]);
    in_folder(&place.file("of"), &["sweep", &out]);
    in_folder(Path::new("/"), &["sweep", &out]);
    place.same("sweep", "many");
}

#[test]
fn a_file_that_no_study_has_left_is_not_replaced() {
    let place = Place::new();
    fs::create_dir_all(place.file("mine/scenario")).expect("it can be made");
    place.write("mine/scenario/base.toml", "mine");
    let (scenario, out) = (place.path("of/s.toml"), place.path("mine"));
    place.refused(
        &["run", &scenario, "--out", &out],
        "mine/scenario/base.toml: found a file that no study has left there",
    );
    assert_eq!(place.read("mine/scenario/base.toml"), "mine");
    // A table, a summary and a description of another program; a folder that a study has left is written over.
    for (command, name) in
        [("run", "blocks.csv"), ("run", "ro-crate-metadata.json"), ("sweep", "runs.csv"), ("sweep", "summary.json")]
    {
        let folder = format!("{command}-{name}");
        fs::create_dir_all(place.file(&folder)).expect("it can be made");
        place.write(&format!("{folder}/{name}"), "mine");
        let out = place.path(&folder);
        let seeds: &[&str] = if command == "sweep" { &["--seeds", "0..1"] } else { &[] };
        let arguments = [&[command, &scenario, "--out", &out], seeds].concat();
        place.refused(&arguments, &format!("{name}: found a file that no study has left there"));
        assert_eq!(place.read(&format!("{folder}/{name}")), "mine");
        fs::remove_file(place.file(&folder).join(name)).expect("it is there");
        assert!((0..2).all(|_| run(&arguments).status.success()), "{folder}");
    }
}

#[test]
fn a_trace_replaces_a_trace_and_nothing_else() {
    let place = Place::new();
    let scenario = place.path("of/s.toml");
    let before = place.read("of/s.toml");
    fs::create_dir_all(place.file("earlier")).expect("it can be made");
    assert!(run(&["run", &scenario, "--out", &place.path("earlier")]).status.success());
    place.write("package.json", "{\"dependencies\":{\"dposlab\":\"1\"}}");
    for file in ["of/s.toml", "package.json"] {
        let arguments = ["run", &scenario, "--out", &place.path("earlier"), "--trace", &place.path(file)];
        place.refused(&arguments, "holds something that is no trace");
    }
    assert_eq!(place.read("of/s.toml"), before);
    assert!(place.file("earlier/summary.json").exists(), "an earlier run keeps its summary");
    for file in ["trace.jsonl", "trace.json"] {
        let trace = place.path(file);
        assert!((0..2).all(|_| run(&["run", &scenario, "--trace", &trace]).status.success()), "{file}");
    }
}

#[test]
fn a_study_that_did_not_end_is_not_taken_for_the_one_before() {
    let place = Place::new();
    let scenario = place.path("of/s.toml");
    // A disk that is full at the end stands for a kill at any instant.
    let fails = |arguments: &[&str], out: &str| {
        let part = place.file(out).join("summary.json.part");
        std::os::unix::fs::symlink("/dev/full", &part).expect("it can be made");
        assert_eq!(run(arguments).status.code(), Some(1));
        fs::remove_file(&part).expect("it was made");
        assert!(!place.file(out).join("ro-crate-metadata.json").exists(), "the description of the earlier one");
        place.refused(&[arguments[0], &place.path(out)], "summary.json: there is none: the study did not end");
    };
    place.play("run", "one", &["--seed", "1"]);
    fails(&["run", &scenario, "--seed", "2", "--out", &place.path("one")], "one");
    place.play("sweep", "many", &["--seeds", "0..4", "--until-ci", "missed.rate<0.9"]);
    let out = place.path("many");
    fails(&["sweep", &scenario, "--seeds", "0..4", "--until-ci", "missed.rate<0.001", "--out", &out], "many");
}

#[test]
fn a_folder_keeps_its_kind_and_its_history() {
    let place = Place::new();
    let scenario = place.path("of/s.toml");
    place.play("sweep", "many", &["--seeds", "0..2"]);
    let out = place.path("many");
    place.refused(&["run", &scenario, "--out", &out], "found the study of a sweep, allowed is that of a run");
    // Rows that are refused change nothing of what the folder says.
    let before = place.read("many/provenance.json");
    place.refused(&["sweep", &scenario, "--seeds", "0..2", "--gather", "/dev/null", "--out", &out], "/dev/null");
    assert_eq!(place.read("many/provenance.json"), before);
    place.same("sweep", "many");
    // Another program goes on.
    place.replace("many/provenance.json", "\"commit\": \"", "\"commit\": \"other-");
    place.play("sweep", "many", &["--seeds", "0..2"]);
    assert_eq!(place.json("many/provenance.json")["played"].as_array().map(Vec::len), Some(2));
    assert!(place.same("sweep", "many").contains("commit other-"), "a part of it is another program's");
    place.write("many/provenance.json", "{}");
    place.refused(&["sweep", &scenario, "--seeds", "0..2", "--out", &out], "provenance.json: key 'provenance'");
}

#[test]
fn a_merged_sweep_is_repeated_though_a_mean_ended_its_part() {
    let place = Place::new();
    let (scenario, part) = (place.path("of/s.toml"), place.path("part"));
    // Three seeds are too few for that, so the command fails, and its folder is whole.
    run(&["sweep", &scenario, "--seeds", "0..3", "--until-ci", "missed.rate<0.0001", "--out", &part]);
    let merged = run(&["merge", &place.path("part"), "--out", &place.path("whole")]);
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    place.same("sweep", "whole");
}

#[test]
fn chains_that_are_varied_are_kept_each() {
    let place = Place::new();
    let chain = place.read("chain.jsonl");
    fs::create_dir(place.file("other")).expect("it can be made");
    place.write("other/chain.jsonl", &chain.lines().take(5).map(|line| format!("{line}\n")).collect::<String>());
    let vary = format!("workload[0].file='{}','{}'", place.path("chain.jsonl"), place.path("other/chain.jsonl"));
    place.play("sweep", "many", &["--seeds", "0..1", "--vary", &vary]);
    fs::remove_dir_all(place.file("other")).expect("it was there");
    place.forget();
    place.same("sweep", "many");
    assert_eq!(place.json("many/provenance.json")["named"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_repetition_that_is_interrupted_says_nothing_of_the_folder() {
    let place = Place::new();
    place.write("long.toml", "version = 1\nrounds = 20000\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n");
    let (scenario, out) = (place.path("long.toml"), place.path("one"));
    assert!(run(&["run", &scenario, "--out", &out, "--without", "events"]).status.success());
    let mut child = dposlab();
    child.args(["run", &out, "--progress", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary was built");
    let mut error = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut told = String::new();
    error.read_line(&mut told).expect("it says how far it is");
    interrupt(&child);
    error.read_to_string(&mut told).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(told.contains("interrupted: nothing is known of "), "{told}");
}

#[test]
fn a_trace_does_not_replace_a_list_of_a_user() {
    let place = Place::new();
    let scenario = place.path("of/s.toml");
    for (name, text) in [("list.json", "[\n{\"name\": \"mine\"}\n]\n"), ("one.json", "{\"process_name\": \"mine\"}\n")]
    {
        place.write(name, text);
        place.refused(&["run", &scenario, "--trace", &place.path(name)], "holds something that is no trace");
        assert_eq!(place.read(name), text);
    }
}
