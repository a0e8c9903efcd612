//! Events that a search should see sometimes, beside forks and rollbacks: conditions of the network, rare contents of blocks,
//! faults at critical moments. A search names the events that it never saw, since it has not looked there.

use super::Sometimes;
use crate::{
    actors::NodeId,
    ledger::{BlockTree, Link},
    protocol::{Asset, Height, SignedTransaction, transaction::Expiration},
    scenario::Scenario,
    sim::{
        FaultKind, NetworkEvent,
        fault::{NodeRef, Nodes},
        network::{ByClass, Distribution, Per, Tally},
        strategy::LieAboutTip,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// Declares the names, so that the list contains them all.
macro_rules! sights {
    ($($(#[$doc:meta])* $constant:ident: $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// The names of all sights, in the order in which they are printed.
        pub const SIGHTS: [&str; [$($name),*].len()] = [$($name),*];
    };
}

sights! {
    /// A message that got lost by chance.
    LOSS: "a lost message";
    /// A message that arrived more than once.
    DOUBLED: "a message twice";
    /// A message that arrived before one that left before it on the same link.
    OVERTOOK: "an overtaken message";
    /// A message that took a second or more.
    SLOW: "a slow message";
    /// A message that waited until its link had carried others.
    WAITED: "a busy link";
    /// A run in which a clock is off.
    OFFSET: "a wrong clock";
    /// A run in which a clock runs too fast or too slow.
    DRIFT: "a drifting clock";
    /// A run with regions.
    REGIONS: "regions";
    /// A run in which each message draws its latency.
    PER_MESSAGE: "latency by message";
    /// A run whose latencies are all the same.
    CONSTANT: "constant latency";
    /// A run whose latencies are normally distributed.
    NORMAL: "normal latency";
    /// A run whose latencies are log-normally distributed.
    LOG_NORMAL: "log-normal latency";
    /// A forged update of a business.
    BUSINESS_UPDATE: "a business update";
    /// A forged resignation of a business.
    BUSINESS_RESIGNATION: "a business resignation";
    /// A forged update of a bridgechain.
    BRIDGECHAIN_UPDATE: "a bridgechain update";
    /// A forged resignation of a bridgechain.
    BRIDGECHAIN_RESIGNATION: "a bridgechain resignation";
    /// A forged transaction whose owners signed in another order than they are listed in.
    OTHER_ORDER: "shared signatures in another order";
    /// A registered wallet of another threshold than two of three.
    OTHER_THRESHOLD: "another threshold than two of three";
    /// A forged multipayment with a second signature.
    SECOND_SIGNED: "a multipayment with a second signature";
    /// A forged lock that ends at a time.
    TIMED_LOCK: "a lock that ends at a time";
    /// A block with which the reward changed.
    REWARD_CHANGE: "a change of the reward";
    /// A round with another number of members than the one before.
    SEATS_CHANGE: "a change of the number of delegates";
    /// A peer that was dropped while it lied about its tip.
    LIE: "a lying header";
    /// A fault that begins within two blocks before a round's end and is in force beyond it.
    BOUNDARY: "a fault across a boundary";
    /// A fault that begins within two blocks after a round's end.
    AFTER_BOUNDARY: "a fault right after a boundary";
}

/// Blocks before or after a round's end that count as near.
const NEAR: u32 = 2;

/// Notes about a run while it is watched.
#[derive(Clone, Default)]
pub(super) struct Sights {
    /// Faults in force, with the height at which each began.
    running: BTreeMap<usize, Height>,
    began: BTreeSet<usize>,
    /// The number of times that other nodes dropped a node.
    removed: BTreeMap<NodeId, u64>,
}

impl Sights {
    /// Handles the beginning or the end of a fault. The highest chain has the height `best`.
    pub(super) fn network(&mut self, event: &NetworkEvent<'_>, tree: &BlockTree, best: Height, told: &mut Sometimes) {
        match event {
            NetworkEvent::FaultBegan { index, .. } => {
                self.began.insert(*index);
                self.running.insert(*index, best);
                let round = tree.schedule().at(best.next()).first;
                if best.next().0 < round.0 + NEAR && round.0 > 1 {
                    told.count(AFTER_BOUNDARY);
                }
            }
            NetworkEvent::FaultEnded { index, .. } => {
                self.running.remove(index);
            }
            NetworkEvent::Sent { .. }
            | NetworkEvent::Lost { .. }
            | NetworkEvent::NodeDown { .. }
            | NetworkEvent::NodeUp { .. }
            | NetworkEvent::PoolLost { .. }
            | NetworkEvent::Moved { .. } => {}
        }
    }

    /// Counts that a node was dropped by another.
    pub(super) fn removed(&mut self, node: NodeId) {
        *self.removed.entry(node).or_default() += 1;
    }

    /// Counts the sights of a block that no node had before.
    pub(super) fn block(&self, tree: &BlockTree, link: &Link, told: &mut Sometimes) {
        link.block().transactions.iter().for_each(|transaction| of_transaction(transaction, told));
        let Some(parent) = link.parent() else { return };
        let at = |height: Height| tree.config().milestones.at(height);
        if parent.height().0 > 1 && at(link.height()).reward != at(parent.height()).reward {
            told.count(REWARD_CHANGE);
        }
        if link.round_end().is_none() {
            return;
        }
        let seats = |height| tree.schedule().at(height).delegates;
        if seats(link.height().next()) != seats(link.height()) {
            told.count(SEATS_CHANGE);
        }
        let near = |began: &&Height| began.0 + NEAR >= link.height().0 && **began < link.height();
        (0..self.running.values().filter(near).count()).for_each(|_| told.count(BOUNDARY));
    }

    /// Counts the sights that hold for a whole run, or that are known only at its end.
    pub(super) fn of_run(&self, scenario: &Scenario, tally: &Tally, told: &mut Sometimes) {
        let counted = [
            (LOSS, tally.lost),
            (DOUBLED, tally.doubled),
            (OVERTOOK, tally.overtook),
            (SLOW, tally.slow),
            (WAITED, tally.waited),
        ];
        let model = &scenario.network.model;
        let clocks = model.clocks.iter().flat_map(ByClass::named);
        let distribution = match model.latency.distribution {
            Distribution::Constant { .. } => CONSTANT,
            Distribution::Normal { .. } => NORMAL,
            Distribution::LogNormal { .. } => LOG_NORMAL,
            Distribution::Uniform { .. } | Distribution::Pareto { .. } => "",
        };
        let conditions = [
            (OFFSET, clocks.clone().any(|clocks| clocks.offset_ms > 0)),
            (DRIFT, clocks.clone().any(|clocks| clocks.drift_ppm > 0)),
            (REGIONS, model.regions.is_some()),
            (PER_MESSAGE, model.latency.per == Per::Message && model.regions.is_none()),
            (distribution, !distribution.is_empty() && model.regions.is_none()),
        ];
        counted.into_iter().for_each(|(what, times)| told.count_more(what, times));
        conditions.into_iter().for_each(|(what, holds)| told.count_more(what, u64::from(holds)));
        let began = self.began.iter().filter_map(|index| scenario.faults.get(*index));
        for fault in began {
            if let FaultKind::ClockSkew(skew) = &fault.kind {
                told.count_more(OFFSET, u64::from(skew.offset_ms != 0));
                told.count_more(DRIFT, u64::from(skew.drift_ppm != 0));
            }
            if let Some(lie) = fault.kind.strategy::<LieAboutTip>() {
                told.count_more(LIE, self.dropped(&lie.nodes));
            }
        }
    }

    /// Returns the number of times that these nodes were dropped. A span or a share counts all nodes.
    fn dropped(&self, nodes: &Nodes) -> u64 {
        let listed = |node: &NodeId| match nodes {
            Nodes::List(list) => list.contains(&NodeRef::Number(node.0)),
            Nodes::Span(_) | Nodes::Share(_) => true,
        };
        self.removed.iter().filter(|(node, _)| listed(node)).map(|(_, times)| times).sum()
    }
}

fn of_transaction(transaction: &SignedTransaction, told: &mut Sometimes) {
    let content = transaction.transaction();
    let what = match transaction.asset() {
        Asset::BusinessUpdate { .. } => Some(BUSINESS_UPDATE),
        Asset::BusinessResignation => Some(BUSINESS_RESIGNATION),
        Asset::BridgechainUpdate(_) => Some(BRIDGECHAIN_UPDATE),
        Asset::BridgechainResignation { .. } => Some(BRIDGECHAIN_RESIGNATION),
        Asset::MultiSignature { min, public_keys } if (*min, public_keys.len()) != (2, 3) => Some(OTHER_THRESHOLD),
        Asset::MultiPayment { .. } if content.second_signature.is_some() => Some(SECOND_SIGNED),
        Asset::HtlcLock { expiration: Expiration::EpochTime(_), .. } => Some(TIMED_LOCK),
        _ => None,
    };
    what.into_iter().for_each(|what| told.count(what));
    if !content.signatures.is_sorted_by_key(|signature| signature.index) {
        told.count(OTHER_ORDER);
    }
}
