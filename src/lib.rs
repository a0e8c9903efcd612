//! A delegated-proof-of-stake network in one process: a deterministic simulator and an instant testnet.
//!
//! The rooms, each of which names only those below it:
//!
//! ```text
//! cli                the commands
//! api, check, report what the world sees, what must hold, what a run leaves behind
//! scenario           what a run is
//! sim                when things happen
//! actors             what each party does
//! ledger             what a chain means
//! protocol           what bytes mean
//! statistics         what many observations say: numbers alone, beside the others
//! files              which files of others are read, and how much of them: beside the others, too
//! drawing            what pages draw with: scripts and styles, beside the others, too
//! ```
#![forbid(unsafe_code)]

pub mod actors;
pub mod api;
pub mod check;
pub mod cli;
pub mod drawing;
pub mod files;
pub mod ledger;
pub mod protocol;
pub mod report;
pub mod scenario;
pub mod sim;
pub mod statistics;
pub mod threads;

/// The snippets of the README and of docs/library.md, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/library.md")]
struct Readme;
