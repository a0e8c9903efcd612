//! Verification of a peer's claimed tip: is it signed, and how much of this node's chain is it on?
//! Source: consensus.md 6.
//!
//! 1. A tip on the own chain, or one known to be built on it, passes at once, which is the everyday case.
//! 2. Otherwise its generator must have signed it, or the peer fails.
//! 3. The highest common block lies between genesis and the lower of the two tips. The node cuts that interval into eight
//!    parts and asks the peer which of the blocks at their ends it has.
//! 4. The highest one it has, and the one above, bound the next interval. A peer that has none fails.
//! 5. When the interval is a single block, that block is the highest common one.
//! 6. The peer shows its headers above it, up to its claimed tip or the end of that round, by Q11 one block further. They
//!    must be complete, each signed, and signed by a member of that round; whose slot it was does not count.
//! 7. A verification has a deadline: 1.5 seconds after the ping if that is one before forging, else 60 seconds. No step
//!    begins after it, and the question for common blocks waits no longer. Headers that were asked for in time may come late.
//!    Which heights were compared stays with a peer until the next verification: it is forked if the common block is below
//!    both tips.

use super::{Peer, inquiry::Purpose, neighbours::VerificationResult};
use crate::{
    actors::{Effect, Message, NodeId, SimTime},
    ledger::{Link, codec::saved},
    protocol::{Block, BlockError, BlockId, Height},
};
use std::{collections::BTreeMap, sync::Arc};

/// The number of parts into which an interval is cut. The peer is asked for a block at each end of each.
const PARTS: u32 = 8;

/// Peers being verified.
pub(super) type Probes = BTreeMap<NodeId, Probe>;

/// A peer being verified.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    claimed: Arc<Block>,
    /// This node's tip when the peer reported its own.
    own: Arc<Link>,
    /// The instant of that report.
    said: SimTime,
    /// The deadline: no step begins then or later.
    until: SimTime,
    step: Asking,
}

/// Blocks asked for, ascending: heights, and the ids as they are sent.
#[derive(Clone, Debug)]
pub(super) struct AskedBlocks {
    /// The block on whose chain they are. Only its id is stored: the chain may leave the block, and no reference must retain it then.
    tip: BlockId,
    heights: Arc<[Height]>,
    ids: Arc<[BlockId]>,
}

/// The open question to the peer.
#[derive(Clone, Debug)]
enum Asking {
    /// Which of these blocks it has; they are ascending, and none above `highest` can be common.
    Common { asked: AskedBlocks, highest: Height },
    /// Its headers from above this block up to a height.
    Headers { common: Arc<Link>, last: Height },
}

impl Peer {
    /// Verifies the tip that a peer or newcomer reports.
    pub(super) fn verify(&mut self, now: SimTime, node: NodeId, tip: &Arc<Block>, effects: &mut Vec<Effect>) {
        if let Some(verified) = self.verified_at_once(tip) {
            if !self.probes.is_empty() {
                self.probes.remove(&node);
            }
            self.stands_on(node, tip, now);
            return self.verification_passed(now, node, verified, effects);
        }
        if self.probes.contains_key(&node) {
            return;
        }
        if !self.is_signed(tip) || tip.header.height < Height::GENESIS {
            return self.verification_failed(now, node, effects);
        }
        let highest = tip.header.height.min(self.tip.height());
        let own = self.tip.clone();
        let asked = self.own_blocks(&own, Height::GENESIS, highest);
        let ids = asked.ids.clone();
        let step = Asking::Common { asked, highest };
        let until = self.verification_ends(now, node);
        self.probes.insert(node, Probe { claimed: tip.clone(), own, said: now, until, step });
        self.ask_common(now, node, ids, until, effects);
    }

    /// Verifies a claimed tip without a question: it is this node's tip, on its chain, or known to be built on it.
    fn verified_at_once(&self, tip: &Arc<Block>) -> Option<VerificationResult> {
        let (mine, his) = (self.tip.height(), tip.header.height);
        // An id proves nothing beside another header than its own.
        let is_claimed = |link: &Arc<Link>| {
            Arc::ptr_eq(link.block(), tip) || (link.id() == tip.id && link.block().header == tip.header)
        };
        let one_chain = Arc::ptr_eq(tip, self.tip.block())
            || match his <= mine {
                true => self.tip.ancestor(his).is_some_and(|link| is_claimed(&link)),
                false => self.tree.link(&tip.id).is_some_and(|link| is_claimed(&link) && link.descends_from(&self.tip)),
            };
        one_chain.then(|| VerificationResult::one_chain(mine, his))
    }

    /// Returns true if the block's generator has signed it.
    pub(super) fn is_signed(&self, block: &Block) -> bool {
        let errors = block.check_content(&self.tree.config().block_context());
        !errors.iter().any(|error| matches!(error, BlockError::Signature | BlockError::SignatureEncoding(_)))
    }

    fn ask_common(
        &mut self,
        now: SimTime,
        node: NodeId,
        ids: Arc<[BlockId]>,
        until: SimTime,
        effects: &mut Vec<Effect>,
    ) {
        let question = |inquiry| Message::CommonBlocksRequest { inquiry, ids };
        self.inquire(now, node, Purpose::Probe, self.answer_timeout().min(until.since(now)), question, effects);
    }

