//! An append-only log of records, in segments: files of one folder, numbered from 1 on.
//!
//! ```text
//!   00000001.log │ "dposlog1" │ record │ record │ …            each segment but the last is full
//!   00000002.log │ "dposlog1" │ record │ rec                   the last one may end within a record
//!
//!   record       │ length: u32 │ checksum of the length: u32 │ checksum of the bytes: u32 │ bytes
//! ```
//!
//! Numbers are little-endian, checksums are CRC-32. A process that is killed while it appends leaves a record that ends too
//! early, and the file ends with it. Such an end is cut off when the log is opened again. Everything else that does not fit
//! is damage: a lost or changed byte in the middle is reported and never ignored.

mod records;

pub use records::{Records, remove, segment_bytes};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The first bytes of a segment.
const MAGIC: &[u8; 8] = b"dposlog1";
/// Bytes before the first record of a segment.
pub const SEGMENT_HEAD: u64 = MAGIC.len() as u64;
/// Bytes before those of a record.
const HEAD: usize = 12;
/// The number of zeros at the end of the last record that show that its end was never written, because power was lost.
const NEVER_WRITTEN: usize = 16;
/// The size in bytes at which a segment is full.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// The largest size of a record, in bytes.
pub const RECORD_MAX: usize = 64 << 20;

/// The largest number of segments that a reader keeps open.
const OPEN_MAX: usize = 32;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The number of the segment.
    pub segment: u32,
    /// The byte of the segment that the record begins at.
    pub at: u64,
    /// Bytes of the record, without those before it.
    pub length: u32,
}

impl Spot {
    /// The byte of the segment at which the record ends.
    pub fn end(&self) -> u64 {
        self.at + HEAD as u64 + u64::from(self.length)
    }
}

/// The error of a log that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: is damaged at byte {at}: {why}", file.display())]
    Damaged { file: PathBuf, at: u64, why: String },
    #[error("{}: is missing, though {} is there", missing.display(), later.display())]
    Missing { missing: PathBuf, later: PathBuf },
}

/// The log, to append to.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    number: u32,
    file: File,
    /// Bytes of the segment.
    length: u64,
    segment_bytes: u64,
}

impl Log {
    /// A log in a folder that has none.
    ///
    /// # Errors
    /// The folder cannot be written to, or holds a log.
    pub fn create(folder: &Path) -> Result<Self, LogError> {
        Self::create_with(folder, SEGMENT_BYTES)
    }

    /// [`Log::create`] with another size of a full segment, in bytes.
    ///
    /// # Errors
    /// As [`Log::create`].
    pub fn create_with(folder: &Path, segment_bytes: u64) -> Result<Self, LogError> {
        fs::create_dir_all(folder).map_err(|source| LogError::Io { file: folder.to_owned(), source })?;
        let file = new_segment(folder, 1)?;
        Ok(Self { folder: folder.to_owned(), number: 1, file, length: MAGIC.len() as u64, segment_bytes })
    }

    /// Appends a record, and returns its place. From then on, killing the process does not lose it. [`Log::sync`] makes it outlive the
    /// machine.
    ///
    /// # Errors
    /// It cannot be written. No part of it is in the log then, as far as the disk allows the write to be undone.
    ///
    /// # Panics
    /// The record is longer than [`RECORD_MAX`].
    pub fn append(&mut self, record: &[u8]) -> Result<Spot, LogError> {
        assert!(record.len() <= RECORD_MAX, "callers bound their records");
        if self.length >= self.segment_bytes {
            self.sync()?;
            self.file = new_segment(&self.folder, self.number + 1)?;
            self.number += 1;
            self.length = MAGIC.len() as u64;
        }
        let bytes = framed(record);
        if let Err(source) = self.file.write_all(&bytes) {
            // Bytes that remain if this fails too are cut off when the log is opened again.
            let _remains = self.file.set_len(self.length);
            return Err(self.io(source));
        }
        let spot = Spot { segment: self.number, at: self.length, length: record.len() as u32 };
        self.length += bytes.len() as u64;
        Ok(spot)
    }

