//! `rows.bin`: a place of a fixed size for the row of each run, so that rows may be written in any order and more than once.
//!
//! The file begins with the digest of the sweep whose rows it holds, so that no other sweep takes them for its own. A process locks the
//! file while it has it open, and with it the whole folder.
//!
//! A row consists of a word with a bit for each figure that exists, one word for the status, one for the end of the run, one for the
//! broken assertions, one for the undecided ones, one for each figure, 32 bytes of digest, and a checksum over all of it and the row's
//! number. A place that was never written, or that a crash left half written, fails the checksum and counts as not done.

use super::columns::{Death, FIGURES, Status};
use crate::files::{self, Identity};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The name of the file.
pub(super) const NAME: &str = "rows.bin";
const WORDS: usize = HEAD + FIGURES.len();
/// The number of words before the figures.
const HEAD: usize = 5;
const DIGEST: usize = 32;
const SIZE: usize = WORDS * 8 + DIGEST + 4;
/// The beginning of the file: these bytes, the digest of its sweep, and a checksum of both.
const MAGIC: [u8; 28] = *b"dposlab rows of one sweep 7\n";
const HEADER: usize = MAGIC.len() + DIGEST + 4;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub status: Status,
    /// The number of its end: [`super::columns::end_of_number`].
    pub ended: u64,
    /// One bit for each assertion that did not hold, the first one lowest. The highest bit stands for the 64th assertion and all after it.
    pub broken: u64,
    /// The bits of the undecided assertions, likewise.
    pub undecided: u64,
    /// The values of [`FIGURES`].
    pub figures: Vec<Option<f64>>,
    /// The digest of the run's events. Zeros if the run died.
    pub digest: [u8; DIGEST],
}

impl Row {
    /// Returns the value of one of [`FIGURES`], if the run has it.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let index = FIGURES.iter().position(|figure| figure.name == name).expect("it is a column");
        self.figures[index]
    }

    /// Returns the row of a run that died by this cause. `None` is a panic.
    pub fn died(by: Option<Death>) -> Self {
        Self {
            status: Status::Died,
            ended: by.map_or(0, Death::number),
            broken: 0,
            undecided: 0,
            figures: vec![None; FIGURES.len()],
            digest: [0; DIGEST],
        }
    }

    /// Encodes the row of a run. The bytes differ from those of every other run.
    pub fn encoded(&self, run: u64) -> Vec<u8> {
        encode(run, self).to_vec()
    }

    /// Decodes the row of a run, or returns `None` if the bytes are not a row of this run.
    pub fn decoded(run: u64, bytes: &[u8]) -> Option<Self> {
        decode(run, bytes.try_into().ok()?)
    }
}

/// The rows of a sweep, or of a part of one.
pub struct Rows {
    file: File,
    path: PathBuf,
}

/// The error of rows that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct RowsError {
    pub file: PathBuf,
    pub source: io::Error,
}

