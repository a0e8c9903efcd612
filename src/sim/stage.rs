//! The two stages that host actors. Both give the same events in the same order.

pub mod inline;
pub(crate) mod ractor;

use super::{
    Intervention, Observer, Outcome, Plan, World,
    intervention::DroppedPending,
    snapshots::{CameIn, InputLog, Inputs, LogPlace, SnapshotId, SnapshotInfo, Snapshots},
    world::Moment,
};

use crate::{
    actors::{HostedActor, SimTime},
    protocol::Height,
};
use inline::InlineStage;
use ractor::{ActorDied, RactorStage};
use std::sync::Arc;

/// A run that goes on event by event, on either stage, with its snapshots.
pub struct Stage {
    host: Host,
    snapshots: Snapshots,
}

enum Host {
    Inline(Box<InlineStage>),
    Ractor(Box<RactorStage>),
}

impl Stage {
    /// A run in this thread, at its first instant.
    pub fn inline(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Self {
        let host = Host::Inline(Box::new(InlineStage::new(plan, observers)));
        Self { host, snapshots: Snapshots::new(plan) }
    }

    /// A run in this thread that goes on from a moment of another, with these snapshots.
    pub fn at(moment: &Moment, snapshots: Snapshots, observers: Vec<Box<dyn Observer>>) -> Self {
        let mut stage = InlineStage::at(moment);
        observers.into_iter().for_each(|observer| stage.watch(observer));
        Self { host: Host::Inline(Box::new(stage)), snapshots }
    }

    /// A run whose actors are ractor's, at its first instant.
    ///
    /// # Errors
    /// An actor cannot be spawned.
    pub async fn ractor(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Result<Self, ::ractor::SpawnErr> {
        let host = Host::Ractor(RactorStage::spawn(plan, observers).await?.into());
        Ok(Self { host, snapshots: Snapshots::new(plan) })
    }

    /// Carries out an intervention now, in a run in this thread, as [`Stage::intervene`] does. An intervention that is no part of the
    /// run, such as a snapshot, does nothing.
    pub async fn intervene_in(stage: InlineStage, what: Intervention) -> InlineStage {
        if !what.is_of_run() {
            return stage;
        }
        let snapshots = Snapshots::new(&stage.world().plan().apart());
        let mut whole = Self { host: Host::Inline(Box::new(stage)), snapshots };
        let done = whole.intervene(what).await;
        done.expect("no actor dies on the inline stage");
        match whole.host {
            Host::Inline(stage) => *stage,
            Host::Ractor(_) => unreachable!("it was made of an inline stage"),
        }
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        match &self.host {
            Host::Inline(stage) => stage.world(),
            Host::Ractor(stage) => stage.world(),
        }
    }

    /// Its snapshots.
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Adds an observer from now on.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.world_mut().watch(observer);
    }

    /// Plays one event due at `through` or before. Returns true if there was one.
    ///
    /// # Errors
    /// An actor died.
    pub async fn step(&mut self, through: SimTime) -> Result<bool, ActorDied> {
        match &mut self.host {
            Host::Inline(stage) => Ok(stage.step(through)),
            Host::Ractor(stage) => stage.step(through).await,
        }
    }

    /// Moves the clock on, over a time in which nothing is due.
    pub fn rest_until(&mut self, until: SimTime) {
        match &mut self.host {
            Host::Inline(stage) => stage.rest_until(until),
            Host::Ractor(stage) => stage.rest_until(until),
        }
    }

    /// Keeps `bytes` bytes of moments, in place of [`super::snapshots::MOMENTS_MAX`].
    pub fn keep_moments(&mut self, bytes: usize) {
        self.snapshots.make_room(bytes);
    }

    /// Drops the moments in which a node stands below a height. A replay can restore them.
    pub fn forget_moments(&mut self, below: Height) {
        self.snapshots.forget_moments(below);
    }

    /// Drops the moments with a chain that has settled above a height. A replay can restore them.
    pub fn forget_settled_above(&mut self, cut: Height) {
        self.snapshots.forget_settled_above(cut);
    }

    /// Sets the log that holds all inputs from now on.
    pub fn log_in(&mut self, log: Arc<dyn InputLog>) {
        self.snapshots.log_in(log);
    }

    /// Drops from memory the first `count` inputs from outside, if the log has them.
    pub fn let_go_of_inputs(&mut self, count: usize) {
        self.snapshots.let_go(count);
    }

    /// [`Stage::intervene_at`] for an intervention that no log holds.
    ///
    /// # Errors
    /// As [`Stage::intervene_at`].
    pub async fn intervene(&mut self, what: Intervention) -> Result<Outcome, ActorDied> {
        self.intervene_at(what, None).await
    }

    /// Carries out an intervention now and returns its outcome. `place` is its record in the log.
    ///
    /// # Errors
    /// An actor died.
    pub async fn intervene_at(&mut self, what: Intervention, place: Option<LogPlace>) -> Result<Outcome, ActorDied> {
        let (at, delivered) = (self.world().now(), self.world().delivered());
        if what.is_of_run() {
            self.snapshots.comes_in(CameIn { at, delivered, what: what.clone() }, place);
        }
        // A fault comes after all that is due by now. A replay knows only the number of inputs delivered before, and not which events
        // reached no actor, such as a message to a node that is down.
        if matches!(what, Intervention::AddFault(_) | Intervention::EndFault { .. } | Intervention::Restart(_)) {
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
            Intervention::Restart(added) => {
                let kind = added.fault.kind.clone();
                let id = self.world_mut().add_fault(*added);
                self.play_instant().await?;
                for crash in self.world().crashes_ended_by(&kind) {
                    self.world_mut().withdraw_fault(crash);
                    self.play_instant().await?;
                }
                Ok(Outcome::FaultAdded { id })
            }
            Intervention::PushBlock { node, block, .. } => {
                self.world_mut().push_block(node, &block);
                self.play_instant().await?;
                Ok(Outcome::BlockPushed(self.world_mut().pushed(node, &block)))
            }
            Intervention::DropPending { ids, node } => {
                // Pools first remove the transactions that blocks contain, because those do not count as dropped.
                self.world_mut().have_pools_follow();
                self.play_instant().await?;
                let (mut gone, mut ids) = (DroppedPending::default(), ids);
                // A sender's later transactions may be on their way elsewhere.
                loop {
                    let under_way = self.world_mut().drop_pending(&ids, node);
                    self.play_instant().await?;
                    let more = self.world_mut().dropped(&mut gone, under_way);
                    if more.is_empty() {
                        return Ok(Outcome::PendingDropped(gone));
                    }
                    ids = more;
                }
            }
            Intervention::Chaos(_) => Ok(Outcome::Ignored),
            Intervention::EndFault { id } => {
                let is_known = self.world_mut().withdraw_fault(id);
                self.play_instant().await?;
                Ok(Outcome::FaultEnded { is_known })
            }
            Intervention::Reorganise(asked) => {
                let done = match self.world_mut().reorganise(&asked) {
                    Ok(planned) => {
                        self.play_instant().await?;
                        Ok(self.world_mut().reorganised(planned))
                    }
                    // A refusal changes nothing: events that are due at this instant stay due.
                    Err(why) => Err(why),
                };
                Ok(Outcome::Reorganised(done.into()))
            }
            Intervention::TakeSnapshot { name } => {
                // Due events without an actor, such as the end of a fault, belong to the moment as well.
                self.play_instant().await?;
                let moment = self.moment().await?;
                Ok(Outcome::Snapshot(self.snapshots.take(name, moment)))
            }
            Intervention::Revert { to } => Ok(Outcome::Snapshot(self.revert(to).await?)),
            Intervention::DeleteSnapshot { id } => {
                let info = self.snapshots.get(id).cloned();
                self.snapshots.delete(id);
                Ok(Outcome::Snapshot(info))
            }
        }
    }

    /// Goes to the moment of a snapshot; `None` if there is none of this number.
    async fn revert(&mut self, to: SnapshotId) -> Result<Option<SnapshotInfo>, ActorDied> {
        let Some(info) = self.snapshots.get(to).cloned() else { return Ok(None) };
        if self.snapshots.moment(to).is_none() {
            let moment = self.on_the_way_to(to).arrive(&info).await?;
            self.snapshots.keep(to, moment);
        }
        let kept = "it is kept, or was made again";
        let actors = self.snapshots.moment(to).expect(kept).actors().to_vec();
        let was = self.exchange(actors).await?;
        let moment = self.snapshots.moment(to).expect(kept);
        let world = match &mut self.host {
            Host::Inline(stage) => stage.world_mut(),
            Host::Ractor(stage) => stage.world_mut(),
        };
        world.become_as(moment, &was, false);
        self.snapshots.went_back(to);
        Ok(Some(info))
    }

    /// A separate run that goes on from here, in this thread and without observers, to see the future.
    ///
    /// # Errors
    /// An actor died.
    pub async fn copy(&mut self) -> Result<InlineStage, ActorDied> {
        self.moment().await.map(|moment| InlineStage::at(&moment))
    }

    /// Continues from a moment of the same plan instead, with the snapshots whose history led to it.
    ///
    /// # Errors
    /// An actor died.
    pub async fn begin_at(&mut self, moment: &Moment, snapshots: Snapshots) -> Result<(), ActorDied> {
        let actors = moment.actors().to_vec();
        let was = self.exchange(actors).await?;
        self.world_mut().become_as(moment, &was, true);
        self.snapshots = snapshots;
        Ok(())
    }

    /// All of the run as it is now, and its snapshots, for another run to begin with.
    ///
    /// # Errors
    /// An actor died.
    pub async fn into_moment(mut self) -> Result<(Moment, Snapshots), ActorDied> {
        let moment = self.moment().await?;
        Ok((moment, self.snapshots))
    }

    async fn exchange(&mut self, actors: Vec<HostedActor>) -> Result<Vec<HostedActor>, ActorDied> {
        match &mut self.host {
            Host::Inline(stage) => Ok(stage.exchange(actors)),
            Host::Ractor(stage) => stage.exchange(actors).await,
        }
    }

    /// All of the run as it is now.
    ///
    /// # Errors
    /// An actor died.
    pub async fn moment(&mut self) -> Result<Moment, ActorDied> {
        match &mut self.host {
            Host::Inline(stage) => Ok(stage.moment()),
            Host::Ractor(stage) => stage.moment().await,
        }
    }

    /// All of the run as it is now, if it is in this thread.
    pub fn inline_moment(&self) -> Option<Moment> {
        match &self.host {
            Host::Inline(stage) => Some(stage.moment()),
            Host::Ractor(_) => None,
        }
    }

    /// Plays until `delivered` inputs were delivered to actors, none of them later than `at`, and returns true if it reached this
    /// point. The clock then stands at `at`.
    ///
    /// # Errors
    /// An actor died.
    pub async fn play_to(&mut self, at: SimTime, delivered: u64) -> Result<bool, ActorDied> {
        while self.world().delivered() < delivered && self.step(at).await? {}
        // Events that are due before then and reach no actor, such as the end of a fault, have happened as well.
        let is_behind = |stage: &Self| stage.world().next_time().is_some_and(|next| next < at);
        while self.world().delivered() == delivered && is_behind(self) && self.step(at.just_before()).await? {}
        if self.world().delivered() != delivered {
            return Ok(false);
        }
        self.rest_until(at);
        Ok(true)
    }

    /// Allows faults from outside from now on.
    pub fn open(&mut self) {
        self.world_mut().open();
    }

    /// Plays all that is due by now, and stands there.
    ///
    /// # Errors
    /// An actor died.
    pub(crate) async fn play_instant(&mut self) -> Result<(), ActorDied> {
        let now = self.world().now();
        while self.step(now).await? {}
        self.rest_until(now);
        Ok(())
    }

    /// Stops every actor.
    pub async fn stop(self) {
        match self.host {
            Host::Inline(_) => {}
            Host::Ractor(stage) => stage.stop().await,
        }
    }

    /// A run at the nearest kept moment before a snapshot, with the inputs to replay.
    fn on_the_way_to(&self, id: SnapshotId) -> Again {
        let (plan, way) = (self.snapshots.plan(), self.snapshots.way(id));
        let stage = match way.from {
            Some(moment) => InlineStage::at(moment),
            None => {
                let mut stage = InlineStage::new(&plan.apart(), Vec::new());
                stage.world_mut().open();
                stage
            }
        };
        let stage = Self { host: Host::Inline(Box::new(stage)), snapshots: Snapshots::new(plan) };
        Again { stage, inputs: way.inputs }
    }

    fn world_mut(&mut self) -> &mut World {
        match &mut self.host {
            Host::Inline(stage) => stage.world_mut(),
            Host::Ractor(stage) => stage.world_mut(),
        }
    }
}

/// A separate run, in this thread and without observers, that replays to a snapshot whose moment is not stored.
struct Again {
    stage: Stage,
    inputs: Inputs,
}

impl Again {
    async fn arrive(mut self, at: &SnapshotInfo) -> Result<Moment, ActorDied> {
        for came in self.inputs.iter() {
            let CameIn { at, delivered, what } = came.map_err(|why| ActorDied::asking(&why))?;
            self.stage.play_to(at, delivered).await?;
            Box::pin(self.stage.intervene(what)).await?;
        }
        self.stage.play_to(at.at, at.delivered).await?;
        self.stage.play_instant().await?;
        self.stage.moment().await
    }
}
