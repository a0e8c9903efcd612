//! Blocks that a peer announces and sends when it is asked ([`Gossip::Announce`]).
//!
//! 1. A peer that puts a block of the running slot on its chain announces it to all its peers, once.
//! 2. A peer that hears of a block for the first time asks the announcer for it. It only records the later announcers.
//! 3. The asked peer has the time `rules.node.body_timeout_s`. If that is over, or the asked peer is
//!    dropped, the next announcer is asked. With none left, the block is forgotten, and the next announcement is the first one again.
//! 4. A block that was asked for and came is treated like a pushed one. Others are ignored. If it came before its parent, the next
//!    announcer is asked.
//!
//! A peer that is catching up ignores announcements: it downloads the block.
//!
//! [`Gossip::Announce`]: crate::ledger::rules::Gossip::Announce

use super::{Peer, inquiry::Purpose, send};
use crate::{
    actors::{
        Effect, Message, NodeId, SimTime,
        message::{BodyPart, Inquiry},
    },
    ledger::codec::saved,
    protocol::{Block, BlockId},
};
use std::{sync::Arc, time::Duration};

/// The number of blocks that a peer remembers.
const REMEMBERED: usize = 32;

/// A block that was announced.
#[derive(Clone, Debug)]
pub(super) struct AnnouncedBlock {
    id: BlockId,
    /// The peer that is asked for it; `None` once it has come.
    asked: Option<NodeId>,
    /// The others that have announced it, in the order in which they did.
    others: Vec<NodeId>,
}

impl Peer {
    /// Announces a block to all peers.
    pub(super) fn announce(&mut self, block: &Block, effects: &mut Vec<Effect>) {
        if !self.announced.iter().any(|one| one.id == block.id) {
            self.remember_announced(block.id, None);
        }
        let to = self.neighbours.numbers().to_vec();
        if !to.is_empty() {
            effects.push(Effect::SendToPeers { to, message: Message::Announcement(block.id.into()) });
        }
    }

    /// Handles a peer's announcement of a block.
    pub(super) fn hear_of(&mut self, now: SimTime, from: NodeId, id: BlockId, effects: &mut Vec<Effect>) {
        if !self.has_started() {
            return;
        }
        let Some(one) = self.announced.iter_mut().find(|one| one.id == id) else {
            // A block of its chain came in another way.
            if self.highest_common(&[id]).is_none() {
                self.remember_announced(id, Some(from));
                self.ask_for_body(now, from, id, effects);
            }
            return;
        };
        if one.asked.is_some_and(|asked| asked != from) && !one.others.contains(&from) {
            one.others.push(from);
        }
    }

    fn remember_announced(&mut self, id: BlockId, asked: Option<NodeId>) {
        if self.announced.len() == REMEMBERED {
            self.announced.remove(0);
        }
        self.announced.push(AnnouncedBlock { id, asked, others: Vec::new() });
    }

    fn ask_for_body(&mut self, now: SimTime, from: NodeId, id: BlockId, effects: &mut Vec<Effect>) {
        let time = Duration::from_secs(u64::from(self.node_rules().body_timeout_s));
        let question = |inquiry| Message::BodyRequest { inquiry, id: id.into() };
        self.inquire(now, from, Purpose::Body(id), time, question, effects);
    }

    /// Asks the next announcer for a block. The peer asked before did not send it, is no peer any more, or sent it before its parent.
    pub(super) fn body_failed(&mut self, now: SimTime, id: BlockId, effects: &mut Vec<Effect>) {
        let Some(place) = self.announced.iter().position(|one| one.id == id) else { return };
        if self.highest_common(&[id]).is_some() {
            self.announced[place] = AnnouncedBlock { id, asked: None, others: Vec::new() };
            return;
        }
        let others = std::mem::take(&mut self.announced[place].others);
        let mut there = others.into_iter().filter(|node| self.neighbours.has(*node));
        let Some(next) = there.next() else {
            self.announced.remove(place);
            return;
        };
        let others = there.collect();
        self.announced[place] = AnnouncedBlock { id, asked: Some(next), others };
        self.ask_for_body(now, next, id, effects);
    }

    /// Sends a block that this node has announced.
    pub(super) fn send_body(&self, to: NodeId, inquiry: Inquiry, id: &BlockId, effects: &mut Vec<Effect>) {
        let is_announced = self.announced.iter().any(|one| one.id == *id) || self.highest_common(&[*id]).is_some();
        if let Some(link) = self.tree.link(id).filter(|_| is_announced) {
            send(to, Message::Body { inquiry, block: link.block().clone(), part: BodyPart::Whole }, effects);
        }
    }

    /// Handles a block that this peer has asked for.
    pub(super) fn body_came(
        &mut self,
        now: SimTime,
        from: NodeId,
        inquiry: Inquiry,
        block: &Arc<Block>,
        effects: &mut Vec<Effect>,
    ) {
        if self.inquiries.close(inquiry, from) != Some(Purpose::Body(block.id)) {
            return;
        }
        self.block_pushed(now, block, 1, effects);
        let is_on_chain = |id: Option<BlockId>| id.is_some_and(|id| self.highest_common(&[id]).is_some());
        if !is_on_chain(Some(block.id)) && !is_on_chain(block.header.previous) {
            return self.body_failed(now, block.id, effects);
        }
        if let Some(one) = self.announced.iter_mut().find(|one| one.id == block.id) {
            (one.asked, one.others) = (None, Vec::new());
        }
    }
}

saved!(struct AnnouncedBlock { id, asked, others });
