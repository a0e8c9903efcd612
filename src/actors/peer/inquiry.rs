//! Questions to other peers that still wait for an answer. The peer ignores an answer without a question.
//!
//! Pings of all peers are not among them: they are numbered by the round (`ping`), because there are a great many.

use super::Peer;
use crate::{
    actors::{Effect, Message, NodeId, SimTime, Wake, message::Inquiry},
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
    protocol::{Block, BlockId},
};
use std::{sync::Arc, time::Duration};

/// The number of low bits that distinguish questions of the same microsecond.
const A_MICROSECOND: u32 = 8;

/// The purpose of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The status of a node that is no peer yet.
    Newcomer,
    /// The next step of verifying a peer.
    Probe,
    /// A chunk of the running download, by its place.
    Chunk(usize),
    /// A block that a peer has announced.
    Body(BlockId),
}

/// Questions not answered yet, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    /// The number of the last question. Its high bits are the time, because the answer to a question from before a restart may still come.
    asked: u64,
    pub(super) open: Vec<(Inquiry, OpenInquiry)>,
    /// The alarms that wake the peer to look for unanswered questions, the next one last. Not each question has its own: few stay
    /// unanswered, and a peer in doubt asks thousands.
    alarms: Vec<SimTime>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenInquiry {
    pub(super) to: NodeId,
    pub(super) purpose: Purpose,
    /// The deadline for the answer.
    pub(super) until: SimTime,
}

impl Inquiries {
    /// Opens a question to a node. Returns its number.
    fn open(&mut self, now: SimTime, to: NodeId, purpose: Purpose, until: SimTime) -> Inquiry {
        self.asked = (self.asked + 1).max(now.micros() << A_MICROSECOND);
        let inquiry = Inquiry(self.asked);
        self.open.push((inquiry, OpenInquiry { to, purpose, until }));
        inquiry
    }

    /// Closes a question that the node `from` answers. Returns its purpose.
    pub(super) fn close(&mut self, inquiry: Inquiry, from: NodeId) -> Option<Purpose> {
        let place = self.place(inquiry)?;
        let OpenInquiry { to, purpose, .. } = self.open[place].1;
        if to != from {
            return None;
        }
        self.open.remove(place);
        Some(purpose)
    }

    fn place(&self, inquiry: Inquiry) -> Option<usize> {
        self.open.binary_search_by_key(&inquiry, |(open, _)| *open).ok()
    }

    /// Closes all questions for which `given_up` returns true.
    pub(super) fn give_up(&mut self, given_up: impl Fn(NodeId, Purpose) -> bool) {
        self.open.retain(|(_, open)| !given_up(open.to, open.purpose));
    }

    fn of(&self, node: NodeId) -> Vec<(Inquiry, Purpose)> {
        let of_node = self.open.iter().filter(|(_, open)| open.to == node);
        of_node.map(|(inquiry, open)| (*inquiry, open.purpose)).collect()
    }

    /// The questions whose deadline has passed, by deadline.
    fn overdue(&self, now: SimTime) -> Vec<Inquiry> {
        let overdue = self.open.iter().filter(|(_, open)| open.until <= now);
        let mut overdue: Vec<_> = overdue.map(|(inquiry, open)| (open.until, *inquiry)).collect();
        overdue.sort_unstable();
        overdue.into_iter().map(|(_, inquiry)| inquiry).collect()
    }

    /// Makes sure that an alarm wakes the peer at `at` or before. An alarm that is overdue was set before the clock was put forward, so
    /// it is unknown when it comes.
    fn wake_by(&mut self, now: SimTime, at: SimTime, effects: &mut Vec<Effect>) {
        if self.alarms.last().is_none_or(|next| at < *next || *next < now) {
            self.alarms.push(at);
            effects.push(Effect::WakeAt { at, wake: Wake::Unanswered });
        }
    }
}

impl Peer {
    /// Asks a node a question, to be answered within `time`.
    pub(super) fn inquire(
        &mut self,
        now: SimTime,
        to: NodeId,
        purpose: Purpose,
        time: Duration,
        question: impl FnOnce(Inquiry) -> Message,
        effects: &mut Vec<Effect>,
    ) {
        let inquiry = self.inquiries.open(now, to, purpose, now + time);
        self.inquiries.wake_by(now, now + time, effects);
        self.call(now, to, question(inquiry), effects);
    }

