//! The random numbers that decide what becomes of messages: the next ones of the sender's stream, or those of the message's name.

use super::kind_of;
use crate::{
    actors::{Choices, Message, NodeId, SimTime, random::Drawing},
    ledger::saved::{LoadError, Loader, Saved, Saver},
    protocol::{Slot, Slots},
    sim::{DrawsBy, SeedTree},
};
use rand::RngCore;
use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use std::collections::BTreeMap;

/// What is decided of a message.
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

/// The numbers of all messages.
#[derive(Clone, Debug)]
pub(super) enum Fates {
    /// By sender: what one direction of a link draws moves nothing in the other. Empty where nothing is drawn.
    InOrder(Vec<Xoshiro256PlusPlus>),
    ByName(Box<Named>),
}

/// A message is named by its link, its kind, the slot in which it leaves, and its number among those: a message more or less
/// moves the names of those after it in the slot, and of no others.
#[derive(Clone, Debug)]
pub(super) struct Named {
    choices: Choices,
    slots: Slots,
    slot: Slot,
    /// Messages that left in the slot, by sender, receiver and kind.
    sent: BTreeMap<(NodeId, NodeId, u8), u32>,
    /// The name of the last one.
    message: [u64; 5],
}

impl Fates {
    /// Those of a run. `drawn` tells whether the network draws for messages.
    pub(super) fn new(nodes: u32, drawn: bool, slots: Slots, seeds: SeedTree) -> Self {
        match seeds.draws() {
            DrawsBy::InOrder if drawn => Self::InOrder((0..nodes).map(|node| of_sender(node, seeds)).collect()),
            DrawsBy::InOrder => Self::InOrder(Vec::new()),
            DrawsBy::ByName => {
                let choices = seeds.choices("network/messages");
                let named = Named { choices, slots, slot: Slot(0), sent: BTreeMap::new(), message: [0; 5] };
                Self::ByName(named.into())
            }
        }
    }

    /// Draws the numbers of other seeds from now on.
    pub(super) fn draw_anew(&mut self, seeds: SeedTree) {
        match self {
            Self::InOrder(senders) => {
                for (node, random) in (0_u32..).zip(senders) {
                    *random = of_sender(node, seeds);
                }
            }
            Self::ByName(named) => named.choices = seeds.choices("network/messages"),
        }
    }

    /// A message leaves: what is decided next is about it.
    #[inline]
    pub(super) fn leaves(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) {
        if let Self::ByName(named) = self {
            named.leaves(now, from, to, message);
        }
    }

    /// The numbers for one decision about the message that leaves.
    #[inline]
    pub(super) fn of(&mut self, from: NodeId, fate: Fate) -> Drawing<'_, Xoshiro256PlusPlus> {
        match self {
            Self::InOrder(senders) => Drawing::InOrder(&mut senders[from.0 as usize]),
            Self::ByName(named) => Drawing::ByName(named.message().at(&[fate as u64])),
        }
    }

    /// What faults decide of the message that leaves, by name.
    pub(super) fn named(&self) -> Option<Choices> {
        match self {
            Self::InOrder(_) => None,
            Self::ByName(named) => Some(named.message().of(Fate::Fault as u64)),
        }
    }
}

impl Named {
    fn leaves(&mut self, now: SimTime, from: NodeId, to: NodeId, message: &Message) {
        let slot = self.slots.slot(now.seconds());
        if slot != self.slot {
            self.slot = slot;
            self.sent.clear();
        }
        // Of a question and its answer, each has a number of its own.
        let answers = matches!(
            message,
            Message::Status { .. }
                | Message::Blocks { .. }
                | Message::CommonBlocks { .. }
                | Message::Peers(_)
                | Message::Connected { .. }
        );
        let kind = kind_of(message).map_or(u8::MAX, |kind| 2 * kind as u8 + u8::from(answers));
        let number = self.sent.entry((from, to, kind)).or_default();
        self.message = [slot.0, from.0, to.0, kind.into(), *number].map(u64::from);
        *number += 1;
    }

    /// The decisions about the last message.
    fn message(&self) -> Choices {
        Choices::new(self.choices.at(&self.message).next_u64())
    }
}

fn of_sender(node: u32, seeds: SeedTree) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::from_seed(seeds.bytes(&format!("network/messages/{node}")))
}

impl Fates {
    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        match self {
            Self::InOrder(senders) => senders.save(out),
            Self::ByName(named) => {
                let Named { choices, slots: _, slot, sent, message: _ } = &**named;
                choices.save(out);
                if out.ahead_of().is_none() {
                    slot.save(out);
                    sent.save(out);
                }
            }
        }
    }

    /// Goes on from what was written down of a network that began like this one.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        match self {
            Self::InOrder(senders) => *senders = Saved::load(from)?,
            Self::ByName(named) => {
                named.choices = Saved::load(from)?;
                named.slot = Saved::load(from)?;
                named.sent = Saved::load(from)?;
            }
        }
        Ok(())
    }
}
