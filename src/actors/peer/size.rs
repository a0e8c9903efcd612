//! The memory that a peer takes, for estimates of what a run will need.

use super::{
    Peer, TABLED,
    inquiry::Inquiries,
    limits::{Limits, NODES_KEPT},
    neighbours::Neighbour,
};
use crate::actors::NodeId;

impl Peer {
    /// Bytes of a peer that knows nobody.
    pub const BYTES: u64 = size_of::<Self>() as u64;
    /// Bytes that a neighbour takes: its record, and its number among those that are told to others.
    pub const NEIGHBOUR_BYTES: u64 = (size_of::<Neighbour>() + size_of::<NodeId>()) as u64;
    /// Bytes that a node takes that is no neighbour and was asked whether it wants to be one: the question, and the windows
    /// that keep within its limits.
    pub const STRANGER_BYTES: u64 = Inquiries::BYTES_EACH + Limits::HIGH_BYTES_EACH;

    /// Bytes that a peer in a network of so many nodes takes for the limits of others and its own once it is busy: those of
    /// nodes with low numbers stand in a table, a few of the others are kept.
    pub const fn limits_bytes(nodes: u64) -> u64 {
        let tabled = if nodes < TABLED as u64 { nodes } else { TABLED as u64 };
        let high = nodes - tabled;
        let kept = if high < NODES_KEPT as u64 { high } else { NODES_KEPT as u64 };
        2 * (tabled * Limits::LOW_BYTES_EACH + kept * Limits::HIGH_BYTES_EACH)
    }
}
