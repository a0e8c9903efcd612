//! Durations as distributions.

use super::table;
use rand::Rng;
use rand_distr::{Distribution as _, Exp1, LogNormal, Weibull};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The least duration \[s\]. Shorter draws are raised to it, so that time advances between two repetitions.
const LEAST_S: f64 = 0.001;
/// The greatest duration \[s\], about three years. Longer draws are cut to it.
const MOST_S: f64 = 1e8;
/// The allowed parameters, for error messages.
const ALLOWED: &str = "0.001 to 100000000 seconds, the lesser first, a shape from 0.1 to 100 and a sigma from 0 to 10";

/// A distribution of durations in seconds: always the same, exponential, evenly between two, log-normal, or of Weibull.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected seconds, { mean_s = … }, { min_s = …, max_s = … }, { median_s = …, sigma = … } or { scale_s = …, shape = … }"
)]
pub enum Durations {
    /// Always this time, in seconds.
    Constant(f64),
    /// Exponential, by its mean.
    #[serde(deserialize_with = "table::only")]
    Exponential(ExponentialTime),
    /// Evenly between two times.
    #[serde(deserialize_with = "table::only")]
    Uniform(UniformTime),
    /// Log-normal, by its median.
    #[serde(deserialize_with = "table::only")]
    LogNormal(LogNormalTime),
    /// Weibull, by its scale and shape.
    #[serde(deserialize_with = "table::only")]
    Weibull(WeibullTime),
}

/// Exponential: what is left does not depend on what is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExponentialTime {
    /// The mean, in seconds: 0.001 to 100,000,000.
    pub mean_s: f64,
}

/// Evenly between two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniformTime {
    /// The least time, in seconds: from 0.001 on.
    pub min_s: f64,
    /// The greatest time, in seconds: up to 100,000,000, and not below `min_s`.
    pub max_s: f64,
}

/// Log-normal: half of all are below the median; `sigma` is the standard deviation of the natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormalTime {
    /// The median, in seconds: 0.001 to 100,000,000.
    pub median_s: f64,
    /// The standard deviation of the natural logarithm, 0 to 10.
    pub sigma: f64,
}

/// Weibull: 63.2 % of all are below the scale. A shape below 1 gives many short ones and few long ones, 1 is exponential.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeibullTime {
    /// The scale, in seconds: 0.001 to 100,000,000.
    pub scale_s: f64,
    /// The shape, 0.1 to 100.
    pub shape: f64,
}

impl Durations {
    /// One draw, from 1 ms to 10^8 s.
    ///
    /// # Panics
    /// A parameter is not allowed.
    pub fn draw(&self, random: &mut impl Rng) -> Duration {
        let seconds = match *self {
            Self::Constant(seconds) => seconds,
            Self::Exponential(ExponentialTime { mean_s }) => mean_s * random.sample::<f64, _>(Exp1),
            Self::Uniform(UniformTime { min_s, max_s }) => random.random_range(min_s..=max_s),
            Self::LogNormal(LogNormalTime { median_s, sigma }) => {
                LogNormal::new(median_s.ln(), sigma).expect("both were checked").sample(random)
            }
            Self::Weibull(WeibullTime { scale_s, shape }) => {
                Weibull::new(scale_s, shape).expect("both were checked").sample(random)
            }
        };
        Duration::from_micros((seconds.clamp(LEAST_S, MOST_S) * 1e6).round() as u64)
    }

    /// Checks the parameters. If one is out of range, returns the parameters found and the allowed ones.
    pub fn wrong(&self) -> Option<(String, &'static str)> {
        let fine = |seconds: f64| (LEAST_S..=MOST_S).contains(&seconds);
        let (found, is_fine) = match *self {
            Self::Constant(seconds) => (format!("{seconds}"), fine(seconds)),
            Self::Exponential(ExponentialTime { mean_s }) => (format!("mean_s {mean_s}"), fine(mean_s)),
            Self::Uniform(UniformTime { min_s, max_s }) => {
                (format!("min_s {min_s}, max_s {max_s}"), fine(min_s) && fine(max_s) && min_s <= max_s)
            }
            Self::LogNormal(LogNormalTime { median_s, sigma }) => {
                (format!("median_s {median_s}, sigma {sigma}"), fine(median_s) && (0.0..=10.0).contains(&sigma))
            }
            Self::Weibull(WeibullTime { scale_s, shape }) => {
                (format!("scale_s {scale_s}, shape {shape}"), fine(scale_s) && (0.1..=100.0).contains(&shape))
            }
        };
        (!is_fine).then_some((found, ALLOWED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::SplitMix64;

    fn read(text: &str) -> Result<Durations, String> {
        #[derive(Deserialize)]
        struct File {
            up: Durations,
        }
        toml::from_str::<File>(&format!("up = {text}")).map(|file| file.up).map_err(|error| error.message().to_owned())
    }

    /// The share of draws below a bound, and the share that the distribution function says.
    #[test]
    fn draws_have_the_distribution_that_the_file_names() {
        let normal = 0.841_344_746;
        for (text, bounds) in [
            ("{ mean_s = 50 }", [(50.0, 1.0 - (-1.0_f64).exp()), (10.0, 1.0 - (-0.2_f64).exp())]),
            ("{ min_s = 10, max_s = 30 }", [(15.0, 0.25), (30.001, 1.0)]),
            ("{ median_s = 100, sigma = 0.5 }", [(100.0, 0.5), (100.0 * 0.5_f64.exp(), normal)]),
            ("{ scale_s = 60, shape = 0.5 }", [(60.0, 1.0 - (-1.0_f64).exp()), (240.0, 1.0 - (-2.0_f64).exp())]),
            ("20", [(19.999, 0.0), (20.001, 1.0)]),
        ] {
            let durations = read(text).expect("it is one");
            assert_eq!(durations.wrong(), None);
            let mut random = SplitMix64::seed_from_u64(1);
            let draws: Vec<f64> = (0..40_000).map(|_| durations.draw(&mut random).as_secs_f64()).collect();
            for (bound, expected) in bounds {
                let share = draws.iter().filter(|draw| **draw < bound).count() as f64 / draws.len() as f64;
                // Four standard errors.
                assert!((share - expected).abs() < 4.0 * 0.5 / 200.0, "{text} below {bound}: {share} of {expected}");
            }
        }
    }

    #[test]
    fn parameters_that_are_no_duration_are_refused() {
        for wrong in ["0", "-1", "nan", "inf", "1e9", "{ mean_s = 0 }", "{ min_s = 2, max_s = 1 }"] {
            assert!(read(wrong).expect("it is a distribution").wrong().is_some(), "{wrong}");
        }
        for wrong in ["{ median_s = 1, sigma = -1 }", "{ scale_s = 1, shape = 0 }", "{ scale_s = 1, shape = 1e9 }"] {
            assert!(read(wrong).expect("it is a distribution").wrong().is_some(), "{wrong}");
        }
        for wrong in ["{ mean_s = 1, sigma = 1 }", "{ mean = 1 }", "[1]", "'long'", "{ }", "{ min_s = 1 }"] {
            assert!(read(wrong).is_err_and(|why| why.contains("{ min_s = …, max_s = … }")), "{wrong}");
        }
        let mut random = SplitMix64::seed_from_u64(2);
        let tiny = Durations::Exponential(ExponentialTime { mean_s: LEAST_S });
        assert!((0..1_000).all(|_| tiny.draw(&mut random) >= Duration::from_millis(1)), "time goes on");
    }
}
