//! Combinations of values compared run by run: each run of one with the run of the same seed of the first one. What chance does
//! to both drops out of the difference.

use super::{
    Sweep, SweepRun,
    columns::{FIGURES, Status, TIMES},
    rows::{Row, Rows, RowsError},
};
use crate::statistics::{Interval, interval};
use serde::Serialize;
use std::collections::BTreeMap;

/// A combination of values beside the first one.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Its values, by path.
    pub varied: BTreeMap<String, String>,
    /// Those of the first one.
    pub with: BTreeMap<String, String>,
    /// Seeds of which a run of either was censored or died: what was measured in it is not of the same time.
    pub left_out: u64,
    /// The differences of each figure that some pair of runs has.
    pub figures: BTreeMap<&'static str, Paired>,
}

/// A figure of pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    pub pairs: u64,
    /// The mean of the second minus the first.
    pub difference: f64,
    /// Student's interval of that mean; empty of a single pair, and where all differences are equal.
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
    /// One more, the `count`-th; answers its distance from the mean before.
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

    fn report(&self) -> Option<Paired> {
        if self.pairs == 0 {
            return None;
        }
        let freedom = self.pairs.saturating_sub(1).max(1) as f64;
        let deviation = (self.difference.squares / freedom).sqrt();
        let (alone, both) =
            (self.first.squares + self.second.squares, (self.first.squares * self.second.squares).sqrt());
        Some(Paired {
            pairs: self.pairs,
            difference: self.difference.mean,
            confidence: interval::of_mean(self.difference.mean, deviation, self.pairs),
            deviation,
            correlation: (both > 0.0).then(|| self.together / both),
            variance_saved: (self.difference.squares > 0.0).then(|| alone / self.difference.squares),
        })
    }
}

/// Compares all combinations of a whole sweep, whose rows are all there, with the first one.
pub(super) fn compare(sweep: &Sweep, rows: &Rows) -> Result<Vec<Compared>, RowsError> {
    let seeds = sweep.seeds_per_cell();
    let varied =
        |cell: usize| sweep.cells[cell].varied.iter().map(|varied| (varied.path(), varied.value_text())).collect();
    let row = |cell: usize, number: u64| {
        let run = cell as u64 * seeds + number;
        let place = SweepRun { run, cell, seed: sweep.manifest.seeds.first + number };
        Ok(rows.read(sweep.row_of(place))?.filter(|row| !matches!(row.status, Status::Censored | Status::Died)))
    };
    let one = |cell| {
        let (mut sums, mut left_out) = (vec![Sums::default(); FIGURES.len()], 0);
        for number in 0..seeds {
            let pair: (Option<Row>, Option<Row>) = (row(0, number)?, row(cell, number)?);
            let (Some(first), Some(second)) = pair else {
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
        Ok(Compared { varied: varied(cell), with: varied(0), left_out, figures })
    };
    (1..sweep.cells.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Paired {
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

    #[test]
    fn equal_differences_have_no_interval() {
        let found = of(&[(1.0, 3.0), (2.0, 4.0)]);
        assert_eq!((found.difference, found.confidence, found.variance_saved), (2.0, None, None));
        assert_eq!(of(&[(1.0, 3.0), (1.0, 4.0)]).correlation, None);
        assert_eq!((of(&[(1.0, 3.0)]).pairs, of(&[(1.0, 3.0)]).confidence), (1, None));
    }
}
