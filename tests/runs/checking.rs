//! The checker: a sound network has nothing wrong with it, what is found is found again, and what is made small is small.

use crate::support::{dposlab, interrupt, root};
use dposlab::{
    check::{
        Certificate, Minimal, Minimiser,
        known_causes::KnownCauses,
        liveness::{Liveness, liveness},
        search::{Networks, RUN_SEED, Search, play},
        swarm::{Frame, draw, is_whole},
        trial,
        watchers::OptionalWatchers,
    },
    scenario::Scenario,
    sim::SeedTree,
    statistics::{Interval, interval, rates::Count},
};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

fn rules(base: &str) -> toml::Table {
    toml::Table::from_iter([("base".to_owned(), base.into())])
}

#[test]
fn a_seed_draws_a_scenario_that_its_own_text_says_again() {
    for seed in 0..200 {
        let scenario = draw(&Frame { rules: rules("reference"), ..Frame::default() }, seed);
        let text = scenario.to_toml();
        let again = Scenario::parse(&text, "drawn.toml".as_ref()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, scenario, "seed {seed}");
    }
}

#[test]
fn a_network_in_which_nothing_goes_wrong_has_nothing_wrong_with_it() {
    let networks = Networks::default();
    let drawn = (0..40).map(|seed| (seed, draw(&Frame { rules: rules("corrected"), ..Frame::default() }, seed)));
    // A network that loses messages, or whose clocks drift, is not one in which nothing goes wrong.
    let whole: Vec<_> = drawn.filter(|(_, scenario)| is_whole(&scenario.network.model)).collect();
    assert!(whole.len() >= 12, "or the test looked at next to nothing: {}", whole.len());
    for (seed, mut scenario) in whole {
        scenario.faults.clear();
        scenario.actions.clear();
        let outcome = play(&scenario, &networks, None, false, &AtomicBool::new(false));
        assert_eq!(outcome.findings, [], "seed {seed}");
    }
}

/// Nothing is printed before the end, so whether it takes signals already is asked of the system: SIGTERM is the last one
/// that it asks for.
#[test]
#[cfg(target_os = "linux")]
fn a_search_that_is_interrupted_tells_what_it_has_seen() {
    const SIGTERM: u64 = 1 << (15 - 1);
    let arguments = ["check", "--delegates", "4", "--rounds", "1", "--runs", "1000000", "--json"];
    let folder = tempfile::tempdir().expect("a folder of our own");
    let quiet =
        dposlab().args(arguments).arg("--out").arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = quiet.expect("the binary was built for this test");
    let takes_it = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("it says which it takes");
        u64::from_str_radix(caught.trim(), 16).expect("bits") & SIGTERM > 0
    };
    while !takes_it() {
        thread::yield_now();
    }
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    let seen: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("--json prints one object");
    let runs = seen["runs"].as_u64().expect("a count");
    let found = match seen["found"].as_array().expect("a list").len() {
        0 => "nothing was found in those".to_owned(),
        count => format!("{count} things do not hold"),
    };
    assert!(runs < 1_000_000, "{told}");
    assert!(told.contains(&format!("interrupted: {runs} of 1000000 runs were played, and {found}")), "{told}");
}

#[test]
fn a_search_finds_the_same_on_one_thread_and_on_three() {
    let frame = Frame { rules: rules("reference"), ..Frame::default() };
    let search = |jobs| {
        let search = Search { frame: frame.clone(), runs: 24, seed: 5, part: None, jobs, guided: false };
        search.run(&Networks::default(), &AtomicBool::new(false), |_| {})
    };
    let (one, three) = (search(1), search(3));
    assert_eq!(one, three);
    assert!(one.session.sometimes.of("a fork") > 0 && one.session.sometimes.of("a missed slot") > 0);
    assert!(!one.found.is_empty(), "the reference has weaknesses");
}

