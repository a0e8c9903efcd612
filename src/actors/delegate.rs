//! A delegate: forges in its slots, through its relay. Source: consensus.md 2.
//!
//! ```text
//!   slot before ─► WakeUp
//!   slot begins ─► RoundRequest ─► too early? wait ─► NetworkStateRequest ─► quorum? ─► ForgingTransactionsRequest
//!                                                                                          └─► block ─► relay
//! ```
//!
//! The reference polls its relay every 200 ms, from some instant of its own; this delegate computes the instant at which that
//! poll would first succeed and sleeps until then, so an idle delegate costs nothing. The phase of the polls is drawn for each
//! slot. If the relay does not answer, the delegate loses the slot and
//! nothing more.

mod waits;

use super::{
    ActorId, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake, fork_choice,
    message::{NetworkState, RoundView, Transactions},
    prefetch::{self, Prefetch},
};
use crate::{
    ledger::{BlockTree, codec::saved},
    protocol::{Block, BlockDraft, Height, KeyPair, PublicKey, RoundNumber, Slot},
};
use rand::Rng;
use rand_xoshiro::{SplitMix64, rand_core::SeedableRng};
use std::{ops::RangeInclusive, sync::Arc, time::Duration};

/// Every round of every chain.
pub(crate) const ALL_ROUNDS: RangeInclusive<RoundNumber> = RoundNumber(0)..=RoundNumber(u32::MAX);

/// The forger of one delegate's key.
#[derive(Clone)]
pub struct Delegate {
    node: NodeId,
    /// `None` on a node that does not forge.
    keys: Option<KeyPair>,
    tree: Arc<BlockTree>,
    /// Seed of the instants at which it polls its relay.
    polls: u64,
    /// Rounds in which the forger is switched off.
    offline: Vec<RangeInclusive<RoundNumber>>,
    /// Number of the last wake-up that was scheduled. `due` is its task.
    plan: u64,
    due: Due,
    /// The slot in work, with what it still waits for.
    work: Option<Work>,
    /// The last slot that was worked on.
    done: Option<Slot>,
    /// The greatest height at which it forged. Stays 0 if the rule of finality does not ask for it.
    forged_up_to: Height,
    /// True once the relay has reported a round.
    started: bool,
}

/// The task for the next wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// See whether it is our turn.
    Look,
    /// Wake the relay up, for our slot, this one, is the next.
    WakeRelay(Slot),
    /// Give up waiting for the relay.
    RelayLate,
}

/// A slot being worked on.
#[derive(Clone)]
struct Work {
    slot: Slot,
    round: RoundView,
    network: Option<NetworkState>,
}

impl Prefetch<()> for Delegate {
    /// Fetches the keys, which show whether it forges at all. On a large network most of these actors have none.
    fn fetch(&self, _: ()) {
        prefetch::ends(&self.keys);
    }
}

impl Delegate {
    /// A delegate that forges with `keys`, if it has any, through the peer of the same node. The instants at which it polls
    /// its relay are drawn from `polls`, a seed of its own.
    pub fn new(node: NodeId, keys: Option<KeyPair>, tree: Arc<BlockTree>, polls: u64) -> Self {
        let (plan, due, forged_up_to) = (0, Due::Look, Height(0));
        let (offline, work, done, started) = (Vec::new(), None, None, false);
        Self { node, keys, tree, polls, offline, plan, due, work, done, forged_up_to, started }
    }

    /// Remembers the height up to which it has forged before a restart, unless its rules make it forget that.
    pub(super) fn remember(&mut self, before: &Self) {
        if !self.tree.rules().node.forgets_forged {
            self.forged_up_to = before.forged_up_to;
        }
    }

    /// The seed of the instants at which it polls its relay.
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// Draws the instants of its polls from another seed from now on.
    pub fn draw_anew(&mut self, polls: u64) {
        self.polls = polls;
    }

    /// The node it forges on.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The key pair that it forges with; `None` on a node that does not forge.
    pub fn keys(&self) -> Option<&KeyPair> {
        self.keys.as_ref()
    }

