//! Many runs of one scenario: every seed with every combination of varied values.
//!
//! ```text
//!   Sweep (what to run) ──► engine: a thread a core ──► rows.bin, a place for each run
//!                                                          │ all there, from one process, many, or many machines
//!                                                          ▼
//!                            results: runs.parquet, runs.csv, failures.csv, summary.json, report.html
//! ```
//!
//! Another program may distribute the runs over machines without a common disk: `engine::hand_over` plays some of them, and `handed`
//! converts their rows to lines of text and back.
//!
//! A run's row has its own place in `rows.bin`, guarded by a checksum, so that an interrupted sweep goes on where it was, no run is
//! counted twice, and results are read in one order, independent of the threads that played them. Neither playing nor reading keeps
//! rows in memory.

pub mod columns;
pub(crate) mod distribution;
pub(crate) mod engine;
pub mod handover;
pub(crate) mod indices;
pub(crate) mod measure;
pub(crate) mod pairs;
pub(crate) mod points;
pub(crate) mod results;
pub mod rows;
pub(crate) mod stopping_rule;
pub(crate) mod summary;

use super::{
    bundle,
    provenance::{self, KeptCommand, KeptStudy, Provenance, ProvenanceError, SweepStudy},
};
use crate::{
    files,
    protocol::crypto::sha256,
    scenario::{
        Override, Scenario, ScenarioError, ScenarioFiles, Variation, overrides::OverrideError,
        workload::digests_of_files,
    },
};
use points::Points;
use rows::{Rows, RowsError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

/// The name of the file that describes a sweep, in its folder.
const MANIFEST: &str = "sweep.json";
/// The largest size of that file in bytes. Points take more room there than in the table that they come from.
const MANIFEST_LIMIT: u64 = 256 << 20;
/// The version of that file, and of the content of the digests in it.
const VERSION: u32 = 5;
/// The largest number of runs of a sweep. `rows.bin` then has some 30 gigabytes.
const RUNS_LIMIT: u64 = 100_000_000;
/// The largest number of combinations of varied values. The scenario of each is in memory.
pub const CELLS_LIMIT: u64 = 10_000;
/// The largest number of assertions of a scenario. A row has a bit for each.
const ASSERTIONS_LIMIT: u64 = u64::BITS as u64;
/// The largest number of parts of a sweep.
const SHARDS_LIMIT: u64 = 100_000;

/// The description of a sweep. It is written into the sweep's folder, so that no other sweep continues there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the form.
    pub sweep: u32,
    /// The version of dposlab.
    pub version: String,
    pub scenario: String,
    /// SHA256 of the scenario as it was read, with what it includes and what is set, and of the files that it names.
    pub scenario_digest: String,
    pub seeds: Seeds,
    pub set: Vec<String>,
    /// `path=value,value`, as given.
    pub vary: Vec<String>,
    /// The points of the study, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<Points>,
    /// The part of the sweep that this folder holds, or `None` for all of it.
    pub shard: Option<Shard>,
    /// The columns of a row.
    pub columns: Vec<String>,
}

/// A range of seeds whose end is excluded, such as `0..1000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Seeds {
    pub first: u64,
    pub end: u64,
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once("..") {
            Some((first, end)) => first.parse().ok().zip(end.parse().ok()),
            None => text.parse::<u64>().ok().and_then(|seed| Some((seed, seed.checked_add(1)?))),
        };
        match parsed {
            Some((first, end)) if first < end => Ok(Self { first, end }),
            _ => {
                Err(format!("'{text}' are no seeds: give FIRST..END, such as 0..1000, which is 0 to 999, or one seed"))
            }
        }
    }
}

impl TryFrom<String> for Seeds {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Seeds> for String {
    fn from(seeds: Seeds) -> Self {
        format!("{}..{}", seeds.first, seeds.end)
    }
}

/// One of `of` parts, from 1: it has every `of`-th run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    pub index: u64,
    pub of: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, of)| index.parse().ok().zip(of.parse().ok()));
        match parsed {
            Some((index, of)) if of <= SHARDS_LIMIT && (1..=of).contains(&index) => Ok(Self { index, of }),
            _ => {
                Err(format!("'{text}' is no part: give I/N with I from 1 to N and N up to {SHARDS_LIMIT}, such as 1/8"))
            }
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        format!("{}/{}", shard.index, shard.of)
    }
}

