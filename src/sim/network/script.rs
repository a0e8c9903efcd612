//! Fates of single messages, which a caller sets. An exhaustive search sets them message by message.

use super::{interference::Verdict, is_question, kind_of};
use crate::{
    actors::{Message, NodeId},
    sim::fault::MessageKind,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mishap {
    Lost,
    /// It arrives later than it would.
    Late,
    /// It arrives once more, later.
    Doubled,
}

/// A message that left, named as a fault names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SentMessage {
    pub from: NodeId,
    pub to: NodeId,
    pub kind: MessageKind,
    /// Its number among those of its kind from one of these nodes to the other, questions and answers together, from 1 on.
    pub number: u32,
}

/// A message and its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deviation {
    #[serde(flatten)]
    pub sent: SentMessage,
    pub mishap: Mishap,
}

/// The fates of messages, and the messages that have left since these were set.
#[derive(Clone, Debug)]
pub struct Script {
    /// The kinds of messages to record. Questions count for the numbers, but are not recorded.
    kinds: Vec<MessageKind>,
    by: Duration,
    said: Vec<Deviation>,
    sent: Vec<SentMessage>,
    /// By sender, receiver and kind.
    counts: BTreeMap<(NodeId, NodeId, MessageKind), u32>,
}

impl Script {
    /// Begins without fates. Late messages, and second copies, arrive later by `by`.
    pub fn new(kinds: Vec<MessageKind>, by: Duration) -> Self {
        Self { kinds, by, said: Vec::new(), sent: Vec::new(), counts: BTreeMap::new() }
    }

    /// Sets the fates of the messages that leave from now on.
    pub fn say(&mut self, said: &[Deviation]) {
        self.said = said.to_vec();
        self.sent.clear();
    }

    /// The recorded messages that have left since the last call of [`Script::say`].
    pub fn sent(&self) -> &[SentMessage] {
        &self.sent
    }

    /// Counts and records a message that leaves, and adds its fate to the faults' `verdict`.
    pub(super) fn befall(&mut self, from: NodeId, to: NodeId, message: &Message, verdict: &mut Verdict) {
        let Some(kind) = kind_of(message).filter(|kind| self.kinds.contains(kind)) else { return };
        let count = self.counts.entry((from, to, kind)).or_default();
        *count += 1;
        if is_question(message) {
            return;
        }
        let sent = SentMessage { from, to, kind, number: *count };
        self.sent.push(sent);
        let Some(deviation) = self.said.iter().find(|deviation| deviation.sent == sent) else { return };
        match deviation.mishap {
            Mishap::Lost => verdict.lost = true,
            Mishap::Late => verdict.delay += self.by,
            Mishap::Doubled => verdict.copies.push(self.by),
        }
    }
}