    /// Reads records of this log again, also those that are appended later.
    #[cfg(test)]
    pub fn reader(&self) -> Reader {
        Reader::new(&self.folder)
    }

    /// Waits until all records are on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(|source| self.io(source))
    }

    /// The running segment, to be synced by another thread.
    ///
    /// # Errors
    /// The process has too many files open.
    pub fn running_segment(&self) -> Result<Segment, LogError> {
        let file = self.file.try_clone().map_err(|source| self.io(source))?;
        Ok(Segment { path: segment(&self.folder, self.number), file })
    }

    fn io(&self, source: io::Error) -> LogError {
        LogError::Io { file: segment(&self.folder, self.number), source }
    }
}

/// A segment that may be written to meanwhile.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
}

impl Segment {
    /// Waits until all that was written to it before is on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(|source| LogError::Io { file: self.path.clone(), source })
    }
}

/// Reads records of a log by their places, while the log is appended to. Cheap to clone; clones share open files.
#[derive(Clone, Debug)]
pub struct Reader {
    folder: PathBuf,
    /// Open segments by number, the one opened last at the end.
    open: Arc<Mutex<OpenSegments>>,
}

type OpenSegments = Vec<(u32, Arc<File>)>;

impl Reader {
    /// Reads the log of a folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: Arc::default() }
    }

    /// A record.
    ///
    /// # Errors
    /// It cannot be read, or there is none at that place, or it is damaged.
    pub fn read(&self, spot: Spot) -> Result<Vec<u8>, LogError> {
        let path = segment(&self.folder, spot.segment);
        let io = |source| LogError::Io { file: path.clone(), source };
        let file = self.segment(spot.segment, &path).map_err(io)?;
        let damaged = |why: &str| LogError::Damaged { file: path.clone(), at: spot.at, why: why.to_owned() };
        if spot.length as usize > RECORD_MAX {
            return Err(damaged("no record is as long as the one that should be here"));
        }
        let mut bytes = vec![0; HEAD + spot.length as usize];
        match file.read_exact_at(&mut bytes, spot.at) {
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => {
                return Err(damaged("the segment ends before the record"));
            }
            read => read.map_err(io)?,
        }
        let (found, record) = bytes.split_at(HEAD);
        if *found != head(record) {
            return Err(damaged("a record does not match its checksum"));
        }
        bytes.drain(..HEAD);
        Ok(bytes)
    }

    fn segment(&self, number: u32, path: &Path) -> io::Result<Arc<File>> {
        // After a panic while the list was locked, its entries are still whole.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = open.iter().find(|(open, _)| *open == number) {
            return Ok(file.clone());
        }
        let file = Arc::new(super::open(path)?);
        if open.len() == OPEN_MAX {
            open.remove(0);
        }
        open.push((number, file.clone()));
        Ok(file)
    }
}

/// A record as it lies in the file.
fn framed(record: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + record.len());
    bytes.extend_from_slice(&head(record));
    bytes.extend_from_slice(record);
    bytes
}

/// The bytes before those of a record.
fn head(record: &[u8]) -> [u8; HEAD] {
    let length = (record.len() as u32).to_le_bytes();
    let parts = [length, crc32fast::hash(&length).to_le_bytes(), crc32fast::hash(record).to_le_bytes()];
    let mut head = [0; HEAD];
    head.copy_from_slice(parts.as_flattened());
    head
}

