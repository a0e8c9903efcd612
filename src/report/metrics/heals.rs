//! How long the nodes need, after a fault has ended, until all stand on one block.

use crate::actors::SimTime;
use serde::Serialize;

/// The end of a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heal {
    /// The fault's place in the scenario, from 0.
    pub fault: usize,
    pub kind: String,
    /// When it ended, in microseconds.
    pub at_us: u64,
    /// Virtual seconds from then until all nodes stood on one block; empty if they never did.
    pub converged_seconds: Option<f64>,
}

/// All ends of faults; as many as the scenario has.
#[derive(Default)]
pub struct Heals {
    all: Vec<Heal>,
    open: bool,
}

impl Heals {
    pub(super) fn ended(&mut self, now: SimTime, fault: usize, kind: &str, agree: bool) {
        let converged_seconds = agree.then_some(0.0);
        self.open |= !agree;
        self.all.push(Heal { fault, kind: kind.to_owned(), at_us: now.micros(), converged_seconds });
    }

    /// All nodes stand on one block.
    pub(super) fn agreed(&mut self, now: SimTime) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        for heal in self.all.iter_mut().filter(|heal| heal.converged_seconds.is_none()) {
            heal.converged_seconds = Some(now.since(SimTime::from_micros(heal.at_us)).as_secs_f64());
        }
    }

    pub(super) fn all(&self) -> &[Heal] {
        &self.all
    }

    pub(super) fn longest(&self) -> Option<f64> {
        let mut seconds = self.all.iter().filter_map(|heal| heal.converged_seconds);
        if planted!(LongestHealIsTheLast) { seconds.next_back() } else { seconds.reduce(f64::max) }
    }
}
