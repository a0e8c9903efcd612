//! The meaning of bytes: keys, amounts, transactions, blocks, milestones and slots as pure values.
//!
//! Owns every byte layout, hash and signature rule of the chain family (spec: protocol.md). Other modules decide what a
//! value means for a balance or a vote (`ledger`), which node sends it (`actors`) and when (`sim`). Nothing under `protocol`
//! reads a clock, keeps state or draws an unseeded random number, and bytes from outside never cause a panic.

pub(crate) mod block;
pub(crate) mod coercion;
pub mod crypto;
pub mod genesis;
pub(crate) mod hashing;
pub mod keys;
pub mod milestones;
pub mod network;
pub(crate) mod numbers;
pub mod shuffle;
pub mod slots;
pub mod transaction;

pub use block::{Block, BlockContext, BlockDraft, BlockError, BlockExcerpt, BlockHeader, BlockId};
pub use keys::{Address, KeyPair, PrivateKey, PublicKey};
pub use milestones::{Milestone, Milestones};
pub use network::{Network, NetworkConfig};
pub use numbers::{Arktoshi, Height, Nonce, RoundNumber, Slot, Timestamp};
pub use slots::Slots;
pub use transaction::{Asset, Kind, SignedTransaction, Transaction, TransactionContext, TransactionId, Vote};
