//! Blocks that relays keep from the network for a while: what they let nobody see, and how they make it known.

use crate::{
    actors::{Effect, Message, behaviour::Step},
    ledger::{BlockTree, Link},
    protocol::{Block, BlockId, Height, PublicKey, Slot},
};
use std::sync::Arc;

/// Returns true if one of these keys owns a slot within so many after a block's, by the round of the block after it.
pub fn owns_soon(tree: &BlockTree, link: &Arc<Link>, slots: u32, keys: &[PublicKey]) -> bool {
    let state = &tree.applied(link).state;
    let last = tree.slots().slot(link.block().header.timestamp).0;
    let soon = (1..=slots).map(|later| Slot(last.saturating_add(later)));
    soon.into_iter().any(|slot| keys.contains(&state.round().owner(slot).public_key))
}

/// The last block of the network's chain below private ones, which ascend.
fn known(tree: &BlockTree, private: &[BlockId]) -> Option<Arc<Link>> {
    tree.link(private.first()?)?.parent()
}

/// Returns the effect as one does it who knows of no private block; `None` if nothing is left of it.
pub fn hide(tree: &BlockTree, private: &[BlockId], effect: Effect) -> Option<Effect> {
    let Some(known) = known(tree, private) else { return Some(effect) };
    let is_private = |id: &BlockId| private.contains(id);
    let seen = |height: Height| height.min(known.height());
    let Effect::Send { to, message } = effect else {
        let hidden =
            matches!(&effect, Effect::SendToPeers { message: Message::Block(block), .. } if is_private(&block.id));
        return (!hidden).then_some(effect);
    };
    let message = match message {
        Message::Block(block) if is_private(&block.id) => return None,
        Message::Status { tip } if is_private(&tip.id) => Message::Status { tip: known.block().clone() },
        Message::Blocks { inquiry, height, blocks } => {
            let blocks = blocks.iter().filter(|block| !is_private(&block.id)).cloned().collect();
            Message::Blocks { inquiry, height: seen(height), blocks }
        }
        Message::CommonBlocks { inquiry, height, common } => {
            Message::CommonBlocks { inquiry, height: seen(height), common }
        }
        message => message,
    };
    Some(Effect::Send { to, message })
}

/// Sends private blocks to all peers, the lowest first.
pub fn publish(tree: &BlockTree, private: &[BlockId], step: &mut Step<'_>) {
    for link in private.iter().filter_map(|id| tree.link(id)) {
        step.push(step.peers.iter().copied(), link.block());
    }
}

/// Returns true if a block that comes from outside stands in the place of a private one, or above them.
pub fn is_rival(tree: &BlockTree, private: &[BlockId], block: &Block) -> bool {
    !private.contains(&block.id) && known(tree, private).is_some_and(|known| block.header.height > known.height())
}

/// Returns true if private blocks reach higher than a block of the network.
pub fn is_ahead(tree: &BlockTree, private: &[BlockId], of: &Block) -> bool {
    private.last().and_then(|id| tree.link(id)).is_some_and(|tip| tip.height() > of.header.height)
}
