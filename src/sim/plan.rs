//! The beginning of a run, and the actors made from it.

use super::{
    Fault, Names, NetworkModel, PlannedSource, SeedTree,
    network::{Links, MessageNetwork},
    source::Tally,
};
use crate::{
    actors::{Actor, ActorId, Delegate, HostedActor, NodeId, Peer, Role, SimTime, TransactionPool},
    ledger::{BlockTree, Link, codec::Loader},
    protocol::{KeyPair, PublicKey, SignedTransaction},
};
use std::{collections::BTreeSet, sync::Arc};

/// One node: a peer, a pool, and on most nodes a delegate.
#[derive(Clone)]
pub struct NodePlan {
    /// The key the node's delegate forges with.
    pub forger: Option<KeyPair>,
}

/// All a run depends on: the same plan gives the same run, event for event.
#[derive(Clone)]
pub struct Plan {
    /// The blocks known at the beginning, with the rules of the network.
    pub tree: Arc<BlockTree>,
    /// The block every node begins on.
    pub tip: Arc<Link>,
    /// The nodes, in the order of their numbers.
    pub nodes: Vec<NodePlan>,
    pub(super) network: NetworkModel,
    /// The links of the network's topology between these nodes.
    links: Links,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The sources of transactions.
    pub sources: Vec<PlannedSource>,
    /// The delegates of each group of agents, by key.
    pub delegates_of_groups: Vec<BTreeSet<PublicKey>>,
    /// The seeds that all random draws of the run come from.
    pub seeds: SeedTree,
    /// The instant the run begins at.
    pub start: SimTime,
}

/// The actors of a node, in the order in which a stage holds and starts them.
pub(super) const ROLES: [Role; 3] = [Role::Peer, Role::Pool, Role::Delegate];

impl Plan {
    /// A run on the default network, in which nothing goes wrong.
    pub fn new(tree: Arc<BlockTree>, tip: Arc<Link>, nodes: Vec<NodePlan>, seeds: SeedTree, start: SimTime) -> Self {
        let network = NetworkModel::default();
        let links = network.topology.links(nodes.len() as u32, seeds);
        Self {
            tree,
            tip,
            nodes,
            network,
            links,
            faults: Vec::new(),
            sources: Vec::new(),
            delegates_of_groups: Vec::new(),
            seeds,
            start,
        }
    }

    /// The least number of neighbours of a node.
    pub(crate) fn least_degree(&self) -> u32 {
        self.links.least_degree()
    }

    /// The run on another network, whose topology gives these links between its nodes.
    pub fn on(self, network: NetworkModel, links: Links) -> Self {
        Self { network, links, ..self }
    }

    /// The same plan for a separate run, which counts the transactions of its sources separately.
    pub(crate) fn apart(&self) -> Self {
        let mut plan = self.clone();
        plan.sources.iter_mut().for_each(|source| source.tally = Tally::default());
        plan
    }

    /// A reader of the saved bytes of a run of this plan.
    pub fn loader(&self, bytes: Vec<u8>) -> Loader {
        let keys = self.nodes.iter().filter_map(|node| node.forger.clone()).collect();
        Loader::new(bytes.into(), &self.tree, keys)
    }

    /// The network between the nodes.
    pub fn network(&self) -> MessageNetwork {
        let config = self.tree.config().clone();
        let mut network =
            MessageNetwork::new(self.nodes.len() as u32, self.links.clone(), &self.network, self.seeds, config);
        if self.faults.iter().any(|fault| fault.kind.draws_for_messages()) {
            network.name_messages();
        }
        network
    }

    /// The names of the nodes. Names of delegates come from the chain on which the run begins.
    pub fn names(&self) -> Names {
        Names::new(&self.tree, &self.tip, self.nodes.iter().map(|node| node.forger.as_ref()))
    }

    /// The nodes whose delegates the faults of the plan switch off by rounds.
    pub fn off_by_rounds(&self) -> BTreeSet<NodeId> {
        let mut by_rounds = self.faults.iter().filter_map(|fault| fault.kind.by_rounds()).peekable();
        if by_rounds.peek().is_none() {
            // Names take a while to find, and most plans need none.
            return BTreeSet::new();
        }
        let names = self.names();
        by_rounds.flat_map(|(delegates, _)| names.resolve(delegates, &self.tip)).collect()
    }

    /// All actors, three for each node, all of them honest. A node without a key has a delegate that is never active.
    pub fn actors(&self) -> Vec<(ActorId, HostedActor)> {
        let nodes = (0..).map(NodeId).zip(&self.nodes);
        let actors = nodes
            .flat_map(|(node, plan)| ROLES.map(|role| (ActorId { node, role }, self.actor(node, plan, role).into())));
        actors.collect()
    }

    fn actor(&self, node: NodeId, plan: &NodePlan, role: Role) -> Actor {
        let (tree, tip) = (self.tree.clone(), self.tip.clone());
        match role {
            Role::Peer => {
                let choices = self.seeds.choices(&format!("peer/{}", node.0));
                Actor::Peer(Box::new(Peer::new(node, tree, tip, self.links.given(node), choices)))
            }
            Role::Pool => Actor::Pool(Box::new(TransactionPool::new(node, tree, tip))),
            Role::Delegate => {
                let name = format!("forger/{}", node.0);
                Actor::Delegate(Box::new(self.delegate(node, plan, tree, &name)))
            }
        }
    }

    /// A delegate that polls its relay at instants drawn from the seed of this name.
    fn delegate(&self, node: NodeId, plan: &NodePlan, tree: Arc<BlockTree>, name: &str) -> Delegate {
        Delegate::new(node, plan.forger.clone(), tree, self.seeds.number(name))
    }

    /// Returns an actor of a node that starts again on the block it had stored. `times` counts its starts.
    pub(super) fn actor_again(&self, id: ActorId, tip: &Arc<Link>, times: u32, given: Arc<[NodeId]>) -> Actor {
        let (node, tree, tip) = (id.node, self.tree.clone(), tip.clone());
        let plan = &self.nodes[node.0 as usize];
        match id.role {
            Role::Peer => {
                let choices = self.seeds.choices(&format!("peer/{}/start/{times}", node.0));
                Actor::Peer(Box::new(Peer::starting(node, tree, tip, given, choices)))
            }
            Role::Pool => Actor::Pool(Box::new(TransactionPool::new(node, tree, tip))),
            Role::Delegate => {
                let name = format!("forger/{}/start/{times}", node.0);
                Actor::Delegate(Box::new(self.delegate(node, plan, tree, &name)))
            }
        }
    }
}

/// The place of an actor in [`Plan::actors`].
pub(super) fn index(id: ActorId) -> usize {
    id.node.0 as usize * ROLES.len() + id.role as usize
}

/// The transactions that wait in a node's pool, in the order of arrival. `actors` are all actors of a plan.
pub(super) fn pool_of(actors: &[HostedActor], node: NodeId) -> Vec<Arc<SignedTransaction>> {
    let hosted = &actors[index(ActorId { node, role: Role::Pool })];
    hosted.pool().map(TransactionPool::by_arrival).unwrap_or_default()
}
