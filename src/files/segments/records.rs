//! Reading a log from a segment on, record by record.

use super::{HEAD, Log, LogError, MAGIC, NEVER_WRITTEN, RECORD_MAX, SEGMENT_BYTES, Spot, segment};
use crate::files;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, ErrorKind, Read, Seek, Write},
    path::{Path, PathBuf},
};

/// The records of a log, the first one first.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
    /// Number of the last segment.
    last: u32,
    number: u32,
    input: BufReader<File>,
    /// Bytes of the segment that hold whole records.
    at: u64,
    /// Bytes of the segment in the file.
    length: u64,
    /// The last whole record was read.
    is_over: bool,
    /// The place of the record that was read last.
    spot: Option<Spot>,
}

/// The bytes found where a record should be.
enum NextRecord {
    Record(Vec<u8>),
    /// The segment ends here.
    End,
    /// The segment ends within the record.
    Torn,
}

impl Records {
    /// Reads the log of a folder; `None` if there is none.
    ///
    /// # Errors
    /// A segment is missing or is none.
    pub fn open(folder: &Path) -> Result<Option<Self>, LogError> {
        Self::open_at(folder, 1)
    }

    /// Reads the log of a folder from a segment on; `None` if it has none of that number.
    ///
    /// # Errors
    /// As [`Records::open`].
    pub fn open_at(folder: &Path, number: u32) -> Result<Option<Self>, LogError> {
        let numbers = numbers(folder)?;
        let Some(last) = numbers.last().copied() else { return Ok(None) };
        if let Some(missing) = (1..=last).zip(&numbers).find_map(|(want, found)| (want != *found).then_some(want)) {
            return Err(LogError::Missing { missing: segment(folder, missing), later: segment(folder, last) });
        }
        if !numbers.contains(&number) {
            return Ok(None);
        }
        let (input, length) = open_segment(folder, number, last)?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            last,
            number,
            input,
            at: MAGIC.len() as u64,
            length,
            is_over: false,
            spot: None,
        }))
    }

    /// Reads the log of a folder from a record on; `None` if it has no segment of that number.
    ///
    /// # Errors
    /// As [`Records::open`], or the file cannot be read there.
    pub fn open_from(folder: &Path, number: u32, at: u64) -> Result<Option<Self>, LogError> {
        let Some(mut records) = Self::open_at(folder, number)? else { return Ok(None) };
        records.input.seek(io::SeekFrom::Start(at)).map_err(|source| records.io(source))?;
        records.at = at;
        Ok(Some(records))
    }

    /// The next record; `None` after the last whole one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        while !self.is_over {
            match self.read()? {
                NextRecord::Record(record) => {
                    self.spot = Some(Spot { segment: self.number, at: self.at, length: record.len() as u32 });
                    self.at += (HEAD + record.len()) as u64;
                    return Ok(Some(record));
                }
                NextRecord::End | NextRecord::Torn if self.number == self.last => self.is_over = true,
                NextRecord::End => {
                    self.number += 1;
                    (self.input, self.length) = open_segment(&self.folder, self.number, self.last)?;
                    self.at = MAGIC.len() as u64;
                }
                NextRecord::Torn => {
                    return Err(self.damaged("the segment ends within a record, and is not the last one"));
                }
            }
        }
        Ok(None)
    }

    /// The segment and the byte that the next record begins at.
    pub fn place(&self) -> (PathBuf, u64) {
        (segment(&self.folder, self.number), self.at)
    }

    /// The place of the record that was read last.
    pub fn spot(&self) -> Option<Spot> {
        self.spot
    }

    /// The number of the segment and the byte that the next record begins at.
    pub fn number_and_byte(&self) -> (u32, u64) {
        (self.number, self.at)
    }

    /// Opens the log for appending after the record that was read last. Returns the number of bytes of a torn record that were cut off.
    ///
    /// # Errors
    /// The last segment cannot be written to, or records were left unread.
    pub fn into_log(mut self) -> Result<(Log, u64), LogError> {
        if let Some(_unread) = self.next_record()? {
            return Err(self.damaged("records were left unread"));
        }
        let path = segment(&self.folder, self.number);
        let io = |source| LogError::Io { file: path.clone(), source };
        let mut file = OpenOptions::new().append(true).open(&path).map_err(io)?;
        let torn = self.length.saturating_sub(self.at);
        if self.length < MAGIC.len() as u64 {
            file.set_len(0).and_then(|()| file.write_all(MAGIC)).map_err(io)?;
        } else if torn > 0 {
            file.set_len(self.at).and_then(|()| file.sync_data()).map_err(io)?;
        }
        let log = Log { folder: self.folder, number: self.number, file, length: self.at, segment_bytes: SEGMENT_BYTES };
        Ok((log, torn))
    }

    fn read(&mut self) -> Result<NextRecord, LogError> {
        let left = self.length.saturating_sub(self.at);
        if left == 0 {
            return Ok(NextRecord::End);
        }
        if left < HEAD as u64 {
            return Ok(NextRecord::Torn);
        }
        let mut head = [0; HEAD];
        self.input.read_exact(&mut head).map_err(|source| self.io(source))?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, of_length, of_bytes) = (number(0), number(4), number(8));
        if crc32fast::hash(&length.to_le_bytes()) != of_length {
            return match head == [0; HEAD] && self.only_zeros()? {
                // The file grew and its bytes were never written: power was lost.
                true => Ok(NextRecord::Torn),
                false => Err(self.damaged("the length of a record does not match its checksum")),
            };
        }
        if length as usize > RECORD_MAX {
            return Err(self.damaged(&format!("a record of {length} bytes, allowed are {RECORD_MAX}")));
        }
        if left < HEAD as u64 + u64::from(length) {
            return Ok(NextRecord::Torn);
        }
        let mut record = vec![0; length as usize];
        self.input.read_exact(&mut record).map_err(|source| self.io(source))?;
        if crc32fast::hash(&record) == of_bytes {
            return Ok(NextRecord::Record(record));
        }
        let is_last = left == HEAD as u64 + u64::from(length) && self.number == self.last;
        match is_last && record.ends_with(&[0; NEVER_WRITTEN]) {
            true => Ok(NextRecord::Torn),
            false => Err(self.damaged("a record does not match its checksum")),
        }
    }

    /// Returns true if the rest of the segment holds nothing but zeros.
    fn only_zeros(&mut self) -> Result<bool, LogError> {
        let mut rest = [0; 4096];
        loop {
            match self.input.read(&mut rest) {
                Ok(0) => return Ok(true),
                Ok(read) if rest[..read].iter().any(|byte| *byte != 0) => return Ok(false),
                Ok(_) => {}
                Err(source) => return Err(self.io(source)),
            }
        }
    }

    fn io(&self, source: io::Error) -> LogError {
        LogError::Io { file: segment(&self.folder, self.number), source }
    }

    fn damaged(&self, why: &str) -> LogError {
        LogError::Damaged { file: segment(&self.folder, self.number), at: self.at, why: why.to_owned() }
    }
}

