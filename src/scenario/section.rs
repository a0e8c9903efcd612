//! The section of a scenario file on its network.

use super::vote_weights::VoteWeights;
use crate::{
    ledger::rules::Gossip,
    sim::{NetworkModel, fault::is_zero},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network the run plays on: one node for each delegate, numbered as the delegates, and further ones after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// Number of active delegates, named `genesis_1`, `genesis_2`, …
    pub delegates: u32,
    /// Registered delegates beyond those: they follow in the numbering, and forge when they are voted in.
    #[serde(skip_serializing_if = "is_zero")]
    pub standby: u32,
    /// The vote weights of all delegates at genesis.
    #[serde(skip_serializing_if = "VoteWeights::is_equal")]
    pub vote_weights: VoteWeights,
    /// The length of a slot, in seconds.
    #[serde(skip_serializing_if = "is_usual")]
    pub block_time_s: u32,
    /// The reward of each forged block, in arktoshi; nothing for the first 75,599 heights, as in the preset, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<u64>,
    /// The most bytes of a vendor field, 1 to 255; 64 for the first 99,999 heights and 255 from then on, as in the preset, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor_field_bytes: Option<u32>,
    /// The changes at some heights, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<Change>,
    /// Nodes without a delegate.
    #[serde(skip_serializing_if = "is_zero")]
    pub relays: u32,
    /// The way blocks travel; `rules.gossip` is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gossip: Option<Gossip>,
    /// The links between nodes and the work of nodes.
    #[serde(flatten)]
    pub model: NetworkModel,
}

/// A milestone of the network: what is in force from a height on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From the block of this height on; 2 or more.
    pub height: u32,
    /// The reward of each forged block, in arktoshi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<u64>,
    /// Number of active delegates, at most those that are registered; only where a round begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegates: Option<u32>,
}

/// The default length of a slot, in seconds.
const BLOCK_TIME: u32 = 8;

fn is_usual(block_time: &u32) -> bool {
    *block_time == BLOCK_TIME
}

impl Default for NetworkSection {
    fn default() -> Self {
        Self {
            delegates: 51,
            standby: 0,
            vote_weights: VoteWeights::Equal,
            block_time_s: BLOCK_TIME,
            reward: None,
            vendor_field_bytes: None,
            milestones: Vec::new(),
            relays: 0,
            gossip: None,
            model: NetworkModel::default(),
        }
    }
}

impl NetworkSection {
    /// The number of all nodes.
    pub fn nodes(&self) -> u32 {
        self.delegates + self.standby + self.relays
    }

    /// The first height of a round, and its number of blocks, where each delegate owns `turn` slots in a row. Round 1 begins with
    /// height 1.
    pub fn round(&self, round: u32, turn: u32) -> (u32, u32) {
        let (mut first, mut seats, mut before) = (1, self.delegates, 1);
        for change in &self.milestones {
            let Some(delegates) = change.delegates.filter(|delegates| *delegates != seats) else { continue };
            let rounds = change.height.saturating_sub(first).div_ceil(seats * turn);
            if round < before + rounds {
                break;
            }
            (first, seats, before) = (change.height, delegates, before + rounds);
        }
        (round.saturating_sub(before).saturating_mul(seats * turn).saturating_add(first), seats * turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_begin_where_milestones_let_them() {
        let change = |height, delegates| Change { height, delegates, ..Change::default() };
        let milestones = vec![change(9, Some(5)), change(11, None), change(19, Some(2))];
        let network = NetworkSection { delegates: 4, standby: 2, milestones, ..NetworkSection::default() };
        let rounds: Vec<(u32, u32)> = (1..=7).map(|round| network.round(round, 1)).collect();
        assert_eq!(rounds, [(1, 4), (5, 4), (9, 5), (14, 5), (19, 2), (21, 2), (23, 2)]);
        let plain = NetworkSection { delegates: 51, ..NetworkSection::default() };
        assert_eq!(plain.round(3, 12), (1_225, 612));
        assert_eq!((plain.round(1, 1), plain.round(100, 1)), ((1, 51), (5_050, 51)));
    }
}
