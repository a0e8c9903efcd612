//! Statistics of many runs: means and shares with their confidence intervals, and distributions, in a size that does
//! not grow with the number of runs.

use crate::statistics::{Interval, interval};
use hdrhistogram::Histogram;
use serde::Serialize;

/// The number of histogram units in one unit of a figure, because histograms count whole numbers.
const SCALE: f64 = 1e6;

/// The share of runs with a property: `so` of `of` runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub of: u64,
    pub so: u64,
}

/// [`Share`] as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ShareReport {
    pub of: u64,
    pub so: u64,
    pub share: f64,
    /// Wilson's score interval, which also holds for few trials and for shares near 0 and 1. The exact interval if the share is
    /// 0 or 1.
    pub confidence: Interval,
}

impl Share {
    /// One more.
    pub fn add(&mut self, so: bool) {
        self.of += 1;
        self.so += u64::from(so);
    }

    /// The share with its interval, or `None` without runs.
    pub fn report(&self) -> Option<ShareReport> {
        if self.of == 0 {
            return None;
        }
        let share = self.so as f64 / self.of as f64;
        Some(ShareReport { of: self.of, so: self.so, share, confidence: interval::of_share(self.so, self.of) })
    }
}

/// Bounds of the share of runs with a property, if some runs are undecided: the share if none of these has it, and the share if all
/// of them have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Bounds {
    pub low: f64,
    pub high: f64,
    /// From the lower end of the interval of the lowest share to the upper end of that of the highest.
    pub confidence: Interval,
}

impl Bounds {
    /// The bounds of a share of decided runs with `open` undecided ones; `None` without runs.
    pub fn of(Share { of, so }: Share, open: u64) -> Option<Self> {
        let least = Share { of: of + open, so }.report()?;
        let most = Share { of: of + open, so: so + open }.report()?;
        let confidence = Interval { low: least.confidence.low, high: most.confidence.high };
        Some(Self { low: least.share, high: most.share, confidence })
    }
}

/// A distribution of numbers that are not negative.
#[derive(Clone)]
pub(crate) struct Distribution {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford).
    squares: f64,
    min: f64,
    max: f64,
    values: Histogram<u64>,
}

/// [`Distribution`] as it is reported. Quantiles have three significant digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct DistributionReport {
    pub count: u64,
    pub mean: f64,
    /// Student's interval of the mean. Empty for a single value, and if all values are equal.
    pub confidence: Option<Interval>,
    /// If all values are equal, the greatest share of other values that a sample of this size could still miss, by the exact bound.
    /// Empty if they differ.
    pub differ_at_most: Option<f64>,
    pub deviation: f64,
    pub min: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    /// The ends of the median's interval; empty where there are too few values for one.
    pub p50_low: Option<f64>,
    pub p50_high: Option<f64>,
    pub p75: f64,
    pub p95: f64,
    /// The ends of the interval of the 95 % quantile, likewise.
    pub p95_low: Option<f64>,
    pub p95_high: Option<f64>,
    pub max: f64,
}

