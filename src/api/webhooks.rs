//! Webhooks beside a running node: each node's dispatcher as an actor, its webhooks on disk, and the posting.
//!
//! ```text
//!   simulation's thread           thread of the webhooks
//!   WebhookObserver ── events ──► actor: WebhookDispatcher ──► lane of each webhook ──► receiver
//!   (never waits)                   ▲ create, list, delete      (bounded queue)     HTTP
//!   API's threads ─── requests ─────┘
//! ```
//!
//! Nothing here affects the simulation: a receiver that hangs slows neither the node nor another
//! receiver, and a run is the same with webhooks and without. Source: api.md 6.

mod actor;
mod error;
mod inbox;
mod lane;
mod numbers;
mod outbox;
mod post;
mod posting;
mod store;
mod targets;

pub use super::http::log::Report;
pub use error::WebhookError;
pub use lane::{Counts, QUEUE_BYTES_MAX};
pub use numbers::{EventDeliveries, EventNumbers, Rehearing};
pub use store::{DataDir, KeptWebhooks};
pub use targets::Targets;

use super::{
    http::{error::ApiError, request::Ports},
    lab::chaos::Chaos,
    view::View,
};
use crate::{
    actors::{
        Event, NodeId, SimTime,
        webhook::{Observation, PeerState, States, Webhook, WebhookChange, WebhookDispatcher, WebhookInput},
    },
    sim::{NetworkEvent, Observer},
};
use actor::{HostArguments, WebhookHost, WebhookMessage, WebhookSupervisor};
use inbox::Inbox;
use ractor::{Actor, ActorRef, RpcReplyPort, SpawnErr, rpc::CallResult};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::runtime::{Handle, Runtime};

/// The longest time that a receiver may take. Source: api.md 6.2.
pub const TIMEOUT: Duration = Duration::from_millis(1_500);
/// The largest number of events that wait for a dispatcher. Further events are dropped and counted.
const INBOX_MAX: u64 = 16_384;
/// The largest number of threads for name lookups.
const LOOKUPS_MAX: usize = 16;

/// The settings of a node's webhooks.
#[derive(Clone)]
pub struct WebhookSettings {
    /// The addresses to which they may be posted.
    pub targets: Targets,
    /// The longest time that a receiver may take.
    pub timeout: Duration,
    /// The folder that stores the webhooks. Without it they end with the process.
    pub data: Option<DataDir>,
    /// The node's log.
    pub report: Report,
    /// The ports that the API shows for peers.
    pub ports: Ports,
    /// The rules of chaos for posts, if there can be any.
    pub chaos: Option<Chaos>,
    /// The numbers of its node's events.
    pub numbers: EventNumbers,
    /// The deliveries of events that no webhook had received when the process was killed.
    pub unheard: Vec<EventDeliveries>,
}

/// The outcomes of all posts, those of deleted webhooks included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub delivered: u64,
    pub failed: u64,
    pub dropped: u64,
    /// Events that were dropped before they reached a dispatcher.
    pub overlooked: u64,
}

impl Default for WebhookSettings {
    /// Returns the defaults: posts to this machine only, keeps nothing, and reports nothing.
    fn default() -> Self {
        let (targets, report): (_, Report) = (Targets::loopback(), Arc::new(|_| {}));
        Self {
            targets,
            timeout: TIMEOUT,
            data: None,
            report,
            ports: Ports::default(),
            chaos: None,
            numbers: EventNumbers::of(1),
            unheard: Vec::new(),
        }
    }
}

/// The thread of the webhooks. Its drop ends all of them.
pub struct WebhookThread {
    /// The runtime, until the drop.
    runtime: Option<Runtime>,
    hosted: Vec<Webhooks>,
}

/// Hosts webhooks on a thread, for networks that may end before it.
#[derive(Clone)]
pub struct WebhookHosts(Handle);

