//! Whole sets of rules by name: the reference, the reference mended, and the protocols that it is compared with.

use super::{ElectionRule, FinalityRule, ForkChoiceRule, LedgerRules, NodeRules, PoolRules, Rules, Shuffle};

/// A set of rules with a name.
pub struct NamedRules {
    pub name: &'static str,
    pub rules: fn() -> Rules,
}

/// The reference, its corrected form and the protocols that they are compared with. docs/protocols.md describes each. Apart from their
/// own rules, the protocols are as `corrected`.
pub const NAMED: [NamedRules; 8] = [
    NamedRules { name: "reference", rules: Rules::reference },
    NamedRules { name: "corrected", rules: Rules::corrected },
    NamedRules { name: "ark-4432", rules: || chosen(ForkChoiceRule::Ark4432) },
    NamedRules { name: "solar", rules: || chosen(ForkChoiceRule::Solar) },
    NamedRules { name: "solar-tie-broken", rules: || chosen(ForkChoiceRule::SolarTieBroken) },
    NamedRules {
        name: "tron",
        rules: || longest(FinalityRule::Solidified, ElectionRule::EverySixHours, 1, Shuffle::Ranking),
    },
    NamedRules { name: "eos", rules: || eos(FinalityRule::LastIrreversible) },
    NamedRules { name: "lisk", rules: || lisk(FinalityRule::LiskBft) },
];

/// Protocols with a fault that they once had. Each differs from its protocol by that fault alone; docs/repairs.md describes them.
pub const FAULTY: [NamedRules; 4] = [
    NamedRules { name: "eos-2718", rules: || eos(FinalityRule::LastIrreversible2718) },
    NamedRules { name: "eos-3835", rules: || eos(FinalityRule::LastIrreversible3835) },
    NamedRules { name: "lisk-6594", rules: || lisk(FinalityRule::LiskBft6594) },
    NamedRules { name: "lisk-restart", rules: forgetful },
];

/// The reference with a repair of all that the search finds in it. docs/repairs.md shows what each of its changes mends.
pub const REPAIRED: NamedRules = NamedRules { name: "repaired", rules: repaired };

/// The sets of [`NAMED`], [`FAULTY`] and [`REPAIRED`].
pub fn all() -> impl Iterator<Item = &'static NamedRules> {
    NAMED.iter().chain(&FAULTY).chain([&REPAIRED])
}

fn repaired() -> Rules {
    let Rules { ledger, pool, node, .. } = Rules::reference();
    let ledger = LedgerRules {
        finality: FinalityRule::LiskBft,
        election: ElectionRule::WhenFinal,
        resignations_ignore_later_milestones: false,
        ..ledger
    };
    let pool = PoolRules {
        checks_precede_adding: false,
        chooses_what_expires_next: false,
        forging_drops_misfits: false,
        ipfs_hashes_seen_of_delegates: false,
        makes_room_first: false,
        resignations_counted_on_chain: false,
        rival_empties_sender: false,
        rollback_empties_pool: false,
        ..pool
    };
    let node = NodeRules {
        fork_choice: ForkChoiceRule::LongestChain,
        forges_on_another_tip: false,
        retry_dropped_peers: true,
        stays_behind: false,
        verify_next_round_block: false,
        ..node
    };
    Rules { ledger, pool, node, ..Rules::reference() }
}

fn forgetful() -> Rules {
    let rules = lisk(FinalityRule::LiskBft);
    Rules { node: NodeRules { forgets_forged: true, ..rules.node.clone() }, ..rules }
}

fn chosen(fork_choice: ForkChoiceRule) -> Rules {
    let corrected = Rules::corrected();
    Rules { node: NodeRules { fork_choice, ..corrected.node.clone() }, ..corrected }
}

fn eos(finality: FinalityRule) -> Rules {
    longest(finality, ElectionRule::WhenFinal, 12, Shuffle::Key)
}

fn lisk(finality: FinalityRule) -> Rules {
    longest(finality, ElectionRule::TwoRoundsBefore, 1, Shuffle::EveryPlace)
}

/// The longest chain. Delegates forge without a quorum.
fn longest(finality: FinalityRule, election: ElectionRule, slots_a_turn: u32, shuffle: Shuffle) -> Rules {
    let rules = chosen(ForkChoiceRule::LongestChain);
    let ledger = LedgerRules { finality, election, slots_a_turn, shuffle, ..rules.ledger.clone() };
    Rules { minimum_network_reach: None, ledger, ..rules }
}

/// The names, as a sentence lists them.
pub(super) fn names() -> String {
    let quoted: Vec<String> = all().map(|named| format!("\"{}\"", named.name)).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_sets_are_unique() {
        let names: BTreeSet<&str> = all().map(|named| named.name).collect();
        let sets: BTreeSet<String> =
            all().map(|named| toml::to_string(&(named.rules)()).expect("TOML holds rules")).collect();
        assert_eq!((names.len(), sets.len()), (all().count(), all().count()));
    }
}