/// A sweep, checked and ready to run.
pub struct Sweep {
    pub manifest: Manifest,
    /// Each combination of varied values.
    pub cells: Vec<Cell>,
    /// The files that the scenario was read from.
    pub files: ScenarioFiles,
    /// How its results are computed.
    pub study: SweepStudy,
    /// The command that plays it, word by word.
    pub command: Vec<String>,
}

/// One combination of varied values; its runs differ in their seeds only.
pub struct Cell {
    /// One for each varied path, in their order.
    pub varied: Vec<Override>,
    /// The values set for all, followed by the varied ones.
    pub sets: Vec<String>,
    pub scenario: Scenario,
}

/// One run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRun {
    /// Its number among the runs of all parts.
    pub run: u64,
    pub cell: usize,
    pub seed: u64,
}

/// The reason why a sweep cannot be run, merged or read.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum SweepError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error("{file}: {why}")]
    Assertion { file: String, why: String },
    #[error("--vary {0}")]
    Vary(OverrideError),
    #[error("--vary {0}: the value is there twice")]
    SameValue(String),
    #[error("{0}: a path is varied once, and neither it nor a part of it is varied or set beside it")]
    Twice(String),
    #[error("--points {0}")]
    Points(#[from] points::PointsError),
    #[error("{point} ({values}): {source}")]
    Point { point: String, values: String, source: ScenarioError },
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: is no sweep's: {why}", file.display())]
    NoManifest { file: PathBuf, why: String },
    #[error("{} holds another sweep: key '{key}': found {found}, this one has {expected}", folder.display())]
    AnotherSweep { folder: PathBuf, key: &'static str, found: String, expected: String },
    #[error("{}: found {found} {what}, allowed are {allowed}", scenario.display())]
    TooMany { scenario: PathBuf, what: &'static str, found: u128, allowed: u64 },
    #[error("{} holds the rows of another sweep, and no {MANIFEST} says which: the command that began it makes that again",
            folder.join("rows.bin").display())]
    UnknownRows { folder: PathBuf },
    #[error("{} holds the rows of another sweep than {MANIFEST} beside it says", folder.join("rows.bin").display())]
    OtherRows { folder: PathBuf },
    #[error("{} is in use by another process", folder.display())]
    InUse { folder: PathBuf },
    #[error("{} lacks {missing} of its {total} runs; the command that began it goes on where it was", folder.display())]
    NotDone { folder: PathBuf, missing: u64, total: u64 },
    #[error("{0}")]
    Parts(String),
    #[error("{}: line {line}: {why}", file.display())]
    Handed { file: PathBuf, line: u64, why: String },
    #[error("{scenario}: found one combination of values, and two or more can be compared: give --vary PATH=VALUE,VALUE")]
    Alone { scenario: String },
    #[error("{scenario}: {why}")]
    NoIndices { scenario: String, why: String },
    #[error("{}: {source}", file.display())]
    NoRows { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(transparent)]
    Sheet(#[from] super::sheet::SheetError),
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
}

impl SweepError {
    /// Returns true if the caller is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Rows(error) => matches!(error.source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound),
            Self::Provenance(error) => error.is_bad_input(),
            other => !matches!(other, Self::Io { .. } | Self::Sheet(_)),
        }
    }
}

impl Sweep {
    /// Reads the scenario with every combination of values: a mistake is found before the first run.
    ///
    /// # Errors
    /// The file is no scenario, or is none with one of the values.
    pub fn new(
        file: &Path,
        seeds: Seeds,
        set: &[Override],
        varied: SweepValues<'_>,
        shard: Option<Shard>,
    ) -> Result<Self, SweepError> {
        Self::of_files(ScenarioFiles::read(file)?, seeds, set, varied, shard)
    }

