//! A run that takes commands while it goes on. The wall clock or commands pace it, or nothing does.
//!
//! ```text
//!   handle.rs ──► commands ──► live.rs: one after the other, between two events
//!                                 │  pace.rs      when the next event is played
//!                                 │  on_demand.rs for transactions that wait for a block
//!                                 └► advance.rs   slots by command, as fast as it goes
//! ```

mod advance;
mod handle;
mod on_demand;
mod pace;

pub use advance::{ADVANCE_LIMIT, ADVANCES_MAX, AdvanceResult, Ended, NoNode, Until};
pub use handle::{LiveHandle, StoppedError};
pub use pace::Pace;

use super::{
    Intervention, Observer, Outcome, Stage,
    intervention::PushVerdict,
    past::Album,
    snapshots::{InputLog, LogPlace, Snapshots},
    stage::ractor::ActorDied,
    tips::Tips,
    world::Moment,
};
use crate::{
    actors::SimTime,
    ledger::{Link, settled_chain::SettledError},
    protocol::{Height, slots::Slots},
};
use advance::{AdvanceRequest, Goal, Lookout};
use handle::Command;
use on_demand::{Demand, DropRecord};
use pace::Anchor;
use std::{collections::VecDeque, panic, sync::Arc};
use tokio::sync::mpsc;

/// The largest number of events that are played before the queued commands are handled.
const EVENTS_AT_ONCE: usize = 512;

/// Records the inputs of a live run before they are played.
pub trait Journal: Send {
    /// Records an input that is about to come in, after `delivered` inputs were delivered to actors. Nodes stand on `tips`.
    fn comes_in(&mut self, at: SimTime, delivered: u64, tips: &Tips, what: &Intervention);

    /// The log position of the last input, if the journal can read it again.
    fn last_place(&self) -> Option<LogPlace> {
        None
    }

    /// The log from which inputs can be read again.
    fn input_log(&self) -> Option<Arc<dyn InputLog>> {
        None
    }

    /// The run was stopped.
    fn ended(&mut self, at: SimTime, delivered: u64);

    /// Notes that the run has reached this point, after `delivered` inputs were delivered to actors. Most live nodes stand on `tip`. With
    /// `is_told` a client is about to see it. Most journals need only the inputs.
    fn stands(&mut self, _at: SimTime, _delivered: u64, _tip: &Link, _is_told: bool) {}

    /// The pace was set.
    fn paced(&mut self, _pace: Pace) {}

    /// Returns true if the journal cannot be written any more. The run must then end before it does anything else.
    fn is_broken(&self) -> bool {
        false
    }
}

/// Moves blocks that no node can leave any more out of memory.
pub trait Settler: Send {
    /// Settles blocks, if enough of them are deep enough. Returns the least height that a node may have in a moment to which the run can
    /// still go back, or `None` if nothing was settled.
    fn settle(&mut self, tips: &Tips) -> Option<Height>;

    /// The run has gone back to a snapshot. Returns the height above which nothing is settled any more: chains of moments that
    /// settled above it cannot be read.
    fn went_back(&mut self, tips: &Tips) -> Height;
}

/// Stores moments of a live run outside memory from time to time.
pub trait Keeper: Send {
    /// Returns true if a moment is to be kept, where most live nodes stand at this height.
    fn is_due(&self, height: Height) -> bool;

    /// Keeps a moment. It must not block, because the run waits for it.
    fn keep(&mut self, moment: Moment, snapshots: &Snapshots);

    /// Waits, at the end of the run, until every moment is stored.
    fn end(&mut self);
}

/// A live run.
pub struct Live {
    stage: Stage,
    slots: Slots,
    commands: mpsc::UnboundedReceiver<Command>,
    pace: Pace,
    /// The queued advances, which run one after another.
    advances: VecDeque<AdvanceRequest>,
    /// The goal of the running advance. `None` while no advance runs.
    goal: Option<Goal>,
    lookout: Lookout,
    /// The requests that wait for a block, at the pace that forges on demand.
    demands: Vec<Demand>,
    dropped: DropRecord,
    /// Set during an advance by a change of the pace or a revert, which ends it.
    stopped_by: Option<Ended>,
    /// The point from which the pace counts.
    anchor: Anchor,
    stopping: bool,
    journals: Vec<Box<dyn Journal>>,
    album: Option<Box<dyn Album>>,
    settler: Option<Box<dyn Settler>>,
    keeper: Option<Box<dyn Keeper>>,
}

impl Live {
    /// A run at its first instant, and the handle to it.
    pub fn new(mut stage: Stage, slots: Slots, pace: Pace) -> (Self, LiveHandle) {
        stage.open();
        let (sender, commands) = mpsc::unbounded_channel();
        let anchor = Anchor::at(stage.world().now());
        let (lookout, dropped) = (Lookout::default(), DropRecord::default());
        stage.watch(Box::new(lookout.clone()));
        stage.watch(Box::new(dropped.clone()));
        let live = Self {
            stage,
            slots,
            commands,
            pace,
            advances: VecDeque::new(),
            goal: None,
            lookout,
            demands: Vec::new(),
            dropped,
            stopped_by: None,
            anchor,
            stopping: false,
            journals: Vec::new(),
            album: None,
            settler: None,
            keeper: None,
        };
        (live, LiveHandle(sender))
    }

