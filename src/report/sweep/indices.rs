//! The indices of Sobol of a study: how much of a figure's variance each varied value explains.

use super::{Sweep, SweepError, measure::Measure, rows::Rows};
use crate::statistics::indices::{Index, indices};
use serde::Serialize;

/// The indices of a figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IndexReport {
    pub figure: &'static str,
    /// The number of pairs of points, each with the points that are mixed from it.
    pub pairs: usize,
    /// The number of pairs without a seed for which all points have the figure. The indices leave them out.
    pub left_out: usize,
    /// The smallest number of seeds of a pair for which all points have the figure. The mean is over such seeds.
    pub seeds: u64,
    pub values: Vec<ValueIndex>,
}

/// The indices of a varied value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ValueIndex {
    pub path: String,
    #[serde(flatten)]
    pub index: Index,
}

/// The mean of each point of a group over the seeds for which all points have the figure, and the number of these seeds. `None` if
/// there are none.
fn means(group: &[Option<f64>], seeds: usize) -> Option<(Vec<f64>, u64)> {
    let shared: Vec<usize> =
        (0..seeds).filter(|seed| group.iter().skip(*seed).step_by(seeds).all(Option::is_some)).collect();
    let mean = |point: &[Option<f64>]| shared.iter().filter_map(|seed| point[*seed]).sum::<f64>() / shared.len() as f64;
    (!shared.is_empty()).then(|| (group.chunks(seeds).map(mean).collect(), shared.len() as u64))
}

/// Computes the indices from the means of a figure over the seeds. All runs must be done.
///
/// # Errors
/// The study has no suitable points, a run is missing, or the figure does not vary.
pub(crate) fn of_study(sweep: &Sweep, rows: &Rows, measure: Measure) -> Result<IndexReport, SweepError> {
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
    let seeds = sweep.seeds_per_cell() as usize;
    let mut figures = vec![None; sweep.cells.len() * seeds];
    for place in sweep.places() {
        let Some(row) = rows.read(sweep.row_of(place))? else {
            return Err(refused("found a study of which not all runs are done, such as one that --until-ci ended; allowed is a whole one".into()));
        };
        figures[place.run as usize] = measure.of(&row);
    }
    let groups: Vec<_> = figures.chunks(seeds * (points.paths.len() + 2)).map(|group| means(group, seeds)).collect();
    let whole: Vec<&(Vec<f64>, u64)> = groups.iter().flatten().collect();
    let found = indices(&whole.iter().map(|(means, _)| means.as_slice()).collect::<Vec<_>>(), points.paths.len());
    let found = found.ok_or_else(|| {
        let (pairs, all) = (whole.len(), groups.len());
        match pairs {
            0 | 1 => {
                refused(format!("{}: found {pairs} of {all} pairs that have it, allowed are two or more", measure.name))
            }
            _ => refused(format!("{} does not vary in the {pairs} of {all} pairs that have it", measure.name)),
        }
    })?;
    let values = points.paths.iter().zip(found).map(|(path, index)| ValueIndex { path: path.clone(), index });
    Ok(IndexReport {
        figure: measure.name,
        pairs: whole.len(),
        left_out: groups.len() - whole.len(),
        seeds: whole.iter().map(|(_, seeds)| *seeds).min().unwrap_or(0),
        values: values.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that one point lacks is left out of all points of its group, and a group without a shared seed of everything.
    #[test]
    fn points_are_compared_over_the_same_seeds() {
        let three = [Some(1.0), Some(2.0), Some(6.0), Some(10.0), None, Some(30.0), Some(5.0), Some(7.0), Some(9.0)];
        assert_eq!(means(&three, 3), Some((vec![3.5, 20.0, 7.0], 2)));
        assert_eq!(means(&[Some(1.0), None, None, Some(1.0)], 2), None);
        assert_eq!(means(&[Some(4.0), Some(8.0)], 1), Some((vec![4.0, 8.0], 1)));
    }
}
