//! Honest nodes: on drawn networks, under drawn faults, every node does after each input what the model of an honest one
//! does (`check::behaviour`). Source: consensus.md 2, 3, 5, 6.

use dposlab::{
    check::{
        conduct::is_modelled,
        search::{Networks, play},
        swarm::{Frame, ModelledRuns, draw, is_whole, set},
    },
    scenario::Scenario,
    sim::{FaultKind, fault::Messages, strategy::LieAboutTip},
};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

/// Seeds that are drawn from.
const SEEDS: u64 = 90;

/// A drawn network that the model is sure of: one that loses and delays nothing by itself, and whose nodes tell each other
/// the truth about their chains. Senders have quotas from two to five.
fn drawn(base: &str, seed: u64) -> Option<Scenario> {
    let rules = toml::Table::from_iter([("base".to_owned(), base.into())]);
    let mut scenario = draw(&Frame { rules, behaviour: ModelledRuns::Always, ..Frame::default() }, seed);
    let which = |kind: &FaultKind| match kind {
        FaultKind::Drop(drop) => Some(drop.which.clone()),
        _ => None,
    };
    scenario.faults.retain(|fault| {
        let held_back = matches!(fault.kind, FaultKind::Delay(_) | FaultKind::Duplicate(_))
            || fault.kind.strategy::<LieAboutTip>().is_some();
        !held_back && which(&fault.kind).is_none_or(|which: Messages| which.chance == Some(1.0))
    });
    set(&mut scenario.rules, "pool.max_transactions_per_sender", 2 + (seed % 4) as i64);
    Some(scenario).filter(|scenario| is_whole(&scenario.network.model))
}

fn nothing_is_wrong_under(base: &str, judged: fn(&str) -> bool) {
    let (networks, next, played) = (Networks::default(), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let seed @ 1..=SEEDS = next.fetch_add(1, Ordering::Relaxed) + 1 {
                    let Some(scenario) = drawn(base, seed) else { continue };
                    let findings = play(&scenario, &networks, None, true, &AtomicBool::new(false)).findings;
                    let broken: Vec<_> = findings.iter().filter(|one| judged(one.invariant)).collect();
                    if !broken.is_empty() {
                        next.store(SEEDS, Ordering::Relaxed);
                    }
                    assert!(broken.is_empty(), "seed {seed}, {base}: {broken:#?}");
                    played.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let played = played.into_inner();
    assert!(played > SEEDS / 4, "{played} networks, or next to nothing was looked at");
}

#[test]
fn nodes_do_what_the_model_of_an_honest_one_does() {
    nothing_is_wrong_under("corrected", is_modelled);
}

/// Of the reference's peers the model is not always sure, for their questions are held back after rollbacks that cross.
#[test]
fn pools_and_delegates_of_the_reference_do_what_the_model_of_honest_ones_does() {
    use dposlab::check::conduct::{ADMITTED, CHOSEN, DECIDED, EXPIRED, FOLLOWED, MADE, REPLAYED, TURN};
    nothing_is_wrong_under("reference", |invariant| {
        let judged = [ADMITTED, EXPIRED, FOLLOWED, REPLAYED, CHOSEN, DECIDED, TURN, MADE];
        judged.iter().any(|conduct| conduct.name == invariant)
    });
}
