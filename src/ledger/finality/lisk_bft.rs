//! Lisk-BFT: two votes of each delegate, both cast by forging.
//!
//! 1. A block of height h whose forger has forged up to m before votes if m < h and its forger is active.
//! 2. It precommits the blocks below it that have prevotes of ⌊2n/3⌋ + 1 delegates: those above its forger's last precommit, above
//!    what its forger has not prevoted, and since its forger is active.
//! 3. The blocks that a forger has not prevoted are found from m down its own blocks, as long as each names the one before on this
//!    chain. This walk ends at the highest height that it has not prevoted.
//! 4. It prevotes itself and the blocks below it down to m + 1, since its forger is active.
//! 5. No vote reaches down by more than three rounds.
//! 6. The highest block with precommits of ⌊2n/3⌋ + 1 delegates is final, and so is all below.
//!
//! `LiskBft::that_falls_back` brings back a fault of Lisk's SDK.
//!
//! Source: LIP-0014 with its appendices; LiskArchive/lisk-sdk issue 6594.

use crate::{
    ledger::{
        codec::{saved, shared},
        round::Round,
    },
    protocol::{Block, Height, PublicKey},
};
use std::collections::BTreeMap;

/// The state of the rule after a block.
#[derive(Clone, Debug)]
pub struct LiskBft {
    /// lisk-sdk #6594: the highest prevoted block is sought in the last five rounds only. Without one there it is the last final block.
    falls_back: bool,
    /// The blocks that can still get votes.
    blocks: BTreeMap<Height, VotedBlock>,
    /// For each active delegate, the first height of its current series of active rounds.
    active_since: BTreeMap<PublicKey, Height>,
    /// The highest block that each delegate has precommitted.
    precommitted: BTreeMap<PublicKey, Height>,
    prevoted: Height,
    /// The highest prevoted height before the block's own votes, which Lisk's header would state.
    said: Height,
    last_final: Height,
}

/// A block and its votes.
#[derive(Clone, Copy, Debug)]
struct VotedBlock {
    forger: PublicKey,
    /// The greatest height at which its forger had forged before.
    before: Height,
    prevotes: u32,
    precommits: u32,
}

impl Default for LiskBft {
    fn default() -> Self {
        Self {
            falls_back: false,
            blocks: BTreeMap::new(),
            active_since: BTreeMap::new(),
            precommitted: BTreeMap::new(),
            prevoted: Height::GENESIS,
            said: Height::GENESIS,
            last_final: Height::GENESIS,
        }
    }
}

impl LiskBft {
    /// With lisk-sdk #6594.
    pub(super) fn that_falls_back() -> Self {
        Self { falls_back: true, ..Self::default() }
    }

    /// The height of the last final block.
    pub fn height(&self) -> Height {
        self.last_final
    }

    /// The height of the highest block that two thirds of the delegates had prevoted before this block, which decides between chains.
    pub fn said(&self) -> Height {
        self.said
    }

    pub(super) fn follow(&mut self, block: &Block, round: &Round) {
        let members = round.members.iter().map(|member| member.public_key);
        self.takes(block, members, round.position.first, round.position.last());
    }

    /// Updates the state by a block of a round with these active delegates and these first and last heights. Others may forge in it, too.
    pub(super) fn takes(
        &mut self,
        block: &Block,
        active: impl ExactSizeIterator<Item = PublicKey>,
        first: Height,
        last: Height,
    ) {
        let (height, forger) = (block.header.height, block.header.generator);
        // A header that claims less than this chain shows contradicts it. Lisk rejects such a block; here it cannot vote twice.
        let shown = self.blocks.iter().rev().find(|(_, voted)| voted.forger == forger).map(|(height, _)| *height);
        let before = block.header.forged_before.max(shown.unwrap_or_default());
        self.said = self.prevoted;
        let (count, batch) = (active.len() as u32, last.0 - first.0 + 1);
        if first == height || self.active_since.is_empty() {
            let since = |key: PublicKey| (key, self.active_since.get(&key).copied().unwrap_or(height));
            self.active_since = active.map(since).collect();
        }
        let lowest = Height(height.0.saturating_sub(3 * batch - 1).max(Height::GENESIS.0 + 1));
        self.blocks = self.blocks.split_off(&lowest);
        self.blocks.insert(height, VotedBlock { forger, before, prevotes: 0, precommits: 0 });
        if let Some(since) = self.active_since.get(&forger).copied().filter(|_| before < height) {
            let threshold = 2 * count / 3 + 1;
            self.precommit(height, forger, since.max(lowest), threshold);
            self.prevote(before.next().max(since).max(lowest), threshold);
        }
        if self.falls_back && self.prevoted.0 + 5 * batch <= height.0 {
            self.prevoted = self.last_final;
        }
    }

    fn prevote(&mut self, from: Height, threshold: u32) {
        for (height, voted) in self.blocks.range_mut(from..) {
            voted.prevotes += 1;
            if voted.prevotes >= threshold {
                self.prevoted = self.prevoted.max(*height);
            }
        }
    }

    fn precommit(&mut self, height: Height, forger: PublicKey, since: Height, threshold: u32) {
        let before = self.precommitted.get(&forger).copied().unwrap_or(Height::GENESIS);
        let from = since.max(before.next()).max(self.not_prevoted(height).next());
        let mut highest = None;
        for (at, voted) in self.blocks.range_mut(from.min(height)..height) {
            if voted.prevotes >= threshold {
                voted.precommits += 1;
                highest = Some(*at);
                if voted.precommits >= threshold {
                    self.last_final = self.last_final.max(*at);
                }
            }
        }
        if let Some(highest) = highest {
            self.precommitted.insert(forger, highest);
        }
    }

    /// The highest height, not above `height`, that the forger of the block at `height` has not prevoted.
    fn not_prevoted(&self, height: Height) -> Height {
        let forger = self.blocks[&height].forger;
        let mut at = height;
        while let Some(own) = self.blocks.get(&at).filter(|own| own.forger == forger && own.before < at) {
            at = own.before;
        }
        at
    }
}

saved!(struct LiskBft { falls_back, blocks, active_since, precommitted, prevoted, said, last_final });
saved!(struct VotedBlock { forger, before, prevotes, precommits });
shared!(LiskBft);
