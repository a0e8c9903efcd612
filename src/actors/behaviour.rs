//! Ways in which an actor departs from the protocol. Only a fault of a run makes an actor do so.
//!
//! ```text
//!   input ─► behaviour ─► behaviour ─► the honest actor ─► effect ─► behaviour ─► behaviour ─► the world
//! ```
//!
//! An honest actor knows nothing of this. Each [`Behaviour`] sees an input before its actor does, and an effect before the world carries
//! it out. In both directions, behaviours that began earlier come first. Source: consensus.md 7.2.

use super::{Actor, ActorId, Effect, Input, Message, NodeId, Role, SimTime, Wake};
use crate::{
    ledger::codec::{LoadError, Loader, Save, Saver},
    protocol::{Block, PublicKey, crypto::sha256_of},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock, RwLock},
};

/// One way in which an actor departs from the protocol.
///
/// It is a value: a copy of the run copies it, so it shares no mutable state. The common knowledge of a coalition is its
/// [memory](Step::share).
pub trait Behaviour: BehaviourValue + fmt::Debug + Send + Sync {
    /// Runs when the behaviour begins, and whenever its delegate is switched on again.
    fn begins(&mut self, _actor: &Actor, _step: &mut Step<'_>) {}

    /// Returns the input that the actor receives in place of `input`, or `None` if it receives none.
    fn hears(&mut self, _actor: &Actor, _step: &mut Step<'_>, input: Input) -> Option<Input> {
        Some(input)
    }

    /// Returns the effect that replaces `effect`, or `None` to suppress it.
    fn does(&mut self, _actor: &Actor, _step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        Some(effect)
    }

    /// Wakes up, as it [wanted](Step::wake_at). Returns what the actor hears now. A crash of its node takes all wake-ups: the actors
    /// that come back begin anew, and a pool that is kept does not.
    fn wakes(&mut self, _actor: &Actor, _step: &mut Step<'_>, _number: u64) -> Option<Input> {
        None
    }

    /// Runs when the behaviour ends. Returns an input that the actor receives now, such as one that was withheld from it.
    fn ends(&mut self, _actor: &Actor, _step: &mut Step<'_>) -> Option<Input> {
        None
    }

    /// Runs when another member of its coalition has [written](Step::share) the memory.
    fn learns(&mut self, _actor: &Actor, _step: &mut Step<'_>) {}

    /// The number of the wake-up at which the actor receives the input that is withheld from it, or `None` if none is. Until then it
    /// receives none of its own wake-ups.
    fn keeps(&self) -> Option<u64> {
        None
    }

    /// Reseeds the parts of the behaviour that draw random numbers, if it has any.
    fn draws_anew(&mut self, _seed: u64) {}

    /// The key with which it forges by the rules, beside the node's own delegate and even while that delegate is switched off.
    fn spare_key(&self) -> Option<&PublicKey> {
        None
    }
}

/// The operations of every behaviour that is a value and can be saved.
pub trait BehaviourValue {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn Behaviour>;
    /// Appends the saved behaviour to `out`.
    fn save_into(&self, out: &mut Saver);
}

impl<T: Behaviour + Clone + Save + 'static> BehaviourValue for T {
    fn boxed(&self) -> Box<dyn Behaviour> {
        Box::new(self.clone())
    }

    fn save_into(&self, out: &mut Saver) {
        self.save(out);
    }
}

impl Clone for Box<dyn Behaviour> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// The context in which a behaviour runs once.
#[derive(Debug)]
pub struct Step<'a> {
    /// The instant on the node's clock.
    pub now: SimTime,
    /// Its actor.
    pub me: ActorId,
    /// The nodes that its node is connected to, ascending.
    pub peers: &'a [NodeId],
    layer: u32,
    seed: u64,
    name: u64,
    memory: &'a mut Option<Arc<[u8]>>,
    effects: &'a mut Vec<Effect>,
}

