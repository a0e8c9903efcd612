//! Snapshots of a live run, as a tree of the inputs between them.
//!
//! ```text
//!   the beginning ──inputs──► 1 ──inputs──► 2          each: where it is, and what came in since the one before
//!                             └───inputs──► 3          some: the moment itself, ready to go back to
//! ```
//!
//! A moment of a network of 51 delegates takes some 200 KB, so only a limited number is stored. The moment of another snapshot is made
//! again when the run reverts to it: from the nearest earlier stored one, by replaying the later inputs.

mod checkpoint;
mod inputs;

use super::{Plan, world::Moment};
use crate::protocol::Height;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use super::intervention::{SnapshotId, SnapshotInfo};
pub use checkpoint::NamedSnapshots;
pub use inputs::{CameIn, InputLog, Inputs, LogPlace, Reading, Stretch};

/// Snapshots that one run can have.
pub const SNAPSHOTS_MAX: usize = 10_000;
/// The default number of bytes for moments.
pub const MOMENTS_MAX: usize = 30 << 20;
/// The snapshot that every run begins with, and that cannot be deleted.
const BEGINNING: SnapshotId = SnapshotId(0);

/// The replay to a snapshot: from a moment, or from the beginning of the run, with the inputs that came in after it.
pub struct Way<'s> {
    pub from: Option<&'s Moment>,
    pub inputs: Inputs,
}

/// All snapshots of a run.
pub struct Snapshots {
    plan: Plan,
    all: BTreeMap<SnapshotId, StoredSnapshot>,
    /// Pairs of a snapshot and one that comes after it.
    after: BTreeSet<(SnapshotId, SnapshotId)>,
    next: u64,
    /// The last snapshot that the run took or reverted to, and the inputs since.
    last: SnapshotId,
    since: Inputs,
    /// The log that holds all that comes in, if there is one.
    log: Option<Arc<dyn InputLog>>,
    /// Bytes of moments that may be kept.
    room: usize,
}

struct StoredSnapshot {
    info: SnapshotInfo,
    before: SnapshotId,
    inputs: Inputs,
    moment: Option<Moment>,
    /// The size of the moment, which takes longer to compute than to copy.
    bytes: usize,
    /// The run cannot revert to it any more. It stays because several snapshots come after it.
    is_deleted: bool,
}

impl Snapshots {
    /// The snapshots of a run that begins with this plan: none.
    pub fn new(plan: &Plan) -> Self {
        let (all, after, since) = (BTreeMap::new(), BTreeSet::new(), Inputs::default());
        Self { plan: plan.clone(), all, after, next: 1, last: BEGINNING, since, log: None, room: MOMENTS_MAX }
    }

    /// The snapshots of a run that begins with this plan and has received these inputs: none.
    pub fn after(plan: &Plan, inputs: Inputs) -> Self {
        Self { since: inputs, ..Self::new(plan) }
    }

    /// A log holds all that comes in from now on.
    pub fn log_in(&mut self, log: Arc<dyn InputLog>) {
        self.since.log_in(&log);
        self.log = Some(log);
    }

    /// The plan that the run began with.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Records an input of the run that neither takes a snapshot nor reverts to one. `place` is its record in the log.
    pub fn comes_in(&mut self, came: CameIn, place: Option<LogPlace>) {
        self.since.push(came, place);
    }

    /// Keeps a moment of the run; `None` if there are [`SNAPSHOTS_MAX`] already.
    pub fn take(&mut self, name: Option<String>, moment: Moment) -> Option<SnapshotInfo> {
        if self.list().count() >= SNAPSHOTS_MAX {
            return None;
        }
        let id = SnapshotId(self.next);
        let tip = moment.tips().winning();
        let (height, tip) = (tip.height(), tip.id());
        let info = SnapshotInfo { id, name, at: moment.now(), delivered: moment.delivered(), height, tip };
        self.insert(info.clone(), moment);
        self.drop_moments(id);
        Some(info)
    }

