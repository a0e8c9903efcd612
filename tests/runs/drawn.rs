//! `dposlab figures`: the files of a run, a sweep and an explanation, and reports that are none. `tests/clients/reports` holds the
//! same files against what Chromium draws.

use crate::support::run;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::OnceLock,
};
use tempfile::TempDir;

const SCENARIO: &str = r#"
version = 1
rounds = 3
crypto = "modelled"
[network]
delegates = 7
latency = { min_ms = 30, max_ms = 900 }
[[fault]]
kind = "offline"
delegates = ["genesis_3"]
rounds = 2
"#;

/// A folder with the reports of a run, a sweep and an explanation, made once for all tests.
fn reports() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let scenario = folder.path().join("one & <offline>.toml");
        fs::write(&scenario, SCENARIO).expect("it can be written");
        let scenario = scenario.display().to_string();
        let out = |name: &str| folder.path().join(name).display().to_string();
        let vary = ["--vary", "network.latency.max_ms=300,900", "--vary", "network.loss=0.0,0.3"];
        for arguments in [
            &["run", &scenario, "--seed", "7", "--out", &out("run")][..],
            &[&["sweep", &scenario, "--seeds", "0..3", "--compare", "--out", &out("sweep")], &vary[..]].concat(),
            &["explain", &scenario, "--budget", "0", "--repeats", "4", "--instants", "3", "--out", &out("explain")],
        ] {
            let output = run(arguments);
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        folder
    });
    made.path()
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// Draws with these options into a folder, and returns its answer as JSON.
fn drawn(report: &str, out: &Path, options: &[&str]) -> Value {
    let (report, out) = (text_of(&reports().join(report)), text_of(out));
    let output = run(&[&["figures", &report, "--out", &out, "--json"], options].concat());
    assert!(output.status.success(), "{report}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints one object")
}

fn files(answer: &Value) -> Vec<&str> {
    let figures = answer["figures"].as_array().expect("a list").iter();
    figures.map(|figure| figure["file"].as_str().expect("a name")).collect()
}

/// The one line on standard error of a command that must end with this exit code.
fn refused(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "one line: {error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

/// Reads a file as XML, strictly: every element is closed in its order, attributes are quoted and come once, and no sign of markup is
/// left in a text. Returns names and attributes of the elements in their order.
fn elements(svg: &str) -> Vec<(String, Vec<(String, String)>)> {
    let (mut open, mut found, mut rest): (Vec<String>, Vec<_>, &str) = (Vec::new(), Vec::new(), svg);
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>') && text.matches('&').count() == text.matches(';').count(), "{text:?} in a text");
        if let Some(comment) = after.strip_prefix("!--") {
            assert!(open.is_empty(), "the comment comes last");
            rest = comment.split_once("-->").expect("a comment has an end").1;
            continue;
        }
        let (tag, following) = after.split_once('>').expect("a tag has an end");
        rest = following;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "elements close in their order");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut pairs) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(char::is_alphanumeric), "{name:?} is no name");
        let mut attributes: Vec<(String, String)> = Vec::new();
        while !pairs.is_empty() {
            let (key, after) = pairs.split_once("=\"").expect("a value is in quotes");
            let (value, after) = after.split_once('"').expect("a value has an end");
            assert!(attributes.iter().all(|(other, _)| other != key), "{key} comes twice in {tag}");
            attributes.push((key.to_owned(), value.to_owned()));
            pairs = after.trim_start();
        }
        if !is_empty {
            open.push(name.to_owned());
        }
        found.push((name.to_owned(), attributes));
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} stay open before {rest:?}");
    found
}

