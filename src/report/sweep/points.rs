//! The points of a study: a table of values with a row for each point. `dposlab points` draws such tables, and so may other programs.

use super::CELLS_LIMIT;
use crate::{
    files::{self, TEXT_LIMIT},
    protocol::crypto::sha256,
    scenario::{Override, overrides::OverrideError},
    statistics::design::DIMENSIONS_LIMIT,
};
use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A path for each column, and a value for each path in every row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    pub paths: Vec<String>,
    /// At least one; each has a value for each path, written as in `PATH=VALUE`.
    pub rows: Vec<Vec<String>>,
    /// The line of each row, if they were read from a file.
    #[serde(skip)]
    pub lines: Vec<u64>,
}

/// The reason why a file has no points.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum PointsError {
    #[error("{}: {source}", file.display())]
    Unread { file: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    NoTable { file: PathBuf, source: csv::Error },
    #[error("{}: found no point, allowed are a line of paths and a line for each point below it", file.display())]
    None { file: PathBuf },
    #[error("{}: line {line}: column '{path}' is empty, allowed is a value", file.display())]
    NoValue { file: PathBuf, line: u64, path: String },
    #[error("{}: found {found} paths, allowed are {DIMENSIONS_LIMIT}", file.display())]
    Wide { file: PathBuf, found: usize },
    #[error("{}: found more points than the {CELLS_LIMIT} that are allowed", file.display())]
    Long { file: PathBuf },
    #[error("found a row of {found} values, allowed are {allowed}")]
    Ragged { found: usize, allowed: usize },
    #[error("{0}")]
    Override(#[from] OverrideError),
}

/// The number of a row's line. The position of the row includes the empty lines before it.
fn line_of(text: &str, row: &StringRecord) -> u64 {
    let Some(at) = row.position() else { return 1 };
    let after = &text[at.byte() as usize..];
    let empty = &after[..after.len() - after.trim_start_matches(['\r', '\n']).len()];
    at.line() + empty.matches('\n').count() as u64
}

impl Points {
    /// Reads a CSV file: paths in its first line, and a point in each other one.
    ///
    /// # Errors
    /// The file cannot be read, is no table, or a value is missing.
    pub fn read(file: &Path) -> Result<Self, PointsError> {
        let text = files::read_text(file, TEXT_LIMIT)
            .map_err(|source| PointsError::Unread { file: file.to_path_buf(), source })?;
        let no_table = |source| PointsError::NoTable { file: file.to_path_buf(), source };
        let words = |record: &StringRecord| record.iter().map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        let mut reader = ReaderBuilder::new().from_reader(text.as_bytes());
        let paths = words(reader.headers().map_err(no_table)?);
        if paths.len() > DIMENSIONS_LIMIT {
            return Err(PointsError::Wide { file: file.to_path_buf(), found: paths.len() });
        }
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for record in reader.records() {
            let record = record.map_err(no_table)?;
            let (row, line) = (words(&record), line_of(&text, &record));
            if let Some(empty) = row.iter().position(String::is_empty) {
                let path = paths[empty].clone();
                return Err(PointsError::NoValue { file: file.to_path_buf(), line, path });
            }
            rows.push(row);
            lines.push(line);
            if rows.len() as u64 > CELLS_LIMIT {
                return Err(PointsError::Long { file: file.to_path_buf() });
            }
        }
        if rows.is_empty() {
            return Err(PointsError::None { file: file.to_path_buf() });
        }
        Ok(Self { paths, rows, lines })
    }

    /// Formats the points as CSV, for [`Points::read`].
    pub fn to_csv(&self) -> String {
        let mut writer = WriterBuilder::new().from_writer(Vec::new());
        for row in [&self.paths].into_iter().chain(&self.rows) {
            writer.write_record(row).expect("memory takes what is written to it");
        }
        let bytes = writer.into_inner().expect("memory takes what is written to it");
        String::from_utf8(bytes).expect("it was made of text")
    }

    /// The values of each point, by their paths.
    ///
    /// # Errors
    /// A path is invalid, or a row does not have one value for each path.
    pub(super) fn overrides(&self) -> Result<Vec<Vec<Override>>, PointsError> {
        let allowed = self.paths.len();
        if let Some(row) = self.rows.iter().find(|row| row.len() != allowed) {
            return Err(PointsError::Ragged { found: row.len(), allowed });
        }
        let of = |row: &Vec<String>| {
            self.paths.iter().zip(row).map(|(path, value)| Ok(Override::new(path, value)?)).collect()
        };
        match self.rows.is_empty() {
            true => Err(PointsError::Ragged { found: 0, allowed }),
            false => self.rows.iter().map(of).collect(),
        }
    }

    /// Names a point for an error, such as `point 2 in line 3`.
    pub(super) fn place(&self, number: usize) -> String {
        let line = self.lines.get(number - 1).map_or_else(String::new, |line| format!(" in line {line}"));
        format!("point {number}{line}")
    }

    /// Describes the points, such as `64 points of network.loss, rounds (1f2e3d4c5b6a7988)`.
    pub(super) fn in_words(&self) -> String {
        let digest = hex::encode(&sha256(self.to_csv().as_bytes())[..8]);
        format!("{} points of {} ({digest})", self.rows.len(), self.paths.join(", "))
    }

    /// Checks that each group of `paths + 2` rows is a pair of points with the points mixed from it
    /// ([`saltelli`](crate::statistics::design::saltelli)).
    ///
    /// # Errors
    /// A group is not, with the first point that does not fit.
    pub(super) fn check_pairs(&self) -> Result<(), String> {
        let size = self.paths.len() + 2;
        let allowed = "allowed are those of `dposlab points saltelli`";
        if !self.rows.len().is_multiple_of(size) {
            return Err(format!("found {} points, which are no groups of {size}; {allowed}", self.rows.len()));
        }
        for (group, rows) in self.rows.chunks(size).enumerate() {
            for axis in 0..self.paths.len() {
                let is_mixed = |at: usize| rows[1 + axis][at] == rows[if at == axis { size - 1 } else { 0 }][at];
                if !(0..self.paths.len()).all(is_mixed) {
                    return Err(format!(
                        "point {} is not point {} with the {} of point {}; {allowed}",
                        group * size + axis + 2,
                        group * size + 1,
                        self.paths[axis],
                        (group + 1) * size
                    ));
                }
            }
        }
        Ok(())
    }
}
