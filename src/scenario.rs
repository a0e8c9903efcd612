//! Scenarios: from a scenario file to values, and the network that a run plays on.
//!
//! Owns the file format and the generated test network. Leaves playing to `sim` and reporting to `report`.

pub mod agents;
pub mod assertion;
pub mod desk;
pub mod ending;
pub mod file;
mod ground;
pub mod judge;
mod limits;
mod load;
mod mistake;
pub mod overrides;
mod path;
pub mod repetition;
pub mod run;
mod schema;
pub mod script;
pub mod section;
mod stall;
pub mod testnet;
pub mod vote_weights;
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