#[test]
fn every_figure_of_a_report_becomes_a_file_that_stands_alone() {
    let expected = [
        (
            "run",
            &[
                "round-ring.svg",
                "chain-and-forks.svg",
                "agreement.svg",
                "slots-by-round.svg",
                "propagation.svg",
                "propagation-by-round.svg",
                "missed-slots-by-round.svg",
            ][..],
        ),
        (
            "sweep",
            &[
                "distribution-of-missed-slots.svg",
                "mean-of-missed-slots.svg",
                "difference-of-missed-slots.svg",
                "runs-that-ended-well.svg",
            ],
        ),
        ("explain", &["what-happened-before.svg", "when-it-was-decided.svg"]),
    ];
    for (report, names) in expected {
        let out = tempfile::tempdir().expect("a folder for temporary files");
        let answer = drawn(report, out.path(), &[]);
        assert_eq!(files(&answer), names, "{report}: by their titles, in the order of the page");
        for figure in answer["figures"].as_array().expect("a list") {
            let name = figure["file"].as_str().expect("a name");
            let svg = fs::read_to_string(out.path().join(name)).expect("it was written");
            let elements = elements(&svg);
            let (root, attributes) = &elements[0];
            let attribute =
                |key: &str| attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
            assert_eq!((root.as_str(), attribute("xmlns")), ("svg", Some("http://www.w3.org/2000/svg")), "{name}");
            assert_eq!(attribute("width"), Some(figure["width"].to_string().as_str()), "{name}");
            assert_eq!(attribute("height"), Some(figure["height"].to_string().as_str()), "{name}");
            for needed in ["var(", "class=", "<script", "href", "@import", "<image", "NaN", "undefined", "Infinity"] {
                assert!(!svg.contains(needed), "{name}: {needed}");
            }
            let ids: BTreeSet<&str> =
                elements.iter().flat_map(|(_, all)| all).filter(|(key, _)| key == "id").map(|(_, id)| &**id).collect();
            for used in svg.split("url(#").skip(1).map(|rest| rest.split(')').next().expect("it has an end")) {
                assert!(ids.contains(used), "{name}: #{used} is in the file");
            }
            let marks = elements
                .iter()
                .filter(|(name, all)| name == "path" && all.iter().any(|(key, d)| key == "d" && d.len() > 8));
            assert!(marks.count() >= 2, "{name}: it draws something");
            for (_, attributes) in elements.iter().filter(|(name, _)| name == "text") {
                let style = attributes.iter().find(|(key, _)| key == "style").expect("a text has its type");
                assert!(style.1.contains("Arial, Helvetica"), "{name}: {}", style.1);
            }
        }
    }
}

#[test]
fn the_same_report_gives_the_same_bytes_beside_its_page_and_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let page = folder.path().join("why.html");
    fs::copy(reports().join("explain/report.html"), &page).expect("it is there");
    let again = || {
        let output = run(&["figures", &text_of(&page)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(again(), again(), "files of its own are written again");
    let elsewhere = folder.path().join("a/b");
    let answer = drawn("explain", &elsewhere, &["--theme", "light"]);
    for name in files(&answer) {
        let read = |folder: PathBuf| fs::read(folder.join(name)).expect("it was written");
        assert!(read(folder.path().join("figures")) == read(elsewhere.clone()), "{name}");
    }
}

#[test]
fn theme_width_and_metrics_say_what_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let read = |out: &str, name: &str| fs::read_to_string(folder.path().join(out).join(name)).expect("it was written");
    let plain = drawn("run", &folder.path().join("light"), &[]);
    let dark = drawn("run", &folder.path().join("dark"), &["--theme", "dark", "--width", "480"]);
    assert_eq!(files(&plain), files(&dark));
    for (light, dark) in [("#ffffff", "#181d25"), ("rgb(1, 98, 177)", "rgb(80, 162, 249)")] {
        assert!(read("light", "agreement.svg").contains(light) && !read("light", "agreement.svg").contains(dark));
        assert!(read("dark", "agreement.svg").contains(dark) && !read("dark", "agreement.svg").contains(light));
    }
    for figure in dark["figures"].as_array().expect("a list") {
        let expected = if figure["file"] == "round-ring.svg" { 544 } else { 480 };
        assert_eq!(figure["width"], expected, "{figure}");
    }
    let metrics = ["--metric", "agreement_mean", "--metric", "height"];
    let chosen = drawn("sweep", &folder.path().join("chosen"), &metrics);
    let expected = [
        "distribution-of-agreement-mean.svg",
        "mean-of-agreement-mean.svg",
        "difference-of-agreement-mean.svg",
        "runs-that-ended-well.svg",
        "distribution-of-height.svg",
        "mean-of-height.svg",
        "difference-of-height.svg",
    ];
    assert_eq!(files(&chosen), expected, "a figure that shows no metric comes once");
    assert_ne!(read("chosen", "mean-of-height.svg"), read("chosen", "mean-of-agreement-mean.svg"));
}

#[test]
fn a_list_names_the_files_and_writes_none() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let out = folder.path().join("none");
    let listed = drawn("sweep", &out, &["--list"]);
    assert!(!out.exists() && listed["folder"].is_null());
    let metrics: Vec<&str> = listed["metrics"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(metrics.contains(&"missed_slots") && metrics.contains(&"propagation_p50_ms"), "{metrics:?}");
    let output = run(&["figures", &text_of(&reports().join("sweep")), "--list"]);
    let printed = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("distribution-of-missed-slots.svg  614x"), "{printed}");
    assert_eq!(lines[4], format!("metrics: {}", metrics.join(", ")));
}

