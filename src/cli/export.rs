//! `dposlab export`: the chain of a kept testnet, as lines of JSON.

use super::Failure;
use crate::{
    cli::{replay::planned, up::network::UpNetwork},
    files,
    ledger::Link,
    protocol::{Block, BlockId, Height, NetworkConfig},
    report::session::folder::{Folder, FolderError},
};
use clap::Args;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    sync::Arc,
};

/// Print the chain of a testnet that `dposlab up --data-dir DIR` keeps, a block a line.
///
/// It is the chain that most nodes were on when the folder was last written to. Blocks of other branches are in the folder, and
/// not in the chain. Each line is a block as JSON with its transactions as wire bytes in hex: `dposlab up --chain FILE` begins on
/// such a file. The testnet may be running. Exit code 2: the folder holds none, is damaged or lacks a block, or a height is above
/// the last block.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// The folder of the testnet.
    dir: PathBuf,
    /// The lowest block; the genesis block, 1, if not given.
    #[arg(long, value_name = "HEIGHT", default_value_t = 1)]
    from: u32,
    /// The highest block; the last one, if not given.
    #[arg(long, value_name = "HEIGHT")]
    to: Option<u32>,
    /// Write to this file, which must not be there yet, in place of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Example:
  dposlab up --data-dir ./testnet             use it, then Ctrl-C
  dposlab export ./testnet --out chain.jsonl
  dposlab up --chain chain.jsonl              another testnet that begins on this chain";

