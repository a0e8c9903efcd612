//! Webhooks on disk: one file a node, replaced as a whole, and readable by its owner only, since secrets are in it.

use crate::actors::{
    NodeId,
    webhook::{WEBHOOKS_MAX, Webhook},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder that one process keeps its data in.
#[derive(Clone, Debug)]
pub struct DataDir {
    folder: PathBuf,
    /// Locked for as long as it is open.
    _lock: Arc<File>,
}

/// Where the webhooks of one node are kept.
#[derive(Clone, Debug)]
pub struct Store {
    file: PathBuf,
    _folder: DataDir,
}

/// Why data cannot be kept, or read back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: cannot be used: {source}")]
    Unusable { path: String, source: io::Error },
    #[error("{path}: another process keeps its data there")]
    InUse { path: String },
    #[error("{path}: holds no webhooks: {source}")]
    NotUnderstood { path: String, source: serde_json::Error },
    #[error("{path}: holds {found} webhooks, allowed are {WEBHOOKS_MAX}")]
    TooMany { path: String, found: usize },
}

#[derive(Serialize)]
struct Kept<'a> {
    webhooks: Vec<&'a Webhook>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    webhooks: Vec<Webhook>,
}

impl DataDir {
    /// A folder, made if it is not there.
    ///
    /// # Errors
    /// It cannot be made or written to, or another process has it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.display().to_string();
        let lock = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join("lock")))
            .map_err(|source| StoreError::Unusable { path: path.clone(), source })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_owned(), _lock: Arc::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path }),
            Err(TryLockError::Error(source)) => Err(StoreError::Unusable { path, source }),
        }
    }

    /// Where a node's webhooks are kept, and those that are there.
    ///
    /// # Errors
    /// There is a file that is not understood.
    pub fn webhooks(&self, node: NodeId) -> Result<(Store, Vec<Webhook>), StoreError> {
        let file = self.folder.join(format!("webhooks-{node}.json"));
        let path = file.display().to_string();
        let webhooks = match fs::read(&file) {
            Ok(bytes) => {
                serde_json::from_slice::<Read>(&bytes)
                    .map_err(|source| StoreError::NotUnderstood { path: path.clone(), source })?
                    .webhooks
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(StoreError::Unusable { path, source }),
        };
        if webhooks.len() > WEBHOOKS_MAX {
            return Err(StoreError::TooMany { path, found: webhooks.len() });
        }
        Ok((Store { file, _folder: self.clone() }, webhooks))
    }
}

impl Store {
    /// Keeps these and no others: whoever reads finds the old file or the new one, never a part.
    ///
    /// # Errors
    /// They cannot be written; the old ones are still there.
    pub fn save(&self, webhooks: &[Arc<Webhook>]) -> io::Result<()> {
        let kept = Kept { webhooks: webhooks.iter().map(|hook| &**hook).collect() };
        let new = self.file.with_extension("json.new");
        match fs::remove_file(&new) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            // One that was left behind may be readable by others; its successor is not.
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(&kept)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.file)?;
        File::open(self.file.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn hook(id: &str) -> Arc<Webhook> {
        let (event, target) = ("block.applied".to_owned(), "http://127.0.0.1:1/".to_owned());
        let secret = "s".repeat(32);
        Arc::new(Webhook { id: id.to_owned(), event, target, secret, enabled: true, conditions: Vec::new() })
    }

    #[test]
    fn what_was_kept_is_there_again_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("data");
        let data = DataDir::open(&inner).unwrap();
        let (store, found) = data.webhooks(NodeId(0)).unwrap();
        assert_eq!(found, []);
        fs::write(inner.join("webhooks-node-0.json.new"), "left behind by a crash").unwrap();
        store.save(&[hook("a"), hook("b")]).unwrap();
        store.save(&[hook("a")]).unwrap();
        assert_eq!(data.webhooks(NodeId(0)).unwrap().1, [(*hook("a")).clone()]);
        assert_eq!(data.webhooks(NodeId(1)).unwrap().1, [], "each node has its own");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&inner.join("webhooks-node-0.json"))), (0o700, 0o600));
        assert!(!inner.join("webhooks-node-0.json.new").exists());
    }

    #[test]
    fn mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let in_use = DataDir::open(folder.path()).unwrap_err();
        assert!(in_use.to_string().contains("another process"), "{in_use}");
        fs::write(folder.path().join("webhooks-node-0.json"), "{\"webhooks\": [{}]}").unwrap();
        let wrong = data.webhooks(NodeId(0)).unwrap_err().to_string();
        assert!(wrong.contains("webhooks-node-0.json: holds no webhooks: missing field `id`"), "{wrong}");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(DataDir::open(&file.join("x")).unwrap_err(), StoreError::Unusable { .. }));
    }
}
