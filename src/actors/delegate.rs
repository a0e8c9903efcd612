//! A delegate: forges in its slots, through its relay. Source: consensus.md 2.
//!
//! ```text
//!   slot begins ─► RoundRequest ─► too early? wait ─► NetworkStateRequest ─► quorum? ─► ForgingTransactionsRequest
//!                                                                                          └─► block ─► relay
//! ```
//!
//! The reference polls its relay every 200 ms; this delegate computes the instant at which that poll would first
//! succeed and sleeps until then, so an idle delegate costs nothing.

use super::{
    ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake,
    message::{NetworkState, RoundView, Transactions},
};
use crate::{
    ledger::BlockTree,
    protocol::{Block, BlockDraft, KeyPair, PublicKey, Round, Slot, Slots},
};
use std::{ops::RangeInclusive, sync::Arc, time::Duration};

/// A block is no longer forged or sent when fewer whole seconds are left of its slot. Source: consensus.md 2.4.
const LEAST_SECONDS_LEFT: u32 = 2;

/// The forger of one delegate's key.
pub struct Delegate {
    node: NodeId,
    /// `None` on a node that does not forge.
    keys: Option<KeyPair>,
    tree: Arc<BlockTree>,
    /// Rounds in which the forger is switched off.
    offline: Vec<RangeInclusive<Round>>,
    /// Number of the last wake-up asked for.
    plan: u64,
    /// What the slot in work still waits for.
    work: Option<Work>,
    /// The last slot that was worked on.
    done: Option<Slot>,
}

/// A slot being worked on.
struct Work {
    slot: Slot,
    round: RoundView,
    network: Option<NetworkState>,
}

impl Delegate {
    /// A delegate that forges with `keys`, if it has any, through the peer of the same node.
    pub fn new(node: NodeId, keys: Option<KeyPair>, tree: Arc<BlockTree>, offline: Vec<RangeInclusive<Round>>) -> Self {
        Self { node, keys, tree, offline, plan: 0, work: None, done: None }
    }

    /// The node it forges on.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// What it forges with; `None` on a node that does not forge.
    pub fn keys(&self) -> Option<&KeyPair> {
        self.keys.as_ref()
    }

