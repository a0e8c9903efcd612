//! A peer: keeps its node's chain, takes blocks in, passes them on, and serves its delegate as relay.
//! Source: consensus.md 3 and 6.

use super::{
    ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake,
    delegate::in_time,
    message::{NetworkState, RequestId, RoundView, Transactions},
};
use crate::{
    ledger::{BlockRejected, BlockTree, Link, rules::Gossip},
    protocol::{Block, BlockId, Height, Slot},
};
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use std::{sync::Arc, time::Duration};

/// Wait before a block is passed on, counted from when it was first seen. Source: consensus.md 6.
const GOSSIP_WAIT: Duration = Duration::from_millis(500);
/// How often a block is repeated at most. Source: consensus.md 6.
const GOSSIP_HOPS: u32 = 4;
/// Peers a node sends its transactions to. Source: consensus.md 6.
const TRANSACTION_FANOUT: usize = 20;
/// Time the peers have to answer before forging. Source: consensus.md 2.2.
const PING_TIME: Duration = Duration::from_millis(1_500);
/// A node that accepts no block for so long asks its peers for some. Source: consensus.md 3.5.
const LATE_AFTER: Duration = Duration::from_secs(60);
/// Blocks in one answer at most. Source: consensus.md 6.
const BLOCKS_LIMIT: u32 = 400;

/// The peer of one node.
pub struct Peer {
    node: NodeId,
    tree: Arc<BlockTree>,
    tip: Arc<Link>,
    neighbours: Vec<Neighbour>,
    random: ChaCha8Rng,
    /// The block that is being passed around, and how often it was seen.
    passing: Option<Passing>,
    ping: Option<Ping>,
    pings: u64,
    last_accepted: SimTime,
}

/// Another peer this one talks to, as last heard of.
struct Neighbour {
    node: NodeId,
    height: Height,
    tip: BlockId,
    /// Number of the last ping it answered.
    answered: u64,
}

/// The reference's "ping block".
struct Passing {
    block: Arc<Block>,
    seen: u32,
    first: SimTime,
    last: SimTime,
}

/// The peers being asked whether they are there, before the own delegate forges.
struct Ping {
    number: u64,
    answered: usize,
}

impl Peer {
    /// A peer on `tip` that knows `neighbours` (ascending) and draws from `random`, a stream of its own.
    pub fn new(
        node: NodeId,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        neighbours: Vec<NodeId>,
        random: ChaCha8Rng,
    ) -> Self {
        let (height, id) = (tip.height(), tip.id());
        let neighbours = neighbours.into_iter().map(|node| Neighbour { node, height, tip: id, answered: 0 }).collect();
        let last_accepted = SimTime::default();
        Self { node, tree, tip, neighbours, random, passing: None, ping: None, pings: 0, last_accepted }
    }

