//! The checks of a block. Source: protocol.md 4.3.

use super::{Block, BlockContext, bytes::payload_hash};
use crate::protocol::{
    Arktoshi, Height, Milestone, SignedTransaction, Slot, Timestamp, TransactionId,
    crypto::{
        CryptoMode,
        ecdsa::{self, DerError},
    },
    slots::Slots,
    transaction::Version,
};
use std::{collections::BTreeSet, sync::Arc};

/// An error of a block; `Display` is the reference's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error("Invalid previous block")]
    PreviousBlock,
    #[error("Invalid block reward: {found} expected: {expected}")]
    Reward { found: Arktoshi, expected: Arktoshi },
    #[error("Failed to verify block signature")]
    Signature,
    /// Unreadable, which ends the list.
    #[error("{0}")]
    SignatureEncoding(#[from] DerError),
    #[error("Invalid block version")]
    Version { found: u32, expected: u32 },
    #[error("Invalid block timestamp")]
    Timestamp { slot: Slot, now: Slot },
    #[error("Payload is too large: {found} > {limit}")]
    PayloadSize { found: usize, limit: usize },
    /// Followed by one [`BlockError::NotVerified`] each.
    #[error("One or more transactions are not verified:")]
    TransactionsNotVerified {
        /// Some of them carry `signatures`, so the sender's wallet may yet vouch for them.
        contains_multi_signatures: bool,
    },
    /// The message is the wire bytes in hex.
    #[error("=> {}", hex::encode(.0.bytes()))]
    NotVerified(Arc<SignedTransaction>),
    #[error("Invalid number of transactions")]
    NumberOfTransactions { found: usize, said: u32 },
    #[error("Transactions length is too high")]
    TooManyTransactions { found: usize, limit: usize },
    #[error("Encountered duplicate transaction: {0}")]
    Duplicate(TransactionId),
    #[error("Encountered expired transaction: {0}")]
    Expired(TransactionId),
    #[error("Encountered future transaction: {0}")]
    Future(TransactionId),
    #[error("Invalid total amount")]
    TotalAmount { found: u128, said: Arktoshi },
    #[error("Invalid total fee")]
    TotalFee { found: u128, said: Arktoshi },
    #[error("Invalid payload hash")]
    PayloadHash,
}

/// The longest time by which a version 1 transaction may be ahead of its block, in addition to one slot \[s\].
const FUTURE_SECONDS: i64 = 3600;
/// The longest time by which it may be behind \[s\].
const PAST_SECONDS: i64 = 21_600;

