//! The provenance of an output: everything that a folder holds so that a study can be repeated from it alone.
//!
//! ```text
//!   provenance.json          commands and programs that played it; which file of scenario/ is which
//!   scenario/                the scenario, the files that it includes and those that it names, byte for byte
//!   ro-crate-metadata.json   the folder as an RO-Crate, for archives
//! ```
//!
//! `provenance.json` and the RO-Crate differ by machine, folder and day. Everything else in a folder is a function of the study, but for
//! the entry of the Parquet files' metadata that names the program.

pub(crate) mod compare;
pub(crate) mod metadata;

use super::sheet::{SheetError, write_whole};
use crate::{
    files::{self, CHAIN_LIMIT, TEXT_LIMIT},
    protocol::crypto::sha256,
    report::bundle::pretty,
    scenario::ScenarioFiles,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The name of the file with the provenance of a folder.
pub(crate) const PROVENANCE: &str = "provenance.json";
/// The folder of the scenario's files.
const KEPT: &str = "scenario";
/// The version of the form.
const FORM: u64 = 1;
/// The largest length of a copy's name in bytes. It leaves room for a number and `.part`.
const NAME_LIMIT: usize = 200;

/// A build of the program. Everything but the version comes from the build's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub version: String,
    /// The commit of its sources, with `-dirty` where they were changed; `unknown` in a build without optimisation and where git was
    /// not there.
    pub commit: String,
    /// `debug` or `release`.
    pub profile: String,
    /// The compiler's level of optimisation: `0` to `3`, `s` or `z`.
    pub optimisation: String,
    /// The target that it was compiled for, such as `x86_64-unknown-linux-gnu`.
    pub target: String,
}

/// A program with its name, for files that are handed on alone.
#[derive(Serialize)]
struct NamedProgram {
    name: &'static str,
    #[serde(flatten)]
    program: Program,
}

impl Program {
    /// The running program.
    pub fn this() -> Self {
        let known = |value: Option<&str>| value.unwrap_or("unknown").to_owned();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: known(option_env!("DPOSLAB_BUILT_COMMIT")),
            profile: known(option_env!("DPOSLAB_BUILT_PROFILE")),
            optimisation: known(option_env!("DPOSLAB_BUILT_OPTIMISATION")),
            target: known(option_env!("DPOSLAB_BUILT_TARGET")),
        }
    }

    /// Describes the program, such as `0.1.0 (commit 1f2e3d, release, x86_64-unknown-linux-gnu)`.
    pub fn in_words(&self) -> String {
        format!("{} (commit {}, {}, {})", self.version, self.commit, self.profile, self.target)
    }
}

/// A command that wrote into a folder, and its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCommand {
    /// The words of the command line, as given.
    pub command: Vec<String>,
    pub program: Program,
}

/// A file of the scenario: the path by which it was read, its copy, and the digest of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptFile {
    pub path: String,
    /// The path of the copy below the folder.
    pub kept: String,
    pub sha256: String,
}

/// The part of a study that no other file of the folder records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum KeptStudy {
    Run(RunStudy),
    /// A sweep. `sweep.json` records the rest.
    Sweep(SweepStudy),
}

impl KeptStudy {
    /// The kinds of two studies, if they differ.
    fn differs(&self, other: &Self) -> Option<(&'static str, &'static str)> {
        match (self, other) {
            (Self::Run(_), Self::Sweep(_)) => Some(("run", "sweep")),
            (Self::Sweep(_), Self::Run(_)) => Some(("sweep", "run")),
            (Self::Run(_), Self::Run(_)) | (Self::Sweep(_), Self::Sweep(_)) => None,
        }
    }
}

/// The run of a scenario, and the outputs that it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStudy {
    /// The scenario's name in the outputs.
    pub scenario: String,
    pub seed: u64,
    /// Values set beside the scenario's, as `path=value`.
    pub set: Vec<String>,
    /// True if `events.jsonl` contains messages.
    pub trace_network: bool,
    /// Outputs that were not wanted.
    pub without: Vec<String>,
}

