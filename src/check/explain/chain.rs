//! The chain of causes: what happened before, row by row, with what does not matter folded.
//!
//! 1. The slice: all steps that happened before those in which the failure showed ([`super::record::Record::slice`]). Where it
//!    concerns no single node, these are the last steps of all nodes.
//! 2. Each event of a step in the slice is a row, or part of one: nodes that do the same with the same block share a row.
//! 3. A row weighs what it does to chains: rollbacks, faults, blocks with a rival and refusals weigh most; blocks that
//!    everybody takes weigh nothing.
//! 4. The heaviest rows are told. What lies between two of them is one row with the number of steps and messages in it.

use super::{
    Target,
    numbers::{Number, add, numbers},
    record::{Cause, Happening, Record, Step},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    check::story::event_in_words,
    ledger::{BlockRejected, Link},
    protocol::{BlockId, Height, TransactionId},
    sim::{Plan, tips::common_height},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// One thing that happened, or several that are folded.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(rename = "at_us")]
    pub at: SimTime,
    pub after_seconds: f64,
    pub slot: u32,
    /// As in a trace, `block.forged` and so on; `folded` for what is folded, `failure` for what is explained.
    pub kind: &'static str,
    /// Who did it, ascending; nobody where it happened to the network.
    pub nodes: Vec<NodeId>,
    pub text: String,
    pub block: Option<BlockRef>,
    /// The messages that brought it about, or that were lost.
    pub arrows: Vec<Arrow>,
    /// What it changed.
    pub changed: Vec<Change>,
    pub numbers: Vec<Number>,
    /// A letter for each node: on which of the rival branches it stands after this, `·` on what all have in common, `x` down.
    pub stands: String,
    /// What is folded here.
    pub folded: Option<Folded>,
    #[serde(skip)]
    pub(super) weight: u8,
    /// Messages sent before it.
    #[serde(skip)]
    pub(super) messages: u64,
}

/// A block in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockRef {
    pub id: String,
    pub height: Height,
    /// Its letter, where it has a rival: another block on the same parent.
    pub branch: Option<char>,
}

/// A message from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Arrow {
    pub from: NodeId,
    pub to: NodeId,
    /// It never arrived.
    pub lost: bool,
}

/// What a step changed at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub node: NodeId,
    /// `block 123456… at 24`, `4 transactions`, and so on.
    pub from: String,
    pub to: String,
    /// Blocks that left its chain.
    pub reverted: u32,
}

/// What is not told one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Folded {
    pub steps: u64,
    pub messages: u64,
    /// Blocks that were forged meanwhile.
    pub blocks: u64,
}

/// The chain of causes.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    pub rows: Vec<Row>,
    /// Steps before the failure, those of them that the failure comes after, and messages sent before it.
    pub steps: u64,
    pub steps_in_slice: u64,
    pub messages: u64,
    /// The numbers that decided in the end.
    pub numbers: Vec<Number>,
    /// Blocks with a rival on the same parent, by letter: block, forger's node, and the nodes that stand on it at the end.
    pub rivals: Vec<Rival>,
}

/// One of two or more blocks on one parent.
#[derive(Clone, Debug, Serialize)]
pub struct Rival {
    pub branch: char,
    pub id: String,
    pub height: Height,
    pub node: Option<NodeId>,
    pub slot: u32,
    /// Nodes whose chain goes through it when the failure shows.
    pub stand_on_it: Vec<NodeId>,
}

/// A block's id without its end.
pub(super) fn brief(id: &BlockId) -> String {
    let text = id.to_string();
    if text.len() > 7 { format!("{}…", &text[..6]) } else { text }
}

fn tip(link: &Link) -> String {
    format!("block {} at {}", brief(&link.id()), link.height())
}

/// What is known of the whole run before rows are made.
struct Ground {
    start: SimTime,
    end: SimTime,
    /// The node that the failure concerns, if it is one.
    node: Option<NodeId>,
    /// Blocks that nodes took, as others took another one on the same parent, each with its letter.
    rivals: BTreeMap<BlockId, char>,
    /// Those of them that still part the nodes when the failure shows.
    parting: BTreeSet<BlockId>,
    /// Transactions of which everything is told.
    concerned: BTreeSet<TransactionId>,
    /// Faults that are few enough to be told.
    tells_faults: bool,
}

