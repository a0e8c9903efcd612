//! The kinds of calls that have rate limits, and the limits. Source: consensus.md 6.

use crate::actors::Message;

/// An endpoint, which a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Endpoint {
    /// All calls together.
    Any,
    Block,
    Blocks,
    Peers,
    Status,
    CommonBlocks,
    Transactions,
}

impl Endpoint {
    /// All endpoints, in the order of their numbers.
    pub(super) const ALL: [Self; 7] =
        [Self::Any, Self::Block, Self::Blocks, Self::Peers, Self::Status, Self::CommonBlocks, Self::Transactions];

    /// The endpoint that a message calls; `None` for an answer.
    pub(super) fn of(message: &Message) -> Option<Self> {
        match message {
            Message::Block(_) => Some(Self::Block),
            Message::Announcement(_) | Message::BodyRequest { .. } => Some(Self::Any),
            Message::BlocksRequest { .. } => Some(Self::Blocks),
            Message::PeersRequest => Some(Self::Peers),
            Message::StatusRequest => Some(Self::Status),
            Message::CommonBlocksRequest { .. } => Some(Self::CommonBlocks),
            Message::Transactions(_) => Some(Self::Transactions),
            _ => None,
        }
    }

    pub(super) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The allowed number of messages and the period, in microseconds.
    pub(super) const fn allowance(self) -> Option<(u64, u64)> {
        match self {
            Self::Any => Some((100, 1_000_000)),
            Self::Block => Some((2, 4_000_000)),
            Self::Blocks => Some((1, 2_000_000)),
            Self::Peers => Some((1, 1_000_000)),
            Self::Status => Some((2, 1_000_000)),
            Self::CommonBlocks => Some((9, 1_000_000)),
            Self::Transactions => None,
        }
    }
}
