//! What comes into a live run from outside.

use super::snapshots::{SnapshotId, SnapshotInfo};
use crate::actors::{NodeId, Submission, message::Transactions};

/// What comes into a live run from outside and changes what happens. Each is written down before it is played
/// ([`super::live::Journal`]), so that a recording repeats it.
#[derive(Clone, Debug)]
pub enum Intervention {
    /// A client hands transactions in at a node.
    Submit { node: NodeId, transactions: Transactions },
    /// The moment is kept, to go back to.
    TakeSnapshot { name: Option<String> },
    /// The run goes to the moment of a snapshot.
    Revert { to: SnapshotId },
    /// Nobody will go back there.
    DeleteSnapshot { id: SnapshotId },
}

impl Intervention {
    /// Whether it is about snapshots, and no part of what happens in the run.
    pub fn is_about_snapshots(&self) -> bool {
        match self {
            Self::TakeSnapshot { .. } | Self::Revert { .. } | Self::DeleteSnapshot { .. } => true,
            Self::Submit { .. } => false,
        }
    }
}

/// What came of an [`Intervention`].
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pool has decided.
    Submitted(Submission),
    /// The snapshot that was taken, gone back to or deleted; `None` if there is none, or as many as there may be.
    Snapshot(Option<SnapshotInfo>),
}