    /// The same run with one more journal, if one is given.
    #[must_use]
    pub fn journalled(mut self, journal: Option<Box<dyn Journal>>) -> Self {
        if let Some(log) = journal.as_ref().and_then(|journal| journal.input_log()) {
            self.stage.log_in(log);
        }
        self.journals.extend(journal);
        self
    }

    /// Adds an observer from now on.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.stage.watch(observer);
    }

    /// The same run, with an album that keeps moments from time to time.
    #[must_use]
    pub fn remembered(mut self, album: impl Album + 'static) -> Self {
        self.album = Some(Box::new(album));
        self
    }

    /// The same run, whose deep blocks settle.
    #[must_use]
    pub fn settled_by(mut self, settler: Option<Box<dyn Settler>>) -> Self {
        self.settler = settler;
        self
    }

    /// The same run, with a keeper that stores moments outside memory, if one is given.
    #[must_use]
    pub fn kept(mut self, keeper: Option<impl Keeper + 'static>) -> Self {
        self.keeper = keeper.map(|keeper| Box::new(keeper) as Box<dyn Keeper>);
        self
    }

    /// Runs until a client stops it, then stops its actors. The run is a task of its own: a runtime checks sockets and timers before each
    /// poll of its main future, but between tasks only from time to time.
    ///
    /// # Errors
    /// An actor died, or a settled block cannot be read: that ends the run.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn run(self) -> Result<SimTime, ActorDied> {
        match tokio::spawn(self.play()).await {
            Ok(ended) => ended,
            Err(failed) => match failed.into_panic().downcast::<SettledError>() {
                Ok(why) => Err(ActorDied::asking(&why)),
                Err(panicked) => panic::resume_unwind(panicked),
            },
        }
    }

    async fn play(mut self) -> Result<SimTime, ActorDied> {
        self.set_anchor();
        self.remember().await?;
        while !self.stopping && !self.is_broken() {
            if let Some(asked) = self.advances.pop_front() {
                self.advance(asked).await?;
                continue;
            }
            match self.pace {
                Pace::Manual => self.wait_for_command().await?,
                Pace::OnDemand => self.play_on_demand().await?,
                Pace::Max => self.play_some(SimTime::from_micros(u64::MAX)).await?,
                Pace::Speed(speed) => self.follow_wall_clock(speed).await?,
            }
        }
        self.note_stand(true);
        let (now, delivered) = (self.stage.world().now(), self.stage.world().delivered());
        for journal in &mut self.journals {
            journal.ended(now, delivered);
        }
        if let Some(mut keeper) = self.keeper.take() {
            if !self.is_broken() {
                keeper.keep(self.stage.moment().await?, self.stage.snapshots());
            }
            keeper.end();
        }
        self.stage.stop().await;
        Ok(now)
    }

    async fn wait_for_command(&mut self) -> Result<(), ActorDied> {
        match self.commands.recv().await {
            Some(command) => self.obey(command).await,
            None => self.stop_asked(),
        }
    }

    /// Plays one event due at `through` or before. Returns true if there was one.
    ///
    /// # Errors
    /// An actor died, or the events of an instant do not end.
    async fn step(&mut self, through: SimTime) -> Result<bool, ActorDied> {
        let has_played = self.stage.step(through).await?;
        self.check_clock()?;
        Ok(has_played)
    }

    /// Fails if the events of an instant do not end: the testnet would be dead and look alive.
    fn check_clock(&self) -> Result<(), ActorDied> {
        self.stage.world().restless().map_or(Ok(()), |at| Err(ActorDied::restless(at)))
    }

    /// Plays a batch of events due by `until`, and stops early when an advance reaches its goal or no client waits for a block any more.
    /// Then carries out the queued commands.
    async fn play_some(&mut self, until: SimTime) -> Result<(), ActorDied> {
        for _ in 0..EVENTS_AT_ONCE {
            if !self.step(until).await? {
                // An input that comes in now follows all of these events, also those that reached no actor. A replay could not place it
                // between two events of one instant.
                if self.pace != Pace::Max || self.goal.is_some() {
                    self.stage.rest_until(until);
                }
                break;
            }
            let was_waited_for = !self.demands.is_empty() && self.settle_demands().await?;
            if self.goal_is_reached() || was_waited_for || self.is_broken() {
                break;
            }
        }
        self.note_stand(false);
        self.settle();
        self.remember().await?;
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command).await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Lets blocks settle, if it is time.
    fn settle(&mut self) {
        let Some(settler) = &mut self.settler else { return };
        if let Some(lowest) = settler.settle(self.stage.world().tips()) {
            self.stage.forget_moments(lowest);
            let needed = self.album.as_mut().and_then(|album| album.forget(lowest));
            self.stage.let_go_of_inputs(needed.unwrap_or(usize::MAX));
        }
    }

    /// Keeps a moment, if one is due.
    async fn remember(&mut self) -> Result<(), ActorDied> {
        let height = self.stage.world().tips().winning().height();
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.is_due(height)) {
            keeper.keep(self.stage.moment().await?, self.stage.snapshots());
        }
        let Some(album) = &mut self.album else { return Ok(()) };
        let world = self.stage.world();
        if album.is_due(world.delivered(), world.tips().nodes()) {
            let inputs = self.stage.snapshots().count_inputs();
            album.keep(inputs, self.stage.moment().await?);
        }
        Ok(())
    }

    /// Tells the album that a snapshot was taken or reverted to.
    fn tell_album(&mut self, is_taken: bool, goes_back: bool, outcome: &Outcome) {
        let (Some(album), Outcome::Snapshot(Some(info))) = (&mut self.album, outcome) else { return };
        if is_taken {
            album.took(info.id);
        } else if goes_back {
            album.went_back(info);
        }
    }

    /// Reports to the journals the point that the run has reached.
    fn note_stand(&mut self, is_told: bool) {
        let world = self.stage.world();
        for journal in &mut self.journals {
            journal.stands(world.now(), world.delivered(), world.tips().winning(), is_told);
        }
    }

    /// Returns true if the last events are perhaps not stored. Clients then receive no success any more.
    fn is_broken(&self) -> bool {
        self.journals.iter().any(|journal| journal.is_broken())
    }

    async fn obey(&mut self, command: Command) -> Result<(), ActorDied> {
        // A reply fails if its client has gone.
        match command {
            Command::Intervene(ask) => {
                let Some((what, answer)) = ask(&self.stage) else { return Ok(()) };
                let world = self.stage.world();
                for journal in &mut self.journals {
                    journal.comes_in(world.now(), world.delivered(), world.tips(), &what);
                    // An input that cannot be recorded is not carried out. The client receives no answer.
                    if journal.is_broken() {
                        return self.stop_asked();
                    }
                }
                let (at, goes_back) = match &what {
                    Intervention::Submit { node, .. } => (Some(*node), false),
                    Intervention::Revert { to } => (None, self.stage.snapshots().get(*to).is_some()),
                    _ => (None, false),
                };
                let is_taken = matches!(what, Intervention::TakeSnapshot { .. });
                if goes_back {
                    self.answer_demands();
                }
                let place = self.journals.iter().find_map(|journal| journal.last_place());
                let outcome = self.stage.intervene_at(what, place).await?;
                self.check_clock()?;
                match (outcome, at) {
                    (Outcome::Submitted(taken), Some(at))
                        if self.pace == Pace::OnDemand && !taken.accept.is_empty() =>
                    {
                        self.demand(at, taken, answer);
                    }
                    (outcome, _) => {
                        self.tell_album(is_taken, goes_back, &outcome);
                        if goes_back {
                            if let Some(settler) = &mut self.settler {
                                let cut = settler.went_back(self.stage.world().tips());
                                self.stage.forget_settled_above(cut);
                            }
                            self.went_back();
                            self.remember().await?;
                        }
                        match &outcome {
                            Outcome::BlockPushed(PushVerdict::Accepted) => self.come_to_rest().await?,
                            Outcome::PendingDropped(gone) => self.dropped.add(gone),
                            _ => {}
                        }
                        self.note_stand(false);
                        if self.is_broken() {
                            return self.stop_asked();
                        }
                        answer(outcome, &self.stage);
                    }
                }
            }
            Command::Advance(asked) => self.queue(asked),
            Command::SetPace { pace, reply } => {
                self.pace = pace;
                self.journals.iter_mut().for_each(|journal| journal.paced(pace));
                if self.is_broken() {
                    return self.stop_asked();
                }
                self.come_to_rest().await?;
                self.note_stand(true);
                self.set_anchor();
                self.stopped_by = Some(Ended::PaceSet(pace));
                self.end_waiting_advances(Ended::PaceSet(pace));
                self.answer_demands();
                let _client_gone = reply.send((self.stage.world().now(), pace));
            }
            Command::Look(look) => look(&self.stage),
            Command::Now { reply } => {
                let _client_gone = reply.send((self.stage.world().now(), self.pace));
            }
            Command::Peers { reply } => {
                let _client_gone = reply.send(self.stage.moment().await?.peers());
            }
            Command::Stop => return self.stop_asked(),
        }
        Ok(())
    }

    /// Restarts the pace and ends all advances, because a revert has changed the clock.
    fn went_back(&mut self) {
        self.set_anchor();
        self.stopped_by = Some(Ended::WentBack);
        self.end_waiting_advances(Ended::WentBack);
    }

    fn stop_asked(&mut self) -> Result<(), ActorDied> {
        self.stopping = true;
        Ok(())
    }
}
