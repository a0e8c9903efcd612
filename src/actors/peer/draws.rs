//! The random numbers of a peer.

use crate::{
    actors::{Choices, SimTime},
    ledger::{
        BlockTree,
        codec::{LoadError, Loader, Save, Saver},
    },
    protocol::Slot,
};
use rand::seq::index::{self, IndexVec};
use rand_xoshiro::SplitMix64;

/// The random decisions of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The peers to which it relays a block.
    Block,
    /// The peers to which it relays transactions.
    Transactions,
    /// The peer to download from.
    Download,
    /// Whether missed slots are worth a health check.
    Health,
    /// The number of blocks to roll back.
    Rollback,
    /// When to look for peers, and which of those found to take.
    Discovery,
}

/// The number of kinds of decisions.
const KINDS: usize = About::Discovery as usize + 1;

/// The random numbers of all decisions of a peer. A decision is named by its slot, its kind, and its number among those of that
/// kind in the slot.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    choices: Choices,
    slot: Slot,
    decided: [u32; KINDS],
}

impl Decisions {
    pub(super) fn new(choices: Choices) -> Self {
        Self { choices, slot: Slot(0), decided: [0; KINDS] }
    }

    /// The numbers of a decision that begins now.
    #[inline]
    pub(super) fn about(&mut self, tree: &BlockTree, now: SimTime, what: About) -> SplitMix64 {
        self.next(tree.slots().slot(now.seconds()), what)
    }

    /// Draws `count` different places below `length`, by a decision that begins now.
    pub(super) fn sample(
        &mut self,
        tree: &BlockTree,
        now: SimTime,
        what: About,
        length: usize,
        count: usize,
    ) -> IndexVec {
        index::sample(&mut self.about(tree, now, what), length, count)
    }

    /// The numbers of the next decision of a kind. If the clock was set back, the latest slot continues.
    #[inline]
    fn next(&mut self, slot: Slot, what: About) -> SplitMix64 {
        if self.slot < slot {
            (self.slot, self.decided) = (slot, [0; KINDS]);
        }
        let number = &mut self.decided[what as usize];
        let numbers = self.choices.at(&[self.slot.0.into(), what as u64, (*number).into()]);
        *number += 1;
        numbers
    }
}

impl Save for Decisions {
    fn save(&self, out: &mut Saver) {
        let Self { choices, slot, decided } = self;
        choices.save(out);
        if out.ahead_of().is_none() {
            slot.save(out);
            decided.iter().for_each(|number| number.save(out));
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let mut decisions = Self { choices: Save::load(from)?, slot: Save::load(from)?, decided: [0; KINDS] };
        for number in &mut decisions.decided {
            *number = Save::load(from)?;
        }
        Ok(decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngCore;

    #[test]
    fn a_decision_has_its_numbers_whatever_was_decided_before_and_none_twice() {
        let drawn = |names: &[(u32, About)]| -> Vec<u64> {
            let mut decisions = Decisions::new(Choices::new(7));
            names.iter().map(|(slot, what)| decisions.next(Slot(*slot), *what).next_u64()).collect()
        };
        use About::{Block, Download, Transactions};
        let all = drawn(&[(10, Block), (10, Download), (10, Block), (11, Block), (12, Transactions)]);
        assert_eq!(drawn(&[(10, Block), (10, Block)]), [all[0], all[2]]);
        assert_eq!(drawn(&[(11, Block)]), [all[3]]);
        // The clock is set back from slot 12 to slot 10: what was decided there is not decided again.
        let back = drawn(&[(10, Block), (12, Block), (10, Block), (11, Block), (13, Block)]);
        let different: std::collections::BTreeSet<&u64> = back.iter().chain(&all[1..]).collect();
        assert_eq!(different.len(), 9, "{back:?} {all:?}");
    }
}
