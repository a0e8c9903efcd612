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
        RactorStage::spawn(plan, observers).await.map(|stage| Self::Ractor(Box::new(stage)))
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        match self {
            Self::Inline(stage) => stage.world(),
            Self::Ractor(stage) => stage.world(),
        }
    }

    /// Has somebody watch the run from now on.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.world_mut().watch(observer);
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
        match what {
            Intervention::Submit { node, transactions } => {
                let request = self.world_mut().submit(node, transactions);
                let now = self.world().now();
                while self.step(now).await? {}
                let answer = self.world_mut().take_answer(request);
                Ok(Outcome::Submitted(answer.expect("peer and pool of a node answer without the clock moving")))
            }
        }
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
