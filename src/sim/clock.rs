//! A node's clock. It shows the run's time unless it is skewed.

use crate::{actors::SimTime, ledger::codec::saved};

/// A clock that is off by an offset and runs too fast or too slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The true instant from which the drift counts.
    since: SimTime,
    /// The lead over true time at `since`, in microseconds. Negative if the clock is behind.
    offset: i64,
    /// Microseconds gained in a second.
    drift_ppm: i32,
}

impl Clock {
    /// A clock that is ahead by `offset` microseconds now, and gains `drift_ppm` microseconds a second from now on.
    pub fn new(now: SimTime, offset: i64, drift_ppm: i32) -> Self {
        Self { since: now, offset, drift_ppm }
    }

    /// Returns true if the clock shows the true time.
    pub fn is_true(&self) -> bool {
        self.offset == 0 && self.drift_ppm == 0
    }

    /// Returns the time that the clock shows at a true instant, at least the epoch.
    pub fn local(&self, now: SimTime) -> SimTime {
        if self.is_true() {
            return now;
        }
        let now = i128::from(now.micros());
        let gained = (now - i128::from(self.since.micros())) * i128::from(self.drift_ppm) / 1_000_000;
        let local = now + i128::from(self.offset) + gained;
        SimTime::from_micros(u64::try_from(local.max(0)).unwrap_or(u64::MAX))
    }

    /// Returns the first true instant at which the clock shows `local` or a later time.
    pub fn global(&self, local: SimTime) -> SimTime {
        // A clock that is behind shows the epoch from the first instant on.
        if self.is_true() || [0, u64::MAX].contains(&local.micros()) {
            return local;
        }
        let since = i128::from(self.since.micros());
        let passed = i128::from(local.micros()) - since - i128::from(self.offset);
        let scaled = passed * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm)).max(1);
        // The division rounds: the true instant is this one or one of the next two.
        let near = (since + scaled - 1).max(0);
        let mut near = (0..4).map(|step| SimTime::from_micros(u64::try_from(near + step).unwrap_or(u64::MAX)));
        near.clone().find(|at| self.local(*at) >= local).or(near.next_back()).unwrap_or(local)
    }

    /// Returns the clock with a further offset and drift from now on.
    pub fn skewed(&self, now: SimTime, offset: i64, drift_ppm: i32) -> Self {
        let ahead = i128::from(self.local(now).micros()) - i128::from(now.micros());
        let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
        Self::new(now, ahead.saturating_add(offset), self.drift_ppm.saturating_add(drift_ppm))
    }
}

saved!(struct Clock { since, offset, drift_ppm });

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> SimTime {
        SimTime::from_micros((seconds * 1e6) as u64)
    }

    #[test]
    fn offset_and_drift_add_up() {
        let clock = Clock::new(at(100.0), 2_000_000, 500);
        assert_eq!(clock.local(at(100.0)), at(102.0));
        assert_eq!(clock.local(at(1_100.0)), at(1_102.5), "half a millisecond a second, over a thousand seconds");
        let slow = Clock::default().skewed(at(10.0), -3_000_000, 0);
        assert_eq!((slow.local(at(10.0)), slow.local(at(1.0))), (at(7.0), at(0.0)));
    }

    #[test]
    fn a_wake_up_comes_when_the_clock_shows_it_and_not_before() {
        for (offset, drift) in [(0, 0), (1_234_567, 300), (-5_000_000, -700), (17, 99_999), (-3, -99_999)] {
            let clock = Clock::new(at(50.0), offset, drift);
            for wanted in (60..1_000).map(|second| SimTime::from_micros(second * 1_000_003)) {
                let global = clock.global(wanted);
                assert!(clock.local(global) >= wanted, "{clock:?} {wanted}");
                let before = SimTime::from_micros(global.micros() - 1);
                assert!(
                    clock.local(before) < wanted || clock.local(before) == clock.local(global),
                    "{clock:?} {wanted}"
                );
            }
        }
    }
}
