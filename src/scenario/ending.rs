//! The end of a run: with its last round, or before it.
//!
//! A run that is ended early, by the stall rule or by a limit, is *censored*: its further course is unknown, so it has neither
//! succeeded nor failed. A run has *halted* if it is proved that no block can ever be made again.

use super::{Scenario, stall::Stall};
use crate::{
    actors::SimTime,
    protocol::Height,
    sim::{Digest, Plan, World, world::HaltCause},
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The winning chain reached the end of the last round.
    Complete,
    /// It is proved that no block can ever be made again.
    Halted(Halt),
    /// The stall rule ended it: censored.
    Stalled,
    /// The time limit ended it: censored.
    Time,
    /// It has had as many events as its scenario allows: censored.
    Events,
    /// It has taken as much real time as its command allows: censored.
    RealTime,
    /// Its process has taken as much memory as its command allows: censored.
    Memory,
    /// Its user ended it.
    Interrupted,
    /// The events of this instant do not end: censored.
    Restless(SimTime),
}

/// The certificate of a halt: the same standstill at the ends of two consecutive rounds' worth of slots, with no block between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    pub cause: HaltCause,
    pub first: SimTime,
    pub second: SimTime,
    /// The digest of the facts on which the proof rests, the same at both instants: see [`World::standstill`].
    pub fingerprint: Digest,
}

impl Ended {
    /// The word in summaries and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Halted(_) => "halted",
            Self::Stalled => "stalled",
            Self::Time => "time",
            Self::Events => "max-events",
            Self::RealTime => "max-time",
            Self::Memory => "max-memory",
            Self::Interrupted => "interrupted",
            Self::Restless(_) => "restless",
        }
    }

    /// Returns true if the run was stopped before its end, so that its further course is unknown.
    pub fn is_censored(self) -> bool {
        !matches!(self, Self::Complete | Self::Halted(_))
    }

    /// Returns true if nothing new can happen after the end, so a condition that has not held never will. A halted network with live
    /// nodes is not decided: they may still move between the existing chains.
    pub fn is_decided(self) -> bool {
        match self {
            Self::Complete => true,
            Self::Halted(halt) => halt.cause == HaltCause::NoNodeLive,
            Self::Stalled | Self::Time | Self::Events | Self::RealTime | Self::Memory | Self::Interrupted => false,
            Self::Restless(_) => false,
        }
    }

    /// The certificate, if a halt was proved.
    pub fn halt(self) -> Option<Halt> {
        match self {
            Self::Halted(halt) => Some(halt),
            _ => None,
        }
    }

    /// Returns a sentence about the end, without its full stop.
    pub fn in_words(self, reached: Height, wanted: Height) -> String {
        let censored = |by: &str| {
            format!("censored: {by} ended it at height {reached} of {wanted}, so its further course is unknown")
        };
        match self {
            Self::Complete => format!("complete: the last round ended at height {reached}"),
            Self::Halted(halt) => format!("halted for good at height {reached} of {wanted}: {}", halt.in_words()),
            Self::Stalled => censored("the stall rule"),
            Self::Time => censored("the time limit"),
            Self::Events => censored("the limit of events"),
            Self::RealTime => censored("the limit of real time"),
            Self::Memory => censored("the limit of memory"),
            Self::Interrupted => format!("interrupted at height {reached} of {wanted}"),
            Self::Restless(at) => {
                format!(
                    "restless at height {reached} of {wanted}: the events of the instant {} s do not end",
                    at.seconds_since(SimTime::default())
                )
            }
        }
    }
}

impl Serialize for Ended {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Halt {
    /// Returns the proof, in words.
    pub fn in_words(&self) -> String {
        let seconds = |at: SimTime| at.micros() / 1_000_000;
        format!(
            "{}; the same at {} s and {} s, with no block between (fingerprint {})",
            self.cause.words(),
            seconds(self.first),
            seconds(self.second),
            &self.fingerprint.to_string()[..16]
        )
    }
}

impl Serialize for Halt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = json!({
            "cause": self.cause.name(),
            "proof": self.cause.words(),
            "first_us": self.first.micros(),
            "second_us": self.second.micros(),
            "fingerprint": self.fingerprint.to_string(),
        });
        value.serialize(serializer)
    }
}

/// Checks at the end of each slot whether a run is over.
#[derive(Clone)]
pub struct Closing {
    stall: Stall,
    halt: HaltWatch,
    last: Height,
    seats: u32,
    slots: u32,
    max_events: Option<u64>,
}

impl Closing {
    /// The state before the first slot of a run.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let (stall, halt) = (Stall::new(scenario, plan), HaltWatch::default());
        Self {
            stall,
            halt,
            last: scenario.last_height(),
            seats: scenario.round_slots(),
            slots: 0,
            max_events: scenario.max_events,
        }
    }

    /// Returns the end of the run if it is over at the end of a slot. A run that is not `wanted` any more is interrupted.
    pub fn look(&mut self, end: SimTime, world: &World, wanted: bool) -> Option<Ended> {
        self.slots += 1;
        if let Some(at) = world.restless() {
            return Some(Ended::Restless(at));
        }
        let height = world.tips().winning().height();
        if height >= self.last {
            return Some(Ended::Complete);
        }
        if !wanted {
            return Some(Ended::Interrupted);
        }
        let ends_round = self.slots.is_multiple_of(self.seats);
        let halted = ends_round.then(|| self.halt.look(end, world)).flatten().map(Ended::Halted);
        let is_full = self.max_events.is_some_and(|most| world.events() >= most);
        halted.or_else(|| self.stall.look(end, height)).or_else(|| is_full.then_some(Ended::Events))
    }
}

/// Checks at the end of each round's worth of slots whether a halt is proved.
#[derive(Clone, Default)]
pub(crate) struct HaltWatch(Option<(HaltCause, Digest, SimTime)>);

impl HaltWatch {
    /// Returns the certificate at the end of a round's worth of slots, if there was the same standstill at the end of the one
    /// before.
    pub fn look(&mut self, end: SimTime, world: &World) -> Option<Halt> {
        let found = world.standstill().map(|(cause, fingerprint)| (cause, fingerprint, end));
        let before = std::mem::replace(&mut self.0, found);
        match (before, found) {
            (Some((_, was, first)), Some((cause, is, second))) if was == is => {
                Some(Halt { cause, first, second, fingerprint: is })
            }
            _ => None,
        }
    }
}