    /// As [`Sweep::new`], with files that are already read.
    ///
    /// # Errors
    /// As [`Sweep::new`].
    pub fn of_files(
        files: ScenarioFiles,
        seeds: Seeds,
        set: &[Override],
        varied: SweepValues<'_>,
        shard: Option<Shard>,
    ) -> Result<Self, SweepError> {
        let file = &files.file;
        let SweepValues { vary: vary_given, points } = varied;
        let vary: Vec<Variation> =
            vary_given.iter().map(|vary| vary.parse()).collect::<Result<_, _>>().map_err(SweepError::Vary)?;
        let of_points = points.map_or(Ok(vec![Vec::new()]), Points::overrides)?;
        let of_vary = vary.iter().map(|vary| vary.values[0].path());
        let paths: Vec<String> = of_points[0].iter().map(Override::path).chain(of_vary).collect();
        for (index, path) in paths.iter().enumerate() {
            // `set` comes first, so a part of its value may be varied. The other way round `set` would overwrite the varied value.
            let hides_set = set.iter().any(|set| is_within(&set.path(), path));
            if hides_set || paths[..index].iter().any(|other| is_within(path, other) || is_within(other, path)) {
                return Err(SweepError::Twice(path.clone()));
            }
        }
        for one in &vary {
            if let Some(index) = (1..one.values.len())
                .find(|index| one.values[..*index].iter().any(|before| before.is_same(&one.values[*index])))
            {
                return Err(SweepError::SameValue(one.values[index].to_string()));
            }
        }
        let (cells, seeds_each) =
            (vary.iter().map(|vary| vary.values.len() as u128), u128::from(seeds.end - seeds.first));
        let cells = cells.fold(of_points.len() as u128, u128::saturating_mul);
        let counts =
            [("combinations of values", cells, CELLS_LIMIT), ("runs", cells.saturating_mul(seeds_each), RUNS_LIMIT)];
        if let Some((what, found, allowed)) =
            counts.into_iter().find(|(_, found, allowed)| *found > u128::from(*allowed))
        {
            return Err(SweepError::TooMany { scenario: file.clone(), what, found, allowed });
        }
        let base = Scenario::load_from(&files, set);
        let mut cells = Vec::new();
        for (number, point) in (1..).zip(&of_points) {
            for varied in combinations(point, &vary) {
                let overrides: Vec<Override> = set.iter().chain(&varied).cloned().collect();
                let scenario = Scenario::load_from(&files, &overrides).map_err(|source| match points {
                    Some(points) => {
                        SweepError::Point { point: points.place(number), values: in_words(&varied), source }
                    }
                    None => source.into(),
                })?;
                cells.push(Cell { varied, sets: overrides.iter().map(ToString::to_string).collect(), scenario });
            }
        }
        let found = cells.iter().map(|cell| cell.scenario.assertions.len() as u128).max().unwrap_or_default();
        if found > u128::from(ASSERTIONS_LIMIT) {
            let (scenario, what) = (file.clone(), "assertions (key 'assert')");
            return Err(SweepError::TooMany { scenario, what, found, allowed: ASSERTIONS_LIMIT });
        }
        // A scenario may be valid only with a varied value.
        let mut described = format!("{:?}", base.as_ref().unwrap_or(&cells[0].scenario));
        let digests = digests_of_files(cells.iter().map(|cell| &cell.scenario));
        described.push_str(&digests.map_err(|(file, source)| SweepError::Io { file, source })?);
        let manifest = Manifest {
            sweep: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: file.display().to_string(),
            scenario_digest: hex::encode(sha256(described.as_bytes())),
            seeds,
            set: set.iter().map(ToString::to_string).collect(),
            vary: vary_given.to_vec(),
            points: points.cloned(),
            shard,
            columns: columns::names(&cells),
        };
        let study = SweepStudy { scenario: bundle::shown(file), ..SweepStudy::default() };
        let command = Vec::new();
        Ok(Self { manifest, cells, files, study, command })
    }

