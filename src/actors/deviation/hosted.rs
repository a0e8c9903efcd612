//! The layer around an actor that breaks rules.

use super::{Deviation, FalseClaim, Lie, forgery};
use crate::{
    actors::{
        Actor, ActorId, Delegate, Effect, Event, Input, Message, NodeId, Peer, PoolError, Role, SimTime, Submission,
        TransactionPool, Wake,
        ahead::{Ahead, Announced},
        message::{RoundView, Transactions},
    },
    ledger::saved::saved,
    protocol::{Block, BlockId, KeyPair, Slot},
};
use rand_chacha::ChaCha8Rng;
use std::{mem, ops::Range, sync::Arc, time::Duration};

/// The number of a plan that no delegate ever makes: the wake-ups of one that forges out of turn.
const OUT_OF_TURN: u64 = u64::MAX;
/// Another such number: the wake-up of a delegate that makes a block late.
const LATE: u64 = u64::MAX - 1;
/// A slot's first two seconds belong to the block before. Source: consensus.md 2.1.
const INTO_SLOT: Duration = Duration::from_secs(2);

/// A change that the world makes to an actor.
#[derive(Clone)]
pub enum Stimulus {
    /// It hears something.
    Input(Input),
    /// It begins or ceases to deviate from the protocol; its node is connected to these.
    Deviate { deviation: Arc<Deviation>, on: bool, peers: Arc<[NodeId]> },
    /// Its node comes back after a crash: this actor takes its place and starts.
    Begin(Actor),
}

/// An actor as a stage holds it: honest, until a fault makes it deviate.
#[derive(Clone)]
pub struct Hosted {
    actor: Actor,
    deviance: Option<Box<Deviance>>,
}

/// The ways in which an actor deviates.
///
/// A delegate that forges late has its transactions in time, and its relay has answered. It takes them later, so the block that it
/// makes of them is late: [`Deviance::hold`] keeps the answer until then, and keeps the delegate from giving its relay up.
#[derive(Clone, Default)]
struct Deviance {
    deviations: Vec<Arc<Deviation>>,
    /// The nodes its node is connected to, ascending.
    peers: Arc<[NodeId]>,
    /// The last block of the peer's own delegate.
    own: Option<BlockId>,
    /// The delegate forges out of turn and has asked its relay where the chain is.
    asked: bool,
    effects: Vec<Effect>,
    oversize: forgery::Oversize,
    /// The tip it lies about, and what it claims instead.
    claimed: Option<(BlockId, Arc<Block>)>,
    /// The delegate has asked for transactions to forge.
    awaits: bool,
    /// The transactions of a block that the delegate makes late.
    held: Option<Input>,
    /// Forgers of other delegates' keys beside the node's own.
    spares: Vec<Spare>,
}

impl From<Actor> for Hosted {
    fn from(actor: Actor) -> Self {
        Self { actor, deviance: None }
    }
}

impl Ahead<Announced> for Hosted {
    /// Of a peer only: the other actors hear little.
    fn fetch(&self, what: Announced) {
        if let Actor::Peer(peer) = &self.actor {
            peer.fetch(what);
        }
    }
}

impl Hosted {
    /// One event in, the wanted effects out, in order.
    pub fn take(&mut self, now: SimTime, stimulus: Stimulus, effects: &mut Vec<Effect>) {
        match stimulus {
            Stimulus::Input(input) => match &mut self.deviance {
                None => self.actor.step(now, input, effects),
                Some(deviance) => {
                    deviance.step(&mut self.actor, now, input, effects);
                    if deviance.is_over() {
                        self.deviance = None;
                    }
                }
            },
            Stimulus::Deviate { deviation, on, peers } => match (&*deviation, &mut self.actor) {
                (Deviation::Offline(rounds), Actor::Delegate(delegate)) => {
                    let was_off = delegate.is_off();
                    delegate.switch(now, rounds, on, effects);
                    if let Some(deviance) = self.deviance.as_mut().filter(|_| was_off && !delegate.is_off()) {
                        deviance.is_back(delegate, now, effects);
                    }
                }
                _ => self.deviate(now, deviation, on, peers, effects),
            },
            Stimulus::Begin(actor) => {
                *self = actor.into();
                self.actor.step(now, Input::Start, effects);
            }
        }
    }

    /// The actor, if it is one that reads messages where they lie.
    pub fn reader(&mut self) -> Option<&mut Peer> {
        match (&mut self.actor, &self.deviance) {
            (Actor::Peer(peer), None) => Some(peer),
            _ => None,
        }
    }

