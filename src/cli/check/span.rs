//! A time that a search may take, on the real clock. What is played never sees it: it ends between two runs.
#![expect(clippy::disallowed_methods, reason = "a search that is given a time looks at the real clock")]

use std::{
    fmt,
    str::FromStr,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// The interval at which the command looks whether somebody wants to stop.
const LOOKS: Duration = Duration::from_millis(50);
/// A year.
const MOST_SECONDS: u64 = 31_536_000;

/// A time of whole seconds, written as `90s`, `10m` or `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(Duration);

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

/// Does something to its end, and sets `halt` when the time is over or `stop` is set before.
pub(super) fn until_over<T>(time: Span, stop: &AtomicBool, halt: &AtomicBool, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let left = time.0.saturating_sub(began.elapsed());
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
    fn work_is_told_to_halt_when_somebody_stops_it() {
        let (stop, halt) = (AtomicBool::new(true), AtomicBool::new(false));
        until_over("1h".parse().expect("a time"), &stop, &halt, || {
            while !halt.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    }
}