    /// Opens the sweep of a folder and its rows, for this process alone. Reads the scenario from the folder.
    ///
    /// # Errors
    /// The folder holds no sweep, a file of the scenario is missing or has changed there, the rows are another sweep's, or another process
    /// works there.
    pub fn of(folder: &Path) -> Result<(Self, Rows), SweepError> {
        let file = folder.join(MANIFEST);
        if fs::symlink_metadata(&file).is_err() {
            let why = "there is none; the command that began the sweep makes it again".to_owned();
            return Err(SweepError::NoManifest { file, why });
        }
        let rows = Rows::open(folder, false)?.ok_or_else(|| SweepError::InUse { folder: folder.to_path_buf() })?;
        let manifest = Manifest::read(folder)?;
        if rows.sweep()?.is_some_and(|sweep| sweep != manifest.digest()) {
            return Err(SweepError::OtherRows { folder: folder.to_path_buf() });
        }
        let sweep = Self::described(&manifest, &Provenance::read(folder)?, folder)?;
        manifest.check_same(&sweep.manifest, folder)?;
        Ok((sweep, rows))
    }

    /// The sweep that a folder describes, from the files that it keeps. Its manifest is the one that this program would write.
    ///
    /// # Errors
    /// The folder is not a sweep's, or a file of the scenario is missing or has changed there.
    pub fn described(manifest: &Manifest, provenance: &Provenance, folder: &Path) -> Result<Self, SweepError> {
        let set = manifest.set.iter().map(|set| set.parse()).collect::<Result<Vec<Override>, _>>()?;
        let files = provenance.files(folder)?;
        let KeptStudy::Sweep(study) = &provenance.study else {
            let why = "is of a run, and no sweep's".to_owned();
            return Err(ProvenanceError::Malformed { file: folder.join(provenance::PROVENANCE), why }.into());
        };
        let sweep = Self::of_files(files, manifest.seeds, &set, manifest.varied(), manifest.shard)?;
        Ok(Self { study: study.clone(), ..sweep })
    }

    /// Claims the folder for this sweep and this process, and writes everything that repeats the sweep there. Returns its rows.
    ///
    /// # Errors
    /// As [`Manifest::claim`] and [`Sweep::keep`].
    pub fn claim(&self, folder: &Path) -> Result<Rows, SweepError> {
        let rows = self.manifest.claim(folder)?;
        self.keep(folder, Vec::new())?;
        Ok(rows)
    }

    /// Writes everything that repeats the sweep into its folder. `earlier` are the commands that have played parts of it elsewhere.
    ///
    /// # Errors
    /// A file that the scenario names cannot be read, one cannot be written, or the folder holds a run or a damaged `provenance.json`.
    pub fn keep(&self, folder: &Path, earlier: Vec<KeptCommand>) -> Result<(), SweepError> {
        let before = Provenance::left_in(folder)?;
        let mut study = self.study.clone();
        if let Some(KeptStudy::Sweep(before)) = before.as_ref().map(|before| &before.study) {
            study.max_time |= before.max_time;
        }
        let earlier = [before.map(|before| before.played).unwrap_or_default(), earlier].concat();
        let (study, names) = (KeptStudy::Sweep(study), names_of_files(&self.cells));
        Provenance::keep(folder, study, &self.files, &names, earlier, self.command.clone())?;
        Ok(())
    }

    /// The metadata of the sweep's Parquet files, without the part and with the scenario's name in reports.
    pub(super) fn metadata(&self) -> Vec<(String, String)> {
        let scenario = self.study.scenario.clone();
        let study: Value = json!(Manifest { scenario, shard: None, ..self.manifest.clone() });
        provenance::parquet_metadata(&study, &self.files)
    }

    /// Checks that there are at least two combinations of values to compare.
    ///
    /// # Errors
    /// There is but one.
    pub fn check_compared(&self) -> Result<(), SweepError> {
        match self.cells.len() {
            0 | 1 => Err(SweepError::Alone { scenario: self.manifest.scenario.clone() }),
            _ => Ok(()),
        }
    }

    /// Runs of the whole sweep, all parts together.
    pub fn runs(&self) -> u64 {
        self.cells.len() as u64 * self.seeds_per_cell()
    }

