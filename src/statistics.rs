//! Confidence intervals of shares and means, a test whether two counts come from one share, points for studies, and indices of Sobol.
//!
//! The one place of this arithmetic: reports of many runs and the search of the checker both use it. It knows numbers
//! and nothing of runs.

#[cfg(feature = "cli")]
pub(crate) mod design;
#[cfg(feature = "cli")]
pub(crate) mod indices;
pub mod interval;
pub mod rates;
pub(crate) mod sequence;

pub use interval::{CONFIDENCE, Interval};
pub use sequence::Sequence;
