//! A run that can be copied at any instant, with all who watch it, and then goes on by itself.

use super::Target;
use crate::{
    actors::SimTime,
    check::{Seen, search::liveness, watchers::Watchers},
    protocol::Slot,
    scenario::{Closing, Ended, Scenario},
    sim::{Observer, Plan, SeedTree, Tips, stage::inline::InlineStage},
};
use std::{
    sync::{
        MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A scenario's run, slot by slot as `dposlab run` plays it, and what its watchers have seen.
pub(super) struct Playing {
    stage: InlineStage,
    watchers: Watchers,
    closing: Closing,
    /// The end of the slot that is running.
    slot_ends: SimTime,
    blocktime: Duration,
    ended: Option<Ended>,
    seen: Extremes,
}

/// What no assertion is about, at the ends of slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extremes {
    /// The deepest fork, and the end of the slot at which it was first so deep.
    pub(super) depth: u32,
    pub(super) deepest_at: SimTime,
    /// Slots played, and blocks on the winning chain at the end of the last one.
    pub(super) slots: u32,
    pub(super) blocks: u32,
    /// The end of the first slot that left the winning chain as high as it was.
    pub(super) first_missed: Option<SimTime>,
}

impl Extremes {
    /// Slots without a block on the winning chain.
    pub(super) fn missed(self) -> u32 {
        self.slots.saturating_sub(self.blocks)
    }

    fn look(&mut self, now: SimTime, tips: &Tips, first: u32) {
        let depth = tips.branches().depth;
        if depth > self.depth {
            (self.depth, self.deepest_at) = (depth, now);
        }
        self.slots += 1;
        self.blocks = tips.winning().height().0.saturating_sub(first);
        if self.missed() > 0 {
            self.first_missed.get_or_insert(now);
        }
    }
}

impl Playing {
    /// A run at its first instant. With `modelled`, each node is held against the model of an honest one.
    ///
    /// # Errors
    /// An assertion names an invariant that there is not.
    pub(super) fn new(
        scenario: &Scenario,
        plan: &Plan,
        modelled: bool,
        more: Vec<Box<dyn Observer>>,
    ) -> Result<Self, String> {
        let watchers = Watchers::new(scenario, plan, liveness(scenario), modelled, true)?;
        let mut observers = watchers.observers();
        observers.extend(more);
        let slots = plan.tree.slots();
        let first = slots.slot(plan.start.seconds());
        Ok(Self {
            stage: InlineStage::new(plan, observers),
            watchers,
            closing: Closing::new(scenario, plan),
            slot_ends: SimTime::from_seconds(slots.start(Slot(first.0 + 1))),
            blocktime: Duration::from_secs(slots.blocktime().into()),
            ended: None,
            seen: Extremes::default(),
        })
    }

    /// The same run beside this one, from here on with the random numbers of another seed, if one is given.
    pub(super) fn apart(&self, seeds: Option<SeedTree>) -> Self {
        let mut stage = InlineStage::at(&self.stage.moment());
        let watchers = self.watchers.apart();
        watchers.observers().into_iter().for_each(|observer| stage.watch(observer));
        if let Some(seeds) = seeds {
            stage.draw_anew(seeds);
        }
        let (closing, ended) = (self.closing.clone(), self.ended);
        Self { stage, watchers, closing, slot_ends: self.slot_ends, blocktime: self.blocktime, ended, seen: self.seen }
    }

    /// Plays all that is due before an instant, unless the run is over before.
    pub(super) fn play_until(&mut self, at: SimTime) {
        while self.ended.is_none() && self.slot_ends <= at {
            self.play_slot(&AtomicBool::new(false));
        }
        if self.ended.is_none() && self.stage.world().now() < at {
            self.stage.run_until(at);
        }
    }

    /// Plays until the target has failed, the run is over, or somebody stops it. Returns whether the target failed; `None`
    /// if that is not known, for it was stopped.
    pub(super) fn play_out(&mut self, target: &Target, stop: &AtomicBool) -> Option<bool> {
        while self.ended.is_none() && !target.has_failed(self) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            self.play_slot(stop);
        }
        Some(target.has_failed(self))
    }

    /// Plays to the end of the run; what it asserts of its end is judged.
    pub(super) fn play_to_end(&mut self, stop: &AtomicBool) -> Ended {
        while self.ended.is_none() {
            self.play_slot(stop);
        }
        self.ended.expect("it has just ended")
    }

    /// Plays to the end of the slot that is running.
    fn play_slot(&mut self, stop: &AtomicBool) {
        let end = self.slot_ends;
        self.stage.run_until(end);
        self.watchers.slot_over();
        self.watchers.seen().look_until(end);
        let world = self.stage.world();
        let first = world.tree().genesis().height().0;
        self.seen.look(end, world.tips(), first);
        self.slot_ends = end + self.blocktime;
        self.ended = self.closing.look(end, world, !stop.load(Ordering::Relaxed));
        if let Some(ended) = self.ended {
            self.watchers.run_over(end, ended, stop);
        }
    }

    /// The virtual instant.
    pub(super) fn now(&self) -> SimTime {
        self.stage.world().now()
    }

    /// How the run ended, if it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Inputs delivered to actors so far.
    pub(super) fn delivered(&self) -> u64 {
        self.stage.world().delivered()
    }

    /// What was seen of the network at the ends of slots.
    pub(super) fn extremes(&self) -> Extremes {
        self.seen
    }

    /// What was found so far, among other things.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.watchers.seen()
    }
}