#[test]
fn a_report_that_is_none_is_named() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| text_of(&folder.path().join(name));
    let error = refused(&["figures", &path("missing")], 2);
    assert!(error.contains("missing: No such file"), "{error}");
    let error = refused(&["figures", &path("")], 2);
    assert!(error.contains("found no report.html, allowed is a folder that `run --out`"), "{error}");

    let page = fs::read_to_string(reports().join("run/report.html")).expect("it is there");
    let (head, rest) = page.split_once("type=\"application/json\">").expect("the page has its data");
    let (data, tail) = rest.split_once("</script>").expect("they have an end");
    let with = |data: &str| format!("{head}type=\"application/json\">{data}</script>{tail}");
    let version = env!("CARGO_PKG_VERSION");
    let other = data.replace(&format!("\"version\":\"{version}\""), "\"version\":\"0.0.9\"");
    assert_ne!(other, data);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let lacks = data.replacen("\"time\":", "\"times\":", 1);
    let cases: [(&str, String, &str); 13] = [
        ("empty", String::new(), "found no page of a report"),
        ("another page", "<!doctype html><title>x</title>".to_owned(), "found no page of a report"),
        ("cut before the data", head.to_owned(), "found no page of a report"),
        ("cut in the data", page[..head.len() + 500].to_owned(), "found no page of a report"),
        ("cut after the data", page[..page.len() - 20].to_owned(), "found other scripts or styles than this build"),
        (
            "another script",
            page.replace("class Ring", "class Rings"),
            "the file was changed, or another build wrote it",
        ),
        ("another style", page.replace(".tick {", ".tack {"), "found other scripts or styles"),
        ("another version", format!("{}<!-- -->", with(&other)), "found a page of dposlab 0.0.9, allowed is one of"),
        ("no JSON", with("{\"about\": }"), "found data that are no JSON (expected value at line 1 column 11)"),
        ("deep data", with(&deep), "found data that are no JSON (recursion limit exceeded"),
        ("no data", with("{}"), "its data cannot be drawn: "),
        ("nothing", with("null"), "its data cannot be drawn: "),
        ("a part less", with(&lacks), "its data cannot be drawn: "),
    ];
    for (what, text, expected) in cases {
        fs::write(folder.path().join("report.html"), text).expect("it can be written");
        let error = refused(&["figures", &path("")], 2);
        assert!(error.contains("report.html: ") && error.contains(expected), "{what}: {error}");
        assert!(!folder.path().join("figures").exists(), "{what}: nothing is written");
    }
    // The unchanged page is taken, also with other data of the same form.
    fs::write(folder.path().join("report.html"), with(&data.replace("one & ", "\\ud83d\\ude00\\u0001")))
        .expect("it can be written");
    assert!(run(&["figures", &path("")]).status.success());
    let error = refused(&["figures", &path(""), "--metric", "height"], 2);
    assert!(error.contains("--metric height: ") && error.contains("this page has none"), "{error}");
    let sweep = text_of(&reports().join("sweep"));
    let error = refused(&["figures", &sweep, "--list", "--metric", "hight"], 2);
    assert!(
        error.contains("--metric hight: ") && error.contains("allowed are ") && error.contains("missed_slots, "),
        "{error}"
    );
    fs::remove_file(folder.path().join("report.html")).expect("it is there");
    fs::create_dir(folder.path().join("report.html")).expect("it can be made");
    let error = refused(&["figures", &path("")], 2);
    assert!(error.contains("report.html: found a folder, allowed is a file"), "{error}");
}

