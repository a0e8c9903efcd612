//! How much one address may send in a time, and how a peer keeps within what others allow. Source: consensus.md 6.
//!
//! Limits count in windows that begin with the first message. Most callers are far from any limit: their last two calls,
//! which stand in their record, tell. Windows are kept for the others only, and forgotten when they are over.

use super::{Peer, neighbours::Call, send};
use crate::{
    actors::{Effect, Message, NodeId, SimTime, Wake, message::Transactions},
    protocol::{Block, hashing::IdHash},
};
use indexmap::IndexMap;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long who breaks the limit of all calls together is not answered.
const BLOCKED_FOR: Duration = Duration::from_secs(60);
/// No window is longer.
const LONGEST_WINDOW: Duration = Duration::from_secs(4);
/// How often messages held back are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Messages of transactions in a second, below which none of the receivers' limits can be near.
const TRANSACTIONS_UNCOUNTED: u32 = 60;
/// Windows kept before those that are over are looked for.
const WINDOWS_KEPT: usize = 64;

/// What a limit is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Endpoint {
    /// All calls together.
    Any,
    Block,
    Blocks,
    Peers,
    Status,
    CommonBlocks,
    Transactions,
}

impl Endpoint {
    /// What a message calls; `None` for an answer.
    pub(super) fn of(message: &Message) -> Option<Self> {
        match message {
            Message::Block(_) => Some(Self::Block),
            Message::BlocksRequest { .. } => Some(Self::Blocks),
            Message::PeersRequest => Some(Self::Peers),
            Message::StatusRequest => Some(Self::Status),
            Message::CommonBlocksRequest { .. } => Some(Self::CommonBlocks),
            Message::Transactions(_) => Some(Self::Transactions),
            _ => None,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Any, Self::Block, Self::Blocks, Self::Peers, Self::Status, Self::CommonBlocks, Self::Transactions]
            .get(usize::from(number))
            .copied()
    }

    /// So many messages in so long.
    fn allowance(self) -> Option<(u16, Duration)> {
        match self {
            Self::Any => Some((100, Duration::from_secs(1))),
            Self::Block => Some((2, Duration::from_secs(4))),
            Self::Blocks => Some((1, Duration::from_secs(2))),
            Self::Peers => Some((1, Duration::from_secs(1))),
            Self::Status => Some((2, Duration::from_secs(1))),
            Self::CommonBlocks => Some((9, Duration::from_secs(1))),
            Self::Transactions => None,
        }
    }
}

/// Messages counted, by who sent or gets them and what for.
#[derive(Debug, Default)]
pub(super) struct Limits {
    windows: IndexMap<u64, (SimTime, u16), IdHash>,
    /// Who is not answered, and until when.
    blocked: BTreeMap<NodeId, SimTime>,
    forget_at: usize,
}

/// A node and an endpoint in one number.
fn key(node: NodeId, endpoint: Endpoint) -> u64 {
    u64::from(node.0) << 8 | endpoint as u64
}

impl Limits {
    fn is_blocked(&mut self, now: SimTime, node: NodeId) -> bool {
        match self.blocked.get(&node) {
            Some(until) if now < *until => true,
            Some(_) => {
                self.blocked.remove(&node);
                false
            }
            None => false,
        }
    }

    fn block(&mut self, now: SimTime, node: NodeId) {
        self.blocked.insert(node, now + BLOCKED_FOR);
    }

