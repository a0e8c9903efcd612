//! Facts about the whole run, gathered before rows are made.

use super::super::{
    Target,
    record::{Cause, Happening, Record},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockRejected, Link},
    protocol::{BlockId, TransactionId},
    sim::Plan,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Letters for rival blocks, in the order in which they were forged.
pub(super) const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwyz";
/// The largest number of transactions for which the events of all are shown.
const FEW: usize = 12;

/// Facts about the whole run, gathered before rows are made.
pub(super) struct Ground {
    pub(super) start: SimTime,
    pub(super) end: SimTime,
    /// The node that the failure concerns, if it is one.
    pub(super) node: Option<NodeId>,
    /// The blocks that nodes applied while others applied another block on the same parent, each with its
    /// letter.
    pub(super) rivals: BTreeMap<BlockId, char>,
    /// The rivals that still part the nodes when the failure shows.
    pub(super) parting: BTreeSet<BlockId>,
    /// Transactions whose events are all shown.
    pub(super) concerned: BTreeSet<TransactionId>,
    /// True if there are few enough faults to show them.
    pub(super) tells_faults: bool,
}

impl Ground {
    pub(super) fn of(record: &Record, upto: usize, plan: &Plan, target: &Target) -> Self {
        let mut taken: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
        let mut tips = record.first_tips.clone();
        let mut seen: BTreeSet<TransactionId> = BTreeSet::new();
        let mut refused: BTreeSet<TransactionId> = BTreeSet::new();
        let mut order: Vec<(BlockId, BlockId)> = Vec::new();
        for step in &record.steps[..upto] {
            if let Cause::Submitted(ids) = &step.cause {
                seen.extend(ids);
            }
            let tip = &mut tips[step.actor.node.0 as usize];
            for event in &step.events {
                match event {
                    Event::BlockForged(block) => order.extend(block.header.previous.map(|parent| (block.id, parent))),
                    Event::BlockApplied(link) => {
                        if let Some(parent) = link.parent().map(|parent| parent.id())
                            && taken.entry(parent).or_default().insert(link.id())
                        {
                            order.push((link.id(), parent));
                        }
                        *tip = link.clone();
                    }
                    Event::RolledBack { to, .. } => *tip = to.clone(),
                    Event::BlockRefused(why) => {
                        if let BlockRejected::NotApplicable { transaction, .. } = &**why {
                            refused.insert(*transaction);
                        }
                    }
                    _ => {}
                }
            }
        }
        // Letters in the order of forging, which is that of the steps.
        let (mut letters, mut rivals) = (LETTERS.chars(), BTreeMap::new());
        for (id, parent) in order {
            let is_rival = taken.get(&parent).is_some_and(|all| all.len() > 1 && all.contains(&id));
            if is_rival && !rivals.contains_key(&id) {
                rivals.insert(id, letters.next().unwrap_or('?'));
            }
        }
        let is_on = |tip: &Arc<Link>, id: &BlockId| {
            let height = record.tree.link(id).map(|link| link.height());
            height.and_then(|height| tip.ancestor(height)).is_some_and(|ancestor| ancestor.id() == *id)
        };
        let parting = taken.values().flat_map(|all| {
            let on: Vec<BlockId> = all.iter().filter(|id| tips.iter().any(|tip| is_on(tip, id))).copied().collect();
            if all.len() > 1 && on.len() > 1 { all.iter().copied().collect() } else { Vec::new() }
        });
        let parting: BTreeSet<BlockId> = parting.collect();
        let mut concerned: BTreeSet<TransactionId> =
            seen.iter().filter(|id| target.what.contains(&id.to_string())).copied().collect();
        concerned.extend(refused);
        if seen.len() <= FEW && target.node.is_some() {
            concerned.extend(seen);
        }
        let faults = record.network.iter().filter(|one| matches!(one, Happening::Fault { .. })).count();
        let (node, tells_faults) = (target.node, faults <= 16);
        Self { start: plan.start, end: target.at, node, rivals, parting, concerned, tells_faults }
    }
}
