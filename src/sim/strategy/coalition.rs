//! Delegates that forge a private chain together.

use super::{
    Setting, Strategy,
    private::{self, PUSHES, Private},
};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Event, Input, Message, NodeId, Peer, Role, behaviour::Step},
    ledger::{Link, codec::saved},
    protocol::{BlockId, PublicKey},
    sim::fault::{BoundedValue, Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Delegates who share a private chain. A block of one goes to its neighbours among them alone while one of them owns a slot soon.
/// They make the chain known when none of them owns one, or when the network forges a block in the place of one of theirs: they push
/// its lowest blocks, and others ask for the rest. If the network is higher by then, the chain stays private.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coalition {
    /// The members of the coalition.
    pub delegates: Nodes,
    /// The number of slots in which the next one of the coalition has to come. The next round is known from the last
    /// block of the one before on.
    #[serde(default = "one")]
    pub slots: u32,
}

fn one() -> u32 {
    1
}

impl Strategy for Coalition {
    const NAME: &'static str = "coalition";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [1, 2]\nslots = 2";
    type Behaviour = Member;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        vec![("slots", BoundedValue::Number(self.slots, 1..=1_000))]
    }

    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Member)> {
        let nodes = setting.resolve(&self.delegates);
        let keys: Arc<[PublicKey]> =
            nodes.iter().filter_map(|node| setting.keys(*node)).map(|keys| *keys.public()).collect();
        let members: Arc<[NodeId]> = nodes.into();
        let member =
            |node: &NodeId| (ActorId { node: *node, role: Role::Peer }, Member::new(self.slots, &keys, &members));
        members.iter().map(member).collect()
    }
}

/// The peer of a member. The private blocks are the memory of all actors of the fault.
#[derive(Clone, Debug)]
pub struct Member {
    slots: u32,
    /// The keys of the members.
    keys: Arc<[PublicKey]>,
    members: Arc<[NodeId]>,
    /// The block of its own delegate that the peer has not applied yet.
    made: Option<BlockId>,
}

/// The private blocks in the memory, as text.
fn private(step: &Step<'_>) -> Private {
    let ids: Vec<String> = step.recall().unwrap_or_default();
    Private(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

fn remember(step: &mut Step<'_>, private: &Private) {
    step.share(&private.0.iter().map(BlockId::to_string).collect::<Vec<_>>());
}

/// Publishes the private blocks at the end of a chain.
fn publish(step: &mut Step<'_>, tip: &Arc<Link>, pushes: usize) {
    let mut private = private(step);
    let before = private.0.len();
    private.publish(tip, pushes, step);
    if private.0.len() < before {
        remember(step, &private);
    }
}

impl Member {
    /// The relay of a member. `keys` and `members` are those of the whole coalition.
    pub(super) fn new(slots: u32, keys: &Arc<[PublicKey]>, members: &Arc<[NodeId]>) -> Self {
        Self { slots, keys: keys.clone(), members: members.clone(), made: None }
    }

    /// Keeps a block of its own delegate private, or publishes the private blocks. The peer has applied the block.
    fn forged(&self, step: &mut Step<'_>, peer: &Peer, link: &Arc<Link>) {
        if private::owns_soon(peer.tree(), link, self.slots, &self.keys) {
            let mut private = private(step);
            private.add(peer.tree(), link);
            remember(step, &private);
            let others: Vec<NodeId> = self.members.iter().copied().filter(|node| *node != step.me.node).collect();
            step.push(others.into_iter(), link.block());
        } else if let Some(parent) = link.parent() {
            // The peer itself pushes the block.
            publish(step, &parent, PUSHES - 1);
        }
    }
}

impl Behaviour for Member {
    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        match (&input, actor.peer()) {
            (Input::Message { message: Message::Forged(block), .. }, _) => self.made = Some(block.id),
            (Input::Message { message: Message::Block(block) | Message::Body { block, .. }, .. }, Some(peer))
                if private(step).has_rival(peer, block) =>
            {
                publish(step, peer.tip(), PUSHES);
            }
            _ => {}
        }
        Some(input)
    }

    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Some(peer) = actor.peer() else { return Some(effect) };
        if let Effect::Observe(Event::BlockApplied(link)) = &effect
            && self.made == Some(link.id())
        {
            self.made = None;
            self.forged(step, peer, link);
        }
        match &effect {
            Effect::Send { to, .. } if self.members.contains(&to.node) => Some(effect),
            Effect::Send { message, .. } | Effect::SendToPeers { message, .. } if Private::is_in(message) => {
                private(step).hide(peer, effect)
            }
            _ => Some(effect),
        }
    }

    fn ends(&mut self, actor: &Actor, step: &mut Step<'_>) -> Option<Input> {
        actor.peer().iter().for_each(|peer| publish(step, peer.tip(), PUSHES));
        None
    }
}

saved!(struct Member { slots, keys, members, made });
