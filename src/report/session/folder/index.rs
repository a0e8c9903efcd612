//! The index of a testnet's settled blocks: it finds a block's record in the log by height, by id or by transaction.
//!
//! ```text
//!   DIR/index/blocks   heights       height         -> record, transactions up to it, notable consequences
//!                      ids           block id       -> height
//!                      transactions  transaction id -> height, place in the block
//!                      keys          number         -> public key, for the consequences
//!                      meta          version, network, top
//! ```
//!
//! The log is the truth and the index may be deleted at any time. The index holds no bytes of blocks. Every answer is compared with the
//! block in the log, so a row from before a revert gives no answer. All rows above the top are such rows.

mod value;

use super::{BLOCK, FolderError};
use crate::{
    files::segments::{LogError, Reader, Spot},
    ledger::{
        Link,
        settled_chain::{SettledChain, SettledError},
    },
    protocol::{
        Block, BlockContext, BlockExcerpt, BlockId, Height, NetworkConfig, PublicKey, TransactionId,
        block::BlockDecodeError,
    },
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, config::PartitioningPolicy};
use std::{
    collections::VecDeque,
    fs, io, panic,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};
use value::{Keys, Row};

/// The version of the rows and tables that this build writes.
const VERSION: u32 = 2;
/// The size of the store's cache in bytes.
const CACHE: u64 = 4 << 20;
/// The number of bytes of each table that wait in memory to be written.
const MEMTABLE: u64 = 2 << 20;
/// The largest number of files of the index that are kept open.
const FILES: usize = 64;
/// The number of bytes of an id in a key. Two ids that share them are infeasible to find.
const KEY: usize = 16;
/// The largest index, in bytes, that is read completely when it is opened. A larger one is read on demand.
const READ_THROUGH: u64 = 32 << 20;
/// The number of cached records, and the largest number of their bytes: one answer often needs a block several times.
const RECENT: usize = 8;
const RECENT_BYTES: usize = 1 << 20;
/// The file that marks this index as damaged, in the folder of indexes.
const DAMAGED: &str = "blocks.damaged";

/// The settled blocks of a testnet's folder. A handle answers for the chain that had settled when it was made, and for what
/// has settled on top of it since.
pub struct Index {
    inner: Arc<Inner>,
    /// The number of times that the run had gone back below the top when the handle was made.
    generation: usize,
    me: Weak<Index>,
}

struct Inner {
    folder: PathBuf,
    config: Arc<NetworkConfig>,
    log: Reader,
    database: Database,
    heights: Keyspace,
    ids: Keyspace,
    transactions: Keyspace,
    keys: Keyspace,
    meta: Keyspace,
    known_keys: RwLock<Keys>,
    top: AtomicU32,
    /// The tops that the run went back to.
    cuts: Mutex<Vec<u32>>,
    /// Records that were read last, the newest first.
    recent: Mutex<VecDeque<(Spot, Arc<Vec<u8>>)>>,
    /// The first error that a reader met.
    failed: OnceLock<(PathBuf, String)>,
}

impl Index {
    /// Opens the index of a folder. Makes an empty one if there is none or if it cannot be trusted, and returns the reason for the
    /// latter. The log must exist.
    ///
    /// # Errors
    /// The folder cannot be written to, or the index is open already.
    pub fn open(
        folder: &Path,
        log: Reader,
        config: &Arc<NetworkConfig>,
    ) -> Result<(Arc<Self>, Option<String>), FolderError> {
        let path = folder.join("blocks");
        let io = |source| FolderError::Io { file: path.clone(), source };
        fs::create_dir_all(folder).map_err(io)?;
        let marker = folder.join(DAMAGED);
        let is_there = path.exists();
        let why = match (is_there, marker.exists()) {
            (true, true) => Some("it was found damaged".to_owned()),
            (true, false) => match Inner::opened(&path, &log, config) {
                Ok(inner) => return Ok((Self::handle(Arc::new(inner)), None)),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Err(io(why)),
                Err(why) => Some(why.to_string()),
            },
            (false, _) => None,
        };
        if is_there {
            fs::remove_dir_all(&path).map_err(io)?;
        }
        let inner = Inner::open(&path, &log, config).map_err(|why| io(why.source))?;
        if marker.exists() {
            fs::remove_file(&marker).map_err(io)?;
        }
        Ok((Self::handle(Arc::new(inner)), why))
    }

