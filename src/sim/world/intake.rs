//! The delays of a message beside its latency: an uplink that it shares, the receiver's downlink, and the time that a node takes to
//! validate, forge or serve a block.

use super::{Item, World};
use crate::{
    actors::{ActorId, BodyPart, Input, Message, SimTime},
    ledger::codec::saved,
    protocol::TransactionId,
    sim::network::{Approach, Flow},
};

/// A message that has reached its receiver's downlink or processor.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    pub(super) from: ActorId,
    pub(super) to: ActorId,
    /// The receiver's generation when the message was sent.
    pub(super) generation: u32,
    pub(super) message: Message,
    /// The time at which the first byte came to the downlink, or `None` if the last byte has passed it.
    pub(super) first: Option<SimTime>,
}

/// An answer with blocks that its sender is still making.
#[derive(Clone, Debug)]
pub(super) struct UnsentAnswer {
    pub(super) from: ActorId,
    pub(super) to: ActorId,
    /// The sender's generation when it began.
    pub(super) generation: u32,
    pub(super) message: Message,
}

impl World {
    /// Begins the work for an answer with blocks. Returns false if it takes no time, and leaves the message as it is.
    #[inline(never)]
    pub(super) fn serve(&mut self, from: ActorId, to: ActorId, message: &mut Message) -> bool {
        let Some(processors) = &mut self.processors else { return false };
        let done = processors.serve(self.now, from.node, message, |block| self.network.size_of_block(block));
        if done <= self.now {
            return false;
        }
        let generation = self.nodes.generation(from.node);
        let answer = UnsentAnswer { from, to, generation, message: message.take() };
        self.queue.push(done, Item::Answer(answer.into()));
        true
    }

    /// Sends an answer that is done, if its sender has not crashed meanwhile.
    pub(super) fn send_answer(&mut self, answer: UnsentAnswer) {
        let UnsentAnswer { from, to, generation, mut message } = answer;
        if self.nodes.is_up(from.node) && self.nodes.generation(from.node) == generation {
            self.transmit(from, to, &mut message);
        }
    }

    /// Schedules the arrival of a copy of a message at its receiver's downlink or processor.
    pub(super) fn approach(&mut self, approach: Approach, from: ActorId, to: ActorId, message: Message) {
        let generation = self.nodes.generation(to.node);
        let intake = Intake { from, to, generation, message, first: Some(approach.first) };
        self.queue.push(approach.last, Item::Intake(intake.into()));
    }

    /// Takes a message to its next delay on the way into a node. Returns what the node hears now if there is none.
    pub(super) fn take_in(&mut self, mut intake: Box<Intake>) -> Option<Item> {
        if let Some(first) = intake.first.take() {
            let passed = self.network.receive(self.now, intake.from.node, intake.to.node, &intake.message, first);
            if passed > self.now {
                self.queue.push(passed, Item::Intake(intake));
                return None;
            }
        }
        let Intake { from, to, generation, message, .. } = *intake;
        let mut heard = self.now;
        // A message for a node that is down is lost without work.
        let is_there = self.nodes.is_up(to.node) && self.nodes.generation(to.node) == generation;
        if is_there && let Some((bytes, at)) = self.network.missing(self.now, from.node, to.node, &message) {
            let Message::Body { inquiry, block, .. } = message else { return None };
            let message = Message::Body { inquiry, block, part: BodyPart::Missing { bytes } };
            let answer = UnsentAnswer { from, to, generation: self.nodes.generation(from.node), message };
            self.queue.push(at, Item::Answer(answer.into()));
            return None;
        }
        if is_there && let Some(processors) = &mut self.processors {
            heard = processors.validate(self.now, to.node, &message, |block| self.network.size_of_block(block));
        }
        let item = Item::Input { to, generation, input: Input::Message { from, message } };
        if heard > self.now {
            self.queue.push(heard, item);
            return None;
        }
        Some(item)
    }

    /// Returns the time at which a node has a message that its own delegate or pool sends at `at`. A block takes time to forge.
    #[inline]
    pub(super) fn within_node(&mut self, at: SimTime, to: ActorId, message: &Message) -> SimTime {
        match (&mut self.processors, message) {
            (Some(processors), Message::Forged(block)) => {
                let size = self.network.size_of_block(block);
                processors.forge(at, to.node, block, size)
            }
            _ => at,
        }
    }

    /// All messages under way, with their senders and receivers. Reads the whole queue.
    pub(super) fn under_way(&self) -> impl Iterator<Item = (ActorId, ActorId, &Message)> {
        let flows = self.network.flows().iter().map(|flow| (flow.from, flow.to, &flow.message));
        self.queue.messages().chain(flows)
    }

    /// Removes a transaction from all messages that are under way or wait on nodes. Returns the number of copies that held it.
    pub(super) fn drop_transaction(&mut self, id: &TransactionId) -> usize {
        let flows = self.network.flows_mut().iter_mut().map(|flow| usize::from(flow.message.drop_transaction(id)));
        let flows: usize = flows.sum();
        flows + self.queue.drop_transaction(id) + self.nodes.drop_transaction(id)
    }

    /// Adds a message that shares its uplink or its receiver's downlink with others.
    pub(super) fn start_flow(&mut self, flow: Flow) {
        if let Some(at) = self.network.start_flow(self.now, flow) {
            self.queue.push(at, Item::Departures);
        }
    }

    /// Schedules the arrivals of the messages that have left by now, and the next change of rates.
    pub(super) fn finish_flows(&mut self) {
        let (departed, again) = self.network.departed(self.now);
        for Flow { from, to, generation, message, after, .. } in departed {
            for time in after {
                let (at, message) = (self.now + time, message.clone());
                let item = match self.network.is_taken_in(&message) {
                    true => Item::Intake(Intake { from, to, generation, message, first: None }.into()),
                    false => Item::Input { to, generation, input: Input::Message { from, message } },
                };
                self.queue.push(at, item);
            }
        }
        if let Some(at) = again {
            self.queue.push(at, Item::Departures);
        }
    }
}

saved!(struct Intake { from, to, generation, message, first });
saved!(struct UnsentAnswer { from, to, generation, message });
