//! The study of `examples/withholding` says what its runs say.

use crate::support::{root, run};
use serde_json::Value;
use std::{collections::BTreeMap, fs, thread};

const FOLDER: &str = "examples/withholding";
const ALONE: &str = r#"fault[0].delegates=["genesis_1"]"#;
const BOTH: &str = r#"fault[0].delegates=["genesis_1","genesis_2"]"#;

/// The measures that a run without a folder has, in the order of the table.
const MEASURES: [&str; 6] = ["second", "pair", "second_rate", "honest_rate", "pair_missed", "honest_missed"];

/// Plays a run of the study and returns its measures.
fn measured(seed: u64, sets: &[String], delegates: &str) -> [f64; 6] {
    let (file, seed) = (root().join(FOLDER).join("withholding.toml").display().to_string(), seed.to_string());
    let mut arguments = vec!["run", &file, "--seed", &seed, "--json", "--set", delegates];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set.as_str()]));
    let output = run(&arguments);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |name: &str, member: &str| {
        let delegates = answer["delegates"].as_array().expect("a list");
        let one = delegates.iter().find(|one| one["username"] == name).expect("it is there");
        one[member].as_f64().expect("a number")
    };
    let total = |member: &str| answer["totals"][member].as_f64().expect("a number");
    let (second, pair) = (of("genesis_2", "forged"), of("genesis_1", "forged") + of("genesis_2", "forged"));
    let missed = of("genesis_1", "missed") + of("genesis_2", "missed");
    let per_100_slots = 100.0 / total("slots");
    let honest = total("blocks") - pair;
    [second, pair, second * per_100_slots, honest * per_100_slots, missed, total("missed_slots") - missed]
}

/// Names, numbers of seeds and what is set, from the lines of `study.sh`.
fn protocols() -> Vec<(String, u64, Vec<String>)> {
    let script = fs::read_to_string(root().join(FOLDER).join("study.sh")).expect("it is there");
    let lines = script.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, seeds) = (words.next()?, words.next()?.strip_prefix("0..")?);
        let sets = words.filter(|word| *word != "--set").map(str::to_owned).collect();
        Some((name.to_owned(), seeds.parse().ok()?, sets))
    });
    lines.collect()
}

/// The rows of `gains.csv` by protocol and measure.
fn gains() -> BTreeMap<(String, String), Vec<String>> {
    let mut table = csv::Reader::from_path(root().join(FOLDER).join("gains.csv")).expect("it is there");
    let rows = table.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect::<Vec<_>>());
    rows.map(|row| ((row[0].clone(), row[1].clone()), row[2..].to_vec())).collect()
}

#[test]
#[ignore = "long"]
fn the_study_of_withholding_says_what_its_runs_say() {
    let (gains, protocols) = (gains(), protocols());
    assert_eq!(protocols.len(), 6, "study.sh plays six sets of rules");
    for (name, seeds, sets) in protocols {
        let arm = |delegates| (0..seeds).map(|seed| measured(seed, &sets, delegates)).collect::<Vec<_>>();
        let (both, alone) = thread::scope(|scope| {
            let alone = scope.spawn(|| arm(ALONE));
            (arm(BOTH), alone.join().expect("it plays"))
        });
        for (place, measure) in MEASURES.into_iter().enumerate() {
            let row = &gains[&(name.clone(), measure.to_owned())];
            let differences: Vec<f64> =
                both.iter().zip(&alone).map(|(both, alone)| both[place] - alone[place]).collect();
            let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / seeds as f64;
            let (difference, before) =
                (mean(&mut differences.iter().copied()), mean(&mut alone.iter().map(|alone| alone[place])));
            let signs = [1.0, -1.0].map(|sign| differences.iter().filter(|value| **value * sign > 0.0).count());
            let number = |column: usize| row[column].parse::<f64>().expect("a number");
            let is_near = |found: f64, column| (found - number(column)).abs() < 6e-5;
            assert!(is_near(difference, 1) && is_near(before, 6), "{name} {measure}: {difference} {before} {row:?}");
            assert_eq!(signs.map(|count| count.to_string()), row[4..6], "{name} {measure}");
        }
    }
}

/// The first table of the page has the numbers of `gains.csv`.
#[test]
fn the_page_of_the_study_has_the_numbers_of_its_table() {
    let page = fs::read_to_string(root().join(FOLDER).join("README.md")).expect("it is there");
    let gains = gains();
    for (name, _, _) in protocols() {
        let row = &gains[&(name.clone(), "second".to_owned())];
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        let (difference, interval) = match row[2].is_empty() {
            true => ("0".to_owned(), "all equal".to_owned()),
            false => {
                let sign = if number(1) > 0.0 { "+" } else { "" };
                (format!("{sign}{:.2}", number(1)), format!("{:.2} to {:.2}", number(2), number(3)))
            }
        };
        let line = format!(
            "| `{name}` | {difference} | {interval} | {}, {} of {} | {:.2} |",
            row[4],
            row[5],
            row[0],
            number(6)
        );
        assert!(page.contains(&line), "README.md of the study lacks '{line}'");
    }
}