impl Rows {
    /// Opens the rows in a folder, for this process alone. `None` if another process has them open. With `create`, a missing file is
    /// made.
    ///
    /// # Errors
    /// The file cannot be opened, or is no regular file.
    pub fn open(folder: &Path, create: bool) -> Result<Option<Self>, RowsError> {
        let path = folder.join(NAME);
        let wrong = |source| RowsError { file: path.clone(), source };
        if !create || fs::symlink_metadata(&path).is_ok() {
            files::open(&path).map_err(wrong)?;
        }
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let options = OpenOptions::new().read(true).write(true).create(create).custom_flags(flags).clone();
        let file = options.open(&path).map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file, path })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(wrong(source)),
        }
    }

    /// The digest of the sweep whose rows these are; `None` where there are none yet.
    ///
    /// # Errors
    /// The file cannot be read, or begins with something else.
    pub fn sweep(&self) -> Result<Option<[u8; DIGEST]>, RowsError> {
        let length = self.file.metadata().map_err(|source| self.wrong(source))?.len();
        let mut header = [0; HEADER];
        if length >= HEADER as u64 {
            self.file.read_exact_at(&mut header, 0).map_err(|source| self.wrong(source))?;
        }
        let (content, sum) = header.split_at(HEADER - 4);
        let digest = content.strip_prefix(&MAGIC).filter(|_| crc32fast::hash(content).to_le_bytes() == sum);
        match digest {
            Some(digest) => Ok(Some(digest.try_into().expect("it is what is left of the header"))),
            // A crash may have torn the header. No row is written before the header is on the disk.
            None if length <= HEADER as u64 => Ok(None),
            None => {
                let why = "found another beginning, allowed are rows of a sweep of this version";
                Err(self.wrong(io::Error::new(io::ErrorKind::InvalidData, why)))
            }
        }
    }

    /// Binds the file to a sweep. It must not hold any rows yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn bind(&self, sweep: [u8; DIGEST]) -> Result<(), RowsError> {
        let mut header = [&MAGIC[..], &sweep].concat();
        let sum = crc32fast::hash(&header);
        header.extend(sum.to_le_bytes());
        self.file.write_all_at(&header, 0).and_then(|()| self.file.sync_all()).map_err(|source| self.wrong(source))
    }

    /// The number of places that may hold rows. No later place holds one.
    ///
    /// # Errors
    /// The length of the file cannot be read.
    pub fn places(&self) -> Result<u64, RowsError> {
        let length = self.file.metadata().map_err(|source| self.wrong(source))?.len();
        Ok(length.saturating_sub(HEADER as u64).div_ceil(SIZE as u64))
    }

    /// Checks that the path still leads to the opened file.
    ///
    /// # Errors
    /// The file was moved or removed, or another one is there.
    pub fn check_there(&self) -> Result<(), RowsError> {
        let (opened, there) =
            (Identity::of(&self.file).map_err(|source| self.wrong(source))?, Identity::at(&self.path));
        match there == Some(opened) {
            true => Ok(()),
            false => Err(self.wrong(io::Error::new(io::ErrorKind::NotFound, "was taken away while the sweep went on"))),
        }
    }

    /// The row at a place, if it is whole.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, row: u64) -> Result<Option<Row>, RowsError> {
        let mut bytes = [0; SIZE];
        match self.file.read_exact_at(&mut bytes, place(row)) {
            Ok(()) => Ok(decode(row, &bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(self.wrong(source)),
        }
    }

    /// Writes a row to its place. It is safe from a crash only after [`Rows::sync`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, row: u64, content: &Row) -> Result<(), RowsError> {
        self.file.write_all_at(&encode(row, content), place(row)).map_err(|source| self.wrong(source))
    }

    /// Waits until all rows written are on the disk.
    ///
    /// # Errors
    /// The disk reports one.
    pub fn sync(&self) -> Result<(), RowsError> {
        self.file.sync_data().map_err(|source| self.wrong(source))
    }

    /// Writes bytes as rows, and adds the checksums that they lack.
    #[doc(hidden)]
    pub fn fill(&self, bytes: &[u8]) -> Result<(), RowsError> {
        for (row, content) in (0..).zip(bytes.chunks_exact(SIZE - 4)) {
            let sum = checksum(row, content).to_le_bytes();
            let whole = [content, &sum].concat();
            self.file.write_all_at(&whole, place(row)).map_err(|source| self.wrong(source))?;
        }
        Ok(())
    }

    fn wrong(&self, source: io::Error) -> RowsError {
        RowsError { file: self.path.clone(), source }
    }
}

/// Returns the byte at which a row begins.
fn place(row: u64) -> u64 {
    HEADER as u64 + row * SIZE as u64
}

