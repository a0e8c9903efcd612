//! Reading a scenario: its file, the files it includes, the values replaced from outside; and finding the line of a
//! mistake.
//!
//! All of it becomes one table, which is read as a whole. Where that fails, the path of the key leads back to the file
//! and line it came from, or to the value that replaced it.

use super::{
    Override, Scenario, ScenarioError,
    file::SourcePosition,
    mistake::Mistake,
    path::{PathStep, join, split},
    schema::keys_beside,
};
use crate::{
    files::{self, Identity, TEXT_LIMIT},
    sim::Fault,
};
use std::path::{Path, PathBuf};
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

/// Lists whose entries add up over included files.
const LISTS: [&str; 4] = ["fault", "workload", "action", "assert"];

/// The greatest depth of includes.
const DEPTH_LIMIT: usize = 16;
/// Files of a scenario, one that is included twice counted twice.
const FILES_LIMIT: usize = 256;
/// The number of keys of a table or entries of a list up to which the search for a mistake tries each. Of more it tries halves
/// first.
const TRIED_EACH: usize = 32;

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
    /// The files that include the one that is being read, the first one first.
    open: Vec<Option<Identity>>,
    /// Bytes of all texts.
    bytes: u64,
}

impl Scenario {
    /// Reads and checks a file and what it includes.
    ///
    /// # Errors
    /// A file cannot be read, is not TOML of this format, or names what does not exist.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        load(file, None, &[])
    }

    /// Reads a file, replaces values in it, and checks what comes of that.
    ///
    /// # Errors
    /// As [`Scenario::load`]; where a replaced value is at fault, the error names it instead of a line.
    pub fn load_with(file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load(file, None, overrides)
    }

    /// The files that a scenario is made of: its own first, then those that it includes.
    ///
    /// # Errors
    /// A file cannot be read or is not TOML.
    pub fn files_of(file: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
        files_of(file)
    }

    /// [`Scenario::load_with`] on the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load_with`].
    pub fn parse_with(text: &str, file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load(file, Some(text), overrides)
    }

    /// Checks the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        load(file, Some(text), &[])
    }
}

/// Reads the scenario of a file, whose text may be given.
fn load(file: &Path, text: Option<&str>, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
    let mut sources = Sources::default();
    let mut table = sources.read(file, text)?;
    for set in overrides {
        set.apply(&mut table).map_err(|source| ScenarioError::Unfitting { file: file.to_path_buf(), source })?;
    }
    let scenario: Scenario = match deserialize(&table) {
        Ok(scenario) => scenario,
        Err((path, message)) => {
            let key = Some(join(&path)).filter(|key| !key.is_empty());
            return Err(ScenarioError::Malformed { place: sources.place(&path, file, overrides), key, message });
        }
    };
    scenario.check().map_err(|Mistake { key, found, allowed }| {
        let place = sources.place(&split(&key), file, overrides);
        ScenarioError::NotAllowed { place, key, found, allowed }
    })?;
    Ok(scenario)
}

/// The files that a scenario is made of: its own, then those that are included, each as it was found.
fn files_of(file: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let mut sources = Sources::default();
    sources.read(file, None)?;
    Ok(sources.files.into_iter().map(|source| source.file).collect())
}

