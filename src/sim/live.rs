//! A run that people talk to while it goes on: paced against the wall clock, by command, or not at all.
//!
//! This is the one module under `sim` that reads the wall clock. It does so to decide *when* to play the next event,
//! never *which*: what comes from outside is stamped with the virtual instant at which it came in.
#![expect(clippy::disallowed_methods, reason = "pacing a live testnet is what the wall clock is for")]

use super::{Intervention, Outcome, Stage, World, stage::ractor::ActorDied};
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    protocol::{Slot, slots::Slots},
};
use std::{collections::VecDeque, fmt, panic, str::FromStr, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// How virtual time follows real time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many virtual seconds in a real second.
    Speed(f64),
    /// As fast as it goes.
    Max,
    /// Only by [`LiveHandle::advance`].
    Manual,
}

/// Events played between two looks at the commands, where nothing else gives cause to look.
const EVENTS_AT_ONCE: usize = 512;
/// A wait that no testnet outlives.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How often those who watch are told the time at least, while nothing happens.
const TELL_TIME: Duration = Duration::from_millis(100);
/// Slots that one command may advance by.
pub const ADVANCE_LIMIT: u32 = 1_000_000;

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            "manual" => Ok(Self::Manual),
            number => match number.parse::<f64>() {
                Ok(speed) if (0.001..=1e6).contains(&speed) => Ok(Self::Speed(speed)),
                _ => Err(format!("'{text}' is no pace: give a number from 0.001 to 1000000, 'max' or 'manual'")),
            },
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Speed(speed) => speed.fmt(f),
            Self::Max => f.write_str("max"),
            Self::Manual => f.write_str("manual"),
        }
    }
}

enum Command {
    Intervene { what: Intervention, reply: oneshot::Sender<Outcome> },
    Advance { slots: u32, reply: oneshot::Sender<Advanced> },
    SetPace { pace: Pace, reply: oneshot::Sender<()> },
    Now { reply: oneshot::Sender<(SimTime, Pace)> },
    Look(Box<dyn FnOnce(&World) + Send>),
    Stop,
}

/// What came of an advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advanced {
    /// Whole slots that were played.
    pub slots: u32,
    /// The instant it ended at; within a slot, if it was stopped there.
    pub now: SimTime,
    /// The pace that somebody set meanwhile, which ended it.
    pub stopped_by: Option<Pace>,
}

/// What others hold of a live run. Cheap to clone.
#[derive(Clone)]
pub struct LiveHandle(mpsc::UnboundedSender<Command>);

/// The run has ended, so nothing can be asked of it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulation has stopped")]
pub struct Stopped;

impl LiveHandle {
    /// A handle to a run that has ended, for looking at what it left.
    pub fn ended() -> Self {
        Self(mpsc::unbounded_channel().0)
    }

    /// Hands transactions in at a node; answers once its pool has decided.
    ///
    /// # Errors
    /// The run has stopped; so for all calls.
    pub async fn submit(&self, node: NodeId, transactions: Transactions) -> Result<Submission, Stopped> {
        let what = Intervention::Submit { node, transactions };
        match self.intervene(what).await? {
            Outcome::Submitted(submission) => Ok(submission),
            other => unreachable!("what is submitted is answered by a submission, not by {other:?}"),
        }
    }

