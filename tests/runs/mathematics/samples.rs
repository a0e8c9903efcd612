//! Statistics of samples: the distance of Kolmogorov and Smirnov, correlation, and counts.

/// The chance with which a test would refuse a right simulator, were the seed not fixed.
const CHANCE: f64 = 1e-3;

/// The greatest distance between the distribution of samples and one of the cumulated chances `below`.
pub fn distance(mut samples: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let mut greatest = 0.0_f64;
    let mut start = 0;
    while let Some(value) = samples.get(start).copied() {
        let end = start + samples[start..].partition_point(|other| *other == value);
        // Just before the value and at it: both distributions may jump there.
        greatest = greatest.max((below(value.next_down()) - start as f64 / count).abs());
        greatest = greatest.max((below(value) - end as f64 / count).abs());
        start = end;
    }
    greatest
}

/// The distance that so many samples exceed with a chance of less than [`CHANCE`]. Source: P. Massart, The tight constant
/// in the Dvoretzky-Kiefer-Wolfowitz inequality (1990): a chance of 2·exp(-2·n·d²) at most, for every n and distribution.
pub fn critical(count: usize) -> f64 {
    ((2.0 / CHANCE).ln() / (2.0 * count as f64)).sqrt()
}

/// The samples have this distribution, and not the slightly different one.
#[track_caller]
pub fn distributed(samples: &[f64], below: impl Fn(f64) -> f64, wrong: impl Fn(f64) -> f64) {
    let limit = critical(samples.len());
    let (found, other) = (distance(samples.to_vec(), below), distance(samples.to_vec(), wrong));
    assert!(found < limit, "a distance of {found}, where {limit} is rare");
    assert!(other > limit, "a wrong parameter shows a distance of {other} only: below {limit}, it proves nothing");
}

/// Pearson's correlation of pairs.
pub fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let together = sum(&|(x, y)| (x - mean_x) * (y - mean_y));
    let (alone_x, alone_y) = (sum(&|(x, _)| (x - mean_x).powi(2)), sum(&|(_, y)| (y - mean_y).powi(2)));
    together / (alone_x * alone_y).sqrt()
}

/// The pairs say nothing of each other: under independence, the correlation has a standard deviation of 1/√(n-1).
#[track_caller]
pub fn independent(pairs: &[(f64, f64)]) {
    let limit = 4.0 / ((pairs.len() - 1) as f64).sqrt();
    let found = correlation(pairs);
    assert!(found.abs() < limit, "a correlation of {found}, where {limit} is rare");
}

/// So many of so many is what a chance gives, four standard deviations around the mean of the binomial distribution, and
/// not what one a tenth greater or smaller would give.
#[track_caller]
pub fn binomial(so: usize, of: usize, chance: f64) {
    is_binomial(so, of, chance, &[chance * 0.9, chance * 1.1]);
}

/// [`binomial`], with the chances that must be told apart from the right one.
#[track_caller]
pub fn is_binomial(so: usize, of: usize, chance: f64, wrong: &[f64]) {
    let off = |chance: f64| {
        let (mean, variance) = (of as f64 * chance, of as f64 * chance * (1.0 - chance));
        (so as f64 - mean) / variance.sqrt()
    };
    assert!(off(chance).abs() < 4.0, "{so} of {of} at a chance of {chance}: {} deviations off", off(chance));
    for wrong in wrong {
        assert!(off(*wrong).abs() > 4.0, "{so} of {of} fits a chance of {wrong} as well: it proves nothing");
    }
}

#[test]
fn the_distance_is_that_of_a_worked_example() {
    let uniform = |x: f64| x.clamp(0.0, 1.0);
    // Steps of 1/4 at 0.1, 0.2, 0.6 and 0.9 against a line: the greatest gap is 0.3, at 0.2.
    assert!((distance(vec![0.9, 0.1, 0.6, 0.2], uniform) - 0.3).abs() < 1e-12);
    assert!((distance(vec![0.5; 4], uniform) - 0.5).abs() < 1e-12);
    assert!((critical(1_000) - 0.061_648).abs() < 1e-5);
    assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) - 1.0).abs() < 1e-12);
    assert!(correlation(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)]).abs() < 1e-12);
}