#[test]
fn a_search_that_is_stopped_ends_within_a_slot() {
    let stopped = AtomicBool::new(true);
    let search = Search { frame: Frame::default(), runs: 5, seed: 1, part: None, jobs: 1, guided: false };
    let networks = Networks::default();
    assert_eq!(play(&search.scenario(1), &networks, None, false, &stopped).slots, 1);
    let stop = AtomicBool::new(false);
    let summary = search.run(&networks, &stop, |summary| stop.store(summary.runs() == 2, Ordering::Relaxed));
    assert_eq!(summary.runs(), 2);
    assert_eq!(search.run(&networks, &stopped, |_| {}).runs(), 0);
}

#[test]
#[ignore = "long: CI runs it"]
fn a_finding_is_made_small_and_its_file_shows_it() {
    let networks = Networks::default();
    let frame = Frame { rules: rules("reference"), ..Frame::default() };
    let search = Search { frame, runs: 60, seed: 1, part: None, jobs: 2, guided: false };
    let summary = search.run(&networks, &AtomicBool::new(false), |_| {});
    let found = summary.found.values().min_by_key(|found| found.seeds.first()).expect("the reference has weaknesses");
    let start = search.scenario(found.seeds.first().expect("a run showed it"));
    let stop = AtomicBool::new(false);
    let minimiser = Minimiser { networks: &networks, budget: 120, stop: &stop, base: None };
    let small = minimiser.minimise(&start, &found.finding, |_, _| {});
    assert!(small.shown, "its file shows it");
    assert_eq!(small.finding.signature(), found.finding.signature());
    let size = |scenario: &Scenario| scenario.faults.len() + scenario.actions.len();
    assert!(size(&small.scenario) <= size(&start) && small.scenario.network.nodes() <= start.network.nodes());
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("small.toml");
    fs::write(&file, small.to_toml()).expect("it can be written");
    let output = dposlab().args(["run", "--stage", "inline"]).arg(&file).output().expect("the binary was built");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    assert!(error.contains(found.finding.invariant), "{error}");
}

#[test]
fn each_shipped_finding_shows_what_it_says() {
    let files = findings();
    for file in &files {
        let (code, error) = played(file, &[]);
        assert_eq!(code, Some(1), "{}: {error}", file.display());
    }
    assert!(files.len() >= 8, "at least eight weaknesses of the reference are shown");
}

/// The run of each file proves the cause that the file is named for. The head of the file and its section of the page give the proof.
#[test]
fn each_shipped_finding_shows_its_certificate() {
    let networks = Networks::default();
    let document = root().join("docs/findings.md");
    let mut page = fs::read_to_string(&document).expect("findings have a document");
    for file in findings() {
        let mut scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        // An assertion on the last moment is found in place of the invariant, so the same is asked two rounds before.
        let ends = scenario.assertions.iter().any(|one| one.finally.is_some());
        scenario.assertions.retain(|one| one.finally.is_none());
        let asked = match ends {
            true => {
                let round_seconds = scenario.round_slots() * scenario.network.block_time_s;
                let from_seconds = f64::from((scenario.rounds - 2) * round_seconds);
                Some(Liveness { from_seconds, within_rounds: 1 })
            }
            false => liveness(&scenario),
        };
        let outcome = trial::play(
            &scenario,
            &networks.of(&scenario),
            SeedTree::new(RUN_SEED),
            asked,
            None,
            &OptionalWatchers::default(),
            &AtomicBool::new(false),
        );
        let name = broken(&file).0;
        let found = outcome.findings.iter().find(|finding| finding.invariant == name);
        let found = found.unwrap_or_else(|| panic!("{}: {:?}", file.display(), outcome.findings));
        let Certificate::Shown(proof) = &found.certificate else {
            panic!("{}: {:?}", file.display(), found.certificate);
        };
        let text = fs::read_to_string(&file).expect("scenarios are text");
        let body = &text[text.find("\nversion = ").expect("a scenario begins with its version") + 1..];
        let proof = format!("Certificate: {}.\n", proof.trim_end_matches('.'));
        let small = match ends {
            true => Some(Minimal { scenario, finding: found.clone(), runs: 1, cut_short: false, shown: true }),
            false => Minimal::of_file(&scenario, &found.signature(), &networks),
        };
        let head = small.unwrap_or_else(|| panic!("{}: it shows another finding", file.display())).head();
        let heading = heading(&name);
        let on_page = format!("{heading}\n{proof}");
        if env::var_os(REWRITE).is_some() {
            fs::write(&file, head + body).expect("the file can be written");
            let (before, after) = page.split_once(&heading).expect("the page has a section for it");
            let old = after.strip_prefix("\nCertificate: ").and_then(|rest| rest.split_once('\n'));
            page = format!("{before}{on_page}{}", old.map_or(after, |(_, rest)| rest));
        } else {
            assert!(text == format!("{head}{body}"), "{}: {REWRITE}=1 writes\n{head}", file.display());
            assert!(page.contains(&on_page), "{}: {REWRITE}=1 writes{on_page}", document.display());
        }
    }
    if env::var_os(REWRITE).is_some() {
        fs::write(&document, &page).expect("the document can be written");
    }
}

