//! One plain loop over one queue, no async at all: for runs, sweeps and property tests.

use crate::{
    actors::{Actor, ActorId, Effect, SimTime},
    sim::{Observer, Plan, World},
};

/// A run in this thread.
pub struct InlineStage {
    world: World,
    actors: Vec<(ActorId, Actor)>,
    effects: Vec<Effect>,
}

impl InlineStage {
    /// A run at its first instant.
    pub fn new(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Self {
        let actors = plan.actors();
        let world = World::new(plan, actors.iter().map(|(id, _)| *id), observers);
        Self { world, actors, effects: Vec::new() }
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Plays all events due before `until`; the clock then stands there.
    pub fn run_until(&mut self, until: SimTime) {
        while let Some(delivery) = self.world.next(until.just_before()) {
            let (id, actor) = &mut self.actors[delivery.index];
            actor.step(delivery.now, delivery.input, &mut self.effects);
            self.world.absorb(*id, &mut self.effects);
        }
        self.world.rest_until(until);
    }
}
