//! Conditions on every member of a group or on some member.

use super::Case;
use crate::{
    actors::NodeId,
    ledger::Link,
    protocol::{Height, PublicKey, Slot},
    scenario::assertion::{Condition, MemberKind, Metric, Operand, Quantifier},
    sim::{Plan, tips::path},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A member of a group.
#[derive(Clone, Debug)]
pub(super) enum Member {
    Node(NodeId),
    Delegate(PublicKey),
    Block(Arc<Link>),
}

/// The share of each delegate in the winning chain.
#[derive(Clone)]
pub(super) struct Shares {
    /// The end of the chain.
    tip: Arc<Link>,
    of: BTreeMap<PublicKey, Share>,
}

/// The missed slots of a lottery on the winning chain.
#[derive(Clone)]
pub(super) struct MissedSlots {
    /// The end of the chain.
    tip: Arc<Link>,
    /// Those before the tip.
    before: i64,
    /// Those after it, up to a slot.
    after: (Slot, i64),
}

/// A delegate's part of the blocks that were forged in the run.
#[derive(Clone, Copy, Default)]
struct Share {
    blocks: i32,
    /// Its slots without a block, before a block of the run.
    missed: i32,
}

impl Share {
    /// A delegate's metric ([`MemberKind::metrics`]).
    fn of(self, metric: Metric) -> f64 {
        if metric == Metric::Missed { self.missed } else { self.blocks }.into()
    }
}

/// The figures whose changes are asserted, at the end of a slot.
#[derive(Clone, Default)]
pub(super) struct Figures {
    /// The figures of the network. `None` for a figure that was not defined.
    pub(super) network: BTreeMap<Metric, Option<f64>>,
    /// The figures of all nodes, live or down, by the node's number.
    nodes: BTreeMap<Metric, Vec<f64>>,
    /// The delegates' shares in the winning chain, if a change of one is asserted. A delegate that is not in it has a share of 0.
    shares: Option<BTreeMap<PublicKey, Share>>,
}

impl Figures {
    /// A metric of a node or a delegate, or `None` if it was not recorded because there was no slot before.
    pub(super) fn of(&self, member: &Member, metric: Metric) -> Option<f64> {
        match member {
            Member::Node(node) => self.nodes.get(&metric)?.get(node.0 as usize).copied(),
            Member::Delegate(key) => Some(self.shares.as_ref()?.get(key).copied().unwrap_or_default().of(metric)),
            Member::Block(_) => None,
        }
    }
}

/// Returns the nodes on which each delegate forges.
pub(super) fn nodes_of(plan: &Plan) -> BTreeMap<PublicKey, Vec<NodeId>> {
    let mut nodes: BTreeMap<PublicKey, Vec<NodeId>> = BTreeMap::new();
    for (number, node) in (0..).zip(&plan.nodes) {
        if let Some(keys) = &node.forger {
            nodes.entry(*keys.public()).or_default().push(NodeId(number));
        }
    }
    nodes
}

/// A condition on blocks, and its result on a chain.
#[derive(Clone)]
pub(super) struct ConditionResult {
    condition: Condition,
    /// The end of the chain.
    tip: Arc<Link>,
    /// The height of the block that decides, and the finding for it.
    decided: Option<(Height, String)>,
}

/// The time between the block below and this one, in seconds. 0 for the first block.
pub(super) fn gap(link: &Arc<Link>) -> u32 {
    let before = link.parent().map(|parent| parent.block().header.timestamp.0);
    before.map_or(0, |before| link.block().header.timestamp.0.saturating_sub(before))
}

impl Case {
    /// Judges `part` for each member of a group, and also returns the finding that decides. `None` if a group has no members because no
    /// node is live.
    pub(super) fn judge_each(
        &mut self,
        condition: &Condition,
        quantifier: Quantifier,
        kind: MemberKind,
        part: &Condition,
    ) -> (Option<bool>, String) {
        let decides = quantifier == Quantifier::Some;
        if kind == MemberKind::Block {
            let decided = self.ask_blocks(condition, part, decides);
            let found =
                decided.as_ref().map_or_else(|| undecided(quantifier, self.blocks() as usize, kind), Clone::clone);
            return (Some(decided.is_some() == decides), found);
        }
        let members: Vec<Member> = match kind {
            MemberKind::Node => self.tips.of_live().map(|(node, _)| Member::Node(node)).collect(),
            _ => {
                self.share_out();
                let applied = self.tree.applied(self.tips.winning());
                applied.state.round().members.iter().map(|member| Member::Delegate(member.public_key)).collect()
            }
        };
        if members.is_empty() {
            return (None, "no node is live".to_owned());
        }
        let mut open = None;
        for member in &members {
            match self.holds_of(member, part) {
                Some(holds) if holds == decides => return (Some(decides), self.found_of(member, part)),
                None => open = open.or(Some(member)),
                Some(_) => {}
            }
        }
        match open {
            Some(member) => (None, self.found_of(member, part)),
            None => (Some(!decides), undecided(quantifier, members.len(), kind)),
        }
    }

    /// Returns the finding for a member.
    fn found_of(&mut self, member: &Member, part: &Condition) -> String {
        let (_, found) = self.judge(part, self.slot, Some(member));
        format!("{}: {found}", self.name_of(member))
    }

    /// Judges a condition on a member as [`Case::judge`] does, without a finding in words.
    fn holds_of(&mut self, member: &Member, part: &Condition) -> Option<bool> {
        match part {
            Condition::Compare { figure: Operand::Now(metric), comparison, value } => {
                Some(comparison.holds(self.metric_of(member, *metric), *value))
            }
            _ => self.judge(part, self.slot, Some(member)).0,
        }
    }

    /// Returns the current figures whose changes are asserted, as slot `end` begins.
    pub(super) fn figures(&mut self, changes: BTreeSet<(Option<MemberKind>, Metric)>, end: Slot) -> Figures {
        let mut figures = Figures::default();
        for (group, metric) in changes {
            match group {
                None => {
                    let now = self.metric(metric, end);
                    figures.network.insert(metric, now);
                }
                Some(MemberKind::Node) => {
                    let nodes = (0..self.counts.len() as u32).map(|node| Member::Node(NodeId(node)));
                    let now = nodes.map(|node| self.metric_of(&node, metric)).collect();
                    figures.nodes.insert(metric, now);
                }
                Some(MemberKind::Delegate) => {
                    self.share_out();
                    figures.shares = self.shares.as_ref().map(|shares| shares.of.clone());
                }
                Some(MemberKind::Block) => {}
            }
        }
        figures
    }

    /// Returns true if a node stands on the winning tip, or if at least one node of a delegate is live and all its live nodes stand there.
    pub(super) fn has_converged(&self, member: &Member) -> bool {
        let winning = self.tips.winning().id();
        let stands = |node: &NodeId| self.tips.of(*node).id() == winning;
        match member {
            Member::Node(node) => stands(node),
            Member::Delegate(key) => {
                let nodes = self.nodes_of.get(key).map_or(&[][..], Vec::as_slice);
                let mut live = nodes.iter().filter(|node| self.tips.is_live(**node)).peekable();
                live.peek().is_some() && live.all(stands)
            }
            Member::Block(_) => false,
        }
    }

    /// Judges the blocks of the winning chain that were not judged before. Returns the finding for the first block that decides.
    fn ask_blocks(&mut self, condition: &Condition, part: &Condition, decides: bool) -> Option<String> {
        let tip = self.tips.winning().clone();
        let place = self.asked.iter().position(|asked| asked.condition == *condition);
        let (left, new) = self.moved(place.map_or(&self.first, |place| &self.asked[place].tip), &tip);
        let before = place.and_then(|place| self.asked[place].decided.clone());
        let stands = before.filter(|(height, _)| left.last().is_none_or(|lowest| *height < lowest.height()));
        let ask = |link: Arc<Link>| {
            let height = link.height();
            let member = Member::Block(link);
            let is_decided = self.holds_of(&member, part) == Some(decides);
            is_decided.then(|| (height, self.found_of(&member, part)))
        };
        let decided = stands.or_else(|| new.into_iter().find_map(ask));
        let asked = ConditionResult { condition: condition.clone(), tip, decided: decided.clone() };
        match place {
            Some(place) => self.asked[place] = asked,
            None => self.asked.push(asked),
        }
        decided.map(|(_, found)| found)
    }

    /// The blocks of the run between two chains: those that a node reverts on the way from one to the other, the newest first, and those
    /// that it applies, the oldest first.
    fn moved(&self, from: &Arc<Link>, to: &Arc<Link>) -> (Vec<Arc<Link>>, Vec<Arc<Link>>) {
        let (mut left, mut taken) = path(from, to);
        left.retain(|link| link.height() > self.first.height());
        taken.retain(|link| link.height() > self.first.height());
        (left, taken)
    }

    /// Updates the shares of the delegates to the blocks of the winning chain.
    fn share_out(&mut self) {
        let tip = self.tips.winning().clone();
        let Shares { tip: from, mut of } =
            self.shares.take().unwrap_or_else(|| Shares { tip: self.first.clone(), of: BTreeMap::new() });
        let (left, taken) = self.moved(&from, &tip);
        for (links, sign) in [(left, -1), (taken, 1)] {
            for link in links {
                of.entry(link.block().header.generator).or_default().blocks += sign;
                for key in link.missing() {
                    of.entry(*key).or_default().missed += sign;
                }
            }
        }
        self.shares = Some(Shares { tip, of });
    }

    /// The slots without a block on the winning chain that some delegate owns, from the first slot of the run up to `end`.
    pub(super) fn missed_in_lottery(&mut self, end: Slot) -> i64 {
        let tip = self.tips.winning().clone();
        let none = || MissedSlots { tip: self.first.clone(), before: 0, after: (self.start, 0) };
        let MissedSlots { tip: from, mut before, mut after } = self.missed.take().unwrap_or_else(none);
        let (left, taken) = self.moved(&from, &tip);
        if !left.is_empty() || !taken.is_empty() {
            after = (self.slot_after(&tip), 0);
        }
        for (links, sign) in [(left, -1), (taken, 1)] {
            for link in links {
                let parent = link.parent().expect("a block of the run has one");
                let slot = self.tree.slots().slot(link.block().header.timestamp);
                before += sign * self.owned_after(&parent, self.slot_after(&parent), slot);
            }
        }
        after = (end.max(after.0), after.1 + self.owned_after(&tip, after.0, end));
        self.missed = Some(MissedSlots { tip, before, after });
        before + after.1
    }

    /// The first slot of the run after a block.
    fn slot_after(&self, link: &Link) -> Slot {
        let slot = self.tree.slots().slot(link.block().header.timestamp);
        Slot(slot.0 + 1).max(self.start)
    }

    /// The slots from one to before another that have an owner, by the round of the block after `link`.
    fn owned_after(&self, link: &Arc<Link>, from: Slot, to: Slot) -> i64 {
        let applied = self.tree.applied(link);
        let round = applied.state.round();
        (from.0..to.0).filter(|slot| !round.owners(Slot(*slot)).is_empty()).count() as i64
    }

    /// A metric of a member.
    ///
    /// # Panics
    /// Its group does not have it ([`MemberKind::metrics`]).
    pub(super) fn metric_of(&self, member: &Member, metric: Metric) -> f64 {
        match (member, metric) {
            (Member::Node(node), Metric::Height) => self.tips.of(*node).height().0.into(),
            (Member::Node(node), _) => self.counts[node.0 as usize].of(metric).expect("a node has this count") as f64,
            (Member::Delegate(key), _) => {
                let share = self.shares.as_ref().and_then(|shares| shares.of.get(key)).copied();
                share.unwrap_or_default().of(metric)
            }
            (Member::Block(link), Metric::Gap) => gap(link).into(),
            (Member::Block(link), Metric::Transactions) => link.block().transactions.len() as f64,
            (Member::Block(link), _) => link.height().0.into(),
        }
    }

    fn name_of(&self, member: &Member) -> String {
        match member {
            Member::Node(node) => node.to_string(),
            Member::Delegate(key) => {
                let applied = self.tree.applied(self.tips.winning());
                applied.state.delegate_of(key).map_or_else(|| key.to_string(), |one| one.username.to_string())
            }
            Member::Block(link) => format!("block {}", link.height()),
        }
    }
}

/// The finding if no member decides.
fn undecided(quantifier: Quantifier, members: usize, kind: MemberKind) -> String {
    let word = match quantifier {
        Quantifier::Every => "all",
        Quantifier::Some => "none",
    };
    format!("{word} of {members} {}s", kind.name())
}
