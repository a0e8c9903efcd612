//! The figures of a window, from its facts: by the same definitions for real nodes and for simulated ones.

use super::facts::{Facts, PeerEventKind, Tip};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The value that a figure has in a window; `None` where there is nothing that it could be of.
pub type Figures = BTreeMap<&'static str, Option<f64>>;

/// Two blocks that a node leaves within this time belong to one rollback, if they follow each other \[s\].
const ONE_ROLLBACK: f64 = 2.0;

/// What a list of values looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub n: usize,
    pub min: f64,
    pub median: f64,
    pub p90: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (n, min, max) = (values.len(), *values.first()?, *values.last()?);
        let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
        Some(Self { n, min, median, p90: values[n * 9 / 10], max })
    }
}

/// The lists of values that figures are taken from, by the names that a window's own `figures` have for them.
pub struct Lists {
    pub offset_in_slot_ms: Vec<f64>,
    pub to_each_ms: Vec<f64>,
    pub to_half_ms: Vec<f64>,
    pub to_all_ms: Vec<f64>,
    pub pushes_per_block: Vec<f64>,
    pub network_state_ms: Vec<f64>,
}

impl Lists {
    pub fn of(facts: &Facts) -> Self {
        let mut lists = Self {
            offset_in_slot_ms: Vec::new(),
            to_each_ms: Vec::new(),
            to_half_ms: Vec::new(),
            to_all_ms: Vec::new(),
            pushes_per_block: Vec::new(),
            network_state_ms: facts.decisions.iter().map(|decision| decision.ms).collect(),
        };
        let others = facts.nodes.saturating_sub(1) as usize;
        for (told, node, id) in &facts.forged {
            let Some(block) = facts.blocks.get(id) else { continue };
            let applied = facts.applied.get(id);
            let t = *applied.and_then(|applied| applied.get(node)).unwrap_or(told);
            let slot_begins = f64::from(block.slot) * f64::from(facts.block_time);
            lists.offset_in_slot_ms.push((facts.begins + t - slot_begins) * 1_000.0);
            let elsewhere = applied.into_iter().flatten().filter(|(other, _)| *other != node);
            let mut took: Vec<f64> = elsewhere.map(|(_, at)| (at - t) * 1_000.0).collect();
            took.sort_by(f64::total_cmp);
            let half = facts.nodes as usize / 2;
            lists.to_half_ms.extend(half.checked_sub(1).and_then(|half| took.get(half)));
            lists.to_all_ms.extend(others.checked_sub(1).and_then(|last| took.get(last)));
            lists.to_each_ms.append(&mut took);
        }
        let mut pushes: BTreeMap<&str, u32> = BTreeMap::new();
        facts.pushes.iter().for_each(|push| *pushes.entry(&push.id).or_default() += 1);
        lists.pushes_per_block = pushes.into_values().map(f64::from).collect();
        lists
    }

    pub fn named(self) -> [(&'static str, Vec<f64>); 6] {
        [
            ("offset_in_slot_ms", self.offset_in_slot_ms),
            ("to_each_ms", self.to_each_ms),
            ("to_half_ms", self.to_half_ms),
            ("to_all_ms", self.to_all_ms),
            ("pushes_per_block", self.pushes_per_block),
            ("network_state_ms", self.network_state_ms),
        ]
    }
}

/// The figures that are one number, by the names that a window's own `figures` have for them.
pub fn counts(facts: &Facts) -> Vec<(&'static str, f64)> {
    let mut by_slot: BTreeMap<u32, u32> = BTreeMap::new();
    let slots = facts.forged.iter().filter_map(|(_, _, id)| facts.blocks.get(id)).map(|block| block.slot);
    slots.for_each(|slot| *by_slot.entry(slot).or_default() += 1);
    let spanned = match (by_slot.first_key_value(), by_slot.last_key_value()) {
        (Some((first, _)), Some((last, _))) => last - first + 1,
        _ => 0,
    };
    let of_kind = |kind| facts.peers.iter().filter(|event| event.kind == kind).count();
    let count = |name, number: usize| (name, number as f64);
    vec![
        count("nodes", facts.nodes as usize),
        count("forged", facts.forged.len()),
        count("slots_spanned", spanned as usize),
        count("slots_forged", by_slot.len()),
        count("empty_slots", spanned as usize - by_slot.len()),
        count("two_in_a_slot", by_slot.values().filter(|blocks| **blocks > 1).count()),
        count("forks", forks(facts)),
        count("pushes_failed", facts.pushes.iter().filter(|push| !push.accepted).count()),
        count("not_allowed", facts.decisions.iter().filter(|decision| !decision.allowed).count()),
        count("health_checks", facts.health_checks.len()),
        count("disconnects", of_kind(PeerEventKind::Disconnect)),
        count("peers_removed", of_kind(PeerEventKind::Removed)),
        count("peers_added", of_kind(PeerEventKind::Added)),
    ]
}

/// Blocks forged on a parent on which another block had been forged before.
fn forks(facts: &Facts) -> usize {
    let mut children: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, _, id) in &facts.forged {
        if let Some(block) = facts.blocks.get(id) {
            children.entry(&block.previous).or_default().insert(id);
        }
    }
    children.values().map(|children| children.len() - 1).sum()
}

