//! How often something happens, as far as a number of runs can tell.

/// The Wilson score interval of a share at 95 % confidence: of `runs` runs, `hits` showed it. From 0 to 1; all of it for
/// no runs. Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
pub fn wilson(hits: u64, runs: u64) -> (f64, f64) {
    if runs == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_963_984_540_054;
    let (hits, runs) = (hits as f64, runs as f64);
    let share = hits / runs;
    let spread = Z * (share * (1.0 - share) / runs + Z * Z / (4.0 * runs * runs)).sqrt();
    let (middle, scale) = (share + Z * Z / (2.0 * runs), 1.0 + Z * Z / runs);
    (((middle - spread) / scale).max(0.0), ((middle + spread) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        let near = |(low, high): (f64, f64), wanted: (f64, f64)| {
            assert!((low - wanted.0).abs() < 5e-4 && (high - wanted.1).abs() < 5e-4, "{low} {high}");
        };
        near(wilson(0, 0), (0.0, 1.0));
        near(wilson(0, 10), (0.0, 0.2775));
        near(wilson(10, 10), (0.7225, 1.0));
        near(wilson(50, 100), (0.4038, 0.5962));
        near(wilson(3, 200), (0.0051, 0.0432));
    }
}
