//! Confidence intervals, all at [`CONFIDENCE`] and two-sided.
//!
//! A share has Wilson's interval. With no hits or only hits there is no deviation to estimate from, so it has the
//! exact interval of Clopper and Pearson. A mean has Student's interval. If all values are equal it has none: a deviation of 0
//! means that too few values were seen, and not that there is no deviation.

use serde::Serialize;
use statrs::{
    distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT},
    function::beta::beta_reg,
};

/// The confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;
/// The 97.5 % quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// An interval of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The interval of a share: `so` of `of`. It is 0 to 1 without trials.
pub fn of_share(so: u64, of: u64) -> Interval {
    if so == 0 || so == of { clopper_pearson(so, of) } else { wilson(so, of) }
}

/// The score interval of a share. It is 0 to 1 without trials. Source: E. B. Wilson, Probable inference, the law of
/// succession, and statistical inference (1927).
pub fn wilson(so: u64, of: u64) -> Interval {
    if of == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = of as f64;
    let share = so as f64 / n;
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let (centre, scale) = (share + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
    // Rounding may leave the ends slightly inside 0 and 1.
    let low = if so == 0 { 0.0 } else { ((centre - spread) / scale).max(0.0) };
    let high = if so == of { 1.0 } else { ((centre + spread) / scale).min(1.0) };
    Interval { low, high }
}

/// The exact interval of a share. It is 0 to 1 without trials. Source: C. J. Clopper and E. S. Pearson, The use of
/// confidence or fiducial limits illustrated in the case of the binomial (1934).
pub fn clopper_pearson(so: u64, of: u64) -> Interval {
    let (hits, misses) = (so as f64, (of - so.min(of)) as f64);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = if so == 0 { 0.0 } else { beta_quantile(hits, misses + 1.0, tail) };
    let high = if so == of { 1.0 } else { beta_quantile(hits + 1.0, misses, 1.0 - tail) };
    Interval { low, high }
}

/// Student's interval of a mean, from the mean and the deviation of `count` values. `None` for a single value, and if all
/// are equal.
pub fn of_mean(mean: f64, deviation: f64, count: u64) -> Option<Interval> {
    if count < 2 || deviation == 0.0 {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, (count - 1) as f64).expect("it has degrees of freedom");
    let spread = student.inverse_cdf(0.5 + CONFIDENCE / 2.0) * deviation / (count as f64).sqrt();
    Some(Interval { low: mean - spread, high: mean + spread })
}

/// The ranks, counted from 1, of the two of `count` ascending values between which a quantile of their distribution lies. A rank is `None`
/// if no value bounds the quantile on that side. `share` is the share of the distribution below the quantile, between 0 and 1. The
/// distribution may be any. Source: W. J. Conover, Practical nonparametric statistics (1999), section 3.2.
pub fn ranks_of_quantile(share: f64, count: u64) -> (Option<u64>, Option<u64>) {
    let below = Binomial::new(share, count).expect("a share is from 0 to 1");
    let tail = (1.0 - CONFIDENCE) / 2.0;
    // The crate's own quantile of a count panics where the count is small.
    let quantile = |chance: f64| {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = u64::midpoint(low, high);
            match below.cdf(middle) < chance {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    };
    let (low, high) = (quantile(tail), quantile(1.0 - tail) + 1);
    ((low > 0).then_some(low), (high <= count).then_some(high))
}

/// The quantile of a beta distribution at a probability, by bisection down to the last bit: the
/// crate's own quantile is accurate to four digits only.
fn beta_quantile(a: f64, b: f64, chance: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        match beta_reg(a, b, middle) < chance {
            true => low = middle,
            false => high = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: Interval, low: f64, high: f64, digits: i32) {
        let within = 0.500_001 * 10_f64.powi(-digits);
        assert!(
            (found.low - low).abs() < within && (found.high - high).abs() < within,
            "{found:?} for {low} to {high}"
        );
    }

    /// R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998),
    /// table I, methods 3 and 5.
    #[test]
    fn shares_have_the_published_intervals() {
        for (so, of, score, exact) in [
            (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
            (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
            (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
            (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
        ] {
            near(wilson(so, of), score.0, score.1, 4);
            near(clopper_pearson(so, of), exact.0, exact.1, 4);
            let wilsons = so > 0;
            assert_eq!(of_share(so, of), if wilsons { wilson(so, of) } else { clopper_pearson(so, of) });
        }
    }

    /// `binom.test(682, 925)` is an example in R's manual; `prop.test(50, 100, correct = FALSE)` gives Wilson's interval.
    #[test]
    fn shares_have_the_intervals_of_r() {
        near(clopper_pearson(682, 925), 0.707_668_3, 0.765_406_6, 7);
        near(clopper_pearson(5, 20), 0.086_571_47, 0.491_045_87, 8);
        near(wilson(50, 100), 0.403_831_5, 0.596_168_5, 7);
    }

    #[test]
    fn the_ends_have_a_closed_form() {
        for of in [1, 2, 3, 20, 30, 1_000, 1_000_000_u64] {
            let high = 1.0 - 0.025_f64.powf(1.0 / of as f64);
            let found = of_share(0, of);
            assert!(found.low == 0.0 && (found.high / high - 1.0).abs() < 1e-9, "0 of {of}: {found:?}, {high}");
            let whole = of_share(of, of);
            assert!(whole.high == 1.0 && (1.0 - whole.low - found.high).abs() < 1e-12, "{of} of {of}: {whole:?}");
        }
        assert_eq!(of_share(0, 0), Interval { low: 0.0, high: 1.0 });
        assert_eq!(wilson(0, 0), of_share(0, 0));
    }

    /// The exact interval never covers less than it promises: over all outcomes of a binomial number, the interval contains the true
    /// share with at least the confidence.
    #[test]
    fn the_exact_interval_covers_what_it_promises() {
        for of in [1, 5, 12, 40_u64] {
            for share in (1..100).map(|percent| f64::from(percent) / 100.0) {
                let mut chance = (1.0 - share).powi(of as i32);
                let mut covered = 0.0;
                for so in 0..=of {
                    let found = clopper_pearson(so, of);
                    covered += if (found.low..=found.high).contains(&share) { chance } else { 0.0 };
                    chance *= (of - so) as f64 / (so + 1) as f64 * share / (1.0 - share);
                }
                assert!(covered >= CONFIDENCE, "{covered} at {share} of {of}");
            }
        }
    }

    /// Quantiles of R's `qt(0.975, df)`, and `t.test` of the paired differences in R's data set `sleep`.
    #[test]
    fn means_have_the_intervals_of_r() {
        for (df, quantile) in
            [(1, 12.706_205), (2, 4.302_653), (4, 2.776_445), (9, 2.262_157), (29, 2.045_230), (99, 1.984_217)]
        {
            let count = df + 1;
            let spread = quantile / (count as f64).sqrt();
            near(of_mean(0.0, 1.0, count).expect("of several"), -spread, spread, 6);
        }
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4_f64];
        let mean = differences.iter().sum::<f64>() / 10.0;
        let deviation = (differences.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 9.0).sqrt();
        near(of_mean(mean, deviation, 10).expect("of several"), 0.700_114_2, 2.459_885_8, 7);
        assert_eq!((of_mean(7.0, 0.0, 30), of_mean(7.0, 1.0, 1), of_mean(7.0, 1.0, 0)), (None, None, None));
    }
}
