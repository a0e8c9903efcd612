//! ARK 3 since pull request 4432.
//!
//! 1. For each block that is the highest one common with forked peers, the node counts these, F, and the peers that have more in
//!    common with it, O, itself among them.
//! 2. At the first with F > O it goes back there. The heights are gone through in the falling order of their digits, as text: 99 comes
//!    before 100.
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
    /// The groups of forked peers, in the falling order of their heights as text.
    pub(super) fn groups_as_text(&self) -> impl Iterator<Item = (Height, usize)> {
        let mut groups: Vec<(Height, usize)> = self.groups().into_iter().collect();
        groups.sort_by_cached_key(|(height, _)| std::cmp::Reverse(height.0.to_string()));
        groups.into_iter()
    }

    /// How many nodes have more in common with this one than a block of this height, itself among them.
    pub(super) fn with_more_in_common(&self, height: Height) -> usize {
        self.peers.iter().filter(|peer| peer.verified.highest_common > height).count() + 1
    }
}
