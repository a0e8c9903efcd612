//! The random numbers that decide the fates of messages. They follow from the message's name.

use super::kind_of;
use crate::{
    actors::{Choices, Message, NodeId, SimTime},
    ledger::codec::{LoadError, Loader, Save, Saver},
    protocol::{Slot, Slots, hashing::IdHash},
    sim::SeedTree,
};
use indexmap::IndexMap;
use rand_xoshiro::SplitMix64;

/// The decisions about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Latency,
    Overtaken,
    Delay,
    Doubled,
    SecondLatency,
    /// By a fault.
    Fault,
}

/// The random numbers of all messages. The name of a message consists of its link, its kind, the slot in which it leaves, and its number
/// among such messages. One message more or less changes only the names of later such messages in the same slot.
#[derive(Clone, Debug)]
pub(super) struct Fates {
    /// True if something is drawn for messages. Otherwise they need no names.
    pub(super) named: bool,
    choices: Choices,
    slots: Slots,
    slot: Slot,
    /// The number of messages that left in the slot, by sender and kind, and receiver.
    sent: IndexMap<(u64, u64), u32, IdHash>,
    /// The random numbers of the last message.
    message: Choices,
}

impl Fates {
    /// Returns the fates of a run.
    pub(super) fn new(named: bool, slots: Slots, seeds: SeedTree) -> Self {
        let choices = seeds.choices(NAME);
        Self { named, choices, slots, slot: Slot(0), sent: IndexMap::default(), message: choices }
    }

    /// Draws the numbers of other seeds from now on.
    pub(super) fn draw_anew(&mut self, seeds: SeedTree) {
        self.choices = seeds.choices(NAME);
    }

    /// Names a message that leaves. The next decisions are about this message.
    pub(super) fn leaves(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) {
        let slot = self.slots.slot(now.seconds());
        if slot != self.slot {
            self.slot = slot;
            self.sent.clear();
        }
        // A question and its answer have separate numbers.
        let answers = matches!(
            message,
            Message::Status { .. }
                | Message::Body { .. }
                | Message::Blocks { .. }
                | Message::CommonBlocks { .. }
                | Message::Peers(_)
                | Message::Connected { .. }
        );
        let kind = kind_of(message).map_or(u8::MAX, |kind| 2 * kind as u8 + u8::from(answers));
        let number = self.sent.entry((u64::from(from.0) << 8 | u64::from(kind), to.0.into())).or_default();
        self.message = self.choices.of_name(&[slot.0, from.0, to.0, kind.into(), *number].map(u64::from));
        *number += 1;
    }

    /// The numbers for one decision about the message that leaves.
    pub(super) fn of(&self, fate: Fate) -> SplitMix64 {
        self.message.at(&[fate as u64])
    }

    /// Returns the decisions of faults about the message that leaves.
    pub(super) fn of_faults(&self) -> Choices {
        self.message.of(Fate::Fault as u64)
    }

    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        let Self { named, choices, slots: _, slot, sent, message: _ } = self;
        named.save(out);
        choices.save(out);
        if out.ahead_of().is_none() {
            slot.save(out);
            sent.save(out);
        }
    }

    /// Continues from the saved values of a network that began like this one.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.named = Save::load(from)?;
        self.choices = Save::load(from)?;
        self.slot = Save::load(from)?;
        self.sent = Save::load(from)?;
        Ok(())
    }
}

/// The name of the random numbers for messages.
const NAME: &str = "network/messages";
