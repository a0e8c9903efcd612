//! The state of the model of a peer, without the rules. `node` says which rules judge which input.

use super::{
    ModelContext,
    limits::{Callers, Calls},
    peers::Peers,
};
use crate::{
    actors::{Message, NodeId, SimTime, message::Inquiry},
    ledger::Link,
    protocol::{Block, BlockId, Height},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// The delay that a deed may have after its time. Virtual clocks are exact, so it is short.
pub(super) const GRACE: Duration = Duration::from_millis(50);

/// Blocks in a chunk.
pub(super) const CHUNK: u32 = 400;

/// A model of a peer's state and knowledge, as far as the messages to it determine them.
#[derive(Clone)]
pub(super) struct PeerModel {
    pub id: NodeId,
    pub tip: Arc<Link>,
    /// True if it accepts blocks; `None` while this is unknown, as it catches up for the first time.
    pub started: Option<bool>,
    /// The addresses it was given, without its own.
    pub given: BTreeSet<NodeId>,
    pub peers: Peers,
    /// Nodes it connects to: the round trip under way, and when the first one began.
    pub connecting: BTreeMap<NodeId, (u8, SimTime)>,
    /// Nodes that it has sent a status request: the time, and true if it certainly still waits for the answer.
    pub newcomers: BTreeMap<NodeId, (SimTime, bool)>,
    pub probes: BTreeMap<NodeId, Probe>,
    /// Open requests of verifications that have ended in another way.
    pub left_open: Vec<LeftoverRequest>,
    /// The highest number of a question sent so far.
    pub last_inquiry: Inquiry,
    /// The last time at which each peer was sent a question for headers that had been held back.
    pub held_headers: BTreeMap<NodeId, SimTime>,
    /// Number of the last ping of all peers, and those that run.
    pub pinged: u32,
    pub pings: Vec<Ping>,
    /// The times of the last pings of all peers, as far as they matter to limits.
    pub pinged_at: Vec<SimTime>,
    pub passing: Option<PingBlock>,
    /// Blocks to be passed on, and when.
    pub waves: VecDeque<(BlockId, SimTime)>,
    /// The times at which blocks were last passed on.
    pub pushes: VecDeque<SimTime>,
    pub callers: Callers,
    pub calls: Calls,
    pub sync: Sync,
    pub timer: Timer,
    /// The latest time at which it looks for peers.
    pub discovers_by: Option<SimTime>,
    /// The time by which it must have called the nodes that it was given and that are not its peers, and these nodes.
    pub calls_given: Option<(SimTime, BTreeSet<NodeId>)>,
    /// Slots missed since the round began.
    pub missed: u32,
    /// A health check may come until then.
    pub doubts_until: SimTime,
    /// A health check must come by then.
    pub doubts_by: Option<SimTime>,
    /// True if the block that it passes around is not known, since it deviated.
    pub vague: bool,
    /// The last time at which it asked for peers.
    pub asked_for_peers: Option<SimTime>,
    /// The peers that it asked then and that have named none yet.
    pub asked_to_name: BTreeSet<NodeId>,
    /// The limits may have held some of these questions back.
    pub held_some: bool,
}

impl PeerModel {
    /// A peer of a running network on `tip`, connected to all it was given.
    pub(super) fn connected(id: NodeId, tip: &Arc<Link>, given: Arc<[NodeId]>) -> Self {
        let given: BTreeSet<NodeId> = given.iter().copied().filter(|node| *node != id).collect();
        Self {
            id,
            tip: tip.clone(),
            started: Some(true),
            peers: Peers::connected(&given, tip.height()),
            connecting: BTreeMap::new(),
            newcomers: BTreeMap::new(),
            probes: BTreeMap::new(),
            left_open: Vec::new(),
            last_inquiry: Inquiry(0),
            held_headers: BTreeMap::new(),
            pinged: 0,
            pings: Vec::new(),
            pinged_at: Vec::new(),
            passing: None,
            waves: VecDeque::new(),
            pushes: VecDeque::new(),
            callers: Callers::default(),
            calls: Calls::default(),
            sync: Sync::new(Phase::Idle),
            timer: Timer::Stopped,
            discovers_by: None,
            calls_given: None,
            missed: 0,
            doubts_until: SimTime::default(),
            doubts_by: None,
            vague: false,
            asked_for_peers: None,
            asked_to_name: BTreeSet::new(),
            held_some: false,
            given,
        }
    }
}

/// The timer that wakes a peer up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// It ends then, unless a block comes.
    Runs(SimTime),
    Stopped,
    /// The model does not know: the peer may have come to rest meanwhile.
    Unknown,
}

