//! The check of determinism: a run is repeated and compared event by event.

use super::{Scenario, StageKind};
use crate::{
    actors::{Event, NodeId, SimTime},
    protocol::Height,
    sim::{Digest, Observer, SeedTree, fault::EventKind, stage::ractor::ActorDied, trace::fingerprint},
};
use std::{
    fmt,
    sync::{Arc, Mutex},
};

/// The result of playing a scenario twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepetitionResult {
    Same {
        digest: Digest,
        events: u64,
    },
    Differ(Difference),
    /// The comparison was interrupted. `same` events of the second run were those of the first.
    Interrupted {
        same: u64,
    },
}

/// The first event in which the second run differs from the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the event, counted from 1.
    pub event: usize,
    /// The event of the first run. `None` if the run has no further event.
    pub first: Option<ComparedEvent>,
    pub second: Option<ComparedEvent>,
}

/// The parts of an event that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedEvent {
    pub now: SimTime,
    pub node: NodeId,
    pub kind: EventKind,
    /// A digest of everything that the trace digest covers of the event.
    pub fingerprint: u64,
}

/// An observer that records a run, or compares a run with a recorded one.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    seen: Vec<ComparedEvent>,
    expected: Option<Vec<ComparedEvent>>,
    difference: Option<Difference>,
}

/// Plays a scenario twice from its start, on these stages. The second run ends at the first difference. `wanted` receives the run
/// (0 or 1) and the height after each slot, and returns whether to go on.
///
/// # Errors
/// On the ractor stage, an actor died.
pub fn play_twice(
    scenario: &Scenario,
    seeds: SeedTree,
    [first, second]: [StageKind; 2],
    mut wanted: impl FnMut(u64, Height) -> bool,
) -> Result<RepetitionResult, ActorDied> {
    let mut all = true;
    let mut wanted = |run, height| {
        all = wanted(run, height);
        all
    };
    let log = Log::default();
    log.play(scenario, seeds, first, |height| wanted(0, height))?;
    let again = Log::default();
    again.lock().expected = Some(std::mem::take(&mut log.lock().seen));
    if !wanted(1, Height(0)) {
        return Ok(RepetitionResult::Interrupted { same: 0 });
    }
    let digest = again.play(scenario, seeds, second, |height| wanted(1, height))?;
    let mut entries = again.lock();
    let (expected, events) = (entries.expected.take().unwrap_or_default(), entries.seen.len());
    if !all && entries.difference.is_none() && events < expected.len() {
        return Ok(RepetitionResult::Interrupted { same: events as u64 });
    }
    let missing =
        expected.get(events).map(|first| Difference { event: events + 1, first: Some(first.clone()), second: None });
    Ok(match entries.difference.take().or(missing) {
        Some(difference) => RepetitionResult::Differ(difference),
        None => RepetitionResult::Same { digest, events: events as u64 },
    })
}

impl Log {
    fn play(
        &self,
        scenario: &Scenario,
        seeds: SeedTree,
        stage: StageKind,
        mut wanted: impl FnMut(Height) -> bool,
    ) -> Result<Digest, ActorDied> {
        let plan = scenario.plan(&scenario.testnet(seeds), seeds);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(self.clone())];
        let go_on = |height| wanted(height) && self.lock().difference.is_none();
        Ok(scenario.play_while(&plan, stage, observers, go_on)?.digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let seen = ComparedEvent { now, node, kind: EventKind::of(event), fingerprint: fingerprint(now, node, event) };
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
        let text =
            |seen: &Option<ComparedEvent>| seen.as_ref().map_or_else(|| "nothing more".to_owned(), ToString::to_string);
        let Self { event, first, second } = self;
        write!(f, "event {event} differs: the first run has {}, the second {}", text(first), text(second))
    }
}

impl fmt::Display for ComparedEvent {
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
        let play = |seed, expected: Option<Vec<ComparedEvent>>| {
            let log = Log::default();
            log.lock().expected = expected;
            log.play(&scenario, SeedTree::new(seed), StageKind::Inline, |_| true).expect("no actor dies");
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

    #[test]
    fn what_is_interrupted_says_how_much_was_the_same() {
        let text = "version = 1\nrounds = 4\n[network]\ndelegates = 5\n";
        let scenario = Scenario::parse(text, Path::new("twice")).expect("a scenario");
        let stopped = |run: u64, height: u32| {
            let wanted = |at, now| (at, now) < (run, Height(height));
            play_twice(&scenario, SeedTree::new(1), [StageKind::Inline; 2], wanted).expect("no actor dies")
        };
        let RepetitionResult::Same { events, .. } = stopped(2, 0) else { panic!("it is the same again") };
        assert_eq!(
            [stopped(0, 5), stopped(1, 0)],
            [RepetitionResult::Interrupted { same: 0 }, RepetitionResult::Interrupted { same: 0 }]
        );
        let RepetitionResult::Interrupted { same } = stopped(1, 5) else { panic!("it was interrupted") };
        assert!(0 < same && same < events / 2, "{same} of {events}");
    }
}