    pub(super) fn blocks_answered(
        &mut self,
        now: SimTime,
        from: NodeId,
        inquiry: Inquiry,
        blocks: &[Arc<Block>],
        effects: &mut Vec<Effect>,
    ) {
        match self.inquiries.close(inquiry, from) {
            Some(Purpose::Chunk(index)) => self.chunk_answered(now, from, index, blocks, effects),
            Some(Purpose::Probe) => self.headers_answered(now, from, blocks, effects),
            Some(Purpose::Newcomer | Purpose::Body(_)) | None => {}
        }
    }

    pub(super) fn common_answered(
        &mut self,
        now: SimTime,
        from: NodeId,
        inquiry: Inquiry,
        common: Option<BlockId>,
        effects: &mut Vec<Effect>,
    ) {
        if self.inquiries.close(inquiry, from) == Some(Purpose::Probe) {
            self.probe_answered(now, from, common, effects);
        }
    }

    /// Drops the peers that have not answered in time. `peer.removed` reports this only if a running ping fails because of it: the
    /// peer may have passed by a newer status since the question of its verification. Source: consensus.md 6.
    pub(super) fn see_unanswered(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.inquiries.alarms.pop();
        for inquiry in self.inquiries.overdue(now) {
            // An earlier failure may have closed it.
            let Some(place) = self.inquiries.place(inquiry) else { continue };
            let (_, OpenInquiry { to, purpose, .. }) = self.inquiries.open.remove(place);
            let fails_ping = purpose == Purpose::Probe && self.probes.contains_key(&to);
            self.failed(now, to, purpose, effects);
            if !fails_ping && purpose != Purpose::Newcomer {
                self.drop_peer(now, to, effects);
            }
        }
        if let Some(next) = self.inquiries.open.iter().map(|(_, open)| open.until).min() {
            self.inquiries.wake_by(now, next, effects);
        }
    }

    /// Forgets a peer, and fails all open questions to it.
    pub(super) fn drop_peer(&mut self, now: SimTime, node: NodeId, effects: &mut Vec<Effect>) {
        self.forget_tip(node);
        if let Some(neighbour) = self.neighbours.remove(node) {
            self.settle(now, neighbour.answered, effects);
        }
        for (inquiry, purpose) in self.inquiries.of(node) {
            // An earlier failure may have closed it.
            if self.inquiries.close(inquiry, node).is_some() {
                self.failed(now, node, purpose, effects);
            }
        }
    }

    fn failed(&mut self, now: SimTime, node: NodeId, purpose: Purpose, effects: &mut Vec<Effect>) {
        match purpose {
            Purpose::Newcomer => self.newcomer_failed(now, node, effects),
            // A peer that is no longer being verified has passed, and fails no ping.
            Purpose::Probe if !self.probes.contains_key(&node) => {}
            Purpose::Probe => self.verification_failed(now, node, effects),
            Purpose::Chunk(index) => self.chunk_failed(now, index, effects),
            Purpose::Body(id) => self.body_failed(now, id, effects),
        }
    }
}

saved!(enum Purpose { 0 Newcomer, 1 Probe, 2 Chunk(place), 3 Body(id) });
saved!(struct OpenInquiry { to, purpose, until });

impl Save for Inquiries {
    fn save(&self, out: &mut Saver) {
        let Self { asked, open, alarms } = self;
        // The next number is at least that of the current time, however many questions there were before.
        out.ahead_of().map_or(*asked, |now| (*asked).max(now << A_MICROSECOND)).save(out);
        open.save(out);
        alarms.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(Self { asked: Save::load(from)?, open: Save::load(from)?, alarms: Save::load(from)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_question_from_before_a_restart_answers_none_from_after_it() {
        let at = SimTime::from_micros;
        let mut before = Inquiries::default();
        let all: Vec<Inquiry> = (0..300).map(|_| before.open(at(7), NodeId(1), Purpose::Probe, at(9))).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "each has a number of its own");
        let mut after = Inquiries::default();
        let asked = after.open(at(9), NodeId(1), Purpose::Newcomer, at(11));
        assert!(all.iter().all(|old| after.close(*old, NodeId(1)).is_none()));
        assert_eq!(after.close(asked, NodeId(1)), Some(Purpose::Newcomer));
    }
}
