//! What a node's conduct should be, and what should happen sometimes.

use super::sights::SIGHTS;

/// Something that an honest node does always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conduct {
    /// Short and unique, as in reports.
    pub name: &'static str,
    /// Where it is stated, or where it is stated that the reference breaks it.
    pub source: &'static str,
}

/// Declares the rules of conduct, so that the list of all is whole.
macro_rules! conduct {
    ($($(#[$doc:meta])* $constant:ident: $name:literal, $source:literal;)*) => {
        $($(#[$doc])* pub const $constant: Conduct = Conduct { name: $name, source: $source };)*

        /// All rules of conduct.
        pub const CONDUCT: &[Conduct] = &[$($constant),*];
    };
}

conduct! {
    /// A node's chain only grows at its tip and shrinks by rollbacks.
    CHAIN: "a node's chain grows block by block", "consensus.md 3.1";
    /// Two nodes on one block have one state.
    AGREEMENT: "one block, one state", "consensus.md 7.1 I14";
    /// No transaction stands twice on a chain.
    ONCE: "no transaction stands twice on a chain", "consensus.md 7.1 I12";
    /// An honest delegate makes one block in a slot.
    ONE_A_SLOT: "a delegate makes one block in a slot", "consensus.md 7.1 I5";
    /// A round has as many delegates as its milestone says, or the chain ends with the round before.
    ENOUGH: "resignations leave enough delegates for the next milestone", "consensus.md 1.2, 4.5 type 7";
    /// What an honest delegate makes, its own relay takes.
    RELAY: "a forger's own relay takes its block", "consensus.md 2.4, 8 Q18";
    /// The same, where resignations are miscounted.
    RELAY_RESIGNATION: "a forger counts pending resignations", "consensus.md 8 Q2";
    /// The same, where a registered hash is overlooked.
    RELAY_IPFS: "a forger sees registered hashes", "consensus.md 8 Q3";
    /// A rollback ends where the node's chain and that of most others part.
    COMMON: "a rollback ends at the common block", "consensus.md 3.5, 8 Q17";
    /// A rollback is no deeper than a round.
    SHALLOW: "a rollback is no deeper than a round", "consensus.md 3.5, 7.2";
    /// A pool gives up nothing that could still be forged.
    KEPT: "a pool keeps what can still be forged", "consensus.md 8 Q4";
    /// A rollback gives up nothing that could still be forged.
    KEPT_IN_ROLLBACK: "a rollback keeps what is pending", "consensus.md 5.7";
    /// What a rollback takes off the chain is pending again, where it could be forged again.
    RETURNED: "what a rollback takes off the chain is pending again", "consensus.md 5.7";
    /// Of each sender a pool holds the next nonces without a gap.
    POOL_NONCES: "pending nonces follow the chain's without a gap", "consensus.md 7.1 I13";
    /// A pool holds no more than it may.
    POOL_SIZE: "a pool holds no more than its limit", "consensus.md 5.7, 7.1 I13";
    /// A pool holds nothing that its chain holds.
    POOL_FORGED: "a pool holds nothing that is on its chain", "consensus.md 7.1 I13";
    /// One pending transaction of a kind for a sender, where the pool allows one.
    POOL_ONE_OF_A_KIND: "a pool holds one vote or registration of a sender", "consensus.md 5.2, 8 Q15";
    /// A block of a slot that has not begun is taken by nobody whose clock is right.
    EARLY: "no block is taken before its slot", "consensus.md 3.1, 3.4";
    /// A transaction that is refused displaces nobody.
    DISPLACED: "a refused transaction displaces nobody", "consensus.md 5.4";
    /// After all faults are over, all nodes come to one chain.
    CONVERGED: "all nodes come to one chain once all faults are over", "consensus.md 3.5, 7.2";
    /// After all faults are over, the chain grows.
    PROGRESS: "the chain grows once all faults are over", "consensus.md 7.2";
}

/// Two blocks on one parent.
pub const FORK: &str = "a fork";
/// Two blocks of one slot.
pub const DOUBLE: &str = "two blocks in one slot";
/// A slot without a block.
pub const MISSED: &str = "a missed slot";
/// A round with another member than the one before.
pub const NEW_MEMBER: &str = "a vote swing at a boundary";
/// A node that left its chain.
pub const ROLLBACK: &str = "a rollback";
/// A block refused by a node.
pub const REFUSED: &str = "a refused block";
/// A delegate without peers or quorum.
pub const SUSPENDED: &str = "forging suspended";
/// A health check.
pub const HEALTH: &str = "a health check";
/// A pool that had to refuse or to give something up.
pub const FULL: &str = "a full pool";

/// What runs show beside [`SIGHTS`].
const EVENTS: [&str; 9] = [FORK, DOUBLE, MISSED, NEW_MEMBER, ROLLBACK, REFUSED, SUSPENDED, HEALTH, FULL];

/// What should be seen in a search of some size, or it did not look where faults are.
pub const INTERESTING: [&str; EVENTS.len() + SIGHTS.len()] = {
    let mut all = [""; EVENTS.len() + SIGHTS.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < EVENTS.len() { EVENTS[place] } else { SIGHTS[place - EVENTS.len()] };
        place += 1;
    }
    all
};
