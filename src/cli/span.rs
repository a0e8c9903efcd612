//! The real time that a command or a run may take. No actor sees it: a search ends between two runs, a run between two slots.
#![expect(clippy::disallowed_methods, reason = "a command that is given a time looks at the real clock")]

use crate::scenario::Override;
use clap::Args;
use std::{
    fmt,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// The interval at which the command checks for a request to stop.
const LOOKS: Duration = Duration::from_millis(50);
/// The longest span \[s\]: a year.
const MOST_SECONDS: u64 = 31_536_000;

/// A time of whole seconds, written as `90s`, `10m` or `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(Duration);

impl Span {
    /// Its length \[s\].
    pub fn seconds(self) -> u64 {
        self.0.as_secs()
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [('s', 1), ('m', 60), ('h', 3_600)];
        let read = units.iter().find_map(|(unit, seconds)| {
            let number = text.strip_suffix(*unit)?.parse::<u64>().ok()?;
            number.checked_mul(*seconds)
        });
        match read {
            Some(seconds) if (1..=MOST_SECONDS).contains(&seconds) => Ok(Self(Duration::from_secs(seconds))),
            _ => Err("allowed is a time from one second to a year, such as 90s, 10m or 2h".to_owned()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds() {
            seconds if seconds % 3_600 == 0 => write!(f, "{}h", seconds / 3_600),
            seconds if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

/// The time of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchTime {
    Limited(Span),
    /// Until the user stops it.
    Forever,
}

impl SearchTime {
    /// Its length \[s\], where it has one.
    pub(super) fn seconds(self) -> Option<u64> {
        match self {
            Self::Limited(span) => Some(span.seconds()),
            Self::Forever => None,
        }
    }
}

impl FromStr for SearchTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forever" => Ok(Self::Forever),
            _ => text.parse().map(Self::Limited).map_err(|why: String| format!("{why}, or forever")),
        }
    }
}

impl fmt::Display for SearchTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(span) => write!(f, "{span}"),
            Self::Forever => f.write_str("forever"),
        }
    }
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct RunLimits {
    /// End a run, censored, with the first slot in which it has taken this much real time, such as 90s, 10m or 2h.
    #[arg(long, value_name = "TIME")]
    max_time: Option<Span>,
    /// End a run, censored, with the slot in which it has had this many events: the scenario's 'max_events'.
    #[arg(long, value_name = "N")]
    max_events: Option<u64>,
}

impl RunLimits {
    /// The limit of events, as a value of the scenario: it changes the outcome.
    pub(super) fn max_events(self) -> Option<Override> {
        let set = self.max_events.map(|most| format!("max_events={most}").parse::<Override>());
        set.map(|set| set.expect("a key and a number"))
    }

    /// Returns true if the real time is limited.
    pub(super) fn has_time(self) -> bool {
        self.max_time.is_some()
    }

    /// Returns true if there is a limit.
    pub(super) fn is_given(self) -> bool {
        self.max_time.is_some() || self.max_events.is_some()
    }

    /// Starts the timer of a run that begins now.
    pub(super) fn timer(self) -> Timer {
        Timer { began: Instant::now(), most: self.max_time }
    }
}

/// The real time since a beginning, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    began: Instant,
    most: Option<Span>,
}

impl Timer {
    /// Returns true once the limit has passed; without one, never.
    pub(super) fn is_over(&self) -> bool {
        self.most.is_some_and(|most| self.began.elapsed() >= most.0)
    }
}

/// Runs a piece of work at most once a second.
pub(super) struct Seldom(Mutex<Instant>);

impl Seldom {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Runs `work` if a second has passed since the last time.
    pub(super) fn run(&self, work: impl FnOnce()) {
        let mut last = self.0.lock().expect("no thread panics while holding it");
        if last.elapsed() >= Duration::from_secs(1) {
            work();
            *last = Instant::now();
        }
    }
}

/// Runs `work` to its end. Sets `halt` when the time is over or `stop` is set before.
pub(super) fn until_over<T>(time: SearchTime, stop: &AtomicBool, halt: &AtomicBool, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let left = match time {
                    SearchTime::Limited(span) => span.0.saturating_sub(began.elapsed()),
                    SearchTime::Forever => LOOKS,
                };
                if left.is_zero() || ended.recv_timeout(LOOKS.min(left)) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
            halt.store(true, Ordering::Relaxed);
        });
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        let read = |text: &str| text.parse::<Span>().map(|span| (span.seconds(), span.to_string()));
        assert_eq!(read("90s"), Ok((90, "90s".to_owned())));
        assert_eq!(read("120s"), Ok((120, "2m".to_owned())));
        assert_eq!(read("2h"), Ok((7_200, "2h".to_owned())));
        for wrong in ["", "m", "0s", "10", "1.5h", "-3m", "99999h", "18446744073709551615h", "10 m"] {
            assert!(read(wrong).expect_err(wrong).contains("90s, 10m or 2h"));
        }
    }

    #[test]
    fn a_search_may_have_no_end() {
        let read = |text: &str| text.parse::<SearchTime>().map(|time| (time.seconds(), time.to_string()));
        assert_eq!(read("forever"), Ok((None, "forever".to_owned())));
        assert_eq!(read("90s"), Ok((Some(90), "90s".to_owned())));
        assert!(read("for ever").expect_err("two words").ends_with("or 2h, or forever"));
    }

    #[test]
    fn work_is_told_to_halt_when_somebody_stops_it() {
        let (stop, halt) = (AtomicBool::new(true), AtomicBool::new(false));
        until_over("1h".parse().expect("a time"), &stop, &halt, || {
            while !halt.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    }
}
