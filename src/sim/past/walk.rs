//! The replay of the past, event for event, from a kept moment to the requested instant.

use super::{History, RetainedMoment, RunPoint, Watchers};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::settled_chain::SettledError,
    protocol::{BlockId, RoundNumber},
    sim::{NetworkEvent, Observer, Stage, snapshots::CameIn, stage::ractor::ActorDied},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The length of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// To the next event of `/lab/events` and traces.
    Event,
    /// To the point where another block is the winning tip.
    Block,
    /// To the point where the winning chain is in another round.
    Round,
}

/// The reason why a replay cannot reach an instant.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// Nothing is kept that early.
    #[error("{at} is before the first instant that is kept, {}", first.at.micros(), at = at.at.micros())]
    TooEarly { at: RunPoint, first: RunPoint },
    /// The run never was at this point.
    #[error("the run never stood at {} after {} inputs delivered to actors", place.at.micros(), place.delivered)]
    NoSuchPoint { place: RunPoint },
    #[error(transparent)]
    Died(#[from] ActorDied),
    /// An input is only in a log, and the log cannot be read.
    #[error(transparent)]
    Unread(#[from] SettledError),
}

/// A copy of the run that goes through its past.
pub struct Walk<W> {
    stage: Stage,
    watchers: W,
    inputs: VecDeque<CameIn>,
    came_in: usize,
    /// The point at which the replay ends.
    end: RunPoint,
    told: Arc<AtomicU64>,
}

/// The thing that steps count.
#[derive(PartialEq)]
enum Mark {
    Told(u64),
    Tip(BlockId),
    Round(RoundNumber),
}

impl<W: Watchers> History<W> {
    /// A copy of the run that stands at an instant: where the run was when its clock last showed it.
    ///
    /// # Errors
    /// It is before the first moment that is kept.
    pub async fn at(&self, at: SimTime) -> Result<Walk<W>, WalkError> {
        if at >= self.present.at {
            return self.to(self.present).await;
        }
        // Inputs of this very instant have come in.
        let inputs = self.count_while(|came| came.at <= at);
        let is_before = |kept: &RetainedMoment<W>| kept.place.at < at && kept.place.inputs <= inputs;
        let place = RunPoint { at, delivered: 0, inputs };
        let from = self.kept.iter().rev().find(|kept| is_before(kept)).or_else(|| {
            // The first instant of all is itself kept.
            self.kept.first().filter(|kept| kept.place.at == at && kept.place.inputs <= inputs)
        });
        let from = from.ok_or_else(|| self.too_early(place))?;
        let mut walk = self.walk(from, RunPoint { delivered: u64::MAX, ..place })?;
        walk.go_to_instant(at).await?;
        Ok(walk)
    }

    /// A copy of the run that stands at a place.
    ///
    /// # Errors
    /// It is before the first moment that is kept, or the run never stood there.
    pub async fn to(&self, place: RunPoint) -> Result<Walk<W>, WalkError> {
        let index = self.before(place, true).ok_or_else(|| self.too_early(place))?;
        self.walk_to(index, place).await
    }

    /// A copy of the run that stands a step after a place, or at the present, whichever comes first.
    ///
    /// # Errors
    /// As [`History::to`].
    pub async fn after(&self, place: RunPoint, step: WalkStep) -> Result<Walk<W>, WalkError> {
        let mut walk = self.to(place).await?;
        walk.go_on(self.recent.between(walk.came_in, usize::MAX), self.present);
        let was = walk.mark(step);
        while walk.mark(step) == was && walk.next().await? {}
        Ok(walk)
    }

    /// A copy of the run that stands a step before a place, or at the first instant that is kept. A step before the place is the point
    /// where the state just before the place began.
    ///
    /// # Errors
    /// As [`History::to`].
    pub async fn before_step(&self, place: RunPoint, step: WalkStep) -> Result<Walk<W>, WalkError> {
        let mut index = self.before(place, false);
        while let Some(from) = index {
            if let Some(found) = self.last_mark(from, place, step).await? {
                return self.walk_to(from, found).await;
            }
            index = from.checked_sub(1);
        }
        let first = self.kept.first().ok_or_else(|| self.too_early(place))?;
        self.walk_to(0, first.place).await
    }

    /// The end of the last step between a kept moment and a place, the place itself not counted.
    async fn last_mark(&self, from: usize, place: RunPoint, step: WalkStep) -> Result<Option<RunPoint>, WalkError> {
        let mut walk = self.walk(&self.kept[from], place)?;
        let (mut mark, mut found) = (walk.mark(step), None);
        while walk.next().await? && walk.place() < place {
            let now = walk.mark(step);
            if now != mark {
                (mark, found) = (now, Some(walk.place()));
            }
        }
        Ok(found)
    }

    /// The last moment that is kept before a place, or at it.
    fn before(&self, place: RunPoint, or_at: bool) -> Option<usize> {
        let is_before = |kept: &RetainedMoment<W>| {
            let one = kept.place;
            let is_on_way = one.at <= place.at && one.delivered <= place.delivered && one.inputs <= place.inputs;
            is_on_way && (or_at || one < place)
        };
        self.kept.iter().rposition(|kept| is_before(kept))
    }

    async fn walk_to(&self, from: usize, place: RunPoint) -> Result<Walk<W>, WalkError> {
        let mut walk = self.walk(&self.kept[from], place)?;
        while walk.next().await? {}
        Ok(walk)
    }

    fn walk(&self, from: &RetainedMoment<W>, end: RunPoint) -> Result<Walk<W>, WalkError> {
        let watchers = from.watchers.apart();
        let told = Arc::new(AtomicU64::new(0));
        let mut observers = watchers.observers();
        observers.push(Box::new(EventCounter(told.clone())));
        let came_in = from.place.inputs.min(self.inputs.len());
        let stage = from.stage(&self.plan, self.inputs.first(came_in)?, observers);
        let inputs = self.recent.between(came_in, end.inputs).iter().cloned().collect();
        Ok(Walk { stage, watchers, inputs, came_in, end, told })
    }

    fn too_early(&self, at: RunPoint) -> WalkError {
        WalkError::TooEarly { at, first: self.kept.first().map_or(self.present, |kept| kept.place) }
    }
}

impl<W> Walk<W> {
    /// The point that it has reached.
    pub fn place(&self) -> RunPoint {
        let world = self.stage.world();
        RunPoint { at: world.now(), delivered: world.delivered(), inputs: self.came_in }
    }

    /// The stage at the point that it has reached, and its watchers.
    pub fn into_parts(self) -> (Stage, W) {
        (self.stage, self.watchers)
    }

    /// Plays one event, or delivers one input. Returns true if the end was further away.
    async fn next(&mut self) -> Result<bool, WalkError> {
        let until = self.inputs.front().map_or((self.end.at, self.end.delivered), |came| (came.at, came.delivered));
        let delivered = self.stage.world().delivered();
        if delivered < until.1 {
            return if self.stage.step(until.0).await? { Ok(true) } else { Err(self.lost()) };
        }
        if delivered > until.1 {
            return Err(self.lost());
        }
        // Events that are due before then and reach no actor, such as the end of a fault, have happened as well.
        if self.stage.world().next_time().is_some_and(|next| next < until.0)
            && self.stage.step(until.0.just_before()).await?
        {
            return Ok(true);
        }
        let is_behind = self.stage.world().now() < until.0;
        self.stage.rest_until(until.0);
        let Some(CameIn { what, .. }) = self.inputs.pop_front() else { return Ok(is_behind) };
        self.stage.intervene(what).await?;
        self.came_in += 1;
        Ok(true)
    }

    /// Plays all that is due before an instant, and what came in by then.
    async fn go_to_instant(&mut self, at: SimTime) -> Result<(), WalkError> {
        while !self.inputs.is_empty() {
            self.next().await?;
        }
        while self.stage.world().next_time().is_some_and(|next| next < at) && self.stage.step(at.just_before()).await? {
        }
        self.stage.rest_until(at);
        Ok(())
    }

    /// Moves the end of the walk, with the inputs up to there.
    fn go_on(&mut self, inputs: &[CameIn], end: RunPoint) {
        self.inputs = inputs.iter().cloned().collect();
        self.end = end;
    }

    fn mark(&self, step: WalkStep) -> Mark {
        let world = self.stage.world();
        match step {
            WalkStep::Event => Mark::Told(self.told.load(Ordering::Relaxed)),
            WalkStep::Block => Mark::Tip(world.tips().winning().id()),
            WalkStep::Round => Mark::Round(world.tree().schedule().at(world.tips().winning().height().next()).round),
        }
    }

    fn lost(&self) -> WalkError {
        WalkError::NoSuchPoint { place: self.end }
    }
}

/// Counts the reported events of a run.
struct EventCounter(Arc<AtomicU64>);

impl Observer for EventCounter {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn observe_network(&mut self, _: SimTime, _: &NetworkEvent<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