/// Rows that are told where only ordinary things happened.
const ORDINARY: usize = 8;
/// Letters for rival blocks, in the order in which they were forged.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwyz";
/// Transactions of a run that are all told of.
const FEW: usize = 12;
/// Nodes that do the same within this time share a row.
const TOGETHER: Duration = Duration::from_secs(8);
/// The same, for what they count while nobody moves.
const TOGETHER_WHILE_ALL_STAND: Duration = Duration::from_secs(600);

impl Chain {
    /// Of a run under a plan, up to the failure; nothing is folded.
    pub(super) fn of(record: &Record, plan: &Plan, target: &Target) -> Self {
        let upto = record.steps.partition_point(|step| step.at <= target.at);
        let last: Vec<usize> = match target.node {
            Some(node) => record.steps[..upto].iter().rposition(|step| step.actor.node == node).into_iter().collect(),
            None => {
                let mut last: BTreeMap<NodeId, usize> = BTreeMap::new();
                last.extend((0..upto).map(|index| (record.steps[index].actor.node, index)));
                last.into_values().collect()
            }
        };
        let within = record.slice(last);
        let ground = Ground::of(record, upto, plan, target);
        let mut teller = Teller::new(record, plan, &ground);
        let mut happenings = record.network.iter().take_while(|one| one.at() <= target.at).peekable();
        for (step, within) in record.steps[..upto].iter().zip(&within) {
            while let Some(one) = happenings.next_if(|one| one.at() <= step.at) {
                teller.happening(one);
            }
            teller.step(step, *within);
        }
        happenings.for_each(|one| teller.happening(one));
        let rivals = teller.rivals(record, upto);
        let numbers = teller.decisive(target);
        Self {
            rows: teller.finish(target),
            steps: upto as u64,
            steps_in_slice: within[..upto].iter().filter(|within| **within).count() as u64,
            messages: record.steps[..upto].last().map_or(0, |step| step.messages),
            numbers,
            rivals,
        }
    }
}

impl Chain {
    /// At most so many of the heaviest rows; the others are folded between them.
    pub(super) fn folded(&self, rows_max: usize) -> Vec<Row> {
        fold(self.rows.clone(), rows_max)
    }
}

impl Ground {
    fn of(record: &Record, upto: usize, plan: &Plan, target: &Target) -> Self {
        let mut taken: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
        let mut tips: Vec<Arc<Link>> = vec![plan.tip.clone(); plan.nodes.len()];
        let mut seen: BTreeSet<TransactionId> = BTreeSet::new();
        let mut refused: BTreeSet<TransactionId> = BTreeSet::new();
        let mut order: Vec<(BlockId, BlockId)> = Vec::new();
        for step in &record.steps[..upto] {
            if let Cause::Submitted(ids) = &step.cause {
                seen.extend(ids);
            }
            let tip = &mut tips[step.actor.node.0 as usize];
            for event in &step.events {
                match event {
                    Event::BlockForged(block) => order.extend(block.header.previous.map(|parent| (block.id, parent))),
                    Event::BlockApplied(link) => {
                        if let Some(parent) = link.parent().map(|parent| parent.id())
                            && taken.entry(parent).or_default().insert(link.id())
                        {
                            order.push((link.id(), parent));
                        }
                        *tip = link.clone();
                    }
                    Event::RolledBack { to, .. } => *tip = to.clone(),
                    Event::BlockRefused(why) => {
                        if let BlockRejected::NotApplicable { transaction, .. } = &**why {
                            refused.insert(*transaction);
                        }
                    }
                    _ => {}
                }
            }
        }
        // Letters in the order of forging, which is that of the steps.
        let (mut letters, mut rivals) = (LETTERS.chars(), BTreeMap::new());
        for (id, parent) in order {
            let is_rival = taken.get(&parent).is_some_and(|all| all.len() > 1 && all.contains(&id));
            if is_rival && !rivals.contains_key(&id) {
                rivals.insert(id, letters.next().unwrap_or('?'));
            }
        }
        let is_on = |tip: &Arc<Link>, id: &BlockId| {
            let height = record.tree.link(id).map(|link| link.height());
            height.and_then(|height| tip.ancestor(height)).is_some_and(|ancestor| ancestor.id() == *id)
        };
        let parting = taken.values().flat_map(|all| {
            let on: Vec<BlockId> = all.iter().filter(|id| tips.iter().any(|tip| is_on(tip, id))).copied().collect();
            if all.len() > 1 && on.len() > 1 { all.iter().copied().collect() } else { Vec::new() }
        });
        let parting: BTreeSet<BlockId> = parting.collect();
        let mut concerned: BTreeSet<TransactionId> =
            seen.iter().filter(|id| target.what.contains(&id.to_string())).copied().collect();
        concerned.extend(refused);
        if seen.len() <= FEW && target.node.is_some() {
            concerned.extend(seen);
        }
        let faults = record.network.iter().filter(|one| matches!(one, Happening::Fault { .. })).count();
        let (node, tells_faults) = (target.node, faults <= 16);
        Self { start: plan.start, end: target.at, node, rivals, parting, concerned, tells_faults }
    }
}

