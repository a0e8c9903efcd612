//! When faults and sources begin and end.

use super::{Item, World};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::Height,
    sim::{
        Plan,
        fault::{EventKind, FaultKind, Rounds, Trigger},
    },
};

/// Everything that begins and ends: the faults of a plan, then its sources, by one index.
#[derive(Clone)]
pub struct Agenda {
    entries: Vec<(Trigger, Option<Trigger>)>,
    waiting: Vec<Waiting>,
}

/// A beginning or an end that waits for something to happen.
#[derive(Clone)]
struct Waiting {
    index: usize,
    ends: bool,
    trigger: Trigger,
    /// The node of an event that is waited for.
    node: Option<NodeId>,
    seen: u32,
}

impl Agenda {
    /// What a plan has planned.
    pub fn new(plan: &Plan) -> Self {
        let faults = plan.faults.iter().map(|fault| match &fault.kind {
            FaultKind::Offline(offline) if offline.rounds.is_some() => whole_span(offline.rounds.as_ref()),
            FaultKind::Heal(_) | FaultKind::Restart(_) => (fault.from.clone(), Some(Trigger::After(0.0))),
            _ => (fault.from.clone(), fault.until.clone()),
        });
        let sources = plan.sources.iter().map(|source| (source.from.clone(), source.until.clone()));
        Self { entries: faults.chain(sources).collect(), waiting: Vec::new() }
    }

    /// Whether anything waits for something to happen.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether one of so many faults waits for something to happen.
    pub fn has_fault_waiting(&self, faults: usize) -> bool {
        self.waiting.iter().any(|waiting| waiting.index < faults)
    }

    /// What an event gives cause for.
    pub fn observe(&mut self, at: NodeId, event: &Event, best: &Link, tree: &BlockTree) -> Vec<Item> {
        let mut due = Vec::new();
        let kind = EventKind::of(event);
        self.waiting.retain_mut(|waiting| {
            let happened = match &waiting.trigger {
                Trigger::Event(wanted) if wanted.kind == kind && waiting.node.is_none_or(|node| node == at) => {
                    waiting.seen += 1;
                    waiting.seen >= wanted.count
                }
                Trigger::Height(_) | Trigger::Round(_) if kind == EventKind::BlockApplied => {
                    is_reached(&waiting.trigger, best.height(), tree)
                }
                _ => false,
            };
            if happened {
                due.push(if waiting.ends { Item::End(waiting.index) } else { Item::Begin(waiting.index) });
            }
            !happened
        });
        due
    }
}

/// From the first to the last of some rounds.
fn whole_span(rounds: Option<&Rounds>) -> (Trigger, Option<Trigger>) {
    let spans = rounds.map(Rounds::spans).unwrap_or_default();
    let first = spans.iter().map(|span| span.start().0).min().unwrap_or(1);
    let last = spans.iter().map(|span| span.end().0).max().unwrap_or(1);
    (Trigger::Round(first), Some(Trigger::Round(last + 1)))
}

/// Whether a chain of this height has come to a height or round.
fn is_reached(trigger: &Trigger, best: Height, tree: &BlockTree) -> bool {
    match trigger {
        Trigger::Height(height) => best.0 >= *height,
        Trigger::Round(round) => tree.schedule().at(best.next()).round.0 >= *round,
        _ => false,
    }
}

impl World {
    /// Plans every beginning.
    pub(super) fn plan_agenda(&mut self) {
        for index in 0..self.agenda.entries.len() {
            let from = self.agenda.entries[index].0.clone();
            self.arm(index, false, from);
        }
    }

    /// Sees to it that a beginning or an end comes when its trigger fires; at once, if that is over.
    fn arm(&mut self, index: usize, ends: bool, trigger: Trigger) {
        let is_reached = is_reached(&trigger, self.best().height(), &self.plan.tree);
        let at = trigger.instant(&self.plan, Some(self.now)).or_else(|| is_reached.then_some(self.now));
        match at {
            Some(at) => self.schedule(at.max(self.now), if ends { Item::End(index) } else { Item::Begin(index) }),
            None => {
                let node = match &trigger {
                    Trigger::Event(event) => event.node.as_ref().and_then(|node| self.names.node(node)),
                    _ => None,
                };
                self.agenda.waiting.push(Waiting { index, ends, trigger, node, seen: 0 });
            }
        }
    }

    /// Puts a beginning or an end into the queue.
    pub(super) fn schedule(&mut self, at: SimTime, due: Item) {
        if let Item::Begin(index) | Item::End(index) = due {
            self.ahead.scheduled += u32::from(self.is_fault(index));
        }
        self.queue.push(at, due);
    }

    fn is_fault(&self, index: usize) -> bool {
        index < self.plan.faults.len()
    }

    pub(super) fn begin(&mut self, index: usize) {
        self.ahead.scheduled -= u32::from(self.is_fault(index));
        match index.checked_sub(self.plan.faults.len()) {
            None => self.begin_fault(index),
            Some(source) => {
                self.sources[source] = Some((self.plan.sources[source].make)());
                self.queue.push(self.now, Item::Poll(source));
            }
        }
        if let Some(until) = self.agenda.entries[index].1.clone() {
            self.arm(index, true, until);
        }
    }

    pub(super) fn end(&mut self, index: usize) {
        self.ahead.scheduled -= u32::from(self.is_fault(index));
        match index.checked_sub(self.plan.faults.len()) {
            None => self.end_fault(index),
            Some(source) => self.sources[source] = None,
        }
    }
}
