//! The longest chain of what is shown, its empty slots, the forks beside it, and slots for which one delegate made several blocks.
//!
//! A block that breaks a rule may be the work of anyone. So it has no part in this.

use super::judge::named;
use crate::{
    ledger::{BlockTree, round::Round},
    protocol::{BlockHeader, BlockId, Height, PublicKey, Slot},
};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A block that is shown, and what is known of it.
pub(super) struct ShownBlock<'a> {
    /// The id that its header gives, where there is one; else as it is shown.
    pub id: BlockId,
    /// As it is shown: the block above may name this one.
    pub said: BlockId,
    pub header: &'a BlockHeader,
    /// The round that it is in, if that is known.
    pub round: Option<&'a Arc<Round>>,
    pub is_applied: bool,
    pub is_broken: bool,
}

impl ShownBlock<'_> {
    fn is_sound(&self) -> bool {
        self.is_applied || !self.is_broken
    }
}

/// Empty slots between two blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotGap {
    /// Height of the block after them.
    pub height: Height,
    pub from: Slot,
    pub slots: u32,
    /// The number of these slots, from the first on, that `missed` is about: at most those of a round.
    pub looked_at: u32,
    /// The owners of the slots one by one. Under a lottery a slot has none, one or several.
    pub missed: Vec<MissedSlot>,
    /// The next forger, and its slot.
    pub next: String,
    pub next_slot: Slot,
}

impl SlotGap {
    /// Returns true if the owners of the slots are known.
    pub fn is_known(&self) -> bool {
        self.missed.iter().all(|one| one.delegate.is_some())
    }
}

/// An empty slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissedSlot {
    pub slot: Slot,
    /// The owner of the slot; `None` where the delegates of the round are not known.
    pub delegate: Option<String>,
    /// The block of this slot on another branch, if one is shown.
    pub block_elsewhere: Option<String>,
}

/// Several blocks on one parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// Height of the first blocks of the branches.
    pub height: Height,
    pub parent: String,
    /// The one of the longest chain comes first.
    pub branches: Vec<Branch>,
    /// The cause of the fork, as far as the blocks show it.
    pub why: String,
}

/// A branch of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Its first block.
    pub id: String,
    pub delegate: String,
    pub slot: Slot,
    /// Height of its highest block.
    pub to: Height,
    pub is_longest: bool,
}

/// Several blocks of one delegate for one slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Double {
    pub slot: Slot,
    pub delegate: String,
    pub blocks: Vec<String>,
}

/// The gaps of the longest chain, and all forks and doubles.
pub(super) struct Story {
    pub told_to: Option<Height>,
    pub gaps: Vec<SlotGap>,
    pub forks: Vec<Fork>,
    pub doubles: Vec<Double>,
}

impl Story {
    pub(super) fn of(tree: &BlockTree, shown: &[ShownBlock<'_>], names: &BTreeMap<PublicKey, String>) -> Self {
        let slots = tree.slots();
        let slot = |header: &BlockHeader| slots.slot(header.timestamp);
        let mut index: Index<'_, '_> = BTreeMap::new();
        let sound = || shown.iter().filter(|one| one.is_sound());
        for (id, one) in sound().map(|one| (one.id, one)).chain(sound().map(|one| (one.said, one))) {
            index.entry(id).or_insert(one);
        }
        // A block that is shown again counts once.
        let blocks: Vec<&ShownBlock<'_>> =
            sound().filter(|one| index.get(&one.id).is_some_and(|first| std::ptr::eq(*first, *one))).collect();
        let mut children: BTreeMap<BlockId, Vec<&ShownBlock<'_>>> = BTreeMap::new();
        for one in blocks.iter().filter(|one| one.header.height > Height::GENESIS) {
            let previous = one.header.previous.unwrap_or(one.id);
            children.entry(index.get(&previous).map_or(previous, |parent| parent.id)).or_default().push(one);
        }
        let longest = longest(&blocks, &index);
        let tops = tops(&blocks, &index);
        let on_longest: BTreeSet<BlockId> = longest.iter().map(|one| one.id).collect();
        let mut of_slot: BTreeMap<(Slot, PublicKey), Vec<BlockId>> = BTreeMap::new();
        for one in blocks.iter().filter(|one| one.header.height > Height::GENESIS) {
            of_slot.entry((slot(one.header), one.header.generator)).or_default().push(one.id);
        }

        let mut gaps = Vec::new();
        for pair in longest.windows(2) {
            let (before, after) = (slot(pair[0].header), slot(pair[1].header));
            let (empty, is_first) = (after.0.saturating_sub(before.0 + 1), pair[0].header.height == Height::GENESIS);
            if empty == 0 || is_first {
                continue;
            }
            let position = tree.schedule().at(pair[1].header.height);
            // A slot has one owner, or under a lottery none or several.
            let missed = |slot: Slot| -> Vec<MissedSlot> {
                let of = |owner: Option<PublicKey>| MissedSlot {
                    slot,
                    delegate: owner.map(|owner| named(names, &owner)),
                    block_elsewhere: owner
                        .and_then(|owner| of_slot.get(&(slot, owner))?.first())
                        .map(ToString::to_string),
                };
                match pair[1].round {
                    None => vec![of(None)],
                    Some(round) => {
                        round.owners(slot).iter().map(|place| of(Some(round.members[*place].public_key))).collect()
                    }
                }
            };
            gaps.push(SlotGap {
                height: pair[1].header.height,
                from: Slot(before.0 + 1),
                slots: empty,
                looked_at: empty.min(position.blocks()),
                missed: (1..=empty.min(position.blocks())).flat_map(|step| missed(Slot(before.0 + step))).collect(),
                next: named(names, &pair[1].header.generator),
                next_slot: after,
            });
        }

        let mut forks = Vec::new();
        for (parent, mut firsts) in children {
            if firsts.len() < 2 {
                continue;
            }
            firsts.sort_by_key(|one| (!on_longest.contains(&one.id), slot(one.header), one.id));
            let branch = |one: &&ShownBlock<'_>| Branch {
                id: one.id.to_string(),
                delegate: named(names, &one.header.generator),
                slot: slot(one.header),
                to: tops[&one.id],
                is_longest: on_longest.contains(&one.id),
            };
            let branches: Vec<Branch> = firsts.iter().map(branch).collect();
            forks.push(Fork {
                height: firsts[0].header.height,
                parent: parent.to_string(),
                why: why(&branches),
                branches,
            });
        }
        forks.sort_by_key(|fork| fork.height);

        let several = of_slot.into_iter().filter(|(_, blocks)| blocks.len() > 1);
        let doubles = several.map(|((slot, key), blocks)| Double {
            slot,
            delegate: named(names, &key),
            blocks: blocks.iter().map(ToString::to_string).collect(),
        });
        Self { told_to: longest.last().map(|one| one.header.height), doubles: doubles.collect(), gaps, forks }
    }
}