impl Export {
    /// Exports.
    ///
    /// # Errors
    /// The folder holds no testnet, is damaged, or the file cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        if self.dir.is_dir() {
            files::check_own_folder(&self.dir).map_err(|why| Failure::usage(format!("export {why}")))?;
        }
        let folder = Folder::new(&self.dir);
        let named = |why: FolderError| Failure::usage(format!("export {why}"));
        let Some(session) = folder.session().map_err(named)? else {
            let dir = self.dir.display();
            return Err(Failure::usage(format!(
                "export {dir}: found no network.json, allowed is a folder of `up --data-dir`"
            )));
        };
        let (network, plan) = planned(&self.dir.join("network.json"), &session)?;
        let chain = Chain::of(&folder, &network, &plan.tip).map_err(|why| match why {
            NoChain::Unread(why) => named(why),
            NoChain::Hole(why) => Failure::usage(format!("export {}: {why}", self.dir.display())),
        })?;
        let to = self.to.unwrap_or(chain.height.0);
        for (option, found, allowed) in [("--to", to, 1..=chain.height.0), ("--from", self.from, 1..=to)] {
            if !allowed.contains(&found) {
                let (dir, height) = (self.dir.display(), allowed.end());
                return Err(Failure::usage(format!("export {dir}: {option} {found}: allowed is 1 to {height}")));
            }
        }
        let mut out: BufWriter<Box<dyn Write>> = BufWriter::new(match &self.out {
            Some(file) => Box::new(File::create_new(file).map_err(|why| self.unwritten(&why))?),
            None => Box::new(io::stdout().lock()),
        });
        let written = self.write(&folder, &network, &chain, to, &mut out);
        match written.and_then(|()| out.flush().map_err(ExportError::Unwritten)) {
            Ok(()) => Ok(()),
            // The reader of standard output has closed the pipe.
            Err(ExportError::Unwritten(why)) if why.kind() == io::ErrorKind::BrokenPipe && self.out.is_none() => Ok(()),
            Err(ExportError::Unwritten(why)) => Err(self.unwritten(&why)),
            Err(ExportError::Unread(why)) => Err(named(why)),
        }
    }

    fn write(
        &self,
        folder: &Folder,
        network: &UpNetwork,
        chain: &Chain,
        to: u32,
        out: &mut impl Write,
    ) -> Result<(), ExportError> {
        let config = network.tree.config();
        let range = self.from..=to;
        for link in &chain.beginning {
            if range.contains(&link.height().0) {
                write_block(out, link.block(), config).map_err(ExportError::Unwritten)?;
            }
        }
        let mut next = Height(chain.beginning.len() as u32 + 1);
        // Blocks that precede their parents in the log, because a later start wrote the parents.
        let mut early: BTreeMap<Height, Block> = BTreeMap::new();
        folder.blocks(config, |block| -> Result<(), ExportError> {
            // The log repeats a block that nodes accepted at different times.
            if block.height() >= next && chain.kept.contains(&block.id) {
                early.insert(block.height(), block);
            }
            while let Some(block) = early.remove(&next) {
                next = next.next();
                if range.contains(&block.height().0) {
                    write_block(out, &block, config).map_err(ExportError::Unwritten)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn unwritten(&self, why: &io::Error) -> Failure {
        let file = self.out.as_ref().map_or("standard output".to_owned(), |file| format!("--out {}", file.display()));
        Failure::broken(format!("{file}: {why}"))
    }
}

/// The early end of an export.
enum ExportError {
    Unread(FolderError),
    Unwritten(io::Error),
}

impl From<FolderError> for ExportError {
    fn from(why: FolderError) -> Self {
        Self::Unread(why)
    }
}

/// The reason why a folder has no whole chain.
enum NoChain {
    Unread(FolderError),
    /// The missing block and the reason why it is needed.
    Hole(String),
}

impl From<FolderError> for NoChain {
    fn from(why: FolderError) -> Self {
        Self::Unread(why)
    }
}

/// The blocks of the chain.
struct Chain {
    /// The blocks that the testnet began on, the genesis block first.
    beginning: Vec<Arc<Link>>,
    /// The blocks in the folder.
    kept: BTreeSet<BlockId>,
    /// The height of the last block.
    height: Height,
}

impl Chain {
    fn of(folder: &Folder, network: &UpNetwork, begun_on: &Arc<Link>) -> Result<Self, NoChain> {
        let mut parents: BTreeMap<BlockId, Option<BlockId>> = BTreeMap::new();
        let stood = folder.blocks(network.tree.config(), |block| {
            parents.insert(block.id, block.header.previous);
            Ok::<(), FolderError>(())
        })?;
        let mut beginning: Vec<_> = std::iter::successors(Some(begun_on.clone()), |link| link.parent()).collect();
        beginning.reverse();
        let Some((height, tip)) = stood else {
            return Ok(Self { beginning, kept: BTreeSet::new(), height: begun_on.height() });
        };
        let given: BTreeMap<BlockId, Height> = beginning.iter().map(|link| (link.id(), link.height())).collect();
        let (mut kept, mut needed_by) = (BTreeSet::new(), format!("the network stood on it at height {height}"));
        let known = |id: &&BlockId| id.to_string() == tip;
        let mut at = parents.keys().chain(given.keys()).find(known).copied();
        let top = loop {
            let Some(id) = at else { return Err(NoChain::Hole(format!("the log lacks the block {tip}: {needed_by}"))) };
            if let Some(top) = given.get(&id) {
                break *top;
            }
            let Some(previous) = parents.get(&id) else {
                return Err(NoChain::Hole(format!("the log lacks the block {id}: {needed_by}")));
            };
            kept.insert(id);
            (at, needed_by) = (*previous, format!("{id} stands on it"));
        };
        beginning.truncate(top.0 as usize);
        Ok(Self { beginning, kept, height })
    }
}

fn write_block(out: &mut impl Write, block: &Block, config: &NetworkConfig) -> io::Result<()> {
    let mut json = block.header_json(&config.milestones);
    let transactions = block.transactions.iter().map(|transaction| Value::from(hex::encode(transaction.bytes())));
    json["transactions"] = transactions.collect();
    serde_json::to_writer(&mut *out, &json)?;
    out.write_all(b"\n")
}