impl Block {
    /// Returns all errors of the block at a time. A listed exception has none.
    pub fn verify(&self, context: &BlockContext<'_>, slots: &Slots, now: Slot) -> Result<(), Vec<BlockError>> {
        let content = self.check_content(context);
        let mut errors = content.to_vec();
        let ended = matches!(content.last(), Some(BlockError::SignatureEncoding(_)));
        if let Some(error) = self.check_timestamp(slots, now).filter(|_| !ended && !self.is_exception(context)) {
            errors.insert(content.iter().take_while(|error| error.is_before_timestamp()).count(), error);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Returns all errors that do not depend on the time, in the reference's order. Computed once for a block, for the first
    /// network that asks: blocks are shared, and one process verifies a block for one network.
    pub fn check_content(&self, context: &BlockContext<'_>) -> &Arc<[BlockError]> {
        if !context.crypto.remembers() && self.content.get().is_some() {
            let again = self.find_errors(context);
            let same = self.content.get().is_some_and(|first| **first == *again);
            debug_assert!(self.is_exception(context) || same, "it is a pure function");
        }
        let find = || if self.is_exception(context) { Vec::new() } else { self.find_errors(context) };
        self.content.get_or_init(|| find().into())
    }

    /// The error of a block from a slot that has not begun.
    pub fn check_timestamp(&self, slots: &Slots, now: Slot) -> Option<BlockError> {
        let slot = slots.slot(self.header.timestamp);
        (slot > now).then_some(BlockError::Timestamp { slot, now })
    }

    /// The transactions that are not verified by themselves.
    pub fn unverified(&self, crypto: CryptoMode) -> impl Iterator<Item = &Arc<SignedTransaction>> {
        self.transactions.iter().filter(move |transaction| !transaction.verified(crypto))
    }

    fn is_exception(&self, context: &BlockContext<'_>) -> bool {
        context.exceptions.covers_block(self.id, self.transactions.iter().map(|transaction| transaction.id()))
    }

    fn find_errors(&self, context: &BlockContext<'_>) -> Vec<BlockError> {
        let mut errors = Vec::new();
        let milestone = context.milestones.at(self.header.height);
        if let Err(end) = self.check_header(context, milestone, &mut errors) {
            errors.push(end);
            return errors;
        }
        self.check_payload(context, milestone, &mut errors);
        self.check_transactions(milestone, &mut errors);
        self.check_sums(&mut errors);
        errors
    }

    /// An error here ends the list.
    fn check_header(
        &self,
        context: &BlockContext<'_>,
        milestone: &Milestone,
        errors: &mut Vec<BlockError>,
    ) -> Result<(), BlockError> {
        let header = &self.header;
        if header.height != Height::GENESIS && header.previous.is_none() {
            errors.push(BlockError::PreviousBlock);
        }
        if header.reward != milestone.reward {
            errors.push(BlockError::Reward { found: header.reward, expected: milestone.reward });
        }
        let hash = header.hash_for_signature(context.milestones);
        if !ecdsa::check(&hash, &header.signature, &header.generator, context.crypto)? {
            errors.push(BlockError::Signature);
        }
        if header.version != milestone.block.version {
            errors.push(BlockError::Version { found: header.version, expected: milestone.block.version });
        }
        Ok(())
    }

    fn check_payload(&self, context: &BlockContext<'_>, milestone: &Milestone, errors: &mut Vec<BlockError>) {
        let (found, limit) = (self.size(context.milestones), milestone.block.max_payload);
        if found > limit {
            errors.push(BlockError::PayloadSize { found, limit });
        }
        SignedTransaction::verify_all(&self.transactions, context.crypto);
        let unverified: Vec<&Arc<SignedTransaction>> = self.unverified(context.crypto).collect();
        if !unverified.is_empty() {
            let contains_multi_signatures =
                unverified.iter().any(|transaction| !transaction.transaction().signatures.is_empty());
            errors.push(BlockError::TransactionsNotVerified { contains_multi_signatures });
            errors.extend(unverified.into_iter().cloned().map(BlockError::NotVerified));
        }
        let (found, said) = (self.transactions.len(), self.header.number_of_transactions);
        if found != said as usize {
            errors.push(BlockError::NumberOfTransactions { found, said });
        }
        let limit = milestone.block.max_transactions;
        if found > limit && self.header.height > Height::GENESIS {
            errors.push(BlockError::TooManyTransactions { found, limit });
        }
    }

    fn check_transactions(&self, milestone: &Milestone, errors: &mut Vec<BlockError>) {
        let mut seen = BTreeSet::new();
        for transaction in &self.transactions {
            let id = transaction.id();
            if !seen.insert(id) {
                errors.push(BlockError::Duplicate(id));
            }
            let expiration = transaction.transaction().expiration();
            let expired = expiration.is_some_and(|expiration| expiration <= self.header.height.0);
            if expired && !milestone.ignore_expired_transactions {
                errors.push(BlockError::Expired(id));
            }
            if let Version::One(timestamp) = transaction.transaction().version
                && !milestone.block.accept_expired_transaction_timestamps
            {
                errors.extend(self.check_age(id, timestamp, milestone));
            }
        }
    }

    fn check_age(&self, id: TransactionId, timestamp: Timestamp, milestone: &Milestone) -> Option<BlockError> {
        let ahead = i64::from(timestamp.0) - i64::from(self.header.timestamp.0);
        if ahead > FUTURE_SECONDS + i64::from(milestone.blocktime) {
            return Some(BlockError::Future(id));
        }
        (-ahead > PAST_SECONDS).then_some(BlockError::Expired(id))
    }

    fn check_sums(&self, errors: &mut Vec<BlockError>) {
        let sum = |part: fn(&SignedTransaction) -> Arktoshi| -> u128 {
            self.transactions.iter().map(|transaction| u128::from(part(transaction).value())).sum()
        };
        let (amount, fee) = (sum(SignedTransaction::amount), sum(SignedTransaction::fee));
        if amount != u128::from(self.header.total_amount.value()) {
            errors.push(BlockError::TotalAmount { found: amount, said: self.header.total_amount });
        }
        if fee != u128::from(self.header.total_fee.value()) {
            errors.push(BlockError::TotalFee { found: fee, said: self.header.total_fee });
        }
        let ids: Vec<_> = self.transactions.iter().map(|transaction| transaction.id()).collect();
        if payload_hash(&ids) != self.header.payload_hash {
            errors.push(BlockError::PayloadHash);
        }
    }
}

impl BlockError {
    fn is_before_timestamp(&self) -> bool {
        matches!(self, Self::PreviousBlock | Self::Reward { .. } | Self::Signature | Self::Version { .. })
    }
}