/// The block that is being passed around.
#[derive(Clone)]
pub(super) struct PingBlock {
    pub id: BlockId,
    pub block: Arc<Block>,
    /// The least and the greatest number of times that it was seen.
    pub seen: (u32, u32),
    pub first: SimTime,
    pub last: SimTime,
}

/// The purpose of a ping of all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PingFor {
    Forging,
    Health,
    Recovery,
}

/// A ping of all peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    pub number: u32,
    pub purpose: PingFor,
    pub until: SimTime,
    /// The end of the time for a verification that it begins.
    pub verified_by: SimTime,
}

/// A peer being verified.
#[derive(Clone)]
pub(super) struct Probe {
    pub claimed: Arc<Block>,
    /// The own tip at the time of the peer's status.
    pub own: Arc<Link>,
    /// The time from which on it asks nothing more.
    pub ends: SimTime,
    /// The time at which the answer is overdue.
    pub until: SimTime,
    /// The question; none while the limits hold it back.
    pub inquiry: Option<Inquiry>,
    /// The highest number of an earlier request.
    pub after: Inquiry,
    pub asks: Asks,
}

/// An open request of a verification that has ended in another way.
#[derive(Clone)]
pub(super) struct LeftoverRequest {
    pub node: NodeId,
    /// The question, as in [`Probe`].
    pub inquiry: Option<Inquiry>,
    /// The time at which the answer is overdue.
    pub until: SimTime,
}

/// The open request of a verification.
#[derive(Clone)]
pub(super) enum Asks {
    /// Asks for a common block at these heights. The highest common height is between `low` and `high`.
    Common {
        heights: Vec<Height>,
        low: Height,
        high: Height,
    },
    Headers {
        common: Arc<Link>,
        last: Height,
    },
}

/// The state of a peer's synchronisation with the network.
#[derive(Clone)]
pub(super) struct Sync {
    pub phase: Phase,
    pub chunk: u32,
    pub vain: u32,
    pub halted: u32,
    /// True if the node has retained a chunk for later, so that it may ask for fewer.
    pub kept: bool,
    /// True if the number of its downloads in vain is known.
    pub counted: bool,
    /// True if the size of its chunks is known.
    pub sized: bool,
    /// The open requests for blocks while the phase is unknown, each with its peer and its deadline.
    pub open: BTreeMap<Inquiry, (NodeId, SimTime)>,
    /// The last time at which the model lost track of the phase, or saw a request for blocks after that.
    pub lost: SimTime,
}

#[derive(Clone, PartialEq)]
pub(super) enum Phase {
    /// The model does not know.
    Unknown,
    /// Looks for peers, to catch up for the first time.
    Starting,
    Idle,
    Downloading(Download),
    /// Waits for a health check.
    Halted,
    /// Has rolled back and pings its peers.
    Recovering,
}

impl Sync {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            chunk: CHUNK,
            vain: 0,
            halted: 0,
            kept: false,
            counted: true,
            sized: true,
            open: BTreeMap::new(),
            lost: SimTime::default(),
        }
    }

    pub(super) fn makes_headway(&mut self) {
        (self.vain, self.halted) = (0, 0);
        self.counted = true;
    }

    /// Drops everything under way, and begins recovery.
    pub(super) fn void(&mut self) {
        self.counted &= self.phase != Phase::Unknown;
        self.phase = Phase::Recovering;
        self.open.clear();
        self.kept = false;
    }
}