    fn insert(&mut self, info: SnapshotInfo, moment: Moment) {
        let (id, inputs) = (info.id, std::mem::replace(&mut self.since, Inputs::of(self.log.clone())));
        let (before, bytes) = (self.last, moment.bytes());
        self.all.insert(id, StoredSnapshot { info, before, inputs, moment: Some(moment), bytes, is_deleted: false });
        self.after.insert((before, id));
        (self.next, self.last) = (id.0 + 1, id);
    }

    /// The inputs since the last snapshot that was taken or gone back to.
    pub fn since(&self) -> &Inputs {
        &self.since
    }

    /// All that has come in, from the beginning of the run on.
    pub fn inputs(&self) -> Inputs {
        let mut inputs = self.history(self.last);
        inputs.append(&self.since);
        inputs
    }

    /// The number of [`Snapshots::inputs`].
    pub fn count_inputs(&self) -> usize {
        let before: usize = self.way_back().iter().map(|id| self.all[id].inputs.len()).sum();
        before + self.since.len()
    }

    /// Drops from memory the first `count` of [`Snapshots::inputs`] and all inputs of other branches, if the log has them.
    pub fn let_go(&mut self, count: usize) {
        let on_way = self.way_back();
        let elsewhere = self.all.iter_mut().filter(|(id, _)| !on_way.contains(id));
        elsewhere.for_each(|(_, kept)| kept.inputs.let_go(usize::MAX));
        let mut left = count;
        for id in on_way.iter().rev() {
            let inputs = &mut self.all.get_mut(id).expect("it is on the way").inputs;
            inputs.let_go(left);
            left = left.saturating_sub(inputs.len());
        }
        self.since.let_go(left);
    }

    /// The snapshots on the way to the run's present point, the last one first.
    fn way_back(&self) -> Vec<SnapshotId> {
        let before = |id: &SnapshotId| self.all.get(id).map(|kept| kept.before);
        std::iter::successors(Some(self.last), before).filter(|id| *id != BEGINNING).collect()
    }

    /// The snapshots to which the run can revert, in the order of their numbers.
    pub fn list(&self) -> impl Iterator<Item = &SnapshotInfo> {
        self.all.values().filter(|kept| !kept.is_deleted).map(|kept| &kept.info)
    }

    /// The number of snapshots in memory, with the deleted ones that several others come after.
    pub fn count_kept(&self) -> usize {
        self.all.len()
    }

    /// A snapshot to which the run can revert.
    pub fn get(&self, id: SnapshotId) -> Option<&SnapshotInfo> {
        self.all.get(&id).filter(|kept| !kept.is_deleted).map(|kept| &kept.info)
    }

    /// The moment of a snapshot, if it is kept.
    pub fn moment(&self, id: SnapshotId) -> Option<&Moment> {
        self.all.get(&id)?.moment.as_ref()
    }

    /// Keeps the moment of a snapshot that a replay has restored.
    pub fn keep(&mut self, id: SnapshotId, moment: Moment) {
        if let Some(kept) = self.all.get_mut(&id) {
            kept.bytes = moment.bytes();
            kept.moment = Some(moment);
            self.drop_moments(id);
        }
    }

    /// Keeps at most `bytes` bytes of moments from now on.
    pub fn make_room(&mut self, bytes: usize) {
        self.room = bytes;
        self.drop_moments(self.last);
    }

    /// Drops the moments in which a node stands below a height.
    pub fn forget_moments(&mut self, below: Height) {
        for kept in self.all.values_mut() {
            kept.moment.take_if(|moment| moment.lowest() < below);
        }
    }

    /// Drops the moments with a chain that has settled above a height, because those settled blocks belong to a chain that was left.
    pub fn forget_settled_above(&mut self, cut: Height) {
        for kept in self.all.values_mut() {
            let is_gone = |moment: &Moment| moment.tips().all().any(|tip| tip.lowest_in_memory() > cut.next());
            kept.moment.take_if(|moment| is_gone(moment));
        }
    }

