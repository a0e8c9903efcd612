//! A database of findings: a folder with `findings.json` and the scenario files that show them.
//!
//! ```text
//!   findings.json     by frame: which seeds each build played, which of them showed what, and the file of each finding
//!   NAME.toml         the smallest scenario that shows a finding
//! ```
//!
//! Counts are sets of seeds, so databases of several machines merge to the same bytes in any order, even if two machines played
//! the same seed. A frame is the fixed part around which runs are drawn. A build is known by its version and by the results of
//! its first runs.

use super::{
    Finding, Minimal, Signature,
    finding::interned,
    minimal::file_name,
    search::{Found, Networks, Search, Summary},
    seeds::SeedSet,
    swarm::Frame,
};
use crate::files::{self, TEXT_LIMIT};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Component, Path, PathBuf},
    sync::atomic::AtomicBool,
};

/// The file of a database.
pub(crate) const FILE: &str = "findings.json";
/// The version of its form.
const FORM: u64 = 1;
/// The largest size of the file, in bytes. It has room for a range for each run that showed a finding.
const FILE_LIMIT: u64 = 1 << 30;
/// The number of seeds, from 1 on, whose runs distinguish builds.
const PROBES: u64 = 4;

/// The frame that runs are drawn around.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrameKey {
    /// The scenario, as TOML, with the digests of the files that it names; empty if the whole scenario is drawn.
    pub scenario: String,
    /// The rules, as TOML.
    pub rules: String,
    /// The treatment of signatures; empty if the scenario decides it.
    pub crypto: String,
    pub delegates: Option<u32>,
    pub rounds: Option<u32>,
    /// The runs in which every node is compared with the model.
    pub behaviour: String,
}

/// The program that plays the runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    pub version: String,
    /// A digest of the outcomes of the frame's first runs. It differs between builds that draw or play these runs differently.
    pub runs: String,
}

/// A search: a build's runs in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub frame: FrameKey,
    pub build: Build,
}

/// The seeds of a search that were played.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BuildRuns {
    pub seeds: SeedSet,
    /// The seeds whose runs showed each finding.
    pub found: BTreeMap<Signature, SeedSet>,
}

/// The size of a scenario. The smaller scenario is the better file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    pub nodes: u32,
    pub faults: usize,
    pub actions: usize,
    pub rounds: u32,
}

/// The scenario file of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScenarioFile {
    /// Its name in the folder.
    pub name: String,
    pub size: Size,
    /// The number of runs spent on shrinking it, if candidates were left; `None` if all were tried.
    pub tried: Option<u64>,
}

/// The content of a database for one frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfFrame {
    pub played: BTreeMap<Build, BuildRuns>,
    pub files: BTreeMap<Signature, ScenarioFile>,
}

impl OfFrame {
    /// The findings of all builds, also those that only a file shows. A finding may come several times.
    pub fn findings(&self) -> impl Iterator<Item = &Signature> {
        self.played.values().flat_map(|runs| runs.found.keys()).chain(self.files.keys())
    }
}

/// A database of findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Database {
    pub frames: BTreeMap<FrameKey, OfFrame>,
}

/// The error of a database that cannot be used.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub(crate) enum DatabaseError {
    #[error("{}: cannot be {doing}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{}: is no database of findings: {source}", path.display())]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
}

