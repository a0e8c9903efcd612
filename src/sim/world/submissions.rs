//! Blocks that a client made and submits, and the removal of pending transactions, in a live run.

use super::{Item, World};
use crate::{
    actors::{ActorId, Event, Input, Message, NodeId, Role},
    protocol::{Block, TransactionId},
    sim::intervention::{DroppedPending, PushVerdict},
};
use std::sync::Arc;

impl World {
    /// Delivers a block to a node now, as if a peer pushed it. Its decision is known once all of this instant was played
    /// ([`World::pushed`]).
    pub(in crate::sim) fn push_block(&mut self, node: NodeId, block: &Arc<Block>) {
        self.witness = Some(Vec::new());
        if self.nodes.is_live(node) && self.nodes.is_prompt(node) {
            self.say(node, node, Message::Block(block.clone()));
        }
    }

    /// Returns the node's decision about the block.
    pub(in crate::sim) fn pushed(&mut self, node: NodeId, block: &Block) -> PushVerdict {
        let seen = self.witness.take().unwrap_or_default();
        if !self.nodes.is_live(node) || !self.nodes.is_prompt(node) {
            return PushVerdict::Unanswered;
        }
        let verdict = seen.into_iter().filter(|(at, _)| *at == node).find_map(|(_, event)| match event {
            Event::BlockApplied(link) if link.id() == block.id => Some(PushVerdict::Accepted),
            Event::BlockRefused(why) if why.id() == block.id => Some(PushVerdict::Refused(why)),
            Event::BlockDisregarded(one) if one.id == block.id => Some(PushVerdict::Disregarded),
            _ => None,
        });
        verdict.unwrap_or(PushVerdict::Discarded)
    }

    /// Makes the pool of each live node follow its node's chain now.
    pub(in crate::sim) fn have_pools_follow(&mut self) {
        for node in self.live_nodes() {
            let [from, to] = [Role::Peer, Role::Pool].map(|role| ActorId { node, role });
            let message = Message::TipMoved { tip: self.nodes.tip(node).clone() };
            let generation = self.nodes.generation(node);
            self.queue.push(self.now, Item::Input { to, generation, input: Input::Message { from, message } });
        }
    }

    /// Removes transactions from the pool of a node; or from all messages under way and all live nodes. Returns the number of copies
    /// under way. The transactions that left pools are known once all of this instant was played ([`World::dropped`]).
    pub(in crate::sim) fn drop_pending(&mut self, ids: &Arc<[TransactionId]>, node: Option<NodeId>) -> usize {
        let mut under_way = 0;
        if node.is_none() {
            under_way = ids.iter().map(|id| self.drop_transaction(id)).sum();
        }
        self.witness = Some(Vec::new());
        for one in self.live_nodes().into_iter().filter(|one| node.is_none_or(|node| node == *one)) {
            let tip = self.nodes.tip(one).clone();
            self.say(one, one, Message::Reorganised { tip, dropped: ids.clone() });
        }
        under_way
    }

    /// Adds the transactions that left pools to those that are gone. Returns those that were not among them.
    pub(in crate::sim) fn dropped(&mut self, gone: &mut DroppedPending, under_way: usize) -> Arc<[TransactionId]> {
        gone.under_way += under_way;
        let mut more = Vec::new();
        for (node, event) in self.witness.take().unwrap_or_default() {
            if let Event::PoolRemoved(id) = event {
                gone.nodes.insert(node);
                if gone.transactions.insert(id) {
                    more.push(id);
                }
            }
        }
        more.into()
    }

    fn live_nodes(&self) -> Vec<NodeId> {
        (0..self.plan.nodes.len() as u32).map(NodeId).filter(|node| self.nodes.is_live(*node)).collect()
    }
}
