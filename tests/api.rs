//! The API from outside: recorded exchanges with a real node, a small simulated network, and a real socket.

#[path = "api/access.rs"]
mod access;
#[path = "api/any_input.rs"]
mod any_input;
#[path = "api/chaos.rs"]
mod chaos;
#[path = "api/dialects.rs"]
mod dialects;
#[path = "api/forks.rs"]
mod forks;
#[path = "api/fresh_index.rs"]
mod fresh_index;
#[path = "api/guarded.rs"]
mod guarded;
#[path = "api/lab.rs"]
mod lab;
#[path = "api/lab_faults.rs"]
mod lab_faults;
#[path = "api/lab_forks.rs"]
mod lab_forks;
#[path = "api/lab_reorgs.rs"]
mod lab_reorgs;
#[path = "api/lab_sequence.rs"]
mod lab_sequence;
#[path = "api/live.rs"]
mod live;
#[path = "api/metrics.rs"]
mod metrics;
#[path = "api/openapi.rs"]
mod openapi;
#[path = "api/recorded.rs"]
mod recorded;
#[path = "api/replayed.rs"]
mod replayed;
#[path = "api/searches.rs"]
mod searches;
#[path = "api/snapshots.rs"]
mod snapshots;
#[path = "api/submitted.rs"]
mod submitted;
#[path = "api/support.rs"]
mod support;
#[path = "api/torn.rs"]
mod torn;
#[path = "api/views.rs"]
mod views;
#[path = "api/webhooks.rs"]
mod webhooks;
