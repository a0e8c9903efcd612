//! Studies of blocks that race each other: turns that meet, slow ends of rounds, and slots with several owners.
//!
//! The networks are of nodes that keep blocks of other branches and forge without asking their peers, on the longest chain. A block comes
//! to all nodes at once, after a latency.

use super::{Study, claim, distribution, parsed, play};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    protocol::{BlockId, Height, Slot},
    sim::Observer,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::{Arc, Mutex, PoisonError},
};

/// The number of slots in a million that have an owner, as in Ouroboros Praos.
const ACTIVE: u32 = 50_000;
/// The delegates of the lottery, with equal weights but for a unit.
const DELEGATES: u32 = 51;

/// The studies of races.
pub(super) static STUDIES: [Study; 5] = [
    Study {
        what: "EOS, 21 delegates, turns of 12, blocks that come 0.6, 1.2 and 2.2 slots later",
        seeds: 2,
        play: |seed| vec![[600, 1_200, 2_200].map(|latency| lost_at_turns(latency, seed)).to_vec()],
        claims: &[
            claim("blocks lost where turns meet, 0.6 slots", "closed form, EOS's issue 3280", 0.0, 0.0),
            claim("1.2 slots", "closed form", 1.0, 0.0),
            claim("2.2 slots", "closed form", 2.0, 0.0),
        ],
    },
    Study {
        what: "Tron, 21 delegates, slots of 3 seconds, blocks that end a round take 2.7 and 3.3 seconds to validate",
        seeds: 2,
        play: |seed| vec![[2_700, 3_300].map(|maintenance| lost_at_maintenance(maintenance, seed)).to_vec()],
        claims: &[
            claim("slots lost a round, 2.7 seconds", "Steem's issue 2659, BitShares's issue 504", 0.0, 0.0),
            claim("3.3 seconds", "Steem's issue 2659, BitShares's issue 504", 1.0, 0.0),
        ],
    },
    Study {
        what: "Praos, 51 delegates, a slot of 20 with an owner",
        seeds: 12,
        play: |seed| vec![leaders(seed)],
        claims: &[
            claim("slots between two blocks, mean", "Cardano's documentation", 20.0, 0.0),
            claim("their median", "closed form", 14.0, 0.5),
            claim("share of those above 60", "closed form", 0.046_07, 0.000_005),
            claim("slots with a block, of 43,200", "Cardano's documentation", 2_160.0, 0.0),
            // In the limit of many delegates it is f + (1 - f) ln(1 - f): 549 an epoch. With 51 of equal weight it is 538.6.
            claim("slots with two owners or more, an epoch of 432,000", "closed form", 538.64, 0.005),
        ],
    },
    Study {
        what: "Praos, blocks that come 1.2 slots later",
        seeds: 12,
        play: |seed| vec![vec![forked_heights(1_200, seed)]],
        claims: &[claim(
            "share of heights with two blocks or more",
            "Decker and Wattenhofer's law in slots",
            0.072_76,
            0.000_005,
        )],
    },
    Study {
        what: "Praos, blocks that come 2.2 slots later",
        seeds: 12,
        play: |seed| vec![vec![forked_heights(2_200, seed)]],
        claims: &[claim(
            "share of heights with two blocks or more",
            "Decker and Wattenhofer's law in slots",
            0.118_23,
            0.000_005,
        )],
    },
];

/// A run: the slots and heights of its chain, and the blocks that were forged by slot and by height.
struct Race {
    chain: Vec<(Slot, Height)>,
    of_slot: BTreeMap<Slot, u32>,
    of_height: BTreeMap<Height, BTreeSet<BlockId>>,
}

/// Plays a network of these rules for this number of slots.
fn race(network: &str, rules: &str, slots: u32, seed: u64) -> Race {
    let text = format!(
        "version = 1\nrounds = 100000\ncrypto = \"modelled\"\n[network]\n{network}\n[rules]\n{rules}\n\
         gossip = \"once\"\nnode.fork_choice = \"longest-chain\"\nnode.keeps_branches = true\nnode.forging_ping_ms = 0\n\
         node.settling_s = 0\nnode.least_seconds_left = 1\nnode.forging_poll_ms = 0\nnode.rate_limits = false\n\
         node.health_check_percent = 0\n"
    );
    let forged = Arc::new(Mutex::new(Vec::new()));
    let (mut played, mut tip) = (0, None);
    let plan = play(&parsed(&text), seed, Some(Box::new(ForgedBlocks(forged.clone()))), |_, stage| {
        played += 1;
        tip = Some(stage.world().tips().winning().clone());
        played < slots
    });
    let slot_of = |link: &Arc<Link>| plan.tree.slots().slot(link.block().header.timestamp);
    let down = iter::successors(tip, |link| link.parent()).map(|link| (slot_of(&link), link.height()));
    let mut chain: Vec<(Slot, Height)> = down.collect();
    chain.reverse();
    let mut race = Race { chain, of_slot: BTreeMap::new(), of_height: BTreeMap::new() };
    for (at, height, id) in forged.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        *race.of_slot.entry(plan.tree.slots().slot(at.seconds())).or_default() += 1;
        race.of_height.entry(*height).or_default().insert(*id);
    }
    race
}

