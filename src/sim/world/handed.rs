//! A block that a client made and hands in, and a pending transaction that is to go. For those who steer a live run.

use super::World;
use crate::{
    actors::{Event, Message, NodeId},
    protocol::{Block, TransactionId},
    sim::intervention::{Dropped, Pushed},
};
use std::sync::Arc;

impl World {
    /// A node looks at a block now, as at one that a peer pushes. What it makes of it is known once all of this instant was
    /// played ([`World::pushed`]).
    pub(in crate::sim) fn push_block(&mut self, node: NodeId, block: &Arc<Block>) {
        self.witness = Some(Vec::new());
        if self.nodes.is_live(node) && self.nodes.is_prompt(node) {
            self.say(node, node, Message::Block(block.clone()));
        }
    }

    /// What the node made of the block.
    pub(in crate::sim) fn pushed(&mut self, node: NodeId, block: &Block) -> Pushed {
        let seen = self.witness.take().unwrap_or_default();
        if !self.nodes.is_live(node) || !self.nodes.is_prompt(node) {
            return Pushed::Unanswered;
        }
        let verdict = seen.into_iter().filter(|(at, _)| *at == node).find_map(|(_, event)| match event {
            Event::BlockApplied(link) if link.id() == block.id => Some(Pushed::Accepted),
            Event::BlockRefused(why) => Some(Pushed::Refused(why)),
            Event::BlockDisregarded(one) if one.id == block.id => Some(Pushed::Disregarded),
            _ => None,
        });
        verdict.unwrap_or(Pushed::Discarded)
    }

    /// A transaction leaves all messages under way, and every live node is told to drop it. What that came to is known once all
    /// of this instant was played ([`World::dropped`]).
    pub(in crate::sim) fn drop_pending(&mut self, id: TransactionId) -> Dropped {
        let under_way = self.queue.drop_transaction(&id) + self.nodes.drop_transaction(&id);
        self.witness = Some(Vec::new());
        let dropped: Arc<[TransactionId]> = [id].into();
        let all = (0..self.plan.nodes.len() as u32).map(NodeId);
        let live: Vec<NodeId> = all.filter(|node| self.nodes.is_live(*node)).collect();
        for node in live {
            let tip = self.nodes.tip(node).clone();
            self.say(node, node, Message::Reorganised { tip, dropped: dropped.clone() });
        }
        Dropped { under_way, ..Dropped::default() }
    }

    /// With the transactions that left pools.
    pub(in crate::sim) fn dropped(&mut self, mut dropped: Dropped) -> Dropped {
        for (node, event) in self.witness.take().unwrap_or_default() {
            if let Event::PoolRemoved(id) = event {
                dropped.transactions.insert(id);
                dropped.nodes.insert(node);
            }
        }
        dropped
    }
}
