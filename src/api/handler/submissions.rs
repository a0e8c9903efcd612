//! `GET /lab/submissions`: the transactions that clients submitted, with the answers of the nodes.

use crate::api::{
    lab::submissions::SubmissionLine,
    table::{Call, Member, Outcome, Shape, shape::TEXT_OR_NULL},
};

/// The members of a submitted transaction. `id` is null for a request that was refused as a whole. `at` is in microseconds
/// since the network's epoch. `height` is the node's height at that instant. `type` and `message` are null if the node accepted
/// the transaction.
const MEMBERS: &[Member<SubmissionLine>] = &[
    Member::new("at", Shape::Integer, |line, _| line.at.micros().into()),
    Member::new("node", Shape::Integer, |line, _| line.node.0.into()),
    Member::new("height", Shape::Integer, |line, _| line.height.into()),
    Member::new("id", TEXT_OR_NULL, |line, _| line.id.as_deref().into()),
    Member::new("accepted", Shape::Boolean, |line, _| line.refusal.is_none().into()),
    Member::new("type", TEXT_OR_NULL, |line, _| line.refusal.as_ref().and_then(|(code, _)| *code).into()),
    Member::new("message", TEXT_OR_NULL, |line, _| line.refusal.as_ref().map(|(_, message)| &**message).into()),
];
/// The shape of the list of submissions.
pub(crate) const SHAPE: Shape = Shape::List(&Shape::Table(&MEMBERS));

/// `GET /lab/submissions`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    Ok(call.show_rows(MEMBERS, &call.context.submissions.all()))
}
