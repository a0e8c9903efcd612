//! Nodes that claim a false tip.

use super::{Setting, Strategy, forgery};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Message, Role, behaviour::Step},
    ledger::codec::saved,
    protocol::{Block, BlockId, KeyPair},
    sim::fault::{BoundedValue, Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Nodes that claim another tip than they stand on when they are asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LieAboutTip {
    /// The nodes that claim a false tip.
    pub nodes: Nodes,
    /// The member of the header that is false: its height, if absent.
    #[serde(default)]
    pub claim: FalseClaim,
    /// The number of blocks or slots more than it is; negative is fewer.
    #[serde(default = "one_more")]
    pub by: i32,
    /// The node's own delegate signs the false header, which holds together then. A relay has none and signs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
}

fn one_more() -> i32 {
    1
}

/// The part of a claimed tip that is false. Source: consensus.md 6, verification of a claimed tip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FalseClaim {
    /// The height, that said beside blocks and answers included.
    #[default]
    Height,
    /// The id, which is not that of the header.
    Id,
    /// The slot.
    Slot,
}

impl Strategy for LieAboutTip {
    const NAME: &'static str = "lie-about-tip";
    const FACTS: Facts = Facts::BREACH;
    const EXAMPLE: &'static str = "nodes = [3]\nby = 2";
    type Behaviour = Lie;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("nodes", &self.nodes)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("nodes", &mut self.nodes)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("by", BoundedValue::Number(self.by.unsigned_abs(), 1..=1_000_000))]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Lie)> {
        setting.each(&self.nodes, Role::Peer, |node| {
            let keys = setting.keys(node).cloned().filter(|_| self.signed);
            Lie { claim: self.claim, by: self.by, keys, claimed: None }
        })
    }
}

/// The peer claims a false tip.
#[derive(Clone, Debug)]
pub struct Lie {
    pub(super) claim: FalseClaim,
    /// The number of blocks or slots that it adds to the true height or slot.
    pub(super) by: i32,
    /// The key that signs the false header. Without one, the signature of the true block stays.
    pub(super) keys: Option<KeyPair>,
    /// The id of the true tip, and the block that it claims instead.
    claimed: Option<(BlockId, Arc<Block>)>,
}

impl Behaviour for Lie {
    fn does(&mut self, actor: &Actor, _: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let (Effect::Send { to, message }, Some(peer)) = (&effect, actor.peer()) else { return Some(effect) };
        let moved = |height| match self.claim {
            FalseClaim::Height => forgery::claimed_height(height, self.by),
            FalseClaim::Id | FalseClaim::Slot => height,
        };
        let message = match message {
            Message::Status { tip } => {
                if self.claimed.as_ref().is_none_or(|(of, _)| *of != tip.id) {
                    self.claimed = Some((tip.id, Arc::new(forgery::claimed(tip, self, peer.tree()))));
                }
                Message::Status { tip: self.claimed.as_ref().map_or(tip.clone(), |(_, claimed)| claimed.clone()) }
            }
            Message::Blocks { inquiry, height, blocks } => {
                Message::Blocks { inquiry: *inquiry, height: moved(*height), blocks: blocks.clone() }
            }
            Message::CommonBlocks { inquiry, height, common } => {
                Message::CommonBlocks { inquiry: *inquiry, height: moved(*height), common: common.clone() }
            }
            _ => return Some(effect),
        };
        Some(Effect::Send { to: *to, message })
    }
}

saved!(enum FalseClaim { 0 Height, 1 Id, 2 Slot });
saved!(struct Lie { claim, by, keys, claimed });