    /// The blocks and the network it knows.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// Switches the delegate off in `rounds`, or on again. A delegate that was off in all rounds and is switched on asks for the round,
    /// as at its start: the slot it worked on is long over.
    pub(super) fn switch(
        &mut self,
        now: SimTime,
        rounds: &[RangeInclusive<RoundNumber>],
        off: bool,
        effects: &mut Vec<Effect>,
    ) {
        let was_off = self.is_off();
        self.offline_in(rounds, off);
        if was_off && !self.is_off() {
            self.work = None;
            self.step(now, Input::Start, effects);
        }
    }

    /// Adds `rounds` to the rounds in which it is off, or removes each of them once.
    fn offline_in(&mut self, rounds: &[RangeInclusive<RoundNumber>], off: bool) {
        for span in rounds {
            match (off, self.offline.iter().position(|one| one == span)) {
                (true, _) => self.offline.push(span.clone()),
                (false, Some(index)) => drop(self.offline.remove(index)),
                (false, None) => {}
            }
        }
    }

    /// The rounds in which it is off.
    pub(super) fn spells(&self) -> impl Iterator<Item = RangeInclusive<RoundNumber>> {
        self.offline.iter().cloned()
    }

    /// Returns true if it is switched off in all rounds. It ignores all inputs then.
    pub(super) fn is_off(&self) -> bool {
        self.offline.contains(&ALL_ROUNDS)
    }

    /// Returns true if it has begun a slot, and has neither finished it nor given it up.
    pub fn is_at_work(&self) -> bool {
        self.work.is_some()
    }

