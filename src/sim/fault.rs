//! The faults of a run: a closed vocabulary of values, so that a plan can be printed, counted, shrunk and replayed.
//!
//! A [`Fault`] is a kind with its parameters, the moment it begins and, unless it is over at once or lasts to the end,
//! the moment it ends. The world carries them out.

mod bounded_value;
mod durations;
mod facts;
mod kind;
pub(crate) mod nodes;
mod parameters;
mod rounds;
pub(crate) mod table;
pub(crate) mod trigger;

pub use bounded_value::BoundedValue;
pub use durations::{Durations, ExponentialTime, LogNormalTime, UniformTime, WeibullTime};
pub use facts::{Facts, Lasting, Timing};
pub use kind::{ByClients, FaultKind};
pub(crate) use kind::{kind_of, schema_of, unknown_kind};
pub use nodes::{NodeRef, NodeSpan, Nodes, Share, ShareOf};
pub(crate) use parameters::is_zero;
pub use parameters::{
    Boundary, ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Eclipse, Heal, LowFeeFlood,
    MessageKind, Messages, NodeChurn, NoticeTime, Offline, Partition, Restart, Slow, SomeDelegates, SomeNodes,
    SpamPool, VoteSwing, milliseconds,
};
pub use rounds::{Rounds, Span};
pub use trigger::{EventKind, EventTrigger, Trigger};

use super::PlannedSource;
use crate::ledger::Link;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Something that goes wrong, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// The kind of the fault with its parameters.
    #[serde(flatten)]
    pub kind: FaultKind,
    /// The beginning; the start of the run, if absent.
    #[serde(default)]
    pub from: Trigger,
    /// The end; none, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Trigger>,
}

impl Fault {
    /// A fault of this kind or strategy that lasts from the start of the run to its end. Set `from` and `until` to change that.
    pub fn new(kind: impl Into<FaultKind>) -> Self {
        Self { kind: kind.into(), from: Trigger::Start, until: None }
    }

    /// Returns true if the fault declares an end: `until`, rounds, or a kind that is over at once.
    pub fn ends(&self) -> bool {
        self.until.is_some() || self.kind.by_rounds().is_some() || self.kind.facts().is_over_at_once()
    }
}

/// A fault that is added to a running run.
#[derive(Clone)]
pub struct AddedFault {
    pub fault: Fault,
    /// Creates the clients that carry the fault out, if clients do.
    pub clients: Option<MakeClients>,
}

/// Creates the clients of a fault from the run's earlier faults and the tip of the highest chain. The number of earlier faults is the
/// fault's id.
pub type MakeClients = Arc<dyn Fn(&[Fault], &Arc<Link>) -> PlannedSource + Send + Sync>;

impl fmt::Debug for AddedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_table_with_its_kind_beside_its_parameters() {
        let read = |text: &str| toml::from_str::<Fault>(text).map_err(|error| error.message().to_owned());
        let text = "kind = \"delay\"\nby_ms = 300\nmessages = [\"block\"]\nsenders = [\"genesis_1\", 4]\nfrom = { round = 2 }\n\
                    until = { event = { kind = \"rolled-back\", count = 2 } }\n";
        let fault = read(text).expect("it is a fault");
        assert_eq!(fault.kind.name(), "delay");
        assert_eq!(fault.from, Trigger::Round(2));
        let FaultKind::Delay(delay) = &fault.kind else { panic!("{fault:?}") };
        assert_eq!((delay.by_ms, delay.which.messages.as_slice()), (300, [MessageKind::Block].as_slice()));
        let json = serde_json::to_string(&fault).expect("values have a text");
        assert_eq!(serde_json::from_str::<Fault>(&json).expect("its own text"), fault);
        assert!(read("kind = \"delay\"\nby_ms = 1\nby_s = 2\n").expect_err("unknown").contains("by_s"));
        assert!(read("kind = \"isolate\"\nnodes = [0]\nnode = 1\n").expect_err("unknown").contains("node"));
        let unknown = read("kind = \"delya\"\n").expect_err("unknown");
        assert!(FaultKind::names().iter().all(|name| unknown.contains(name)), "{unknown}");
    }
}
