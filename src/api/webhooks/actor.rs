//! The ractor actor that hosts a node's [`WebhookDispatcher`], stores its webhooks on disk, and queues the deliveries.

use super::{
    error::WebhookError,
    inbox::Inbox,
    lane::{Counts, Lane},
    numbers::{EventDeliveries, EventNumbers},
    outbox::{Outbox, PostNumber, Waiting},
    post::Poster,
    posting::{Posting, SharedOutbox},
    store::Store,
    targets::Targets,
};
use crate::{
    actors::{
        NodeId, SimTime,
        webhook::{Delivery, TooManyWebhooks, Webhook, WebhookChange, WebhookDispatcher, WebhookEffect, WebhookInput},
    },
    api::{http::log::Report, lab::chaos::Chaos},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinHandle},
};

/// The time that the end waits for posts on their way.
const LAST_DELIVERIES: Duration = Duration::from_secs(1);

/// The largest number of receivers at one time, because a process has a limited number of open files.
const CONNECTIONS_MAX: usize = 256;

/// The messages to a hosted dispatcher.
pub(crate) enum WebhookMessage {
    /// An input for the dispatcher, at this instant.
    Hear {
        now: SimTime,
        input: WebhookInput,
    },
    /// All webhooks, oldest first.
    List(RpcReplyPort<Vec<Arc<Webhook>>>),
    /// The webhook with an id, if there is one.
    Get(String, RpcReplyPort<Option<Arc<Webhook>>>),
    Create(Box<Webhook>, RpcReplyPort<Result<(), WebhookError>>),
    /// Replies true if it was there.
    Update(String, Box<WebhookChange>, RpcReplyPort<Result<bool, WebhookError>>),
    /// Replies true if it was there.
    Delete(String, RpcReplyPort<Result<bool, WebhookError>>),
    /// The outcomes of each webhook's deliveries, in the order of [`WebhookMessage::List`].
    Counts(RpcReplyPort<Vec<(Arc<Webhook>, Counts)>>),
    /// Delivers what waits, for a short while, and replies when nothing more will be.
    Finish(RpcReplyPort<()>),
    /// The same, and the actor ends.
    End,
}

/// The arguments with which the actor starts.
pub(crate) struct HostArguments {
    pub dispatcher: WebhookDispatcher,
    pub targets: Arc<Targets>,
    pub timeout: Duration,
    /// The store of the webhooks, with the outbox and its unfinished posts.
    pub kept: Option<(Store, Outbox, Vec<Waiting>)>,
    pub node: NodeId,
    pub numbers: EventNumbers,
    /// The deliveries of events that no webhook had received before a kill.
    pub unheard: Vec<EventDeliveries>,
    pub report: Report,
    pub inbox: Arc<Inbox>,
    /// The rules of chaos for posts, if there can be any.
    pub chaos: Option<Chaos>,
}

/// The state of the actor.
pub(crate) struct HostState {
    arguments: HostArguments,
    store: Option<Store>,
    outbox: SharedOutbox,
    /// The number of the last event that the dispatcher has processed.
    heard: u64,
    lanes: BTreeMap<String, Lane>,
    turns: Arc<Semaphore>,
    effects: Vec<WebhookEffect>,
}

/// Hosts one dispatcher.
pub(crate) struct WebhookHost;

impl Actor for WebhookHost {
    type Msg = WebhookMessage;
    type State = HostState;
    type Arguments = HostArguments;

