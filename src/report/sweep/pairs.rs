//! Combinations of values compared run by run: each run with the first combination's run of the same seed. The effect of chance on
//! both drops out of the difference.

use super::{
    Sweep, SweepRun,
    columns::{FIGURES, Status, TIMES},
    rows::{Row, Rows, RowsError},
};
use crate::statistics::{Interval, interval};
use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// The comparison of a combination of values with the first one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PairedComparison {
    /// Its values, by path.
    pub varied: BTreeMap<String, String>,
    /// The values of the first combination.
    pub with: BTreeMap<String, String>,
    /// Seeds for which a run of either combination was censored or died: its figures do not cover the same time.
    pub left_out: u64,
    /// The differences of each figure that some pair of runs has.
    pub figures: BTreeMap<&'static str, PairedFigure>,
    /// The comparison of the times to converge, over all pairs in which neither run died. Empty if no pair shows which run was sooner.
    pub converged: Option<PairedTimes>,
}

/// Times to an event in pairs of runs, of which some are censored: the log-rank test, stratified by seed. Source: D. G. Kleinbaum and
/// M. Klein, Survival analysis (2012), chapter 2. A pair tells which run was sooner if one saw the event while the other was watched and
/// had not seen it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct PairedTimes {
    /// Pairs in which the first combination's run was sooner.
    pub first_sooner: u64,
    /// Pairs in which this combination's run was sooner.
    pub second_sooner: u64,
    /// The statistic of the test, which has one degree of freedom.
    pub chi_squared: f64,
    /// The chance of counts as unequal as these, or more, if neither were sooner by nature: exact, from 0 to 1.
    pub p: f64,
}

/// A figure of pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct PairedFigure {
    pub pairs: u64,
    /// The mean of the second minus the first.
    pub difference: f64,
    /// Student's interval of that mean. Empty for a single pair, and if all differences are equal.
    pub confidence: Option<Interval>,
    /// The standard deviation of the differences.
    pub deviation: f64,
    /// Pearson's correlation of both; empty where one of them is the same in all runs.
    pub correlation: Option<f64>,
    /// The variance that the difference of independent runs would have, divided by that of the pairs; empty where all differences are
    /// equal.
    pub variance_saved: Option<f64>,
}

/// Sums over pairs, by Welford's recurrences.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pairs: u64,
    first: Spread,
    second: Spread,
    difference: Spread,
    together: f64,
}

/// A mean, and the sum of squared distances from it.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    mean: f64,
    squares: f64,
}

impl Spread {
    /// Adds the `count`-th value. Returns its distance from the mean before.
    fn add(&mut self, value: f64, count: u64) -> f64 {
        let before = value - self.mean;
        self.mean += before / count as f64;
        self.squares += before * (value - self.mean);
        before
    }
}

impl Sums {
    fn add(&mut self, first: f64, second: f64) {
        self.pairs += 1;
        let before = self.first.add(first, self.pairs);
        self.second.add(second, self.pairs);
        self.together += before * (second - self.second.mean);
        self.difference.add(second - first, self.pairs);
    }

    fn report(&self) -> Option<PairedFigure> {
        if self.pairs == 0 {
            return None;
        }
        let freedom = self.pairs.saturating_sub(1).max(1) as f64;
        let deviation = (self.difference.squares / freedom).sqrt();
        let (alone, both) =
            (self.first.squares + self.second.squares, (self.first.squares * self.second.squares).sqrt());
        Some(PairedFigure {
            pairs: self.pairs,
            difference: self.difference.mean,
            confidence: interval::of_mean(self.difference.mean, deviation, self.pairs),
            deviation,
            correlation: (both > 0.0).then(|| self.together / both),
            variance_saved: (self.difference.squares > 0.0).then(|| alone / self.difference.squares),
        })
    }
}

/// Counts of pairs by the run that saw the event first.
#[derive(Clone, Copy, Debug, Default)]
struct Sooner {
    first: u64,
    second: u64,
}

/// The time at which a run saw the event, or to which it was watched, and true if it saw the event.
type WatchedTime = (f64, bool);

impl Sooner {
    fn add(&mut self, first: WatchedTime, second: WatchedTime) {
        // A run that is censored at a time was still watched then.
        let is_sooner = |(one, seen): WatchedTime, (other, other_seen): WatchedTime| {
            seen && if other_seen { one < other } else { one <= other }
        };
        self.first += u64::from(is_sooner(first, second));
        self.second += u64::from(is_sooner(second, first));
    }

    fn report(self) -> Option<PairedTimes> {
        let Self { first, second } = self;
        if first + second == 0 {
            return None;
        }
        let difference = first as f64 - second as f64;
        Some(PairedTimes {
            first_sooner: first,
            second_sooner: second,
            chi_squared: difference * difference / (first + second) as f64,
            p: sign_test(first, second),
        })
    }
}

/// The probability that a fair coin falls `one` times on one side and `other` times on the other, or more unequally.
fn sign_test(one: u64, other: u64) -> f64 {
    let fair = Binomial::new(0.5, one + other).expect("a half is a share");
    (2.0 * fair.cdf(one.min(other))).min(1.0)
}

