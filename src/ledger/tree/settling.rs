//! Settling blocks: where a tree is cut, and how it reads the blocks below the cut.

use super::{
    BlockTree,
    link::{Across, Below, Link, is_seam},
};
use crate::{
    ledger::{
        base::Base,
        round::Round,
        settled_chain::{SettledChain, read},
        state::Applied,
    },
    protocol::{Block, Height, TransactionId},
};
use arc_swap::ArcSwap;
use std::sync::{Arc, atomic::Ordering};

impl BlockTree {
    /// The height up to which this tree holds no block but genesis: they have settled. 0 where none have.
    pub fn cut(&self) -> Height {
        Height(self.cut.load(Ordering::Acquire))
    }

    /// The settled blocks, if there are any.
    pub fn settled(&self) -> Option<Arc<dyn SettledChain>> {
        self.settled.load().as_ref().map(|settled| Arc::clone(&**settled))
    }

    /// Returns the distance between seams, in blocks. The settled part ends just below a seam.
    pub fn span(&self) -> u32 {
        self.span
    }

    /// The highest block that may settle: the last one below a seam that is at least `depth` below each of these tips and on
    /// the chain of each. `None` while there is none above the cut.
    pub fn settles_at<'t>(&self, tips: impl IntoIterator<Item = &'t Arc<Link>>, depth: u32) -> Option<Arc<Link>> {
        let mut tips: Vec<&Arc<Link>> = tips.into_iter().collect();
        tips.sort_unstable_by_key(|tip| tip.height());
        tips.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let lowest = *tips.first()?;
        let at = |spans: u32| lowest.ancestor(Height(spans * self.span)).expect("it is below the tip");
        let agree = |spans: u32| {
            let link = at(spans);
            tips.iter().all(|tip| tip.descends_from(&link))
        };
        let (cut, mut high) = (self.cut().0 / self.span, lowest.height().0.saturating_sub(depth) / self.span);
        // Usually all chains agree at the first try.
        if high > cut && agree(high) {
            return self.links.get(&at(high).id()).map(|link| link.clone());
        }
        let mut low = cut;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match agree(middle) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        let found = (low > cut).then(|| at(low))?;
        // Nodes whose rules deviate have trees of their own.
        self.links.get(&found.id()).map(|link| link.clone())
    }

    /// Drops all blocks up to the height of `top`, on all forks, but for genesis: from now on they are read from the store. All nodes'
    /// chains go through `top`, which is the last block below a seam. `settled` has `top` and all blocks below it.
    ///
    /// # Panics
    /// `top` lies below no seam, or `settled` lacks it.
    pub fn settle(&self, top: &Arc<Link>, settled: &Arc<dyn SettledChain>) {
        let height = top.height();
        assert!(is_seam(height.next(), self.span), "{top:?} is not the last block below a seam, every {}", self.span);
        assert!(settled.top() >= height, "{top:?} is above the top of what has settled, {}", settled.top());
        let base = Base { height, id: top.id(), applied: self.applied(top) };
        self.settled.store(Some(Arc::new(settled.clone())));
        self.cut.store(height.0, Ordering::Release);
        let cut = |seam: &Link| {
            if let Below::Seam(across) = &seam.below {
                across.store(Arc::new(Across::Settled(settled.clone())));
            }
        };
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for entry in &self.links {
            let link = entry.value();
            if link.height() > height {
                kept.extend(matches!(link.below, Below::Seam(_)).then(|| link.clone()));
            } else if link.height() > Height::GENESIS {
                gone.push(link.clone());
            }
        }
        for seam in kept {
            let Below::Seam(across) = &seam.below else { continue };
            let before = across.load_full();
            let Across::Chain { parent, jump } = &*before else { continue };
            if parent.is(top) {
                // All later states are computed from this one.
                let applied = self.applied(&seam);
                seam.applied.store(Some(applied));
                cut(&seam);
            } else if jump.as_ref().is_some_and(|jump| jump.height() <= height) {
                across.store(Arc::new(Across::Chain { parent: parent.clone(), jump: None }));
            }
        }
        let mut seam = Some(top.seam().clone());
        while let Some(at) = seam.take() {
            let Below::Seam(across) = &at.below else { break };
            if let Across::Chain { parent, .. } = &**across.load() {
                seam = Some(parent.seam().clone());
            }
            cut(&at);
        }
        self.remove(gone);
        self.base.store(Some(Arc::new(base)));
    }

    /// The state after the highest settled block, where it is known.
    pub fn base(&self) -> Option<Arc<Base>> {
        self.base.load_full()
    }

    /// Begins with settled blocks in a tree that has seen none of them: `settled` has the block of the base, and all blocks
    /// below it. The blocks above it can follow.
    ///
    /// # Panics
    /// The base lies below no seam, or `settled` lacks it.
    pub fn begin_at(&self, base: Base, settled: &Arc<dyn SettledChain>) {
        let in_memory = self.links.get(&base.id).map(|link| link.clone());
        if let Some(top) = in_memory {
            // The chain that the run began on comes with the network.
            return self.settle(&top, settled);
        }
        let height = base.height;
        assert!(is_seam(height.next(), self.span), "height {height} is not the last below a seam, every {}", self.span);
        assert!(settled.top() >= height, "height {height} is above the top of what has settled, {}", settled.top());
        let all: Vec<Arc<Link>> = self.links.iter().map(|entry| entry.value().clone()).collect();
        let has_settled = |link: &Arc<Link>| link.height() > Height::GENESIS && link.height() <= height;
        self.remove(all.into_iter().filter(has_settled).collect());
        self.settled.store(Some(Arc::new(settled.clone())));
        self.cut.store(height.0, Ordering::Release);
        self.base.store(Some(Arc::new(base)));
    }

    /// The chain below a child of `parent`.
    pub(super) fn below_child(&self, parent: &Arc<Link>) -> Below {
        let is_at_cut = parent.height() == self.cut() && parent.height() > Height::GENESIS;
        match parent.below.settled().filter(|_| is_at_cut) {
            Some(settled) => Below::Seam(ArcSwap::from_pointee(Across::Settled(settled))),
            None => Link::below_child(parent, self.span),
        }
    }

    /// Reverses settling after the run went back to chains that end in `tips` and are in memory down to the height above `cut`. `settled`
    /// has the blocks below. Blocks of these chains that had settled can be found again. Blocks on top of others that are no longer
    /// settled are removed: if they come again, their chains are whole.
    pub fn unsettle<'t>(
        &self,
        cut: Height,
        settled: &Arc<dyn SettledChain>,
        tips: impl Iterator<Item = &'t Arc<Link>>,
    ) {
        let had_settled = self.cut();
        self.settled.store(Some(Arc::new(settled.clone())));
        self.cut.store(cut.0, Ordering::Release);
        if self.base().is_some_and(|base| base.height != cut) {
            self.base.store(None);
        }
        let all: Vec<Arc<Link>> = self.links.iter().map(|entry| entry.value().clone()).collect();
        self.remove(all.into_iter().filter(|link| link.lowest_in_memory() > cut.next()).collect());
        for tip in tips {
            let mut at = tip.ancestor(tip.height().min(had_settled));
            while let Some(link) = at.filter(|link| link.height() > cut) {
                if !self.links.contains_key(&link.id()) {
                    self.insert(&link);
                }
                at = link.parent();
            }
        }
    }

    /// Returns false for a block on top of one that is no longer settled: a reader still has it from before the run went back.
    #[inline]
    pub(super) fn is_whole(&self, link: &Arc<Link>) -> bool {
        !matches!(link.below, Below::Seam(_)) || link.lowest_in_memory() <= self.cut().next()
    }

    pub(super) fn remove(&self, gone: Vec<Arc<Link>>) {
        for link in gone {
            self.links.remove(&link.id());
            for transaction in &link.block.transactions {
                self.transactions.remove_if_mut(&transaction.id(), |_, holders| {
                    holders.retain(|holder| !Arc::ptr_eq(holder, &link));
                    holders.is_empty()
                });
            }
        }
    }

    /// The round that the block after this one is in.
    pub fn round_after(&self, link: &Arc<Link>) -> Arc<Round> {
        if let Some(applied) = link.applied.load_full() {
            return applied.state.round().clone();
        }
        // The state of an older block takes long to compute, and the block that began the round has the round.
        let before = Height(self.schedule.at(link.height().next()).first.0.saturating_sub(1));
        let began = link.ancestor(before).filter(|began| began.height() > Height::GENESIS);
        match began.as_ref().map(|began| began.round_end()) {
            None => self.genesis_applied().state.round().clone(),
            Some(Some(end)) => end.created.clone(),
            Some(None) => self.applied(link).state.round().clone(),
        }
    }

    pub(super) fn settled_block_of(&self, tip: &Arc<Link>, transaction: &TransactionId) -> Option<Arc<Link>> {
        let settled = self.settled()?;
        let is_in = |link: &Link| link.block.transactions.iter().any(|one| one.id() == *transaction);
        let spot = settled.spot_of(transaction).unwrap_or_else(|why| why.ends_the_run());
        let found = spot.and_then(|(height, _)| tip.ancestor(height)).filter(|link| is_in(link));
        if found.is_some() || tip.height() > self.cut() {
            return found;
        }
        // A caller still reads a chain that ends below the cut. The part in memory may be on a fork that has gone.
        let mut at = tip.clone();
        while at.height() > tip.lowest_in_memory() {
            if is_in(&at) {
                return Some(at);
            }
            at = at.parent()?;
        }
        is_in(&at).then_some(at)
    }

    /// The state of a block whose parent has settled: from the base if that is the parent's, else from genesis on.
    pub(super) fn settled_state(&self, block: &Arc<Block>, settled: &dyn SettledChain) -> Arc<Applied> {
        let height = block.header.height;
        let is_parent = |base: &Base| base.height.next() == height && block.header.previous == Some(base.id);
        if let Some(base) = self.base().filter(|base| is_parent(base)) {
            return self.applied_again(base.applied.clone(), block);
        }
        let mut applied = self.genesis_applied();
        for below in Height::GENESIS.0 + 1..height.0 {
            applied = self.applied_again(applied, &read(settled, Height(below)).block);
        }
        self.applied_again(applied, block)
    }
}
