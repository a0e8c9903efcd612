//! Random simulations, transactions and chains for property tests: arbitrary attempts, as values that shrink.
//!
//! ```text
//!   simulations  a network, faults and behaviours                        strategies/scenario.rs
//!   Attempt  a transaction of any of the 17 types, valid or not          strategies/attempt.rs
//!   Stage    a block: slots left empty, blocks to go back before, attempts
//!   Play     a small network on which stages are played, fork by fork    strategies/play.rs
//! ```
//!
//! Indexes wrap around, so every value has a meaning. The chain decides whether an attempt is allowed.

mod attempt;
mod play;
mod scenario;

pub use attempt::{Attempt, attempt};
pub use play::{Outcome, Play};
pub use scenario::{behaviours, faults, models, networks, simulations};

use proptest::prelude::*;

/// A future block: the events before it, and the attempts to put transactions into it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Slots left empty before the block.
    pub missed: u32,
    /// Blocks to go back before forging; more than 0 is a fork.
    pub back: u32,
    /// The tries, in order.
    pub tries: Vec<Try>,
}

/// An attempt.
#[derive(Clone, Debug)]
pub struct Try {
    /// Number of the sender, see [`Play::SENDERS`].
    pub sender: usize,
    /// The transaction to try.
    pub attempt: Attempt,
    /// A flaw that the transaction is given, if any. It nearly always makes the transaction invalid.
    pub flaw: Option<Flaw>,
}

/// A flaw that a transaction of any type can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A nonce that leaves a gap of one.
    NonceGap,
    /// The nonce of the transaction before.
    NonceAgain,
    /// A second signature by a key that is not the wallet's.
    WrongSecondKey,
    /// A fee above the sender's balance.
    Fee,
}

/// One to `most` stages, most of them on top of each other. One in six goes back up to five blocks, so forks arise, some across the end
/// of a round.
pub fn stages(most: usize) -> impl Strategy<Value = Vec<Stage>> {
    prop::collection::vec(stage(), 1..=most)
}

/// One stage with up to four attempts.
pub fn stage() -> impl Strategy<Value = Stage> {
    let missed = prop_oneof![4 => Just(0u32), 1 => 1..8u32];
    let back = prop_oneof![5 => Just(0u32), 1 => 1..6u32];
    let flaw = prop_oneof![
        12 => Just(None),
        1 => Just(Some(Flaw::NonceGap)),
        1 => Just(Some(Flaw::NonceAgain)),
        1 => Just(Some(Flaw::WrongSecondKey)),
        1 => Just(Some(Flaw::Fee)),
    ];
    let one = (0..Play::SENDERS, attempt(), flaw).prop_map(|(sender, attempt, flaw)| {
        // Two senders do all the business, or hardly anybody would have one to update or to close.
        let sender = if attempt.is_business() { sender % 2 } else { sender };
        Try { sender, attempt, flaw }
    });
    (missed, back, prop::collection::vec(one, 0..5)).prop_map(|(missed, back, tries)| Stage { missed, back, tries })
}