/// The heading of a finding's section, with the line before it.
fn heading(name: &str) -> String {
    format!("\n## {}{}\n", name[..1].to_uppercase(), &name[1..])
}

/// Set to write the table of the findings anew.
const REWRITE: &str = "REWRITE_FINDINGS";
/// Drawn runs that the shares are of.
const RUNS: u64 = 600;
/// Findings that so many runs need not show: their sections say how many did.
const RARE: [&str; 1] = ["the chain grows once all faults are over"];

#[test]
#[ignore = "long: CI runs it"]
fn the_table_of_findings_is_what_is_measured() {
    let document = root().join("docs/findings.md");
    let text = fs::read_to_string(&document).expect("findings have a document");
    let (head, rest) = text.split_once("| Finding |").expect("the document has a table");
    let (_, tail) = rest.split_once("\n\n").expect("the table ends");
    let search = |rules: &'static str| thread::spawn(move || runs_that_break(rules, RUNS));
    let [reference, corrected] = ["reference", "corrected"].map(search).map(|search| search.join().expect("it ends"));
    let mut rows: Vec<(u64, String)> = findings().iter().map(|file| row(file, &reference, &corrected)).collect();
    rows.sort_by(|(one, row), (other, next)| other.cmp(one).then(row.cmp(next)));
    let mut table = format!(
        "| Finding | Section | Reference, of {RUNS} | Corrected, of {RUNS} | The file, corrected |\n\
         |---|---|--:|--:|---|\n"
    );
    table.extend(rows.into_iter().map(|(_, row)| row));
    let wanted = format!("{head}{table}\n{tail}");
    if env::var_os(REWRITE).is_some() {
        fs::write(&document, &wanted).expect("the document can be written");
    } else {
        assert!(wanted == text, "{REWRITE}=1 writes the table anew, as\n{table}");
    }
    let shown: Vec<String> = findings().iter().map(|file| broken(file).0).collect();
    let unshipped: Vec<&String> = reference.keys().filter(|name| !shown.contains(name)).collect();
    assert!(unshipped.is_empty(), "found, but without a file: {unshipped:?}");
    for name in shown {
        let often = reference.contains_key(&name);
        assert!(often || RARE.contains(&name.as_str()), "no run of {RUNS} shows '{name}'");
        assert!(text.contains(&heading(&name)), "nothing is said of '{name}'");
    }
}