/// All figures that are compared. `over` is when the last thing done to the network was over.
pub fn figures(facts: &Facts, over: Option<f64>) -> Figures {
    let mut all: Figures = counts(facts).into_iter().map(|(name, value)| (name, Some(value))).collect();
    // Simulated nodes do not tell it; `peers_lost` stands for it.
    all.remove("disconnects");
    all.remove("nodes");
    for (name, values) in Lists::of(facts).named() {
        let spread = Spread::of(values);
        let [median, p90] = names_of(name);
        all.insert(median, spread.map(|spread| spread.median));
        all.insert(p90, spread.map(|spread| spread.p90));
    }
    all.insert("decisions", Some(facts.decisions.len() as f64));
    all.insert("fork_depth", Some(fork_depth(facts)));
    let rollbacks = rollbacks(facts);
    all.insert("rollbacks", Some(rollbacks.len() as f64));
    all.insert("reverted_blocks", Some(facts.reverted.len() as f64));
    all.insert("deepest_rollback", Some(rollbacks.iter().map(|(_, blocks)| *blocks).max().unwrap_or(0) as f64));
    let reverting: BTreeSet<u32> = facts.reverted.iter().map(|(_, node, _)| *node).collect();
    all.insert("nodes_that_rolled_back", Some(reverting.len() as f64));
    let (lost, least, at_end) = peers(facts);
    all.insert("peers_lost", lost);
    all.insert("least_peers", least);
    all.insert("peers_at_end", at_end);
    if let Some(over) = over {
        let first = rollbacks.iter().map(|(t, _)| *t).filter(|t| *t >= over).fold(f64::INFINITY, f64::min);
        all.insert("first_rollback_s", Some(first - over));
        all.insert("one_chain_s", Some(one_chain(facts, over) - over));
    }
    forget_unrecorded(facts, &mut all);
    all
}

/// A window need not hold everything: no figure is taken of what blocks or nodes always give and the window has not.
fn forget_unrecorded(facts: &Facts, all: &mut Figures) {
    let has_blocks = !facts.forged.is_empty();
    let mut forget = |absent: bool, of: &[&str]| {
        if absent {
            all.retain(|name, _| !of.iter().any(|of| name.starts_with(of)));
        }
    };
    forget(has_blocks && facts.decisions.is_empty(), &["decisions", "not_allowed", "network_state_ms"]);
    forget(has_blocks && facts.pushes.is_empty(), &["pushes"]);
    forget(has_blocks && facts.applied.is_empty(), &["to_"]);
    forget(facts.tips.is_empty(), &["peers_lost", "least_peers", "peers_at_end", "fork_depth", "one_chain_s"]);
}

fn names_of(list: &str) -> [&'static str; 2] {
    match list {
        "offset_in_slot_ms" => ["offset_in_slot_ms.median", "offset_in_slot_ms.p90"],
        "to_each_ms" => ["to_each_ms.median", "to_each_ms.p90"],
        "to_half_ms" => ["to_half_ms.median", "to_half_ms.p90"],
        "to_all_ms" => ["to_all_ms.median", "to_all_ms.p90"],
        "pushes_per_block" => ["pushes_per_block.median", "pushes_per_block.p90"],
        "network_state_ms" => ["network_state_ms.median", "network_state_ms.p90"],
        other => panic!("no figure is taken from the list {other}"),
    }
}

/// The most blocks that a branch has after it left the chain that most nodes stand on in the end.
fn fork_depth(facts: &Facts) -> f64 {
    let mut stand: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for tip in facts.tips.values().filter_map(|tips| tips.last()) {
        let (nodes, height) = stand.entry(&tip.id).or_default();
        (*nodes, *height) = (*nodes + 1, tip.height);
    }
    let Some((tip, _)) = stand.into_iter().max_by_key(|(_, most)| *most) else { return 0.0 };
    let chain: BTreeSet<&str> = ancestry(facts, tip).collect();
    let off = |id: &str| ancestry(facts, id).take_while(|id| !chain.contains(id)).count();
    facts.forged.iter().map(|(_, _, id)| off(id)).max().unwrap_or(0) as f64
}

