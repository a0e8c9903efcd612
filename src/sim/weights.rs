//! The vote weight of the nodes of a run, in the round of the block after the winning tip.

use super::{Plan, Tips};
use crate::{
    ledger::{BlockTree, Round},
    protocol::{BlockId, Height, PublicKey},
};
use std::{collections::BTreeMap, sync::Arc};

/// The vote weight of the delegate that forges on each node, at the beginning of the round in force: the one that the
/// block after the winning tip belongs to.
#[derive(Clone)]
pub struct Weights {
    tree: Arc<BlockTree>,
    keys: Vec<Option<PublicKey>>,
    /// In arktoshi; 0 without an active delegate.
    weights: Vec<i128>,
    /// The block before the first block of the weighed round.
    anchor: Option<BlockId>,
}

impl Weights {
    /// The weights of a run that is about to begin.
    pub fn new(plan: &Plan) -> Self {
        let keys = plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public())).collect();
        Self { tree: plan.tree.clone(), keys, weights: vec![0; plan.nodes.len()], anchor: None }
    }

    /// Share of the vote weight of live nodes that stands exactly on the winning tip, from 0 to 1. Where no live node's
    /// delegate is active, the share of the live nodes. `None` while no node is live.
    pub fn agreement(&mut self, tips: &Tips) -> Option<f64> {
        let by_nodes = tips.agreement()?;
        if tips.is_converged() {
            return Some(1.0);
        }
        self.enter_round(tips);
        let winning = tips.winning();
        let (mut all, mut agreeing) = (0, 0);
        for (node, tip) in tips.of_live() {
            let weight = self.weights[node.0 as usize];
            all += weight;
            agreeing += if tip.is(winning) { weight } else { 0 };
        }
        Some(if all > 0 { agreeing as f64 / all as f64 } else { by_nodes })
    }

    fn enter_round(&mut self, tips: &Tips) {
        let winning = tips.winning();
        let first = self.tree.schedule().at(winning.height().next()).first;
        let anchor = winning.ancestor(Height(first.0.saturating_sub(1))).map(|link| link.id());
        // A chain that begins within a round has no block before it.
        if anchor.is_none() || anchor != self.anchor {
            self.weigh(self.tree.applied(winning).state.round());
            self.anchor = anchor;
        }
    }

    fn weigh(&mut self, round: &Round) {
        let by_key: BTreeMap<PublicKey, i128> =
            round.members.iter().map(|member| (member.public_key, member.vote_balance.0)).collect();
        for (weight, key) in self.weights.iter_mut().zip(&self.keys) {
            *weight = key.and_then(|key| by_key.get(&key)).copied().unwrap_or(0);
        }
    }
}
