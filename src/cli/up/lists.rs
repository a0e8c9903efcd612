//! The lists of what has settled of a testnet in a folder.

use crate::{
    api::{Older, Shelf, Shelved},
    cli::{Failure, output::aside},
    protocol::Height,
    sim::Plan,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::{path::Path, sync::Arc};

/// Blocks whose taking in is told where standard error is no terminal: some seconds of work.
const MANY_BLOCKS: u32 = 100_000;

/// Opens the lists of the testnet in a folder, and tells how far it is where they are made again.
///
/// # Errors
/// They cannot be read or written.
pub fn open(folder: &Path, plan: &Plan) -> Result<Arc<dyn Older>, Failure> {
    let wrong = |why| Failure::usage(format!("--data-dir {why}"));
    let network = plan.tree.config().network.pub_key_hash;
    let settled = plan.tree.settled();
    let mut told = None;
    let tell = |height, top| told.get_or_insert_with(|| Told::new(folder, top)).tell(height);
    let opened = Shelf::open_and_tell(&folder.join("index").join("lists"), settled.as_deref(), network, tell);
    drop(told);
    let (shelf, Shelved { rebuilt, .. }) = opened.map_err(wrong)?;
    if let Some(why) = rebuilt {
        eprintln!("dposlab: --data-dir {}: index/lists was made again from the log: {why}", folder.display());
    }
    Ok(Arc::new(shelf))
}

/// Tells how far it is: a bar on a terminal, elsewhere a line at each tenth of many blocks.
struct Told<'a> {
    folder: &'a Path,
    top: Height,
    /// Told so far.
    tenths: u64,
    bar: ProgressBar,
}

impl<'a> Told<'a> {
    fn new(folder: &'a Path, top: Height) -> Self {
        let template = "{bar:40} {pos}/{len} blocks are in index/lists, {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        Self { folder, top, tenths: 0, bar: ProgressBar::new(top.0.into()).with_style(style) }
    }

    fn tell(&mut self, height: Height) {
        self.bar.set_position(height.0.into());
        let tenths = (u64::from(height.0) * 10).checked_div(self.top.0.into()).unwrap_or_default();
        if self.bar.is_hidden() && self.top.0 >= MANY_BLOCKS && tenths > self.tenths {
            self.tenths = tenths;
            let (folder, percent) = (self.folder.display(), tenths * 10);
            aside(&format!("dposlab: --data-dir {folder}: {percent} % of index/lists is made, block {height}"));
        }
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
