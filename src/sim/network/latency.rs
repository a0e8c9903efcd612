//! The time that a message takes: a distribution, drawn once for each link or anew for each message.

use rand::Rng;
use rand_distr::{Distribution as _, LogNormal, Normal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A latency that no link exceeds \[ms\].
pub const LATENCY_LIMIT_MS: u32 = 600_000;

/// Latency of links. In a file the distribution may be left out where `min_ms` and `max_ms` say it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LatencyFields", into = "LatencyFields")]
#[schemars(with = "LatencyFields")]
pub struct Latency {
    pub distribution: Distribution,
    pub per: Per,
}

/// A distribution of durations; what would be negative is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same, in milliseconds.
    Constant { ms: f64 },
    /// Evenly between two, in milliseconds.
    Uniform { min_ms: u32, max_ms: u32 },
    /// Around a mean, in milliseconds.
    Normal { mean_ms: f64, deviation_ms: f64 },
    /// Half of all are below the median; `sigma` is the standard deviation of the logarithm. What latencies across the
    /// internet look like.
    LogNormal { median_ms: f64, sigma: f64 },
}

/// The thing that has a latency of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each link in each direction, throughout the run.
    #[default]
    Link,
    /// Each message.
    Message,
}

/// [`Latency`] in the form of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LatencyFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Name>,
    /// Constant: in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
    /// Uniform: in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ms: Option<u32>,
    /// Uniform: in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ms: Option<u32>,
    /// Normal: in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_ms: Option<f64>,
    /// Normal: the standard deviation, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    deviation_ms: Option<f64>,
    /// Log-normal: in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    median_ms: Option<f64>,
    /// Log-normal: the standard deviation of the natural logarithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    sigma: Option<f64>,
    per: Per,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Constant,
    Uniform,
    Normal,
    LogNormal,
}

impl Default for Latency {
    /// 20 to 100 ms, a network of nodes on one or two continents.
    fn default() -> Self {
        Self::uniform(20, 100)
    }
}

impl Latency {
    /// Each link's drawn evenly between two, in milliseconds.
    pub fn uniform(min_ms: u32, max_ms: u32) -> Self {
        Self { distribution: Distribution::Uniform { min_ms, max_ms }, per: Per::Link }
    }

    /// One draw, in microseconds.
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        let micros = |ms: f64| (ms.clamp(0.0, f64::from(LATENCY_LIMIT_MS)) * 1_000.0).round() as u64;
        match self.distribution {
            Distribution::Constant { ms } => micros(ms),
            Distribution::Uniform { min_ms, max_ms } => {
                random.random_range(u64::from(min_ms) * 1_000..=u64::from(max_ms.max(min_ms)) * 1_000)
            }
            Distribution::Normal { mean_ms, deviation_ms } => {
                let normal =
                    Normal::new(mean_ms, deviation_ms).expect("a deviation is checked to be finite and not negative");
                micros(normal.sample(random))
            }
            Distribution::LogNormal { median_ms, sigma } => {
                let normal =
                    LogNormal::new(median_ms.ln(), sigma).expect("sigma is checked to be finite and not negative");
                micros(normal.sample(random))
            }
        }
    }
}

impl TryFrom<LatencyFields> for Latency {
    type Error = String;

    fn try_from(fields: LatencyFields) -> Result<Self, String> {
        let LatencyFields { ms, min_ms, max_ms, mean_ms, deviation_ms, median_ms, sigma, per, .. } = fields;
        let name = fields.distribution.unwrap_or(Name::Uniform);
        let given = [
            ("ms", ms.is_some(), Name::Constant),
            ("min_ms", min_ms.is_some(), Name::Uniform),
            ("max_ms", max_ms.is_some(), Name::Uniform),
            ("mean_ms", mean_ms.is_some(), Name::Normal),
            ("deviation_ms", deviation_ms.is_some(), Name::Normal),
            ("median_ms", median_ms.is_some(), Name::LogNormal),
            ("sigma", sigma.is_some(), Name::LogNormal),
        ];
        for (key, given, of) in given {
            match (given, of == name) {
                (true, false) => return Err(format!("`{key}` is not of this distribution, but of `{}`", text(of))),
                (false, true) => return Err(format!("missing field `{key}` of a `{}` latency", text(name))),
                _ => {}
            }
        }
        let distribution = match name {
            Name::Constant => Distribution::Constant { ms: number("ms", ms, 0.0)? },
            Name::Uniform => {
                let (min_ms, max_ms) = (min_ms.unwrap_or_default(), max_ms.unwrap_or_default());
                if min_ms > max_ms || max_ms > LATENCY_LIMIT_MS {
                    let allowed = format!("min_ms <= max_ms <= {LATENCY_LIMIT_MS}");
                    return Err(format!("found min_ms = {min_ms} and max_ms = {max_ms}, allowed is {allowed}"));
                }
                Distribution::Uniform { min_ms, max_ms }
            }
            Name::Normal => Distribution::Normal {
                mean_ms: number("mean_ms", mean_ms, 0.0)?,
                deviation_ms: number("deviation_ms", deviation_ms, 0.0)?,
            },
            Name::LogNormal => Distribution::LogNormal {
                median_ms: number("median_ms", median_ms, 0.001)?,
                sigma: number("sigma", sigma, 0.0)?,
            },
        };
        Ok(Self { distribution, per })
    }
}

impl From<Latency> for LatencyFields {
    fn from(latency: Latency) -> Self {
        let fields = Self { per: latency.per, ..Self::default() };
        match latency.distribution {
            Distribution::Constant { ms } => Self { distribution: Some(Name::Constant), ms: Some(ms), ..fields },
            Distribution::Uniform { min_ms, max_ms } => {
                Self { distribution: Some(Name::Uniform), min_ms: Some(min_ms), max_ms: Some(max_ms), ..fields }
            }
            Distribution::Normal { mean_ms, deviation_ms } => Self {
                distribution: Some(Name::Normal),
                mean_ms: Some(mean_ms),
                deviation_ms: Some(deviation_ms),
                ..fields
            },
            Distribution::LogNormal { median_ms, sigma } => {
                Self { distribution: Some(Name::LogNormal), median_ms: Some(median_ms), sigma: Some(sigma), ..fields }
            }
        }
    }
}

fn number(key: &str, value: Option<f64>, least: f64) -> Result<f64, String> {
    let value = value.unwrap_or_default();
    if (least..=f64::from(LATENCY_LIMIT_MS)).contains(&value) {
        return Ok(value);
    }
    Err(format!("found {key} = {value}, allowed is {least} to {LATENCY_LIMIT_MS}"))
}

fn text(name: Name) -> &'static str {
    match name {
        Name::Constant => "constant",
        Name::Uniform => "uniform",
        Name::Normal => "normal",
        Name::LogNormal => "log-normal",
    }
}
