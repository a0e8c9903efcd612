//! Slot arithmetic. Block time and epoch are always those of the milestone at height 1. Source: protocol.md 5.1.

use super::{Slot, Timestamp};

/// The slot clock of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Slot length \[s\], from the milestone at height 1.
    blocktime: u32,
    /// The epoch as Unix time \[ms\].
    epoch_ms: i64,
}

impl Slots {
    /// `blocktime` must not be 0.
    pub fn new(blocktime: u32, epoch_ms: i64) -> Self {
        assert!(blocktime > 0, "milestones refuse a block time of 0");
        Self { blocktime, epoch_ms }
    }

    /// Slot length \[s\].
    pub fn blocktime(&self) -> u32 {
        self.blocktime
    }

    /// The epoch as Unix time \[ms\].
    pub fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// The whole seconds since the epoch at a Unix time \[ms\]; 0 before the epoch, the largest past its range.
    pub fn timestamp(&self, unix_ms: i64) -> Timestamp {
        let seconds = unix_ms.saturating_sub(self.epoch_ms).div_euclid(1000);
        Timestamp(seconds.clamp(0, i64::from(u32::MAX)) as u32)
    }

    /// A timestamp as Unix time \[s\], whole ones: an epoch may lie between two seconds.
    pub fn unix(&self, timestamp: Timestamp) -> i64 {
        self.epoch_ms.div_euclid(1000) + i64::from(timestamp.0)
    }

    /// An instant after the epoch \[ms\] as ISO 8601 in UTC with milliseconds, the form the API shows: `2017-03-21T13:00:00.000Z`.
    pub fn human(&self, since_epoch_ms: u64) -> String {
        let unix_ms = i64::try_from(since_epoch_ms).unwrap_or(i64::MAX).saturating_add(self.epoch_ms);
        let time = jiff::Timestamp::from_millisecond(unix_ms).unwrap_or(jiff::Timestamp::MAX);
        time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }

    /// The slot a timestamp lies in.
    pub fn slot(&self, timestamp: Timestamp) -> Slot {
        Slot(timestamp.0 / self.blocktime)
    }

    /// The first second of a slot; the largest timestamp for slots past the range.
    pub fn start(&self, slot: Slot) -> Timestamp {
        Timestamp(slot.0.saturating_mul(self.blocktime))
    }

    /// The time until the next slot begins \[ms\]: whole seconds, 1000 to the slot length.
    pub fn ms_until_next(&self, timestamp: Timestamp) -> u64 {
        u64::from(self.blocktime - timestamp.0 % self.blocktime) * 1000
    }

    /// Returns true if the timestamp lies in the forging half of its slot. Source: protocol.md 5.1.
    pub fn forging_allowed(&self, timestamp: Timestamp) -> bool {
        2 * u64::from(timestamp.0 % self.blocktime) < u64::from(self.blocktime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_begins_forges_and_ends() {
        let slots = Slots::new(8, 1_490_101_200_000);
        assert_eq!((slots.blocktime(), slots.epoch_ms()), (8, 1_490_101_200_000));
        assert_eq!(slots.slot(Timestamp(15)), Slot(1));
        assert_eq!(slots.start(Slot(1)), Timestamp(8));
        assert_eq!(slots.ms_until_next(Timestamp(8)), 8000);
        assert_eq!(slots.ms_until_next(Timestamp(15)), 1000);
        assert!(slots.forging_allowed(Timestamp(11)) && !slots.forging_allowed(Timestamp(12)));
        assert_eq!(slots.timestamp(1_490_101_201_999), Timestamp(1));
        assert_eq!(slots.timestamp(0), Timestamp(0));
        assert_eq!(slots.unix(Timestamp(5)), 1_490_101_205);
        assert_eq!(slots.human(0), "2017-03-21T13:00:00.000Z");
        assert_eq!(slots.human(86_400_250), "2017-03-22T13:00:00.250Z");
        let between = Slots::new(8, 1_490_101_200_688);
        assert_eq!(
            [1_490_101_201_687, 1_490_101_201_688].map(|ms| between.timestamp(ms)),
            [Timestamp(0), Timestamp(1)]
        );
        assert_eq!(
            (between.unix(Timestamp(1)), between.human(1_000)),
            (1_490_101_201, "2017-03-21T13:00:01.688Z".to_owned())
        );
    }

    #[test]
    fn an_odd_slot_length_forges_up_to_its_middle() {
        let slots = Slots::new(3, 0);
        assert!(slots.forging_allowed(Timestamp(1)) && !slots.forging_allowed(Timestamp(2)));
    }
}
