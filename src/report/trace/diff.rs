//! The first event in which two traces differ.

use crate::files;
use serde_json::Value;
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Difference {
    /// All events are the same.
    None { events: u64 },
    /// The event of this number, counted from 1, differs. One of the two is `None` if its trace has ended before.
    At { event: u64, first: Option<Value>, second: Option<Value> },
}

/// A file that is no trace.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub(crate) enum DiffError {
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: is no trace: its first line should be that of `dposlab run --trace FILE.jsonl`", file.display())]
    NoTrace { file: PathBuf },
    #[error("{}:{line}: is no event: {why}", file.display())]
    NoEvent { file: PathBuf, line: u64, why: String },
}

/// Compares two traces line by line, in memory that does not grow with them. Their headers may differ.
///
/// # Errors
/// One of the files is no trace, or breaks off within the event in question.
pub(crate) fn diff(first: &Path, second: &Path) -> Result<Difference, DiffError> {
    let (mut first, mut second) = (Lines::open(first)?, Lines::open(second)?);
    let mut event = 0;
    loop {
        let (more, too) = (first.next()?, second.next()?);
        event += 1;
        match (more, too) {
            (false, false) => return Ok(Difference::None { events: event - 1 }),
            (true, true) if first.line == second.line => {}
            _ => {
                let (first, second) = (first.event(more)?, second.event(too)?);
                return Ok(Difference::At { event, first, second });
            }
        }
    }
}

struct Lines {
    file: PathBuf,
    input: BufReader<File>,
    number: u64,
    line: Vec<u8>,
}

impl Lines {
    fn open(file: &Path) -> Result<Self, DiffError> {
        let input = files::open(file).map_err(|source| DiffError::Unreadable { file: file.to_path_buf(), source })?;
        let mut lines = Self { file: file.to_path_buf(), input: BufReader::new(input), number: 0, line: Vec::new() };
        lines.next()?;
        let header: Option<Value> = serde_json::from_slice(&lines.line).ok();
        match header.and_then(|header| header.get("trace")?.as_str().map(str::to_owned)).as_deref() {
            Some("dposlab") => Ok(lines),
            _ => Err(DiffError::NoTrace { file: lines.file }),
        }
    }

    /// Reads the next line. Returns false at the end of the file.
    fn next(&mut self) -> Result<bool, DiffError> {
        self.line.clear();
        self.number += 1;
        let read = self.input.read_until(b'\n', &mut self.line);
        Ok(read.map_err(|source| DiffError::Unreadable { file: self.file.clone(), source })? > 0)
    }

    fn event(&self, there: bool) -> Result<Option<Value>, DiffError> {
        if !there {
            return Ok(None);
        }
        let wrong = |why: String| DiffError::NoEvent { file: self.file.clone(), line: self.number, why };
        let event: Value = serde_json::from_slice(&self.line).map_err(|error| wrong(error.to_string()))?;
        if event.get("at").is_none_or(|at| !at.is_u64()) || event.get("kind").is_none_or(|kind| !kind.is_string()) {
            return Err(wrong("it has no 'at' and 'kind'".into()));
        }
        Ok(Some(event))
    }
}