    /// How many messages the running window has seen.
    pub(super) fn count(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> u16 {
        let Some((_, length)) = endpoint.allowance() else { return 0 };
        match self.windows.get(&key(node, endpoint)) {
            Some((begun, count)) if now < *begun + length => *count,
            _ => 0,
        }
    }

    /// Counts a message if it keeps within the limits, and says whether it does.
    pub(super) fn add_if_allowed(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint) -> bool {
        self.forget_old(now);
        // What is changed only once both are known to allow it.
        let mut running = [None; 2];
        for (running, endpoint) in running.iter_mut().zip([Endpoint::Any, endpoint]) {
            let Some((allowed, length)) = endpoint.allowance() else { continue };
            if let Some((place, _, (begun, count))) = self.windows.get_full(&key(node, endpoint))
                && now < *begun + length
            {
                if *count >= allowed {
                    return false;
                }
                *running = Some(place);
            }
        }
        for (running, endpoint) in running.into_iter().zip([Endpoint::Any, endpoint]) {
            match running {
                Some(place) => self.windows[place].1 += 1,
                None if endpoint.allowance().is_some() => {
                    self.windows.insert(key(node, endpoint), (now, 1));
                }
                None => {}
            }
        }
        true
    }

    /// Counts a message, and says whether it keeps within the limit of its endpoint.
    pub(super) fn add(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint) -> bool {
        let Some((allowed, length)) = endpoint.allowance() else { return true };
        self.forget_old(now);
        let window = self.windows.entry(key(node, endpoint)).or_insert((now, 0));
        if now >= window.0 + length {
            *window = (now, 0);
        }
        window.1 = window.1.saturating_add(1);
        window.1 <= allowed
    }

    fn forget_old(&mut self, now: SimTime) {
        if self.windows.len() >= self.forget_at.max(WINDOWS_KEPT) {
            self.windows.retain(|_, (begun, _)| now < *begun + LONGEST_WINDOW);
            self.forget_at = 2 * self.windows.len();
        }
    }
}

impl Peer {
    /// Whether a call is heard. Who calls too often is cut off, and a caller that is no peer yet is pinged back.
    pub(super) fn lets_in(
        &mut self,
        now: SimTime,
        from: NodeId,
        endpoint: Endpoint,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let limited = self.node_rules().rate_limits;
        let Some(neighbour) = self.neighbours.get_mut(from) else {
            let heard = !limited || self.counted_in(now, from, endpoint, effects);
            if heard {
                self.meet(now, from, effects);
            }
            return heard;
        };
        if !limited {
            return true;
        }
        let call = Call { at: (now.micros() / 10_000) as u32, what: endpoint as u8 };
        let since = |call: Call, other: Call| Duration::from_millis(10 * u64::from(call.at.wrapping_sub(other.at)));
        let [first, last] = neighbour.calls;
        neighbour.calls = [last, call];
        let unblocked = self.limits.blocked.is_empty();
        if unblocked && since(call, last) > LONGEST_WINDOW {
            neighbour.calls[0] = Call::NONE;
            return true;
        }
        // Every endpoint allows a first call.
        let is_second = first.what == Call::COUNTED && last.what != Call::COUNTED;
        if unblocked && is_second && last.what != call.what {
            return true;
        }
        neighbour.calls = [Call::NONE, Call { what: Call::COUNTED, ..call }];
        for before in [first, last] {
            if let Some(what) = Endpoint::from_number(before.what) {
                let then = SimTime::from_micros(now.micros().saturating_sub(since(call, before).as_micros() as u64));
                self.limits.add(then, from, Endpoint::Any);
                self.limits.add(then, from, what);
            }
        }
        self.counted_in(now, from, endpoint, effects)
    }

    fn counted_in(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint, effects: &mut Vec<Effect>) -> bool {
        if self.limits.is_blocked(now, from) {
            return false;
        }
        let (all, this) = (self.limits.add(now, from, Endpoint::Any), self.limits.add(now, from, endpoint));
        if !all {
            self.limits.block(now, from);
        }
        if !(all && this) {
            send(from, Message::HungUp, effects);
        }
        all && this
    }

    /// Sends a call as soon as the receiver's limits allow it. Source: consensus.md 6, sender self-throttles.
    pub(super) fn call(&mut self, now: SimTime, to: NodeId, message: Message, effects: &mut Vec<Effect>) {
        let endpoint = Endpoint::of(&message).unwrap_or(Endpoint::Any);
        if !self.node_rules().rate_limits || self.sent.add_if_allowed(now, to, endpoint) {
            return send(to, message, effects);
        }
        if self.held_back.is_empty() {
            effects.push(Effect::WakeAt { at: now + LOOK_AGAIN, wake: Wake::Throttled });
        }
        self.held_back.push((to, endpoint, message));
    }

    pub(super) fn send_held_back(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        for (to, _, message) in std::mem::take(&mut self.held_back) {
            self.call(now, to, message, effects);
        }
    }

    /// Sends a block on. The limit is looked at where a third one goes out in its time; who got the two before is not
    /// remembered, so all count as having got them.
    pub(super) fn push_block(&mut self, now: SimTime, to: Vec<NodeId>, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let length = Endpoint::Block.allowance().map_or(Duration::ZERO, |(_, length)| length);
        let before = self.pushed;
        self.pushed = [before[1], Some(now)];
        let near = before[0].is_some_and(|time| now < time + length);
        let message = Message::Block(block.clone());
        if !near {
            return effects.push(Effect::SendToPeers { to, message });
        }
        for node in to {
            if self.sent.count(now, node, Endpoint::Block) == 0 {
                before.iter().flatten().for_each(|time| {
                    self.sent.add(*time, node, Endpoint::Block);
                });
            }
            self.call(now, node, message.clone(), effects);
        }
    }

    /// Sends transactions on; counted once so many went out in a second that a receiver's limit may be near.
    pub(super) fn push_transactions(
        &mut self,
        now: SimTime,
        to: Vec<NodeId>,
        transactions: &Transactions,
        effects: &mut Vec<Effect>,
    ) {
        let (begun, count) = self.transactions_sent;
        let running = now < begun + LOOK_AGAIN;
        self.transactions_sent = if running { (begun, count + 1) } else { (now, 1) };
        let message = Message::Transactions(transactions.clone());
        if !(running && count >= TRANSACTIONS_UNCOUNTED) {
            return effects.push(Effect::SendToPeers { to, message });
        }
        for node in to {
            if self.sent.count(now, node, Endpoint::Any) == 0 {
                (0..TRANSACTIONS_UNCOUNTED).for_each(|_| {
                    self.sent.add(begun, node, Endpoint::Any);
                });
            }
            self.call(now, node, message.clone(), effects);
        }
    }
}