/// The file of a segment.
pub fn segment(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

fn new_segment(folder: &Path, number: u32) -> Result<File, LogError> {
    let path = segment(folder, number);
    let make = || {
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(MAGIC)?;
        file.sync_data()?;
        File::open(folder)?.sync_all()?;
        Ok(file)
    };
    make().map_err(|source| LogError::Io { file: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::{records::numbers, *};
    use proptest::prelude::*;

    fn written(folder: &Path, records: &[Vec<u8>], segment_bytes: u64) {
        let mut log = Log::create_with(folder, segment_bytes).unwrap();
        for record in records {
            let spot = log.append(record).unwrap();
            assert_eq!(log.reader().read(spot).unwrap(), *record);
        }
        log.sync().unwrap();
    }

    fn read(folder: &Path) -> Result<Vec<Vec<u8>>, LogError> {
        let mut records = Records::open(folder)?.expect("there is a log");
        let mut found = Vec::new();
        let reader = Reader::new(folder);
        while let Some(record) = records.next_record()? {
            assert_eq!(reader.read(records.spot().unwrap())?, record);
            found.push(record);
        }
        Ok(found)
    }

    fn some() -> Vec<Vec<u8>> {
        (0..20_u8).map(|number| vec![number; usize::from(number) * 3]).collect()
    }

    #[test]
    fn what_was_appended_is_read_over_all_segments_and_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Records::open(&path).unwrap().is_none(), "there is none yet");
        written(&path, &some(), 100);
        assert!(numbers(&path).unwrap().len() > 3);
        assert_eq!(read(&path).unwrap(), some());
        let mut records = Records::open(&path).unwrap().unwrap();
        while records.next_record().unwrap().is_some() {}
        let (mut log, torn) = records.into_log().unwrap();
        log.append(b"next").unwrap();
        assert_eq!((torn, read(&path).unwrap().len()), (0, 21));
        let unread = Records::open(&path).unwrap().unwrap().into_log().unwrap_err().to_string();
        assert!(unread.contains("left unread"), "{unread}");
        assert!(Log::create(&path).unwrap_err().to_string().contains("00000001.log"), "nothing is written over");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Wherever a log is cut, what is read is a beginning of what was appended, and it goes on from there.
        #[test]
        fn a_log_that_was_cut_off_is_a_beginning(cut in 0_u64..1_000) {
            let folder = tempfile::tempdir().unwrap();
            written(folder.path(), &some(), u64::MAX);
            let file = segment(folder.path(), 1);
            let length = fs::metadata(&file).unwrap().len();
            let kept = cut % (length + 1);
            OpenOptions::new().write(true).open(&file).unwrap().set_len(kept).unwrap();
            let found = read(folder.path()).unwrap();
            prop_assert_eq!(&found[..], &some()[..found.len()]);
            let whole: u64 = MAGIC.len() as u64 + found.iter().map(|record| (HEAD + record.len()) as u64).sum::<u64>();
            prop_assert!(whole <= kept.max(MAGIC.len() as u64));
            let mut records = Records::open(folder.path()).unwrap().unwrap();
            while records.next_record().unwrap().is_some() {}
            let (mut log, _torn) = records.into_log().unwrap();
            log.append(b"next").unwrap();
            let mut expected = found;
            expected.push(b"next".to_vec());
            prop_assert_eq!(read(folder.path()).unwrap(), expected);
        }

        /// No changed byte is passed over: it is named, or it lies in a record that was the last and is cut off.
        #[test]
        fn a_changed_byte_is_found(at in 0_usize..10_000, change in 1_u8..=255) {
            let folder = tempfile::tempdir().unwrap();
            written(folder.path(), &some(), 200);
            let segments = numbers(folder.path()).unwrap();
            let file = segment(folder.path(), segments[at % segments.len()]);
            let mut bytes = fs::read(&file).unwrap();
            let place = at % bytes.len();
            bytes[place] ^= change;
            fs::write(&file, &bytes).unwrap();
            let why = read(folder.path()).expect_err("a byte was changed").to_string();
            prop_assert!(why.contains(&file.display().to_string()) && why.contains("damaged"), "{}", why);
        }
    }

    #[test]
    fn a_segment_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &some(), 100);
        fs::remove_file(segment(folder.path(), 2)).unwrap();
        let why = read(folder.path()).unwrap_err().to_string();
        assert!(why.contains("00000002.log: is missing"), "{why}");
    }

    #[test]
    fn an_end_of_zeros_is_what_a_lost_power_leaves() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &some(), u64::MAX);
        let file = segment(folder.path(), 1);
        let length = fs::metadata(&file).unwrap().len();
        OpenOptions::new().write(true).open(&file).unwrap().set_len(length + 5_000).unwrap();
        assert_eq!(read(folder.path()).unwrap(), some());
    }
}
