//! The progress of a search that is ended by time, in a file, so that the same command continues it.
//!
//! The file is written anew after each run, under another name first. A process that ends loses only the runs that it was
//! playing. The file holds counts. To find the text of a finding again, the search plays its run again.

use super::{
    Finding, Signature,
    finding::interned,
    search::{Done, Found, Networks, Search, Summary},
};
use crate::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

/// The file in the folder of a search's findings.
const FILE: &str = "search.json";
/// Bytes it can have: a range for each run that was done out of order, and a row for each cause.
const FILE_LIMIT: u64 = 1 << 30;

/// The identity of a search. The counts of searches with different ones must not be added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The version of dposlab.
    pub version: String,
    /// The subject of the search: the scenario that runs are drawn around, rules, signatures, delegates, rounds.
    pub frame: String,
    /// The seed of the first run.
    pub seed: u64,
    /// A digest of what came of the first run: other code draws or plays it differently.
    pub first_run: String,
}

/// A search so far, and what belongs to its findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    pub summary: Summary,
    /// The scenario files of findings that have one, by name in the folder.
    pub files: BTreeMap<Signature, String>,
}

/// The form of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    guard: Guard,
    runs: u64,
    done: Done,
    slots: u64,
    delivered: u64,
    sometimes: BTreeMap<String, u64>,
    broken: BTreeMap<String, u64>,
    found: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    invariant: String,
    cause: String,
    certified: bool,
    runs: u64,
    index: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// The error of a search that cannot go on, or cannot be kept.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum KeptError {
    #[error("{}: cannot be {doing}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{}: is no search of this version of dposlab: {source}", path.display())]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("{}: holds another search: found {what} {found}, allowed is {allowed}; choose another folder with --out", path.display())]
    Other { path: PathBuf, what: &'static str, found: String, allowed: String },
}

impl KeptError {
    /// Returns true if the caller named the wrong folder.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

impl Guard {
    /// Returns the guard of a search; plays its first run.
    pub fn of(search: &Search, networks: &Networks) -> Self {
        let frame = &search.frame;
        let base = frame.base.as_ref().map(|base| base.to_toml()).unwrap_or_default();
        let drawn = (frame.crypto, frame.delegates, frame.rounds, frame.behaviour);
        let words = format!("{base:?} {:?} {drawn:?}", frame.rules);
        let first = search.play(0, networks, &AtomicBool::new(false));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            frame: words,
            seed: search.seed,
            first_run: hex::encode(&Sha256::digest(format!("{first:?}"))[..8]),
        }
    }

    fn allows(&self, found: &Self, path: &Path) -> Result<(), KeptError> {
        let seeds = (found.seed.to_string(), self.seed.to_string());
        let parts = [
            ("version", &found.version, &self.version),
            ("frame", &found.frame, &self.frame),
            ("first seed", &seeds.0, &seeds.1),
            ("first run", &found.first_run, &self.first_run),
        ];
        match parts.into_iter().find(|(_, found, allowed)| found != allowed) {
            None => Ok(()),
            Some((what, found, allowed)) => {
                let (found, allowed) = (found.clone(), allowed.clone());
                Err(KeptError::Other { path: path.to_path_buf(), what, found, allowed })
            }
        }
    }
}

impl Kept {
    /// Reads the progress that a folder keeps of a search; nothing, if it keeps none.
    ///
    /// # Errors
    /// It cannot be read, or it is another search's.
    pub fn load(folder: &Path, guard: &Guard, search: &Search, networks: &Networks) -> Result<Self, KeptError> {
        let path = folder.join(FILE);
        let text = match files::read_text(&path, FILE_LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(KeptError::File { path, doing: "read", source }),
        };
        let form: Form =
            serde_json::from_str(&text).map_err(|source| KeptError::Form { path: path.clone(), source })?;
        guard.allows(&form.guard, &path)?;
        let mut kept = Self::default();
        let Summary { runs, done, slots, delivered, sometimes, broken, found } = &mut kept.summary;
        (*runs, *done, *slots, *delivered) = (form.runs, form.done, form.slots, form.delivered);
        *sometimes = form.sometimes.iter().map(|(what, count)| (interned(what), *count)).collect();
        *broken = form.broken.iter().map(|(what, count)| (interned(what), *count)).collect();
        for row in form.found {
            let signature =
                Signature { invariant: interned(&row.invariant), cause: row.cause, is_certified: row.certified };
            let Some(finding) = shown_again(search, row.index, &signature, networks) else {
                let (found, allowed) = (signature.to_string(), format!("what run {} shows", row.index));
                return Err(KeptError::Other { path, what: "finding", found, allowed });
            };
            kept.files.extend(row.file.map(|file| (signature.clone(), file)));
            found.insert(signature, Found { finding, index: row.index, runs: row.runs });
        }
        Ok(kept)
    }

    /// Writes it into the folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(
        folder: &Path,
        guard: &Guard,
        summary: &Summary,
        files: &BTreeMap<Signature, String>,
    ) -> Result<(), KeptError> {
        let row = |(signature, found): (&Signature, &Found)| Row {
            invariant: signature.invariant.to_owned(),
            cause: signature.cause.clone(),
            certified: signature.is_certified,
            runs: found.runs,
            index: found.index,
            file: files.get(signature).cloned(),
        };
        let form = Form {
            guard: guard.clone(),
            runs: summary.runs,
            done: summary.done.clone(),
            slots: summary.slots,
            delivered: summary.delivered,
            sometimes: summary.sometimes.all().map(|(what, count)| (what.to_owned(), count)).collect(),
            broken: summary.broken.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect(),
            found: summary.found.iter().map(row).collect(),
        };
        let (path, new) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let text = serde_json::to_string(&form).expect("it is made of what JSON can hold");
        let written =
            fs::create_dir_all(folder).and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| KeptError::File { path, doing: "written", source })
    }
}

/// The finding of a run that is played again.
fn shown_again(search: &Search, index: u64, signature: &Signature, networks: &Networks) -> Option<Finding> {
    let findings = search.play(index, networks, &AtomicBool::new(false)).findings;
    findings.into_iter().find(|finding| finding.signature() == *signature)
}