    async fn pre_start(
        &self,
        _: ActorRef<WebhookMessage>,
        mut arguments: HostArguments,
    ) -> Result<HostState, ActorProcessingErr> {
        let turns = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (store, outbox, waiting) = match arguments.kept.take() {
            Some((store, outbox, waiting)) => (Some(store), Some(outbox), waiting),
            None => (None, None, Vec::new()),
        };
        let outbox = SharedOutbox::new(outbox, arguments.report.clone());
        let heard = arguments.numbers.last(arguments.node);
        let unheard = mem::take(&mut arguments.unheard);
        let mut state =
            HostState { arguments, store, outbox, heard, lanes: BTreeMap::new(), turns, effects: Vec::new() };
        state.goes_on(waiting, unheard);
        state.tell_observers();
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<WebhookMessage>,
        message: WebhookMessage,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        // A reply fails if its client has gone.
        match message {
            WebhookMessage::Hear { now, input } => state.hear(now, &input),
            WebhookMessage::List(reply) => _ = reply.send(state.arguments.dispatcher.hooks().to_vec()),
            WebhookMessage::Get(id, reply) => _ = reply.send(state.arguments.dispatcher.get(&id).cloned()),
            WebhookMessage::Create(hook, reply) => _ = reply.send(state.create(*hook)),
            WebhookMessage::Update(id, change, reply) => _ = reply.send(state.update(&id, *change)),
            WebhookMessage::Delete(id, reply) => _ = reply.send(state.delete(&id)),
            WebhookMessage::Counts(reply) => _ = reply.send(state.counts()),
            WebhookMessage::Finish(reply) => {
                state.finish().await;
                _ = reply.send(());
            }
            WebhookMessage::End => {
                state.finish().await;
                myself.stop(None);
            }
        }
        Ok(())
    }
}

impl HostState {
    /// Posts the deliveries that were unfinished when the process ended.
    fn goes_on(&mut self, waiting: Vec<Waiting>, unheard: Vec<EventDeliveries>) {
        for Waiting { number, hook, body } in waiting {
            match self.arguments.dispatcher.get(&hook).cloned() {
                Some(hook) => self.deliver(Posting::new(Delivery::again(hook, body), number, &self.outbox)),
                None => self.outbox.done(number),
            }
        }
        for (number, deliveries) in unheard {
            self.fired(number, deliveries);
        }
        self.outbox.hears(self.heard);
    }

    fn fired(&mut self, event: u64, deliveries: Vec<Delivery>) {
        self.outbox.fired(event, &deliveries);
        for (post, delivery) in (0..).zip(deliveries) {
            self.deliver(Posting::new(delivery, PostNumber { event, post }, &self.outbox));
        }
    }

    fn hear(&mut self, now: SimTime, input: &WebhookInput) {
        self.arguments.dispatcher.step(now, input, &mut self.effects);
        let deliveries: Vec<_> = self.effects.drain(..).map(|WebhookEffect::Deliver(delivery)| delivery).collect();
        match input {
            WebhookInput::Observed(observation) => {
                self.heard = observation.number.unwrap_or(self.heard);
                self.fired(self.heard, deliveries);
            }
            // The start of a node is posted at each start.
            WebhookInput::Started => deliveries.into_iter().for_each(|delivery| {
                self.deliver(Posting::unkept(delivery, self.heard, &self.outbox));
            }),
        }
        // Events that no webhook wants count as heard too, so that a checkpoint after them can be used. If several events wait,
        // only the last one is recorded.
        if matches!(input, WebhookInput::Observed(_))
            && self.arguments.inbox.waiting.fetch_sub(1, Ordering::Relaxed) == 1
        {
            self.outbox.hears(self.heard);
        }
    }

    fn deliver(&mut self, posting: Posting) {
        let HostArguments { targets, timeout, report, inbox, chaos, .. } = &self.arguments;
        let strike = chaos.as_ref().map(|chaos| chaos.post(&posting.delivery.head.event)).unwrap_or_default();
        let lane = self.lanes.entry(posting.delivery.hook.id.clone());
        let new =
            || Lane::new(Poster::new(targets.clone(), *timeout), self.turns.clone(), report.clone(), inbox.clone());
        lane.or_insert_with(new).struck(posting, strike);
    }

    fn create(&mut self, hook: Webhook) -> Result<(), WebhookError> {
        // The log is public. The target is not in it, because a target may contain a secret.
        let (report, id) = (format!("Webhook {} created: {}", hook.id, hook.event), hook.id.clone());
        self.change(&id, |dispatcher| dispatcher.create(hook))?;
        (self.arguments.report)(&report);
        Ok(())
    }

