//! The moment at which something begins or ends.

use super::NodeRef;
use crate::{
    actors::{Event, SimTime},
    ledger::{
        BlockTree,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::{Height, Slot},
    sim::{Plan, Tips},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment of a run. A trigger fires once.
///
/// A height or a round comes for the network when more than half of the live nodes are there. The first node that is there is as a
/// rule the forger, which has its own block half a second before anybody else: what begins then finds a private fork of that node.
/// The triggers that end in `at-any` fire then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The start of the run.
    #[default]
    Start,
    /// A number of seconds after the start of the run.
    Seconds(f64),
    /// A number of seconds after the beginning; for an end only.
    After(f64),
    /// The first instant of the slot of this number, counted from the network's epoch.
    Slot(u32),
    /// More than half of the live nodes stand at this height or above it.
    Height(u32),
    /// More than half of the live nodes are in this round or a later one: each stands on the block before the round's first one,
    /// or above it.
    Round(u32),
    /// Any node has applied a block of this height: as a rule its forger, which has not sent it yet.
    HeightAtAny(u32),
    /// Any node has applied the block before this round's first one: as a rule its forger, which has not sent it yet.
    RoundAtAny(u32),
    /// Something happened at a node.
    Event(EventTrigger),
}

impl Trigger {
    /// The instant of the trigger, or `None` if something must happen first. `begun` is the instant at which the fault began, for an end
    /// that counts from there.
    pub fn instant(&self, plan: &Plan, begun: Option<SimTime>) -> Option<SimTime> {
        let after = |from: SimTime, seconds: f64| from + Duration::try_from_secs_f64(seconds).unwrap_or_default();
        match self {
            Self::Start => Some(plan.start),
            Self::Seconds(seconds) => Some(after(plan.start, *seconds)),
            Self::After(seconds) => begun.map(|begun| after(begun, *seconds)),
            Self::Slot(slot) => Some(SimTime::from_seconds(plan.tree.slots().start(Slot(*slot)))),
            Self::Height(_) | Self::Round(_) | Self::HeightAtAny(_) | Self::RoundAtAny(_) | Self::Event(_) => None,
        }
    }

    /// Returns true if the trigger waits for a height or a round that has been reached. `best` is the greatest height that any node has
    /// applied, whether it is live or down.
    pub fn has_come(&self, tips: &Tips, best: Height, tree: &BlockTree) -> bool {
        let is_there = |tip: Height| match self {
            Self::Height(height) | Self::HeightAtAny(height) => tip.0 >= *height,
            Self::Round(round) | Self::RoundAtAny(round) => tree.schedule().at(tip.next()).round.0 >= *round,
            Self::Start | Self::Seconds(_) | Self::After(_) | Self::Slot(_) | Self::Event(_) => false,
        };
        match self {
            Self::HeightAtAny(_) | Self::RoundAtAny(_) => is_there(best),
            // Checks the best chain first, because it reaches a height before most nodes do.
            _ => is_there(best) && tips.most_are(|tip| is_there(tip.height())),
        }
    }
}

/// An event, the node it happens at, and how often it must have happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventTrigger {
    /// The kind of the event.
    pub kind: EventKind,
    /// At this node; at any, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRef>,
    /// Times it must have happened.
    #[serde(default = "once")]
    pub count: u32,
}

fn once() -> u32 {
    1
}

/// Declares the kinds of events beside their variants, so that none is forgotten.
macro_rules! event_kinds {
    ($($kind:ident: $pattern:pat,)*) => {
        /// The kinds of [`Event`], by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "each is named as the event it stands for")]
        pub enum EventKind {
            $($kind,)*
        }

        impl EventKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind of an event.
            pub fn of(event: &Event) -> Self {
                match event {
                    $($pattern => Self::$kind,)*
                }
            }
        }
    };
}

event_kinds! {
    BlockForged: Event::BlockForged(_),
    BlockReceived: Event::BlockReceived(_),
    BlockApplied: Event::BlockApplied(_),
    BlockRefused: Event::BlockRefused(_),
    BlockDisregarded: Event::BlockDisregarded(_),
    BlockReverted: Event::BlockReverted(_),
    RolledBack: Event::RolledBack { .. },
    ForgingSuspended: Event::ForgingSuspended { .. },
    HealthChecked: Event::HealthChecked { .. },
    PoolAdded: Event::PoolAdded(_),
    PoolRejected: Event::PoolRejected(_),
    PoolRemoved: Event::PoolRemoved(_),
    PoolExpired: Event::PoolExpired(_),
    PoolEvicted: Event::PoolEvicted(_),
    PoolPurged: Event::PoolPurged(_),
    PoolReplaced: Event::PoolReplaced(_),
    PeerAdded: Event::PeerAdded(_),
    PeerRemoved: Event::PeerRemoved(_),
    ForgerStarted: Event::ForgerStarted { .. },
    ForgerFailed: Event::ForgerFailed { .. },
}

impl Save for Trigger {
    fn save(&self, out: &mut Saver) {
        out.json(self);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.json()
    }
}
