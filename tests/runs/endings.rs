//! Nodes that are down count in no figure, and a run that ends before its last round says how.

use crate::support::{run, scenario as shipped};
use dposlab::{
    check,
    protocol::Height,
    report::{Metrics, metrics::Figures},
    scenario::{Ended, Override, Ruling, Scenario, StageKind, Verdict, assertion::Metric},
    sim::{Observer, SeedTree, world::HaltCause},
};
use serde_json::Value;
use std::{fs, path::Path};

struct Played {
    figures: Figures,
    verdicts: Vec<Verdict>,
    ended: Ended,
    /// As the judge has it when the run has ended.
    height: Option<f64>,
}

fn play(scenario: &Scenario, seed: u64) -> Played {
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let metrics = Metrics::new(&plan);
    let judge = check::judge(scenario, &plan).expect("no invariant is misspelt");
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(metrics.clone()), Box::new(judge.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    let verdicts = judge.verdicts(outcome.end, outcome.ended);
    Played {
        figures: metrics.finish(outcome.end),
        verdicts,
        ended: outcome.ended,
        height: judge.metric(Metric::Height),
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\n{text}"), Path::new("ending")).expect("the test writes a scenario")
}

fn rulings(played: &Played) -> Vec<Ruling> {
    played.verdicts.iter().map(|verdict| verdict.ruling).collect()
}

/// Two thirds of the nodes are down for good; the others go on forging, and the figures are theirs.
#[test]
fn the_live_third_of_a_network_is_what_the_figures_tell_of() {
    let crash = "rounds = 3\n[[fault]]\nkind = \"crash\"\nnodes = { share = 0.67 }\nfrom = { round = 2 }\n";
    let asserted = "[[assert]]\nalways = \"agreement >= 0.9\"\n[[assert]]\nfinally = \"down == 34\"\n";
    let played = play(&scenario(&format!("{crash}{asserted}")), 1);
    let total = &played.figures.total;
    assert_eq!((played.ended, total.height), (Ended::Complete, 153));
    assert_eq!(played.height, Some(153.0));
    assert!(total.forged >= 152 && total.blocks == 152, "{total:?}");
    assert_eq!((total.down_max, total.down_end), (34, 34));
    assert!(total.agreement_min >= Some(0.9) && total.agreement_end == Some(1.0), "{total:?}");
    assert_eq!(rulings(&played), [Ruling::Holds, Ruling::Holds], "{:?}", played.verdicts);
    // Those that are down are behind, and do not count.
    let last = played.figures.time.last().expect("a row a slot");
    assert_eq!((last.height_least, last.height_greatest, last.down_max), (Some(153), Some(153), 34));
    // All but the block that was under way when they crashed get to everybody.
    assert_eq!(total.propagation_all_ms.count, u64::from(total.blocks) - 1);
}

#[test]
fn a_network_without_a_live_node_has_no_figures_and_is_proved_to_have_halted() {
    let text = "rounds = 9\n[network]\ndelegates = 7\n[[fault]]\nkind = \"crash\"\nnodes = { share = 1.0 }\n\
                from = { seconds = 100 }\nuntil = { height = 60 }\n\
                [[assert]]\nfinally = \"agreement >= 0\"\n[[assert]]\neventually = \"height >= 20\"\n\
                [[assert]]\nalways = \"agreement >= 0.9\"\n[[assert]]\nfinally = \"down == 7\"\n";
    let played = play(&scenario(text), 1);
    let Ended::Halted(halt) = played.ended else { panic!("{:?}", played.ended) };
    assert_eq!(halt.cause, HaltCause::NoNodeLive);
    assert_eq!(halt.second.since(halt.first).as_secs(), 56, "a round's worth of slots");
    let total = &played.figures.total;
    assert_eq!((total.agreement_end, total.down_end, total.down_max), (None, 7, 7));
    assert!(total.agreement_min >= Some(0.9) && total.pool_mean == Some(0.0), "{total:?}");
    let last = played.figures.time.last().expect("a row a slot");
    assert_eq!((last.height_least, last.agreement_min, last.pool_max, last.branches_max), (None, None, None, 0));
    // Nothing will ever change, so nothing is undecided.
    assert_eq!(
        rulings(&played),
        [Ruling::Broken, Ruling::Broken, Ruling::Holds, Ruling::Holds],
        "{:?}",
        played.verdicts
    );
}

#[test]
fn relays_without_delegates_are_proved_to_get_no_further_block_but_may_still_move() {
    let text = |until: &str| {
        format!(
            "rounds = 9\n[network]\ndelegates = 7\nrelays = 3\n[[fault]]\nkind = \"crash\"\nnodes = {{ from = 0, to = 6 }}\n\
             from = {{ seconds = 100 }}\n{until}\n[[assert]]\nfinally = \"down == 7\"\n"
        )
    };
    let played = play(&scenario(&text("")), 1);
    let Ended::Halted(halt) = played.ended else { panic!("{:?}", played.ended) };
    assert_eq!((halt.cause, rulings(&played)), (HaltCause::NoDelegateForges, vec![Ruling::Undecided]));
    // A fault that may still end forbids the proof, and so does one that waits for an event.
    for until in ["until = { seconds = 100000 }", "until = { event = { kind = \"peer-removed\", count = 1000000 } }"] {
        let played = play(&scenario(&text(until)), 1);
        assert_eq!((played.ended, rulings(&played)), (Ended::Stalled, vec![Ruling::Undecided]), "{until}");
    }
}

#[test]
fn a_network_with_too_few_live_nodes_is_proved_to_have_halted() {
    let text = |rest: &str| {
        format!(
            "rounds = 9\n{rest}\n[[fault]]\nkind = \"crash\"\nnodes = {{ from = 0, to = 5 }}\nfrom = {{ seconds = 100 }}\n"
        )
    };
    let network = "[network]\ndelegates = 11\n";
    // Five are left, so each reaches four, and five are needed.
    let halted = play(&scenario(&text(network)), 1).ended.halt().expect("it is proved");
    assert_eq!(halted.cause, HaltCause::TooFewLive);
    // Where four do, they go on.
    let enough = format!("{network}[rules]\nminimum_network_reach = 4\n");
    assert_eq!(play(&scenario(&text(&enough)), 1).ended, Ended::Complete);
    // A clock that runs wrong, a slow node, or an answer on its way from one that has gone down: no proof.
    let clocks = "[network]\ndelegates = 11\nclocks = { drift_ppm = 5 }\n";
    let slow = format!("{network}[[fault]]\nkind = \"slow\"\nstep_ms = 1\nnodes = [9]\n");
    let late = format!(
        "{network}[[fault]]\nkind = \"delay\"\nby_ms = 4000000\nsenders = [2]\nfrom = {{ seconds = 60 }}\nuntil = {{ after = 30 }}\n"
    );
    for rest in [clocks, &slow, &late] {
        assert_eq!(play(&scenario(&text(rest)), 1).ended, Ended::Stalled, "{rest}");
    }
}

#[test]
fn delegates_that_are_switched_off_for_good_never_forge_again() {
    let text = |rest: &str| {
        format!(
            "rounds = 9\n[network]\ndelegates = 7\nrelays = 3\n[[fault]]\nkind = \"offline\"\n\
             delegates = {{ from = 0, to = 6 }}\nfrom = {{ seconds = 100 }}\n{rest}"
        )
    };
    let halted = play(&scenario(&text("")), 1).ended.halt().expect("it is proved");
    assert_eq!(halted.cause, HaltCause::NoDelegateForges);
    // One that forges out of its turn may end it at any time, and nobody says when.
    let turn = "[[fault]]\nkind = \"forge-out-of-turn\"\ndelegates = [1]\nevery = 1000000\n";
    assert_eq!(play(&scenario(&text(turn)), 1).ended, Ended::Stalled);
}

/// Nobody forges, but nodes are live and may draw whom they ask: that is no proof.
#[test]
fn a_quiet_network_whose_delegates_could_forge_is_censored_and_not_halted() {
    let text = |rest: &str| {
        format!(
            "rounds = 9\n{rest}[network]\ndelegates = 9\n[[fault]]\nkind = \"drop\"\nmessages = [\"block\", \"blocks\"]\n\
             from = {{ seconds = 100 }}\n[[fault]]\nkind = \"isolate\"\nnodes = {{ share = 1.0 }}\nfrom = {{ seconds = 100 }}\n\
             [[assert]]\nalways = \"height >= 1\"\n[[assert]]\nsometimes = \"height >= 80\"\n[[assert]]\nfinally = \"height < 80\"\n\
             [[assert]]\neventually = \"height >= 60\"\nwithin_rounds = 2\n"
        )
    };
    let open = [Ruling::Holds, Ruling::Undecided, Ruling::Undecided, Ruling::Broken];
    let played = play(&scenario(&text("")), 1);
    assert_eq!((played.ended, rulings(&played).as_slice()), (Ended::Stalled, &open[..]), "{:?}", played.verdicts);
    let played = play(&scenario(&text("stall = \"off\"\ntime_limit_seconds = 3000\n")), 1);
    assert_eq!((played.ended, rulings(&played).as_slice()), (Ended::Time, &open[..]), "{:?}", played.verdicts);
    assert!((3_000.0..3_008.0).contains(&played.figures.total.seconds), "{}", played.figures.total.seconds);
}

/// One number for one thing: the report's and the assertion's.
#[test]
fn the_report_and_the_assertions_mean_the_same_by_agreement() {
    let mut split = shipped("boundary-fork");
    let least = play(&split, 1).figures.total.agreement_min.expect("nodes are live");
    assert!(least < 0.7, "{least}");
    for (claim, ruling) in
        [(format!("agreement >= {least}"), Ruling::Holds), (format!("agreement > {least}"), Ruling::Broken)]
    {
        let set: Override = format!("assert[0]={{ always = \"{claim}\" }}").parse().expect("well formed");
        split = Scenario::load_with(&crate::support::root().join("scenarios/boundary-fork.toml"), &[set])
            .expect("it is a scenario");
        let played = play(&split, 1);
        assert_eq!((played.verdicts[0].ruling, played.figures.total.agreement_min), (ruling, Some(least)), "{claim}");
    }
}

/// With the stall rule on, most of these runs were given up before chance brought the halves together.
#[test]
fn an_even_partition_heals_where_the_run_is_not_given_up() {
    let text = "rounds = 10\ncrypto = \"modelled\"\n[rules]\nnode.retry_dropped_peers = true\n[network]\ndelegates = 50\ngossip = \"reference\"\n[[fault]]\nkind = \"partition\"\n\
                share = { share = 0.5 }\nfrom = { seconds = 200 }\nuntil = { after = 1600 }\n\
                [[assert]]\neventually = \"converged\"\nafter_fault = 0\n";
    let mut longest: f64 = 0.0;
    for seed in 1..=4 {
        let played = play(&scenario(text), seed);
        assert_eq!((played.ended, rulings(&played)), (Ended::Complete, vec![Ruling::Holds]), "seed {seed}");
        let heal = &played.figures.heals[0];
        assert_eq!(heal.converged_seconds, Some(heal.observed_seconds), "seed {seed}");
        longest = longest.max(heal.observed_seconds);
    }
    // Longer than the four rounds' worth of slots after which it would have been given up.
    assert!(longest > 1_600.0, "{longest}");
}

#[test]
fn a_run_that_is_censored_says_so_everywhere() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path in UTF-8").to_owned();
    let text = "version = 1\nrounds = 10\nstall = { rounds = 2 }\n[rules]\nnode.retry_dropped_peers = true\n[network]\ndelegates = 12\ngossip = \"reference\"\n\
                [[fault]]\nkind = \"partition\"\nshare = { share = 0.5 }\nfrom = { seconds = 100 }\nuntil = { after = 300 }\n\
                [[assert]]\nfinally = \"height >= 120\"\n[[assert]]\nalways = \"height >= 1\"\n";
    fs::write(path("s.toml"), text).expect("it can be written");
    let json = |file: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(path(file)).expect("it is there")).expect("JSON")
    };
    let seeds: Vec<u64> = (0..12)
        .filter(|seed| play(&Scenario::load(Path::new(&path("s.toml"))).expect("valid"), *seed).ended.is_censored())
        .collect();
    let seed = *seeds.first().expect("some run is given up");

    // The run: printed, in the summary and on the page, with exit code 1.
    let output = run(&["run", &path("s.toml"), "--seed", &seed.to_string(), "--out", &path("one")]);
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(told.contains("ended:   censored: the stall rule ended it at height"), "{told}");
    assert!(told.contains("asserted: finally height >= 120: is undecided"), "{told}");
    assert!(told.contains("asserted: always height >= 1: holds"), "{told}");
    assert!(told.contains("before all live nodes stood on one block: censored"), "{told}");
    assert!(error.contains("the run is censored: the stall rule"), "{error}");
    let summary = json("one/summary.json");
    assert_eq!(
        (&summary["ended"], &summary["censored"], &summary["halt"]),
        (&"stalled".into(), &true.into(), &Value::Null)
    );
    assert_eq!((&summary["assertions"][0]["holds"], &summary["assertions"][1]["holds"]), (&Value::Null, &true.into()));
    let heal = &summary["heals"][0];
    assert_eq!(heal["converged_seconds"], Value::Null);
    assert!(heal["observed_seconds"].as_f64() > Some(0.0), "{heal}");
    assert_eq!(summary["totals"]["converged_seconds_max"], Value::Null);
    assert_eq!(summary["totals"]["observed_seconds_max"], heal["observed_seconds"]);
    let page = fs::read_to_string(path("one/report.html")).expect("it is there");
    assert!(page.contains("\"ended\":\"stalled\"") && page.contains("This run is censored"));

    // The sweep: no failure, counted apart, and times are right-censored.
    let output = run(&["sweep", &path("s.toml"), "--seeds", "0..12", "--out", &path("many")]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains(&format!("12 runs, 0 failed, {} censored", seeds.len())), "{told}");
    assert!(told.contains("time to converge: median") && told.contains("Kaplan-Meier"), "{told}");
    let summary = json("many/summary.json");
    let cell = &summary["cells"][0];
    let count = |value: &Value| value.as_u64().expect("a count") as usize;
    assert_eq!((count(&summary["censored"]), count(&summary["by_status"]["censored"])), (seeds.len(), seeds.len()));
    assert_eq!(count(&cell["assertions"][0]["undecided"]), seeds.len());
    assert_eq!(count(&cell["assertions"][0]["holds"]["of"]), 12 - seeds.len());
    assert_eq!(count(&cell["ok"]["of"]), 12 - seeds.len());
    let times = &cell["converged_seconds"];
    assert_eq!(count(&times["runs"]), 12, "{times}");
    assert!(count(&times["censored"]) >= 1, "{times}");
    assert_eq!(cell["figures"]["converged_seconds_max"], Value::Null);
    let rows = fs::read_to_string(path("many/runs.csv")).expect("it is there");
    let censored = rows.lines().filter(|row| row.contains(",censored,stalled,,finally height >= 120,")).count();
    assert_eq!(censored, seeds.len(), "{rows}");
    assert!(fs::read_to_string(path("many/report.html")).expect("it is there").contains("\"by_status\":{\"censored\""));
}