/// Values of a page's data that no run leaves, each in the place of a number, a text or a list: an error or figures, no panic.
#[test]
fn hostile_data_end_in_an_error_or_in_whole_files() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (page, out) = (text_of(&folder.path().join("report.html")), folder.path().join("out"));
    let mut drawn = 0;
    for report in ["run", "explain"] {
        let text = fs::read_to_string(reports().join(report).join("report.html")).expect("it is there");
        let (head, rest) = text.split_once("type=\"application/json\">").expect("the page has its data");
        let (data, tail) = rest.split_once("</script>").expect("they have an end");
        let data: Value = serde_json::from_str(data).expect("it is JSON");
        for (place, value) in
            ["1e308", "-1", "\"]]>\\u0000\\u2028\\ud83d\\ude00\"", "[]", "null"].iter().cycle().enumerate().take(15)
        {
            let mut changed = data.clone();
            let value: Value = serde_json::from_str(value).expect("it is JSON");
            change(&mut changed, &mut (place * 71 + 3), &value);
            let changed = changed.to_string().replace('<', "\\u003c");
            fs::write(&page, format!("{head}type=\"application/json\">{changed}</script>{tail}"))
                .expect("it can be written");
            let output = run(&["figures", &page, "--out", &text_of(&out), "--json"]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => {
                    let answer: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
                    for name in files(&answer) {
                        elements(&fs::read_to_string(out.join(name)).expect("it was written"));
                        drawn += 1;
                    }
                }
                Some(2) => {
                    assert!(error.contains("its data cannot be drawn: ") && error.lines().count() == 1, "{error}")
                }
                code => panic!("{code:?}: {error}"),
            }
        }
    }
    assert!(drawn > 25, "many changes leave figures: {drawn}");
}

/// Puts a value in the place of the leaf with this number, counted in the order of the text.
fn change(data: &mut Value, left: &mut usize, value: &Value) {
    match data {
        Value::Array(all) if !all.is_empty() => all.iter_mut().for_each(|one| change(one, left, value)),
        Value::Object(all) if !all.is_empty() => all.values_mut().for_each(|one| change(one, left, value)),
        leaf => match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => {
                *leaf = value.clone();
                *left = usize::MAX;
            }
        },
    }
}

#[test]
fn a_file_of_the_user_is_never_written_over() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (out, report) = (folder.path().join("out"), text_of(&reports().join("run")));
    drawn("run", &out, &[]);
    let file = out.join("agreement.svg");
    let ours = fs::read_to_string(&file).expect("it was written");
    let other = folder.path().join("other.svg");
    let in_the_way = |what: &str| {
        let before = fs::read(&file).ok();
        let stamp = fs::metadata(out.join("round-ring.svg")).and_then(|found| found.modified()).expect("it is there");
        let error = refused(&["figures", &report, "--out", &text_of(&out), "--theme", "dark"], 2);
        assert!(error.contains("agreement.svg: found a file that `figures` has not written"), "{what}: {error}");
        assert_eq!(fs::read(&file).ok(), before, "{what}");
        let after = fs::metadata(out.join("round-ring.svg")).and_then(|found| found.modified()).expect("it is there");
        assert_eq!(stamp, after, "{what}: no other file is written either");
    };
    fs::write(&file, ours.replace("#ffffff", "#fffffe")).expect("it can be written");
    in_the_way("edited");
    fs::write(&file, "<svg/>").expect("it can be written");
    in_the_way("foreign");
    fs::write(&file, [0xff, 0xfe]).expect("it can be written");
    in_the_way("no text");
    fs::remove_file(&file).expect("it is there");
    fs::write(&other, &ours).expect("it can be written");
    symlink(&other, &file).expect("it can be made");
    in_the_way("a link");
    fs::remove_file(&file).expect("it is there");
    fs::create_dir(&file).expect("it can be made");
    in_the_way("a folder");
    fs::remove_dir(&file).expect("it is empty");
    drawn("run", &out, &[]);
    assert_eq!(fs::read_to_string(&file).expect("it was written"), ours, "what is its own is written again");
    let error = refused(&["figures", &report, "--out", &text_of(&other)], 2);
    assert!(error.contains("other.svg: "), "{error}");
}
