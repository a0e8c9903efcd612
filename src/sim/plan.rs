//! What a run begins with, and the actors made from it.

use super::{Latency, SeedTree, network::Network};
use crate::{
    actors::{Actor, ActorId, Delegate, NodeId, Peer, Role, SimTime, TransactionPool},
    ledger::{BlockTree, Link},
    protocol::{KeyPair, Round},
};
use std::{ops::RangeInclusive, sync::Arc};

/// One node: always a peer and a pool, on most a delegate.
#[derive(Clone)]
pub struct NodePlan {
    /// The key the node's delegate forges with.
    pub forger: Option<KeyPair>,
    /// Rounds in which the delegate is switched off.
    pub offline: Vec<RangeInclusive<Round>>,
}

/// All a run depends on: the same plan gives the same run, event for event.
#[derive(Clone)]
pub struct Plan {
    pub tree: Arc<BlockTree>,
    /// The block every node begins on.
    pub tip: Arc<Link>,
    pub nodes: Vec<NodePlan>,
    pub latency: Latency,
    pub seeds: SeedTree,
    /// The instant the run begins at.
    pub start: SimTime,
}

/// The actors of a node, in the order in which a stage holds and starts them.
const ROLES: [Role; 3] = [Role::Peer, Role::Pool, Role::Delegate];

impl Plan {
    /// The network between the nodes.
    pub fn network(&self) -> Network {
        Network::new(self.nodes.len(), self.latency, self.seeds)
    }

    /// All actors, three for each node. A node without a key has a delegate that is never active.
    pub fn actors(&self) -> Vec<(ActorId, Actor)> {
        let all: Vec<NodeId> = (0..self.nodes.len() as u32).map(NodeId).collect();
        let actors = all.iter().zip(&self.nodes).flat_map(|(node, plan)| {
            ROLES.map(|role| (ActorId { node: *node, role }, self.actor(*node, plan, role, &all)))
        });
        actors.collect()
    }

    fn actor(&self, node: NodeId, plan: &NodePlan, role: Role, all: &[NodeId]) -> Actor {
        let (tree, tip) = (self.tree.clone(), self.tip.clone());
        match role {
            Role::Peer => {
                let neighbours = all.iter().copied().filter(|other| *other != node).collect::<Vec<_>>();
                let random = self.seeds.stream(&format!("peer/{}", node.0));
                Actor::Peer(Box::new(Peer::new(node, tree, tip, neighbours, random)))
            }
            Role::Pool => Actor::Pool(Box::new(TransactionPool::new(node, tree, tip))),
            Role::Delegate => {
                let keys = plan.forger.clone();
                Actor::Delegate(Box::new(Delegate::new(node, keys, tree, plan.offline.clone())))
            }
        }
    }
}

/// The place of an actor in [`Plan::actors`].
pub(super) fn index(id: ActorId) -> usize {
    id.node.0 as usize * ROLES.len() + id.role as usize
}
