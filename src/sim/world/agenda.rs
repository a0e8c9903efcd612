//! The beginnings and ends of faults and sources.
//!
//! Faults are numbered as in the plan; those that are added while the run goes on take the next numbers. A fault that clients carry out
//! also has a source, with the same beginning and end.

use super::{Item, World};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{BlockTree, codec::saved},
    protocol::{Height, RoundNumber},
    sim::{
        Fault, FaultKind, Plan, PlannedSource, Tips,
        fault::{EventKind, Rounds, Trigger},
    },
};
use std::collections::BTreeSet;

/// An entry that begins and ends: a fault or a source, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Fault(usize),
    Source(usize),
}

/// A beginning and, unless it lasts, an end.
type Span = (Trigger, Option<Trigger>);

/// Everything that begins and ends.
#[derive(Clone)]
pub(crate) struct Agenda {
    faults: Vec<Span>,
    sources: Vec<Span>,
    waiting: Vec<WaitingEntry>,
    /// Faults that were ended from outside. Their events in the queue no longer take effect.
    withdrawn: BTreeSet<usize>,
}

/// A beginning or an end that waits for something to happen.
#[derive(Clone)]
struct WaitingEntry {
    entry: Entry,
    ends: bool,
    trigger: Trigger,
    /// The node at which the event must happen, if only one counts.
    node: Option<NodeId>,
    seen: u32,
}

impl Agenda {
    /// The entries of a plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            faults: plan.faults.iter().map(of_fault).collect(),
            sources: plan.sources.iter().map(of_source).collect(),
            waiting: Vec::new(),
            withdrawn: BTreeSet::new(),
        }
    }

    /// Plans one more fault.
    pub fn add_fault(&mut self, fault: &Fault) -> Entry {
        self.faults.push(of_fault(fault));
        Entry::Fault(self.faults.len() - 1)
    }

    /// Plans one more source.
    pub fn add_source(&mut self, source: &PlannedSource) -> Entry {
        self.sources.push(of_source(source));
        Entry::Source(self.sources.len() - 1)
    }

    /// Withdraws a fault, and forgets the waiting beginnings and ends of it and its sources.
    pub fn withdraw(&mut self, fault: usize, sources: &[usize]) {
        self.withdrawn.insert(fault);
        self.waiting.retain(|waiting| match waiting.entry {
            Entry::Fault(of) => of != fault,
            Entry::Source(of) => !sources.contains(&of),
        });
    }

    /// Returns true if a fault was ended from outside.
    pub fn is_withdrawn(&self, fault: usize) -> bool {
        self.withdrawn.contains(&fault)
    }

    fn span(&self, entry: Entry) -> &Span {
        match entry {
            Entry::Fault(index) => &self.faults[index],
            Entry::Source(index) => &self.sources[index],
        }
    }

    /// Returns true if a beginning or an end waits for something to happen.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if the beginning or the end of a fault waits for something to happen.
    pub fn has_fault_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| matches!(waiting.entry, Entry::Fault(_)))
    }

    /// Returns the beginnings and ends that an event triggers.
    pub fn observe(&mut self, at: NodeId, event: &Event) -> Vec<Item> {
        let kind = EventKind::of(event);
        self.take(|waiting| match &waiting.trigger {
            Trigger::Event(wanted) if wanted.kind == kind && waiting.node.is_none_or(|node| node == at) => {
                waiting.seen += 1;
                waiting.seen >= wanted.count
            }
            _ => false,
        })
    }

    /// Returns the beginnings and ends whose height or round has come.
    pub fn reached(&mut self, tips: &Tips, best: Height, tree: &BlockTree) -> Vec<Item> {
        self.take(|waiting| waiting.trigger.has_come(tips, best, tree))
    }

    /// Removes and returns the entries whose trigger fires.
    fn take(&mut self, mut happens: impl FnMut(&mut WaitingEntry) -> bool) -> Vec<Item> {
        let mut due = Vec::new();
        self.waiting.retain_mut(|waiting| {
            let happened = happens(waiting);
            if happened {
                due.push(if waiting.ends { Item::End(waiting.entry) } else { Item::Begin(waiting.entry) });
            }
            !happened
        });
        due
    }
}

fn of_fault(fault: &Fault) -> Span {
    match fault.kind.by_rounds() {
        Some((_, rounds)) => whole_span(rounds),
        None if fault.kind.facts().is_over_at_once() => (fault.from.clone(), Some(Trigger::After(0.0))),
        None => (fault.from.clone(), fault.until.clone()),
    }
}

