//! Fork choice: when a node leaves its chain and how far it goes back, and when its delegate may forge.
//!
//! ```text
//!   a block that does not follow, missed slots, vain downloads ─► health check: where do all peers stand?
//!                                                                    └─► ForkChoice::goes_back_to ─► rollback, download
//!   the delegate's turn ─► where do all peers stand? ─► ForkChoice::may_forge ─► block
//! ```
//!
//! The rule [`ForkChoiceRule`] names one. Each decides by numbers alone, so that a rule can be enumerated without a network. The
//! messages, the verification of peers and the download are the reference's for all of them, but for the order in which peers are asked for
//! blocks.

mod ark4432;
mod longest;
mod reference;
mod solar;
#[cfg(test)]
mod tests;

use super::{message::NetworkState, peer::Verified};
use crate::{
    ledger::{
        Link, Rules, State,
        rules::{ForkChoiceRule, NodeRules},
    },
    protocol::{BlockId, Height},
};
use std::{cmp::Ordering, sync::Arc};

/// A rule for which chain a node is on.
pub trait ForkChoice: Send + Sync {
    /// The height that a node goes back to, given where its peers stand; `None` if it stays. Its own height asks for a rollback
    /// of no block (consensus.md 8 Q17).
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height>;

    /// Returns true if a delegate may forge on its relay's tip, in a round of `delegates` active delegates.
    fn may_forge(&self, seen: &NetworkState, delegates: u32, rules: &Rules) -> bool;

    /// A pushed block that does not follow the tip makes the node look where its peers stand, once in a slot's time at most.
    fn doubts_for_a_block(&self) -> bool {
        false
    }

    /// After a rollback the node downloads what its peers have above it, however young its tip is.
    fn catches_up_at_once(&self) -> bool {
        false
    }

    /// It looks at the peers' chains, and not at the heights of their tips alone.
    fn reads_chains(&self) -> bool {
        false
    }
}

/// All that a node knows when it looks at its chain.
pub struct Look<'a> {
    /// The strength of its chain, as far as a peer has it.
    pub own: Strength,
    /// The last final block of the own chain.
    pub last_final: Height,
    /// In the order in which they are stored.
    pub peers: Vec<Stance>,
    pub rules: &'a NodeRules,
}

/// Where a peer stands.
#[derive(Clone, Copy, Debug)]
pub struct Stance {
    pub verified: Verified,
    /// Its chain, where the rule reads chains and this is another one.
    pub chain: Option<Chain>,
}

/// A peer's chain beside the own one.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    pub strength: Strength,
    /// The blocks above the common one: the own and his.
    pub parting: (BlockId, BlockId),
}

/// The strength of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strength {
    /// The height on which the delegates have agreed, as far as the rule of finality uses it to decide between chains.
    pub agreed: Height,
    pub height: Height,
    /// The id of the tip, where it decides between equals.
    pub id: Option<BlockId>,
}

impl Strength {
    /// Returns the strength of the chain of a tip with this state.
    pub fn of(tip: &Link, state: &State) -> Self {
        let finality = state.finality();
        Self { agreed: finality.agreed(), height: tip.height(), id: finality.decides_by_ids().then(|| tip.id()) }
    }
}

/// The stronger one has the more agreed on, or else the more blocks, or else the smaller id where ids decide.
impl Ord for Strength {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_blocks = (self.agreed, self.height).cmp(&(other.agreed, other.height));
        by_blocks.then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for Strength {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Chain {
    /// The chain of a peer's tip beside the own one; `None` unless they part above this height.
    pub fn beside(own: &Arc<Link>, his: &Arc<Link>, common: Height, state: &State) -> Option<Self> {
        let at = |height: Height| Some((own.ancestor(height)?.id(), his.ancestor(height)?.id()));
        let (below, parting) = (at(common)?, at(common.next())?);
        let is_so = below.0 == below.1 && parting.0 != parting.1;
        is_so.then(|| Self { strength: Strength::of(his, state), parting })
    }
}

/// The rule of a name.
pub fn of(rule: ForkChoiceRule) -> &'static dyn ForkChoice {
    match rule {
        ForkChoiceRule::Reference => &reference::Reference,
        ForkChoiceRule::Ark4432 => &ark4432::Ark4432,
        ForkChoiceRule::Solar => &solar::Solar { breaks_ties: false },
        ForkChoiceRule::SolarTieBroken => &solar::Solar { breaks_ties: true },
        ForkChoiceRule::LongestChain => &longest::Longest,
    }
}