    /// The blocks and the network it knows.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// One event in, the wanted effects out, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        if self.keys.is_none() {
            return;
        }
        match input {
            Input::Start => self.ask(Message::RoundRequest, effects),
            Input::Wake(Wake::Forge { plan }) if plan == self.plan => self.ask(Message::RoundRequest, effects),
            Input::Message { message: Message::Round(round), .. } => self.round_known(now, round, effects),
            Input::Message { message: Message::RoundChanged(round), .. } => self.plan_next(now, &round, effects),
            Input::Message { message: Message::NetworkState(state), .. } => self.network_known(state, effects),
            Input::Message { message: Message::ForgingTransactions(transactions), .. } => {
                self.forge(now, &transactions, effects);
            }
            // An outdated plan, or what no relay sends to its delegate.
            Input::Wake(_) | Input::Message { .. } | Input::Submit { .. } => {}
        }
    }

    /// Is it our slot, and may its block be made already? Source: consensus.md 2.1, steps A to C.
    fn round_known(&mut self, now: SimTime, round: RoundView, effects: &mut Vec<Effect>) {
        let slots = self.tree.slots();
        let slot = slots.slot(now.seconds());
        let ours = Some(&round.round.owner(slot).public_key) == self.public_key();
        let over = round.tip_slot >= slot || self.done >= Some(slot);
        if !ours || over || self.is_offline(&round) {
            self.plan_after(slot, &round, effects);
            return;
        }
        // canForge of the reference: the slot after the tip's began more than a second ago, in whole seconds.
        let earliest = SimTime::from_seconds(slots.start(Slot(round.tip_slot.0 + 1))) + Duration::from_secs(2);
        if now < earliest {
            self.wake_at(earliest, effects);
            return;
        }
        self.work = Some(Work { slot, round, network: None });
        self.ask(Message::NetworkStateRequest, effects);
    }

    /// May we forge, with these peers? Source: consensus.md 2.2.
    fn network_known(&mut self, state: NetworkState, effects: &mut Vec<Effect>) {
        let Some(work) = &mut self.work else { return };
        let rules = self.tree.rules();
        let NetworkState { reached, in_quorum, .. } = state;
        let enough = match rules.minimum_network_reach {
            None => true,
            Some(least) => reached >= least && in_quorum * 100 >= rules.quorum_percent * reached,
        };
        work.network = Some(state);
        if enough {
            self.ask(Message::ForgingTransactionsRequest, effects);
        } else {
            effects.push(Effect::Observe(Event::ForgingSuspended { reached, in_quorum }));
            self.finish(effects);
        }
    }

    /// Source: consensus.md 2.4.
    fn forge(&mut self, now: SimTime, transactions: &Transactions, effects: &mut Vec<Effect>) {
        let Some(Work { slot, round, network: Some(network) }) = &self.work else { return };
        let Some(keys) = &self.keys else { return };
        let (slots, milestones) = (self.tree.slots(), &self.tree.config().milestones);
        if in_time(&slots, *slot, now) {
            let draft = BlockDraft {
                version: milestones.at(round.tip_height.next()).block.version,
                timestamp: slots.start(*slot),
                height: network.height.next(),
                previous: Some(network.tip),
                reward: milestones.at(round.tip_height.next()).reward,
                transactions: transactions.to_vec(),
            };
            let block = Arc::new(Block::forge(draft, keys, milestones));
            effects.push(Effect::Observe(Event::BlockForged(block.clone())));
            self.ask(Message::Forged(block), effects);
        }
        self.finish(effects);
    }

    /// Leaves the slot in work for good, and asks anew where the chain is: it may have entered another round meanwhile.
    fn finish(&mut self, effects: &mut Vec<Effect>) {
        if let Some(work) = self.work.take() {
            self.done = Some(work.slot);
            self.ask(Message::RoundRequest, effects);
        }
    }

    /// Sleeps until the first own slot that can still be filled, which may be the running one.
    fn plan_next(&mut self, now: SimTime, round: &RoundView, effects: &mut Vec<Effect>) {
        let running = self.tree.slots().slot(now.seconds());
        let full_until = if round.tip_slot >= running { running } else { Slot(running.0.saturating_sub(1)) };
        self.plan_after(full_until, round, effects);
    }

    fn plan_after(&mut self, slot: Slot, round: &RoundView, effects: &mut Vec<Effect>) {
        let slots = self.tree.slots();
        let next = self.public_key().and_then(|key| round.round.next_slot_of(key, Slot(slot.0.saturating_add(1))));
        // Past the last second that a timestamp can hold there are no slots.
        match next.filter(|next| slots.slot(slots.start(*next)) == *next) {
            Some(next) => self.wake_at(SimTime::from_seconds(slots.start(next)), effects),
            // Not active in this round: the relay tells when the next one begins.
            None => self.plan += 1,
        }
    }

    fn wake_at(&mut self, at: SimTime, effects: &mut Vec<Effect>) {
        self.plan += 1;
        effects.push(Effect::WakeAt { at, wake: Wake::Forge { plan: self.plan } });
    }

    fn public_key(&self) -> Option<&PublicKey> {
        self.keys.as_ref().map(KeyPair::public)
    }

    fn is_offline(&self, round: &RoundView) -> bool {
        self.offline.iter().any(|rounds| rounds.contains(&round.round.number()))
    }

    fn ask(&self, message: Message, effects: &mut Vec<Effect>) {
        effects.push(Effect::Send { to: ActorId { node: self.node, role: Role::Peer }, message });
    }
}

/// Whether the slot is running and enough of it is left for its block, in whole seconds. Source: consensus.md 2.4.
pub(super) fn in_time(slots: &Slots, slot: Slot, now: SimTime) -> bool {
    let (now, end) = (now.seconds(), slots.start(Slot(slot.0.saturating_add(1))));
    slots.slot(now) == slot && end.0.saturating_sub(now.0) >= LEAST_SECONDS_LEFT
}
