//! Delegates that a fault switches off, in the rounds of the fault or in all rounds.
//!
//! [`Offline::told`] decides when they learn of it: when the fault is planned, or when it begins. Delegates of a running run receive it
//! like any other stimulus. Delegates of a run that is about to start receive it before their first input.
//!
//! [`Offline::told`]: crate::sim::fault::Offline::told

use super::{World, faults::LastingEffect};
use crate::{
    actors::{ActorId, HostedActor, NodeId, Role, Spells, Stimulus},
    sim::{
        fault::{FaultKind, NoticeTime},
        plan,
    },
};

impl World {
    /// Tells the delegates of a fault that they are off, if it is an `offline` fault that tells them at this point.
    pub(super) fn switch_off(&mut self, index: usize, told: NoticeTime) -> LastingEffect {
        for (node, rounds) in self.switched_off(index, told) {
            self.tell_switched(node, rounds, true);
        }
        LastingEffect::Nothing
    }

    /// Tells the delegates of the plan's faults, before the first event. A world that is loaded has no actors yet. Its actors are loaded
    /// with this knowledge.
    pub(super) fn switch_off_from_the_start(&mut self, actors: &mut [(ActorId, HostedActor)]) {
        let mut effects = Vec::new();
        for index in 0..self.plan.faults.len() {
            for (node, rounds) in self.switched_off(index, NoticeTime::Planned) {
                let of_delegate = plan::index(ActorId { node, role: Role::Delegate });
                if let Some((_, actor)) = actors.get_mut(of_delegate) {
                    actor.take(self.now, Stimulus::Switch { rounds, off: true }, &mut effects);
                }
            }
        }
        assert!(effects.is_empty(), "a delegate that learns the rounds in which it is off does nothing yet");
    }

    /// Records and returns the delegates that a fault switches off at this point, with the rounds.
    fn switched_off(&mut self, index: usize, at: NoticeTime) -> Vec<(NodeId, Spells)> {
        let FaultKind::Offline(offline) = &self.plan.faults[index].kind else { return Vec::new() };
        let (told, rounds) = offline.told();
        if told != at {
            return Vec::new();
        }
        let delegates = self.resolve(&offline.delegates);
        delegates.iter().for_each(|node| self.note_off(index, *node, rounds.clone()));
        delegates.into_iter().map(|node| (node, rounds.clone())).collect()
    }
}
