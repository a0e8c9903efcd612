//! The time that a message takes: a distribution, drawn once for each link or anew for each message.

use rand::Rng;
use rand_distr::{Distribution as _, LogNormal, Normal, OpenClosed01};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A latency that no link exceeds \[ms\].
pub(crate) const LATENCY_LIMIT_MS: u32 = 600_000;
/// The least mean of a Pareto latency \[ms\]: its mean is finite above 5.
pub(crate) const PARETO_LEAST_MS: f64 = 5.1;
/// The greatest `sigma`: half of all are then more than 800 times the median, or less than an 800th of it.
const SIGMA_LIMIT: f64 = 10.0;
/// The distance of a Pareto latency's scale from its mean \[ms\].
const PARETO_OFFSET_MS: f64 = 5.0;
/// The shape of a Pareto latency, in parts of its mean.
const PARETO_SHAPE: f64 = 0.2;

/// Latency of links. In a file the distribution may be left out where `min_ms` and `max_ms` say it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LatencyFields", into = "LatencyFields")]
#[schemars(with = "LatencyFields")]
pub struct Latency {
    /// The distribution that latencies are drawn from.
    pub distribution: Distribution,
    /// The scope of a draw: a link for the whole run, or a single message.
    pub per: Per,
}

/// A distribution of durations. Negative draws become 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same, in milliseconds.
    Constant { ms: f64 },
    /// Evenly between two, in milliseconds.
    Uniform { min_ms: u32, max_ms: u32 },
    /// Around a mean, in milliseconds.
    Normal { mean_ms: f64, deviation_ms: f64 },
    /// Half of all are below the median; `sigma` is the standard deviation of the logarithm. Latencies across the internet look like this.
    LogNormal { median_ms: f64, sigma: f64 },
    /// Around a mean, in milliseconds: (mean - 5) / U^(1 / (0.2 mean)), where U is even between 0 and 1. So SimBlock draws latencies
    /// (Y. Aoki et al., SimBlock: a blockchain network simulator, 2019).
    Pareto { mean_ms: f64 },
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

/// A latency that was measured, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// TCP over a network that loses a fifth of all packets and takes 20 ± 10 ms one way: it sends them again, so their loss is
    /// latency. Log-normal for each message, with a median of 50 ms and a sigma of 1.3. Pings of real nodes took 108 ms (median),
    /// 745 ms (nine in ten no longer) and 1,507 ms (99 in 100) there and back; these take 136, 499 and 1,580 ms.
    #[serde(rename = "tcp-loss-20")]
    TcpLoss20,
}

impl Profile {
    /// The latency that it stands for.
    pub fn latency(self) -> Latency {
        match self {
            Self::TcpLoss20 => {
                Latency { distribution: Distribution::LogNormal { median_ms: 50.0, sigma: 1.3 }, per: Per::Message }
            }
        }
    }
}

/// [`Latency`] in the form of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LatencyFields {
    /// A measured latency by name, instead of all else.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Profile>,
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
    /// Normal and Pareto: in milliseconds. Pareto: 5.1 or more.
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
    /// Each link has one of its own, by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<Per>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Constant,
    Uniform,
    Normal,
    LogNormal,
    Pareto,
}

impl Default for Latency {
    /// 20 to 100 ms, a network of nodes on one or two continents.
    fn default() -> Self {
        Self::uniform(20, 100)
    }
}

impl Latency {
    /// A latency that each link draws evenly between two limits, in milliseconds.
    pub fn uniform(min_ms: u32, max_ms: u32) -> Self {
        Self { distribution: Distribution::Uniform { min_ms, max_ms }, per: Per::Link }
    }

    /// One draw, in microseconds.
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        self.distribution.draw(random)
    }
}

