//! Nodes that show their victims only each other and an old chain.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Message, NodeId, Role, behaviour::Step},
    ledger::{Link, codec::saved},
    protocol::Height,
    sim::fault::{Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Nodes that answer some others selectively: as peers they name each other alone, they claim the highest chain as it was when the fault began,
/// and they pass nothing on to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EclipseAnswers {
    /// The nodes that answer selectively.
    pub nodes: Nodes,
    /// The nodes that get these answers.
    pub victims: Nodes,
}

impl Strategy for EclipseAnswers {
    const NAME: &'static str = "eclipse-answers";
    const FACTS: Facts = Facts::BREACH;
    const EXAMPLE: &'static str = "nodes = [1, 2]\nvictims = [3]";
    const BYSTANDERS: &'static [&'static str] = &["victims"];
    type Behaviour = Answering;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("nodes", &self.nodes), ("victims", &self.victims)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("nodes", &mut self.nodes), ("victims", &mut self.victims)]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Answering)> {
        let attackers: Arc<[NodeId]> = setting.resolve(&self.nodes).into();
        let victims: Arc<[NodeId]> = setting.resolve(&self.victims).into();
        let answering = Answering { attackers, victims, shown: setting.best().clone() };
        setting.each(&self.nodes, Role::Peer, |_| answering.clone())
    }
}

/// The peer names only the attackers to its victims, claims an old tip, and passes nothing on to them.
#[derive(Clone, Debug)]
pub struct Answering {
    attackers: Arc<[NodeId]>,
    victims: Arc<[NodeId]>,
    /// The block that it claims as its tip: the tip of the highest chain when the fault began.
    shown: Arc<Link>,
}

impl Behaviour for Answering {
    fn does(&mut self, _: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let shown = &self.shown;
        let seen = |height: Height| height.min(shown.height());
        match effect {
            // Questions still go to the victims, because the peer drops a node that does not answer.
            Effect::SendToPeers {
                mut to,
                message: message @ (Message::Block(_) | Message::Announcement(_) | Message::Transactions(_)),
            } => {
                to.retain(|node| !self.victims.contains(node));
                Some(Effect::SendToPeers { to, message })
            }
            Effect::Send { to, message } if to.node != step.me.node && self.victims.contains(&to.node) => {
                let message = match message {
                    Message::Block(_) | Message::Body { .. } | Message::Transactions(_) => return None,
                    Message::Peers(_) => {
                        let others = self.attackers.iter().copied().filter(|node| *node != step.me.node);
                        Message::Peers(others.collect())
                    }
                    Message::Status { .. } => Message::Status { tip: shown.block().clone() },
                    Message::Blocks { inquiry, height, blocks } => {
                        let old = blocks.iter().filter(|block| block.header.height <= shown.height());
                        Message::Blocks { inquiry, height: seen(height), blocks: old.cloned().collect() }
                    }
                    Message::CommonBlocks { inquiry, height, common } => {
                        Message::CommonBlocks { inquiry, height: seen(height), common }
                    }
                    message => message,
                };
                Some(Effect::Send { to, message })
            }
            effect => Some(effect),
        }
    }
}

saved!(struct Answering { attackers, victims, shown });