    /// A peer draws from another stream from now on, a delegate from another seed; a pool does not draw.
    pub fn draw_anew(&mut self, random: impl FnOnce() -> ChaCha8Rng, polls: impl FnOnce() -> u64) {
        match &mut self.actor {
            Actor::Peer(peer) => peer.draw_anew(random()),
            Actor::Delegate(delegate) => {
                let polls = polls();
                delegate.draw_anew(polls);
                let spares = self.deviance.iter_mut().flat_map(|deviance| &mut deviance.spares);
                spares.for_each(|spare| spare.delegate.draw_anew(Spare::polls(polls, spare.first)));
            }
            Actor::Pool(_) => {}
        }
    }

    /// The ways in which it deviates from the protocol now.
    pub fn deviations(&self) -> Vec<Deviation> {
        let off = match &self.actor {
            Actor::Delegate(delegate) => delegate.spells().map(|rounds| Deviation::Offline(vec![rounds])).collect(),
            Actor::Peer(_) | Actor::Pool(_) => Vec::new(),
        };
        let bent = self.deviance.iter().flat_map(|deviance| &deviance.deviations).map(|on| Deviation::clone(on));
        off.into_iter().chain(bent).collect()
    }

    /// The pool, if it is one.
    pub fn pool(&self) -> Option<&TransactionPool> {
        match &self.actor {
            Actor::Pool(pool) => Some(pool),
            Actor::Peer(_) | Actor::Delegate(_) => None,
        }
    }

    /// The peer, if it is one.
    pub fn peer(&self) -> Option<&Peer> {
        match &self.actor {
            Actor::Peer(peer) => Some(peer),
            Actor::Pool(_) | Actor::Delegate(_) => None,
        }
    }

    /// The delegate, if it is one.
    pub fn delegate(&self) -> Option<&Delegate> {
        match &self.actor {
            Actor::Delegate(delegate) => Some(delegate),
            Actor::Peer(_) | Actor::Pool(_) => None,
        }
    }

    /// The wake-up that releases a block which a fault holds back. Until then its delegate hears none of its own.
    pub fn release(&self) -> Option<Wake> {
        let holds = self.deviance.as_ref().is_some_and(|deviance| deviance.held.is_some());
        holds.then_some(Wake::Forge { plan: LATE })
    }

    /// Bytes it takes beside what others share with it: an estimate.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.actor {
                Actor::Peer(peer) => size_of::<Peer>() + peer.bytes(),
                Actor::Pool(pool) => size_of::<TransactionPool>() + pool.bytes(),
                Actor::Delegate(_) => size_of::<Delegate>(),
            }
    }

    /// Begins or ceases to deviate in a way that the actor itself knows nothing of.
    fn deviate(
        &mut self,
        now: SimTime,
        deviation: Arc<Deviation>,
        on: bool,
        peers: Arc<[NodeId]>,
        effects: &mut Vec<Effect>,
    ) {
        if !on {
            return self.mend(now, &deviation, effects);
        }
        if let (Some(every), Actor::Delegate(delegate)) = (out_of_turn(&deviation), &self.actor) {
            plan_out_of_turn(delegate, now, every, effects);
        }
        let deviance = self.deviance.get_or_insert_default();
        if let (Deviation::Spare(keys), Actor::Delegate(delegate)) = (&*deviation, &self.actor) {
            let mut spare = Spare::new(delegate, keys, &deviance.spares);
            spare.step(now, Input::Start, effects);
            deviance.spares.push(spare);
        }
        deviance.peers = peers;
        deviance.claimed = None;
        deviance.deviations.push(deviation);
    }

    /// Ceases to deviate. A block that is held back is made now: nothing makes it later any more.
    fn mend(&mut self, now: SimTime, deviation: &Deviation, effects: &mut Vec<Effect>) {
        let Some(deviance) = &mut self.deviance else { return };
        let Some(index) = deviance.deviations.iter().position(|on| **on == *deviation) else { return };
        deviance.deviations.remove(index);
        deviance.claimed = None;
        if let Deviation::Spare(keys) = deviation
            && let Some(index) = deviance.spares.iter().position(|spare| spare.delegate.keys() == Some(keys))
        {
            deviance.spares.remove(index);
        }
        if matches!(deviation, Deviation::LateForging(_))
            && let Some(held) = deviance.held.take()
        {
            deviance.step(&mut self.actor, now, held, effects);
        }
        if deviance.is_over() {
            self.deviance = None;
        }
    }
}

