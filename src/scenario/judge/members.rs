//! Conditions on every member of a group or on some member.

use super::Case;
use crate::{
    actors::NodeId,
    ledger::Link,
    protocol::{Height, PublicKey},
    scenario::assertion::{Condition, MemberKind, Metric, Operand, Quantifier},
    sim::tips::path,
};
use std::{collections::BTreeMap, sync::Arc};

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

/// A delegate's part of the blocks that were forged in the run.
#[derive(Clone, Copy, Default)]
struct Share {
    blocks: i32,
    /// Its slots between two of them.
    missed: i32,
}

/// A condition on blocks, and what was found of a chain.
#[derive(Clone)]
pub(super) struct Asked {
    condition: Condition,
    /// The end of the chain.
    tip: Arc<Link>,
    /// The height of the block that decides, and what was found of it.
    decided: Option<(Height, String)>,
}

/// The time between the block below and this one, in seconds; 0 of the first block.
pub(super) fn gap(link: &Arc<Link>) -> u32 {
    let before = link.parent().map(|parent| parent.block().header.timestamp.0);
    before.map_or(0, |before| link.block().header.timestamp.0.saturating_sub(before))
}

impl Case {
    /// Judges `part` of each member of a group, and says what decides. `None` if a group has no members because no node is live.
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
        match members.iter().find_map(|member| self.decides(member, part, decides)) {
            Some(found) => (Some(decides), found),
            None => (Some(!decides), undecided(quantifier, members.len(), kind)),
        }
    }

    /// Returns the finding for a member of which the condition is `decides`.
    fn decides(&mut self, member: &Member, part: &Condition, decides: bool) -> Option<String> {
        if self.holds_of(member, part) != Some(decides) {
            return None;
        }
        let (_, found) = self.judge(part, self.slot, Some(member));
        Some(format!("{}: {found}", self.name_of(member)))
    }

    /// Judges a condition of a member as [`Case::judge`] does, without words.
    fn holds_of(&mut self, member: &Member, part: &Condition) -> Option<bool> {
        match part {
            Condition::Compare { figure: Operand::Now(metric), comparison, value } => {
                Some(comparison.holds(self.metric_of(member, *metric), *value))
            }
            _ => self.judge(part, self.slot, Some(member)).0,
        }
    }

    /// Asks the blocks of the winning chain that were not asked before. Returns what was found of the first that decides.
    fn ask_blocks(&mut self, condition: &Condition, part: &Condition, decides: bool) -> Option<String> {
        let tip = self.tips.winning().clone();
        let place = self.asked.iter().position(|asked| asked.condition == *condition);
        let (left, new) = self.moved(place.map_or(&self.first, |place| &self.asked[place].tip), &tip);
        let before = place.and_then(|place| self.asked[place].decided.clone());
        let stands = before.filter(|(height, _)| left.last().is_none_or(|lowest| *height < lowest.height()));
        let ask = |link: Arc<Link>| {
            let height = link.height();
            Some((height, self.decides(&Member::Block(link), part, decides)?))
        };
        let decided = stands.or_else(|| new.into_iter().find_map(ask));
        let asked = Asked { condition: condition.clone(), tip, decided: decided.clone() };
        match place {
            Some(place) => self.asked[place] = asked,
            None => self.asked.push(asked),
        }
        decided.map(|(_, found)| found)
    }

    /// The blocks that were forged in the run and that a chain leaves on the way to another, the newest first, and those that it takes, the
    /// oldest first.
    fn moved(&self, from: &Arc<Link>, to: &Arc<Link>) -> (Vec<Arc<Link>>, Vec<Arc<Link>>) {
        let (mut left, mut taken) = path(from, to);
        left.retain(|link| link.height() > self.first.height());
        taken.retain(|link| link.height() > self.first.height());
        (left, taken)
    }

    /// Adds the blocks that the winning chain has won to the shares of the delegates.
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

    /// The owners of slots that the winning chain has no block of, all delegates together. A slot without an owner is not missed.
    pub(super) fn missed_in_lottery(&mut self) -> i32 {
        self.share_out();
        self.shares.iter().flat_map(|shares| shares.of.values()).map(|share| share.missed).sum()
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
                let share = self.shares.as_ref().and_then(|shares| shares.of.get(key)).copied().unwrap_or_default();
                if metric == Metric::Missed { share.missed } else { share.blocks }.into()
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

/// Says that no member decides.
fn undecided(quantifier: Quantifier, members: usize, kind: MemberKind) -> String {
    let word = match quantifier {
        Quantifier::Every => "all",
        Quantifier::Some => "none",
    };
    format!("{word} of {members} {}s", kind.name())
}
