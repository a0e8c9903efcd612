//! Everything that happens, as values for observers: traces, tables, the API's view, the log.

use super::{NodeId, pool::PoolRejection};
use crate::{
    ledger::{BlockRejected, Link},
    protocol::{Block, PublicKey, SignedTransaction, TransactionId},
};
use serde::Serialize;
use std::{fmt, sync::Arc};

/// An event of a node. Names in code font are those of the reference node's own events.
#[derive(Clone, Debug)]
pub enum Event {
    /// `block.forged`, and `transaction.forged` for each of its transactions. By the reference's rules the delegate emits it when it has
    /// made the block, also if its relay rejects that; without `forged_before_accepted`, once its relay has accepted the block.
    BlockForged(Arc<Block>),
    /// `block.received`: pushed by a peer or the own forger, and queued.
    BlockReceived(Arc<Block>),
    /// `block.applied`, with all that consensus.md 1.5 puts before it: `forger.missing` and the round's events, which the
    /// link knows ([`Link::notable`]), `transaction.applied` and the typed ones.
    BlockApplied(Arc<Link>),
    /// A block that the node rejected. The reference's node only writes it to its log.
    BlockRefused(Box<BlockRejected>),
    /// The delegate owned the slot and did not forge, because its relay lacks peers or quorum.
    ForgingSuspended {
        /// The number of the relay's peers, silent ones included. 0 if the relay itself did not answer in time.
        reached: u32,
        /// The number of peers on the relay's chain and not above it.
        in_quorum: u32,
    },
    /// `transaction.pool.added`.
    PoolAdded(Vec<Arc<SignedTransaction>>),
    /// `transaction.pool.rejected`.
    PoolRejected(Vec<PoolRejection>),
    /// `transaction.pool.removed`.
    PoolRemoved(TransactionId),
    /// `transaction.expired`.
    PoolExpired(Arc<SignedTransaction>),
    /// Evicted from a full pool by a transaction with a higher fee. The reference emits no event for it (consensus.md 8 Q25).
    PoolEvicted(Arc<SignedTransaction>),
    /// `transaction.pool.removed` with the whole transaction: a milestone has made it invalid (consensus.md 5.6).
    PoolPurged(Arc<SignedTransaction>),
    /// The content of the pool after a rollback emptied it, in the order of arrival. The reference emits no event for it
    /// (consensus.md 5.7).
    PoolReplaced(Vec<Arc<SignedTransaction>>),
    /// `block.disregarded`: pushed while the node was not ready for it (consensus.md 3.1 step 6).
    BlockDisregarded(Arc<Block>),
    /// `transaction.reverted` for each of the block's transactions, last to first, then `block.reverted`.
    BlockReverted(Arc<Link>),
    /// The node has rolled back from `from` to `to`, an ancestor; a [`Event::BlockReverted`] for each block came before.
    RolledBack {
        /// The tip before.
        from: Arc<Link>,
        /// The tip after.
        to: Arc<Link>,
        /// The reason for the rollback.
        cause: RollbackCause,
    },
    /// The node asked all its peers whether they are on its chain (consensus.md 3.5).
    HealthChecked {
        /// The number of its peers.
        peers: u32,
        /// The number of those on another chain.
        forked: u32,
    },
    /// `peer.added`.
    PeerAdded(NodeId),
    /// `peer.removed`.
    PeerRemoved(NodeId),
    /// `forger.started`: the forger has received its first round. It is emitted once.
    ForgerStarted {
        /// The key that the forger signs blocks with.
        delegate: PublicKey,
    },
    /// `forger.failed`.
    ForgerFailed {
        /// The reason, in words.
        error: String,
    },
}

/// Why a node left its chain. Source: consensus.md 3.5 and 3.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollbackCause {
    /// The health check found at least half of the peers on other chains.
    Forked,
    /// A second block of one slot, by the delegate that owns it.
    DoubleForging,
    /// The same block was too far ahead more than five times.
    NeverReady,
    /// A retained block makes another chain stronger than the node's own.
    Stronger,
    /// A client that controls the run requested it.
    Asked,
}

impl fmt::Display for RollbackCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forked => "forked",
            Self::DoubleForging => "double-forging",
            Self::NeverReady => "never-ready",
            Self::Stronger => "stronger",
            Self::Asked => "asked",
        })
    }
}
