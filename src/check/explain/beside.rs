//! The same run under other rules, slot by slot beside the explained one.
//!
//! Keys, latencies, losses and faults are drawn by name, so the runs are equal up to the first decision that a rule makes otherwise.

use super::{
    Course,
    play::Playing,
    target::{Target, TargetKind},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Rules,
    protocol::{Height, Slot, Slots},
    scenario::{Ended, Scenario, Testnet},
    sim::{NetworkEvent, Observer, Plan, SeedTree, Tips},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

/// Runs of one scenario under several sets of rules.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SideBySide {
    /// The explained run first.
    pub runs: Vec<RunBeside>,
    /// The slots in which the runs differ, ascending.
    pub slots: Vec<SlotBeside>,
    /// The number of slots in which they do not.
    pub alike: u32,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunBeside {
    /// The name of its rules.
    pub rules: String,
    /// The failure, or the nearest thing to one.
    pub target: Target,
    pub failed: bool,
    pub ended: Ended,
    /// Slots played, and those without a block on the winning chain.
    pub slots: u32,
    pub missed: u32,
    /// The height of the winning chain at the end.
    pub height: Height,
    /// The number of blocks reverted by rollbacks, over all nodes.
    pub rolled_back: u64,
}

/// A slot in which runs differ.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SlotBeside {
    /// Its start, in seconds from the start of the run.
    pub seconds: f64,
    /// The number of slots before it that are alike, since the last one shown.
    pub alike_before: u32,
    /// The deeds of each run; empty where it did nothing, or was over.
    pub cells: Vec<String>,
}

/// The deeds of a run in each slot, in words. Clones share it.
#[derive(Clone)]
struct SlotWords(Arc<Mutex<Words>>);

struct Words {
    clock: Slots,
    tips: Tips,
    slot: Slot,
    /// The deeds in the slot that is running.
    forged: Vec<(NodeId, Height)>,
    without_quorum: Vec<NodeId>,
    left: Vec<(NodeId, u32)>,
    rolled_back: u64,
    cells: BTreeMap<Slot, String>,
}

impl Words {
    /// Goes on to the slot of an instant; writes down the one before.
    fn at(&mut self, now: SimTime) {
        let slot = self.clock.slot(now.seconds());
        if slot > self.slot {
            self.end_slot();
            self.slot = slot;
        }
    }

    fn end_slot(&mut self) {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.forged.drain(..).map(|(node, height)| format!("node {} forges {height}", node.0)));
        words.extend(self.without_quorum.drain(..).map(|node| format!("node {} lacks a quorum", node.0)));
        words.extend(self.left.drain(..).map(|(node, blocks)| format!("node {} leaves {blocks}", node.0)));
        match self.tips.branches().branches {
            0 | 1 => {}
            chains => words.push(format!("{chains} chains")),
        }
        if !words.is_empty() {
            self.cells.insert(self.slot, words.join(", "));
        }
    }
}

impl Observer for SlotWords {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut words = self.0.lock().expect("no thread panics while holding it");
        words.at(now);
        match event {
            Event::BlockForged(block) => words.forged.push((node, block.header.height)),
            Event::ForgingSuspended { .. } => words.without_quorum.push(node),
            Event::RolledBack { from, to, .. } => {
                let blocks = from.height().0.saturating_sub(to.height().0);
                words.rolled_back += u64::from(blocks);
                words.left.push((node, blocks));
            }
            _ => {}
        }
        words.tips.follow(node, event);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut words = self.0.lock().expect("no thread panics while holding it");
        words.at(now);
        words.tips.follow_network(event);
    }
}

impl SideBySide {
    /// Plays a scenario under its own rules, and with each of these as the base of its rules.
    ///
    /// # Errors
    /// The scenario's changes of rules do not fit a base.
    pub(super) fn of(
        scenario: &Scenario,
        testnet: &Arc<Testnet>,
        seeds: SeedTree,
        others: &[String],
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let own = scenario.rules.get("base").and_then(toml::Value::as_str).unwrap_or(Rules::DEFAULT_BASE).to_owned();
        let mut columns = vec![played(scenario, own, testnet, seeds, stop)?];
        for name in others {
            let mut other = scenario.clone();
            other.rules.insert("base".to_owned(), name.clone().into());
            Rules::from_toml(&other.rules).map_err(|why| format!("--beside {name}: {why}"))?;
            columns.push(played(&other, name.clone(), testnet, seeds, stop)?);
        }
        let (runs, cells): (Vec<RunBeside>, Vec<BTreeMap<u32, String>>) = columns.into_iter().unzip();
        let last = runs.iter().map(|run| run.slots).max().unwrap_or(0);
        let (mut slots, mut alike, mut alike_before) = (Vec::new(), 0, 0);
        for index in 0..last {
            let of_slot: Vec<String> =
                cells.iter().map(|cells| cells.get(&index).cloned().unwrap_or_default()).collect();
            if of_slot.iter().all(|cell| *cell == of_slot[0]) && runs.iter().all(|run| index < run.slots) {
                alike += 1;
                alike_before += 1;
                continue;
            }
            let seconds = f64::from(index) * f64::from(scenario.network.block_time_s);
            slots.push(SlotBeside { seconds, alike_before, cells: of_slot });
            alike_before = 0;
        }
        Ok(Self { runs, slots, alike })
    }
}

/// Plays a scenario. Returns the run, and its words by the number of the slot.
fn played(
    scenario: &Scenario,
    rules: String,
    testnet: &Arc<Testnet>,
    seeds: SeedTree,
    stop: &AtomicBool,
) -> Result<(RunBeside, BTreeMap<u32, String>), String> {
    let plan: Plan = scenario.plan(testnet, seeds);
    let clock = plan.tree.slots();
    let first = clock.slot(plan.start.seconds());
    let words = SlotWords(Arc::new(Mutex::new(Words {
        tips: Tips::new(plan.nodes.len(), plan.tree.genesis()),
        clock,
        slot: first,
        forged: Vec::new(),
        without_quorum: Vec::new(),
        left: Vec::new(),
        rolled_back: 0,
        cells: BTreeMap::new(),
    })));
    let mut run = Playing::new(&Course::of(scenario), &plan, false, vec![Box::new(words.clone())])?;
    let ended = run.play_to_end(stop);
    let target = Target::of(scenario, &run, plan.start);
    let mut words = words.0.lock().expect("the run is over");
    words.end_slot();
    let run = RunBeside {
        rules,
        failed: target.kind.is_failure(),
        target,
        ended,
        slots: run.extremes().slots,
        missed: run.extremes().missed(),
        height: words.tips.winning().height(),
        rolled_back: words.rolled_back,
    };
    let cells = std::mem::take(&mut words.cells).into_iter().map(|(slot, cell)| (slot.0 - first.0, cell));
    Ok((run, cells.collect()))
}

impl RunBeside {
    /// The end of the run in a few words.
    pub(super) fn end_in_words(&self) -> String {
        match self.target.kind {
            TargetKind::Assertion | TargetKind::Invariant => format!("does not hold: {}", self.target.name),
            TargetKind::Halt | TargetKind::Stall => self.target.name.clone(),
            TargetKind::Fork | TargetKind::MissedSlots | TargetKind::Nothing => "nothing failed".to_owned(),
        }
    }
}
