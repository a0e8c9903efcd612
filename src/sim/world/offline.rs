//! Delegates that a fault switches off.
//!
//! Each of them deviates as [`Deviation::Offline`] in the rounds of the fault, or in all rounds. [`Offline::told`] says when
//! they learn it: when the fault is planned, or when it begins. Delegates of a run that goes on hear it like any other
//! stimulus. Those of a run that is about to start take it before their first input.
//!
//! [`Deviation::Offline`]: crate::actors::Deviation::Offline
//! [`Offline::told`]: crate::sim::fault::Offline::told

use super::{Item, World, faults::Held};
use crate::{
    actors::{ActorId, Hosted, Role, Stimulus},
    sim::{
        fault::{FaultKind, Told},
        plan,
    },
};

impl World {
    /// Tells the delegates of a fault that they are off, if it is an `offline` fault that tells them at this point.
    pub(super) fn switch_off(&mut self, index: usize, told: Told) -> Held {
        for (to, stimulus) in self.switched_off(index, told) {
            self.queue.push(self.now, Item::Stimulus { to, stimulus });
        }
        Held::Nothing
    }

    /// Tells the delegates of the plan's faults, before the first event. A world that is loaded has no actors yet: theirs
    /// know it when they are loaded.
    pub(super) fn switch_off_from_the_start(&mut self, actors: &mut [(ActorId, Hosted)]) {
        let mut effects = Vec::new();
        for index in 0..self.plan.faults.len() {
            for (to, stimulus) in self.switched_off(index, Told::Planned) {
                if let Some((_, actor)) = actors.get_mut(plan::index(to)) {
                    actor.take(self.now, stimulus, &mut effects);
                }
            }
        }
        assert!(effects.is_empty(), "a delegate that learns the rounds in which it is off does nothing yet");
    }

    /// The delegates that a fault switches off at this point, each with what it has to hear.
    fn switched_off(&mut self, index: usize, at: Told) -> Vec<(ActorId, Stimulus)> {
        let FaultKind::Offline(offline) = &self.plan.faults[index].kind else { return Vec::new() };
        let (told, deviation) = offline.told();
        if told != at {
            return Vec::new();
        }
        let delegates = self.resolve(&offline.delegates).into_iter();
        let delegates = delegates.map(|node| ActorId { node, role: Role::Delegate });
        delegates.map(|to| (to, self.deviation(index, to, deviation.clone()))).collect()
    }
}
