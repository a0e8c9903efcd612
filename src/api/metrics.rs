//! Figures of a running testnet for Prometheus, as OpenMetrics text. docs/metrics.md tells of each, which a test holds
//! against what is served.
//!
//! Only requests are counted as they are answered; all other figures are looked up when somebody asks.
#![expect(clippy::disallowed_methods, reason = "how long a client waits is real time")]

mod collect;
mod process;

pub use collect::text;

use super::route::Route;
use prometheus_client::metrics::histogram::Histogram;
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
    time::Instant,
};
use warp::http::{Method, StatusCode};

/// Upper ends of the buckets of answers' times [s]: what a page of a list takes lies between the first ones, what waits for
/// the simulation between the last.
const BUCKETS: [f64; 12] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// A route's pattern, a method, and the first digit of a status.
type Key = (&'static str, &'static str, u16);

/// How long requests took.
#[derive(Debug, Default)]
pub struct Requests(RwLock<BTreeMap<Key, Histogram>>);

/// The moment at which a request came.
pub struct Begun(Instant);

impl Begun {
    /// Now.
    pub fn now() -> Self {
        Self(Instant::now())
    }
}

impl Requests {
    /// A request was answered. What leads to no route is counted as route `none`.
    pub fn answered(&self, begun: &Begun, route: Option<&'static Route>, method: &Method, status: StatusCode) {
        let seconds = begun.0.elapsed().as_secs_f64();
        let key = (route.map_or("none", |route| route.path), word(method), status.as_u16() / 100);
        // A panic while it was locked leaves whole histograms.
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.observe(seconds);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(|| Histogram::new(BUCKETS)).observe(seconds);
    }

    /// All of them, in the order of routes, methods and statuses. Clones count on together.
    fn all(&self) -> BTreeMap<Key, Histogram> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The method's name, `other` for those that no route knows: clients may not make up labels.
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