impl Sources {
    /// The table of a file with those it includes below it.
    fn read(&mut self, file: &Path, text: Option<&str>) -> Result<Table, ScenarioError> {
        let text = match text {
            Some(text) => text.to_owned(),
            None => files::read_text(file, TEXT_LIMIT)
                .map_err(|source| ScenarioError::Unreadable { file: file.to_path_buf(), source })?,
        };
        self.bytes += text.len() as u64;
        let mut own: Table = toml::from_str(&text).map_err(|error| syntax(&text, file, &error))?;
        let index = self.files.len();
        self.files.push(Source { file: file.to_path_buf(), text });
        self.open.push(Identity::at(file));
        let mut merged = Table::new();
        let mut entries = Vec::new();
        if let Some(Value::Array(includes)) = own.get("include") {
            let folder = file.parent().unwrap_or(Path::new(""));
            for name in includes.iter().filter_map(Value::as_str) {
                let included = folder.join(name);
                self.check_include(file, &included)?;
                let below = self.read(&included, None)?;
                entries.append(&mut self.entries);
                merge(&mut merged, below);
            }
        }
        self.open.pop();
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

    /// Checks that a file may include another one now.
    fn check_include(&self, file: &Path, included: &Path) -> Result<(), ScenarioError> {
        let place = || {
            let including = self.files.iter().rev().find(|source| source.file == file);
            let include = [PathStep::Key("include".to_owned())];
            including.map_or_else(|| SourcePosition::File(file.to_path_buf()), |source| source.place(&include).0)
        };
        let included_by = Identity::at(included).is_some_and(|found| self.open.contains(&Some(found)));
        if included_by {
            return Err(ScenarioError::Circle { place: place(), file: included.to_path_buf() });
        }
        let refused = |found: String, allowed: String| {
            Err(ScenarioError::NotAllowed { place: place(), key: "include".to_owned(), found, allowed })
        };
        match () {
            () if self.open.len() > DEPTH_LIMIT => {
                refused(format!("{} files that include each other", self.open.len()), format!("at most {DEPTH_LIMIT}"))
            }
            () if self.files.len() >= FILES_LIMIT => {
                refused(format!("more than {FILES_LIMIT} files in all"), format!("at most {FILES_LIMIT}"))
            }
            () if self.bytes > TEXT_LIMIT => {
                let (found, allowed) = (files::in_words(self.bytes), files::in_words(TEXT_LIMIT));
                refused(format!("{found} in all files"), format!("at most {allowed}"))
            }
            () => Ok(()),
        }
    }

    /// Returns the position from which the value at a path came.
    fn place(&self, path: &[PathStep], file: &Path, overrides: &[Override]) -> SourcePosition {
        let text = join(path);
        let touches = |set: &&Override| {
            let of = set.path();
            !text.is_empty() && (text.starts_with(&of) || of.starts_with(&text))
        };
        if let Some(set) = overrides.iter().rev().find(touches) {
            return SourcePosition::Override { file: file.to_path_buf(), set: set.to_string() };
        }
        if let [PathStep::Key(list), PathStep::Index(index), rest @ ..] = path
            && let Some((list, of, entry)) = self.entries.iter().filter(|(of, ..)| of == list).nth(*index)
        {
            let mut local = vec![PathStep::Key((*list).to_owned()), PathStep::Index(*entry)];
            local.extend_from_slice(rest);
            return self.files[*of].place(&local).0;
        }
        // The file that says the most of the path, the including one first.
        let places = self.files.iter().map(|source| source.place(path));
        let mut best: Option<(SourcePosition, usize)> = None;
        for (place, depth) in places {
            if best.as_ref().is_none_or(|(_, deepest)| depth > *deepest) {
                best = Some((place, depth));
            }
        }
        best.map_or_else(|| SourcePosition::File(file.to_path_buf()), |(place, _)| place)
    }
}

impl Source {
    /// The line on which the deepest key of a path stands that the file has, and how deep that is.
    fn place(&self, path: &[PathStep]) -> (SourcePosition, usize) {
        let whole = SourcePosition::File(self.file.clone());
        let Ok(table) = DeTable::parse(&self.text) else { return (whole, 0) };
        let mut depth = 0;
        let mut at = None;
        let mut value: Option<&DeValue<'_>> = None;
        for step in path {
            let next = match (step, value) {
                (PathStep::Key(key), None) => find(table.get_ref(), key),
                (PathStep::Key(key), Some(DeValue::Table(table))) => find(table, key),
                (PathStep::Index(index), Some(DeValue::Array(list))) => {
                    list.get(*index).map(|entry| (entry.span().start, entry.get_ref()))
                }
                _ => None,
            };
            let Some((start, found)) = next else { break };
            (at, value, depth) = (Some(start), Some(found), depth + 1);
        }
        match at {
            Some(start) => (SourcePosition::Line { file: self.file.clone(), line: line_of(&self.text, start) }, depth),
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
fn deserialize(table: &Table) -> Result<Scenario, (Vec<PathStep>, String)> {
    let error = match attempt(table) {
        Ok(scenario) => return Ok(scenario),
        Err(message) => message,
    };
    let path = culprit(table, &error);
    let error = with_known_keys(table, &path, error);
    Err((path, error))
}

/// The fault in a value of JSON, by the rules of a scenario file but for what it names.
///
/// # Errors
/// It is none: the message names the key.
pub fn fault(json: &serde_json::Value) -> Result<Fault, String> {
    let fault = match Value::try_from(json) {
        Ok(Value::Table(fault)) => fault,
        Ok(_) => return Err("found no object, allowed is a fault: an object with a 'kind'".to_owned()),
        Err(why) => return Err(format!("found a value that no fault has: {why}")),
    };
    let mut table = Table::new();
    table.insert("version".to_owned(), 1.into());
    table.insert("rounds".to_owned(), 1.into());
    table.insert("fault".to_owned(), vec![Value::Table(fault)].into());
    match deserialize(&table) {
        Ok(mut scenario) => scenario.faults.pop().ok_or_else(|| "found no fault".to_owned()),
        Err((path, message)) => Err(match path.get(2..).map(join).filter(|key| !key.is_empty()) {
            Some(key) => format!("key '{key}': {message}"),
            None => message,
        }),
    }
}

/// A message about an unknown key with those that there are, which the derived readers know of some tables only.
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

/// The path of the key a message is about: left out, it changes the message. One whose absence mends everything is
/// preferred, and a `kind` is suspected last, for without it the rest means nothing.
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

/// The steps on from a path among which the culprit is: of many, the half without which the message changes, again and
/// again, since each try reads everything.
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

/// Tries the table without some of the steps on from a path. Returns 0 if nothing is wrong then, 1 if another message comes,
/// and `None` if the message stays.
fn rank_without(whole: &Value, path: &[PathStep], steps: &[PathStep], message: &str) -> Option<u8> {
    let mut without = whole.clone();
    let container = at(&mut without, path);
    // From the last one on, for those behind an entry of a list move up.
    steps.iter().rev().for_each(|step| remove(container, step));
    let Value::Table(without) = without else { return None };
    match attempt(&without) {
        Ok(_) => Some(0),
        // What is missing is missing still, or something else now is.
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
    })
}

fn remove(value: &mut Value, step: &PathStep) {
    match (value, step) {
        (Value::Table(table), PathStep::Key(key)) => drop(table.remove(key)),
        (Value::Array(list), PathStep::Index(index)) => drop(list.remove(*index)),
        _ => {}
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at.min(text.len())).unwrap_or_default().matches('\n').count() + 1
}

/// A text that is no TOML.
fn syntax(text: &str, file: &Path, error: &toml::de::Error) -> ScenarioError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned());
    let place = SourcePosition::Line { file: file.to_path_buf(), line };
    ScenarioError::Malformed { place, key, message: error.message().replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Latency;
    use std::{fs, os::unix::fs::symlink};

    fn set(text: &str, sets: &[&str]) -> Result<Scenario, String> {
        let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("well formed")).collect();
        Scenario::parse_with(text, Path::new("s.toml"), &sets).map_err(|error| error.to_string())
    }

