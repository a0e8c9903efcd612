//! Amounts and fees as distributions.

use crate::{scenario::mistake::Mistake, sim::fault::table};
use rand::Rng;
use rand_distr::{Distribution as _, LogNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of positive numbers: evenly between two, or log-normal around a median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, { min = …, max = … } or { median = …, sigma = … }")]
pub enum Amounts {
    /// Always this number.
    Constant(f64),
    /// Evenly between two numbers.
    #[serde(deserialize_with = "table::only")]
    Uniform(Uniform),
    /// Log-normal around a median.
    #[serde(deserialize_with = "table::only")]
    LogNormal(Around),
}

/// Evenly between two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    pub min: f64,
    pub max: f64,
}

/// Half of all are below the median; `sigma` is the standard deviation of the logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Around {
    pub median: f64,
    pub sigma: f64,
}

impl Default for Amounts {
    /// A tenth of a coin to ten coins.
    fn default() -> Self {
        Self::Uniform(Uniform { min: 0.1, max: 10.0 })
    }
}

impl Amounts {
    /// The constant 1.
    pub fn one() -> Self {
        Self::Constant(1.0)
    }

    /// Draws a number.
    pub fn draw(&self, random: &mut impl Rng) -> f64 {
        match self {
            Self::Constant(number) => *number,
            Self::Uniform(Uniform { min, max }) => random.random_range(*min..=*max),
            Self::LogNormal(Around { median, sigma }) => {
                LogNormal::new(median.ln(), *sigma).expect("both were checked").sample(random)
            }
        }
    }

    /// The least upper bound of the draws, or infinity if there is none.
    pub(in crate::scenario) fn most(&self) -> f64 {
        match self {
            Self::Constant(number) => *number,
            Self::Uniform(Uniform { max, .. }) => *max,
            Self::LogNormal(_) => f64::INFINITY,
        }
    }

    pub(in crate::scenario) fn check(&self, key: &str) -> Result<(), Mistake> {
        let fine = |number: f64| (0.0..=1e8).contains(&number);
        let (found, good) = match self {
            Self::Constant(number) => (format!("{number}"), fine(*number)),
            Self::Uniform(Uniform { min, max }) => (format!("{min} to {max}"), fine(*min) && fine(*max) && min <= max),
            Self::LogNormal(Around { median, sigma }) => (
                format!("median {median}, sigma {sigma}"),
                fine(*median) && *median > 0.0 && (0.0..=10.0).contains(sigma),
            ),
        };
        if good { Ok(()) } else { Err(Mistake::new(key, found, "0 to 100000000, the lesser first")) }
    }
}
