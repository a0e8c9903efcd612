//! When it is proved that no block can ever be made again.
//!
//! A network that has gone quiet has not halted yet: peers draw at random whom to ask, and one of the draws may heal it.
//! Two standstills need no draw to be foreseen, and only these are told:
//!
//! - *No node is live*, and no fault is scheduled to begin or to end. A node that is down hears nothing, so it does nothing;
//!   what waits for something to happen at a node waits for ever; messages and requests find nobody. Nothing of any node
//!   changes again.
//! - *No delegate can forge*: some nodes are live, but on none of them runs a delegate that was active in any round of any
//!   chain, or it is switched off; no fault is ahead, scheduled or waiting for an event; no delegate or peer deviates in
//!   another way; and every block ever forged has been on a node's chain. A chain that a node may move to, by whatever
//!   draws, is made of these blocks, its round is one of those seen, and a delegate forges in its own turn only. So no block
//!   is made. Which of the chains the nodes stand on may still change.
//!
//! Whatever else stands still, such as a network in which every node sees too few peers on its chain, is not proved.

use super::World;
use crate::{
    actors::{Deviation, Event, NodeId},
    protocol::{BlockId, Height, PublicKey},
    sim::{Digest, FaultKind, Plan},
};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// Why no block can ever be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltCause {
    /// No node is live, and none comes back.
    NoNodeLive,
    /// No live node's delegate can ever be active.
    NoDelegateForges,
}

impl HaltCause {
    /// The name in summaries.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoNodeLive => "no-node-live",
            Self::NoDelegateForges => "no-delegate-forges",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoNodeLive => "no node is live, and no fault is scheduled that would bring one back",
            Self::NoDelegateForges => {
                "no delegate that was active in a round of any chain can forge on a live node, and no fault is ahead"
            }
        }
    }
}

/// What the world notes in order to prove a halt.
pub(super) struct Ahead {
    /// Faults' beginnings and ends that lie in the queue.
    pub(super) scheduled: u32,
    /// Keys that were active in a round of any chain.
    active: BTreeSet<PublicKey>,
    /// The last block whose round was noted: most nodes tell of one block after the other.
    noted: Option<BlockId>,
    /// Blocks that were forged and have been on no node's chain.
    unapplied: BTreeSet<BlockId>,
    /// Blocks put on a chain, counted at each node, and blocks taken off.
    moves: u64,
    /// Forging follows the rules, and all rounds are seen.
    is_regular: bool,
}

impl Ahead {
    pub(super) fn new(plan: &Plan) -> Self {
        let state = &plan.tree.applied(&plan.tip).state;
        let irregular = |kind: &FaultKind| {
            matches!(
                kind,
                FaultKind::DoubleForge(_)
                    | FaultKind::ForgeOutOfTurn(_)
                    | FaultKind::ForgeInvalid(_)
                    | FaultKind::Withhold(_)
                    | FaultKind::LateForging(_)
            )
        };
        Self {
            scheduled: 0,
            active: state.round().members.iter().map(|member| member.public_key).collect(),
            noted: None,
            unapplied: BTreeSet::new(),
            moves: 0,
            // A run that begins on a longer chain may go back to rounds that were never told.
            is_regular: plan.tip.height() <= Height::GENESIS
                && !plan.faults.iter().any(|fault| irregular(&fault.kind)),
        }
    }

    #[inline]
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::BlockForged(block) => {
                self.unapplied.insert(block.id);
            }
            Event::BlockApplied(link) => {
                self.moves += 1;
                if self.noted == Some(link.id()) {
                    return;
                }
                self.noted = Some(link.id());
                self.unapplied.remove(&link.id());
                if let Some(end) = link.round_end() {
                    self.active.extend(end.created.members.iter().map(|member| member.public_key));
                }
            }
            Event::BlockReverted(_) => self.moves += 1,
            _ => {}
        }
    }
}

impl World {
    /// Why no block can ever be made again, if that is proved, with the digest of what the proof rests on: which nodes are
    /// live, the block each stands on, how often any of them has moved, and the keys that were ever active. For between
    /// two events, all of an instant's having been played.
    pub fn standstill(&self) -> Option<(HaltCause, Digest)> {
        if self.ahead.scheduled > 0 {
            return None;
        }
        let cause = match self.tips().live() {
            0 => HaltCause::NoNodeLive,
            _ if self.no_delegate_forges() => HaltCause::NoDelegateForges,
            _ => return None,
        };
        Some((cause, self.standing(cause)))
    }

    fn no_delegate_forges(&self) -> bool {
        let offline = |node: NodeId| self.faults.deviation_of(node).any(|is| *is == Deviation::Offline);
        let other = |node: NodeId| self.faults.deviation_of(node).any(|is| *is != Deviation::Offline);
        let may_forge = |node: NodeId| {
            let key = self.plan.nodes[node.0 as usize].forger.as_ref().map(|keys| *keys.public());
            key.is_some_and(|key| self.ahead.active.contains(&key)) && !offline(node)
        };
        self.ahead.is_regular
            && self.ahead.unapplied.is_empty()
            && !self.agenda.has_fault_waiting(self.plan.faults.len())
            && self.tips().of_live().all(|(node, _)| !other(node) && !may_forge(node))
    }

    fn standing(&self, cause: HaltCause) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(cause.name());
        hasher.update(self.ahead.moves.to_le_bytes());
        for (node, tip) in (0..).map(NodeId).zip(self.tips().all()) {
            hasher.update([u8::from(self.tips().is_live(node))]);
            hasher.update(tip.id().to_string());
            hasher.update([0]);
        }
        self.ahead.active.iter().for_each(|key| hasher.update(key.as_bytes()));
        Digest(hasher.finalize().into())
    }
}