impl DatabaseError {
    /// Returns true if the caller named the wrong folder.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

impl Place {
    /// Returns the place of a search. Plays its first runs for the digest.
    pub fn of(search: &Search, networks: &Networks) -> Self {
        let Frame { base, rules, crypto, delegates, rounds, behaviour } = &search.frame;
        let outcomes = (1..=PROBES).map(|seed| search.play(seed, networks, &AtomicBool::new(false)));
        let digest = outcomes.fold(Sha256::new(), |digest, outcome| digest.chain_update(format!("{outcome:?}")));
        let frame = FrameKey {
            scenario: base.as_ref().map(|base| base.identity()).unwrap_or_default(),
            rules: rules.to_string(),
            crypto: crypto.map(|crypto| format!("{crypto:?}").to_lowercase()).unwrap_or_default(),
            delegates: *delegates,
            rounds: *rounds,
            behaviour: format!("{behaviour:?}").to_lowercase(),
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { frame, build: Build { version, runs: hex::encode(&digest.finalize()[..8]) } }
    }
}

impl Size {
    /// The size of a finding's scenario.
    pub fn of(minimal: &Minimal) -> Self {
        let scenario = &minimal.scenario;
        Self {
            nodes: scenario.network.nodes(),
            faults: scenario.faults.len(),
            actions: scenario.actions.len(),
            rounds: scenario.rounds,
        }
    }
}

impl Database {
    /// Reads the database of a folder; an empty one, if there is none.
    ///
    /// # Errors
    /// It cannot be read, or its content contradicts itself.
    pub fn load(folder: &Path) -> Result<Self, DatabaseError> {
        let path = folder.join(FILE);
        let text = match files::read_text(&path, FILE_LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(DatabaseError::File { path, doing: "read", source }),
        };
        let form: Form =
            serde_json::from_str(&text).map_err(|source| DatabaseError::Form { path: path.clone(), source })?;
        form.read().map_err(|what| DatabaseError::Content { path, what })
    }

    /// Writes the database into a folder. The file is written under another name first, and then renamed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), DatabaseError> {
        let (path, new) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let text = serde_json::to_string(&Form::of(self)).expect("it is made of what JSON can hold");
        let written =
            fs::create_dir_all(folder).and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| DatabaseError::File { path, doing: "written", source })
    }

    /// Returns the runs that a search has played so far. Replays the first run of each finding, to describe the finding.
    ///
    /// # Errors
    /// A replayed run no longer shows its finding.
    pub fn summary(
        &self,
        folder: &Path,
        place: &Place,
        search: &Search,
        networks: &Networks,
    ) -> Result<Summary, DatabaseError> {
        let mut summary = Summary::default();
        let Some(played) = self.frames.get(&place.frame).and_then(|frame| frame.played.get(&place.build)) else {
            return Ok(summary);
        };
        summary.done = played.seeds.clone();
        for (signature, seeds) in &played.found {
            let Some(first) = seeds.first() else { continue };
            let Some(finding) = shown_again(search, first, signature, networks) else {
                let what = format!(
                    "found '{signature}' in the run of seed {first}, allowed is what this build finds there: the runs are another \
                     build's; choose another folder"
                );
                return Err(DatabaseError::Content { path: folder.join(FILE), what });
            };
            summary.found.insert(signature.clone(), Found { finding, seeds: seeds.clone(), scenario: None });
        }
        Ok(summary)
    }

    /// Stores the runs of a search in place of its earlier ones.
    pub fn take(&mut self, place: &Place, summary: &Summary) {
        let found = summary.found.iter().map(|(signature, found)| (signature.clone(), found.seeds.clone()));
        let played = BuildRuns { seeds: summary.done.clone(), found: found.collect() };
        self.frames.entry(place.frame.clone()).or_default().played.insert(place.build.clone(), played);
    }

    /// Merges databases into an empty folder: all seeds that were played, and the smallest file of each finding.
    ///
    /// # Errors
    /// A folder holds no database, two say different things of one seed, a file of a finding is missing, or `out` is not empty.
    pub fn merge(parts: &[&Path], out: &Path) -> Result<Self, DatabaseError> {
        let in_file = |path: &Path, doing| {
            let path = path.to_path_buf();
            move |source| DatabaseError::File { path, doing, source }
        };
        let content = |path: &Path, what: String| DatabaseError::Content { path: path.to_path_buf(), what };
        let (mut whole, mut texts) = (Self::default(), BTreeMap::new());
        for part in parts {
            if !part.join(FILE).exists() {
                return Err(content(part, format!("found no {FILE}, allowed is a folder of 'dposlab check --for'")));
            }
            let database = Self::load(part)?;
            for (key, frame) in database.frames {
                for (signature, file) in &frame.files {
                    let path = part.join(&file.name);
                    let text = files::read_text(&path, TEXT_LIMIT).map_err(in_file(&path, "read"))?;
                    let candidate = (file.size, text, file.tried);
                    let best = texts.entry((key.clone(), signature.clone())).or_insert_with(|| candidate.clone());
                    if candidate < *best {
                        *best = candidate;
                    }
                }
                let joined = whole.frames.entry(key).or_default();
                for (build, played) in frame.played {
                    joined.played.entry(build).or_default().join(played).map_err(|what| content(part, what))?;
                }
            }
        }
        fs::create_dir_all(out).map_err(in_file(out, "written"))?;
        if fs::read_dir(out).map_err(in_file(out, "read"))?.next().is_some() {
            return Err(content(out, "found files, allowed is an empty folder for the whole".to_owned()));
        }
        let mut names = BTreeSet::new();
        for ((key, signature), (size, text, tried)) in texts {
            // Invariants that differ in signs have one name.
            let mut numbered = (1..).map(|number| file_name(signature.invariant, number));
            let name = numbered.find(|name| names.insert(name.clone())).expect("there are more numbers than findings");
            let path = out.join(&name);
            fs::write(&path, text).map_err(in_file(&path, "written"))?;
            whole.frames.entry(key).or_default().files.insert(signature, ScenarioFile { name, size, tried });
        }
        whole.save(out)?;
        Ok(whole)
    }
}

