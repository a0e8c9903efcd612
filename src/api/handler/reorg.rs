//! `POST /lab/reorg`: the observed node leaves the end of its chain for another branch. For whoever steers the run.

use crate::{
    actors::NodeId,
    api::{
        http::ApiError,
        table::{Call, Member, Outcome, Shape, shape},
    },
    ledger::Link,
    protocol::TransactionId,
    sim::{
        self, Intervention,
        intervention::{Asked, Became, Reorganised, Returned},
    },
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};

const BLOCK: &[Member<Arc<Link>>] = &[
    Member::new("id", shape::BLOCK_ID, |link, _| link.id().into()),
    Member::new("height", Shape::Integer, |link, _| link.height().into()),
];

const TRANSACTION: &[Member<(TransactionId, Became)>] = &[
    Member::new("id", shape::HASH, |(id, _), _| (*id).into()),
    Member::by("became", Shape::Pattern("^(returned|refused|dropped)$"), |(_, became), _, slot| slot.put(became)),
];

/// The result of a reorganisation.
pub const DONE: &[Member<Reorganised>] = &[
    Member::new("node", Shape::Integer, |done, _| done.node.0.into()),
    Member::by("from", Shape::Table(&BLOCK), |done, frame, slot| slot.members(BLOCK, &done.from, frame)),
    Member::by("to", Shape::Table(&BLOCK), |done, frame, slot| slot.members(BLOCK, &done.to, frame)),
    Member::by("common", Shape::Table(&BLOCK), |done, frame, slot| slot.members(BLOCK, &done.common, frame)),
    Member::by("reverted", BLOCKS, |done, frame, slot| slot.rows(BLOCK, &done.reverted, frame)),
    Member::by("blocks", BLOCKS, |done, frame, slot| slot.rows(BLOCK, &done.blocks, frame)),
    Member::by("transactions", Shape::List(&Shape::Table(&TRANSACTION)), |done, frame, slot| {
        slot.rows(TRANSACTION, &done.transactions, frame);
    }),
    Member::by("moved", Shape::List(&Shape::Integer), |done, _, slot| slot.put(&done.moved)),
    Member::by("left", Shape::List(&Shape::Integer), |done, _, slot| slot.put(&done.left)),
];

const BLOCKS: Shape = Shape::List(&Shape::Table(&BLOCK));

/// The body of `POST /lab/reorg`, for the description.
pub fn body_schema() -> Value {
    let number = |least: u32| json!({"type": "integer", "minimum": least, "maximum": u32::MAX});
    let ids = json!({"type": "array", "items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}});
    let transactions = json!({"anyOf": [{"enum": ["return", "drop"]}, ids], "default": "return"});
    shape::object([("depth", number(1), true), ("transactions", transactions, false), ("node", number(0), false)])
}

/// `POST /lab/reorg {"depth": n, "transactions": "return" | "drop" | [ids]}`.
pub async fn reorganise(call: Call<'_>) -> Outcome {
    let asked = read(&call.body, call.context.view.node())?;
    let outcome = call.context.live.intervene(Intervention::Reorganise(asked.into())).await?;
    let sim::Outcome::Reorganised(done) = outcome else {
        unreachable!("a reorganisation is answered by what it did, not by {outcome:?}");
    };
    let done = done.map_err(|why| ApiError::Unprocessable(why.to_string()))?;
    Ok(call.show_row(DONE, &done))
}

fn read(body: &Value, observed: NodeId) -> Result<Asked, ApiError> {
    let members = body.as_object().ok_or_else(|| refused("the body", body, "an object with 'depth'"))?;
    if let Some(unknown) = members.keys().find(|key| !["depth", "transactions", "node"].contains(&key.as_str())) {
        let message = format!("key '{unknown}': no such key, allowed are 'depth', 'transactions' and 'node'");
        return Err(ApiError::Unprocessable(message));
    }
    let depth = number(members, "depth")?.ok_or_else(|| ApiError::unprocessable("key 'depth' is missing"))?;
    let node = number(members, "node")?.map_or(observed, NodeId);
    let transactions = match members.get("transactions") {
        None => Returned::All,
        Some(Value::String(word)) if word == "return" => Returned::All,
        Some(Value::String(word)) if word == "drop" => Returned::None,
        Some(Value::Array(ids)) => Returned::These(ids.iter().map(id).collect::<Result<BTreeSet<_>, _>>()?),
        Some(other) => return Err(refused("key 'transactions'", other, "\"return\", \"drop\" or a list of ids")),
    };
    Ok(Asked { node, depth, transactions })
}

fn number(members: &Map<String, Value>, key: &str) -> Result<Option<u32>, ApiError> {
    let Some(value) = members.get(key) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| refused(&format!("key '{key}'"), value, "a whole number"))
}

fn id(value: &Value) -> Result<TransactionId, ApiError> {
    let id = value.as_str().and_then(|text| text.parse().ok());
    id.ok_or_else(|| refused("key 'transactions'", value, "ids of transactions: 64 hex digits"))
}

fn refused(place: &str, found: &Value, allowed: &str) -> ApiError {
    let mut found = found.to_string();
    if found.len() > 100 {
        found = found.chars().take(100).chain("...".chars()).collect();
    }
    ApiError::Unprocessable(format!("{place}: found {found}, allowed is {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_for_is_read_and_what_is_wrong_is_named() {
        let read = |body: Value| read(&body, NodeId(2)).map_err(|error| error.to_string());
        let asked = |node, depth, transactions| Ok(Asked { node: NodeId(node), depth, transactions });
        assert_eq!(read(json!({"depth": 3})), asked(2, 3, Returned::All));
        assert_eq!(read(json!({"depth": 1, "transactions": "drop", "node": 0})), asked(0, 1, Returned::None));
        let id = "ab".repeat(32);
        let these = Returned::These(BTreeSet::from([id.parse().expect("an id")]));
        assert_eq!(read(json!({"depth": 1, "transactions": [id]})), asked(2, 1, these));
        for (wrong, part) in [
            (json!(null), "the body: found null, allowed is an object with 'depth'"),
            (json!({}), "key 'depth' is missing"),
            (json!({"depth": -1}), "key 'depth': found -1, allowed is a whole number"),
            (json!({"depth": 1.5}), "key 'depth': found 1.5"),
            (json!({"depth": "1"}), "key 'depth': found \"1\""),
            (json!({"depth": 1, "blocks": 1}), "key 'blocks': no such key, allowed are 'depth'"),
            (json!({"depth": 1, "transactions": "keep"}), "found \"keep\", allowed is \"return\", \"drop\""),
            (json!({"depth": 1, "transactions": ["x"]}), "found \"x\", allowed is ids of transactions"),
            (json!({"depth": 1, "node": "first"}), "key 'node': found \"first\""),
        ] {
            assert!(read(wrong.clone()).is_err_and(|message| message.contains(part)), "{wrong}");
        }
        let long = read(json!({"depth": "x".repeat(100_000)})).expect_err("no number");
        assert!(long.len() < 200, "{long}");
    }
}
