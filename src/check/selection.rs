//! The transactions that fit into a block, one by one, as its forger chooses them.

use crate::{
    ledger::{Scratch, State, apply::Terms, rules::PoolRules},
    protocol::{SignedTransaction, Timestamp},
};

/// The transactions chosen for a block so far, on top of the state that the block follows. Source: consensus.md 2.3, 8.
pub(super) enum ChosenTransactions<'a> {
    State(Box<State>),
    /// The choice under rules by which the forger overlooks something (Q2, Q3, Q23).
    Scratch(Box<Scratch<'a>>),
}

impl<'a> ChosenTransactions<'a> {
    /// Begins with an empty choice.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Arktoshi, Asset, Nonce, transaction::TransactionBuilder},
        scenario::Scenario,
        sim::SeedTree,
    };

    /// Two of five delegates, four of them active, resign in one block, above the height from which transactions are of version 2.
    /// Returns which of these fit.
    fn both_resign(rules: &str) -> [bool; 2] {
        let text = format!(
            "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 4\nstandby = 1\n[rules]\nbase = \"{rules}\"\n"
        );
        let scenario = Scenario::parse(&text, "five.toml".as_ref()).unwrap_or_else(|error| panic!("{error}"));
        let seeds = SeedTree::new(1);
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let (tree, tip) = (&plan.tree, &plan.tip);
        let applied = tree.applied(tip);
        let mut chosen = ChosenTransactions::new(&applied.state, &tree.rules().pool);
        [0, 1].map(|node: usize| {
            // Its registration and its vote in genesis have the nonces 1 and 2.
            let keys = plan.nodes[node].forger.as_ref().expect("a delegate");
            let resignation =
                TransactionBuilder::new(Asset::DelegateResignation).nonce(Nonce(3)).fee(Arktoshi::ZERO).sign(keys);
            chosen.add(&resignation, tip.block().header.timestamp, &tree.terms(tip.height().next()))
        })
    }

    #[test]
    fn a_forger_of_the_reference_overlooks_the_resignation_that_it_has_chosen() {
        assert_eq!(both_resign("reference"), [true, true]);
        assert_eq!(both_resign("corrected"), [true, false]);
    }
}
