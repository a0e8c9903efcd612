//! Webhooks on disk: a folder for each node, and a file for each webhook that is replaced as a whole, so that a change
//! writes one file. Only their owner can read the files, because they contain secrets.

use super::outbox::{Outbox, Waiting};
use crate::{
    actors::{
        NodeId,
        webhook::{WEBHOOKS_MAX, Webhook},
    },
    files::{self, TEXT_LIMIT, segments::LogError},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder with the data of one process.
#[derive(Clone, Debug)]
pub struct DataDir {
    folder: PathBuf,
    /// The lock file, locked while it is open.
    _lock: Arc<File>,
}

/// The stored webhooks of one node.
#[derive(Debug)]
pub struct KeptWebhooks {
    /// The store of the webhooks.
    pub store: Store,
    /// The webhooks, oldest first.
    pub hooks: Vec<Webhook>,
    pub outbox: Outbox,
    /// The unfinished posts, oldest first.
    pub waiting: Vec<Waiting>,
}

/// The folder that keeps the webhooks of one node.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// The number of each webhook, by its id: they are listed in the order of their creation.
    numbers: BTreeMap<String, u64>,
    _data: DataDir,
}

/// The errors of keeping data, and of reading it back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: cannot be used: {source}")]
    Unusable { path: String, source: io::Error },
    #[error("{path}: another process keeps its data there")]
    InUse { path: String },
    #[error("{path}: holds no webhook: {source}")]
    NotUnderstood { path: String, source: serde_json::Error },
    #[error("{path}: holds {found} webhooks, allowed are {WEBHOOKS_MAX}")]
    TooMany { path: String, found: usize },
    #[error(transparent)]
    Outbox(#[from] LogError),
}

/// The content of one file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredWebhook<W> {
    /// Greater than that of every webhook created before.
    number: u64,
    webhook: W,
}

impl DataDir {
    /// Opens and locks a folder. Creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created or written to, or another process uses it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.display().to_string();
        let unusable = |path: &Path, source| StoreError::Unusable { path: path.display().to_string(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|source| unusable(folder, source))?;
        let file = folder.join("lock");
        let lock = files::open_own(&file).map_err(|source| unusable(&file, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_owned(), _lock: Arc::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path }),
            Err(TryLockError::Error(source)) => Err(unusable(&file, source)),
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Reads the stored webhooks of a node.
    ///
    /// # Errors
    /// A file is damaged or not a webhook, or there are too many.
    pub fn webhooks(&self, node: NodeId) -> Result<KeptWebhooks, StoreError> {
        let folder = self.folder.join(format!("webhooks-{node}"));
        let path = folder.display().to_string();
        let unusable = |source| StoreError::Unusable { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(unusable)?;
        let mut found: Vec<StoredWebhook<Webhook>> = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unusable)? {
            let file = entry.map_err(unusable)?.path();
            match file.extension().and_then(|kind| kind.to_str()) {
                Some("json") => found.push(read(&file)?),
                // A file that was being written when the process ended is no webhook yet, and its name would never be
                // reused.
                Some("new") => fs::remove_file(&file).map_err(unusable)?,
                _ => {}
            }
        }
        if found.len() > WEBHOOKS_MAX {
            return Err(StoreError::TooMany { path, found: found.len() });
        }
        found.sort_by_key(|kept| kept.number);
        let numbers = found.iter().map(|kept| (kept.webhook.id.clone(), kept.number)).collect();
        let hooks = found.into_iter().map(|kept| kept.webhook).collect();
        let (outbox, waiting) = Outbox::open(&folder)?;
        Ok(KeptWebhooks { store: Store { folder, numbers, _data: self.clone() }, hooks, outbox, waiting })
    }
}

/// Writes a new file that only its owner can read.
fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(bytes)?;
    opened.sync_all()
}

