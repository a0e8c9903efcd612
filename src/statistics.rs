//! Confidence intervals of shares and of means, and whether two counts come of one share.
//!
//! The one place of this arithmetic: reports of many runs and the search of the checker both use it. It knows numbers
//! and nothing of runs.

pub mod interval;
pub mod rates;
pub mod sequence;

pub use interval::{CONFIDENCE, Interval};
pub use sequence::Sequence;
