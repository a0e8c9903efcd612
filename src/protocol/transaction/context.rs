//! The network and the height for which a transaction is read.

use super::TransactionId;
use crate::protocol::{Milestone, network::Exceptions};
use std::collections::BTreeSet;

/// The network and the height for which a transaction is read. Cheap to copy: references only.
#[derive(Clone, Copy, Debug)]
pub struct TransactionContext<'a> {
    /// The network's address byte.
    pub network: u8,
    /// The milestone at the height of the **last applied block** (protocol.md 3.1), also inside the next block.
    pub milestone: &'a Milestone,
    /// Transactions that may carry no fee.
    pub genesis_ids: &'a BTreeSet<TransactionId>,
    /// The transactions that are valid although they break a rule.
    pub exceptions: &'a Exceptions,
    /// The strictness of reading.
    pub dialect: Dialect,
}

/// The strictness towards bytes and texts that the reference accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Refuses every wire form but the one that encoding gives. A node uses this one.
    #[default]
    Strict,
    /// Strict, but any version is allowed at any height: for blocks already stored (protocol.md 3.1).
    Stored,
    /// As lax as the reference where protocol.md 3.7 and 3.8 say so; the bytes kept are the re-encoded ones.
    Reference,
}

impl<'a> TransactionContext<'a> {
    /// A strict context without exceptions.
    pub fn new(network: u8, milestone: &'a Milestone, genesis_ids: &'a BTreeSet<TransactionId>) -> Self {
        Self { network, milestone, genesis_ids, exceptions: Exceptions::none(), dialect: Dialect::Strict }
    }

    /// Returns the context with these exceptions.
    pub fn with_exceptions(self, exceptions: &'a Exceptions) -> Self {
        Self { exceptions, ..self }
    }

    /// Returns the context with this strictness.
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Returns true if a version is in force (protocol.md 3.1).
    pub(super) fn supports(&self, version: u8) -> bool {
        match self.dialect {
            Dialect::Stored => version == 1 || version == 2,
            Dialect::Strict | Dialect::Reference => version == if self.milestone.aip11 { 2 } else { 1 },
        }
    }

    /// Returns true if a kind is in force. A transaction of another kind can be read, but is not verified (protocol.md 3.1).
    pub(super) fn permits(&self, kind: super::Kind) -> bool {
        let (group, number) = kind.numbers();
        match (group, number) {
            (1, 4..=7) => self.milestone.aip11,
            (1, 8..) => self.milestone.aip11 && self.milestone.htlc_enabled,
            _ => true,
        }
    }
}
