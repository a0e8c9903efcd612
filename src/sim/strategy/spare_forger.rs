//! Nodes that also forge with the key of another delegate.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Delegate, Effect, Input, Role, Wake, behaviour::Step},
    ledger::codec::saved,
    protocol::{KeyPair, PublicKey},
    sim::fault::{Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Nodes that forge with the keys of delegates, too, each with a pool and a view of its own: a spare node that its operator left
/// on. Equal pools give the same block, because signatures are deterministic; others give two blocks in one slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpareForger {
    /// The delegates whose keys they have.
    pub delegates: Nodes,
    /// The nodes that forge with each of these keys, beside a key of their own if they have one.
    pub nodes: Nodes,
}

impl Strategy for SpareForger {
    const NAME: &'static str = "spare-forger";
    const FACTS: Facts = Facts::PAIRED;
    const EXAMPLE: &'static str = "delegates = [3]\nnodes = [4]";
    type Behaviour = Spare;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates), ("nodes", &self.nodes)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates), ("nodes", &mut self.nodes)]
    }

    /// Leaves out the node of the key itself, which forges with it anyway.
    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Spare)> {
        let mut all = Vec::new();
        for delegate in setting.resolve(&self.delegates) {
            let Some(keys) = setting.keys(delegate) else { continue };
            for node in setting.resolve(&self.nodes).into_iter().filter(|node| *node != delegate) {
                let spare = Spare { keys: keys.clone(), forger: None };
                all.push((ActorId { node, role: Role::Delegate }, spare));
            }
        }
        all
    }
}

/// A forger of another delegate's key on a node, which follows the rules. It asks the node's relay and hears its answers, as the forger
/// of the node's own key does. An answer to one does not affect the other: each works only in slots of its own key.
#[derive(Clone)]
pub struct Spare {
    keys: KeyPair,
    forger: Option<Delegate>,
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spare({})", self.keys.public())
    }
}

impl Spare {
    /// Delivers an input to the forger. Its wake-ups become wake-ups of the behaviour.
    fn step(&mut self, step: &mut Step<'_>, input: Input) {
        let Some(forger) = &mut self.forger else { return };
        let mut effects = Vec::new();
        forger.step(step.now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::WakeAt { at, wake: Wake::Forge { plan } } => step.wake_at(at, plan),
                effect => step.put(effect),
            }
        }
    }
}

impl Behaviour for Spare {
    fn begins(&mut self, actor: &Actor, step: &mut Step<'_>) {
        let Some(beside) = actor.delegate() else { return };
        // It polls at other instants than the other forgers.
        let polls = step.seed_for(beside.polls());
        self.forger = Some(Delegate::new(beside.node(), Some(self.keys.clone()), beside.tree().clone(), polls));
        self.step(step, Input::Start);
    }

    fn hears(&mut self, _: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        // A wake-up is for one forger only.
        if !matches!(input, Input::Wake(_)) {
            self.step(step, input.clone());
        }
        Some(input)
    }

    fn wakes(&mut self, _: &Actor, step: &mut Step<'_>, number: u64) -> Option<Input> {
        self.step(step, Input::Wake(Wake::Forge { plan: number }));
        None
    }

    fn draws_anew(&mut self, seed: u64) {
        self.forger.iter_mut().for_each(|forger| forger.draw_anew(seed));
    }

    fn spare_key(&self) -> Option<&PublicKey> {
        Some(self.keys.public())
    }
}

saved!(struct Spare { keys, forger });
