//! Observation of the network: the tips of all nodes, the faults in force, and the events.

use super::snapshots;
use crate::{
    actors::{NodeId, SimTime},
    api::{
        http::{ApiError, Reply},
        lab::{
            board::{BoardState, FaultInForce, LabBoard},
            recent_events::RecentEvents,
            stream::{Filter, Subscription},
        },
        table::{
            Bound, Call, Frame, Member, Outcome, Parameter, Rule, Shape, both, json,
            parameter::ANY_TEXT,
            row::write_members,
            shape::{BLOCK_ID, TEXT_OR_NULL},
        },
    },
    sim::{Pace, Stage, line::KINDS, snapshots::SnapshotInfo},
};
use std::sync::Arc;

/// The option `peers=true`: the answer lists the peers of each node. This copies all actors.
pub(crate) const LAB: &[Parameter] = &[both("peers", Rule::Boolean)];

/// The network at the instant of a request.
pub(crate) struct Lab {
    run: Option<(SimTime, Pace)>,
    now: SimTime,
    board: LabBoard,
    state: BoardState,
    peers: Option<Vec<Vec<NodeId>>>,
    snapshots: Vec<SnapshotInfo>,
    /// True if the answer is public. It then omits the seed, from which all keys follow.
    is_public: bool,
}

/// The whole network. Times are virtual: `now` in seconds since the network's epoch, `nowMicros`, `since` in
/// microseconds.
pub(crate) const MEMBERS: &[Member<Arc<Lab>>] = &[
    Member::new("ready", Shape::Boolean, |lab, _| lab.run.is_some().into()),
    Member::by("pace", Shape::Either(&[Shape::Number, Shape::Text, Shape::Null]), |lab, _, slot| match lab.run {
        Some((_, Pace::Speed(speed))) => slot.put(&speed),
        run => slot.put(&run.map(|(_, pace)| pace.to_string())),
    }),
    Member::new("now", Shape::Integer, |lab, _| lab.now.seconds().into()),
    Member::new("nowMicros", Shape::Integer, |lab, _| lab.now.micros().into()),
    Member::new("seed", Shape::Either(&[Shape::Integer, Shape::Null]), |lab, _| {
        lab.board.seed().filter(|_| !lab.is_public).into()
    }),
    Member::new("stage", TEXT_OR_NULL, |lab, _| lab.board.stage().into()),
    Member::by("nodes", Shape::List(&Shape::Table(&NODE)), |lab, frame, slot| {
        let nodes = (0..lab.state.tips.nodes()).map(|node| (lab.clone(), node));
        slot.list(nodes, |out, node| write_members(out, NODE, &node, frame));
    }),
    Member::by("faults", Shape::List(&Shape::Table(&FAULT)), |lab, frame, slot| {
        slot.list(&lab.state.faults, |out, (number, fault)| write_members(out, FAULT, &(*number, *fault), frame));
    }),
    Member::by("snapshots", snapshots::LIST_SHAPE, |lab, frame, slot| {
        slot.rows(snapshots::MEMBERS, &lab.snapshots, frame);
    }),
];

impl Lab {
    /// The newest events.
    pub fn told(&self) -> &RecentEvents {
        &self.state.told
    }
}

const NODE: &[Member<(Arc<Lab>, usize)>] = &[
    Member::new("node", Shape::Integer, |(_, node), _| (*node).into()),
    Member::new("delegate", TEXT_OR_NULL, |(lab, node), _| lab.board.delegates()[*node].as_deref().into()),
    Member::new("height", Shape::Integer, |(lab, node), _| lab.state.tips.of(NodeId(*node as u32)).height().into()),
    Member::new("tip", BLOCK_ID, |(lab, node), _| lab.state.tips.of(NodeId(*node as u32)).id().into()),
    Member::new("live", Shape::Boolean, |(lab, node), _| lab.state.down[*node].is_none().into()),
    Member::new("cause", TEXT_OR_NULL, |(lab, node), _| lab.state.down[*node].map(|cause| cause.word()).into()),
    Member::new("pool", Shape::Integer, |(lab, node), _| lab.state.pools[*node].into()),
    Member::some_by("peers", Shape::List(&Shape::Integer), |(lab, node), _, slot| {
        slot.put_some(lab.peers.as_ref().and_then(|peers| peers.get(*node)));
    }),
];

