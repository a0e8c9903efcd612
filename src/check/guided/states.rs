//! States of nodes: the last three notable events of each that differ from the one before.

use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::BlockRejected,
    protocol::Height,
    sim::{NetworkEvent, Observer},
};
use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex},
};

/// A notable event: its kind, and a number that tells events of the kind apart.
type Word = (&'static str, u32);

/// The last three notable events of a node.
pub(super) type State = [Word; 3];

/// The first occurrence of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Seconds from the start of the run.
    pub at: f64,
    /// The height of the highest chain.
    pub height: Height,
}

/// The notes about a run.
#[derive(Default)]
pub(super) struct Notes {
    start: SimTime,
    recent: BTreeMap<NodeId, State>,
    best: Height,
    pub first: BTreeMap<State, Place>,
    /// When each fault began, by its index. Seconds from the start of the run.
    pub begun: BTreeMap<usize, f64>,
}

/// Notes the states of a run. Clones note the same run.
#[derive(Clone, Default)]
pub struct StateNotes(Arc<Mutex<Notes>>);

impl StateNotes {
    /// Records the start of the run.
    pub fn begin(&self, start: SimTime) {
        self.0.lock().expect("no thread panics while holding it").start = start;
    }

    /// Takes the notes of a run that is over.
    pub(super) fn take(&self) -> Notes {
        mem::take(&mut self.0.lock().expect("no thread panics while holding it"))
    }
}

impl Observer for StateNotes {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut notes = self.0.lock().expect("no thread panics while holding it");
        if let Event::BlockApplied(link) = event {
            notes.best = notes.best.max(link.height());
        }
        if let Some(word) = word(event) {
            notes.add(now, node, word);
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut notes = self.0.lock().expect("no thread panics while holding it");
        match event {
            NetworkEvent::FaultBegan { index, .. } => {
                let at = now.seconds_since(notes.start);
                notes.begun.entry(*index).or_insert(at);
            }
            NetworkEvent::NodeDown { node, cause } => notes.add(now, *node, (cause.word(), 0)),
            NetworkEvent::NodeUp { node } => notes.add(now, *node, ("up", 0)),
            NetworkEvent::PoolLost { node } => notes.add(now, *node, ("pool lost", 0)),
            NetworkEvent::FaultEnded { .. }
            | NetworkEvent::Sent { .. }
            | NetworkEvent::Lost { .. }
            | NetworkEvent::Moved { .. } => {}
        }
    }
}

impl Notes {
    fn add(&mut self, at: SimTime, node: NodeId, word: Word) {
        let state = self.recent.entry(node).or_default();
        if state[2] != word {
            *state = [state[1], state[2], word];
            let at = at.seconds_since(self.start);
            self.first.entry(*state).or_insert(Place { at, height: self.best });
        }
    }
}

/// Returns the word of a notable event. Events that every run has all the time are not notable.
fn word(event: &Event) -> Option<Word> {
    Some(match event {
        Event::BlockApplied(link) => ("round", link.notable().map(|notable| notable.round_end.is_some().into())?),
        Event::BlockRefused(why) => ("refused", kind_of(why)),
        Event::BlockDisregarded(_) => ("disregarded", 0),
        Event::RolledBack { from, to, cause } => {
            let size = match from.height().0 - to.height().0 {
                0..=1 => 0,
                2..=3 => 1,
                4..=12 => 2,
                _ => 3,
            };
            ("rolled back", 4 * *cause as u32 + size)
        }
        Event::HealthChecked { peers, forked } => {
            ("health", u32::from(*forked > 0) + u32::from(*forked > 0 && 2 * forked >= *peers))
        }
        Event::ForgingSuspended { .. } => ("suspended", 0),
        Event::ForgerFailed { .. } => ("failed", 0),
        Event::PoolEvicted(_) => ("evicted", 0),
        Event::PoolPurged(_) => ("purged", 0),
        Event::PoolReplaced(_) => ("replaced", 0),
        Event::PoolExpired(_) => ("expired", 0),
        Event::PoolRejected(all) => (all.first()?.error.code(), 0),
        Event::PeerRemoved(_) => ("peer removed", 0),
        _ => return None,
    })
}

fn kind_of(why: &BlockRejected) -> u32 {
    match why {
        BlockRejected::NotChained { .. } => 0,
        BlockRejected::FromFuture { .. } => 1,
        BlockRejected::NotVerified { .. } => 2,
        BlockRejected::NotApplicable { .. } => 3,
        BlockRejected::AlreadyForged { .. } => 4,
        BlockRejected::TooFewDelegates { .. } => 5,
        _ => 6,
    }
}