/// Chunks on their way.
#[derive(Clone, PartialEq)]
pub(super) struct Download {
    pub above: Height,
    /// Peers on this chain when it began.
    pub friendly: BTreeSet<NodeId>,
    pub chunks: Vec<Chunk>,
}

#[derive(Clone, PartialEq)]
pub(super) struct Chunk {
    pub first: Option<NodeId>,
    /// Peers asked so far.
    pub asked: BTreeSet<NodeId>,
    /// Peers that were gone when this chunk was last asked for.
    pub passed_over: BTreeSet<NodeId>,
    /// The number of a question that was asked before the one that is open.
    pub after: Inquiry,
    /// The open request and its deadline. Peer and number are `None` while the limits hold the request back.
    pub open: Option<(Option<(NodeId, Inquiry)>, SimTime)>,
    /// The possible receivers of a request that is held back.
    pub possible: BTreeSet<NodeId>,
    pub came: Option<Vec<Arc<Block>>>,
    pub over: bool,
}

pub(super) fn wake_up_time(known: &ModelContext) -> Duration {
    Duration::from_secs(u64::from(known.rules().node.wake_up_s.max(1)))
}

pub(super) fn looks_for_peers(known: &ModelContext) -> bool {
    known.rules().node.discovery || known.rules().node.retry_dropped_peers
}

pub(super) fn message_is_push(message: &Message) -> bool {
    matches!(message, Message::Block(_) | Message::Transactions(_))
}

/// The kind of a message.
pub(super) fn name(message: &Message) -> &'static str {
    match message {
        Message::Block(_) => "a block",
        Message::Announcement(_) => "an announcement of a block",
        Message::BodyRequest { .. } => "the question for an announced block",
        Message::Body { .. } => "an announced block",
        Message::Transactions(_) => "transactions",
        Message::StatusRequest => "the question where it stands",
        Message::Status { .. } => "where it stands",
        Message::BlocksRequest { headers_only: true, .. } => "the question for headers",
        Message::BlocksRequest { .. } => "the question for blocks",
        Message::Blocks { .. } => "blocks",
        Message::CommonBlocksRequest { .. } => "the question for common blocks",
        Message::CommonBlocks { .. } => "common blocks",
        Message::PeersRequest => "the question for peers",
        Message::Peers(_) => "its peers",
        Message::HungUp => "that it hangs up",
        Message::Connect { .. } => "to connect",
        Message::Connected { .. } => "that it is connected",
        Message::RoundRequest | Message::Round(_) | Message::RoundChanged(_) => "the round",
        Message::NetworkStateRequest | Message::NetworkState(_) => "the state of the network",
        Message::ForgingTransactionsRequest | Message::ForgingTransactions(_) => "transactions to forge",
        Message::Forged(_) => "a forged block",
        Message::WakeUp => "to wake up",
        Message::RelayFailed { .. } => "that the relay failed",
        Message::ChooseTransactions { .. } => "to choose transactions",
        Message::AddTransactions(_) => "to add transactions",
        Message::Broadcast(_) => "to send transactions on",
        Message::TipMoved { .. } => "that the tip moved",
        Message::BlockNotApplied { .. } => "that a block does not apply",
        Message::Reorganised { .. } => "that the chain was reorganised",
        Message::AlreadyForged { .. } => "what is forged already",
    }
}

/// Returns true if a block follows another on a chain.
pub(super) fn chains(known: &ModelContext, tip: &Link, block: &Block) -> bool {
    let slots = known.tree.slots();
    let header = &block.header;
    header.previous == Some(tip.id())
        && header.height.0 == tip.height().0 + 1
        && slots.slot(header.timestamp) > slots.slot(tip.block().header.timestamp)
}
