//! Solar's majority of delegates, for networks with one delegate on each node.
//!
//! 1. A node looks where its peers stand when a block comes that does not follow its tip.
//! 2. It goes back to the highest block common with forked peers if these are more than those that have more in common with it, itself
//!    among them. Heights are gone through as text, as in ARK 3.
//! 3. Its delegate forges if more than half of the active delegates, itself among them, stand at exactly its height on its chain.
//! 4. With the tie broken, which Solar does not do, as many are enough at 2 where the own block after the common one has the larger id.
//!    So one of two halves yields.
//!
//! Source: the rule of Solar 4.3.1. There a peer weighs as many delegates as it runs, and the look is a second late.

use super::{ForkChoice, Look};
use crate::{actors::message::NetworkState, ledger::Rules, protocol::Height};
use std::cmp::Ordering;

pub(super) struct Solar {
    pub(super) breaks_ties: bool,
}

impl Solar {
    /// The node yields to as many as are with it.
    fn yields(&self, look: &Look<'_>, height: Height) -> bool {
        let chains = look.forked().filter(|peer| peer.verified.highest_common == height).filter_map(|peer| peer.chain);
        self.breaks_ties && chains.map(|chain| chain.parting).any(|(own, his)| own > his)
    }
}

impl ForkChoice for Solar {
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height> {
        let leaves = |height, forked: usize| match forked.cmp(&look.with_more_in_common(height)) {
            Ordering::Greater => true,
            Ordering::Equal => self.yields(look, height),
            Ordering::Less => false,
        };
        look.groups_as_text().find(|(height, forked)| leaves(*height, *forked)).map(|(height, _)| height)
    }

    fn may_forge(&self, seen: &NetworkState, delegates: u32, _rules: &Rules) -> bool {
        2 * (seen.level + 1) > delegates
    }

    fn doubts_for_a_block(&self) -> bool {
        true
    }

    fn catches_up_at_once(&self) -> bool {
        true
    }

    fn reads_chains(&self) -> bool {
        self.breaks_ties
    }
}
