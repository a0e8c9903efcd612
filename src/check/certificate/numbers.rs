//! The numbers by which the rules hold a node on its chain, counted from the real tips of its peers.

use crate::{
    actors::{NodeId, peer::VerificationResult},
    ledger::{Link, Rules},
    sim::{Tips, tips::common_height},
};
use std::{collections::VecDeque, sync::Arc};

/// The number of seconds for which the tips of all nodes are retained: a verification takes at most a minute. Source: consensus.md 6.
pub(super) const LOOKS: usize = 61;

/// Returns true if each of two chains has blocks that the other lacks.
pub(super) fn is_parted(one: &Arc<Link>, other: &Arc<Link>) -> bool {
    !one.descends_from(other) && !other.descends_from(one)
}

/// The counts of a node's peers by their real tips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub peers: u32,
    /// On other chains.
    pub forked: u32,
    /// On this chain and no higher. Source: consensus.md 2.2.
    pub in_quorum: u32,
}

impl Numbers {
    /// Counts the peers of a node by the blocks they stand on.
    pub(super) fn of(records: &[(NodeId, VerificationResult)], own: &Arc<Link>, tips: &Tips) -> Self {
        let mut numbers = Self { peers: 0, forked: 0, in_quorum: 0 };
        for tip in records.iter().map(|(node, _)| tips.of(*node)) {
            numbers.peers += 1;
            numbers.forked += u32::from(is_parted(own, tip));
            numbers.in_quorum += u32::from(own.descends_from(tip));
        }
        numbers
    }

    /// The peers that a node may have counted when it forged in the second between two looks at the network. A peer counts for
    /// quorum where it stood at either look, or where it was last known to be. Source: consensus.md 2.2.
    pub(super) fn of_forger<'t>(
        before: &[(NodeId, VerificationResult)],
        now: &[(NodeId, VerificationResult)],
        own: &Arc<Link>,
        looks: impl Iterator<Item = &'t Tips> + Clone,
    ) -> Self {
        let mut numbers = Self { peers: 0, forked: 0, in_quorum: 0 };
        let new = now.iter().filter(|(node, _)| before.iter().all(|(other, _)| other != node));
        for (node, record) in before.iter().chain(new) {
            let stood_below = looks.clone().any(|tips| own.descends_from(tips.of(*node)));
            numbers.peers += 1;
            numbers.forked += u32::from(looks.clone().all(|tips| is_parted(own, tips.of(*node))));
            numbers.in_quorum += u32::from(stood_below || !record.is_forked());
        }
        numbers
    }

    /// The peers that a node may have counted when it left its chain in the last second. A peer counts as forked if it stood on another
    /// chain at one of the two `looks` at the network around that second, or if its record said so and it stood there within the
    /// minute that a verification may take. Source: consensus.md 3.5, 6.
    pub(super) fn of_leaver(
        records: &[(NodeId, VerificationResult)],
        from: &Arc<Link>,
        looks: &VecDeque<Tips>,
    ) -> Self {
        let parted = |node, most| looks.iter().rev().take(most).any(|tips| is_parted(from, tips.of(node)));
        let is_forked =
            |node, record: &VerificationResult| parted(node, 2) || (record.is_forked() && parted(node, LOOKS));
        let forked = records.iter().filter(|(node, record)| is_forked(*node, record)).count() as u32;
        Self { peers: records.len() as u32, forked, in_quorum: 0 }
    }

    /// By 3.5, a health check finds the node forked.
    pub(super) fn leaves(self, rules: &Rules) -> bool {
        self.peers > 0 && 100 * self.forked >= rules.node.forked_percent * self.peers
    }

    /// By 2.2, its delegate forges.
    pub(super) fn has_quorum(self, rules: &Rules) -> bool {
        let Self { peers, in_quorum, .. } = self;
        peers > 0 && peers >= rules.least_reach() && 100 * in_quorum >= rules.quorum_percent * peers
    }

    /// By 2.2, its delegate forges if some of the peers outside the quorum are dropped before: their verification may fail.
    pub(super) fn may_have_quorum(self, rules: &Rules) -> bool {
        (0..=self.peers - self.in_quorum).any(|late| Self { peers: self.peers - late, ..self }.has_quorum(rules))
    }

    /// The share of peers on other chains beside the threshold of 3.5.
    pub(super) fn doubt(self, rules: &Rules) -> String {
        let Self { peers, forked, .. } = self;
        let needed = rules.node.forked_percent;
        format!("{forked} of {peers} peers are on other chains, and from {needed} % on it leaves its own")
    }

    /// Peers reached and the share in quorum beside the thresholds of 2.2.
    pub(super) fn quorum(self, rules: &Rules) -> String {
        let Self { peers, in_quorum, .. } = self;
        let (needed, least) = (rules.quorum_percent, rules.least_reach());
        format!("{in_quorum} of {peers} peers are in quorum, and {needed} % of at least {least} are needed to forge")
    }
}

/// Returns why the first record that counts a peer wrongly is false, if there is one. A record names the highest block that two tips
/// had in common. It stays true unless one of the nodes has left its chain since.
pub(super) fn false_record(records: &[(NodeId, VerificationResult)], own: &Arc<Link>, tips: &Tips) -> Option<String> {
    records.iter().find_map(|(node, record)| {
        let other = tips.of(*node);
        // An old record that still counts the peer correctly is not false.
        if record.is_forked() == is_parted(own, other) {
            return None;
        }
        let wrong = match (own.ancestor(record.my_height), other.ancestor(record.his_height)) {
            (Some(mine), Some(his)) => {
                let common = common_height(&mine, &his);
                (common != record.highest_common).then(|| format!("they have blocks in common up to height {common}"))
            }
            (None, _) => Some(format!("the node itself is down at height {}", own.height())),
            (_, None) => Some(format!("{node} is down at height {}", other.height())),
        };
        let VerificationResult { my_height, his_height, highest_common } = record;
        Some(format!(
            "its record says that its tip at height {my_height} and that of {node} at height {his_height} have blocks in \
             common up to {highest_common}, but {}",
            wrong?
        ))
    })
}
