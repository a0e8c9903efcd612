//! The frame of a deep fault: a story that each node, or the network as a whole, lives through step by step.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    sim::{DownCause, NetworkEvent, Observer},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// Something that a story can hear of.
pub enum Seen<'a> {
    Did(&'a Event),
    Down(DownCause),
    Up,
    PoolLost,
}

/// The effect of an event on a story.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It stays where it is.
    Stay,
    /// One more of its conditions has come true.
    On,
    /// Only this number of them hold now.
    Back(usize),
}

impl Next {
    pub fn on(holds: bool) -> Self {
        if holds { Self::On } else { Self::Stay }
    }
}

/// The conditions of a fault, and what has to be kept in mind between them.
pub trait Story: Default + Send {
    /// Hears of something at `node`, while `at` conditions hold.
    fn sees(&mut self, at: usize, now: SimTime, node: NodeId, seen: &Seen<'_>) -> Next;
}

/// Each node lives through the story by itself.
#[derive(Default)]
pub struct Each<S> {
    nodes: BTreeMap<NodeId, (usize, S)>,
    best: usize,
}

/// The network lives through the story once.
#[derive(Default)]
pub struct All<S> {
    at: usize,
    best: usize,
    story: S,
}

fn go<S: Story>(at: &mut usize, story: &mut S, now: SimTime, node: NodeId, seen: &Seen<'_>) -> usize {
    match story.sees(*at, now, node, seen) {
        Next::Stay => {}
        Next::On => *at += 1,
        Next::Back(to) => *at = to.min(*at),
    }
    *at
}

fn heard<'a>(event: &NetworkEvent<'a>) -> Option<(NodeId, Seen<'a>)> {
    match event {
        NetworkEvent::NodeDown { node, cause } => Some((*node, Seen::Down(*cause))),
        NetworkEvent::NodeUp { node } => Some((*node, Seen::Up)),
        NetworkEvent::PoolLost { node } => Some((*node, Seen::PoolLost)),
        _ => None,
    }
}

/// A planted fault, as the state machine that decides when it fires. Before it fires, a node with the fault does what one without it does;
/// then it does something that the checker notices at once. So the run in which it fires is the one in which a search finds it.
pub trait Deep: Send {
    /// Hears of something at a node.
    fn tell(&mut self, now: SimTime, node: NodeId, seen: &Seen<'_>);

    /// The number of conditions that have come true in order, of the node that is furthest.
    fn reached(&self) -> usize;
}

impl<S: Story> Deep for Each<S> {
    fn tell(&mut self, now: SimTime, node: NodeId, seen: &Seen<'_>) {
        let (at, story) = self.nodes.entry(node).or_default();
        self.best = self.best.max(go(at, story, now, node, seen));
    }

    fn reached(&self) -> usize {
        self.best
    }
}

impl<S: Story> Deep for All<S> {
    fn tell(&mut self, now: SimTime, node: NodeId, seen: &Seen<'_>) {
        self.best = self.best.max(go(&mut self.at, &mut self.story, now, node, seen));
    }

    fn reached(&self) -> usize {
        self.best
    }
}

/// All deep faults of a run, and how far each came.
#[derive(Clone)]
pub struct Faults(Arc<Mutex<Vec<Box<dyn Deep>>>>);

impl Faults {
    pub fn new(all: Vec<Box<dyn Deep>>) -> Self {
        Self(Arc::new(Mutex::new(all)))
    }

    /// The number of conditions of each fault that came true.
    pub fn reached(&self) -> Vec<usize> {
        self.0.lock().expect("no thread panics while holding it").iter().map(|fault| fault.reached()).collect()
    }

    fn tell(&self, now: SimTime, node: NodeId, seen: &Seen<'_>) {
        self.0
            .lock()
            .expect("no thread panics while holding it")
            .iter_mut()
            .for_each(|fault| fault.tell(now, node, seen));
    }
}

impl Observer for Faults {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.tell(now, node, &Seen::Did(event));
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        if let Some((node, seen)) = heard(event) {
            self.tell(now, node, &seen);
        }
    }
}