    /// Handles one input. Appends the effects that the delegate wants, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        if self.keys.is_none() || self.is_off() {
            return;
        }
        match input {
            Input::Start => self.look(now, effects),
            Input::Wake(Wake::Forge { plan }) if plan == self.plan => self.woken(now, effects),
            Input::Message { message: Message::Round(round), .. } => self.round_known(now, *round, effects),
            Input::Message { message: Message::RoundChanged(round), .. } => self.round_changed(now, &round, effects),
            Input::Message { message: Message::NetworkState(state), .. } => self.network_known(now, *state, effects),
            Input::Message { message: Message::ForgingTransactions(transactions), .. } => {
                self.forge(now, &transactions, effects);
            }
            Input::Message { message: Message::RelayFailed { error }, .. } => self.relay_failed(now, &error, effects),
            // An outdated plan, or a message that no relay sends to its delegate.
            Input::Wake(_) | Input::Message { .. } | Input::Submit { .. } | Input::Reorganise(_) => {}
        }
    }

    fn woken(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        match self.due {
            Due::Look => self.look(now, effects),
            Due::WakeRelay(slot) => {
                self.tell(Message::WakeUp, effects);
                self.wake_at(self.poll_in(slot, Duration::ZERO), Due::Look, effects);
            }
            Due::RelayLate => self.relay_late(now, effects),
        }
    }

    /// Asks the relay for the round, to see whether it is our turn.
    fn look(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.ask(now, Message::RoundRequest, effects);
    }

    /// Handles a relay that did not answer in time. Without the network's state the delegate does not forge in this slot. After any other
    /// request without an answer, it soon asks for the round again.
    fn relay_late(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        match self.work.take() {
            Some(Work { slot, network: None, .. }) => {
                self.done = Some(slot);
                effects.push(Effect::Observe(Event::ForgingSuspended { reached: 0, in_quorum: 0 }));
                self.look(now, effects);
            }
            Some(Work { network: Some(_), .. }) | None => self.wake_at(now + self.retry(), Due::Look, effects),
        }
    }

    /// Handles an error that the relay reports. Source: consensus.md 2.5.
    fn relay_failed(&mut self, now: SimTime, error: &str, effects: &mut Vec<Effect>) {
        self.work = None;
        effects.push(Effect::Observe(Event::ForgerFailed { error: error.to_owned() }));
        self.wake_at(now + self.retry(), Due::Look, effects);
    }

    /// Is it our slot, and may its block be made already? Source: consensus.md 2.1 step A to 2.1 step C.
    fn round_known(&mut self, now: SimTime, round: RoundView, effects: &mut Vec<Effect>) {
        self.tell_started(effects);
        let slots = self.tree.slots();
        let slot = slots.slot(now.seconds());
        let ours = self.public_key().is_some_and(|key| round.round.owns(slot, key));
        let over = round.tip_slot >= slot || self.done >= Some(slot);
        if !ours || over || self.is_offline(&round) {
            self.plan_after(now, slot, &round, effects);
            return;
        }
        // canForge of the reference: the slot after the tip's began more than a second ago, in whole seconds.
        let earliest = self.poll_in(Slot(round.tip_slot.0 + 1), self.settling());
        if now < earliest {
            self.wake_at(earliest, Due::Look, effects);
            return;
        }
        self.work = Some(Work { slot, round, network: None });
        self.ask(now, Message::NetworkStateRequest, effects);
    }

    fn tell_started(&mut self, effects: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.started, true)
            && let Some(delegate) = self.public_key().copied()
        {
            effects.push(Effect::Observe(Event::ForgerStarted { delegate }));
        }
    }

    /// Plans the next slot, unless a slot is in work. At the end of that slot the delegate asks for the round anyway.
    fn round_changed(&mut self, now: SimTime, round: &RoundView, effects: &mut Vec<Effect>) {
        if self.work.is_none() {
            self.plan_next(now, round, effects);
        }
    }

    /// May we forge, with these peers? Source: consensus.md 2.2.
    fn network_known(&mut self, now: SimTime, state: NetworkState, effects: &mut Vec<Effect>) {
        let Some(work) = self.work.as_mut().filter(|work| work.network.is_none()) else { return };
        if state.tip != work.round.tip && !self.tree.rules().node.forges_on_another_tip {
            self.work = None;
            return self.look(now, effects);
        }
        let NetworkState { reached, in_quorum, .. } = state;
        let (rules, delegates) = (self.tree.rules(), work.round.round.position.delegates);
        let enough = fork_choice::of(rules.node.fork_choice).may_forge(&state, delegates, rules);
        work.network = Some(state);
        if enough {
            self.ask(now, Message::ForgingTransactionsRequest, effects);
        } else {
            effects.push(Effect::Observe(Event::ForgingSuspended { reached, in_quorum }));
            self.finish(now, effects);
        }
    }

    /// Forges on the tip that the relay reported with the state of the network. If the round was reported for another tip, the block
    /// may well be rejected. Source: consensus.md 2.1 step E, 2.4.
    fn forge(&mut self, now: SimTime, transactions: &Transactions, effects: &mut Vec<Effect>) {
        let Some(Work { slot, round, network: Some(network) }) = &self.work else { return };
        let Some(keys) = &self.keys else { return };
        let (slots, milestones) = (self.tree.slots(), &self.tree.config().milestones);
        if in_time(&self.tree, *slot, now) {
            let draft = BlockDraft {
                version: milestones.at(round.tip_height.next()).block.version,
                timestamp: slots.start(*slot),
                height: network.height.next(),
                previous: Some(network.tip),
                reward: milestones.at(round.tip_height.next()).reward,
                transactions: transactions.to_vec(),
            };
            let block = Arc::new(Block::forge_after(draft, self.forged_up_to, keys, milestones));
            if self.tree.rules().ledger.finality.asks_forgers() {
                self.forged_up_to = self.forged_up_to.max(block.header.height);
            }
            // Q18: whether or not the relay accepts it.
            if self.tree.rules().node.forged_before_accepted {
                effects.push(Effect::Observe(Event::BlockForged(block.clone())));
            }
            self.tell(Message::Forged(block), effects);
        }
        self.finish(now, effects);
    }

    /// Ends the work on a slot and asks for the round: the chain may have entered another one meanwhile.
    fn finish(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if let Some(work) = self.work.take() {
            self.done = Some(work.slot);
            self.look(now, effects);
        }
    }

    /// Sleeps until the first own slot that can still be filled, which may be the running one.
    fn plan_next(&mut self, now: SimTime, round: &RoundView, effects: &mut Vec<Effect>) {
        let running = self.tree.slots().slot(now.seconds());
        let full_until = if round.tip_slot >= running { running } else { Slot(running.0.saturating_sub(1)) };
        self.plan_after(now, full_until, round, effects);
    }

    fn plan_after(&mut self, now: SimTime, slot: Slot, round: &RoundView, effects: &mut Vec<Effect>) {
        let slots = self.tree.slots();
        let next = self.public_key().and_then(|key| round.round.next_slot_of(key, Slot(slot.0.saturating_add(1))));
        // Past the last second that a timestamp can hold there are no slots.
        let Some(next) = next.filter(|next| slots.slot(slots.start(*next)) == *next) else {
            // Not active in this round: the relay reports when the next one begins.
            self.plan += 1;
            return;
        };
        let before = self.poll_in(Slot(next.0.saturating_sub(1)), self.settling());
        match now < before && !self.is_offline(round) {
            true => self.wake_at(before, Due::WakeRelay(next), effects),
            false => self.wake_at(self.poll_in(next, Duration::ZERO), Due::Look, effects),
        }
    }

    /// The time that the relay has to answer.
    fn relay_timeout(&self) -> Duration {
        Duration::from_millis(self.tree.rules().node.relay_timeout_ms.into())
    }

    /// The wait after a failure.
    fn retry(&self) -> Duration {
        Duration::from_millis(self.tree.rules().node.forging_retry_ms.into())
    }

    fn settling(&self) -> Duration {
        Duration::from_secs(self.tree.rules().node.settling_s.into())
    }

    /// The first poll of the relay that is at least `into` after the start of a slot. Source: consensus.md 2.1.
    fn poll_in(&self, slot: Slot, into: Duration) -> SimTime {
        let from = SimTime::from_seconds(self.tree.slots().start(slot)) + into;
        let every = u64::from(self.tree.rules().node.forging_poll_ms) * 1_000;
        if every == 0 {
            return from;
        }
        let seed = self.polls ^ u64::from(slot.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        from + Duration::from_micros(SplitMix64::seed_from_u64(seed).random_range(0..every))
    }

    fn wake_at(&mut self, at: SimTime, due: Due, effects: &mut Vec<Effect>) {
        self.plan += 1;
        self.due = due;
        effects.push(Effect::WakeAt { at, wake: Wake::Forge { plan: self.plan } });
    }

    fn public_key(&self) -> Option<&PublicKey> {
        self.keys.as_ref().map(KeyPair::public)
    }

    fn is_offline(&self, round: &RoundView) -> bool {
        self.offline.iter().any(|rounds| rounds.contains(&round.round.number()))
    }

    /// Sends the relay a request, and schedules the end of the time it has to answer.
    fn ask(&mut self, now: SimTime, message: Message, effects: &mut Vec<Effect>) {
        self.tell(message, effects);
        self.wake_at(now + self.relay_timeout(), Due::RelayLate, effects);
    }

    fn tell(&self, message: Message, effects: &mut Vec<Effect>) {
        effects.push(Effect::Send { to: ActorId { node: self.node, role: Role::Peer }, message });
    }
}

/// Returns true if the slot is running and enough of it is left for its block, in whole seconds. Source: consensus.md 2.4.
pub(super) fn in_time(tree: &BlockTree, slot: Slot, now: SimTime) -> bool {
    let (slots, least) = (tree.slots(), tree.rules().node.least_seconds_left);
    let (now, end) = (now.seconds(), slots.start(Slot(slot.0.saturating_add(1))));
    slots.slot(now) == slot && end.0.saturating_sub(now.0) >= least
}

saved!(struct Delegate { node, keys, tree, polls, offline, plan, due, work, done, forged_up_to, started });
saved!(enum Due { 0 Look, 1 WakeRelay(slot), 2 RelayLate });
saved!(struct Work { slot, round, network });