/// The time to converge of a run that did not die and in which a fault ended.
fn time_to_converge(row: &Row) -> Option<WatchedTime> {
    let [converged, observed] = TIMES.map(|name| row.figure(name));
    observed.filter(|_| row.status != Status::Died).map(|observed| (observed, converged.is_some()))
}

/// Compares all combinations of a whole sweep with the first one. All rows must exist.
pub(super) fn compare(sweep: &Sweep, rows: &Rows) -> Result<Vec<PairedComparison>, RowsError> {
    let seeds = sweep.seeds_per_cell();
    let varied =
        |cell: usize| sweep.cells[cell].varied.iter().map(|varied| (varied.path(), varied.value_text())).collect();
    let row = |cell: usize, number: u64| {
        let run = cell as u64 * seeds + number;
        let place = SweepRun { run, cell, seed: sweep.manifest.seeds.first + number };
        rows.read(sweep.row_of(place))
    };
    let one = |cell| {
        let (mut sums, mut sooner, mut left_out) = (vec![Sums::default(); FIGURES.len()], Sooner::default(), 0);
        for number in 0..seeds {
            let pair: (Option<Row>, Option<Row>) = (row(0, number)?, row(cell, number)?);
            let times = [&pair.0, &pair.1].map(|row| row.as_ref().and_then(time_to_converge));
            if let [Some(first), Some(second)] = times {
                sooner.add(first, second);
            }
            let whole = |row: &Row| !matches!(row.status, Status::Censored | Status::Died);
            let (Some(first), Some(second)) = (pair.0.filter(whole), pair.1.filter(whole)) else {
                left_out += 1;
                continue;
            };
            for ((sums, first), second) in sums.iter_mut().zip(&first.figures).zip(&second.figures) {
                if let (Some(first), Some(second)) = (first, second) {
                    sums.add(*first, *second);
                }
            }
        }
        let figures = FIGURES.iter().zip(&sums).filter(|(figure, _)| !TIMES.contains(&figure.name));
        let figures = figures.filter_map(|(figure, sums)| Some((figure.name, sums.report()?))).collect();
        Ok(PairedComparison { varied: varied(cell), with: varied(0), left_out, figures, converged: sooner.report() })
    };
    (1..sweep.cells.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> PairedFigure {
        let mut sums = Sums::default();
        pairs.iter().for_each(|(first, second)| sums.add(*first, *second));
        sums.report().expect("there are pairs")
    }

    /// The sleep data of Student (1908): ten patients, two drugs. R's `t.test(paired = TRUE)` and `cor` say the rest.
    #[test]
    fn pairs_are_compared_as_student_and_r_do() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let found = of(&pairs);
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 5e-7, "{found}, {wanted}");
        let confidence = found.confidence.expect("they differ");
        near(found.difference, 1.58);
        near(confidence.low, 0.700_114_2);
        near(confidence.high, 2.459_885_8);
        near(found.correlation.expect("both vary"), 0.795_170_2);
        // Variances by R: 3.200556, 4.009 and, of the differences, 1.512889.
        near(found.variance_saved.expect("they differ"), (3.200_555_6 + 4.009) / 1.512_888_9);
    }

    /// Remission under 6-MP and under placebo in 21 pairs of patients: Freireich and others, Blood 21 (1963). 6-MP was better in 18 pairs
    /// and worse in 3: of 2^21 ways in which 21 coins fall, 2 (1 + 21 + 210 + 1,330) are as unequal.
    #[test]
    fn pairs_of_times_are_those_of_the_literature() {
        let placebo = [1, 22, 3, 12, 8, 17, 2, 11, 8, 12, 2, 5, 4, 15, 8, 23, 5, 11, 4, 1, 8];
        let treated = [10, 7, -32, 23, -22, 6, 16, -34, -32, -25, -11, -20, -19, 6, -17, -35, 6, -13, -9, -6, -10];
        let mut sooner = Sooner::default();
        for (placebo, treated) in placebo.into_iter().zip(treated) {
            sooner.add((f64::from(placebo), true), (f64::from(i32::abs(treated)), treated > 0));
        }
        let found = sooner.report().expect("they tell");
        assert_eq!((found.first_sooner, found.second_sooner), (18, 3));
        assert!(
            (found.chi_squared - 10.714_286).abs() < 5e-7 && (found.p - 3_124.0 / f64::powi(2.0, 21)).abs() < 1e-12,
            "{found:?}"
        );
        let mut none = Sooner::default();
        for (first, second) in [((5.0, true), (5.0, true)), ((5.0, true), (4.0, false)), ((1.0, false), (2.0, false))] {
            none.add(first, second);
        }
        assert_eq!(none.report(), None);
        none.add((5.0, true), (5.0, false));
        let one = none.report().expect("a pair tells");
        assert!(one.first_sooner == 1 && one.second_sooner == 0 && (one.p - 1.0).abs() < 1e-12, "{one:?}");
    }

    #[test]
    fn equal_differences_have_no_interval() {
        let found = of(&[(1.0, 3.0), (2.0, 4.0)]);
        assert_eq!((found.difference, found.confidence, found.variance_saved), (2.0, None, None));
        assert_eq!(of(&[(1.0, 3.0), (1.0, 4.0)]).correlation, None);
        assert_eq!((of(&[(1.0, 3.0)]).pairs, of(&[(1.0, 3.0)]).confidence), (1, None));
    }
}
