//! Messages between actors, their inputs and their effects.

use super::{Event, SimTime, Submission};
use crate::{
    ledger::{
        Link, Round,
        codec::{saved, shared},
    },
    protocol::{Block, BlockId, Height, SignedTransaction, Slot, TransactionId},
};
use serde::{Deserialize, Serialize};
use std::{fmt, iter, mem, sync::Arc};

/// A node of the network: a peer with its pool and, on most, a delegate. Numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node's simulated address, from the range that RFC 2544 reserves for measuring networks: no real machine has it. The first
    /// 2,560 nodes lie five to a /24 network, which is as many as a peer accepts from one (consensus.md 6). Further nodes fill these
    /// networks up. The first 128,000 addresses differ from each other.
    pub const fn address(self) -> [u8; 4] {
        let (group, layer) = (self.0 / 5 % 512, self.0 / 2_560 % 50);
        [198, 18 + (group / 256) as u8, (group % 256) as u8, (1 + layer * 5 + self.0 % 5) as u8]
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node-{}", self.0)
    }
}

/// Which of a node's actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Holds the chain and speaks with other nodes.
    Peer,
    /// Holds the transactions that wait for a block.
    Pool,
    /// Forges in its slots. On a node without a forging key it does nothing.
    Delegate,
}

/// One actor of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    /// The node of the actor.
    pub node: NodeId,
    /// The kind of the actor. A node has one of each.
    pub role: Role,
}

/// A request from outside the simulation, answered once by [`Effect::Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Transactions as they travel: shared, never copied.
pub type Transactions = Arc<[Arc<SignedTransaction>]>;

/// The number of a peer's request, given by the peer that asks. The answer repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inquiry(pub u64);

/// A message from one actor to another.
#[derive(Clone, Debug)]
pub enum Message {
    // Between peers, through the network. Source: consensus.md 6.
    /// One of the round trips that open a connection to a node that is no peer yet, counted from 1.
    Connect {
        /// The number of the round trip, from 1.
        trip: u8,
    },
    /// The reply that ends this round trip.
    Connected {
        /// The number of the round trip, from 1.
        trip: u8,
    },
    /// A block, pushed (`postBlock`).
    Block(Arc<Block>),
    /// The sender has this block.
    Announcement(Box<BlockId>),
    /// Asks for a block that the receiver has announced.
    BodyRequest {
        /// The number of the request.
        inquiry: Inquiry,
        /// The id of the block.
        id: Box<BlockId>,
    },
    /// The block.
    Body {
        /// The number of the request that this answers.
        inquiry: Inquiry,
        /// The block, always as a whole.
        block: Arc<Block>,
        /// The part that travels. It decides how long the message takes.
        part: BodyPart,
    },
    /// Transactions that the sender's pool relays (`postTransactions`).
    Transactions(Transactions),
    /// Asks for [`Message::Status`] (`getStatus`).
    StatusRequest,
    /// The sender's tip.
    Status {
        /// The highest block of the sender's chain.
        tip: Arc<Block>,
    },
    /// Asks for blocks above a height (`getBlocks`), or for their headers only.
    BlocksRequest {
        /// The number of the request.
        inquiry: Inquiry,
        /// The height below the first block asked for.
        above: Height,
        /// The largest number of blocks in the answer.
        limit: u32,
        /// True if the sender needs the headers alone.
        headers_only: bool,
    },
    /// Consecutive blocks of the sender's chain, and the height of that chain.
    Blocks {
        /// The number of the request that this answers.
        inquiry: Inquiry,
        /// The height of the sender's tip.
        height: Height,
        /// The blocks, ascending by height. Empty if the sender has none above the height asked for.
        blocks: Box<[Arc<Block>]>,
    },
    /// Asks which of these blocks, ascending by height, the receiver has on its chain (`getCommonBlocks`).
    CommonBlocksRequest {
        /// The number of the request.
        inquiry: Inquiry,
        /// The ids of the asking peer's blocks, ascending by height.
        ids: Arc<[BlockId]>,
    },
    /// The highest of these blocks on the sender's chain, if there is one, and the height of that chain.
    CommonBlocks {
        /// The number of the request that this answers.
        inquiry: Inquiry,
        /// The height of the sender's tip.
        height: Height,
        /// The id of the highest block in common, or `None` if the chains share none of the blocks asked for.
        common: Option<Box<BlockId>>,
    },
    /// Asks for [`Message::Peers`] (`getPeers`).
    PeersRequest,
    /// The peers the sender has.
    Peers(Arc<[NodeId]>),
    /// The sender closes the connection, because its caller broke a limit.
    HungUp,

