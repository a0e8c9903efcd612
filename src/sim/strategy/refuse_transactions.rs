//! Nodes that take no transactions.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Input, Message, PoolError, Role, Submission, behaviour::Step},
    ledger::codec::saved,
    sim::fault::{Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes that take no transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefuseTransactions {
    /// The nodes that take no transactions.
    pub nodes: Nodes,
}

impl Strategy for RefuseTransactions {
    const NAME: &'static str = "refuse-transactions";
    const FACTS: Facts = Facts::OMISSION;
    const EXAMPLE: &'static str = "nodes = [2]";
    type Behaviour = Refusing;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("nodes", &self.nodes)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("nodes", &mut self.nodes)]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Refusing)> {
        setting.each(&self.nodes, Role::Peer, |_| Refusing {})
    }
}

/// The peer takes no transactions, neither from clients nor from peers. A client is answered.
#[derive(Clone, Debug)]
pub struct Refusing {}

impl Behaviour for Refusing {
    fn hears(&mut self, _: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        match &input {
            Input::Submit { request, transactions } => {
                let error = || PoolError::Unavailable("This node takes no transactions.");
                let errors = transactions.iter().map(|transaction| (transaction.id(), error())).collect();
                let submission = Submission { errors, ..Submission::default() };
                step.put(Effect::Answer { request: *request, submission: submission.into() });
                None
            }
            Input::Message { message: Message::Transactions(_), .. } => None,
            _ => Some(input),
        }
    }
}

saved!(
    struct Refusing {}
);
