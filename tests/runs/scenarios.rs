//! The shipped scenarios: each says what it shows, its assertions hold, nobody waits for nothing, and the index tells what was
//! measured.

use crate::support::{Onlooker, root, scenarios};
use dposlab::{
    check,
    protocol::Height,
    report::Rounds,
    scenario::{Ended, Judge, Scenario, StageKind, assertion::Metric},
    sim::{FaultKind, Observer, SeedTree},
};
use std::{collections::BTreeSet, env, fs, path::Path};

/// The seed the index was made with.
const SEED: u64 = 1;
/// Set to write the index anew.
const REWRITE: &str = "REWRITE_INDEX";

#[test]
fn every_assertion_holds_and_the_index_tells_what_was_measured() {
    let index = root().join("scenarios/README.md");
    let text = fs::read_to_string(&index).expect("scenarios have an index");
    let (head, _) = text.split_once("| Scenario |").expect("the index has a table");
    let mut table =
        "| Scenario | What happens | Height | Missed | Longest gap | Refused | Rollbacks | Deepest | Transactions |\n\
                     |---|---|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    let mut broken = Vec::new();
    for file in scenarios() {
        let (row, wrong) = measured(&file);
        table.push_str(&row);
        broken.extend(wrong);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let wanted = format!("{head}{table}");
    if env::var_os(REWRITE).is_some() {
        fs::write(&index, &wanted).expect("the index can be written");
    }
    let found = fs::read_to_string(&index).expect("the index was read before");
    for (wanted, found) in wanted.lines().zip(found.lines()) {
        assert_eq!(wanted, found, "{REWRITE}=1 writes the index anew");
    }
    assert_eq!(wanted, found, "{REWRITE}=1 writes the index anew");
}

/// The outcome of a scenario.
struct Played {
    judge: Judge,
    /// The assertions that do not hold.
    broken: Vec<String>,
}

fn played(file: &Path, scenario: &Scenario) -> Played {
    let seeds = SeedTree::new(SEED);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let judge = check::judge(scenario, &plan).expect("shipped scenarios name invariants that there are");
    let rounds = Rounds::new(&plan);
    let onlooker = Onlooker::default();
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(rounds.clone()), Box::new(judge.clone()), Box::new(onlooker.clone())];
    let outcome = scenario.play(&plan, StageKind::Inline, observers, |_: Height| {}).expect("no actor dies");
    let name = name(file);
    let broken = judge.verdicts(outcome.end, outcome.ended).into_iter().filter(|verdict| !verdict.holds());
    let mut broken: Vec<String> = broken.map(|verdict| format!("{name}: {verdict}")).collect();
    broken.extend(onlooker.stuck().into_iter().map(|stuck| format!("{name}: {stuck}")));
    if outcome.ended != Ended::Complete {
        broken.push(format!("{name}: {}", outcome.ended.in_words(rounds.height(), scenario.last_height())));
    }
    Played { judge, broken }
}

fn name(file: &Path) -> &str {
    file.file_stem().and_then(|name| name.to_str()).expect("scenarios have names")
}

/// The row of a scenario, and the assertions that do not hold.
fn measured(file: &Path) -> (String, Vec<String>) {
    let scenario = Scenario::load(file).expect("shipped scenarios are valid");
    let Played { judge, broken } = played(file, &scenario);
    let (name, number) = (name(file), |metric| judge.metric(metric).expect("some node is live") as u64);
    let row = format!(
        "| [{name}]({name}.toml) | {} | {} | {} | {} s | {} | {} | {} | {} |\n",
        scenario.description,
        number(Metric::Height),
        number(Metric::Missed),
        number(Metric::LongestGap),
        number(Metric::BlocksRefused),
        number(Metric::Rollbacks),
        number(Metric::RollbackDepth),
        number(Metric::Transactions),
    );
    (row, broken)
}

#[test]
fn every_scenario_begins_with_what_it_shows_and_asserts_something() {
    let mut count = 0;
    for file in scenarios() {
        let text = fs::read_to_string(&file).expect("scenarios are text");
        assert!(text.starts_with("# ") && text.contains("\n# Shows: "), "{}", file.display());
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        assert!(!scenario.description.is_empty() && !scenario.assertions.is_empty(), "{}", file.display());
        count += 1;
    }
    assert!(count >= 20, "{count} scenarios");
}

#[test]
fn every_kind_of_fault_is_shown_by_a_scenario() {
    let mut kinds = BTreeSet::new();
    for file in scenarios() {
        let scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        kinds.extend(scenario.faults.iter().map(|fault| fault.kind.name()));
    }
    let unseen: Vec<&str> = FaultKind::names().into_iter().filter(|name| !kinds.contains(name)).collect();
    assert!(unseen.is_empty(), "faults no scenario shows: {unseen:?}");
}

/// Or it would show nothing of them.
#[test]
fn no_scenario_with_faults_holds_without_them() {
    let mut idle = Vec::new();
    for file in scenarios() {
        let mut scenario = Scenario::load(&file).expect("shipped scenarios are valid");
        if scenario.faults.is_empty() {
            continue;
        }
        scenario.faults.clear();
        // Rounds counted from the end of a fault are counted from the start.
        scenario.assertions.iter_mut().for_each(|assertion| assertion.after_fault = None);
        if played(&file, &scenario).broken.is_empty() {
            idle.push(file);
        }
    }
    assert!(idle.is_empty(), "they hold without their faults: {idle:?}");
}
