//! An actor as a stage holds it: honest, until a fault makes it behave otherwise.

use super::{
    Actor, ActorId, Behaviour, Choices, Delegate, Effect, Input, NodeId, Peer, SimTime, TransactionPool, Wake,
    behaviour::{Layer, Step},
    prefetch::{Prefetch, UpcomingInput},
};
use crate::{
    ledger::codec::saved,
    protocol::{PublicKey, RoundNumber},
};
use std::{fmt, mem, ops::RangeInclusive, sync::Arc};

/// Rounds in which a delegate is switched off.
pub type Spells = Arc<[RangeInclusive<RoundNumber>]>;

/// A change that the world makes to an actor.
#[derive(Clone)]
pub enum Stimulus {
    /// The actor receives an input.
    Input(Input),
    /// A behaviour begins. The actor's node is connected to `peers`.
    Behave { layer: Layer, peers: Arc<[NodeId]> },
    /// A behaviour ends. If the actor forged with the key `spare`, it no longer does.
    Cease { layer: u32, spare: Option<PublicKey> },
    /// The behaviour `by` has written the memory of the coalition to which the actor's behaviour `layer` belongs.
    Share { layer: u32, by: u32, value: Arc<[u8]> },
    /// Delegate: it is switched off in these rounds, or on again.
    Switch { rounds: Spells, off: bool },
    /// Its node comes back after a crash: this actor takes its place and starts.
    Begin(Actor),
}

/// An actor as a stage holds it.
#[derive(Clone)]
pub struct HostedActor {
    actor: Actor,
    bent: Option<Box<BehaviourLayers>>,
}

/// The behaviours of an actor, the oldest first.
#[derive(Clone)]
struct BehaviourLayers {
    id: ActorId,
    /// The nodes its node is connected to, ascending.
    peers: Arc<[NodeId]>,
    layers: Vec<Layer>,
    /// A buffer for the effects of one step, reused.
    effects: Vec<Effect>,
}

impl From<Actor> for HostedActor {
    fn from(actor: Actor) -> Self {
        Self { actor, bent: None }
    }
}

impl Prefetch<UpcomingInput> for HostedActor {
    /// A pool has nothing to fetch: it receives little.
    fn fetch(&self, what: UpcomingInput) {
        match (&self.actor, what) {
            (Actor::Peer(peer), _) => peer.fetch(what),
            (Actor::Delegate(delegate), UpcomingInput::Near { .. }) => delegate.fetch(()),
            _ => {}
        }
    }
}

impl HostedActor {
    /// Handles one stimulus. Appends the effects that the actor wants, in order.
    pub fn take(&mut self, now: SimTime, stimulus: Stimulus, effects: &mut Vec<Effect>) {
        match stimulus {
            Stimulus::Input(input) => match &mut self.bent {
                None => self.actor.step(now, input, effects),
                Some(bent) => bent.step(&mut self.actor, now, input, effects),
            },
            Stimulus::Behave { layer, peers } => self.begin(now, layer, peers, effects),
            Stimulus::Cease { layer, .. } => self.cease(now, layer, effects),
            Stimulus::Share { layer, by, value } => {
                if let Some(bent) = &mut self.bent
                    && let Some(at) = bent.layers.iter().position(|one| one.id == layer)
                {
                    bent.layers[at].memory = Some(value);
                    if by != layer {
                        bent.turn(&self.actor, at, now, effects, |behaviour, actor, step| {
                            behaviour.learns(actor, step)
                        });
                    }
                }
            }
            Stimulus::Switch { rounds, off } => self.switch(now, &rounds, off, effects),
            Stimulus::Begin(mut actor) => {
                if let (Actor::Delegate(new), Actor::Delegate(old)) = (&mut actor, &self.actor) {
                    new.remember(old);
                }
                *self = actor.into();
                self.actor.step(now, Input::Start, effects);
            }
        }
    }

    /// Returns the actor if it is a peer without behaviours, which can read messages by reference.
    pub fn reader(&mut self) -> Option<&mut Peer> {
        match (&mut self.actor, &self.bent) {
            (Actor::Peer(peer), None) => Some(peer),
            _ => None,
        }
    }

