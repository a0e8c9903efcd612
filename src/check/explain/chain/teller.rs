//! Turns steps into rows, one after the other, and follows the tip of each node.

use super::{
    super::{
        Target,
        numbers::{Number, add, numbers},
        record::{Cause, Happening, Record, RecordedStep},
    },
    BlockRef, Change, Rival, Row,
    ground::{Ground, LETTERS},
    words::{brief, of_several, shortened, tip},
};
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::Link,
    protocol::{BlockId, Height},
    sim::{Plan, tips::common_height},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Nodes with equal deeds within a slot share a row. This longer time applies to counts of peers while no tip
/// moves.
const TOGETHER_WHILE_ALL_STAND: Duration = Duration::from_secs(600);

/// Makes rows of steps, one after the other.
pub(super) struct Teller<'a> {
    pub(super) record: &'a Record,
    pub(super) ground: &'a Ground,
    tips: Vec<Arc<Link>>,
    down: Vec<bool>,
    pools: Vec<i64>,
    rows: Vec<Row>,
    /// Rows that others may still join, by what they say.
    joinable: BTreeMap<(&'static str, String), usize>,
    /// The last numbers of each node, by rule.
    last: BTreeMap<(NodeId, &'static str), Number>,
    /// The numbers that rows gave for each node before.
    pub(super) told: BTreeSet<(NodeId, String)>,
    messages: u64,
}

impl<'a> Teller<'a> {
    pub(super) fn new(record: &'a Record, plan: &Plan, ground: &'a Ground) -> Self {
        let nodes = plan.nodes.len();
        Self {
            record,
            ground,
            tips: record.first_tips.clone(),
            down: vec![false; nodes],
            pools: vec![0; nodes],
            rows: Vec::new(),
            joinable: BTreeMap::new(),
            last: BTreeMap::new(),
            told: BTreeSet::new(),
            messages: 0,
        }
    }

    /// Returns the longest time between two deeds of different nodes that share a row.
    fn together(&self, first: &Row, next: &Row) -> Duration {
        let counts = matches!(next.kind, "health.checked" | "forger.suspended");
        if counts && first.stands == next.stands { TOGETHER_WHILE_ALL_STAND } else { self.slot() }
    }

    /// The length of a slot.
    pub(super) fn slot(&self) -> Duration {
        Duration::from_secs(self.record.tree.slots().blocktime().into())
    }

    pub(super) fn row(&self, at: SimTime, kind: &'static str, weight: u8, nodes: Vec<NodeId>, text: String) -> Row {
        let slots = self.record.tree.slots();
        Row {
            at,
            after_seconds: at.seconds_since(self.ground.start),
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

    /// Adds a row, or merges it into an equal one.
    pub(super) fn tell(&mut self, mut row: Row, key: Option<String>) {
        row.stands = self.stands();
        let key = key.map(|key| (row.kind, key));
        if let Some(known) = key.as_ref().and_then(|key| self.joinable.get(key)).copied()
            && row.at.since(self.rows[known].at) <= self.together(&self.rows[known], &row)
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

    pub(super) fn happening(&mut self, one: &Happening) {
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

    pub(super) fn step(&mut self, step: &RecordedStep, within: bool) {
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

    pub(super) fn block_ref(&self, id: BlockId, height: Height) -> BlockRef {
        BlockRef { id: id.to_string(), height, branch: self.ground.rivals.get(&id).copied() }
    }

    pub(super) fn named(&self, id: BlockId, height: Height) -> String {
        match self.ground.rivals.get(&id) {
            Some(letter) => format!("{letter} ({} at {height})", brief(&id)),
            None => format!("{} at {height}", brief(&id)),
        }
    }

    /// Returns the weight of a block that may have a rival.
    pub(super) fn weight_of(&self, id: &BlockId, as_rival: u8) -> u8 {
        match (self.ground.rivals.contains_key(id), self.ground.parting.contains(id)) {
            (_, true) => as_rival + 2,
            (true, false) => as_rival - 1,
            (false, false) => 0,
        }
    }

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

    pub(super) fn rivals(&self, record: &Record, upto: usize) -> Vec<Rival> {
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
    pub(super) fn decisive(&self, target: &Target) -> Vec<Number> {
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
    pub(super) fn finish(mut self, target: &Target) -> Vec<Row> {
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