/// How the results of a sweep were computed from its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepStudy {
    /// The scenario's name in the outputs.
    pub scenario: String,
    /// True if combinations of values were compared.
    pub compare: bool,
    /// The mean by which it ended, as `FIGURE<WIDTH`.
    pub until_ci: Option<String>,
    /// True if the real time could end runs. A repetition of such a run ends elsewhere.
    pub max_time: bool,
}

/// `provenance.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The version of the form.
    provenance: u64,
    pub study: KeptStudy,
    /// The scenario's own file first, then those that it includes.
    pub scenario: Vec<KeptFile>,
    /// The files that it names.
    pub named: Vec<KeptFile>,
    /// The commands that wrote into the folder, the last one last. Each program has one earlier command at most.
    pub played: Vec<KeptCommand>,
}

/// The files that show that a study has ended.
const SUMMARIES: [&str; 2] = ["summary.json", metadata::CRATE];

/// The reason why the provenance of a folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ProvenanceError {
    #[error("{}: cannot be read: {source}", file.display())]
    Unread { file: PathBuf, source: io::Error },
    #[error("{}: {why}", file.display())]
    Malformed { file: PathBuf, why: String },
    #[error("{}: found SHA256 {found}, allowed is {allowed}, that of the file that the study was played with", file.display())]
    Changed { file: PathBuf, found: String, allowed: String },
    #[error("{}: {source}", file.display())]
    Unwritten { file: PathBuf, source: io::Error },
    #[error("{}: found a file that no study has left there, allowed is a folder without one: give another --out", file.display())]
    Foreign { file: PathBuf },
    #[error("{}: found the study of a {found}, allowed is that of a {allowed}: give another --out", folder.display())]
    OtherKind { folder: PathBuf, found: &'static str, allowed: &'static str },
    #[error(transparent)]
    Sheet(#[from] SheetError),
}

impl ProvenanceError {
    /// Returns true if the caller is at fault.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Unwritten { .. } | Self::Sheet(_))
    }
}

