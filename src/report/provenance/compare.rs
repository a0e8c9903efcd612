//! The comparison of a study with its repetition: the files of two folders, and the events of a run while it is played.

use super::PROGRAM_KEY;
use crate::files;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The largest number of characters of a line that a message shows for each side.
const SHOWN: usize = 80;
/// The characters that a message shows before the first difference.
const BEFORE: usize = 30;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderComparison {
    /// Files that are the same.
    pub same: Vec<String>,
    /// Files that the folder does not hold any more.
    pub missing: Vec<String>,
    /// The first difference: the file, the place in it, and the values of the folder and of the repetition.
    pub difference: Option<String>,
}

impl FolderComparison {
    /// Compares files of these names, until two differ. With `passes_program`, Parquet files may name different programs.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn files(
        &mut self,
        folder: &Path,
        repeated: &Path,
        names: &[&str],
        passes_program: bool,
    ) -> Result<(), (PathBuf, io::Error)> {
        for name in names {
            if self.difference.is_some() {
                break;
            }
            let (old, new) = (folder.join(name), repeated.join(name));
            match (fs::symlink_metadata(&old).is_ok(), fs::symlink_metadata(&new).is_ok()) {
                (false, false) => {}
                (false, true) => self.missing.push((*name).to_owned()),
                (true, false) => self.difference = Some(format!("{name}: the repetition leaves none")),
                (true, true) => {
                    let open = |file: &Path| files::open(file).map_err(|why| (file.to_path_buf(), why));
                    let compare =
                        if passes_program && name.ends_with(".parquet") { tables_differ } else { texts_differ };
                    let differ = compare(name, open(&old)?, open(&new)?).map_err(|why| (old, why))?;
                    match differ {
                        None => self.same.push((*name).to_owned()),
                        Some(difference) => self.difference = Some(format!("{name}: {difference}")),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bytes behind the metadata of a Parquet file: the length of the metadata, and a mark.
const PARQUET_END: u64 = 8;

/// The first difference of two Parquet files, in words. Ignores the program that they name, and compares their metadata last.
fn tables_differ(_: &str, mut old: File, mut new: File) -> io::Result<Option<String>> {
    let (Some((end, one)), Some((other_end, other))) = (read_metadata(&mut old)?, read_metadata(&mut new)?) else {
        return bytes_differ(&mut old, &mut new);
    };
    let (mut rows, mut other_rows) = (BufReader::new(old).take(end), BufReader::new(new).take(other_end));
    if let Some(difference) = bytes_differ(&mut rows, &mut other_rows)? {
        return Ok(Some(difference));
    }
    let (old, new) = (entries(one.file_metadata()), entries(other.file_metadata()));
    let mut keys = old.keys().chain(new.keys());
    if let Some(key) = keys.find(|key| **key != PROGRAM_KEY && old.get(*key) != new.get(*key)) {
        let [old, new] = [&old, &new].map(|entries| entries.get(key).copied().flatten().map(str::as_bytes));
        return Ok(Some(format!("metadata '{key}': {}", lines_differ(old, new, None))));
    }
    let is_same = one.row_groups() == other.row_groups() && shape(one.file_metadata()) == shape(other.file_metadata());
    Ok((!is_same).then(|| "its metadata differ".to_owned()))
}

/// The metadata of a Parquet file and their offset, or `None` if it is not a Parquet file. Rewinds the file to its beginning.
fn read_metadata(file: &mut File) -> io::Result<Option<(u64, ParquetMetaData)>> {
    let length = file.metadata()?.len();
    let mut end = [0; PARQUET_END as usize];
    if length >= PARQUET_END {
        file.seek(SeekFrom::Start(length - PARQUET_END))?;
        file.read_exact(&mut end)?;
    }
    let size = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    let begin = (length.saturating_sub(PARQUET_END)).checked_sub(size);
    let read = ParquetMetaDataReader::new().parse_and_finish(&*file);
    file.seek(SeekFrom::Start(0))?;
    Ok(begin.zip(read.ok()))
}

fn entries(of: &FileMetaData) -> BTreeMap<&str, Option<&str>> {
    let entries = of.key_value_metadata().map_or(&[][..], Vec::as_slice);
    entries.iter().map(|KeyValue { key, value }| (key.as_str(), value.as_deref())).collect()
}

/// The metadata of a table that are neither entries nor about rows.
fn shape(of: &FileMetaData) -> impl PartialEq {
    (of.version(), of.num_rows(), of.created_by().map(str::to_owned), of.schema().clone())
}

/// The first difference of two files, in words.
fn texts_differ(name: &str, old: File, new: File) -> io::Result<Option<String>> {
    let (mut old, mut new) = (BufReader::new(old), BufReader::new(new));
    if !name.ends_with(".csv") && !name.ends_with(".json") {
        return bytes_differ(&mut old, &mut new);
    }
    let mut head = Vec::new();
    for number in 1_u64.. {
        let (one, other) = (line_of(&mut old)?, line_of(&mut new)?);
        match (one, other) {
            (None, None) => break,
            (one, other) if one == other => {
                if number == 1 {
                    head = one.unwrap_or_default();
                }
            }
            (one, other) => {
                let cell = Some(&head).filter(|_| name.ends_with(".csv") && number > 1);
                let (one, other) = (one.as_deref(), other.as_deref());
                return Ok(Some(format!("line {number}: {}", lines_differ(one, other, cell.map(Vec::as_slice)))));
            }
        }
    }
    Ok(None)
}

/// The next line with its line end, or `None` after the last one. It is no longer than a line of a table or of JSON for people can be.
fn line_of(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    match from.take(files::LINE_LIMIT).read_until(b'\n', &mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line)),
    }
}

/// Describes two different lines: the first different column of a table with both values, or both lines around the difference.
fn lines_differ(old: Option<&[u8]>, new: Option<&[u8]>, head: Option<&[u8]>) -> String {
    let (Some(old), Some(new)) = (old, new) else {
        let told = |line: Option<&[u8]>| line.map_or("no more".to_owned(), |line| shown(line, 0));
        return format!("found {}, the repetition has {}", told(old), told(new));
    };
    let cells = |line: &[u8]| {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
        reader.records().next()?.ok()
    };
    if let Some((head, old, new)) = head.and_then(|head| Some((cells(head)?, cells(old)?, cells(new)?)))
        && let Some(((column, old), new)) = head.iter().zip(&old).zip(&new).find(|((_, old), new)| old != new)
    {
        let told = |cell: &str| shown(cell.as_bytes(), 0);
        return format!("{}: found {}, the repetition has {}", told(column), told(old), told(new));
    }
    let at = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    format!("found {}, the repetition has {}", shown(old, at), shown(new, at))
}

/// The part of a line about a place, without characters that a terminal would obey.
fn shown(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line.get(at.saturating_sub(BEFORE)..).unwrap_or_default()).into_owned();
    let text = text.trim_end();
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    format!("'{}{more}'", files::printable(&text.chars().take(SHOWN).collect::<String>()))
}

fn bytes_differ(old: &mut impl Read, new: &mut impl Read) -> io::Result<Option<String>> {
    let (mut one, mut other) = ([0; 1 << 14], [0; 1 << 14]);
    let mut before = 0;
    loop {
        let (read, there) = (fill(old, &mut one)?, fill(new, &mut other)?);
        let same = one[..read].iter().zip(&other[..there]).take_while(|(one, other)| one == other).count();
        match same == read && same == there {
            true if read == 0 => return Ok(None),
            true => before += read,
            false => return Ok(Some(format!("differs from byte {} on", before + same))),
        }
    }
}

/// Reads until the buffer is full or there is no more.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// A writer that compares the lines of a trace with the lines of a recorded file, so that no second file is needed.
pub(crate) struct Against {
    recorded: BufReader<File>,
    /// The beginning of a line that is not written to its end yet.
    line: Vec<u8>,
    number: u64,
    /// True if the first line is not compared. It names the program, and another version wrote it.
    passes_first: bool,
    found: Arc<Mutex<Option<String>>>,
}

impl Against {
    /// Compares with this trace, and stores the first difference in `found`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(file: &Path, passes_first: bool, found: Arc<Mutex<Option<String>>>) -> io::Result<Self> {
        let recorded = BufReader::with_capacity(1 << 20, files::open(file)?);
        Ok(Self { recorded, line: Vec::new(), number: 0, passes_first, found })
    }

    fn has_found(&self) -> bool {
        self.found.lock().expect("no thread panics while holding it").is_some()
    }

    fn compare(&mut self, new: Option<&[u8]>) -> io::Result<()> {
        self.number += 1;
        let old = line_of(&mut self.recorded)?;
        if old.as_deref() != new && !(self.passes_first && self.number == 1) {
            let told = lines_differ(old.as_deref(), new, None);
            let told = format!("events.jsonl: line {}: {told}", self.number);
            *self.found.lock().expect("no thread panics while holding it") = Some(told);
        }
        Ok(())
    }
}

impl Write for Against {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.has_found() {
                break;
            }
            self.line.extend(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.compare(Some(&line))?;
            }
        }
        Ok(bytes.len())
    }

    /// Compares the end of the run: the recorded trace must have no more lines.
    fn flush(&mut self) -> io::Result<()> {
        match self.has_found() {
            true => Ok(()),
            false => self.compare(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differ(name: &str, old: &[u8], new: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let (one, other) = (folder.path().join("old"), folder.path().join("new"));
        for (path, bytes) in [(&one, old), (&other, new)] {
            fs::create_dir(path).and_then(|()| fs::write(path.join(name), bytes)).expect("it can be written");
        }
        let mut compared = FolderComparison::default();
        compared.files(&one, &other, &[name, "nowhere"], false).expect("both can be read");
        assert_eq!(compared.difference.is_none(), compared.same == [name]);
        compared.difference
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        let table = b"run,seed,text\n0,7,\"a, b\"\n1,8,c\n";
        assert_eq!(differ("runs.csv", table, table), None);
        let other = b"run,seed,text\n0,7,\"a, b\"\n1,9,d\n";
        assert_eq!(
            differ("runs.csv", table, other).as_deref(),
            Some("runs.csv: line 3: 'seed': found '8', the repetition has '9'")
        );
        assert_eq!(
            differ("runs.csv", table, &table[..25]).as_deref(),
            Some("runs.csv: line 3: found '1,8,c', the repetition has no more")
        );
        assert_eq!(
            differ("a.json", b"{\n  \"a\": 1\n}\n", b"{\n  \"a\": 2\n}\n").as_deref(),
            Some("a.json: line 2: found '  \"a\": 1', the repetition has '  \"a\": 2'")
        );
        let mut long = vec![7; 40_000];
        assert_eq!(differ("a.parquet", &long, &long.clone()), None);
        let cut = differ("a.parquet", &long, &long[..39_999]);
        assert_eq!(cut.as_deref(), Some("a.parquet: differs from byte 39999 on"));
        let before = long.clone();
        long[20_000] = 8;
        assert_eq!(differ("a.parquet", &before, &long).as_deref(), Some("a.parquet: differs from byte 20000 on"));
        let told = differ("a.json", b"\x1b[2J\n", b"\xff\n").expect("they differ");
        assert!(!told.contains('\x1b'), "{told}");
    }

    #[test]
    fn lines_that_are_written_are_compared_as_they_come() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let file = folder.path().join("events.jsonl");
        fs::write(&file, "head\none\ntwo\n").expect("it can be written");
        let written = |passes_first, pieces: &[&str]| {
            let found = Arc::default();
            let mut against = Against::new(&file, passes_first, Arc::clone(&found)).expect("it is there");
            for piece in pieces {
                against.write_all(piece.as_bytes()).expect("it is compared");
            }
            against.flush().expect("it is compared");
            found.lock().expect("no thread holds it").take()
        };
        assert_eq!(written(false, &["he", "ad\non", "e\ntwo\n"]), None);
        let head = "events.jsonl: line 1: found 'head', the repetition has 'read'";
        assert_eq!(written(false, &["read\none\ntwo\n"]).as_deref(), Some(head));
        assert_eq!(written(true, &["read\none\ntwo\n"]), None);
        let short = "events.jsonl: line 3: found 'two', the repetition has no more";
        assert_eq!(written(false, &["head\none\n"]).as_deref(), Some(short));
        let long = "events.jsonl: line 4: found no more, the repetition has 'three'";
        assert_eq!(written(false, &["head\none\ntwo\nthree\nfour\n"]).as_deref(), Some(long));
    }
}
