//! Inputs of a live run from outside.

use super::fault::AddedFault;
use crate::{
    actors::{NodeId, SimTime, Submission, message::Transactions},
    ledger::{BlockRejected, Link, codec::saved},
    protocol::{Block, BlockId, Height, TransactionId},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// The number of a snapshot in its run, from 1 on; 0 is the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u64);

/// The description of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    pub id: SnapshotId,
    pub name: Option<String>,
    /// The virtual instant.
    pub at: SimTime,
    /// Inputs delivered to actors before it.
    pub delivered: u64,
    /// The tip that most live nodes stood on.
    pub height: Height,
    pub tip: BlockId,
}

/// An input of a live run from outside. Each is recorded before it is played ([`super::live::Journal`]), so that a replay repeats it.
#[derive(Clone, Debug)]
pub enum Intervention {
    /// A client hands transactions in at a node.
    Submit { node: NodeId, transactions: Transactions },
    /// Keeps the present moment, to which the run can revert.
    TakeSnapshot { name: Option<String> },
    /// Reverts the run to the moment of a snapshot.
    Revert { to: SnapshotId },
    /// Deletes a snapshot, to which the run cannot revert any more.
    DeleteSnapshot { id: SnapshotId },
    /// Adds a fault, which begins at once if it is due.
    AddFault(Box<AddedFault>),
    /// Ends the fault of this id. A fault that has not begun never begins.
    EndFault { id: usize },
    /// Adds a restart as a fault, and ends the crashes in force of the same nodes.
    Restart(Box<AddedFault>),
    /// Nodes leave the end of their chain for another branch.
    Reorganise(Box<ReorgRequest>),
    /// Submits a block that a client made. The node treats it like a block that a peer pushes. `wire` are its bytes.
    PushBlock { node: NodeId, block: Arc<Block>, wire: Arc<[u8]> },
    /// Removes pending transactions from the pool of a node. Without a node, removes them from the pools of all live nodes and from all
    /// messages under way.
    DropPending { ids: Arc<[TransactionId]>, node: Option<NodeId> },
    /// Records a change of the rules between a node and its clients. The run ignores it. A replay of the session counts it.
    Chaos(ChaosChange),
}

impl Intervention {
    /// Returns true if it changes what happens in the run. Snapshots do not, and the run does not know of rules for clients.
    pub fn is_of_run(&self) -> bool {
        match self {
            Self::TakeSnapshot { .. } | Self::Revert { .. } | Self::DeleteSnapshot { .. } | Self::Chaos(_) => false,
            Self::Submit { .. } | Self::AddFault(_) | Self::EndFault { .. } => true,
            Self::Restart(_) | Self::Reorganise(_) | Self::PushBlock { .. } | Self::DropPending { .. } => true,
        }
    }
}

/// A change of the rules between a served node and its clients. Each node numbers its rules from 1 on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ChaosChange {
    /// A new rule, in the form of `POST /lab/chaos`.
    Added { node: NodeId, id: u64, rule: serde_json::Map<String, serde_json::Value> },
    /// The deletion of a rule.
    Deleted { node: NodeId, id: u64 },
    /// The deletion of all rules of the node.
    Cleared { node: NodeId },
}

impl ChaosChange {
    /// The node whose rules they are.
    pub fn node(&self) -> NodeId {
        match self {
            Self::Added { node, .. } | Self::Deleted { node, .. } | Self::Cleared { node } => *node,
        }
    }
}

/// The outcome of an [`Intervention`].
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pool has decided.
    Submitted(Submission),
    /// The fault has this id.
    FaultAdded { id: usize },
    /// The fault is over. `is_known` is false if no fault has this id.
    FaultEnded { is_known: bool },
    /// The reorganisation, or the reason why the nodes cannot leave their chain.
    Reorganised(Box<Result<ReorgResult, ReorgError>>),
    /// The node's decision about the block.
    BlockPushed(PushVerdict),
    /// The transaction is gone.
    PendingDropped(DroppedPending),
    /// The run ignores the intervention.
    Ignored,
    /// The snapshot that was taken, reverted to or deleted. `None` if it does not exist, or if the run has the largest number of snapshots.
    Snapshot(Option<SnapshotInfo>),
}

