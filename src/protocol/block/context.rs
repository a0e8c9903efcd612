//! The network for which a block is read and verified.

use crate::protocol::{
    Height, Milestone, Milestones, TransactionId,
    crypto::CryptoMode,
    network::Exceptions,
    transaction::{Dialect, TransactionContext},
};
use std::collections::BTreeSet;

/// The network for which a block is read and verified. Cheap to copy: references only.
#[derive(Clone, Copy, Debug)]
pub struct BlockContext<'a> {
    /// The network's address byte.
    pub network: u8,
    pub milestones: &'a Milestones,
    /// Transactions that may carry no fee.
    pub genesis_ids: &'a BTreeSet<TransactionId>,
    pub exceptions: &'a Exceptions,
    pub dialect: Dialect,
    /// The treatment of signatures.
    pub crypto: CryptoMode,
}

impl<'a> BlockContext<'a> {
    /// A strict context without exceptions.
    pub fn new(
        network: u8,
        milestones: &'a Milestones,
        genesis_ids: &'a BTreeSet<TransactionId>,
        crypto: CryptoMode,
    ) -> Self {
        Self { network, milestones, genesis_ids, exceptions: Exceptions::none(), dialect: Dialect::Strict, crypto }
    }

    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// The context in which to read the transactions of a block of this height, which follows its predecessor.
    pub fn transactions_of(&self, block: Height) -> TransactionContext<'a> {
        TransactionContext {
            network: self.network,
            milestone: before(self.milestones, block),
            genesis_ids: self.genesis_ids,
            exceptions: self.exceptions,
            dialect: self.dialect,
        }
    }
}

/// The milestone at the height before a block; for the first block its own.
pub(super) fn before(milestones: &Milestones, block: Height) -> &Milestone {
    milestones.at(Height(block.0.saturating_sub(1)))
}