impl Distribution {
    /// Starts with no value.
    pub fn new() -> Self {
        let values = Histogram::new(3).expect("three digits are what the crate allows");
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, values }
    }

    /// Adds a value, which is finite and not negative.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let scaled = (value * SCALE).round().clamp(0.0, 1e18) as u64;
        self.values.record(scaled).expect("it grows as far as values go");
    }

    /// The figures, or `None` without values.
    pub fn report(&self) -> Option<DistributionReport> {
        if self.count == 0 {
            return None;
        }
        let deviation = if self.count > 1 { (self.squares / (self.count - 1) as f64).sqrt() } else { 0.0 };
        let differ = (self.min == self.max).then(|| interval::clopper_pearson(0, self.count).high);
        let at = |share| (self.values.value_at_quantile(share) as f64 / SCALE).clamp(self.min, self.max);
        let between = |share| {
            let (low, high) = interval::ranks_of_quantile(share, self.count);
            // Half a rank less, because rounding could make it the next one.
            let share_of = |rank: u64| (rank as f64 - 0.5) / self.count as f64;
            // Rounding must make the interval wider and not narrower.
            let least = |rank| {
                let value = self.values.value_at_quantile(share_of(rank));
                (self.values.lowest_equivalent(value) as f64 / SCALE).clamp(self.min, self.max)
            };
            (low.map(least), high.map(|rank| at(share_of(rank))))
        };
        let ((p50_low, p50_high), (p95_low, p95_high)) = (between(0.5), between(0.95));
        Some(DistributionReport {
            count: self.count,
            mean: self.mean,
            confidence: interval::of_mean(self.mean, deviation, self.count),
            differ_at_most: differ,
            deviation,
            min: self.min,
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p50_low,
            p50_high,
            p75: at(0.75),
            p95: at(0.95),
            p95_low,
            p95_high,
            max: self.max,
        })
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 5e-4
    }

    #[test]
    fn what_is_left_open_widens_a_share_to_both_sides() {
        let bounds = Bounds::of(Share { of: 13, so: 13 }, 17).expect("of 30 runs");
        assert_eq!((bounds.low, bounds.high), (13.0 / 30.0, 1.0));
        assert!(bounds.confidence.low < bounds.low && bounds.confidence.high == 1.0, "{bounds:?}");
        let decided = Share { of: 10, so: 4 };
        let (bounds, share) = (Bounds::of(decided, 0).expect("of 10"), decided.report().expect("of 10"));
        assert_eq!((bounds.low, bounds.high, bounds.confidence), (0.4, 0.4, share.confidence));
        assert_eq!(Bounds::of(Share::default(), 0), None);
        assert_eq!(Bounds::of(Share::default(), 2).map(|bounds| (bounds.low, bounds.high)), Some((0.0, 1.0)));
    }

    #[test]
    fn what_was_never_seen_has_an_exact_bound_and_no_interval_of_width_0() {
        let mut zeros = Distribution::new();
        let mut never = Share::default();
        for _ in 0..30 {
            zeros.add(0.0);
            never.add(false);
        }
        let bound = 1.0 - 0.025_f64.powf(1.0 / 30.0);
        let report = zeros.report().expect("of something");
        assert_eq!((report.mean, report.deviation, report.confidence), (0.0, 0.0, None));
        assert!(close(report.differ_at_most.expect("all are equal"), bound), "{report:?}");
        let share = never.report().expect("of something");
        assert!(share.confidence.low == 0.0 && close(share.confidence.high, bound), "{share:?}");
        zeros.add(1.0);
        let report = zeros.report().expect("of something");
        assert!(report.differ_at_most.is_none() && report.confidence.is_some(), "{report:?}");
        assert_eq!(Share::default().report(), None);
    }

    #[test]
    fn a_mean_has_students_interval_and_quantiles_are_of_the_values() {
        let mut values = Distribution::new();
        (1..=10).for_each(|value| values.add(f64::from(value)));
        let report = values.report().expect("of something");
        // 5.5 ± 2.262 · 3.0277 / √10
        let confidence = report.confidence.expect("of more than one");
        assert!(close(report.mean, 5.5) && close(report.deviation, 3.0277), "{report:?}");
        assert!(close(confidence.low, 3.3341) && close(confidence.high, 7.6659), "{report:?}");
        assert!((report.p50 - 5.0).abs() < 0.01 && (report.p95 - 10.0).abs() < 0.02, "{report:?}");
        assert_eq!((report.min, report.max), (1.0, 10.0));
        // The second and the ninth of ten values bound the median: the chance of fewer than two heads of ten is 11 in 1,024.
        let near = |found: Option<f64>, value: f64| found.is_some_and(|found| (found - value).abs() < 0.01);
        assert!(near(report.p50_low, 2.0) && near(report.p50_high, 9.0), "{report:?}");
        assert!(near(report.p95_low, 8.0) && report.p95_high.is_none(), "{report:?}");
        let mut one = Distribution::new();
        one.add(0.25);
        let report = one.report().expect("of something");
        assert_eq!((report.confidence, report.p5, report.p95), (None, 0.25, 0.25));
        assert_eq!((report.p50_low, report.p50_high, report.p95_low, report.p95_high), (None, None, None, None));
    }
}