/// A node's decision about a submitted block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushVerdict {
    /// It is the node's tip now.
    Accepted,
    /// It breaks a rule.
    Refused(Box<BlockRejected>),
    /// The node has not caught up with the network yet, or works on a download.
    Disregarded,
    /// The node has seen this block before, the block holds transactions that the chain already has, or the chain has moved on.
    Discarded,
    /// The node is down, or a fault slows it down.
    Unanswered,
}

/// A pending transaction that is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedPending {
    /// The transactions that left a pool: the requested ones and their senders' later ones.
    pub transactions: BTreeSet<TransactionId>,
    /// The nodes whose pools one of them left, ascending.
    pub nodes: BTreeSet<NodeId>,
    /// The number of messages under way that carried one of them.
    pub under_way: usize,
}

/// A requested reorganisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorgRequest {
    /// The observed node, whose chain is reorganised.
    pub node: NodeId,
    /// The number of its blocks that are reverted, at least 1.
    pub depth: u32,
    /// The reverted transactions that return to the pools. The others are dropped.
    pub transactions: ReturnedTransactions,
}

/// The reverted transactions that go back to the pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReturnedTransactions {
    All,
    None,
    /// These.
    These(BTreeSet<TransactionId>),
}

/// The result of a reorganisation.
#[derive(Clone, Debug)]
pub struct ReorgResult {
    pub node: NodeId,
    /// The tip of the observed node before.
    pub from: Arc<Link>,
    /// The tip of the observed node now.
    pub to: Arc<Link>,
    /// The last block that both chains have.
    pub common: Arc<Link>,
    /// The blocks it left, the highest first.
    pub reverted: Vec<Arc<Link>>,
    /// The blocks it stands on instead, the lowest first.
    pub blocks: Vec<Arc<Link>>,
    /// The outcome of each transaction of the reverted blocks, in their order on the reverted chain.
    pub transactions: Vec<(TransactionId, RevertedFate)>,
    /// The nodes that moved to the new branch, ascending.
    pub moved: Vec<NodeId>,
    /// The nodes that did not move, because they are down, cut off, or on another chain.
    pub left: Vec<NodeId>,
}

/// The outcome of a reverted transaction at the observed node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevertedFate {
    /// It is in the pool again.
    Returned,
    /// It should have returned, but the rules of the pool reject it.
    Refused,
    /// It is gone, as asked.
    Dropped,
}

/// The reason why nodes cannot leave their chain as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReorgError {
    #[error("key 'node': found {}, allowed is 0 to {}", node.0, nodes - 1)]
    NoNode { node: NodeId, nodes: usize },
    #[error("key 'node': {0} is down, allowed is a live node")]
    Down(NodeId),
    #[error("key 'node': a fault slows {0} down, allowed is a node that answers at once")]
    Slow(NodeId),
    #[error(
        "key 'depth': found {found}, allowed is {}: node.rollback_max is {limit}, the chain was at height {highest} at \
         most, and above {} there are {} blocks", up_to(*deepest), named_final(*last_final), height.0 - last_final.0
    )]
    Depth { found: u32, deepest: u32, limit: u32, height: Height, highest: Height, last_final: Height },
    #[error("key 'transactions': {id} is none of the {transactions} transactions of the {blocks} blocks to revert")]
    NotReverted { id: TransactionId, blocks: usize, transactions: usize },
    #[error("no delegate of the slots of these blocks is on a live node that the observed one can reach")]
    NobodyForges,
    #[error("no block can be made at height {height} of the other branch: {why}")]
    Unbuildable { height: Height, why: Box<BlockRejected> },
}

fn up_to(deepest: u32) -> String {
    match deepest {
        0 => "no depth".to_owned(),
        deepest => format!("1 to {deepest}"),
    }
}

fn named_final(last_final: Height) -> String {
    match last_final {
        Height::GENESIS => "genesis".to_owned(),
        height => format!("the final block at height {height}"),
    }
}

saved!(struct SnapshotId(number));
saved!(struct SnapshotInfo { id, name, at, delivered, height, tip });
