//! The phases of an actor that only an event ends.
//!
//! An actor computes nothing between two inputs. A phase that no future event can end therefore lasts forever. Each actor names the
//! phases that it is in, and for each the events that end it (`peer/waits.rs`, `delegate/waits.rs`). It does not know whether they will
//! come. The caller looks into the queue of the run.
//!
//! A pool is in no such phase. It answers each input at once, and what it holds for later waits for a transaction or a block that
//! may never come (`pool/held_transactions.rs`).

use super::{NodeId, SimTime, Wake};
use crate::protocol::{BlockId, Slot};
use smallvec::SmallVec;
use std::fmt;

/// A phase of an actor, and what ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub phase: Phase,
    /// Any one of these ends the phase. The list is empty if nothing ends it.
    pub ends: SmallVec<[End; 3]>,
}

/// A phase of an actor that only an event ends. The order matters: a phase ends by the end of a later one only, so no two phases
/// wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    // Phases of a peer.
    /// Looks for peers, to catch up for the first time.
    Starting,
    /// Has nothing to catch up with.
    Idle,
    /// Is between two steps of catching up.
    Syncing,
    /// Downloads.
    Downloading,
    /// Needs this chunk of the running download.
    Chunk(usize),
    /// Has given up downloading until its health is checked.
    Halted,
    /// Has left its chain and asks its peers again where they stand.
    Recovering,
    /// Checks whether it is on the chain of its peers.
    HealthCheck,
    /// Does not look for peers.
    BetweenDiscoveries,
    /// Looks for peers.
    Discovery,
    /// Connects to this node, which is no peer yet, or verifies it.
    Newcomer(NodeId),
    /// Has asked all peers where they stand, for a reason, and waits for this one.
    Ping(Reason, NodeId),
    /// The same, held back from some peers by the limits.
    PingHeldBack(Reason),
    /// Verifies the tip that this node claims.
    Probe(NodeId),
    /// Waits for an answer of this node, for a purpose.
    Question(QuestionPurpose, NodeId),
    /// Holds messages back, to keep within the limits of others.
    HoldingBack,
    /// Collects transactions to send on together.
    Bundling,
    /// Is about to pass a block on.
    PassingOn,
    // Phases of a delegate.
    /// Works on this slot.
    Forging(Slot),
    /// Waits for its turn, or for a round in which it has one.
    OffTurn,
    // Phases of a node.
    /// Is slow, or stood still, and has inputs that it has not handled.
    Behind,
}

/// Why a peer asks all peers where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Forging,
    Health,
    Recovery,
}

/// The purpose of a question to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionPurpose {
    /// To meet a node.
    Newcomer,
    /// To verify a tip.
    Probe,
    /// A chunk of a download, by its place.
    Chunk(usize),
    /// A block that it has announced.
    Body(BlockId),
}

/// An event that ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A wake-up, and the latest time on the node's clock at which it is due, where that is known.
    Wake(Wake, Option<SimTime>),
    /// The end of another phase of the same actor, which is waited for by itself.
    Phase(Phase),
    /// A message of another actor of the same node.
    Told,
    /// The next round. The delegate has no turn in the round of its relay's chain, and the relay reports when another one begins.
    NextRound,
}

impl Wait {
    /// A phase that any of these ends.
    pub fn new(phase: Phase, ends: impl IntoIterator<Item = End>) -> Self {
        Self { phase, ends: ends.into_iter().collect() }
    }
}

impl Phase {
    /// The name in reports, without nodes and numbers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Syncing => "between two steps",
            Self::Downloading => "downloading",
            Self::Chunk(_) => "a chunk of a download",
            Self::Halted => "halted",
            Self::Recovering => "recovering",
            Self::HealthCheck => "a health check",
            Self::BetweenDiscoveries => "between two discoveries",
            Self::Discovery => "a discovery",
            Self::Newcomer(_) => "a newcomer",
            Self::Ping(Reason::Forging, _) => "a ping before forging",
            Self::Ping(Reason::Health, _) => "a ping of a health check",
            Self::Ping(Reason::Recovery, _) => "a ping after a rollback",
            Self::PingHeldBack(_) => "a ping held back",
            Self::Probe(_) => "a verification",
            Self::Question(QuestionPurpose::Newcomer, _) => "a question to a newcomer",
            Self::Question(QuestionPurpose::Probe, _) => "a question of a verification",
            Self::Question(QuestionPurpose::Chunk(_), _) => "a question for blocks",
            Self::Question(QuestionPurpose::Body(_), _) => "a question for an announced block",
            Self::HoldingBack => "messages held back",
            Self::Bundling => "a bundle of transactions",
            Self::PassingOn => "a block to pass on",
            Self::Forging(_) => "a slot in work",
            Self::OffTurn => "the next turn",
            Self::Behind => "inputs that wait",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Chunk(place) => write!(f, ", number {place}"),
            Self::Newcomer(node) | Self::Ping(_, node) | Self::Probe(node) => write!(f, ", {node}"),
            Self::Question(QuestionPurpose::Chunk(place), node) => write!(f, ", number {place}, to {node}"),
            Self::Question(_, node) => write!(f, ", {node}"),
            Self::Forging(slot) => write!(f, ", {slot}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wake(wake, None) => write!(f, "the wake-up {wake:?}"),
            Self::Wake(wake, Some(by)) => write!(f, "the wake-up {wake:?} by {by}"),
            Self::Phase(phase) => write!(f, "the end of '{phase}'"),
            Self::Told => f.write_str("a message of its own node"),
            Self::NextRound => f.write_str("the next round, where it has no turn in this one"),
        }
    }
}
