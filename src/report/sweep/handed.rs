//! Rows handed from one process to another, as lines of text: machines that share no disk play runs of a sweep, and one
//! process makes the whole of their rows.
//!
//! ```text
//!   {"rows_of": "6b1f…"}                              the first line: whose rows these are
//!   {"run": 7, "status": "ok", "row": "03ff…"}        a run that was played
//!   {"run": 8, "status": "died", "by": "signal 9"}    one whose process ended before it did
//! ```
//!
//! A row's bytes hold a checksum over the run's number, so a line can neither be torn nor stand for another run. Lines may come in
//! any order and more than once: a run gives the same row wherever it is played. Where a run died at one place and was played
//! at another, the row that was played counts.

use super::{
    Manifest, Place, Sweep, SweepError,
    columns::{Death, Status},
    rows::{Row, Rows},
};
use crate::files::Lines;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A line but the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    run: u64,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    rows_of: String,
}

/// The first line of rows of a sweep.
pub fn head(manifest: &Manifest) -> String {
    json!({ "rows_of": manifest.of_rows() }).to_string()
}

/// The line of a run that was played.
pub fn line(place: Place, row: &Row) -> String {
    let encoded = hex::encode(row.encoded(place.run));
    let line = Line { run: place.run, status: row.status.word().to_owned(), row: Some(encoded), by: None };
    json!(line).to_string()
}

/// Makes a folder this sweep's and puts the rows of files there, each in its place. Rows that the folder has stay as they
/// are, but for those of runs that died, where a file has one that was played. Answers the rows, which stay locked.
///
/// # Errors
/// A file cannot be read, holds rows of another sweep or no rows; or the folder is another sweep's or cannot be written.
pub fn gather(sweep: &Sweep, from: &[PathBuf], folder: &Path) -> Result<Rows, SweepError> {
    let rows = sweep.manifest.claim(folder)?;
    let of_rows = sweep.manifest.of_rows();
    for file in from {
        let io = |source| SweepError::Io { file: file.clone(), source };
        for (number, text) in (1..).zip(Lines::open(file).map_err(io)?) {
            let text = text.map_err(io)?;
            let wrong = |why: String| SweepError::Handed { file: file.clone(), line: number, why };
            if number == 1 {
                check_head(&text, &of_rows).map_err(wrong)?;
                continue;
            }
            let (run, row) = read(&text, sweep.runs()).map_err(wrong)?;
            let kept = rows.read(run)?.map(|kept| kept.status);
            if kept.is_none_or(|kept| kept == Status::Died && row.status != Status::Died) {
                rows.write(run, &row)?;
            }
        }
    }
    rows.sync()?;
    Ok(rows)
}

fn check_head(text: &str, expected: &str) -> Result<(), String> {
    let head: Head = serde_json::from_str(text).map_err(|why| format!("is no first line of rows: {why}"))?;
    match head.rows_of == expected {
        true => Ok(()),
        false => Err(format!("found rows of another sweep, {}, allowed are those of {expected}", head.rows_of)),
    }
}

/// The number and the row of a line.
fn read(text: &str, runs: u64) -> Result<(u64, Row), String> {
    let line: Line = serde_json::from_str(text).map_err(|why| format!("is no row: {why}"))?;
    let run = line.run;
    if run >= runs {
        return Err(format!("key 'run': found {run}, allowed are those below {runs}"));
    }
    let row = match (&line.row, &line.by) {
        (Some(row), None) => hex::decode(row).ok().and_then(|bytes| Row::decoded(run, &bytes)),
        (None, by) if line.status == Status::Died.word() => {
            let by = by.as_deref().map(str::parse::<Death>).transpose();
            Some(Row::died(by.map_err(|why| format!("key 'by': {why}"))?))
        }
        _ => None,
    };
    let row = row.filter(|row| row.status.word() == line.status);
    row.ok_or_else(|| format!("run {run}: found no row of that run, allowed is one as `sweep --only` prints it"))
        .map(|row| (run, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sweep::columns::FIGURES;

    #[test]
    fn a_line_is_the_row_of_its_run_and_of_no_other() {
        let figures = vec![Some(0.25); FIGURES.len()];
        let row = Row { status: Status::Ok, ended: 1, broken: 0, undecided: 0, figures, digest: [7; 32] };
        let text = line(Place { run: 3, cell: 0, seed: 9 }, &row);
        assert_eq!(read(&text, 4), Ok((3, row)));
        assert!(read(&text, 3).is_err_and(|why| why.contains("found 3, allowed are those below 3")));
        for wrong in [text.replace("\"run\":3", "\"run\":2"), text.replace("\"ok\"", "\"broken\""), "{}".to_owned()] {
            assert!(read(&wrong, 4).is_err(), "{wrong}");
        }
        let died = read(r#"{"run":2,"status":"died","by":"signal 9"}"#, 4);
        assert_eq!(died, Ok((2, Row::died(Some(Death::Signal(9))))));
        assert!(read(r#"{"run":2,"status":"ok","by":"signal 9"}"#, 4).is_err(), "who is well has a row");
    }
}
