//! A run that can be copied at any instant, together with its watchers. The copy then continues independently.

use super::{Course, Target, record::Recorder};
use crate::{
    actors::SimTime,
    check::{Finding, Observations, liveness::liveness, watchers::Watchers},
    protocol::{Height, Slot},
    scenario::{Closing, Ended, run::among_actors},
    sim::{Intervention, Observer, Plan, SeedTree, Stage, Tips, snapshots::CameIn, stage::inline::InlineStage},
};
use std::{
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A scenario's run, slot by slot as `dposlab run` plays it, and what its watchers have seen.
pub(super) struct Playing {
    /// `None` only while an input from outside is played.
    stage: Option<InlineStage>,
    watchers: Watchers,
    ending: Ending,
    /// The inputs from outside, in order, and the number of them that have been played.
    inputs: Arc<[CameIn]>,
    came: usize,
    /// The number of leading inputs that are replayed after the same number of actor inputs as in the recording: the inputs before
    /// the first change of random numbers or inputs.
    exact: usize,
    /// Receives every input from outside.
    recorder: Option<Recorder>,
    /// The end of the slot that is running.
    slot_ends: SimTime,
    blocktime: Duration,
    /// The height at which the run began.
    first: Height,
    ended: Option<Ended>,
    seen: Extremes,
}

/// The end of the run.
#[derive(Clone)]
enum Ending {
    /// As its scenario says.
    Rules(Closing),
    /// At this instant.
    At(SimTime),
}

/// Extreme values at the ends of slots, recorded without an assertion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extremes {
    /// The deepest fork, and the end of the slot at which it was first so deep.
    pub(super) depth: u32,
    pub(super) deepest_at: SimTime,
    /// Slots played, and blocks of the run on the winning chain at the end of the last one.
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

    fn look(&mut self, now: SimTime, tips: &Tips, first: Height) {
        let depth = tips.branches().depth;
        if depth > self.depth {
            (self.depth, self.deepest_at) = (depth, now);
        }
        self.slots += 1;
        self.blocks = tips.winning().height().0.saturating_sub(first.0);
        if self.missed() > 0 {
            self.first_missed.get_or_insert(now);
        }
    }
}

impl Playing {
    /// A run at its first instant. With `modelled`, each node is held against the model of an honest one.
    ///
    /// # Errors
    /// An assertion names an unknown invariant.
    pub(super) fn new(
        course: &Course<'_>,
        plan: &Plan,
        modelled: bool,
        more: Vec<Box<dyn Observer>>,
    ) -> Result<Self, String> {
        let scenario = course.scenario;
        let watchers = Watchers::new(scenario, plan, liveness(scenario), modelled, true)?;
        let mut observers = watchers.observers();
        observers.extend(more);
        let slots = plan.tree.slots();
        let first = slots.slot(plan.start.seconds());
        let ending = course.end.map_or_else(|| Ending::Rules(Closing::new(scenario, plan)), Ending::At);
        Ok(Self {
            stage: Some(InlineStage::new(plan, observers)),
            watchers,
            ending,
            inputs: course.inputs.clone(),
            came: 0,
            exact: course.exact,
            recorder: None,
            slot_ends: SimTime::from_seconds(slots.start(Slot(first.0 + 1))),
            blocktime: Duration::from_secs(slots.blocktime().into()),
            first: plan.tip.height(),
            ended: None,
            seen: Extremes::default(),
        })
    }

