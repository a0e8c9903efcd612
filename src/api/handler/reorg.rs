//! `POST /lab/reorg`: the observed node leaves the end of its chain for another branch. For clients that may control the run.

use crate::{
    actors::NodeId,
    api::{
        http::ApiError,
        table::{Call, Member, Outcome, Shape, shape},
    },
    ledger::Link,
    protocol::{BlockId, Height, TransactionId},
    sim::{
        self, Intervention, Stage,
        intervention::{ReorgRequest, ReorgResult, ReturnedTransactions, RevertedFate},
    },
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};

const BLOCK: &[Member<Arc<Link>>] = &[
    Member::new("id", shape::BLOCK_ID, |link, _| link.id().into()),
    Member::new("height", Shape::Integer, |link, _| link.height().into()),
];

const TRANSACTION: &[Member<(TransactionId, RevertedFate)>] = &[
    Member::new("id", shape::HASH, |(id, _), _| (*id).into()),
    Member::by("became", Shape::Pattern("^(returned|refused|dropped)$"), |(_, became), _, slot| slot.put(became)),
];

/// The result of a reorganisation.
pub(crate) const DONE: &[Member<ReorgResult>] = &[
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
pub(crate) fn body_schema() -> Value {
    let number = |least: u32| json!({"type": "integer", "minimum": least, "maximum": u32::MAX});
    let ids = json!({"type": "array", "items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}});
    let transactions = json!({"anyOf": [{"enum": ["return", "drop"]}, ids], "default": "return"});
    let to = json!({"anyOf": [number(1), {"type": "string", "pattern": "^([0-9]{1,20}|[0-9a-f]{64})$"}]});
    let back = |name: &'static str, value: Value| {
        shape::object([(name, value, true), ("transactions", transactions.clone(), false), ("node", number(0), false)])
    };
    json!({"anyOf": [back("depth", number(1)), back("to", to)]})
}

/// `POST /lab/reorg {"depth": n | "to": height | "to": id, "transactions": "return" | "drop" | [ids]}`.
pub(crate) async fn reorganise(call: Call<'_>) -> Outcome {
    let wish = read(&call.body, call.context.view.node())?;
    // The depth is computed inside the run, so that no event moves the tip before the reorganisation.
    let decide = |stage: &Stage| wish.asked(stage).map(|asked| Intervention::Reorganise(asked.into()));
    let outcome = call.context.live.intervene_if(decide, |outcome, _| outcome).await??;
    let sim::Outcome::Reorganised(done) = outcome else {
        unreachable!("a reorganisation is answered by what it did, not by {outcome:?}");
    };
    let done = done.map_err(|why| ApiError::Unprocessable(why.to_string()))?;
    Ok(call.show_row(DONE, &done))
}

/// The body of a request.
#[derive(Debug, PartialEq)]
struct Wish {
    node: NodeId,
    back: Back,
    transactions: ReturnedTransactions,
}

/// How far the node goes back.
#[derive(Debug, PartialEq)]
enum Back {
    /// A number of blocks.
    Depth(u32),
    /// To the block of its chain that has this height, which stays.
    Height(Height),
    /// To this block of its chain, which stays.
    Block(BlockId),
}

impl Wish {
    fn asked(self, stage: &Stage) -> Result<ReorgRequest, ApiError> {
        let Self { node, back, transactions } = self;
        let tips = stage.world().tips();
        // The run itself refuses a node that does not exist, at any depth.
        let depth = match (back, tips.all().nth(node.0 as usize)) {
            (Back::Depth(depth), _) => depth,
            (_, None) => 1,
            (Back::Height(height), Some(tip)) => {
                above(tip, height).ok_or_else(|| refused("key 'to'", &height.0.into(), &below(tip)))?
            }
            (Back::Block(id), Some(tip)) => {
                let of_chain = |link: &Arc<Link>| tip.ancestor(link.height()).is_some_and(|found| found.id() == id);
                let found = stage.world().tree().link(&id).filter(of_chain);
                let depth = found.and_then(|link| above(tip, link.height()));
                depth.ok_or_else(|| refused("key 'to'", &id.to_string().into(), &below(tip)))?
            }
        };
        Ok(ReorgRequest { node, depth, transactions })
    }
}

/// The number of blocks above `height`. `None` if there are none, or if the chain has no such height.
fn above(tip: &Link, height: Height) -> Option<u32> {
    tip.height().0.checked_sub(height.0).filter(|depth| *depth > 0 && height >= Height::GENESIS)
}

fn below(tip: &Link) -> String {
    format!("a block of the node's chain below its tip, by its id or by its height, 1 to {}", tip.height().0 - 1)
}

fn read(body: &Value, observed: NodeId) -> Result<Wish, ApiError> {
    let members = body.as_object().ok_or_else(|| refused("the body", body, "an object with 'depth' or 'to'"))?;
    if let Some(unknown) = members.keys().find(|key| !["depth", "to", "transactions", "node"].contains(&key.as_str())) {
        let message = format!("key '{unknown}': no such key, allowed are 'depth' or 'to', 'transactions' and 'node'");
        return Err(ApiError::Unprocessable(message));
    }
    let back = match (number(members, "depth")?, members.get("to")) {
        (Some(depth), None) => Back::Depth(depth),
        (None, Some(Value::String(text))) => {
            let id = text.parse().map_err(|_| refused("key 'to'", &members["to"], "a height, or the id of a block"))?;
            Back::Block(id)
        }
        (None, Some(_)) => Back::Height(Height(number(members, "to")?.unwrap_or_default())),
        (None, None) => {
            return Err(ApiError::unprocessable("keys 'depth' and 'to': found none, allowed is one of them"));
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::unprocessable("keys 'depth' and 'to': found both, allowed is one of them"));
        }
    };
    let node = number(members, "node")?.map_or(observed, NodeId);
    let transactions = match members.get("transactions") {
        None => ReturnedTransactions::All,
        Some(Value::String(word)) if word == "return" => ReturnedTransactions::All,
        Some(Value::String(word)) if word == "drop" => ReturnedTransactions::None,
        Some(Value::Array(ids)) => ReturnedTransactions::These(ids.iter().map(id).collect::<Result<BTreeSet<_>, _>>()?),
        Some(other) => return Err(refused("key 'transactions'", other, "\"return\", \"drop\" or a list of ids")),
    };
    Ok(Wish { node, back, transactions })
}

pub(super) fn number(members: &Map<String, Value>, key: &str) -> Result<Option<u32>, ApiError> {
    let Some(value) = members.get(key) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| refused(&format!("key '{key}'"), value, "a whole number"))
}