/// Bytes of a segment.
///
/// # Errors
/// Its metadata cannot be read.
pub fn segment_bytes(folder: &Path, number: u32) -> Result<u64, LogError> {
    let file = segment(folder, number);
    fs::metadata(&file).map(|file| file.len()).map_err(|source| LogError::Io { file, source })
}

/// Deletes the segments of a folder, and nothing else in it.
///
/// # Errors
/// One cannot be deleted.
pub fn remove(folder: &Path) -> Result<(), LogError> {
    // The last one is deleted first, so that the remaining files are always a log.
    for number in numbers(folder)?.into_iter().rev() {
        let file = segment(folder, number);
        fs::remove_file(&file).map_err(|source| LogError::Io { file, source })?;
    }
    Ok(())
}

/// The numbers of the segments in a folder, ascending.
pub(super) fn numbers(folder: &Path) -> Result<Vec<u32>, LogError> {
    let io = |source| LogError::Io { file: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io)?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(io)?.file_name();
        let number: Option<u32> =
            name.to_str().and_then(|name| name.strip_suffix(".log")).and_then(|number| number.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// A segment, read up to the end of its first bytes, and its size in bytes. The last segment may lack some of the first bytes.
fn open_segment(folder: &Path, number: u32, last: u32) -> Result<(BufReader<File>, u64), LogError> {
    let path = segment(folder, number);
    let io = |source| LogError::Io { file: path.clone(), source };
    let file = files::open(&path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut magic = [0; MAGIC.len()];
    let there = usize::try_from(length).map_or(MAGIC.len(), |length| length.min(MAGIC.len()));
    input.read_exact(&mut magic[..there]).map_err(io)?;
    let is_torn = there < MAGIC.len() && number == last;
    match magic == *MAGIC || is_torn && MAGIC.starts_with(&magic[..there]) {
        true => Ok((input, length)),
        false => Err(LogError::Damaged { file: path, at: 0, why: "it does not begin as a log of dposlab does".into() }),
    }
}