/// The page gives each known cause with the count that CI holds a search against.
#[test]
fn the_page_gives_the_counts_of_the_list() {
    let document = root().join("docs/findings.md");
    let text = fs::read_to_string(&document).expect("findings have a document");
    let list = fs::read_to_string(root().join("tests/data/known-causes.txt")).expect("it is committed");
    let known = KnownCauses::read(&list).expect("each line has a record");
    assert!(known.causes().count() > 10, "the reference has weaknesses");
    let rows = known.causes().map(|(signature, recorded)| {
        let Count { so, of } = recorded.expect("each line has a record");
        let Interval { low, high } = interval::of_share(so, of);
        let share = format!("{:.3} % to {:.3} %", 100.0 * low, 100.0 * high);
        (so, format!("| {signature} | {so} | {of} | {share} |\n"))
    });
    let mut rows: Vec<(u64, String)> = rows.collect();
    rows.sort_by(|(one, row), (other, next)| other.cmp(one).then(row.cmp(next)));
    let (head, _) = text.split_once("| Known cause |").expect("the document has a table of causes");
    let mut wanted = format!("{head}| Known cause | Runs | Of | Share |\n|---|--:|--:|--:|\n");
    wanted.extend(rows.into_iter().map(|(_, row)| row));
    if env::var_os(REWRITE).is_some() {
        fs::write(&document, &wanted).expect("the document can be written");
    } else {
        assert!(wanted == text, "{REWRITE}=1 writes the table anew, as\n{wanted}");
    }
}

/// Runs of a finding under the rules of the reference, and its row.
fn row(file: &Path, reference: &BTreeMap<String, u64>, corrected: &BTreeMap<String, u64>) -> (u64, String) {
    let (name, section) = broken(file);
    let arguments = ["run", "--stage", "inline", "--set", "rules.base=corrected"];
    let output = dposlab().args(arguments).arg(file).output().expect("the binary was built");
    // A run that the time limit ends has exit code 1, whether or not its assertion holds.
    let said = String::from_utf8(output.stdout).expect("it is text");
    let asserted: Vec<&str> = said.lines().filter(|line| line.starts_with("asserted: ")).collect();
    let [asserted] = asserted[..] else { panic!("{}: {said}", file.display()) };
    let held = if asserted.contains(": does not hold") { "breaks" } else { "holds" };
    assert!(held == "breaks" || asserted.contains(": holds"), "{}: {asserted}", file.display());
    let runs = |under: &BTreeMap<String, u64>| under.get(&name).copied().unwrap_or(0);
    let share = |runs: u64| {
        let Interval { low, high } = interval::of_share(runs, RUNS);
        format!("{runs} ({:.1} % to {:.1} %)", 100.0 * low, 100.0 * high)
    };
    let path = format!("findings/{}", file.file_name().expect("a file has a name").to_string_lossy());
    let (before, after) = (share(runs(reference)), share(runs(corrected)));
    (runs(reference), format!("| [{name}](../scenarios/{path}) | {section} | {before} | {after} | {held} |\n"))
}

/// The broken invariant that a file names, and where it breaks.
fn broken(file: &Path) -> (String, String) {
    let text = fs::read_to_string(file).expect("scenarios are text");
    let line = text.lines().next().and_then(|line| line.strip_prefix("# Broken: ")).expect("it begins so");
    let (name, source) = line.trim_end_matches('.').split_once(" (").expect("the source stands behind the name");
    (name.to_owned(), source.trim_end_matches(')').replace("consensus.md ", ""))
}

/// The number of drawn runs, of `runs` from seed 1, that break each invariant.
pub fn runs_that_break(rules: &str, runs: u64) -> BTreeMap<String, u64> {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let search = ["check", "--json", "--seed", "1", "--budget", "0", "--jobs", "1", "--rules", rules, "--runs"];
    let output = dposlab()
        .args(search)
        .arg(runs.to_string())
        .arg("--out")
        .arg(folder.path())
        .output()
        .expect("the binary was built");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(said["runs"], runs);
    let broken = said["broken"].as_object().expect("it is a table").iter();
    broken.map(|(name, runs)| (name.clone(), runs.as_u64().expect("it is a number"))).collect()
}

fn findings() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("scenarios/findings")).expect("findings are shipped");
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

/// The exit code of a scenario's run, and what it says of errors.
fn played(file: &Path, changes: &[&str]) -> (Option<i32>, String) {
    let command = dposlab().args(["run", "--stage", "inline"]).args(changes).arg(file).output();
    let output = command.expect("the binary was built");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
