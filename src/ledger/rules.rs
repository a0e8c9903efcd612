//! Configurable rules: values that the reference fixes in code or configuration, and that a scenario may change.
//!
//! ```text
//!   Rules ─┬─ (top level)   peers and quorum, gossip
//!          ├─ ledger        what a chain means        rules/ledger.rs
//!          ├─ pool          what a pool takes, keeps  rules/pool.rs
//!          └─ node          how a node behaves        rules/node.rs
//! ```
//!
//! Each quirk of the reference is a field of its own, named after what happens while it is on, so exactly one can be
//! turned on or off: [`Rules::overridden`]. Source: consensus.md 8.

mod ledger;
mod node;
mod or_off;
mod overrides;
mod pool;
mod sets;

pub use crate::ledger::{
    election::ElectionRule,
    finality::FinalityRule,
    votes::{VoteRule, VoteShare},
};
pub use ledger::{LedgerRules, MissedBlocks, Shuffle};
pub use node::{FORGING_POLL_LIMIT_MS, ForkChoiceRule, NodeRules, RollbackTarget};
pub use overrides::RulesError;
pub use pool::{DynamicFees, PoolRules};
pub use sets::{FAULTY, NAMED, NamedRules, REPAIRED, all};

use serde::{Deserialize, Serialize};

/// The rules of a node that the network's milestones do not fix. Source: ARCHITECTURE.md, Decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Peers a relay must reach before its delegate forges; `None`, in a file `false`, is the reference's test
    /// environment, in which no peer is needed. Source: consensus.md 2.2.
    #[serde(with = "or_off")]
    pub minimum_network_reach: Option<u32>,
    /// The share of the relay's peers that must be on its chain and not above it, in percent, 0 to 100. Source: consensus.md 2.2.
    pub quorum_percent: u32,
    /// The way in which a block travels from peer to peer.
    pub gossip: Gossip,
    /// The meaning of a chain.
    pub ledger: LedgerRules,
    /// The policy of a pool.
    pub pool: PoolRules,
    /// The behaviour of a node towards others.
    pub node: NodeRules,
}

/// The way in which a block travels from peer to peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gossip {
    /// The forger's relay sends the block to each of its peers, and no peer repeats it: on a full mesh each gets it once.
    Once,
    /// The reference's: 100 %, 75 %, 50 %, 25 % of the peers by the number of times the block was seen, each after
    /// half a second. Source: consensus.md 6.
    Reference,
    /// Each node that has the block tells its peers so. A peer asks the first one that tells it for the block, and gets it then.
    Announce,
    /// Each node that has put the block on its chain sends it to this number of its peers, drawn at random, once. Lisk's way: it pushes a
    /// block to 16 or 25 peers (LIP-0004).
    Push(u32),
}

impl Rules {
    /// The reference node 2.6.57 with the `testnet` configuration. Quirks that consensus.md 8 marks "keep" or "switch" are on, except
    /// Q1, which makes a node's state depend on the node's history. Quirks that it marks "fix" are off and can be turned on.
    pub fn reference() -> Self {
        Self {
            minimum_network_reach: Some(5),
            quorum_percent: 66,
            gossip: Gossip::Reference,
            ledger: LedgerRules::reference(),
            pool: PoolRules::reference(),
            node: NodeRules::reference(),
        }
    }

    /// The same node with its bugs fixed: quirks that consensus.md 8 marks "switch" are off, too. Quirks that it marks "keep", because
    /// the chain or its clients rely on them, are as in [`Rules::reference`].
    pub fn corrected() -> Self {
        Self {
            ledger: LedgerRules::corrected(),
            pool: PoolRules::corrected(),
            node: NodeRules::corrected(),
            ..Self::reference()
        }
    }
}

impl Rules {
    /// Returns true if nodes choose their chains as the reference does. The model of a node and the proofs of causes cover only this case.
    pub fn is_of_the_reference(&self) -> bool {
        let (node, pool, corrected) = (&self.node, &self.pool, Self::corrected());
        let timeouts = |node: &NodeRules| {
            [
                node.answer_timeout_ms,
                node.connecting_timeout_ms,
                node.verification_timeout_ms,
                node.post_timeout_ms,
                node.blocking_ms,
                node.discovery_ms,
                node.discovery_below_reach_ms,
                node.gossip_wait_ms,
                node.bundle_ms,
                node.relay_timeout_ms,
                node.forging_retry_ms,
            ]
        };
        self.ledger.finality == FinalityRule::None
            && matches!(self.gossip, Gossip::Once | Gossip::Reference)
            && timeouts(node) == timeouts(&corrected.node)
            && (node.fork_choice, node.second_block_rolls_back, node.forges_on_another_tip, node.stays_behind)
                == (
                    ForkChoiceRule::Reference,
                    corrected.node.second_block_rolls_back,
                    corrected.node.forges_on_another_tip,
                    corrected.node.stays_behind,
                )
            && [
                pool.rollback_empties_pool,
                pool.rival_empties_sender,
                pool.makes_room_first,
                pool.forging_drops_misfits,
            ] == [true; 4]
    }

    /// Returns true if a known fault of a protocol is planted that lets a delegate forget or miscount what it has forged.
    pub fn has_known_fault(&self) -> bool {
        let faulty =
            [FinalityRule::LastIrreversible2718, FinalityRule::LastIrreversible3835, FinalityRule::LiskBft6594];
        self.node.forgets_forged || faulty.contains(&self.ledger.finality)
    }

    /// The number of peers that a node must reach before its delegate forges: 0 where it needs none. A minimum of 0 is read
    /// as 20. Source: consensus.md 2.2.
    pub fn least_reach(&self) -> u32 {
        match self.minimum_network_reach {
            None => 0,
            Some(0) => 20,
            Some(least) => least,
        }
    }
}

impl Default for Rules {
    /// [`Rules::reference`].
    fn default() -> Self {
        Self::reference()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain that holds under one holds under the other.
    #[test]
    fn corrected_mends_pool_and_node_and_leaves_the_rest() {
        let (mended, as_is) = (Rules::corrected(), Rules::reference());
        assert_ne!(mended.pool, as_is.pool);
        assert_ne!(mended.node, as_is.node);
        assert_eq!(Rules { pool: as_is.pool.clone(), node: as_is.node.clone(), ..mended }, as_is);
    }
}