fn read(file: &Path) -> Result<StoredWebhook<Webhook>, StoreError> {
    let path = file.display().to_string();
    let bytes = files::read(file, TEXT_LIMIT).map_err(|source| StoreError::Unusable { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| StoreError::NotUnderstood { path, source })
}

impl Store {
    /// Stores a webhook, new or changed. A reader finds the old file or the new one, never a part.
    ///
    /// # Errors
    /// The file cannot be written. The stored webhook does not change.
    pub fn keep(&mut self, webhook: &Webhook) -> io::Result<()> {
        self.write(webhook).map_err(|why| self.named(&webhook.id, &why))
    }

    fn write(&mut self, webhook: &Webhook) -> io::Result<()> {
        let next = self.numbers.values().max().map_or(1, |last| last + 1);
        let number = self.numbers.get(&webhook.id).copied().unwrap_or(next);
        let file = self.file(&webhook.id);
        let new = file.with_extension("new");
        match fs::remove_file(&new) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            // A file that was left behind may be readable by others. Its successor is not.
            Ok(()) | Err(_) => {}
        }
        let written = write_new(&new, &serde_json::to_vec_pretty(&StoredWebhook { number, webhook })?);
        if let Err(why) = written.and_then(|()| fs::rename(&new, &file)) {
            // On a full disk every partial file would use up space.
            let _not_there_or_stuck = fs::remove_file(&new);
            return Err(why);
        }
        self.sync()?;
        self.numbers.insert(webhook.id.clone(), number);
        Ok(())
    }

    /// Forgets a webhook.
    ///
    /// # Errors
    /// Its file cannot be removed.
    pub fn forget(&mut self, id: &str) -> io::Result<()> {
        fs::remove_file(self.file(id)).and_then(|()| self.sync()).map_err(|why| self.named(id, &why))?;
        self.numbers.remove(id);
        Ok(())
    }

    /// Ids are UUIDs, so they are names of files.
    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// An error with the name of a webhook's file.
    fn named(&self, id: &str, why: &io::Error) -> io::Error {
        io::Error::new(why.kind(), format!("{}: {why}", self.file(id).display()))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn hook(id: &str) -> Webhook {
        let (event, target) = ("block.applied".into(), "http://127.0.0.1:1/".to_owned());
        let secret = "s".repeat(32);
        Webhook { id: id.to_owned(), event, target, secret, enabled: true, conditions: Vec::new() }
    }

    #[test]
    fn what_was_kept_is_there_again_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("data");
        let data = DataDir::open(&inner).unwrap();
        let KeptWebhooks { mut store, hooks: found, .. } = data.webhooks(NodeId(0)).unwrap();
        assert_eq!(found, []);
        fs::write(inner.join("webhooks-node-0/b.new"), "left behind by a crash").unwrap();
        for id in ["b", "a", "c"] {
            store.keep(&hook(id)).unwrap();
        }
        let changed = Webhook { enabled: false, ..hook("b") };
        store.keep(&changed).unwrap();
        store.forget("a").unwrap();
        assert_eq!(data.webhooks(NodeId(0)).unwrap().hooks, [changed.clone(), hook("c")], "in the order of creation");
        // The number of a deleted webhook is reused only where no observer can notice it.
        data.webhooks(NodeId(0)).unwrap().store.keep(&hook("a")).unwrap();
        assert_eq!(data.webhooks(NodeId(0)).unwrap().hooks, [changed, hook("c"), hook("a")]);
        assert_eq!(data.webhooks(NodeId(1)).unwrap().hooks, [], "each node has its own");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&inner.join("webhooks-node-0"))), (0o700, 0o700));
        assert_eq!(mode(&inner.join("webhooks-node-0/b.json")), 0o600);
        assert!(!inner.join("webhooks-node-0/b.new").exists());
        fs::write(inner.join("webhooks-node-0/d.new"), "left behind by a crash").unwrap();
        assert_eq!(data.webhooks(NodeId(0)).unwrap().hooks.len(), 3);
        assert!(!inner.join("webhooks-node-0/d.new").exists(), "the start removes it");
    }

    #[test]
    fn a_change_writes_one_webhook_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let KeptWebhooks { mut store, .. } = data.webhooks(NodeId(0)).unwrap();
        (0..50).for_each(|number| store.keep(&hook(&number.to_string())).unwrap());
        let changed = |id: &str| fs::metadata(folder.path().join(format!("webhooks-node-0/{id}.json"))).unwrap();
        let inode = |id: &str| std::os::unix::fs::MetadataExt::ino(&changed(id));
        let before: Vec<u64> = (0..50).map(|number| inode(&number.to_string())).collect();
        store.keep(&Webhook { enabled: false, ..hook("7") }).unwrap();
        let rewritten = (0..50).filter(|number| inode(&number.to_string()) != before[*number as usize]);
        assert_eq!(rewritten.collect::<Vec<u32>>(), [7]);
    }

    #[test]
    fn a_lock_that_is_no_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let other = folder.path().join("other");
        let refused = || DataDir::open(folder.path()).unwrap_err().to_string();
        let told = |what: &str| format!("{}: cannot be used: found {what}, allowed is a file", lock.display());
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        assert_eq!(refused(), told("a link"));
        assert!(!other.exists(), "nothing is made where it leads");
        fs::remove_file(&lock).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(refused(), told("a pipe"));
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert_eq!(refused(), told("a folder"));
        fs::remove_dir(&lock).unwrap();
        let _kept = DataDir::open(folder.path()).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&lock).unwrap().permissions()) & 0o777, 0o600);
    }

    #[test]
    fn mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let in_use = DataDir::open(folder.path()).unwrap_err();
        assert!(in_use.to_string().contains("another process"), "{in_use}");
        data.webhooks(NodeId(0)).unwrap();
        fs::write(folder.path().join("webhooks-node-0/x.json"), "{\"number\": 1, \"webhook\": {}}").unwrap();
        let wrong = data.webhooks(NodeId(0)).unwrap_err().to_string();
        assert!(wrong.contains("webhooks-node-0/x.json: holds no webhook: missing field `id`"), "{wrong}");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(DataDir::open(&file.join("x")).unwrap_err(), StoreError::Unusable { .. }));
    }
}
