//! What fits into a block, transaction by transaction, as its forger sees it.

use crate::{
    ledger::{Scratch, State, apply::Terms, rules::PoolRules},
    protocol::{SignedTransaction, Timestamp},
};

/// The transactions chosen for a block so far, on top of the state that the block follows. Source: consensus.md 2.3, 8.
pub(super) enum Chosen<'a> {
    State(Box<State>),
    /// The choice under rules by which the forger overlooks something (Q2, Q3, Q23).
    Scratch(Box<Scratch<'a>>),
}

impl<'a> Chosen<'a> {
    /// Nothing chosen yet.
    pub(super) fn new(state: &'a State, rules: &'a PoolRules) -> Self {
        let overlooks = rules.resignations_counted_on_chain
            || rules.ipfs_hashes_seen_of_delegates
            || rules.refunded_coin_hidden_from_forger;
        match overlooks {
            true => Self::Scratch(Box::new(Scratch::new(state, rules))),
            false => Self::State(Box::new(state.clone())),
        }
    }

    /// Adds a transaction. Returns whether it fits; one that does not changes nothing.
    pub(super) fn add(&mut self, one: &SignedTransaction, now: Timestamp, terms: &Terms<'_>) -> bool {
        match self {
            Self::State(state) => state.try_apply(one, now, terms).is_ok(),
            Self::Scratch(scratch) => scratch.try_apply(one, now, terms).is_ok(),
        }
    }
}
