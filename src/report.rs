//! Reports: the figures, tables, traces and pages of one run and of many runs, and the replay of recorded sessions. Nothing here
//! changes a run.

pub mod bundle;
pub mod figures;
pub mod metrics;
pub mod page;
pub mod protocols;
pub mod provenance;
pub mod rounds;
pub mod session;
pub mod sheet;
pub mod statistics;
pub mod survival;
pub mod sweep;
pub mod table;
pub mod trace;
pub mod validation;

pub use metrics::Metrics;
pub use rounds::{DelegateSlots, Gap, RoundReport, Rounds};
