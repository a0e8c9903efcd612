//! Rules that are choices: what the reference fixes in code or configuration and a scenario may change.

mod node;

pub use node::{NodeRules, RollbackTarget};

use crate::protocol::{Arktoshi, Kind, SignedTransaction, transaction::StaticFees};
use serde::{Deserialize, Serialize};

/// The rules of a node that the network's milestones do not fix. Source: architecture, decision 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Peers a relay must reach before its delegate forges; `None` is the reference's test environment, in which no
    /// peer is needed. Source: consensus.md 2.2.
    pub minimum_network_reach: Option<u32>,
    /// Share of answering peers that must be on the relay's chain, in percent. Source: consensus.md 2.2.
    pub quorum_percent: u32,
    /// How a block travels from peer to peer.
    pub gossip: Gossip,
    /// Whether a lock must outlast a round; off in the reference's test environment. Source: consensus.md 4.5, type 8.
    pub minimum_lock_expiration: bool,
    pub pool: PoolRules,
    /// What a node does about forks, peers and pushed blocks.
    pub node: NodeRules,
}

/// How a block travels from peer to peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gossip {
    /// The forger's relay sends the block to each of its peers, nobody repeats it: on a full mesh everyone gets it once.
    Once,
    /// The reference's: 100 %, 75 %, 50 %, 25 % of the peers by the number of times the block was seen, each after
    /// half a second. Source: consensus.md 6.
    Reference,
}

/// What a pool takes. Source: consensus.md 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// Pending transactions at most.
    pub max_transactions: usize,
    /// Pending transactions of one sender at most.
    pub max_transactions_per_sender: usize,
    /// Transactions in one request at most.
    pub max_transactions_per_request: usize,
    /// Blocks after which a version-1 transaction expires.
    pub max_transaction_age: u32,
    /// `None`: the fee must equal the static fee.
    pub dynamic_fees: Option<DynamicFees>,
}

/// Minimum fees by size. Source: consensus.md 5.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicFees {
    /// Least fee to enter the pool [arktoshi a byte].
    pub min_fee_pool: u64,
    /// Least fee to be sent on [arktoshi a byte].
    pub min_fee_broadcast: u64,
}

impl Rules {
    /// The reference node 2.6.57 with the `testnet` configuration.
    pub fn reference() -> Self {
        Self {
            minimum_network_reach: Some(5),
            quorum_percent: 66,
            gossip: Gossip::Reference,
            minimum_lock_expiration: true,
            pool: PoolRules {
                max_transactions: 15_000,
                max_transactions_per_sender: 300,
                max_transactions_per_request: 40,
                max_transaction_age: 2_700,
                dynamic_fees: Some(DynamicFees { min_fee_pool: 1_000, min_fee_broadcast: 1_000 }),
            },
            node: NodeRules::reference(),
        }
    }
}

impl DynamicFees {
    /// Bytes added to a transaction's size before it is charged, by type. Source: consensus.md 5.3.
    pub fn addon_bytes(kind: Kind) -> u64 {
        match kind {
            Kind::Transfer | Kind::Vote | Kind::DelegateResignation | Kind::HtlcLock => 100,
            Kind::SecondSignature | Kind::Ipfs => 250,
            Kind::DelegateRegistration => 400_000,
            Kind::MultiSignature | Kind::MultiPayment => 500,
            Kind::HtlcClaim | Kind::HtlcRefund => 0,
            Kind::BusinessRegistration | Kind::BridgechainRegistration => 4_000_000,
            Kind::BusinessUpdate | Kind::BridgechainUpdate => 500,
            Kind::BusinessResignation | Kind::BridgechainResignation => 100,
        }
    }

    /// The least fee of a transaction at a rate; claims and refunds are free.
    pub fn minimum(transaction: &SignedTransaction, rate: u64) -> Arktoshi {
        let kind = transaction.kind();
        if matches!(kind, Kind::HtlcClaim | Kind::HtlcRefund) {
            return Arktoshi::ZERO;
        }
        let rate = Arktoshi::new(rate.max(1)).unwrap_or(Arktoshi::MAX);
        StaticFees::dynamic(transaction, Self::addon_bytes(kind), rate)
    }
}
