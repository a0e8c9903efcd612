//! Faults of a live run: lists them, adds one, ends one. For clients that may control the run.

use crate::{
    api::{
        http::{ApiError, Reply},
        resource::fault,
        table::{Call, Outcome},
    },
    scenario::FaultDesk,
    sim::{
        self, Fault, FaultKind, Intervention, Stage, Trigger,
        fault::{AddedFault, Crash, NodeRef, Nodes, Restart},
        world::{FaultState, FaultStatus},
    },
};

/// The largest number of faults of a run, including those of its plan.
const FAULTS_LIMIT: usize = 10_000;

/// `GET /lab/faults`: all of them, in the order of their ids.
pub(crate) async fn list(call: Call<'_>) -> Outcome {
    Ok(call.show_rows(fault::MEMBERS, &statuses(&call).await?))
}

/// `POST /lab/faults`: a fault as in a scenario file.
pub(crate) async fn add(call: Call<'_>) -> Outcome {
    let added = desk(&call)?.read(&call.body).map_err(ApiError::Unprocessable)?;
    let status = begin(&call, Intervention::AddFault(added.into())).await?;
    Ok(call.show_row(fault::MEMBERS, &status).created())
}

/// `DELETE /lab/faults/{id}`: ends the fault now. A waiting fault never begins.
pub(crate) async fn end(call: Call<'_>) -> Outcome {
    let id = call.arguments.number("id").unwrap_or(usize::MAX);
    // An unknown id is refused before it is recorded.
    let known = move |stage: &Stage| match id < stage.world().count_faults() {
        true => Ok(Intervention::EndFault { id }),
        false => Err(ApiError::NotFound("Fault not found")),
    };
    call.context.live.intervene_if(known, |_, _| Reply::nothing()).await?
}

/// `POST /lab/nodes/{node}/crash`: the node is down until it is restarted.
pub(crate) async fn crash(call: Call<'_>) -> Outcome {
    let (node, keep_pool) = (node(&call)?, keeps_pool(&call));
    let kind = FaultKind::Crash(Crash { nodes: Nodes::List(vec![NodeRef::Number(node)]), keep_pool });
    let status = begin(&call, Intervention::AddFault(admit(&call, kind)?.into())).await?;
    Ok(call.show_row(fault::MEMBERS, &status).created())
}

/// `POST /lab/nodes/{node}/restart`: restarts the node after any crash. Ends the crashes that cover this node alone.
pub(crate) async fn restart(call: Call<'_>) -> Outcome {
    let (node, keep_pool) = (node(&call)?, keeps_pool(&call));
    let nodes = Nodes::List(vec![NodeRef::Number(node)]);
    let kind = FaultKind::Restart(Restart { nodes, keep_pool });
    let status = begin(&call, Intervention::Restart(admit(&call, kind)?.into())).await?;
    Ok(call.show_row(fault::MEMBERS, &status).created())
}

/// Adds a fault and returns its status.
async fn begin(call: &Call<'_>, what: Intervention) -> Result<FaultStatus, ApiError> {
    let fits = |stage: &Stage| {
        if let Intervention::AddFault(added) = &what
            && let Some(last) = stage.world().round_passed(&added.fault.kind)
        {
            return Err(ApiError::Unprocessable(format!(
                "key 'rounds': round {last} is over, allowed are later rounds"
            )));
        }
        match stage.world().count_faults() {
            count @ FAULTS_LIMIT.. => {
                let message = format!("found {count} faults in this run, allowed are {FAULTS_LIMIT}");
                Err(ApiError::Unprocessable(message))
            }
            _ => Ok(what),
        }
    };
    // A revert takes faults away, so the status is read before anything else is done.
    let status = |outcome, stage: &Stage| match outcome {
        sim::Outcome::FaultAdded { id } => stage.world().faults().nth(id).expect("it was just added"),
        other => unreachable!("a fault that is added has an id, found {other:?}"),
    };
    call.context.live.intervene_if(fits, status).await?
}

fn admit(call: &Call<'_>, kind: FaultKind) -> Result<AddedFault, ApiError> {
    desk(call)?.admit(Fault { kind, from: Trigger::Start, until: None }).map_err(ApiError::Unprocessable)
}

fn node(call: &Call<'_>) -> Result<u32, ApiError> {
    call.arguments.number("node").ok_or(ApiError::NotFound("Node not found"))
}

fn keeps_pool(call: &Call<'_>) -> bool {
    call.parameters.flag("keep_pool").unwrap_or(true)
}

/// The newest `most` faults that wait or are in force. Empty if the run has ended.
pub(crate) async fn newest(call: &Call<'_>, most: usize) -> Vec<FaultStatus> {
    let mut all = statuses(call).await.unwrap_or_default();
    all.retain(|status| status.state != FaultState::Over);
    all.split_off(all.len().saturating_sub(most))
}

async fn statuses(call: &Call<'_>) -> Result<Vec<FaultStatus>, ApiError> {
    Ok(call.context.live.look(|stage| stage.world().faults().collect()).await?)
}

fn desk<'c>(call: &Call<'c>) -> Result<&'c FaultDesk, ApiError> {
    call.context.desk.as_ref().ok_or(ApiError::NotFound("This run takes no faults"))
}
