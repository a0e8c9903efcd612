//! The two stages that host actors. Both give the same events in the same order.

pub mod inline;
pub mod ractor;

use super::{Intervention, Observer, Outcome, Plan, World};
use crate::actors::SimTime;
use inline::InlineStage;
use ractor::{ActorDied, RactorStage};

/// A run that goes on event by event, on either stage.
pub enum Stage {
    Inline(Box<InlineStage>),
    Ractor(Box<RactorStage>),
}

impl Stage {
    /// A run in this thread, at its first instant.
    pub fn inline(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Self {
        Self::Inline(Box::new(InlineStage::new(plan, observers)))
    }

    /// A run whose actors are ractor's, at its first instant.
    ///
    /// # Errors
    /// An actor cannot be spawned.
    pub async fn ractor(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Result<Self, ::ractor::SpawnErr> {
        RactorStage::spawn(plan, observers).await.map(|stage| Self::Ractor(stage.into()))
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        match self {
            Self::Inline(stage) => stage.world(),
            Self::Ractor(stage) => stage.world(),
        }
    }

    /// Plays one event due at `through` or before, and says whether there was one.
    ///
    /// # Errors
    /// An actor died.
    pub async fn step(&mut self, through: SimTime) -> Result<bool, ActorDied> {
        match self {
            Self::Inline(stage) => Ok(stage.step(through)),
            Self::Ractor(stage) => stage.step(through).await,
        }
    }

    /// Moves the clock on, over a time in which nothing is due.
    pub fn rest_until(&mut self, until: SimTime) {
        match self {
            Self::Inline(stage) => stage.rest_until(until),
            Self::Ractor(stage) => stage.rest_until(until),
        }
    }

    /// Does what comes in from outside, now, and answers what came of it. The clock does not move.
    ///
    /// # Errors
    /// An actor died.
    pub async fn intervene(&mut self, what: Intervention) -> Result<Outcome, ActorDied> {
        // What acts at once comes after all that is due by now. A replay knows how many inputs were delivered before, not
        // what of the rest came to nothing, such as a message to a node that is down.
        if !matches!(what, Intervention::Submit { .. }) {
            self.play_instant().await?;
        }
        match what {
            Intervention::Submit { node, transactions } => {
                let request = self.world_mut().submit(node, transactions.clone());
                self.play_instant().await?;
                Ok(Outcome::Submitted(self.world_mut().take_answer(request, &transactions)))
            }
            Intervention::AddFault(added) => {
                let id = self.world_mut().add_fault(*added);
                self.play_instant().await?;
                Ok(Outcome::FaultAdded { id })
            }
            Intervention::EndFault { id } => {
                let is_known = self.world_mut().withdraw_fault(id);
                self.play_instant().await?;
                Ok(Outcome::FaultEnded { is_known })
            }
            Intervention::Reorganise(asked) => {
                let planned = self.world_mut().reorganise(&asked);
                self.play_instant().await?;
                let done = planned.map(|planned| self.world_mut().reorganised(planned));
                Ok(Outcome::Reorganised(done.into()))
            }
        }
    }

    /// From now on the run can be given faults from outside.
    pub fn open(&mut self) {
        self.world_mut().open();
    }

    /// Plays all that is due by now, and stands there.
    async fn play_instant(&mut self) -> Result<(), ActorDied> {
        let now = self.world().now();
        while self.step(now).await? {}
        self.rest_until(now);
        Ok(())
    }

    /// Stops every actor.
    pub async fn stop(self) {
        match self {
            Self::Inline(_) => {}
            Self::Ractor(stage) => stage.stop().await,
        }
    }

    fn world_mut(&mut self) -> &mut World {
        match self {
            Self::Inline(stage) => stage.world_mut(),
            Self::Ractor(stage) => stage.world_mut(),
        }
    }
}