    /// The runs of this part, ascending.
    pub fn places(&self) -> impl Iterator<Item = SweepRun> + Send + use<'_> {
        let (first, step) = self.manifest.shard.map_or((0, 1), |shard| (shard.index - 1, shard.of));
        (first..self.runs()).step_by(usize::try_from(step).unwrap_or(usize::MAX)).map(|run| self.place(run))
    }

    /// The runs of these numbers in all parts. Leaves out numbers that the sweep does not have.
    pub fn places_of(&self, runs: Range<u64>) -> impl Iterator<Item = SweepRun> + Send + use<'_> {
        (runs.start..runs.end.min(self.runs())).map(|run| self.place(run))
    }

    /// Number of runs of this part.
    pub fn len(&self) -> u64 {
        let (first, step) = self.manifest.shard.map_or((0, 1), |shard| (shard.index - 1, shard.of));
        self.runs().saturating_sub(first).div_ceil(step)
    }

    /// Returns true if this part has no runs: there are more parts than runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The runs of this part with a place below `written` in `rows.bin`, by their places.
    pub fn places_by_row(&self, written: u64) -> Box<dyn Iterator<Item = SweepRun> + Send + '_> {
        if self.manifest.shard.is_some() {
            return Box::new(self.places().take_while(move |place| self.row_of(*place) < written));
        }
        let (cells, seeds) = (self.cells.len() as u64, self.seeds_per_cell());
        Box::new((0..written.min(self.runs())).map(move |row| self.place(row % cells * seeds + row / cells)))
    }

    /// Returns the row of a run of this part. In a whole sweep the runs of a seed follow each other, so that further seeds move no row.
    pub fn row_of(&self, place: SweepRun) -> u64 {
        match self.manifest.shard {
            Some(shard) => place.run / shard.of,
            None => (place.seed - self.manifest.seeds.first) * self.cells.len() as u64 + place.cell as u64,
        }
    }

    /// Reduces the sweep to its first `seeds` seeds.
    pub fn end_after(&mut self, seeds: u64) {
        self.manifest.seeds.end = self.manifest.seeds.first + seeds;
    }

    /// The command that repeats a run.
    pub fn command(&self, place: SweepRun) -> String {
        bundle::command(&self.manifest.scenario, place.seed, &self.cells[place.cell].sets)
    }

    /// Returns the run of this number.
    fn place(&self, run: u64) -> SweepRun {
        let seeds = self.seeds_per_cell();
        SweepRun { run, cell: (run / seeds) as usize, seed: self.manifest.seeds.first + run % seeds }
    }

    fn seeds_per_cell(&self) -> u64 {
        let Range { start, end } = self.manifest.seeds.first..self.manifest.seeds.end;
        end - start
    }
}

/// The varied values of a sweep: those of each point, with every combination of the values of each path.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepValues<'a> {
    /// `path=value,value`, one for each path.
    pub vary: &'a [String],
    pub points: Option<&'a Points>,
}

