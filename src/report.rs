//! Reports: the figures, tables, traces and pages of one run and of many runs, and the replay of recorded sessions. Nothing here
//! changes a run.

pub(crate) mod bundle;
pub(crate) mod figures;
pub mod metrics;
pub(crate) mod page;
pub mod protocols;
pub(crate) mod provenance;
pub(crate) mod rounds;
pub mod session;
pub(crate) mod sheet;
pub(crate) mod statistics;
pub(crate) mod survival;
pub mod sweep;
pub(crate) mod table;
pub mod trace;
pub(crate) mod validation;

pub use metrics::Metrics;
pub use rounds::{DelegateSlots, RoundReport, Rounds};
