//! What many runs say together: means and shares with their confidence intervals, and distributions, in a size that does
//! not grow with the number of runs.

use hdrhistogram::Histogram;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Histograms count whole numbers: a unit is so many of theirs.
const SCALE: f64 = 1e6;

/// From one number to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// How often something was so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub of: u64,
    pub so: u64,
}

/// [`Share`] as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareReport {
    pub of: u64,
    pub so: u64,
    pub share: f64,
    /// Wilson's score interval, which holds for few trials and for shares near 0 and 1 as well.
    pub confidence: Interval,
}

impl Share {
    /// One more.
    pub fn add(&mut self, so: bool) {
        self.of += 1;
        self.so += u64::from(so);
    }

    /// The share with its interval; `None` of nothing.
    pub fn report(&self) -> Option<ShareReport> {
        if self.of == 0 {
            return None;
        }
        let (n, share) = (self.of as f64, self.so as f64 / self.of as f64);
        let z = Normal::standard().inverse_cdf(0.5 + CONFIDENCE / 2.0);
        let centre = share + z * z / (2.0 * n);
        let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        let low = ((centre - spread) / scale).max(0.0);
        let high = ((centre + spread) / scale).min(1.0);
        // Rounding may leave the ends of 0 and 1 a hair inside.
        let low = if self.so == 0 { 0.0 } else { low };
        let high = if self.so == self.of { 1.0 } else { high };
        Some(ShareReport { of: self.of, so: self.so, share, confidence: Interval { low, high } })
    }
}

/// A distribution of numbers from 0 on.
#[derive(Clone)]
pub struct Distribution {
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
pub struct DistributionReport {
    pub count: u64,
    pub mean: f64,
    /// Student's interval of the mean; empty of a single value.
    pub confidence: Option<Interval>,
    pub deviation: f64,
    pub min: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    pub max: f64,
}

impl Distribution {
    /// Of nothing yet.
    pub fn new() -> Self {
        let values = Histogram::new(3).expect("three digits are what the crate allows");
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, values }
    }

    /// One more, finite and from 0 on.
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

    /// The figures; `None` of nothing.
    pub fn report(&self) -> Option<DistributionReport> {
        if self.count == 0 {
            return None;
        }
        let deviation = if self.count > 1 { (self.squares / (self.count - 1) as f64).sqrt() } else { 0.0 };
        let confidence = (self.count > 1).then(|| {
            let student = StudentsT::new(0.0, 1.0, (self.count - 1) as f64).expect("it has degrees of freedom");
            let spread = student.inverse_cdf(0.5 + CONFIDENCE / 2.0) * deviation / (self.count as f64).sqrt();
            Interval { low: self.mean - spread, high: self.mean + spread }
        });
        let at = |share| (self.values.value_at_quantile(share) as f64 / SCALE).clamp(self.min, self.max);
        Some(DistributionReport {
            count: self.count,
            mean: self.mean,
            confidence,
            deviation,
            min: self.min,
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
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
    fn a_share_has_wilsons_interval() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (so, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let found = Share { of, so }.report().expect("of something").confidence;
            assert!(close(found.low, low) && close(found.high, high), "{so} of {of}: {found:?}");
        }
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
        let mut one = Distribution::new();
        one.add(0.25);
        let report = one.report().expect("of something");
        assert_eq!((report.confidence, report.p5, report.p95), (None, 0.25, 0.25));
    }
}
