//! The rules that every chain and every run keeps, judged from the outside, and the search for a run that breaks one.
//!
//! ```text
//!   seed ─► swarm ─► scenario ─► run, watched ─► findings ─► shrink ─► the smallest scenario that still shows it
//!                                  │
//!            invariants, step ◄────┤ every block, once          conduct ◄── every event of every node
//! ```
//!
//! Each invariant is a named value with its source, so that a failure names the invariant and the place.

pub(crate) mod assertions;
pub(crate) mod behaviour;
pub(crate) mod certificate;
pub mod conduct;
#[cfg(feature = "cli")]
pub(crate) mod database;
#[cfg(feature = "cli")]
pub(crate) mod exhaustive;
#[cfg(feature = "cli")]
pub(crate) mod explain;
pub(crate) mod finding;
pub mod guided;
pub mod invariants;
pub mod known_causes;
pub mod liveness;
mod message_story;
pub(crate) mod minimal;
pub mod observe;
pub(crate) mod rebuild;
#[cfg(test)]
mod restless;
pub mod search;
pub mod seeds;
mod selection;
pub(crate) mod shrink;
pub(crate) mod sights;
mod simpler;
pub mod simulation;
pub(crate) mod step;
mod story;
#[cfg(feature = "proptest")]
pub mod strategies;
pub mod swarm;
pub mod trial;
pub mod wakers;
pub(crate) mod watch;
pub mod watchers;

pub use assertions::judge;
pub use behaviour::Behaviour;
pub use certificate::Certificate;
pub use conduct::{CONDUCT, Conduct, INTERESTING};
pub use finding::{Finding, Signature, Sometimes};
pub use invariants::{INVARIANTS, Invariant, Violation, check_all};
pub use minimal::{Minimal, Minimiser};
pub use rebuild::check_rebuilt;
pub use simulation::Simulation;
pub use step::{STEP_INVARIANTS, check_step};
pub use watch::{Observations, Watch};
