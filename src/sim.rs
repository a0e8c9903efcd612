//! The simulation: the virtual clock, the event queue, the network, the random streams and the two stages.
//!
//! ```text
//!            ┌────────────── World ──────────────┐
//!            │ queue (time, sequence) · network  │──► observers (trace, tables, the API's view)
//!            └──┬──────────────────────────▲─────┘
//!      delivery │                          │ effects
//!            ┌──▼──────────────────────────┴─────┐
//!            │ stage::inline   |  stage::ractor  │      the same actors, the same order
//!            └───────────────────────────────────┘
//! ```
//!
//! Events at one instant run in the order in which they were scheduled, on both stages, so a run is a function of its
//! plan and seed. Nothing here knows HTTP or files; only [`live`] reads the wall clock, to pace a testnet.

pub(crate) mod active_set;
pub mod clock;
pub(crate) mod entry_names;
pub mod fault;
pub mod intervention;
pub mod line;
pub mod live;
mod names;
pub mod network;
pub mod past;
pub(crate) mod plan;
pub mod processor;
pub(crate) mod queue;
pub mod seeds;
pub mod snapshots;
pub mod source;
pub mod stage;
pub mod strategy;
pub mod tips;
pub mod trace;
pub(crate) mod weights;
pub mod world;

pub use active_set::ActiveSet;
pub use fault::{Fault, FaultKind, Trigger};
pub use intervention::{Intervention, Outcome};
pub use live::{Live, LiveHandle, Pace};
pub use names::Names;
pub use network::{Latency, NetworkModel};
pub use past::Past;
pub use plan::{NodePlan, Plan};
pub use seeds::SeedTree;
pub use source::{PlannedSource, Source};
pub use stage::Stage;
pub use tips::Tips;
pub use trace::{Digest, TraceDigest};
pub use weights::Weights;
pub use world::{Act, DownCause, Heard, NetworkEvent, Observer, Outlook, World};
