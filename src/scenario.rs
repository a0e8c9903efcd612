//! Scenarios: from a scenario file to values, and the network that a run plays on.
//!
//! Owns the file format and the generated test network. Leaves playing to `sim` and reporting to `report`.

pub(crate) mod agents;
pub mod assertion;
pub(crate) mod desk;
pub(crate) mod ending;
pub(crate) mod file;
mod ground;
pub(crate) mod judge;
mod limits;
mod load;
mod mistake;
pub(crate) mod overrides;
mod path;
pub mod repetition;
pub mod run;
mod schema;
pub(crate) mod script;
pub mod section;
mod stall;
pub mod testnet;
pub(crate) mod vote_weights;
pub mod workload;

pub use crate::sim::Fault;
pub use agents::Agents;
pub use assertion::Assertion;
pub use desk::FaultDesk;
pub use ending::{Closing, Ended, Halt};
pub use file::{Scenario, ScenarioError, StallRule};
pub use judge::{Judge, Ruling, Verdict};
pub use limits::TIME_LIMIT;
pub use load::files::ScenarioFiles;
pub use overrides::{Override, Variation};
pub use run::{Outcome, StageKind};
pub use script::{Action, Deed, Member, Wrong};
pub use stall::Stall;
pub use testnet::{Account, NamedDelegate, Testnet};
