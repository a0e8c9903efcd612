//! The watch over the clock: it finds an instant whose events never end.

use super::{World, pending_events::PendingEvents};
use crate::actors::SimTime;

/// The number of inputs after which the world looks whether its clock moves.
pub const INSTANT_LIMIT: u64 = 1 << 24;
/// The number of inputs for each link that an instant may have. All peers ask all others at one instant and hear the answers at another,
/// and a block passes over a link twice.
const INPUTS_A_LINK: u64 = 32;

/// The watch over the clock of a run.
#[derive(Clone, Copy)]
pub(super) struct ClockWatch {
    /// The number of inputs between two looks.
    interval: u64,
    /// The number of delivered inputs at which the next look is due.
    next: u64,
    /// The instant of the last look.
    at: SimTime,
    /// The number of inputs, in whole intervals, for which the clock has stood at that instant.
    stood: u64,
    restless: Option<SimTime>,
}

impl ClockWatch {
    pub fn every(interval: u64) -> Self {
        Self { interval, next: interval, at: SimTime::default(), stood: 0, restless: None }
    }
}

impl World {
    /// The instant whose events do not end, if there is one: actors answer each other without a microsecond between, at least
    /// [`INSTANT_LIMIT`] times. Nothing happens after it.
    pub fn restless(&self) -> Option<SimTime> {
        self.clock_watch.restless
    }

    /// Has the world look after fewer inputs whether its clock moves.
    #[cfg(test)]
    pub(crate) fn look_every(&mut self, inputs: u64) {
        self.clock_watch = ClockWatch::every(inputs);
    }

    /// The number of inputs until [`World::watch_clock`] is due.
    pub(in crate::sim) fn inputs_until_look(&self) -> u64 {
        self.clock_watch.next.saturating_sub(self.delivered)
    }

    /// Looks whether the clock has moved since the last look, if a look is due.
    pub(in crate::sim) fn watch_clock(&mut self) {
        if self.delivered >= self.clock_watch.next {
            self.look_at_clock();
        }
    }

    /// Drops all pending events if the clock stands for longer than any network needs.
    #[cold]
    fn look_at_clock(&mut self) {
        let ClockWatch { interval, at, stood, .. } = self.clock_watch;
        let stood = if at == self.now { stood + interval } else { 0 };
        let links = u64::from(self.plan.least_degree() + 1) * self.plan.nodes.len() as u64;
        let is_restless = stood > 0 && stood >= INPUTS_A_LINK * links;
        let (next, restless) =
            (self.delivered + interval, is_restless.then_some(self.now).or(self.clock_watch.restless));
        self.clock_watch = ClockWatch { interval, next, at: self.now, stood, restless };
        if is_restless {
            self.queue = PendingEvents::default();
            self.observers.iter_mut().for_each(|observer| observer.restless(self.now));
        }
    }
}
