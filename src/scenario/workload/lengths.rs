//! Lengths of vendor fields as distributions.

use super::draw::Around;
use crate::{scenario::mistake::Mistake, sim::fault::table};
use rand::Rng;
use rand_distr::{Distribution as _, Exp, LogNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest size of a vendor field in bytes.
pub(super) const LENGTH_LIMIT: u32 = 255;
/// The largest number of lengths in a list.
const LIST_LIMIT: usize = 100_000;

/// A distribution of lengths in bytes. A length that is drawn with a fraction is rounded down, and a longer one than the network allows is cut
/// to that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a whole number, a list of whole numbers, { min = …, max = … }, { mean = … } or { median = …, sigma = … }"
)]
pub enum Lengths {
    Constant(u32),
    /// One of these, each as probable as the others.
    List(Vec<u32>),
    #[serde(deserialize_with = "table::only")]
    Uniform(LengthSpan),
    #[serde(deserialize_with = "table::only")]
    Exponential(MeanLength),
    #[serde(deserialize_with = "table::only")]
    LogNormal(Around),
}

/// Whole numbers from `min` to `max`, each as probable as the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthSpan {
    pub min: u32,
    pub max: u32,
}

/// An exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeanLength {
    /// The mean before rounding and cutting.
    pub mean: f64,
}

impl Lengths {
    /// Draws a length.
    pub(super) fn draw(&self, random: &mut impl Rng) -> usize {
        let checked = "it was checked";
        let length = match self {
            Self::Constant(length) => *length,
            Self::List(lengths) => lengths[random.random_range(0..lengths.len())],
            Self::Uniform(LengthSpan { min, max }) => random.random_range(*min..=*max),
            // A conversion to a whole number rounds down and ends at the greatest one.
            Self::Exponential(MeanLength { mean }) => Exp::new(1.0 / mean).expect(checked).sample(random) as u32,
            Self::LogNormal(Around { median, sigma }) => {
                LogNormal::new(median.ln(), *sigma).expect(checked).sample(random) as u32
            }
        };
        length.min(LENGTH_LIMIT) as usize
    }

    pub(in crate::scenario) fn check(&self, key: &str) -> Result<(), Mistake> {
        let (most, mistake) = (f64::from(LENGTH_LIMIT), |at: &str, found: String, allowed: String| {
            Mistake::new(format!("{key}{at}"), found, allowed)
        });
        let bytes = || format!("0 to {LENGTH_LIMIT} bytes");
        match self {
            Self::Constant(length) if *length > LENGTH_LIMIT => Err(mistake("", length.to_string(), bytes())),
            Self::List(lengths) if !(1..=LIST_LIMIT).contains(&lengths.len()) => {
                Err(mistake("", format!("{} lengths", lengths.len()), format!("1 to {LIST_LIMIT}")))
            }
            Self::List(lengths) => match lengths.iter().position(|length| *length > LENGTH_LIMIT) {
                Some(place) => Err(mistake(&format!("[{place}]"), lengths[place].to_string(), bytes())),
                None => Ok(()),
            },
            Self::Uniform(LengthSpan { min, max }) if min > max || *max > LENGTH_LIMIT => {
                Err(mistake("", format!("{min} to {max}"), format!("{}, the lesser first", bytes())))
            }
            Self::Exponential(MeanLength { mean }) if !(*mean > 0.0 && *mean <= most) => {
                Err(mistake(".mean", mean.to_string(), format!("above 0, to {LENGTH_LIMIT} bytes")))
            }
            Self::LogNormal(Around { median, sigma })
                if !(*median > 0.0 && *median <= most && (0.0..=10.0).contains(sigma)) =>
            {
                let allowed = format!("a median above 0, to {LENGTH_LIMIT} bytes, and a sigma of 0 to 10");
                Err(mistake("", format!("median {median}, sigma {sigma}"), allowed))
            }
            _ => Ok(()),
        }
    }
}
