//! Pools that offer their delegates no transaction of a sender.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Message, Role, behaviour::Step, message::Transactions},
    ledger::codec::saved,
    protocol::Address,
    sim::fault::{BoundedValue, Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delegates that leave a sender's transactions out of their blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Censor {
    /// The delegates that leave the transactions out.
    pub delegates: Nodes,
    /// An address, or the name of an account or a delegate.
    pub sender: String,
}

impl Strategy for Censor {
    const NAME: &'static str = "censor";
    const FACTS: Facts = Facts::CENSORSHIP;
    const EXAMPLE: &'static str = "delegates = [1]\nsender = 'account_2'";
    type Behaviour = Censoring;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("sender", BoundedValue::Party(&self.sender))]
    }

    fn parties_mut(&mut self) -> Vec<&mut String> {
        vec![&mut self.sender]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Censoring)> {
        let Some(sender) = setting.address(&self.sender) else { return Vec::new() };
        setting.each(&self.delegates, Role::Pool, |_| Censoring { sender })
    }
}

/// The pool offers its delegate no transaction of this sender.
#[derive(Clone, Debug)]
pub struct Censoring {
    sender: Address,
}

impl Behaviour for Censoring {
    fn does(&mut self, _: &Actor, _: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Effect::Send { to, message: Message::ForgingTransactions(chosen) } = effect else { return Some(effect) };
        let kept: Transactions =
            chosen.iter().filter(|chosen| chosen.sender_address() != self.sender).cloned().collect();
        Some(Effect::Send { to, message: Message::ForgingTransactions(kept) })
    }
}

saved!(struct Censoring { sender });
