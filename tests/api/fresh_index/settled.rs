//! Blocks that settle, as a testnet that is kept on disk has them, with a store in memory.

use dposlab::{
    api::Shelf,
    ledger::{
        BlockTree, Link,
        settled_chain::{SettledChain, SettledError},
    },
    protocol::{BlockId, Height, TransactionId},
};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Blocks from one seam to the next.
pub const SPAN: u32 = 4;
/// Blocks that stay in memory at the least.
const DEPTH: u32 = 6;

/// The store in which blocks settle, and the lists of them.
pub struct Settling {
    pub kept: Arc<Kept>,
    pub shelf: Arc<Shelf>,
    /// It goes when nobody asks any more.
    _folder: tempfile::TempDir,
}

/// Settled blocks.
pub struct Kept {
    links: RwLock<Vec<Arc<Link>>>,
    own: Weak<Self>,
    meanwhile: Mutex<Option<(usize, Meanwhile)>>,
}

/// An act that happens while somebody reads.
type Meanwhile = Box<dyn FnOnce() + Send>;

impl Settling {
    /// On a network with this byte in its addresses.
    pub fn new(network: u8) -> Self {
        let kept = Kept::new();
        let folder = tempfile::tempdir().expect("a folder");
        let (shelf, _) = Shelf::open(&folder.path().join("lists"), None, network).expect("an empty folder");
        Self { kept, shelf: Arc::new(shelf), _folder: folder }
    }

    /// The highest block that has settled.
    pub fn top(&self) -> u32 {
        self.kept.top().0
    }

    /// Lets the tree go of what all nodes' chains have in common, but for the newest blocks.
    pub fn settle(&self, tree: &BlockTree, tips: &[Arc<Link>]) {
        if let Some(top) = tree.settles_at(tips, DEPTH).filter(|top| top.height() > self.kept.top()) {
            self.kept.keep(&top);
            tree.settle(&top, &(self.kept.clone() as Arc<dyn SettledChain>));
        }
    }
}

impl Kept {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|own| Self { links: RwLock::default(), own: own.clone(), meanwhile: Mutex::default() })
    }

    /// Keeps the chain up to a block.
    pub fn keep(&self, top: &Arc<Link>) {
        let from = self.top();
        let new: Vec<_> = (from.0 + 1..=top.height().0)
            .map(|height| top.ancestor(Height(height)).expect("it is not above the top"))
            .collect();
        self.links.write().unwrap_or_else(PoisonError::into_inner).extend(new);
    }

    /// Has something happen after so many more blocks were read, before the next one is.
    pub fn after_reads(&self, reads: usize, happens: impl FnOnce() + Send + 'static) {
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some((reads, Box::new(happens)));
    }

    /// True if that has not happened yet.
    pub fn waits(&self) -> bool {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn read(&self) {
        let mut meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((reads, happens)) = meanwhile.take() else { return };
        match reads.checked_sub(1) {
            Some(left) => *meanwhile = Some((left, happens)),
            None => {
                drop(meanwhile);
                happens();
            }
        }
    }

    fn find<T>(&self, find: impl FnMut(&Arc<Link>) -> Option<T>) -> Option<T> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).iter().find_map(find)
    }
}

impl SettledChain for Kept {
    fn top(&self) -> Height {
        Height(self.links.read().unwrap_or_else(PoisonError::into_inner).len() as u32)
    }

    fn link(&self, height: Height) -> Result<Option<Arc<Link>>, SettledError> {
        self.read();
        let own = self.own.upgrade().expect("somebody asks");
        Ok(self.find(|link| {
            let alone =
                || Link::settled(link.block().clone(), link.notable().cloned(), link.transactions(), own.clone());
            (link.height() == height).then(alone)
        }))
    }

    fn height_of(&self, block: &BlockId) -> Result<Option<Height>, SettledError> {
        Ok(self.find(|link| (link.id() == *block).then(|| link.height())))
    }

    fn spot_of(&self, transaction: &TransactionId) -> Result<Option<(Height, u32)>, SettledError> {
        Ok(self.find(|link| {
            let index = link.block().transactions.iter().position(|one| one.id() == *transaction)?;
            Some((link.height(), index as u32))
        }))
    }
}
