//! The groups of agents of a run, and the source that submits their transactions.

use super::{AgentSource, Agents, Voter};
use crate::{
    actors::{Choices, NodeId},
    protocol::{Address, KeyPair, PublicKey},
    scenario::workload::{Stand, planned},
    sim::{PlannedSource, Source, Trigger},
};
use std::sync::Arc;

/// A group of agents in a run.
pub(crate) struct AgentGroup {
    pub agents: Agents,
    pub voters: Arc<[Voter]>,
    /// The keys by which voters name the group's delegates.
    pub delegates: Vec<PublicKey>,
    /// The same delegates, with the keys, address and node that payments need.
    pub payers: Vec<PayingDelegate>,
    /// The nodes at which voters hand in; at least one.
    pub nodes: Vec<NodeId>,
    /// The draws that voters keep for the whole run.
    pub lasting: Choices,
    /// The draws of each round.
    pub choices: Choices,
}

/// A delegate that pays.
pub(crate) struct PayingDelegate {
    pub keys: KeyPair,
    pub address: Address,
    /// The node at which it hands in: its own.
    pub node: NodeId,
}

impl Stand<'_> {
    /// The groups. On a loaded network no voter's key is known.
    pub(in crate::scenario) fn groups(&self, all: &[Agents]) -> Arc<[AgentGroup]> {
        let byte = self.plan.tree.config().network.pub_key_hash;
        let group = |(index, agents): (usize, &Agents)| {
            let name = agents.name(&all[..index]);
            let own = agents.delegates.as_ref().map(|nodes| self.names.resolve(nodes, self.tip)).unwrap_or_default();
            let paying = |node: &NodeId| {
                let keys = self.plan.nodes[node.0 as usize].forger.clone()?;
                Some(PayingDelegate { address: keys.address(byte), keys, node: *node })
            };
            let payers: Vec<PayingDelegate> = own.iter().filter_map(paying).collect();
            AgentGroup {
                agents: agents.clone(),
                voters: self.testnet.voters.get(index).cloned().unwrap_or_default(),
                delegates: payers.iter().map(|payer| *payer.keys.public()).collect(),
                payers,
                nodes: self.nodes(agents.nodes.as_ref()),
                lasting: self.plan.seeds.choices(&format!("{name}/lasting")),
                choices: self.plan.seeds.choices(&name),
            }
        };
        all.iter().enumerate().map(group).collect()
    }

    /// The source of all groups of agents; none if there are no groups.
    pub(in crate::scenario) fn agents(&self, groups: Arc<[AgentGroup]>) -> Option<PlannedSource> {
        if groups.is_empty() {
            return None;
        }
        let (tree, tip) = (self.plan.tree.clone(), self.tip.clone());
        let make = move || -> Box<dyn Source> { Box::new(AgentSource::new(tree.clone(), &tip, groups.clone())) };
        Some(planned(Trigger::Start, None, None, "agents".to_owned(), Arc::new(make)))
    }
}
