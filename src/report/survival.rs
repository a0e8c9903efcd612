//! Times to an event, of which some are censored: the run ended first, so the time is only known to be longer. If such runs were
//! left out, or their watched times taken for the times to the event, the times would look shorter than they are.
//!
//! The estimator is Kaplan-Meier: at each time `t` at which `d` of the `n` runs still watched see the event, the share
//! that has not seen it yet falls by `d / n`. A quantile is the first time at which that share is low enough, and is not known
//! where it never is. The interval of the median is the log-log one (Kalbfleisch and Prentice), as R's `survfit` gives it
//! with `conf.type = "log-log"`.

use crate::statistics::CONFIDENCE;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeMap;

/// Times are whole milliseconds with this number of significant digits. This bounds the number of different times, so the size does not
/// grow with the number of runs.
const DIGITS: u32 = 4;

/// Times in seconds, to a millisecond or to four digits.
#[derive(Clone, Default)]
pub(crate) struct Survival {
    /// By milliseconds: runs that saw the event then, and runs that were censored then.
    counts: BTreeMap<u64, (u64, u64)>,
}

/// [`Survival`] as it is reported, in seconds. A quantile is empty where too many runs were censored before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct SurvivalReport {
    /// Runs that were watched.
    pub runs: u64,
    /// Runs that saw the event.
    pub seen: u64,
    /// Runs that ended first.
    pub censored: u64,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    /// The ends of the median's interval, as far as they are known.
    pub p50_low: Option<f64>,
    pub p50_high: Option<f64>,
    pub p75: Option<f64>,
    pub p95: Option<f64>,
    /// The longest time for which a run was watched.
    pub watched_max: f64,
}

/// A step of the estimate: the share that has not seen the event by a time, with its log-log interval at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub seconds: f64,
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

impl Survival {
    /// Adds a run that was watched for `seconds` seconds, from 0 on. `seen` is true if it saw the event at their end.
    pub fn add(&mut self, seconds: f64, seen: bool) {
        let millis = (seconds * 1e3).round().clamp(0.0, 1e15) as u64;
        let unit = 10_u64.pow((millis.checked_ilog10().unwrap_or(0) + 1).saturating_sub(DIGITS));
        let (seen_then, censored) = self.counts.entry((millis + unit / 2) / unit * unit).or_default();
        *if seen { seen_then } else { censored } += 1;
    }

    /// The figures, or `None` without runs.
    pub fn report(&self) -> Option<SurvivalReport> {
        let counts = self.counts.values();
        let (seen, censored) = counts.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        if seen + censored == 0 {
            return None;
        }
        let steps = self.steps(seen + censored);
        let first = |below: f64, of: fn(&Estimate) -> f64| {
            // Rounding may leave a share slightly above its exact value.
            steps.iter().find(|step| of(step) <= below + 1e-9).map(|step| step.seconds)
        };
        let quantile = |quantile: f64| first(1.0 - quantile, |step| step.share);
        Some(SurvivalReport {
            runs: seen + censored,
            seen,
            censored,
            p25: quantile(0.25),
            p50: quantile(0.5),
            p50_low: first(0.5, |step| step.low),
            p50_high: first(0.5, |step| step.high),
            p75: quantile(0.75),
            p95: quantile(0.95),
            watched_max: self.counts.last_key_value().map_or(0.0, |(millis, _)| *millis as f64 / 1e3),
        })
    }

    /// The steps of the estimate, ascending: one for each time at which a run saw the event.
    pub fn curve(&self) -> Vec<Estimate> {
        self.steps(self.counts.values().map(|(seen, censored)| seen + censored).sum())
    }