impl WebhookThread {
    /// An idle thread.
    ///
    /// # Errors
    /// The machine cannot start another thread.
    pub fn start() -> Result<Self, WebhookError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(LOOKUPS_MAX)
            .thread_name("webhooks")
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime), hosted: Vec::new() })
    }

    /// Hosts the webhooks of a node until the thread ends. [`WebhookThread::stop`] delivers waiting posts.
    ///
    /// # Errors
    /// As [`WebhookHosts::host`].
    pub fn host(&mut self, view: View, settings: WebhookSettings) -> Result<Webhooks, WebhookError> {
        let webhooks = self.hosts().host(view, settings)?;
        self.hosted.push(webhooks.clone());
        Ok(webhooks)
    }

    /// Hosts webhooks that end by themselves, or with the thread.
    pub fn hosts(&self) -> WebhookHosts {
        WebhookHosts(self.runtime().handle().clone())
    }

    /// Delivers waiting posts for at most a second, and ends.
    pub fn stop(self) {
        self.runtime().block_on(async {
            let finish = |webhooks: &Webhooks| {
                let webhooks = webhooks.clone();
                tokio::spawn(async move { webhooks.ask(WebhookMessage::Finish).await })
            };
            for finished in self.hosted.iter().map(finish).collect::<Vec<_>>() {
                // A dispatcher that has died delivers nothing.
                let _died = finished.await;
            }
        });
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when dropped")
    }
}

impl WebhookHosts {
    /// Hosts the webhooks of a node, stored ones included. From then on the caller must call its observer. It blocks, so it must not
    /// run on a task of a runtime.
    ///
    /// # Errors
    /// The webhooks kept from earlier cannot be read.
    pub fn host(&self, view: View, settings: WebhookSettings) -> Result<Webhooks, WebhookError> {
        let kept = settings.data.as_ref().map(|data| data.webhooks(view.node())).transpose()?;
        let numbers = settings.numbers.clone();
        let (hooks, kept) = match kept {
            Some(KeptWebhooks { store, hooks, outbox, waiting }) => (hooks, Some((store, outbox, waiting))),
            None => (Vec::new(), None),
        };
        let inbox: Arc<Inbox> = Arc::default();
        let arguments = HostArguments {
            dispatcher: WebhookDispatcher::new(view.tree().clone(), hooks),
            targets: Arc::new(settings.targets),
            timeout: settings.timeout,
            kept,
            node: view.node(),
            numbers: settings.numbers,
            unheard: settings.unheard,
            report: settings.report.clone(),
            inbox: inbox.clone(),
            chaos: settings.chaos,
        };
        let actor = self.0.block_on(async {
            let (supervisor, _) = Actor::spawn(None, WebhookSupervisor, settings.report).await?;
            let (actor, _) = Actor::spawn_linked(None, WebhookHost, arguments, supervisor.get_cell()).await?;
            Ok::<_, SpawnErr>(actor)
        })?;
        let webhooks = Webhooks { actor, inbox, view, ports: settings.ports, numbers };
        webhooks.started();
        Ok(webhooks)
    }
}

impl Drop for WebhookThread {
    fn drop(&mut self) {
        // In the background, because the drop may happen on a runtime, which forbids blocking.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// The webhooks of one node. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    actor: ActorRef<WebhookMessage>,
    inbox: Arc<Inbox>,
    view: View,
    ports: Ports,
    numbers: EventNumbers,
}

impl Webhooks {
    /// The observer that sends the node's events to the dispatcher. It never waits.
    pub fn observer(&self) -> WebhookObserver {
        WebhookObserver(self.clone())
    }

    /// All webhooks, oldest first.
    ///
    /// # Errors
    /// The dispatcher has died; so for all calls.
    pub async fn list(&self) -> Result<Vec<Arc<Webhook>>, ApiError> {
        self.ask(WebhookMessage::List).await
    }

    /// The webhook with an id.
    ///
    /// # Errors
    /// The dispatcher has died.
    pub async fn get(&self, id: &str) -> Result<Option<Arc<Webhook>>, ApiError> {
        self.ask(|reply| WebhookMessage::Get(id.to_owned(), reply)).await
    }