impl Manifest {
    /// Returns the varied values.
    pub fn varied(&self) -> SweepValues<'_> {
        SweepValues { vary: &self.vary, points: self.points.as_ref() }
    }

    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// There is none, or it is of another version.
    pub fn read(folder: &Path) -> Result<Self, SweepError> {
        let file = folder.join(MANIFEST);
        let no_manifest = |why: String| SweepError::NoManifest { file: file.clone(), why };
        let text = files::read_text(&file, MANIFEST_LIMIT).map_err(|why| no_manifest(why.to_string()))?;
        serde_json::from_str(&text).map_err(|why| no_manifest(why.to_string()))
    }

    /// Claims the folder for this sweep and this process, and returns its rows. A sweep that was begun there must be this one, or this
    /// one with fewer seeds. A lost manifest is written again if the rows are this sweep's.
    ///
    /// # Errors
    /// The folder holds another sweep or files of another program, another process works there, or the folder cannot be written to.
    pub fn claim(&self, folder: &Path) -> Result<Rows, SweepError> {
        // Rows show that the results beside them are a sweep's.
        if fs::symlink_metadata(folder.join(rows::NAME)).is_err() {
            Provenance::refuse_foreign(folder, &results::RESULTS)?;
        }
        let io = |source| SweepError::Io { file: folder.to_path_buf(), source };
        fs::create_dir_all(folder).map_err(io)?;
        // The lock comes first: of two processes that begin at once, one finds the other's files, or finds it at work.
        let rows = Rows::open(folder, true)?.ok_or_else(|| SweepError::InUse { folder: folder.to_path_buf() })?;
        let is_told = fs::symlink_metadata(folder.join(MANIFEST)).is_ok();
        let before = if is_told { Some(Self::read(folder)?) } else { None };
        if let Some(before) = &before {
            before.check_goes_on(self, folder)?;
        }
        let bound = rows.sweep()?;
        match (bound, is_told) {
            (Some(sweep), true) if sweep != self.digest() => {
                Err(SweepError::OtherRows { folder: folder.to_path_buf() })
            }
            (Some(sweep), false) if sweep != self.digest() => {
                Err(SweepError::UnknownRows { folder: folder.to_path_buf() })
            }
            _ => {
                if before.is_none_or(|before| before.seeds != self.seeds) {
                    super::sheet::write_whole(&folder.join(MANIFEST), bundle::pretty(self).as_bytes())?;
                }
                if bound.is_none() {
                    rows.bind(self.digest())?;
                }
                Ok(rows)
            }
        }
    }

    /// Returns the mark of rows that are handed from one machine to another: 64 hexadecimal digits that depend neither
    /// on the folder of the scenario's file nor on the part.
    pub fn of_rows(&self) -> String {
        hex::encode(Self { scenario: String::new(), shard: None, ..self.clone() }.hash())
    }

    /// Returns the digest that marks the rows of this sweep. The rows of a whole sweep are also those of the same sweep with further seeds.
    fn digest(&self) -> [u8; 32] {
        let end = if self.shard.is_none() { u64::MAX } else { self.seeds.end };
        Self { seeds: Seeds { end, ..self.seeds }, ..self.clone() }.hash()
    }

    fn hash(&self) -> [u8; 32] {
        sha256(&serde_json::to_vec(self).expect("it is made of what JSON can hold"))
    }

    /// Checks that another manifest describes this sweep, or this sweep with further seeds. Only a whole sweep accepts these: in a part
    /// they would change the numbers of its runs.
    ///
    /// # Errors
    /// It does not: the first key in which they differ.
    fn check_goes_on(&self, next: &Self, folder: &Path) -> Result<(), SweepError> {
        let has_more = self.seeds.first == next.seeds.first && self.seeds.end < next.seeds.end;
        match has_more && self.shard.is_none() {
            true => Self { seeds: next.seeds, ..self.clone() }.check_same(next, folder),
            false => self.check_same(next, folder),
        }
    }

    /// Checks that two describe one sweep.
    ///
    /// # Errors
    /// They do not: the first key in which they differ.
    pub fn check_same(&self, expected: &Self, folder: &Path) -> Result<(), SweepError> {
        let text = |manifest: &Self| {
            let shard = manifest.shard.map_or("none".to_owned(), String::from);
            [
                ("sweep", manifest.sweep.to_string()),
                ("version", manifest.version.clone()),
                ("scenario", manifest.scenario.clone()),
                ("scenario_digest", manifest.scenario_digest.clone()),
                ("seeds", manifest.seeds.into()),
                ("set", manifest.set.join(" ")),
                ("vary", manifest.vary.join(" ")),
                ("points", manifest.points.as_ref().map_or("none".to_owned(), Points::in_words)),
                ("shard", shard),
                ("columns", manifest.columns.join(",")),
            ]
        };
        for ((key, found), (_, expected)) in text(self).into_iter().zip(text(expected)) {
            if found != expected {
                return Err(SweepError::AnotherSweep { folder: folder.to_path_buf(), key, found, expected });
            }
        }
        Ok(())
    }
}

/// The names of the files that the scenarios name.
fn names_of_files(cells: &[Cell]) -> BTreeSet<&str> {
    cells.iter().flat_map(|cell| cell.scenario.files()).collect()
}

/// Returns true if `path` is `other`, or leads to a value inside it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn in_words(varied: &[Override]) -> String {
    varied.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// All combinations with the values of a point, the last path running fastest.
fn combinations(point: &[Override], vary: &[Variation]) -> Vec<Vec<Override>> {
    vary.iter().fold(vec![point.to_vec()], |so_far, variation| {
        let each = so_far.iter().flat_map(|before| {
            variation.values.iter().map(|value| before.iter().cloned().chain([value.clone()]).collect())
        });
        each.collect()
    })
}
