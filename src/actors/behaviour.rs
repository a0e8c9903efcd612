//! Ways in which an actor departs from the protocol. Only a fault of a run makes an actor do so.
//!
//! ```text
//!   input ─► behaviour ─► behaviour ─► the honest actor ─► effect ─► behaviour ─► behaviour ─► the world
//! ```
//!
//! An honest actor knows nothing of this. Each [`Behaviour`] sees what its actor hears first, and what its actor wants done before
//! the world does. Those that began earlier see it first, both ways. Source: consensus.md 7.2.

use super::{Actor, ActorId, Effect, Input, Message, NodeId, Role, SimTime, Wake};
use crate::{
    ledger::saved::{LoadError, Loader, Saved, Saver},
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
pub trait Behaviour: Copied + fmt::Debug + Send + Sync {
    /// Begins, and begins again when its delegate, which was switched off, is on again.
    fn begins(&mut self, _actor: &Actor, _step: &mut Step<'_>) {}

    /// Returns what the actor hears in place of an input; `None` if it hears nothing.
    fn hears(&mut self, _actor: &Actor, _step: &mut Step<'_>, input: Input) -> Option<Input> {
        Some(input)
    }

    /// Returns what is done in place of an effect that the actor wants; `None` if nothing is.
    fn does(&mut self, _actor: &Actor, _step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        Some(effect)
    }

    /// Wakes up, as it [wanted](Step::wake_at). Returns what the actor hears now. A crash of its node takes all wake-ups: the actors
    /// that come back begin anew, and a pool that is kept does not.
    fn wakes(&mut self, _actor: &Actor, _step: &mut Step<'_>, _number: u64) -> Option<Input> {
        None
    }

    /// Ends. Returns what the actor hears now, such as what was kept from it.
    fn ends(&mut self, _actor: &Actor, _step: &mut Step<'_>) -> Option<Input> {
        None
    }

    /// Another member of its coalition has [written](Step::share) the memory.
    fn learns(&mut self, _actor: &Actor, _step: &mut Step<'_>) {}

    /// The number of the wake-up at which the actor hears what is kept from it, if something is. Until then it hears none of its own
    /// wake-ups.
    fn keeps(&self) -> Option<u64> {
        None
    }

    /// Draws from another seed from now on, if it holds something that draws.
    fn draws_anew(&mut self, _seed: u64) {}

    /// The key that it forges with by the rules, beside the node's own delegate and even while that is switched off.
    fn spare_key(&self) -> Option<&PublicKey> {
        None
    }
}

/// The operations of every behaviour that is a value and can be saved.
pub trait Copied {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn Behaviour>;
    /// Appends it.
    fn save_into(&self, out: &mut Saver);
}

impl<T: Behaviour + Clone + Saved + 'static> Copied for T {
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

/// The surroundings of a behaviour during its turn.
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
    /// The world does this at once. Behaviours that began later do not see it.
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

    /// Wakes up at an instant of the node's clock, and hears this number then.
    pub fn wake_at(&mut self, at: SimTime, number: u64) {
        let wake = Wake::Behaviour { layer: self.layer, number };
        self.put(Effect::WakeAt { at, wake });
    }

    /// Returns a number below `count`, drawn for this actor, fault, instant and purpose. The same again gives the same number.
    pub fn below(&self, purpose: &str, count: u64) -> u64 {
        let numbers = [self.seed, self.name, u64::from(self.me.node.0), self.now.micros()];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let hash = sha256_of(&[b"behaviour", &bytes, purpose.as_bytes()]);
        let drawn = u64::from_le_bytes(hash[..8].try_into().expect("8 of 32 bytes"));
        // The high half of the product is even over all counts, to one in 2^64.
        ((u128::from(drawn) * u128::from(count)) >> 64) as u64
    }

    /// The seed of something of its own, by that of its actor: each behaviour has another one.
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

    /// Reads the memory of the coalition; `None` if nothing was written, or something of another shape.
    pub fn recall<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(self.memory.as_ref()?).ok()
    }
}

/// A behaviour of one actor, and what belongs to it.
#[derive(Clone)]
pub struct Layer {
    /// Its number in the run.
    pub id: u32,
    /// The name of its kind.
    pub kind: &'static str,
    pub behaviour: Box<dyn Behaviour>,
    /// The seed of what it draws.
    pub seed: u64,
    /// The name of its fault in what it draws.
    pub name: u64,
    /// The memory that its coalition has written.
    pub memory: Option<Arc<[u8]>>,
}

impl Layer {
    /// Draws from another seed of its actor's from now on.
    pub fn draw_anew(&mut self, of_actor: u64) {
        self.seed = of_actor;
        self.behaviour.draws_anew(of_actor ^ self.name);
    }

    /// It takes its turn: what it wants done goes to `effects`.
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
type Read = fn(&mut Loader) -> Result<Box<dyn Behaviour>, LoadError>;

/// The kinds that can be read again, by name.
static KINDS: LazyLock<RwLock<BTreeMap<&'static str, Read>>> = LazyLock::new(RwLock::default);

/// Makes it possible to read behaviours of a kind again.
pub fn learn<B: Behaviour + Saved + 'static>(kind: &'static str) {
    let read: Read = |from| Ok(Box::new(B::load(from)?));
    KINDS.write().expect("nobody panics while holding it").insert(kind, read);
}

impl Saved for Layer {
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
        let known = KINDS.read().expect("nobody panics while holding it");
        let known = known.get_key_value(name.as_str()).map(|(kind, read)| (*kind, *read));
        let (kind, read) = known.ok_or_else(|| from.wrong("kind of behaviour", &name))?;
        let (behaviour, seed) = (read(from)?, u64::load(from)?);
        Ok(Self { id, kind, behaviour, seed, name: u64::load(from)?, memory: Option::load(from)? })
    }
}
