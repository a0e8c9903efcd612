//! Signed amounts of coin: the balances of wallets and the vote weights of delegates.

use crate::protocol::Arktoshi;
use serde::Serialize;
use std::{fmt, iter::Sum, ops};

/// A signed amount in arktoshi. The genesis sender's balance is legitimately negative, and sums pass 2^63, so this is
/// wide enough never to overflow. Source: consensus.md, notation; protocol.md 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Balance(pub i128);

impl Balance {
    /// The amount zero.
    pub const ZERO: Self = Self(0);

    /// The amount in arktoshi, clamped to the range from 0 to `u64::MAX`.
    pub fn or_zero(self) -> u64 {
        u64::try_from(self.0.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns true if it is below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }
}

impl From<Arktoshi> for Balance {
    fn from(amount: Arktoshi) -> Self {
        Self(amount.value().into())
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The form of the API: a decimal string.
impl Serialize for Balance {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<T: Into<Balance>> ops::Add<T> for Balance {
    type Output = Self;
    fn add(self, other: T) -> Self {
        Self(self.0 + other.into().0)
    }
}

impl<T: Into<Balance>> ops::Sub<T> for Balance {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        Self(self.0 - other.into().0)
    }
}

impl<T: Into<Balance>> ops::AddAssign<T> for Balance {
    fn add_assign(&mut self, other: T) {
        self.0 += other.into().0;
    }
}

impl<T: Into<Balance>> ops::SubAssign<T> for Balance {
    fn sub_assign(&mut self, other: T) {
        self.0 -= other.into().0;
    }
}

impl Sum for Balance {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, ops::Add::add)
    }
}
