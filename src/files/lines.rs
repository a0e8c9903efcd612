//! The lines of a file, one in memory at a time.

use super::{in_words, open};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// The largest size of a line in bytes: more than a block, or a recorded request, can have.
pub const LINE_LIMIT: u64 = 64 << 20;

/// Appends the next line with its end. Returns its number of bytes, or 0 at the end of the file.
///
/// # Errors
/// It cannot be read, is no UTF-8, or is longer than [`LINE_LIMIT`].
pub fn read_line(input: &mut impl BufRead, line: &mut String) -> io::Result<usize> {
    let read = input.by_ref().take(LINE_LIMIT + 1).read_line(line)?;
    match read as u64 > LINE_LIMIT {
        true => {
            let why = format!("found a line that is longer, allowed are {}", in_words(LINE_LIMIT));
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        false => Ok(read),
    }
}

/// The lines of a file without their ends.
pub struct Lines(BufReader<File>);

impl Lines {
    /// Opens the lines of the file at a path.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(path: &Path) -> io::Result<Self> {
        open(path).map(BufReader::new).map(Self)
    }
}

impl Iterator for Lines {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let mut line = String::new();
        match read_line(&mut self.0, &mut line) {
            Ok(0) => None,
            Ok(_) => {
                line.truncate(line.trim_end_matches(['\n', '\r']).len());
                Some(Ok(line))
            }
            Err(why) => Some(Err(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_none_is_endless() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join("lines");
        std::fs::write(&path, "one\r\n\ntwo").expect("it can be written");
        let lines: Vec<String> =
            Lines::open(&path).expect("it is there").collect::<io::Result<_>>().expect("they are text");
        assert_eq!(lines, ["one", "", "two"]);
        // A terabyte of nothing that takes no room.
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("the disk has holes");
        let why = Lines::open(&path).expect("it is there").next().expect("it has a line").expect_err("it is endless");
        assert_eq!(why.to_string(), "found a line that is longer, allowed are 64 MiB");
    }
}
