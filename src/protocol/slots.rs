//! Slot arithmetic. Block time and epoch are those of the milestone at height 1, always. Source: protocol.md 5.1.

use super::{Slot, Timestamp};

/// The slot clock of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Slot length [s], from the milestone at height 1.
    blocktime: u32,
    /// The epoch as Unix time [s].
    epoch_unix: i64,
}

impl Slots {
    /// `blocktime` must not be 0.
    pub fn new(blocktime: u32, epoch_unix: i64) -> Self {
        assert!(blocktime > 0, "milestones refuse a block time of 0");
        Self { blocktime, epoch_unix }
    }
    /// Slot length [s].
    pub fn blocktime(&self) -> u32 {
        self.blocktime
    }
    /// The epoch as Unix time [s].
    pub fn epoch_unix(&self) -> i64 {
        self.epoch_unix
    }
    /// The slot a timestamp lies in.
    pub fn slot(&self, timestamp: Timestamp) -> Slot {
        Slot(timestamp.0 / self.blocktime)
    }
    /// The first second of a slot.
    pub fn start(&self, slot: Slot) -> Timestamp {
        Timestamp(slot.0 * self.blocktime)
    }
    /// Whether the timestamp lies in the forging half of its slot.
    pub fn forging_allowed(&self, timestamp: Timestamp) -> bool {
        timestamp.0 % self.blocktime < self.blocktime / 2
    }
}
