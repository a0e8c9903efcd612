//! Random numbers of a decision: those that belong to its name. So a decision draws the same numbers whatever else was drawn
//! before it, and two runs that differ in one thing share all other draws.

use crate::ledger::saved::saved;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The numbers of all decisions of one party, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    seed: u64,
}

impl Choices {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The numbers of the decision of a name. Equal names have equal numbers; names of different lengths are different.
    pub fn at(self, name: &[u64]) -> SplitMix64 {
        // Each part passes through the generator's mixing function, so that near names have numbers far apart.
        let mixed = name.iter().fold(self.seed, |state, part| SplitMix64::seed_from_u64(state ^ part).next_u64());
        SplitMix64::seed_from_u64(mixed)
    }

    /// Those of a part of what the party decides.
    pub fn of(self, part: u64) -> Self {
        Self { seed: self.at(&[part]).next_u64() }
    }
}

saved!(struct Choices { seed });

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_decision_has_the_numbers_of_its_name_and_no_others() {
        let choices = Choices::new(7);
        let names: Vec<Vec<u64>> = (0..40).flat_map(|a| (0..40).map(move |b| vec![a, b])).collect();
        let shorter = (0..40).map(|a| vec![a]).chain([vec![], vec![0, 0, 0]]);
        let all: Vec<Vec<u64>> = names.into_iter().chain(shorter).collect();
        let first: BTreeSet<u64> = all.iter().map(|name| choices.at(name).next_u64()).collect();
        assert_eq!(first.len(), all.len(), "no two names share a number");
        assert!(all.iter().all(|name| choices.at(name).next_u64() != Choices::new(8).at(name).next_u64()));
        assert_eq!(choices.at(&[3, 4]), choices.at(&[3, 4]));
    }

    /// Bits of numbers whose names are neighbours are as even as chance allows, and so are those of their differences.
    #[test]
    fn near_names_have_unrelated_numbers() {
        let choices = Choices::new(1);
        let drawn: Vec<u64> = (0..20_000).map(|number| choices.at(&[2, number]).next_u64()).collect();
        for bit in 0..64 {
            let ones = |all: &mut dyn Iterator<Item = u64>| all.filter(|one| one >> bit & 1 == 1).count() as f64;
            let plain = ones(&mut drawn.iter().copied());
            let changed = ones(&mut drawn.windows(2).map(|pair| pair[0] ^ pair[1]));
            // Five standard deviations of 20,000 throws of a coin.
            assert!((plain - 10_000.0).abs() < 354.0 && (changed - 10_000.0).abs() < 354.0, "{bit}: {plain} {changed}");
        }
    }
}