    fn update(&mut self, id: &str, change: WebhookChange) -> Result<bool, WebhookError> {
        let is_there = self.change(id, |dispatcher| dispatcher.update(id, change))?;
        if is_there {
            (self.arguments.report)(&format!("Webhook {id} updated"));
        }
        Ok(is_there)
    }

    fn delete(&mut self, id: &str) -> Result<bool, WebhookError> {
        let was_there = self.change(id, |dispatcher| Ok(dispatcher.delete(id)))?;
        if was_there {
            (self.arguments.report)(&format!("Webhook {id} deleted"));
        }
        if let Some(lane) = self.lanes.remove(id) {
            lane.abort();
        }
        self.outbox.forget(id);
        Ok(was_there)
    }

    /// Changes one webhook on disk and then here. A change that cannot be stored has no effect.
    fn change<T>(
        &mut self,
        id: &str,
        change: impl FnOnce(&mut WebhookDispatcher) -> Result<T, TooManyWebhooks>,
    ) -> Result<T, WebhookError> {
        let mut changed = self.arguments.dispatcher.clone();
        let outcome = change(&mut changed)?;
        let (before, after) = (self.arguments.dispatcher.get(id), changed.get(id));
        if before != after {
            let heard = match self.arguments.inbox.is_wanted.load(Ordering::Relaxed) {
                true => self.heard,
                false => self.arguments.numbers.last(self.arguments.node),
            };
            self.outbox.settle(heard).map_err(|why| WebhookError::NotKept(why.to_string()))?;
        }
        if let Some(store) = self.store.as_mut().filter(|_| before != after) {
            let kept = match after {
                Some(hook) => store.keep(hook),
                None => store.forget(id),
            };
            kept.map_err(|why| WebhookError::NotKept(why.to_string()))?;
        }
        self.arguments.dispatcher = changed;
        self.tell_observers();
        Ok(outcome)
    }

    fn tell_observers(&self) {
        let is_wanted = self.arguments.dispatcher.hooks().iter().any(|hook| hook.enabled);
        self.arguments.inbox.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    fn counts(&self) -> Vec<(Arc<Webhook>, Counts)> {
        let counts = |hook: &Arc<Webhook>| self.lanes.get(&hook.id).map_or_else(Counts::default, Lane::counts);
        self.arguments.dispatcher.hooks().iter().map(|hook| (hook.clone(), counts(hook))).collect()
    }

    async fn finish(&mut self) {
        // Dropped events count as heard, so that they are not posted later.
        if self.arguments.inbox.waiting.load(Ordering::Relaxed) == 0 {
            self.outbox.hears(self.arguments.numbers.last(self.arguments.node));
        }
        let tasks: Vec<_> = mem::take(&mut self.lanes).into_values().map(Lane::close).collect();
        let ends: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in tasks {
                // One that panicked delivers no more either.
                let _panicked = task.await;
            }
        };
        // Posts that have not arrived by then wait in the outbox, if there is one.
        let _too_slow = tokio::time::timeout(LAST_DELIVERIES, all).await;
        ends.iter().for_each(AbortHandle::abort);
    }
}

/// The supervisor, which reports a dispatcher's death. The node continues without webhooks.
pub(crate) struct WebhookSupervisor;

/// A supervisor receives no messages.
pub(crate) enum SupervisorMessage {}

impl Actor for WebhookSupervisor {
    type Msg = SupervisorMessage;
    type State = Report;
    type Arguments = Report;

    async fn pre_start(&self, _: ActorRef<SupervisorMessage>, report: Report) -> Result<Report, ActorProcessingErr> {
        Ok(report)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        report: &mut Report,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            // Its one dispatcher has ended with its network.
            SupervisionEvent::ActorTerminated(..) => myself.stop(None),
            SupervisionEvent::ActorFailed(_, why) => report(&format!("The webhook dispatcher died: {why}")),
        }
        Ok(())
    }
}
