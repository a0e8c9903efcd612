//! A set of seeds, as ranges.

use rangemap::RangeInclusiveSet;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A set of seeds. As JSON a list of the first and last seed of each range, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct SeedSet {
    ranges: RangeInclusiveSet<u64>,
    count: u64,
}

impl SeedSet {
    /// Adds a seed, if it is not there yet.
    pub fn insert(&mut self, seed: u64) {
        if !self.has(seed) {
            self.ranges.insert(seed..=seed);
            self.count += 1;
        }
    }

    /// Adds the seeds of another set.
    pub fn extend(&mut self, others: &Self) {
        self.ranges.extend(others.ranges.iter().cloned());
        self.count = count(&self.ranges);
    }

    /// Returns true if a seed is in it.
    pub fn has(&self, seed: u64) -> bool {
        self.ranges.contains(&seed)
    }

    /// The number of seeds.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The lowest seed, or `None` for an empty set.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|range| *range.start())
    }

    /// The highest seed, or `None` for an empty set.
    pub fn last(&self) -> Option<u64> {
        self.ranges.last().map(|range| *range.end())
    }

    /// The number of seeds that can be divided by `by`, at least 1.
    pub fn count_multiples(&self, by: u64) -> u64 {
        let up_to = |seed: u64| seed / by + 1;
        let of_range =
            |range: &RangeInclusive<u64>| up_to(*range.end()) - range.start().checked_sub(1).map_or(0, up_to);
        self.ranges.iter().map(of_range).fold(0, u64::saturating_add)
    }

    /// The lowest seed that is not in another set, or `None` for a subset.
    pub fn first_outside(&self, other: &Self) -> Option<u64> {
        self.ranges.iter().find_map(|range| other.first_missing(range.clone()))
    }

    /// The lowest seed of a range that is not in the set.
    pub fn first_missing(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.missing(range).next().map(|gap| *gap.start())
    }

    /// The ranges of seeds within a range that are not in the set, ascending.
    pub fn missing(&self, range: RangeInclusive<u64>) -> impl Iterator<Item = RangeInclusive<u64>> {
        let gaps: Vec<_> = self.ranges.gaps(&range).collect();
        gaps.into_iter()
    }

    /// The seeds that are in another set too.
    pub fn common(&self, other: &Self) -> Self {
        let ranges: RangeInclusiveSet<u64> = self.ranges.intersection(&other.ranges).collect();
        Self { count: count(&ranges), ranges }
    }

    /// All seeds, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().cloned().flatten()
    }
}

fn count(ranges: &RangeInclusiveSet<u64>) -> u64 {
    ranges.iter().fold(0, |count, range| count.saturating_add((range.end() - range.start()).saturating_add(1)))
}

impl FromIterator<u64> for SeedSet {
    fn from_iter<T: IntoIterator<Item = u64>>(seeds: T) -> Self {
        let mut set = Self::default();
        for seed in seeds {
            set.insert(seed);
        }
        set
    }
}

impl TryFrom<Vec<(u64, u64)>> for SeedSet {
    type Error = String;

    fn try_from(pairs: Vec<(u64, u64)>) -> Result<Self, String> {
        match pairs.iter().find(|(first, last)| first > last) {
            Some((first, last)) => Err(format!("found seeds [{first}, {last}], allowed is the lower seed first")),
            None => {
                let ranges = pairs.into_iter().map(|(first, last)| first..=last).collect();
                Ok(Self { count: count(&ranges), ranges })
            }
        }
    }
}

impl From<SeedSet> for Vec<(u64, u64)> {
    fn from(seeds: SeedSet) -> Self {
        seeds.ranges.into_iter().map(|range| (*range.start(), *range.end())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(ones in prop::collection::vec(0_u64..60, 0..40), others in prop::collection::vec(0_u64..60, 0..40)) {
            let (mut seeds, more) = (ones.iter().copied().collect::<SeedSet>(), others.iter().copied().collect::<SeedSet>());
            seeds.extend(&more);
            let set: BTreeSet<u64> = ones.into_iter().chain(others).collect();
            prop_assert_eq!(seeds.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!((seeds.count(), seeds.first()), (set.len() as u64, set.first().copied()));
            prop_assert!((0..60).all(|seed| seeds.has(seed) == set.contains(&seed)));
            prop_assert_eq!(seeds.count_multiples(4), set.iter().filter(|seed| seed.is_multiple_of(4)).count() as u64);
            prop_assert_eq!(seeds.first_missing(0..=60), (0..=60).find(|seed| !set.contains(seed)));
            prop_assert_eq!(seeds.first_outside(&more), set.iter().copied().find(|seed| !more.has(*seed)));
            prop_assert_eq!(more.common(&seeds), more.clone());
            let text = serde_json::to_string(&seeds).expect("it is a list");
            prop_assert_eq!(serde_json::from_str::<SeedSet>(&text).expect("its own"), seeds);
        }
    }

    #[test]
    fn the_last_seed_is_one_too() {
        let mut seeds: SeedSet = [u64::MAX, 0].into_iter().collect();
        seeds.extend(&[u64::MAX].into_iter().collect());
        assert_eq!((seeds.count(), seeds.first(), seeds.has(u64::MAX)), (2, Some(0), true));
        let all: SeedSet = serde_json::from_str("[[0, 18446744073709551615]]").expect("all");
        assert_eq!(
            (all.count_multiples(4), seeds.first_outside(&all), all.first_outside(&seeds)),
            (1 << 62, None, Some(1))
        );
        assert!(serde_json::from_str::<SeedSet>("[[3, 2]]").is_err());
        assert_eq!(serde_json::from_str::<SeedSet>("[[0, 18446744073709551615]]").expect("all").count(), u64::MAX);
    }
}
