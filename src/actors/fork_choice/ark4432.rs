//! ARK 3 since pull request 4432.
//!
//! 1. The node groups its forked peers by the highest block that they have in common with it. For each group, F is the number of members.
//!    O is the number of nodes that have more blocks in common with this node, itself included.
//! 2. It rolls back to the block of the first group with F > O. It visits the groups in descending order of their heights as text: 99
//!    comes before 100.
//! 3. Forging is the reference's.
//!
//! Source: ArkEcosystem/core 8cde7613a6, `checkNetworkHealth`.

use super::{ForkChoice, Look, reference::Reference};
use crate::{actors::message::NetworkState, ledger::Rules, protocol::Height};

pub(super) struct Ark4432;

impl ForkChoice for Ark4432 {
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height> {
        look.groups_as_text()
            .find(|(height, forked)| *forked > look.with_more_in_common(*height))
            .map(|(height, _)| height)
    }

    fn may_forge(&self, seen: &NetworkState, delegates: u32, rules: &Rules) -> bool {
        Reference.may_forge(seen, delegates, rules)
    }
}

impl Look<'_> {
    /// The groups of forked peers, in descending order of their heights as text.
    pub(super) fn groups_as_text(&self) -> impl Iterator<Item = (Height, usize)> {
        let mut groups: Vec<(Height, usize)> = self.groups().into_iter().collect();
        groups.sort_by_cached_key(|(height, _)| std::cmp::Reverse(height.0.to_string()));
        groups.into_iter()
    }

    /// The number of nodes that have a block above `height` in common with this one, itself included.
    pub(super) fn with_more_in_common(&self, height: Height) -> usize {
        self.peers.iter().filter(|peer| peer.verified.highest_common > height).count() + 1
    }
}
