//! Isolated chains: making, listing and deleting them.

use crate::{
    api::{
        context::{Chain, Chains},
        http::{error::ApiError, reply::Reply},
        lab::chains::{ChainWish, prefix},
        table::{
            json,
            parameter::{Parameter, both},
            route::{Answer, Call},
            rule::{Bound, Check, Rule},
            shape::Shape,
        },
    },
    sim::Pace,
};
use serde_json::Value;

/// Bytes of a scenario.
const SCENARIO_MAX: usize = 100_000;

/// The body of a new one.
pub const NEW: &[Parameter] = &[
    both("seed", Rule::Integer(Bound::Least(0))),
    both("delegates", Rule::Integer(Bound::Between(1, 200))),
    both("scenario", Rule::Text(&[Check::AtMost(SCENARIO_MAX)])),
    both("set", Rule::Several(&Rule::Text(&[Check::AtMost(1_000)]), 0, 100)),
    both("pace", Rule::Text(&[Check::AtMost(20)])),
];

/// A chain's number, as a path has it.
pub const PATH_ID: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(1)))];

const ACCOUNT: Shape = Shape::Members(&[
    ("address", Shape::Text, true),
    ("publicKey", Shape::Text, true),
    ("balance", Shape::Text, true),
    ("passphrase", Shape::Text, true),
]);

/// A chain. `url` is the base of its API, `lab` what it is steered by.
pub const SHAPE: Shape = Shape::Members(&[
    ("id", Shape::Integer, true),
    ("url", Shape::Text, true),
    ("lab", Shape::Text, true),
    ("seed", Shape::Integer, true),
    ("delegates", Shape::Integer, true),
    ("nethash", Shape::Text, true),
    ("height", Shape::Integer, true),
    ("accounts", Shape::List(&ACCOUNT), true),
]);
/// All of them.
pub const LIST_SHAPE: Shape = Shape::List(&SHAPE);

/// `POST /lab/chains {"seed"?, "delegates"?, "scenario"?, "set"?, "pace"?}`.
pub fn make(call: Call<'_>) -> Answer<'_> {
    Box::pin(async move {
        let (chains, wish) = (chains(&call)?.clone(), wish(&call)?);
        let (host, context) = (host(&call), call.context.clone());
        let made = tokio::task::spawn_blocking(move || chains.make(&wish, &context)).await;
        let (id, chain) = made.map_err(|why| ApiError::Internal(format!("a chain was not made: {why}")))??;
        // It answers once it has begun, at the pace on demand with its first block.
        chain.context.live.now().await?;
        Ok(Reply::json(json::data(|out| write(out, id, &chain, &host))).created())
    })
}

/// `GET /lab/chains`.
pub fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (all, host) = (chains(call)?.list(), host(call));
    Ok(Reply::json(json::data(|out| {
        json::write_list(out, all, |out, (id, chain)| write(out, id, &chain, &host));
    })))
}

/// `GET /lab/chains/{id}`.
pub fn show(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = id(call)?;
    let chain = chains(call)?.get(id).ok_or(MISSING)?;
    Ok(Reply::json(json::data(|out| write(out, id, &chain, &host(call)))))
}

/// `DELETE /lab/chains/{id}`.
pub fn delete(call: &Call<'_>) -> Result<Reply, ApiError> {
    if chains(call)?.delete(id(call)?) { Ok(Reply::nothing()) } else { Err(MISSING) }
}

/// No chain has this number.
pub const MISSING: ApiError = ApiError::NotFound("there is no chain of this number; GET /lab/chains lists all");

/// A chain calls nobody.
pub const NO_WEBHOOKS: ApiError = ApiError::NotFound(
    "an isolated chain has no webhooks: those of the testnet are at /api/webhooks; GET /chains/{id}/lab/events tells what happens",
);

fn chains<'c>(call: &'c Call<'_>) -> Result<&'c Chains, ApiError> {
    call.context.chains.as_ref().ok_or(ApiError::NO_ROUTE)
}

fn id(call: &Call<'_>) -> Result<u64, ApiError> {
    let number = call.arguments.integer("id").and_then(|number| u64::try_from(number).ok());
    number.ok_or(ApiError::NO_ROUTE)
}

/// The address that the client called.
pub(super) fn host(call: &Call<'_>) -> String {
    call.request.host().unwrap_or("127.0.0.1:4003").to_owned()
}

fn wish(call: &Call<'_>) -> Result<ChainWish, ApiError> {
    let given = &call.parameters;
    let mut set: Vec<String> = given.texts("set").unwrap_or_default().to_vec();
    set.extend(given.integer("delegates").map(|delegates| format!("network.delegates={delegates}")));
    Ok(ChainWish {
        seed: given.integer("seed").and_then(|seed| u64::try_from(seed).ok()),
        scenario: given.text("scenario").map(str::to_owned),
        set,
        pace: pace(&call.body)?,
    })
}

fn pace(body: &Value) -> Result<Option<Pace>, ApiError> {
    let Some(given) = body.get("pace").and_then(Value::as_str) else { return Ok(None) };
    given.parse().map(Some).map_err(|why| ApiError::Unprocessable(format!("key 'pace': {why}")))
}

/// Writes one.
pub(super) fn write(out: &mut Vec<u8>, id: u64, chain: &Chain, host: &str) {
    let at = format!("http://{host}{}", prefix(id));
    let mut object = json::Object::open(out);
    object.member("id").put(&id);
    object.member("url").text(format_args!("{at}/api"));
    object.member("lab").text(format_args!("{at}/lab"));
    object.member("seed").put(&chain.seed);
    object.member("delegates").put(&chain.delegates);
    object.member("nethash").put(&chain.nethash);
    object.member("height").put(&chain.context.view.head().height());
    object.member("accounts").list(&chain.accounts, |out, account| {
        let mut object = json::Object::open(out);
        object.member("address").put(&account.address);
        object.member("publicKey").put(&account.public_key);
        object.member("balance").put(&account.balance);
        object.member("passphrase").put(&account.passphrase);
        object.close();
    });
    object.close();
}