    // Between a delegate and the peer it trusts, its relay.
    /// Asks for [`Message::Round`].
    RoundRequest,
    /// The round of the next block. Answers [`Message::RoundRequest`].
    Round(Box<RoundView>),
    /// Unasked: the relay's chain entered a new round, or left the one it was in.
    RoundChanged(Box<RoundView>),
    /// Asks for [`Message::NetworkState`], after the relay has pinged its peers.
    NetworkStateRequest,
    /// The relay's view of its peers. Answers [`Message::NetworkStateRequest`].
    NetworkState(Box<NetworkState>),
    /// Asks for the transactions of the next block; the relay hands it on to its pool.
    ForgingTransactionsRequest,
    /// The transactions that the pool chose for the next block, in its order. Answers [`Message::ForgingTransactionsRequest`].
    ForgingTransactions(Transactions),
    /// The block the delegate made.
    Forged(Arc<Block>),
    /// The delegate forges in the next slot; the relay should see that its chain is fresh.
    WakeUp,
    /// An error that kept the relay from answering a request.
    RelayFailed {
        /// The reason, in words.
        error: Arc<str>,
    },

    // Between a peer and its pool. The tip travels along: a pool has no chain of its own.
    /// Asks for [`Message::ForgingTransactions`].
    ChooseTransactions {
        /// The tip that the next block follows.
        tip: Arc<Link>,
    },
    /// Transactions from a client or another node. The pool decides which of them it takes.
    AddTransactions(Box<AddTransactions>),
    /// The transactions of an [`Message::AddTransactions`] that are to be sent on.
    Broadcast(Transactions),
    /// The chain of the node has moved.
    TipMoved {
        /// The new tip.
        tip: Arc<Link>,
    },
    /// A reorganisation on request moves the node to another branch, or leaves it where it is. These transactions leave the pool. The
    /// peer receives the same list.
    Reorganised {
        /// The tip after the reorganisation.
        tip: Arc<Link>,
        /// The transactions that leave the pool.
        dropped: Arc<[TransactionId]>,
    },
    /// A block that passed all checks of the block alone could not be applied (consensus.md 3.3 row 8).
    BlockNotApplied {
        /// The tip that the block did not fit on.
        tip: Arc<Link>,
        /// The rejected block.
        block: Arc<Block>,
    },
    /// These pending transactions are on the chain already (consensus.md 3.3 row 7).
    AlreadyForged {
        /// The tip of the node's chain.
        tip: Arc<Link>,
        /// The transactions on that chain.
        ids: Arc<[TransactionId]>,
    },
}

impl Message {
    /// Removes a transaction from the message. Returns false if the message does not carry it.
    pub fn drop_transaction(&mut self, id: &TransactionId) -> bool {
        match self {
            Self::Transactions(all) | Self::Broadcast(all) | Self::ForgingTransactions(all) => drop_out_of(all, id),
            Self::AddTransactions(add) => drop_out_of(&mut add.transactions, id),
            _ => false,
        }
    }

    /// Moves the message out, and leaves a placeholder.
    pub fn take(&mut self) -> Self {
        mem::replace(self, Self::StatusRequest)
    }

    /// Returns true if both are equal and a cheap comparison shows it. Many peers send the same answer to a peer that asks them all.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Status { tip }, Self::Status { tip: other }) => Arc::ptr_eq(tip, other),
            (Self::StatusRequest, Self::StatusRequest) | (Self::PeersRequest, Self::PeersRequest) => true,
            (Self::Peers(list), Self::Peers(other)) => Arc::ptr_eq(list, other),
            _ => false,
        }
    }
}

/// The part of a block that a [`Message::Body`] carries over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// All of it. Between two nodes with compact blocks, its compact form.
    Whole,
    /// The bytes that the receiver of a compact block lacks.
    Missing { bytes: u32 },
}

