//! Blocks so deep that no node can leave them, kept outside memory.
//!
//! Every node's chain goes through these blocks: one chain from genesis up to the top, which only ever grows at its end. The store
//! answers with copies: a link that it reads stands alone, without parent, jump and state.

use super::Link;
use crate::protocol::{BlockExcerpt, BlockId, Height, TransactionId};
use std::{io, panic, path::PathBuf, sync::Arc};

/// A settled block cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct SettledError {
    /// The file or folder of the store.
    pub file: PathBuf,
    pub source: io::Error,
}

impl SettledError {
    /// Unwinds to the host of the run, as a panic does, but without a message: the host reports the error and the file. No code below
    /// could return a correct result.
    ///
    /// # Panics
    /// Always.
    pub fn ends_the_run(self) -> ! {
        panic::resume_unwind(Box::new(self))
    }
}

/// Reads a block that is known to have settled.
pub(super) fn read(settled: &dyn SettledChain, height: Height) -> Arc<Link> {
    let link = settled.link(height).and_then(|link| link.ok_or_else(|| missing(height)));
    link.unwrap_or_else(|why| why.ends_the_run())
}

/// The error for a settled block that is missing from the store.
pub(super) fn missing(height: Height) -> SettledError {
    let source = io::Error::new(io::ErrorKind::NotFound, format!("no block at height {height}"));
    SettledError { file: PathBuf::from("settled blocks"), source }
}

/// The settled part of a network's chain. Shared by all that read it, on any thread.
pub trait SettledChain: Send + Sync {
    /// The height of the newest settled block; `Height(0)` while there is none.
    fn top(&self) -> Height;

    /// The block at a height from genesis to [`SettledChain::top`], as a link that stands alone: with its notable consequences and
    /// the number of transactions up to it. `None` above the top.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    fn link(&self, height: Height) -> Result<Option<Arc<Link>>, SettledError>;

    /// The id and header of the block at a height from genesis to [`SettledChain::top`], and its transactions at `indexes`, counted
    /// from 0. An index without a transaction is skipped. A store that can read less than the whole block does so. `None` above the top.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    fn excerpt(&self, height: Height, indexes: &[u32]) -> Result<Option<BlockExcerpt>, SettledError> {
        Ok(self.link(height)?.map(|link| link.block().excerpt(indexes)))
    }

    /// The height of a settled block.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    fn height_of(&self, block: &BlockId) -> Result<Option<Height>, SettledError>;

    /// The settled block that holds a transaction, and the transaction's index in it, from 0.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    fn spot_of(&self, transaction: &TransactionId) -> Result<Option<(Height, u32)>, SettledError>;

    /// A settled transaction: its index in its block, from 0, and the excerpt of that block that holds this transaction alone. A
    /// store that has to read the block to check it returns the excerpt of the same read.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
    fn excerpt_of(&self, transaction: &TransactionId) -> Result<Option<(u32, BlockExcerpt)>, SettledError> {
        let Some((height, index)) = self.spot_of(transaction)? else { return Ok(None) };
        Ok(self.excerpt(height, &[index])?.map(|excerpt| (index, excerpt)))
    }
}
