//! Blocks that relays keep from the network for a while: the private chain, and its publication.

use crate::{
    actors::{Effect, Message, Peer, behaviour::Step},
    ledger::{BlockTree, Link},
    protocol::{Block, BlockId, Height, PublicKey, Slot},
};
use std::{iter, sync::Arc};

/// The number of pushed blocks that a node accepts from one peer within seconds. At one more, it hangs up. Source: consensus.md 6.
pub(crate) const PUSHES: usize = 2;
/// The distance below a tip from which private blocks are on no chain any more.
const FORGOTTEN: u32 = 1_000;

/// Returns true if one of these keys owns one of the `slots` slots after a block's, by the round of the block after it.
pub(crate) fn owns_soon(tree: &BlockTree, link: &Arc<Link>, slots: u32, keys: &[PublicKey]) -> bool {
    let state = &tree.applied(link).state;
    let last = tree.slots().slot(link.block().header.timestamp).0;
    let mut soon = (1..=slots).map(|later| Slot(last.saturating_add(later)));
    soon.any(|slot| keys.iter().any(|key| state.round().owns(slot, key)))
}

/// Blocks that are unknown outside the coalition. If its chain is left, a block stays private.
#[derive(Clone, Debug, Default)]
pub(crate) struct Private(pub Vec<BlockId>);

impl Private {
    /// The private blocks at the end of a chain, the highest first.
    fn at_end<'a>(&'a self, tip: &Arc<Link>) -> impl Iterator<Item = Arc<Link>> + 'a {
        iter::successors(Some(tip.clone()), |link| link.parent()).take_while(|link| self.0.contains(&link.id()))
    }

    /// The last block of a chain that others know.
    fn known(&self, tip: &Arc<Link>) -> Arc<Link> {
        let lowest = self.at_end(tip).last();
        lowest.and_then(|link| link.parent()).unwrap_or_else(|| tip.clone())
    }

    /// Adds the tip of a chain, and drops the blocks far below it.
    pub fn add(&mut self, tree: &BlockTree, tip: &Arc<Link>) {
        let is_near = |id: &BlockId| tree.link(id).is_some_and(|link| link.height().0 + FORGOTTEN > tip.height().0);
        self.0.retain(is_near);
        self.0.push(tip.id());
    }

    /// Publishes the private blocks up to `tip`. Pushes the lowest `pushes` of them to all peers, which then download the others.
    pub fn publish(&mut self, tip: &Arc<Link>, pushes: usize, step: &mut Step<'_>) {
        let mut chain: Vec<Arc<Link>> = self.at_end(tip).collect();
        chain.reverse();
        for link in chain.iter().take(pushes) {
            step.push(step.peers.iter().copied(), link.block());
        }
        self.0.retain(|id| chain.iter().all(|link| link.id() != *id));
    }

    /// Returns true if a block from outside has the height of a private block at the end of a peer's chain.
    pub fn has_rival(&self, peer: &Peer, block: &Block) -> bool {
        let (tip, height) = (peer.tip(), block.header.height);
        tip.height() >= height && height > self.known(tip).height() && !self.0.contains(&block.id)
    }

    /// Returns true for a message that may reveal a private block.
    pub fn is_in(message: &Message) -> bool {
        use Message::{Announcement, Block, Blocks, CommonBlocks, Status};
        matches!(message, Block(_) | Announcement(_) | Status { .. } | Blocks { .. } | CommonBlocks { .. })
    }

    /// Returns a peer's effect without private blocks, as if the peer did not have them. `None` if nothing is left.
    pub fn hide(&self, peer: &Peer, effect: Effect) -> Option<Effect> {
        if self.0.is_empty() {
            return Some(effect);
        }
        let seen = |height: Height| height.min(self.known(peer.tip()).height());
        let Effect::Send { to, message } = effect else {
            let hidden = match &effect {
                Effect::SendToPeers { message: Message::Block(block), .. } => self.0.contains(&block.id),
                Effect::SendToPeers { message: Message::Announcement(id), .. } => self.0.contains(id.as_ref()),
                _ => false,
            };
            return (!hidden).then_some(effect);
        };
        let message = match message {
            Message::Block(block) if self.0.contains(&block.id) => return None,
            Message::Status { tip } => {
                let link = peer.tree().link(&tip.id);
                Message::Status { tip: link.map_or(tip, |link| self.known(&link).block().clone()) }
            }
            Message::Blocks { inquiry, height, blocks } => {
                let blocks = blocks.iter().filter(|block| !self.0.contains(&block.id)).cloned().collect();
                Message::Blocks { inquiry, height: seen(height), blocks }
            }
            Message::CommonBlocks { inquiry, height, common } => {
                Message::CommonBlocks { inquiry, height: seen(height), common }
            }
            message => message,
        };
        Some(Effect::Send { to, message })
    }
}