impl Deviance {
    /// One event in, the effects out: those of the honest actor, as far as the deviations let them be.
    fn step(&mut self, actor: &mut Actor, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        if self.spares_hear(now, &input, effects) {
            return;
        }
        let is_off = matches!(actor, Actor::Delegate(delegate) if delegate.is_off());
        if is_off || self.refuses(&input, effects) {
            self.held = None;
            return;
        }
        let Some(input) = self.hold(now, input, effects) else { return };
        if let Actor::Delegate(delegate) = actor
            && self.went_out_of_turn(delegate, now, &input, effects)
        {
            return;
        }
        if let Input::Message { message: Message::Forged(block), .. } = &input {
            self.own = Some(block.id);
            if self.is_on(&Deviation::Withhold { release: None }) {
                return;
            }
        }
        let mut wanted = mem::take(&mut self.effects);
        actor.step(now, input, &mut wanted);
        for effect in wanted.drain(..) {
            self.bend(actor, now, effect, effects);
        }
        self.effects = wanted;
    }

    /// The delegate was switched off, and no longer is: it heard neither its wake-ups nor the answers to what it had asked.
    fn is_back(&mut self, delegate: &Delegate, now: SimTime, effects: &mut Vec<Effect>) {
        (self.asked, self.awaits, self.held) = (false, false, None);
        let every: Vec<u32> = self.deviations.iter().filter_map(|on| out_of_turn(on)).collect();
        every.into_iter().for_each(|every| plan_out_of_turn(delegate, now, every, effects));
    }

    fn is_over(&self) -> bool {
        self.deviations.is_empty() && self.held.is_none() && self.spares.is_empty()
    }

    /// Returns what the delegate hears now: the input, the transactions that were held back until now, or nothing.
    fn hold(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) -> Option<Input> {
        match input {
            Input::Wake(Wake::Forge { plan: LATE }) => self.held.take(),
            // It would give its relay up, which has answered.
            Input::Wake(Wake::Forge { plan }) if plan != OUT_OF_TURN && self.held.is_some() => None,
            Input::Message { message: Message::ForgingTransactions(_), .. } if self.awaits => {
                self.awaits = false;
                let by = self.deviations.iter().filter_map(|on| match **on {
                    Deviation::LateForging(by) => Some(by),
                    _ => None,
                });
                let by: Duration = by.sum();
                if by.is_zero() {
                    return Some(input);
                }
                self.held = Some(input);
                effects.push(Effect::WakeAt { at: now + by, wake: Wake::Forge { plan: LATE } });
                None
            }
            input => Some(input),
        }
    }

    /// Hands an input to the spare forgers of the node. Returns true if it is for one of them alone.
    fn spares_hear(&mut self, now: SimTime, input: &Input, effects: &mut Vec<Effect>) -> bool {
        if let Input::Wake(Wake::Forge { plan }) = input {
            // A wake-up is of one forger.
            let woken = self.spares.iter_mut().find(|spare| spare.plans().contains(plan));
            return woken.map(|spare| spare.step(now, input.clone(), effects)).is_some();
        }
        self.spares.iter_mut().for_each(|spare| spare.step(now, input.clone(), effects));
        false
    }

    /// Does an effect, or something else instead.
    fn bend(&mut self, actor: &Actor, now: SimTime, mut effect: Effect, effects: &mut Vec<Effect>) {
        for index in 0..self.deviations.len() {
            let deviation = self.deviations[index].clone();
            match (&*deviation, effect) {
                (Deviation::LateForging(_), Effect::Send { to, message: Message::ForgingTransactionsRequest }) => {
                    self.awaits = true;
                    effect = Effect::Send { to, message: Message::ForgingTransactionsRequest };
                }
                (
                    Deviation::Withhold { release: Some(release) },
                    Effect::Send { to, message: Message::Block(block) },
                ) if self.own == Some(block.id) => {
                    let (at, message) = (now + *release, Message::Block(block));
                    return effects.push(Effect::SendAt { at, to, message });
                }
                (
                    Deviation::Withhold { release: Some(release) },
                    Effect::SendToPeers { to, message: Message::Block(block) },
                ) if self.own == Some(block.id) => {
                    let at = now + *release;
                    effects.extend(to.into_iter().map(|node| Effect::SendAt {
                        at,
                        to: ActorId { node, role: Role::Peer },
                        message: Message::Block(block.clone()),
                    }));
                    return;
                }
                (Deviation::DoubleForge, Effect::Send { to, message: Message::Forged(block) }) => {
                    effects.push(Effect::Send { to, message: Message::Forged(block.clone()) });
                    if let Actor::Delegate(delegate) = actor {
                        self.send_twin(delegate, &block, effects);
                    }
                    return;
                }
                (Deviation::ForgeInvalid(_), Effect::Observe(Event::BlockForged(_))) => return,
                (Deviation::ForgeInvalid(rule), Effect::Send { message: Message::Forged(block), .. }) => {
                    if let Actor::Delegate(delegate) = actor {
                        let broken = Arc::new(forgery::broken(&block, *rule, delegate, &mut self.oversize));
                        effects.push(Effect::Observe(Event::BlockForged(broken.clone())));
                        self.push_to_all(&broken, effects);
                    }
                    return;
                }
                (Deviation::Censor(sender), Effect::Send { to, message: Message::ForgingTransactions(chosen) }) => {
                    let kept: Transactions =
                        chosen.iter().filter(|chosen| chosen.sender_address() != *sender).cloned().collect();
                    effect = Effect::Send { to, message: Message::ForgingTransactions(kept) };
                }
                (Deviation::LieAboutTip(lie), Effect::Send { to, message }) => {
                    effect = Effect::Send { to, message: self.lie(actor, lie, message) };
                }
                (_, untouched) => effect = untouched,
            }
        }
        effects.push(effect);
    }

