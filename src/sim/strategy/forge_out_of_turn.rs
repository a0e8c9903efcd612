//! Delegates that forge in slots of others.

use super::{Setting, Strategy, forgery};
use crate::{
    actors::{
        Actor, ActorId, Behaviour, Delegate, Effect, Event, Input, Message, Role, SimTime, behaviour::Step,
        message::RoundView,
    },
    ledger::codec::saved,
    protocol::Slot,
    sim::fault::{BoundedValue, Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{mem, sync::Arc, time::Duration};

/// Delegates that forge in slots of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeOutOfTurn {
    /// The delegates that forge in slots of others.
    pub delegates: Nodes,
    /// In every slot, in every second one, and so on.
    #[serde(default = "one")]
    pub every: u32,
}

fn one() -> u32 {
    1
}

impl Strategy for ForgeOutOfTurn {
    const NAME: &'static str = "forge-out-of-turn";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [4]\nevery = 3";
    type Behaviour = OutOfTurn;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("every", BoundedValue::Number(self.every, 1..=1_000_000))]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, OutOfTurn)> {
        let every = self.every.max(1);
        setting.each(&self.delegates, Role::Delegate, |_| OutOfTurn { every, asked: false })
    }
}

/// The delegate forges in every slot whose number is a multiple of `every`.
#[derive(Clone, Debug)]
pub struct OutOfTurn {
    every: u32,
    /// True if it has asked its relay for the round and has no answer yet.
    asked: bool,
}

impl OutOfTurn {
    fn plan(&self, delegate: &Delegate, step: &mut Step<'_>) {
        let slots = delegate.tree().slots();
        let running = slots.slot(step.now.seconds()).0;
        let next = (running / self.every + 1).saturating_mul(self.every);
        // The first seconds of a slot belong to the block before. Source: consensus.md 2.1.
        let settling = Duration::from_secs(delegate.tree().rules().node.settling_s.into());
        step.wake_at(SimTime::from_seconds(slots.start(Slot(next))) + settling, 0);
    }

    /// Forges an empty block for the running slot of another delegate. The honest delegate fills its own slots.
    fn forge(delegate: &Delegate, step: &mut Step<'_>, view: &RoundView) {
        let slot = delegate.tree().slots().slot(step.now.seconds());
        let Some(keys) = delegate.keys().filter(|keys| !view.round.owns(slot, keys.public())) else {
            return;
        };
        if slot > view.tip_slot {
            let block = Arc::new(forgery::empty(view, slot, keys, delegate.tree()));
            step.put(Effect::Observe(Event::BlockForged(block.clone())));
            step.push(step.peers.iter().copied(), &block);
        }
    }
}

impl Behaviour for OutOfTurn {
    fn begins(&mut self, actor: &Actor, step: &mut Step<'_>) {
        self.asked = false;
        actor.delegate().iter().for_each(|delegate| self.plan(delegate, step));
    }

    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        match (&input, actor.delegate()) {
            (Input::Message { message: Message::Round(view), .. }, Some(delegate)) if mem::take(&mut self.asked) => {
                Self::forge(delegate, step, view);
                None
            }
            _ => Some(input),
        }
    }

    fn wakes(&mut self, actor: &Actor, step: &mut Step<'_>, _: u64) -> Option<Input> {
        // If the behaviour was ended and begun again, an old wake-up may come beside the new one.
        let delegate = actor.delegate().filter(|_| !self.asked)?;
        self.plan(delegate, step);
        // A change of the clock may have moved the wake-up into another slot.
        if delegate.tree().slots().slot(step.now.seconds()).0.is_multiple_of(self.every) {
            step.send(step.relay(), Message::RoundRequest);
            self.asked = true;
        }
        None
    }
}

saved!(struct OutOfTurn { every, asked });
