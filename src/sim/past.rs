//! The past of a live run: moments that are kept from time to time, and the replay from one of them to any earlier instant.
//!
//! ```text
//!   kept ·········· kept ······ kept ····· now       bounded bytes; the moment that is soonest made again gives way
//!            ▲        └─ copy, and play what came in since (walk.rs) ─► the instant that is asked for
//!   inputs ──┴── those of the run's snapshots: nothing is written down a second time
//! ```
//!
//! [`Snapshots`] keep the inputs from outside anyway. So an instant is reached by a copy of the nearest moment before it, on a stage of
//! its own, and the live run never stands still for it. Observers of the run, such as views of nodes, are copied beside each moment,
//! because their earlier observations cannot be made again from the moment alone.

mod walk;

pub use walk::{Walk, WalkError, WalkStep};

use super::{
    Observer, Plan, Stage,
    snapshots::{CameIn, Inputs, SnapshotId, SnapshotInfo, Snapshots},
    world::Moment,
};
use crate::{actors::SimTime, ledger::settled_chain::SettledError, protocol::Height};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bytes of moments that are kept.
pub const PAST_MAX: usize = 30 << 20;
/// Moments that are kept at most.
const MOMENTS_MAX: usize = 64;
/// The least number of inputs delivered to actors between two moments. The second constant is added for each node, because a moment of
/// a larger network takes longer to copy.
const SPACING: u64 = 8_192;
const SPACING_OF_NODE: u64 = 128;

/// A point of a run between two events. Its parts only ever grow, unless the run goes back to a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPoint {
    /// The time on the clock.
    pub at: SimTime,
    /// Inputs delivered to actors.
    pub delivered: u64,
    /// Inputs that came from outside, since the beginning of the run.
    pub inputs: usize,
}

/// Observers of a run, whose copies observe a copy of it.
pub trait Watchers: Send + Sync + 'static {
    /// A copy of the watchers as they are now. It shares nothing that changes.
    fn apart(&self) -> Self;

    /// The observers with which the watchers follow a run.
    fn observers(&self) -> Vec<Box<dyn Observer>>;
}

/// A moment that is kept.
pub struct RetainedMoment<W> {
    pub place: RunPoint,
    pub watchers: W,
    /// A moment cannot be shared between threads, and is copied by one at a time.
    moment: Mutex<Moment>,
    bytes: usize,
    /// The height of the lowest node.
    lowest: Height,
}

impl<W> RetainedMoment<W> {
    /// A separate stage at this moment, with `observers` and with the inputs that had come in by then.
    fn stage(&self, plan: &Plan, inputs: Inputs, observers: Vec<Box<dyn Observer>>) -> Stage {
        let moment = self.moment.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Stage::at(&moment, Snapshots::after(plan, inputs), observers)
    }
}

/// Keeps moments of a live run: the interface of [`Past`] to [`super::Live`].
pub trait Album: Send {
    /// Returns true if a moment of a run of `nodes` nodes is due, after `delivered` inputs delivered to actors.
    fn is_due(&self, delivered: u64, nodes: usize) -> bool;
    /// Keeps a moment.
    fn keep(&mut self, inputs: usize, moment: Moment);
    /// A snapshot was taken.
    fn took(&mut self, id: SnapshotId);
    /// Drops the moments in which a node stands below a height. Returns the number of inputs from outside before the first remaining
    /// moment.
    fn forget(&mut self, below: Height) -> Option<usize>;
    /// The run has gone back to a snapshot.
    fn went_back(&mut self, to: &SnapshotInfo);
}

/// The past of a run, for as long as the run lives. Cheap to clone; clones share everything.
pub struct Past<W>(Arc<PastStore<W>>);

struct PastStore<W> {
    live: W,
    room: usize,
    state: Mutex<State<W>>,
}

struct State<W> {
    /// In ascending order of place. All of them lie on the way to the run's present point.
    kept: Vec<Arc<RetainedMoment<W>>>,
    /// Snapshots that are known to be on that way.
    line: BTreeSet<SnapshotId>,
    /// The number of times that the run went back.
    reverts: u64,
    is_wanted: bool,
}

