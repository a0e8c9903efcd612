//! Twenty deep faults, each of which fires once several conditions have come true in order, and how soon a search meets them.
//!
//! ```sh
//! cargo run --release --example deep_faults -- random 1 100000
//! cargo run --release --example deep_faults -- guided 1 100000
//! ```
//!
//! The numbers are the first seed and the number of runs. Networks have four delegates and the rules of the reference. Each line names
//! a fault, the number of its conditions, the runs in which it fired, and the first of them, counted from 1. A stranger, who had not seen the
//! guided search, wrote the faults.

mod blocks;
mod nodes;
mod pools;
mod rounds;
mod story;
mod types;
mod words;

use dposlab::{
    check::{
        guided::{BATCH, Guide, GuidedRun, StateNotes},
        liveness::liveness,
        search::{Networks, RUN_SEED},
        swarm::{self, Frame, ModelledRuns},
    },
    protocol::crypto::CryptoMode,
    scenario::Scenario,
    sim::{Observer, SeedTree},
};
use std::{env, process::ExitCode, sync::Arc};
use story::{All, Deep, Each, Faults, Story};

/// A fault: its name, the number of its conditions, and one for a new run.
struct Planted {
    name: &'static str,
    conditions: usize,
    new: fn() -> Box<dyn Deep>,
}

fn each<S: Story + 'static>(name: &'static str, conditions: usize) -> Planted {
    Planted { name, conditions, new: || Box::<Each<S>>::default() }
}

fn all_of<S: Story + 'static>(name: &'static str, conditions: usize) -> Planted {
    Planted { name, conditions, new: || Box::<All<S>>::default() }
}

fn planted() -> Vec<Planted> {
    vec![
        each::<rounds::StaleOrder>("stale-order-after-crash", 4),
        each::<rounds::RoundUnwoundTwice>("round-unwound-twice", 5),
        each::<rounds::SeatsOfAnUndoneMilestone>("seats-of-an-undone-milestone", 5),
        each::<rounds::EmptyRoundUndone>("empty-round-undone", 5),
        all_of::<rounds::TwoUnwindOneRound>("two-unwind-one-round", 5),
        each::<pools::EvictedComesBack>("evicted-comes-back", 5),
        each::<pools::ExpiryBeforeRollback>("expiry-before-rollback", 3),
        each::<pools::LostPoolNonce>("lost-pool-nonce", 4),
        each::<pools::FullAfterReplay>("full-after-replay", 5),
        each::<types::ClaimUndoneRefunded>("claim-undone-refunded", 4),
        each::<types::VoteForUndoneResignation>("vote-for-undone-resignation", 6),
        each::<types::SecondKeyUndone>("second-key-undone", 4),
        each::<types::SharedWalletUndone>("shared-wallet-undone", 4),
        all_of::<types::HashHeldByTwoForks>("hash-held-by-two-forks", 4),
        each::<types::BusinessUndone>("business-undone", 5),
        each::<blocks::DoubleForgerForgiven>("double-forger-forgiven", 3),
        each::<blocks::OwnBlockOutlived>("own-block-outlived", 5),
        each::<blocks::TooEarlyThenUndone>("too-early-then-undone", 6),
        each::<nodes::LonelyNodeCatchesUp>("lonely-node-catches-up", 5),
        each::<nodes::PausedAmongForks>("paused-among-forks", 5),
    ]
}

/// Plays a scenario until its faults are over, and two rounds more. Returns how far each fault came.
fn play(scenario: &Scenario, networks: &Networks, all: &[Planted], states: Option<&StateNotes>) -> Vec<usize> {
    let plan = scenario.plan(&networks.of(scenario), SeedTree::new(RUN_SEED));
    let faults = Faults::new(all.iter().map(|planted| (planted.new)()).collect());
    let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(faults.clone())];
    if let Some(states) = states {
        states.begin(plan.start);
        observers.push(Box::new(states.clone()));
    }
    let rounds = f64::from(2 * scenario.network.delegates * scenario.network.block_time_s);
    let until = liveness(scenario).map_or(f64::INFINITY, |asked| asked.from_seconds + rounds);
    scenario.play_inline(&plan, observers, |stage| stage.world().now().seconds_since(plan.start) < until);
    faults.reached()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (Some(is_guided), Some(seed), Some(runs)) = (
        arguments.first().and_then(|way| ["random", "guided"].iter().position(|one| one == way)).map(|way| way == 1),
        number(1),
        number(2),
    ) else {
        eprintln!(
            "deep_faults: found {arguments:?}, allowed are 'random' or 'guided', the first seed and the number of runs"
        );
        return ExitCode::from(2);
    };
    let frame = Frame {
        rules: toml::Table::from_iter([("base".to_owned(), "reference".into())]),
        crypto: Some(CryptoMode::Modelled),
        delegates: Some(4),
        behaviour: ModelledRuns::Never,
        ..Frame::default()
    };
    let (networks, all, mut guide) = (Networks::default(), planted(), Guide::new(&frame));
    let mut fired: Vec<Vec<u64>> = vec![Vec::new(); all.len()];
    for first in (0..runs).step_by(BATCH) {
        let batch = first..runs.min(first + BATCH as u64);
        let draw = |run| match is_guided {
            true => guide.draw(seed + run),
            false => GuidedRun { scenario: Arc::new(swarm::draw(&frame, seed + run)), from: None },
        };
        let drawn: Vec<GuidedRun> = batch.clone().map(draw).collect();
        for (run, GuidedRun { scenario, .. }) in batch.zip(drawn) {
            let states = is_guided.then(StateNotes::default);
            let reached = play(&scenario, &networks, &all, states.as_ref());
            states.iter().for_each(|states| guide.learn(seed + run, &scenario, states));
            for ((planted, reached), fired) in all.iter().zip(reached).zip(&mut fired) {
                if reached >= planted.conditions {
                    fired.push(run + 1);
                }
            }
        }
    }
    for (Planted { name, conditions, .. }, fired) in all.iter().zip(&fired) {
        let first = fired.first().map_or_else(|| "-".to_owned(), u64::to_string);
        println!("{name:<30} {conditions} {:>6} {first:>8}", fired.len());
    }
    ExitCode::SUCCESS
}
