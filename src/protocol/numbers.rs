//! Numbers that could be mixed up, each with its own type.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number! {
    /// Height of a block; the genesis block has height 1. Source: protocol.md 4.1.
    Height(u32)
}
number! {
    /// Number of a slot since the epoch: `timestamp / blocktime`. Source: protocol.md 5.1.
    Slot(u32)
}
number! {
    /// Number of a round, counted in blocks from 1. Source: consensus.md 1.1.
    RoundNumber(u32)
}
number! {
    /// Seconds since the epoch of milestone 1. Source: protocol.md 5.1.
    Timestamp(u32)
}
number! {
    /// Running number of a sender's transactions, the first is 1. Source: consensus.md 4.4.
    Nonce(u64)
}

impl Height {
    /// Height of the genesis block.
    pub const GENESIS: Self = Self(1);

    /// The height of the next block.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Nonce {
    /// The nonce that follows this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An amount of coin in arktoshi, 0..=2^63-1; 1 coin is 100,000,000 arktoshi. Source: protocol.md 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arktoshi(u64);

impl Arktoshi {
    /// The amount zero.
    pub const ZERO: Self = Self(0);
    /// The largest amount a transaction can carry, 2^63-1.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The amount, or `None` past [`Arktoshi::MAX`].
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The amount of `coins` whole coins; saturates at [`Arktoshi::MAX`].
    pub const fn coins(coins: u64) -> Self {
        match coins.checked_mul(100_000_000) {
            Some(value) if value <= Self::MAX.0 => Self(value),
            _ => Self::MAX,
        }
    }

    /// The plain number of arktoshi.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The sum, or `None` past [`Arktoshi::MAX`].
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).and_then(Self::new)
    }

    /// The sum of many, or `None` past [`Arktoshi::MAX`].
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }
}

impl fmt::Display for Arktoshi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The form of the chain's JSON: a decimal string.
impl Serialize for Arktoshi {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
