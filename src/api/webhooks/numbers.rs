//! The numbers of a node's events, and the recovery of events that no webhook received before a kill.

use super::store::{DataDir, StoreError};
use crate::{
    actors::{
        Event, NodeId, SimTime,
        webhook::{Delivery, Observation, PeerState, States, WebhookDispatcher, WebhookEffect, WebhookInput},
    },
    api::{
        Ports,
        view::{VERSION, latency_ms},
    },
    ledger::{BlockTree, Link},
    sim::{NetworkEvent, Observer, Plan, network::MessageNetwork, tips::path},
};
use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Numbers the events of the served nodes, from 1 at the start of the chain. A replay gives each event the same number.
/// Clones share the numbers.
#[derive(Clone, Default)]
pub struct EventNumbers(Arc<[AtomicU64]>);

impl EventNumbers {
    /// The numbers of the first `nodes` nodes.
    pub fn of(nodes: u32) -> Self {
        Self((0..nodes).map(|_| AtomicU64::new(0)).collect())
    }

    /// Counts an event at a node and returns its number.
    pub(super) fn next(&self, node: NodeId) -> u64 {
        self.0.get(node.0 as usize).map_or(0, |number| number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The number of the last event at each node.
    pub fn all(&self) -> Vec<u64> {
        self.0.iter().map(|number| number.load(Ordering::Relaxed)).collect()
    }

    /// The number of the last event at a node; 0 before the first.
    pub fn last(&self, node: NodeId) -> u64 {
        self.0.get(node.0 as usize).map_or(0, |number| number.load(Ordering::Relaxed))
    }
}

/// Counts the events of a node without webhooks.
impl Observer for EventNumbers {
    fn observe(&mut self, _: SimTime, node: NodeId, _: &Event) {
        self.next(node);
    }

    fn observe_network(&mut self, _: SimTime, event: &NetworkEvent<'_>) {
        if let Some((node, events)) = moved(event) {
            events.iter().for_each(|_| _ = self.next(node));
        }
    }
}

/// The events for a node's webhooks when its run goes to a snapshot: reverted blocks, newest first, then applied blocks,
/// oldest first.
pub(super) fn moved(event: &NetworkEvent<'_>) -> Option<(NodeId, Vec<Event>)> {
    let NetworkEvent::Moved { node, from, to, begins: false, .. } = event else { return None };
    let (left, taken) = path(from, to);
    let (left, taken) = (left.into_iter().map(Event::BlockReverted), taken.into_iter().map(Event::BlockApplied));
    Some((*node, left.chain(taken).collect()))
}

/// The deliveries that an event fired, with its number.
pub type EventDeliveries = (u64, Vec<Delivery>);

/// The observer of a stored testnet's replay. It fires the events that no webhook received before the kill, for the stored
/// webhooks. Clones share the state.
#[derive(Clone)]
pub struct Rehearing {
    hearers: Arc<Mutex<Vec<Hearer>>>,
    numbers: EventNumbers,
}

struct Hearer {
    dispatcher: WebhookDispatcher,
    tree: Arc<BlockTree>,
    node: NodeId,
    /// The network, for round-trip times to peers.
    network: Arc<MessageNetwork>,
    /// The number of the last event that the webhooks received before the kill.
    heard: u64,
    fired: Vec<EventDeliveries>,
}

impl Rehearing {
    /// Starts the numbers of the first `nodes` nodes from the files of a folder.
    ///
    /// # Errors
    /// The stored numbers cannot be read.
    pub fn new(data: &DataDir, nodes: u32, plan: &Plan) -> Result<Self, StoreError> {
        let (tree, network) = (&plan.tree, Arc::new(plan.network()));
        let hearer = |node: NodeId| {
            let kept = data.webhooks(node)?;
            let dispatcher = WebhookDispatcher::new(tree.clone(), kept.hooks);
            let (tree, network, heard) = (tree.clone(), network.clone(), kept.outbox.heard());
            Ok(Hearer { dispatcher, tree, node, network, heard, fired: Vec::new() })
        };
        let hearers = (0..nodes).map(NodeId).map(hearer).collect::<Result<_, StoreError>>()?;
        Ok(Self { hearers: Arc::new(Mutex::new(hearers)), numbers: EventNumbers::of(nodes) })
    }

    /// Returns the observer for a folder without such events.
    pub fn nothing(numbers: EventNumbers) -> Self {
        Self { hearers: Arc::default(), numbers }
    }

    /// The numbers of the events, with which the run continues.
    pub fn numbers(&self) -> EventNumbers {
        self.numbers.clone()
    }

    /// Continues after the events `last`, the last ones of the nodes that were served then.
    ///
    /// # Errors
    /// An earlier event may not have reached its webhooks, or was not counted.
    ///
    /// # Panics
    /// A thread has panicked while it watched.
    pub fn go_on(&self, last: &[u64]) -> Result<(), String> {
        let hearers = self.hearers.lock().expect("no thread panics while holding it");
        if last.len() < hearers.len() {
            return Err(format!("{} nodes were served then, and {} are now", last.len(), hearers.len()));
        }
        for (hearer, last) in hearers.iter().zip(last) {
            if hearer.heard < *last && hearer.dispatcher.hooks().iter().any(|hook| hook.enabled) {
                return Err(format!("webhooks of {} have yet to hear of events before it", hearer.node));
            }
        }
        let numbers = self.numbers.0.iter().zip(last);
        numbers.for_each(|(number, last)| number.store(*last, Ordering::Relaxed));
        Ok(())
    }

    /// Removes and returns the deliveries of the events that no webhook of a node received, in their order.
    ///
    /// # Panics
    /// A thread has panicked while it watched.
    pub fn fired(&self, node: NodeId) -> Vec<EventDeliveries> {
        let mut hearers = self.hearers.lock().expect("no thread panics while holding it");
        hearers.get_mut(node.0 as usize).map_or_else(Vec::new, |hearer| std::mem::take(&mut hearer.fired))
    }

    fn hear(&self, now: SimTime, node: NodeId, event: &Event) {
        let number = self.numbers.next(node);
        let mut hearers = self.hearers.lock().expect("no thread panics while holding it");
        if let Some(hearer) = hearers.get_mut(node.0 as usize).filter(|hearer| number > hearer.heard) {
            hearer.hear(now, number, event);
        }
    }
}

impl Hearer {
    fn hear(&mut self, now: SimTime, number: u64, event: &Event) {
        if !self.dispatcher.hooks().iter().any(|hook| hook.enabled) {
            return;
        }
        let mut observation = Observation { number: Some(number), ..Observation::from(event.clone()) };
        match event {
            Event::BlockApplied(link) => observation.states = Some(States::around(&self.tree, link)),
            // A replay does not know the peer's last tip.
            Event::PeerAdded(peer) | Event::PeerRemoved(peer) => {
                let latency = latency_ms(&self.network, self.node, *peer);
                observation.peer = Some(peer_state(*peer, Ports::default(), latency, None));
            }
            _ => {}
        }
        let mut effects = Vec::new();
        self.dispatcher.step(now, &WebhookInput::Observed(Box::new(observation)), &mut effects);
        if !effects.is_empty() {
            let deliveries = effects.into_iter().map(|WebhookEffect::Deliver(delivery)| delivery).collect();
            self.fired.push((number, deliveries));
        }
    }
}

impl Observer for Rehearing {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.hear(now, node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let Some((node, events)) = moved(event) {
            events.iter().for_each(|event| self.hear(now, node, event));
        }
    }
}

/// A peer, as webhooks show it.
pub(super) fn peer_state(node: NodeId, ports: Ports, latency_ms: u32, tip: Option<Arc<Link>>) -> PeerState {
    let (ip, version) = (Ipv4Addr::from(node.address()).to_string(), VERSION.to_owned());
    PeerState { ip, port: ports.p2p, version, latency_ms, tip }
}
