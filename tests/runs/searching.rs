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
    process::{Child, Output, Stdio},
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
    // The same assertion on the command line, beside those of the file.
    let text_of = fs::read_to_string(&*base).expect("it is there");
    let (without, with) = ("[[assert]]\nalways = \"chains <= 1\"\n", "assert[+]={ always = \"chains <= 1\" }");
    fs::write(&*base, text_of.replace(without, "")).expect("it can be written");
    let of = |set: &[&str]| search(folder.path(), &[&[&base, "--runs", "40", "--budget", "0"], set].concat()).1;
    let asserted = |said: &Value| {
        let all = found(said).iter().filter(|one| text(one, "source") == "asserted by the scenario");
        all.map(|one| text(one, "invariant").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asserted(&of(&[])), Vec::<String>::new());
    assert_eq!(asserted(&of(&["--set", with])), ["always chains <= 1"]);
    let (refused, _) = search(folder.path(), &["--set", with]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && why.contains("<SCENARIO>"), "it needs a scenario: {why}");
    let (refused, _) = search(folder.path(), &[&base, "--set", "assert[+]={ finally = 'hight > 1' }"]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("with 'assert[+]=") && why.contains("key 'assert[1]"), "it is named: {why}");
    fs::write(&*base, text_of).expect("it can be written");
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

/// Begins a search, by the arguments behind `check --out FOLDER`.
fn begin(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = dposlab();
    command.args(["check", "--out"]).arg(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary was built for this test")
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
    let child = begin(folder.path(), &with(&["--json", "--for", "1h"]));
    wait_for(&folder.path().join("findings.json"));
    let (refused, _) = search(folder.path(), &with(&["--for", "1h"]));
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("found a search that runs there") && why.contains("dposlab merge"), "{why}");
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
    for key in ["runs", "broken"] {
        assert_eq!(resumed[key], whole[key], "{key}");
    }
    assert_eq!(resumed["runs_now"], 30, "the others were played before");
    for (key, value) in ["slots", "delivered"].map(|key| (key, &whole[key])) {
        assert!(
            resumed[key].as_u64() > Some(0) && resumed[key].as_u64() <= value.as_u64(),
            "{key}: of the runs played now"
        );
    }
    let counts = |said: &Value| -> Vec<Value> {
        let keys = ["invariant", "cause", "runs", "seed", "share", "finding"];
        found(said).iter().flat_map(|one| keys.map(|key| one[key].clone())).collect()
    };
    assert_eq!(counts(&resumed), counts(&whole));
    play_all(&resumed);
    let (_, corrected) = search(folder.path(), &["--rules", "corrected", "--for", "1h", "--runs", "1"]);
    assert_eq!((&corrected["runs"], &corrected["replayed"]), (&Value::from(1), &Value::from(Vec::<Value>::new())));
    let (refused, _) = search(other.path(), &["--for", "ten minutes"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// The text of a folder's database.
fn database(folder: &Path) -> String {
    fs::read_to_string(folder.join("findings.json")).expect("the search has written it")
}

/// The seeds that were played, and those that showed each finding, of all builds and frames.
fn seeds(folder: &Path) -> Vec<Value> {
    let database: Value = serde_json::from_str(&database(folder)).expect("it is JSON");
    database["frames"].as_array().expect("a list").iter().map(|frame| frame["searches"].clone()).collect()
}

const SMALL: [&str; 10] = ["--rules", "reference", "--delegates", "4", "--rounds", "2", "--budget", "0", "--for", "1h"];

#[test]
fn two_parts_of_a_search_come_to_the_same_as_the_whole() {
    let [one, two, whole, both, again] = [(); 5].map(|()| tempfile::tempdir().expect("a folder of our own"));
    for (folder, part) in [(&one, "1/2"), (&two, "2/2"), (&whole, "1/1")] {
        let (_, said) = search(folder.path(), &[&SMALL[..], &["--runs", "200", "--shard", part]].concat());
        let runs = [("1/2", 64 + 64), ("2/2", 64 + 8), ("1/1", 200)].into_iter().find(|(of, _)| *of == part);
        assert_eq!((&said["runs"], &said["interrupted"]), (&Value::from(runs.expect("a part").1), &Value::from(false)));
    }
    let merge = |parts: [&Path; 2], out: &Path| {
        let command = dposlab().arg("merge").args(parts).arg("--out").arg(out).output();
        let output = command.expect("the binary was built for this test");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let told = merge([one.path(), two.path()], both.path());
    assert!(told.starts_with("200 runs, "), "{told}");
    merge([both.path(), one.path()], again.path());
    assert_eq!(database(both.path()), database(again.path()));
    assert_eq!(seeds(both.path()), seeds(whole.path()));
    let (_, said) = search(both.path(), &[&SMALL[..], &["--runs", "200"]].concat());
    assert_eq!((&said["runs"], &said["runs_now"]), (&Value::from(200), &Value::from(0)), "all are played");
    assert!(
        said["replayed"].as_array().is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["shown"] == true))
    );
    let refused =
        dposlab().args(["merge", "--compare"]).args([one.path(), two.path()]).arg("--out").arg(again.path()).output();
    let refused = refused.expect("the binary was built for this test");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("found folders of findings"));
}

#[test]
fn a_finding_whose_file_shows_it_no_more_is_told_as_mended() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let (_, before) = search(folder.path(), &[&SMALL[..], &["--runs", "30"]].concat());
    let mended = found(&before).first().expect("the reference has weaknesses");
    // What another build left: none of its runs counts, and one of its files shows nothing any more.
    let other = database(folder.path());
    let at = other.find("\"runs\":\"").expect("a build") + 8;
    let other_build = "0".repeat(16);
    let other = format!("{}{other_build}{}", &other[..at], &other[at + 16..]);
    fs::write(folder.path().join("findings.json"), other).expect("it can be written");
    let file = Path::new(text(mended, "file"));
    let healthy = "version = 1\nrounds = 2\n[network]\ndelegates = 4\n[[assert]]\nfinally = \"height >= 1\"\n";
    fs::write(file, healthy).expect("it can be written");
    let arguments = [&SMALL[..], &["--runs", "1", "--seed", "1000003"]].concat();
    let (output, after) = search(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "what the other files show does not hold");
    assert_eq!((&after["runs"], &after["runs_now"]), (&Value::from(1), &Value::from(1)));
    let replayed = after["replayed"].as_array().expect("a list");
    assert_eq!(replayed.len(), found(&before).len());
    let gone: Vec<&Value> = replayed.iter().filter(|one| one["shown"] == false).collect();
    assert!(gone.len() == 1 && signature(gone[0]) == signature(mended), "{gone:?}");
    for one in found(&before).iter().filter(|one| signature(one) != signature(mended)) {
        let now = found(&after).iter().find(|now| signature(now) == signature(one));
        let now = now.unwrap_or_else(|| panic!("its file shows {one}"));
        assert_eq!((&now["file"], &now["new"]), (&one["file"], &Value::from(false)), "{now}");
        let earlier =
            serde_json::json!([{ "version": after["version"], "build": other_build, "runs": [one["runs"], 30] }]);
        assert_eq!(now["earlier"], earlier, "{now}");
    }
    let command = dposlab().args(["check", "--out"]).arg(folder.path()).args(arguments).output();
    let said = String::from_utf8_lossy(&command.expect("the binary was built for this test").stdout).into_owned();
    let runs = &mended["runs"];
    let wanted = format!(
        "mended: {}\n  {} shows it no more; {runs} of 30 runs of dposlab {}, build {other_build}\n",
        signature(mended),
        file.display(),
        text(&after, "version"),
    );
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn a_finding_that_no_earlier_search_has_is_told_as_new() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let (_, first) = search(folder.path(), &[&SMALL[..], &["--runs", "30"]].concat());
    assert!(!found(&first).is_empty() && found(&first).iter().all(|one| one["new"].is_null()), "nothing was before it");
    // As if the first search had not seen the most frequent of its findings.
    let most = found(&first).iter().max_by_key(|one| one["runs"].as_u64()).expect("it found something");
    let new = &most["invariant"];
    let mut database: Value = serde_json::from_str(&database(folder.path())).expect("it is JSON");
    let lacks_it =
        |all: &mut Value| all.as_array_mut().expect("a list").retain(|one| &one["finding"]["invariant"] != new);
    for frame in database["frames"].as_array_mut().expect("a list") {
        lacks_it(&mut frame["files"]);
        frame["searches"].as_array_mut().expect("a list").iter_mut().for_each(|one| lacks_it(&mut one["found"]));
    }
    fs::write(folder.path().join("findings.json"), database.to_string()).expect("it can be written");
    let command = dposlab().args(["check", "--out"]).arg(folder.path()).args(SMALL).args(["--runs", "60"]).output();
    let said = String::from_utf8_lossy(&command.expect("the binary was built for this test").stdout).into_owned();
    assert!(said.contains(&format!("new: {}", text(most, "invariant"))), "{said}");
}

/// The files of a folder's database, with their sizes.
fn files(folder: &Path) -> Vec<Value> {
    let database: Value = serde_json::from_str(&database(folder)).expect("it is JSON");
    database["frames"][0]["files"].as_array().expect("a list").clone()
}

#[test]
fn an_interrupted_search_leaves_the_files_of_known_findings() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let small: Vec<&str> = SMALL.iter().map(|word| if *word == "0" { "60" } else { word }).collect();
    search(folder.path(), &[&small[..], &["--runs", "30"]].concat());
    let before = files(folder.path());
    assert!(before.len() > 3, "{before:?}");
    fs::remove_file(folder.path().join("search.lock")).expect("it is there");
    let child = begin(folder.path(), &[&small[..], &["--json"]].concat());
    wait_for(&folder.path().join("search.lock"));
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    let said: Value = serde_json::from_slice(&ended.stdout).expect("--json prints one object");
    assert!(said["replayed"].as_array().is_some_and(|all| all.iter().all(|one| one["shown"] != false)), "{said}");
    for file in before {
        let now = files(folder.path());
        let now = now.iter().find(|now| now["finding"] == file["finding"]).expect("it is still there");
        assert_eq!(now["file"], file["file"], "no file takes the place of another");
        assert!(now["size"]["nodes"].as_u64() <= file["size"]["nodes"].as_u64(), "{now}");
    }
}