#[test]
fn a_pool_that_a_restart_has_emptied_is_empty_in_the_figures() {
    let fullest = |name: &str| {
        let figures = play(&shipped(name), 1).figures;
        figures.time.iter().filter_map(|row| row.pool_max).max()
    };
    assert_eq!((fullest("restart"), fullest("restart-empty-pool")), (Some(10), Some(0)));
}

/// An assertion is judged from its moment on. What is asserted of a time that never came does not hold, be it `always` or
/// `eventually`, and where the run was ended before its end it is undecided.
#[test]
fn what_is_asserted_from_a_moment_on_waits_for_that_moment() {
    let come = [
        "after = { seconds = 40 }",
        "after = { height = 3 }",
        "after = { event = { kind = \"block-applied\", count = 5 } }",
        "after_fault = 0",
    ];
    let never = ["after = { seconds = 1000000 }", "after = { event = { kind = \"pool-evicted\" } }"];
    let too_high = ["after = { height = 600 }", "after = { round = 80 }"];
    let delay = |until: &str| {
        format!("[[fault]]\nkind = \"delay\"\nby_ms = 1\nsenders = [2]\nfrom = {{ seconds = 20 }}\nuntil = {until}\n")
    };
    let endless = delay("{ event = { kind = \"peer-removed\", count = 1000000 } }");
    let crash = "[[fault]]\nkind = \"crash\"\nnodes = { share = 1.0 }\nfrom = { seconds = 100 }\n".to_owned();
    // A run that comes to its end, one that is ended, and one that is proved to go nowhere.
    let cases = [
        ("rounds = 3\n", &endless, [&never[..], &["after_fault = 1"]].concat(), Ruling::Broken),
        (
            "rounds = 90\nstall = \"off\"\ntime_limit_seconds = 200\n",
            &endless,
            [&never[..], &too_high, &["after_fault = 1"]].concat(),
            Ruling::Undecided,
        ),
        ("rounds = 90\n", &crash, [&never[..], &too_high].concat(), Ruling::Broken),
    ];
    let claims =
        ["always = \"height >= 2\"", "eventually = \"height >= 2\"", "eventually = \"height >= 2\"\nwithin_rounds = 1"];
    for (head, fault, never, ruling) in cases {
        let moments =
            come.iter().map(|moment| (moment, Ruling::Holds)).chain(never.iter().map(|moment| (moment, ruling)));
        let (mut text, mut wanted) = (String::new(), Vec::new());
        for (claim, (moment, ruling)) in moments.flat_map(|moment| claims.map(|claim| (claim, moment))) {
            text += &format!("[[assert]]\n{claim}\n{moment}\n");
            wanted.push(ruling);
        }
        let faults = delay("{ after = 10 }") + fault;
        let played = play(&scenario(&format!("{head}[network]\ndelegates = 7\n{faults}{text}")), 1);
        assert_eq!(rulings(&played), wanted, "{:?}: {:?}", played.ended, played.verdicts);
    }
}
