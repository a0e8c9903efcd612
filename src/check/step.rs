//! Rules for the step from one block to the next, judged without the ledger's own code.
//!
//! ```text
//!   state after the parent ──┐
//!   the block ───────────────┼──► header   does the block say what it holds, and is it signed?
//!   state after the block ───┘    turn     is the slot its forger's, is the next round the ranking's?
//!                                 model    may each transaction be there, and is its effect all that changed?
//!                                 figures  what has each delegate forged and missed?
//!                                 votes    are weights the coin of the voters?
//!                                 finality is the last final block what the blocks below say?
//!                                 whole    at a round's end: is every other wallet what it was, is all of it listed?
//! ```
//!
//! A step is judged once for a block, however many nodes apply it. This takes time in proportion to the wallets and not
//! to the height: the invariants of a whole chain ([`super::invariants`]) follow from it block by block. Rules that both
//! modules check are written twice on purpose, so that one mistake cannot hide in both.

mod account;
mod authority;
pub(in crate::check) mod business;
mod figures;
mod finality;
mod header;
mod model;
#[cfg(test)]
mod tests;
mod turn;
mod votes;
mod whole_state;

use super::Violation;
use crate::{
    ledger::{BlockTree, Link, State, Wallet},
    protocol::Block,
};
use std::{fmt::Display, sync::Arc};

/// A block, and the states on both sides of it.
pub(super) struct BlockStep<'a> {
    pub tree: &'a BlockTree,
    pub link: &'a Arc<Link>,
    pub parent: &'a Link,
    pub block: &'a Block,
    pub before: &'a State,
    pub after: &'a State,
    /// The wallets that the block changed, each with its value before the block.
    pub changed: Vec<(&'a Wallet, Option<&'a Wallet>)>,
}

/// An invariant that holds for every step.
pub struct StepInvariant {
    /// Short and unique, as in reports.
    pub name: &'static str,
    /// The section that states it.
    pub source: &'static str,
    check: fn(&BlockStep<'_>) -> Result<(), String>,
}

/// All invariants of a step, in the order in which they are held against a block.
pub const STEP_INVARIANTS: [StepInvariant; 16] = [
    StepInvariant {
        name: "a block says what it holds",
        source: "consensus.md 3.4, protocol.md 4.2",
        check: header::content,
    },
    StepInvariant {
        name: "a block is signed by its generator",
        source: "consensus.md 3.4, protocol.md 4.1",
        check: header::signature,
    },
    StepInvariant { name: "the reward is the milestone's", source: "consensus.md 3.4", check: header::reward },
    StepInvariant {
        name: "a slot has one block, and slots rise",
        source: "consensus.md 7.1 I5",
        check: turn::slots_rise,
    },
    StepInvariant { name: "only the owner of a slot forges it", source: "consensus.md 7.1 I5", check: turn::owner },
    StepInvariant {
        name: "only what the rules allow is forged",
        source: "consensus.md 4.4, 4.5, I3, I12",
        check: model::allowed,
    },
    StepInvariant {
        name: "wallets change as the block says and not otherwise",
        source: "consensus.md 4.2 to 4.5, I1, I3, I4",
        check: model::effects,
    },
    StepInvariant {
        name: "a forger's statistics are those of its blocks",
        source: "consensus.md 1.6, I11",
        check: figures::statistics,
    },
    StepInvariant { name: "supply grows by the reward", source: "consensus.md 7.1 I1", check: header::supply },
    StepInvariant { name: "vote weights are their voters' coin", source: "consensus.md 7.1 I2", check: votes::weights },
    StepInvariant { name: "empty slots count for their owners", source: "consensus.md 1.5", check: turn::missed },
    StepInvariant {
        name: "a round has as many blocks as members",
        source: "consensus.md 1.1, I6",
        check: turn::round_ends,
    },
    StepInvariant {
        name: "the last final block is that of the rule",
        source: "protocols.md finality",
        check: finality::last_final,
    },
    StepInvariant {
        name: "a new round is made of the heaviest delegates",
        source: "consensus.md 1.2, I6, I7, I8",
        check: turn::ranking,
    },
    StepInvariant {
        name: "what a block does not touch stays as it is",
        source: "consensus.md 4.1, 4.2, I14",
        check: whole_state::untouched,
    },
    StepInvariant {
        name: "lists of the state are those of its wallets",
        source: "consensus.md 4.1",
        check: whole_state::indexes,
    },
];

/// Checks every invariant of a step for a block. Genesis always passes.
///
/// The check trusts the parent: within a round it derives vote weights from the parent's. At a round's end, and after
/// genesis, it counts them anew.
///
/// # Errors
/// The first invariant that does not hold.
pub fn check_step(tree: &BlockTree, link: &Arc<Link>, after: &State) -> Result<(), Violation> {
    let Some(parent) = link.parent() else { return Ok(()) };
    let before = tree.applied(&parent);
    let before = &before.state;
    let changed = after.wallets_changed_since(before).into_iter();
    let changed = changed.map(|wallet| (&**wallet, before.wallet(&wallet.address).map(|old| &**old))).collect();
    let step = BlockStep { tree, link, parent: &parent, block: link.block(), before, after, changed };
    for StepInvariant { name, source, check } in &STEP_INVARIANTS {
        check(&step).map_err(|what| Violation {
            invariant: name,
            origin: source,
            block: link.id().to_string(),
            height: link.height(),
            what,
        })?;
    }
    Ok(())
}

impl BlockStep<'_> {
    /// Returns true if the block is the last of its round. It counts by itself, without the ledger's schedule.
    fn ends_round(&self) -> bool {
        let (mut first, mut members) = (1, 0);
        let next = self.block.header.height.0 + 1;
        for milestone in self.tree.config().milestones.all().iter().filter(|one| one.height.0 <= next) {
            if milestone.active_delegates != members {
                (first, members) = (milestone.height.0, milestone.active_delegates);
            }
        }
        (next - first).is_multiple_of(members * self.tree.rules().ledger.slots_a_turn)
    }

    /// The slot of a time.
    fn slot(&self, seconds: u32) -> u32 {
        seconds / self.tree.slots().blocktime()
    }
}

/// `what` is put into words only where the two differ.
fn equal<T: PartialEq + Display>(what: impl Display, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found}, expected {expected}")) }
}