impl BuildRuns {
    /// Adds the runs of the same search that another process played.
    fn join(&mut self, other: Self) -> Result<(), String> {
        let (none, both) = (SeedSet::default(), self.seeds.common(&other.seeds));
        for signature in self.found.keys().chain(other.found.keys()).collect::<BTreeSet<_>>() {
            let of = |found: &BTreeMap<Signature, SeedSet>| found.get(signature).unwrap_or(&none).common(&both);
            let (here, there) = (of(&self.found), of(&other.found));
            if let Some(seed) = here.first_outside(&there).or_else(|| there.first_outside(&here)) {
                return Err(format!(
                    "found '{signature}' in the run of seed {seed} in one folder and not in another, allowed is the same in both: \
                     the builds play differently"
                ));
            }
        }
        self.seeds.extend(&other.seeds);
        for (signature, seeds) in other.found {
            self.found.entry(signature).or_default().extend(&seeds);
        }
        Ok(())
    }
}

/// The finding of a run that is played again.
fn shown_again(search: &Search, seed: u64, signature: &Signature, networks: &Networks) -> Option<Finding> {
    let findings = search.play(seed, networks, &AtomicBool::new(false)).findings;
    findings.into_iter().find(|finding| finding.signature() == *signature)
}

/// The form of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    form: u64,
    frames: Vec<FrameForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameForm {
    frame: FrameKey,
    searches: Vec<SearchForm>,
    files: Vec<FileForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchForm {
    build: Build,
    seeds: SeedSet,
    found: Vec<FoundForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FoundForm {
    finding: SignatureForm,
    seeds: SeedSet,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    finding: SignatureForm,
    file: String,
    size: Size,
    tried: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureForm {
    invariant: String,
    cause: String,
    certified: bool,
}

impl SignatureForm {
    fn of(signature: &Signature) -> Self {
        let Signature { invariant, cause, is_certified } = signature;
        Self { invariant: (*invariant).to_owned(), cause: cause.clone(), certified: *is_certified }
    }

    fn read(self) -> Signature {
        Signature { invariant: interned(&self.invariant), cause: self.cause, is_certified: self.certified }
    }
}

impl Form {
    fn of(database: &Database) -> Self {
        let found = |played: &BuildRuns| {
            let rows = played.found.iter();
            rows.map(|(signature, seeds)| FoundForm { finding: SignatureForm::of(signature), seeds: seeds.clone() })
                .collect()
        };
        let searches = |frame: &OfFrame| {
            let rows = frame.played.iter();
            rows.map(|(build, played)| SearchForm {
                build: build.clone(),
                seeds: played.seeds.clone(),
                found: found(played),
            })
            .collect()
        };
        let files = |frame: &OfFrame| {
            let row = |(signature, file): (&Signature, &ScenarioFile)| FileForm {
                finding: SignatureForm::of(signature),
                file: file.name.clone(),
                size: file.size,
                tried: file.tried,
            };
            frame.files.iter().map(row).collect()
        };
        let frames = database.frames.iter();
        let frames =
            frames.map(|(key, frame)| FrameForm { frame: key.clone(), searches: searches(frame), files: files(frame) });
        Self { form: FORM, frames: frames.collect() }
    }

    fn read(self) -> Result<Database, String> {
        if self.form != FORM {
            return Err(format!("found form {}, allowed is {FORM}", self.form));
        }
        let mut database = Database::default();
        for FrameForm { frame, searches, files } in self.frames {
            let into = database.frames.entry(frame).or_default();
            for SearchForm { build, seeds, found } in searches {
                let mut played = BuildRuns { seeds, found: BTreeMap::new() };
                for FoundForm { finding, seeds } in found {
                    let signature = finding.read();
                    if let Some(seed) = seeds.first_outside(&played.seeds) {
                        return Err(format!(
                            "found '{signature}' with seed {seed}, allowed are seeds that were played"
                        ));
                    }
                    played.found.entry(signature).or_default().extend(&seeds);
                }
                into.played.entry(build).or_default().join(played)?;
            }
            for FileForm { finding, file, size, tried } in files {
                let mut parts = Path::new(&file).components();
                let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
                if !is_name || file.chars().any(char::is_control) {
                    return Err(format!(
                        "found file '{}', allowed is the name of a file in the folder",
                        files::printable(&file)
                    ));
                }
                into.files.insert(finding.read(), ScenarioFile { name: file, size, tried });
            }
        }
        Ok(database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signature(number: u8) -> Signature {
        // Names of files that the two have in common.
        let invariant = interned(["finally missed == 0", "finally missed <= 0"][usize::from(number) % 2]);
        Signature { invariant, cause: format!("cause {number}"), is_certified: true }
    }

    /// The runs of a build that finds cause `n` in every run whose seed can be divided by n + 2.
    fn played(seeds: Vec<u64>) -> BuildRuns {
        let found = (0..3_u8).map(|number| {
            let shown = seeds.iter().copied().filter(|seed| seed.is_multiple_of(u64::from(number) + 2));
            (signature(number), shown.collect::<SeedSet>())
        });
        BuildRuns { found: found.filter(|(_, seeds)| seeds.count() > 0).collect(), seeds: seeds.into_iter().collect() }
    }

    fn frame(number: u8) -> FrameKey {
        let (empty, rules) = (String::new(), format!("base = \"{number}\"\n"));
        FrameKey {
            scenario: empty.clone(),
            rules,
            crypto: empty.clone(),
            delegates: None,
            rounds: Some(2),
            behaviour: empty,
        }
    }

    /// Writes a database with a file of each finding.
    fn write(folder: &Path, runs: Vec<(u8, u8, Vec<u64>)>, nodes: u32) {
        let mut database = Database::default();
        for (in_frame, build, seeds) in runs {
            let build = Build { version: "1".to_owned(), runs: build.to_string() };
            let into = database.frames.entry(frame(in_frame)).or_default();
            into.played.entry(build).or_default().join(played(seeds)).expect("one build");
        }
        let mut number = 0;
        for of_frame in database.frames.values_mut() {
            let found: BTreeSet<Signature> =
                of_frame.played.values().flat_map(|played| played.found.keys().cloned()).collect();
            for signature in found {
                number += 1;
                let name = format!("{nodes}-{number}.toml");
                fs::write(folder.join(&name), format!("of {nodes} nodes: {signature}")).expect("it can be written");
                let size = Size { nodes: nodes + number % 2, faults: 0, actions: 0, rounds: 0 };
                of_frame.files.insert(signature, ScenarioFile { name, size, tried: None });
            }
        }
        database.save(folder).expect("it can be written");
    }

    /// All files of a folder with their bytes.
    fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
        files
            .map(|file| (file.file_name().to_string_lossy().into_owned(), fs::read(file.path()).expect("bytes")))
            .collect()
    }

    fn merged(parts: &[&Path]) -> tempfile::TempDir {
        let out = tempfile::tempdir().expect("a folder of our own");
        Database::merge(parts, out.path()).expect("one set of builds");
        out
    }

    fn runs() -> impl Strategy<Value = Vec<(u8, u8, Vec<u64>)>> {
        prop::collection::vec((0_u8..2, 0_u8..2, prop::collection::vec(0_u64..40, 0..20)), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn databases_join_to_the_same_bytes_in_any_order(ones in runs(), others in runs(), thirds in runs()) {
            let parts: Vec<tempfile::TempDir> = (0..3).map(|_| tempfile::tempdir().expect("a folder of our own")).collect();
            for (part, (runs, nodes)) in parts.iter().zip([(ones, 3), (others, 4), (thirds, 3)]) {
                write(part.path(), runs, nodes);
            }
            let [a, b, c] = [parts[0].path(), parts[1].path(), parts[2].path()];
            let all = content(merged(&[a, b, c]).path());
            let files = Database::load(merged(&[a, b, c]).path()).expect("its own").frames.into_values().flat_map(|frame| frame.files);
            for (signature, file) in files {
                let text = String::from_utf8_lossy(&all[&file.name]).into_owned();
                prop_assert!(text.ends_with(&signature.to_string()), "{}: {text}", file.name);
            }
            prop_assert_eq!(&content(merged(&[c, a, b]).path()), &all);
            prop_assert_eq!(&content(merged(&[c, merged(&[b, a]).path()]).path()), &all);
            prop_assert_eq!(&content(merged(&[merged(&[a, c]).path(), merged(&[b, c]).path()]).path()), &all);
            let database = Database::load(merged(&[a, b, c]).path()).expect("its own");
            let seeds: u64 = database.frames.values().flat_map(|frame| frame.played.values()).map(|played| played.seeds.count()).sum();
            let each: BTreeSet<(FrameKey, Build, u64)> = parts
                .iter()
                .flat_map(|part| Database::load(part.path()).expect("its own").frames)
                .flat_map(|(key, frame)| frame.played.into_iter().map(move |(build, played)| (key.clone(), build, played)))
                .flat_map(|(key, build, played)| played.seeds.iter().map(|seed| (key.clone(), build.clone(), seed)).collect::<Vec<_>>())
                .collect();
            prop_assert_eq!(seeds, each.len() as u64);
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let [a, b, out] = [(); 3].map(|()| tempfile::tempdir().expect("a folder of our own"));
        write(a.path(), vec![(0, 0, vec![1, 2, 3])], 3);
        write(b.path(), vec![(0, 0, vec![2, 4])], 3);
        let text = fs::read_to_string(b.path().join(FILE)).expect("it is there");
        let refused = |text: &str, allowed: &str| {
            fs::write(b.path().join(FILE), text).expect("it can be written");
            let why = Database::merge(&[a.path(), b.path()], out.path()).expect_err(allowed).to_string();
            assert!(why.contains(allowed) && why.starts_with(&b.path().display().to_string()), "{why}");
            assert!(content(out.path()).is_empty(), "nothing is written");
        };
        refused(&text.replace("\"seeds\":[[2,2],[4,4]]}", "\"seeds\":[[4,4]]}"), "allowed is the same in both");
        refused(&text.replace("\"seeds\":[[2,2],[4,4]]}", "\"seeds\":[[3,4]]}"), "allowed are seeds that were played");
        refused(&text.replace("3-1.toml", "../3-1.toml"), "allowed is the name of a file");
        refused(&text.replace("3-1.toml", "\\u001b[31m.toml"), "allowed is the name of a file");
        let all = "[[0,18446744073709551615]]";
        refused(&text.replace("[[2,2],[4,4]]", all), "allowed is the same in both");
        refused(&text.replace("\"form\":1", "\"form\":2"), "allowed is 1");
        refused(&text.replace("\"form\":1", "\"fo\":1"), "unknown field");
        refused(&text.replace("3-1.toml", "none.toml"), "none.toml: cannot be read");
        fs::write(b.path().join(FILE), &text).expect("it can be written");
        let why = Database::merge(&[a.path(), out.path()], out.path()).expect_err("an empty folder").to_string();
        assert!(why.contains("found no findings.json"), "{why}");
        let why = Database::merge(&[a.path(), b.path()], a.path()).expect_err("a part").to_string();
        assert!(why.contains("allowed is an empty folder"), "{why}");
    }
}
