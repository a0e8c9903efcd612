//! The time that the live nodes need, after a fault has ended, until all stand on one block.

use crate::actors::SimTime;
use serde::Serialize;

/// The end of a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heal {
    /// The fault's place in the scenario, from 0.
    pub fault: usize,
    pub kind: String,
    /// The time at which it ended, in microseconds.
    pub at_us: u64,
    /// Virtual seconds from then to the first instant at which all live nodes stood on one block; empty where the run ended
    /// before: the time is longer than `observed_seconds` (right-censored).
    pub converged_seconds: Option<f64>,
    /// Virtual seconds for which that was watched: `converged_seconds`, or the time to the end of the run.
    pub observed_seconds: f64,
}

/// The time for which a fault was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InForce {
    /// The fault's place in the scenario, from 0.
    pub fault: usize,
    pub kind: String,
    /// The time at which it began, in microseconds.
    pub began_us: u64,
    /// The time at which it ended; empty if the run ended before. A fault that is over at once ends when it begins.
    pub ended_us: Option<u64>,
}

/// The ends of all faults that have ended, and the times in which faults were in force.
#[derive(Default)]
pub(crate) struct Heals {
    all: Vec<Heal>,
    faults: Vec<InForce>,
    open: bool,
}

impl Heals {
    pub(super) fn began(&mut self, now: SimTime, fault: usize, kind: &str) {
        self.faults.push(InForce { fault, kind: kind.to_owned(), began_us: now.micros(), ended_us: None });
    }

    pub(super) fn ended(&mut self, now: SimTime, fault: usize, kind: &str, converged: bool) {
        let converged_seconds = converged.then_some(0.0);
        self.open |= !converged;
        for begun in self.faults.iter_mut().filter(|begun| begun.fault == fault && begun.ended_us.is_none()) {
            begun.ended_us = Some(now.micros());
        }
        let (kind, at_us) = (kind.to_owned(), now.micros());
        self.all.push(Heal { fault, kind, at_us, converged_seconds, observed_seconds: 0.0 });
    }

    /// Records that all live nodes stand on one block.
    pub(super) fn converged(&mut self, now: SimTime) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        for heal in self.all.iter_mut().filter(|heal| heal.converged_seconds.is_none()) {
            heal.observed_seconds = heal.since(now);
            heal.converged_seconds = Some(heal.observed_seconds);
        }
    }

    /// Records the end of the run.
    pub(super) fn finish(&mut self, end: SimTime) {
        for heal in self.all.iter_mut().filter(|heal| heal.converged_seconds.is_none()) {
            heal.observed_seconds = heal.since(end);
        }
    }

    pub(super) fn all(&self) -> &[Heal] {
        &self.all
    }

    pub(super) fn faults(&self) -> &[InForce] {
        &self.faults
    }

    /// The longest time to converge. `None` if one of the times is censored.
    pub(super) fn longest(&self) -> Option<f64> {
        let times: Option<Vec<f64>> = self.all.iter().map(|heal| heal.converged_seconds).collect();
        times?.into_iter().reduce(f64::max)
    }

    pub(super) fn longest_watched(&self) -> Option<f64> {
        self.all.iter().map(|heal| heal.observed_seconds).reduce(f64::max)
    }
}

impl Heal {
    /// Returns the result in words.
    pub fn in_words(&self) -> String {
        let Self { fault, kind, converged_seconds, observed_seconds, .. } = self;
        match converged_seconds {
            Some(seconds) => {
                format!("{seconds:.1} s after the end of fault {fault} ({kind}) all live nodes stood on one block")
            }
            None => format!(
                "the run ended {observed_seconds:.1} s after the end of fault {fault} ({kind}), before all live nodes stood on one \
                 block: censored"
            ),
        }
    }

    fn since(&self, now: SimTime) -> f64 {
        now.seconds_since(SimTime::from_micros(self.at_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_time_that_the_end_of_the_run_cuts_off_is_told_as_longer_than_what_was_watched() {
        let mut heals = Heals::default();
        assert_eq!((heals.longest(), heals.longest_watched()), (None, None));
        heals.ended(at(10), 0, "crash", true);
        heals.ended(at(20), 1, "pause", false);
        heals.converged(at(26));
        heals.converged(at(27));
        assert_eq!((heals.longest(), heals.longest_watched()), (Some(6.0), Some(6.0)));
        heals.ended(at(30), 2, "partition", false);
        heals.finish(at(100));
        let times: Vec<_> = heals.all().iter().map(|heal| (heal.converged_seconds, heal.observed_seconds)).collect();
        assert_eq!(times, [(Some(0.0), 0.0), (Some(6.0), 6.0), (None, 70.0)]);
        assert_eq!((heals.longest(), heals.longest_watched()), (None, Some(70.0)));
    }

    #[test]
    fn a_fault_is_in_force_from_its_begin_to_its_end_or_the_run_s() {
        let mut heals = Heals::default();
        heals.began(at(5), 0, "partition");
        heals.began(at(7), 1, "crash");
        heals.ended(at(9), 0, "partition", true);
        let spans: Vec<_> = heals.faults().iter().map(|span| (span.fault, span.began_us, span.ended_us)).collect();
        assert_eq!(spans, [(0, 5_000_000, Some(9_000_000)), (1, 7_000_000, None)]);
    }
}
