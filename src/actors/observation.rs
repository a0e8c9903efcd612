//! Everything that happens, as values for whoever watches: traces, tables, the API's view, the log.

use super::pool::PoolRejection;
use crate::{
    ledger::{
        Link,
        state::{Applied, BlockRejected},
    },
    protocol::{Block, SignedTransaction, TransactionId},
};
use std::sync::Arc;

/// Something that happened on a node. Names in the documentation are those of the node's own events.
#[derive(Clone, Debug)]
pub enum Event {
    /// `block.forged`, and `transaction.forged` for each of its transactions: the delegate made it, whatever its relay
    /// says of it.
    BlockForged(Arc<Block>),
    /// `block.received`: pushed by a peer or the own forger, and queued.
    BlockReceived(Arc<Block>),
    /// `block.applied`, with all that consensus.md 1.5 puts before it: `forger.missing`, the round's events,
    /// `transaction.applied` and the typed ones.
    BlockApplied { link: Arc<Link>, applied: Arc<Applied> },
    /// Not accepted; the reference's node writes it to its log only.
    BlockRefused(BlockRejected),
    /// The delegate owned the slot and did not forge, because its relay lacks peers or quorum.
    ForgingSuspended { reached: u32, in_quorum: u32 },
    /// `transaction.pool.added`.
    PoolAdded(Vec<Arc<SignedTransaction>>),
    /// `transaction.pool.rejected`.
    PoolRejected(Vec<PoolRejection>),
    /// `transaction.pool.removed`; also after eviction, which the reference passes over in silence.
    PoolRemoved(TransactionId),
    /// `transaction.expired`.
    PoolExpired(Arc<SignedTransaction>),
}
