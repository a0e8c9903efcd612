//! Watching the network: where all nodes stand, and what is in force.

use super::snapshots;
use crate::{
    actors::NodeId,
    api::{
        http::{ApiError, Reply},
        lab::{
            board::{BoardState, LabBoard},
            stream::{Filter, Subscription},
        },
        table::{
            Bound, Call, Outcome, Parameter, Rule, Shape, both,
            json::{self, Object},
            parameter::ANY_TEXT,
            shape::{BLOCK_ID, TEXT_OR_NULL},
        },
    },
    sim::{Pace, Stage, line::KINDS},
};
use std::sync::Arc;

const NODE: Shape = Shape::Members(&[
    ("node", Shape::Integer, true),
    ("delegate", TEXT_OR_NULL, true),
    ("height", Shape::Integer, true),
    ("tip", BLOCK_ID, true),
    ("live", Shape::Boolean, true),
    ("cause", TEXT_OR_NULL, true),
    ("pool", Shape::Integer, true),
    ("peers", Shape::List(&Shape::Integer), false),
]);

/// The option to show more of the network: `peers=true` names those of each node. All actors are copied for it.
pub const LAB: &[Parameter] = &[both("peers", Rule::Boolean)];
const FAULT: Shape =
    Shape::Members(&[("fault", Shape::Integer, true), ("kind", Shape::Text, true), ("since", Shape::Integer, true)]);
/// The whole network. Times are virtual: `now` in seconds since the network's epoch, `nowMicros`, `since` in
/// microseconds.
pub const LAB_SHAPE: Shape = Shape::Members(&[
    ("ready", Shape::Boolean, true),
    ("pace", Shape::Either(&[Shape::Number, Shape::Text, Shape::Null]), true),
    ("now", Shape::Integer, true),
    ("nowMicros", Shape::Integer, true),
    ("seed", Shape::Either(&[Shape::Integer, Shape::Null]), true),
    ("stage", TEXT_OR_NULL, true),
    ("nodes", Shape::List(&NODE), true),
    ("faults", Shape::List(&FAULT), true),
    ("snapshots", snapshots::LIST_SHAPE, true),
]);

/// `GET /lab`. A run that has ended is not ready, has no pace, and stands where it ended.
pub async fn lab(call: Call<'_>) -> Outcome {
    let run = call.context.live.now().await.ok();
    let now = run.map_or_else(|| call.context.view.now(), |(now, _)| now);
    let board = &call.context.board;
    let nodes = u32::try_from(board.nodes()).unwrap_or(u32::MAX);
    let look = move |stage: &Stage| {
        let causes: Vec<_> = (0..nodes).map(|node| stage.world().down_cause(NodeId(node))).collect();
        (stage.snapshots().list().cloned().collect::<Vec<_>>(), causes)
    };
    let (taken, causes) = call.context.live.look(look).await.unwrap_or_default();
    let mut state = board.state();
    // The board knows what brought a node down; another fault may keep it down since then.
    for (down, keeps) in state.down.iter_mut().zip(causes) {
        *down = down.map(|brought| keeps.unwrap_or(brought));
    }
    let peers = match call.parameters.flag("peers") {
        Some(true) => call.context.live.peers().await.ok(),
        _ => None,
    };
    Ok(Reply::json(json::data_object(|data| {
        data.member("ready").put(&run.is_some());
        match run.map(|(_, pace)| pace) {
            Some(Pace::Speed(speed)) => data.member("pace").put(&speed),
            pace => data.member("pace").put(&pace.map(|pace| pace.to_string())),
        }
        data.member("now").put(&now.seconds());
        data.member("nowMicros").put(&now.micros());
        data.member("seed").put(&board.seed());
        data.member("stage").put(&board.stage());
        write_state(data, board, &state, peers.as_deref());
        data.member("snapshots").rows(snapshots::MEMBERS, &taken, &call.frame());
    })))
}

