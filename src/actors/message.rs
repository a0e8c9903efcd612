//! What actors hear and what they want done.

use super::{Event, SimTime, Submission};
use crate::{
    ledger::{Link, RoundInfo},
    protocol::{Block, BlockId, Height, SignedTransaction, Slot},
};
use serde::Serialize;
use std::{fmt, sync::Arc};

/// A node of the network: a peer with its pool and, on most, a delegate. Numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node-{}", self.0)
    }
}

/// Which of a node's actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Peer,
    Pool,
    Delegate,
}

/// One actor of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    pub node: NodeId,
    pub role: Role,
}

/// A request from outside the simulation, answered once by [`Effect::Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Transactions as they travel: shared, never copied.
pub type Transactions = Arc<[Arc<SignedTransaction>]>;

/// What one actor tells another.
#[derive(Clone, Debug)]
pub enum Message {
    // Between peers, through the network.
    /// A block, pushed (`postBlock`).
    Block(Arc<Block>),
    /// Transactions a pool found worth sending on (`postTransactions`).
    Transactions(Transactions),
    /// Asks for [`Message::Status`] (`getStatus`).
    StatusRequest,
    Status {
        height: Height,
        tip: BlockId,
    },
    /// Asks for blocks above a height (`getBlocks`).
    BlocksRequest {
        above: Height,
    },
    Blocks(Arc<[Arc<Block>]>),

    // Between a delegate and the peer it trusts, its relay.
    /// Asks for [`Message::Round`].
    RoundRequest,
    Round(RoundView),
    /// Unasked: the relay's chain entered a new round.
    RoundChanged(RoundView),
    /// Asks for [`Message::NetworkState`], after the relay has pinged its peers.
    NetworkStateRequest,
    NetworkState(NetworkState),
    /// Asks for the transactions of the next block; the relay hands it on to its pool.
    ForgingTransactionsRequest,
    ForgingTransactions(Transactions),
    /// The block the delegate made.
    Forged(Arc<Block>),

    // Between a peer and its pool. The tip travels along: a pool has no chain of its own.
    ChooseTransactions {
        tip: Arc<Link>,
    },
    AddTransactions {
        tip: Arc<Link>,
        transactions: Transactions,
        request: Option<RequestId>,
    },
    /// What of an [`Message::AddTransactions`] deserves to be sent on.
    Broadcast(Transactions),
    /// The chain of the node has moved.
    TipMoved {
        tip: Arc<Link>,
    },
    /// A block passed all checks and turned out not to apply on `tip`: the pool has begun to follow it in vain.
    BlockFailed {
        tip: Arc<Link>,
        block: Arc<Block>,
    },
}

/// The round of the next block, as a relay sees it.
#[derive(Clone, Debug)]
pub struct RoundView {
    pub round: Arc<RoundInfo>,
    pub tip: BlockId,
    pub tip_height: Height,
    pub tip_slot: Slot,
}

/// What a relay knows of the network when its delegate wants to forge. Source: consensus.md 2.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkState {
    pub height: Height,
    pub tip: BlockId,
    /// Peers that answered.
    pub reached: u32,
    /// Those of them that are on this chain.
    pub in_quorum: u32,
}

/// What an actor hears.
#[derive(Clone, Debug)]
pub enum Input {
    /// The run begins.
    Start,
    /// A wake-up the actor asked for.
    Wake(Wake),
    Message {
        from: ActorId,
        message: Message,
    },
    /// A client of the node's API submits transactions.
    Submit {
        request: RequestId,
        transactions: Transactions,
    },
}

/// Why an actor wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Delegate: the plan of this number is due; an older number is a plan that was given up.
    Forge { plan: u64 },
    /// Peer: the wait before a block is passed on is over.
    Gossip(BlockId),
    /// Peer: time is up for the answers to this ping of the peers.
    PingOver { ping: u64 },
    /// Peer: time to see whether blocks still come in.
    CheckLate,
}

/// What an actor wants done.
#[derive(Clone, Debug)]
pub enum Effect {
    Send {
        to: ActorId,
        message: Message,
    },
    WakeAt {
        at: SimTime,
        wake: Wake,
    },
    /// For whoever watches; changes nothing.
    Observe(Event),
    /// The outcome of an [`Input::Submit`].
    Answer {
        request: RequestId,
        submission: Submission,
    },
}
