//! The API from outside: recorded exchanges with a real node, a small simulated network, and a real socket.

mod access;
mod any_input;
mod chaos;
mod dialects;
mod forks;
mod fresh_index;
mod guarded;
mod lab;
mod lab_faults;
mod lab_forks;
mod lab_handed;
mod lab_reorgs;
mod lab_sequence;
mod live;
mod metrics;
mod openapi;
mod recorded;
mod replayed;
mod searches;
mod snapshots;
mod submitted;
mod support;
mod torn;
mod views;
mod webhooks;