#[test]
fn a_finding_is_made_small_again_where_more_runs_are_allowed() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let with = |budget: &'static str| -> Vec<&str> {
        SMALL.iter().map(|word| if *word == "0" { budget } else { word }).chain(["--runs", "20"]).collect()
    };
    let minimised = |said: &Value| found(said).iter().filter(|one| !one["minimal"].is_null()).count();
    let (_, first) = search(folder.path(), &with("0"));
    let drawn = files(folder.path());
    assert!(minimised(&first) == found(&first).len() && drawn.iter().all(|file| file["tried"] == 0), "{drawn:?}");
    let (_, second) = search(folder.path(), &with("0"));
    assert_eq!(minimised(&second), 0);
    let (_, third) = search(folder.path(), &with("40"));
    assert!(minimised(&third) > 2, "{third}");
    let size =
        |files: &[Value]| files.iter().map(|file| file["size"]["actions"].as_u64().expect("a count")).sum::<u64>();
    let small = files(folder.path());
    assert!(size(&small) < size(&drawn));
    assert_eq!(
        small.iter().map(|file| &file["file"]).collect::<Vec<_>>(),
        drawn.iter().map(|file| &file["file"]).collect::<Vec<_>>(),
        "the smaller scenario takes the place of the drawn one"
    );
    play_all(&third);
    let (_, fourth) = search(folder.path(), &with("40"));
    assert_eq!(minimised(&fourth), 0, "40 runs were spent before");
    fs::remove_file(folder.path().join(text(&small[0], "file"))).expect("it is there");
    let (_, fifth) = search(folder.path(), &with("40"));
    assert_eq!(minimised(&fifth), 1, "the file that is gone comes back");
    assert_eq!(files(folder.path()).len(), small.len());
}

