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
    protocol::{Block, BlockId, Slot},
};
use rand_chacha::ChaCha8Rng;
use std::{mem, sync::Arc, time::Duration};

/// The number of a plan that no delegate ever makes: the wake-ups of one that forges out of turn.
const OUT_OF_TURN: u64 = u64::MAX;
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
                Some(deviance) => deviance.step(&mut self.actor, now, input, effects),
            },
            Stimulus::Deviate { deviation, on, peers } => match (&*deviation, &mut self.actor) {
                (Deviation::Offline(rounds), Actor::Delegate(delegate)) => delegate.switch(now, rounds, on, effects),
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

    /// A peer draws from another stream from now on; the others do not draw.
    pub fn draw_anew(&mut self, random: impl FnOnce() -> ChaCha8Rng) {
        if let Actor::Peer(peer) = &mut self.actor {
            peer.draw_anew(random());
        }
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
            return self.mend(&deviation);
        }
        if let (Deviation::OutOfTurn { every }, Actor::Delegate(delegate)) = (&*deviation, &self.actor) {
            plan_out_of_turn(delegate, now, *every, effects);
        }
        let deviance = self.deviance.get_or_insert_default();
        deviance.peers = peers;
        deviance.claimed = None;
        deviance.deviations.push(deviation);
    }

    fn mend(&mut self, deviation: &Deviation) {
        let Some(deviance) = &mut self.deviance else { return };
        let Some(index) = deviance.deviations.iter().position(|on| **on == *deviation) else { return };
        deviance.deviations.remove(index);
        deviance.claimed = None;
        if deviance.deviations.is_empty() {
            self.deviance = None;
        }
    }
}

impl Deviance {
    /// One event in, the effects out: those of the honest actor, as far as the deviations let them be.
    fn step(&mut self, actor: &mut Actor, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        let is_off = matches!(actor, Actor::Delegate(delegate) if delegate.is_off());
        if is_off || self.refuses(&input, effects) {
            return;
        }
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

    /// Does an effect, or something else instead.
    fn bend(&mut self, actor: &Actor, now: SimTime, mut effect: Effect, effects: &mut Vec<Effect>) {
        for index in 0..self.deviations.len() {
            let deviation = self.deviations[index].clone();
            match (&*deviation, effect) {
                (
                    Deviation::LateForging(by),
                    Effect::Send { to, message: message @ Message::ForgingTransactionsRequest },
                ) => {
                    return effects.push(Effect::SendAt { at: now + *by, to, message });
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
            Input::Wake(Wake::Forge { plan: OUT_OF_TURN }) => {
                let every = self.deviations.iter().find_map(|on| match **on {
                    Deviation::OutOfTurn { every } => Some(every),
                    _ => None,
                });
                if let Some(every) = every {
                    plan_out_of_turn(delegate, now, every, effects);
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

impl std::fmt::Debug for Stimulus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(input) => write!(f, "{input:?}"),
            Self::Deviate { deviation, on, .. } => write!(f, "{deviation:?}: {on}"),
            Self::Begin(_) => f.write_str("Begin"),
        }
    }
}

fn plan_out_of_turn(delegate: &Delegate, now: SimTime, every: u32, effects: &mut Vec<Effect>) {
    let slots = delegate.tree().slots();
    let running = slots.slot(now.seconds()).0;
    let every = every.max(1);
    let next = (running / every + 1).saturating_mul(every);
    let at = SimTime::from_seconds(slots.start(Slot(next))) + INTO_SLOT;
    effects.push(Effect::WakeAt { at, wake: Wake::Forge { plan: OUT_OF_TURN } });
}

saved!(enum Stimulus { 0 Input(input), 1 Deviate { deviation, on, peers }, 2 Begin(actor) });
saved!(struct Hosted { actor, deviance });
saved!(struct Deviance { deviations, peers, own, asked, oversize, claimed; effects = Vec::new() });
