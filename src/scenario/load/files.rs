//! The files of a scenario, read once, so that a study can keep copies of them and be played from these.

use super::sources::Sources;
use crate::scenario::{Scenario, ScenarioError, mistake::Mistake};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The texts of a scenario, and the places of the files that it names.
#[derive(Clone, Debug)]
pub struct ScenarioFiles {
    /// Its own file.
    pub file: PathBuf,
    /// The texts by path, as the caller or the including file names it.
    pub(super) texts: BTreeMap<PathBuf, String>,
    /// Copies of the files that it names, by name. `None` if the original files are read.
    copies: Option<BTreeMap<String, PathBuf>>,
}

impl ScenarioFiles {
    /// Reads a file and those that it includes.
    ///
    /// # Errors
    /// A file cannot be read or is not TOML.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        let mut sources = Sources::default();
        sources.read(file, None)?;
        Ok(Self { file: file.to_path_buf(), texts: sources.into_texts().into_iter().collect(), copies: None })
    }

    /// The kept files: texts by path, and copies of the files that the scenario names, by name. It may name no others.
    pub fn kept(file: PathBuf, texts: BTreeMap<PathBuf, String>, copies: BTreeMap<String, PathBuf>) -> Self {
        Self { file, texts, copies: Some(copies) }
    }

    /// Each text by its path: the scenario's own first, then those that it includes by path.
    pub fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        let own = self.texts.get_key_value(&self.file);
        let others = self.texts.iter().filter(|(path, _)| **path != self.file);
        own.into_iter().chain(others).map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// The path from which a file is read that the scenario names.
    pub fn place<'a>(&'a self, name: &'a str) -> &'a Path {
        self.copies.as_ref().and_then(|copies| copies.get(name)).map_or(Path::new(name), PathBuf::as_path)
    }

    /// Redirects the files that a scenario names to their copies.
    pub(super) fn redirect(&self, scenario: &mut Scenario) -> Result<(), Mistake> {
        let Some(copies) = &self.copies else { return Ok(()) };
        for (index, workload) in scenario.workloads.iter_mut().enumerate() {
            let Some(file) = workload.kind.file() else { continue };
            let copy = copies.get(file).cloned().ok_or_else(|| Mistake {
                key: format!("workload[{index}].file"),
                found: format!("'{file}'"),
                allowed: "a file that the study has kept".to_owned(),
            })?;
            workload.kind.read_copy(copy);
        }
        Ok(())
    }
}
