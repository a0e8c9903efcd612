//! Simulated time, a value.

use crate::{ledger::codec::saved, protocol::Timestamp};
use serde::Serialize;
use std::{fmt, ops, time::Duration};

/// An instant of a run: microseconds since the network's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SimTime(u64);

impl SimTime {
    /// The instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The first instant of a second since the epoch.
    pub const fn from_seconds(seconds: Timestamp) -> Self {
        Self(seconds.0 as u64 * 1_000_000)
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The last instant before this one.
    pub const fn just_before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// The instant that is `by` earlier, or the epoch.
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.as_micros() as u64))
    }

    /// Whole seconds since the epoch, which is all the protocol knows of time.
    pub const fn seconds(self) -> Timestamp {
        let seconds = self.0 / 1_000_000;
        Timestamp(if seconds > u32::MAX as u64 { u32::MAX } else { seconds as u32 })
    }

    /// The time since an earlier instant; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The time since an earlier instant in seconds: the float nearest to the microseconds, so that it prints with six decimals at
    /// most. `Duration::as_secs_f64` rounds twice.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e6
    }
}

impl ops::Add<Duration> for SimTime {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        let seconds = duration.as_secs().saturating_mul(1_000_000);
        Self(self.0.saturating_add(seconds).saturating_add(duration.subsec_micros().into()))
    }
}

/// Seconds with milliseconds, as `16.250s`.
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000, self.0 / 1_000 % 1_000)
    }
}

saved!(struct SimTime(micros));
