//! Points in a unit cube at which a study plays, one coordinate for each value that it varies.

use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use sobol_burley::{NUM_DIMENSIONS, sample};

/// The largest number of coordinates of a point, also of a Latin hypercube.
pub(crate) const DIMENSIONS_LIMIT: usize = 100;
/// The largest number of points of a sequence.
pub(crate) const COUNT_LIMIT: u32 = 1 << 16;

const _: () = assert!(2 * DIMENSIONS_LIMIT <= NUM_DIMENSIONS as usize);

/// Points of a Latin hypercube: each axis is divided into `count` equal parts, and each part has one point. Source: M. D. McKay, R. J.
/// Beckman, W. J. Conover, A comparison of three methods for selecting values of input variables (1979).
pub(crate) fn latin(count: u32, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut points = vec![Vec::with_capacity(dimensions); count as usize];
    for _ in 0..dimensions {
        let mut parts: Vec<u32> = (0..count).collect();
        parts.shuffle(&mut random);
        for (point, part) in points.iter_mut().zip(parts) {
            point.push((f64::from(part) + random.random::<f64>()) / f64::from(count));
        }
    }
    points
}

/// The first points of Sobol's sequence with Owen scrambling by a seed. Among the first 2^k points, each of 2^k equal parts of an axis
/// contains one. So does each box of the first two axes that arises by repeated halving and has the volume of one point. Source: B.
/// Burley, Practical hash-based Owen scrambling (2020).
///
/// # Panics
/// There are more than 200 coordinates or 65,536 points.
pub(crate) fn sobol(count: u32, dimensions: usize, seed: u32) -> Vec<Vec<f64>> {
    let point = |index| (0..dimensions as u32).map(|axis| f64::from(sample(index, axis, seed))).collect();
    (0..count).map(point).collect()
}

/// The points for indices of Sobol. For each of `pairs` pairs of points A and B of one sequence: A, then A with each coordinate of B in
/// turn, and B. Source: A. Saltelli et al., Variance based sensitivity analysis of model output (2010).
///
/// # Panics
/// There are more than 100 coordinates or 65,536 pairs.
pub(crate) fn saltelli(pairs: u32, dimensions: usize, seed: u32) -> Vec<Vec<f64>> {
    let of_pair = |pair: Vec<f64>| {
        let (a, b) = (pair[..dimensions].to_vec(), pair[dimensions..].to_vec());
        let mixed = (0..dimensions).map(|axis| {
            let mut point = a.clone();
            point[axis] = b[axis];
            point
        });
        let mixed: Vec<Vec<f64>> = mixed.collect();
        [a].into_iter().chain(mixed).chain([b])
    };
    sobol(pairs, 2 * dimensions, seed).into_iter().flat_map(of_pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// How many of the boxes have a point: an axis is cut into `2^cuts` parts.
    fn boxes(points: &[Vec<f64>], cuts: &[u32]) -> usize {
        let of = |point: &Vec<f64>| -> Vec<u64> {
            point.iter().zip(cuts).map(|(at, cuts)| (at * f64::from(1_u32 << cuts)) as u64).collect()
        };
        points.iter().map(of).collect::<BTreeSet<_>>().len()
    }

    proptest! {
        #[test]
        fn each_part_of_an_axis_has_a_point(count in 1_u32..200, dimensions in 1_usize..6, seed in any::<u64>()) {
            let points = latin(count, dimensions, seed);
            for axis in 0..dimensions {
                let parts: BTreeSet<u64> = points.iter().map(|point| (point[axis] * f64::from(count)) as u64).collect();
                prop_assert_eq!(parts.len(), count as usize);
            }
            prop_assert!(points.iter().flatten().all(|at| (0.0..1.0).contains(at)));
        }

        /// A (0, m, 2)-net: the first two axes, in any cuts whose parts are as many as the points.
        #[test]
        fn each_box_of_a_net_has_a_point(power in 1_u32..11, seed in any::<u32>()) {
            let points = sobol(1 << power, 2, seed);
            for cuts in 0..=power {
                prop_assert_eq!(boxes(&points, &[cuts, power - cuts]), 1 << power);
            }
            for axis in sobol(1 << power, 7, seed).iter().fold(vec![Vec::new(); 7], |mut axes, point| {
                axes.iter_mut().zip(point).for_each(|(axis, at)| axis.push(vec![*at]));
                axes
            }) {
                prop_assert_eq!(boxes(&axis, &[power]), 1 << power);
            }
        }
    }

    /// Values are drawn apart: with 256 points no two of a hypercube's ten axes go together, which would leave most of the space empty.
    #[test]
    fn axes_of_a_hypercube_do_not_go_together() {
        let points = latin(256, 10, 3);
        for (one, other) in (0..10).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let products = points.iter().map(|point| (point[one] - 0.5) * (point[other] - 0.5));
            // The variance of uniform values is 1/12.
            let correlation = products.sum::<f64>() / 256.0 * 12.0;
            assert!(correlation.abs() < 0.25, "axes {one} and {other}: {correlation}");
        }
    }

    #[test]
    fn a_pair_is_mixed_coordinate_by_coordinate() {
        let points = saltelli(4, 3, 7);
        assert_eq!(points.len(), 4 * 5);
        for (pair, group) in sobol(4, 6, 7).iter().zip(points.chunks(5)) {
            assert_eq!((&group[0][..], &group[4][..]), (&pair[..3], &pair[3..]));
            for axis in 0..3 {
                let from_b: Vec<usize> = (0..3).filter(|at| group[1 + axis][*at] == group[4][*at]).collect();
                let from_a: Vec<usize> = (0..3).filter(|at| group[1 + axis][*at] == group[0][*at]).collect();
                assert_eq!((from_b.as_slice(), from_a.len()), (&[axis][..], 2));
            }
        }
        assert!(saltelli(4, 3, 8) != points && latin(4, 3, 8) != latin(4, 3, 7), "another seed, other points");
    }
}
