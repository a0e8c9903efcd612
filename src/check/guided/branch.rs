//! A run up to a state, and its continuations.

use super::states::Place;
use crate::{
    check::swarm::{self, Frame, ModelledRuns},
    scenario::Scenario,
    sim::{Fault, FaultKind, Trigger},
};
use std::{collections::BTreeMap, sync::Arc};

/// The shortest time for which a branch continues, as a fraction of the time in which a drawn run has its faults.
const SHORTEST: f64 = 0.5;
/// The last fault of a branch is over before this multiple of that time.
const LATEST: f64 = 2.0;

/// A run that came to a state.
pub(super) struct Branch {
    pub scenario: Arc<Scenario>,
    pub place: Place,
    /// When each of its faults began, by its index. Seconds from the start of the run.
    pub begun: Arc<BTreeMap<usize, f64>>,
}

impl Branch {
    /// Returns true if too little of a run is left behind the state.
    pub(super) fn is_too_late(&self, frame: &Frame) -> bool {
        self.place.at > (LATEST - SHORTEST) * self.troubled(frame)
    }

    /// The run up to its state, followed by what is drawn for a seed. `None` if no fault is.
    pub(super) fn draw(&self, frame: &Frame, seed: u64) -> Option<Scenario> {
        let (troubled, at) = (self.troubled(frame), self.place.at);
        let window = (troubled - at).max(SHORTEST * troubled);
        let beginning = self.beginning(frame);
        let (faults, actions) = (beginning.faults.len(), beginning.actions.len());
        // Only a run that was drawn for it as a whole is compared with the model of a node.
        let around = Frame { base: Some(beginning), behaviour: ModelledRuns::Never, ..frame.clone() };
        let mut scenario = swarm::draw(&around, seed);
        if scenario.faults.len() == faults {
            return None;
        }
        scenario.description =
            format!("drawn from seed {seed} of a guided search, behind the first {at} s of an earlier run");
        let later = Later {
            at,
            height: self.place.height.0,
            window,
            scale: window / troubled,
            slot: f64::from(scenario.network.block_time_s),
            seats: scenario.network.delegates,
        };
        scenario.faults.iter_mut().skip(faults).for_each(|fault| later.shift(fault));
        for action in scenario.actions.iter_mut().skip(actions) {
            action.height = later.height(action.height);
        }
        swarm::make_room(&mut scenario, ((at + window) / later.slot).ceil() as u32);
        Some(scenario)
    }

    /// Seconds in which a drawn run has its faults.
    fn troubled(&self, frame: &Frame) -> f64 {
        let network = &self.scenario.network;
        f64::from(network.block_time_s) * f64::from(swarm::troubled_slots(frame, network))
    }

    /// The faults and actions that had begun by then. Everything of the scenario that is searched around stays, too.
    fn beginning(&self, frame: &Frame) -> Scenario {
        let mut scenario = Scenario::clone(&self.scenario);
        let (faults, actions) = frame.base.as_ref().map_or((0, 0), |base| (base.faults.len(), base.actions.len()));
        let mut index = 0..;
        scenario.faults.retain(|_| {
            let index = index.next().unwrap_or_default();
            index < faults || self.begun.get(&index).is_some_and(|begun| *begun <= self.place.at)
        });
        let mut index = 0..;
        scenario.actions.retain(|action| index.next().unwrap_or(0) < actions || action.height <= self.place.height.0);
        scenario
    }
}

/// Moves faults and actions that were drawn for a whole run behind a state.
struct Later {
    /// Seconds from the start of the run.
    at: f64,
    height: u32,
    /// Seconds.
    window: f64,
    scale: f64,
    /// Seconds.
    slot: f64,
    seats: u32,
}

impl Later {
    /// A later height at the same place of a round, as long as the number of delegates stays.
    fn height(&self, drawn: u32) -> u32 {
        let later = self.height + 1 + (f64::from(drawn) * self.scale) as u32;
        later + (drawn % self.seats + self.seats - later % self.seats) % self.seats
    }

    fn shift(&self, fault: &mut Fault) {
        // A height comes with its slot, as long as none is missed.
        let drawn = match fault.from {
            Trigger::HeightAtAny(height) => self.slot * f64::from(height.saturating_sub(1)),
            Trigger::Seconds(from) => from,
            _ => return,
        };
        let begins = self.at + 1.0 + drawn * self.scale;
        if let FaultKind::VoteSwing(swing) = &mut fault.kind {
            swing.round += self.height / self.seats;
        }
        match &mut fault.from {
            Trigger::HeightAtAny(height) => *height = self.height(*height),
            from => *from = Trigger::Seconds(begins),
        }
        if let Some(Trigger::Seconds(until)) = &mut fault.until {
            *until = (begins + *until - drawn).min(self.at + self.window).max(begins + self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::fault::{Boundary, VoteSwing};

    /// The run has come to height 9 of rounds of four after 100 seconds.
    const LATER: Later = Later { at: 100.0, height: 9, window: 60.0, scale: 0.5, slot: 8.0, seats: 4 };

    #[test]
    fn later_heights_keep_their_place_of_a_round() {
        for drawn in 0..100 {
            let later = LATER.height(drawn);
            assert!(later > 9 && later % 4 == drawn % 4 && later < 9 + 1 + drawn / 2 + 4, "{drawn}: {later}");
        }
    }

    #[test]
    fn faults_keep_their_length_within_the_window_and_swings_come_in_later_rounds() {
        let swing = VoteSwing { voters: 1, delegate: "genesis_1".to_owned(), round: 3, block: Boundary::First };
        let shifted = |from, until| {
            let until = Some(Trigger::Seconds(until));
            let mut fault = Fault { kind: FaultKind::VoteSwing(swing.clone()), from, until };
            LATER.shift(&mut fault);
            let FaultKind::VoteSwing(swing) = fault.kind else { panic!("it is one") };
            assert_eq!(swing.round, 3 + 2);
            (fault.from, fault.until)
        };
        let seconds = |from, until| (Trigger::Seconds(from), Some(Trigger::Seconds(until)));
        assert_eq!(shifted(Trigger::Seconds(40.0), 60.0), seconds(121.0, 141.0));
        assert_eq!(shifted(Trigger::Seconds(40.0), 400.0), seconds(121.0, 160.0));
        assert_eq!(shifted(Trigger::Seconds(112.0), 113.0), seconds(157.0, 165.0));
        // Height 6 comes after 40 seconds.
        let (from, until) = shifted(Trigger::HeightAtAny(6), 60.0);
        assert_eq!((from, until), (Trigger::HeightAtAny(LATER.height(6)), Some(Trigger::Seconds(141.0))));
    }
}
