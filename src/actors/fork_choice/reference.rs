//! ARK 2.6.57. Source: consensus.md 2.2, 3.5.
//!
//! 1. With half of its peers or more on other chains a node is forked.
//! 2. It goes back to the highest block common with the first peer stored, or, where the rules say so, with the largest group of
//!    forked peers.
//! 3. Its delegate forges with enough peers, of which 66 % or more are on its chain and not above it.

use super::{ForkChoice, Look, Stance};
use crate::{
    actors::message::{NetworkState, NetworkStatus},
    ledger::{Rules, rules::RollbackTarget},
    protocol::Height,
};
use std::collections::BTreeMap;

pub(super) struct Reference;

impl ForkChoice for Reference {
    fn goes_back_to(&self, look: &Look<'_>) -> Option<Height> {
        let peers = look.peers.len() as u32;
        let forked = look.forked().count() as u32;
        let is_forked = peers > 0 && 100 * forked >= look.rules.forked_percent * peers;
        let target = match look.rules.rollback_target {
            RollbackTarget::FirstPeer => look.peers.first().map(|peer| peer.verified.highest_common),
            // Among groups of equal size the last one is chosen, so the lowest comes last.
            RollbackTarget::LargestGroup => {
                look.groups().into_iter().rev().max_by_key(|(_, size)| *size).map(|(height, _)| height)
            }
        };
        is_forked.then(|| target.unwrap_or(look.own.height))
    }

    fn may_forge(&self, seen: &NetworkState, _delegates: u32, rules: &Rules) -> bool {
        match seen.status {
            NetworkStatus::ColdStart | NetworkStatus::BelowMinimumPeers => false,
            NetworkStatus::Test => true,
            NetworkStatus::Default => {
                let least = u64::from(rules.quorum_percent) * u64::from(seen.reached);
                seen.reached > 0 && u64::from(seen.in_quorum) * 100 >= least
            }
        }
    }
}

impl Look<'_> {
    pub(super) fn forked(&self) -> impl Iterator<Item = &Stance> {
        self.peers.iter().filter(|peer| peer.verified.is_forked())
    }

    /// The number of forked peers for each highest common block.
    pub(super) fn groups(&self) -> BTreeMap<Height, usize> {
        let mut groups = BTreeMap::new();
        self.forked().for_each(|peer| *groups.entry(peer.verified.highest_common).or_default() += 1);
        groups
    }
}
