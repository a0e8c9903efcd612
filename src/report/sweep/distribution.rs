//! A varied value of a study and its distribution: `network.loss=uniform(0,0.3)`.

use crate::scenario::{Override, overrides::split_values};
use statrs::distribution::{ContinuousCDF, Normal};
use std::str::FromStr;

/// A path and the distribution of its values.
#[derive(Clone, Debug)]
pub(crate) struct VariedValue {
    pub path: String,
    distribution: Distribution,
}

#[derive(Clone, Debug)]
enum Distribution {
    Uniform(f64, f64),
    /// Its logarithm is uniform.
    LogUniform(f64, f64),
    /// Whole numbers, including both ends.
    Integer(i64, i64),
    Normal(Normal),
    /// These words, each with the same probability.
    Choice(Vec<String>),
}

/// The allowed forms, in words.
const ALLOWED: &str = "allowed is PATH= and one of uniform(LOW,HIGH), log-uniform(LOW,HIGH) above 0, integer(LOW,HIGH) less than 8388608 apart, \
                       normal(MEAN,DEVIATION) and choice(VALUE,VALUE), such as network.loss=uniform(0,0.3)";
/// The greatest range of whole numbers: the points of a sequence have 24 bits.
const INTEGERS: i64 = 1 << 23;
/// The least distance of a share from 0 and from 1, where a normal value is infinite.
const LEAST: f64 = 1.0 / (1 << 25) as f64;

impl FromStr for VariedValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| format!("found '{text}'{why}, {ALLOWED}");
        let (path, rest) = text.split_once('=').ok_or_else(|| refused(""))?;
        let (name, values) =
            rest.trim().strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(|| refused(""))?;
        let values: Vec<&str> = split_values(values).into_iter().map(str::trim).collect();
        // An invalid path is reported before a table is made.
        let path = Override::new(path, "0").map_err(|why| refused(&format!(" ({why})")))?.path();
        let distribution = Distribution::of(name.trim(), &values).ok_or_else(|| refused(""))?;
        Ok(Self { path, distribution })
    }
}

impl Distribution {
    fn of(name: &str, values: &[&str]) -> Option<Self> {
        if name == "choice" {
            let is_whole = values.len() > 1 && values.iter().all(|value| !value.is_empty());
            return is_whole.then(|| Self::Choice(values.iter().map(|value| (*value).to_owned()).collect()));
        }
        let [first, second] = values else { return None };
        if name == "integer" {
            let (low, high) = (first.parse::<i64>().ok()?, second.parse::<i64>().ok()?);
            let fits = high.checked_sub(low).is_some_and(|range| (1..INTEGERS).contains(&range));
            return fits.then_some(Self::Integer(low, high));
        }
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (first, second) = (number(first)?, number(second)?);
        match name {
            "uniform" if first < second => Some(Self::Uniform(first, second)),
            "log-uniform" if 0.0 < first && first < second => Some(Self::LogUniform(first, second)),
            "normal" if second > 0.0 && (first.abs() + 10.0 * second).is_finite() => {
                Normal::new(first, second).ok().map(Self::Normal)
            }
            _ => None,
        }
    }
}

impl VariedValue {
    /// The value at a quantile from 0 to 1, as text of a scenario.
    pub fn at(&self, share: f64) -> String {
        // The number always has a point or an exponent, so it is a float in TOML.
        let number = |value: f64| format!("{value:?}");
        match &self.distribution {
            Distribution::Uniform(low, high) => number(low * (1.0 - share) + high * share),
            Distribution::LogUniform(low, high) => {
                number((low.ln() + share * (high / low).ln()).exp().clamp(*low, *high))
            }
            Distribution::Integer(low, high) => {
                let count = (high - low) as f64 + 1.0;
                (low + (share * count) as i64).min(*high).to_string()
            }
            Distribution::Normal(normal) => number(normal.inverse_cdf(share.clamp(LEAST, 1.0 - LEAST))),
            Distribution::Choice(words) => words[((share * words.len() as f64) as usize).min(words.len() - 1)].clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, share: f64) -> String {
        text.parse::<VariedValue>().expect("it is one").at(share)
    }

    #[test]
    fn shares_become_values() {
        assert_eq!((at("a=uniform(1,3)", 0.0), at("a=uniform(1,3)", 0.25)), ("1.0".into(), "1.5".into()));
        assert_eq!(at("a=log-uniform(1, 100)", 0.5).parse::<f64>().map(|value| (value * 1e9).round()), Ok(1e10));
        let integers: Vec<String> = (0..8).map(|eighth| at("a=integer(-1,2)", f64::from(eighth) / 8.0)).collect();
        assert_eq!(integers, ["-1", "-1", "0", "0", "1", "1", "2", "2"]);
        assert_eq!(at("rules.base=choice(reference,corrected)", 0.49), "reference");
        assert_eq!(at("rules.base=choice(reference,corrected)", 1.0), "corrected");
        assert_eq!(at("a=choice([1, 2],{ b = 3, c = 4 })", 0.6), "{ b = 3, c = 4 }");
        assert!(
            at("a=uniform(-1e308,1.7e308)", 0.5).parse::<f64>().is_ok_and(|value| (value / 3.5e307 - 1.0).abs() < 1e-9)
        );
        assert_eq!("fault[00].rounds=integer(1,2)".parse::<VariedValue>().expect("it is one").path, "fault[0].rounds");
        // The point that a standard normal number is below with a chance of 97.5 %.
        let normal: f64 = at("a=normal(10,2)", 0.975).parse().expect("a number");
        assert!((normal - (10.0 + 2.0 * 1.959_963_984_540_054)).abs() < 1e-9);
        assert!(at("a=normal(10,2)", 0.0).parse::<f64>().is_ok_and(|value| value > -2.0));
    }

    #[test]
    fn what_is_no_distribution_says_what_is() {
        for wrong in [
            "",
            "a",
            "a=",
            "a=1..2",
            "a=uniform",
            "a=uniform()",
            "a=uniform(1)",
            "a=uniform(2,1)",
            "a=uniform(1,nan)",
            "a=uniform(1,2,3)",
            "a=log-uniform(0,1)",
            "a=integer(0.5,2)",
            "a=integer(3,3)",
            "a=integer(0,8388608)",
            "a=normal(0,1e308)",
            "a=b=uniform(0,1)",
            "a=normal(1,0)",
            "a=choice(x)",
            "a=choice(x,)",
            "a[b=uniform(0,1)",
            "=uniform(0,1)",
            "a=poisson(1,2)",
            "a=integer(-9223372036854775808,9223372036854775807)",
        ] {
            let why = wrong.parse::<VariedValue>().expect_err(wrong);
            assert!(why.contains(&format!("found '{wrong}'")) && why.contains("uniform(LOW,HIGH)"), "{why}");
        }
    }
}
