//! Which block of a chain is final: the rules by which other protocols of this family say so.
//!
//! A rule reads the chain block by block, and keeps what it needs to know in the state after a block. So what is final is a
//! function of the chain, as everything else of a state. It never falls along a chain. By [`FinalityRule::None`], the reference's,
//! no block but genesis is ever final, and nothing is kept.
//!
//! A header says how high its forger has forged before, where a rule asks ([`forged_before`](crate::protocol::BlockHeader)). It is
//! signed and part of the id, beside the reference's bytes.

pub mod drawn;
mod last_irreversible;
mod lisk_bft;
mod solidified;

pub use self::{last_irreversible::LastIrreversible, lisk_bft::LiskBft, solidified::Solidified};

use super::{BlockTree, Link, State, round::Round, saved::saved};
use crate::protocol::{Block, Height};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The rule by which a block becomes final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalityRule {
    /// None ever does.
    None,
    /// EOS: two thirds of the delegates have confirmed that two thirds confirmed it.
    LastIrreversible,
    /// Tron: 70 % of the delegates have forged at or above it.
    Solidified,
    /// Lisk, LIP-0014: two thirds of the delegates have precommitted it.
    LiskBft,
}

/// What a rule knows after a block.
#[derive(Clone, Debug)]
pub enum Finality {
    None,
    LastIrreversible(Arc<LastIrreversible>),
    Solidified(Arc<Solidified>),
    LiskBft(Arc<LiskBft>),
}

impl FinalityRule {
    /// Blocks have to say how high their forgers have forged before.
    pub fn asks_forgers(self) -> bool {
        matches!(self, Self::LastIrreversible | Self::LiskBft)
    }

    /// The knowledge after genesis.
    pub fn begin(self) -> Finality {
        match self {
            Self::None => Finality::None,
            Self::LastIrreversible => Finality::LastIrreversible(Arc::default()),
            Self::Solidified => Finality::Solidified(Arc::default()),
            Self::LiskBft => Finality::LiskBft(Arc::default()),
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

    /// What is agreed on where that decides between two chains, before their heights do.
    pub fn agreed(&self) -> Height {
        match self {
            Self::None | Self::Solidified(_) => Height::GENESIS,
            Self::LastIrreversible(known) => known.height(),
            Self::LiskBft(known) => known.said(),
        }
    }

    /// The ids of their tips decide between chains that are equal otherwise.
    pub fn decides_by_ids(&self) -> bool {
        matches!(self, Self::LastIrreversible(_))
    }

    /// Takes in the next block of the chain, which belongs to this round.
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
pub struct FinalBlocks(Arc<Link>);

impl FinalBlocks {
    /// Genesis is final everywhere.
    pub fn new(tree: &BlockTree) -> Self {
        Self(tree.genesis().clone())
    }

    /// The highest one so far.
    pub fn highest(&self) -> &Arc<Link> {
        &self.0
    }

    /// Takes in the last final block of a node's chain, by its tip and the state after that.
    ///
    /// # Errors
    /// It is not on one chain with the highest one, which stays.
    pub fn take(&mut self, tip: &Arc<Link>, state: &State) -> Result<(), Arc<Link>> {
        let own = tip.ancestor(state.finality().height()).expect("what is final is on the chain");
        let (low, high) = if own.height() < self.0.height() { (&own, &self.0) } else { (&self.0, &own) };
        if !high.descends_from(low) {
            return Err(own);
        }
        self.0 = high.clone();
        Ok(())
    }
}

saved!(enum Finality { 0 None, 1 LastIrreversible(known), 2 Solidified(known), 3 LiskBft(known) });

#[cfg(test)]
mod tests;
