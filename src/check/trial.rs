//! One run with watchers and a verdict: safety during all faults, and liveness once they are over.

use super::{
    liveness::{Alive, Liveness},
    watchers::{OptionalWatchers, Outcome, Watchers},
};
use crate::{
    actors::SimTime,
    protocol::Slot,
    scenario::{Scenario, Stall, Testnet},
    sim::{Plan, SeedTree, network::Tally, stage::inline::InlineStage},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Plays a scenario on the inline stage, on a network that may be shared with other runs, and watches it. The run ends
/// with the slot in which the required liveness is decided, the invariant `until` is broken, or `stop` is set.
/// `beside` adds watchers. A scenario with assertions is played to its end, as by `dposlab run`, since a condition may
/// still come to hold.
pub fn play(
    scenario: &Scenario,
    testnet: &Testnet,
    seeds: SeedTree,
    liveness: Option<Liveness>,
    until: Option<&str>,
    beside: &OptionalWatchers,
    stop: &AtomicBool,
) -> Outcome {
    let plan = scenario.plan(testnet, seeds);
    let asserts = !scenario.assertions.is_empty();
    let watchers = Watchers::new(scenario, &plan, liveness, beside.behaviour, asserts);
    let mut watchers = watchers.expect("it was looked at when the search began");
    beside.states.iter().for_each(|states| watchers.note(states, &plan));
    let goes_on = |watchers: &Watchers| {
        let found = until.is_some_and(|name| watchers.has_found(|finding| finding.invariant == name));
        !found && !stop.load(Ordering::Relaxed)
    };
    match asserts {
        false => play_out(scenario, &plan, watchers, goes_on),
        true => play_asserted(scenario, &plan, watchers, goes_on, stop),
    }
}

fn play_out(scenario: &Scenario, plan: &Plan, mut watchers: Watchers, goes_on: impl Fn(&Watchers) -> bool) -> Outcome {
    let mut stage = InlineStage::new(plan, watchers.observers());
    let slots = plan.tree.slots();
    let first = slots.slot(plan.start.seconds()).0;
    let mut stall = Stall::new(scenario, plan);
    let mut played = 0;
    for slot in first + 1.. {
        let end = SimTime::from_seconds(slots.start(Slot(slot)));
        stage.run_until(end);
        played += 1;
        watchers.slot_over();
        watchers.prove(&stage);
        let (best, decided) = {
            let seen = watchers.seen();
            (seen.best().height(), seen.alive().map(Alive::is_decided))
        };
        let over = decided.unwrap_or_else(|| best >= scenario.last_height() || stall.look(end, best).is_some());
        if over || stage.world().restless().is_some() || !goes_on(&watchers) {
            break;
        }
    }
    watchers.seen().close(scenario, &stage.world().tally());
    watchers.outcome(played, stage.world().delivered())
}

fn play_asserted(
    scenario: &Scenario,
    plan: &Plan,
    mut watchers: Watchers,
    goes_on: impl Fn(&Watchers) -> bool,
    stop: &AtomicBool,
) -> Outcome {
    let (mut slots, mut tally) = (0, Tally::default());
    let observers = watchers.observers();
    let played = scenario.play_inline(plan, observers, |stage| {
        slots += 1;
        tally = stage.world().tally();
        watchers.slot_over();
        watchers.prove(stage);
        goes_on(&watchers)
    });
    watchers.run_over(played.end, played.ended, stop);
    watchers.seen().close(scenario, &tally);
    watchers.outcome(slots, played.delivered)
}
