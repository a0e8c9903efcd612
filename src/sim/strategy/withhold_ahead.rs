//! Delegates that forge in private while slots of their own follow.

use super::{Setting, Strategy, coalition::Member};
use crate::{
    actors::{ActorId, Role},
    sim::fault::{BoundedValue, Facts, Nodes},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delegates whose relays keep their blocks private while another slot of the same delegate follows soon. They make them known when
/// none follows, or when the network forges a block in the place of one of them: they push the lowest, and others ask for the rest. If
/// the network is higher by then, the blocks stay private.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithholdAhead {
    /// The delegates, each of which forges in private on its own.
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

    /// Makes each delegate a coalition of its own.
    fn behaviours(&self, setting: &Setting<'_>) -> Vec<(ActorId, Member)> {
        let alone = setting.resolve(&self.delegates).into_iter().filter_map(|node| {
            let key = *setting.keys(node)?.public();
            Some((ActorId { node, role: Role::Peer }, Member::new(self.slots, &[key].into(), &[node].into())))
        });
        alone.collect()
    }
}
