//! Sets of rules under the same faults, side by side.
//!
//! Each run is of 21 delegates, one on each node of a full mesh, for [`SLOTS`] slots of eight seconds. Faults begin and end
//! with the slots of [`FAULTY`]. Figures are of the slots from [`COUNTED`] on, when the first blocks have become final by every
//! rule. Runs of one seed have the same keys and link latencies.

use super::metrics::Metrics;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{
        finality::FinalBlocks,
        rules::{FinalityRule, NamedRules},
    },
    protocol::Height,
    scenario::Scenario,
    sim::{NetworkEvent, Observer, SeedTree},
    threads::on_threads,
};
use serde::Serialize;
use std::{
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Slots of a run.
pub const SLOTS: u32 = 1_060;
/// The first slot whose figures count.
pub const COUNTED: u32 = 620;
/// The slots in which faults begin and end.
pub const FAULTY: Range<u32> = 660..740;
/// The number of slots at the end of a run in which a healthy chain grows by at least half as many blocks.
const LAST: u32 = 84;

/// The disturbance of a run.
pub struct Situation {
    pub name: &'static str,
    pub what: &'static str,
    /// The fault as in a scenario file, without its times.
    fault: &'static str,
}

/// All situations.
pub const SITUATIONS: [Situation; 6] = [
    Situation { name: "healthy", what: "nothing goes wrong", fault: "" },
    Situation {
        name: "third-down",
        what: "7 of 21 nodes crash and come back",
        fault: r#"
            kind = "crash"
            nodes = { from = "genesis_1", to = "genesis_7" }"#,
    },
    Situation {
        name: "split",
        what: "11 nodes against 10",
        fault: r#"
            kind = "partition"
            groups = [{ from = "genesis_1", to = "genesis_11" }]"#,
    },
    Situation {
        name: "three-parts",
        what: "7 nodes against 7 against 7",
        fault: r#"
            kind = "partition"
            groups = [{ from = "genesis_1", to = "genesis_7" }, { from = "genesis_8", to = "genesis_14" }]"#,
    },
    Situation {
        name: "double",
        what: "a delegate forges two blocks in each of its slots",
        fault: r#"
            kind = "double-forge"
            delegates = ["genesis_9"]"#,
    },
    Situation {
        name: "lossy",
        what: "one message in twenty is lost",
        fault: r#"
            kind = "drop"
            chance = 0.05"#,
    },
];

/// The figures of one run.
struct RunFigures {
    missed: u32,
    rollbacks: u32,
    deepest: u32,
    messages: u64,
    /// For each slot, the distance of the last final block from the winning tip; empty without a rule of finality.
    below: Vec<u32>,
    conflict: bool,
    united: bool,
}

/// The figures of all runs of a set of rules in a situation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub situation: &'static str,
    pub rules: &'static str,
    pub runs: u32,
    /// Slots without a block on the winning chain, of all slots counted, in percent.
    pub missed_percent: f64,
    /// Rollbacks of all nodes of a run, in the mean.
    pub rollbacks: f64,
    /// The deepest rollback of all runs, in blocks.
    pub deepest: u32,
    /// Messages that nodes sent each other, a slot, in the mean. Lost ones count.
    pub messages: f64,
    /// The mean distance of the last final block below the winning tip at a slot's end, in blocks, over all slots counted.
    pub final_below_mean: Option<f64>,
    /// The greatest of these distances.
    pub final_below_max: Option<u32>,
    /// Runs in which blocks became final that are not on one chain.
    pub conflicts: u32,
    /// Runs that ended with a chain that grows, on which all nodes but two at most stand or are a block behind.
    pub united: u32,
}