    fn error(text: &str) -> String {
        set(text, &[]).expect_err("it is no scenario")
    }

    fn fault(lines: &str) -> String {
        error(&format!("version = 1\nrounds = 3\n[[fault]]\nkind = \"heal\"\n\n[[fault]]\n{lines}"))
    }

    #[test]
    fn an_error_names_the_line_the_key_and_what_is_allowed() {
        assert_eq!(error("version = 2\nrounds = 3"), "s.toml:1: key 'version': found 2, allowed is 1");
        assert_eq!(error("version = 1\nrounds = 0"), "s.toml:2: key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = error("version = 1\nrounds = 3\nround = 4");
        assert!(unknown.starts_with("s.toml:3: key 'round': unknown field `round`, expected one of"), "{unknown}");
        let wrong = error("version = 1\nrounds = \"three\"");
        assert!(wrong.starts_with("s.toml:2: key 'rounds': invalid type: string \"three\""), "{wrong}");
        assert_eq!(error("version = 1\n"), "s.toml: missing field `rounds`");
        assert!(!error("version = 1\nrounds = [").contains('\n'));
    }

    #[test]
    fn an_error_in_a_fault_names_its_line_too() {
        let kind = fault("kind = \"offlin\"\n");
        assert!(kind.starts_with("s.toml:7: key 'fault[1].kind': unknown variant `offlin`"), "{kind}");
        assert!(kind.contains("`offline`") && kind.contains("`mass-resignation`"), "{kind}");
        let name = fault("kind = \"offline\"\nrounds = 2\ndelegates = [\"genesis_3\", \"bob\"]\n");
        let expected = "s.toml:9: key 'fault[1].delegates': found 'bob', allowed is 'genesis_1' to 'genesis_51'";
        assert_eq!(name, expected);
        let missing = fault("kind = \"delay\"\nmessages = [\"block\"]\n");
        assert_eq!(missing, "s.toml:6: key 'fault[1]': missing field `by_ms`");
        let wrong = fault("kind = \"slow\"\nstep_ms = 5\nnodes = 7\n");
        assert!(wrong.starts_with("s.toml:9: key 'fault[1].nodes': expected a list of nodes"), "{wrong}");
        let extra = fault("kind = \"isolate\"\nnodes = [1]\nuntill = { round = 2 }\n");
        let allowed = "expected one of `from`, `kind`, `nodes`, `until`";
        assert_eq!(extra, format!("s.toml:9: key 'fault[1].untill': unknown field `untill`, {allowed}"));
        let message = fault("kind = \"drop\"\nmessages = [\"block\", \"blok\"]\n");
        assert!(message.starts_with("s.toml:8: key 'fault[1].messages[1]': unknown variant `blok`"), "{message}");
        let moment = fault("kind = \"heal\"\nfrom = { after = 3 }\n");
        assert!(
            moment.starts_with("s.toml:8: key 'fault[1].from': found after, allowed is start, seconds"),
            "{moment}"
        );
        let chance = fault("kind = \"drop\"\nchance = 1.5\n");
        assert_eq!(chance, "s.toml:8: key 'fault[1].chance': found 1.5, allowed is 0 to 1");
    }

    #[test]
    fn an_error_in_network_rules_or_an_assertion_names_what_there_is() {
        let network = |lines: &str| error(&format!("version = 1\nrounds = 3\n[network]\n{lines}"));
        let latency = network("latency = { min_ms = 5 }\n");
        assert_eq!(latency, "s.toml:4: key 'network.latency': missing field `max_ms` of a `uniform` latency");
        let normal = network("latency = { distribution = \"normal\", mean_ms = 5, sigma = 1 }\n");
        assert!(normal.starts_with("s.toml:4: key 'network.latency"), "{normal}");
        let lost = network("loss = 2\n");
        assert_eq!(lost, "s.toml:4: key 'network.loss': found 2, allowed is 0 to 1");
        let inside = network("delegates = 4\nmilestones = [{ height = 7, delegates = 3 }]\n");
        let allowed = "found 7, allowed is a multiple of 4 after 1, where a round begins";
        assert!(inside.ends_with(&format!("key 'network.milestones[0].height': {allowed}")), "{inside}");
        let many = network("delegates = 4\nmilestones = [{ height = 9, delegates = 5 }]\n");
        assert!(many.ends_with("'network.milestones[0].delegates': found 5, allowed is 1 to 4"), "{many}");
        let unknown = network("losss = 0.1\n");
        assert!(
            unknown.starts_with("s.toml:4: key 'network.losss': unknown field `losss`, expected one of"),
            "{unknown}"
        );
        assert!(unknown.contains("`delegates`") && unknown.contains("`loss`"), "{unknown}");
        let clock = network("clocks = { offset = 1 }\n");
        assert!(clock.ends_with("unknown field `offset`, expected one of `drift_ppm`, `offset_ms`"), "{clock}");
        let mix = error("version = 1\nrounds = 3\n[[workload]]\nkind = \"chain\"\nfile = \"x\"\nper_second = 1\n");
        assert!(mix.ends_with("`per_second`, expected one of `file`, `from`, `kind`, `nodes`, `until`"), "{mix}");
        let rule = error("version = 1\nrounds = 3\n[rules]\nnode.wakeup = 3\n");
        assert!(rule.starts_with("s.toml:4: key 'rules.node.wakeup': found no such rule, allowed is"), "{rule}");
        let assertion = |lines: &str| error(&format!("version = 1\nrounds = 3\n[[assert]]\n{lines}"));
        let metric = assertion("always = \"hight > 3\"\n");
        assert!(metric.starts_with("s.toml:4: key 'assert[0].always': found 'hight > 3', allowed is"), "{metric}");
        assert!(metric.contains("rollback-depth") && metric.contains("'converged'"), "{metric}");
        let two = assertion("always = \"converged\"\nfinally = \"converged\"\n");
        assert!(two.starts_with("s.toml:3: key 'assert[0]': found 2 claims, allowed is exactly one"), "{two}");
    }

    #[test]
    fn a_replaced_value_is_checked_like_one_in_the_file() {
        let file = "version = 1\nrounds = 3\n";
        let changed = set(file, &["network.latency={ min_ms = 1, max_ms = 300 }", "rounds=4"]).expect("allowed");
        assert_eq!((changed.network.model.latency, changed.rounds), (Latency::uniform(1, 300), 4));
        let wrong = set(file, &["rounds=0"]).expect_err("no rounds");
        assert_eq!(wrong, "s.toml with 'rounds=0': key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = set(file, &["network.lots=0.1"]).expect_err("no such key");
        assert!(unknown.starts_with("s.toml with 'network.lots=0.1': key 'network.lots': unknown field"), "{unknown}");
        let own = set("version = 1\nrounds = 3\nx = 1\n", &["rounds=4"]).expect_err("the file's own mistake");
        assert!(own.starts_with("s.toml:3: key 'x'"), "{own}");
    }

    #[test]
    fn included_files_stand_below_and_their_lists_add_up() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
        put("base.toml", "version = 1\nrounds = 9\n[network]\ndelegates = 5\nloss = 0.1\n[[fault]]\nkind = \"heal\"\n");
        put(
            "top.toml",
            "include = [\"base.toml\"]\nrounds = 3\n[network]\nloss = 0.2\n[[fault]]\nkind = \"isolate\"\nnodes = [9]\n",
        );
        let top = folder.path().join("top.toml");
        let wrong = Scenario::load(&top).expect_err("node 9 of 5").to_string();
        assert!(wrong.ends_with("top.toml:7: key 'fault[1].nodes': found 9, allowed is 0 to 4"), "{wrong}");
        put("top.toml", "include = [\"base.toml\"]\nrounds = 3\n[network]\nloss = 0.2\n[[fault]]\nkind = \"heal\"\n");
        let scenario = Scenario::load(&top).expect("it is a scenario");
        assert_eq!((scenario.rounds, scenario.faults.len()), (3, 2));
        assert_eq!((scenario.network.delegates, scenario.network.model.loss), (5, 0.2));
        put("base.toml", "version = 1\nrounds = 9\n[[fault]]\nkind = \"heel\"\n");
        let wrong = Scenario::load(&top).expect_err("no such kind").to_string();
        assert!(wrong.contains("base.toml:4: key 'fault[0].kind': unknown variant `heel`"), "{wrong}");
        put("base.toml", "include = [\"top.toml\"]\n");
        let circle = Scenario::load(&top).expect_err("a circle").to_string();
        assert!(circle.contains(":1: key 'include'") && circle.contains("includes itself"), "{circle}");
    }

    #[test]
    fn no_include_is_endless() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
        let wrong = |name: &str| Scenario::load(&folder.path().join(name)).expect_err("it is refused").to_string();
        fs::create_dir(folder.path().join("sub")).expect("it can be made");
        symlink("top.toml", folder.path().join("link.toml")).expect("it can be made");
        fs::hard_link(folder.path().join("link.toml"), folder.path().join("other.toml")).expect("it can be made");
        for spelling in ["top.toml", "./top.toml", "sub/../top.toml", "link.toml", "other.toml"] {
            put("top.toml", &format!("include = [\"{spelling}\"]\n"));
            let circle = wrong("top.toml");
            assert!(circle.contains("top.toml:1: key 'include'") && circle.ends_with("includes itself"), "{circle}");
        }
        for number in 0..40 {
            put(&format!("{number}.toml"), &format!("include = [\"{}.toml\"]\n", number + 1));
        }
        let deep = wrong("0.toml");
        assert!(
            deep.ends_with("16.toml:1: key 'include': found 17 files that include each other, allowed is at most 16"),
            "{deep}"
        );
        // Twice as many with each level.
        for number in 0..15 {
            put(&format!("{number}.toml"), &format!("include = [\"{0}.toml\", \"{0}.toml\"]\n", number + 1));
        }
        put("15.toml", "");
        let wide = wrong("0.toml");
        assert!(wide.ends_with("key 'include': found more than 256 files in all, allowed is at most 256"), "{wide}");
        for (name, what) in [("/dev/zero", "a device"), (".", "a folder"), ("", "a folder")] {
            put("top.toml", &format!("include = [\"{name}\"]\n"));
            let refused = wrong("top.toml");
            assert!(
                refused.ends_with(&format!("cannot be read: found {what}, allowed is a file")),
                "{name}: {refused}"
            );
        }
        put("large.toml", &" ".repeat(TEXT_LIMIT as usize + 1));
        let large = wrong("large.toml");
        assert!(large.ends_with("large.toml: cannot be read: found 16.0 MiB, allowed are 16 MiB"), "{large}");
    }