    fn handle(inner: Arc<Inner>) -> Arc<Self> {
        let generation = inner.cuts().len();
        Arc::new_cyclic(|me| Self { inner, generation, me: me.clone() })
    }

    /// Adds blocks on top, in one atomic step. They ascend from the top, and each has its record of the log.
    ///
    /// # Errors
    /// They cannot be written. None of them is added.
    ///
    /// # Panics
    /// They do not follow the top.
    pub fn add(&self, blocks: &[(Arc<Link>, Spot)]) -> Result<(), SettledError> {
        let inner = &*self.inner;
        let Some((last, _)) = blocks.last() else { return Ok(()) };
        // The batch goes through the journal, although a start reads that. 4,000 ingestions that bypassed it (fjall 3.1.13) took 140 MiB
        // of memory, and one such store could not be opened again.
        let mut batch = inner.database.batch();
        {
            let mut keys = inner.known_keys.write().unwrap_or_else(PoisonError::into_inner);
            let known = keys.len();
            let mut above = inner.top().max(Height::GENESIS);
            for (link, spot) in blocks {
                assert_eq!(link.height(), above.next(), "blocks follow the top without a gap");
                above = link.height();
                let row = Row { spot: *spot, transactions: link.transactions(), notable: link.notable().cloned() };
                let height = link.height().0.to_be_bytes();
                batch.insert(&inner.heights, height, row.bytes(&mut keys));
                batch.insert(&inner.ids, block_key(&link.id()), height);
                for (place, transaction) in link.block().transactions.iter().enumerate() {
                    let spot = [height, (place as u32).to_be_bytes()].concat();
                    batch.insert(&inner.transactions, &transaction.id().0[..KEY], spot);
                }
            }
            for (number, key) in keys.all().iter().enumerate().skip(known) {
                batch.insert(&inner.keys, (number as u32).to_be_bytes(), &key.as_bytes()[..]);
            }
        }
        batch.insert(&inner.meta, "top", last.height().0.to_be_bytes());
        inner.checked(batch.commit())?;
        inner.top.store(last.height().0, Ordering::Release);
        Ok(())
    }

    /// Lowers the top to a height, because the run went back. This handle still answers for the remaining blocks, and never for
    /// blocks that settle later. The returned handle answers for both.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn cut(&self, to: Height) -> Result<Arc<Self>, SettledError> {
        let inner = &self.inner;
        if to < inner.top() {
            let mut cuts = inner.cuts();
            inner.checked(inner.meta.insert("top", to.0.to_be_bytes()))?;
            cuts.push(to.0);
            inner.top.store(to.0, Ordering::Release);
        }
        Ok(Self::handle(inner.clone()))
    }

    /// The record of the log that holds a settled block.
    ///
    /// # Errors
    /// The index cannot be read, or is damaged.
    pub fn spot(&self, height: Height) -> Result<Option<Spot>, SettledError> {
        if height <= Height::GENESIS || height > self.top() {
            return Ok(None);
        }
        self.inner.row(height).map(|row| Some(row.spot))
    }

    /// The first error that a reader of the index met, with its file.
    pub fn failure(&self) -> Option<LogError> {
        let (file, why) = self.inner.failed.get()?;
        Some(LogError::Io { file: file.clone(), source: io::Error::other(why.clone()) })
    }

    /// Waits until all of it is on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), SettledError> {
        self.inner.checked(self.inner.database.persist(fjall::PersistMode::SyncAll))
    }

    /// Bytes on disk.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn bytes(&self) -> Result<u64, SettledError> {
        self.inner.checked(self.inner.database.disk_space())
    }
}

