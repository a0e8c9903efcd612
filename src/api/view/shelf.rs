//! The settled part of all lists, in a folder of its own.
//!
//! Everything in the folder can be computed again from the settled blocks. After a crash it may lag behind them, and opening the
//! shelf adds the missing blocks. A folder that is missing, damaged, of another version or of another chain is rebuilt. It may
//! contain more blocks than have settled, because a continued run plays the same blocks again. Before the shelf adds more, it
//! checks that they are the same.
//!
//! ```text
//!   b height            ─► what lists look at of a block (`Summary`)
//!   s address position  ─► a row of what a wallet sent; likewise r received, a in any role, k of a type, f forged
//!   n list              ─► how many rows: three numbers for a wallet, one for others
//!   u lock              ─► the claim or refund
//!   c height            ─► the height above which the batch that ended there began
//!   m                   ─► the version and the top
//! ```
//!
//! A batch is written as a whole or not at all. The sequence of batches is checked when the folder is opened. Without this check
//! a batch that damage removed from the middle would only show as a shorter list.

mod code;
mod table;

use self::{
    code::{Counts, Mark},
    table::{Batch, Table},
};
use super::{
    chain::parties,
    entry::{Contents, Entry, Facts, Spot, Totals},
    older::{List, Older, Row, Summary, Visit},
};
use crate::{
    ledger::{
        Link,
        settled_chain::{SettledChain, SettledError},
    },
    protocol::{Asset, Height, TransactionId, transaction::Version},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

/// The number of keys at which a batch is written.
const BATCH_KEYS: usize = 20_000;
/// The file that marks the folder as damaged.
const DAMAGED: &str = "damaged";
/// The largest size of the cache of blocks [bytes].
const AT_HAND_BYTES: usize = 4 << 20;

/// The settled part of all lists.
pub struct Shelf {
    folder: PathBuf,
    table: Table,
    /// The byte of the network in its addresses.
    network: u8,
    top: AtomicU32,
    epoch: AtomicU64,
    /// The lock of the one writer that adds blocks.
    writing: Mutex<()>,
    at_hand: Mutex<AtHand>,
}

/// The findings of opening a shelf.
#[derive(Debug)]
pub struct ShelfOpening {
    /// The number of missing blocks that it has added.
    pub taken_in: u32,
    /// The reason why an existing shelf was rebuilt, if it was.
    pub rebuilt: Option<String>,
}

/// The cache of recently read blocks.
#[derive(Default)]
struct AtHand {
    entries: BTreeMap<Height, Arc<Entry>>,
    /// The cached heights, oldest first, each with its size in bytes.
    order: VecDeque<(Height, usize)>,
    bytes: usize,
}

impl Shelf {
    /// Opens the shelf of a folder, and adds all settled blocks that it lacks.
    ///
    /// # Errors
    /// The folder cannot be read or written, or a settled block cannot be read.
    pub fn open(
        folder: &Path,
        settled: Option<&dyn SettledChain>,
        network: u8,
    ) -> Result<(Self, ShelfOpening), SettledError> {
        Self::open_and_tell(folder, settled, network, |_, _| {})
    }

    /// [`Shelf::open`], which reports its progress to `tell` while it adds blocks: the height reached, and the height to reach.
    ///
    /// # Errors
    /// As [`Shelf::open`].
    pub fn open_and_tell(
        folder: &Path,
        settled: Option<&dyn SettledChain>,
        network: u8,
        mut tell: impl FnMut(Height, Height),
    ) -> Result<(Self, ShelfOpening), SettledError> {
        let existed = folder.exists();
        let (table, top, rebuilt) = match Self::existing(folder, settled) {
            Ok((table, top)) => (table, top, None),
            Err(why) if why.source.kind() == io::ErrorKind::ResourceBusy => return Err(why),
            Err(why) => {
                // Everything in the folder can be computed again.
                table::remove(folder)?;
                (Table::open(folder)?, Height(0), existed.then(|| why.to_string()))
            }
        };
        let shelf = Self {
            folder: folder.to_owned(),
            table,
            network,
            top: AtomicU32::new(top.0),
            epoch: AtomicU64::new(0),
            writing: Mutex::default(),
            at_hand: Mutex::default(),
        };
        let Some(settled) = settled.filter(|settled| settled.top() > top) else {
            return Ok((shelf, ShelfOpening { taken_in: 0, rebuilt }));
        };
        while shelf.top() < settled.top() {
            shelf.take_in(settled.top(), &|height| known(settled, height))?;
            tell(shelf.top(), settled.top());
        }
        Ok((shelf, ShelfOpening { taken_in: settled.top().0 - top.0, rebuilt }))
    }

    /// Flushes written rows from memory into the store's files. The store also does this by itself at times.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn flush(&self) -> Result<(), SettledError> {
        self.table.flush()
    }

    /// The table of a folder, and the height up to which it is complete. Creates an empty table if there is none.
    fn existing(folder: &Path, settled: Option<&dyn SettledChain>) -> Result<(Table, Height), SettledError> {
        if folder.join(DAMAGED).exists() {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it was found damaged");
            return Err(SettledError { file: folder.to_owned(), source });
        }
        let table = Table::open(folder)?;
        let Some(mark) = table.get(code::MARK)? else { return Ok((table, Height(0))) };
        let mark = Mark::read(&mark).ok_or_else(|| table.damaged("its mark"))?;
        if mark.version != code::VERSION {
            return Err(table.wrong(format!("version {}, not {}", mark.version, code::VERSION)));
        }
        let mut end = Height(0);
        table.each(&[code::BATCH], &[code::BATCH + 1], false, &mut |key, value| {
            let (from, to) = (code::height(value), code::height(key.get(1..).unwrap_or_default()));
            if from != Some(end) {
                return Err(table.wrong(format!("a batch after height {end} is missing")));
            }
            end = to.ok_or_else(|| table.damaged("a batch"))?;
            Ok(ControlFlow::Continue(()))
        })?;
        if end != mark.top {
            return Err(table.wrong(format!("a batch after height {end} is missing")));
        }
        let common = settled.map_or(Height(0), SettledChain::top).min(mark.top);
        if let Some(settled) = settled.filter(|_| common > Height(0)) {
            let mark = code::id_mark(&known(settled, common)?.id());
            if summary(&table, common)?.is_none_or(|kept| kept.id_mark != mark) {
                return Err(table.wrong(format!("another chain at height {common}")));
            }
        }
        Ok((table, mark.top))
    }

    /// Writes the blocks above the top that fit one batch.
    fn take_in(&self, to: Height, at: &dyn Fn(Height) -> Result<Arc<Link>, SettledError>) -> Result<(), SettledError> {
        let from = self.top();
        let mut writer = Writer::new(self, from)?;
        while writer.top < to && writer.batch.len() < BATCH_KEYS {
            writer.add(&at(writer.top.next())?)?;
        }
        let top = writer.top;
        let mut batch = writer.finish();
        batch.insert(code::batch_key(top), from.0.to_be_bytes().to_vec());
        batch.insert(code::MARK.to_vec(), Mark { version: code::VERSION, top }.write());
        self.table.write(batch)?;
        self.top.store(top.0, Ordering::Release);
        Ok(())
    }

    /// Empties the shelf, because the run has left its chain.
    fn begin_anew(&self) -> Result<(), SettledError> {
        // A concurrent reader checks the epoch at its end and finds its answer void.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.top.store(0, Ordering::Release);
        self.table.clear()?;
        // After the table: this drops everything cached until now, and later insertions are checked against the table.
        *self.at_hand() = AtHand::default();
        Ok(())
    }

    /// Marks the folder for a rebuild at the next start if the read found damage.
    fn noted<T>(&self, read: Result<T, SettledError>) -> Result<T, SettledError> {
        read.inspect_err(|why| {
            if why.source.kind() == io::ErrorKind::InvalidData {
                // Without the mark the next start finds the damage as this one did.
                let _noted = fs::write(self.folder.join(DAMAGED), why.to_string());
            }
        })
    }

    fn counts(&self, list: &List) -> Result<Counts, SettledError> {
        let value = self.noted(self.table.get(&code::count_key(list)))?;
        let counts = value.map(|value| Counts::read(&value).ok_or_else(|| self.table.damaged("a count")));
        self.noted(counts.transpose()).map(Option::unwrap_or_default)
    }

    fn row(&self, list: &List, position: u64) -> Result<Row, SettledError> {
        let value = self.noted(self.table.get(&code::row_key(list, position)))?;
        let row = value.and_then(|value| code::read_row(list, &value));
        self.noted(row.ok_or_else(|| self.table.damaged("a row")))
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        // The data is a cache, so a partial change after a panic does no harm.
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Older for Shelf {
    fn top(&self) -> Height {
        Height(self.top.load(Ordering::Acquire))
    }

    fn network(&self) -> u8 {
        self.network
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn extend(&self, to: Height, at: &dyn Fn(Height) -> Arc<Link>) -> Result<(), SettledError> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let common = self.top().min(to);
        if common > Height(0) {
            let mark = code::id_mark(&at(common).id());
            if self.summary(common)?.is_none_or(|kept| kept.id_mark != mark) {
                self.begin_anew()?;
            }
        }
        while self.top() < to {
            self.take_in(to, &|height| Ok(at(height)))?;
        }
        Ok(())
    }

    fn at_hand(&self, height: Height) -> Option<Arc<Entry>> {
        self.at_hand().entries.get(&height).cloned()
    }

    fn with(&self, link: Arc<Link>) -> Result<Arc<Entry>, SettledError> {
        let height = link.height();
        if let Some(entry) = self.at_hand().entries.get(&height).filter(|entry| entry.link().id() == link.id()) {
            return Ok(entry.clone());
        }
        let transactions = &link.block().transactions;
        let is_counted = transactions.iter().any(|one| matches!(one.transaction().version, Version::One(_)));
        let contents = match is_counted {
            true => self.summary(height)?.ok_or_else(|| self.table.damaged("a block"))?.contents,
            false => Contents::of(&link, |_| 0),
        };
        let bytes = 1_024 + transactions.iter().map(|one| 1_024 + one.size()).sum::<usize>();
        let mark = code::id_mark(&link.id());
        let entry = Arc::new(Entry::new(link, contents, self.network));
        let mut at_hand = self.at_hand();
        // A reader of an abandoned chain must not put its blocks into the shared cache.
        if self.summary(height)?.is_some_and(|kept| kept.id_mark == mark) {
            at_hand.keep(entry.clone(), bytes);
        }
        drop(at_hand);
        Ok(entry)
    }

    fn summary(&self, height: Height) -> Result<Option<Summary>, SettledError> {
        self.noted(summary(&self.table, height))
    }

    fn down_from(&self, height: Height, visit: Visit<'_, Summary>) -> Result<(), SettledError> {
        let mut next = height;
        let mut is_enough = false;
        let end = code::block_key(height.next());
        let read = self.table.each(&code::block_key(Height(0)), &end, true, &mut |key, value| {
            if next == Height(0) || code::height(key.get(1..).unwrap_or_default()) != Some(next) {
                return Err(self.table.damaged("a block"));
            }
            let summary = code::read_summary(next, value).ok_or_else(|| self.table.damaged("a block"))?;
            next = Height(next.0 - 1);
            let flow = visit(&summary);
            is_enough = flow.is_break();
            Ok(flow)
        });
        let is_whole = next == Height(0) || is_enough;
        self.noted(read.and_then(|()| if is_whole { Ok(()) } else { Err(self.table.damaged("a block")) }))
    }

    fn length(&self, list: &List, to: Height) -> Result<u64, SettledError> {
        let count = self.counts(list)?.of(list);
        let is_below = |position: u64| Ok(self.row(list, position)?.spot.height <= to);
        if count == 0 || to >= self.top() || is_below(count - 1)? {
            return Ok(count);
        }
        let (mut low, mut high) = (0, count - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_below(middle)? { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    fn rows_before(&self, list: &List, position: u64, visit: Visit<'_, Row>) -> Result<(), SettledError> {
        let mut left = position;
        let (first, end) = (code::row_key(list, 0), code::row_key(list, position));
        let mut is_enough = false;
        let read = self.table.each(&first, &end, true, &mut |key, value| {
            left = left.saturating_sub(1);
            if *key != *code::row_key(list, left) {
                return Err(self.table.damaged("a row"));
            }
            let row = code::read_row(list, value).ok_or_else(|| self.table.damaged("a row"))?;
            let flow = visit(&row);
            is_enough = flow.is_break();
            Ok(flow)
        });
        let is_whole = left == 0 || is_enough;
        self.noted(read.and_then(|()| if is_whole { Ok(()) } else { Err(self.table.damaged("a row")) }))
    }

    fn unlock(&self, lock: &TransactionId) -> Result<Option<Spot>, SettledError> {
        let value = self.noted(self.table.get(&code::unlock_key(lock)))?;
        let spot = value.map(|value| code::read_spot(&value).ok_or_else(|| self.table.damaged("a lock")));
        self.noted(spot.transpose())
    }
}

/// A block that has settled.
fn known(settled: &dyn SettledChain, height: Height) -> Result<Arc<Link>, SettledError> {
    settled.link(height)?.ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::NotFound, format!("no settled block at height {height}"));
        SettledError { file: PathBuf::from("index/blocks"), source }
    })
}

fn summary(table: &Table, height: Height) -> Result<Option<Summary>, SettledError> {
    let Some(value) = table.get(&code::block_key(height))? else { return Ok(None) };
    code::read_summary(height, &value).map(Some).ok_or_else(|| table.damaged("a block"))
}

/// A batch under construction.
struct Writer<'s> {
    shelf: &'s Shelf,
    batch: Batch,
    top: Height,
    /// The counts of the lists that the batch adds to.
    counts: BTreeMap<Vec<u8>, Counts>,
    own_timestamps: u64,
}

impl<'s> Writer<'s> {
    fn new(shelf: &'s Shelf, top: Height) -> Result<Self, SettledError> {
        let before = match top {
            Height(0) => None,
            top => Some(shelf.summary(top)?.ok_or_else(|| shelf.table.damaged("a block"))?),
        };
        let own_timestamps = before.map_or(0, |before| before.own_timestamps);
        Ok(Self { shelf, batch: Batch::default(), top, counts: BTreeMap::new(), own_timestamps })
    }

    fn add(&mut self, link: &Arc<Link>) -> Result<(), SettledError> {
        let (block, height) = (link.block(), link.height());
        // The numbers among the senders' transactions come first, because the rows contain them.
        let mut running = Vec::with_capacity(block.transactions.len());
        for transaction in &block.transactions {
            let list = List::Sent(transaction.sender_address());
            running.push(self.count_up(&list)? + 1);
        }
        let contents = Contents::of(link, |index| running[index]);
        for (index, (transaction, facts)) in block.transactions.iter().zip(&contents.facts).enumerate() {
            let spot = Spot { height, index: index as u32 };
            self.own_timestamps += u64::from(facts.version == 1 && height > Height::GENESIS);
            self.put(&List::Sent(transaction.sender_address()), running[index] - 1, spot, facts);
            for (party, is_recipient) in parties(transaction) {
                self.append(&List::Any(party), spot, facts)?;
                if is_recipient {
                    self.append(&List::Received(party), spot, facts)?;
                }
            }
            self.append(&List::Of(facts.kind), spot, facts)?;
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.batch.insert(code::unlock_key(lock), code::write_spot(spot));
            }
        }
        let forged = List::Forged(block.header.generator);
        let position = self.count_up(&forged)?;
        self.batch.insert(code::row_key(&forged, position), code::write_height(height));
        let summary = Summary {
            id_mark: code::id_mark(&block.id),
            totals: Totals::of(&block.header),
            contents,
            transactions: link.transactions(),
            own_timestamps: self.own_timestamps,
            payload_mark: *block.header.payload_hash.first_chunk().expect("it has 32 bytes"),
            signature_mark: block.header.signature.last_chunk().copied().unwrap_or_default(),
        };
        self.batch.insert(code::block_key(height), code::write_summary(&summary));
        self.top = height;
        Ok(())
    }

    fn append(&mut self, list: &List, spot: Spot, facts: &Facts) -> Result<(), SettledError> {
        let position = self.count_up(list)?;
        self.put(list, position, spot, facts);
        Ok(())
    }

    fn put(&mut self, list: &List, position: u64, spot: Spot, facts: &Facts) {
        self.batch.insert(code::row_key(list, position), code::write_row(spot, facts));
    }

    /// Reserves the next position of a list and returns it.
    fn count_up(&mut self, list: &List) -> Result<u64, SettledError> {
        let key = code::count_key(list);
        let counts = match self.counts.get_mut(&key) {
            Some(counts) => counts,
            None => {
                let counts = self.shelf.counts(list)?;
                self.counts.entry(key).or_insert(counts)
            }
        };
        Ok(counts.count_up(list))
    }

    fn finish(mut self) -> Batch {
        self.batch.extend(self.counts.into_iter().map(|(key, counts)| (key, counts.write())));
        self.batch
    }
}

impl AtHand {
    fn keep(&mut self, entry: Arc<Entry>, bytes: usize) {
        let height = entry.height();
        if bytes > AT_HAND_BYTES || self.entries.insert(height, entry).is_some() {
            return;
        }
        self.order.push_back((height, bytes));
        self.bytes += bytes;
        while self.bytes > AT_HAND_BYTES
            && let Some((oldest, bytes)) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
            self.bytes -= bytes;
        }
    }
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} up to {}", self.folder.display(), self.top())
    }
}
