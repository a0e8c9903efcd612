//! Rules of finality: which block of a chain is final in other protocols of this family.
//!
//! A rule reads the chain block by block, and stores its data in the state after a block. So finality is a function of the chain, as
//! everything else of a state. The height of the last final block never falls along a chain. By [`FinalityRule::None`], the reference's,
//! no block but genesis is ever final, and nothing is stored.
//!
//! Where a rule asks for it, a header states up to which height its forger has forged before
//! ([`forged_before`](crate::protocol::BlockHeader)). This is signed and part of the id, beside the reference's bytes.

mod last_irreversible;
mod lisk_bft;
#[cfg(any(test, feature = "cli"))]
pub(crate) mod sample_chains;
mod solidified;

pub use self::{last_irreversible::LastIrreversible, lisk_bft::LiskBft, solidified::Solidified};

use self::last_irreversible::Counting;
use super::{BlockTree, Link, State, codec::saved, round::Round};
use crate::protocol::{Block, Height};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The rule by which a block becomes final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalityRule {
    /// No block ever becomes final.
    None,
    /// EOS: two thirds of the delegates have confirmed that two thirds confirmed it.
    LastIrreversible,
    /// EOS before #2718: two thirds of the delegates have forged at or above it, and blocks that they forged elsewhere do not matter.
    #[serde(rename = "last-irreversible-2718")]
    LastIrreversible2718,
    /// EOS with #3835: a block confirms all since its forger's last one, also the irreversible ones, counted modulo 65,536.
    #[serde(rename = "last-irreversible-3835")]
    LastIrreversible3835,
    /// Tron: 70 % of the delegates have forged at or above it.
    Solidified,
    /// Lisk, LIP-0014: two thirds of the delegates have precommitted it.
    LiskBft,
    /// Lisk with lisk-sdk #6594: the highest prevoted height falls to the final one after five rounds without prevotes of two thirds.
    #[serde(rename = "lisk-bft-6594")]
    LiskBft6594,
}

/// The state of a rule after a block.
#[derive(Clone, Debug)]
pub enum Finality {
    None,
    LastIrreversible(Arc<LastIrreversible>),
    Solidified(Arc<Solidified>),
    LiskBft(Arc<LiskBft>),
}

impl FinalityRule {
    /// Returns true if blocks must state up to which height their forgers have forged before.
    pub fn asks_forgers(self) -> bool {
        matches!(self, Self::LastIrreversible | Self::LastIrreversible3835 | Self::LiskBft | Self::LiskBft6594)
    }

    /// The state after genesis.
    pub fn begin(self) -> Finality {
        match self {
            Self::None => Finality::None,
            Self::LastIrreversible => Finality::LastIrreversible(Arc::default()),
            Self::LastIrreversible2718 => Finality::LastIrreversible(Arc::new(LastIrreversible::of(Counting::Forged))),
            Self::LastIrreversible3835 => {
                Finality::LastIrreversible(Arc::new(LastIrreversible::of(Counting::Overlong)))
            }
            Self::Solidified => Finality::Solidified(Arc::default()),
            Self::LiskBft => Finality::LiskBft(Arc::default()),
            Self::LiskBft6594 => Finality::LiskBft(Arc::new(LiskBft::that_falls_back())),
        }
    }
}

impl Finality {
    /// The height of the last final block, at least that of genesis.
    pub fn height(&self) -> Height {
        match self {
            Self::None => Height::GENESIS,
            Self::LastIrreversible(known) => known.height(),
            Self::Solidified(known) => known.height(),
            Self::LiskBft(known) => known.height(),
        }
    }

    /// The agreed height, where the rule of finality decides between two chains before their heights do.
    pub fn agreed(&self) -> Height {
        match self {
            Self::None | Self::Solidified(_) => Height::GENESIS,
            Self::LastIrreversible(known) if known.decides_between_chains() => known.height(),
            Self::LastIrreversible(_) => Height::GENESIS,
            Self::LiskBft(known) => known.said(),
        }
    }

    /// Returns true if the ids of the tips decide between chains that are otherwise equal.
    pub fn decides_by_ids(&self) -> bool {
        matches!(self, Self::LastIrreversible(known) if known.decides_between_chains())
    }

    /// Judges the next block of the chain, which belongs to this round. Returns the lowest height that it confirms and the highest that
    /// its forger has confirmed before, if the block confirms again what its forger has confirmed.
    pub fn confirmed_twice(&self, block: &Block, round: &Round) -> Option<(Height, Height)> {
        let Self::LastIrreversible(known) = self else { return None };
        known.confirmed_twice(block, round)
    }

    /// Updates the state by the next block of the chain, which belongs to this round.
    pub fn follow(&mut self, block: &Block, round: &Round) {
        match self {
            Self::None => {}
            Self::LastIrreversible(known) => Arc::make_mut(known).follow(block, round),
            Self::Solidified(known) => Arc::make_mut(known).follow(block, round),
            Self::LiskBft(known) => Arc::make_mut(known).follow(block, round),
        }
    }
}

/// The final blocks of all nodes of a network, which have to be on one chain.
#[derive(Clone, Debug)]
pub struct FinalBlocks {
    highest: Arc<Link>,
    tip: Arc<Link>,
}

impl FinalBlocks {
    /// Genesis is final everywhere.
    pub fn new(tree: &BlockTree) -> Self {
        Self { highest: tree.genesis().clone(), tip: tree.genesis().clone() }
    }

    /// The highest one so far.
    pub fn highest(&self) -> &Arc<Link> {
        &self.highest
    }

    /// The tip of the chain on which this block became final, at that time.
    pub fn tip(&self) -> &Arc<Link> {
        &self.tip
    }

    /// Adds the last final block of a node's chain, given the chain's tip and the state after the tip.
    ///
    /// # Errors
    /// It is not on one chain with the highest one, which stays.
    pub fn take(&mut self, tip: &Arc<Link>, state: &State) -> Result<(), Arc<Link>> {
        let own = tip.ancestor(state.finality().height()).expect("what is final is on the chain");
        let is_higher = own.height() > self.highest.height();
        let (low, high) = if is_higher { (&self.highest, &own) } else { (&own, &self.highest) };
        if !high.descends_from(low) {
            return Err(own);
        }
        if is_higher {
            (self.highest, self.tip) = (own, tip.clone());
        }
        Ok(())
    }
}

saved!(enum Finality { 0 None, 1 LastIrreversible(known), 2 Solidified(known), 3 LiskBft(known) });

#[cfg(test)]
mod tests;
