//! Confidence sequences: intervals of a mean that all hold at once, for any number of looks and any stopping time.
//!
//! An interval for a fixed number of runs does not allow that. A reader who looks at one thirty times and stops at a welcome result is
//! wrong in a quarter of all studies instead of a twentieth.

use super::{CONFIDENCE, Interval};
use statrs::function::beta::ln_beta;

/// Both parameters of the beta distribution of the mixture: Jeffreys's prior.
const PRIOR: f64 = 0.5;

/// The values seen so far, each from 0 to 1, of a distribution whose mean is estimated.
///
/// The interval holds the means at which the beta-binomial mixture of likelihood ratios has stayed below 20. The mixture is a
/// martingale for shares, and does not grow on average for other values from 0 to 1, so by Ville's inequality it ever reaches 20 in
/// one study of 20 at most. Source: H. Robbins, Statistical methods related to the law of the iterated logarithm (1970); S. R. Howard
/// and others, Time-uniform, nonparametric, nonasymptotic confidence sequences (2021), proposition 7.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sequence {
    pub count: u64,
    sum: f64,
}

impl Sequence {
    /// Adds a value from 0 to 1.
    pub fn add(&mut self, value: f64) {
        debug_assert!((0.0..=1.0).contains(&value), "{value}");
        self.count += 1;
        self.sum += value;
    }

    /// The mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The interval of the true mean. It is 0 to 1 without values.
    pub fn interval(&self) -> Interval {
        let Some(mean) = self.mean() else { return Interval { low: 0.0, high: 1.0 } };
        let rest = self.count as f64 - self.sum;
        let low = if self.sum > 0.0 { self.border(0.0, mean) } else { 0.0 };
        let high = if rest > 0.0 { self.border(1.0, mean) } else { 1.0 };
        Interval { low, high }
    }

    /// The mean between `outside`, which is excluded, and `inside`, which is not, at which the mixture reaches its limit.
    fn border(&self, mut outside: f64, mut inside: f64) -> f64 {
        loop {
            let middle = f64::midpoint(outside, inside);
            if middle == outside || middle == inside {
                return inside;
            }
            match self.excludes(middle) {
                true => outside = middle,
                false => inside = middle,
            }
        }
    }

    fn excludes(&self, mean: f64) -> bool {
        let rest = self.count as f64 - self.sum;
        let mixed = ln_beta(PRIOR + self.sum, PRIOR + rest) - ln_beta(PRIOR, PRIOR);
        mixed - self.sum * mean.ln() - rest * (-mean).ln_1p() >= -(1.0 - CONFIDENCE).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::interval::wilson;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn of(sum: f64, count: u64) -> Interval {
        Sequence { count, sum }.interval()
    }

    /// By `scipy.special.betaln` and `scipy.optimize.brentq` in Python.
    #[test]
    fn intervals_are_those_of_scipy() {
        for (sum, count, low, high) in SCIPY {
            let found = of(sum, count);
            assert!((found.low - low).abs() < 1e-9 && (found.high - high).abs() < 1e-9, "{sum} of {count}: {found:?}");
        }
    }

    const SCIPY: [(f64, u64, f64, f64); 6] = [
        (0.0, 20, 0.0, 0.2240061120127827),
        (1.0, 29, 9.174132225802468e-05, 0.2457132943795654),
        (15.0, 148, 0.037732662539286844, 0.20490310313883664),
        (0.75, 40, 7.5486512813599695e-06, 0.1747245472803286),
        (500.0, 1000, 0.4424183856766252, 0.5575816143233748),
        (12.25, 100000, 2.69842499070799e-05, 0.00033583257566591353),
    ];

    #[test]
    fn ends_are_closed_and_the_mean_lies_within() {
        assert_eq!(of(0.0, 0), Interval { low: 0.0, high: 1.0 });
        for count in [1, 2, 10, 1_000, 1_000_000] {
            let (none, all) = (of(0.0, count), of(count as f64, count));
            assert!(none.low == 0.0 && all.high == 1.0, "{none:?} {all:?}");
            assert!((none.high + all.low - 1.0).abs() < 1e-9, "they mirror each other: {none:?} {all:?}");
            for share in [0.01, 0.3, 0.999] {
                let mean = share * count as f64;
                let Interval { low, high } = of(mean, count);
                assert!(low < share && share < high, "{share} of {count}: {low} to {high}");
            }
        }
    }

    /// How many runs an interval narrower than a tenth takes: by scipy, as docs/simulation.md says.
    #[test]
    fn means_near_an_end_need_fewer_runs() {
        for (share, wanted) in [(0.5, 1_359), (0.1, 451), (0.01, 77), (1.0, 53)] {
            let is_enough = |count: &u64| {
                let Interval { low, high } = of(share * *count as f64, *count);
                high - low < 0.1
            };
            assert_eq!((1..).find(is_enough), Some(wanted), "{share}");
        }
    }

    #[test]
    fn what_lies_outside_the_interval_is_excluded() {
        for (sum, count) in [(0.0, 20), (1.0, 29), (12.25, 1_000)] {
            let sequence = Sequence { count, sum };
            let Interval { low, high } = sequence.interval();
            assert!(!sequence.excludes(low.max(1e-300)) && !sequence.excludes(high), "{low} to {high}");
            assert!(
                sequence.excludes(high * 1.001) && (low == 0.0 || sequence.excludes(low * 0.999)),
                "{low} to {high}"
            );
        }
    }

    /// 10,000 studies whose true mean is known, each with 30 looks: those in which it is ever excluded.
    fn wrong(value: impl Fn(&mut ChaCha8Rng) -> f64, excludes: impl Fn(&Sequence) -> bool) -> usize {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut study = || {
            let mut seen = Sequence::default();
            (0..30).any(|_| {
                (0..20).for_each(|_| seen.add(value(&mut rng)));
                excludes(&seen)
            })
        };
        (0..10_000).filter(|_| study()).count()
    }

    #[test]
    fn one_study_of_twenty_is_wrong_at_most_however_often_it_is_looked_at() {
        for share in [0.02, 0.3, 0.5] {
            let found = wrong(|rng| f64::from(u8::from(rng.random_bool(share))), |seen| seen.excludes(share));
            assert!(found <= 500, "{found} of 10,000 at {share}");
        }
        // Values between 0 and 1 are less spread out than shares of their mean.
        let found = wrong(|rng| rng.random_range(0.0..=1.0), |seen| seen.excludes(0.5));
        assert!(found <= 500, "{found} of 10,000");
        let by_wilson = |seen: &Sequence| {
            let Interval { low, high } = wilson(seen.sum as u64, seen.count);
            !(low..=high).contains(&0.3)
        };
        let found = wrong(|rng| f64::from(u8::from(rng.random_bool(0.3))), by_wilson);
        assert!((2_400..3_400).contains(&found), "an interval for one look is wrong in {found} of 10,000");
    }
}