/// Makes rows of steps, one after the other.
struct Teller<'a> {
    record: &'a Record,
    ground: &'a Ground,
    tips: Vec<Arc<Link>>,
    down: Vec<bool>,
    pools: Vec<i64>,
    rows: Vec<Row>,
    /// Rows that others may still join, by what they say.
    joinable: BTreeMap<(&'static str, String), usize>,
    /// The last numbers of each node, by rule.
    last: BTreeMap<(NodeId, &'static str), Number>,
    /// What each node has counted before.
    told: BTreeSet<(NodeId, String)>,
    messages: u64,
}

impl<'a> Teller<'a> {
    fn new(record: &'a Record, plan: &Plan, ground: &'a Ground) -> Self {
        let nodes = plan.nodes.len();
        Self {
            record,
            ground,
            tips: vec![plan.tip.clone(); nodes],
            down: vec![false; nodes],
            pools: vec![0; nodes],
            rows: Vec::new(),
            joinable: BTreeMap::new(),
            last: BTreeMap::new(),
            told: BTreeSet::new(),
            messages: 0,
        }
    }

    fn row(&self, at: SimTime, kind: &'static str, weight: u8, nodes: Vec<NodeId>, text: String) -> Row {
        let slots = self.record.tree.slots();
        Row {
            at,
            after_seconds: at.since(self.ground.start).as_secs_f64(),
            slot: slots.slot(at.seconds()).0,
            kind,
            nodes,
            text,
            block: None,
            arrows: Vec::new(),
            changed: Vec::new(),
            numbers: Vec::new(),
            stands: String::new(),
            folded: None,
            weight,
            messages: self.messages,
        }
    }

    /// Adds a row, or lets it join one that says the same.
    fn tell(&mut self, mut row: Row, key: Option<String>) {
        row.stands = self.stands();
        let key = key.map(|key| (row.kind, key));
        if let Some(known) = key.as_ref().and_then(|key| self.joinable.get(key)).copied()
            && row.at.since(self.rows[known].at) <= together(&self.rows[known], &row)
        {
            let known = &mut self.rows[known];
            known.nodes.extend(&row.nodes);
            known.nodes.sort_unstable();
            known.nodes.dedup();
            known.arrows.extend(row.arrows);
            known.changed.extend(row.changed);
            row.numbers.into_iter().for_each(|number| add(&mut known.numbers, number));
            known.weight = known.weight.max(row.weight);
            known.stands = row.stands;
            return;
        }
        if let Some(key) = key {
            self.joinable.insert(key, self.rows.len());
        }
        self.rows.push(row);
    }

    fn happening(&mut self, one: &Happening) {
        match one {
            Happening::Fault { at, index, kind, began } => {
                let verb = if *began { "begins" } else { "ends" };
                let weight = if self.ground.tells_faults { 5 } else { 2 };
                let kind_of = if *began { "fault.began" } else { "fault.ended" };
                let row = self.row(*at, kind_of, weight, Vec::new(), format!("fault {index} '{kind}' {verb}"));
                self.tell(row, None);
            }
            Happening::Node { at, node, down } => {
                self.down[node.0 as usize] = down.is_some();
                let (kind, text) = match down {
                    Some(cause) => ("node.down", format!("goes down ({cause})")),
                    None => ("node.up", "is up again".to_owned()),
                };
                let row = self.row(*at, kind, 3, vec![*node], text.clone());
                self.tell(row, Some(text));
            }
        }
    }

    fn step(&mut self, step: &Step, within: bool) {
        self.messages = step.messages;
        let node = step.actor.node;
        if let Cause::Submitted(ids) = &step.cause
            && within
            && ids.iter().any(|id| self.ground.concerned.contains(id))
        {
            let ids: Vec<String> = ids.iter().map(|id| id.to_string()[..8].to_owned()).collect();
            let text = format!("gets {} from a client", ids.join(", "));
            let row = self.row(step.at, "submitted", 4, vec![node], text);
            self.tell(row, None);
        }
        for event in &step.events {
            let changed = self.follow(node, event);
            let found = numbers(step.at, node, event, step.quorum, &self.record.tree);
            for number in &found {
                self.last.insert((node, number.rule), number.clone());
            }
            if within {
                self.event(step, event, changed, found);
            }
        }
    }

    /// Follows an event, and says what it changed.
    fn follow(&mut self, node: NodeId, event: &Event) -> Option<Change> {
        let index = node.0 as usize;
        let before = self.tips[index].clone();
        let pool = self.pools[index];
        match event {
            Event::BlockApplied(link) => self.tips[index] = link.clone(),
            Event::RolledBack { to, .. } => self.tips[index] = to.clone(),
            Event::BlockReverted(_) => {}
            Event::PoolAdded(added) => self.pools[index] += added.len() as i64,
            Event::PoolRemoved(_) | Event::PoolPurged(_) | Event::PoolEvicted(_) | Event::PoolExpired(_) => {
                self.pools[index] -= 1;
            }
            Event::PoolReplaced(kept) => self.pools[index] = kept.len() as i64,
            _ => return None,
        }
        let pools = |count: i64| format!("{} transactions in its pool", count.max(0));
        match event {
            Event::BlockApplied(_) => {
                Some(Change { node, from: tip(&before), to: tip(&self.tips[index]), reverted: 0 })
            }
            Event::RolledBack { from, to, .. } => {
                Some(Change { node, from: tip(from), to: tip(to), reverted: from.height().0 - to.height().0 })
            }
            _ if pool != self.pools[index] => {
                Some(Change { node, from: pools(pool), to: pools(self.pools[index]), reverted: 0 })
            }
            _ => None,
        }
    }

    fn block_ref(&self, id: BlockId, height: Height) -> BlockRef {
        BlockRef { id: id.to_string(), height, branch: self.ground.rivals.get(&id).copied() }
    }

    fn named(&self, id: BlockId, height: Height) -> String {
        match self.ground.rivals.get(&id) {
            Some(letter) => format!("{letter} ({} at {height})", brief(&id)),
            None => format!("{} at {height}", brief(&id)),
        }
    }

    /// What a block weighs that may have a rival.
    fn weight_of(&self, id: &BlockId, as_rival: u8) -> u8 {
        match (self.ground.rivals.contains_key(id), self.ground.parting.contains(id)) {
            (_, true) => as_rival + 2,
            (true, false) => as_rival - 1,
            (false, false) => 0,
        }
    }

    fn event(&mut self, step: &Step, event: &Event, changed: Option<Change>, found: Vec<Number>) {
        let (node, at) = (step.actor.node, step.at);
        let words = || event_in_words(event, &self.record.tree);
        let concerns = |ids: &[TransactionId]| ids.iter().any(|id| self.ground.concerned.contains(id));
        let (kind, weight, text, key, block) = match event {
            Event::BlockForged(block) => {
                let (id, height) = (block.id, block.header.height);
                let parent = block.header.previous.map(|id| brief(&id)).unwrap_or_default();
                let held = match block.transactions.len() {
                    0 => String::new(),
                    1 => format!(" with a {}", block.transactions[0].kind().name()),
                    more => format!(" with {more} transactions"),
                };
                let ids: Vec<TransactionId> = block.transactions.iter().map(|one| one.id()).collect();
                let weight = self.weight_of(&id, 5).max(if concerns(&ids) { 4 } else { 1 });
                let text = format!("forges {} on {parent}{held}", self.named(id, height));
                ("block.forged", weight, text, None, Some((id, height)))
            }
            Event::BlockApplied(link) => {
                let (id, height) = (link.id(), link.height());
                let weight = self.weight_of(&id, 4);
                let text = format!("takes {}", self.named(id, height));
                ("block.applied", weight, text.clone(), Some(text), Some((id, height)))
            }
            Event::BlockRefused(why) => {
                let weight = match &**why {
                    BlockRejected::NotChained { .. } => 1,
                    BlockRejected::NotApplicable { .. } | BlockRejected::TooFewDelegates { .. } => 5,
                    // What others made breaks a rule, and goes no further.
                    _ => {
                        if self.ground.node == Some(node) {
                            5
                        } else {
                            3
                        }
                    }
                };
                let (text, key) = (words(), words());
                ("block.refused", weight, text, Some(key), None)
            }
            Event::RolledBack { from, to, cause } => {
                let depth = from.height().0 - to.height().0;
                let plural = if depth == 1 { "" } else { "s" };
                let (from, to) = (self.named(from.id(), from.height()), self.named(to.id(), to.height()));
                let text = format!("rolls back {depth} block{plural}: {from} → {to} ({cause})");
                ("chain.rolled-back", 5, text, None, None)
            }
            Event::HealthChecked { forked, .. } => {
                let is_new = self.told.insert((node, texts(&found)));
                let weight = match (found.iter().any(|one| one.met), *forked > 0 && is_new) {
                    (true, _) => 5,
                    (false, true) => 3,
                    (false, false) => 1,
                };
                let text = format!("checks its health: {}", texts(&found));
                ("health.checked", weight, text.clone(), Some(text), None)
            }
            Event::ForgingSuspended { .. } => {
                let text = format!("does not forge: {}", texts(&found));
                let weight = if self.told.insert((node, text.clone())) { 2 } else { 1 };
                ("forger.suspended", weight, text.clone(), Some(text), None)
            }
            Event::PoolAdded(added) => {
                let ids: Vec<TransactionId> = added.iter().map(|one| one.id()).collect();
                let weight = if concerns(&ids) { 2 } else { 0 };
                let kinds: Vec<String> =
                    added.iter().map(|one| format!("{} {}", one.kind().name(), &one.id().to_string()[..8])).collect();
                let text = format!("takes {} into its pool", kinds.join(", "));
                ("pool.added", weight, text.clone(), Some(text), None)
            }
            Event::PoolRejected(rejected) => {
                let ids: Vec<TransactionId> = rejected.iter().map(|one| one.transaction.id()).collect();
                (("pool.rejected"), if concerns(&ids) { 4 } else { 1 }, words(), None, None)
            }
            Event::PoolEvicted(one) => ("pool.evicted", if concerns(&[one.id()]) { 5 } else { 2 }, words(), None, None),
            Event::PoolReplaced(kept) => {
                let mattered = !kept.is_empty() || changed.is_some();
                ("pool.replaced", if mattered { 5 } else { 1 }, words(), None, None)
            }
            Event::PoolRemoved(id) => {
                let text = format!("its pool gives up {}", &id.to_string()[..8]);
                ("pool.removed", u8::from(concerns(&[*id])), text.clone(), Some(text), None)
            }
            Event::ForgerFailed { .. } => ("forger.failed", 3, words(), None, None),
            Event::PeerRemoved(_) => ("peer.removed", 1, words(), None, None),
            _ => return,
        };
        let is_near = self.ground.node == Some(node) && self.ground.end.since(at) <= TOGETHER;
        let weight = if is_near && kind != "pool.removed" { weight.max(3) } else { weight };
        let mut row = self.row(at, kind, weight, vec![node], shortened(&text));
        row.block = block.map(|(id, height)| self.block_ref(id, height));
        row.arrows = self.arrows(step, event);
        row.changed.extend(changed);
        row.numbers = found;
        self.tell(row, key);
    }

    /// Where a block came from, and whom it never reached.
    fn arrows(&self, step: &Step, event: &Event) -> Vec<Arrow> {
        let node = step.actor.node;
        match event {
            Event::BlockApplied(_) | Event::BlockRefused(_) => {
                self.record.supplier(step).map(|from| Arrow { from, to: node, lost: false }).into_iter().collect()
            }
            Event::BlockForged(block) => {
                let lost = self.record.lost.get(&(node, block.id)).into_iter().flatten();
                lost.filter(|(at, _)| *at <= self.ground.end)
                    .map(|(_, to)| Arrow { from: node, to: *to, lost: true })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// A letter for each node: the branch it stands on.
    fn stands(&self) -> String {
        let live = self.tips.iter().zip(&self.down).filter(|(_, down)| !**down).map(|(tip, _)| tip);
        let Some(highest) = live.clone().max_by_key(|tip| tip.height()) else {
            return self.tips.iter().map(|_| 'x').collect();
        };
        let common = live.map(|tip| common_height(tip, highest)).min().unwrap_or_default();
        let letter = |tip: &Arc<Link>| {
            let root = tip.ancestor(Height(common.0 + 1)).filter(|_| tip.height() > common);
            root.map_or('·', |root| self.ground.rivals.get(&root.id()).copied().unwrap_or('·'))
        };
        self.tips.iter().zip(&self.down).map(|(tip, down)| if *down { 'x' } else { letter(tip) }).collect()
    }

    fn rivals(&self, record: &Record, upto: usize) -> Vec<Rival> {
        let mut rivals: BTreeMap<BlockId, Rival> = BTreeMap::new();
        let slots = record.tree.slots();
        for step in &record.steps[..upto] {
            for event in &step.events {
                let (block, node) = match event {
                    Event::BlockForged(block) => (block, Some(step.actor.node)),
                    Event::BlockApplied(link) => (link.block(), None),
                    _ => continue,
                };
                let Some(branch) = self.ground.rivals.get(&block.id).copied() else { continue };
                let on = |link: &Arc<Link>| {
                    link.ancestor(block.header.height).is_some_and(|ancestor| ancestor.id() == block.id)
                };
                let stand = (0..).map(NodeId).zip(&self.tips).filter(|(_, tip)| on(tip)).map(|(node, _)| node);
                rivals.entry(block.id).or_insert_with(|| Rival {
                    branch,
                    id: block.id.to_string(),
                    height: block.header.height,
                    node,
                    slot: slots.slot(block.header.timestamp).0,
                    stand_on_it: stand.collect(),
                });
            }
        }
        let mut rivals: Vec<Rival> = rivals.into_values().collect();
        rivals.sort_by_key(|rival| (rival.height, rival.slot, LETTERS.find(rival.branch)));
        rivals
    }

    /// The numbers that decided in the end: of the failure's node, or the last of each node.
    fn decisive(&self, target: &Target) -> Vec<Number> {
        let mut decisive = Vec::new();
        let told = self.rows.iter().filter(|row| row.weight >= 5).flat_map(|row| &row.numbers);
        match target.node {
            Some(node) => {
                told.filter(|number| number.nodes.contains(&node)).for_each(|one| add(&mut decisive, one.clone()));
                self.last
                    .iter()
                    .filter(|((of, _), _)| *of == node)
                    .for_each(|(_, one)| add(&mut decisive, one.clone()));
            }
            None => {
                let rules = ["quorum_percent", "minimum_network_reach", "node.forked_percent", "delegates"];
                let last = self.last.iter().filter(|((_, rule), _)| rules.contains(rule));
                last.for_each(|(_, one)| add(&mut decisive, one.clone()));
            }
        }
        decisive.sort_by_key(|number| (number.met, std::cmp::Reverse(number.nodes.len()), number.rule));
        decisive
    }

    /// All rows, the failure last.
    fn finish(mut self, target: &Target) -> Vec<Row> {
        if target.kind.is_failure() {
            let words = shortened(&format!("{}: {}", target.name, target.what));
            let row = self.row(target.at, "failure", u8::MAX, target.node.into_iter().collect(), words);
            self.tell(row, None);
        }
        for row in self.rows.iter_mut().filter(|row| row.nodes.len() > 1) {
            row.text = of_several(&row.text);
        }
        self.rows
    }
}

fn texts(numbers: &[Number]) -> String {
    numbers.iter().map(|number| number.brief.as_str()).collect::<Vec<_>>().join("; ")
}

/// A text without the ends of ids and keys, which nobody reads.
pub(super) fn shortened(text: &str) -> String {
    let brief = |word: &str| {
        let end = word.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (id, rest) = word.split_at(end);
        let is_block = id.len() > 12 && id.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (is_block, is_hex) {
            (true, _) => format!("{}…{rest}", &id[..6]),
            (_, true) => format!("{}…{rest}", &id[..8]),
            _ => word.to_owned(),
        }
    };
    let words: Vec<String> = text.split(' ').map(brief).collect();
    words.join(" ")
}

/// How much later something may be that is told in one row with what another node did.
fn together(first: &Row, next: &Row) -> Duration {
    let counts = matches!(next.kind, "health.checked" | "forger.suspended");
    if counts && first.stands == next.stands { TOGETHER_WHILE_ALL_STAND } else { TOGETHER }
}

/// What one node does, of several.
fn of_several(text: &str) -> String {
    const VERBS: [(&str, &str); 14] = [
        ("checks its health", "check their health"),
        ("does not forge", "do not forge"),
        ("takes", "take"),
        ("refuses", "refuse"),
        ("rolls back", "roll back"),
        ("its pool gives up", "their pools give up"),
        ("begins its pool anew", "begin their pools anew"),
        ("gives up its peer", "give up their peer"),
        ("gives up", "give up"),
        ("goes down", "go down"),
        ("is up again", "are up again"),
        ("cannot forge", "cannot forge"),
        ("forges", "forge"),
        ("gets", "get"),
    ];
    let found = VERBS.iter().find_map(|(one, several)| Some((several, text.strip_prefix(one)?)));
    let text = found.map_or_else(|| text.to_owned(), |(several, rest)| format!("{several}{rest}"));
    text.replace(" into its pool", " into their pools")
}

/// The heaviest rows; the others are folded between them.
fn fold(rows: Vec<Row>, rows_max: usize) -> Vec<Row> {
    let mut told: BTreeSet<usize> = BTreeSet::new();
    let mut weights: Vec<u8> = rows.iter().map(|row| row.weight).collect::<BTreeSet<u8>>().into_iter().collect();
    weights.reverse();
    for weight in weights.into_iter().filter(|weight| *weight > 0 || rows_max == usize::MAX) {
        let of_weight: Vec<usize> = (0..rows.len()).filter(|index| rows[*index].weight == weight).collect();
        let room = rows_max.saturating_sub(told.len());
        // What is ordinary is told of the end only.
        let room =
            if weight <= 1 && rows_max < usize::MAX { ORDINARY.saturating_sub(told.len()).min(room) } else { room };
        if of_weight.len() <= room {
            told.extend(of_weight);
            continue;
        }
        // How it began, and how it came to the end.
        let first = if weight <= 1 { 0 } else { room * 2 / 5 };
        told.extend(&of_weight[..first]);
        told.extend(&of_weight[of_weight.len() - (room - first)..]);
        break;
    }
    let mut folded: Vec<Row> = Vec::new();
    let mut open: Option<(Row, Folded, u64)> = None;
    for (index, row) in rows.into_iter().enumerate() {
        if !told.contains(&index) {
            let first = row.messages;
            let (_, count, _) = open.get_or_insert_with(|| (row.clone(), Folded::default(), first));
            count.steps += row.nodes.len().max(1) as u64;
            count.blocks += u64::from(row.kind == "block.forged");
            continue;
        }
        if let Some((first, count, since)) = open.take() {
            folded.push(folding(first, Folded { messages: row.messages.saturating_sub(since), ..count }));
        }
        folded.push(row);
    }
    if let Some((first, count, _)) = open {
        folded.push(folding(first, count));
    }
    folded
}

fn folding(first: Row, folded: Folded) -> Row {
    let Folded { steps, messages, blocks } = folded;
    let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let blocks = if blocks > 0 { format!(", {} forged among them", plural(blocks, "block")) } else { String::new() };
    let text = format!("{} and {}{blocks}", plural(steps, "step"), plural(messages, "message"));
    Row {
        kind: "folded",
        nodes: Vec::new(),
        text,
        block: None,
        arrows: Vec::new(),
        changed: Vec::new(),
        numbers: Vec::new(),
        folded: Some(folded),
        ..first
    }
}
