//! A line of a session's file: an input and its instant.

use crate::{
    actors::{NodeId, message::Transactions},
    protocol::{Block, Height, NetworkConfig, SignedTransaction, TransactionId, transaction::Dialect},
    scenario::FaultDesk,
    sim::{
        Fault, Intervention,
        intervention::{ChaosChange, ReorgRequest},
        snapshots::{CameIn, SnapshotId},
    },
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An input from outside, or the end of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The virtual instant, in microseconds.
    pub at: u64,
    /// Inputs that had been delivered to actors by then.
    pub delivered: u64,
    /// The digest of the events so far; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The height of the node that received the transactions. Its milestone decides how they are decoded. Absent if the reader plays the
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    pub came: Came,
}

impl From<&CameIn> for Entry {
    fn from(CameIn { at, delivered, what }: &CameIn) -> Self {
        Self { at: at.micros(), delivered: *delivered, digest: None, height: None, came: what.into() }
    }
}

/// The input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Came {
    /// Transactions, as wire bytes in hex, were handed in at a node.
    Submit { node: u32, transactions: Vec<String> },
    /// A snapshot was taken; they are numbered from 1 on.
    TakeSnapshot { name: Option<String> },
    /// The run went to a snapshot.
    Revert { to: u64 },
    /// A snapshot was deleted.
    DeleteSnapshot { id: u64 },
    /// A fault was added.
    AddFault(Box<Fault>),
    /// The end of a fault was requested. There may be no fault with this id.
    EndFault { id: usize },
    /// A restart was added as a fault, which ended the crashes of its nodes.
    Restart(Box<Fault>),
    /// A rule between a node and its clients was added or removed. The run ignores it.
    Chaos(ChaosChange),
    /// Nodes were asked to leave the end of their chain for another branch.
    Reorganise(Box<ReorgRequest>),
    /// A block, as wire bytes in hex, was handed in at a node.
    PushBlock { node: u32, block: String },
    /// Pending transactions were taken out of the pool of a node, or out of all pools.
    DropPending { ids: Vec<TransactionId>, node: Option<u32> },
    /// The session was stopped.
    End,
}

impl From<&Intervention> for Came {
    fn from(what: &Intervention) -> Self {
        match what {
            Intervention::Submit { node, transactions } => {
                let transactions = transactions.iter().map(|transaction| hex::encode(transaction.bytes())).collect();
                Self::Submit { node: node.0, transactions }
            }
            Intervention::TakeSnapshot { name } => Self::TakeSnapshot { name: name.clone() },
            Intervention::Revert { to } => Self::Revert { to: to.0 },
            Intervention::DeleteSnapshot { id } => Self::DeleteSnapshot { id: id.0 },
            Intervention::AddFault(added) => Self::AddFault(added.fault.clone().into()),
            Intervention::EndFault { id } => Self::EndFault { id: *id },
            Intervention::Restart(added) => Self::Restart(added.fault.clone().into()),
            Intervention::Chaos(change) => Self::Chaos(change.clone()),
            Intervention::Reorganise(asked) => Self::Reorganise(asked.clone()),
            Intervention::PushBlock { node, wire, .. } => Self::PushBlock { node: node.0, block: hex::encode(wire) },
            Intervention::DropPending { ids, node } => {
                Self::DropPending { ids: ids.to_vec(), node: node.map(|node| node.0) }
            }
        }
    }
}

impl Came {
    /// The node that it names.
    pub fn node(&self) -> Option<u32> {
        match self {
            Self::Submit { node, .. } | Self::PushBlock { node, .. } => Some(*node),
            Self::Chaos(change) => Some(change.node().0),
            Self::DropPending { node, .. } => *node,
            _ => None,
        }
    }

    /// Converts the input to an intervention, or to `None` if it is the end. `height` returns the height of a node.
    ///
    /// # Errors
    /// Transactions or a block cannot be understood.
    pub fn intervention(
        self,
        config: &NetworkConfig,
        desk: &FaultDesk,
        height: impl Fn(u32) -> Height,
    ) -> Result<Option<Intervention>, String> {
        Ok(Some(match self {
            Self::Submit { node, transactions } => {
                Intervention::Submit { node: NodeId(node), transactions: decode(config, height(node), &transactions)? }
            }
            Self::TakeSnapshot { name } => Intervention::TakeSnapshot { name },
            Self::Revert { to } => Intervention::Revert { to: SnapshotId(to) },
            Self::DeleteSnapshot { id } => Intervention::DeleteSnapshot { id: SnapshotId(id) },
            Self::AddFault(fault) => Intervention::AddFault(desk.admit(*fault)?.into()),
            Self::EndFault { id } => Intervention::EndFault { id },
            Self::Restart(fault) => Intervention::Restart(desk.admit(*fault)?.into()),
            Self::Chaos(change) => Intervention::Chaos(change),
            Self::Reorganise(asked) => Intervention::Reorganise(asked),
            Self::PushBlock { node, block } => {
                let wire = hex::decode(block).map_err(|why| why.to_string())?;
                let block = Block::from_bytes(&wire, &config.block_context().with_dialect(Dialect::Stored));
                let block = Arc::new(block.map_err(|why| why.to_string())?);
                Intervention::PushBlock { node: NodeId(node), block, wire: wire.into() }
            }
            Self::DropPending { ids, node } => Intervention::DropPending { ids: ids.into(), node: node.map(NodeId) },
            Self::End => return Ok(None),
        }))
    }
}

/// Decodes transactions as the API decoded them: by the milestone of the node's chain.
fn decode(config: &NetworkConfig, height: Height, transactions: &[String]) -> Result<Transactions, String> {
    let context = config.transaction_context(height).with_dialect(Dialect::Stored);
    let decode = |text: &String| {
        let bytes = hex::decode(text).map_err(|why| why.to_string())?;
        SignedTransaction::from_bytes(&bytes, &context).map(Arc::new).map_err(|why| why.to_string())
    };
    transactions.iter().map(decode).collect::<Result<Vec<_>, _>>().map(Into::into)
}
