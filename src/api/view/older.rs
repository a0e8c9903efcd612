//! The lists of a chain, and the part of them that has settled.
//!
//! ```text
//!   genesis … base │ base + 1 … tip        a list:  older rows │ recent rows
//!   Older, on disk │ Chain, in memory      position 0 … older  │ …
//! ```
//!
//! The settled part never changes, so a chain only has to know up to which height it reads the older part.

use crate::{
    api::view::{Contents, Entry, Facts, Spot, Totals},
    ledger::{Link, settled_chain::SettledError},
    protocol::{Address, Height, PublicKey, TransactionId, transaction::Kind},
};
use std::{io, ops::ControlFlow, panic, path::PathBuf, sync::Arc};

/// A list that a chain keeps, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// The transactions that a wallet sent.
    Sent(Address),
    /// The transactions that a filter by recipient alone finds. Source: api.md 4.2.
    Received(Address),
    /// The transactions in which a wallet takes part, in any role.
    Any(Address),
    /// The transactions of a type.
    Of(Kind),
    /// A generator's blocks.
    Forged(PublicKey),
}

/// A row of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub spot: Spot,
    /// The facts of a transaction; a block has none.
    pub facts: Option<Facts>,
}

/// A block without the values that only answers show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The beginning of its id, which distinguishes it from other blocks at its height.
    pub id_mark: [u8; 8],
    pub totals: Totals,
    pub contents: Contents,
    /// The number of transactions on the chain up to and including this block.
    pub transactions: u64,
    /// The number of them above genesis with a timestamp of their own.
    pub own_timestamps: u64,
    /// The first bytes of the payload's hash.
    pub payload_mark: [u8; 4],
    /// The last bytes of the signature.
    pub signature_mark: [u8; 4],
}

/// A visitor of rows or blocks, which can end the visit.
pub(crate) type Visit<'v, T> = &'v mut dyn FnMut(&T) -> ControlFlow<()>;

/// The settled part of all lists, from genesis on. The views of all nodes share it, because all their chains contain it.
pub trait Older: Send + Sync {
    /// The height of its newest block, or `Height(0)` while there is none.
    fn top(&self) -> Height;

    /// The byte of the network in its addresses.
    fn network(&self) -> u8;

    /// The number of times that it was emptied, because a run went back to a snapshot below the top and continued on
    /// another chain. Rows that were read meanwhile are void.
    fn epoch(&self) -> u64;

    /// Stores the chain up to a settled height. `at` gives the blocks of that chain.
    ///
    /// # Errors
    /// It cannot be read or written.
    fn extend(&self, to: Height, at: &dyn Fn(Height) -> Arc<Link>) -> Result<(), SettledError>;

    /// A recently read block, from the cache.
    fn at_hand(&self, height: Height) -> Option<Arc<Entry>>;

    /// Returns the entry of a block that has just been read, and may cache it.
    ///
    /// # Errors
    /// The other facts about it cannot be read.
    fn with(&self, link: Arc<Link>) -> Result<Arc<Entry>, SettledError>;

    /// The part of a block that lists read. `None` above the top.
    ///
    /// # Errors
    /// It cannot be read.
    fn summary(&self, height: Height) -> Result<Option<Summary>, SettledError>;

    /// Visits the blocks from a height down to genesis.
    ///
    /// # Errors
    /// They cannot be read.
    fn down_from(&self, height: Height, visit: Visit<'_, Summary>) -> Result<(), SettledError>;

    /// The number of a list's rows from blocks up to a height.
    ///
    /// # Errors
    /// It cannot be read.
    fn length(&self, list: &List, to: Height) -> Result<u64, SettledError>;

    /// Visits the rows of a list from the one before a position down to the first.
    ///
    /// # Errors
    /// They cannot be read.
    fn rows_before(&self, list: &List, position: u64, visit: Visit<'_, Row>) -> Result<(), SettledError>;

    /// The claim or refund of a lock.
    ///
    /// # Errors
    /// It cannot be read.
    fn unlock(&self, lock: &TransactionId) -> Result<Option<Spot>, SettledError>;
}

/// Returns a value that was read. No answer is right without it, so a failure unwinds to the handling of the request, like
/// a [`SettledError`] from the tree.
pub(crate) fn readable<T>(read: Result<T, SettledError>) -> T {
    read.unwrap_or_else(|why| panic::resume_unwind(Box::new(why)))
}

/// Returns a value that must exist, because the base of a chain is not above the top. A missing value unwinds like a
/// failed read.
pub(crate) fn present<T>(read: Result<Option<T>, SettledError>, height: Height) -> T {
    readable(read.and_then(|found| {
        found.ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::NotFound, format!("no block at height {height}"));
            SettledError { file: PathBuf::from("index/lists"), source }
        })
    }))
}
