//! Clients of a run, which submit transactions while it goes on.

use super::fault::Trigger;
use crate::{
    actors::{Choices, NodeId, PoolError, SimTime, Submission, message::Transactions},
    ledger::{
        Link,
        codec::{LoadError, Loader, Save, Saver},
    },
};
use dyn_clone::DynClone;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

/// Submits transactions while a run goes on. Its decisions are a function of its observations and of its own seed.
pub trait Source: Send + DynClone {
    /// Called when it begins and at each instant it asked for; `tip` ends the highest chain of the network.
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll;

    /// Called when a node has answered a submission. Most sources ignore it.
    fn answered(&mut self, _now: SimTime, _submission: &Submission) {}

    /// Appends the state that has changed since the source was created.
    fn save(&self, out: &mut Saver);

    /// Continues from the saved state of a source that was created like this one.
    ///
    /// # Errors
    /// The bytes are not those of such a source.
    fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError>;

    /// Draws other random numbers from now on. A source that does not draw ignores the call.
    fn draw_anew(&mut self, _choices: Choices) {}
}

dyn_clone::clone_trait_object!(Source);

/// The answer of a [`Source`] to a call.
#[derive(Default)]
pub struct Poll {
    /// The transactions to submit now, each list at a node.
    pub submissions: Vec<(NodeId, Transactions)>,
    /// The time of the next call; never, if `None`.
    pub again: Option<SimTime>,
    /// The number of transactions that were due and do not decode at the height of the chain. No node gets them.
    pub undecoded: u64,
}

/// Creates a [`Source`] for each run of a plan.
pub type MakeSource = Arc<dyn Fn() -> Box<dyn Source> + Send + Sync>;

/// A source and when it is at work.
#[derive(Clone)]
pub struct PlannedSource {
    pub from: Trigger,
    pub until: Option<Trigger>,
    /// The fault of the plan that it carries out, with which it ends.
    pub fault: Option<usize>,
    /// The name by which it draws anew.
    pub name: String,
    pub make: MakeSource,
    /// The outcome of the transactions that it handed in, in the last run of the plan.
    pub tally: Tally,
}

/// Counts of what a source handed in. Clones share one count.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<Counts>>);

/// The outcomes of transactions handed in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub submitted: u64,
    /// Transactions accepted by the pool of the node at which they were submitted.
    pub accepted: u64,
    /// Neither accepted nor refused, because their sender had too many pending transactions.
    pub excess: u64,
    /// Refused, by the code of the error.
    pub refused: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    pub(super) fn set(&self, counts: &Counts) {
        *self.lock() = counts.clone();
    }

    pub(super) fn reset(&self) {
        *self.lock() = Counts::default();
    }

    pub(super) fn submitted(&self, count: usize) {
        self.lock().submitted += count as u64;
    }

    /// Counts transactions that no node gets, as the API refuses them.
    pub(super) fn undecoded(&self, count: u64) {
        if count > 0 {
            let mut counts = self.lock();
            counts.submitted += count;
            *counts.refused.entry(PoolError::SCHEMA).or_default() += count;
        }
    }

    pub(super) fn answered(&self, submission: &Submission) {
        let mut counts = self.lock();
        counts.accepted += submission.accept.len() as u64;
        counts.excess += submission.excess.len() as u64;
        for (_, error) in &submission.errors {
            *counts.refused.entry(error.code()).or_default() += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl From<&Counts> for Tally {
    fn from(counts: &Counts) -> Self {
        Self(Arc::new(Mutex::new(counts.clone())))
    }
}

impl fmt::Debug for PlannedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedSource").field("from", &self.from).field("until", &self.until).finish_non_exhaustive()
    }
}

impl Save for Counts {
    fn save(&self, out: &mut Saver) {
        let Self { submitted, accepted, excess, refused } = self;
        submitted.save(out);
        accepted.save(out);
        excess.save(out);
        out.number(refused.len() as u64);
        for (code, count) in refused {
            (*code).to_owned().save(out);
            count.save(out);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (submitted, accepted, excess) = Save::load(from)?;
        let refused: Vec<(String, u64)> = Save::load(from)?;
        let known = |(code, count): (String, u64)| match PoolError::CODES.iter().find(|known| **known == code) {
            Some(known) => Ok((*known, count)),
            None => Err(from.wrong("code of an error", code)),
        };
        Ok(Self { submitted, accepted, excess, refused: refused.into_iter().map(known).collect::<Result<_, _>>()? })
    }
}