/// Transactions for a pool.
#[derive(Clone, Debug)]
pub struct AddTransactions {
    pub tip: Arc<Link>,
    pub transactions: Transactions,
    /// The request to answer, if a client submitted the transactions.
    pub request: Option<RequestId>,
}

/// The round of the next block, as a relay sees it.
#[derive(Clone, Debug)]
pub struct RoundView {
    pub round: Arc<Round>,
    pub tip: BlockId,
    pub tip_height: Height,
    pub tip_slot: Slot,
}

/// The state of the network as a relay sees it when its delegate wants to forge. Source: consensus.md 2.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkState {
    pub status: NetworkStatus,
    pub height: Height,
    pub tip: BlockId,
    /// The number of the relay's peers, silent ones included. 0 if the relay itself did not answer in time.
    pub reached: u32,
    /// The number of peers on this chain and not above it.
    pub in_quorum: u32,
    /// The number of peers at exactly this height.
    pub level: u32,
    /// The number of peers above this height.
    pub over_height: u32,
    /// The number of peers on other chains, and not above.
    pub forked: u32,
}

/// The relay's status. It decides about forging, or leaves that to the counts of peers. Source: consensus.md 2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkStatus {
    /// The first question after the relay started a new network.
    ColdStart,
    /// Every delegate may forge without peers.
    Test,
    BelowMinimumPeers,
    Default,
}

/// An input of an actor.
#[derive(Clone, Debug)]
pub enum Input {
    /// The run begins, or the node comes back.
    Start,
    /// A wake-up the actor asked for.
    Wake(Wake),
    /// A message from another actor, of this node or of another one.
    Message {
        /// The sender.
        from: ActorId,
        /// The message as it arrives.
        message: Message,
    },
    /// A client of the node's API submits transactions.
    Submit {
        /// The request, to which an [`Effect::Answer`] belongs.
        request: RequestId,
        /// The transactions in the order of submission.
        transactions: Transactions,
    },
    /// A client that controls the run moves the node to another branch.
    Reorganise(Arc<Reorganisation>),
}

impl Input {
    /// Removes a transaction from the input. Returns false if the input does not carry it.
    pub fn drop_transaction(&mut self, id: &TransactionId) -> bool {
        match self {
            Self::Message { message, .. } => message.drop_transaction(id),
            Self::Submit { transactions, .. } => drop_out_of(transactions, id),
            Self::Start | Self::Wake(_) | Self::Reorganise(_) => false,
        }
    }
}

fn drop_out_of(transactions: &mut Transactions, id: &TransactionId) -> bool {
    let holds = transactions.iter().any(|one| one.id() == *id);
    if holds {
        *transactions = transactions.iter().filter(|one| one.id() != *id).cloned().collect();
    }
    holds
}

/// A branch that a node is to move to.
#[derive(Clone, Debug)]
pub struct Reorganisation {
    /// The last block of the chain that is kept.
    pub common: Arc<Link>,
    /// The last block of the branch.
    pub tip: Arc<Link>,
    /// Reverted transactions that do not go back to the pool.
    pub dropped: Arc<[TransactionId]>,
}

/// Why an actor wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Delegate: the plan of this number is due; an older number is a plan that was given up.
    Forge { plan: u64 },
    /// Peer: the wait before a block is passed on is over.
    Gossip(BlockId),
    /// Peer: time is up for the answers to this ping of all peers.
    PingOver { ping: u32 },
    /// Peer: this ping of all peers, held back by the limits, may go on.
    PingAgain { ping: u32 },
    /// Peer: time to see whether blocks still come in.
    WakeUp,
    /// Peer: time may be up for the answer to some inquiry.
    Unanswered,
    /// Peer: messages held back by the limits may go out.
    Throttled,
    /// Peer: time to look for more peers.
    Discover,
    /// Peer: time is up for this step of looking for peers.
    DiscoveryOver { step: u32 },
    /// Peer: transactions that were collected may go out.
    Bundle,
    /// A behaviour of the actor wanted to be woken; the number is its own.
    Behaviour { layer: u32, number: u64 },
}

