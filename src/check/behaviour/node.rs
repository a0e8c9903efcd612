//! The model of a peer: the part of the model that judges each input. `state` holds what the peer is and knows.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    peers::Peers,
    state::{PeerModel, Phase, Sync, Timer, looks_for_peers, wake_up_time},
    step::Cause,
};
use crate::{
    actors::{ActorId, Message, NodeId, Role, SimTime, Wake, message::Inquiry},
    check::conduct,
    ledger::Link,
};
use std::{sync::Arc, time::Duration};

impl PeerModel {
    /// Becomes the model of a node that comes back without connections.
    fn comes_back(&mut self) {
        let given: Arc<[NodeId]> = self.given.iter().copied().collect();
        *self = Self::connected(self.id, &self.tip, given);
        if self.given.is_empty() {
            // It rests at once.
            self.timer = Timer::Unknown;
        }
        self.peers = Peers::default();
        self.started = (self.given.is_empty()).then_some(true);
        self.sync = Sync::new(if self.given.is_empty() { Phase::Idle } else { Phase::Starting });
    }

    /// Judges a step, and follows it.
    pub(super) fn judge(&mut self, case: &mut Case<'_>) {
        let timely = case.known.timely[self.id.0 as usize];
        if timely && !matches!(case.step.cause, Cause::Begins | Cause::Start) {
            self.judge_deadlines(case);
        }
        match &case.step.cause {
            Cause::Start => self.begins(case.known, case.step.local),
            Cause::Begins => {
                self.comes_back();
                self.calls_all_it_knows(case);
            }
            Cause::Deviates(_) | Cause::Learns | Cause::Spare(..) => {}
            Cause::Wake(wake) => self.woken(case, *wake),
            Cause::Submit(transactions) => {
                self.hands_in(case, transactions, true);
            }
            Cause::Message(from, message) if from.node == self.id => {
                self.told(case, message);
            }
            Cause::Message(from, message) => self.called(case, *from, message),
        }
        self.peers.doubt(case.step.local);
        self.settle(case);
        self.look_at_rest(case);
        let numbers = case.step.sent().filter_map(|(_, message)| match message {
            Message::BlocksRequest { inquiry, .. } | Message::CommonBlocksRequest { inquiry, .. } => Some(*inquiry),
            _ => None,
        });
        self.last_inquiry = numbers.fold(self.last_inquiry, Inquiry::max);
    }

    fn begins(&mut self, known: &ModelContext, local: SimTime) {
        self.timer = Timer::Runs(local + wake_up_time(known));
        if !self.given.is_empty() {
            self.discovers_by = looks_for_peers(known).then(|| local + Duration::from_secs(600));
        }
    }

    /// Judges a message from another node's peer.
    fn called(&mut self, case: &mut Case<'_>, from: ActorId, message: &Message) {
        let from = from.node;
        if let Some(endpoint) = Endpoint::of(message) {
            return self.hears_call(case, from, endpoint, message);
        }
        match message {
            Message::Status { tip } => self.hears_status(case, from, tip),
            Message::Blocks { inquiry, height, blocks } => {
                self.peers.stands_at(from, *height);
                self.hears_late_answer(from, *inquiry);
                if !self.hears_headers(case, from, *inquiry, blocks) {
                    self.hears_chunk(case, from, *inquiry, blocks);
                }
            }
            Message::CommonBlocks { inquiry, height, common } => {
                self.peers.stands_at(from, *height);
                self.hears_late_answer(from, *inquiry);
                self.hears_common(case, from, *inquiry, common.as_deref().copied());
            }
            Message::HungUp => self.forget_peer(case, from),
            Message::Peers(_) => {
                self.asked_to_name.remove(&from);
            }
            Message::Connect { trip } => self.is_connected_to(case, from, *trip),
            Message::Connected { trip } => self.goes_on_connecting(case, from, *trip),
            _ => {}
        }
    }

    fn woken(&mut self, case: &mut Case<'_>, wake: Wake) {
        match wake {
            Wake::Gossip(id) => self.passes_on_again(case, &id),
            Wake::PingOver { ping } => self.ping_over(case, ping),
            Wake::PingAgain { ping } => self.pings_again(case, ping),
            Wake::WakeUp => self.timer_rings(case),
            Wake::Unanswered => self.gives_up_waiting(case),
            Wake::Throttled => self.sends_held_back(case),
            Wake::Discover => self.looks_for_peers(case),
            Wake::DiscoveryOver { .. } => self.naming_over(case),
            Wake::Forge { .. } | Wake::Bundle | Wake::Behaviour { .. } => {}
        }
    }

    /// Moves the model to an applied block, and judges the messages to pool and delegate.
    pub(super) fn moves(&mut self, case: &mut Case<'_>, link: &Arc<Link>) {
        self.tip = link.clone();
        self.timer = match self.started {
            Some(true) => Timer::Runs(case.step.local + wake_up_time(case.known)),
            Some(false) => self.timer,
            None => Timer::Unknown,
        };
        self.sync.makes_headway();
        if !link.block().transactions.is_empty() {
            let told = case.left.take_own(Role::Pool, |message| match message {
                Message::TipMoved { tip } => Some(tip),
                _ => None,
            });
            case.report.judge(&conduct::TO_POOL, told.is_some_and(|tip| tip.is(link)), || {
                format!("its pool heard {told:?} after a block with transactions")
            });
        }
        if link.round_end().is_some() {
            self.tells_round(case, link);
        }
        let delegates = case.known.tree.applied(link).state.round().position.delegates;
        for _ in link.missing() {
            self.missed += 1;
            if 3 * (self.missed + 1) >= delegates {
                self.doubts_until = case.step.local + Duration::from_secs(200);
            }
        }
        if link.round_end().is_some() {
            self.missed = 0;
        }
    }
}