    /// Returns a peer's message with a lie in place of its tip.
    fn lie(&mut self, actor: &Actor, lie: &Lie, message: Message) -> Message {
        let moved = |height| match lie.claim {
            FalseClaim::Height => forgery::claimed_height(height, lie.by),
            FalseClaim::Id | FalseClaim::Slot => height,
        };
        match (message, actor) {
            (Message::Status { tip }, Actor::Peer(peer)) => {
                if self.claimed.as_ref().is_none_or(|(of, _)| *of != tip.id) {
                    self.claimed = Some((tip.id, Arc::new(forgery::claimed(&tip, lie, peer.tree()))));
                }
                Message::Status { tip: self.claimed.as_ref().map_or(tip, |(_, claimed)| claimed.clone()) }
            }
            (Message::Blocks { inquiry, height, blocks }, _) => {
                Message::Blocks { inquiry, height: moved(height), blocks }
            }
            (Message::CommonBlocks { inquiry, height, common }, _) => {
                Message::CommonBlocks { inquiry, height: moved(height), common }
            }
            (other, _) => other,
        }
    }

    /// Returns true if an input is transactions, and this peer takes none. A client is answered.
    fn refuses(&self, input: &Input, effects: &mut Vec<Effect>) -> bool {
        if !self.is_on(&Deviation::RefuseTransactions) {
            return false;
        }
        match input {
            Input::Submit { request, transactions } => {
                let error = || PoolError::Unavailable("This node takes no transactions.");
                let errors = transactions.iter().map(|transaction| (transaction.id(), error())).collect();
                let submission = Submission { errors, ..Submission::default() };
                effects.push(Effect::Answer { request: *request, submission: submission.into() });
                true
            }
            Input::Message { message: Message::Transactions(_), .. } => true,
            _ => false,
        }
    }

    /// Returns true if an input belongs to forging out of turn, which the honest delegate knows nothing of.
    fn went_out_of_turn(
        &mut self,
        delegate: &Delegate,
        now: SimTime,
        input: &Input,
        effects: &mut Vec<Effect>,
    ) -> bool {
        match input {
            // Two faults may wake it for one slot, and a fault that is over may have left a wake-up behind.
            Input::Wake(Wake::Forge { plan: OUT_OF_TURN }) if self.asked => true,
            Input::Wake(Wake::Forge { plan: OUT_OF_TURN }) => {
                let slot = delegate.tree().slots().slot(now.seconds());
                let every: Vec<u32> = self.deviations.iter().filter_map(|on| out_of_turn(on)).collect();
                let due: Vec<u32> = every.iter().copied().filter(|every| slot.0.is_multiple_of(*every)).collect();
                // A clock that was set in between may have put the wake-up into another slot.
                let planned = if due.is_empty() { &every } else { &due };
                planned.iter().for_each(|every| plan_out_of_turn(delegate, now, *every, effects));
                if !due.is_empty() {
                    let to = ActorId { node: delegate.node(), role: Role::Peer };
                    effects.push(Effect::Send { to, message: Message::RoundRequest });
                    self.asked = true;
                }
                true
            }
            Input::Message { message: Message::Round(view), .. } if mem::take(&mut self.asked) => {
                self.forge_out_of_turn(delegate, now, view, effects);
                true
            }
            _ => false,
        }
    }

