//! The lists of a testnet's settled blocks and transactions, in its folder.

use super::progress::Progress;
use crate::{
    api::{Older, Shelf, ShelfOpening},
    cli::Failure,
    protocol::Height,
    sim::Plan,
};
use std::{path::Path, sync::Arc};

/// The number of blocks from which progress is reported without a terminal on standard error: some seconds of work.
const MANY_BLOCKS: u64 = 100_000;

/// Opens the lists of the testnet in a folder. Reports progress if they are rebuilt.
///
/// # Errors
/// They cannot be read or written.
pub(crate) fn open(folder: &Path, plan: &Plan) -> Result<Arc<dyn Older>, Failure> {
    let wrong = |why| Failure::usage(format!("--data-dir {why}"));
    let network = plan.tree.config().network.pub_key_hash;
    let settled = plan.tree.settled();
    let mut progress = None;
    let tell = |height: Height, top: Height| {
        let template = "{bar:40} {pos}/{len} blocks are in index/lists, {eta} left";
        let progress = progress.get_or_insert_with(|| Progress::new(template, top.0.into(), MANY_BLOCKS));
        let line = |percent| format!("--data-dir {}: {percent} % of index/lists is made", folder.display());
        progress.tell(height.0.into(), height, line);
    };
    let opened = Shelf::open_and_tell(&folder.join("index").join("lists"), settled.as_deref(), network, tell);
    drop(progress);
    let (shelf, ShelfOpening { rebuilt, .. }) = opened.map_err(wrong)?;
    if let Some(why) = rebuilt {
        eprintln!("dposlab: --data-dir {}: index/lists was made again from the log: {why}", folder.display());
    }
    Ok(Arc::new(shelf))
}
