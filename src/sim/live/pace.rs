//! The pace of virtual time against real time.
//!
//! This is the one module under `sim` that reads the wall clock. It does so to decide *when* to play the next event,
//! never *which*: each input from outside is stamped with the virtual instant at which it came in.
#![expect(clippy::disallowed_methods, reason = "pacing a live testnet is what the wall clock is for")]

use super::Live;
use crate::{actors::SimTime, sim::stage::ractor::ActorDied};
use std::{fmt, str::FromStr, time::Duration};
use tokio::time::Instant;

/// The pace of virtual time against real time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A number of virtual seconds in a real second.
    Speed(f64),
    /// As fast as it goes.
    Max,
    /// Only by [`super::LiveHandle::advance`].
    Manual,
    /// Only for transactions: from one that comes in to the block that holds it, as fast as it goes.
    OnDemand,
}

/// A wait that no testnet outlives.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 86_400);
/// The longest time between two reports of the clock to observers while nothing happens.
const TELL_TIME: Duration = Duration::from_millis(100);

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            "manual" => Ok(Self::Manual),
            "on-demand" => Ok(Self::OnDemand),
            number => match number.parse::<f64>() {
                Ok(speed) if (0.001..=1e6).contains(&speed) => Ok(Self::Speed(speed)),
                _ => Err(format!(
                    "'{text}' is no pace: give a number from 0.001 to 1000000, 'max', 'manual' or 'on-demand'"
                )),
            },
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Speed(speed) => speed.fmt(f),
            Self::Max => f.write_str("max"),
            Self::Manual => f.write_str("manual"),
            Self::OnDemand => f.write_str("on-demand"),
        }
    }
}

/// A pair of instants, virtual and real, from which the pace counts.
#[derive(Clone, Copy)]
pub(super) struct Anchor(SimTime, Instant);

impl Anchor {
    /// The virtual instant `now` at the present real instant.
    pub(super) fn at(now: SimTime) -> Self {
        Self(now, Instant::now())
    }

    fn virtual_now(self, speed: f64) -> SimTime {
        let passed = Duration::try_from_secs_f64(self.1.elapsed().as_secs_f64() * speed);
        self.0 + passed.unwrap_or(LONGEST_WAIT)
    }

    fn real_time_of(self, time: SimTime, speed: f64) -> Instant {
        let wait = Duration::try_from_secs_f64(time.since(self.0).as_secs_f64() / speed);
        self.1 + wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
    }
}

impl Live {
    pub(super) async fn follow_wall_clock(&mut self, speed: f64) -> Result<(), ActorDied> {
        let due = self.anchor.virtual_now(speed);
        if self.stage.world().next_time().is_some_and(|next| next <= due) {
            return self.play_some(due).await;
        }
        let next = self.stage.world().next_time().map(|next| self.anchor.real_time_of(next, speed));
        let tell = Instant::now() + TELL_TIME;
        let wake = next.map_or(tell, |next| next.min(tell));
        tokio::select! {
            biased;
            command = self.commands.recv() => {
                // Plays the events that are due by now, so that the input comes in between two events.
                let now = self.anchor.virtual_now(speed);
                while self.step(now).await? {}
                self.stage.rest_until(now);
                self.note_stand(false);
                match command {
                    Some(command) => self.obey(command).await,
                    None => self.stop_asked(),
                }
            }
            () = tokio::time::sleep_until(wake) => {
                let now = self.anchor.virtual_now(speed);
                if self.stage.world().next_time().is_none_or(|next| next > now) {
                    self.stage.rest_until(now);
                }
                Ok(())
            }
        }
    }

    /// Counts the pace from the present instant on.
    pub(super) fn set_anchor(&mut self) {
        self.anchor = Anchor::at(self.stage.world().now());
    }
}
