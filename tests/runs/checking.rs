//! The checker: a sound network has nothing wrong with it, what is found is found again, and what is made small is small.

use crate::support::{dposlab, root};
use dposlab::{
    check::{
        minimise,
        search::{Networks, Search, play},
        swarm::{Frame, draw},
    },
    scenario::Scenario,
};
use std::sync::atomic::AtomicBool;

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
    for seed in 0..40 {
        let mut scenario = draw(&Frame { rules: rules("corrected"), ..Frame::default() }, seed);
        scenario.faults.clear();
        scenario.actions.clear();
        let outcome = play(&scenario, &networks, None);
        assert_eq!(outcome.findings, [], "seed {seed}");
    }
}

#[test]
fn a_search_finds_the_same_on_one_thread_and_on_three() {
    let frame = Frame { rules: rules("reference"), ..Frame::default() };
    let search = |jobs| {
        let search = Search { frame: frame.clone(), runs: 24, seed: 5, jobs };
        search.run(&Networks::default(), &AtomicBool::new(false), |_| {})
    };
    let (one, three) = (search(1), search(3));
    assert_eq!(one, three);
    assert!(one.sometimes.of("a fork") > 0 && one.sometimes.of("a missed slot") > 0);
    assert!(!one.found.is_empty(), "the reference has weaknesses");
}

#[test]
fn a_finding_is_made_small_and_its_file_shows_it() {
    let networks = Networks::default();
    let frame = Frame { rules: rules("reference"), ..Frame::default() };
    let search = Search { frame, runs: 60, seed: 1, jobs: 2 };
    let summary = search.run(&networks, &AtomicBool::new(false), |_| {});
    let found = summary.found.values().min_by_key(|found| found.index).expect("the reference has weaknesses");
    let start = search.scenario(found.index);
    let small = minimise(&start, found.finding.invariant, &networks, 120, |_, _| {}).expect("it was found there");
    let size = |scenario: &Scenario| scenario.faults.len() + scenario.actions.len();
    assert!(size(&small.scenario) <= size(&start) && small.scenario.network.nodes() <= start.network.nodes());
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join(small.file_name());
    std::fs::write(&file, small.to_toml()).expect("it can be written");
    let output = dposlab().args(["run", "--stage", "inline"]).arg(&file).output().expect("the binary was built");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    let named = error.contains(found.finding.invariant) || error.contains("converged") || error.contains("height");
    assert!(named, "{error}");
}

#[test]
fn each_shipped_finding_shows_what_it_says() {
    let folder = root().join("scenarios/findings");
    let mut shown = 0;
    for entry in std::fs::read_dir(folder).expect("findings are shipped") {
        let file = entry.expect("it can be listed").path();
        let output = dposlab().args(["run", "--stage", "inline"]).arg(&file).output().expect("the binary was built");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {error}", file.display());
        shown += 1;
    }
    assert!(shown >= 8, "at least eight weaknesses of the reference are shown");
}
