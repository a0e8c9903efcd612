//! Who may call how often. The contract gives numbers and seconds and does not say where a second begins, so the model
//! asks for what holds wherever it does: whoever has called no more than the limit in the time that ends now is heard, and
//! in no such time are more than twice as many calls heard. Source: consensus.md 6.

use crate::actors::{Message, NodeId, SimTime};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// What a limit is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Endpoint {
    Block,
    Transactions,
    Blocks,
    Peers,
    Status,
    CommonBlocks,
}

/// Calls of any kind in a second.
const ALL_PER_SECOND: usize = 100;
/// How long who breaks that is refused; a little more, to be sure.
const REFUSED: Duration = Duration::from_millis(61_000);
/// What a node's clock may be read to.
const GRAIN: Duration = Duration::from_millis(30);
/// Longer than any time of a limit.
const LONGEST: Duration = Duration::from_millis(4_100);

impl Endpoint {
    /// What a message calls; `None` of an answer.
    pub(super) fn of(message: &Message) -> Option<Self> {
        Some(match message {
            Message::Block(_) => Self::Block,
            Message::Transactions(_) => Self::Transactions,
            Message::BlocksRequest { .. } => Self::Blocks,
            Message::PeersRequest => Self::Peers,
            Message::StatusRequest => Self::Status,
            Message::CommonBlocksRequest { .. } => Self::CommonBlocks,
            _ => return None,
        })
    }

    /// So many calls in such a time.
    fn allowance(self) -> (usize, Duration) {
        let (count, seconds) = match self {
            Self::Block => (2, 4),
            Self::Blocks => (1, 2),
            Self::Peers => (1, 1),
            Self::Status => (2, 1),
            Self::CommonBlocks => (9, 1),
            Self::Transactions => (ALL_PER_SECOND, 1),
        };
        (count, Duration::from_secs(seconds))
    }
}

/// Calls by who called, or was called.
#[derive(Default)]
pub(super) struct Calls {
    calls: BTreeMap<NodeId, VecDeque<(SimTime, Endpoint)>>,
    /// When each was last asked where it stands.
    pinged: BTreeMap<NodeId, SimTime>,
}

impl Calls {
    pub(super) fn note(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint) {
        if endpoint == Endpoint::Status {
            self.pinged.insert(node, now);
        }
        let calls = self.calls.entry(node).or_default();
        while calls.front().is_some_and(|(at, _)| *at + LONGEST < now) {
            calls.pop_front();
        }
        calls.push_back((now, endpoint));
    }

    /// Whether a node was asked where it stands since then.
    pub(super) fn pinged_since(&self, node: NodeId, since: SimTime) -> bool {
        self.pinged.get(&node).is_some_and(|at| *at >= since)
    }

    /// Calls of an endpoint in the time that ends now.
    pub(super) fn count(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> usize {
        let (_, time) = endpoint.allowance();
        self.lately(now, node, time).filter(|(_, of)| *of == endpoint).count()
    }

    fn lately(&self, now: SimTime, node: NodeId, time: Duration) -> impl Iterator<Item = &(SimTime, Endpoint)> {
        let calls = self.calls.get(&node).into_iter().flatten();
        calls.filter(move |(at, _)| *at + time + GRAIN > now)
    }

    /// Whether another call may be over a limit.
    pub(super) fn may_be_full(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> bool {
        let (allowed, _) = endpoint.allowance();
        self.count(now, node, endpoint) >= allowed
            || self.lately(now, node, Duration::from_secs(1)).count() >= ALL_PER_SECOND * 3 / 5
    }
}

/// What callers may expect.
#[derive(Default)]
pub(super) struct Callers {
    calls: Calls,
    heard: Calls,
    refused: BTreeMap<NodeId, SimTime>,
}

impl Callers {
    /// A call comes in. Whether it must be heard.
    pub(super) fn call(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint) -> bool {
        self.calls.note(now, from, endpoint);
        let (allowed, _) = endpoint.allowance();
        if self.calls.lately(now, from, Duration::from_secs(1)).count() > ALL_PER_SECOND {
            self.refused.insert(from, now + REFUSED);
        }
        let refused = self.refused.get(&from).is_some_and(|until| now < *until);
        !refused && self.calls.count(now, from, endpoint) <= allowed
    }

    /// A call was heard. Whether it may have been.
    pub(super) fn heard(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint) -> bool {
        self.heard.note(now, from, endpoint);
        let (allowed, time) = endpoint.allowance();
        let calls = self.heard.lately(now, from, time).filter(|(_, of)| *of == endpoint);
        // Those of the last moments may belong to three times.
        let within = calls.filter(|(at, _)| *at + time > now + GRAIN).count();
        within <= 2 * allowed
    }
}
