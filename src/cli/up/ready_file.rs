//! The file that tells scripts that a testnet is ready, and how to use it.

use crate::{
    cli::Failure,
    files::{self, TEXT_LIMIT},
};
use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

/// A file that is there from the moment the API answers until the testnet stops.
pub(crate) struct ReadyFile {
    path: PathBuf,
    /// The file that is written first and then renamed to `path`.
    partial: PathBuf,
    /// The text of the file, once it is written.
    written: Option<String>,
}

impl ReadyFile {
    /// Claims the path. Removes a file that an earlier testnet has left there, so that no reader believes it.
    ///
    /// # Errors
    /// The path holds something else than a ready file, or cannot be written to.
    pub fn claim(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::usage(format!("--ready-file {}: {why}", path.display()));
        let path = std::path::absolute(path).map_err(|why| wrong(why.to_string()))?;
        let Some(name) = path.file_name() else {
            return Err(wrong("names no file".to_owned()));
        };
        if path.symlink_metadata().is_ok() {
            let text = files::read_text(&path, TEXT_LIMIT).map_err(|why| wrong(format!("is there already: {why}")))?;
            let found: Value = serde_json::from_str(&text).unwrap_or_default();
            if found["event"] != "ready" {
                let why = "is there already, and no testnet has written it; move it away or choose another name";
                return Err(wrong(why.to_owned()));
            }
            fs::remove_file(&path).map_err(|why| wrong(format!("an earlier testnet's cannot be removed: {why}")))?;
        }
        let mut partial = name.to_owned();
        partial.push(format!(".{}.partial", process::id()));
        let partial = path.with_file_name(partial);
        fs::write(&partial, "").map_err(|why| wrong(format!("cannot be written: {why}")))?;
        Ok(Self { path, partial, written: None })
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, ready: &Value) -> Result<(), Failure> {
        let text = format!("{ready}\n");
        let written = fs::write(&self.partial, &text).and_then(|()| fs::rename(&self.partial, &self.path));
        written.map_err(|why| Failure::broken(format!("--ready-file {}: {why}", self.path.display())))?;
        self.written = Some(text);
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        match &self.written {
            None => fs::remove_file(&self.partial),
            // The file may belong to another testnet by now.
            Some(written) if fs::read_to_string(&self.path)? == *written => fs::remove_file(&self.path),
            Some(_) => Ok(()),
        }
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        // An error is fine: another program has already removed the file.
        let _gone_already = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn it_is_there_while_its_testnet_is_and_never_in_parts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ready.json");
        let mut ready = ReadyFile::claim(&path).expect("nothing is there");
        assert!(!path.exists(), "not ready yet");
        ready.write(&json!({"event": "ready", "seed": 1})).expect("it can be written");
        assert_eq!(names(folder.path()), ["ready.json"]);
        // The next one takes the place of one that was killed, and of one that is still there.
        let mut next = ReadyFile::claim(&path).expect("a ready file is no obstacle");
        assert!(!path.exists(), "the old one is gone");
        next.write(&json!({"event": "ready", "seed": 2})).expect("it can be written");
        drop(ready);
        assert!(path.exists(), "it is the other's");
        drop(next);
        assert!(names(folder.path()).is_empty());
        drop(ReadyFile::claim(&path).expect("nothing is there"));
        assert!(names(folder.path()).is_empty(), "one that was never ready leaves nothing");
    }

    #[test]
    fn what_somebody_else_keeps_there_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes.txt");
        fs::write(&path, "mine").expect("it can be written");
        let refused = |path: &Path| match ReadyFile::claim(path) {
            Ok(_) => panic!("{} is taken", path.display()),
            Err(Failure::Usage(why)) => why,
            Err(_) => panic!("{} is the caller's mistake", path.display()),
        };
        assert!(refused(&path).contains("notes.txt: is there already, and no testnet has written it"));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "mine");
        assert!(refused(folder.path()).contains("is there already"));
        assert!(refused(&folder.path().join("none/ready.json")).contains("cannot be written"));
    }
}
