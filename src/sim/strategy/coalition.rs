//! Delegates that forge a private chain together.

use super::{Ground, Strategy, private};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Event, Input, Message, NodeId, Role, behaviour::Step},
    ledger::{Link, saved::saved},
    protocol::{BlockId, PublicKey},
    sim::fault::{Facts, Nodes, Said},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Delegates who share a private chain. A block of one goes to the others alone while one of them owns a slot soon. They make the
/// chain known at once: when none of them owns one, or when the network forges a block below its tip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coalition {
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

    fn said(&self) -> Vec<(&'static str, Said<'_>)> {
        vec![("slots", Said::Number(self.slots, 1..=1_000))]
    }

    fn behaviours(&self, ground: &Ground<'_>) -> Vec<(ActorId, Member)> {
        let nodes = ground.resolve(&self.delegates);
        let keys: Arc<[PublicKey]> =
            nodes.iter().filter_map(|node| ground.keys(*node)).map(|keys| *keys.public()).collect();
        let members: Arc<[NodeId]> = nodes.into();
        let member = Member { slots: self.slots, keys, members: members.clone() };
        members.iter().map(|node| (ActorId { node: *node, role: Role::Peer }, member.clone())).collect()
    }
}

/// The peer of a member. The private chain, ascending, is the coalition's memory.
#[derive(Clone, Debug)]
pub struct Member {
    slots: u32,
    keys: Arc<[PublicKey]>,
    members: Arc<[NodeId]>,
}

/// The private chain in the memory: the ids of its blocks, as text.
fn private(step: &Step<'_>) -> Vec<BlockId> {
    let chain: Vec<String> = step.recall().unwrap_or_default();
    chain.iter().filter_map(|id| id.parse().ok()).collect()
}

fn remember(step: &mut Step<'_>, private: &[BlockId]) {
    step.share(&private.iter().map(BlockId::to_string).collect::<Vec<_>>());
}

impl Member {
    /// Its own delegate has made a block, and its peer stands on it.
    fn forged(&self, step: &mut Step<'_>, actor: &Actor, link: &Arc<Link>) {
        let (Some(peer), mut chain) = (actor.peer(), private(step)) else { return };
        if private::owns_soon(peer.tree(), link, self.slots, &self.keys) {
            chain.push(link.id());
            remember(step, &chain);
            let others: Vec<NodeId> = self.members.iter().copied().filter(|node| *node != step.me.node).collect();
            step.push(others.into_iter(), link.block());
        } else if !chain.is_empty() {
            private::publish(peer.tree(), &chain, step);
            remember(step, &[]);
        }
    }
}

impl Behaviour for Member {
    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        if let (Input::Message { message: Message::Block(rival), .. }, Some(peer)) = (&input, actor.peer()) {
            let chain = private(step);
            if private::is_rival(peer.tree(), &chain, rival) {
                if private::is_ahead(peer.tree(), &chain, rival) {
                    private::publish(peer.tree(), &chain, step);
                }
                remember(step, &[]);
            }
        }
        Some(input)
    }

    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Some(peer) = actor.peer() else { return Some(effect) };
        match &effect {
            Effect::Observe(Event::BlockApplied(link)) if self.is_own(step, link) => self.forged(step, actor, link),
            Effect::Observe(Event::BlockReverted(link)) => {
                let mut chain = private(step);
                let before = chain.len();
                chain.retain(|id| *id != link.id());
                if chain.len() < before {
                    remember(step, &chain);
                }
            }
            _ => {}
        }
        private::hide(peer.tree(), &private(step), effect)
    }

    fn ends(&mut self, actor: &Actor, step: &mut Step<'_>) -> Option<Input> {
        actor.peer().iter().for_each(|peer| private::publish(peer.tree(), &private(step), step));
        None
    }
}

impl Member {
    /// Returns true if a block is of the delegate of this member's node.
    fn is_own(&self, step: &Step<'_>, link: &Arc<Link>) -> bool {
        let place = self.members.iter().position(|node| *node == step.me.node);
        place.and_then(|place| self.keys.get(place)).is_some_and(|key| *key == link.block().header.generator)
    }
}

saved!(struct Member { slots, keys, members });
