//! Reading a scenario: its file, the files it includes, the values replaced from outside; and finding the line of a
//! mistake.
//!
//! All of it becomes one table, which is read as a whole. Where that fails, the path of the key leads back to the file
//! and line it came from, or to the value that replaced it.

use super::{Override, Scenario, ScenarioError, file::Place, limits::Mistake};
use std::{
    fs,
    path::{Path, PathBuf},
};
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

/// Lists whose entries add up over included files.
const LISTS: [&str; 4] = ["fault", "workload", "action", "assert"];

/// One file that was read.
struct Source {
    file: PathBuf,
    text: String,
}

/// All that was read, and where the entries of lists came from.
#[derive(Default)]
struct Sources {
    files: Vec<Source>,
    /// For each entry of a list: its list, its file, and its index there.
    entries: Vec<(&'static str, usize, usize)>,
}

/// A step of a path into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Reads the scenario of a file, whose text may be given.
pub fn load(file: &Path, text: Option<&str>, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
    let mut sources = Sources::default();
    let mut table = sources.read(file, text, &mut Vec::new())?;
    for set in overrides {
        set.apply(&mut table).map_err(|source| ScenarioError::Unfitting { file: file.to_path_buf(), source })?;
    }
    let scenario: Scenario = match deserialize(&table) {
        Ok(scenario) => scenario,
        Err((path, message)) => {
            let key = Some(text_of(&path)).filter(|key| !key.is_empty());
            return Err(ScenarioError::Malformed { place: sources.place(&path, file, overrides), key, message });
        }
    };
    scenario.check().map_err(|Mistake { key, found, allowed }| {
        let place = sources.place(&parse(&key), file, overrides);
        ScenarioError::NotAllowed { place, key, found, allowed }
    })?;
    Ok(scenario)
}

impl Sources {
    /// The table of a file with those it includes below it.
    fn read(&mut self, file: &Path, text: Option<&str>, open: &mut Vec<PathBuf>) -> Result<Table, ScenarioError> {
        let text = match text {
            Some(text) => text.to_owned(),
            None => fs::read_to_string(file)
                .map_err(|source| ScenarioError::Unreadable { file: file.to_path_buf(), source })?,
        };
        let mut own: Table = toml::from_str(&text).map_err(|error| syntax(&text, file, &error))?;
        let index = self.files.len();
        self.files.push(Source { file: file.to_path_buf(), text });
        open.push(file.to_path_buf());
        let mut merged = Table::new();
        let mut entries = Vec::new();
        if let Some(Value::Array(includes)) = own.get("include") {
            let folder = file.parent().unwrap_or(Path::new(""));
            for name in includes.iter().filter_map(Value::as_str) {
                let included = folder.join(name);
                if open.contains(&included) {
                    let place = self.place(&[Step::Key("include".to_owned())], file, &[]);
                    return Err(ScenarioError::Circle { place, file: included });
                }
                let below = self.read(&included, None, open)?;
                entries.append(&mut self.entries);
                merge(&mut merged, below);
            }
        }
        open.pop();
        for list in LISTS {
            let count = own.get(list).and_then(Value::as_array).map_or(0, Vec::len);
            entries.extend((0..count).map(|entry| (list, index, entry)));
        }
        self.entries = entries;
        // What an included file says of itself is not said of this one.
        merged.remove("include");
        merged.remove("description");
        merge(&mut merged, std::mem::take(&mut own));
        Ok(merged)
    }

    /// Where the value at a path came from.
    fn place(&self, path: &[Step], file: &Path, overrides: &[Override]) -> Place {
        let text = text_of(path);
        let touches = |set: &&Override| {
            let of = set.path();
            !text.is_empty() && (text.starts_with(&of) || of.starts_with(&text))
        };
        if let Some(set) = overrides.iter().rev().find(touches) {
            return Place::Override { file: file.to_path_buf(), set: set.to_string() };
        }
        if let [Step::Key(list), Step::Index(index), rest @ ..] = path
            && let Some((list, of, entry)) = self.entries.iter().filter(|(of, ..)| of == list).nth(*index)
        {
            let mut local = vec![Step::Key((*list).to_owned()), Step::Index(*entry)];
            local.extend_from_slice(rest);
            return self.files[*of].place(&local).0;
        }
        // The file that says the most of the path, the including one first.
        let places = self.files.iter().map(|source| source.place(path));
        let mut best: Option<(Place, usize)> = None;
        for (place, depth) in places {
            if best.as_ref().is_none_or(|(_, deepest)| depth > *deepest) {
                best = Some((place, depth));
            }
        }
        best.map_or_else(|| Place::File(file.to_path_buf()), |(place, _)| place)
    }
}

impl Source {
    /// The line on which the deepest key of a path stands that the file has, and how deep that is.
    fn place(&self, path: &[Step]) -> (Place, usize) {
        let whole = Place::File(self.file.clone());
        let Ok(table) = DeTable::parse(&self.text) else { return (whole, 0) };
        let mut depth = 0;
        let mut at = None;
        let mut value: Option<&DeValue<'_>> = None;
        for step in path {
            let next = match (step, value) {
                (Step::Key(key), None) => find(table.get_ref(), key),
                (Step::Key(key), Some(DeValue::Table(table))) => find(table, key),
                (Step::Index(index), Some(DeValue::Array(list))) => {
                    list.get(*index).map(|entry| (entry.span().start, entry.get_ref()))
                }
                _ => None,
            };
            let Some((start, found)) = next else { break };
            (at, value, depth) = (Some(start), Some(found), depth + 1);
        }
        match at {
            Some(start) => (Place::Line { file: self.file.clone(), line: line_of(&self.text, start) }, depth),
            None => (whole, 0),
        }
    }
}

fn find<'a>(table: &'a DeTable<'_>, key: &str) -> Option<(usize, &'a DeValue<'a>)> {
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    Some((name.span().start, value.get_ref()))
}

