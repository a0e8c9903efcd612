//! Delegates that make two blocks in one slot.

use super::{Setting, Strategy, forgery};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Event, Message, Role, behaviour::Step},
    ledger::codec::saved,
    sim::fault::{Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Delegates that make two blocks in one slot, one for each half of their peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoubleForge {
    /// The delegates that forge twice.
    pub delegates: Nodes,
}

impl Strategy for DoubleForge {
    const NAME: &'static str = "double-forge";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [3]";
    type Behaviour = Doubling;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Doubling)> {
        setting.each(&self.delegates, Role::Delegate, |_| Doubling {})
    }
}

/// The delegate makes two blocks for each of its slots. The second goes straight to every other one of the peers, so it is there
/// before the first.
#[derive(Clone, Debug)]
pub struct Doubling {}

impl Behaviour for Doubling {
    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Effect::Send { to, message: Message::Forged(block) } = effect else { return Some(effect) };
        step.send(to, Message::Forged(block.clone()));
        if let Some((delegate, keys)) = actor.delegate().and_then(|delegate| Some((delegate, delegate.keys()?))) {
            let twin = Arc::new(forgery::twin(&block, keys, &delegate.tree().config().milestones));
            step.put(Effect::Observe(Event::BlockForged(twin.clone())));
            step.push(step.peers.iter().skip(1).step_by(2).copied(), &twin);
        }
        None
    }
}

saved!(
    struct Doubling {}
);
