//! What comes into a live run from outside.

use super::fault::AddedFault;
use crate::actors::{NodeId, Submission, message::Transactions};

/// What comes into a live run from outside and changes what happens. Each is written down before it is played
/// ([`super::live::Journal`]), so that a recording repeats it.
#[derive(Clone, Debug)]
pub enum Intervention {
    /// A client hands transactions in at a node.
    Submit { node: NodeId, transactions: Transactions },
    /// A fault is added; one that is due begins at once.
    AddFault(Box<AddedFault>),
    /// The fault of this id ends; one that waits never begins.
    EndFault { id: usize },
}

/// What came of an [`Intervention`].
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pool has decided.
    Submitted(Submission),
    /// The fault has this id.
    FaultAdded { id: usize },
    /// The fault is over; there is none of this id, if it is not known.
    FaultEnded { is_known: bool },
}
