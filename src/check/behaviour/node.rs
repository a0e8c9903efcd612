//! The model of a peer: what it is and what it knows, and which part of the model answers for which input.

use super::{
    Known, Report,
    blocks::Passing,
    limits::{Callers, Calls, Endpoint},
    peers::{Peers, Ping},
    step::{Cause, Left, Step},
    sync::{Phase, Sync},
    verification::Probe,
};
use crate::{
    actors::{ActorId, Event, Message, NodeId, Role, SimTime, Wake},
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
    /// Whom questions of verifications are held back for that nobody waits for any more.
    pub stale_probes: Vec<NodeId>,
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
            stale_probes: Vec::new(),
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
    pub(super) fn judge(&mut self, known: &Known, report: &mut Report, step: &Step) {
        let timely = known.timely[self.id.0 as usize];
        if timely && !matches!(step.cause, Cause::Begins | Cause::Start) {
            self.judge_deadlines(report, step);
        }
        let mut left = Left::of(step);
        match &step.cause {
            Cause::Start => self.begins(known, step.local),
            Cause::Begins => {
                self.comes_back(step.local);
                self.calls_all_it_knows(report, step, &mut left);
            }
            Cause::Deviates(_) => {}
            Cause::Wake(wake) => self.woken(known, report, step, &mut left, *wake),
            Cause::Submit(transactions) => {
                self.hands_in(report, &mut left, transactions, true);
            }
            Cause::Message(from, message) if from.node == self.id => {
                self.told(known, report, step, &mut left, message);
            }
            Cause::Message(from, message) => self.called(known, report, step, &mut left, *from, message),
        }
        self.peers.doubt(step.local);
        self.settle(known, report, step, &mut left);
        self.look_at_rest(known, report, step, &mut left);
    }

    fn begins(&mut self, known: &Known, local: SimTime) {
        self.last_accepted = local;
        if !self.given.is_empty() {
            self.looks_at = Some(local + wake_up_time(known));
            self.discovers_by = looks_for_peers(known).then(|| local + Duration::from_secs(600));
        }
    }

    /// An actor of the own node speaks.
    fn told(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, message: &Message) {
        match message {
            Message::RoundRequest => {
                let view = left.take_own(Role::Delegate, |message| match message {
                    Message::Round(view) => Some(view),
                    _ => None,
                });
                let holds = view.is_some_and(|view| self.is_round(known, view));
                report.judge(&conduct::ROUND_TOLD, holds, || format!("it answered its delegate {view:?}"));
            }
            Message::NetworkStateRequest => self.pings_before_forging(known, report, step, left),
            Message::ForgingTransactionsRequest => {
                let tip = left.take_own(Role::Pool, |message| match message {
                    Message::ChooseTransactions { tip } => Some(tip),
                    _ => None,
                });
                let holds = tip.is_some_and(|tip| tip.is(&self.tip));
                report.judge(&conduct::TO_POOL, holds, || format!("it asked its pool to choose on {tip:?}"));
            }
            Message::Forged(block) => self.block_forged(known, report, step, left, block),
            Message::WakeUp => self.wakes_up(known, report, step, left),
            Message::Broadcast(transactions) => self.broadcasts(report, step, left, transactions),
            _ => {}
        }
    }

    pub(super) fn is_round(&self, known: &Known, view: &crate::actors::message::RoundView) -> bool {
        let header = &self.tip.block().header;
        view.tip == self.tip.id()
            && view.tip_height == self.tip.height()
            && view.tip_slot == known.tree.slots().slot(header.timestamp)
            && *view.round == **known.tree.applied(&self.tip).state.round()
    }

    /// Another node's peer speaks.
    fn called(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: ActorId,
        message: &Message,
    ) {
        let from = from.node;
        if let Some(endpoint) = Endpoint::of(message) {
            return self.hears_call(known, report, step, left, from, endpoint, message);
        }
        match message {
            Message::Status { tip } => self.hears_status(known, report, step, left, from, tip),
            Message::Blocks { inquiry, height, blocks } => {
                self.peers.stands_at(from, *height);
                if !self.hears_headers(known, report, step, left, from, *inquiry, blocks) {
                    self.hears_chunk(known, report, step, left, from, *inquiry, blocks);
                }
            }
            Message::CommonBlocks { inquiry, height, common } => {
                self.peers.stands_at(from, *height);
                self.hears_common(known, report, step, left, from, *inquiry, common.as_deref().copied());
            }
            Message::HungUp => self.forget_peer(known, report, step, left, from),
            _ => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a step and what called")]
    fn hears_call(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        from: NodeId,
        endpoint: Endpoint,
        message: &Message,
    ) {
        let limited = known.rules().node.rate_limits;
        let sure = self.callers.call(step.local, from, endpoint) || !limited;
        let cut =
            left.take_to(|to, message| (to == from && matches!(message, Message::HungUp)).then_some(())).is_some();
        report.judge(&conduct::LIMITED, !(cut && sure), || {
            format!("it hung up on {from}, which was within its limits with a call of {endpoint:?}")
        });
        if cut {
            return;
        }
        let heard = self.answers(report, left, from, message, sure);
        match message {
            Message::Block(block) => self.block_pushed(known, report, step, left, block, sure),
            Message::Transactions(transactions) if !self.hands_in(report, left, transactions, sure) => return,
            _ => {}
        }
        if heard && limited && known.timely[self.id.0 as usize] {
            let within = self.callers.heard(step.local, from, endpoint);
            report.judge(&conduct::LIMITED, within || message_is_push(message), || {
                format!("it answered {from} more than twice as often as {endpoint:?} allows")
            });
        }
        self.meets(known, report, step, left, from, sure);
    }

    /// Whether a question was answered, which it must be if it was heard for sure.
    fn answers(&self, report: &mut Report, left: &mut Left<'_>, from: NodeId, question: &Message, sure: bool) -> bool {
        let answer = left.take_to(|to, message| {
            let fits = matches!(
                (question, message),
                (Message::StatusRequest, Message::Status { .. })
                    | (Message::BlocksRequest { .. }, Message::Blocks { .. })
                    | (Message::CommonBlocksRequest { .. }, Message::CommonBlocks { .. })
                    | (Message::PeersRequest, Message::Peers(_))
            );
            (to == from && fits).then_some(message)
        });
        if message_is_push(question) {
            return true;
        }
        let Some(answer) = answer else {
            report.judge(&conduct::ANSWERED, !sure, || format!("it did not answer {} of {from}", name(question)));
            return false;
        };
        let wrong = self.wrong_answer(question, answer);
        report.judge(&conduct::ANSWERED, wrong.is_none(), || {
            format!("it answered {} of {from} wrong: {}", name(question), wrong.unwrap_or_default())
        });
        true
    }

    fn wrong_answer(&self, question: &Message, answer: &Message) -> Option<String> {
        match (question, answer) {
            (_, Message::Status { tip }) if tip.id != self.tip.id() => {
                Some(format!("it stands on {:?} and said {} at height {}", self.tip, tip.id, tip.header.height))
            }
            (Message::BlocksRequest { inquiry, above, limit, .. }, Message::Blocks { inquiry: of, height, blocks }) => {
                let last = self.tip.height().0.min(above.0.saturating_add((*limit).min(400)));
                let wanted = (above.0.saturating_add(1)..=last)
                    .filter_map(|height| self.tip.ancestor(crate::protocol::Height(height)).map(|link| link.id()));
                let fits =
                    inquiry == of && *height == self.tip.height() && wanted.eq(blocks.iter().map(|block| block.id));
                (!fits).then(|| {
                    let heights: Vec<u32> = blocks.iter().map(|block| block.header.height.0).collect();
                    format!("asked for {limit} above {above}, at height {}, it gave {heights:?}", self.tip.height())
                })
            }
            (Message::CommonBlocksRequest { inquiry, ids }, Message::CommonBlocks { inquiry: of, height, common }) => {
                let heights = |id: &BlockId| {
                    let mut at = Some(&self.tip);
                    while let Some(link) = at {
                        if link.id() == *id {
                            return Some(link.height());
                        }
                        at = link.parent();
                    }
                    None
                };
                let highest =
                    ids.iter().filter_map(|id| heights(id).map(|height| (height, *id))).max_by_key(|(h, _)| *h);
                let wanted = highest.map(|(_, id)| id);
                let fits = inquiry == of && *height == self.tip.height() && wanted == common.as_deref().copied();
                (!fits).then(|| format!("it said {common:?} is the highest common block, and {wanted:?} is"))
            }
            (_, Message::Peers(list)) => {
                let said: BTreeSet<NodeId> = list.iter().copied().filter(|node| *node != self.id).collect();
                let wanted: BTreeSet<NodeId> = self.peers.numbers().collect();
                (said != wanted && !self.peers.unsure).then(|| format!("it named {said:?} and has {wanted:?}"))
            }
            _ => None,
        }
    }

    fn woken(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>, wake: Wake) {
        match wake {
            Wake::Gossip(id) => self.passes_on_again(report, step, left, &id),
            Wake::PingOver { ping } => self.ping_over(known, report, step, left, ping),
            Wake::PingAgain { ping } => self.pings_again(step, left, ping),
            Wake::WakeUp => self.looks_for_blocks(known, report, step, left),
            Wake::Unanswered => self.gives_up_waiting(known, report, step, left),
            Wake::Throttled => self.sends_held_back(known, report, step, left),
            Wake::Discover => self.looks_for_peers(known, report, step, left),
            Wake::DiscoveryOver { .. } | Wake::Forge { .. } | Wake::Bundle => {}
        }
    }

    /// Transactions go to the pool, with the tip. Whether they did.
    fn hands_in(
        &self,
        report: &mut Report,
        left: &mut Left<'_>,
        given: &crate::actors::message::Transactions,
        sure: bool,
    ) -> bool {
        let add = left.take_own(Role::Pool, |message| match message {
            Message::AddTransactions(add) => Some(add),
            _ => None,
        });
        let holds = match add {
            None => !sure,
            Some(add) => {
                let same = add.transactions.iter().map(|one| one.id()).eq(given.iter().map(|one| one.id()));
                same && add.tip.is(&self.tip)
            }
        };
        report.judge(&conduct::TO_POOL, holds, || {
            format!(
                "it heard of {} transactions and gave its pool {}",
                given.len(),
                add.map_or(0, |add| add.transactions.len())
            )
        });
        add.is_some()
    }

    fn broadcasts(
        &mut self,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        transactions: &crate::actors::message::Transactions,
    ) {
        let to: Vec<NodeId> = left.take_all_to(|to, message| match message {
            Message::Transactions(sent)
                if sent.iter().map(|one| one.id()).eq(transactions.iter().map(|one| one.id())) =>
            {
                Some(to)
            }
            _ => None,
        });
        let full =
            self.peers.numbers().filter(|peer| self.calls.may_be_full(step.local, *peer, Endpoint::Transactions));
        let (held, wanted) = (full.count(), self.peers.len().min(20));
        let distinct: BTreeSet<NodeId> = to.iter().copied().collect();
        let peers = distinct.iter().all(|node| self.peers.has(*node));
        let holds = distinct.len() == to.len() && peers && to.len() <= wanted && to.len() + held >= wanted;
        report.judge(&conduct::BATCHED, holds || self.peers.unsure, || {
            format!(
                "it sent {} transactions to {to:?}, of {} peers {wanted} should get them",
                transactions.len(),
                self.peers.len()
            )
        });
        to.iter().for_each(|node| self.calls.note(step.local, *node, Endpoint::Transactions));
    }

    /// The tip moves as the step's events say.
    pub(super) fn moves(
        &mut self,
        known: &Known,
        report: &mut Report,
        step: &Step,
        left: &mut Left<'_>,
        link: &Arc<Link>,
    ) {
        self.tip = link.clone();
        self.last_accepted = step.local;
        self.looks_at = self.looks_at.map(|_| step.local + wake_up_time(known));
        self.sync.makes_headway();
        if !link.block().transactions.is_empty() {
            let told = left.take_own(Role::Pool, |message| match message {
                Message::TipMoved { tip } => Some(tip),
                _ => None,
            });
            report.judge(&conduct::TO_POOL, told.is_some_and(|tip| tip.is(link)), || {
                format!("its pool heard {told:?} after a block with transactions")
            });
        }
        if link.round_end().is_some() {
            self.tells_round(known, report, left, link);
        }
        let delegates = known.tree.applied(link).state.round().position.delegates;
        for _ in link.missing() {
            self.missed += 1;
            if 3 * (self.missed + 1) >= delegates {
                self.doubts_until = step.local + Duration::from_secs(200);
            }
        }
        if link.round_end().is_some() {
            self.missed = 0;
        }
    }

    pub(super) fn tells_round(&self, known: &Known, report: &mut Report, left: &mut Left<'_>, tip: &Arc<Link>) {
        let view = left.take_own(Role::Delegate, |message| match message {
            Message::RoundChanged(view) => Some(view),
            _ => None,
        });
        let holds = view.is_some_and(|view| {
            view.tip == tip.id()
                && view.tip_height == tip.height()
                && *view.round == **known.tree.applied(tip).state.round()
        });
        report.judge(&conduct::ROUND_TOLD, holds, || format!("the round changed and it told its delegate {view:?}"));
    }

    /// What the step did beside what was asked for.
    fn look_at_rest(&mut self, known: &Known, report: &mut Report, step: &Step, left: &mut Left<'_>) {
        self.rest_of_sync(known, report, step, left);
        self.rest_of_pings(known, report, step, left);
        for (to, message) in left.sent() {
            if to.node == self.id {
                let rule = match message {
                    Message::Round(_) | Message::RoundChanged(_) => &conduct::ROUND_TOLD,
                    Message::NetworkState(_) if self.peers.unsure => continue,
                    Message::NetworkState(_) => &conduct::COUNTED,
                    Message::BlockNotApplied { .. } | Message::AlreadyForged { .. } | Message::TipMoved { .. } => {
                        continue;
                    }
                    _ => &conduct::TO_POOL,
                };
                report.breach(rule, || format!("unasked, it told its own node {}", name(message)));
                continue;
            }
            if let Some(endpoint) = Endpoint::of(message) {
                self.calls.note(step.local, to.node, endpoint);
            }
            let rule = match message {
                Message::Status { .. } | Message::Blocks { .. } | Message::CommonBlocks { .. } | Message::Peers(_) => {
                    &conduct::UNASKED
                }
                Message::HungUp => &conduct::LIMITED,
                Message::Block(_) if self.vague => continue,
                Message::Block(_) => &conduct::PASSED_ON,
                Message::Transactions(_) => &conduct::BATCHED,
                Message::BlocksRequest { headers_only: false, .. } if self.sync.phase == Phase::Unknown => continue,
                Message::BlocksRequest { headers_only: false, .. } => &conduct::ASKED,
                Message::BlocksRequest { .. } | Message::CommonBlocksRequest { .. } => &conduct::SEARCHED,
                Message::PeersRequest => &conduct::DISCOVERED,
                Message::StatusRequest => &conduct::PINGED,
                _ => continue,
            };
            // Who is there decides about these.
            let by_peers =
                [&conduct::ASKED, &conduct::SEARCHED, &conduct::PINGED].iter().any(|of| of.name == rule.name);
            if by_peers && self.peers.unsure {
                continue;
            }
            report.breach(rule, || format!("it sent {} to {to:?} where it had no cause", name(message)));
        }
        let mut applied = false;
        for event in left.events() {
            let rule = match event {
                Event::BlockReceived(_) | Event::BlockDisregarded(_) => &conduct::TAKEN,
                Event::BlockApplied(link) => {
                    // The model follows in any case.
                    self.tip = link.clone();
                    applied = true;
                    &conduct::TAKEN
                }
                Event::RolledBack { to, .. } => {
                    self.tip = to.clone();
                    applied = true;
                    &conduct::DEPTH
                }
                Event::PeerAdded(node) => {
                    self.peers.add(*node, self.tip.height(), self.pinged);
                    self.peers.unsure = true;
                    let lately = SimTime::from_micros(step.local.micros().saturating_sub(70_000_000));
                    if self.calls.pinged_since(*node, lately) {
                        continue;
                    }
                    &conduct::ADDED
                }
                Event::PeerRemoved(node) => {
                    self.peers.remove(*node);
                    self.drop_probe(*node);
                    if self.peers.unsure {
                        continue;
                    }
                    &conduct::DROPPED
                }
                Event::HealthChecked { .. } if self.peers.unsure => continue,
                Event::HealthChecked { .. } => &conduct::DOUBTED,
                _ => continue,
            };
            report.breach(rule, || format!("it told {event:?} where it had no cause"));
        }
        if applied {
            self.lose_track(report, step.local);
        }
    }
}

pub(super) fn wake_up_time(known: &Known) -> Duration {
    Duration::from_secs(u64::from(known.rules().node.wake_up_s.max(1)))
}

pub(super) fn looks_for_peers(known: &Known) -> bool {
    known.rules().node.discovery || known.rules().node.retry_dropped_peers
}

fn message_is_push(message: &Message) -> bool {
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
