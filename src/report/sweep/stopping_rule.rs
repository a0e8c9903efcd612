//! A sweep that plays seed after seed until a mean is known well enough.
//!
//! After each seed, in their order, the mean of a figure has a [confidence sequence](crate::statistics::sequence) in each combination of
//! values. The sweep ends with the first seed after which all of these are narrow enough. So the number of runs follows from the
//! seeds alone and not from the number of threads, and the interval is valid although the observations decide when to end.

use super::{
    Sweep,
    measure::{Measure, SHARES},
    rows::{Row, Rows, RowsError},
};
use crate::statistics::{Interval, Sequence};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// A figure from 0 to 1, and the width below which the interval of its mean must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoppingRule {
    measure: Measure,
    width: f64,
}

impl FromStr for StoppingRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = SHARES.map(|measure| measure.name).join(", ");
        let allowed =
            format!("FIGURE<WIDTH with one of {names} and a width above 0 and below 1, such as missed.rate<0.001");
        let parsed = text.split_once('<').and_then(|(name, width)| {
            let measure = SHARES.into_iter().find(|measure| measure.name == name.trim())?;
            let width: f64 = width.trim().parse().ok()?;
            (width > 0.0 && width < 1.0).then_some(Self { measure, width })
        });
        parsed.ok_or_else(|| format!("found '{text}', allowed is {allowed}"))
    }
}

impl fmt::Display for StoppingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}", self.measure.name, self.width)
    }
}

/// The observations of a sweep, seed after seed.
pub(crate) struct Looks {
    until: StoppingRule,
    /// The confidence sequence of each combination of values.
    sequences: Vec<Sequence>,
    /// The number of seeds whose runs were observed.
    pub seeds: u64,
    /// True if all intervals are narrow enough.
    pub is_enough: bool,
}

impl Looks {
    /// The state before the first observation.
    pub fn new(until: StoppingRule, sweep: &Sweep) -> Self {
        Self { until, sequences: vec![Sequence::default(); sweep.cells.len()], seeds: 0, is_enough: false }
    }

    /// Observes the seeds of which all runs are done, until all intervals are narrow enough.
    ///
    /// # Errors
    /// A row cannot be read.
    pub(super) fn look(&mut self, sweep: &Sweep, rows: &Rows) -> Result<(), RowsError> {
        while !self.is_enough && self.seeds < sweep.seeds_per_cell() {
            let of_cell = |cell| rows.read(sweep.row_of(sweep.place(cell * sweep.seeds_per_cell() + self.seeds)));
            let whole: Option<Vec<Row>> = (0..sweep.cells.len() as u64).map(of_cell).collect::<Result<_, _>>()?;
            let Some(whole) = whole else { break };
            for (sequence, row) in self.sequences.iter_mut().zip(&whole) {
                if let Some(value) = self.until.measure.of(row) {
                    sequence.add(value);
                }
            }
            self.seeds += 1;
            self.is_enough = self.sequences.iter().all(|sequence| width(sequence.interval()) < self.until.width);
        }
        Ok(())
    }

    /// Returns the result.
    pub fn report(&self, sweep: &Sweep) -> UntilReport {
        let cells = sweep.cells.iter().zip(&self.sequences).map(|(cell, sequence)| CombinationMean {
            varied: cell.varied.iter().map(|varied| (varied.path(), varied.value_text())).collect(),
            runs: sequence.count,
            mean: sequence.mean(),
            confidence: sequence.interval(),
        });
        UntilReport {
            figure: self.until.measure.name,
            width: self.until.width,
            reached: self.is_enough,
            cells: cells.collect(),
        }
    }
}

fn width(interval: Interval) -> f64 {
    interval.high - interval.low
}

/// The mean that decided when a sweep ended, as in `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UntilReport {
    pub figure: &'static str,
    /// The width below which all intervals had to be.
    pub width: f64,
    /// True if they are. Otherwise the sweep ran out of seeds.
    pub reached: bool,
    pub cells: Vec<CombinationMean>,
}

/// The mean in one combination of values.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CombinationMean {
    /// The varied values by path. Empty if nothing was varied.
    pub varied: BTreeMap<String, String>,
    /// Runs that have the figure.
    pub runs: u64,
    /// The mean of the figure over these runs. Empty if there are none.
    pub mean: Option<f64>,
    /// The interval, which is valid at whatever seed the sweep ended.
    pub confidence: Interval,
}