fn id(value: &Value) -> Result<TransactionId, ApiError> {
    let id = value.as_str().and_then(|text| text.parse().ok());
    id.ok_or_else(|| refused("key 'transactions'", value, "ids of transactions: 64 hex digits"))
}

pub(super) fn refused(place: &str, found: &Value, allowed: &str) -> ApiError {
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
        let asked = |node, depth, transactions| Ok(Wish { node: NodeId(node), back: Back::Depth(depth), transactions });
        let to = |back| Ok(Wish { node: NodeId(2), back, transactions: ReturnedTransactions::All });
        assert_eq!(read(json!({"to": 7})), to(Back::Height(Height(7))));
        assert_eq!(read(json!({"to": "1234"})), to(Back::Block("1234".parse().expect("an id"))));
        assert_eq!(read(json!({"depth": 3})), asked(2, 3, ReturnedTransactions::All));
        assert_eq!(
            read(json!({"depth": 1, "transactions": "drop", "node": 0})),
            asked(0, 1, ReturnedTransactions::None)
        );
        let id = "ab".repeat(32);
        let these = ReturnedTransactions::These(BTreeSet::from([id.parse().expect("an id")]));
        assert_eq!(read(json!({"depth": 1, "transactions": [id]})), asked(2, 1, these));
        for (wrong, part) in [
            (json!(null), "the body: found null, allowed is an object with 'depth' or 'to'"),
            (json!({}), "keys 'depth' and 'to': found none, allowed is one of them"),
            (json!({"depth": 1, "to": 1}), "keys 'depth' and 'to': found both, allowed is one of them"),
            (json!({"to": "up"}), "key 'to': found \"up\", allowed is a height, or the id of a block"),
            (json!({"to": 1.5}), "key 'to': found 1.5, allowed is a whole number"),
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
