//! `dposlab indices`: how much of a figure's variance each varied value explains.

use super::{Failure, output, sweep::failure};
use crate::{
    report::sweep::{
        Sweep,
        indices::{IndexReport, of_study},
        measure::Measure,
    },
    statistics::indices::Index,
};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Compute the indices of Sobol of a study: the share of a figure's variance that each varied value explains.
///
/// The study is a sweep over the points of `dposlab points saltelli`. Its figure is the mean over the seeds of each point. `first` is the
/// share that a value explains alone, `total` the one that it takes part in; both have the 95 % interval of a bootstrap over pairs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Indices {
    /// The folder of the study.
    #[arg(value_name = "DIR")]
    study: PathBuf,
    /// The figure: missed.rate, forked.rate, agreement.mean, ok.rate, or a column of runs.csv. May be given again.
    #[arg(long = "of", required = true, value_name = "FIGURE")]
    figures: Vec<Measure>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  dposlab points saltelli --count 64 'network.loss=uniform(0,0.3)' 'network.latency.median_ms=integer(20,400)' --out out/pairs.csv
  dposlab sweep scenarios/lossy.toml --points out/pairs.csv --seeds 0..2 --out out/pairs
  dposlab indices out/pairs --of missed.rate";

impl Indices {
    /// Computes and prints the indices.
    ///
    /// # Errors
    /// The folder holds no study with such points, a run is missing, or a figure does not vary.
    pub fn run(self) -> Result<(), Failure> {
        let (sweep, rows) = Sweep::of(&self.study).map_err(failure)?;
        let reports = self.figures.iter().map(|figure| of_study(&sweep, &rows, *figure));
        let reports = reports.collect::<Result<Vec<IndexReport>, _>>().map_err(failure)?;
        output::line(&match self.json {
            true => json!({ "indices": reports }).to_string(),
            false => reports.iter().map(table).collect::<Vec<_>>().join("\n\n"),
        });
        Ok(())
    }
}

fn table(report: &IndexReport) -> String {
    let left_out = match report.left_out {
        0 => String::new(),
        left_out => format!(", {left_out} more without it"),
    };
    let mut out = format!(
        "{} over {} pairs of points{left_out}, {} seeds or more each\n\n| value | first | 95 % | total | 95 % |\n|---|---:|---:|---:|---:|",
        report.figure, report.pairs, report.seeds
    );
    for value in &report.values {
        let Index { first, first_confidence, total, total_confidence } = value.index;
        out.push_str(&format!(
            "\n| {} | {:.3} | {:.3} to {:.3} | {:.3} | {:.3} to {:.3} |",
            value.path,
            first,
            first_confidence.low,
            first_confidence.high,
            total,
            total_confidence.low,
            total_confidence.high
        ));
    }
    out
}