    /// Replaces the random numbers of the actor: a peer draws from `choices`, a delegate from `seed`. A pool does not draw. Behaviours,
    /// too, draw from `seed`, that of the node's delegate.
    pub fn draw_anew(&mut self, choices: impl FnOnce() -> Choices, seed: impl FnOnce() -> u64) {
        let mut seed = Some(seed);
        let mut drawn = || seed.take().map(|seed| seed());
        let of_actor = match &mut self.actor {
            Actor::Peer(peer) => {
                peer.draw_anew(choices());
                self.bent.is_some().then(&mut drawn).flatten()
            }
            Actor::Delegate(delegate) => {
                let polls = drawn();
                polls.into_iter().for_each(|polls| delegate.draw_anew(polls));
                polls
            }
            Actor::Pool(_) => self.bent.is_some().then(&mut drawn).flatten(),
        };
        if let (Some(bent), Some(of_actor)) = (&mut self.bent, of_actor) {
            bent.layers.iter_mut().for_each(|layer| layer.draw_anew(of_actor));
        }
    }

    /// The ways in which it departs from the protocol now, described.
    pub fn departures(&self) -> Vec<String> {
        let off = match &self.actor {
            Actor::Delegate(delegate) => delegate.spells().map(|rounds| format!("off in {rounds:?}")).collect(),
            Actor::Peer(_) | Actor::Pool(_) => Vec::new(),
        };
        let bent = self.bent.iter().flat_map(|bent| &bent.layers).map(|layer| layer.kind.to_owned());
        off.into_iter().chain(bent).collect()
    }

    /// The pool, if it is one.
    pub fn pool(&self) -> Option<&TransactionPool> {
        self.actor.pool()
    }

    /// The peer, if it is one.
    pub fn peer(&self) -> Option<&Peer> {
        self.actor.peer()
    }

    /// The delegate, if it is one.
    pub fn delegate(&self) -> Option<&Delegate> {
        self.actor.delegate()
    }

    /// The wake-up at which the actor receives the input that a behaviour withholds from it. Until then it receives none of its own.
    pub fn release(&self) -> Option<Wake> {
        let layers = self.bent.iter().flat_map(|bent| &bent.layers);
        let mut keep = layers.filter_map(|layer| {
            let number = layer.behaviour.keeps()?;
            Some(Wake::Behaviour { layer: layer.id, number })
        });
        keep.next()
    }

    /// An estimate of the bytes it takes, without data that it shares with others.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.actor {
                Actor::Peer(peer) => size_of::<Peer>() + peer.bytes(),
                Actor::Pool(pool) => size_of::<TransactionPool>() + pool.bytes(),
                Actor::Delegate(_) => size_of::<Delegate>(),
            }
    }

    fn begin(&mut self, now: SimTime, layer: Layer, peers: Arc<[NodeId]>, effects: &mut Vec<Effect>) {
        let id = self.actor.id();
        let bent = self.bent.get_or_insert_with(|| {
            Box::new(BehaviourLayers { id, peers: peers.clone(), layers: Vec::new(), effects: Vec::new() })
        });
        bent.peers = peers;
        let is_heard = !self.actor.is_off() || layer.behaviour.spare_key().is_some();
        bent.layers.push(layer);
        if is_heard {
            let last = bent.layers.len() - 1;
            bent.turn(&self.actor, last, now, effects, |behaviour, actor, step| behaviour.begins(actor, step));
        }
    }

    /// Delivers the inputs that a behaviour has held back from its actor, because the behaviour ends.
    fn cease(&mut self, now: SimTime, layer: u32, effects: &mut Vec<Effect>) {
        let Some(bent) = &mut self.bent else { return };
        let Some(at) = bent.layers.iter().position(|one| one.id == layer) else { return };
        let kept = bent.turn(&self.actor, at, now, effects, |behaviour, actor, step| behaviour.ends(actor, step));
        bent.layers.remove(at);
        if let Some(input) = kept.filter(|_| !self.actor.is_off()) {
            bent.hear(&mut self.actor, now, at, input, effects);
        }
        if bent.layers.is_empty() {
            self.bent = None;
        }
    }

    /// Switches a delegate off in these rounds, or on again. One that was off in all rounds has missed its wake-ups and the answers to
    /// its requests, so its behaviours begin again.
    fn switch(&mut self, now: SimTime, rounds: &[RangeInclusive<RoundNumber>], off: bool, effects: &mut Vec<Effect>) {
        let was_off = self.actor.is_off();
        if let Actor::Delegate(delegate) = &mut self.actor {
            delegate.switch(now, rounds, off, effects);
        }
        if let Some(bent) = self.bent.as_mut().filter(|_| was_off && !self.actor.is_off()) {
            for at in 0..bent.layers.len() {
                if bent.layers[at].behaviour.spare_key().is_none() {
                    bent.turn(&self.actor, at, now, effects, |behaviour, actor, step| behaviour.begins(actor, step));
                }
            }
        }
    }
}