fn encode(row: u64, content: &Row) -> [u8; SIZE] {
    let there = content.figures.iter().enumerate().filter(|(_, figure)| figure.is_some());
    let there = there.fold(0_u64, |bits, (index, _)| bits | 1 << index);
    let figures = content.figures.iter().map(|figure| figure.unwrap_or(0.0).to_bits());
    let head = [there, content.status.number(), content.ended, content.broken, content.undecided];
    let words = head.into_iter().chain(figures);
    let mut bytes = [0; SIZE];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes[WORDS * 8..WORDS * 8 + DIGEST].copy_from_slice(&content.digest);
    let sum = checksum(row, &bytes[..SIZE - 4]);
    bytes[SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(row: u64, bytes: &[u8; SIZE]) -> Option<Row> {
    let (content, sum) = bytes.split_at(SIZE - 4);
    if checksum(row, content).to_le_bytes() != sum {
        return None;
    }
    let word = |index: usize| u64::from_le_bytes(content[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
    let figure = |index: usize| (word(0) >> index & 1 == 1).then(|| f64::from_bits(word(HEAD + index)));
    Some(Row {
        status: Status::of(word(1))?,
        ended: word(2),
        broken: word(3),
        undecided: word(4),
        figures: (0..FIGURES.len()).map(figure).collect(),
        digest: content[WORDS * 8..].try_into().expect("the digest is what is left"),
    })
}

/// The checksum of a row. It covers the row's number, so a row in another row's place is invalid, and so is a place full of zeros.
/// The Python package also computes it (`_spread.py`), for rows that it hands over.
fn checksum(row: u64, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(b"dposlab row");
    hasher.update(&row.to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(height: f64) -> Row {
        let mut figures = vec![Some(0.5); FIGURES.len()];
        figures[0] = Some(height);
        figures[3] = None;
        Row { status: Status::Censored, ended: 3, broken: 5, undecided: 2, figures, digest: [7; DIGEST] }
    }

    #[test]
    fn rows_come_in_any_order_and_what_is_torn_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let rows = Rows::open(folder.path(), true).expect("it can be opened").expect("no other process has it");
        assert!(Rows::open(folder.path(), true).expect("it can be opened").is_none(), "one process at a time");
        rows.write(5, &row(5.0)).expect("it is written");
        rows.write(2, &row(2.0)).expect("it is written");
        assert_eq!(rows.read(5).expect("it is read"), Some(row(5.0)));
        assert_eq!(rows.read(2).expect("it is read"), Some(row(2.0)));
        for never_written in [0, 1, 3, 4, 6, 1_000_000] {
            assert_eq!(rows.read(never_written).expect("it is read"), None);
        }
        for byte in [0, 20, SIZE as u64 / 2, SIZE as u64 - 1] {
            rows.write(5, &row(5.0)).expect("it is written");
            let mut torn = [0];
            rows.file.read_exact_at(&mut torn, place(5) + byte).expect("it is read");
            rows.file.write_all_at(&[torn[0] ^ 1], place(5) + byte).expect("it is written");
            assert_eq!(rows.read(5).expect("it is read"), None, "byte {byte} is not as it was written");
        }
        rows.file.set_len(place(2) + 9).expect("it is cut");
        assert_eq!(rows.read(2).expect("it is read"), None, "half a row at the end");
    }

    #[test]
    fn rows_belong_to_one_sweep() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let open = || Rows::open(folder.path(), true).expect("it can be opened").expect("no other process has it");
        assert!(Rows::open(folder.path(), false).is_err(), "none is made where none is wanted");
        assert_eq!(open().sweep().expect("it is read"), None);
        open().bind([7; DIGEST]).expect("it is written");
        open().write(0, &row(1.0)).expect("it is written");
        assert_eq!(open().sweep().expect("it is read"), Some([7; DIGEST]));
        let rows = open();
        rows.file.write_all_at(&[9], 40).expect("it is written");
        assert!(rows.sweep().is_err_and(|why| why.to_string().contains("rows.bin: found another beginning")));
        rows.file.set_len(40).expect("it is cut");
        assert_eq!(rows.sweep().expect("it is read"), None, "a header that a crash has torn");
        rows.check_there().expect("it is there");
        fs::remove_file(folder.path().join(NAME)).expect("it is there");
        assert!(rows.check_there().is_err_and(|why| why.to_string().contains("was taken away")));
    }

    #[test]
    fn a_row_in_anothers_place_is_none() {
        let bytes = encode(3, &row(1.0));
        assert_eq!((decode(3, &bytes), decode(4, &bytes)), (Some(row(1.0)), None));
        assert_eq!(decode(0, &[0; SIZE]), None);
    }
}
