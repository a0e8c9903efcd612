//! `POST /lab/blocks`: a client submits a block that it has made. `DELETE /lab/pool/{id}`: removes a pending transaction. For clients
//! that may control the run.

use super::reorg::{number, refused};
use crate::{
    actors::NodeId,
    api::{
        http::ApiError,
        table::{Call, Member, Outcome, Shape, shape},
    },
    protocol::{Block, NetworkConfig, TransactionId, transaction::Dialect},
    sim::{
        self, Intervention, Stage,
        intervention::{DroppedPending, PushVerdict},
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The block that a node took, and the node.
pub(crate) const TAKEN: &[Member<(NodeId, Arc<Block>)>] = &[
    Member::new("node", Shape::Integer, |(node, _), _| node.0.into()),
    Member::new("id", shape::BLOCK_ID, |(_, block), _| block.id.into()),
    Member::new("height", Shape::Integer, |(_, block), _| block.height().into()),
    Member::new("transactions", Shape::Integer, |(_, block), _| block.transactions.len().into()),
];

/// The transactions that left pools, the nodes of these pools, and the number of messages under way that contained them.
pub(crate) const DROPPED: &[Member<DroppedPending>] = &[
    Member::by("transactions", Shape::List(&shape::HASH), |dropped, _, slot| slot.put(&dropped.transactions)),
    Member::by("nodes", Shape::List(&Shape::Integer), |dropped, _, slot| slot.put(&dropped.nodes)),
    Member::new("underWay", Shape::Integer, |dropped, _| dropped.under_way.into()),
];

/// The body of `POST /lab/blocks`, for the description.
pub(crate) fn block_schema() -> Value {
    let block = json!({"anyOf": [{"type": "object"}, {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$"}]});
    let node = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
    shape::object([("block", block, true), ("node", node, false)])
}

/// `POST /lab/blocks {"block": {..} | "hex", "node": n}`.
pub(crate) async fn push_block(call: Call<'_>) -> Outcome {
    let config = call.context.view.tree().config().clone();
    let SubmittedBlock { node, block, wire } = read(&call.body, call.context.view.node(), &config)?;
    let (id, pushed) = (block.id, block.clone());
    let decide = move |stage: &Stage| match stage.world().tips().all().len() {
        nodes if node.0 as usize >= nodes => {
            Err(ApiError::Unprocessable(format!("key 'node': found {}, allowed is 0 to {}", node.0, nodes - 1)))
        }
        _ => Ok(Intervention::PushBlock { node, block: pushed, wire }),
    };
    let outcome = call.context.live.intervene_if(decide, |outcome, _| outcome).await??;
    let sim::Outcome::BlockPushed(pushed) = outcome else {
        unreachable!("a block is answered by what became of it, not by {outcome:?}");
    };
    match pushed {
        PushVerdict::Accepted => Ok(call.show_row(TAKEN, &(node, block))),
        PushVerdict::Refused(why) => Err(ApiError::Unprocessable(format!("{node} refuses block {id}: {why}"))),
        PushVerdict::Disregarded => Err(ApiError::Conflict(format!(
            "{node} disregards block {id}: it takes none while it starts, downloads or leaves its chain"
        ))),
        PushVerdict::Discarded => Err(ApiError::Unprocessable(format!(
            "{node} passes block {id} over: it has looked at one of this id before, or the chain holds its transactions"
        ))),
        PushVerdict::Unanswered => {
            Err(ApiError::Conflict(format!("{node} does not look at block {id}: it is down, or a fault slows it down")))
        }
    }
}

/// `DELETE /lab/pool/{id}`.
pub(crate) async fn drop_pending(call: Call<'_>) -> Outcome {
    const MISSING: ApiError = ApiError::NotFound("Transaction not found");
    let id: TransactionId = call.arguments.text("id").and_then(|id| id.parse().ok()).ok_or(MISSING)?;
    let observed = call.context.view.node();
    // The pool of another node may contain the transaction until that node receives the block.
    let decide = move |stage: &Stage| match stage.world().tree().block_of(stage.world().tips().of(observed), &id) {
        Some(_) => Err(MISSING),
        None => Ok(Intervention::DropPending { ids: [id].into(), node: None }),
    };
    let outcome = call.context.live.intervene_if(decide, |outcome, _| outcome).await??;
    let sim::Outcome::PendingDropped(dropped) = outcome else {
        unreachable!("a transaction that is dropped is answered by where it was, not by {outcome:?}");
    };
    match dropped.transactions.is_empty() && dropped.under_way == 0 {
        true => Err(MISSING),
        false => Ok(call.show_row(DROPPED, &dropped)),
    }
}

/// A block submitted to a node. The recording contains its wire bytes, from which a replay reads the same block.
struct SubmittedBlock {
    node: NodeId,
    block: Arc<Block>,
    wire: Arc<[u8]>,
}

fn read(body: &Value, observed: NodeId, config: &NetworkConfig) -> Result<SubmittedBlock, ApiError> {
    let members = body.as_object().ok_or_else(|| refused("the body", body, "an object with 'block'"))?;
    if let Some(unknown) = members.keys().find(|key| !["block", "node"].contains(&key.as_str())) {
        return Err(ApiError::Unprocessable(format!("key '{unknown}': no such key, allowed are 'block' and 'node'")));
    }
    let node = number(members, "node")?.map_or(observed, NodeId);
    let context = config.block_context().with_dialect(Dialect::Stored);
    let wrong = |why: String| ApiError::Unprocessable(format!("key 'block': {why}"));
    let block = match members.get("block") {
        None => return Err(ApiError::unprocessable("key 'block': found none, allowed is a block")),
        Some(Value::String(text)) => {
            let bytes = hex::decode(text).map_err(|why| wrong(format!("not hex: {why}")))?;
            Block::from_bytes(&bytes, &context).map_err(|why| wrong(why.to_string()))?
        }
        Some(block @ Value::Object(_)) => Block::from_json(block, &context).map_err(|why| wrong(why.to_string()))?,
        Some(other) => return Err(refused("key 'block'", other, "a block as an object, or its wire bytes in hex")),
    };
    let wire = block.to_bytes(&config.milestones);
    match Block::from_bytes(&wire, &context) {
        Ok(read) if read == block => Ok(SubmittedBlock { node, block: Arc::new(block), wire: wire.into() }),
        Ok(read) => {
            Err(wrong(format!("its wire bytes are those of another block, {} at height {}", read.id, read.height())))
        }
        Err(why) => Err(wrong(format!("it has no wire bytes: {why}"))),
    }
}
