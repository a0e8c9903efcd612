//! EOS's last irreversible block, in two steps.
//!
//! 1. A block confirms itself and so many before it: those since its forger's last block on any chain, none that is irreversible. A
//!    forger's first block confirms none before it.
//! 2. A block wants ⌊2n/3⌋ + 1 confirmations. A new block takes one from itself and from each that it confirms, newest first. The
//!    first that wants none any more is proposed to be irreversible. It and all older ones are no longer counted.
//! 3. Of each delegate that proposal counts which stood when it forged last: the one of the block before its own.
//! 4. These are sorted, and the one at place ⌊(n − 1)/3⌋ is irreversible. It never falls.
//!
//! A delegate that becomes active counts with what is irreversible then.
//!
//! Source: EOSIO/eos 11d35f0f93, `block_header_state`.

use crate::{
    ledger::{
        round::Round,
        saved::{saved, shared},
    },
    protocol::{Block, Height, PublicKey},
};
use std::collections::BTreeMap;

/// Blocks that are counted at most.
const COUNTED: usize = 1_024;

/// What is known after a block.
#[derive(Clone, Debug)]
pub struct LastIrreversible {
    /// The confirmations that each of the newest blocks still wants, ascending by height up to the block's.
    wanted: Vec<u32>,
    proposed: Height,
    /// What each active delegate implies to be irreversible.
    implied: BTreeMap<PublicKey, Height>,
    /// The last block of each delegate on this chain.
    forged: BTreeMap<PublicKey, Height>,
    irreversible: Height,
}

impl Default for LastIrreversible {
    fn default() -> Self {
        Self {
            wanted: Vec::new(),
            proposed: Height::GENESIS,
            implied: BTreeMap::new(),
            forged: BTreeMap::new(),
            irreversible: Height::GENESIS,
        }
    }
}

impl LastIrreversible {
    /// The height of the last final block.
    pub fn height(&self) -> Height {
        self.irreversible
    }

    pub(super) fn follow(&mut self, block: &Block, round: &Round) {
        let (height, forger) = (block.header.height, block.header.generator);
        if round.position.first == height || self.implied.is_empty() {
            self.begin_round(round);
        }
        let before = self.confirmed_before(block);
        self.forged.insert(forger, height);
        if let Some(implied) = self.implied.get_mut(&forger) {
            *implied = self.proposed;
        }
        self.take_confirmations(height, before + 1, 2 * round.members.len() as u32 / 3 + 1);
        let mut implied: Vec<Height> = self.implied.values().copied().collect();
        implied.sort_unstable();
        if let Some(least) = implied.len().checked_sub(1) {
            self.irreversible = self.irreversible.max(implied[least / 3]);
        }
    }

    fn begin_round(&mut self, round: &Round) {
        let of = |key: PublicKey| (key, self.implied.get(&key).copied().unwrap_or(self.irreversible));
        self.implied = round.members.iter().map(|member| of(member.public_key)).collect();
    }

    /// How many blocks below itself a block confirms. One that would confirm what its forger has on this chain already confirms
    /// what is above that only: EOS refuses it.
    fn confirmed_before(&self, block: &Block) -> u32 {
        let own = self.forged.get(&block.header.generator).copied().unwrap_or(Height::GENESIS);
        if block.header.forged_before < Height::GENESIS {
            return 0;
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

saved!(struct LastIrreversible { wanted, proposed, implied, forged, irreversible });
shared!(LastIrreversible);