/// An effect that an actor wants.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Sends a message to one actor, of this node or of another one.
    Send {
        /// The receiver.
        to: ActorId,
        /// The message.
        message: Message,
    },
    /// Sends a message to the peers of other nodes, one after the other.
    SendToPeers {
        /// The receiving nodes, in the order of sending.
        to: Vec<NodeId>,
        /// The message that each of them receives.
        message: Message,
    },
    /// [`Effect::Send`] at a later instant. Honest actors send at once.
    SendAt {
        /// The instant of sending.
        at: SimTime,
        /// The receiver.
        to: ActorId,
        /// The message.
        message: Message,
    },
    /// Wakes the actor at an instant.
    WakeAt {
        /// The instant of the wake-up.
        at: SimTime,
        /// The reason, which comes back in [`Input::Wake`].
        wake: Wake,
    },
    /// For observers; changes nothing.
    Observe(Event),
    /// The outcome of an [`Input::Submit`].
    Answer {
        /// The request of the input.
        request: RequestId,
        /// The ids of the accepted, the relayed and the excess transactions, and the errors of the rejected ones.
        submission: Box<Submission>,
    },
    /// A behaviour has written the memory of its coalition.
    Share {
        /// The number of the behaviour in the run.
        layer: u32,
        /// The new content of the memory. All behaviours of the coalition read it.
        value: Arc<[u8]>,
    },
}

impl Effect {
    /// Appends an effect that `make` constructs in place. [`Vec::push`] would move it there, which takes longer than to construct it.
    #[inline]
    pub fn put(effects: &mut Vec<Self>, make: impl FnOnce() -> Self) {
        effects.extend(iter::once_with(make));
    }
}

saved!(struct NodeId(number));
saved!(enum Role { 0 Peer, 1 Pool, 2 Delegate });
saved!(struct ActorId { node, role });
saved!(struct RequestId(number));
saved!(struct Inquiry(number));
saved!(enum Message {
    0 Block(block),
    1 Transactions(transactions),
    2 StatusRequest,
    3 Status { tip },
    4 BlocksRequest { inquiry, above, limit, headers_only },
    5 Blocks { inquiry, height, blocks },
    6 CommonBlocksRequest { inquiry, ids },
    7 CommonBlocks { inquiry, height, common },
    8 PeersRequest,
    9 Peers(peers),
    10 HungUp,
    11 RoundRequest,
    12 Round(round),
    13 RoundChanged(round),
    14 NetworkStateRequest,
    15 NetworkState(state),
    16 ForgingTransactionsRequest,
    17 ForgingTransactions(transactions),
    18 Forged(block),
    19 WakeUp,
    20 RelayFailed { error },
    21 ChooseTransactions { tip },
    22 AddTransactions(added),
    23 Broadcast(transactions),
    24 TipMoved { tip },
    25 Reorganised { tip, dropped },
    26 BlockNotApplied { tip, block },
    27 AlreadyForged { tip, ids },
    28 Connect { trip },
    29 Connected { trip },
    30 Announcement(id),
    31 BodyRequest { inquiry, id },
    32 Body { inquiry, block, part },
});
saved!(enum BodyPart { 0 Whole, 1 Missing { bytes } });
saved!(struct AddTransactions { tip, transactions, request });
saved!(struct RoundView { round, tip, tip_height, tip_slot });
saved!(struct NetworkState { status, height, tip, reached, in_quorum, level, over_height, forked });
saved!(enum NetworkStatus { 0 ColdStart, 1 Test, 2 BelowMinimumPeers, 3 Default });
saved!(enum Input {
    0 Start,
    1 Wake(wake),
    2 Message { from, message },
    3 Submit { request, transactions },
    4 Reorganise(branch),
});
saved!(struct Reorganisation { common, tip, dropped });
shared!(Reorganisation);
saved!(enum Wake {
    0 Forge { plan },
    1 Gossip(block),
    2 PingOver { ping },
    3 PingAgain { ping },
    4 WakeUp,
    5 Unanswered,
    6 Throttled,
    7 Discover,
    8 DiscoveryOver { step },
    9 Bundle,
    10 Behaviour { layer, number },
});