const FAULT: &[Member<(usize, FaultInForce)>] = &[
    Member::new("fault", Shape::Integer, |(number, _), _| (*number).into()),
    Member::new("kind", Shape::Text, |(_, fault), _| fault.kind.into()),
    Member::new("since", Shape::Integer, |(_, fault), _| fault.since.micros().into()),
];

/// `GET /lab`. A run that has ended is not ready, has no pace, and stands where it ended.
pub(crate) async fn lab(call: Call<'_>) -> Outcome {
    let run = call.context.live.now().await.ok();
    let now = run.map_or_else(|| call.context.view.now(), |(now, _)| now);
    let board = call.context.board.clone();
    let nodes = u32::try_from(board.nodes()).unwrap_or(u32::MAX);
    let look = move |stage: &Stage| {
        let causes: Vec<_> = (0..nodes).map(|node| stage.world().down_cause(NodeId(node))).collect();
        (stage.snapshots().list().cloned().collect::<Vec<_>>(), causes)
    };
    let (snapshots, causes) = call.context.live.look(look).await.unwrap_or_default();
    let mut state = board.state();
    // The board knows the fault that brought a node down. Another fault may keep it down since then.
    for (down, keeps) in state.down.iter_mut().zip(causes) {
        *down = down.map(|brought| keeps.unwrap_or(brought));
    }
    let peers = match call.parameters.flag("peers") {
        Some(true) => call.context.live.peers().await.ok(),
        _ => None,
    };
    Ok(call.show_row(MEMBERS, &Arc::new(Lab { run, now, board, state, peers, snapshots, is_public: false })))
}

/// The public part of the network: no seed, no snapshots. Asks the run only for its clock.
pub(crate) async fn public(call: &Call<'_>) -> Arc<Lab> {
    let run = call.context.live.now().await.ok();
    let now = run.map_or_else(|| call.context.view.now(), |(now, _)| now);
    let board = call.context.board.clone();
    let state = board.state();
    Arc::new(Lab { run, now, board, state, peers: None, snapshots: Vec::new(), is_public: true })
}

/// `GET /lab/happened`: the newest events of the kinds that the page lists, the newest last.
pub(crate) fn happened(call: &Call<'_>) -> Outcome {
    let told = call.context.board.state().told;
    Ok(call.show(|out, frame| write_told(out, &told, frame)))
}

/// Writes events as a JSON list of their lines.
pub(crate) fn write_told(out: &mut Vec<u8>, told: &RecentEvents, frame: &Frame<'_>) {
    let slots = frame.view.tree().slots();
    json::write_list(out, told.events(), |out, record| out.extend_from_slice(record.json(&slots).as_bytes()));
}

/// The parameters of a stream of events.
pub(crate) const EVENTS: &[Parameter] = &[
    both("kind", ANY_TEXT),
    both("node", ANY_TEXT),
    both("last_event_id", Rule::Integer(Bound::Least(0))),
    both("limit", Rule::Integer(Bound::Between(1, 1_000_000))),
];

/// A stream as the description of the API shows it.
pub(crate) const EVENTS_EXAMPLE: &str = "retry: 1000\n: the next event is 52\n\nid: 52\ndata: {\"at\":16000000,\"node\":3,\
    \"kind\":\"peer.added\",\"peer\":4}\n\n";

/// `GET /lab/events`: from the next event on, or from the one after `Last-Event-ID` or `last_event_id`.
pub(crate) fn events(call: &Call<'_>) -> Outcome {
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