    /// Handles the peer's answer that `common` is its highest of the requested blocks. Continues the search above it, or asks for the
    /// headers above the highest common block.
    pub(super) fn probe_answered(
        &mut self,
        now: SimTime,
        node: NodeId,
        common: Option<BlockId>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(probe) = self.probes.get(&node) else { return };
        let Asking::Common { asked, highest } = &probe.step else { return };
        let place = common.and_then(|id| asked.ids.iter().rposition(|asked| *asked == id));
        let Some(place) = place else { return self.verification_failed(now, node, effects) };
        let common = asked.heights[place];
        let highest = asked.heights.get(place + 1).map_or(*highest, |above| Height(above.0 - 1));
        if common == highest {
            let common = probe.own.ancestor(common).expect("it is on the own chain");
            return self.common_found(now, node, common, effects);
        }
        let (own, until) = (probe.own.clone(), probe.until);
        if now >= until {
            return self.verification_failed(now, node, effects);
        }
        let asked = self.own_blocks(&own, common, highest);
        let ids = asked.ids.clone();
        if let Some(probe) = self.probes.get_mut(&node) {
            probe.step = Asking::Common { asked, highest };
        }
        self.ask_common(now, node, ids, until, effects);
    }

    /// The highest common block is known. Delegates of that round must have signed the peer's blocks above it.
    fn common_found(&mut self, now: SimTime, node: NodeId, common: Arc<Link>, effects: &mut Vec<Effect>) {
        let beyond = u32::from(self.node_rules().verify_next_round_block);
        let Some(probe) = self.probes.get_mut(&node) else { return };
        let round_ends = self.tree.schedule().at(common.height().next()).last();
        let last = probe.claimed.header.height.min(Height(round_ends.0 + beyond));
        let (above, limit) = (common.height(), last.0.saturating_sub(common.height().0));
        if limit == 0 {
            return self.probe_passed(now, node, above, effects);
        }
        if now >= probe.until {
            return self.verification_failed(now, node, effects);
        }
        probe.step = Asking::Headers { common, last };
        let question = |inquiry| Message::BlocksRequest { inquiry, above, limit, headers_only: true };
        self.inquire(now, node, Purpose::Probe, self.verification_timeout(), question, effects);
    }

    pub(super) fn headers_answered(
        &mut self,
        now: SimTime,
        node: NodeId,
        headers: &[Arc<Block>],
        effects: &mut Vec<Effect>,
    ) {
        let Some(probe) = self.probes.get(&node) else { return };
        let Asking::Headers { common, last } = &probe.step else { return };
        let wanted = common.height().0 + 1..=last.0;
        let round = self.tree.round_after(common);
        // Usually the generator owns its slot, which is the cheaper check.
        let is_member = |block: &Block| {
            let (slot, key) = (self.tree.slots().slot(block.header.timestamp), &block.header.generator);
            round.owns(slot, key) || round.members.iter().any(|member| member.public_key == *key)
        };
        let complete = headers.len() == wanted.clone().count()
            && headers
                .iter()
                .zip(wanted)
                .all(|(block, height)| block.header.height.0 == height && is_member(block) && self.is_signed(block));
        let above = common.height();
        match complete {
            true => self.probe_passed(now, node, above, effects),
            false => self.verification_failed(now, node, effects),
        }
    }

    fn probe_passed(&mut self, now: SimTime, node: NodeId, highest_common: Height, effects: &mut Vec<Effect>) {
        let Some(probe) = self.probes.remove(&node) else { return };
        let (my_height, his_height) = (probe.own.height(), probe.claimed.header.height);
        self.stands_on(node, &probe.claimed, probe.said);
        self.verification_passed(now, node, VerificationResult { my_height, his_height, highest_common }, effects);
    }

    /// The highest of these blocks on the own chain; the ids ascend as in [`Message::CommonBlocksRequest`].
    pub(super) fn highest_common(&self, ids: &[BlockId]) -> Option<BlockId> {
        let is_own = |id: &&BlockId| self.tree.link(id).is_some_and(|link| self.tip.descends_from(&link));
        ids.iter().rev().find(is_own).copied()
    }

    /// Returns [`own_blocks`], cached for all peers that are asked for the same blocks: after a partition these are many.
    fn own_blocks(&mut self, tip: &Arc<Link>, lowest: Height, highest: Height) -> AskedBlocks {
        let same = |asked: &&AskedBlocks| {
            asked.tip == tip.id() && asked.heights.first() == Some(&lowest) && asked.heights.last() == Some(&highest)
        };
        let asked = self.asked.iter().find(same).cloned();
        asked.unwrap_or_else(|| self.asked.insert(own_blocks(tip, lowest, highest)).clone())
    }
}

/// Blocks of a chain at both ends of an interval and at equal distances between, ascending.
fn own_blocks(tip: &Arc<Link>, lowest: Height, highest: Height) -> AskedBlocks {
    let width = highest.0.saturating_sub(lowest.0);
    let parts = width.clamp(1, PARTS);
    let at = |part| lowest.0 + (u64::from(width) * u64::from(part) / u64::from(parts)) as u32;
    let mut heights: Vec<Height> = (0..=parts).map(|part| Height(at(part))).collect();
    heights.dedup();
    let own = |height: &Height| tip.ancestor(*height).expect("the heights are of the own chain").id();
    AskedBlocks { tip: tip.id(), ids: heights.iter().map(own).collect(), heights: heights.into() }
}

saved!(struct Probe { claimed, own, said, until, step });
saved!(struct AskedBlocks { tip, heights, ids });
saved!(enum Asking { 0 Common { asked, highest }, 1 Headers { common, last } });
