//! A regular file, opened without waiting and read within a limit.

use super::in_words;
use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

/// The reason why a file is not read.
#[derive(Debug, thiserror::Error)]
enum InputError {
    #[error("found {0}, allowed is a file")]
    NoFile(&'static str),
    #[error("found a pipe without a reader, allowed is a file")]
    NoReader,
    #[error("{0}: {1}")]
    At(String, Box<Self>),
    #[error("found {found}, allowed are {}", in_words(*allowed))]
    TooLarge { found: String, allowed: u64 },
    #[error("found bytes that are no text: {0}")]
    NoText(#[from] std::string::FromUtf8Error),
}

impl From<InputError> for io::Error {
    fn from(refused: InputError) -> Self {
        Self::new(io::ErrorKind::InvalidData, refused)
    }
}

/// The identity of a file, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// The system does not give the file's metadata.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::told(&found))
    }

    /// Returns the identity of a path's file; `None` if there is none.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|found| Self::told(&found))
    }

    fn told(found: &Metadata) -> Self {
        Self { device: found.dev(), number: found.ino() }
    }
}

/// Opens a regular file for reading; a link is followed.
///
/// # Errors
/// It cannot be opened, or is a folder, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // The type is checked before opening, because opening alone can have an effect on a device.
    refuse(fs::metadata(path)?.file_type())?;
    // It is checked again afterwards, because another file may be there by then. Opening does not wait.
    let flags = rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    refuse(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a regular file of this program for appending. Creates a missing file with access for its owner alone. Refuses a link, because
/// anyone who may write to the folder could have it lead anywhere.
///
/// # Errors
/// It cannot be opened, or is a link, a folder, a pipe, a socket or a device.
pub fn open_own(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        found => refuse(found?.file_type())?,
    }
    // A file that exists by then is opened without waiting, and checked again.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags.bits() as i32).open(path)?;
    refuse(file.metadata()?.file_type())?;
    Ok(file)
}

/// Returns true if there is no such file, if it is empty or no regular file, or if its first bytes are as wanted.
pub fn is_missing_or(path: &Path, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    let Ok(found) = fs::metadata(path) else { return true };
    if !found.is_file() || found.len() == 0 {
        return true;
    }
    let mut head = [0; 4_096];
    File::open(path).and_then(|mut file| file.read(&mut head)).is_ok_and(|length| is_wanted(&head[..length]))
}

/// Creates a file to write to, or empties the existing one. Accepts devices, and pipes that have a reader.
///
/// # Errors
/// It cannot be opened, or is a pipe without a reader.
pub fn create(path: &Path) -> io::Result<File> {
    // Without this flag, opening a pipe would wait for its reader.
    let flags = rustix::fs::OFlags::NONBLOCK;
    let opened =
        OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags.bits() as i32).open(path);
    let file = opened.map_err(|why| match why.raw_os_error() {
        Some(number) if number == rustix::io::Errno::NXIO.raw_os_error() => InputError::NoReader.into(),
        _ => why,
    })?;
    // Writing may wait.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