impl Provenance {
    /// Writes everything that repeats a study into a folder: the scenario's files, the files of these names, and `provenance.json`.
    /// `earlier` are the commands that wrote into the folder before. Removes the summary and the description of an earlier study: until
    /// this one has ended, the folder holds no result. `names` are the files that the scenario names.
    ///
    /// # Errors
    /// A file that the scenario names cannot be read, a file cannot be written, or the folder holds another kind of study, a
    /// `provenance.json` that is none, or other files under the names of the scenario's.
    pub fn keep(
        folder: &Path,
        study: KeptStudy,
        files: &ScenarioFiles,
        names: &BTreeSet<&str>,
        earlier: Vec<KeptCommand>,
        command: Vec<String>,
    ) -> Result<Self, ProvenanceError> {
        let before = Self::left_in(folder)?;
        if let Some((found, allowed)) = before.as_ref().and_then(|before| before.study.differs(&study)) {
            return Err(ProvenanceError::OtherKind { folder: folder.to_path_buf(), found, allowed });
        }
        let is_ours = before.is_some();
        let into = folder.join(KEPT);
        fs::create_dir_all(&into).map_err(|source| ProvenanceError::Unwritten { file: into, source })?;
        for name in SUMMARIES {
            match fs::remove_file(folder.join(name)) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(ProvenanceError::Unwritten { file: folder.join(name), source });
                }
                _ => {}
            }
        }
        let mut taken = BTreeSet::new();
        let mut keep = |path: &Path, bytes: &[u8]| -> Result<KeptFile, ProvenanceError> {
            let kept = format!("{KEPT}/{}", own_name(path, &mut taken));
            let file = folder.join(&kept);
            if !is_ours && fs::read(&file).is_ok_and(|found| found != bytes) {
                return Err(ProvenanceError::Foreign { file });
            }
            write_whole(&file, bytes)?;
            Ok(KeptFile { path: path.display().to_string(), kept, sha256: hex::encode(sha256(bytes)) })
        };
        let scenario = files.texts().map(|(path, text)| keep(path, text.as_bytes())).collect::<Result<_, _>>()?;
        let of_name = |name: &&str| {
            let file = files.place(name);
            let bytes = files::read(file, CHAIN_LIMIT)
                .map_err(|source| ProvenanceError::Unread { file: file.to_path_buf(), source })?;
            keep(Path::new(name), &bytes)
        };
        let named = names.iter().map(of_name).collect::<Result<_, _>>()?;
        let mut played = earlier;
        let mut programs: Vec<Program> = Vec::new();
        played.retain(|before| {
            let is_new = !programs.contains(&before.program);
            programs.push(before.program.clone());
            is_new
        });
        let now = KeptCommand { command, program: Program::this() };
        played.retain(|before| *before != now);
        played.push(now);
        let provenance = Self { provenance: FORM, study, scenario, named, played };
        write_whole(&folder.join(PROVENANCE), pretty(&provenance).as_bytes())?;
        Ok(provenance)
    }

    /// Reads the provenance of a folder.
    ///
    /// # Errors
    /// There is none, or it is of another form.
    pub fn read(folder: &Path) -> Result<Self, ProvenanceError> {
        let file = folder.join(PROVENANCE);
        let text = files::read_text(&file, TEXT_LIMIT)
            .map_err(|source| ProvenanceError::Unread { file: file.clone(), source })?;
        let malformed = |why: String| ProvenanceError::Malformed { file: file.clone(), why };
        let value: Value = serde_json::from_str(&text).map_err(|why| malformed(why.to_string()))?;
        let form = &value["provenance"];
        if *form != json!(FORM) {
            return Err(malformed(format!("key 'provenance': found {form}, allowed is {FORM}")));
        }
        let read: Self = serde_json::from_value(value).map_err(|why| malformed(why.to_string()))?;
        let kept = read.scenario.iter().chain(&read.named);
        if let Some(outside) = kept.map(|file| &file.kept).find(|kept| !is_kept(kept)) {
            return Err(malformed(format!("key 'kept': found '{outside}', allowed is {KEPT}/NAME")));
        }
        match read.scenario.is_empty() || read.played.is_empty() {
            true => {
                Err(malformed("keys 'scenario' and 'played': found an empty list, allowed is one entry or more".into()))
            }
            false => Ok(read),
        }
    }

    /// The provenance that a study left in a folder; `None` without a `provenance.json`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn left_in(folder: &Path) -> Result<Option<Self>, ProvenanceError> {
        match fs::symlink_metadata(folder.join(PROVENANCE)) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::read(folder).map(Some),
        }
    }

    /// Checks that a study which writes these files replaces none that another program left.
    ///
    /// # Errors
    /// One of them, or a summary, has content, and there is no `provenance.json` beside it.
    pub fn refuse_foreign(folder: &Path, outputs: &[&str]) -> Result<(), ProvenanceError> {
        let is_filled =
            |name: &&&str| fs::metadata(folder.join(name)).is_ok_and(|found| found.is_file() && found.len() > 0);
        let is_ours = fs::symlink_metadata(folder.join(PROVENANCE)).is_ok();
        match outputs.iter().chain(&SUMMARIES).find(is_filled) {
            Some(name) if !is_ours => Err(ProvenanceError::Foreign { file: folder.join(name) }),
            _ => Ok(()),
        }
    }

    /// The programs that wrote into the folder, the last one last.
    pub fn programs(&self) -> impl DoubleEndedIterator<Item = &Program> {
        self.played.iter().map(|played| &played.program)
    }

    /// The files of the scenario, as they were kept in the folder.
    ///
    /// # Errors
    /// A file is missing or has changed.
    pub fn files(&self, folder: &Path) -> Result<ScenarioFiles, ProvenanceError> {
        let bytes = |kept: &KeptFile, limit| {
            let file = folder.join(&kept.kept);
            let bytes =
                files::read(&file, limit).map_err(|source| ProvenanceError::Unread { file: file.clone(), source })?;
            let found = hex::encode(sha256(&bytes));
            match found == kept.sha256 {
                true => Ok((file, bytes)),
                false => Err(ProvenanceError::Changed { file, found, allowed: kept.sha256.clone() }),
            }
        };
        let mut texts = BTreeMap::new();
        for kept in &self.scenario {
            let (file, bytes) = bytes(kept, TEXT_LIMIT)?;
            let text = String::from_utf8(bytes).map_err(|why| ProvenanceError::Unread {
                file,
                source: io::Error::new(io::ErrorKind::InvalidData, why),
            })?;
            texts.insert(PathBuf::from(&kept.path), text);
        }
        let mut copies = BTreeMap::new();
        for kept in &self.named {
            copies.insert(kept.path.clone(), bytes(kept, CHAIN_LIMIT)?.0);
        }
        Ok(ScenarioFiles::kept(PathBuf::from(&self.scenario[0].path), texts, copies))
    }
}

