//! Random numbers by the name of a decision. A decision draws the same numbers whatever was drawn before it, so two runs that
//! differ in one thing share all other draws.

use crate::ledger::codec::saved;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The numbers of all decisions of one party, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    seed: u64,
}

impl Choices {
    /// Returns the draws of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the random numbers of a named decision. Equal names give equal numbers; names of different lengths are different.
    pub fn at(self, name: &[u64]) -> SplitMix64 {
        // Each part passes through the generator's mixing function, so that near names have numbers far apart.
        SplitMix64::seed_from_u64(name.iter().fold(self.seed, |state, part| mix(state ^ part)))
    }

    /// Returns the draws of one part of the party's decisions.
    pub fn of(self, part: u64) -> Self {
        self.of_name(&[part])
    }

    /// Returns the draws of one part, whose name consists of several numbers.
    pub fn of_name(self, name: &[u64]) -> Self {
        Self { seed: self.at(name).next_u64() }
    }
}

/// The first number of a [`SplitMix64`] of this seed. Each message needs some of these. Where dependencies are not optimised, it takes
/// longer to make a generator.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

saved!(struct Choices { seed });

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seeds_are_mixed_as_the_generator_does() {
        let seeds = (0..64).map(|bit| 1 << bit).chain([0, u64::MAX, 0x0123_4567_89ab_cdef]);
        assert!(seeds.into_iter().all(|seed| mix(seed) == SplitMix64::seed_from_u64(seed).next_u64()));
    }

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
