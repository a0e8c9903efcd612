//! Clients of a run: whoever hands in transactions while it goes on.

use super::fault::Trigger;
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    ledger::Link,
};
use std::{fmt, sync::Arc};

/// Hands in transactions while a run goes on. What it does is a function of what it is told and of its own seed.
pub trait Source: Send {
    /// Called when it begins and at each instant it asked for; `tip` ends the highest chain of the network.
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll;

    /// A node has answered what was handed in.
    fn answered(&mut self, now: SimTime, submission: &Submission);
}

/// What a [`Source`] wants.
#[derive(Default)]
pub struct Poll {
    /// Handed in now, each at a node.
    pub submissions: Vec<(NodeId, Transactions)>,
    /// When it wants to be called again; never, if `None`.
    pub again: Option<SimTime>,
}

/// Makes a [`Source`]: a plan may be played several times.
pub type MakeSource = Arc<dyn Fn() -> Box<dyn Source> + Send + Sync>;

/// A source and when it is at work.
#[derive(Clone)]
pub struct PlannedSource {
    pub from: Trigger,
    pub until: Option<Trigger>,
    pub make: MakeSource,
}

impl fmt::Debug for PlannedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedSource").field("from", &self.from).field("until", &self.until).finish_non_exhaustive()
    }
}