fn write_state(data: &mut Object<'_>, board: &LabBoard, state: &BoardState, peers: Option<&[Vec<NodeId>]>) {
    let nodes = state.tips.all().iter().zip(board.delegates()).zip(state.down.iter().zip(&state.pools)).enumerate();
    data.member("nodes").list(nodes, |out, (node, ((tip, delegate), (down, pool)))| {
        let mut line = Object::open(out);
        line.member("node").put(&node);
        line.member("delegate").put(delegate);
        line.member("height").put(&tip.height());
        line.member("tip").text(tip.id());
        line.member("live").put(&down.is_none());
        line.member("cause").put(&down.map(|cause| cause.word()));
        line.member("pool").put(pool);
        if let Some(peers) = peers.and_then(|peers| peers.get(node)) {
            line.member("peers").put(&peers.iter().map(|peer| peer.0).collect::<Vec<_>>());
        }
        line.close();
    });
    data.member("faults").list(&state.faults, |out, (fault, in_force)| {
        let mut line = Object::open(out);
        line.member("fault").put(fault);
        line.member("kind").put(in_force.kind);
        line.member("since").put(&in_force.since.micros());
        line.close();
    });
}

/// The parameters of a stream of events.
pub const EVENTS: &[Parameter] = &[
    both("kind", ANY_TEXT),
    both("node", ANY_TEXT),
    both("last_event_id", Rule::Integer(Bound::Least(0))),
    both("limit", Rule::Integer(Bound::Between(1, 1_000_000))),
];

/// A stream as the description of the API shows it.
pub const EVENTS_EXAMPLE: &str = "retry: 1000\n: the next event is 52\n\nid: 52\ndata: {\"at\":16000000,\"node\":3,\
    \"kind\":\"peer.added\",\"peer\":4}\n\n";

/// `GET /lab/events`: from the next event on, or from the one after `Last-Event-ID` or `last_event_id`.
pub fn events(call: &Call<'_>) -> Outcome {
    let parameters = &call.parameters;
    let filter = Filter {
        kinds: parameters.text("kind").map(read_kinds).transpose()?,
        nodes: parameters.text("node").map(|text| read_nodes(text, call.context.board.nodes())).transpose()?,
    };
    Ok(Reply::events(Subscription {
        feed: call.context.feed.clone(),
        // The header of a client that reconnects is newer than the parameter in its address.
        after: last_event_id(call)?.or_else(|| parameters.number("last_event_id")),
        filter: Arc::new(filter),
        limit: parameters.number("limit"),
    }))
}

fn last_event_id(call: &Call<'_>) -> Result<Option<u64>, ApiError> {
    let Some(header) = call.request.headers.get("last-event-id") else { return Ok(None) };
    let text = header.to_str().unwrap_or_default();
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        // An EventSource that has seen no event yet sends an empty text.
        Err(_) if text.is_empty() => Ok(None),
        Err(_) => {
            let message = format!("Last-Event-ID: found '{text}', allowed is the number of an event");
            Err(ApiError::Unprocessable(message))
        }
    }
}

fn read_kinds(text: &str) -> Result<Vec<&'static str>, ApiError> {
    let read =
        |word: &str| {
            KINDS.iter().copied().find(|kind| *kind == word).ok_or_else(|| {
                ApiError::Unprocessable(format!("kind: found '{word}', allowed are {}", KINDS.join(", ")))
            })
        };
    text.split(',').map(read).collect()
}

fn read_nodes(text: &str, nodes: usize) -> Result<Vec<NodeId>, ApiError> {
    let read = |word: &str| {
        let number = word
            .parse()
            .ok()
            .filter(|number| (*number as usize) < nodes && word.bytes().all(|byte| byte.is_ascii_digit()));
        number.map(NodeId).ok_or_else(|| {
            let most = nodes.saturating_sub(1);
            ApiError::Unprocessable(format!("node: found '{word}', allowed are the numbers 0 to {most}"))
        })
    };
    text.split(',').map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_whole_or_refused_by_name() {
        assert_eq!(read_kinds("block.applied,node.up"), Ok(vec!["block.applied", "node.up"]));
        for (wrong, named) in
            [("block", "'block'"), ("", "''"), ("block.applied,", "''"), ("network.sent", "'network.sent'")]
        {
            let refused = read_kinds(wrong).expect_err(wrong).to_string();
            assert!(refused.contains(named) && refused.contains("block.applied, block.refused"), "{refused}");
        }
        assert_eq!(read_nodes("0,4", 5), Ok(vec![NodeId(0), NodeId(4)]));
        for wrong in ["5", "+1", "", "0,", "-1", "all", "4294967296"] {
            assert!(read_nodes(wrong, 5).expect_err(wrong).to_string().contains("0 to 4"), "{wrong}");
        }
    }
}
