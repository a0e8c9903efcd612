//! The number of requests that each route answered and the times they took, for Prometheus.
#![expect(clippy::disallowed_methods, reason = "how long a client waits is real time")]

use std::{
    collections::BTreeMap,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use warp::http::{Method, StatusCode};

/// Upper ends of the buckets of answers' times [s]. A page of a list takes a time in the first buckets, and an answer that
/// waits for the simulation one in the last.
const BUCKETS: [f64; 12] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// A route's pattern, a method, and the first digit of a status.
pub(crate) type Key = (&'static str, &'static str, u16);

/// The times that requests took.
#[derive(Debug, Default)]
pub struct Requests(RwLock<BTreeMap<Key, Tally>>);

/// The times that the requests of a key took. Every request updates a counter, so the counters are atomic and have no lock.
#[derive(Debug, Default)]
struct Tally {
    /// The number of requests in each bucket, and above the last one.
    counts: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
}

/// A tally as of one moment.
#[derive(Debug)]
pub struct TallyReading {
    pub seconds: f64,
    /// The upper end of each bucket, the last of which has none, with the number of requests in that bucket alone.
    pub buckets: Vec<(f64, u64)>,
}

impl Tally {
    fn count(&self, nanoseconds: u64) {
        let seconds = nanoseconds as f64 / 1e9;
        let bucket = BUCKETS.partition_point(|end| *end < seconds);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn counted(&self) -> TallyReading {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets = BUCKETS.into_iter().chain([f64::INFINITY]).zip(counts).collect();
        TallyReading { seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9, buckets }
    }
}

/// The moment at which a request came.
pub struct RequestStart(Instant);

impl RequestStart {
    /// Now.
    pub fn now() -> Self {
        Self(Instant::now())
    }
}

impl Requests {
    /// Counts an answered request. A path without a route counts as route `none`.
    pub fn answered(&self, begun: &RequestStart, path: Option<&'static str>, method: &Method, status: StatusCode) {
        let nanoseconds = u64::try_from(begun.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let key = (path.unwrap_or("none"), word(method), status.as_u16() / 100);
        // A panic while it was locked leaves whole tallies.
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.count(nanoseconds);
        }
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().count(nanoseconds);
    }

    /// All tallies, in the order of routes, methods and statuses.
    pub fn all(&self) -> BTreeMap<Key, TallyReading> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, tally)| (*key, tally.counted())).collect()
    }
}

/// The method's name, or `other` for a method that no route knows, so that clients cannot create labels.
fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_the_first_bucket_that_holds_it() {
        let tally = Tally::default();
        for nanoseconds in [0, 100_000, 100_001, 10_000_000_000, 10_000_000_001] {
            tally.count(nanoseconds);
        }
        let TallyReading { seconds, buckets } = tally.counted();
        assert_eq!((buckets[0], buckets[1], buckets[11]), ((0.0001, 2), (0.0002, 1), (10.0, 1)));
        assert_eq!((buckets[12].1, buckets.len()), (1, 13));
        assert!((seconds - 20.000_200_002).abs() < 1e-9, "{seconds}");
    }
}
