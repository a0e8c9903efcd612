//! The effects of faults on messages: cuts between groups, and rules by kind of message. A fault is in force from its
//! beginning to its end. It does not affect messages that are already under way.

use crate::{
    actors::{Choices, NodeId},
    ledger::codec::saved,
    sim::fault::MessageKind,
};
use rand::Rng;
use std::time::Duration;

/// The effects of faults on one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub lost: bool,
    pub delay: Duration,
    /// Further arrivals, counted from the first.
    pub copies: Vec<Duration>,
}

/// A set of nodes with a fast lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSet(Vec<bool>);

/// The links that a fault cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The links between nodes of different groups. Holds the group of each node.
    Groups(Vec<u16>),
    /// The messages from nodes outside the set to nodes in it.
    Into(NodeSet),
    /// The links between the victims and all nodes that are neither victims nor attackers.
    Eclipse { victims: NodeSet, attackers: NodeSet },
}

/// The effect of a fault on messages of some kinds between some nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRule {
    /// All, if empty.
    pub kinds: Vec<MessageKind>,
    pub senders: Option<NodeSet>,
    pub receivers: Option<NodeSet>,
    /// From 0 to 1.
    pub chance: f64,
    /// The number of the only message that the rule affects, from 1 on, if it affects only one.
    pub only: Option<u32>,
    /// The number of matching messages that have left, if the rule affects only one.
    pub met: u32,
    pub action: Action,
    /// The name by which the rule draws, which is its fault's name.
    pub name: u64,
}

/// The action of a [`MessageRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Drop,
    Delay { by: Duration, jitter: Duration },
    Duplicate { copies: u32, within: Duration },
}

/// The cuts and rules in force, each with the index of its fault.
#[derive(Clone, Debug)]
pub struct Interference {
    nodes: u32,
    cuts: Vec<(usize, Cut)>,
    rules: Vec<(usize, MessageRule)>,
}

impl NodeSet {
    /// A set of some of `nodes` nodes.
    pub fn new(nodes: u32, of: impl IntoIterator<Item = NodeId>) -> Self {
        let mut set = vec![false; nodes as usize];
        of.into_iter().for_each(|node| set[node.0 as usize] = true);
        Self(set)
    }

    /// Returns true if a node is one of them.
    pub fn contains(&self, node: NodeId) -> bool {
        self.0[node.0 as usize]
    }
}

impl Cut {
    /// Groups of nodes that cannot reach each other; those in no group form one of their own.
    pub fn groups(nodes: u32, groups: &[Vec<NodeId>]) -> Self {
        let mut of = vec![0; nodes as usize];
        for (number, group) in (1..).zip(groups) {
            group.iter().for_each(|node| of[node.0 as usize] = number);
        }
        Self::Groups(of)
    }

    /// Nodes that reach no other node, not even each other.
    pub fn singles(nodes: u32, of: &[NodeId]) -> Self {
        let groups: Vec<Vec<NodeId>> = of.iter().map(|node| vec![*node]).collect();
        Self::groups(nodes, &groups)
    }

    fn separates(&self, from: NodeId, to: NodeId) -> bool {
        match self {
            Self::Groups(of) => of[from.0 as usize] != of[to.0 as usize],
            Self::Into(set) => set.contains(to) && !set.contains(from),
            Self::Eclipse { victims, attackers } => {
                let outside = |node| !victims.contains(node) && !attackers.contains(node);
                (victims.contains(from) && outside(to)) || (victims.contains(to) && outside(from))
            }
        }
    }
}

impl Interference {
    /// Begins with nothing in force between `nodes` nodes.
    pub fn new(nodes: u32) -> Self {
        Self { nodes, cuts: Vec::new(), rules: Vec::new() }
    }

    /// Returns true if nothing is in force.
    pub fn is_idle(&self) -> bool {
        self.cuts.is_empty() && self.rules.is_empty()
    }