    /// Adds a webhook.
    ///
    /// # Errors
    /// There are too many webhooks, or it cannot be stored.
    pub async fn create(&self, hook: Webhook) -> Result<(), ApiError> {
        Ok(self.ask(|reply| WebhookMessage::Create(Box::new(hook), reply)).await??)
    }

    /// Changes a webhook. Returns true if there is one.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub async fn update(&self, id: &str, change: WebhookChange) -> Result<bool, ApiError> {
        Ok(self.ask(|reply| WebhookMessage::Update(id.to_owned(), Box::new(change), reply)).await??)
    }

    /// Deletes a webhook with its waiting posts. Returns true if there was one.
    ///
    /// # Errors
    /// The deletion cannot be stored.
    pub async fn delete(&self, id: &str) -> Result<bool, ApiError> {
        Ok(self.ask(|reply| WebhookMessage::Delete(id.to_owned(), reply)).await??)
    }

    /// The outcomes of each webhook's deliveries, and the number of events that were overlooked.
    ///
    /// # Errors
    /// The dispatcher has died.
    pub async fn counts(&self) -> Result<(Vec<(Arc<Webhook>, Counts)>, u64), ApiError> {
        Ok((self.ask(WebhookMessage::Counts).await?, self.inbox.overlooked.load(Ordering::Relaxed)))
    }

    /// The outcomes of all posts since the node started.
    pub fn totals(&self) -> Totals {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Inbox { delivered, failed, dropped, overlooked, .. } = &*self.inbox;
        Totals {
            delivered: count(delivered),
            failed: count(failed),
            dropped: count(dropped),
            overlooked: count(overlooked),
        }
    }

    /// Ends the dispatcher with the network. It delivers waiting posts for a second at most. The caller does not wait for it.
    pub fn end(&self) {
        // It may have died before.
        let _died = self.actor.cast(WebhookMessage::End);
    }

    async fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(RpcReplyPort<T>) -> WebhookMessage,
    ) -> Result<T, ApiError> {
        match self.actor.call(message, None).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => {
                Err(ApiError::Internal("the webhook dispatcher has died".to_owned()))
            }
        }
    }

    fn started(&self) {
        self.hear(self.view.now(), WebhookInput::Started);
    }

    fn hear(&self, now: SimTime, input: WebhookInput) {
        // The supervisor has reported the dispatcher's death. The node continues.
        let _died = self.actor.cast(WebhookMessage::Hear { now, input });
    }

    fn observed(&self, now: SimTime, event: &Event) {
        let number = self.numbers.next(self.view.node());
        if !self.inbox.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        if self.inbox.waiting.load(Ordering::Relaxed) >= INBOX_MAX {
            self.inbox.overlooked.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.inbox.waiting.fetch_add(1, Ordering::Relaxed);
        let mut observation = Observation { number: Some(number), ..Observation::from(event.clone()) };
        match event {
            // The states are in memory now, and perhaps not when the dispatcher reads the event.
            Event::BlockApplied(link) => observation.states = Some(States::around(self.view.tree(), link)),
            Event::PeerAdded(peer) | Event::PeerRemoved(peer) => observation.peer = Some(self.peer(*peer)),
            _ => {}
        }
        self.hear(now, WebhookInput::Observed(Box::new(observation)));
    }

    fn peer(&self, node: NodeId) -> PeerState {
        let (tip, latency_ms) = self.view.neighbours().known(node);
        numbers::peer_state(node, self.ports, latency_ms, tip)
    }
}

/// The observer that sends a node's events to its dispatcher.
pub struct WebhookObserver(Webhooks);

impl Observer for WebhookObserver {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if node == self.0.view.node() {
            self.0.observed(now, event);
        }
    }

    /// A node that goes back to a snapshot reverts blocks and applies others. Its webhooks receive each: reverted blocks newest
    /// first, then applied blocks oldest first.
    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let Some((node, events)) = numbers::moved(event)
            && node == self.0.view.node()
        {
            events.iter().for_each(|event| self.0.observed(now, event));
        }
    }
}
