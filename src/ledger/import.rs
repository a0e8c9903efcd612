//! Import of an existing chain, block by block, with full verification.
//!
//! A chain is JSON, one value a line or several: blocks, transactions, and pages of them as the API serves them
//! (`{"meta":…,"data":[…]}`). A block contains its transactions, as wire bytes in hex or as objects; such blocks come in ascending
//! order. Or it lacks them, in either shape of the API, and its transactions are anywhere in the file
//! (`import/served.rs`).

//!
//! ```text
//!   lines ──► batches of lines ──► read, and their signatures verified ──► put on top, one after the other
//!             a thread of its own      all cores                             the caller's thread
//! ```
//!
//! Verifying a signature costs a hundred times as much as the rest of an empty block. So it is done ahead (`Block::check_content`
//! caches its result), while the blocks before are put on top. No more than three batches are in memory at a time.

mod line;
pub(crate) mod served;

use super::{BlockRejected, BlockTree, Link};
use crate::protocol::Height;
pub use line::values_of;
use line::{LineValue, ReadBlock, read_line};
use rayon::prelude::*;
use serde_json::Value;
use served::ServedContent;
use std::{
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

/// The largest number of lines in a batch.
const BATCH_LINES: usize = 512;
/// Bytes of a batch after which no further line is added.
const BATCH_BYTES: usize = 1 << 20;

/// The error of a rejected line of a chain.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ImportError {
    /// From 1.
    pub line: usize,
    pub reason: ImportReason,
}

/// The reason why a line of a chain was rejected.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum ImportReason {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("found {found}, allowed is a block, a transaction, or a page of them as /api/blocks and /api/transactions serve it")]
    Unknown { found: String },
    #[error("key 'height': found {found}, allowed is {expected}")]
    Height { found: Value, expected: Height },
    #[error("block at height {height}: transaction {index}: {why}")]
    Transaction { height: Height, index: usize, why: String },
    #[error("block at height {height}: {why}")]
    Malformed { height: Height, why: String },
    #[error("block at height {height}: of its {wanted} transactions, {found} are in the file in an order that gives its \
             payloadHash; serve them by /api/transactions?transform=false, without orderBy")]
    Transactions { height: Height, wanted: usize, found: usize },
    #[error("transaction {id}: its members are those of {made}; one that expires is whole with transform=false only")]
    OtherTransaction { id: String, made: String },
    #[error("block at height 1: its id is {found}, the network's genesis block is {expected}")]
    OtherGenesis { found: Value, expected: String },
    #[error(transparent)]
    Rejected(#[from] BlockRejected),
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// Bytes of the lines that were taken, with one for the end of each.
    pub bytes: u64,
    /// The height of the last block.
    pub height: Height,
}

/// Puts the blocks of a chain on top of the genesis block, and returns the last one.
///
/// # Errors
/// The first line that is not a block that follows the one before: nothing after it is put on top.
pub fn import<L: AsRef<str> + Send + Sync>(
    tree: &BlockTree,
    lines: impl Iterator<Item = L> + Send,
) -> Result<Arc<Link>, ImportError> {
    import_and_tell(tree, lines, |_| {})
}

/// Imports a chain as [`import`] does, and reports its progress every few hundred blocks.
///
/// # Errors
/// As [`import`].
pub fn import_and_tell<L: AsRef<str> + Send + Sync>(
    tree: &BlockTree,
    lines: impl Iterator<Item = L> + Send,
    mut tell: impl FnMut(ImportProgress),
) -> Result<Arc<Link>, ImportError> {
    let mut tip = tree.genesis().clone();
    let mut served = ServedContent::default();
    let (mut line, mut bytes) = (0, 0);
    thread::scope(|scope| {
        let (send, batches) = sync_channel(1);
        scope.spawn(move || read_ahead(tree, lines, &send));
        for batch in batches {
            for (length, values) in batch {
                line += 1;
                bytes += length as u64 + 1;
                for value in values {
                    take(tree, &mut tip, &mut served, line, value).map_err(|reason| ImportError { line, reason })?;
                }
            }
            tell(ImportProgress { bytes, height: tip.height() });
        }
        Ok(())
    })?;
    served.put_on(tree, tip, |height| tell(ImportProgress { bytes, height }))
}

/// The values of each line of a batch, with the length of the line.
type Batch = Vec<(usize, Vec<LineValue>)>;

/// Reads batch after batch, until the lines end or the receiver is gone.
fn read_ahead<L: AsRef<str> + Send + Sync>(
    tree: &BlockTree,
    mut lines: impl Iterator<Item = L>,
    send: &SyncSender<Batch>,
) {
    loop {
        let (mut texts, mut bytes) = (Vec::<L>::new(), 0);
        while texts.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some(text) = lines.next() else { break };
            bytes += text.as_ref().len();
            texts.push(text);
        }
        if texts.is_empty() {
            return;
        }
        let read = |text: &L| {
            let text = text.as_ref();
            (text.len(), read_line(text, tree.config()))
        };
        if send.send(texts.par_iter().map(read).collect()).is_err() {
            return;
        }
    }
}

/// Extends the chain by a block that contains its transactions. Stores any other value for later.
fn take(
    tree: &BlockTree,
    tip: &mut Arc<Link>,
    served: &mut ServedContent,
    line: usize,
    value: LineValue,
) -> Result<(), ImportReason> {
    match value {
        LineValue::Block(block) => {
            *tip = put_block(tree, tip, *block)?;
            Ok(())
        }
        LineValue::Apart(value) => served.keep(line, value),
        LineValue::Broken(why) => Err(why.into()),
    }
}

fn put_block(tree: &BlockTree, tip: &Arc<Link>, read: ReadBlock) -> Result<Arc<Link>, ImportReason> {
    let genesis = tree.genesis();
    if read.height == Height::GENESIS.0 && tip.height() == Height::GENESIS {
        let expected = genesis.id().to_string();
        return match read.id == expected {
            true => Ok(genesis.clone()),
            false => Err(ImportReason::OtherGenesis { found: read.id, expected }),
        };
    }
    let expected = tip.height().next();
    match read.block {
        Some(block) if read.height == expected.0 => Ok(tree.extend(tip, &Arc::new(block?))?),
        _ => Err(ImportReason::Height { found: read.height, expected }),
    }
}