/// A block, the one before it, and so on, as far as they are known.
fn ancestry<'a>(facts: &'a Facts, tip: &'a str) -> impl Iterator<Item = &'a str> {
    let before = |id: &&'a str| facts.blocks.get(*id).map(|block| block.previous.as_str());
    std::iter::successors(Some(tip), before).filter(|id| facts.blocks.contains_key(*id))
}

/// When each rollback began, and of how many blocks it was.
pub fn rollbacks(facts: &Facts) -> Vec<(f64, usize)> {
    let mut all: Vec<(f64, usize)> = Vec::new();
    let mut open: BTreeMap<u32, (usize, f64, &str)> = BTreeMap::new();
    for (t, node, id) in &facts.reverted {
        let follows = |(_, last, next): &&(usize, f64, &str)| *next == id.as_str() && t - last < ONE_ROLLBACK;
        let place = match open.get(node).filter(follows) {
            Some((place, ..)) => *place,
            None => {
                all.push((*t, 0));
                all.len() - 1
            }
        };
        all[place].1 += 1;
        let next = facts.blocks.get(id).map_or("", |block| &block.previous);
        open.insert(*node, (place, *t, next));
    }
    all
}

/// How often a node had a peer less than a second before, the fewest peers a node had, and those of all nodes in the end.
fn peers(facts: &Facts) -> (Option<f64>, Option<f64>, Option<f64>) {
    let all = || facts.tips.values();
    if all().all(Vec::is_empty) {
        return (None, None, None);
    }
    let fewer = |pair: &[Tip]| pair[0].peers.saturating_sub(pair[1].peers);
    let lost: u32 = all().flat_map(|tips| tips.windows(2).map(fewer)).sum();
    let least = all().flatten().map(|tip| tip.peers).min();
    let end: u32 = all().filter_map(|tips| tips.last()).map(|tip| tip.peers).sum();
    (Some(f64::from(lost)), least.map(f64::from), Some(f64::from(end)))
}

/// The first instant from `over` on at which all nodes stand on one block; infinite if there is none.
fn one_chain(facts: &Facts, over: f64) -> f64 {
    let instants: BTreeSet<u64> =
        facts.tips.values().flatten().map(|tip| (tip.t.max(over) * 1e3).ceil() as u64).collect();
    let stands = |tips: &[Tip], at: f64| tips.iter().take_while(|tip| tip.t <= at).last().map(|tip| tip.id.clone());
    let agree = |at: &f64| {
        let tips: BTreeSet<Option<String>> = facts.tips.values().map(|tips| stands(tips, *at)).collect();
        tips.len() == 1 && !tips.contains(&None)
    };
    instants.into_iter().map(|ms| ms as f64 / 1e3).find(agree).unwrap_or(f64::INFINITY)
}

/// Compares the figures that a window's file has with what its facts give: both are computed by different hands.
///
/// # Errors
/// They differ, by more than the rounding of a number.
pub fn hold_against_file(facts: &Facts, file: &Value) -> Result<usize, String> {
    let mut compared = 0;
    let mut same = |name: &str, ours: Option<f64>, theirs: &Value| {
        compared += 1;
        match (ours, theirs.as_f64()) {
            (None, None) => Ok(()),
            (Some(ours), Some(theirs)) if (ours - theirs).abs() <= 1.0 => Ok(()),
            _ => Err(format!("figures.{name}: found {theirs}, the facts give {ours:?}")),
        }
    };
    for (name, value) in counts(facts) {
        if let Some(theirs) = file.get(name) {
            same(name, Some(value), theirs)?;
        }
    }
    for (name, values) in Lists::of(facts).named() {
        let Some(theirs) = file.get(name) else { continue };
        let spread = Spread::of(values);
        same(name, spread.map(|spread| spread.n as f64), &theirs["n"])?;
        same(name, spread.map(|spread| spread.min), &theirs["min"])?;
        same(name, spread.map(|spread| spread.median), &theirs["median"])?;
        same(name, spread.map(|spread| spread.p90), &theirs["p90"])?;
        same(name, spread.map(|spread| spread.max), &theirs["max"])?;
    }
    if let Some(by_node) = file.get("reverted_by_node").and_then(Value::as_object) {
        let mut ours: BTreeMap<String, f64> = BTreeMap::new();
        facts.reverted.iter().for_each(|(_, node, _)| *ours.entry(node.to_string()).or_default() += 1.0);
        same("reverted_by_node", Some(ours.len() as f64), &by_node.len().into())?;
        for (node, blocks) in ours {
            same("reverted_by_node", Some(blocks), by_node.get(&node).unwrap_or(&Value::Null))?;
        }
    }
    Ok(compared)
}
