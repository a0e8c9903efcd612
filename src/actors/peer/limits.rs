//! Rate limits on the messages of one address, and keeping within the limits of others. Source: consensus.md 6.
//!
//! Limits count in windows that begin with the first message. Most callers are far from any limit, as the last two calls in their
//! record show. Windows are kept for the others only. There may be thousands of nodes with high numbers, so their windows are
//! dropped when they are over.

use super::{Peer, TABLED, endpoint::Endpoint, neighbours::Call, send};
use crate::{
    actors::{Effect, Message, NodeId, SimTime, Wake, message::Transactions},
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
    protocol::{Block, hashing::IdHash},
};
use indexmap::IndexMap;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The length of the longest window, in microseconds.
const LONGEST_WINDOW: u64 = 4_000_000;
/// The age beyond which a call no longer affects the decision about the next one.
pub(super) const NO_CALL_COUNTS: Duration = Duration::from_micros(LONGEST_WINDOW);
/// The time after which messages held back are looked at again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The number of messages with transactions in a second below which no receiver's limit can be near.
const TRANSACTIONS_UNCOUNTED: u32 = 60;
/// The number of nodes with high numbers that first triggers a search for windows that are over.
const NODES_KEPT: usize = 32;

/// Counts of messages, by sender or receiver and by endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// By the number of the node, where that is low: most networks are small.
    low: Vec<Windows>,
    /// By the number of the node, where that is high.
    high: IndexMap<u64, Windows, IdHash>,
    /// The nodes that receive no answers, and the instants at which that ends.
    blocked: BTreeMap<NodeId, SimTime>,
    forget_at: usize,
    /// The latest time at which a message was counted. No window runs some while after it.
    last: SimTime,
}

/// The windows of one node, by endpoint; the last endpoint has no limit.
#[derive(Clone, Copy, Debug, Default)]
struct Windows([Window; Endpoint::ALL.len() - 1]);

/// The beginning of a window in microseconds, with the number of messages since in the lowest byte: a node may keep thousands of
/// windows. Before the first message it has not begun.
#[derive(Clone, Copy, Debug, Default)]
struct Window(u64);

impl Window {
    const MOST: u64 = u8::MAX as u64;

    fn begun(now: SimTime) -> Self {
        Self(now.micros() << 8)
    }

    fn count(self) -> u64 {
        self.0 & Self::MOST
    }

    /// Returns true if it began less than `length` microseconds ago.
    fn runs(self, now: SimTime, length: u64) -> bool {
        self.count() > 0 && now.micros() < (self.0 >> 8) + length
    }

    fn add(&mut self) {
        self.0 += u64::from(self.count() < Self::MOST);
    }
}

impl Windows {
    /// The running window of an endpoint, and the number of messages allowed in it; `None` where there is no limit.
    fn running(&mut self, now: SimTime, endpoint: Endpoint) -> Option<(&mut Window, u64)> {
        let (allowed, length) = endpoint.allowance()?;
        let window = &mut self.0[endpoint as usize];
        if !window.runs(now, length) {
            *window = Window::begun(now);
        }
        Some((window, allowed))
    }

    /// Counts a message. Returns true if it keeps within the limit of its endpoint.
    fn add(&mut self, now: SimTime, endpoint: Endpoint) -> bool {
        let Some((window, allowed)) = self.running(now, endpoint) else { return true };
        window.add();
        window.count() <= allowed
    }

    /// Returns true if another message would keep within the limit.
    fn has_room(&mut self, now: SimTime, endpoint: Endpoint) -> bool {
        self.running(now, endpoint).is_none_or(|(window, allowed)| window.count() < allowed)
    }

    /// The number of messages that the running window of an endpoint has seen.
    fn seen(&self, now: SimTime, endpoint: Endpoint) -> u64 {
        let running = |(_, length)| Some(self.0[endpoint as usize]).filter(|window| window.runs(now, length));
        endpoint.allowance().and_then(running).map_or(0, Window::count)
    }

    /// A copy without the windows that are over.
    fn ahead_of(&self, now: SimTime) -> Self {
        Self(self.0.map(|window| if window.runs(now, 2 * LONGEST_WINDOW) { window } else { Window::default() }))
    }

    /// Returns true if no window runs, nor ran when the oldest call was made that may still be counted.
    fn is_over(&self, now: SimTime) -> bool {
        self.0.iter().all(|window| !window.runs(now, 2 * LONGEST_WINDOW))
    }
}

