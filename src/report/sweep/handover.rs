//! Rows that one process hands to another, as lines of text: machines that share no disk play runs of a sweep, and one
//! process gathers their rows.
//!
//! ```text
//!   {"rows_of": "6b1f…"}                              the first line: whose rows these are
//!   {"run": 7, "status": "ok", "row": "03ff…"}        a run that was played
//!   {"run": 8, "status": "died", "by": "signal 9"}    one whose process ended before it did
//! ```
//!
//! A row's bytes hold a checksum that covers the run's number, so a torn line or a line of another run is refused. Lines may come in
//! any order and more than once: a run gives the same row on every machine, and two different rows of a run are refused. If a run
//! died on one machine and was played on another, the row that was played counts. The line of a run that died has no checksum,
//! because the program that distributes the runs writes it.

use super::{
    Manifest, Sweep, SweepError, SweepRun,
    columns::{Death, Status},
    rows::{Row, Rows},
};
use crate::files::Lines;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    io,
    path::{Path, PathBuf},
};

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
pub fn line(place: SweepRun, row: &Row) -> String {
    let encoded = hex::encode(row.encoded(place.run));
    let line = Line { run: place.run, status: row.status.word().to_owned(), row: Some(encoded), by: None };
    json!(line).to_string()
}

/// Claims a folder for this sweep and writes the rows of the files into it. Existing rows of the folder stay, except that the row of
/// a run that died is replaced by one that was played. Returns the rows, which stay locked.
///
/// # Errors
/// A file cannot be read, or holds rows of another sweep, no rows, or a row that differs from another one of the same run. Or the
/// folder is another sweep's or cannot be written.
pub fn gather(sweep: &Sweep, from: &[PathBuf], folder: &Path) -> Result<Rows, SweepError> {
    let rows = sweep.manifest.claim(folder)?;
    let of_rows = sweep.manifest.of_rows();
    for file in from {
        let wrong = |number, why| SweepError::Handed { file: file.clone(), line: number, why };
        let unreadable = |number, source: io::Error| wrong(number, source.to_string());
        let lines = Lines::open(file).map_err(|source| SweepError::NoRows { file: file.clone(), source })?;
        let mut lines = (1..).zip(lines);
        let head = lines.next().map_or(Ok(String::new()), |(_, text)| text).map_err(|why| unreadable(1, why))?;
        check_head(&head, &of_rows).map_err(|why| wrong(1, why))?;
        for (number, text) in lines {
            let text = text.map_err(|why| unreadable(number, why))?;
            let (run, row) = read(&text, sweep.runs()).map_err(|why| wrong(number, why))?;
            let place = sweep.row_of(sweep.place(run));
            match rows.read(place)? {
                None => rows.write(place, &row)?,
                Some(kept) if kept.status == Status::Died && row.status != Status::Died => rows.write(place, &row)?,
                Some(kept) if row.status == Status::Died || row == kept => {}
                Some(_) => {
                    let why = "found a row that differs from another one of that run, allowed is one";
                    return Err(wrong(number, format!("run {run}: {why}")));
                }
            }
        }
    }
    rows.sync()?;
    // This comes last: files that are refused must not change the provenance of the folder.
    sweep.keep(folder, Vec::new())?;
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

    /// A row of run 3, and its line.
    fn third() -> (Row, String) {
        let figures = vec![Some(0.25); FIGURES.len()];
        let row = Row { status: Status::Ok, ended: 1, broken: 0, undecided: 0, figures, digest: [7; 32] };
        let text = line(SweepRun { run: 3, cell: 0, seed: 9 }, &row);
        (row, text)
    }

    /// All texts that differ in one bit.
    fn flipped(text: &str) -> impl Iterator<Item = String> + '_ {
        let places = (0..text.len()).flat_map(|place| (0..8).map(move |bit| (place, bit)));
        let changed = places.map(|(place, bit)| {
            let mut changed = text.as_bytes().to_vec();
            changed[place] ^= 1 << bit;
            changed
        });
        // The file's reader refuses the others.
        changed.filter_map(|changed| String::from_utf8(changed).ok())
    }

    #[test]
    fn a_line_with_a_flipped_bit_or_a_torn_end_is_refused() {
        let (row, text) = third();
        let mut same = 0;
        for changed in flipped(&text) {
            match read(&changed, 4) {
                Err(_) => {}
                // A digit in upper case is the same digit.
                Ok(found) => {
                    assert_eq!(found, (3, row.clone()), "{changed}");
                    assert!(changed.eq_ignore_ascii_case(&text), "{changed}");
                    same += 1;
                }
            }
        }
        assert!(same > 0 && same < text.len(), "{same}");
        for end in 0..text.len() {
            assert!(read(&text[..end], 4).is_err(), "{end} bytes of it");
        }
        assert!(read(&text.repeat(2), 4).is_err(), "two in one line");
        for run in ["-1", "3.0", "18446744073709551615", "18446744073709551616", "1e400", "null", "\"3\""] {
            let changed = text.replace("\"run\":3", &format!("\"run\":{run}"));
            assert!(read(&changed, 4).is_err_and(|why| why.contains("run") || why.contains("is no row")), "{run}");
        }
    }

    #[test]
    fn a_first_line_with_a_flipped_bit_or_a_torn_end_is_refused() {
        let of_rows = "ab".repeat(32);
        let head = json!({ "rows_of": of_rows }).to_string();
        assert_eq!(check_head(&head, &of_rows), Ok(()));
        for changed in flipped(&head).chain((0..head.len()).map(|end| head[..end].to_owned())) {
            assert!(check_head(&changed, &of_rows).is_err(), "{changed}");
        }
    }

    #[test]
    fn a_line_is_the_row_of_its_run_and_of_no_other() {
        let (row, text) = third();
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
