//! Delegates that forge late.
//!
//! The relay of such a delegate answers with the transactions in time. The behaviour holds this answer back, so the delegate forges late.
//! Meanwhile it drops the wake-up at which the delegate would give up its relay.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Input, Message, Role, Wake, behaviour::Step},
    ledger::codec::saved,
    sim::fault::{BoundedValue, Facts, Nodes, milliseconds},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Delegates that forge later in their slot than they could.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateForging {
    /// The delegates that forge late.
    pub delegates: Nodes,
    /// In milliseconds after the instant at which it could make its block first.
    pub by_ms: u32,
}

impl Strategy for LateForging {
    const NAME: &'static str = "late-forging";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [1]\nby_ms = 900";
    type Behaviour = Late;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![milliseconds("by_ms", self.by_ms)]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Late)> {
        let by = Duration::from_millis(self.by_ms.into());
        setting.each(&self.delegates, Role::Delegate, |_| Late { by, awaits: false, held: None })
    }
}

/// The delegate makes its block later than it could, by `by`. The delays of several faults add up.
#[derive(Clone, Debug)]
pub struct Late {
    by: Duration,
    /// The delegate has asked for transactions to forge.
    awaits: bool,
    /// The held answer with the transactions of a late block.
    held: Option<Input>,
}

/// The number of the only wake-up.
const TAKE: u64 = 0;

impl Behaviour for Late {
    fn begins(&mut self, _: &Actor, _: &mut Step<'_>) {
        (self.awaits, self.held) = (false, None);
    }

    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        // An answer that comes after the delegate has given up its relay makes no block, so the delegate's next plan must not wait for it.
        let works = matches!(actor, Actor::Delegate(delegate) if delegate.is_at_work());
        match input {
            // The delegate would give up its relay, although that has answered.
            Input::Wake(Wake::Forge { .. }) if self.held.is_some() => None,
            Input::Message { message: Message::ForgingTransactions(_), .. }
                if self.awaits && works && !self.by.is_zero() =>
            {
                self.awaits = false;
                self.held = Some(input);
                step.wake_at(step.now + self.by, TAKE);
                None
            }
            input => Some(input),
        }
    }

    fn does(&mut self, _: &Actor, _: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        self.awaits |= matches!(effect, Effect::Send { message: Message::ForgingTransactionsRequest, .. });
        Some(effect)
    }

    fn wakes(&mut self, _: &Actor, _: &mut Step<'_>, _: u64) -> Option<Input> {
        self.held.take()
    }

    fn ends(&mut self, _: &Actor, _: &mut Step<'_>) -> Option<Input> {
        self.held.take()
    }

    fn keeps(&self) -> Option<u64> {
        self.held.is_some().then_some(TAKE)
    }
}

saved!(struct Late { by, awaits, held });
