//! A block in the tree, and the chain below it.
//!
//! A link points to its parent and, by a jump, to an ancestor farther back. Only the pointers of a seam can change: where the chain
//! below it has settled, they lead to the store of settled blocks.

use crate::{
    ledger::{
        settled_chain::{SettledChain, SettledError, missing, read},
        state::{Applied, Notable, RoundEnd},
    },
    protocol::{Block, BlockExcerpt, BlockId, Height, PublicKey},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use std::{
    fmt, mem, ptr,
    sync::{Arc, OnceLock, Weak},
};

/// One block in the tree.
pub struct Link {
    pub(super) block: Arc<Block>,
    /// The height of the block, stored here because walks along chains read it.
    pub(super) height: Height,
    pub(super) below: Below,
    pub(super) applied: ArcSwapOption<Applied>,
    pub(super) notable: Option<Arc<Notable>>,
    /// The first block that followed this one, in the allocation that came first: all other nodes ask for the same one.
    pub(super) child: OnceLock<(Arc<Block>, Weak<Link>)>,
    /// Transactions on the chain up to and with this block.
    pub(super) transactions: u64,
}

/// The chain below a link.
pub(super) enum Below {
    /// Genesis has none.
    Nothing,
    /// The block before and an ancestor farther back, so that any height is found in logarithmic time. Neither lies below the
    /// nearest seam.
    Chain { parent: Arc<Link>, jump: Arc<Link> },
    /// The link is a seam, where the chain can be cut.
    Seam(ArcSwap<Across>),
}

/// The chain below a seam.
pub(super) enum Across {
    /// The block before, and a seam farther back.
    Chain { parent: Arc<Link>, jump: Option<Arc<Link>> },
    /// It has settled.
    Settled(Arc<dyn SettledChain>),
}

impl Link {
    /// The block.
    pub fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Its id.
    pub fn id(&self) -> BlockId {
        self.block.id
    }

    /// Its height.
    pub fn height(&self) -> Height {
        self.height
    }

    /// The block before; `None` for genesis. Reads a settled block from its store.
    pub fn parent(&self) -> Option<Arc<Link>> {
        match &self.below {
            Below::Nothing => None,
            Below::Chain { parent, .. } => Some(parent.clone()),
            Below::Seam(across) => match &**across.load() {
                Across::Chain { parent, .. } => Some(parent.clone()),
                Across::Settled(settled) => Some(read(&**settled, Height(self.height.0 - 1))),
            },
        }
    }

    /// A link for a settled block that was read from its store. The blocks below it stay in the store.
    pub fn settled(
        block: Arc<Block>,
        notable: Option<Arc<Notable>>,
        transactions: u64,
        settled: Arc<dyn SettledChain>,
    ) -> Arc<Self> {
        let below = match block.header.height {
            Height::GENESIS => Below::Nothing,
            _ => Below::Seam(ArcSwap::from_pointee(Across::Settled(settled))),
        };
        Arc::new(Self {
            height: block.header.height,
            block,
            below,
            applied: ArcSwapOption::empty(),
            notable,
            child: OnceLock::new(),
            transactions,
        })
    }

    /// Returns true if this is the same block. Within one tree it is usually the same link, or a block of another height. Both are quick
    /// to detect.
    #[inline]
    pub fn is(self: &Arc<Self>, other: &Arc<Link>) -> bool {
        Arc::ptr_eq(self, other) || (self.height == other.height && self.block.id == other.block.id)
    }

    /// Returns the link of the first block that followed this one, if `block` is that block.
    pub(super) fn child(&self, block: &Arc<Block>) -> Option<&Weak<Link>> {
        self.child.get().filter(|(child, _)| Arc::ptr_eq(child, block)).map(|(_, link)| link)
    }

    /// The notable consequences of the block; most blocks have none.
    pub fn notable(&self) -> Option<&Arc<Notable>> {
        self.notable.as_ref()
    }

    /// The owner of each slot left empty before the block, at most one round of them.
    pub fn missing(&self) -> &[PublicKey] {
        self.notable().map_or(&[], |notable| &notable.missing)
    }

    /// The consequences of the block if it ended a round.
    pub fn round_end(&self) -> Option<&RoundEnd> {
        self.notable().and_then(|notable| notable.round_end.as_ref())
    }

    /// Transactions on the chain up to and with this block.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The block of this chain at a height, in logarithmic time; `None` above this block. Reads a settled block from its store.
    pub fn ancestor(self: &Arc<Self>, height: Height) -> Option<Arc<Link>> {
        Some(self.reached(height)?.unwrap_or_else(|settled| read(&*settled, height)))
    }

    /// A part of the block of this chain at a height: its header, and those of its transactions that `indexes` name, from 0. Skips an
    /// index without a transaction. `None` above this block. Reads no other part of a settled block.
    ///
    /// # Errors
    /// It has settled and cannot be read.
    pub fn excerpt(self: &Arc<Self>, height: Height, indexes: &[u32]) -> Result<Option<BlockExcerpt>, SettledError> {
        match self.reached(height) {
            None => Ok(None),
            Some(Ok(link)) => Ok(Some(link.block.excerpt(indexes))),
            Some(Err(settled)) => settled.excerpt(height, indexes)?.ok_or_else(|| missing(height)).map(Some),
        }
    }

    /// The block of this chain at a height, or the store that has it; `None` above this block.
    fn reached(self: &Arc<Self>, height: Height) -> Option<Result<Arc<Link>, Arc<dyn SettledChain>>> {
        if height.0 == 0 || height > self.height() {
            return None;
        }
        let (mut seam, mut link): (Arc<Link>, &Arc<Link>);
        link = self;
        loop {
            while let (true, Below::Chain { parent, jump }) = (link.height() > height, &link.below) {
                link = if jump.height() >= height { jump } else { parent };
            }
            if link.height() == height {
                return Some(Ok(link.clone()));
            }
            match link.across_towards(height) {
                Ok(next) => seam = next,
                Err(settled) => return Some(Err(settled)),
            }
            link = &seam;
        }
    }

    /// The next link on the way from a seam down to a height, or the store that has the blocks there.
    pub(super) fn across_towards(&self, height: Height) -> Result<Arc<Link>, Arc<dyn SettledChain>> {
        let Below::Seam(across) = &self.below else {
            unreachable!("only genesis has no parent, and its height is the least")
        };
        match &**across.load() {
            Across::Chain { jump: Some(jump), .. } if jump.height() >= height => Ok(jump.clone()),
            Across::Chain { parent, .. } => Ok(parent.clone()),
            Across::Settled(settled) => Err(settled.clone()),
        }
    }

    /// The seam at or below this block, or genesis.
    pub(super) fn seam(self: &Arc<Self>) -> &Arc<Link> {
        let mut link = self;
        while let Below::Chain { jump, .. } = &link.below {
            link = jump;
        }
        link
    }

    /// Returns true if `other` is this block or below it on the same chain.
    pub fn descends_from(self: &Arc<Self>, other: &Link) -> bool {
        self.ancestor(other.height()).is_some_and(|link| ptr::eq(&*link, other) || link.id() == other.id())
    }

    /// The lowest height at which this chain is in memory: 1, or a seam's where the rest has settled.
    pub fn lowest_in_memory(self: &Arc<Self>) -> Height {
        let mut seam = self.seam().clone();
        loop {
            match seam.seam_below() {
                Some(below) => seam = below,
                None => return seam.height(),
            }
        }
    }

    /// The seam that this one jumps to, or the next one below; `None` where nothing in memory is below.
    pub(super) fn seam_below(&self) -> Option<Arc<Link>> {
        let Below::Seam(across) = &self.below else { return None };
        match &**across.load() {
            Across::Chain { jump: Some(jump), .. } => Some(jump.clone()),
            Across::Chain { parent, jump: None } => Some(parent.seam().clone()),
            Across::Settled(_) => None,
        }
    }

    /// The chain below a child of `parent`.
    pub(super) fn below_child(parent: &Arc<Link>, span: u32) -> Below {
        match is_seam(parent.height().next(), span) {
            true => {
                let seam = parent.seam();
                let jump = Some(skewed(seam, |link| link.seam_jump()));
                Below::Seam(ArcSwap::from_pointee(Across::Chain { parent: parent.clone(), jump }))
            }
            false => {
                let jump = |link: &Arc<Link>| match &link.below {
                    Below::Chain { jump, .. } => Some(jump.clone()),
                    Below::Nothing | Below::Seam(_) => None,
                };
                Below::Chain { parent: parent.clone(), jump: skewed(parent, jump) }
            }
        }
    }

    pub(super) fn seam_jump(&self) -> Option<Arc<Link>> {
        let Below::Seam(across) = &self.below else { return None };
        match &**across.load() {
            Across::Chain { jump, .. } => jump.clone(),
            Across::Settled(_) => None,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id(), self.height())
    }
}

/// Drops a long chain of links iteratively, because recursion would overflow the stack.
impl Drop for Link {
    fn drop(&mut self) {
        let mut orphans = Vec::new();
        self.below.leave(&mut orphans);
        while let Some(link) = orphans.pop() {
            if let Some(mut link) = Arc::into_inner(link) {
                link.below.leave(&mut orphans);
            }
        }
    }
}

impl Below {
    /// Moves the links below to `orphans`.
    fn leave(&mut self, orphans: &mut Vec<Arc<Link>>) {
        match mem::replace(self, Self::Nothing) {
            Self::Nothing => {}
            Self::Chain { parent, jump } => orphans.extend([parent, jump]),
            Self::Seam(across) => {
                if let Some(Across::Chain { parent, jump }) = Arc::into_inner(across.into_inner()) {
                    orphans.push(parent);
                    orphans.extend(jump);
                }
            }
        }
    }

    /// The store that holds the parent, if it has settled.
    pub(super) fn settled(&self) -> Option<Arc<dyn SettledChain>> {
        let Self::Seam(across) = self else { return None };
        match &**across.load() {
            Across::Chain { .. } => None,
            Across::Settled(settled) => Some(settled.clone()),
        }
    }
}

/// The jump pointer of a child of `parent`: skew-binary, so that two jumps of one length merge into a longer one.
fn skewed(parent: &Arc<Link>, jump: impl Fn(&Arc<Link>) -> Option<Arc<Link>>) -> Arc<Link> {
    let length = |from: &Arc<Link>, to: &Arc<Link>| from.height().0 - to.height().0;
    let Some(first) = jump(parent) else { return parent.clone() };
    match jump(&first) {
        Some(second) if length(parent, &first) == length(&first, &second) => second,
        _ => parent.clone(),
    }
}

/// Returns true if there is a seam at this height. Genesis is none.
pub(super) fn is_seam(height: Height, span: u32) -> bool {
    height > Height::GENESIS && (height.0 - 1).is_multiple_of(span)
}