impl Distribution {
    /// One draw, in microseconds.
    pub fn draw(self, random: &mut impl Rng) -> u64 {
        let micros = |ms: f64| (ms.clamp(0.0, f64::from(LATENCY_LIMIT_MS)) * 1_000.0).round() as u64;
        match self {
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
            Distribution::Pareto { mean_ms } => {
                let even: f64 = random.sample(OpenClosed01);
                micros((mean_ms - PARETO_OFFSET_MS) / even.powf(1.0 / (PARETO_SHAPE * mean_ms)))
            }
        }
    }
}

impl TryFrom<LatencyFields> for Latency {
    type Error = String;

    fn try_from(fields: LatencyFields) -> Result<Self, String> {
        if let Some(profile) = fields.profile {
            return match fields == (LatencyFields { profile: Some(profile), ..LatencyFields::default() }) {
                true => Ok(profile.latency()),
                false => Err("`profile` says all of a latency, and other keys stand beside it".to_owned()),
            };
        }
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
            let of = if of == Name::Normal && key == "mean_ms" && name == Name::Pareto { name } else { of };
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
                sigma: match sigma.unwrap_or_default() {
                    sigma if (0.0..=SIGMA_LIMIT).contains(&sigma) => sigma,
                    sigma => return Err(format!("found sigma = {sigma}, allowed is 0 to {SIGMA_LIMIT}")),
                },
            },
            Name::Pareto => Distribution::Pareto { mean_ms: number("mean_ms", mean_ms, PARETO_LEAST_MS)? },
        };
        Ok(Self { distribution, per: per.unwrap_or_default() })
    }
}

impl From<Latency> for LatencyFields {
    fn from(latency: Latency) -> Self {
        let fields = Self { per: Some(latency.per), ..Self::default() };
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
            Distribution::Pareto { mean_ms } => {
                Self { distribution: Some(Name::Pareto), mean_ms: Some(mean_ms), ..fields }
            }
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
        Name::Pareto => "pareto",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SeedTree;

    /// A tenth, half and so on of round trips: of pings between seven real nodes whose network lost a fifth of all packets.
    const REAL_MS: [(f64, f64); 3] = [(0.5, 108.0), (0.9, 745.0), (0.99, 1_507.0)];
    /// The same of the profile, as its description says.
    const PROFILE_MS: [(f64, f64); 3] = [(0.5, 136.0), (0.9, 499.0), (0.99, 1_580.0)];

    #[test]
    fn the_profile_of_lost_packets_has_round_trips_near_those_of_real_nodes() {
        let latency = Profile::TcpLoss20.latency();
        assert_eq!(latency.per, Per::Message, "each message is lost or not by itself");
        let mut random = SeedTree::new(1).stream("round trips");
        let mut trips: Vec<u64> = (0..200_000).map(|_| latency.draw(&mut random) + latency.draw(&mut random)).collect();
        trips.sort_unstable();
        for ((quantile, real), (_, said)) in REAL_MS.into_iter().zip(PROFILE_MS) {
            let found = trips[(trips.len() as f64 * quantile) as usize] as f64 / 1_000.0;
            assert!((found - said).abs() < 0.03 * said, "{quantile}: {found} ms, and {said} are documented");
            assert!((found - real).abs() < 0.35 * real, "{quantile}: {found} ms, real nodes {real}");
        }
    }

    #[test]
    fn a_profile_says_all_of_a_latency() {
        let read = |text: &str| toml::from_str::<Latency>(text).map_err(|error| error.message().to_owned());
        assert_eq!(read("profile = 'tcp-loss-20'"), Ok(Profile::TcpLoss20.latency()));
        for beside in ["ms = 1", "distribution = 'constant'", "per = 'message'", "sigma = 1.3"] {
            let error = read(&format!("profile = 'tcp-loss-20'\n{beside}")).expect_err(beside);
            assert!(error.contains("`profile` says all"), "{error}");
        }
        let unknown = read("profile = 'tcp-loss-30'").expect_err("no such profile");
        assert!(unknown.contains("tcp-loss-20"), "{unknown}");
        let written = toml::to_string(&Profile::TcpLoss20.latency()).expect("it is a table");
        assert_eq!(read(&written), Ok(Profile::TcpLoss20.latency()), "{written}");
    }
}