impl SettledChain for Index {
    fn top(&self) -> Height {
        let cuts = self.inner.cuts();
        let cut = cuts.get(self.generation..).and_then(|since| since.iter().min().copied());
        self.inner.top().min(Height(cut.unwrap_or(u32::MAX)))
    }

    fn link(&self, height: Height) -> Result<Option<Arc<Link>>, SettledError> {
        if height.0 == 0 || height > self.top() {
            return Ok(None);
        }
        let inner = &self.inner;
        let settled = self.me.upgrade().expect("the caller holds it");
        if height == Height::GENESIS {
            let genesis = Arc::new(inner.config.genesis.block.clone());
            let transactions = genesis.transactions.len() as u64;
            return Ok(Some(Link::settled(genesis, None, transactions, settled)));
        }
        let row = inner.row(height)?;
        let block = inner.block(height, row.spot)?;
        Ok(Some(Link::settled(block, row.notable, row.transactions, settled)))
    }

    fn excerpt(&self, height: Height, indexes: &[u32]) -> Result<Option<BlockExcerpt>, SettledError> {
        if height.0 == 0 || height > self.top() {
            return Ok(None);
        }
        self.inner.excerpt(height, indexes).map(Some)
    }

    fn height_of(&self, block: &BlockId) -> Result<Option<Height>, SettledError> {
        let inner = &self.inner;
        let Some(found) = inner.checked(inner.ids.get(block_key(block)))? else { return Ok(None) };
        let height = inner.number(&found)?;
        if height > self.top() {
            return Ok(None);
        }
        let is_it = inner.excerpt(height, &[])?.id == *block;
        Ok(is_it.then_some(height))
    }

    fn spot_of(&self, transaction: &TransactionId) -> Result<Option<(Height, u32)>, SettledError> {
        let inner = &self.inner;
        let Some(found) = inner.checked(inner.transactions.get(&transaction.0[..KEY]))? else { return Ok(None) };
        let Some((height, place)) = found.split_at_checked(4) else {
            return Err(inner.damaged("a place is too short"));
        };
        let (height, place) = (inner.number(height)?, inner.number(place)?.0);
        if height > self.top() {
            return Ok(None);
        }
        let found = inner.excerpt(height, &[place])?.transactions;
        let is_it = found.first().is_some_and(|one| one.id() == *transaction);
        Ok(is_it.then_some((height, place)))
    }
}

