//! The meaning of a chain: wallets, vote weights, rounds, and the one way in which a block changes them.
//!
//! State is a function of the block: [`BlockTree::extend`] computes it once per process, however many simulated nodes
//! apply the block, and every node's chain is a pointer ([`Link`]) into the tree. Other modules decide which node sends a block
//! and when (`actors`, `sim`). Nothing under `ledger` knows a network, a time of day or a node. Source: consensus.md
//! 1 and 4.

pub mod apply;
pub(crate) mod balance;
pub(crate) mod base;
pub mod codec;
pub(crate) mod election;
pub mod finality;
pub mod import;
pub mod round;
pub mod rules;
pub(crate) mod scratch;
pub mod settled_chain;
pub mod state;
pub(crate) mod tree;
pub(crate) mod votes;
pub(crate) mod wallet;
mod wallets;

pub use apply::ApplyError;
pub use balance::Balance;
pub use round::{Round, RoundSchedule};
pub use rules::Rules;
pub use scratch::Scratch;
pub use state::{Applied, BlockRejected, State};
pub use tree::{BlockTree, Link};
pub use wallet::{Attributes, DelegateAttributes, Wallet};
