//! Each simulated actor as a ractor actor under one supervisor: for the live testnet, observable while it runs.
//!
//! The stage hands one input at a time to one actor and waits for the effects, so the order of events is the queue's
//! and not the runtime's. Runs on a current-thread runtime.

use crate::{
    actors::{ActorId, Effect, HostedActor as Machine, Role, SimTime, Stimulus},
    ledger::settled_chain::SettledError,
    sim::{
        Observer, Plan, World,
        world::{Delivery, Moment},
    },
};
use ractor::{
    Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent, concurrency::Duration,
    rpc::CallResult,
};
use std::{
    fmt::Display,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Runs begun in this process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// A run whose actors are ractor's.
pub(crate) struct RactorStage {
    world: World,
    hosts: Vec<(ActorId, ActorRef<HostMessage>)>,
    supervisor: ActorRef<SupervisorMessage>,
    /// The first unplanned death, which ends the run.
    death: Arc<Mutex<Option<String>>>,
    effects: Vec<Effect>,
}

/// An actor of the run died or no longer answers, or the actors answer each other for ever: a finding, the run cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ActorDied(String);

impl ActorDied {
    /// An actor cannot continue, because a settled block that it asked for cannot be read.
    pub(in crate::sim) fn asking(why: &SettledError) -> Self {
        Self::of(why)
    }

    /// The events of this instant do not end.
    pub(in crate::sim) fn restless(at: SimTime) -> Self {
        Self(format!(
            "the simulation stands still: the events of the instant {} s do not end",
            at.seconds_since(SimTime::default())
        ))
    }

    fn of(why: impl Display) -> Self {
        Self(format!("an actor of the simulation died: {why}"))
    }
}

impl RactorStage {
    /// Spawns all actors of a plan. Their names hold a number of the run, since names are process-wide.
    ///
    /// # Errors
    /// An actor cannot be spawned.
    pub async fn spawn(plan: &Plan, observers: Vec<Box<dyn Observer>>) -> Result<Self, SpawnErr> {
        let name = format!("run-{}", RUNS.fetch_add(1, Ordering::Relaxed));
        let death = Arc::new(Mutex::new(None));
        let (supervisor, _) = Actor::spawn(Some(format!("{name}/supervisor")), Supervisor, death.clone()).await?;
        let mut machines = plan.actors();
        let world = World::new(plan, &mut machines, observers);
        let mut hosts = Vec::with_capacity(machines.len());
        for (id, machine) in machines {
            let name = format!("{name}/{}", label(id));
            let (host, _) = Actor::spawn_linked(Some(name), Host, machine, supervisor.get_cell()).await?;
            hosts.push((id, host));
        }
        Ok(Self { world, hosts, supervisor, death, effects: Vec::new() })
    }

    /// Clock and queue of the run.
    pub fn world(&self) -> &World {
        &self.world
    }

    pub(super) fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Plays all events due before `until`; the clock then stands there.
    ///
    /// # Errors
    /// An actor died.
    pub async fn run_until(&mut self, until: SimTime) -> Result<(), ActorDied> {
        while self.step(until.just_before()).await? {}
        self.rest_until(until);
        if self.world.is_looked_at() {
            let actors = self.actors().await?;
            self.world.show(&actors);
        }
        Ok(())
    }

    /// Tells the observers that the run ends here.
    ///
    /// # Errors
    /// An actor died.
    pub async fn end(&mut self) -> Result<(), ActorDied> {
        let actors = self.actors().await?;
        self.world.tell_end(&actors);
        Ok(())
    }

    /// All of the run as it is now.
    ///
    /// # Errors
    /// An actor died.
    pub async fn moment(&mut self) -> Result<Moment, ActorDied> {
        let actors = self.actors().await?;
        Ok(Moment::of(&self.world, actors))
    }

    /// Copies of all actors.
    async fn actors(&mut self) -> Result<Vec<Machine>, ActorDied> {
        let mut actors = Vec::with_capacity(self.hosts.len());
        for (id, host) in &self.hosts {
            match host.call(HostMessage::Copy, None::<Duration>).await {
                Ok(CallResult::Success(machine)) => actors.push(*machine),
                Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => return Err(self.died(*id)),
            }
        }
        Ok(actors)
    }

    /// Replaces all actors. Returns the previous ones.
    ///
    /// # Errors
    /// An actor died.
    pub(super) async fn exchange(&mut self, actors: Vec<Machine>) -> Result<Vec<Machine>, ActorDied> {
        let mut was = Vec::with_capacity(self.hosts.len());
        for ((id, host), machine) in self.hosts.iter().zip(actors) {
            let machine = Box::new(machine);
            match host.call(|reply| HostMessage::Become(machine, reply), None::<Duration>).await {
                Ok(CallResult::Success(machine)) => was.push(*machine),
                Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => return Err(self.died(*id)),
            }
        }
        Ok(was)
    }

    /// Moves the clock on, over a time in which nothing is due.
    pub fn rest_until(&mut self, until: SimTime) {
        self.world.rest_until(until);
    }

    /// Plays one event due at `through` or before. Returns true if there was one.
    ///
    /// # Errors
    /// An actor died.
    pub async fn step(&mut self, through: SimTime) -> Result<bool, ActorDied> {
        let Some(Delivery { index, now, what, .. }) = self.world.next(through) else { return Ok(false) };
        let (id, host) = &self.hosts[index];
        let stimulus = what.stimulus();
        let buffer = std::mem::take(&mut self.effects);
        let message = |reply| HostMessage::Deliver(now, stimulus, buffer, reply);
        match host.call(message, None::<Duration>).await {
            Ok(CallResult::Success(mut effects)) => {
                self.world.absorb(*id, &mut effects);
                self.world.watch_clock();
                // A reader may ask the observers between any two events of a live run.
                self.world.rest();
                self.effects = effects;
                Ok(true)
            }
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Err(self.died(*id)),
        }
    }

    /// Stops every actor, in the order of their start, and then the supervisor.
    pub async fn stop(self) {
        for (_, host) in &self.hosts {
            host.stop(None);
        }
        // All have received the message. An actor that has already stopped answers with an error, which does no harm.
        for (_, host) in &self.hosts {
            let _gone_already = host.wait(None).await;
        }
        let _gone_already = self.supervisor.stop_and_wait(None, None).await;
    }

    fn died(&self, id: ActorId) -> ActorDied {
        let why = self.death.lock().expect("no thread panics while holding it").clone();
        ActorDied::of(format!("{}: {}", label(id), why.unwrap_or_else(|| "it no longer answers".into())))
    }
}

fn label(id: ActorId) -> String {
    let role = match id.role {
        Role::Peer => "peer",
        Role::Pool => "pool",
        Role::Delegate => "delegate",
    };
    format!("{}/{role}", id.node)
}

/// Hosts one state machine.
struct Host;

enum HostMessage {
    /// Something happened at this instant; replies once with the effects, in the buffer given.
    Deliver(SimTime, Stimulus, Vec<Effect>, RpcReplyPort<Vec<Effect>>),
    /// Replies with a copy of the machine.
    Copy(RpcReplyPort<Box<Machine>>),
    /// Hosts this machine from now on; replies with the one before.
    Become(Box<Machine>, RpcReplyPort<Box<Machine>>),
}

impl Actor for Host {
    type Msg = HostMessage;
    type State = Machine;
    type Arguments = Machine;

    async fn pre_start(&self, _: ActorRef<HostMessage>, machine: Machine) -> Result<Machine, ActorProcessingErr> {
        Ok(machine)
    }

    async fn handle(
        &self,
        _: ActorRef<HostMessage>,
        message: HostMessage,
        machine: &mut Machine,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostMessage::Deliver(now, stimulus, mut effects, reply) => {
                machine.take(now, stimulus, &mut effects);
                // The stage gave up waiting: the run is over and the effects are not needed.
                let _stage_is_gone = reply.send(effects);
            }
            HostMessage::Copy(reply) => _ = reply.send(Box::new(machine.clone())),
            HostMessage::Become(other, reply) => _ = reply.send(Box::new(std::mem::replace(machine, *other))),
        }
        Ok(())
    }
}

/// Supervises all hosts. Records an unplanned death; the stage then ends the run.
struct Supervisor;

enum SupervisorMessage {}

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = Arc<Mutex<Option<String>>>;
    type Arguments = Arc<Mutex<Option<String>>>;

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMessage>,
        death: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(death)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        death: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorFailed(cell, why) => {
                let name = cell.get_name().unwrap_or_default();
                death.lock().expect("no thread panics while holding it").get_or_insert(format!("{name}: {why}"));
            }
        }
        Ok(())
    }
}
