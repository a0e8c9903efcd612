//! Whole sets of rules by name: the reference, the reference mended, and the protocols that it is compared with.

use super::{FinalityRule, ForkChoiceRule, LedgerRules, NodeRules, Rules, Shuffle};

/// A set of rules with a name.
pub struct Named {
    pub name: &'static str,
    pub rules: fn() -> Rules,
}

/// All of them; docs/protocols.md describes each. The protocols differ from `corrected` in what their rules say, and in nothing else.
pub const NAMED: [Named; 8] = [
    Named { name: "reference", rules: Rules::reference },
    Named { name: "corrected", rules: Rules::corrected },
    Named { name: "ark-4432", rules: || chosen(ForkChoiceRule::Ark4432) },
    Named { name: "solar", rules: || chosen(ForkChoiceRule::Solar) },
    Named { name: "solar-tie-broken", rules: || chosen(ForkChoiceRule::SolarTieBroken) },
    Named { name: "tron", rules: || longest(FinalityRule::Solidified, 1, Shuffle::Ranking) },
    Named { name: "eos", rules: || longest(FinalityRule::LastIrreversible, 12, Shuffle::Key) },
    Named { name: "lisk", rules: || longest(FinalityRule::LiskBft, 1, Shuffle::EveryPlace) },
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