impl Limits {
    /// Bytes it takes beside its own.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.low) + self.high.len() * 2 * size_of::<Windows>()
    }

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

    /// Gives a node no answers until an instant.
    pub(super) fn block(&mut self, node: NodeId, until: SimTime) {
        self.blocked.insert(node, until);
    }

    /// The number of messages that the running window has seen.
    pub(super) fn count(&self, now: SimTime, node: NodeId, endpoint: Endpoint) -> u64 {
        if now.micros() > self.last.micros() + LONGEST_WINDOW {
            return 0;
        }
        let windows = match node.0 as usize {
            low if node.0 < TABLED => self.low.get(low),
            _ => self.high.get(&u64::from(node.0)),
        };
        windows.map_or(0, |windows| windows.seen(now, endpoint))
    }

    /// The windows of a node. Whenever the number of nodes with high numbers has doubled, drops the windows that are over.
    fn of(&mut self, now: SimTime, node: NodeId) -> &mut Windows {
        let number = node.0 as usize;
        self.last = self.last.max(now);
        if node.0 < TABLED {
            if self.low.len() <= number {
                self.low.resize_with(number + 1, Windows::default);
            }
            return &mut self.low[number];
        }
        if self.high.len() >= self.forget_at.max(NODES_KEPT) {
            self.high.retain(|_, windows| !windows.is_over(now));
            self.forget_at = 2 * self.high.len();
        }
        self.high.entry(u64::from(node.0)).or_default()
    }

    /// Counts a message if it keeps within the limits. Returns true if it does.
    pub(super) fn add_if_allowed(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint) -> bool {
        let windows = self.of(now, node);
        let allowed = windows.has_room(now, Endpoint::Any) && windows.has_room(now, endpoint);
        if allowed {
            windows.add(now, Endpoint::Any);
            windows.add(now, endpoint);
        }
        allowed
    }

    /// Counts messages that were sent at these earlier times.
    fn remember(&mut self, now: SimTime, node: NodeId, endpoint: Endpoint, times: impl Iterator<Item = SimTime>) {
        let windows = self.of(now, node);
        times.for_each(|time| {
            windows.add(time, endpoint);
        });
    }
}

impl Peer {
    /// Returns true if a call is accepted. A caller above its limit is disconnected, and one that is no peer yet is pinged back.
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
        let call = Call::new(now, endpoint);
        let [first, last] = neighbour.calls;
        neighbour.calls = [last, call];
        let unblocked = !self.blocks_callers;
        if unblocked && call.since(last) > Duration::from_micros(LONGEST_WINDOW) {
            neighbour.calls[0] = Call::NONE;
            return true;
        }
        // Every endpoint allows a first call.
        let is_second = first.what().is_none() && last.what().is_some();
        if unblocked && is_second && last.what() != call.what() {
            return true;
        }
        neighbour.calls = [Call::NONE, call.counted()];
        let windows = self.limits.of(now, from);
        for before in [first, last] {
            if let Some(what) = before.what() {
                let since = call.since(before).as_micros() as u64;
                let then = SimTime::from_micros(now.micros().saturating_sub(since));
                windows.add(then, Endpoint::Any);
                windows.add(then, what);
            }
        }
        self.counted_in(now, from, endpoint, effects)
    }

    fn counted_in(&mut self, now: SimTime, from: NodeId, endpoint: Endpoint, effects: &mut Vec<Effect>) -> bool {
        if self.limits.is_blocked(now, from) {
            return false;
        }
        self.blocks_callers = !self.limits.blocked.is_empty();
        let windows = self.limits.of(now, from);
        let (all, this) = (windows.add(now, Endpoint::Any), windows.add(now, endpoint));
        if !all {
            let time = Duration::from_millis(self.node_rules().blocking_ms.into());
            self.limits.block(from, now + time);
            self.blocks_callers = true;
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
        self.held_back.push((to, message));
    }

    pub(super) fn send_held_back(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        for (to, message) in std::mem::take(&mut self.held_back) {
            self.call(now, to, message, effects);
        }
    }

    /// Relays a block. The limit is checked only if this is the third block within its period. The receivers of the first two are not
    /// recorded, so all peers count as having received them.
    pub(super) fn push_block(&mut self, now: SimTime, to: Vec<NodeId>, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let length = Endpoint::Block.allowance().map_or(0, |(_, length)| length);
        let before = self.pushed;
        self.pushed = [before[1], Some(now)];
        let near = before[0].is_some_and(|time| now.micros() < time.micros() + length);
        let message = Message::Block(block.clone());
        if !near {
            return effects.push(Effect::SendToPeers { to, message });
        }
        for node in to {
            if self.sent.count(now, node, Endpoint::Block) == 0 {
                self.sent.remember(now, node, Endpoint::Block, before.into_iter().flatten());
            }
            self.call(now, node, message.clone(), effects);
        }
    }

    /// Relays transactions. Counts them once the number in a second comes near a receiver's limit.
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
                self.sent.remember(now, node, Endpoint::Any, (0..TRANSACTIONS_UNCOUNTED).map(|_| begun));
            }
            self.call(now, node, message.clone(), effects);
        }
    }
}

impl Save for Limits {
    fn save(&self, out: &mut Saver) {
        let Self { low, high, blocked, forget_at, last } = self;
        if let Some(now) = out.ahead_of().map(SimTime::from_micros) {
            // Windows that are over decide nothing, and neither does the time at which they are dropped.
            let low = (0..).zip(low).map(|(number, windows)| (number, windows.ahead_of(now)));
            let high = high.iter().map(|(number, windows)| (*number, windows.ahead_of(now)));
            let running: Vec<(u64, Windows)> = low.chain(high).filter(|(_, windows)| !windows.is_over(now)).collect();
            running.save(out);
            return blocked.save(out);
        }
        low.save(out);
        high.save(out);
        blocked.save(out);
        forget_at.save(out);
        last.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(Self {
            low: Save::load(from)?,
            high: Save::load(from)?,
            blocked: Save::load(from)?,
            forget_at: Save::load(from)?,
            last: Save::load(from)?,
        })
    }
}

saved!(struct Windows(all));
saved!(struct Window(begun_and_count));