impl BehaviourLayers {
    /// Handles one input. Appends the effects of the honest actor, as its behaviours change them.
    fn step(&mut self, actor: &mut Actor, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        let Input::Wake(Wake::Behaviour { layer, number }) = input else {
            return self.hear(actor, now, 0, input, effects);
        };
        let Some(at) = self.layers.iter().position(|one| one.id == layer) else { return };
        if actor.is_off() && self.layers[at].behaviour.spare_key().is_none() {
            return;
        }
        let heard = self.turn(actor, at, now, effects, |behaviour, actor, step| behaviour.wakes(actor, step, number));
        if let Some(input) = heard {
            self.hear(actor, now, at + 1, input, effects);
        }
    }

    /// Passes an input through the behaviours from the index `from` on, and then to the actor, unless one of them withholds it.
    fn hear(&mut self, actor: &mut Actor, now: SimTime, from: usize, input: Input, effects: &mut Vec<Effect>) {
        let mut heard = Some(input);
        let is_off = actor.is_off();
        for at in from..self.layers.len() {
            let Some(input) = heard.take() else { return };
            // While the delegate is switched off, only a behaviour that forges with a key of its own receives inputs.
            if is_off && self.layers[at].behaviour.spare_key().is_none() {
                heard = Some(input);
                continue;
            }
            heard = self.turn(actor, at, now, effects, |behaviour, actor, step| behaviour.hears(actor, step, input));
        }
        let Some(input) = heard else { return };
        let mut wanted = mem::take(&mut self.effects);
        actor.step(now, input, &mut wanted);
        for effect in wanted.drain(..) {
            self.bend(actor, now, effect, effects);
        }
        self.effects = wanted;
    }

    /// Appends an effect of the actor, unless a behaviour replaces or suppresses it.
    fn bend(&mut self, actor: &Actor, now: SimTime, effect: Effect, effects: &mut Vec<Effect>) {
        let mut effect = Some(effect);
        for at in 0..self.layers.len() {
            let Some(wanted) = effect.take() else { return };
            effect = self.turn(actor, at, now, effects, |behaviour, actor, step| behaviour.does(actor, step, wanted));
        }
        effects.extend(effect);
    }

    fn turn<T>(
        &mut self,
        actor: &Actor,
        at: usize,
        now: SimTime,
        effects: &mut Vec<Effect>,
        turn: impl FnOnce(&mut dyn Behaviour, &Actor, &mut Step<'_>) -> T,
    ) -> T {
        let Self { id, peers, layers, .. } = self;
        layers[at].turn(now, *id, peers, effects, |behaviour, step| turn(behaviour, actor, step))
    }
}

impl fmt::Debug for Stimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => write!(f, "{input:?}"),
            Self::Behave { layer, .. } => write!(f, "{layer:?} begins"),
            Self::Cease { .. } => f.write_str("Cease"),
            Self::Share { .. } => f.write_str("Share"),
            Self::Switch { rounds, off } => write!(f, "off in {rounds:?}: {off}"),
            Self::Begin(_) => f.write_str("Begin"),
        }
    }
}

saved!(enum Stimulus {
    0 Input(input),
    1 Behave { layer, peers },
    2 Cease { layer, spare },
    3 Share { layer, by, value },
    4 Switch { rounds, off },
    5 Begin(actor),
});
saved!(struct HostedActor { actor, bent });
saved!(struct BehaviourLayers { id, peers, layers; effects = Vec::new() });
