//! The public picture of the whole network, and the public faucet if the operator enables it. No route here controls the run or reveals
//! the seed, from which all keys follow.

use super::{
    faults, forks,
    lab::money,
    watch::{self, Lab},
};
use crate::{
    api::{
        http::{ApiError, Reply, guard::Access},
        lab::faucet::PublicFaucet,
        resource::fault,
        table::{Bound, Call, Member, Outcome, Parameter, Rule, Shape, both, shape},
    },
    protocol::transaction::Payment,
    sim::world::FaultStatus,
};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// The largest number of faults in the picture: the newest.
const FAULTS_MAX: usize = 100;

/// The height at which the tree begins.
pub(crate) const FROM: &[Parameter] = &[both("from", Rule::Integer(Bound::Between(1, u32::MAX as i64)))];

/// The picture of the network. `lab` says who may control the run: `open` if this client may, `token` if it needs a token, `closed`
/// otherwise. `faucet` is null if there is no public one.
pub(crate) const PICTURE: &[Member<Picture>] = &[
    Member::new("lab", Shape::Pattern("^(open|token|closed)$"), |picture, _| picture.lab.into()),
    Member::by("faucet", Shape::Either(&[Shape::Table(&FAUCET), Shape::Null]), |picture, frame, slot| {
        match picture.faucet {
            Some(faucet) => slot.members(FAUCET, &faucet, frame),
            None => slot.put(&Value::Null),
        }
    }),
    Member::by("network", Shape::Table(&watch::MEMBERS), |picture, frame, slot| {
        slot.members(watch::MEMBERS, &picture.network, frame);
    }),
    Member::by("tree", Shape::Table(&forks::TREE), |picture, frame, slot| {
        slot.members(forks::TREE, &picture.tree, frame);
    }),
    Member::by("round", Shape::Table(&forks::ROUND), |picture, frame, slot| {
        slot.members(forks::ROUND, &picture.round, frame);
    }),
    Member::by("faults", Shape::List(&fault::SHAPE), |picture, frame, slot| {
        slot.rows(fault::MEMBERS, &picture.faults, frame);
    }),
    Member::by("events", Shape::List(&Shape::Any), |picture, frame, slot| {
        slot.value_with(|out| watch::write_told(out, picture.network.told(), frame));
    }),
];

const FAUCET: &[Member<PublicFaucet>] = &[
    Member::new("amount", shape::AMOUNT, |faucet, _| faucet.amount.into()),
    Member::new("payments", Shape::Integer, |faucet, _| faucet.each.requests.into()),
    Member::new("seconds", Shape::Integer, |faucet, _| (faucet.each.window_ms / 1_000).into()),
];

/// The public picture of the network.
pub(crate) struct Picture {
    lab: &'static str,
    faucet: Option<PublicFaucet>,
    network: Arc<Lab>,
    tree: forks::Tree,
    round: forks::RoundNow,
    faults: Vec<FaultStatus>,
}

/// `GET /watch?from=`.
pub(crate) async fn watch(call: Call<'_>) -> Outcome {
    let lab = match call.context.gate().check(call.request, Access::Loopback) {
        Ok(()) => "open",
        Err(ApiError::Unauthorized(_)) => "token",
        Err(_) => "closed",
    };
    let (network, round) = (watch::public(&call).await, forks::round_of(&call).await);
    let faults = faults::newest(&call, FAULTS_MAX).await;
    let (tree, faucet) = (forks::tree_of(&call), call.context.settings.public_faucet);
    Ok(call.show_row(PICTURE, &Picture { lab, faucet, network, tree, round, faults }))
}

/// `POST /faucet {"recipient":..}`: pays the amount that the operator has set. Its limits apply to each client and to all clients
/// together.
pub(crate) async fn faucet(call: Call<'_>) -> Outcome {
    let faucet = call.context.settings.public_faucet.ok_or(NO_FAUCET)?;
    let members = call.body.as_object().filter(|members| members.len() == 1 && members.contains_key("recipient"));
    let members = members.ok_or_else(|| ApiError::unprocessable("the body must be {\"recipient\":address}"))?;
    let recipient = money::read_recipient(&members["recipient"], "recipient", &call)?;
    let client = call.request.remote.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |remote| remote.ip());
    if let Some(quota) = call.context.faucet.exceeded(faucet, client) {
        return Ok(Reply { quota: Some(quota), ..Reply::error(&ApiError::TooMany) });
    }
    let payment = Payment { amount: faucet.amount, recipient };
    let ids = money::funds(&call)?.pay((&call.context.view, &call.context.live), vec![payment]).await?;
    Ok(call.show_row(money::PAID, &ids))
}

/// The schema of the faucet's body, for the description of the API.
pub(crate) fn faucet_schema() -> Value {
    shape::object([("recipient", json!({"type": "string", "pattern": "^[1-9A-HJ-NP-Za-km-z]{34}$"}), true)])
}

const NO_FAUCET: ApiError = ApiError::NotFound("this testnet has no public faucet: --public-faucet opens one");
