//! Delegates that forge in private while slots of their own follow.

use super::{Ground, Strategy, private};
use crate::{
    actors::{Actor, ActorId, Behaviour, Effect, Event, Input, Message, Role, behaviour::Step},
    ledger::saved::saved,
    protocol::{BlockId, PublicKey},
    sim::fault::{Facts, Nodes, Said},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delegates whose relays keep their blocks private while another slot of the same delegate follows soon, and make all of them known
/// at once: when none follows, or when the network forges a block below them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithholdAhead {
    pub delegates: Nodes,
    /// The number of slots in which the next own one has to come, by the round of the block after: the next round is known from the
    /// last block of the one before on.
    #[serde(default = "one")]
    pub slots: u32,
}

fn one() -> u32 {
    1
}

impl Strategy for WithholdAhead {
    const NAME: &'static str = "withhold-ahead";
    const FACTS: Facts = Facts::IRREGULAR;
    const EXAMPLE: &'static str = "delegates = [1]\nslots = 3";
    type Behaviour = Ahead;

    fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        vec![("delegates", &self.delegates)]
    }

    fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        vec![("delegates", &mut self.delegates)]
    }

    fn said(&self) -> Vec<(&'static str, Said<'_>)> {
        vec![("slots", Said::Number(self.slots, 1..=1_000))]
    }

    fn behaviours(&self, ground: &Ground<'_>) -> Vec<(ActorId, Ahead)> {
        let nodes = ground.resolve(&self.delegates).into_iter();
        let own = nodes.filter_map(|node| Some((node, *ground.keys(node)?.public())));
        let slots = self.slots;
        own.map(|(node, key)| (ActorId { node, role: Role::Peer }, Ahead { slots, key, private: Vec::new() })).collect()
    }
}

/// The peer keeps its delegate's blocks private.
#[derive(Clone, Debug)]
pub struct Ahead {
    slots: u32,
    key: PublicKey,
    /// Ascending.
    private: Vec<BlockId>,
}

impl Behaviour for Ahead {
    fn hears(&mut self, actor: &Actor, step: &mut Step<'_>, input: Input) -> Option<Input> {
        if let (Input::Message { message: Message::Block(rival), .. }, Some(peer)) = (&input, actor.peer())
            && private::is_rival(peer.tree(), &self.private, rival)
        {
            if private::is_ahead(peer.tree(), &self.private, rival) {
                private::publish(peer.tree(), &self.private, step);
            }
            self.private.clear();
        }
        Some(input)
    }

    fn does(&mut self, actor: &Actor, step: &mut Step<'_>, effect: Effect) -> Option<Effect> {
        let Some(tree) = actor.peer().map(|peer| peer.tree()) else { return Some(effect) };
        match &effect {
            Effect::Observe(Event::BlockApplied(link)) if link.block().header.generator == self.key => {
                if private::owns_soon(tree, link, self.slots, &[self.key]) {
                    self.private.push(link.id());
                } else {
                    private::publish(tree, &self.private, step);
                    self.private.clear();
                }
            }
            Effect::Observe(Event::BlockReverted(link)) => self.private.retain(|id| *id != link.id()),
            _ => {}
        }
        private::hide(tree, &self.private, effect)
    }

    fn ends(&mut self, actor: &Actor, step: &mut Step<'_>) -> Option<Input> {
        actor.peer().iter().for_each(|peer| private::publish(peer.tree(), &self.private, step));
        None
    }
}

saved!(struct Ahead { slots, key, private });