/// Puts a table on top of another: tables are merged, the lists of a scenario added up, everything else replaced.
fn merge(below: &mut Table, above: Table) {
    merge_at(below, above, true);
}

fn merge_at(below: &mut Table, above: Table, top: bool) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_at(below, above, false),
            (Some(Value::Array(below)), Value::Array(above)) if top && LISTS.contains(&key.as_str()) => {
                below.extend(above);
            }
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

/// The scenario in a table, or the path of what is wrong and the message.
fn deserialize(table: &Table) -> Result<Scenario, (Vec<Step>, String)> {
    let error = match attempt(table) {
        Ok(scenario) => return Ok(scenario),
        Err(message) => message,
    };
    let path = culprit(table, &error);
    Err((path, error))
}

fn attempt(table: &Table) -> Result<Scenario, String> {
    Value::Table(table.clone()).try_into().map_err(|error: toml::de::Error| error.message().trim().replace('\n', " "))
}

/// The path of the key a message is about: left out, it changes the message. One whose absence mends everything is
/// preferred, and a `kind` is suspected last, for without it the rest means nothing.
fn culprit(table: &Table, message: &str) -> Vec<Step> {
    let mut whole = Value::Table(table.clone());
    let mut path = Vec::new();
    loop {
        let found = steps(at(&mut whole, &path)).into_iter().filter_map(|step| {
            let mut without = whole.clone();
            remove(at(&mut without, &path), &step);
            let Value::Table(without) = without else { return None };
            let rank = match attempt(&without) {
                Ok(_) => 0,
                // What is missing is missing still, or something else now is.
                Err(_) if message.starts_with("missing field") => return None,
                Err(other) if other == message => return None,
                Err(_) if step == Step::Key("kind".to_owned()) => 2,
                Err(_) => 1,
            };
            Some((rank, step))
        });
        match found.min_by_key(|(rank, _)| *rank) {
            Some((_, step)) => path.push(step),
            None => return path,
        }
    }
}

fn steps(value: &Value) -> Vec<Step> {
    match value {
        Value::Table(table) => table.keys().cloned().map(Step::Key).collect(),
        Value::Array(list) => (0..list.len()).map(Step::Index).collect(),
        _ => Vec::new(),
    }
}

fn at<'a>(value: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key.as_str()).expect("the path was followed before"),
        Step::Index(index) => value.get_mut(*index).expect("the path was followed before"),
    })
}

fn remove(value: &mut Value, step: &Step) {
    match (value, step) {
        (Value::Table(table), Step::Key(key)) => drop(table.remove(key)),
        (Value::Array(list), Step::Index(index)) => drop(list.remove(*index)),
        _ => {}
    }
}

/// `fault[2].share`.
fn text_of(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The path of a text made by [`text_of`].
fn parse(text: &str) -> Vec<Step> {
    let mut path = Vec::new();
    for part in text.split('.') {
        let mut pieces = part.split('[');
        path.extend(pieces.next().filter(|key| !key.is_empty()).map(|key| Step::Key(key.to_owned())));
        path.extend(pieces.filter_map(|piece| piece.trim_end_matches(']').parse().ok()).map(Step::Index));
    }
    path
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at.min(text.len())).unwrap_or_default().matches('\n').count() + 1
}

/// A text that is no TOML.
fn syntax(text: &str, file: &Path, error: &toml::de::Error) -> ScenarioError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned());
    let place = Place::Line { file: file.to_path_buf(), line };
    ScenarioError::Malformed { place, key, message: error.message().replace('\n', " ") }
}
