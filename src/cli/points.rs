//! `dposlab points`: the points of a study, for `dposlab sweep --points`.

use super::{Failure, output};
use crate::{
    report::sweep::{CELLS_LIMIT, distribution::VariedValue, points::Points as Table},
    statistics::design::{COUNT_LIMIT, DIMENSIONS_LIMIT, latin, saltelli, sobol},
};
use clap::{Args, ValueEnum};
use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
};

/// Draw the points of a study: a table of values for `dposlab sweep --points`.
///
/// Prints a line of paths and a line for each point, as CSV. The same seed gives the same points. A value is distributed as
/// uniform(LOW,HIGH), log-uniform(LOW,HIGH), integer(LOW,HIGH), normal(MEAN,DEVIATION) or choice(VALUE,VALUE).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Points {
    /// How the points lie.
    #[arg(value_enum)]
    design: Design,
    /// The varied values and how each is distributed, such as 'network.loss=uniform(0,0.3)'.
    #[arg(required = true, value_name = "PATH=DISTRIBUTION")]
    values: Vec<VariedValue>,
    /// The number of points, of pairs for 'saltelli'; a power of two but for 'latin'.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_LIMIT)))]
    count: u32,
    #[arg(long, default_value_t = 1, help = "The seed of the points")]
    seed: u32,
    /// Write them to this file, which is not there yet, and print nothing.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// How points lie in the space of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Design {
    /// A Latin hypercube: each value is cut into as many equal parts as there are points, and each part has one.
    Latin,
    /// Sobol's sequence, scrambled: even in all values together, from some hundred points on.
    Sobol,
    /// Pairs of Sobol's points, each with those mixed of it, for `dposlab indices`: N pairs of D values are N * (D + 2) points.
    Saltelli,
}

const EXAMPLES: &str = "\
Examples:
  dposlab points latin --count 100 'network.loss=uniform(0,0.3)' 'network.delegates=integer(4,21)' --out out/points.csv
  dposlab sweep scenarios/lossy.toml --points out/points.csv --seeds 0..10 --out out/space
  dposlab points saltelli --count 64 'network.loss=uniform(0,0.3)' 'network.delegates=integer(4,21)' --out out/pairs.csv";

impl Points {
    /// Draws the points, and prints or writes them.
    ///
    /// # Errors
    /// There are too many values, a path stands twice, or the count is no power of two where it must be.
    pub fn run(self) -> Result<(), Failure> {
        let (count, values) = (self.count, self.values.len());
        if values > DIMENSIONS_LIMIT {
            return Err(Failure::usage(format!("found {values} varied values, allowed are {DIMENSIONS_LIMIT}")));
        }
        let paths: Vec<String> = self.values.iter().map(|value| value.path.clone()).collect();
        if let Some(twice) = (1..values).find(|index| paths[..*index].contains(&paths[*index])) {
            return Err(Failure::usage(format!("{}: is varied twice", paths[twice])));
        }
        if self.design != Design::Latin && !count.is_power_of_two() {
            return Err(Failure::usage(format!(
                "--count: found {count}, allowed are powers of two up to {COUNT_LIMIT}, for which the points lie evenly"
            )));
        }
        let all = u64::from(count) * if self.design == Design::Saltelli { values as u64 + 2 } else { 1 };
        if all > CELLS_LIMIT {
            return Err(Failure::usage(format!(
                "found {all} points, allowed are {CELLS_LIMIT}, which a sweep can have"
            )));
        }
        let points = match self.design {
            Design::Latin => latin(count, values, self.seed.into()),
            Design::Sobol => sobol(count, values, self.seed),
            Design::Saltelli => saltelli(count, values, self.seed),
        };
        let of = |point: Vec<f64>| self.values.iter().zip(point).map(|(value, share)| value.at(share)).collect();
        let table = Table { paths, rows: points.into_iter().map(of).collect(), lines: Vec::new() };
        let Some(file) = &self.out else {
            output::line(table.to_csv().trim_end());
            return Ok(());
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), fs::create_dir_all);
        let written =
            made.and_then(|()| File::create_new(file)).and_then(|mut file| file.write_all(table.to_csv().as_bytes()));
        written.map_err(|why| Failure::broken(format!("--out {}: {why}", file.display())))
    }
}