fn of_source(source: &PlannedSource) -> Span {
    (source.from.clone(), source.until.clone())
}

/// From the first to the last of some rounds.
fn whole_span(rounds: &Rounds) -> Span {
    let spans = rounds.spans();
    let first = spans.iter().map(|span| span.start().0).min().unwrap_or(1);
    let last = rounds.last().map_or(1, |last| last.0);
    (Trigger::Round(first), Some(Trigger::Round(last.saturating_add(1))))
}

impl World {
    /// The last round of a fault that lasts for rounds, if most of the network is beyond it.
    pub fn round_passed(&self, kind: &FaultKind) -> Option<RoundNumber> {
        let (_, rounds) = kind.by_rounds()?;
        let after = |last: &RoundNumber| Trigger::Round(last.0.saturating_add(1));
        let is_over = |last: &RoundNumber| after(last).has_come(self.tips(), self.best().height(), self.tree());
        rounds.last().filter(is_over)
    }

    /// Plans every beginning.
    pub(super) fn plan_agenda(&mut self) {
        let faults = (0..self.agenda.faults.len()).map(Entry::Fault);
        let all: Vec<Entry> = faults.chain((0..self.agenda.sources.len()).map(Entry::Source)).collect();
        all.into_iter().for_each(|entry| self.arm_beginning(entry));
    }

    /// Plans a beginning.
    pub(super) fn arm_beginning(&mut self, entry: Entry) {
        let from = self.agenda.span(entry).0.clone();
        self.arm(entry, false, from);
    }

    /// Schedules a beginning or an end for the instant of its trigger. It comes at once if that instant has passed, or if the height or
    /// round of the trigger is reached. Otherwise it waits.
    fn arm(&mut self, entry: Entry, ends: bool, trigger: Trigger) {
        let is_reached = trigger.has_come(self.tips(), self.best().height(), &self.plan.tree);
        let at = trigger.instant(&self.plan, Some(self.now)).or_else(|| is_reached.then_some(self.now));
        match at {
            Some(at) => self.schedule(at.max(self.now), if ends { Item::End(entry) } else { Item::Begin(entry) }),
            None => {
                let node = match &trigger {
                    Trigger::Event(event) => event.node.as_ref().and_then(|node| self.names.node(node)),
                    _ => None,
                };
                self.agenda.waiting.push(WaitingEntry { entry, ends, trigger, node, seen: 0 });
            }
        }
    }

    /// Schedules the beginnings and ends that waited for a height or a round that has been reached. Called after a node has applied a
    /// block, gone down or come back.
    pub(super) fn chains_moved(&mut self) {
        if self.agenda.is_waiting() {
            for due in self.agenda.reached(self.nodes.tips(), self.nodes.best().height(), &self.plan.tree) {
                self.schedule(self.now, due);
            }
        }
    }

    /// Puts a beginning or an end into the queue.
    pub(super) fn schedule(&mut self, at: SimTime, due: Item) {
        if let Item::Begin(Entry::Fault(_)) | Item::End(Entry::Fault(_)) = due {
            self.ahead.scheduled += 1;
        }
        self.queue.push(at, due);
    }

    pub(super) fn begin(&mut self, entry: Entry) {
        let fault = match entry {
            Entry::Fault(index) => {
                self.ahead.scheduled -= 1;
                Some(index)
            }
            Entry::Source(index) => self.plan.sources[index].fault,
        };
        if fault.is_some_and(|fault| self.agenda.is_withdrawn(fault)) {
            return;
        }
        match entry {
            Entry::Fault(index) => self.begin_fault(index),
            Entry::Source(index) => {
                self.sources[index] = Some((self.plan.sources[index].make)());
                self.source_draws_anew(index);
                self.queue.push(self.now, Item::Poll(index));
            }
        }
        if let Some(until) = self.agenda.span(entry).1.clone() {
            self.arm(entry, true, until);
        }
    }

    pub(super) fn end(&mut self, entry: Entry) {
        match entry {
            Entry::Fault(index) => {
                self.ahead.scheduled -= 1;
                self.end_fault(index);
            }
            Entry::Source(index) => self.sources[index] = None,
        }
    }
}

saved!(enum Entry { 0 Fault(index), 1 Source(index) });
saved!(struct Agenda { faults, sources, waiting, withdrawn });
saved!(struct WaitingEntry { entry, ends, trigger, node, seen });
