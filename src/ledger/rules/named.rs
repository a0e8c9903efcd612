//! Whole sets of rules by name: the reference, the reference mended, and the protocols that it is compared with.

use super::{FinalityRule, ForkChoiceRule, LedgerRules, NodeRules, Rules, Shuffle};

/// A set of rules with a name.
pub struct Named {
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    pub rules: fn() -> Rules,
}

/// All of them. The protocols differ from `corrected` in what their rules say, and in nothing else.
pub const NAMED: [Named; 8] = [
    Named { name: "reference", what: "ARK Core 2.6.57", rules: Rules::reference },
    Named { name: "corrected", what: "the same without its bugs", rules: Rules::corrected },
    Named { name: "ark-4432", what: "ARK 3's choice of a chain", rules: || chosen(ForkChoiceRule::Ark4432) },
    Named { name: "solar", what: "Solar's majority of delegates", rules: || chosen(ForkChoiceRule::Solar) },
    Named {
        name: "solar-tie-broken",
        what: "the same, and one of two halves yields",
        rules: || chosen(ForkChoiceRule::SolarTieBroken),
    },
    Named {
        name: "tron",
        what: "the longest chain, 70 % solidify",
        rules: || longest(FinalityRule::Solidified, 1, Shuffle::Ranking),
    },
    Named {
        name: "eos",
        what: "turns of twelve slots, the last irreversible block",
        rules: || longest(FinalityRule::LastIrreversible, 12, Shuffle::Key),
    },
    Named {
        name: "lisk",
        what: "Lisk-BFT, LIP-0014",
        rules: || longest(FinalityRule::LiskBft, 1, Shuffle::EveryPlace),
    },
];

fn chosen(fork_choice: ForkChoiceRule) -> Rules {
    let corrected = Rules::corrected();
    Rules { node: NodeRules { fork_choice, ..corrected.node.clone() }, ..corrected }
}

/// The longest chain: whoever is there, delegates forge.
fn longest(finality: FinalityRule, slots_a_turn: u32, shuffle: Shuffle) -> Rules {
    let rules = chosen(ForkChoiceRule::LongestChain);
    let ledger = LedgerRules { finality, slots_a_turn, shuffle, ..rules.ledger.clone() };
    Rules { minimum_network_reach: None, ledger, ..rules }
}

/// The names, as a sentence lists them.
pub(super) fn names() -> String {
    let quoted: Vec<String> = NAMED.iter().map(|named| format!("\"{}\"", named.name)).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_sets_are_unique() {
        let names: BTreeSet<&str> = NAMED.iter().map(|named| named.name).collect();
        let sets: BTreeSet<String> =
            NAMED.iter().map(|named| toml::to_string(&(named.rules)()).expect("TOML holds rules")).collect();
        assert_eq!((names.len(), sets.len()), (NAMED.len(), NAMED.len()));
    }
}