    /// Looks at the run between two events.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn look<T: Send + 'static>(&self, look: impl FnOnce(&World) -> T + Send + 'static) -> Result<T, Stopped> {
        self.ask(|reply| {
            let look = |world: &World| {
                // A reply nobody waits for any more: the client has gone.
                let _client_gone = reply.send(look(world));
            };
            Command::Look(Box::new(look))
        })
        .await
    }

    /// Does something to the run at the instant at which it comes in, and answers what came of it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn intervene(&self, what: Intervention) -> Result<Outcome, Stopped> {
        self.ask(|reply| Command::Intervene { what, reply }).await
    }

    /// Plays so many slots from the running one on, at most [`ADVANCE_LIMIT`], as fast as it goes. Answers when they are
    /// over, or when somebody set the pace.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn advance(&self, slots: u32) -> Result<Advanced, Stopped> {
        self.ask(|reply| Command::Advance { slots: slots.min(ADVANCE_LIMIT), reply }).await
    }

    /// Changes the pace from now on. Ends an advance that is going on, and those that wait behind it.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn set_pace(&self, pace: Pace) -> Result<(), Stopped> {
        self.ask(|reply| Command::SetPace { pace, reply }).await
    }

    /// The virtual instant, and the pace.
    ///
    /// # Errors
    /// The run has stopped.
    pub async fn now(&self) -> Result<(SimTime, Pace), Stopped> {
        self.ask(|reply| Command::Now { reply }).await
    }

    /// Ends the run; the work in hand is finished first.
    pub fn stop(&self) {
        // Stopped already is what was wanted.
        let _stopped_already = self.0.send(Command::Stop);
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

/// Writes down what comes into a live run from outside, before it is played.
pub trait Journal: Send {
    /// Something is about to come in, after so many inputs were delivered to actors.
    fn comes_in(&mut self, at: SimTime, delivered: u64, what: &Intervention);

    /// The run was stopped.
    fn ended(&mut self, at: SimTime, delivered: u64);
}

/// A live run.
pub struct Live {
    stage: Stage,
    slots: Slots,
    commands: mpsc::UnboundedReceiver<Command>,
    pace: Pace,
    /// Advances asked for and not begun yet: one runs after the other.
    advances: VecDeque<(u32, oneshot::Sender<Advanced>)>,
    /// Set while an advance goes on, by whoever sets the pace: it ends.
    stopped_by: Option<Pace>,
    /// A pair of instants, virtual and real, from which the pace counts.
    anchor: (SimTime, Instant),
    stopping: bool,
    journal: Option<Box<dyn Journal>>,
}

impl Live {
    /// A run at its first instant, and the handle to it.
    pub fn new(mut stage: Stage, slots: Slots, pace: Pace) -> (Self, LiveHandle) {
        stage.open();
        let (sender, commands) = mpsc::unbounded_channel();
        let anchor = (stage.world().now(), Instant::now());
        let (advances, stopped_by, stopping, journal) = (VecDeque::new(), None, false, None);
        (Self { stage, slots, commands, pace, advances, stopped_by, anchor, stopping, journal }, LiveHandle(sender))
    }

    /// The same run, written down.
    #[must_use]
    pub fn journalled(self, journal: Option<Box<dyn Journal>>) -> Self {
        Self { journal, ..self }
    }

    /// Runs until it is told to stop, then stops its actors. It is a task of its own: before the first future of a runtime
    /// is woken, that looks at sockets and timers, but among tasks only now and then.
    ///
    /// # Errors
    /// An actor died, which ends the run.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn run(self) -> Result<SimTime, ActorDied> {
        match tokio::spawn(self.play()).await {
            Ok(ended) => ended,
            Err(failed) => panic::resume_unwind(failed.into_panic()),
        }
    }

    async fn play(mut self) -> Result<SimTime, ActorDied> {
        self.anchor.1 = Instant::now();
        while !self.stopping {
            if let Some((slots, reply)) = self.advances.pop_front() {
                self.advance(slots, reply).await?;
                continue;
            }
            match self.pace {
                Pace::Manual => self.wait_for_command().await?,
                Pace::Max => self.play_some(SimTime::from_micros(u64::MAX)).await?,
                Pace::Speed(speed) => self.follow_wall_clock(speed).await?,
            }
        }
        let (now, delivered) = (self.stage.world().now(), self.stage.world().delivered());
        if let Some(journal) = &mut self.journal {
            journal.ended(now, delivered);
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

    /// Plays a handful of events due by `until`, then does what was asked meanwhile.
    async fn play_some(&mut self, until: SimTime) -> Result<(), ActorDied> {
        for _ in 0..EVENTS_AT_ONCE {
            if !self.stage.step(until).await? {
                break;
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command).await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn follow_wall_clock(&mut self, speed: f64) -> Result<(), ActorDied> {
        let due = self.virtual_now(speed);
        if self.stage.world().next_time().is_some_and(|next| next <= due) {
            return self.play_some(due).await;
        }
        let next = self.stage.world().next_time().map(|next| self.real_time_of(next, speed));
        let tell = Instant::now() + TELL_TIME;
        let wake = next.map_or(tell, |next| next.min(tell));
        tokio::select! {
            biased;
            command = self.commands.recv() => {
                // What comes in, comes in now: the clock stands between two events.
                let now = self.virtual_now(speed);
                while self.stage.step(now).await? {}
                self.stage.rest_until(now);
                match command {
                    Some(command) => self.obey(command).await,
                    None => self.stop_asked(),
                }
            }
            () = tokio::time::sleep_until(wake) => {
                let now = self.virtual_now(speed);
                if self.stage.world().next_time().is_none_or(|next| next > now) {
                    self.stage.rest_until(now);
                }
                Ok(())
            }
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), ActorDied> {
        // A reply nobody waits for any more: the client has gone.
        match command {
            Command::Intervene { what, reply } => {
                if let Some(journal) = &mut self.journal {
                    let world = self.stage.world();
                    journal.comes_in(world.now(), world.delivered(), &what);
                }
                let outcome = self.stage.intervene(what).await?;
                let _client_gone = reply.send(outcome);
            }
            Command::Advance { slots, reply } => self.advances.push_back((slots, reply)),
            Command::SetPace { pace, reply } => {
                self.pace = pace;
                self.set_anchor();
                self.stopped_by = Some(pace);
                self.end_waiting_advances(pace);
                let _client_gone = reply.send(());
            }
            Command::Now { reply } => {
                let _client_gone = reply.send((self.stage.world().now(), self.pace));
            }
            Command::Look(look) => look(self.stage.world()),
            Command::Stop => return self.stop_asked(),
        }
        Ok(())
    }

    /// From the running slot on, to the end of the last of so many slots. What else is asked meanwhile is done between
    /// two handfuls of events, so that a long advance can be watched, fed and stopped; a stopped one is not answered.
    async fn advance(&mut self, slots: u32, reply: oneshot::Sender<Advanced>) -> Result<(), ActorDied> {
        let first = self.slots.slot(self.stage.world().now().seconds());
        let mut played = 0;
        self.stopped_by = None;
        while played < slots && self.stopped_by.is_none() {
            let end = SimTime::from_seconds(self.slots.start(Slot(first.0.saturating_add(played + 1))));
            let is_due = |live: &Self| live.stage.world().next_time().is_some_and(|next| next < end);
            while is_due(self) && !self.stopping && self.stopped_by.is_none() {
                self.play_some(end.just_before()).await?;
            }
            if self.stopping {
                return Ok(());
            }
            if !is_due(self) {
                self.stage.rest_until(end);
                played += 1;
            }
        }
        self.set_anchor();
        let advanced = Advanced { slots: played, now: self.stage.world().now(), stopped_by: self.stopped_by };
        let _client_gone = reply.send(advanced);
        Ok(())
    }

    /// Those that wait for the one that is going on are not played any more.
    fn end_waiting_advances(&mut self, pace: Pace) {
        let now = self.stage.world().now();
        for (_, reply) in self.advances.drain(..) {
            let _client_gone = reply.send(Advanced { slots: 0, now, stopped_by: Some(pace) });
        }
    }

    fn stop_asked(&mut self) -> Result<(), ActorDied> {
        self.stopping = true;
        Ok(())
    }

    fn set_anchor(&mut self) {
        self.anchor = (self.stage.world().now(), Instant::now());
    }

    fn virtual_now(&self, speed: f64) -> SimTime {
        let passed = Duration::try_from_secs_f64(self.anchor.1.elapsed().as_secs_f64() * speed);
        self.anchor.0 + passed.unwrap_or(LONGEST_WAIT)
    }

    fn real_time_of(&self, time: SimTime, speed: f64) -> Instant {
        let wait = Duration::try_from_secs_f64(time.since(self.anchor.0).as_secs_f64() / speed);
        self.anchor.1 + wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
    }
}