    /// Returns an estimate for each time at which one of `runs` runs saw the event, ascending.
    fn steps(&self, runs: u64) -> Vec<Estimate> {
        let z = Normal::standard().inverse_cdf(0.5 + CONFIDENCE / 2.0);
        let (mut at_risk, mut share, mut variance) = (runs, 1.0_f64, 0.0_f64);
        let mut steps = Vec::new();
        for (millis, (seen, censored)) in &self.counts {
            let (seen, censored) = (*seen, *censored);
            if seen > 0 {
                let (n, d) = (at_risk as f64, seen as f64);
                share *= (n - d) / n;
                // Greenwood's formula.
                variance += d / (n * (n - d));
                let (low, high) = match share > 0.0 {
                    true => {
                        let spread = z * variance.sqrt() / share.ln();
                        (share.powf((-spread).exp()), share.powf(spread.exp()))
                    }
                    false => (0.0, 0.0),
                };
                steps.push(Estimate { seconds: *millis as f64 / 1e3, share, low, high });
            }
            // A run that is censored at a time was still watched then.
            at_risk -= seen + censored;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_the_literature() {
        // Remission under 6-MP: Freireich and others, Blood 21 (1963), as in Cox and Oakes, Analysis of Survival Data,
        // 1984, table 1.1. The median is 23 weeks, its log-log interval begins at 13 and has no end.
        let seen = [6, 6, 6, 7, 10, 13, 16, 22, 23];
        let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        let mut times = Survival::default();
        seen.iter().for_each(|weeks| times.add(f64::from(*weeks), true));
        censored.iter().for_each(|weeks| times.add(f64::from(*weeks), false));
        let shares: Vec<f64> = times.steps(21).iter().map(|step| (step.share * 1_000.0).round() / 1_000.0).collect();
        assert_eq!(shares, [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448]);
        let report = times.report().expect("of some runs");
        assert_eq!((report.runs, report.seen, report.censored), (21, 9, 12));
        assert_eq!((report.p25, report.p50, report.p75), (Some(13.0), Some(23.0), None));
        assert_eq!((report.p50_low, report.p50_high, report.watched_max), (Some(13.0), None, 35.0));
    }

    #[test]
    fn what_is_not_censored_has_the_quantiles_of_its_values() {
        let mut times = Survival::default();
        assert_eq!(times.report(), None);
        (1..=100).for_each(|seconds| times.add(f64::from(seconds), true));
        let report = times.report().expect("of some runs");
        assert_eq!((report.p25, report.p50, report.p95), (Some(25.0), Some(50.0), Some(95.0)));
        let mut fine = Survival::default();
        [1.234_4, 12.345_6, 1_234_567.8].iter().for_each(|seconds| fine.add(*seconds, true));
        let kept: Vec<u64> = fine.counts.keys().copied().collect();
        assert_eq!(kept, [1_234, 12_350, 1_235_000_000]);
        let mut never = Survival::default();
        never.add(1_600.0, false);
        let report = never.report().expect("of one run");
        assert_eq!((report.seen, report.censored, report.p25, report.watched_max), (0, 1, None, 1_600.0));
    }

    proptest! {
        /// Each figure is that of the list of times: a run that is censored at a time is still watched then.
        #[test]
        fn figures_are_those_of_the_list_of_times(times in prop::collection::vec((0..60_u32, any::<bool>()), 1..40)) {
            let mut all = Survival::default();
            times.iter().for_each(|(seconds, seen)| all.add(f64::from(*seconds), *seen));
            let mut share = 1.0;
            let mut shares = Vec::new();
            for now in 0..60 {
                let at_risk = times.iter().filter(|(at, _)| *at >= now).count() as f64;
                let seen = times.iter().filter(|(at, seen)| *at == now && *seen).count() as f64;
                if seen > 0.0 {
                    share *= 1.0 - seen / at_risk;
                    shares.push((f64::from(now), share));
                }
            }
            let quantile = |quantile: f64| shares.iter().find(|(_, share)| *share <= 1.0 - quantile + 1e-9).map(|(at, _)| *at);
            let report = all.report().expect("of some runs");
            let seen = times.iter().filter(|(_, seen)| *seen).count() as u64;
            prop_assert_eq!((report.runs, report.seen), (times.len() as u64, seen));
            prop_assert_eq!(report.censored, times.len() as u64 - seen);
            prop_assert_eq!([report.p25, report.p50, report.p75, report.p95], [0.25, 0.5, 0.75, 0.95].map(quantile));
            prop_assert_eq!(report.watched_max, times.iter().map(|(at, _)| f64::from(*at)).fold(0.0, f64::max));
            let is_within = |at: Option<f64>, end: Option<f64>| at.is_none_or(|at| end.is_none_or(|end| at <= end));
            prop_assert!(is_within(report.p50_low, report.p50) && is_within(report.p50, report.p50_high));
        }
    }
}