    #[test]
    fn one_mistake_among_many_keys_or_entries_is_found_soon() {
        // Each of them tried would take minutes.
        let keys: String = (0..30_000).map(|number| format!("key{number} = {number}\n")).collect();
        let unknown = error(&format!("version = 1\nrounds = 3\n{keys}"));
        assert!(unknown.starts_with("s.toml:3: key 'key0': unknown field `key0`"), "{}", &unknown[..80]);
        let heal = "[[fault]]\nkind = \"heal\"\n";
        let faults = format!("{}[[fault]]\nkind = \"heel\"\n{}", heal.repeat(3_000), heal.repeat(2_000));
        let wrong = error(&format!("version = 1\nrounds = 3\n{faults}"));
        assert!(wrong.starts_with("s.toml:6004: key 'fault[3000].kind': unknown variant `heel`"), "{}", &wrong[..80]);
        let delegates: Vec<String> = (0..200_000).map(|number| format!("\"genesis_{}\"", number % 51 + 1)).collect();
        let many =
            format!("version = 1\nrounds = 3\n[[fault]]\nkind = \"offline\"\ndelegates = [{}]\n", delegates.join(","));
        assert!(set(&many, &[]).is_ok());
        assert!(
            set(&many.replacen("_7\"", "_99\"", 1), &[])
                .is_err_and(|why| why.contains("found 'genesis_99', allowed is"))
        );
    }

    #[test]
    fn a_path_is_no_deeper_than_a_scenario() {
        let deep = format!("{}=1", vec!["a"; 50_000].join("."));
        let why = deep.parse::<Override>().expect_err("it is too deep").to_string();
        assert_eq!(why, format!("'{}...' is no path: allowed are 32 keys and indexes", "a.".repeat(20)));
        assert!(format!("a{}=1", "[0]".repeat(50_000)).parse::<Override>().is_err());
    }

    #[test]
    fn a_scenario_s_own_text_is_the_same_scenario() {
        let text = "version = 1\nrounds = 3\n[network]\nregions = { shares = [1], latency_ms = [[4]] }\n[rules]\nquorum_percent = 50\n\
                    [[fault]]\nkind = \"partition\"\nshare = { share = 0.5, of = \"vote-weight\" }\nfrom = { height = 60 }\n\
                    until = { after = 12.5 }\n[[assert]]\nalways = \"height >= 1\"\n";
        let scenario = set(text, &[]).expect("it is a scenario");
        assert_eq!(set(&scenario.to_toml(), &[]).expect("its own text"), scenario);
    }
}