/// Plays every situation under every set of rules with each of these seeds, on `jobs` threads. `None` if `stop` was set before the end.
/// `progress` receives the number of finished runs.
///
/// # Panics
/// A run panics.
pub fn compare(
    rules: &[&'static NamedRules],
    situations: &[&'static Situation],
    seeds: Range<u64>,
    jobs: usize,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
) -> Option<Vec<Row>> {
    let count = (seeds.end - seeds.start) as usize;
    let total = rules.len() * situations.len() * count;
    let played = on_threads(total, jobs, Some(stop), progress, |index| {
        let (group, seed) = (index / count, seeds.start + (index % count) as u64);
        play(situations[group / rules.len()], rules[group % rules.len()], seed)
    })?;
    let names = situations.iter().flat_map(|situation| rules.iter().map(|named| (situation.name, named.name)));
    Some(names.zip(played.chunks(count)).map(|((situation, rules), runs)| row(situation, rules, runs)).collect())
}

fn row(situation: &'static str, rules: &'static str, runs: &[RunFigures]) -> Row {
    let sum = |of: fn(&RunFigures) -> u32| f64::from(runs.iter().map(of).sum::<u32>());
    let count = runs.len() as f64;
    let slots = count * f64::from(SLOTS - COUNTED);
    let below: Vec<u32> = runs.iter().flat_map(|run| run.below.iter().copied()).collect();
    let total: u64 = below.iter().map(|below| u64::from(*below)).sum();
    Row {
        situation,
        rules,
        runs: runs.len() as u32,
        missed_percent: 100.0 * sum(|run| run.missed) / slots,
        rollbacks: sum(|run| run.rollbacks) / count,
        deepest: runs.iter().map(|run| run.deepest).max().unwrap_or(0),
        messages: runs.iter().map(|run| run.messages).sum::<u64>() as f64 / slots,
        final_below_mean: (!below.is_empty()).then(|| total as f64 / below.len() as f64),
        final_below_max: below.iter().max().copied(),
        conflicts: runs.iter().filter(|run| run.conflict).count() as u32,
        united: runs.iter().filter(|run| run.united).count() as u32,
    }
}

/// Counts the messages between nodes.
#[derive(Clone, Default)]
struct MessageCount(Arc<AtomicU64>);

impl Observer for MessageCount {
    fn observe(&mut self, _now: SimTime, _node: NodeId, _event: &Event) {}

    fn observe_network(&mut self, _now: SimTime, event: &NetworkEvent<'_>) {
        if let NetworkEvent::Sent { from, to, .. } | NetworkEvent::Lost { from, to, .. } = event
            && from.node != to.node
        {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }
}

fn play(situation: &Situation, named: &NamedRules, seed: u64) -> RunFigures {
    let Range { start, end } = FAULTY;
    let fault = match situation.fault {
        "" => String::new(),
        fault => format!("[[fault]]\nfrom = {{ slot = {start} }}\nuntil = {{ slot = {end} }}\n{fault}"),
    };
    let text = format!(
        "version = 1\nrounds = 100000\n[network]\ndelegates = 21\ngossip = \"reference\"\n[rules]\nbase = \"{}\"\n{fault}\n",
        named.name
    );
    let scenario = Scenario::parse(&text, Path::new(situation.name)).expect("the situations are scenarios");
    let seeds = SeedTree::new(seed);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let metrics = Metrics::new(&plan);
    let has_finality = plan.tree.rules().ledger.finality != FinalityRule::None;
    let (mut finals, mut conflict) = (FinalBlocks::new(&plan.tree), false);
    let (mut slot, mut counted_from, mut last_from) = (0, Height::GENESIS, Height::GENESIS);
    let (mut below, mut united, mut tip) = (Vec::new(), false, Height::GENESIS);
    let (messages, mut messages_before) = (MessageCount::default(), 0);
    let outcome = scenario.play_inline(&plan, vec![Box::new(metrics.clone()), Box::new(messages.clone())], |stage| {
        slot += 1;
        let tips = stage.world().tips();
        let winning = tips.winning();
        tip = winning.height();
        if slot == COUNTED {
            (counted_from, messages_before) = (tip, messages.0.load(Ordering::Relaxed));
        }
        if slot == SLOTS - LAST {
            last_from = tip;
        }
        let final_height = plan.tree.applied(winning).state.finality().height();
        conflict |= has_finality && tips.distinct().any(|tip| finals.take(tip, &plan.tree.applied(tip).state).is_err());
        if slot > COUNTED && has_finality {
            below.push(tip.0 - final_height.0);
        }
        let near = tips.of_live().filter(|(_, own)| winning.descends_from(own) && own.height().0 + 1 >= tip.0).count();
        united = near + 2 >= tips.nodes();
        slot < SLOTS
    });
    let figures = metrics.finish(outcome.end).total;
    let grown = 2 * (tip.0 - last_from.0.min(tip.0)) >= LAST;
    RunFigures {
        missed: (SLOTS - COUNTED).saturating_sub(tip.0.saturating_sub(counted_from.0)),
        rollbacks: figures.rollbacks,
        deepest: figures.rollback_depth_max,
        messages: messages.0.load(Ordering::Relaxed) - messages_before,
        below,
        conflict,
        united: united && grown,
    }
}