#[test]
fn what_a_search_cannot_do_is_refused() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("file");
    fs::write(&file, "mine").expect("it can be written");
    let refused = |out: &Path, arguments: &[&str], code, wanted: &str| {
        let (output, _) = search(out, arguments);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && why.contains(wanted), "{arguments:?}: {why}");
    };
    refused(folder.path(), &["--for", "1s", "--runs", "10", "--shard", "2/2"], 2, "found no seeds of 10 for this part");
    refused(&file, &["--rules", "reference", "--runs", "20", "--budget", "0"], 1, "cannot be written");
    refused(&file, &["--for", "1s"], 1, "cannot be written");
    let draws = dposlab().args(["check", "--draw", "--for", "1s", "--out"]).arg(folder.path()).output();
    assert_eq!(draws.expect("the binary was built for this test").status.code(), Some(2), "they would never end");
    let scenario = root().join("scenarios/healthy.toml").to_string_lossy().into_owned();
    refused(folder.path(), &[&scenario, "--delegates", "7", "--runs", "1"], 2, "--delegates: found 7 beside");
    refused(folder.path(), &[&scenario, "--delegates", "7", "--exhaustive", "1"], 2, "--delegates: found 7 beside");
    for (names, wanted) in
        [("lisk,lisk", "--beside lisk: is there already"), ("corrected,reference", "--beside reference: is there")]
    {
        let output = run(&["explain", "scenarios/healthy.toml", "--budget", "0", "--repeats", "0", "--beside", names]);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && why.contains(wanted), "{why}");
    }
}

