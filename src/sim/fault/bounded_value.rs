//! The parameters of a fault or a policy other than its lists of nodes. `scenario::ground` checks whether a run allows
//! them.

use super::{durations::Durations, rounds::Rounds};
use std::ops::RangeInclusive;

/// A parameter of a fault or a policy, with its allowed range if that does not depend on the run.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundedValue<'a> {
    /// A whole number.
    Number(u32, RangeInclusive<u32>),
    /// A part of a whole, from 0 to 1.
    Part(f64),
    /// A rate of transactions a second.
    Rate(f64),
    /// An amount in arktoshi.
    Amount(u64),
    /// Durations in seconds.
    Durations(&'a Durations),
    /// Rounds of the run.
    Rounds(&'a Rounds),
    /// A round of the run, which is not the first.
    LaterRound(u32),
    /// A number of funded accounts.
    Accounts(u32),
    /// A delegate, by name.
    Delegate(&'a str),
    /// An account or a delegate, by name or address.
    Party(&'a str),
    /// Members that do not go together: what was found and what is allowed.
    Clash {
        /// The clash in words, such as `both` or `neither`.
        found: &'static str,
        /// The allowed choice, such as `groups or share`.
        allowed: &'static str,
    },
}