    /// Makes the run notify the recorder, one of its observers, before each input from outside.
    pub(super) fn recorded_by(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    fn stage(&self) -> &InlineStage {
        self.stage.as_ref().expect("nothing comes in now")
    }

    fn stage_mut(&mut self) -> &mut InlineStage {
        self.stage.as_mut().expect("nothing comes in now")
    }

    /// Returns a copy of the run. From here on it draws from the streams of `seeds`, if they are given.
    pub(super) fn apart(&self, seeds: Option<SeedTree>) -> Self {
        let mut stage = InlineStage::at(&self.stage().moment());
        let watchers = self.watchers.apart();
        watchers.observers().into_iter().for_each(|observer| stage.watch(observer));
        if let Some(seeds) = seeds {
            stage.draw_anew(seeds);
        }
        Self {
            stage: Some(stage),
            watchers,
            ending: self.ending.clone(),
            inputs: self.inputs.clone(),
            exact: if seeds.is_none() { self.exact } else { 0 },
            recorder: None,
            ..*self
        }
    }

    /// Plays all that is due before an instant, unless the run is over before, or `stop` is set.
    pub(super) fn play_until(&mut self, at: SimTime, stop: &AtomicBool) {
        while self.ended.is_none() && self.slot_ends <= at {
            self.play_slot(stop);
        }
        if self.ended.is_none() && self.now() < at {
            self.run_until(at);
        }
    }

    /// Plays what is due before an instant, and what comes in before it.
    fn run_until(&mut self, until: SimTime) {
        while let Some(CameIn { at, delivered, what }) =
            self.inputs.get(self.came).filter(|next| next.at < until).cloned()
        {
            let is_exact = self.came < self.exact;
            self.came += 1;
            let stage = self.stage_mut();
            stage.run_until(at.max(stage.world().now()));
            while is_exact && stage.world().delivered() < delivered && stage.step(at) {}
            if let Some(recorder) = &self.recorder {
                recorder.comes_in();
            }
            self.stage = self.stage.take().map(|stage| among_actors(Stage::intervene_in(stage, what)));
        }
        self.stage_mut().run_until(until);
    }

    /// Plays until the target has failed, the run is over, or `stop` is set. Returns whether the target failed; `None` if that is not
    /// known, for it was stopped.
    pub(super) fn play_out(&mut self, target: &Target, stop: &AtomicBool) -> Option<bool> {
        while self.ended.is_none() && !target.has_failed(self) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            self.play_slot(stop);
            // A failure of liveness is decided once, after all faults are over.
            if target.is_answered(self) {
                break;
            }
        }
        Some(target.has_failed(self))
    }

    /// Plays the run to its end, and judges the assertions about the end.
    pub(super) fn play_to_end(&mut self, stop: &AtomicBool) -> Ended {
        while self.ended.is_none() {
            self.play_slot(stop);
        }
        self.ended.expect("it has just ended")
    }

    /// Plays to the end of the slot that is running.
    fn play_slot(&mut self, stop: &AtomicBool) {
        let end = match self.ending {
            Ending::At(last) => self.slot_ends.min(last),
            Ending::Rules(_) => self.slot_ends,
        };
        self.run_until(end);
        self.watchers.slot_over();
        if self.stage().world().restless().is_none() {
            self.watchers.seen().look_until(end);
        }
        let world = self.stage.as_ref().expect("nothing comes in now").world();
        self.seen.look(end, world.tips(), self.first);
        self.slot_ends = end + self.blocktime;
        let wanted = !stop.load(Ordering::Relaxed);
        self.ended = match &mut self.ending {
            Ending::Rules(closing) => closing.look(end, world, wanted),
            Ending::At(_) if let Some(at) = world.restless() => Some(Ended::Restless(at)),
            Ending::At(last) => match (end >= *last, wanted) {
                (true, _) => Some(Ended::Complete),
                (false, false) => Some(Ended::Interrupted),
                (false, true) => None,
            },
        };
        if let Some(ended) = self.ended {
            self.watchers.run_over(end, ended, stop);
        }
    }

    /// The virtual instant.
    pub(super) fn now(&self) -> SimTime {
        self.stage().world().now()
    }

    /// Returns the way the run ended, if it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Inputs delivered to actors so far.
    pub(super) fn delivered(&self) -> u64 {
        self.stage().world().delivered()
    }

    /// Returns the extreme values at the ends of slots.
    pub(super) fn extremes(&self) -> Extremes {
        self.seen
    }

    /// Returns the findings so far, without those of a requested reorganisation, which is no failure.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let asked: Vec<SimTime> =
            self.inputs[..self.came].iter().filter(|input| is_asked(input)).map(|input| input.at).collect();
        let seen = self.seen();
        seen.findings().iter().filter(|finding| !asked.contains(&finding.at)).cloned().collect()
    }

    /// Returns the findings so far, among other things.
    pub(super) fn seen(&self) -> MutexGuard<'_, Observations> {
        self.watchers.seen()
    }
}

fn is_asked(input: &CameIn) -> bool {
    matches!(input.what, Intervention::Reorganise(_))
}
