//! Relays that keep their delegates' blocks back.

use super::{Setting, Strategy};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Input, Message, Role, behaviour::Step},
    ledger::codec::saved,
    protocol::BlockId,
    sim::fault::{BoundedValue, Facts, Nodes, milliseconds},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Delegates whose relays keep their blocks back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Withhold {
    /// The delegates whose blocks are kept back.
    pub delegates: Nodes,
    /// The time after which the block is sent, in milliseconds; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_ms: Option<u32>,
}

impl Strategy for Withhold {
    const NAME: &'static str = "withhold";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [2]\nrelease_ms = 4000";
    type Behaviour = Withholding;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        self.release_ms.iter().map(|release| milliseconds("release_ms", *release)).collect()
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Withholding)> {
        let release = self.release_ms.map(|ms| Duration::from_millis(ms.into()));
        setting.each(&self.delegates, Role::Peer, |_| Withholding { release, own: None })
    }
}

/// The peer holds back the blocks of its own delegate for the time `release`. Without a release, it drops them.
#[derive(Clone, Debug)]
pub struct Withholding {
    release: Option<Duration>,
    /// The last block of its own delegate.
    own: Option<BlockId>,
}

impl Behaviour for Withholding {
    fn hears(&mut self, _: &Actor, _: &mut Step<'_>, input: Input) -> Option<Input> {
        if let Input::Message { message: Message::Forged(block), .. } = &input {
            self.own = Some(block.id);
            self.release?;
        }
        Some(input)
    }

    fn does(&mut self, _: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Some(release) = self.release else { return Some(effect) };
        let at = step.now + release;
        match effect {
            Effect::Send { to, message: Message::Block(block) } if self.own == Some(block.id) => {
                step.put(Effect::SendAt { at, to, message: Message::Block(block) });
                None
            }
            Effect::SendToPeers { to, message: Message::Block(block) } if self.own == Some(block.id) => {
                for node in to {
                    let to = ActorId { node, role: Role::Peer };
                    step.put(Effect::SendAt { at, to, message: Message::Block(block.clone()) });
                }
                None
            }
            Effect::SendToPeers { to, message: Message::Announcement(id) } if self.own == Some(*id) => {
                for node in to {
                    step.put(Effect::SendAt {
                        at,
                        to: ActorId { node, role: Role::Peer },
                        message: Message::Announcement(id.clone()),
                    });
                }
                None
            }
            effect => Some(effect),
        }
    }
}

saved!(struct Withholding { release, own });
