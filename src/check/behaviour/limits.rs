//! Limits on calls. The contract gives numbers and seconds and does not define where a second begins. So the model demands
//! only the rules that hold for every beginning. A node hears a caller that has made no more calls than the limit in the
//! window that ends now. In any window it hears at most twice the limit. Source: consensus.md 6.

use crate::actors::{Message, NodeId, SimTime};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// The kind of message that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Endpoint {
    Block,
    Transactions,
    Blocks,
    Peers,
    Status,
    CommonBlocks,
}

/// The limit on calls of any kind in a second.
const ALL_PER_SECOND: usize = 100;
/// The longest time for which a node that breaks that limit is refused, with a little to spare.
const REFUSED: Duration = Duration::from_millis(61_000);
/// The shortest time for which it is refused: it may have broken the limit in the second before.
const SURELY_REFUSED: Duration = Duration::from_millis(58_500);
/// The precision of a node's clock.
const GRAIN: Duration = Duration::from_millis(30);
/// Longer than the window of any limit.
const LONGEST: Duration = Duration::from_millis(4_100);

impl Endpoint {
    /// Returns the endpoint that a message calls, or `None` for an answer.
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

    /// Returns the number of calls allowed, and the time in which they are counted.
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

/// The recent calls, by the node that called or was called.
#[derive(Clone, Default)]
pub(super) struct Calls {
    /// The recent calls by node number. A vector has few gaps, since nearly every node has recent calls.
    calls: Vec<VecDeque<(SimTime, Endpoint)>>,
    /// The time of the last status request or connection, by node number.
    pinged: Vec<Option<SimTime>>,
}

impl Calls {
    pub(super) fn note(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint) {
        let number = node.0 as usize;
        if self.calls.len() <= number {
            self.calls.resize_with(number + 1, VecDeque::new);
            self.pinged.resize(number + 1, None);
        }
        if endpoint == Endpoint::Status {
            self.pinged[number] = Some(now);
        }
        let calls = &mut self.calls[number];
        while calls.front().is_some_and(|(at, _)| *at + LONGEST < now) {
            calls.pop_front();
        }
        calls.push_back((now, endpoint));
    }

    /// Records the beginning of a connection, which no limit counts.
    pub(super) fn note_connection(&mut self, now: SimTime, node: NodeId) {
        let number = node.0 as usize;
        if self.calls.len() <= number {
            self.calls.resize_with(number + 1, VecDeque::new);
            self.pinged.resize(number + 1, None);
        }
        self.pinged[number] = Some(now);
    }

    /// Returns true if a node was asked where it stands, or to connect, since then.
    pub(super) fn pinged_since(&self, node: NodeId, since: SimTime) -> bool {
        self.pinged.get(node.0 as usize).copied().flatten().is_some_and(|at| at >= since)
    }

    /// Returns the number of calls of an endpoint in the window that ends now.
    pub(super) fn count(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> usize {
        let (_, time) = endpoint.allowance();
        self.lately(now, node, time).filter(|(_, of)| *of == endpoint).count()
    }

    /// Returns true if anybody was called at an endpoint within its time.
    pub(super) fn any_lately(&self, now: SimTime, endpoint: Endpoint) -> bool {
        (0..self.calls.len() as u32).any(|node| self.count(now, NodeId(node), endpoint) > 0)
    }

    fn lately(&self, now: SimTime, node: NodeId, time: Duration) -> impl Iterator<Item = &(SimTime, Endpoint)> {
        let calls = self.calls.get(node.0 as usize).into_iter().flatten();
        calls.filter(move |(at, _)| *at + time + GRAIN > now)
    }

    /// Returns true if another call may be over a limit.
    pub(super) fn may_be_full(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> bool {
        let (allowed, _) = endpoint.allowance();
        self.count(now, node, endpoint) >= allowed
            || self.lately(now, node, Duration::from_secs(1)).count() >= ALL_PER_SECOND * 3 / 5
    }
}

/// The calls of other nodes, and which of them may or must be refused.
#[derive(Clone, Default)]
pub(super) struct Callers {
    calls: Calls,
    heard: Calls,
    /// The end of the time in which a caller may be refused.
    refused: BTreeMap<NodeId, SimTime>,
    /// The beginning and end of the time in which a caller must be refused.
    shut_out: BTreeMap<NodeId, (SimTime, SimTime)>,
}

impl Callers {
    /// Records a call. Returns true if the node must hear it.
    pub(super) fn call(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint) -> bool {
        self.calls.note(now, from, endpoint);
        let (allowed, _) = endpoint.allowance();
        let calls = self.calls.lately(now, from, Duration::from_secs(1)).count();
        if calls > ALL_PER_SECOND {
            self.refused.insert(from, now + REFUSED);
        }
        let is_shut_out = self.shut_out.get(&from).is_some_and(|(_, until)| now < *until);
        if calls > 2 * ALL_PER_SECOND && !is_shut_out {
            // Some second had more calls than the limit, wherever seconds begin.
            self.shut_out.insert(from, (now, now + SURELY_REFUSED));
        }
        let refused = self.refused.get(&from).is_some_and(|until| now < *until);
        !refused && self.calls.count(now, from, endpoint) <= allowed
    }

    /// Returns true if a call cannot be heard, since its caller broke the limit of all calls within the last minute.
    pub(super) fn is_shut_out(&self, now: SimTime, from: NodeId) -> bool {
        self.shut_out.get(&from).is_some_and(|(since, until)| *since < now && now < *until)
    }

    /// Records a call that was heard. Returns true if the limit may allow it.
    pub(super) fn heard(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint) -> bool {
        self.heard.note(now, from, endpoint);
        let (allowed, time) = endpoint.allowance();
        let calls = self.heard.lately(now, from, time).filter(|(_, of)| *of == endpoint);
        // Within the precision of the clock, the oldest calls may belong to a third window.
        let within = calls.filter(|(at, _)| *at + time > now + GRAIN).count();
        within <= 2 * allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_breaks_the_limit_of_all_calls_twice_over_is_shut_out_for_a_minute() {
        let at = |ms: u64| SimTime::from_micros(ms * 1_000);
        for (calls, expected) in [(200, false), (201, true)] {
            let (mut callers, node) = (Callers::default(), NodeId(1));
            for call in 0..calls {
                callers.call(at(10_000 + 4 * call), node, Endpoint::Transactions);
            }
            assert_eq!(callers.is_shut_out(at(12_000), node), expected, "{calls} calls in a second");
            assert!(!callers.is_shut_out(at(72_000), node), "a minute later");
            assert!(!callers.is_shut_out(at(12_000), NodeId(2)), "another caller");
        }
    }
}
