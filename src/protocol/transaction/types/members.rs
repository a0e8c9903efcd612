//! Members of assets that are types of their own.

use crate::protocol::{Address, Arktoshi, PublicKey};

/// A vote for or against a delegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The vote of the sender for this delegate.
    For(PublicKey),
    /// The withdrawal of the vote for this delegate.
    Against(PublicKey),
}

impl Vote {
    /// The delegate the vote is about.
    pub fn delegate(&self) -> &PublicKey {
        match self {
            Self::For(key) | Self::Against(key) => key,
        }
    }

    /// Returns true for a vote, and false for a withdrawal.
    pub fn is_for(&self) -> bool {
        matches!(self, Self::For(_))
    }
}

/// `+` or `-` and the key, as in JSON.
impl std::fmt::Display for Vote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_for() { '+' } else { '-' }, self.delegate())
    }
}

/// One payment of a multipayment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    pub amount: Arktoshi,
    pub recipient: Address,
}

/// The end of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// Type 1: seconds since the epoch.
    EpochTime(u32),
    /// Type 2.
    BlockHeight(u32),
}

impl Expiration {
    /// Type number and value.
    pub fn numbers(self) -> (u8, u32) {
        match self {
            Self::EpochTime(value) => (1, value),
            Self::BlockHeight(value) => (2, value),
        }
    }

    /// From type number and value; `None` for another type than 1 and 2.
    pub fn from_numbers(kind: u8, value: u32) -> Option<Self> {
        match kind {
            1 => Some(Self::EpochTime(value)),
            2 => Some(Self::BlockHeight(value)),
            _ => None,
        }
    }
}
