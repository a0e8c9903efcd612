//! Checkpoints: a running testnet's moment as a file, so that a start plays only what the log holds after it.
//!
//! ```text
//!   DIR/base-5       │ "dposbas4" │ SHA-256 of the rest │ the state after the highest settled block, and one above it
//!   DIR/checkpoint-7 │ "dposckpc" │ SHA-256 of the rest │ version, network, what is known of the log, what watched, moment
//! ```
//!
//! The log stays the truth. A checkpoint records its position in the log and a checksum of each segment up to there. A checkpoint
//! that is damaged, of another version or of another log is skipped with a message. So is one whose position lies beyond the end
//! of a log that lost records. Without a usable checkpoint, the whole log is played.
//!
//! 1. Where blocks have settled, a start begins with the base: the settled blocks are in the index, so it reads none of them. It reads
//!    the last segment of the log, the blocks that have not settled, and the faults. It applies only the blocks above the second state
//!    in the base's file, and verifies none of them again. It knows the position of every other input.
//! 2. Where nothing has settled, or the index lacks something, it reads the log up to the checkpoint's place and applies all
//!    blocks in it.
//!
//! A file appears whole or not at all, after the log up to its place is on the disk. The last two checkpoints are kept, and
//! the bases that they name.

mod reading;
mod writing;

use super::facts::{LogFacts, Spots};
use crate::{
    ledger::codec::saved,
    protocol::crypto::sha256,
    sim::{TraceDigest, snapshots::NamedSnapshots},
};
pub(super) use reading::{RestoredTestnet, newest};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
pub use writing::Checkpoints;

/// The first bytes of a checkpoint.
const MAGIC: &[u8; 8] = b"dposckpc";
/// The first bytes of a base.
const BASE_MAGIC: &[u8; 8] = b"dposbas4";
/// The number of bytes before the body.
const HEAD: usize = MAGIC.len() + 32;
/// The largest size of a file in bytes.
const FILE_MAX: u64 = 4 << 30;
/// The number of checkpoints that are kept.
const KEPT: usize = 2;
/// Real time after which a checkpoint is due, whatever the blocks.
const AFTER: Duration = Duration::from_secs(5);
/// The default distance between checkpoints, in blocks.
pub const EVERY: u32 = 20_000;

/// The observers of a testnet whose state its moment does not hold.
pub struct Beside {
    pub digest: TraceDigest,
    /// The numbers of the last events of the nodes that are served.
    pub numbers: Box<dyn Fn() -> Vec<u64> + Send>,
    /// Continues the numbering of events after a checkpoint.
    pub go_on: ContinueFn,
}

/// A function that continues from the numbers of the last events, or returns the reason why that would leave out an event.
type ContinueFn = Box<dyn Fn(&[u64]) -> Result<(), String> + Send>;

/// The body of a file.
struct Body {
    version: String,
    network: [u8; 32],
    known: LogFacts,
    numbers: Vec<u64>,
    digest: Vec<u8>,
    base: Option<BaseName>,
    /// The records of the blocks that have not settled.
    places: Spots,
    /// Blocks that the moment names and the log does not hold, by height.
    blocks: Vec<Vec<u8>>,
    snapshots: NamedSnapshots,
    moment: Vec<u8>,
}

saved!(struct Body { version, network, known, numbers, digest, base, places, blocks, snapshots, moment });

/// A file with a base.
#[derive(Clone, Copy)]
struct BaseName {
    number: u64,
    sum: [u8; 32],
}

saved!(struct BaseName { number, sum });

impl BaseName {
    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("base-{}", self.number))
    }
}

/// The files of a folder with this name and a number, the newest first.
pub(super) fn all(folder: &Path, called: &str) -> Vec<(u64, PathBuf)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: &str| name.strip_prefix(called)?.strip_prefix('-')?.parse().ok();
    let mut all: Vec<(u64, PathBuf)> =
        names.filter_map(|name| Some((number(name.to_str()?)?, folder.join(&name)))).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all
}

/// The checksum of the manifest of a folder.
fn network(folder: &Path) -> io::Result<[u8; 32]> {
    fs::read(folder.join("network.json")).map(|bytes| sha256(&bytes))
}
