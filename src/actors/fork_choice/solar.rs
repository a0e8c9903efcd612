//! Solar's majority of delegates, for networks with one delegate on each node.
//!
//! 1. A block that does not follow its tip makes a node check where its peers stand.
//! 2. The node rolls back to the highest block common with a group of forked peers, if that group is larger than the number of nodes that
//!    have more in common with it, itself included. It visits heights as text, as in ARK 3.
//! 3. Its delegate forges if more than half of the active delegates, itself among them, stand at exactly its height on its chain.
//! 4. With ties broken, which Solar does not do, an equal number suffices in step 2 if the own block after the common one has the larger
//!    id. So one of two halves yields.
//!
//! Source: the rule of Solar 4.3.1. There a peer counts for as many delegates as it runs, and the check comes a second later.

use super::{ForkChoice, Look};
use crate::{actors::message::NetworkState, ledger::Rules, protocol::Height};
use std::cmp::Ordering;

pub(super) struct Solar {
    pub(super) breaks_ties: bool,
}

impl Solar {
    /// Returns true if the node yields to an equal number of peers.
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
