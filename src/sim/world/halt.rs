//! The proof that no block can ever be made again.
//!
//! The proof is tried between two instants (`World::standstill`), in this order:
//!
//! 1. The run is live, so that faults can be added and ended from outside, or a fault is scheduled to begin or to end: not
//!    proved.
//! 2. No node is live: halted.
//! 3. The run is irregular (a delegate forges against the rules, or it began on a longer chain), or a fault waits for an
//!    event: not proved.
//! 4. No delegate of a live node was ever active in a round, or each is switched off, and each block forged has been on a
//!    node's chain: halted.
//! 5. The other live nodes are fewer than a node must reach, each live delegate that was ever active has asked for the network
//!    since a node last went down or came back, clocks run true, no live node is behind with its work, and nothing of a dead
//!    node is on its way to a live one: halted.
//! 6. Otherwise: not proved.
//!
//! The proof comes with a digest of what it rests on. A halt is reported if the digest is the same a round's worth of slots later.
//!
//! A network that has gone quiet has not halted yet: peers draw at random whom to ask, and one of the draws may heal it. Three
//! standstills need no draw to be foreseen, and only these are reported:
//!
//! - *No node is live*, and no fault is scheduled to begin or to end. A node that is down hears nothing, so it does nothing; a trigger
//!   that waits for an event at a node waits for ever; messages and requests find no receiver. No node's state changes again.
//! - *No delegate can forge*: some nodes are live, but on none of them runs a delegate that was active in any round of any
//!   chain, or it is switched off; no fault is ahead, scheduled or waiting for an event; no delegate or peer deviates in
//!   another way; and every block ever forged has been on a node's chain. A chain that a node may move to, by whatever
//!   draws, is made of these blocks, its round is one of those seen, and a delegate forges in its own turn only. So no block
//!   is made. Which of the chains the nodes stand on may still change.
//! - *Too few nodes are live*: fewer than a node must reach peers before its delegate forges (consensus.md 2.2), and one; no
//!   fault is ahead; the same nodes have been live for a round's worth of slots; and nothing that a node sent before it went
//!   down is under way. Before a node forges it pings all its peers. The first time, it counts who does not answer, and may
//!   forge; then it drops them. So the proof takes that each live delegate that was ever active has pinged once since a
//!   node last went down or came back. From then on its node is connected to live nodes only, and no block is made, whatever
//!   is drawn. This takes clocks that run true and nodes that are not slowed down.
//!
//! Other standstills are not proved, such as a network whose nodes reach enough peers of which too few are on their chain.

use super::World;
use crate::{
    actors::{Event, NodeId, SimTime},
    ledger::{
        codec::{DiagnosticCount, saved},
        rules::NodeRules,
    },
    protocol::{BlockId, Height, PublicKey},
    sim::{Digest, FaultKind, Plan, fault::Timing},
};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeSet, time::Duration};

/// Why no block can ever be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltCause {
    /// No node is live, and none comes back.
    NoNodeLive,
    /// No live node's delegate can ever be active.
    NoDelegateForges,
    /// Fewer nodes are live than forging needs.
    TooFewLive,
}

impl HaltCause {
    /// The name in summaries.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoNodeLive => "no-node-live",
            Self::NoDelegateForges => "no-delegate-forges",
            Self::TooFewLive => "too-few-live",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoNodeLive => "no node is live, and no fault is scheduled that would bring one back",
            Self::NoDelegateForges => {
                "no delegate that was active in a round of any chain can forge on a live node, and no fault is ahead"
            }
            Self::TooFewLive => "fewer peers are live than a node must reach before it forges, and no fault is ahead",
        }
    }
}

/// The facts that the world records for the proof of a halt.
#[derive(Clone)]
pub(super) struct HaltFacts {
    /// The number of beginnings and ends of faults in the queue.
    pub(super) scheduled: u32,
    /// The run is live: a client may bring any node back.
    pub(super) is_open: bool,
    /// Keys that were active in a round of any chain.
    active: BTreeSet<PublicKey>,
    /// The last block whose new round was recorded. Most nodes report the same block in succession.
    noted: Option<BlockId>,
    /// Blocks that were forged and have been on no node's chain.
    unapplied: BTreeSet<BlockId>,
    /// The number of applied and reverted blocks, counted at each node, and of nodes that went down or came back.
    moves: DiagnosticCount,
    /// The last time that a node went down or came back.
    turned: SimTime,
    /// Nodes whose delegates have asked for the state of the network since then, and got it.
    asked: BTreeSet<NodeId>,
    /// Forging follows the rules, and all rounds are seen.
    is_regular: bool,
    /// Clocks run true, and no node is slowed down.
    pub(super) is_timely: bool,
}