    /// An empty block for the running slot, whoever owns it; not for its own, which the honest delegate fills.
    fn forge_out_of_turn(&self, delegate: &Delegate, now: SimTime, view: &RoundView, effects: &mut Vec<Effect>) {
        let slot = delegate.tree().slots().slot(now.seconds());
        let Some(keys) = delegate.keys().filter(|keys| view.round.owner(slot).public_key != *keys.public()) else {
            return;
        };
        if slot > view.tip_slot {
            let block = Arc::new(forgery::empty(view, slot, keys, delegate.tree()));
            effects.push(Effect::Observe(Event::BlockForged(block.clone())));
            self.push_to_all(&block, effects);
        }
    }

    fn send_twin(&self, delegate: &Delegate, block: &Block, effects: &mut Vec<Effect>) {
        let Some(keys) = delegate.keys() else { return };
        let twin = Arc::new(forgery::twin(block, keys, &delegate.tree().config().milestones));
        effects.push(Effect::Observe(Event::BlockForged(twin.clone())));
        self.push(self.peers.iter().skip(1).step_by(2), &twin, effects);
    }

    fn push_to_all(&self, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        self.push(self.peers.iter(), block, effects);
    }

    fn push<'a>(&self, to: impl Iterator<Item = &'a NodeId>, block: &Arc<Block>, effects: &mut Vec<Effect>) {
        effects.push(Effect::SendToPeers { to: to.copied().collect(), message: Message::Block(block.clone()) });
    }

    fn is_on(&self, deviation: &Deviation) -> bool {
        self.deviations.iter().any(|on| **on == *deviation)
    }
}

/// A forger of another delegate's key on a node, which follows the rules. It asks the node's relay and hears its answers, as the
/// forger of the node's own key does. What is answered to the one says nothing to the other: each works in slots of its own key only.
/// Wake-ups are told apart by the numbers of their plans.
#[derive(Clone)]
struct Spare {
    delegate: Delegate,
    /// The number of its first plan on the node.
    first: u64,
}

impl Spare {
    /// Plans that the node's own forger and each spare one can make.
    const PLANS: u64 = 1 << 40;

    /// A spare forger beside others on the node of a delegate.
    fn new(beside: &Delegate, keys: &KeyPair, others: &[Self]) -> Self {
        let first = others.iter().map(|other| other.first).max().unwrap_or(0) + Self::PLANS;
        let polls = Self::polls(beside.polls(), first);
        let delegate = Delegate::new(beside.node(), Some(keys.clone()), beside.tree().clone(), polls);
        Self { delegate, first }
    }

    /// The seed of its polls, by that of the node's own forger: they lie elsewhere than those of the others.
    fn polls(own: u64, first: u64) -> u64 {
        own ^ first
    }

    fn plans(&self) -> Range<u64> {
        self.first..self.first + Self::PLANS
    }

    fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        let first = self.first;
        let input = match input {
            Input::Wake(Wake::Forge { plan }) => Input::Wake(Wake::Forge { plan: plan.saturating_sub(first) }),
            input => input,
        };
        let before = effects.len();
        self.delegate.step(now, input, effects);
        for effect in &mut effects[before..] {
            if let Effect::WakeAt { wake: Wake::Forge { plan }, .. } = effect {
                *plan += first;
            }
        }
    }
}

impl std::fmt::Debug for Stimulus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(input) => write!(f, "{input:?}"),
            Self::Deviate { deviation, on, .. } => write!(f, "{deviation:?}: {on}"),
            Self::Begin(_) => f.write_str("Begin"),
        }
    }
}

/// The slots of which a delegate forges out of turn in one: every so many.
fn out_of_turn(deviation: &Deviation) -> Option<u32> {
    match deviation {
        Deviation::OutOfTurn { every } => Some((*every).max(1)),
        _ => None,
    }
}

fn plan_out_of_turn(delegate: &Delegate, now: SimTime, every: u32, effects: &mut Vec<Effect>) {
    let slots = delegate.tree().slots();
    let running = slots.slot(now.seconds()).0;
    let next = (running / every + 1).saturating_mul(every);
    let at = SimTime::from_seconds(slots.start(Slot(next))) + INTO_SLOT;
    effects.push(Effect::WakeAt { at, wake: Wake::Forge { plan: OUT_OF_TURN } });
}

saved!(enum Stimulus { 0 Input(input), 1 Deviate { deviation, on, peers }, 2 Begin(actor) });
saved!(struct Hosted { actor, deviance });
saved!(struct Deviance { deviations, peers, own, asked, oversize, claimed, awaits, held, spares; effects = Vec::new() });
saved!(struct Spare { delegate, first });