#[test]
fn the_greatest_seed_is_drawn_too() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let arguments = ["check", "--draw", "--seed", "18446744073709551610", "--runs", "200", "--out"];
    let output = dposlab().args(arguments).arg(folder.path()).output().expect("the binary was built for this test");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("6 scenarios drawn: "), "{output:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 6);
    assert!(folder.path().join("drawn-18446744073709551615.toml").exists());
}

#[test]
fn a_search_without_an_end_ends_with_ctrl_c() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let child = begin(folder.path(), &["--for", "forever", "--delegates", "4", "--rounds", "1", "--budget", "0"]);
    wait_for(&folder.path().join("findings.json"));
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("interrupted"));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("runs from seed 1, rules 'corrected'"));
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

/// The counts of a list are of one scenario with all its values, so the list of another value is refused.
#[test]
fn a_list_that_was_recorded_with_other_values_of_a_scenario_is_refused() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let (scenario, list) = (folder.path().join("s.toml"), folder.path().join("known.txt"));
    fs::write(&scenario, "version = 1\nrounds = 1\n[network]\ndelegates = 4\n").expect("it can be written");
    fs::write(&list, "a rollback ends at the common block: double-forging\n").expect("it can be written");
    let (scenario, list) = (scenario.to_string_lossy(), list.to_string_lossy());
    let known = |loss: &str, more: &[&str]| {
        let set = format!("network.loss={loss}");
        search(folder.path(), &[&[&scenario, "--set", &set, "--runs", "1", "--budget", "0"], more].concat()).0
    };
    known("0", &["--record-known", &list]);
    assert_ne!(known("0", &["--known", &list]).status.code(), Some(2));
    for other in [known("0.2", &["--known", &list]), known("0", &["--known", &list, "--crypto", "modelled"])] {
        let why = String::from_utf8_lossy(&other.stderr).into_owned();
        assert!(other.status.code() == Some(2) && why.contains("; scenario "), "{why}");
    }
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
