//! Reading a table as a scenario, and the search for the wrong key if that fails.
//!
//! The message of a reader does not name the key. So the search removes one key or entry after the other, from the top of the table
//! down, and follows the one whose removal changes the message.

use crate::scenario::{
    Scenario,
    path::PathStep,
    schema::{keys_beside, list_for_a_table},
};
use toml::{Table, Value};

/// The largest number of keys of a table or entries of a list that the search tries one by one. If there are more, it tries halves
/// first.
const TRIED_EACH: usize = 32;

/// Reads the scenario in a table. The error is the path of the mistake and the message.
pub(crate) fn deserialize(table: &Table) -> Result<Scenario, (Vec<PathStep>, String)> {
    // The derived readers would accept a list as a table, by the order of its members.
    if let Some(path) = list_for_a_table(&table.clone().into()) {
        return Err((path, "found a list, allowed is a table".to_owned()));
    }
    let error = match attempt(table) {
        Ok(scenario) => return Ok(scenario),
        Err(message) => message,
    };
    let path = culprit(table, &error);
    let error = with_known_keys(table, &path, error);
    Err((path, error))
}

/// Adds the known keys to a message about an unknown key. The derived readers name them for some tables only.
fn with_known_keys(table: &Table, path: &[PathStep], message: String) -> String {
    let Some((unknown, _)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) else {
        return message;
    };
    let known: Vec<String> = keys_beside(&table.clone().into(), path).iter().map(|key| format!("`{key}`")).collect();
    match known.is_empty() {
        true => message,
        false => format!("unknown field `{unknown}`, expected one of {}", known.join(", ")),
    }
}

fn attempt(table: &Table) -> Result<Scenario, String> {
    Value::Table(table.clone()).try_into().map_err(|error: toml::de::Error| error.message().trim().replace('\n', " "))
}

/// The path of the key that a message is about: without the key, the message changes. A key whose removal makes the table valid is
/// preferred. A `kind` comes last, because the other keys have no meaning without it.
fn culprit(table: &Table, message: &str) -> Vec<PathStep> {
    let whole = Value::Table(table.clone());
    let mut path = Vec::new();
    loop {
        let steps = narrowed(&whole, &path, message);
        let found = steps.into_iter().filter_map(|step| {
            let rank = rank_without(&whole, &path, std::slice::from_ref(&step), message)?;
            Some((if rank == 1 && step == PathStep::Key("kind".to_owned()) { 2 } else { rank }, step))
        });
        match found.min_by_key(|(rank, _)| *rank) {
            Some((_, step)) => path.push(step),
            None => return path,
        }
    }
}

/// The next steps of a path among which the culprit is. Many steps are halved again and again: the culprit is in the half without
/// which the message changes. Each try reads the whole table.
fn narrowed(whole: &Value, path: &[PathStep], message: &str) -> Vec<PathStep> {
    let mut steps = steps(at(&mut whole.clone(), path));
    while steps.len() > TRIED_EACH {
        let second = steps.split_off(steps.len() / 2);
        if rank_without(whole, path, &steps, message).is_none() {
            steps = second;
        }
    }
    steps
}

/// Reads the table without some of the next steps of a path. Returns 0 if it is valid then, 1 if the message changes, and `None` if
/// the message stays.
fn rank_without(whole: &Value, path: &[PathStep], steps: &[PathStep], message: &str) -> Option<u8> {
    let mut without = whole.clone();
    let container = at(&mut without, path);
    // Removes the last one first, because later entries of a list move up.
    steps.iter().rev().for_each(|step| remove(container, step));
    let Value::Table(without) = without else { return None };
    match attempt(&without) {
        Ok(_) => Some(0),
        // The same field is still missing, or another one is missing now.
        Err(_) if message.starts_with("missing field") => None,
        Err(other) if other == message => None,
        Err(_) => Some(1),
    }
}

fn steps(value: &Value) -> Vec<PathStep> {
    match value {
        Value::Table(table) => table.keys().cloned().map(PathStep::Key).collect(),
        Value::Array(list) => (0..list.len()).map(PathStep::Index).collect(),
        _ => Vec::new(),
    }
}

