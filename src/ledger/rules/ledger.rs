//! The configurable rules of the meaning of a chain.

use crate::ledger::{election::ElectionRule, finality::FinalityRule, votes::VoteRule};
use serde::{Deserialize, Serialize};

/// The configurable rules of the meaning of a chain. Nodes that differ in one of these do not share a state: each set of rules
/// has a block tree of its own. Source: consensus.md 1, 4 and 8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerRules {
    /// A lock must outlast a round; off in the reference's test environment, where it must only not be over when it is made.
    /// Source: consensus.md 4.5 type 8, and recorded.
    pub minimum_lock_expiration: bool,
    /// Q1: the coin of a claimed lock counts for the delegate that the *claim's sender* votes for, not for the delegate of
    /// the lock's recipient, who receives the coin. The reference does so until the node restarts. Off, the weights are those that a
    /// node computes when it starts.
    pub claim_weighs_for_claimant: bool,
    /// Q21: a multisignature registration must carry one signature for each key, but only the first `min` valid ones are
    /// checked. Off, each of them must hold.
    pub registration_checks_only_min: bool,
    /// Q21: a block's multisignature transactions are checked with the wallets before the block, so a wallet cannot spend in the block
    /// that registers it. Off, it can.
    pub multi_signature_waits_for_block: bool,
    /// Q22: within a block, a claim of an unknown lock fails with the text of a `TypeError`. Off, it fails
    /// with the named error.
    pub unknown_lock_is_type_error: bool,
    /// Q24: how the ranking of a round becomes its forging order.
    pub shuffle: Shuffle,
    /// Slots in a row that each delegate owns, from 1 on; EOS's are 12. A round has this many blocks for each active delegate.
    pub slots_a_turn: u32,
    /// The rule by which a ranking of the delegates gives a round its members.
    pub election: ElectionRule,
    /// The rule by which a block becomes final.
    pub finality: FinalityRule,
    /// Q24: rules on transactions that begin at a milestone bind from the block after it. Off, they bind in it.
    pub transaction_rules_lag: bool,
    /// A delegate may resign if enough are left for the milestone in force, even if a later milestone needs more. Off, enough must be left
    /// for all later ones. Source: consensus.md 4.5 type 7.
    pub resignations_ignore_later_milestones: bool,
    /// The events that a delegate's count of missed blocks counts. Source: consensus.md 1.5.
    pub missed_blocks: MissedBlocks,
    /// The votes that a wallet may have, and the weight of each.
    pub votes: VoteRule,
}

/// The way from the ranking of a round to its forging order. Source: consensus.md 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shuffle {
    /// Every fifth place is passed over.
    Reference,
    /// No place is passed over.
    EveryPlace,
    /// None: forging order is ranking order.
    Ranking,
    /// None: forging order is the order of the public keys, so it stays as long as the delegates do.
    Key,
    /// No order: each delegate draws for each slot whether it owns it, by its share of the round's vote weight. A slot has several
    /// owners, one, or none. The number is of slots in a million that have an owner, below a million; Ouroboros Praos has 50,000.
    /// Source: B. David et al., Ouroboros Praos (2018).
    Lottery(u32),
}

impl Shuffle {
    /// The mean number of slots for each slot with an owner, rounded up: 1 where there is an order.
    pub fn slots_per_owned_slot(self) -> u32 {
        match self {
            Self::Lottery(active_per_million) => 1_000_000_u32.div_ceil(active_per_million.max(1)),
            _ => 1,
        }
    }
}

/// The events that a delegate's count of missed blocks counts. Source: consensus.md 1.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedBlocks {
    /// Slots it owned and left empty, at most one round of them between two blocks (`forger.missing`).
    Slots,
    /// Rounds in which it was active and forged nothing (`round.missed`).
    Rounds,
}

impl LedgerRules {
    /// Returns the rules of the reference node 2.6.57, started anew on its chain.
    pub fn reference() -> Self {
        Self {
            minimum_lock_expiration: true,
            claim_weighs_for_claimant: false,
            registration_checks_only_min: true,
            multi_signature_waits_for_block: true,
            unknown_lock_is_type_error: false,
            shuffle: Shuffle::Reference,
            slots_a_turn: 1,
            election: ElectionRule::AtOnce,
            finality: FinalityRule::None,
            transaction_rules_lag: true,
            resignations_ignore_later_milestones: true,
            missed_blocks: MissedBlocks::Slots,
            votes: VoteRule::default(),
        }
    }

    /// The same as [`LedgerRules::reference`]: chains rely on the quirks of the ledger that consensus.md 8 marks as bugs.
    pub fn corrected() -> Self {
        Self::reference()
    }
}

impl Default for LedgerRules {
    /// [`LedgerRules::reference`].
    fn default() -> Self {
        Self::reference()
    }
}
