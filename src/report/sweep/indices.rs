//! The indices of Sobol of a study: how much of a figure's variance each varied value explains.

use super::{Sweep, SweepError, measure::Measure, rows::Rows};
use crate::statistics::{
    Interval,
    indices::{Group, indices},
};
use serde::Serialize;

/// The indices of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct IndexReport {
    pub figure: &'static str,
    /// Pairs of points, each with those that are mixed of it.
    pub pairs: usize,
    /// Pairs of which some point has no run with the figure: the indices say nothing of them.
    pub left_out: usize,
    pub seeds: u64,
    pub values: Vec<ValueIndex>,
}

/// The indices of a varied value.
#[derive(Clone, Debug, Serialize)]
pub struct ValueIndex {
    pub path: String,
    /// The share of the variance that it explains alone.
    pub first: f64,
    pub first_confidence: Interval,
    /// The share that it takes part in, alone or with others.
    pub total: f64,
    pub total_confidence: Interval,
}

/// Computes them of the means of a figure over the seeds, of which all runs are done.
///
/// # Errors
/// The study has no points for them, a run is missing, or the figure does not vary.
pub fn of_study(sweep: &Sweep, rows: &Rows, measure: Measure) -> Result<IndexReport, SweepError> {
    let refused = |why: String| SweepError::NoIndices { scenario: sweep.manifest.scenario.clone(), why };
    let points = sweep.manifest.points.as_ref();
    let points =
        points.ok_or_else(|| refused("found no points, allowed are those of `dposlab points saltelli`".into()))?;
    if !sweep.manifest.vary.is_empty() {
        return Err(refused("found --vary beside points, allowed are points alone".into()));
    }
    if sweep.manifest.shard.is_some() {
        return Err(refused("found a part, allowed is a whole study".into()));
    }
    points.check_pairs().map_err(refused)?;
    let mut means = vec![(0.0, 0_u64); sweep.cells.len()];
    for place in sweep.places() {
        let Some(row) = rows.read(sweep.row_of(place))? else {
            return Err(refused("not all of its runs are done; the command that began it goes on where it was".into()));
        };
        if let Some(value) = measure.of(&row) {
            means[place.cell].0 += value;
            means[place.cell].1 += 1;
        }
    }
    let means: Vec<f64> = means.into_iter().map(|(sum, count)| sum / count as f64).collect();
    let (whole, broken): (Vec<Group<'_>>, Vec<Group<'_>>) =
        means.chunks(points.paths.len() + 2).partition(|group| group.iter().all(|mean| mean.is_finite()));
    let found = indices(&whole, points.paths.len());
    let found = found.ok_or_else(|| refused(format!("{} does not vary, or there are too few pairs", measure.name)))?;
    let values = points.paths.iter().zip(found).map(|(path, index)| ValueIndex {
        path: path.clone(),
        first: index.first,
        first_confidence: index.first_interval,
        total: index.total,
        total_confidence: index.total_interval,
    });
    Ok(IndexReport {
        figure: measure.name,
        pairs: whole.len(),
        left_out: broken.len(),
        seeds: sweep.seeds_per_cell(),
        values: values.collect(),
    })
}
