//! The watchers of one run: their checks after each slot and at the end of the run, and the outcome.

use super::{
    Behaviour, Certificate, Finding, Observations, Sometimes, Watch,
    assertions::judge,
    finding::{ASSERTED, interned},
    guided::StateNotes,
    liveness::{Liveness, untimely},
};
#[cfg(feature = "cli")]
use crate::ledger::codec::Saver;
use crate::{
    actors::SimTime,
    protocol::Height,
    scenario::{Ended, Judge, Scenario, Verdict},
    sim::{Observer, Plan, stage::inline::InlineStage},
};
use std::{
    sync::{
        MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The first finding of each invariant and cause, in the order found.
    pub findings: Vec<Finding>,
    pub sometimes: Sometimes,
    /// Height of the highest chain.
    pub height: Height,
    /// Slots played.
    pub slots: u32,
    /// Inputs delivered to actors.
    pub delivered: u64,
}

/// Watchers of a run beside those of its invariants.
#[derive(Clone, Default)]
pub struct OptionalWatchers {
    /// True if each node is compared with the model of an honest one.
    pub behaviour: bool,
    /// Notes the states of nodes.
    pub states: Option<StateNotes>,
}

impl OptionalWatchers {
    /// Selects only the model of an honest node, if `behaviour` is set.
    pub fn model(behaviour: bool) -> Self {
        Self { behaviour, states: None }
    }
}

/// The watchers of one run.
pub(super) struct Watchers {
    watch: Watch,
    states: Option<StateNotes>,
    behaviour: Option<Behaviour>,
    asserted: Option<AssertionWatcher>,
}

impl Watchers {
    /// Starts to watch a run that begins. With `behaviour`, it compares each node with the model of an honest one, where that knows the
    /// rules; with `asserts`, it judges the scenario's assertions.
    ///
    /// # Errors
    /// As [`judge`].
    pub(super) fn new(
        scenario: &Scenario,
        plan: &Plan,
        liveness: Option<Liveness>,
        behaviour: bool,
        asserts: bool,
    ) -> Result<Self, String> {
        let watch = Watch::of(scenario, plan, liveness);
        let is_known = plan.tree.rules().is_of_the_reference();
        let behaviour = (behaviour && is_known).then(|| Behaviour::new(plan, &untimely(scenario)));
        let asserted = asserts.then(|| AssertionWatcher::new(scenario, plan, &watch)).transpose()?;
        Ok(Self { watch, states: None, behaviour, asserted })
    }

    /// Notes the states of nodes, too, in a run that begins.
    pub(super) fn note(&mut self, states: &StateNotes, plan: &Plan) {
        states.begin(plan.start);
        self.states = Some(states.clone());
    }

    /// Returns the watchers of a copy of this run that goes on from here: both know what was seen so far.
    #[cfg(feature = "cli")]
    pub(super) fn apart(&self) -> Self {
        let watch = self.watch.apart();
        let behaviour = self.behaviour.as_ref().map(Behaviour::apart);
        let asserted = self.asserted.as_ref().map(|asserted| AssertionWatcher {
            judge: asserted.judge.apart(),
            watch: watch.clone(),
            ..*asserted
        });
        Self { watch, states: None, behaviour, asserted }
    }

    /// Returns the observers for the stage.
    pub(super) fn observers(&self) -> Vec<Box<dyn Observer>> {
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(self.watch.clone())];
        observers.extend(self.states.iter().map(|states| Box::new(states.clone()) as Box<dyn Observer>));
        observers.extend(self.behaviour.iter().map(|behaviour| Box::new(behaviour.clone()) as Box<dyn Observer>));
        observers.extend(self.asserted.as_ref().and_then(|asserted| asserted.judge.observer()));
        observers
    }

    /// Returns the observations so far.
    pub(super) fn seen(&self) -> MutexGuard<'_, Observations> {
        self.watch.seen()
    }

    /// Appends the memory that can decide later findings.
    #[cfg(feature = "cli")]
    pub(super) fn mark(&self, now: SimTime, out: &mut Saver) {
        self.seen().mark(now, out);
    }

    /// Checks conduct and assertions at the end of each slot.
    pub(super) fn slot_over(&mut self) {
        self.behaviour.iter().for_each(|behaviour| behaviour.tell(&mut self.watch.seen()));
        self.asserted.iter_mut().for_each(AssertionWatcher::slot_over);
    }

    /// Checks liveness after the end of each slot, and proves from the present run why there is none. After an
    /// instant that does not end there is no liveness to check.
    pub(super) fn prove(&self, stage: &InlineStage) {
        let mut seen = self.seen();
        if stage.world().restless().is_some() {
            return;
        }
        seen.look_until(stage.world().now());
        seen.prove(stage);
    }

    /// Called at the end of a run, unless it was stopped.
    pub(super) fn run_over(&self, end: SimTime, ended: Ended, stop: &AtomicBool) {
        if !matches!(ended, Ended::Restless(_)) {
            self.seen().look_until(end);
        }
        if !stop.load(Ordering::Relaxed) {
            self.asserted.iter().for_each(|asserted| asserted.run_over(end, ended));
        }
    }

    /// Returns true if such a finding was made.
    pub(super) fn has_found(&self, wanted: impl Fn(&Finding) -> bool) -> bool {
        self.seen().findings().iter().any(wanted)
    }

    /// Returns the result of a run of `slots` slots and `delivered` inputs.
    pub(super) fn outcome(&self, slots: u32, delivered: u64) -> Outcome {
        let seen = self.seen();
        let mut sometimes = seen.sometimes().clone();
        self.behaviour.iter().for_each(|behaviour| sometimes.add(&behaviour.judged()));
        Outcome { findings: seen.findings().to_vec(), sometimes, height: seen.best().height(), slots, delivered }
    }
}

/// Makes findings of a scenario's assertions that do not hold.
struct AssertionWatcher {
    judge: Judge,
    watch: Watch,
    /// The end of the slot that is running.
    slot_ends: SimTime,
    blocktime: Duration,
}

impl AssertionWatcher {
    /// The watchers of a run that begins.
    ///
    /// # Errors
    /// As [`judge`].
    fn new(scenario: &Scenario, plan: &Plan, watch: &Watch) -> Result<Self, String> {
        let slots = plan.tree.slots();
        let blocktime = Duration::from_secs(slots.blocktime().into());
        let slot_ends = SimTime::from_seconds(slots.start(slots.slot(plan.start.seconds()))) + blocktime;
        Ok(Self { judge: judge(scenario, plan)?, watch: watch.clone(), slot_ends, blocktime })
    }

    /// Records, at the end of each slot, the assertions that can no longer hold.
    fn slot_over(&mut self) {
        self.note(self.slot_ends, self.judge.broken(self.slot_ends));
        self.slot_ends = self.slot_ends + self.blocktime;
    }

    /// Records, at the end of the run, the assertions that do not hold.
    fn run_over(&self, end: SimTime, ended: Ended) {
        let verdicts = self.judge.verdicts(end, ended).into_iter();
        self.note(end, verdicts.filter(Verdict::is_broken).collect());
    }

    fn note(&self, at: SimTime, broken: Vec<Verdict>) {
        for verdict in broken {
            let mut seen = self.watch.seen();
            let height = Some(seen.best().height());
            seen.found(Finding {
                invariant: interned(&verdict.assertion),
                origin: ASSERTED,
                cause: String::new(),
                node: None,
                block: None,
                height,
                at,
                after_seconds: 0.0,
                what: verdict.found,
                certificate: Certificate::None,
                story: Vec::new(),
            });
        }
    }
}
