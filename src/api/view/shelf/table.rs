//! An ordered table of bytes in a folder: the store behind a shelf. Only this module knows the store's crate.
//!
//! The store reports most damage by an error and some by a panic. This module turns both into errors.

use crate::ledger::settled_chain::SettledError;
use fjall::{
    Database, Error, Guard, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{PartitioningPolicy, PinningPolicy},
};
use std::{
    collections::BTreeMap,
    fs, io,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::Once,
};

/// The size of the read cache [bytes].
const CACHE_BYTES: u64 = 6 << 20;
/// The size of written rows in memory at which the store flushes them [bytes].
const MEMTABLE_BYTES: u64 = 4 << 20;
/// The largest size of the journal on disk [bytes]. The store accepts no less.
const JOURNAL_BYTES: u64 = 64 << 20;
/// The largest number of open files.
const FILES: usize = 64;

/// Keys and values that are written together.
pub(crate) type Batch = BTreeMap<Vec<u8>, Vec<u8>>;

/// A function that is called for each key and value.
pub(crate) type Each<'e> = &'e mut dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, SettledError>;

/// The table.
pub(crate) struct Table {
    folder: PathBuf,
    rows: Keyspace,
    database: Database,
}

/// Removes a table.
pub(crate) fn remove(folder: &Path) -> Result<(), SettledError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(SettledError { file: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

impl Table {
    /// The table of a folder, an empty one where there is none.
    pub fn open(folder: &Path) -> Result<Self, SettledError> {
        let builder = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .max_cached_files(Some(FILES))
            .worker_threads(1);
        let database = sheltered(folder, || builder.open())?;
        // Nearly every lookup finds its key. Indexes that stay in memory would grow with the chain.
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .expect_point_read_hits(true)
                .index_block_partitioning_policy(PartitioningPolicy::all(true))
                .filter_block_partitioning_policy(PartitioningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(false))
                .filter_block_pinning_policy(PinningPolicy::all(false))
        };
        let rows = sheltered(folder, || database.keyspace("lists", options))?;
        Ok(Self { folder: folder.to_owned(), rows, database })
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<fjall::Slice>, SettledError> {
        sheltered(&self.folder, || self.rows.get(key))
    }

    /// Visits the keys from `from` up to below `below`, or in descending order, until `act` stops it.
    pub fn each(&self, from: &[u8], below: &[u8], descending: bool, act: Each<'_>) -> Result<(), SettledError> {
        let mut rows = sheltered(&self.folder, || Ok(self.rows.range(from.to_vec()..below.to_vec())))?;
        loop {
            let next = sheltered(&self.folder, || {
                let next = if descending { rows.next_back() } else { rows.next() };
                next.map(Guard::into_inner).transpose()
            });
            let Some((key, value)) = next? else { return Ok(()) };
            if act(&key, &value)?.is_break() {
                return Ok(());
            }
        }
    }

    /// Writes all of a batch or nothing.
    pub fn write(&self, batch: Batch) -> Result<(), SettledError> {
        let mut all = self.database.batch().durability(Some(PersistMode::Buffer));
        for (key, value) in batch {
            all.insert(&self.rows, key, value);
        }
        sheltered(&self.folder, || all.commit())
    }

    /// Empties the table.
    pub fn clear(&self) -> Result<(), SettledError> {
        sheltered(&self.folder, || self.rows.clear())
    }

    /// Flushes written rows from memory into the table's files.
    pub fn flush(&self) -> Result<(), SettledError> {
        sheltered(&self.folder, || self.rows.rotate_memtable_and_wait())
    }

    /// The error about invalid content.
    pub fn wrong(&self, why: String) -> SettledError {
        SettledError { file: self.folder.clone(), source: io::Error::new(io::ErrorKind::InvalidData, why) }
    }

    /// The error about content that is missing or cannot be what was written.
    pub fn damaged(&self, what: &str) -> SettledError {
        self.wrong(format!("{what} is damaged; remove the folder, and the next start makes it anew"))
    }
}

/// Calls the store. Reports a panic of the store as damage.
fn sheltered<T>(folder: &Path, act: impl FnOnce() -> fjall::Result<T>) -> Result<T, SettledError> {
    static HUSHED: Once = Once::new();
    // The panic's message would name a place in the store's code. The error names the folder instead.
    HUSHED.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_of_store = |file: &str| ["/fjall-", "/lsm-tree-", "/sfa-"].iter().any(|name| file.contains(name));
            if !info.location().is_some_and(|location| is_of_store(location.file())) {
                tell(info);
            }
        }));
    });
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Ok(done) => done.map_err(|why| error(folder, why)),
        Err(_) => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
            Err(SettledError { file: folder.to_owned(), source })
        }
    }
}

fn error(folder: &Path, why: Error) -> SettledError {
    let source = match why {
        Error::Io(source) | Error::Storage(fjall::LsmError::Io(source)) => source,
        Error::Locked => io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it"),
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    };
    SettledError { file: folder.to_owned(), source }
}
