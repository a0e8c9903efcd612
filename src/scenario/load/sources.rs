//! The files of a scenario: reading them into one table, and finding the line that a path of that table came from.

use crate::{
    files::{self, Identity, TEXT_LIMIT},
    scenario::{
        Override, ScenarioError,
        file::SourcePosition,
        load::lists::{FILE_LISTS, FileList, WrongLine, file_of},
        path::{FORMS, PathStep, join},
    },
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

/// Lists whose entries add up over included files.
const LISTS: [&str; 5] = ["fault", "workload", "action", "agents", "assert"];

/// The greatest depth of includes.
const DEPTH_LIMIT: usize = 16;
/// The largest number of files of a scenario. A file that is included twice counts twice.
const FILES_LIMIT: usize = 256;

/// The files that a text from elsewhere may name, in words.
pub(crate) const NO_FILES: &str = "no file: this text came from elsewhere, and reads none of this machine's";

/// One file that was read.
struct Source {
    file: PathBuf,
    text: String,
}

/// All texts that were read, and the origins of the entries of lists.
#[derive(Default)]
pub(crate) struct Sources<'a> {
    files: Vec<Source>,
    /// For each entry of a list: its list, its file, and its index there.
    entries: Vec<(&'static str, usize, usize)>,
    /// The lists in files of their own, by the keys that lead to them: the file, and the line of each entry.
    lists: BTreeMap<String, (PathBuf, Vec<usize>)>,
    /// The files that include the one that is being read, the first one first.
    open: Vec<Option<Identity>>,
    /// The number of bytes of all texts.
    bytes: u64,
    /// True if the text may include no files.
    is_alone: bool,
    /// All available texts, if no file is read.
    given: Option<&'a BTreeMap<PathBuf, String>>,
}

impl<'a> Sources<'a> {
    /// The sources of a text that may include no files.
    pub fn alone() -> Self {
        Self { is_alone: true, ..Self::default() }
    }

    /// The sources of these texts. No file is read.
    pub fn given(texts: &'a BTreeMap<PathBuf, String>) -> Self {
        Self { given: Some(texts), ..Self::default() }
    }

    /// The table of a file, merged over the tables of the files that it includes.
    pub fn read(&mut self, file: &Path, text: Option<&str>) -> Result<Table, ScenarioError> {
        let unread = |source| ScenarioError::Unreadable { file: file.to_path_buf(), source };
        let text = self.text(file, text).map_err(unread)?;
        let mut own: Table = toml::from_str(&text).map_err(|error| syntax(&text, file, &error))?;
        let index = self.files.len();
        self.files.push(Source { file: file.to_path_buf(), text });
        self.open.push(self.identity(file));
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
        for list in &FILE_LISTS {
            self.read_list(list, &mut own, file)?;
        }
        for list in LISTS {
            let count = own.get(list).and_then(Value::as_array).map_or(0, Vec::len);
            entries.extend((0..count).map(|entry| (list, index, entry)));
        }
        self.entries = entries;
        // The description of an included file does not describe this file.
        merged.remove("include");
        merged.remove("description");
        merge(&mut merged, std::mem::take(&mut own));
        Ok(merged)
    }

    /// Reads the text of a file, unless it is given.
    fn text(&mut self, file: &Path, text: Option<&str>) -> io::Result<String> {
        let text = match (text, self.given) {
            (Some(text), _) => Ok(text.to_owned()),
            (None, Some(given)) => given.get(file).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
            (None, None) => files::read_text(file, TEXT_LIMIT),
        };
        self.bytes += text.as_ref().map_or(0, |text| text.len() as u64);
        text
    }

    /// Replaces the name of a file by the list in that file, if the table of a scenario file has such a name there.
    fn read_list(&mut self, list: &FileList, table: &mut Table, file: &Path) -> Result<(), ScenarioError> {
        let Some(value) = list.value(table) else { return Ok(()) };
        let key = list.key();
        // The list of an included file is replaced.
        self.lists.remove(&key);
        let Some(name) = file_of(value) else { return Ok(()) };
        let path = file.parent().unwrap_or(Path::new("")).join(name);
        let steps = list.path.iter().map(|key| PathStep::Key((*key).to_owned())).collect::<Vec<_>>();
        self.check_room(file, &steps, &path)?;
        let text = self.text(&path, None).map_err(|why| {
            let (found, allowed) = (format!("'{}': {why}", path.display()), "a CSV file".to_owned());
            ScenarioError::NotAllowed { place: self.place_in(file, &steps), key: key.clone(), found, allowed }
        })?;
        let read = (list.read)(&text).map_err(|WrongLine { line, found, allowed }| {
            let place = SourcePosition::Line { file: path.clone(), line };
            ScenarioError::NotAllowed { place, key: key.clone(), found, allowed }
        })?;
        *value = Value::Array(read.values);
        self.lists.insert(key, (path.clone(), read.lines));
        self.files.push(Source { file: path, text });
        Ok(())
    }

    /// The files that were read with their texts, in that order.
    pub fn into_texts(self) -> Vec<(PathBuf, String)> {
        self.files.into_iter().map(|source| (source.file, source.text)).collect()
    }

    /// The identity of a file, or `None` if no files are read.
    fn identity(&self, file: &Path) -> Option<Identity> {
        self.given.map_or_else(|| Identity::at(file), |_| None)
    }

    /// Checks that a file may include another one now.
    fn check_include(&self, file: &Path, included: &Path) -> Result<(), ScenarioError> {
        let include = [PathStep::Key("include".to_owned())];
        self.check_room(file, &include, included)?;
        let included_by = self.identity(included).is_some_and(|found| self.open.contains(&Some(found)));
        match included_by {
            true => Err(ScenarioError::Circle { place: self.place_in(file, &include), file: included.to_path_buf() }),
            false => Ok(()),
        }
    }

    /// The line of a key in a file that was read.
    fn place_in(&self, file: &Path, key: &[PathStep]) -> SourcePosition {
        let read = self.files.iter().rev().find(|source| source.file == file);
        read.map_or_else(|| SourcePosition::File(file.to_path_buf()), |source| source.place(key).0)
    }

    /// Checks that a key of a file may name another file, and that there is room for one more.
    fn check_room(&self, file: &Path, key: &[PathStep], named: &Path) -> Result<(), ScenarioError> {
        let refused = |found: String, allowed: String| {
            Err(ScenarioError::NotAllowed { place: self.place_in(file, key), key: join(key), found, allowed })
        };
        match () {
            () if self.is_alone => refused(format!("'{}'", named.display()), NO_FILES.to_owned()),
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

    /// Returns true if the value at a path is of an entry that an override has added to a list.
    fn is_new_entry(&self, path: &[PathStep], set: &Override) -> bool {
        let [PathStep::Key(list), PathStep::Index(index), ..] = path else { return false };
        let in_files = self.entries.iter().filter(|(of, ..)| of == list).count();
        *index >= in_files && set.path().starts_with(&format!("{list}[+]"))
    }

    /// Returns the position at which the value at a path was set.
    pub fn place(&self, path: &[PathStep], file: &Path, overrides: &[Override]) -> SourcePosition {
        let text = join(path);
        let touches = |set: &&Override| {
            let of = set.path();
            !text.is_empty() && (text.starts_with(&of) || of.starts_with(&text) || self.is_new_entry(path, set))
        };
        if let Some(set) = overrides.iter().rev().find(touches) {
            return SourcePosition::Override { file: file.to_path_buf(), set: set.to_string() };
        }
        let in_list = |(depth, step): (usize, &PathStep)| match step {
            PathStep::Index(index) => {
                let (file, lines) = self.lists.get(&join(&path[..depth]))?;
                Some(SourcePosition::Line { file: file.clone(), line: *lines.get(*index)? })
            }
            PathStep::Key(_) | PathStep::Next => None,
        };
        if let Some(place) = path.iter().enumerate().find_map(in_list) {
            return place;
        }
        if let [PathStep::Key(list), PathStep::Index(index), rest @ ..] = path
            && let Some((list, of, entry)) = self.entries.iter().filter(|(of, ..)| of == list).nth(*index)
        {
            let mut local = vec![PathStep::Key((*list).to_owned()), PathStep::Index(*entry)];
            local.extend_from_slice(rest);
            return self.files[*of].place(&local).0;
        }
        // The file that has the longest part of the path. Among equals, the including file comes first.
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
    /// The line of the deepest key of a path that the file has, and the depth of that key.
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

/// Merges a table over another: tables are merged, the lists of a scenario are concatenated, and all other values are replaced.
fn merge(below: &mut Table, above: Table) {
    merge_at(below, above, true);
}

fn merge_at(below: &mut Table, above: Table, top: bool) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above))
                if !FORMS.contains(&key.as_str()) || above.keys().all(|form| below.contains_key(form)) =>
            {
                merge_at(below, above, false);
            }
            (Some(Value::Array(below)), Value::Array(above)) if top && LISTS.contains(&key.as_str()) => {
                below.extend(above);
            }
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at.min(text.len())).unwrap_or_default().matches('\n').count() + 1
}

/// The error of a text that is no TOML.
fn syntax(text: &str, file: &Path, error: &toml::de::Error) -> ScenarioError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned());
    let place = SourcePosition::Line { file: file.to_path_buf(), line };
    ScenarioError::Malformed { place, key, message: error.message().replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use crate::{files::TEXT_LIMIT, scenario::Scenario};
    use std::{fs, os::unix::fs::symlink};

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
        // Another form of a topology replaces the one below, the same form is merged.
        put(
            "base.toml",
            "version = 1\nrounds = 9\n[network]\ntopology = { small-world = { reach = 2, rewired = 0.5 } }\n",
        );
        let topology = |above: &str| {
            put("top.toml", &format!("include = [\"base.toml\"]\n[network]\ntopology = {above}\n"));
            format!("{:?}", Scenario::load(&top).expect("it is a scenario").network.model.topology)
        };
        assert_eq!(topology("{ ring = 3 }"), "Ring(3)");
        assert_eq!(topology("{ small-world = { reach = 3 } }"), "SmallWorld(SmallWorld { reach: 3, rewired: 0.5 })");
        let set = ["network.topology.regular=4".parse().expect("it is a path and a value")];
        let scenario = Scenario::load_with(&top, &set).expect("it is a scenario");
        assert_eq!(format!("{:?}", scenario.network.model.topology), "Regular(4)");
        put("top.toml", "include = [\"base.toml\"]\nrounds = 3\n[network]\nloss = 0.2\n[[fault]]\nkind = \"heal\"\n");
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
}
