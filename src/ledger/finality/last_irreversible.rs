//! EOS's last irreversible block, in two steps.
//!
//! 1. A block confirms itself and those before it back to its forger's last block on any chain, none that is irreversible. A forger's
//!    first block confirms none before it.
//! 2. A block needs ⌊2n/3⌋ + 1 confirmations. A new block gives one to itself and to each that it confirms, newest first. The first
//!    that needs no more becomes the proposal. It and all older ones are no longer counted.
//! 3. Each delegate contributes the proposal in force when it forged last: that of the block before its own.
//! 4. These are sorted, and the one at place ⌊(n − 1)/3⌋ is irreversible. It never falls.
//!
//! A delegate that becomes active counts with what is irreversible then.
//!
//! `Counting` brings back two faults of EOS, each as a rule of its own.
//!
//! Source: EOSIO/eos 11d35f0f93, `block_header_state`; issues 2718 and 3835.

use crate::{
    ledger::{
        codec::{saved, shared},
        round::Round,
    },
    protocol::{Block, Height, PublicKey},
};
use std::collections::BTreeMap;

/// The largest number of blocks whose confirmations are counted.
const COUNTED: usize = 1_024;

/// The blocks that a block confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Those since its forger's last one.
    Confirmed,
    /// All below it, as in DPOS 2.0, whose headers do not name what their forgers had confirmed (#2718). A block with two thirds of the
    /// delegates at or above it is irreversible at once, and the longest chain wins.
    Forged,
    /// Those since its forger's last one, also the irreversible ones, as a number of sixteen bits (#3835). A delegate that becomes active
    /// counts as one that has confirmed what is irreversible, and a block that confirms that again is refused.
    Overlong,
}

/// The state of the rule after a block.
#[derive(Clone, Debug)]
pub struct LastIrreversible {
    counting: Counting,
    /// The confirmations that each of the newest blocks still wants, ascending by height up to the block's.
    wanted: Vec<u32>,
    proposed: Height,
    /// The height that each active delegate implies to be irreversible.
    implied: BTreeMap<PublicKey, Height>,
    /// The last block of each delegate on this chain.
    forged: BTreeMap<PublicKey, Height>,
    irreversible: Height,
}

impl Default for LastIrreversible {
    fn default() -> Self {
        Self {
            counting: Counting::Confirmed,
            wanted: Vec::new(),
            proposed: Height::GENESIS,
            implied: BTreeMap::new(),
            forged: BTreeMap::new(),
            irreversible: Height::GENESIS,
        }
    }
}

impl LastIrreversible {
    /// The state after genesis for a way of counting.
    pub(super) fn of(counting: Counting) -> Self {
        Self { counting, ..Self::default() }
    }

    /// The height of the last final block.
    pub fn height(&self) -> Height {
        self.irreversible
    }

    /// True if the irreversible height and then the ids decide between chains. In DPOS 2.0 only the length does.
    pub(super) fn decides_between_chains(&self) -> bool {
        self.counting != Counting::Forged
    }

    pub(super) fn follow(&mut self, block: &Block, round: &Round) {
        let (height, forger) = (block.header.height, block.header.generator);
        if round.position.first == height || self.implied.is_empty() {
            self.begin_round(round);
        }
        let before = self.confirmed_before(block);
        self.forged.insert(forger, height);
        if self.counting == Counting::Forged {
            let latest = |key| self.forged.get(&key).copied().unwrap_or(Height::GENESIS);
            return self.take_irreversible(round.members.iter().map(|member| latest(member.public_key)).collect());
        }
        if let Some(implied) = self.implied.get_mut(&forger) {
            *implied = self.proposed;
        }
        self.take_confirmations(height, before + 1, 2 * round.members.len() as u32 / 3 + 1);
        self.take_irreversible(self.implied.values().copied().collect());
    }

    /// Raises the irreversible height to the one that two thirds of `heights` reach. There is one height for each delegate.
    fn take_irreversible(&mut self, mut heights: Vec<Height>) {
        heights.sort_unstable();
        if let Some(least) = heights.len().checked_sub(1) {
            self.irreversible = self.irreversible.max(heights[least / 3]);
        }
    }

    /// As [`Finality::confirmed_twice`](super::Finality::confirmed_twice).
    pub(super) fn confirmed_twice(&self, block: &Block, round: &Round) -> Option<(Height, Height)> {
        let (height, forger) = (block.header.height, block.header.generator);
        let begins = round.position.first == height || self.implied.is_empty();
        let is_new = begins && !self.implied.contains_key(&forger);
        let own = self.forged.get(&forger).copied().filter(|_| !is_new).unwrap_or(self.irreversible);
        let lowest = Height(height.0 - self.confirmed_before(block));
        (self.counting == Counting::Overlong && lowest <= own && lowest < height).then_some((lowest, own))
    }

    fn begin_round(&mut self, round: &Round) {
        if self.counting == Counting::Overlong {
            let new = round.members.iter().filter(|member| !self.implied.contains_key(&member.public_key));
            self.forged.extend(new.map(|member| (member.public_key, self.irreversible)));
        }
        let of = |key: PublicKey| (key, self.implied.get(&key).copied().unwrap_or(self.irreversible));
        self.implied = round.members.iter().map(|member| of(member.public_key)).collect();
    }

    /// The number of blocks below itself that a block confirms. A block that would confirm blocks again, up to its forger's last one on
    /// this chain, confirms only those above: EOS rejects such a block.
    fn confirmed_before(&self, block: &Block) -> u32 {
        let own = self.forged.get(&block.header.generator).copied().unwrap_or(Height::GENESIS);
        if block.header.forged_before < Height::GENESIS {
            return 0;
        }
        if self.counting == Counting::Overlong {
            return u32::from((block.header.height.0 - 1).saturating_sub(block.header.forged_before.0) as u16);
        }
        let from = block.header.forged_before.max(own).max(self.irreversible);
        (block.header.height.0 - 1).saturating_sub(from.0)
    }

    fn take_confirmations(&mut self, height: Height, blocks: u32, wanted: u32) {
        if self.wanted.len() == COUNTED {
            self.wanted.remove(0);
        }
        self.wanted.push(wanted);
        let newest = self.wanted.len() - 1;
        for (back, left) in self.wanted.iter_mut().rev().take(blocks as usize).enumerate() {
            *left -= 1;
            if *left == 0 {
                self.proposed = Height(height.0 - back as u32);
                self.wanted.drain(..=newest - back);
                return;
            }
        }
    }
}

saved!(enum Counting { 0 Confirmed, 1 Forged, 2 Overlong });
saved!(struct LastIrreversible { counting, wanted, proposed, implied, forged, irreversible });
shared!(LastIrreversible);
