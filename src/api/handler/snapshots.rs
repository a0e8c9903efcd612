//! Snapshots of the run: taking, listing and deleting them, going back to one, and one as a file.

use crate::{
    api::{
        http::{ApiError, Reply},
        table::{Call, Check, Member, Outcome, Parameter, Rule, Shape, both, shape::TEXT_OR_NULL},
    },
    sim::{
        self, Intervention,
        snapshots::{SNAPSHOTS_MAX, SnapshotId, SnapshotInfo},
    },
};

/// The largest length of a name [characters].
const NAME_MAX: usize = 100;

/// The parameters of a new snapshot.
pub(crate) const NEW: &[Parameter] = &[both("name", Rule::Text(&[Check::AtMost(NAME_MAX)]))];

/// The empty parameters of a revert. The path names the snapshot.
pub(crate) const NOTHING: &[Parameter] = &[];

/// The members of a snapshot: where the run was then. `now` is in seconds of the network's epoch.
pub(crate) const MEMBERS: &[Member<SnapshotInfo>] = &[
    Member::new("id", Shape::Integer, |info, _| info.id.0.into()),
    Member::new("name", TEXT_OR_NULL, |info, _| info.name.as_deref().into()),
    Member::new("now", Shape::Integer, |info, _| info.at.seconds().into()),
    Member::new("height", Shape::Integer, |info, _| info.height.into()),
    Member::new("tip", Shape::Text, |info, _| info.tip.into()),
];
/// The shape of a snapshot.
pub(crate) const SHAPE: Shape = Shape::Table(&MEMBERS);
/// The shape of the list of snapshots.
pub(crate) const LIST_SHAPE: Shape = Shape::List(&SHAPE);

/// `POST /lab/snapshots {"name"?}`.
pub(crate) async fn take(call: Call<'_>) -> Outcome {
    let name = call.parameters.text("name").map(str::to_owned);
    match intervene(&call, Intervention::TakeSnapshot { name }).await? {
        Some(info) => Ok(call.show_row(MEMBERS, &info).created()),
        None => Err(ApiError::Unprocessable(format!(
            "there are {SNAPSHOTS_MAX} snapshots, which is as many as a run keeps; delete one first"
        ))),
    }
}

/// `GET /lab/snapshots`.
pub(crate) async fn list(call: Call<'_>) -> Outcome {
    let look = call.context.live.look(|stage| stage.snapshots().list().cloned().collect::<Vec<_>>());
    Ok(call.show_rows(MEMBERS, &look.await?))
}

/// `GET /lab/snapshots/{id}`.
pub(crate) async fn show(call: Call<'_>) -> Outcome {
    let id = SnapshotId(call.id()?);
    let info = call.context.live.look(move |stage| stage.snapshots().get(id).cloned()).await?;
    info.map(|info| call.show_row(MEMBERS, &info)).ok_or(MISSING)
}

/// `DELETE /lab/snapshots/{id}`.
pub(crate) async fn delete(call: Call<'_>) -> Outcome {
    let id = SnapshotId(call.id()?);
    intervene(&call, Intervention::DeleteSnapshot { id }).await?.map(|_| Reply::nothing()).ok_or(MISSING)
}

/// `POST /lab/snapshots/{id}/revert`.
pub(crate) async fn revert(call: Call<'_>) -> Outcome {
    let to = SnapshotId(call.id()?);
    intervene(&call, Intervention::Revert { to }).await?.map(|info| call.show_row(MEMBERS, &info)).ok_or(MISSING)
}

/// `GET /lab/snapshots/{id}/file`: what `dposlab up --from` reads.
pub(crate) async fn file(call: Call<'_>) -> Outcome {
    let id = SnapshotId(call.id()?);
    let Some(write) = call.context.write_state.clone() else { return Err(ApiError::NO_ROUTE) };
    let look = move |stage: &crate::sim::Stage| {
        let info = stage.snapshots().get(id)?.clone();
        Some((info, stage.snapshots().history(id)))
    };
    let (info, history) = call.context.live.look(look).await?.ok_or(MISSING)?;
    let file = tokio::task::spawn_blocking(move || write(&info, &history)).await;
    Ok(Reply::file("snapshot", file.map_err(|why| ApiError::Internal(why.to_string()))??))
}

const MISSING: ApiError = ApiError::NotFound("there is no snapshot of this number; GET /lab/snapshots lists all");

async fn intervene(call: &Call<'_>, what: Intervention) -> Result<Option<SnapshotInfo>, ApiError> {
    match call.context.live.intervene(what).await? {
        sim::Outcome::Snapshot(info) => Ok(info),
        other => Err(ApiError::Internal(format!("a snapshot's outcome, not {other:?}"))),
    }
}
