//! Determinism, checked and not claimed: a run repeated, event for event.

use super::{Scenario, StageKind};
use crate::{
    actors::{Event, NodeId, SimTime},
    sim::{Digest, Observer, SeedTree, fault::EventKind, stage::ractor::ActorDied, trace::fingerprint},
};
use std::{
    fmt,
    sync::{Arc, Mutex},
};

/// What came of playing a scenario twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Twice {
    Same { digest: Digest, events: u64 },
    Differ(Difference),
}

/// The first event in which the second run differs from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Counted from 1.
    pub event: usize,
    /// `None` where a run has no further event.
    pub first: Option<Seen>,
    pub second: Option<Seen>,
}

/// One event, as far as two are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub now: SimTime,
    pub node: NodeId,
    pub kind: EventKind,
    /// Of everything the trace digest holds of it.
    pub fingerprint: u64,
}

/// Remembers a run, or compares one with what was remembered.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    seen: Vec<Seen>,
    expected: Option<Vec<Seen>>,
    difference: Option<Difference>,
}

/// Plays a scenario twice, each time from nothing; the second run ends at the first difference.
///
/// # Errors
/// On the ractor stage, an actor died.
pub fn twice(scenario: &Scenario, seeds: SeedTree, stage: StageKind) -> Result<Twice, ActorDied> {
    compare(scenario, seeds, stage, stage)
}

/// [`twice`] on two stages.
///
/// # Errors
/// As [`twice`].
pub fn compare(scenario: &Scenario, seeds: SeedTree, first: StageKind, second: StageKind) -> Result<Twice, ActorDied> {
    let log = Log::default();
    log.play(scenario, seeds, first)?;
    let seen = std::mem::take(&mut log.lock().seen);
    let again = Log::default();
    again.lock().expected = Some(seen);
    let digest = again.play(scenario, seeds, second)?;
    let mut entries = again.lock();
    let (expected, events) = (entries.expected.take().unwrap_or_default(), entries.seen.len());
    let missing =
        expected.get(events).map(|first| Difference { event: events + 1, first: Some(first.clone()), second: None });
    Ok(match entries.difference.take().or(missing) {
        Some(difference) => Twice::Differ(difference),
        None => Twice::Same { digest, events: events as u64 },
    })
}

impl Log {
    fn play(&self, scenario: &Scenario, seeds: SeedTree, stage: StageKind) -> Result<Digest, ActorDied> {
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(self.clone())];
        Ok(scenario.play_while(&plan, stage, observers, |_| self.lock().difference.is_none())?.digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().expect("no one panics while holding it")
    }
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let seen = Seen { now, node, kind: EventKind::of(event), fingerprint: fingerprint(now, node, event) };
        let mut entries = self.lock();
        let index = entries.seen.len();
        let first = entries.expected.as_ref().map(|expected| expected.get(index).cloned());
        if let Some(first) = first.filter(|first| first.as_ref() != Some(&seen))
            && entries.difference.is_none()
        {
            entries.difference = Some(Difference { event: index + 1, first, second: Some(seen.clone()) });
        }
        entries.seen.push(seen);
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |seen: &Option<Seen>| seen.as_ref().map_or_else(|| "nothing more".to_owned(), ToString::to_string);
        let Self { event, first, second } = self;
        write!(f, "event {event} differs: the first run has {}, the second {}", text(first), text(second))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, node, kind, fingerprint } = self;
        write!(f, "{kind:?} at {node} at {now} ({fingerprint:016x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Runs of two seeds stand for a run that is not the same again.
    #[test]
    fn the_second_run_ends_at_the_first_event_that_differs() {
        let text = "version = 1\nrounds = 4\n[network]\ndelegates = 5\n";
        let scenario = Scenario::parse(text, Path::new("twice")).expect("a scenario");
        let play = |seed, expected: Option<Vec<Seen>>| {
            let log = Log::default();
            log.lock().expected = expected;
            log.play(&scenario, SeedTree::new(seed), StageKind::Inline).expect("no actor dies");
            let mut entries = log.lock();
            (std::mem::take(&mut entries.seen), entries.difference.take())
        };
        let (first, _) = play(1, None);
        let (second, _) = play(2, None);
        let index = (0..).find(|index| first.get(*index) != second.get(*index)).expect("two seeds, two runs");
        let (seen, difference) = play(2, Some(first.clone()));
        let expected =
            Difference { event: index + 1, first: first.get(index).cloned(), second: second.get(index).cloned() };
        assert_eq!(difference, Some(expected));
        assert!(seen.len() < second.len() / 2, "{} of {} events", seen.len(), second.len());
        assert_eq!(play(1, Some(first)).1, None);
    }
}
