//! Indices of Sobol: the share of a figure's variance that each varied value explains, alone and with all others.

use super::interval::{CONFIDENCE, Interval};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// The number of bootstrap samples.
const SAMPLES: usize = 1_000;
/// The seed of their draws: the intervals are a function of the figures.
const SEED: u64 = 1;

/// The indices of one varied value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Index {
    /// The share of the variance that it explains alone. Source: A. Saltelli et al. (2010), estimator b.
    pub first: f64,
    /// The percentile interval of `first` over bootstrap samples of pairs.
    pub first_confidence: Interval,
    /// The share of the variance to which it contributes, alone or together with others. Source: M. J. W. Jansen (1999).
    pub total: f64,
    /// The percentile interval of `total` over the same samples.
    pub total_confidence: Interval,
}

/// The figures of one pair of points: of A, of A with one coordinate of B after the other, and of B.
pub(crate) type Group<'a> = &'a [f64];

/// The indices of each varied value, of the figures at the points of [`saltelli`](super::design::saltelli), pair by pair. `None` where
/// there are fewer than two pairs, or all figures of A and B are equal.
///
/// # Panics
/// A group has not two figures more than there are values.
pub(crate) fn indices(groups: &[Group<'_>], dimensions: usize) -> Option<Vec<Index>> {
    assert!(groups.iter().all(|group| group.len() == dimensions + 2), "a group is a pair and what is mixed of it");
    let all: Vec<usize> = (0..groups.len()).collect();
    let found = estimate(groups, dimensions, &all)?;
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut sampled: Vec<Vec<(f64, f64)>> = vec![Vec::with_capacity(SAMPLES); dimensions];
    for _ in 0..SAMPLES {
        let drawn: Vec<usize> = all.iter().map(|_| random.random_range(0..groups.len())).collect();
        // A sample that draws only one pair, again and again, may have no variance. It is skipped.
        for (of_value, one) in sampled.iter_mut().zip(estimate(groups, dimensions, &drawn).into_iter().flatten()) {
            of_value.push(one);
        }
    }
    let with_intervals = found.into_iter().zip(&sampled).map(|((first, total), sampled)| Index {
        first,
        total,
        first_confidence: middle(sampled.iter().map(|one| one.0).collect(), first),
        total_confidence: middle(sampled.iter().map(|one| one.1).collect(), total),
    });
    Some(with_intervals.collect())
}

/// First and total index of each value, of the pairs with these numbers.
fn estimate(groups: &[Group<'_>], dimensions: usize, drawn: &[usize]) -> Option<Vec<(f64, f64)>> {
    let count = drawn.len() as f64;
    let ends = || drawn.iter().flat_map(|pair| [groups[*pair][0], groups[*pair][dimensions + 1]]);
    let first = ends().next()?;
    if drawn.len() < 2 || ends().all(|value| value == first) {
        return None;
    }
    let mean = ends().sum::<f64>() / (2.0 * count);
    let variance = ends().map(|value| (value - mean).powi(2)).sum::<f64>() / (2.0 * count);
    // The estimate of a first index varies least about the mean of all figures.
    let centre = drawn.iter().flat_map(|pair| groups[*pair]).sum::<f64>() / (count * (dimensions + 2) as f64);
    let of_value = |value: usize| {
        let (mut first, mut total) = (0.0, 0.0);
        for pair in drawn {
            let [a, mixed, b] = [0, value + 1, dimensions + 1].map(|at| groups[*pair][at] - centre);
            first += b * (mixed - a);
            total += (a - mixed).powi(2);
        }
        (first / count / variance, total / 2.0 / count / variance)
    };
    Some((0..dimensions).map(of_value).collect())
}

/// The percentile interval of the samples at [`CONFIDENCE`].
fn middle(mut sampled: Vec<f64>, found: f64) -> Interval {
    sampled.sort_unstable_by(f64::total_cmp);
    let Some(last) = sampled.len().checked_sub(1) else { return Interval { low: found, high: found } };
    let at = |share: f64| sampled[(share * last as f64).round() as usize];
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Interval { low: at(tail), high: at(1.0 - tail) }
}

#[cfg(test)]
mod tests {
    use super::{super::design::saltelli, *};
    use std::f64::consts::PI;

    /// Ishigami's function of three numbers from -π to π. Source: T. Ishigami, T. Homma (1990), with 7 and 0.1.
    fn ishigami(point: &[f64]) -> f64 {
        let [x, y, z] = [0, 1, 2].map(|axis| (2.0 * point[axis] - 1.0) * PI);
        x.sin() + 7.0 * y.sin().powi(2) + 0.1 * z.powi(4) * x.sin()
    }

    #[test]
    fn ishigamis_function_has_its_indices() {
        let figures: Vec<f64> = saltelli(1 << 14, 3, 1).iter().map(|point| ishigami(point)).collect();
        let groups: Vec<Group<'_>> = figures.chunks(5).collect();
        let all: Vec<usize> = (0..groups.len()).collect();
        let found = estimate(&groups, 3, &all).expect("it varies");
        // The closed form: V = 49/8 + 0.1 π⁴/5 + 0.01 π⁸/18 + 1/2.
        let variance = 49.0 / 8.0 + 0.1 * PI.powi(4) / 5.0 + 0.01 * PI.powi(8) / 18.0 + 0.5;
        let first = 0.5 * (1.0 + 0.1 * PI.powi(4) / 5.0).powi(2);
        let both = 8.0 * 0.01 * PI.powi(8) / 225.0;
        let expected = [
            (first / variance, (first + both) / variance),
            (49.0 / 8.0 / variance, 49.0 / 8.0 / variance),
            (0.0, both / variance),
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found.0 - expected.0).abs() < 0.01 && (found.1 - expected.1).abs() < 0.01,
                "{found:?} {expected:?}"
            );
        }
    }

    /// A sum of three values with known shares: of 100 designs, in how many both intervals of each hold the share, and their mean width.
    fn held_of_100(pairs: u32) -> ([u32; 3], [f64; 3]) {
        let (mut held, mut widths) = ([0; 3], [0.0; 3]);
        for seed in 0..100 {
            let figures: Vec<f64> =
                saltelli(pairs, 3, seed).iter().map(|at| at[0] + 2.0 * at[1] + 3.0 * at[2]).collect();
            let groups: Vec<Group<'_>> = figures.chunks(5).collect();
            let found = indices(&groups, 3).expect("it varies");
            for (value, (found, share)) in found.into_iter().zip([1.0, 4.0, 9.0].map(|of| of / 14.0)).enumerate() {
                let holds = |interval: Interval| (interval.low..=interval.high).contains(&share);
                widths[value] += found.total_confidence.high - found.total_confidence.low;
                held[value] += u32::from(holds(found.first_confidence) && holds(found.total_confidence));
            }
        }
        (held, widths.map(|width| width / 100.0))
    }

    #[test]
    fn intervals_hold_what_they_say_with_enough_pairs() {
        let (held, widths) = held_of_100(64);
        assert!(held.iter().all(|held| *held >= 90) && widths.iter().all(|width| *width < 0.8), "{held:?} {widths:?}");
        // The docs say so: few pairs are too few for the bootstrap.
        let (held, _) = held_of_100(16);
        assert!(held.iter().any(|held| *held < 80), "{held:?}");
    }

    #[test]
    fn what_does_not_vary_has_no_indices() {
        assert_eq!(indices(&[&[1.0; 4], &[1.0; 4]], 2), None);
        assert_eq!(indices(&[&[1.0, 2.0, 3.0, 4.0]], 2), None);
        assert!(indices(&[&[1.0, 2.0, 1.0, 2.0], &[5.0, 2.0, 5.0, 2.0]], 2).is_some());
    }
}
