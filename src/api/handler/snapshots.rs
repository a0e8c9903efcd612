//! Snapshots of the run: taking, listing and deleting them, going back to one, and one as a file.

use crate::{
    api::{
        http::{error::ApiError, reply::Reply},
        table::{
            json,
            parameter::{Parameter, both},
            route::{Answer, Call},
            rule::{Bound, Check, Rule},
            shape::Shape,
        },
    },
    sim::{
        Intervention, Outcome,
        snapshots::{SNAPSHOTS_MAX, SnapshotId, SnapshotInfo},
    },
};

/// Characters of a name.
const NAME_MAX: usize = 100;

/// The body of a new one.
pub const NEW: &[Parameter] = &[both("name", Rule::Text(&[Check::AtMost(NAME_MAX)]))];

/// The body that goes back to one: the path says it all.
pub const NOTHING: &[Parameter] = &[];

/// A snapshot's number, as a path has it.
pub const PATH_ID: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(1)))];

/// A snapshot: where the run was then. `now` is in seconds of the network's epoch.
pub const SHAPE: Shape = Shape::Members(&[
    ("id", Shape::Integer, true),
    ("name", Shape::Either(&[Shape::Text, Shape::Null]), true),
    ("now", Shape::Integer, true),
    ("height", Shape::Integer, true),
    ("tip", Shape::Text, true),
]);
/// All of them.
pub const LIST_SHAPE: Shape = Shape::List(&SHAPE);

/// `POST /lab/snapshots {"name"?}`.
pub fn take(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let name = call.parameters.text("name").map(str::to_owned);
        match intervene(&call, Intervention::TakeSnapshot { name }).await? {
            Some(info) => Ok(shown(&info).created()),
            None => Err(ApiError::Unprocessable(format!(
                "there are {SNAPSHOTS_MAX} snapshots, which is as many as a run keeps; delete one first"
            ))),
        }
    })
}

/// `GET /lab/snapshots`.
pub fn list(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let look = call.context.live.look(|stage| stage.snapshots().list().cloned().collect::<Vec<_>>());
        let all = look.await?;
        Ok(Reply::json(json::data(|out| json::write_list(out, &all, write))))
    })
}

/// `GET /lab/snapshots/{id}`.
pub fn show(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let id = id(&call)?;
        let info = call.context.live.look(move |stage| stage.snapshots().get(id).cloned()).await?;
        info.map(|info| shown(&info)).ok_or(MISSING)
    })
}

/// `DELETE /lab/snapshots/{id}`.
pub fn delete(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let id = id(&call)?;
        intervene(&call, Intervention::DeleteSnapshot { id }).await?.map(|_| Reply::nothing()).ok_or(MISSING)
    })
}

/// `POST /lab/snapshots/{id}/revert`.
pub fn revert(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let to = id(&call)?;
        intervene(&call, Intervention::Revert { to }).await?.map(|info| shown(&info)).ok_or(MISSING)
    })
}

/// `GET /lab/snapshots/{id}/file`: what `dposlab up --from` reads.
pub fn file(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let id = id(&call)?;
        let Some(write) = call.context.write_state.clone() else { return Err(ApiError::NO_ROUTE) };
        let look = move |stage: &crate::sim::Stage| {
            let info = stage.snapshots().get(id)?.clone();
            let history: Vec<_> = stage.snapshots().history(id).into_iter().cloned().collect();
            Some((info, history))
        };
        let (info, history) = call.context.live.look(look).await?.ok_or(MISSING)?;
        Ok(Reply::file("snapshot", write(&info, &history)))
    })
}

const MISSING: ApiError = ApiError::NotFound("there is no snapshot of this number; GET /lab/snapshots lists all");

fn id(call: &Call<'_>) -> Result<SnapshotId, ApiError> {
    let number = call.arguments.integer("id").and_then(|number| u64::try_from(number).ok());
    number.map(SnapshotId).ok_or(ApiError::NO_ROUTE)
}

async fn intervene(call: &Call<'_>, what: Intervention) -> Result<Option<SnapshotInfo>, ApiError> {
    match call.context.live.intervene(what).await? {
        Outcome::Snapshot(info) => Ok(info),
        other => Err(ApiError::Internal(format!("a snapshot's outcome, not {other:?}"))),
    }
}

fn shown(info: &SnapshotInfo) -> Reply {
    Reply::json(json::data(|out| write(out, info)))
}

/// Writes one.
pub fn write(out: &mut Vec<u8>, info: &SnapshotInfo) {
    let mut object = json::Object::open(out);
    object.member("id").put(&info.id.0);
    object.member("name").put(&info.name);
    object.member("now").put(&info.at.seconds());
    object.member("height").put(&info.height);
    object.member("tip").text(info.tip);
    object.close();
}
