//! Fork choice: when a node leaves its chain and how far it goes back, and when its delegate may forge.
//!
//! ```text
//!   a block that does not follow, missed slots, vain downloads ─► health check: where do all peers stand?
//!                                                                    └─► ForkChoice::goes_back_to ─► rollback, download
//!   the delegate's turn ─► where do all peers stand? ─► ForkChoice::may_forge ─► block
//! ```
//!
//! [`ForkChoiceRule`] selects a rule. Each rule decides by numbers alone, so that it can be enumerated without a network. All rules
//! use the reference's messages, verification of peers and download. Only the order in which a node asks its peers for blocks depends
//! on the rule.

mod ark4432;
mod longest;
mod reference;
mod solar;
#[cfg(test)]
mod tests;

use super::{message::NetworkState, peer::VerificationResult};
use crate::{
    ledger::{
        Link, Rules, State,
        rules::{ForkChoiceRule, NodeRules},
    },
    protocol::{BlockId, Height},
};
use std::{cmp::Ordering, sync::Arc};

/// A rule by which a node chooses its chain.
pub trait ForkChoice: Send + Sync {
    /// The height to which a node rolls back, given where its peers stand, or `None` if it stays. Its own height asks for a rollback
    /// of no block (consensus.md 8 Q17).
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height>;

    /// Returns true if a delegate may forge on its relay's tip, in a round of `delegates` active delegates.
    fn may_forge(&self, seen: &NetworkState, delegates: u32, rules: &Rules) -> bool;

    /// Returns true if a pushed block that does not follow the tip causes a health check, at most one in the time of a slot.
    fn doubts_for_a_block(&self) -> bool {
        false
    }

    /// Returns true if a node downloads its peers' blocks right after a rollback, however recent its tip is.
    fn catches_up_at_once(&self) -> bool {
        false
    }

    /// Returns true if the rule compares the chains of the peers, and not only the heights of their tips.
    fn reads_chains(&self) -> bool {
        false
    }
}

/// The information from which a rule decides.
pub struct Look<'a> {
    /// The strength of the own chain, including blocks on top of it that only peers have yet.
    pub own: Strength,
    /// The last final block of the own chain.
    pub last_final: Height,
    /// The peers, in the order in which they are stored.
    pub peers: Vec<Stance>,
    pub rules: &'a NodeRules,
}

/// Where a peer stands.
#[derive(Clone, Copy, Debug)]
pub struct Stance {
    pub verified: VerificationResult,
    /// The peer's chain, if the rule reads chains and it is not the own one.
    pub chain: Option<Chain>,
}

/// A peer's chain beside the own one.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    pub strength: Strength,
    /// The first block above the common one: on the own chain, and on the peer's.
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

/// The chain with the greater agreed height is stronger. At equal agreed heights the higher chain is, and at equal heights the one
/// with the smaller id, where ids decide.
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
    /// Compares the chain of a peer's tip with the own one. Returns `None` unless the two split right above the height `common`.
    pub fn beside(own: &Arc<Link>, his: &Arc<Link>, common: Height, state: &State) -> Option<Self> {
        let at = |height: Height| Some((own.ancestor(height)?.id(), his.ancestor(height)?.id()));
        let (below, parting) = (at(common)?, at(common.next())?);
        let is_so = below.0 == below.1 && parting.0 != parting.1;
        is_so.then(|| Self { strength: Strength::of(his, state), parting })
    }
}

/// Returns the implementation of a rule.
pub fn of(rule: ForkChoiceRule) -> &'static dyn ForkChoice {
    match rule {
        ForkChoiceRule::Reference => &reference::Reference,
        ForkChoiceRule::Ark4432 => &ark4432::Ark4432,
        ForkChoiceRule::Solar => &solar::Solar { breaks_ties: false },
        ForkChoiceRule::SolarTieBroken => &solar::Solar { breaks_ties: true },
        ForkChoiceRule::LongestChain => &longest::Longest,
    }
}
