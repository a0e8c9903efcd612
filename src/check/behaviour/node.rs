//! The model of a peer: what it is and what it knows, and which part of the model answers for which input.

use super::{
    Case, Known,
    blocks::Passing,
    limits::{Callers, Calls, Endpoint},
    peers::Peers,
    pings::Ping,
    step::Cause,
    sync::{Phase, Sync},
    verification::{LeftOpen, Probe},
};
use crate::{
    actors::{ActorId, Message, NodeId, Role, SimTime, Wake, message::Inquiry},
    check::conduct,
    ledger::Link,
    protocol::{Block, BlockId},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// What is due by a time may be so much later: virtual clocks are exact.
pub(super) const GRACE: Duration = Duration::from_millis(50);

/// What a peer is and knows, as far as that follows from what it heard.
#[derive(Clone)]
pub(super) struct PeerModel {
    pub id: NodeId,
    pub tip: Arc<Link>,
    /// It takes blocks in; `None` while it catches up for the first time and that cannot be told.
    pub started: Option<bool>,
    /// The addresses it was given, without its own.
    pub given: BTreeSet<NodeId>,
    pub peers: Peers,
    /// Nodes it has asked where they stand, when, and whether it surely still waits for that.
    pub newcomers: BTreeMap<NodeId, (SimTime, bool)>,
    pub probes: BTreeMap<NodeId, Probe>,
    /// Questions of verifications that are over otherwise.
    pub left_open: Vec<LeftOpen>,
    /// The highest number of a question sent so far.
    pub last_inquiry: Inquiry,
    /// When a question for headers that had been held back was last sent to whom.
    pub held_headers: BTreeMap<NodeId, SimTime>,
    /// Number of the last ping of all peers, and those that run.
    pub pinged: u32,
    pub pings: Vec<Ping>,
    /// When all were pinged, as far as it matters to limits.
    pub pinged_at: Vec<SimTime>,
    pub passing: Option<Passing>,
    /// Blocks to be passed on, and when.
    pub waves: VecDeque<(BlockId, SimTime)>,
    /// When blocks were last passed on.
    pub pushes: VecDeque<SimTime>,
    pub callers: Callers,
    pub calls: Calls,
    pub sync: Sync,
    pub last_accepted: SimTime,
    /// When it looks for blocks if none comes.
    pub looks_at: Option<SimTime>,
    /// When it looks for peers at the latest.
    pub discovers_by: Option<SimTime>,
    /// When all nodes it was given must have been called, and since when.
    pub calls_given: Option<(SimTime, BTreeSet<NodeId>)>,
    /// Slots missed since the round began.
    pub missed: u32,
    /// A health check may come until then.
    pub doubts_until: SimTime,
    /// A health check must come by then.
    pub doubts_by: Option<SimTime>,
    /// Which block it passes around is not known, since it deviated.
    pub vague: bool,
    /// When it last asked for peers.
    pub asked_for_peers: Option<SimTime>,
}

impl PeerModel {
    /// A peer of a running network on `tip`, connected to all it was given.
    pub(super) fn connected(id: NodeId, tip: &Arc<Link>, given: Arc<[NodeId]>, start: SimTime) -> Self {
        let given: BTreeSet<NodeId> = given.iter().copied().filter(|node| *node != id).collect();
        Self {
            id,
            tip: tip.clone(),
            started: Some(true),
            peers: Peers::connected(&given, tip.height()),
            newcomers: BTreeMap::new(),
            probes: BTreeMap::new(),
            left_open: Vec::new(),
            last_inquiry: Inquiry(0),
            held_headers: BTreeMap::new(),
            pinged: 0,
            pings: Vec::new(),
            pinged_at: Vec::new(),
            passing: None,
            waves: VecDeque::new(),
            pushes: VecDeque::new(),
            callers: Callers::default(),
            calls: Calls::default(),
            sync: Sync::new(Phase::Idle),
            last_accepted: start,
            looks_at: None,
            discovers_by: None,
            calls_given: None,
            missed: 0,
            doubts_until: SimTime::default(),
            doubts_by: None,
            vague: false,
            asked_for_peers: None,
            given,
        }
    }

    /// The same of a node that comes back: connected to nobody.
    fn comes_back(&mut self, local: SimTime) {
        let given: Arc<[NodeId]> = self.given.iter().copied().collect();
        *self = Self::connected(self.id, &self.tip, given, local);
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
                self.comes_back(case.step.local);
                self.calls_all_it_knows(case);
            }
            Cause::Deviates(_) => {}
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

    fn begins(&mut self, known: &Known, local: SimTime) {
        self.last_accepted = local;
        if !self.given.is_empty() {
            self.looks_at = Some(local + wake_up_time(known));
            self.discovers_by = looks_for_peers(known).then(|| local + Duration::from_secs(600));
        }
    }

    /// Another node's peer speaks.
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
            _ => {}
        }
    }

    fn woken(&mut self, case: &mut Case<'_>, wake: Wake) {
        match wake {
            Wake::Gossip(id) => self.passes_on_again(case, &id),
            Wake::PingOver { ping } => self.ping_over(case, ping),
            Wake::PingAgain { ping } => self.pings_again(case, ping),
            Wake::WakeUp => self.looks_for_blocks(case),
            Wake::Unanswered => self.gives_up_waiting(case),
            Wake::Throttled => self.sends_held_back(case),
            Wake::Discover => self.looks_for_peers(case),
            Wake::DiscoveryOver { .. } | Wake::Forge { .. } | Wake::Bundle => {}
        }
    }

    /// The tip moves as the step's events say.
    pub(super) fn moves(&mut self, case: &mut Case<'_>, link: &Arc<Link>) {
        self.tip = link.clone();
        self.last_accepted = case.step.local;
        self.looks_at = self.looks_at.map(|_| case.step.local + wake_up_time(case.known));
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

pub(super) fn wake_up_time(known: &Known) -> Duration {
    Duration::from_secs(u64::from(known.rules().node.wake_up_s.max(1)))
}

pub(super) fn looks_for_peers(known: &Known) -> bool {
    known.rules().node.discovery || known.rules().node.retry_dropped_peers
}

pub(super) fn message_is_push(message: &Message) -> bool {
    matches!(message, Message::Block(_) | Message::Transactions(_))
}

/// The kind of a message.
pub(super) fn name(message: &Message) -> &'static str {
    match message {
        Message::Block(_) => "a block",
        Message::Transactions(_) => "transactions",
        Message::StatusRequest => "the question where it stands",
        Message::Status { .. } => "where it stands",
        Message::BlocksRequest { headers_only: true, .. } => "the question for headers",
        Message::BlocksRequest { .. } => "the question for blocks",
        Message::Blocks { .. } => "blocks",
        Message::CommonBlocksRequest { .. } => "the question for common blocks",
        Message::CommonBlocks { .. } => "common blocks",
        Message::PeersRequest => "the question for peers",
        Message::Peers(_) => "its peers",
        Message::HungUp => "that it hangs up",
        Message::RoundRequest | Message::Round(_) | Message::RoundChanged(_) => "the round",
        Message::NetworkStateRequest | Message::NetworkState(_) => "the state of the network",
        Message::ForgingTransactionsRequest | Message::ForgingTransactions(_) => "transactions to forge",
        Message::Forged(_) => "a forged block",
        Message::WakeUp => "to wake up",
        Message::RelayFailed { .. } => "that the relay failed",
        Message::ChooseTransactions { .. } => "to choose transactions",
        Message::AddTransactions(_) => "to add transactions",
        Message::Broadcast(_) => "to send transactions on",
        Message::TipMoved { .. } => "that the tip moved",
        Message::BlockNotApplied { .. } => "that a block does not apply",
        Message::Reorganised { .. } => "that the chain was reorganised",
        Message::AlreadyForged { .. } => "what is forged already",
    }
}

/// Whether a block follows another on a chain.
pub(super) fn chains(known: &Known, tip: &Link, block: &Block) -> bool {
    let slots = known.tree.slots();
    let header = &block.header;
    header.previous == Some(tip.id())
        && header.height.0 == tip.height().0 + 1
        && slots.slot(header.timestamp) > slots.slot(tip.block().header.timestamp)
}