    /// Bytes of the moments that are kept: an estimate.
    pub fn bytes(&self) -> usize {
        self.all.values().filter(|kept| kept.moment.is_some()).map(|kept| kept.bytes).sum()
    }

    /// Notes that the run has reverted to a snapshot.
    pub fn went_back(&mut self, to: SnapshotId) {
        let left = std::mem::replace(&mut self.last, to);
        self.since = Inputs::after_revert(self.log.clone());
        self.forget_unused(left);
    }

    /// Deletes a snapshot. Returns false if it does not exist.
    pub fn delete(&mut self, id: SnapshotId) -> bool {
        let Some(kept) = self.all.get_mut(&id).filter(|kept| !kept.is_deleted) else { return false };
        kept.is_deleted = true;
        kept.moment = None;
        self.forget_unused(id);
        true
    }

    /// The way to a snapshot.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn way(&self, id: SnapshotId) -> Way<'_> {
        self.way_from(id, |kept| kept.moment.as_ref())
    }

    /// All inputs before a snapshot, from the beginning of the run on.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn history(&self, id: SnapshotId) -> Inputs {
        self.way_from(id, |_| None).inputs
    }

    fn way_from<'s>(&'s self, id: SnapshotId, moment: impl Fn(&'s StoredSnapshot) -> Option<&'s Moment>) -> Way<'s> {
        let (mut at, mut parts) = (id, Vec::new());
        let from = loop {
            if at == BEGINNING {
                break None;
            }
            let kept = &self.all[&at];
            if let Some(moment) = moment(kept) {
                break Some(moment);
            }
            parts.push(&kept.inputs);
            at = kept.before;
        };
        let mut inputs = Inputs::of(self.log.clone());
        parts.into_iter().rev().for_each(|part| inputs.append(part));
        Way { from, inputs }
    }

    /// Removes a deleted snapshot, unless several snapshots come after it. The present counts as one of them. A single one takes over the
    /// removed snapshot's inputs. If none comes after it, the snapshot before may have become unused, too.
    fn forget_unused(&mut self, mut id: SnapshotId) {
        while self.all.get(&id).is_some_and(|kept| kept.is_deleted) {
            let mut after = self.after.range((id, BEGINNING)..=(id, SnapshotId(u64::MAX))).map(|(_, after)| *after);
            let (next, is_last) = (after.next(), self.last == id);
            if after.next().is_some() || (is_last && next.is_some()) {
                return;
            }
            let Some(StoredSnapshot { before, inputs, .. }) = self.all.remove(&id) else { return };
            self.after.remove(&(before, id));
            if let Some(next) = next {
                self.after.remove(&(id, next));
                self.after.insert((before, next));
                let kept = self.all.get_mut(&next).expect("all that come after one are there");
                kept.before = before;
                return kept.inputs.prepend(inputs);
            }
            if is_last {
                self.last = before;
                return self.since.prepend(inputs);
            }
            id = before;
        }
    }

    /// Drops moments until the rest has room, first those that take the least replay to restore. Keeps that of `newest`.
    fn drop_moments(&mut self, newest: SnapshotId) {
        let mut bytes = self.bytes();
        while bytes > self.room {
            let soonest = self.all.iter().filter(|(id, kept)| **id != newest && kept.moment.is_some());
            let soonest = soonest.min_by_key(|(id, kept)| (self.cost(kept), **id)).map(|(id, _)| *id);
            let Some(kept) = soonest.and_then(|id| self.all.get_mut(&id)) else { return };
            bytes -= kept.moment.take().map_or(0, |_| kept.bytes);
        }
    }

    /// The number of inputs that a replay delivers to restore the moment of a snapshot.
    fn cost(&self, kept: &StoredSnapshot) -> u64 {
        let mut before = kept.before;
        while before != BEGINNING {
            let earlier = &self.all[&before];
            if earlier.moment.is_some() {
                return kept.info.delivered.saturating_sub(earlier.info.delivered);
            }
            before = earlier.before;
        }
        kept.info.delivered
    }
}