/// The data for a replay of any past instant, as of one instant of the live run.
pub struct History<W> {
    pub kept: Vec<Arc<RetainedMoment<W>>>,
    pub plan: Plan,
    /// All inputs, from the beginning of the run on.
    pub inputs: Inputs,
    recent: Recent,
    /// The point that the live run has reached.
    pub present: RunPoint,
    /// The number of times that it went back to a snapshot.
    pub reverts: u64,
}

impl<W> Clone for Past<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The inputs that came in after the first moment that is kept.
struct Recent {
    /// The number of earlier inputs.
    skipped: usize,
    inputs: Vec<CameIn>,
}

impl Recent {
    /// The number of inputs, from the beginning of the run on, before the first recent one that does not pass.
    fn count_while(&self, passes: impl Fn(&CameIn) -> bool) -> usize {
        self.skipped + self.inputs.partition_point(passes)
    }

    /// Returns the inputs from an index on up to another, as far as they are here.
    fn between(&self, from: usize, to: usize) -> &[CameIn] {
        let index = |index: usize| index.saturating_sub(self.skipped).min(self.inputs.len());
        &self.inputs[index(from)..index(to.max(from))]
    }
}

impl<W> History<W> {
    /// The number of inputs that came in before the first that does not pass; those before the first moment pass.
    pub fn count_while(&self, passes: impl Fn(&CameIn) -> bool) -> usize {
        self.recent.count_while(passes)
    }
}

impl<W: Watchers> Past<W> {
    /// The past of a run that is about to begin, with these observers.
    pub fn new(live: W) -> Self {
        Self::with_room(live, PAST_MAX)
    }

    /// The same, with `room` bytes for moments.
    pub fn with_room(live: W, room: usize) -> Self {
        let state = State { kept: Vec::new(), line: BTreeSet::new(), reverts: 0, is_wanted: true };
        Self(Arc::new(PastStore { live, room, state: Mutex::new(state) }))
    }

    /// The history of `stage`, whose past this is.
    ///
    /// # Errors
    /// An input is only in a log, and the log cannot be read.
    pub fn history(&self, stage: &Stage) -> Result<History<W>, SettledError> {
        let snapshots = stage.snapshots();
        let inputs = snapshots.inputs();
        let world = stage.world();
        let present = RunPoint { at: world.now(), delivered: world.delivered(), inputs: inputs.len() };
        let state = self.lock();
        let (kept, reverts) = (state.kept.clone(), state.reverts);
        drop(state);
        let skipped = kept.first().map_or(inputs.len(), |kept| kept.place.inputs).min(inputs.len());
        let recent = Recent { skipped, inputs: inputs.since(skipped)? };
        Ok(History { kept, plan: snapshots.plan().clone(), inputs, recent, present, reverts })
    }

    /// The number of moments that are kept, and of bytes that they take: an estimate.
    pub fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.kept.len(), state.bytes())
    }

    /// The first instant that can be gone back to.
    pub fn first(&self) -> Option<RunPoint> {
        self.lock().kept.first().map(|kept| kept.place)
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        // A panic under the lock leaves complete entries.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Watchers> Album for Past<W> {
    fn is_due(&self, delivered: u64, nodes: usize) -> bool {
        let state = self.lock();
        let last = state.kept.last().map_or(0, |kept| kept.place.delivered);
        state.is_wanted || delivered.saturating_sub(last) >= SPACING + SPACING_OF_NODE * nodes as u64
    }

    fn keep(&mut self, inputs: usize, moment: Moment) {
        let place = RunPoint { at: moment.now(), delivered: moment.delivered(), inputs };
        let (watchers, bytes, lowest) = (self.0.live.apart(), moment.bytes(), moment.lowest());
        let kept = RetainedMoment { place, watchers, moment: Mutex::new(moment), bytes, lowest };
        let mut state = self.lock();
        state.is_wanted = false;
        state.kept.push(Arc::new(kept));
        state.thin(self.0.room);
    }

    fn forget(&mut self, below: Height) -> Option<usize> {
        let mut state = self.lock();
        state.kept.retain(|kept| kept.lowest >= below);
        state.is_wanted |= state.kept.is_empty();
        state.kept.first().map(|kept| kept.place.inputs)
    }

    fn took(&mut self, id: SnapshotId) {
        self.lock().line.insert(id);
    }

    /// Drops all moments that are not on the way to the snapshot. If this way is not known, the past begins anew: at the beginning of the
    /// run, if that is kept, otherwise at the snapshot.
    fn went_back(&mut self, to: &SnapshotInfo) {
        let mut state = self.lock();
        let is_known = state.line.contains(&to.id);
        let begins = |kept: &RetainedMoment<W>| (kept.place.delivered, kept.place.inputs) == (0, 0);
        let is_before = |kept: &RetainedMoment<W>| kept.place.at <= to.at && kept.place.delivered <= to.delivered;
        state.kept.retain(|kept| is_before(kept) && (is_known || begins(kept)));
        state.line.retain(|id| is_known && *id <= to.id);
        state.line.insert(to.id);
        state.reverts += 1;
        state.is_wanted = true;
    }
}