    /// One event in, the wanted effects out, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Start => self.start(now, effects),
            Input::Wake(wake) => self.woken(now, wake, effects),
            Input::Submit { request, transactions } => self.to_pool(transactions, Some(request), effects),
            Input::Message { from, message } => self.told(now, from, message, effects),
        }
    }

    fn told(&mut self, now: SimTime, from: ActorId, message: Message, effects: &mut Vec<Effect>) {
        match message {
            Message::Block(block) => self.block_pushed(now, block, effects),
            Message::Transactions(transactions) => self.to_pool(transactions, None, effects),
            Message::StatusRequest => {
                let status = Message::Status { height: self.tip.height(), tip: self.tip.id() };
                effects.push(Effect::Send { to: from, message: status });
            }
            Message::Status { height, tip } => self.status_known(from.node, height, tip, effects),
            Message::BlocksRequest { above } => {
                effects.push(Effect::Send { to: from, message: Message::Blocks(self.blocks_above(above)) });
            }
            Message::Blocks(blocks) => self.downloaded(now, &blocks, effects),
            Message::RoundRequest => {
                effects.push(Effect::Send { to: from, message: Message::Round(self.round_view()) });
            }
            Message::NetworkStateRequest => self.ping_all(now, effects),
            Message::ForgingTransactionsRequest => {
                let message = Message::ChooseTransactions { tip: self.tip.clone() };
                effects.push(Effect::Send { to: self.local(Role::Pool), message });
            }
            Message::Forged(block) => self.block_forged(now, block, effects),
            Message::Broadcast(transactions) => self.broadcast(&transactions, effects),
            // Said by a peer to others, never to it.
            Message::Round(_)
            | Message::RoundChanged(_)
            | Message::NetworkState(_)
            | Message::ForgingTransactions(_)
            | Message::ChooseTransactions { .. }
            | Message::AddTransactions { .. }
            | Message::TipMoved { .. }
            | Message::BlockFailed { .. } => {}
        }
    }

    fn woken(&mut self, now: SimTime, wake: Wake, effects: &mut Vec<Effect>) {
        match wake {
            Wake::Gossip(id) => self.gossip_again(&id, effects),
            Wake::PingOver { ping } => {
                if self.ping.as_ref().is_some_and(|running| running.number == ping) {
                    self.ping_over(effects);
                }
            }
            Wake::CheckLate => self.check_late(now, effects),
            Wake::Forge { .. } => {}
        }
    }

    fn start(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.last_accepted = now;
        if !self.neighbours.is_empty() {
            effects.push(Effect::WakeAt { at: now + LATE_AFTER, wake: Wake::CheckLate });
        }
    }

    // Blocks in. Source: consensus.md 3.1-3.3.

    /// A peer pushes a block: seen before, it counts; otherwise it must chain, and its slot must have begun.
    fn block_pushed(&mut self, now: SimTime, block: Arc<Block>, effects: &mut Vec<Effect>) {
        if let Some(passing) = &mut self.passing
            && passing.block.id == block.id
        {
            passing.seen += 1;
            passing.last = now;
            return;
        }
        if !self.tree.chains(&self.tip, &block) {
            let (id, height) = (block.id, block.header.height);
            let refused = BlockRejected::NotChained { id, height, tip: self.tip.id(), tip_height: self.tip.height() };
            effects.push(Effect::Observe(Event::BlockRefused(refused)));
            return;
        }
        self.pass_around(now, &block, 1);
        if let Err(refused) = self.tree.check_time(&block, self.slot(now)) {
            effects.push(Effect::Observe(Event::BlockRefused(refused)));
            return;
        }
        self.take_in(now, block, effects);
    }

    /// The own delegate hands a block in; too late in its slot, it is dropped without a word.
    fn block_forged(&mut self, now: SimTime, block: Arc<Block>, effects: &mut Vec<Effect>) {
        self.pass_around(now, &block, 0);
        let slots = self.tree.slots();
        if in_time(&slots, slots.slot(block.header.timestamp), now) {
            self.take_in(now, block, effects);
        }
    }

    fn pass_around(&mut self, now: SimTime, block: &Arc<Block>, seen: u32) {
        self.passing = Some(Passing { block: block.clone(), seen, first: now, last: now });
    }

    fn take_in(&mut self, now: SimTime, block: Arc<Block>, effects: &mut Vec<Effect>) {
        effects.push(Effect::Observe(Event::BlockReceived(block.clone())));
        if self.accept(now, &block, effects) && block.header.timestamp >= self.tree.slots().start(self.slot(now)) {
            self.gossip(now, &block, effects);
        }
    }

    /// Moves the chain onto the block if it can follow, and says whether it did.
    fn accept(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) -> bool {
        let link = match self.tree.extend(&self.tip, block) {
            Ok(link) => link,
            Err(refused) => {
                if refused.while_applying() {
                    let message = Message::BlockFailed { tip: self.tip.clone(), block: block.clone() };
                    effects.push(Effect::Send { to: self.local(Role::Pool), message });
                }
                effects.push(Effect::Observe(Event::BlockRefused(refused)));
                return false;
            }
        };
        let applied = self.tree.applied(&link);
        let round_ended = applied.round_end.is_some();
        self.tip = link.clone();
        self.last_accepted = now;
        effects.push(Effect::Observe(Event::BlockApplied { link: link.clone(), applied }));
        if !block.transactions.is_empty() {
            effects.push(Effect::Send { to: self.local(Role::Pool), message: Message::TipMoved { tip: link } });
        }
        if round_ended {
            let message = Message::RoundChanged(self.round_view());
            effects.push(Effect::Send { to: self.local(Role::Delegate), message });
        }
        true
    }

    /// An answer to [`Message::BlocksRequest`]: blocks in order, until one cannot follow.
    fn downloaded(&mut self, now: SimTime, blocks: &[Arc<Block>], effects: &mut Vec<Effect>) {
        for block in blocks {
            let late = self.tree.check_time(block, self.slot(now));
            if late.is_err() || !self.tree.chains(&self.tip, block) || !self.accept(now, block, effects) {
                return;
            }
        }
    }

    fn blocks_above(&self, height: Height) -> Arc<[Arc<Block>]> {
        let last = self.tip.height().0.min(height.0.saturating_add(BLOCKS_LIMIT));
        (height.0 + 1..=last)
            .filter_map(|height| self.tip.ancestor(Height(height)))
            .map(|link| link.block().clone())
            .collect()
    }

    /// Asks one of the peers known to be higher, when no block has come in for a minute. Source: consensus.md 3.5.
    fn check_late(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        let due = self.last_accepted + LATE_AFTER;
        if now < due {
            effects.push(Effect::WakeAt { at: due, wake: Wake::CheckLate });
            return;
        }
        effects.push(Effect::WakeAt { at: now + LATE_AFTER, wake: Wake::CheckLate });
        if !self.neighbours.is_empty() {
            let chosen = sample(&mut self.random, self.neighbours.len(), 1).index(0);
            let to = self.neighbours[chosen].node;
            let message = Message::BlocksRequest { above: self.tip.height() };
            effects.push(Effect::Send { to: ActorId { node: to, role: Role::Peer }, message });
        }
    }

    // Blocks and transactions out. Source: consensus.md 6.

    fn gossip(&mut self, now: SimTime, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        let Some(passing) = &self.passing else { return };
        match self.tree.rules().gossip {
            Gossip::Once if passing.seen == 0 => self.push_to(self.neighbours.len(), block, effects),
            Gossip::Once => {}
            Gossip::Reference if passing.seen < GOSSIP_HOPS => {
                let waited = passing.last.since(passing.first);
                let at = now + GOSSIP_WAIT.saturating_sub(waited);
                effects.push(Effect::WakeAt { at, wake: Wake::Gossip(block.id) });
            }
            Gossip::Reference => {}
        }
    }

    /// The wait is over: fewer peers get the block the more often it has come back meanwhile.
    fn gossip_again(&mut self, id: &BlockId, effects: &mut Vec<Effect>) {
        let Some(passing) = self.passing.as_ref().filter(|passing| passing.block.id == *id) else { return };
        let hops_left = GOSSIP_HOPS.saturating_sub(passing.seen) as usize;
        let count = (hops_left * self.neighbours.len()).div_ceil(GOSSIP_HOPS as usize);
        let block = passing.block.clone();
        self.push_to(count, &block, effects);
    }

    fn push_to(&mut self, count: usize, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        self.send_to_some(count, &Message::Block(block.clone()), effects);
    }

    fn broadcast(&mut self, transactions: &Transactions, effects: &mut Vec<Effect>) {
        self.send_to_some(TRANSACTION_FANOUT, &Message::Transactions(transactions.clone()), effects);
    }

    /// Sends to so many peers chosen at random, or to all in order where that is all of them.
    fn send_to_some(&mut self, count: usize, message: &Message, effects: &mut Vec<Effect>) {
        let send = |node| Effect::Send { to: ActorId { node, role: Role::Peer }, message: message.clone() };
        if count >= self.neighbours.len() {
            effects.extend(self.neighbours.iter().map(|neighbour| send(neighbour.node)));
        } else {
            let chosen = sample(&mut self.random, self.neighbours.len(), count);
            effects.extend(chosen.into_iter().map(|index| send(self.neighbours[index].node)));
        }
    }

    // The relay of the own delegate. Source: consensus.md 2.2.

    fn ping_all(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.pings += 1;
        self.ping = Some(Ping { number: self.pings, answered: 0 });
        if self.neighbours.is_empty() {
            self.ping_over(effects);
            return;
        }
        self.send_to_some(self.neighbours.len(), &Message::StatusRequest, effects);
        effects.push(Effect::WakeAt { at: now + PING_TIME, wake: Wake::PingOver { ping: self.pings } });
    }

    fn status_known(&mut self, node: NodeId, height: Height, tip: BlockId, effects: &mut Vec<Effect>) {
        let Ok(index) = self.neighbours.binary_search_by_key(&node, |neighbour| neighbour.node) else { return };
        let neighbour = &mut self.neighbours[index];
        (neighbour.height, neighbour.tip) = (height, tip);
        if let Some(ping) = &mut self.ping
            && neighbour.answered < ping.number
        {
            neighbour.answered = ping.number;
            ping.answered += 1;
            if ping.answered == self.neighbours.len() {
                self.ping_over(effects);
            }
        }
    }

    /// Tells the delegate who answered, and how many of them are on this chain and not above it.
    fn ping_over(&mut self, effects: &mut Vec<Effect>) {
        let Some(ping) = self.ping.take() else { return };
        let answered = self.neighbours.iter().filter(|neighbour| neighbour.answered == ping.number);
        let in_quorum = answered.filter(|neighbour| self.on_own_chain(neighbour)).count() as u32;
        let (height, tip, reached) = (self.tip.height(), self.tip.id(), ping.answered as u32);
        let message = Message::NetworkState(NetworkState { height, tip, reached, in_quorum });
        effects.push(Effect::Send { to: self.local(Role::Delegate), message });
    }

    fn on_own_chain(&self, neighbour: &Neighbour) -> bool {
        neighbour.height <= self.tip.height()
            && self.tip.ancestor(neighbour.height).is_some_and(|link| link.id() == neighbour.tip)
    }

    fn round_view(&self) -> RoundView {
        RoundView {
            round: self.tree.applied(&self.tip).state.round().clone(),
            tip: self.tip.id(),
            tip_height: self.tip.height(),
            tip_slot: self.tree.slots().slot(self.tip.block().header.timestamp),
        }
    }

    fn to_pool(&self, transactions: Transactions, request: Option<RequestId>, effects: &mut Vec<Effect>) {
        let message = Message::AddTransactions { tip: self.tip.clone(), transactions, request };
        effects.push(Effect::Send { to: self.local(Role::Pool), message });
    }

    fn local(&self, role: Role) -> ActorId {
        ActorId { node: self.node, role }
    }

    fn slot(&self, now: SimTime) -> Slot {
        self.tree.slots().slot(now.seconds())
    }
}
