//! The policy of a pool.

use super::or_off;
use crate::protocol::{Arktoshi, Kind, PublicKey, SignedTransaction, transaction::StaticFees};
use serde::{Deserialize, Serialize};

/// The policy of a pool, and its choice for the forger's block. Source: consensus.md 2.3, 5 and 8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolRules {
    /// The largest number of pending transactions, at least 1.
    pub max_transactions: usize,
    /// The largest number of pending transactions of one sender.
    pub max_transactions_per_sender: usize,
    /// Senders without that limit.
    pub allowed_senders: Vec<PublicKey>,
    /// The largest number of transactions in one request, at least 1.
    pub max_transactions_per_request: usize,
    /// Blocks after which a version-1 transaction expires.
    pub max_transaction_age: u32,
    /// `None`, in a file `false`: the fee must equal the static fee.
    #[serde(with = "or_off")]
    pub dynamic_fees: Option<DynamicFees>,
    /// Q2: the check of a resignation counts only the chain's delegates, so two pending resignations both
    /// pass where one fits, and the forger builds a block that its own relay rejects. Off, the forger counts those
    /// it has chosen already.
    pub resignations_counted_on_chain: bool,
    /// Q3: while the forger chooses, it sees the registered hashes of delegates only, so a pending hash that another
    /// sender has registered meanwhile goes into a block that its own relay refuses. Off, it sees all.
    pub ipfs_hashes_seen_of_delegates: bool,
    /// Q4: transactions of a block that turns out not to apply have left the pool and do not come back. Off, they do.
    pub refused_block_takes_transactions: bool,
    /// Q12: while a refund is pending, any other one is refused with `ERR_UNKNOWN` and the text of a `TypeError`.
    /// Off, only a second refund of the same lock is refused, with `ERR_PENDING`.
    pub refund_rule_reads_wrong_field: bool,
    /// Q13: if none of a full pool's 100 cheapest transactions is its sender's last, the one to evict is found
    /// by comparing fees with nonces. Off, it is the cheapest that is its sender's last.
    pub eviction_compares_fee_with_nonce: bool,
    /// Q14: the number of ids retained since the last block, those of rejected transactions included. A transaction whose id
    /// is retained is rejected when it comes again. 0 retains none.
    pub recent_ids: usize,
    /// Q15: all transactions of a request are checked before any is added, so two in one request pass where one is
    /// allowed for a sender. Off, each is added before the next is checked.
    pub checks_precede_adding: bool,
    /// Q16: a transaction that is too large ends its request: those behind it are neither accepted nor rejected. Off, they
    /// are checked.
    pub too_large_ends_request: bool,
    /// Q19: dynamic fees are charged for half the bytes. Off, for all of them.
    pub fees_count_half_size: bool,
    /// Q20: while the registration of a sender's second key is pending, everything else of that sender is refused.
    /// Off, it is taken if it bears the signature of the new key.
    pub pending_second_key_blocks_sender: bool,
    /// Q23: the forger does not see the coin that a refund earlier in the same block gives back, and drops a
    /// transaction that spends it. Off, it sees it, as those who check the block do.
    pub refunded_coin_hidden_from_forger: bool,
    /// Q25: an eviction for a transaction with a higher fee has no event, and a transaction that a milestone purges is
    /// reported as a whole. Off, each removal is reported by id.
    pub uneven_removal_events: bool,
    /// Q26: a peer's message with one rejected transaction, even a duplicate, is not relayed. Off, its new transactions
    /// are.
    pub refusal_stops_relay: bool,
    /// After a rollback a pool contains only the transactions of the reverted blocks, even beyond its limit. Off, the pending ones
    /// stay as far as they fit, and above the limit the cheapest are evicted. Source: consensus.md 5.7.
    pub rollback_empties_pool: bool,
    /// If a transaction of a block does not fit its sender's pending ones, all of these leave the pool. Off, those that still fit
    /// stay. Source: consensus.md 5.6.
    pub rival_empties_sender: bool,
    /// A full pool makes room for a transaction before it checks that against its sender's wallet. Off, it checks first.
    /// Source: consensus.md 5.4.
    pub makes_room_first: bool,
    /// A forger drops each transaction that does not fit after those that it has chosen before. Off, one that fits on the chain alone or
    /// after all chosen ones waits for a later block, and so do its sender's later ones. Source: consensus.md 2.3.
    pub forging_drops_misfits: bool,
    /// A transfer that expires at the next height is still pending (5.6) and is chosen for a block that it makes invalid
    /// (3.4), by one forger after the other, so the chain stands still. Not among the quirks of section 8: it follows
    /// from those two rules. Off, the forger drops it.
    pub chooses_what_expires_next: bool,
}

/// Minimum fees by size. Source: consensus.md 5.3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicFees {
    /// Least fee to enter the pool, in arktoshi a byte.
    pub min_fee_pool: u64,
    /// Least fee to be relayed, in arktoshi a byte.
    pub min_fee_broadcast: u64,
}

impl PoolRules {
    /// The reference node 2.6.57 with the `testnet` configuration.
    pub fn reference() -> Self {
        Self {
            max_transactions: 15_000,
            max_transactions_per_sender: 300,
            allowed_senders: Vec::new(),
            max_transactions_per_request: 40,
            max_transaction_age: 2_700,
            dynamic_fees: Some(DynamicFees { min_fee_pool: 1_000, min_fee_broadcast: 1_000 }),
            resignations_counted_on_chain: true,
            ipfs_hashes_seen_of_delegates: true,
            refused_block_takes_transactions: true,
            refund_rule_reads_wrong_field: true,
            eviction_compares_fee_with_nonce: false,
            recent_ids: 10_000,
            checks_precede_adding: true,
            too_large_ends_request: true,
            fees_count_half_size: true,
            pending_second_key_blocks_sender: true,
            refunded_coin_hidden_from_forger: false,
            uneven_removal_events: true,
            refusal_stops_relay: true,
            rollback_empties_pool: true,
            rival_empties_sender: true,
            makes_room_first: true,
            forging_drops_misfits: true,
            chooses_what_expires_next: true,
        }
    }

    /// The reference's policy without its bugs.
    pub fn corrected() -> Self {
        Self {
            resignations_counted_on_chain: false,
            ipfs_hashes_seen_of_delegates: false,
            refund_rule_reads_wrong_field: false,
            too_large_ends_request: false,
            chooses_what_expires_next: false,
            ..Self::reference()
        }
    }

    /// The least fee of a transaction at a rate in arktoshi a byte; claims and refunds are free.
    /// Source: consensus.md 5.3.
    pub fn least_fee(&self, transaction: &SignedTransaction, rate: u64) -> Arktoshi {
        let kind = transaction.kind();
        if matches!(kind, Kind::HtlcClaim | Kind::HtlcRefund) {
            return Arktoshi::ZERO;
        }
        let rate = Arktoshi::new(rate.max(1)).unwrap_or(Arktoshi::MAX);
        // The protocol's formula counts half of the transaction's own bytes; the other half comes on top of the addon.
        let other_half = if self.fees_count_half_size { 0 } else { transaction.size() as u64 / 2 };
        StaticFees::dynamic(transaction, kind.addon_bytes() + other_half, rate)
    }
}

impl Default for PoolRules {
    /// [`PoolRules::reference`].
    fn default() -> Self {
        Self::reference()
    }
}