/// Blocks by the ids by which others may name them.
type Index<'s, 'a> = BTreeMap<BlockId, &'s ShownBlock<'a>>;

/// Returns the chain with the highest applied block and the most blocks above it. If no block was applied, it is the chain with the
/// most blocks. Ties go to the chain with the earliest tip.
fn longest<'s, 'a>(blocks: &[&'s ShownBlock<'a>], index: &Index<'s, 'a>) -> Vec<&'s ShownBlock<'a>> {
    let mut lengths: BTreeMap<BlockId, u32> = BTreeMap::new();
    // They are in the order of their heights.
    for one in blocks {
        let below = parent(one, index).and_then(|parent| lengths.get(&parent.id)).copied().unwrap_or_default();
        lengths.insert(one.id, below + 1);
    }
    let rank =
        |one: &ShownBlock<'_>| (lengths[&one.id], one.header.height, Reverse(one.header.timestamp), Reverse(one.id));
    let best = blocks.iter().max_by_key(|one| (one.is_applied, rank(one)));
    let mut above: BTreeSet<BlockId> = best.iter().map(|one| one.id).collect();
    for one in blocks {
        if parent(one, index).is_some_and(|parent| above.contains(&parent.id)) {
            above.insert(one.id);
        }
    }
    let highest = blocks.iter().filter(|one| above.contains(&one.id)).max_by_key(|one| rank(one)).copied();
    let mut chain: Vec<&ShownBlock<'_>> = std::iter::successors(highest, |one| parent(one, index)).collect();
    chain.reverse();
    chain
}

/// The block before one. Heights fall, so there is no circle.
fn parent<'s, 'a>(one: &ShownBlock<'_>, index: &Index<'s, 'a>) -> Option<&'s ShownBlock<'a>> {
    let before = one.header.previous.and_then(|previous| index.get(&previous).copied());
    before.filter(|before| before.header.height < one.header.height)
}

/// The height of the highest block above each, itself included.
fn tops(blocks: &[&ShownBlock<'_>], index: &Index<'_, '_>) -> BTreeMap<BlockId, Height> {
    let mut tops: BTreeMap<BlockId, Height> = blocks.iter().map(|one| (one.id, one.header.height)).collect();
    for one in blocks.iter().rev() {
        let top = tops[&one.id];
        if let Some(below) = parent(one, index).and_then(|parent| tops.get_mut(&parent.id)) {
            *below = top.max(*below);
        }
    }
    tops
}

fn why(branches: &[Branch]) -> String {
    let (first, other) = (&branches[0], &branches[1]);
    match (first.slot == other.slot, first.delegate == other.delegate) {
        (true, true) => format!("{} made {} blocks for slot {}", first.delegate, branches.len(), first.slot),
        (true, false) => format!("{} and {} both forged in slot {}", first.delegate, other.delegate, first.slot),
        (false, _) => {
            let (early, late) = if first.slot < other.slot { (first, other) } else { (other, first) };
            format!(
                "{} forged in slot {} without the block of slot {}, which {} had made",
                late.delegate, late.slot, early.slot, early.delegate
            )
        }
    }
}
