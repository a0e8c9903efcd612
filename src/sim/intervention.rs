//! What comes into a live run from outside.

use crate::actors::{NodeId, Submission, message::Transactions};

/// What comes into a live run from outside and changes what happens. Each is written down before it is played
/// ([`super::live::Journal`]), so that a recording repeats it.
#[derive(Clone, Debug)]
pub enum Intervention {
    /// A client hands transactions in at a node.
    Submit { node: NodeId, transactions: Transactions },
}

/// What came of an [`Intervention`].
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pool has decided.
    Submitted(Submission),
}
