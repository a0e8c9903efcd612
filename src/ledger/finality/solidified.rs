//! Tron's solidified block.
//!
//! 1. Each delegate of the round contributes the height of its latest block, or 1 while it has none.
//! 2. The heights are sorted, and the one at place ⌊3n/10⌋ is solidified: seven tenths of the delegates have forged at or above it.
//! 3. It never falls when delegates come and go.
//!
//! Source: java-tron 1e35f79a16, the solidified threshold of 70 %.

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
pub struct Solidified {
    /// The latest block of each delegate that has one.
    latest: BTreeMap<PublicKey, Height>,
    solidified: Height,
}

impl Default for Solidified {
    fn default() -> Self {
        Self { latest: BTreeMap::new(), solidified: Height::GENESIS }
    }
}

impl Solidified {
    /// The height of the last final block.
    pub fn height(&self) -> Height {
        self.solidified
    }

    pub(super) fn follow(&mut self, block: &Block, round: &Round) {
        self.latest.insert(block.header.generator, block.header.height);
        let latest = |key| self.latest.get(key).copied().unwrap_or(Height::GENESIS);
        let mut heights: Vec<Height> = round.members.iter().map(|member| latest(&member.public_key)).collect();
        heights.sort_unstable();
        let solidified = heights.get(heights.len() * 3 / 10).copied().unwrap_or(Height::GENESIS);
        self.solidified = self.solidified.max(solidified);
    }
}

saved!(struct Solidified { latest, solidified });
shared!(Solidified);
