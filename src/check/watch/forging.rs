//! Blocks that delegates make, as a watch sees them: one a slot, and each with the height up to which its forger has forged.

use super::Observations;
use crate::{
    actors::{NodeId, SimTime},
    check::conduct,
    protocol::{Block, Height, Slot},
};
use std::sync::Arc;

impl Observations {
    /// Judges a block that a node made, for its own delegate or for another one.
    pub(super) fn forged(&mut self, now: SimTime, node: NodeId, slot: Slot, block: &Arc<Block>) {
        self.heard.hears(block);
        self.judge_disclosure(now, node, block);
        let known = &mut self.nodes[node.0 as usize];
        let before = known.forged.replace((slot, block.clone()));
        known.forged_taken = false;
        let is_deviant = known.deviant;
        // A spare node forges for two delegates, and twice for another one if two faults say so.
        let is_same = |other: &Arc<Block>| other.header.generator == block.header.generator;
        let is_own = self.keys.get(node.0 as usize).is_none_or(|key| *key == Some(block.header.generator));
        let Some((last, other)) = before.filter(|(_, other)| is_same(other)) else { return };
        if !is_deviant && is_own && last == slot && other.id != block.id {
            let what = format!("its delegate made blocks {} and {} in slot {slot}", other.id, block.id);
            self.find(&conduct::ONE_A_SLOT, now, Some(node), None, what);
        }
    }

    /// Compares the height that a block names with the heights at which its forger made blocks, where a rule of finality
    /// requires the claim.
    fn judge_disclosure(&mut self, now: SimTime, node: NodeId, block: &Block) {
        let rules = self.tree.rules();
        if !rules.ledger.finality.asks_forgers() {
            return;
        }
        let known = &mut self.nodes[node.0 as usize];
        let up_to = known.forged_up_to.entry(block.header.generator).or_insert(Height(0));
        let (said, forged) = (block.header.forged_before, *up_to);
        *up_to = forged.max(block.header.height);
        // A block that its relay refuses may count as none, so a delegate may have forged higher than is known here.
        let is_known = rules.node.forged_before_accepted && !known.deviant;
        if !known.irregular && (said < forged || is_known && said > forged) {
            let what = format!("block {} names height {said}, and its delegate had forged up to {forged}", block.id);
            self.find(&conduct::DISCLOSED, now, Some(node), None, what);
        }
    }
}
