//! The delegates of a round: who they are, and how evenly their votes are spread.

mod concentration;

use crate::{
    ledger::{BlockTree, Link, Round},
    protocol::{Height, PublicKey},
};
use std::{collections::BTreeSet, sync::Arc};

/// The members of a round and their vote weights in the ranking that elected them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ActiveSet {
    /// Members.
    pub members: u32,
    /// The vote weight of all members together \[arktoshi\].
    pub weight: u64,
    /// The weight of the lightest member \[arktoshi\].
    pub least: u64,
    /// The weight of the heaviest member \[arktoshi\].
    pub greatest: u64,
    /// The number of members that the previous round did not have. `None` in the first round.
    pub turnover: Option<u32>,
    /// The Gini coefficient of the members' weights, from 0 to 1.
    pub gini: f64,
    /// The least number of members that have more than half of `weight`.
    pub nakamoto: u32,
    /// The largest number of members that belong to one group of agents.
    pub captured: u32,
}

impl ActiveSet {
    /// The active set of `round`, compared with the previous round `before`. `groups` are the delegates of each group
    /// of agents.
    pub fn of(round: &Round, before: Option<&Round>, groups: &[BTreeSet<PublicKey>]) -> Self {
        let weights: Vec<u64> = round.members.iter().map(|member| member.vote_balance.or_zero()).collect();
        let keys: BTreeSet<&PublicKey> = round.members.iter().map(|member| &member.public_key).collect();
        let new = |before: &Round| {
            let old: BTreeSet<&PublicKey> = before.members.iter().map(|member| &member.public_key).collect();
            keys.difference(&old).count() as u32
        };
        let held = |group: &BTreeSet<PublicKey>| group.iter().filter(|key| keys.contains(key)).count() as u32;
        Self {
            members: weights.len() as u32,
            weight: weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight)),
            least: weights.iter().copied().min().unwrap_or(0),
            greatest: weights.iter().copied().max().unwrap_or(0),
            turnover: before.map(new),
            gini: concentration::gini(&weights),
            nakamoto: concentration::nakamoto(&weights),
            captured: groups.iter().map(held).max().unwrap_or(0),
        }
    }

    /// The active set of the round to which the block after `tip` belongs.
    pub fn after(tree: &BlockTree, tip: &Arc<Link>, groups: &[BTreeSet<PublicKey>]) -> Self {
        let position = tree.schedule().at(tip.height().next());
        // The last block of a round creates the next round. So the previous round is in the block before its own first
        // block.
        let before = position.first.0.checked_sub(1).filter(|last| *last > 0).map(|last| {
            let made =
                tree.schedule().at(Height(last)).first.0.checked_sub(1).and_then(|made| tip.ancestor(Height(made)));
            let made = made.and_then(|link| link.round_end().map(|end| end.created.clone()));
            made.unwrap_or_else(|| tree.applied(tree.genesis()).state.round().clone())
        });
        Self::of(tree.applied(tip).state.round(), before.as_deref(), groups)
    }
}