impl<W> State<W> {
    fn bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.bytes).sum()
    }

    /// Drops moments until the rest has room, first those that take the least replay to restore. Keeps the first and the newest.
    fn thin(&mut self, room: usize) {
        let mut bytes = self.bytes();
        while (bytes > room || self.kept.len() > MOMENTS_MAX) && self.kept.len() > 2 {
            let gap = |at: &usize| self.kept[at + 1].place.delivered - self.kept[at - 1].place.delivered;
            let soonest = (1..self.kept.len() - 1).min_by_key(gap).expect("there are three");
            bytes -= self.kept.remove(soonest).bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ledger::{BlockTree, Rules},
        protocol::{BlockId, NetworkConfig, Timestamp, crypto::CryptoMode},
        sim::{Intervention, NodePlan, Plan, SeedTree},
    };
    use std::{path::Path, sync::Arc, time::Duration};

    /// Watchers that observe nothing.
    struct Blind;

    impl Watchers for Blind {
        fn apart(&self) -> Self {
            Self
        }

        fn observers(&self) -> Vec<Box<dyn Observer>> {
            Vec::new()
        }
    }

    /// Snapshot 2 is on a branch that was left. Its way differs from the later moments, although no input came in before them.
    #[tokio::test]
    async fn a_moment_of_another_branch_goes_when_the_way_to_a_snapshot_is_not_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/network");
        let config = NetworkConfig::load(&folder, CryptoMode::Real).expect("it is there");
        let tree = Arc::new(BlockTree::new(Arc::new(config), Arc::new(Rules::reference())).expect("a genesis block"));
        let nodes = vec![NodePlan { forger: None }; 2];
        let plan = Plan::new(
            tree.clone(),
            tree.genesis().clone(),
            nodes,
            SeedTree::new(1),
            SimTime::from_seconds(Timestamp(8)),
        );
        let mut stage = Stage::inline(&plan, Vec::new());
        let mut past = Past::new(Blind);
        let snapshot = |id, stage: &Stage| {
            let (name, world) = (None, stage.world());
            let (at, delivered, height, tip) = (world.now(), world.delivered(), Height(1), BlockId::Numeric(1));
            SnapshotInfo { id, name, at, delivered, height, tip }
        };
        let mut taken = Vec::new();
        for slots in [0, 2, 4, 6] {
            let until = plan.start + Duration::from_secs(8 * slots);
            while slots > 0 && stage.step(until).await.expect("no actor dies") {}
            taken.push((snapshot(SnapshotId(slots), &stage), stage.moment().await.expect("no actor dies")));
        }
        let [(_, begin), (first, _), (_, left), (second, _)] = taken.try_into().ok().expect("there are four");
        past.keep(0, begin);
        past.took(first.id);
        past.took(second.id);
        past.went_back(&first);
        past.keep(0, left);
        assert_eq!(past.size().0, 2);
        past.went_back(&second);
        assert_eq!((past.size().0, past.first().map(|place| place.at)), (1, Some(plan.start)));
    }

    #[test]
    fn inputs_before_the_first_moment_count_and_are_not_looked_at() {
        let came = |at| CameIn { at: SimTime::from_micros(at), delivered: at, what: Intervention::EndFault { id: 0 } };
        let recent = Recent { skipped: 6, inputs: (6..10).map(came).collect() };
        for at in 6..=10 {
            assert_eq!(recent.count_while(|came| came.delivered < at), at as usize);
        }
        let times = |from, to| recent.between(from, to).iter().map(|came| came.delivered).collect::<Vec<_>>();
        assert_eq!((times(7, 9), times(6, usize::MAX), times(9, 7)), (vec![7, 8], vec![6, 7, 8, 9], vec![]));
    }
}
