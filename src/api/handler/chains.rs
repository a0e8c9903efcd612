//! Isolated chains: making, listing and deleting them.

use crate::{
    api::{
        context::{Chain, Chains},
        http::{ApiError, Reply},
        lab::chains::{ChainAccount, ChainOrigin, ChainWish, prefix},
        table::{Bound, Call, Check, Member, Outcome, Parameter, Rule, Shape, both},
    },
    sim::Pace,
};
use serde_json::Value;
use std::sync::Arc;

/// The largest size of a scenario [bytes].
const SCENARIO_MAX: usize = 100_000;

/// The parameters of a new chain.
pub(crate) const NEW: &[Parameter] = &[
    both("seed", Rule::Integer(Bound::Least(0))),
    both("delegates", Rule::Integer(Bound::Between(1, 200))),
    both("scenario", Rule::Text(&[Check::AtMost(SCENARIO_MAX)])),
    both("set", Rule::Several(&Rule::Text(&[Check::AtMost(1_000)]), 0, 100)),
    both("pace", Rule::Text(&[Check::AtMost(20)])),
];

const ACCOUNT: &[Member<ChainAccount>] = &[
    Member::new("address", Shape::Text, |account, _| (&*account.address).into()),
    Member::new("publicKey", Shape::Text, |account, _| (&*account.public_key).into()),
    Member::new("balance", Shape::Text, |account, _| (&*account.balance).into()),
    Member::new("passphrase", Shape::Text, |account, _| (&*account.passphrase).into()),
];

/// The instant from which a chain continued, with the members that a view has.
const ORIGIN: &[Member<ChainOrigin>] = &[
    Member::new("at", Shape::Integer, |origin, _| origin.place.at.micros().into()),
    Member::new("delivered", Shape::Integer, |origin, _| origin.place.delivered.into()),
    Member::new("inputs", Shape::Integer, |origin, _| origin.place.inputs.into()),
    Member::new("height", Shape::Integer, |origin, _| origin.height.into()),
];

/// A chain with its number and its address.
pub(crate) struct ChainRow {
    id: u64,
    /// The URL of the chain's prefix.
    at: String,
    chain: Arc<Chain>,
}

impl ChainRow {
    /// The row of a chain, with URLs on the host that the client asked.
    pub fn of((id, chain): (u64, Arc<Chain>), call: &Call<'_>) -> Self {
        Self { id, at: format!("http://{}{}", call.request.host_or_default(), prefix(id)), chain }
    }
}

/// The members of a chain. `url` is the base of its API, `lab` that of its control routes. `from` is the instant of the testnet's past
/// from which it continued, or null if it began with a genesis block of its own.
pub(crate) const MEMBERS: &[Member<ChainRow>] = &[
    Member::new("id", Shape::Integer, |row, _| row.id.into()),
    Member::new("url", Shape::Text, |row, _| format!("{}/api", row.at).into()),
    Member::new("lab", Shape::Text, |row, _| format!("{}/lab", row.at).into()),
    Member::new("seed", Shape::Integer, |row, _| row.chain.seed.into()),
    Member::new("delegates", Shape::Integer, |row, _| row.chain.delegates.into()),
    Member::new("nethash", Shape::Text, |row, _| (&*row.chain.nethash).into()),
    Member::new("height", Shape::Integer, |row, _| row.chain.context.view.head().height().into()),
    Member::by("from", Shape::Either(&[Shape::Table(&ORIGIN), Shape::Null]), |row, frame, slot| {
        match row.chain.origin {
            Some(origin) => slot.members(ORIGIN, &origin, frame),
            None => slot.put(&Value::Null),
        }
    }),
    Member::by("accounts", Shape::List(&Shape::Table(&ACCOUNT)), |row, frame, slot| {
        slot.rows(ACCOUNT, &row.chain.accounts, frame);
    }),
];
/// The shape of a chain.
pub(crate) const SHAPE: Shape = Shape::Table(&MEMBERS);
/// The shape of the list of chains.
pub(crate) const LIST_SHAPE: Shape = Shape::List(&SHAPE);

/// `POST /lab/chains {"seed"?, "delegates"?, "scenario"?, "set"?, "pace"?}`.
pub(crate) async fn make(call: Call<'_>) -> Outcome {
    let (chains, wish) = (chains(&call)?.clone(), wish(&call)?);
    let context = call.context.clone();
    let made = tokio::task::spawn_blocking(move || chains.make(&wish, &context)).await;
    let made = made.map_err(|why| ApiError::Internal(format!("a chain was not made: {why}")))??;
    // Waits until the chain has begun. At the pace on demand it then has its first block. Another client may have deleted it by then.
    let _deleted = made.1.context.live.now().await;
    Ok(call.show_row(MEMBERS, &ChainRow::of(made, &call)).created())
}

/// `GET /lab/chains`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let rows: Vec<ChainRow> = chains(call)?.list().into_iter().map(|chain| ChainRow::of(chain, call)).collect();
    Ok(call.show_rows(MEMBERS, &rows))
}

/// `GET /lab/chains/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let id = call.id()?;
    let chain = chains(call)?.get(id).ok_or(MISSING)?;
    Ok(call.show_row(MEMBERS, &ChainRow::of((id, chain), call)))
}

/// `DELETE /lab/chains/{id}`.
pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    if chains(call)?.delete(call.id()?) { Ok(Reply::nothing()) } else { Err(MISSING) }
}

/// The error for a number that no chain has.
pub(crate) const MISSING: ApiError = ApiError::NotFound("there is no chain of this number; GET /lab/chains lists all");

fn chains<'c>(call: &'c Call<'_>) -> Result<&'c Chains, ApiError> {
    call.context.chains.as_ref().ok_or(ApiError::NO_ROUTE)
}

fn wish(call: &Call<'_>) -> Result<ChainWish, ApiError> {
    let given = &call.parameters;
    let mut set: Vec<String> = given.texts("set").unwrap_or_default().to_vec();
    set.extend(given.number("delegates").map(|delegates: u32| format!("network.delegates={delegates}")));
    Ok(ChainWish {
        seed: given.number("seed"),
        scenario: given.text("scenario").map(str::to_owned),
        set,
        pace: pace(&call.body)?,
    })
}

fn pace(body: &Value) -> Result<Option<Pace>, ApiError> {
    let Some(given) = body.get("pace").and_then(Value::as_str) else { return Ok(None) };
    given.parse().map(Some).map_err(|why| ApiError::Unprocessable(format!("key 'pace': {why}")))
}