/// Checks that a folder of this program's own holds files and folders only, however deep. Opening a pipe in it would wait for ever.
///
/// # Errors
/// It holds something else, which is named, or cannot be read.
pub fn check_own_folder(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        // A running testnet may have removed it.
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() && !path.is_symlink() => check_own_folder(&path)?,
            Ok(found) if found.is_dir() => {}
            Ok(found) => {
                refuse(found.file_type()).map_err(|why| InputError::At(path.display().to_string(), why.into()))?
            }
            // A dangling link, or a file that was just deleted, delays no caller.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Reads a whole file of at most `allowed` bytes.
///
/// # Errors
/// As [`open`]; or it is larger.
pub fn read(path: &Path, allowed: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > allowed {
        return Err(InputError::TooLarge { found: in_words(length), allowed }.into());
    }
    let mut bytes = Vec::with_capacity(length as usize);
    // Some files do not report their length, and others grow.
    file.take(allowed + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > allowed {
        true => Err(InputError::TooLarge { found: "more".to_owned(), allowed }.into()),
        false => Ok(bytes),
    }
}

/// [`read`] of text.
///
/// # Errors
/// As [`read`]; or it is no UTF-8.
pub fn read_text(path: &Path, allowed: u64) -> io::Result<String> {
    Ok(String::from_utf8(read(path, allowed)?).map_err(InputError::from)?)
}

fn refuse(found: FileType) -> Result<(), InputError> {
    let what = match () {
        () if found.is_file() => return Ok(()),
        () if found.is_dir() => "a folder",
        () if found.is_symlink() => "a link",
        () if found.is_fifo() => "a pipe",
        () if found.is_socket() => "a socket",
        () => "a device",
    };
    Err(InputError::NoFile(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::fs::symlink};

    #[test]
    fn only_files_are_read_and_only_so_far() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("four"), "four").expect("it can be written");
        symlink(path("four"), path("link")).expect("it can be made");
        symlink("/dev/zero", path("zeros")).expect("it can be made");
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("it can be made");
        let text = |name: &str, allowed| read_text(&path(name), allowed).map_err(|why| why.to_string());
        assert_eq!(text("four", 4), Ok("four".to_owned()));
        assert_eq!(text("link", 4), Ok("four".to_owned()));
        assert_eq!(text("four", 3), Err("found 4 bytes, allowed are 3 bytes".to_owned()));
        assert_eq!(text("pipe", 9), Err("found a pipe, allowed is a file".to_owned()));
        assert_eq!(text("zeros", 9), Err("found a device, allowed is a file".to_owned()));
        assert_eq!(text("", 9), Err("found a folder, allowed is a file".to_owned()));
        assert!(text("none", 9).is_err_and(|why| why.contains("No such file")));
        // It says that it is empty, and is not.
        let maps = read(Path::new("/proc/self/maps"), 9).expect_err("it is longer").to_string();
        assert_eq!(maps, "found more, allowed are 9 bytes");
        fs::write(path("bytes"), [0xff]).expect("it can be written");
        assert!(text("bytes", 9).is_err_and(|why| why.starts_with("found bytes that are no text: invalid utf-8")));
    }

    #[test]
    fn a_pipe_is_written_to_where_somebody_reads_it() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let (pipe, inner) = (folder.path().join("pipe"), folder.path().join("inner"));
        fs::create_dir(&inner).expect("it can be made");
        fs::write(inner.join("file"), "old").expect("it can be written");
        symlink("nowhere", inner.join("link")).expect("it can be made");
        assert!(check_own_folder(folder.path()).is_ok());
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("it can be made");
        let why = check_own_folder(folder.path()).expect_err("there is a pipe").to_string();
        assert_eq!(why, format!("{}: found a pipe, allowed is a file", pipe.display()));
        let why = create(&pipe).expect_err("there is no reader").to_string();
        assert_eq!(why, "found a pipe without a reader, allowed is a file");
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut reader = OpenOptions::new().read(true).custom_flags(flags).open(&pipe).expect("it is there");
        create(&pipe).and_then(|mut pipe| pipe.write_all(b"read")).expect("there is a reader");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it was written");
        assert_eq!(text, "read");
        create(&inner.join("file")).and_then(|mut file| file.write_all(b"n")).expect("it can be written");
        assert_eq!(fs::read_to_string(inner.join("file")).expect("it is there"), "n");
        assert!(create(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_file_is_the_same_by_any_path() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "").expect("it can be written");
        fs::write(path("b"), "").expect("it can be written");
        symlink("a", path("link")).expect("it can be made");
        fs::hard_link(path("a"), path("hard")).expect("it can be made");
        let a = Identity::of(&open(&path("a")).expect("it is there")).expect("the system says");
        for same in ["a", "./a", "../a", "link", "hard"] {
            let same = same.replace("..", &format!("../{}", folder.path().file_name().unwrap().display()));
            assert_eq!(Identity::at(&path(&same)), Some(a), "{same}");
        }
        assert_ne!(Identity::at(&path("b")), Some(a));
        assert_eq!(Identity::at(&path("c")), None);
    }
}