fn at<'a>(value: &'a mut Value, path: &[PathStep]) -> &'a mut Value {
    path.iter().fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key.as_str()).expect("the path was followed before"),
        PathStep::Index(index) => value.get_mut(*index).expect("the path was followed before"),
        PathStep::Next => value,
    })
}

fn remove(value: &mut Value, step: &PathStep) {
    match (value, step) {
        (Value::Table(table), PathStep::Key(key)) => drop(table.remove(key)),
        (Value::Array(list), PathStep::Index(index)) => drop(list.remove(*index)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use std::path::Path;

    fn read(text: &str) -> Result<Scenario, String> {
        Scenario::parse(text, Path::new("s.toml")).map_err(|error| error.to_string())
    }

    /// The derived readers would take the second as times of 2 and 10 ms.
    #[test]
    fn a_list_in_place_of_a_table_is_refused() {
        for (key, list) in [
            ("network.overhead", "[2, 10]"),
            ("network.reordering", "[0.1, 100]"),
            ("network.topology.small-world", "[3, 0.1]"),
            ("network.processor.validate", "[1, 2, 3, 4]"),
            ("network.clocks[0]", "[100, 200]"),
            ("rules.ledger.votes", "[101, \"full\"]"),
            ("assert[0]", "[\"height >= 1\"]"),
        ] {
            let line = match key.strip_suffix("[0]") {
                Some(of) => format!("{of} = [{list}]"),
                None => format!("{key} = {list}"),
            };
            let why = read(&format!("version = 1\nrounds = 3\n{line}\n")).expect_err(key);
            assert_eq!(why, format!("s.toml:3: key '{key}': found a list, allowed is a table"));
        }
        let regions =
            "network.regions = { shares = [1, 2], latency_ms = [[1, 2], [2, 1]] }\nnetwork.uplink = [100, 200]";
        assert!(read(&format!("version = 1\nrounds = 3\n{regions}\n")).is_ok(), "a number for each region");
    }

    /// A sum of shares that is not finite would be no sum.
    #[test]
    fn shares_have_a_finite_sum() {
        for (line, key) in [
            ("network.regions = { shares = [1e308, 1e308], latency_ms = [[1, 2], [2, 1]] }", "network.regions.shares"),
            (
                "workload = [{ kind = \"generate\", per_second = 1, mix = { transfer = 1e308, vote = 1e308 } }]",
                "workload[0].mix",
            ),
        ] {
            let why = read(&format!("version = 1\nrounds = 3\n{line}\n")).expect_err(line);
            assert!(why.contains(key) && why.contains("1000000"), "{why}");
        }
    }

    #[test]
    fn one_mistake_among_many_keys_or_entries_is_found_soon() {
        // Each of them tried would take minutes.
        let keys: String = (0..30_000).map(|number| format!("key{number} = {number}\n")).collect();
        let unknown = read(&format!("version = 1\nrounds = 3\n{keys}")).expect_err("an unknown key");
        assert!(unknown.starts_with("s.toml:3: key 'key0': unknown field `key0`"), "{}", &unknown[..80]);
        let heal = "[[fault]]\nkind = \"heal\"\n";
        let faults = format!("{}[[fault]]\nkind = \"heel\"\n{}", heal.repeat(3_000), heal.repeat(2_000));
        let wrong = read(&format!("version = 1\nrounds = 3\n{faults}")).expect_err("an unknown kind");
        assert!(wrong.starts_with("s.toml:6004: key 'fault[3000].kind': unknown variant `heel`"), "{}", &wrong[..80]);
        let delegates: Vec<String> = (0..200_000).map(|number| format!("\"genesis_{}\"", number % 51 + 1)).collect();
        let many =
            format!("version = 1\nrounds = 3\n[[fault]]\nkind = \"offline\"\ndelegates = [{}]\n", delegates.join(","));
        assert!(read(&many).is_err_and(|why| why.contains(" twice")), "each is named once");
        assert!(
            read(&many.replacen("_7\"", "_99\"", 1)).is_err_and(|why| why.contains("found 'genesis_99', allowed is"))
        );
    }
}