/// The key of the metadata of Parquet files that names the program.
pub(crate) const PROGRAM_KEY: &str = "dposlab.program";

/// The metadata of a study's Parquet files: the study, the texts of the scenario by the names of their copies, and the program that
/// writes the files. The program is the only entry that does not follow from the study.
pub(crate) fn parquet_metadata(study: &Value, files: &ScenarioFiles) -> Vec<(String, String)> {
    let mut taken = BTreeSet::new();
    let texts: BTreeMap<String, &str> =
        files.texts().map(|(path, text)| (format!("{KEPT}/{}", own_name(path, &mut taken)), text)).collect();
    let program = NamedProgram { name: env!("CARGO_PKG_NAME"), program: Program::this() };
    let entries = [("dposlab.study", study.clone()), ("dposlab.scenario", json!(texts)), (PROGRAM_KEY, json!(program))];
    entries.map(|(key, value)| (key.to_owned(), value.to_string())).to_vec()
}

/// A name for the copy of a file. It differs from the names of other copies and of files that are still being written ([`write_whole`]).
fn own_name(path: &Path, taken: &mut BTreeSet<String>) -> String {
    let name = path.file_name().map_or("scenario.toml".into(), |name| name.to_string_lossy());
    let name: String = name.chars().map(|letter| if letter.is_control() { '_' } else { letter }).collect();
    let name = name[..name.floor_char_boundary(NAME_LIMIT)].to_owned();
    let numbered = (2..).map(|number| format!("{number}-{name}"));
    let is_free = |name: &String| {
        let unfinished = [format!("{name}.part"), name.strip_suffix(".part").unwrap_or(name).to_owned()];
        !taken.contains(name) && unfinished.iter().all(|other| !taken.contains(other))
    };
    let own = [name.clone()].into_iter().chain(numbered).find(is_free);
    let own = own.expect("numbers do not end");
    taken.insert(own.clone());
    own
}

/// Returns true if a path leads to a file of the folder of copies.
fn is_kept(kept: &str) -> bool {
    let steps: Vec<Component<'_>> = Path::new(kept).components().collect();
    matches!(steps[..], [Component::Normal(folder), Component::Normal(_)] if folder == KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_is_written_through_the_name_of_another() {
        let mut taken = BTreeSet::new();
        let mut name = |path: &str| own_name(Path::new(path), &mut taken);
        assert_eq!((name("a/c.part"), name("b/c"), name("c.part")), ("c.part".into(), "2-c".into(), "3-c.part".into()));
        assert_eq!((name("d"), name("e/d"), name("d.part")), ("d".into(), "2-d".into(), "3-d.part".into()));
        let long = name(&"\u{e9}".repeat(120));
        assert_eq!(long.len(), NAME_LIMIT);
        assert_eq!(name("a\nb"), "a_b");
    }
}
