//! Values that a scenario may not have, and the checks of numbers.

use crate::{protocol::Arktoshi, sim::network::SHARE_LIMIT};
use std::{fmt::Display, ops::RangeInclusive};

/// A value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its path in the file.
    pub key: String,
    pub found: String,
    pub allowed: String,
}

pub(super) type CheckResult = Result<(), Mistake>;

impl Mistake {
    /// Makes the mistake of a key, from the value found and the allowed values.
    pub fn new(key: impl Into<String>, found: impl Display, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), found: found.to_string(), allowed: allowed.into() }
    }
}

pub(super) fn join(key: &str, part: &str) -> String {
    if part.is_empty() { key.to_owned() } else { format!("{key}.{part}") }
}

/// A number within limits.
pub(crate) fn within(key: &str, found: u32, allowed: RangeInclusive<u32>) -> CheckResult {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (low, high) = allowed.into_inner();
    Err(Mistake::new(key, found, if low == high { low.to_string() } else { format!("{low} to {high}") }))
}

/// Checks a part of a whole, from 0 to 1.
pub(crate) fn ratio(key: &str, found: f64) -> CheckResult {
    if (0.0..=1.0).contains(&found) { Ok(()) } else { Err(Mistake::new(key, found, "0 to 1")) }
}

/// Checks a share among other shares, which need not sum to 1.
pub(crate) fn share(key: &str, found: f64) -> CheckResult {
    if (0.0..=SHARE_LIMIT).contains(&found) {
        Ok(())
    } else {
        Err(Mistake::new(key, found, format!("0 to {SHARE_LIMIT}")))
    }
}

/// Checks a rate a second.
pub(crate) fn rate(key: &str, found: f64) -> CheckResult {
    let allowed = 1e-6..=1e4;
    if allowed.contains(&found) { Ok(()) } else { Err(Mistake::new(key, found, "0.000001 to 10000 a second")) }
}

/// Checks an amount in arktoshi, which is at most [`Arktoshi::MAX`].
pub(crate) fn amount(key: &str, found: u64, least: u64) -> CheckResult {
    let most = Arktoshi::MAX.value();
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Mistake::new(key, found, format!("{least} to {most} arktoshi")))
}