/// The blocks that delegates forge.
struct ForgedBlocks(Arc<Mutex<Vec<(SimTime, Height, BlockId)>>>);

impl Observer for ForgedBlocks {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockForged(block) = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now, block.header.height, block.id));
        }
    }
}

impl Race {
    /// The chain without its first and its last blocks, because the network starts up and the last races are not decided.
    fn decided(&self) -> &[(Slot, Height)] {
        &self.chain[20..self.chain.len() - 10]
    }
}

/// The slots without a block where one turn of 12 meets the next: the mean over all but the first and the last turns.
fn lost_at_turns(latency_ms: u32, seed: u64) -> f64 {
    let network =
        format!("delegates = 21\nblock_time_s = 1\nlatency = {{ min_ms = {latency_ms}, max_ms = {latency_ms} }}");
    let race = race(&network, "base = \"eos\"", 21 * 12 * 3, seed);
    let filled: BTreeSet<Slot> = race.chain.iter().map(|(slot, _)| *slot).collect();
    let (first, last) = (race.decided()[0].0.0 / 12 + 1, race.decided().last().expect("it has blocks").0.0 / 12 - 1);
    // From the middle of a turn to the middle of another: either of the two delegates may lose the race.
    let empty = (first * 12 + 6..last * 12 + 6).filter(|slot| !filled.contains(&Slot(*slot))).count();
    empty as f64 / f64::from(last - first)
}

/// The mean number of slots without a block in a round whose last block takes `maintenance_ms` to validate.
fn lost_at_maintenance(maintenance_ms: u32, seed: u64) -> f64 {
    let network = format!(
        "delegates = 21\nblock_time_s = 3\nlatency = {{ min_ms = 100, max_ms = 100 }}\n\
         processor = {{ validate = {{ round_end_us = {maintenance_ms}000 }} }}"
    );
    let race = race(&network, "base = \"tron\"", 21 * 12, seed);
    let at = |height: u32| race.chain[height as usize - 1].0.0;
    // From the second block of a round to the second block of the tenth round after it.
    f64::from(at(22 + 210) - at(22) - 210) / 10.0
}

fn lottery(latency_ms: u32, slots: u32, seed: u64) -> Race {
    let network = format!(
        "delegates = {DELEGATES}\nblock_time_s = 1\nlatency = {{ min_ms = {latency_ms}, max_ms = {latency_ms} }}"
    );
    race(&network, &format!("base = \"corrected\"\nledger.shuffle = {{ lottery = {ACTIVE} }}"), slots, seed)
}

/// Mean and median of the slots between two blocks, the share above 60, blocks in 43,200 slots, and slots of an epoch with two owners.
fn leaders(seed: u64) -> Vec<f64> {
    let race = lottery(100, 21_600, seed);
    let chain = race.decided();
    let mut gaps: Vec<f64> = chain.windows(2).map(|two| f64::from(two[1].0.0 - two[0].0.0)).collect();
    gaps.sort_by(f64::total_cmp);
    let (first, last) = (chain[0].0, chain[chain.len() - 1].0);
    let slots = f64::from(last.0 - first.0);
    let long = gaps.iter().filter(|gap| **gap > 60.0).count() as f64 / gaps.len() as f64;
    let doubles = race.of_slot.range(first..last).filter(|(_, owners)| **owners > 1).count() as f64;
    let blocks = gaps.len() as f64;
    let middle = gaps[gaps.len() / 2];
    vec![distribution(gaps.into_iter()).mean, middle, long, 43_200.0 * blocks / slots, 432_000.0 * doubles / slots]
}

/// The share of heights for which two delegates or more forged a block.
fn forked_heights(latency_ms: u32, seed: u64) -> f64 {
    let race = lottery(latency_ms, 21_600, seed);
    let chain = race.decided();
    let heights = race.of_height.range(chain[0].1..chain[chain.len() - 1].1);
    let (mut all, mut forked) = (0, 0);
    for (_, blocks) in heights {
        all += 1;
        forked += u32::from(blocks.len() > 1);
    }
    f64::from(forked) / f64::from(all)
}