impl Step<'_> {
    /// Has the world carry out an effect at once. Behaviours that began later do not see it.
    pub fn put(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Sends a message to an actor.
    pub fn send(&mut self, to: ActorId, message: Message) {
        self.put(Effect::Send { to, message });
    }

    /// Sends a block to the peers of other nodes.
    pub fn push(&mut self, to: impl Iterator<Item = NodeId>, block: &Arc<Block>) {
        self.put(Effect::SendToPeers { to: to.collect(), message: Message::Block(block.clone()) });
    }

    /// The peer of its node.
    pub fn relay(&self) -> ActorId {
        ActorId { node: self.me.node, role: Role::Peer }
    }

    /// Schedules a wake-up at an instant of the node's clock. The behaviour receives `number` then.
    pub fn wake_at(&mut self, at: SimTime, number: u64) {
        let wake = Wake::Behaviour { layer: self.layer, number };
        self.put(Effect::WakeAt { at, wake });
    }

    /// Returns a number below `count`, drawn for this actor, fault, instant and purpose. The same call returns the same number again.
    pub fn below(&self, purpose: &str, count: u64) -> u64 {
        let numbers = [self.seed, self.name, u64::from(self.me.node.0), self.now.micros()];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let hash = sha256_of(&[b"behaviour", &bytes, purpose.as_bytes()]);
        let drawn = u64::from_le_bytes(hash[..8].try_into().expect("8 of 32 bytes"));
        // The high half of the product is even over all counts, to one in 2^64.
        ((u128::from(drawn) * u128::from(count)) >> 64) as u64
    }

    /// Derives a seed for a part of this behaviour from a seed of its actor. Each behaviour derives a different one.
    pub fn seed_for(&self, of_actor: u64) -> u64 {
        of_actor ^ self.name
    }

    /// Writes the memory of the coalition: the common knowledge of all actors of one fault. The others [learn](Behaviour::learns) it at
    /// this instant, after the events that are due already, without a message of the network. The last write wins.
    ///
    /// # Panics
    /// The value has no JSON.
    pub fn share(&mut self, value: &impl Serialize) {
        let value: Arc<[u8]> = serde_json::to_vec(value).expect("a memory has a JSON").into();
        *self.memory = Some(value.clone());
        let layer = self.layer;
        self.put(Effect::Share { layer, value });
    }

    /// Reads the memory of the coalition. Returns `None` if nothing was written, or a value of another shape.
    pub fn recall<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(self.memory.as_ref()?).ok()
    }
}

/// A behaviour of one actor, with its seed and the memory of its coalition.
#[derive(Clone)]
pub struct Layer {
    /// Its number in the run.
    pub id: u32,
    /// The name of its kind.
    pub kind: &'static str,
    pub behaviour: Box<dyn Behaviour>,
    /// The seed of its random draws.
    pub seed: u64,
    /// The number that names its fault in its random draws.
    pub name: u64,
    /// The memory that its coalition has written.
    pub memory: Option<Arc<[u8]>>,
}

impl Layer {
    /// Replaces the seed by `of_actor`, another seed of its actor.
    pub fn draw_anew(&mut self, of_actor: u64) {
        self.seed = of_actor;
        self.behaviour.draws_anew(of_actor ^ self.name);
    }

    /// Runs `turn` on the behaviour. Its effects go to `effects`.
    pub(super) fn turn<T>(
        &mut self,
        now: SimTime,
        me: ActorId,
        peers: &[NodeId],
        effects: &mut Vec<Effect>,
        turn: impl FnOnce(&mut dyn Behaviour, &mut Step<'_>) -> T,
    ) -> T {
        let Self { id: layer, seed, name, memory, .. } = self;
        let mut step = Step { now, me, peers, layer: *layer, seed: *seed, name: *name, memory, effects };
        turn(&mut *self.behaviour, &mut step)
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.behaviour.fmt(f)
    }
}

/// Reads a behaviour of one kind.
type BehaviourLoader = fn(&mut Loader) -> Result<Box<dyn Behaviour>, LoadError>;

/// The kinds of behaviour that can be loaded, by name.
static KINDS: LazyLock<RwLock<BTreeMap<&'static str, BehaviourLoader>>> = LazyLock::new(RwLock::default);

/// Registers a kind of behaviour, so that saved ones can be loaded.
pub fn learn<B: Behaviour + Save + 'static>(kind: &'static str) {
    let read: BehaviourLoader = |from| Ok(Box::new(B::load(from)?));
    KINDS.write().expect("no thread panics while holding it").insert(kind, read);
}

impl Save for Layer {
    fn save(&self, out: &mut Saver) {
        let Self { id, kind, behaviour, seed, name, memory } = self;
        id.save(out);
        (*kind).to_owned().save(out);
        behaviour.save_into(out);
        seed.save(out);
        name.save(out);
        memory.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (id, name) = (u32::load(from)?, String::load(from)?);
        let known = KINDS.read().expect("no thread panics while holding it");
        let known = known.get_key_value(name.as_str()).map(|(kind, read)| (*kind, *read));
        let (kind, read) = known.ok_or_else(|| from.wrong("kind of behaviour", &name))?;
        let (behaviour, seed) = (read(from)?, u64::load(from)?);
        Ok(Self { id, kind, behaviour, seed, name: u64::load(from)?, memory: Option::load(from)? })
    }
}