    /// Returns true if a cut in force keeps messages of one node from another.
    pub fn separates(&self, from: NodeId, to: NodeId) -> bool {
        self.cuts.iter().any(|(_, cut)| cut.separates(from, to))
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// A fault cuts links from now on.
    pub fn cut(&mut self, fault: usize, cut: Cut) {
        self.cuts.push((fault, cut));
    }

    /// Applies the rule of a fault to messages from now on.
    pub fn rule(&mut self, fault: usize, rule: MessageRule) {
        self.rules.push((fault, rule));
    }

    /// Removes the cuts and rules of a fault that is over.
    pub fn end(&mut self, fault: usize) {
        self.cuts.retain(|(of, _)| *of != fault);
        self.rules.retain(|(of, _)| *of != fault);
    }

    /// Ends every cut, and returns the faults that made them.
    pub fn heal(&mut self) -> Vec<usize> {
        self.cuts.drain(..).map(|(fault, _)| fault).collect()
    }

    /// Decides the effects on a message of a kind. Each rule draws its own random numbers for the message.
    pub fn judge(&mut self, from: NodeId, to: NodeId, kind: Option<MessageKind>, numbers: Choices) -> Verdict {
        let mut verdict = Verdict::default();
        if self.separates(from, to) {
            verdict.lost = true;
            return verdict;
        }
        for (_, rule) in &mut self.rules {
            let concerned = (rule.kinds.is_empty() || kind.is_some_and(|kind| rule.kinds.contains(&kind)))
                && rule.senders.as_ref().is_none_or(|set| set.contains(from))
                && rule.receivers.as_ref().is_none_or(|set| set.contains(to));
            if !concerned {
                continue;
            }
            if let Some(only) = rule.only {
                // Counting is unnecessary beyond that one.
                rule.met = rule.met.saturating_add(1).min(only.saturating_add(1));
                if rule.met != only {
                    continue;
                }
            }
            let mut random = numbers.at(&[rule.name]);
            // Drawn for every chance, so that a change of the chance does not change the jitter.
            if random.random::<f64>() >= rule.chance {
                continue;
            }
            match rule.action {
                Action::Drop => verdict.lost = true,
                Action::Delay { by, jitter } => {
                    let micros = random.random_range(0..=jitter.as_micros() as u64);
                    verdict.delay += by + Duration::from_micros(micros);
                }
                Action::Duplicate { copies, within } => {
                    verdict.copies.extend((1..=copies).map(|copy| within * copy / copies));
                }
            }
        }
        verdict
    }
}

saved!(struct NodeSet(of));
saved!(enum Cut { 0 Groups(of), 1 Into(set), 2 Eclipse { victims, attackers } });
saved!(struct MessageRule { kinds, senders, receivers, chance, only, met, action, name });
saved!(enum Action { 0 Drop, 1 Delay { by, jitter }, 2 Duplicate { copies, within } });
saved!(struct Interference { nodes, cuts, rules });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_separate_whom_they_say_until_they_end() {
        let mut interference = Interference::new(6);
        let lost = |interference: &mut Interference, from, to| {
            interference.judge(NodeId(from), NodeId(to), Some(MessageKind::Block), Choices::new(1)).lost
        };
        interference.cut(0, Cut::groups(6, &[vec![NodeId(0), NodeId(1)]]));
        assert!(lost(&mut interference, 0, 2) && lost(&mut interference, 2, 0));
        assert!(!lost(&mut interference, 0, 1) && !lost(&mut interference, 2, 5));
        interference.end(0);
        assert!(interference.is_idle());
        interference.cut(1, Cut::Into(NodeSet::new(6, [NodeId(3)])));
        assert!(lost(&mut interference, 0, 3) && !lost(&mut interference, 3, 0));
        let (victims, attackers) = (NodeSet::new(6, [NodeId(0)]), NodeSet::new(6, [NodeId(1)]));
        interference.cut(2, Cut::Eclipse { victims, attackers });
        assert!(lost(&mut interference, 0, 2) && lost(&mut interference, 4, 0) && !lost(&mut interference, 1, 0));
        assert_eq!(interference.heal(), [1, 2]);
        assert!(!lost(&mut interference, 0, 3));
    }

    #[test]
    fn rules_concern_their_kinds_ends_and_share_of_messages() {
        let mut interference = Interference::new(4);
        let rule = |action, chance| MessageRule {
            kinds: vec![MessageKind::Block],
            senders: Some(NodeSet::new(4, [NodeId(0)])),
            receivers: None,
            chance,
            only: None,
            met: 0,
            action,
            name: 0,
        };
        let by = Duration::from_millis(300);
        interference.rule(0, rule(Action::Delay { by, jitter: Duration::ZERO }, 1.0));
        interference.rule(1, rule(Action::Duplicate { copies: 2, within: by }, 1.0));
        let verdict = interference.judge(NodeId(0), NodeId(1), Some(MessageKind::Block), Choices::new(1));
        assert_eq!((verdict.lost, verdict.delay, verdict.copies), (false, by, vec![by / 2, by]));
        assert_eq!(
            interference.judge(NodeId(1), NodeId(0), Some(MessageKind::Block), Choices::new(1)),
            Verdict::default()
        );
        assert_eq!(
            interference.judge(NodeId(0), NodeId(1), Some(MessageKind::Status), Choices::new(1)),
            Verdict::default()
        );
        interference.rule(2, rule(Action::Drop, 0.25));
        let lost = (0..4_000)
            .filter(|number| {
                interference.judge(NodeId(0), NodeId(1), Some(MessageKind::Block), Choices::new(*number)).lost
            })
            .count();
        assert!((800..1_200).contains(&lost), "{lost} of 4000 at a chance of 0.25");
    }

    #[test]
    fn a_rule_for_one_message_counts_those_it_speaks_of() {
        let mut interference = Interference::new(4);
        let receivers = Some(NodeSet::new(4, [NodeId(1)]));
        let kinds = vec![MessageKind::Block];
        let only = Some(3);
        let rule =
            MessageRule { kinds, senders: None, receivers, chance: 1.0, only, met: 0, action: Action::Drop, name: 0 };
        interference.rule(0, rule);
        let mut lost = |to, kind| interference.judge(NodeId(0), NodeId(to), Some(kind), Choices::new(1)).lost;
        let (block, status) = (MessageKind::Block, MessageKind::Status);
        let all = [(1, block), (2, block), (1, status), (1, block), (2, block), (1, block), (1, block)];
        assert_eq!(all.map(|(to, kind)| lost(to, kind)), [false, false, false, false, false, true, false]);
    }
}
