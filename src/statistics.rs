//! Confidence intervals of shares and of means.
//!
//! The one place of this arithmetic: reports of many runs and the search of the checker both use it. It knows numbers
//! and nothing of runs.

pub mod interval;

pub use interval::{CONFIDENCE, Interval};