impl HaltFacts {
    pub(super) fn new(plan: &Plan) -> Self {
        let state = &plan.tree.applied(&plan.tip).state;
        let mut ahead = Self {
            scheduled: 0,
            is_open: false,
            active: state.round().members.iter().map(|member| member.public_key).collect(),
            noted: None,
            unapplied: BTreeSet::new(),
            moves: DiagnosticCount(0),
            turned: SimTime::default(),
            asked: BTreeSet::new(),
            // A run that begins on a longer chain may go back to rounds that were never told.
            is_regular: plan.tip.height() <= Height::GENESIS,
            is_timely: plan.network.clocks.is_none(),
        };
        plan.faults.iter().for_each(|fault| ahead.expect(&fault.kind));
        ahead
    }

    /// Takes account of a fault that may begin.
    pub(super) fn expect(&mut self, kind: &FaultKind) {
        let facts = kind.facts();
        self.is_regular &= !facts.irregular;
        self.is_timely &= facts.timing != Timing::Wrong;
    }

    /// A node has gone down or come back.
    pub(super) fn turn(&mut self, now: SimTime) {
        self.moves.0 += 1;
        self.turned = now;
        self.asked.clear();
    }

    /// Records that a delegate has received the state of the network. A ping that began before a node went down does not count, because
    /// that node may have answered.
    fn asks(&mut self, now: SimTime, node: NodeId, rules: &NodeRules) {
        // The longest time from a delegate's request for that state to the event that follows from it.
        if now > self.turned + Duration::from_millis(rules.relay_timeout_ms.into()) {
            self.asked.insert(node);
        }
    }

    #[inline]
    pub(super) fn observe(&mut self, now: SimTime, node: NodeId, event: &Event, rules: &NodeRules) {
        match event {
            Event::BlockForged(block) => {
                self.unapplied.insert(block.id);
                self.asks(now, node, rules);
            }
            Event::ForgingSuspended { .. } => self.asks(now, node, rules),
            Event::BlockApplied(link) => {
                self.moves.0 += 1;
                if !self.unapplied.is_empty() {
                    self.unapplied.remove(&link.id());
                }
                if let Some(end) = link.round_end()
                    && self.noted != Some(link.id())
                {
                    self.noted = Some(link.id());
                    self.active.extend(end.created.members.iter().map(|member| member.public_key));
                }
            }
            Event::BlockReverted(_) => self.moves.0 += 1,
            _ => {}
        }
    }
}

impl World {
    /// Why no block can ever be made again, if that is proved, with the digest of what the proof rests on: which nodes are live, the block
    /// each stands on, how often any of them has moved, and the keys that were ever active. Call it only when all events of the present
    /// instant have been played.
    pub fn standstill(&self) -> Option<(HaltCause, Digest)> {
        if self.ahead.is_open || self.ahead.scheduled > 0 {
            return None;
        }
        let cause = match self.tips().live() {
            0 => HaltCause::NoNodeLive,
            _ if !self.ahead.is_regular || self.agenda.has_fault_waiting() => return None,
            _ if self.no_delegate_forges() => HaltCause::NoDelegateForges,
            live if self.is_below_reach(live) => HaltCause::TooFewLive,
            _ => return None,
        };
        Some((cause, self.standing(cause)))
    }

    fn no_delegate_forges(&self) -> bool {
        self.ahead.unapplied.is_empty() && !self.tips().of_live().any(|(node, _)| self.may_forge(node))
    }

    /// Returns true if a delegate runs on the node that was ever active.
    fn may_forge(&self, node: NodeId) -> bool {
        let key = self.plan.nodes[node.0 as usize].forger.as_ref().map(|keys| *keys.public());
        key.is_some_and(|key| self.ahead.active.contains(&key)) && !self.faults.is_always_off(node)
    }

    /// Returns true if so few nodes are live that none of them can forge. Reads all messages under way.
    fn is_below_reach(&self, live: u32) -> bool {
        let from_the_dead = |(from, to): (NodeId, NodeId)| !self.tips().is_live(from) && self.tips().is_live(to);
        live > 0
            && self.plan.tree.rules().node.fork_choice.asks_for_reach()
            && live - 1 < self.plan.tree.rules().least_reach()
            && self.tips().of_live().all(|(node, _)| !self.may_forge(node) || self.ahead.asked.contains(&node))
            && self.ahead.is_timely
            && !self.tips().of_live().any(|(node, _)| self.nodes.is_behind(node))
            && !self.under_way().any(|(from, to, _)| from_the_dead((from.node, to.node)))
    }

    fn standing(&self, cause: HaltCause) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(cause.name());
        hasher.update(self.ahead.moves.0.to_le_bytes());
        for (node, tip) in (0..).map(NodeId).zip(self.tips().all()) {
            hasher.update([u8::from(self.tips().is_live(node))]);
            hasher.update(tip.id().to_string());
            hasher.update([0]);
        }
        self.ahead.active.iter().for_each(|key| hasher.update(key.as_bytes()));
        Digest(hasher.finalize().into())
    }
}

saved!(struct HaltFacts { scheduled, is_open, active, noted, unapplied, moves, turned, asked, is_regular, is_timely });
