//! A log on disk. Another user cannot turn it against its owner, it is never larger than two files, and it is reopened when a program
//! that rotates logs asks for that.

use super::output::{Printer, aside};
use signal_hook::consts::SIGHUP;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::{
        fs::{FileTypeExt, OpenOptionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// Appends lines to a file. A full file is renamed to `FILE.1` and replaces the earlier file of that name.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    length_max: u64,
    anew: Anew,
}

/// A request to a log to reopen its file. The log does so at its next flush, between two lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Anew(Arc<AtomicBool>);

impl Anew {
    /// Has the log of `printer` open its file anew at each SIGHUP. A thread that does nothing else waits for them.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn at_hang_up(self, printer: Printer) -> io::Result<()> {
        let (mut signals, told) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGHUP, told)?;
        thread::spawn(move || {
            let mut came = [0; 64];
            loop {
                match signals.read(&mut came) {
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    Ok(1..) => {
                        self.0.store(true, Ordering::Release);
                        printer.flush_soon();
                    }
                    Ok(0) | Err(_) => break,
                }
            }
        });
        Ok(())
    }
}

impl LogFile {
    /// Opens a file for appending. A new file is readable by its owner only. `length_max` is in bytes.
    ///
    /// # Errors
    /// The path names a link, a pipe, a folder or a device, or the system refuses it.
    pub fn open(path: &Path, length_max: u64) -> io::Result<Self> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length, length_max, anew: Anew::default() })
    }

    /// A handle that asks for the file to be reopened.
    pub fn anew(&self) -> Anew {
        self.anew.clone()
    }

    /// Continues in the file that has the name now. If that fails, the log stays in the open file and loses nothing.
    fn reopen(&mut self) {
        match Self::open(&self.path, self.length_max) {
            Ok(Self { file, length, .. }) => (self.file, self.length) = (file, length),
            Err(why) => {
                let path = self.path.display();
                let text = format!("dposlab: --log {path}: {why}. The log goes on in the file that was open");
                // A stuck reader of standard error must not block the log.
                thread::spawn(move || aside(&text));
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        match fs::rename(&self.path, old) {
            // Another program has moved the file away, and is about to send SIGHUP.
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        (self.file, self.length) = (open(&self.path)?, 0);
        Ok(())
    }
}

/// Opens the file. Waits for no pipe and follows no link: another user may have put either there.
fn open(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(io::Error::other(format!("is {}, and no file", kind(&found)))),
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()? {
        found if !found.is_file() => Err(io::Error::other(format!("is {}, and no file", kind(&found)))),
        _ => Ok(file),
    }
}

fn kind(found: &fs::Metadata) -> &'static str {
    let of = found.file_type();
    match () {
        () if of.is_symlink() => "a link",
        () if of.is_dir() => "a folder",
        () if of.is_fifo() => "a pipe",
        () if of.is_socket() => "a socket",
        () => "a device",
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length > 0 && self.length + bytes.len() as u64 > self.length_max {
            self.rotate()?;
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.anew.0.swap(false, Ordering::Acquire) {
            self.reopen();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &mut LogFile, lines: std::ops::Range<u32>) {
        for line in lines {
            log.write_all(format!("line {line:04}\n").as_bytes()).unwrap();
        }
    }

    #[test]
    fn a_log_goes_on_and_is_never_larger_than_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        lines(&mut LogFile::open(&path, 100).unwrap(), 0..5);
        lines(&mut LogFile::open(&path, 100).unwrap(), 5..33);
        let (old, new) = (fs::read_to_string(folder.path().join("log.1")).unwrap(), fs::read_to_string(&path).unwrap());
        assert_eq!((old.lines().count(), new.lines().count()), (10, 3));
        assert!(old.starts_with("line 0020") && new.ends_with("line 0032\n"), "{old}{new}");
    }

    #[test]
    fn a_log_that_was_moved_away_is_opened_anew_when_it_is_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.old"));
        let mut log = LogFile::open(&path, 100).unwrap();
        lines(&mut log, 0..2);
        fs::rename(&path, &old).unwrap();
        log.flush().unwrap();
        lines(&mut log, 2..3);
        assert!(!path.exists(), "no new file was requested");
        log.anew().0.store(true, Ordering::Relaxed);
        log.flush().unwrap();
        lines(&mut log, 3..5);
        let (old, new) = (fs::read_to_string(old).unwrap(), fs::read_to_string(&path).unwrap());
        assert_eq!((old.as_str(), new.as_str()), ("line 0000\nline 0001\nline 0002\n", "line 0003\nline 0004\n"));
        // The count is the new file's length.
        lines(&mut log, 5..14);
        assert_eq!(fs::read_to_string(folder.path().join("log.1")).unwrap().lines().count(), 10);
    }

    #[test]
    fn a_log_that_cannot_be_opened_anew_goes_on_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.old"));
        let mut log = LogFile::open(&path, 100).unwrap();
        fs::rename(&path, &old).unwrap();
        fs::create_dir(&path).unwrap();
        log.anew().0.store(true, Ordering::Relaxed);
        log.flush().unwrap();
        lines(&mut log, 0..2);
        assert_eq!(fs::read_to_string(old).unwrap(), "line 0000\nline 0001\n");
    }

    #[test]
    fn a_log_that_is_full_after_it_was_moved_away_begins_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = LogFile::open(&path, 100).unwrap();
        lines(&mut log, 0..10);
        fs::rename(&path, folder.path().join("log.old")).unwrap();
        lines(&mut log, 10..11);
        assert_eq!(fs::read_to_string(path).unwrap(), "line 0010\n");
    }

    #[test]
    fn what_is_no_file_is_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(path("victim"), path("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for (name, wanted) in [("link", "a link"), ("pipe", "a pipe"), ("folder", "a folder")] {
            let why = LogFile::open(&path(name), 100).err().expect("it is no file").to_string();
            assert!(why.contains(wanted), "{name}: {why}");
        }
        assert!(LogFile::open(Path::new("/dev/full"), 100).err().unwrap().to_string().contains("a device"));
        assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
    }
}