impl Inner {
    /// Opens an existing index and checks it. The store panics at some damage, so it is opened on a thread of its own, which panics
    /// quietly.
    fn opened(path: &Path, log: &Reader, config: &Arc<NetworkConfig>) -> io::Result<Self> {
        const NAME: &str = "index";
        static QUIET: Once = Once::new();
        QUIET.call_once(|| {
            let tell = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                if thread::current().name() != Some(NAME) {
                    tell(panicked);
                }
            }));
        });
        let (path, log, config) = (path.to_owned(), log.clone(), config.clone());
        let open = move || Self::open(&path, &log, &config).and_then(Self::examined);
        let opened = thread::Builder::new().name(NAME.to_owned()).spawn(open)?;
        match opened.join() {
            Ok(opened) => opened.map_err(|why| why.source),
            Err(_) => Err(io::Error::other("is damaged: the store cannot read it")),
        }
    }

    fn open(path: &Path, log: &Reader, config: &Arc<NetworkConfig>) -> Result<Self, SettledError> {
        let wrong = |why: fjall::Error| SettledError { file: path.to_owned(), source: told(&why) };
        let database = Database::builder(path)
            .cache_size(CACHE)
            .worker_threads(1)
            .max_cached_files(Some(FILES))
            .max_journaling_size(64 << 20)
            .open()
            .map_err(wrong)?;
        // An unpartitioned filter or index of a table is read whole for each answer once it is larger than the cache.
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE)
                .index_block_partitioning_policy(PartitioningPolicy::all(true))
                .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        };
        let table = |name| database.keyspace(name, options).map_err(wrong);
        let (heights, ids, transactions) = (table("heights")?, table("ids")?, table("transactions")?);
        let (keys, meta) = (table("keys")?, table("meta")?);
        let inner = Self {
            folder: path.to_owned(),
            config: config.clone(),
            log: log.clone(),
            database,
            heights,
            ids,
            transactions,
            keys,
            meta,
            known_keys: RwLock::new(Keys::new(config.network.pub_key_hash)),
            top: AtomicU32::new(0),
            cuts: Mutex::default(),
            recent: Mutex::default(),
            failed: OnceLock::new(),
        };
        inner.begin()?;
        Ok(inner)
    }

    /// Loads the keys and the top into memory. Refuses an index that another version or another network has written.
    fn begin(&self) -> Result<(), SettledError> {
        let (version, network) = (VERSION.to_be_bytes(), self.config.genesis.block.header.payload_hash);
        match (self.checked(self.meta.get("version"))?, self.checked(self.meta.get("network"))?) {
            (None, None) => {
                let mut batch = self.database.batch();
                batch.insert(&self.meta, "version", version);
                batch.insert(&self.meta, "network", network);
                self.checked(batch.commit())?;
            }
            (Some(found), Some(of)) if *found == version && *of == network => {}
            _ => return Err(self.wrong("it is of another version or of another network".to_owned())),
        }
        let mut keys = self.known_keys.write().unwrap_or_else(PoisonError::into_inner);
        for row in self.keys.iter() {
            let (_, key) = self.checked(row.into_inner())?;
            let key = <[u8; 33]>::try_from(&*key).map_err(|_| self.damaged("a key is no public key"))?;
            keys.number(&PublicKey::from_bytes(key));
        }
        drop(keys);
        if let Some(top) = self.checked(self.meta.get("top"))? {
            self.top.store(self.number(&top)?.0, Ordering::Release);
        }
        Ok(())
    }

    /// Reads the newest block, because an index may be ahead of a log that lost its end. Also reads all rows of a small index.
    fn examined(self) -> Result<Self, SettledError> {
        let top = self.top();
        if top > Height::GENESIS {
            self.block(top, self.row(top)?.spot)?;
        }
        if self.checked(self.database.disk_space())? > READ_THROUGH {
            return Ok(self);
        }
        // Rows of blocks that were settled before the run went back may be left over, and none may be missing.
        let transactions = match top > Height::GENESIS {
            true => self.row(top)?.transactions - self.config.genesis.block.transactions.len() as u64,
            false => 0,
        };
        let blocks = u64::from(top.0.saturating_sub(Height::GENESIS.0));
        for (table, least, what) in [(&self.ids, blocks, "blocks"), (&self.transactions, transactions, "transactions")]
        {
            let mut rows = 0;
            for row in table.iter() {
                self.checked(row.into_inner())?;
                rows += 1;
            }
            if rows < least {
                return Err(self.wrong(format!("found {rows} ids of {what}, {least} are settled")));
            }
        }
        let mut next = Height::GENESIS.next();
        for row in self.heights.iter() {
            let (height, row) = self.checked(row.into_inner())?;
            let height = self.number(&height)?;
            if height > top {
                break;
            }
            if height != next {
                return Err(self.wrong(format!("height {next} is missing")));
            }
            self.parsed(&row)?;
            next = height.next();
        }
        match next.0 > top.0 {
            true => Ok(self),
            false => Err(self.wrong(format!("height {next} is missing"))),
        }
    }

    fn top(&self) -> Height {
        Height(self.top.load(Ordering::Acquire))
    }

    fn cuts(&self) -> MutexGuard<'_, Vec<u32>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(&self, height: Height) -> Result<Row, SettledError> {
        let row = self.checked(self.heights.get(height.0.to_be_bytes()))?;
        let row = row.ok_or_else(|| self.damaged(&format!("height {height} is missing")))?;
        self.parsed(&row)
    }

    fn parsed(&self, row: &[u8]) -> Result<Row, SettledError> {
        let keys = self.known_keys.read().unwrap_or_else(PoisonError::into_inner);
        Row::read(row, &keys).ok_or_else(|| self.damaged("a row is not understood"))
    }

    /// The block of a record.
    fn block(&self, height: Height, spot: Spot) -> Result<Arc<Block>, SettledError> {
        self.decoded(height, spot, |bytes, context| {
            let block = Block::from_bytes(bytes, context)?;
            Ok((block.header.height, Arc::new(block)))
        })
    }

    /// A part of the block at a height up to the top.
    fn excerpt(&self, height: Height, indexes: &[u32]) -> Result<BlockExcerpt, SettledError> {
        if height == Height::GENESIS {
            return Ok(self.config.genesis.block.excerpt(indexes));
        }
        self.decoded(height, self.row(height)?.spot, |bytes, context| {
            let excerpt = Block::excerpt_from_bytes(bytes, indexes, context)?;
            Ok((excerpt.header.height, excerpt))
        })
    }

    /// Decodes the record of the block at a height. `decode` also returns the height that it found.
    fn decoded<T>(
        &self,
        height: Height,
        spot: Spot,
        decode: impl FnOnce(&[u8], &BlockContext<'_>) -> Result<(Height, T), BlockDecodeError>,
    ) -> Result<T, SettledError> {
        let record = self.record(spot)?;
        let bytes = record.strip_prefix(&[BLOCK]).ok_or_else(|| self.damaged("a row points to no block"))?;
        let decoded = decode(bytes, &self.config.block_context());
        match decoded.map_err(|why| self.failed(format!("a row points to no block: {why}")))? {
            (found, decoded) if found == height => Ok(decoded),
            _ => Err(self.damaged("a row points to another block")),
        }
    }

    fn record(&self, spot: Spot) -> Result<Arc<Vec<u8>>, SettledError> {
        // A panic while it was locked leaves whole entries.
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, record)) = recent().iter().find(|(of, _)| *of == spot) {
            return Ok(record.clone());
        }
        let record = Arc::new(self.log.read(spot).map_err(|why| self.failed(why.to_string()))?);
        if record.len() <= RECENT_BYTES / RECENT {
            let mut recent = recent();
            recent.truncate(RECENT - 1);
            recent.push_front((spot, record.clone()));
        }
        Ok(record)
    }

    fn number(&self, bytes: &[u8]) -> Result<Height, SettledError> {
        let number = bytes.try_into().map(u32::from_be_bytes);
        number.map(Height).map_err(|_| self.damaged("a number is not of four bytes"))
    }

    fn checked<T>(&self, answer: Result<T, fjall::Error>) -> Result<T, SettledError> {
        answer.map_err(|why| self.failed(told(&why).to_string()))
    }

    fn damaged(&self, why: &str) -> SettledError {
        self.failed(format!("is damaged: {why}"))
    }

    /// Records a failure in memory, and in a file for the next start.
    fn failed(&self, why: String) -> SettledError {
        if self.failed.set((self.folder.clone(), why.clone())).is_ok() {
            // If the file cannot be written, the next start finds the same failure.
            let _next_time = self.folder.parent().map(|folder| fs::write(folder.join(DAMAGED), &why));
        }
        self.wrong(why)
    }

    fn wrong(&self, why: String) -> SettledError {
        SettledError { file: self.folder.clone(), source: io::Error::other(why) }
    }
}

/// An error of the store, in words. An index that is open already is not a damaged one.
fn told(why: &fjall::Error) -> io::Error {
    match why {
        fjall::Error::Io(source) => io::Error::other(source.to_string()),
        fjall::Error::Locked => io::Error::new(io::ErrorKind::WouldBlock, "is open already"),
        _ => io::Error::other(format!("the store reports {why:?}")),
    }
}

fn block_key(id: &BlockId) -> Vec<u8> {
    match id {
        BlockId::Numeric(number) => number.to_be_bytes().to_vec(),
        BlockId::Full(hash) => hash[..KEY].to_vec(),
    }
}
